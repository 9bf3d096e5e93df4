/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `twotree`: two binary trees for two halves of the target, for medium sizes, where a chain
 * has too many hops and one binary tree sends every byte twice into its inner nodes. (Sanders,
 * Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
 * Computing 35, 2009.)
 *
 * The last slot is the root of both halves; the m other slots form an in-order binary tree for
 * each. In the first one the leaves are the even positions. The second one is the first mirrored
 * if m is even, and shifted by one if m is odd, so no slot is an inner vertex of both: each takes S
 * in and sends S out, at full bandwidth, and a tree has at most log2(m) + 1 hops. In an allreduce
 * the readers pass the halves on along the same trees, downwards.
 *
 * All contributions must be there, over links that are alike: late ones, and slow ones, have their
 * places in `dary` and `chains`.
 */
#include "cost.h"
#include "planner.h"
#include "segment.h"

enum { TWOTREE_SLOTS_MIN = 3 };

static const char *twotree_unfit(const struct planner_request *q)
{
	uint32_t n = planner_slots(q);
	struct topology_slow slow[TOPOLOGY_SLOW_MAX];

	if (q->whole)
		return PLANNER_WHOLE;
	if (q->present != q->needed)
		return PLANNER_LATE;
	if (n < TWOTREE_SLOTS_MIN || n > q->limits->flat_slots_max)
		return PLANNER_SLOTS;
	if (segment_chunks(q->size, q->chunk_bytes) < 2)
		return PLANNER_SMALL;
	return topology_slow(planner_groups(q, NULL), planner_best(q), q->size, slow) > 0
		       ? "one link is slower than the others"
		       : NULL;
}

/* The hops from a leaf to the root of a tree of m positions: the highest bit of m. */
static uint32_t twotree_height(uint32_t m)
{
	uint32_t height = 0;

	while (m >>= 1)
		height++;
	return height;
}

/*
 * The position that takes from a position of the first tree; GRAPH_NONE: the tree's root. Counted
 * from 1, the height of a number is that of its lowest bit, and the next one up has the bit above
 * that: where there is no such position, the one above it takes from both.
 */
static uint32_t twotree_above(uint32_t m, uint32_t position)
{
	uint32_t k = position + 1, root = 1u << twotree_height(m);

	if (k == root)
		return GRAPH_NONE;
	do {
		uint32_t low = k & -k;

		k = (k - low) | low << 1;
	} while (k > m);
	return k - 1;
}

/* The slot that takes from a slot in the tree of that half, 0 or 1. */
static uint32_t twotree_out(uint32_t m, uint32_t half, uint32_t slot)
{
	bool mirrored = half == 1 && m % 2 == 0, shifted = half == 1 && m % 2 == 1;
	uint32_t to = twotree_above(m, mirrored ? m - 1 - slot : (slot + shifted) % m);

	if (to == GRAPH_NONE)
		return m;
	return mirrored ? m - 1 - to : (to + m - shifted) % m;
}

/* Each hop takes a chunk of two others; all of S goes into each node, and once more on the way
 * back. */
static uint64_t twotree_estimate(const struct planner_request *q)
{
	struct topology_link l = cost_known(planner_best(q));
	uint32_t hops = twotree_height(planner_slots(q) - 1) + 1, ways = q->everyone ? 2 : 1;
	double two = 2.0 * q->chunk_bytes, size = (double)q->size;
	double rest = size > two ? size - two : 0, byte_ns = 1e9 / (double)l.bytes_per_s;

	return cost_whole((double)l.start_ns +
			  ways * (hops * ((double)l.latency_ns + two * byte_ns) + rest * byte_ns));
}

static void twotree_shape(const struct planner_request *q, struct planner_choice *c)
{
	c->first = 0;
	c->size = (struct graph_size){planner_slots(q), 2, 0, q->everyone};
	c->estimate_ns = twotree_estimate(q);
}

static void twotree_half(struct graph *g, uint32_t half)
{
	uint32_t m = g->slots - 1;

	for (uint32_t to = 0; to <= m; to++)
		for (uint32_t from = 0; from < m; from++)
			if (twotree_out(m, half, from) == to)
				graph_join(g, graph_vertex_of(g, half, from),
					   graph_vertex_of(g, half, to));
	for (uint32_t slot = 0; g->feeder && slot <= m; slot++)
		g->feeder[half * g->slots + slot] =
			(uint16_t)(slot == m ? m : twotree_out(m, half, slot));
}

static void twotree_build(const struct planner_request *q, const struct planner_choice *c,
			  struct graph *g)
{
	twotree_half(g, 0);
	twotree_half(g, 1);
	planner_book(q, c, g->slots - 1, g);
}

const struct planner planner_twotree = {"twotree", twotree_unfit, twotree_shape, twotree_build,
					NULL};
