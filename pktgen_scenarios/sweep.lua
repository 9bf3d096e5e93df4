-- SPDX-License-Identifier: BSD-3-Clause
-- Right headers, no packet of ours, at every frame size: how many the node can refuse.
package.path = (debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "?.lua;" .. package.path
require("traffic").sizes("sweep", {64, 128, 256, 512, 1024, 1280, 1518})
