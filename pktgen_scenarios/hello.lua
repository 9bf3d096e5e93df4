-- SPDX-License-Identifier: BSD-3-Clause
-- Handshakes from random addresses, right in every byte, or with a made-up cookie.
package.path = (os.getenv("SCENARIOS") or "pktgen_scenarios") .. "/?.lua;" .. package.path
require("traffic").replay("hello")
