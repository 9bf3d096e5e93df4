/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predicted beside measured: what a plan's planner estimated, and when the sums over each level of
 * the network were complete. Called by repair.c, commit.c and receivers.c; the shell shows the last
 * plan (control_last_plan). It must not change how a reduce goes on.
 */
#include <string.h>
#include "state.h"

_Static_assert((int)CONTROL_PLAN_LEVELS_MAX > (int)NETWORK_LEVELS_MAX,
	       "the last one is for several levels");

/* How many levels a plan is shown in. */
static uint32_t measured_levels(const struct control *c)
{
	return c->config.network ? c->config.network->levels + 1 : 1;
}

/* The level on which two slots differ; of those that differ on several, the one behind the last. */
static uint32_t measured_level(const struct control *c, const struct reduce *r, uint32_t from,
			       uint32_t to)
{
	const struct network *w = c->config.network;
	uint32_t a, b, level = NETWORK_NONE;

	if (!w)
		return 0;
	a = network_place(w, r->plan.run.slot[from].host);
	b = network_place(w, r->plan.run.slot[to].host);
	if (a == NETWORK_NONE || b == NETWORK_NONE)
		return w->levels;
	for (uint32_t l = 0; l < w->levels; l++) {
		if (network_coordinate(w, a, l) == network_coordinate(w, b, l))
			continue;
		if (level != NETWORK_NONE)
			return w->levels;
		level = l;
	}
	return level == NETWORK_NONE ? w->levels : level;
}

void reduce_measured_done(struct control *c, struct reduce *r, uint32_t v)
{
	const struct graph *g = &r->plan.graph;
	const struct graph_vertex *at = &g->vertex[v];

	if (graph_is_relay(g, v))
		return;
	for (uint32_t e = 0; e < at->ins; e++) {
		uint32_t from = g->edge[at->in + e].vertex;

		if (!graph_is_relay(g, from))
			r->plan.level_ns[measured_level(c, r, graph_slot_of(g, from),
							graph_slot_of(g, v))] = c->now_ns;
	}
}

/* The level of an edge from a slot to another. */
static void measured_add(const struct control *c, const struct reduce *r, uint32_t from,
			 uint32_t to, uint64_t bytes)
{
	if (from != to)
		c->coordinator->reduces.level_bytes[from][measured_level(c, r, from, to)] += bytes;
}

static void measured_bytes(const struct control *c, const struct reduce *r)
{
	const struct graph *g = &r->plan.graph;

	memset(c->coordinator->reduces.level_bytes, 0, sizeof(c->coordinator->reduces.level_bytes));
	for (uint32_t v = 0; v < g->slots * g->segments; v++) {
		uint32_t j = graph_segment_of(g, v), slot = graph_slot_of(g, v);
		uint32_t root = graph_slot_of(g, g->segment[j].root);
		uint64_t bytes = (uint64_t)g->segment[j].count * g->chunk_bytes;

		if (g->vertex[v].out != GRAPH_NONE && !graph_is_relay(g, g->vertex[v].out))
			measured_add(c, r, slot, graph_slot_of(g, g->vertex[v].out), bytes);
		if (g->out == GRAPH_OUT_GATHER && root != GRAPH_NONE)
			measured_add(c, r, g->feeder ? g->feeder[v] : root, slot, bytes);
	}
}

static struct control_plan_level measured_of(const struct control *c, const struct reduce *r,
					     uint32_t level)
{
	const struct network *w = c->config.network;
	uint64_t rate = c->cluster->links.all.bytes_per_s;
	struct control_plan_level l = {0};

	for (uint32_t i = 0; i < r->plan.graph.slots; i++)
		if (c->coordinator->reduces.level_bytes[i][level] > l.bytes)
			l.bytes = c->coordinator->reduces.level_bytes[i][level];
	if (w && level < w->levels && w->level[level].bytes_per_s > 0)
		rate = w->level[level].bytes_per_s * (w->level[level].ring ? 2 : 1);
	if (rate > 0)
		l.predicted_ns = (uint64_t)((double)l.bytes * 1e9 / (double)rate);
	if (r->plan.planned_ns && r->plan.level_ns[level] > r->plan.planned_ns)
		l.measured_ns = r->plan.level_ns[level] - r->plan.planned_ns;
	return l;
}

void reduce_measured_show(struct control *c, struct reduce *r)
{
	struct control_plan *last = &c->coordinator->reduces.last;
	const struct graph *g = &r->plan.graph;

	if (g->vertices == 0)
		return;
	if (r->plan.shown == 0)
		r->plan.shown = last->number + 1;
	else if (r->plan.shown != last->number)
		return; /* a later plan is shown */
	*last = (struct control_plan){.number = r->plan.shown,
				      .generation = r->out.generation,
				      .node = c->cluster->self->number,
				      .size = g->size,
				      .chunk_bytes = g->chunk_bytes,
				      .predicted_ns = g->estimate_ns,
				      .nodes = g->slots,
				      .levels = measured_levels(c),
				      .everyone = r->want.flags & MESSAGE_REDUCE_ALLREDUCE,
				      .repaired = r->plan.repaired,
				      .network = c->config.network != NULL};
	strncpy(last->planner, g->planner, sizeof(last->planner) - 1);
	if (r->plan.planned_ns)
		last->measured_ns = c->now_ns - r->plan.planned_ns;
	measured_bytes(c, r);
	for (uint32_t l = 0; l < last->levels; l++)
		last->level[l] = measured_of(c, r, l);
}
