-- SPDX-License-Identifier: BSD-3-Clause
-- Packets of a running transfer, whole, again and again.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").replay("replay")
