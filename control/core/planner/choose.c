/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which planner a reduce gets, by thresholds that were measured and not by the least estimate: an
 * allreduce of enough bytes is cut into segments, small ones are exchanged as values, all else is
 * one tree. A single slow link makes one chain to it better than segments. Here are the table of
 * planners, the limits, and the steps that all planners share.
 */
#include <errno.h>
#include <string.h>
#include "cost.h"
#include "planner.h"
#include "route.h"
#include "segment.h"

const struct planner *const planner_table[] = {&planner_dary,
					       &planner_chains,
					       &planner_exchange,
					       &planner_mesh,
					       &planner_server,
					       &planner_halving,
					       &planner_circulant,
					       &planner_ring,
					       &planner_hips,
					       &planner_hips_mesh,
					       &planner_hips_ring,
					       &planner_hips_server,
					       NULL};

const struct planner_limits planner_limits_usual = {
	.graph = {.gather_slots_max = GRAPH_SLOTS_MAX,
		  .fan_in_max = 120,
		  .group_max = 120, /* with the edges at most parts_max */
		  .parts_max = 255,
		  .value_bytes_max = OBJECT_INLINE_MAX},
	.segments_max = 64,
	.flat_slots_max = 64,  /* with more, one tree is faster: docs/study/tried.md */
	.vertices_max = 16384, /* each is told to its node in a message of its own */
	.segment_chunks = 16,
	.segment_chunks_unseen = 2, /* the last one is withheld until commit */
	.segments_unseen_max = 16,  /* each node is told of each segment */
	.exchange_bytes_max = 128 << 10,
	.grid_slots = 6, /* fewer are faster without: docs/study/tried.md */
	.servers = 2,
	.route_segments_max = GRAPH_SEGMENTS_MAX,
	.mesh_members = 8, /* more streams at a time fill the buffer of a switch's port */
};

const struct planner *planner_named(const char *name)
{
	uint32_t i = 0;

	while (planner_table[i] && strcmp(planner_table[i]->name, name) != 0)
		i++;
	return planner_table[i];
}

const char *planner_unfit(const struct planner *planner, const struct planner_request *q)
{
	const char *why = planner->unfit ? planner->unfit(planner, q) : NULL;

	return !why && planner->segments ? route_unfit(planner, q) : why;
}

uint32_t planner_segments(const struct planner_request *q)
{
	uint32_t p = planner_slots(q), most = q->limits->segments_max;

	if ((uint64_t)most * p > q->limits->vertices_max)
		most = q->limits->vertices_max / p;
	return p < most ? p : most;
}

struct topology_link planner_best(const struct planner_request *q)
{
	return topology_best(planner_groups(q, NULL), q->groups == planner_slots(q), q->all);
}

/* Whether an allreduce is exchanged as values, or is large enough for chains. While no rate is
 * known a tree may send all copies through a slow link: then smaller segments are the safer
 * choice. */
static const struct planner *choose_segments(const struct planner_request *q)
{
	const struct planner_limits *limits = q->limits;
	uint64_t chunks = segment_chunks(q->size, q->chunk_bytes);
	uint32_t p = planner_slots(q), fewest = limits->segment_chunks_unseen;

	if (q->rate_seen || p > limits->segments_unseen_max)
		fewest = limits->segment_chunks;
	if (planner_unfit(&planner_chains, q))
		return NULL;
	if (chunks < (uint64_t)limits->segment_chunks * p && !planner_unfit(&planner_exchange, q))
		return &planner_exchange;
	return chunks >= (uint64_t)fewest * planner_segments(q) ? &planner_chains : NULL;
}

/* Whether an object takes longer over the slow link in segments, which have each link carry
 * 2(p-1)/p of it both ways, than along a chain to it and a chain from it, which touch it once. */
static bool choose_chain_pays(const struct planner_request *q, struct topology_link best,
			      struct topology_link slow)
{
	double chunk = (double)q->chunk_bytes * 1e9, hops = 2.0 * (planner_slots(q) - 1);
	double whole = (double)q->size * 1e9 / (double)slow.bytes_per_s;

	return (double)best.start_ns + whole + 2 * chunk / (double)slow.bytes_per_s +
		       hops * ((double)best.latency_ns + chunk / (double)best.bytes_per_s) <
	       whole * 2 * (planner_slots(q) - 1) / planner_slots(q);
}

