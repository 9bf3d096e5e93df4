/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The in-order d-ary tree, as arithmetic: tree.h has the rule. cost.c and dary.c call it; it must
 * not know slots or links. Any position is found by one walk down from the root, without a table.
 */
#include "tree.h"

static uint32_t tree_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t tree_root(struct tree_span s, uint32_t d)
{
	return s.first + tree_largest(s.count, d);
}

struct tree_span tree_part(struct tree_span s, uint32_t d, uint32_t j)
{
	uint32_t width = tree_width(s.count, d);
	uint32_t small = (s.count - 1) / width, larger = (s.count - 1) % width;

	return (struct tree_span){
		.first = s.first + j * small + tree_min(j, larger) + (j > 0),
		.count = small + (j < larger),
	};
}

/* The child whose subtree holds a position, which is not the root's. */
static uint32_t tree_side(struct tree_span s, uint32_t d, uint32_t position)
{
	uint32_t width = tree_width(s.count, d);
	uint32_t small = (s.count - 1) / width, larger = (s.count - 1) % width;
	uint32_t at = position - s.first - (position > tree_root(s, d));

	if (at < larger * (small + 1))
		return at / (small + 1);
	return larger + (at - larger * (small + 1)) / small;
}

struct tree_place tree_find(uint32_t n, uint32_t d, uint32_t position)
{
	struct tree_place p = {{0, n}, 0};

	if (d == 1) /* no walk down a chain */
		return (struct tree_place){{0, position + 1}, n - 1 - position};
	for (; tree_root(p.span, d) != position; p.depth++)
		p.span = tree_part(p.span, d, tree_side(p.span, d, position));
	return p;
}

uint32_t tree_depth(uint32_t n, uint32_t d)
{
	uint32_t depth = 0;

	for (; n > 1; n = tree_largest(n, d))
		depth++;
	return depth;
}
