-- SPDX-License-Identifier: BSD-3-Clause
-- Handshakes from random addresses, right in every byte, or with a made-up cookie.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").replay("hello")