/* Whether the request makes sense: 0 or an error. */
static int choose_check(const struct planner_request *q)
{
	uint64_t sum = 0;

	if (q->needed == 0 || q->present > q->needed || q->groups > q->present ||
	    q->chunk_bytes == 0 || segment_chunks(q->size, q->chunk_bytes) > UINT32_MAX)
		return -EINVAL;
	if ((uint64_t)q->groups + (q->needed - q->present) > GRAPH_SLOTS_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < q->groups; i++) {
		const struct planner_group *g = &q->group[i];

		if (g->count == 0 || g->count > q->limits->graph.group_max ||
		    g->node == GRAPH_NODE_NONE)
			return -EINVAL;
		sum += g->count;
	}
	return sum == q->present ? 0 : -EINVAL;
}

/* Values are pushed unasked. */
static uint64_t choose_setup_ns(const struct planner_request *q, const struct planner_choice *c)
{
	uint64_t vertices = (uint64_t)c->size.slots * c->size.segments + c->size.relays;

	return route_setup_ns(q, vertices) / (c->planner == &planner_exchange ? 2 : 1);
}

static void choose_shape(const struct planner_request *q, struct planner_choice *c)
{
	if (c->planner->segments)
		route_shape(q, c);
	else
		c->planner->shape(q, c);
	if (q->network && q->everyone && c->estimate_ns < UINT64_MAX / 2)
		c->estimate_ns += choose_setup_ns(q, c);
}

/* Over a network that is known, the planner with the least estimate. */
static void choose_cheapest(const struct planner_request *q, struct planner_choice *c)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; planner_table[i]; i++) {
		struct planner_choice tried = {.planner = planner_table[i], .prefer = q->caller};

		if (planner_unfit(planner_table[i], q))
			continue;
		choose_shape(q, &tried);
		if (tried.estimate_ns < least) {
			least = tried.estimate_ns;
			*c = tried;
		}
	}
}

int planner_choose(const struct planner_request *q, struct planner_choice *c)
{
	const struct planner_group *slow;
	struct topology_link best;
	int error = choose_check(q);

	if (error)
		return error;
	if (q->limits->only && !planner_unfit(q->limits->only, q))
		return planner_shape(q, q->limits->only, c);
	if (q->network && q->everyone) {
		choose_cheapest(q, c);
		return 0;
	}
	best = planner_best(q);
	*c = (struct planner_choice){.planner = choose_segments(q), .prefer = q->caller};
	slow = c->planner ? topology_slowest(planner_groups(q, NULL), best) : NULL;
	if (slow && choose_chain_pays(q, best, slow->link)) {
		c->planner = NULL;
		c->prefer = slow->node;
	}
	if (!c->planner)
		c->planner = &planner_dary;
	choose_shape(q, c);
	return 0;
}

int planner_shape(const struct planner_request *q, const struct planner *p,
		  struct planner_choice *c)
{
	int error = choose_check(q);

	if (error == 0 && planner_unfit(p, q))
		error = -EINVAL;
	if (error)
		return error;
	*c = (struct planner_choice){.planner = p, .prefer = q->caller};
	choose_shape(q, c);
	return 0;
}

size_t planner_bytes(const struct planner_choice *c)
{
	return graph_bytes(c->size);
}

int planner_build(const struct planner_request *q, const struct planner_choice *c, void *memory,
		  size_t bytes, struct graph *g)
{
	if (!graph_begin(g, c->size, memory, bytes))
		return -ENOMEM;
	graph_cut(g, q->size, q->chunk_bytes);
	g->needed = q->needed;
	g->planner = c->planner->name;
	g->estimate_ns = c->estimate_ns;
	if (c->planner->segments)
		route_build(q, c, g);
	else
		c->planner->build(q, c, g);
	graph_settle(g);
	return 0;
}

void planner_book(const struct planner_request *q, const struct planner_choice *c, uint32_t root,
		  struct graph *g)
{
	struct topology_groups gs = planner_groups(q, c);
	uint32_t next = 0, rooted = GRAPH_NONE;

	for (uint32_t i = 0; root != GRAPH_NONE && rooted == GRAPH_NONE && i < gs.count; i++)
		if (topology_group(gs, i)->node == c->prefer)
			rooted = i;
	if (root != GRAPH_NONE)
		g->slot[root].prefer = c->prefer;
	for (uint32_t i = 0; i < gs.count; i++) {
		const struct planner_group *group = topology_group(gs, i);
		uint32_t slot = root;

		if (i != rooted) {
			next += rooted != GRAPH_NONE && next == root;
			slot = next++;
		}
		g->slot[slot].host = group->node;
		g->slot[slot].wants = g->slot[slot].booked = (uint16_t)group->count;
	}
}
