/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `chains`: an allreduce in as many segments as there are slots, p, or fewer if p is large.
 * Each segment goes along the chain rotated so that it ends at its root, a slot r of its own: r+1,
 * r+2, ..., p-1, 0, ..., r; the roots lie at equal distances, with p segments root j in slot j. All
 * chains use the same p links of one ring, and readers get the segments by distribution.c: every
 * node sends and takes 2(p-1)/p * S in all, the bound of an allreduce (Patarasu and Yuan,
 * "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009).
 */
#include "cost.h"
#include "planner.h"
#include "segment.h"

static const char *chain_unfit(const struct planner_request *q)
{
	uint32_t p = planner_slots(q), segments = planner_segments(q);

	if (!q->everyone)
		return PLANNER_ONE_READER;
	if (p < 2 || p > q->limits->flat_slots_max)
		return PLANNER_SLOTS;
	if (segments < 2 || segments >= q->limits->graph.parts_max || segments > GRAPH_SEGMENTS_MAX)
		return PLANNER_SEGMENTS;
	return segment_chunks(q->size, q->chunk_bytes) < segments ? PLANNER_SMALL : NULL;
}

/* The slot at position k of the chain to that root, which is at p - 1. */
static uint32_t chain_slot(uint32_t p, uint32_t root, uint32_t k)
{
	return (root + 1 + k) % p;
}

/* The chains, then the way back: a hop to all, or along a column and a row. */
static uint64_t chain_estimate(const struct planner_request *q, bool grid)
{
	struct topology_link l = cost_known(planner_best(q));
	uint32_t p = planner_slots(q);
	double byte_ns = 1e9 / (double)l.bytes_per_s, size = (double)q->size;
	double hop = (double)l.latency_ns + q->chunk_bytes * byte_ns;
	uint32_t back = grid ? 2 * (distribution_width(p) - 1) : 1;

	return cost_whole((double)l.start_ns + (p - 1) * hop +
			  back * (hop + (grid ? q->chunk_bytes * byte_ns : 0)) +
			  2 * size * byte_ns * (p - 1) / p);
}

static void chain_shape(const struct planner_request *q, struct planner_choice *c)
{
	uint32_t p = planner_slots(q);

	c->first = 0;
	c->prefer = GRAPH_NODE_NONE; /* each slot has a root */
	c->size = (struct graph_size){p, planner_segments(q), 0, distribution_grids(q, p)};
	c->estimate_ns = chain_estimate(q, c->size.feeders);
}

static void chain_build(const struct planner_request *q, const struct planner_choice *c,
			struct graph *g)
{
	uint32_t p = g->slots;

	for (uint32_t j = 0; j < g->segments; j++) {
		uint32_t root = (uint32_t)((uint64_t)j * p / g->segments);

		for (uint32_t k = 1; k < p; k++)
			graph_join(g, graph_vertex_of(g, j, chain_slot(p, root, k - 1)),
				   graph_vertex_of(g, j, chain_slot(p, root, k)));
		g->segment[j].root = graph_vertex_of(g, j, root);
	}
	planner_book(q, c, GRAPH_NONE, g);
	distribution_fill(g);
}

/* For the simulation. */
static struct route_hop chain_next(const struct planner_request *q, uint32_t slots,
				   uint32_t segments, uint32_t segment, uint32_t slot)
{
	bool root = slot == (uint64_t)segment * slots / segments;

	return (struct route_hop){root ? slot : (slot + 1) % slots, 0};
}

const struct planner planner_chains = {"chains", chain_unfit, chain_shape, chain_build, chain_next};
