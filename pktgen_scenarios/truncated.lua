-- SPDX-License-Identifier: BSD-3-Clause
-- Packets of a running transfer, cut at a random place, the checksum made right or not.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").replay("truncated")
