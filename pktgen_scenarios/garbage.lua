-- SPDX-License-Identifier: BSD-3-Clause
-- Random bytes, half of them with a header that looks right.
package.path = (os.getenv("SCENARIOS") or "pktgen_scenarios") .. "/?.lua;" .. package.path
require("traffic").replay("garbage")
