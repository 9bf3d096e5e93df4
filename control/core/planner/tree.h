/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shape of a d-ary reduce tree: plain arithmetic on positions, no state. cost.c needs it for
 * its estimates, dary.c to build the graph. docs/developer/reduce.md has the reasons and the
 * proofs.
 *
 * The shape is the balanced d-ary tree in generalised in-order: first child, node, other children.
 * The n - 1 positions under a root are dealt to min(d, n - 1) children in parts that differ by one
 * at most, the larger ones first, and each part is such a tree again. So all levels but the last
 * are full (the least depth that n and d allow), and d = 1 is the chain (i sends to i + 1, the root
 * is n - 1), d >= n - 1 the star (the root is position 1).
 *
 * Filling by arrival follows Hoplite (Zhuang et al., SIGCOMM 2021); here the depth is exact.
 * n is in 1..GRAPH_SLOTS_MAX, d at least 1, positions are below n.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_TREE_H
#define SARISSA_CONTROL_CORE_PLANNER_TREE_H

#include <stdint.h>

/* A subtree: the positions [first, first + count). */
struct tree_span {
	uint32_t first, count;
};

/* A position: the subtree of which it is the root, and the hops to the tree's root. */
struct tree_place {
	struct tree_span span;
	uint32_t depth;
};

/* How many children the root of so many positions has. */
static inline uint32_t tree_width(uint32_t count, uint32_t d)
{
	return d < count - 1 ? d : count - 1;
}

/* The positions of the first, the largest, of its subtrees; 0 when there is none. */
static inline uint32_t tree_largest(uint32_t count, uint32_t d)
{
	uint32_t width = tree_width(count, d);

	return width ? (count - 2) / width + 1 : 0;
}

/* The root of a subtree. */
uint32_t tree_root(struct tree_span s, uint32_t d);
/* The subtree of its j-th child: the root's own position lies between the first two. */
struct tree_span tree_part(struct tree_span s, uint32_t d, uint32_t j);
struct tree_place tree_find(uint32_t n, uint32_t d, uint32_t position);
/* Hops from the deepest position to the root. */
uint32_t tree_depth(uint32_t n, uint32_t d);

#endif
