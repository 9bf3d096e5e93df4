/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the transport tests share: links of known kinds, one transfer from node 0 to node 1, and
 * assertions that say the numbers they compare.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_TESTKIT_H
#define SARISSA_TESTS_SIM_MODEL_TESTKIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rules.h"
#include "wire/wire_field.h"
#include "world.h"

#define TESTKIT_CHUNK 1408u /* for MTU 1500 */
#define TESTKIT_SEED  0x5eedull

/* A link of so many Mbit/s, a round trip of rtt_ns between two such links, 512 KiB of buffer. */
static inline struct network_link testkit_link(uint64_t mbit, uint64_t rtt_ns)
{
	return (struct network_link){
		.rate_bps = mbit * 1000000, .delay_ns = rtt_ns / 2, .buffer_bytes = 512 << 10};
}

/* Nanoseconds that payload bytes take at a rate: the bound of every transfer. */
static inline uint64_t testkit_bound_ns(uint64_t bytes, uint64_t mbit)
{
	return bytes * 8000 / mbit;
}

#define testkit_at_most(what, value, limit)                                               \
	do {                                                                              \
		double testkit_v = (double)(value), testkit_l = (double)(limit);          \
		printf("  %-44s %12.3f of at most %12.3f\n", what, testkit_v, testkit_l); \
		if (testkit_v > testkit_l)                                                \
			fail_msg("%s: %.3f is above %.3f", what, testkit_v, testkit_l);   \
	} while (0)

#define testkit_clean(w)                                                          \
	do {                                                                      \
		for (uint32_t testkit_i = 0; testkit_i < (w)->count; testkit_i++) \
			node_check(&(w)->nodes[testkit_i]);                       \
		if ((w)->violations)                                              \
			fail_msg("%s", (w)->first);                               \
	} while (0)

/* One transfer 0 -> 1 in a world that is connected already. */
struct transfer {
	uint32_t source, sink, out;
	uint64_t done_ns; /* from the command to BUFFER_DONE; UINT64_MAX: not in time */
};

static inline struct transfer testkit_begin(struct world *w, uint32_t from, uint32_t to,
					    uint64_t bytes, uint32_t chunk_bytes, uint64_t seed)
{
	struct transfer t;
	t.source = node_source(&w->nodes[from], bytes, chunk_bytes, seed, bytes);
	t.sink = node_sink(&w->nodes[to], bytes, chunk_bytes, seed);
	t.out = world_edge(w, from, t.source, to, t.sink);
	return t;
}

static inline struct transfer testkit_transfer(struct world *w, uint64_t bytes,
					       uint32_t chunk_bytes, uint64_t within_ns)
{
	struct transfer t = testkit_begin(w, 0, 1, bytes, chunk_bytes, TESTKIT_SEED);
	t.done_ns = world_buffer_done(w, 1, t.sink, within_ns);
	return t;
}

#endif
