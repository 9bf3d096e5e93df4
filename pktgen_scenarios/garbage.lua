-- SPDX-License-Identifier: BSD-3-Clause
-- Random bytes, half of them with a header that looks right.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").replay("garbage")
