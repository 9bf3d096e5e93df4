/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs of allreduces from rows whose functions give the next slot on the way to a segment's root:
 * route.h. It must not know which algorithm a row stands for.
 */
#include "route.h"
#include "cost.h"
#include "segment.h"

enum { ROUTE_STARTS = 4 }; /* that overlap: docs/study/tried.md has how many */

uint32_t route_segments(const struct planner_request *q)
{
	const struct planner_limits *limits = q->limits;
	uint32_t fit = limits->vertices_max / planner_slots(q);

	fit = fit < limits->route_segments_max ? fit : limits->route_segments_max;
	return fit < limits->graph.parts_max ? fit : limits->graph.parts_max - 1;
}

const char *route_unfit(const struct planner *planner, const struct planner_request *q)
{
	const struct graph_limits *limits = &q->limits->graph;
	uint32_t most = planner->places ? GRAPH_SLOTS_MAX : q->limits->flat_slots_max;
	uint32_t p = planner_slots(q), segments;

	if (!q->everyone)
		return PLANNER_ONE_READER;
	if (p < 2 || p > limits->gather_slots_max || p > most)
		return PLANNER_SLOTS;
	if (q->groups != p || q->present != q->needed)
		return PLANNER_LATE;
	segments = planner->segments(planner, q);
	if (segments < 2 || segments > route_segments(q))
		return PLANNER_SEGMENTS;
	return segment_chunks(q->size, q->chunk_bytes) < segments ? PLANNER_SMALL : NULL;
}

void route_shape(const struct planner_request *q, struct planner_choice *c)
{
	uint32_t segments = c->planner->segments(c->planner, q);

	c->first = 0;
	c->prefer = GRAPH_NODE_NONE; /* the segments have roots in several slots */
	c->size = (struct graph_size){planner_slots(q), segments, 0, true};
	c->estimate_ns = c->planner->estimate(c->planner, q, segments);
}

/* The edges of one segment, in the order of the slots that they lead to, then of those that they
 * come from: counted, then sorted into place, so that the work follows the number of slots. */
static void route_join(struct graph *g, uint32_t segment, const uint16_t *to, const uint8_t *rail)
{
	uint16_t first[GRAPH_SLOTS_MAX + 1] = {0}, from[GRAPH_SLOTS_MAX];
	uint32_t p = g->slots;

	for (uint32_t i = 0; i < p; i++)
		first[to[i] + 1]++;
	for (uint32_t i = 0; i < p; i++)
		first[i + 1] = (uint16_t)(first[i + 1] + first[i]);
	for (uint32_t i = 0; i < p; i++)
		from[first[to[i]]++] = (uint16_t)i;
	for (uint32_t k = 0; k < p; k++) {
		uint32_t i = from[k];

		if (to[i] != i)
			graph_join_rail(g, graph_vertex_of(g, segment, i),
					graph_vertex_of(g, segment, to[i]), rail[i]);
	}
}

/* The edges and the feeders of all segments. */
static void route_fill(const struct planner *planner, const struct planner_request *q,
		       struct graph *g)
{
	uint8_t rail[GRAPH_SLOTS_MAX];
	uint32_t p = g->slots;

	for (uint32_t j = 0; j < g->segments; j++) {
		uint16_t *feeder = &g->feeder[j * p];

		for (uint32_t i = 0; i < p; i++) {
			struct route_hop hop = planner->next(planner, q, p, g->segments, j, i);

			feeder[i] = (uint16_t)hop.slot;
			rail[i] = (uint8_t)hop.rail;
		}
		route_join(g, j, feeder, rail);
		for (uint32_t i = 0; planner->feeder && i < p; i++)
			if (feeder[i] != i)
				feeder[i] =
					(uint16_t)planner->feeder(planner, q, p, g->segments, j, i);
	}
}

/* Books each group into the slot of its node's place; all get the target. */
static void route_book_places(const struct planner_request *q, struct graph *g)
{
	for (uint32_t i = 0; i < q->groups; i++) {
		struct graph_slot *s = &g->slot[network_place(q->network, q->group[i].node)];

		s->host = q->group[i].node;
		s->wants = s->booked = (uint16_t)q->group[i].count;
	}
	g->eager = true; /* of many readers that come in turn, each would change others' feeders */
}

void route_build(const struct planner_request *q, const struct planner_choice *c, struct graph *g)
{
	route_fill(c->planner, q, g);
	if (c->planner->places)
		route_book_places(q, g);
	else
		planner_book(q, c, GRAPH_NONE, g);
}

/* Of a level: hops that end or begin at a node's busiest port, if each other coordinate gets one.
 */
static uint32_t route_crossings(const struct network_level *l)
{
	uint32_t hops = 0;

	if (!l->ring)
		return l->members - 1;
	for (uint32_t steps = 1; 2 * steps <= l->members; steps++)
		hops += steps; /* network_rail_towards */
	return hops;
}

struct route_round route_round(const struct planner_request *q)
{
	const struct network *w = q->network;
	struct topology_link link = cost_known(planner_best(q));
	uint32_t p = planner_slots(q);
	double size = (double)q->size, byte_ns = 1e9 / (double)link.bytes_per_s;
	struct route_round r = {size * (p - 1) / p, (double)link.latency_ns, byte_ns};

	if (!w || w->levels == 0 || network_rails(w) == 1 || p != w->places)
		return r;
	r = (struct route_round){0};
	for (uint32_t i = 0; i < w->levels; i++) {
		const struct network_level *l = &w->level[i];
		double bytes = size * route_crossings(l) / l->members;
		double latency =
			(double)(l->latency_ns > link.latency_ns ? l->latency_ns : link.latency_ns);
		double own_ns = l->bytes_per_s ? 1e9 / (double)l->bytes_per_s : byte_ns;

		r.bytes = bytes > r.bytes ? bytes : r.bytes;
		r.level_ns = own_ns > r.level_ns ? own_ns : r.level_ns;
		r.latency += latency * (l->ring ? l->members / 2 : 1);
	}
	return r;
}

uint64_t route_setup_ns(const struct planner_request *q, uint64_t vertices)
{
	return cost_whole((double)vertices * (double)planner_best(q).start_ns / ROUTE_STARTS);
}

enum { ROUTE_MORE = 18 };

double route_both_ways(double bytes)
{
	return bytes + bytes / ROUTE_MORE;
}

uint64_t route_ns(struct topology_link link, uint32_t chunk_bytes, uint32_t hops, uint32_t fan_in,
		  double bytes)
{
	struct topology_link l = cost_known(link);
	double byte_ns = 1e9 / (double)l.bytes_per_s;
	double hop = (double)l.latency_ns + (double)fan_in * chunk_bytes * byte_ns;

	return cost_whole((double)l.start_ns + 2.0 * hops * hop + bytes * byte_ns);
}

bool route_full(const struct planner_request *q)
{
	uint64_t seen[NETWORK_NODES_MAX / 64] = {0};
	const struct network *w = q->network;

	if (!w || w->levels == 0 || network_wrong(w) || q->groups != w->places)
		return false;
	for (uint32_t i = 0; i < q->groups; i++) {
		uint32_t place = network_place(w, q->group[i].node);

		if (place == NETWORK_NONE || seen[place / 64] >> place % 64 & 1)
			return false;
		seen[place / 64] |= UINT64_C(1) << place % 64;
	}
	return true;
}
