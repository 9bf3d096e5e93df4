/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planning a reduce and filling the slots of its graph. The plan is made when the policy allows it;
 * sources are bound to slots in the order of arrival. Called by contributions.c and repair.c. It
 * must not know where sources come from, nor what participants do.
 */
#include <assert.h>
#include <errno.h>
#include "core/planner/binding.h"
#include "state.h"

/* ---- filling -------------------------------------------------------------------------------- */

static void reduce_start(struct control *c, struct reduce *r, uint32_t v)
{
	const struct graph_vertex *at = &r->plan.graph.vertex[v];
	struct reduce_vertex *p = &r->plan.vertex[v];

	if (at->op == GRAPH_SUM && !reduce_is(p, RUN_STARTED)) {
		if (p->generation == 0)
			p->generation = reduce_generation(c, r);
		if (at->target)
			reduce_reserve(c, r, p->generation);
		r->plan.run.vertex[v] |= RUN_STARTED | RUN_DIRTY;
	}
	if (at->out != GRAPH_NONE)
		r->plan.run.vertex[at->out] |= RUN_DIRTY;
	list_each(l, after, &r->out.receivers) list_item(l, struct reduce_receiver, link)->dirty =
		true;
}

void reduce_resume(struct control *c, struct reduce *r, uint32_t v)
{
	const struct reduce_vertex *p = &r->plan.vertex[v];

	if (r->plan.graph.vertex[v].op == GRAPH_SUM && !reduce_is(p, RUN_STARTED) &&
	    reduce_complete(p))
		reduce_start(c, r, v);
}

static void reduce_bind(struct control *c, struct reduce *r, struct reduce_source *s, uint32_t slot)
{
	s->slot = slot;
	s->absorbed = false;
	if (!binding_take(&r->plan.graph, &r->plan.run, slot, s->node))
		return;
	for (uint32_t j = 0; j < r->plan.graph.segments; j++)
		reduce_start(c, r, graph_vertex_of(&r->plan.graph, j, slot));
}

/* The first source after that arrival that is known, reachable and in no slot; NULL: none. */
static struct reduce_source *reduce_next(struct control *c, struct reduce *r, uint32_t after)
{
	struct reduce_source *next = NULL;

	for (uint32_t i = 0; i < r->from.count; i++) {
		struct reduce_source *s = &r->from.source[i];

		if (s->state != SOURCE_KNOWN || s->slot != REDUCE_NONE || s->arrival <= after ||
		    !reduce_reachable(c, s->node))
			continue;
		if (!next || s->arrival < next->arrival)
			next = s;
	}
	return next;
}

void reduce_fill(struct control *c, struct reduce *r)
{
	struct reduce_source *s;
	uint32_t arrival = 0, slot;

	while ((s = reduce_next(c, r, arrival))) {
		slot = binding_slot(&r->plan.graph, &r->plan.run, s->node);
		if (slot == GRAPH_NONE)
			break;
		arrival = s->arrival;
		reduce_bind(c, r, s, slot);
	}
	reduce_tell_all(c, r);
}

/* ---- the plan ------------------------------------------------------------------------------- */

/* Groups the reachable sources by node, in order of arrival; at most num sources in all. */
static void reduce_groups(struct control *c, struct reduce *r, struct planner_request *q,
			  struct planner_group *group)
{
	struct reduce_source *s;
	uint32_t arrival = 0;

	q->groups = q->present = 0;
	while (q->present < r->want.num && (s = reduce_next(c, r, arrival))) {
		uint32_t g = 0;

		arrival = s->arrival;
		while (g < q->groups &&
		       (group[g].node != s->node || group[g].count == q->limits->graph.group_max))
			g++;
		if (g == q->groups)
			group[q->groups++] = (struct planner_group){
				.node = s->node,
				.link = topology_known(c->config.network,
						       reduce_links_of(c, s->node))};
		group[g].count++;
		q->present++;
	}
}

static void reduce_request_plan(struct control *c, struct reduce *r, struct planner_request *q)
{
	*q = (struct planner_request){.size = r->from.size,
				      .chunk_bytes = r->from.chunk_bytes,
				      .needed = r->want.num,
				      .group = c->coordinator->reduces.group,
				      .caller = r->want.caller,
				      .everyone = r->want.flags & MESSAGE_REDUCE_ALLREDUCE,
				      .rate_seen = c->cluster->links.all.rate_seen,
				      .all = topology_known(c->config.network, reduce_links_all(c)),
				      .network = c->config.network,
				      .limits = &c->coordinator->reduces.limits};
	reduce_groups(c, r, q, c->coordinator->reduces.group);
}

