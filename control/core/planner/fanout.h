/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many streams a copy feeds at a time: the cost of broadcast trees, from what was measured.
 * Pure; a shard of the directory owns one struct fanout_link and asks before each answer.
 *
 * n receivers, an object of S bytes in chunks of c, links of B bytes per second in each direction,
 * h the latency of a hop beside the chunk's own time on the link, a for asking a holder to stream.
 * In a tree where each feeds d others, chunk by chunk as they come, a sender's link carries d
 * copies, and the last chunk waits for d chunks at each hop:
 *
 *     tree(n, d) = a + d S/B + (k - 1) d c/B + k h,   k the levels that n receivers fill
 *     star(n)    = n S/B                              the directory answers with the value itself
 *
 * (what both need, the question to the directory and one hop, is left out of both but for h).
 * d = 1, the chain, is n h + S/B: it wins when size rules; d > 1 when start-ups rule, as in the
 * estimate L log_d(n) + d S/B of Hoplite (SIGCOMM 2021), here with the pipeline's fill. Its bounds
 * are S/B, and ceil(log2(n + 1)) start-ups (Traeff, arXiv 2407.18004).
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_FANOUT_H
#define SARISSA_CONTROL_CORE_PLANNER_FANOUT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FANOUT_MAX = 32,	     /* streams of one copy */
	FANOUT_RATE_BYTES = 4 << 10, /* fewer show nothing of a link */
};

struct fanout_link {
	uint64_t start_ns;    /* a: a request to another control and its answer */
	uint64_t hop_ns;      /* h: half a round trip between two workers, at most half of a */
	uint64_t bytes_per_s; /* B: what one receiver takes from one sender */
	bool start_seen, hop_seen, rate_seen; /* else still as assumed */
};

/* What is assumed before anything was measured: a data centre's 10 Gbit/s. */
struct fanout_link fanout_prior(void);

/* One more measurement each. The first takes the place of what was assumed. Of times the least
 * counts, and is forgotten slowly; of rates the most. */
void fanout_saw_start(struct fanout_link *l, uint64_t ns);
void fanout_saw_hop(struct fanout_link *l, uint64_t ns);
void fanout_saw_rate(struct fanout_link *l, uint64_t bytes_per_s);

/* The rate at which so many bytes came that took so long, a request before them included; 0: they
 * are too few to tell. */
uint64_t fanout_rate(const struct fanout_link *l, uint64_t bytes, uint64_t taken_ns);

/* tree(n, d), n and d at least 1; star(n). */
uint64_t fanout_tree_ns(const struct fanout_link *l, uint32_t n, uint32_t d, uint64_t bytes,
			uint32_t chunk_bytes);
uint64_t fanout_star_ns(const struct fanout_link *l, uint32_t n, uint64_t bytes);

/* The d of the fastest tree, 1 .. FANOUT_MAX. */
uint32_t fanout_choose(const struct fanout_link *l, uint32_t n, uint64_t bytes,
		       uint32_t chunk_bytes);
/* Whether answers with the value are faster than the fastest tree: S is below about B a / n. */
bool fanout_inline(const struct fanout_link *l, uint32_t n, uint64_t bytes, uint32_t chunk_bytes);

#endif
