/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planners of allreduces in which every slot can send to every other: rows of route.h's table. They
 * must not know rails or places.
 *
 *   mesh       Each root takes its segment from all others directly (diffuse) and gives the sum to
 *              all others directly (collect): the fewest hops, for p - 1 streams into each of the p
 *              slots at once. (HiPS, Geng et al., NetAI 2018, calls it mesh.)
 *   exchange   A mesh of values in messages for small targets; all hosts get the target unasked.
 *   server     Parameter servers: the first slots, by arrival, are the roots. A server's link
 *              carries (p - 1) / servers of the target each way, so it pays only for the smallest
 *              sizes, or as a baseline. (Li et al., "Scaling distributed machine learning with the
 *              parameter server", OSDI 2014.)
 *   circulant  In each round the distances to a segment's root that are at least half of what is
 *              left, rounded up, are made smaller by that half: ceil(log2 p) hops each way, at the
 *              bytes per link of a ring. (Traeff, "Optimal, non-pipelined reduce-scatter and
 *              allreduce algorithms on circulant graphs", 2024.)
 *   halving    Circulant for p = 2^k by pairs: in round i the slots whose numbers differ in bit
 *              k - 1 - i exchange halves. (Rabenseifner, "Optimization of collective reduction
 *              operations", ICCS 2004.)
 */
#include "cost.h"
#include "route.h"
#include "segment.h"

static uint32_t flat_segments(const struct planner *planner, const struct planner_request *q)
{
	return planner_slots(q);
}

/* ---- mesh, server, exchange: one hop ----------------------------------------------------------
 */

static struct route_hop flat_direct(const struct planner *planner, const struct planner_request *q,
				    uint32_t slots, uint32_t segments, uint32_t segment,
				    uint32_t slot)
{
	return (struct route_hop){segment, 0};
}

static const char *flat_mesh_unfit(const struct planner *planner, const struct planner_request *q)
{
	return planner_slots(q) - 1 > q->limits->graph.fan_in_max ? PLANNER_SLOTS : NULL;
}

static uint64_t flat_mesh_ns(const struct planner *planner, const struct planner_request *q,
			     uint32_t segments)
{
	struct route_round round = route_round(q);
	double chunks = (double)(planner_slots(q) - 1) * q->chunk_bytes; /* of all others */

	return cost_whole((double)planner_best(q).start_ns +
			  2 * (round.latency + chunks * round.level_ns) +
			  route_both_ways(2 * round.bytes) * round.level_ns);
}

const struct planner planner_mesh = {.name = "mesh",
				     .unfit = flat_mesh_unfit,
				     .segments = flat_segments,
				     .estimate = flat_mesh_ns,
				     .next = flat_direct};

static uint32_t flat_servers(const struct planner *planner, const struct planner_request *q)
{
	return q->limits->servers;
}

static const char *flat_server_unfit(const struct planner *planner, const struct planner_request *q)
{
	return q->limits->servers >= planner_slots(q) ? PLANNER_SLOTS : flat_mesh_unfit(planner, q);
}

static uint64_t flat_server_ns(const struct planner *planner, const struct planner_request *q,
			       uint32_t segments)
{
	uint32_t p = planner_slots(q);

	return route_ns(planner_best(q), q->chunk_bytes, 1, p - 1,
			route_both_ways((double)q->size * (p - 1) / segments));
}

const struct planner planner_server = {.name = "server",
				       .unfit = flat_server_unfit,
				       .segments = flat_servers,
				       .estimate = flat_server_ns,
				       .next = flat_direct};

static const char *flat_exchange_unfit(const struct planner *planner,
				       const struct planner_request *q)
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

static void flat_exchange_shape(const struct planner_request *q, struct planner_choice *c)
{
	struct route_round round = route_round(q);
	uint32_t p = planner_slots(q);

	c->first = 0;
	c->prefer = GRAPH_NODE_NONE;
	c->size = (struct graph_size){p, p, 0, false};
	c->estimate_ns = cost_whole((double)planner_best(q).start_ns +
				    2 * (round.latency + round.bytes * round.level_ns));
}

/* Root j takes slot j + 1 first, so that not all send to the same node at a time. */
static void flat_exchange_build(const struct planner_request *q, const struct planner_choice *c,
				struct graph *g)
{
	uint32_t p = g->slots;

	for (uint32_t j = 0; j < p; j++)
		for (uint32_t k = 1; k < p; k++)
			graph_join(g, graph_vertex_of(g, j, (j + k) % p), graph_vertex_of(g, j, j));
	g->values = g->eager = true;
	planner_book(q, c, GRAPH_NONE, g);
}

const struct planner planner_exchange = {.name = "exchange",
					 .unfit = flat_exchange_unfit,
					 .shape = flat_exchange_shape,
					 .build = flat_exchange_build,
					 .next = flat_direct};

/* ---- circulant, halving: log2 p hops ----------------------------------------------------------
 */

static struct route_hop flat_circulant_next(const struct planner *planner,
					    const struct planner_request *q, uint32_t slots,
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

static uint64_t flat_circulant_ns(const struct planner *planner, const struct planner_request *q,
				  uint32_t segments)
{
	uint32_t p = planner_slots(q), rounds = 0;

	while (1u << rounds < p)
		rounds++;
	return route_ns(planner_best(q), q->chunk_bytes, rounds, rounds,
			route_both_ways(2.0 * (double)q->size * (p - 1) / p));
}

const struct planner planner_circulant = {.name = "circulant",
					  .segments = flat_segments,
					  .estimate = flat_circulant_ns,
					  .next = flat_circulant_next};

static const char *flat_halving_unfit(const struct planner *planner,
				      const struct planner_request *q)
{
	uint32_t p = planner_slots(q);

	return p & (p - 1) ? "the number of contributors is no power of two" : NULL;
}

/* The highest bit in which a slot differs from the root is the first one that it gives up. */
static struct route_hop flat_halving_next(const struct planner *planner,
					  const struct planner_request *q, uint32_t slots,
					  uint32_t segments, uint32_t segment, uint32_t slot)
{
	uint32_t bit = slots / 2;

	while (bit && !((slot ^ segment) & bit))
		bit /= 2;
	return (struct route_hop){slot ^ bit, 0};
}

const struct planner planner_halving = {.name = "halving",
					.unfit = flat_halving_unfit,
					.segments = flat_segments,
					.estimate = flat_circulant_ns,
					.next = flat_halving_next};
