-- SPDX-License-Identifier: BSD-3-Clause
-- DATA of a live connection, recorded, at line rate: every byte right, every number seen before.
package.path = (os.getenv("SCENARIOS") or "pktgen_scenarios") .. "/?.lua;" .. package.path
require("traffic").replay("data")
