/* SPDX-License-Identifier: BSD-3-Clause */
#include <sodium/crypto_shorthash.h>
#include <sodium/crypto_shorthash_siphash24.h>
#include <sodium/utils.h>
#include "cookie.h"
#include "core/engine_state.h"
#include "core/numbers.h"

/* A cookie is SipHash-2-4 (128 bit) over the sender's address, what its HELLO asks for and the
 * time, under a key that never leaves this node. */

_Static_assert(crypto_shorthash_siphashx24_BYTES == WIRE_COOKIE_BYTES, "128-bit SipHash");

void cookie_make(const struct engine *e, const struct net_addr *addr, const uint8_t *hello,
		 uint64_t time, uint8_t cookie[WIRE_COOKIE_BYTES])
{
	uint8_t in[16 + 2 + 4 + 8 + 8 + 4];

	memcpy(in, addr->ip, 16);
	wire_put16(in + 16, addr->port);
	memcpy(in + 18, hello + HELLO_AT_CONN, 4);
	memcpy(in + 22, hello + HELLO_AT_INCARNATION, 8);
	wire_put64(in + 30, time);
	memcpy(in + 38, hello + HELLO_AT_PATH, 4);
	crypto_shorthash_siphashx24(cookie, in, sizeof(in), e->config.key);
}

bool cookie_holds(const struct engine *e, const struct net_addr *addr, const uint8_t *hello)
{
	uint8_t want[WIRE_COOKIE_BYTES];
	uint64_t time = wire_get64(hello + HELLO_AT_TIME);

	if (time > e->now_ns || e->now_ns - time > COOKIE_LIFETIME_NS)
		return false;
	cookie_make(e, addr, hello, time, want);
	return sodium_memcmp(want, hello + HELLO_AT_COOKIE, sizeof(want)) == 0;
}

bool cookie_budget(struct engine *e, enum budget what)
{
	/* A cookie costs a hash and is smaller than its question: a flood of HELLOs that gets none
	 * would keep honest openers out. */
	uint64_t per_s = e->config.handshakes_per_s * (what == BUDGET_COOKIE ? 32 : 1);
	uint64_t each_ns = UINT64_C(1000000000) / per_s;
	/* so much may come at once, or one */
	uint64_t burst_ns = numbers_max(COOKIE_BURST_NS, each_ns);

	/* A node that all others turn to at once takes as many as its table holds: the rate only
	 * bounds how fast strangers can turn the table over. */
	if (what == BUDGET_ACCEPT)
		burst_ns = numbers_max(burst_ns, each_ns * e->config.conns_max);
	uint64_t *spent_ns = &e->budget_spent_ns[what];
	uint64_t floor_ns = e->now_ns > burst_ns ? e->now_ns - burst_ns : 0;

	if (*spent_ns < floor_ns)
		*spent_ns = floor_ns;
	if (*spent_ns + each_ns > e->now_ns)
		return false;
	*spent_ns += each_ns;
	return true;
}

uint64_t cookie_random(const struct engine *e, uint64_t what)
{
	uint8_t in[16], out[8];

	wire_put64(in, what);
	wire_put64(in + 8, e->config.incarnation);
	crypto_shorthash_siphash24(out, in, sizeof(in), e->config.key);
	return wire_get64(out);
}
