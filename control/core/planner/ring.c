/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `ring`: a flat ring over all nodes of a network, one segment per node or, of many, fewer:
 * the baseline of HiPS. The ring visits the places in the order of an n-ary reflected Gray code, so
 * that each hop crosses one link, but for the last one where a level has an odd number of members.
 * 2 (N - 1) start-ups, and the bytes of one port. (Patarasu and Yuan, JPDC 2009, for the ring;
 * Knuth, TAOCP 7.2.1.1, for the code.) `chains` is the same without a network.
 */
#include "route.h"
#include "segment.h"

enum { RING_SEGMENTS = 16 }; /* of many places: the roots are as far apart as fills the ring */

/* One for each place, as far as they fit. */
static uint32_t ring_segments(const struct planner_request *q)
{
	uint32_t fit = route_segments(q);
	uint64_t chunks = segment_chunks(q->size, q->chunk_bytes);

	if (chunks < fit)
		fit = (uint32_t)chunks;
	if (q->network->places <= fit)
		return q->network->places;
	return fit < RING_SEGMENTS ? fit : RING_SEGMENTS;
}

static const char *ring_unfit(const struct planner_request *q)
{
	if (!route_full(q))
		return PLANNER_NETWORK;
	if (q->network->crossed)
		return PLANNER_CROSSED;
	return route_unfit(q, ring_segments(q), GRAPH_SLOTS_MAX);
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

static struct route_hop ring_next(const struct planner_request *q, uint32_t slots,
				  uint32_t segments, uint32_t segment, uint32_t slot)
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
static uint32_t ring_feeder(const struct planner_request *q, uint32_t slots, uint32_t segments,
			    uint32_t segment, uint32_t slot)
{
	const struct network *w = q->network;

	return ring_place(w, (ring_index(w, slot) + w->places - 1) % w->places);
}

static void ring_shape(const struct planner_request *q, struct planner_choice *c)
{
	uint32_t p = planner_slots(q), segments = ring_segments(q);
	double passed = segments < p ? 1 : (double)(p - 1) / p; /* else each has a root */

	route_shape(
		q, segments,
		route_ns(planner_best(q), q->chunk_bytes, p - 1, 1, 2 * (double)q->size * passed),
		c);
}

static void ring_build(const struct planner_request *q, const struct planner_choice *c,
		       struct graph *g)
{
	route_fill(q, ring_next, ring_feeder, g);
	route_book_places(q, g);
}

const struct planner planner_ring = {"ring", ring_unfit, ring_shape, ring_build, ring_next};
