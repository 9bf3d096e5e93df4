/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `server`: parameter servers. The first P slots, by arrival, are the roots of P segments;
 * all others give to them directly (push) and get from them directly (pull). (Li et al., "Scaling
 * distributed machine learning with the parameter server", OSDI 2014.) A server's link carries
 * (p - 1)/P of the target each way, so it pays only for the smallest sizes, or as a baseline.
 */
#include "route.h"

static uint32_t server_segments(const struct planner_request *q)
{
	return q->limits->servers;
}

static const char *server_unfit(const struct planner_request *q)
{
	uint32_t p = planner_slots(q);

	if (server_segments(q) >= p || p - 1 > q->limits->graph.fan_in_max)
		return PLANNER_SLOTS;
	return route_unfit(q, server_segments(q), q->limits->flat_slots_max);
}

static struct route_hop server_next(const struct planner_request *q, uint32_t slots,
				    uint32_t segments, uint32_t segment, uint32_t slot)
{
	return (struct route_hop){segment, 0};
}

static void server_shape(const struct planner_request *q, struct planner_choice *c)
{
	uint32_t p = planner_slots(q), servers = server_segments(q);

	route_shape(q, servers,
		    route_ns(planner_best(q), q->chunk_bytes, 1, p - 1,
			     route_both_ways((double)q->size * (p - 1) / servers)),
		    c);
}

static void server_build(const struct planner_request *q, const struct planner_choice *c,
			 struct graph *g)
{
	route_fill(q, server_next, NULL, g);
	planner_book(q, c, GRAPH_NONE, g);
}

const struct planner planner_server = {"server", server_unfit, server_shape, server_build,
				       server_next};
