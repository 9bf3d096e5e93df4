-- SPDX-License-Identifier: BSD-3-Clause
-- IP and UDP lengths that lie, fragments, frames beyond the MTU.
package.path = (os.getenv("SCENARIOS") or "pktgen_scenarios") .. "/?.lua;" .. package.path
require("traffic").replay("oversize")