/* Names the object of a vertex. The name decides which worker has it. For a large target that is
 * the worker that will have the same range of the target, if nodes have as many workers as this
 * one: then no participant moves bytes from one of its workers to another. */
static void reduce_name_hidden(const struct control *c, struct reduce *r, uint32_t v)
{
	uint32_t chunks = (uint32_t)chunk_count(r->from.size, r->from.chunk_bytes);
	uint32_t lanes = lane_count(r->from.size, c->workers);
	struct object_id *id = &r->plan.vertex[v].id;

	graph_name(&r->by_id.id, r->want.number, v, id);
	if (lanes > 1)
		lane_settle(
			id, &r->by_id.id,
			lane_of(chunks, lanes,
				r->plan.graph.segment[graph_segment_of(&r->plan.graph, v)].first));
}

/* The arrays lie in the order of their alignment. */
static bool reduce_carve(struct control *c, struct reduce *r, const struct planner_choice *choice)
{
	struct allocator *space = &c->coordinator->reduces.space;
	uint64_t count = (uint64_t)choice->size.slots * choice->size.segments + choice->size.relays;
	uint64_t vertices = sizeof(struct reduce_vertex) * count;
	uint64_t slots = sizeof(struct run_slot) * choice->size.slots;
	uint64_t graph = planner_bytes(choice);
	uint8_t *memory;

	r->plan.tree = allocator_take(space, vertices + slots + graph + count);
	if (r->plan.tree == 0)
		return false;
	memory = c->coordinator->reduces.memory + allocator_offset(space, r->plan.tree);
	r->plan.vertex = (struct reduce_vertex *)(void *)memory;
	r->plan.run.slot = (struct run_slot *)(void *)(memory + vertices);
	r->plan.run.vertex = memory + vertices + slots + graph;
	memset(r->plan.run.vertex, 0, count);
	return planner_build(&c->coordinator->reduces.asked, choice, memory + vertices + slots,
			     graph, &r->plan.graph) == 0;
}

static void reduce_begin_run(struct control *c, struct reduce *r)
{
	const struct graph *g = &r->plan.graph;

	assert(graph_valid(g, &c->coordinator->reduces.limits.graph));
	for (uint32_t i = 0; i < g->slots; i++)
		r->plan.run.slot[i] = (struct run_slot){g->slot[i].host, 0};
	for (uint32_t v = 0; v < g->vertices; v++) {
		r->plan.vertex[v] = (struct reduce_vertex){.reduce = r, .id = r->by_id.id};
		if (!g->vertex[v].target)
			reduce_name_hidden(c, r, v);
	}
}

static void reduce_take_slots(struct control *c, struct reduce *r)
{
	struct reduce_source *s;
	uint32_t arrival = 0, slot;

	while ((s = reduce_next(c, r, arrival))) {
		arrival = s->arrival;
		slot = binding_booked(&r->plan.graph, &r->plan.run, s->node);
		if (slot != GRAPH_NONE)
			reduce_bind(c, r, s, slot);
	}
}

void reduce_plan(struct control *c, struct reduce *r)
{
	struct planner_request *q = &c->coordinator->reduces.asked;
	struct planner_choice choice;

	reduce_request_plan(c, r, q);
	r->state = REDUCE_RUNNING;
	reduce_accept(c, r);
	if (!r->from.sized) /* no source is known yet: the first one says how large they are */
		return;
	if (planner_choose(q, &choice)) {
		reduce_fail(c, r, -EINVAL, "the sources are too large to be reduced");
		return;
	}
	if (!reduce_carve(c, r, &choice)) {
		reduce_end(c, r, -EAGAIN, "too many reduces at a time: try again later");
		return;
	}
	reduce_begin_run(c, r);
	r->plan.planned_ns = q->groups == r->plan.graph.slots ? c->now_ns : 0;
	reduce_watch(c, r);
	if (reduce_gathers(r))
		reduce_receivers_begin(c, r);
	reduce_take_slots(c, r);
	reduce_fill(c, r);
}
