/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shape of a reduce tree and the choice of its degree: plain arithmetic, no state. n objects
 * take the positions 0..n-1 in the order in which they arrive; position i sends its partial
 * result to its parent, the root's is the result. docs/reduce.md has the reasons and the proofs.
 *
 * The shape is the balanced d-ary tree in generalised in-order: first child, node, other children.
 * The n - 1 positions under a root are dealt to min(d, n - 1) children in parts that differ by one
 * at most, the larger ones first, and each part is such a tree again. So all levels but the last
 * are full (the least depth that n and d allow), and d = 1 is the chain (i sends to i + 1, the
 * root is n - 1), d >= n - 1 the star (the root is position 1).
 *
 * Tree, filling by arrival and the estimate behind the degree follow Hoplite (Zhuang et al.,
 * "Hoplite: Efficient and Fault-Tolerant Collective Communication for Task-Based Distributed
 * Systems", SIGCOMM 2021); here the depth is exact, and the chunks of the pipeline are counted.
 *
 * Any thread may call; nothing is kept. Limits: n up to REDUCE_TREE_MAX; with n or d of 0, n over
 * the limit, or a position >= n there is no tree: REDUCE_TREE_NONE, no children, depth 0.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_REDUCE_TREE_H
#define SARISSA_CONTROL_CORE_PLANNER_REDUCE_TREE_H

#include <stdint.h>

enum { REDUCE_TREE_MAX = 1024 };
#define REDUCE_TREE_NONE UINT32_MAX

/* What is assumed of a link that has not been measured. */
#define REDUCE_TREE_LATENCY_NS	UINT64_C(50000)
#define REDUCE_TREE_BYTES_PER_S UINT64_C(1250000000)

/* One link that stands for all: latency_ns is half a round trip, bytes_per_s what a node takes,
 * start_ns what passes before a stream flows. All streams of a tree begin at the same time. */
struct reduce_link {
	uint64_t latency_ns;  /* 0: not measured */
	uint64_t bytes_per_s; /* 0: not measured */
	uint64_t start_ns;
};

/* The position that holds the result. */
uint32_t reduce_tree_root(uint32_t n, uint32_t d);
/* The position that i sends to; REDUCE_TREE_NONE for the root. */
uint32_t reduce_tree_parent(uint32_t n, uint32_t d, uint32_t i);
/*
 * Writes the first max of the positions that send to i, in rising order, and returns how many there
 * are in all (at most d). The first one is lower than i, the others are higher.
 */
uint32_t reduce_tree_children(uint32_t n, uint32_t d, uint32_t i, uint32_t *out, uint32_t max);
/* Hops from the deepest position to the root. */
uint32_t reduce_tree_depth(uint32_t n, uint32_t d);

/*
 * The estimate: nanoseconds from the moment when all n objects are there to the last byte at the
 * root. A node with k children takes k*S bytes through its link of B, forwards a chunk of c bytes
 * when it is in from all of them, and each hop adds L, the latency; the start a is added once:
 *
 *	chain:	a + (n - 1) * (L + c/B) + (S - c)/B
 *	star:	a + L + (n - 1) * S/B
 *	else:	about a + depth * (L + d*c/B) + d * (S - c)/B, less what a link takes in from small
 *		subtrees while it waits for the larger ones
 *
 * Exact for the chain, the star and single chunks; otherwise a lower bound, 14 % low at worst for
 * n <= 16 when a link takes the chunks of the child that is behind first, 20 % when it takes them
 * as they come. chunk_bytes 0, or more than the size, means no pipelining; a 0 in link the assumed
 * value, but no start. UINT64_MAX when there is no such tree.
 */
uint64_t reduce_tree_time(uint32_t n, uint32_t d, uint64_t size_bytes, uint64_t chunk_bytes,
			  struct reduce_link link);
/*
 * The d of 1..n-1 with the least estimate, the smallest of equals; 1 for n = 1, 0 when there is no
 * tree. Tries them all: some 10 us for 1,024 nodes.
 */
uint32_t reduce_tree_degree(uint32_t n, uint64_t size_bytes, uint64_t chunk_bytes,
			    struct reduce_link link);
/* A position whose link is worse than the others'. */
struct reduce_slow {
	uint32_t position;
	struct reduce_link link;
};
enum { REDUCE_SLOW_MAX = 16 };

/*
 * The same where some links are worse than link, which all others have: the most of that and, for
 * each of them, what the chunks take that come through its subtree to the root: each hop's L and
 * c/B, what the slow ones add to the hops that they send or take in over, the latest start on the
 * way, and (S - c)/B of its slowest node, times that one's children. Between two of them a hop
 * takes what each has more. As many as REDUCE_SLOW_MAX of them.
 */
uint64_t reduce_tree_time_slow(uint32_t n, uint32_t d, uint64_t size_bytes, uint64_t chunk_bytes,
			       struct reduce_link link, const struct reduce_slow *slow,
			       uint32_t count);
/*
 * The largest size, of most bytes at most, of which n objects are added up at one node no later
 * than by the best tree: copies S/B, as so many times S pass its link, against setup_ns and the
 * estimate above. n in 1..REDUCE_TREE_MAX.
 */
uint64_t reduce_tree_value_max(uint32_t n, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
			       uint64_t setup_ns, struct reduce_link link);

#endif
