/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `dary`: one in-order d-ary tree of all slots (tree.h), slot i at position i; d = 1 is the
 * chain and d = n - 1 the star. One node gets the result from the root, others get it from there as
 * any object. The degree is the one with the least estimate, worse links in their places.
 */
#include "cost.h"
#include "planner.h"
#include "tree.h"

/* The first group, as ordered, of the node that the root is meant for; GRAPH_NONE: none is. */
static uint32_t dary_rooted(struct topology_groups gs, uint32_t node)
{
	for (uint32_t i = 0; i < gs.count; i++)
		if (topology_group(gs, i)->node == node)
			return i;
	return GRAPH_NONE;
}

/* The position that group i gets in a tree of that degree. */
static uint32_t dary_position(uint32_t n, uint32_t d, uint32_t rooted, uint32_t i)
{
	uint32_t root = tree_root((struct tree_span){0, n}, d), position = i - (rooted < i);

	if (rooted == GRAPH_NONE)
		return i;
	return i == rooted ? root : position + (position >= root);
}

struct dary_links {
	struct topology_link best;
	struct topology_slow slow[TOPOLOGY_SLOW_MAX];
	uint32_t count, rooted;
};

static uint64_t dary_ns(const struct planner_request *q, const struct dary_links *l, uint32_t d)
{
	const struct cost_object o = {q->size, q->chunk_bytes};
	struct topology_slow at[TOPOLOGY_SLOW_MAX];
	uint32_t n = planner_slots(q);

	for (uint32_t k = 0; k < l->count; k++)
		at[k] = (struct topology_slow){dary_position(n, d, l->rooted, l->slow[k].position),
					       l->slow[k].link};
	return cost_tree_slow_ns(n, d, o, l->best, at, l->count);
}

/* Until all others have got the sum as well. */
static uint64_t dary_broadcast_ns(const struct planner_request *q, struct topology_link best)
{
	const struct cost_object o = {q->size, q->chunk_bytes};
	uint32_t others = planner_slots(q) - 1;

	best = cost_known(best);
	return others ? cost_broadcast_ns(others,
					  planner_width(best, others, q->size, q->chunk_bytes), o,
					  best)
		      : 0;
}

static void dary_shape(const struct planner_request *q, struct planner_choice *c)
{
	struct dary_links l = {.best = planner_best(q)};
	uint32_t n = planner_slots(q);
	struct topology_groups gs;

	/* position 0 has no children, whatever the tree: it is the worst link's */
	c->first = 0;
	c->first = topology_worst(planner_groups(q, c), l.best, q->size, c->prefer);
	gs = planner_groups(q, c);
	l.rooted = dary_rooted(gs, c->prefer);
	l.count = topology_slow(gs, l.best, q->size, l.slow);
	c->size = (struct graph_size){.slots = n, .segments = 1};
	c->degree = 1;
	c->estimate_ns = UINT64_MAX;
	for (uint32_t d = 1; d == 1 || d < n; d++) {
		uint64_t ns = dary_ns(q, &l, d);

		if (ns < c->estimate_ns) {
			c->estimate_ns = ns;
			c->degree = d;
		}
	}
	if (c->degree > q->limits->graph.fan_in_max)
		c->degree = q->limits->graph.fan_in_max;
	if (q->everyone && c->estimate_ns < UINT64_MAX / 2)
		c->estimate_ns += dary_broadcast_ns(q, l.best);
}

static void dary_build(const struct planner_request *q, const struct planner_choice *c,
		       struct graph *g)
{
	uint32_t n = g->slots, d = c->degree;

	for (uint32_t i = 0; i < n; i++) {
		struct tree_span s = tree_find(n, d, i).span;

		for (uint32_t j = 0; j < tree_width(s.count, d); j++)
			graph_join(g, tree_root(tree_part(s, d, j), d), i);
	}
	planner_book(q, c, tree_root((struct tree_span){0, n}, d), g);
}

const struct planner planner_dary = {.name = "dary", .shape = dary_shape, .build = dary_build};
