-- SPDX-License-Identifier: BSD-3-Clause
-- Bursts of 1,408 full frames (2 MiB) back to back, as a switch delivers them for many senders.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").bursts("incast", 1408, 0.1)
