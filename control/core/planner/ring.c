/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planners of allreduces along one ring, rotated so that each segment ends at its root; the roots
 * lie at equal distances. Every node sends and takes 2 (p - 1) / p of the target in all, the bound
 * of an allreduce. (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", JPDC 2009.) choose.c has them in its table.
 *
 *   ring    Over all nodes of a network, in the order of an n-ary reflected Gray code (Knuth, TAOCP
 *           7.2.1.1): each hop crosses one link, but for the last one where a level has an odd
 *           number of members. The baseline of HiPS.
 *   chains  Without a network, slot by slot, for contributions that are still to come as well;
 *           readers get the segments by distribution.c.
 */
#include "cost.h"
#include "route.h"
#include "segment.h"

/* ---- ring -------------------------------------------------------------------------------------
 */

enum { RING_SEGMENTS = 16 }; /* of many places: the roots are as far apart as fills the ring */

/* One for each place, as far as they fit. */
static uint32_t ring_segments(const struct planner *planner, const struct planner_request *q)
{
	uint32_t fit = route_segments(q);
	uint64_t chunks = segment_chunks(q->size, q->chunk_bytes);

	if (chunks < fit)
		fit = (uint32_t)chunks;
	if (q->network->places <= fit)
		return q->network->places;
	return fit < RING_SEGMENTS ? fit : RING_SEGMENTS;
}

static const char *ring_unfit(const struct planner *planner, const struct planner_request *q)
{
	if (!route_full(q))
		return PLANNER_NETWORK;
	return q->network->crossed ? PLANNER_CROSSED : NULL;
}

/* A place's number in that ring. Digit i is the coordinate of level i. */
static uint32_t ring_index(const struct network *w, uint32_t place)
{
	uint32_t index = 0;

	for (uint32_t l = w->levels; l-- > 0;) {
		uint32_t members = w->level[l].members;
		uint32_t at = network_coordinate(w, place, l);

		/* a digit runs backwards while the number above it is odd */
		index = index * members + (index % 2 ? members - 1 - at : at);
	}
	return index;
}

static uint32_t ring_place(const struct network *w, uint32_t index)
{
	uint32_t place = 0;

	for (uint32_t l = 0; l < w->levels; l++) {
		uint32_t members = w->level[l].members;
		uint32_t at = index % members;

		index /= members;
		place = network_moved(w, place, l, index % 2 ? members - 1 - at : at);
	}
	return place;
}

static struct route_hop ring_next(const struct planner *planner, const struct planner_request *q,
				  uint32_t slots, uint32_t segments, uint32_t segment,
				  uint32_t slot)
{
	const struct network *w = q->network;
	uint32_t index = ring_index(w, slot), rail = 0;
	uint32_t to = ring_place(w, (index + 1) % w->places);

	if (index == (uint64_t)segment * w->places / segments)
		return (struct route_hop){slot, rail};
	for (uint32_t l = 0; l < w->levels; l++)
		if (network_coordinate(w, slot, l) != network_coordinate(w, to, l))
			rail = network_rail_towards(w, slot, to, l);
	return (struct route_hop){to, rail};
}

/* On around the ring. */
static uint32_t ring_feeder(const struct planner *planner, const struct planner_request *q,
			    uint32_t slots, uint32_t segments, uint32_t segment, uint32_t slot)
{
	const struct network *w = q->network;

	return ring_place(w, (ring_index(w, slot) + w->places - 1) % w->places);
}

static uint64_t ring_ns(const struct planner *planner, const struct planner_request *q,
			uint32_t segments)
{
	uint32_t p = planner_slots(q);
	double passed = segments < p ? 1 : (double)(p - 1) / p; /* else each has a root */

	return route_ns(planner_best(q), q->chunk_bytes, p - 1, 1, 2 * (double)q->size * passed);
}

const struct planner planner_ring = {.name = "ring",
				     .places = true,
				     .unfit = ring_unfit,
				     .segments = ring_segments,
				     .estimate = ring_ns,
				     .next = ring_next,
				     .feeder = ring_feeder};

/* ---- chains -----------------------------------------------------------------------------------
 */

static const char *ring_chains_unfit(const struct planner *planner, const struct planner_request *q)
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

/* The chains, then the way back: a hop to all, or along a column and a row. */
static uint64_t ring_chains_ns(const struct planner_request *q, bool grid)
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

static void ring_chains_shape(const struct planner_request *q, struct planner_choice *c)
{
	uint32_t p = planner_slots(q);

	c->first = 0;
	c->prefer = GRAPH_NODE_NONE; /* each slot has a root */
	c->size = (struct graph_size){p, planner_segments(q), 0, distribution_grids(q, p)};
	c->estimate_ns = ring_chains_ns(q, c->size.feeders);
}

static void ring_chains_build(const struct planner_request *q, const struct planner_choice *c,
			      struct graph *g)
{
	uint32_t p = g->slots;

	for (uint32_t j = 0; j < g->segments; j++) {
		uint32_t root = (uint32_t)((uint64_t)j * p / g->segments);

		for (uint32_t k = 1; k < p; k++)
			graph_join(g, graph_vertex_of(g, j, (root + k) % p),
				   graph_vertex_of(g, j, (root + k + 1) % p));
		g->segment[j].root = graph_vertex_of(g, j, root);
	}
	planner_book(q, c, GRAPH_NONE, g);
	distribution_fill(g);
}

/* For the simulation. */
static struct route_hop ring_chains_next(const struct planner *planner,
					 const struct planner_request *q, uint32_t slots,
					 uint32_t segments, uint32_t segment, uint32_t slot)
{
	bool root = slot == (uint64_t)segment * slots / segments;

	return (struct route_hop){root ? slot : (slot + 1) % slots, 0};
}

const struct planner planner_chains = {.name = "chains",
				       .unfit = ring_chains_unfit,
				       .shape = ring_chains_shape,
				       .build = ring_chains_build,
				       .next = ring_chains_next};
