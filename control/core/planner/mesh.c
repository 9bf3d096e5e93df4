/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `mesh`: a flat allreduce in p segments, p the slots. Each root takes its segment from all
 * others directly (diffuse) and gives the sum to all others directly (collect): the fewest hops,
 * for p - 1 streams into each node at once. HiPS (Geng et al., NetAI 2018) calls it mesh.
 */
#include "cost.h"
#include "route.h"

static uint32_t mesh_segments(const struct planner_request *q)
{
	return planner_slots(q);
}

static const char *mesh_unfit(const struct planner_request *q)
{
	if (planner_slots(q) - 1 > q->limits->graph.fan_in_max)
		return PLANNER_SLOTS;
	return route_unfit(q, mesh_segments(q), q->limits->flat_slots_max);
}

static struct route_hop mesh_next(const struct planner_request *q, uint32_t slots,
				  uint32_t segments, uint32_t segment, uint32_t slot)
{
	return (struct route_hop){segment, 0};
}

static void mesh_shape(const struct planner_request *q, struct planner_choice *c)
{
	struct route_round round = route_round(q);
	double chunks = (double)(planner_slots(q) - 1) * q->chunk_bytes; /* of all others */

	route_shape(q, mesh_segments(q),
		    cost_whole((double)planner_best(q).start_ns +
			       2 * (round.latency + chunks * round.level_ns) +
			       route_both_ways(2 * round.bytes) * round.level_ns),
		    c);
}

static void mesh_build(const struct planner_request *q, const struct planner_choice *c,
		       struct graph *g)
{
	route_fill(q, mesh_next, NULL, g);
	planner_book(q, c, GRAPH_NONE, g);
}

const struct planner planner_mesh = {"mesh", mesh_unfit, mesh_shape, mesh_build, mesh_next};
