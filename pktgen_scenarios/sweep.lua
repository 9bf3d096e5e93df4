-- SPDX-License-Identifier: BSD-3-Clause
-- Right headers, no packet of ours, at every frame size: how many the node can refuse.
package.path = (os.getenv("SCENARIOS") or "pktgen_scenarios") .. "/?.lua;" .. package.path
require("traffic").sizes("sweep", {64, 128, 256, 512, 1024, 1280, 1518})
