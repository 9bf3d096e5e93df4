/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests ask of the shape of a reduce tree, from the planner's spans: both ends of an edge. */
#ifndef SARISSA_TESTS_UNIT_TREE_TEST_H
#define SARISSA_TESTS_UNIT_TREE_TEST_H

#include "core/planner/cost.h"
#include "core/planner/graph.h"
#include "core/planner/tree.h"

static inline uint32_t top_of(uint32_t n, uint32_t d)
{
	return tree_root((struct tree_span){0, n}, d);
}

/* Writes the positions that send to i, if out is not NULL, and returns how many there are. */
static inline uint32_t children_of(uint32_t n, uint32_t d, uint32_t i, uint32_t *out)
{
	struct tree_span s = tree_find(n, d, i).span;

	for (uint32_t j = 0; out && j < tree_width(s.count, d); j++)
		out[j] = tree_root(tree_part(s, d, j), d);
	return tree_width(s.count, d);
}

/* The position that i sends to; GRAPH_NONE for the root. */
static inline uint32_t parent_of(uint32_t n, uint32_t d, uint32_t i)
{
	struct tree_span s = {0, n};
	uint32_t parent = GRAPH_NONE;

	while (tree_root(s, d) != i) {
		struct tree_span part = {0, 0};

		parent = tree_root(s, d);
		for (uint32_t j = 0; i < part.first || i >= part.first + part.count; j++)
			part = tree_part(s, d, j);
		s = part;
	}
	return parent;
}

#endif
