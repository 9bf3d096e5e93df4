/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a shape costs: the one model behind the degree of a reduce, the choice between values and a
 * tree, and the width of a broadcast. Pure arithmetic; docs/developer/reduce.md and
 * docs/developer/architecture.md, 5, have the reasons.
 *
 * S is the size in bytes, c the chunk, B a link's bytes per second in each direction, L its latency
 * one way, a its start. All transfers are pipelined by chunk. A time is in nanoseconds from the
 * moment when all contributions, or the origin's copy, are there to the last byte.
 *
 * The approach, and the coarse form L log_d(n) + d S/B, are Hoplite's (Zhuang et al., SIGCOMM
 * 2021). Here the chunks that fill the pipeline are counted. The bounds of a broadcast are S/B and
 * ceil(log2(n + 1)) starts (Traeff, arXiv 2407.18004); the bound of an allreduce is 2(n-1)/n S/B
 * (Patarasu and Yuan, JPDC 2009).
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_COST_H
#define SARISSA_CONTROL_CORE_PLANNER_COST_H

#include "topology.h"

/* Assumed of a link where 0 says that it was not measured. A start of 0 is none. */
#define COST_LATENCY_NS	 UINT64_C(50000)
#define COST_BYTES_PER_S UINT64_C(1250000000)

/* The object that is moved. chunk 0, or more than the size: no pipelining. */
struct cost_object {
	uint64_t size_bytes, chunk_bytes;
};

/* The link that the model assumes where nothing was measured. */
struct topology_link cost_known(struct topology_link link);

/* An estimate as a number; UINT64_MAX - 1 if it is too large for one. */
uint64_t cost_whole(double ns);

/*
 * A tree of tree.h to its root, with one link that stands for all:
 *
 *	chain:	a + (n - 1) * (L + c/B) + (S - c)/B
 *	star:	a + L + (n - 1) * S/B
 *	else:	about a + depth * (L + d*c/B) + d * (S - c)/B, less what a link takes in from small
 *		subtrees while it waits for the larger ones
 *
 * Exact for the chain, the star and single chunks; otherwise a lower bound, 14 % low at worst for
 * n <= 16 when a link takes the chunks of the child that is behind first, 20 % when it takes them
 * as they come. n in 1..GRAPH_SLOTS_MAX, d at least 1.
 */
uint64_t cost_tree_ns(uint32_t n, uint32_t d, struct cost_object o, struct topology_link link);
/*
 * The same where some links are worse than `link`, which all others have: the most of that and, for
 * each of them, what the chunks take that come through its subtree to the root: each hop's L and
 * c/B, what the slow ones add to the hops that they send or take in over, the latest start on the
 * way, and (S - c)/B of its slowest node, times that one's children. At most TOPOLOGY_SLOW_MAX.
 */
uint64_t cost_tree_slow_ns(uint32_t n, uint32_t d, struct cost_object o, struct topology_link link,
			   const struct topology_slow *slow, uint32_t count);
/* The d of 1..n-1 with the least cost_tree_ns, the smallest of equals; 1 for n = 1. Tries them all:
 * some 10 us for 1,024 nodes. */
uint32_t cost_tree_degree(uint32_t n, struct cost_object o, struct topology_link link);

/*
 * The largest size, of most bytes at most, of which n objects are added up at one node no later
 * than by the best tree: copies S/B, as so many times S pass its link, against setup_ns and the
 * tree. o.size_bytes is not looked at.
 */
uint64_t cost_values_max(uint32_t n, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
			 uint64_t setup_ns, struct topology_link link);
/*
 * The same where the p - 1 others get the sum, against segments exchanged as values: (copies +
 * p - 1) S/B against setup_ns + 2 L + 2 (p-1)/p S/B. An object of fewer than p chunks has no such
 * segments; all others are exchanged where the link was not measured, since that loses little on a
 * fast one.
 */
uint64_t cost_exchange_max(uint32_t p, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
			   uint64_t setup_ns, struct topology_link link);

/*
 * A broadcast of a complete copy to n receivers, in a tree in which each copy feeds d others:
 *
 *	tree(n, d) = a + d S/B + (k - 1) d c/B + k L,	k the levels that n receivers fill
 *	star(n)	   = n S/B + L				the directory answers with the value itself
 *
 * What both need is left out of both: the question to the directory and one hop. The link must be
 * measured. n and d at least 1.
 */
uint64_t cost_broadcast_ns(uint32_t n, uint32_t d, struct cost_object o, struct topology_link link);
/* The d of 1..most with the least cost_broadcast_ns, the smallest of equals. */
uint32_t cost_broadcast_degree(uint32_t n, uint32_t most, struct cost_object o,
			       struct topology_link link);
uint64_t cost_answers_ns(uint32_t n, uint64_t size_bytes, struct topology_link link);

#endif
