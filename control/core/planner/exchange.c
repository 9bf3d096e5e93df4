/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planner `exchange`: a small allreduce in p segments, p the slots, all of them there. Each root
 * takes its segment from all other slots at once, as values in messages, and all hosts get the
 * target unasked: two hops instead of two chains. Root j takes slot j + 1 first, so that not all
 * send to the same node at a time.
 */
#include "cost.h"
#include "route.h"
#include "segment.h"

static const char *exchange_unfit(const struct planner_request *q)
{
	uint64_t chunks = segment_chunks(q->size, q->chunk_bytes);
	const struct graph_limits *limits = &q->limits->graph;
	uint32_t p = planner_slots(q);

	if (!q->everyone)
		return PLANNER_ONE_READER;
	if (p < 2 || p > q->limits->segments_max || p - 1 > limits->fan_in_max ||
	    p >= limits->parts_max || p > GRAPH_SEGMENTS_MAX)
		return PLANNER_SLOTS;
	if (p != q->needed || q->present != q->needed)
		return PLANNER_LATE;
	if (chunks < p)
		return PLANNER_SMALL;
	return q->size > q->limits->exchange_bytes_max ||
			       (chunks / p + 1) * q->chunk_bytes > limits->value_bytes_max
		       ? "too large for values in messages"
		       : NULL;
}

static void exchange_shape(const struct planner_request *q, struct planner_choice *c)
{
	struct route_round round = route_round(q);
	uint32_t p = planner_slots(q);

	c->first = 0;
	c->prefer = GRAPH_NODE_NONE;
	c->size = (struct graph_size){p, p, 0, false};
	c->estimate_ns = cost_whole((double)planner_best(q).start_ns +
				    2 * (round.latency + round.bytes * round.level_ns));
}

static void exchange_build(const struct planner_request *q, const struct planner_choice *c,
			   struct graph *g)
{
	uint32_t p = g->slots;

	for (uint32_t j = 0; j < p; j++)
		for (uint32_t k = 1; k < p; k++)
			graph_join(g, graph_vertex_of(g, j, (j + k) % p), graph_vertex_of(g, j, j));
	g->values = g->eager = true;
	planner_book(q, c, GRAPH_NONE, g);
}

/* For the simulation. */
static struct route_hop exchange_next(const struct planner_request *q, uint32_t slots,
				      uint32_t segments, uint32_t segment, uint32_t slot)
{
	return (struct route_hop){segment, 0};
}

const struct planner planner_exchange = {"exchange", exchange_unfit, exchange_shape, exchange_build,
					 exchange_next};
