-- SPDX-License-Identifier: BSD-3-Clause
-- The mixture that was recorded, for hours: SECONDS=28800 RATE=20.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").replay("soak")
