/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `halving`: recursive halving and doubling for p = 2^k slots, one segment per slot. In
 * round i the slots whose numbers differ in bit k - 1 - i exchange halves; back they go in reversed
 * order. (Rabenseifner, "Optimization of collective reduction operations", ICCS 2004.) 2k hops
 * instead of a ring's 2(p - 1), at the same bytes per link.
 */
#include "route.h"

static uint32_t halving_segments(const struct planner_request *q)
{
	return planner_slots(q);
}

static const char *halving_unfit(const struct planner_request *q)
{
	uint32_t p = planner_slots(q);

	if (p & (p - 1))
		return "the number of contributors is no power of two";
	return route_unfit(q, halving_segments(q), q->limits->flat_slots_max);
}

/* The highest bit in which a slot differs from the root is the first one that it gives up. */
static struct route_hop halving_next(const struct planner_request *q, uint32_t slots,
				     uint32_t segments, uint32_t segment, uint32_t slot)
{
	uint32_t bit = slots / 2;

	while (bit && !((slot ^ segment) & bit))
		bit /= 2;
	return (struct route_hop){slot ^ bit, 0};
}

static uint32_t halving_rounds(uint32_t p)
{
	uint32_t rounds = 0;

	while (1u << rounds < p)
		rounds++;
	return rounds;
}

static void halving_shape(const struct planner_request *q, struct planner_choice *c)
{
	uint32_t p = planner_slots(q);

	route_shape(q, halving_segments(q),
		    route_ns(planner_best(q), q->chunk_bytes, halving_rounds(p), halving_rounds(p),
			     route_both_ways(2.0 * (double)q->size * (p - 1) / p)),
		    c);
}

static void halving_build(const struct planner_request *q, const struct planner_choice *c,
			  struct graph *g)
{
	route_fill(q, halving_next, NULL, g);
	planner_book(q, c, GRAPH_NONE, g);
}

const struct planner planner_halving = {"halving", halving_unfit, halving_shape, halving_build,
					halving_next};
