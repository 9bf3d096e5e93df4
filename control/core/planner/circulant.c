/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `circulant`: halving for any number p of slots, one segment per slot. In each round the
 * distances to a segment's root that are at least half of what is left, rounded up, are made
 * smaller by that half. (Traeff, "Optimal, non-pipelined reduce-scatter and allreduce algorithms on
 * circulant graphs", 2024.) ceil(log2 p) hops each way, at the same bytes per link as a ring.
 */
#include "route.h"

static uint32_t circulant_segments(const struct planner_request *q)
{
	return planner_slots(q);
}

static const char *circulant_unfit(const struct planner_request *q)
{
	return route_unfit(q, circulant_segments(q), q->limits->flat_slots_max);
}

static struct route_hop circulant_next(const struct planner_request *q, uint32_t slots,
				       uint32_t segments, uint32_t segment, uint32_t slot)
{
	uint32_t distance = (segment + slots - slot) % slots, skip = slots;

	if (distance == 0)
		return (struct route_hop){slot, 0};
	do
		skip = (skip + 1) / 2;
	while (distance < skip);
	return (struct route_hop){(slot + skip) % slots, 0};
}

static uint32_t circulant_rounds(uint32_t p)
{
	uint32_t rounds = 0;

	for (; p > 1; rounds++)
		p = (p + 1) / 2;
	return rounds;
}

static void circulant_shape(const struct planner_request *q, struct planner_choice *c)
{
	uint32_t p = planner_slots(q);

	route_shape(q, circulant_segments(q),
		    route_ns(planner_best(q), q->chunk_bytes, circulant_rounds(p),
			     circulant_rounds(p),
			     route_both_ways(2.0 * (double)q->size * (p - 1) / p)),
		    c);
}

static void circulant_build(const struct planner_request *q, const struct planner_choice *c,
			    struct graph *g)
{
	route_fill(q, circulant_next, NULL, g);
	planner_book(q, c, GRAPH_NONE, g);
}

const struct planner planner_circulant = {"circulant", circulant_unfit, circulant_shape,
					  circulant_build, circulant_next};
