-- SPDX-License-Identifier: BSD-3-Clause
-- DATA of a live connection, recorded, at line rate: every byte right, every number seen before.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").replay("data")
