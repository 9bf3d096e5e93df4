-- SPDX-License-Identifier: BSD-3-Clause
-- IP and UDP lengths that lie, fragments, frames beyond the MTU.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").replay("oversize")
