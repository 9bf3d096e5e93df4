-- SPDX-License-Identifier: BSD-3-Clause
-- Packets of a running transfer, whole, again and again.
package.path = (os.getenv("SCENARIOS") or "pktgen_scenarios") .. "/?.lua;" .. package.path
require("traffic").replay("replay")
