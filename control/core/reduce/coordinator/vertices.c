/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * COMBINE messages: which node builds which vertex, from which parts. Called by binding.c, repair.c
 * and watchdog.c, which mark vertices dirty.
 */
#include <errno.h>
#include "internal/reduce.h"
#include "core/planner/segment.h"
#include "core/base/text.h"
#include "state.h"

/* ---- what a node builds ---------------------------------------------------------------------- */

bool reduce_complete(const struct reduce_vertex *p)
{
	uint32_t slot = reduce_slot(p);

	return p->reduce->plan.run.slot[slot].has == p->reduce->plan.graph.slot[slot].wants;
}

static const struct graph_segment *reduce_segment(const struct reduce_vertex *p)
{
	const struct graph *g = &p->reduce->plan.graph;

	return &g->segment[graph_segment_of(g, reduce_number(p))];
}

static void reduce_add_sources(const struct reduce *r, const struct reduce_vertex *p,
			       struct message_combine *m, struct message_part *parts)
{
	const struct graph_segment *of = reduce_segment(p);
	uint32_t slot = reduce_slot(p);

	for (uint32_t i = 0; i < r->from.count; i++) {
		const struct reduce_source *s = &r->from.source[i];

		if (s->slot == slot)
			parts[m->count++] = (struct message_part){.id = s->id,
								  .generation = s->generation,
								  .node = s->node,
								  .first = of->first,
								  .count = of->count,
								  .size = r->from.size,
								  .stripe = s->slot};
	}
}

/* Adds the output of a vertex as a part of the next one: its object, or its only source. */
static void reduce_add_vertex(const struct reduce *r, const struct reduce_vertex *q,
			      struct message_combine *m, struct message_part *parts)
{
	if (r->plan.graph.vertex[reduce_number(q)].op == GRAPH_ALIAS)
		reduce_add_sources(r, q, m, parts);
	else
		parts[m->count++] = (struct message_part){.id = q->id,
							  .generation = q->generation,
							  .node = reduce_host(q),
							  .count = reduce_segment(q)->count};
}

void reduce_fill_message(struct control *c, struct call *call)
{
	struct message_combine *m = &call->message.combine;
	const struct reduce_vertex *p = call->owner;
	const struct graph_vertex *at;
	const struct reduce *r;

	m->count = 0;
	m->parts = c->coordinator->reduces.parts;
	if (m->op == 0) {
		reduce_feed_fill_message(c, call);
		return;
	}
	r = p->reduce;
	at = &r->plan.graph.vertex[reduce_number(p)];
	reduce_add_sources(r, p, m, c->coordinator->reduces.parts);
	for (uint32_t e = 0; e < at->ins; e++) {
		const struct reduce_vertex *q =
			&r->plan.vertex[r->plan.graph.edge[at->in + e].vertex];

		if (reduce_complete(q))
			reduce_add_vertex(r, q, m, c->coordinator->reduces.parts);
	}
}

static bool reduce_combine_ended(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce_vertex *p = call->owner;
	struct reduce *r = p->reduce;
	struct message_combined lost = {.part_node = MESSAGE_NODE_NONE, .status = -EHOSTUNREACH};
	int32_t status = answer ? answer->reply.status : -EHOSTUNREACH;
	struct text t = {.length = 0};

	p->watched = false;
	if (status == -EAGAIN) /* not yet: it will be repeated */
		return true;
	p->call = NULL;
	if (status == 0 && r->plan.graph.values)
		reduce_tell_all(c, r);
	if (status == 0 || status == -ESTALE || r->state >= REDUCE_COMMITTING)
		return false;
	if (status == -EHOSTUNREACH) {
		reduce_lost(c, r, reduce_number(p), &lost);
		return false;
	}
	text_add(&t, "node ");
	text_add_number(&t, reduce_host(p));
	text_add(&t, status == -ENOSPC
			     ? " has no room for its part of the sum: delete objects there"
			     : " cannot build its part of the sum");
	reduce_fail(c, r, status, t.bytes);
	return false;
}

static bool reduce_combine_answered(struct control *c, struct call *call,
				    const struct message *answer)
{
	struct object_id target = call->message.combine.target;
	bool later = reduce_combine_ended(c, call, answer); /* may free the reduce */
	struct reduce *r = later ? NULL : reduce_find(c, &target);

	if (r)
		reduce_tell_more(c, r);
	return later;
}

static void reduce_tell(struct control *c, struct reduce *r, struct reduce_vertex *p)
{
	struct message m = {.kind = MESSAGE_COMBINE};
	const struct graph *g = &r->plan.graph;
	const struct graph_vertex *at = &g->vertex[reduce_number(p)];
	uint32_t v = reduce_number(p);

	r->plan.run.vertex[v] &= (uint8_t)~RUN_DIRTY;
	p->watched = false;
	rpc_cancel(c, p->call);
	m.combine.id = p->id;
	m.combine.generation = p->generation;
	m.combine.target = r->by_id.id;
	m.combine.reduce = r->want.number;
	m.combine.size = segment_bytes(r->from.size, r->from.chunk_bytes, g->segments,
				       graph_segment_of(g, v));
	m.combine.chunk_bytes = r->from.chunk_bytes;
	m.combine.op = r->want.op;
	m.combine.dtype = r->want.dtype;
	m.combine.need = graph_wants(g, v) + at->ins;
	m.combine.flags = at->target ? MESSAGE_COMBINE_WITHHOLD : MESSAGE_COMBINE_HIDDEN;
	m.combine.flags |= g->values ? MESSAGE_COMBINE_VALUES : 0;
	m.combine.scale = reduce_is_root(p) && r->want.op == REDUCE_AVG ? r->want.num : 0;
	if (at->target) {
		memcpy(m.combine.name, r->want.name, sizeof(m.combine.name));
		m.combine.meta = r->from.meta;
	}
	p->call = rpc_start(c, peers_node(c, reduce_host(p)), &m, TABLE_SLOT_NONE,
			    c->config.call_ns, reduce_combine_answered, p);
	if (!p->call) { /* too many calls are open */
		r->plan.run.vertex[v] |= RUN_DIRTY;
		r->plan.held = true;
	}
}

/* Whether other nodes have got COMBINEs, and none of them has answered one. */
static bool reduce_unheard(const struct control *c, const struct reduce *r)
{
	bool informed = false;

	for (uint32_t v = 0; v < r->plan.graph.vertices; v++) {
		const struct reduce_vertex *p = &r->plan.vertex[v];

		if (!reduce_is(p, RUN_STARTED) || reduce_host(p) == c->cluster->self->number)
			continue;
		if (!reduce_is(p, RUN_DIRTY) && !p->call)
			return false;
		informed = true;
	}
	return informed;
}

/* Whether a dirty vertex can be told now. One that is being told gives its place up. */
static bool reduce_tell_fits(struct control *c, struct reduce *r, const struct reduce_vertex *p)
{
	if (p->call || rpc_plan_fits(c, peers_node(c, reduce_host(p))))
		return true;
	r->plan.held = true;
	return false;
}

/* From one vertex on; they are in an order that takes the nodes in turns. */
static void reduce_tell_from(struct control *c, struct reduce *r, uint32_t v, bool wait)
{
	for (; v < r->plan.graph.vertices; v++) {
		struct reduce_vertex *p = &r->plan.vertex[v];

		if (!reduce_is(p, RUN_DIRTY) || !reduce_is(p, RUN_STARTED) ||
		    (wait && reduce_host(p) == c->cluster->self->number))
			continue;
		if (reduce_tell_fits(c, r, p))
			reduce_tell(c, r, p);
		else if (v < r->plan.next)
			r->plan.next = v;
	}
}

void reduce_tell_all(struct control *c, struct reduce *r)
{
	bool wait = r->plan.graph.values && reduce_unheard(c, r);

	r->plan.held = false;
	r->plan.next = UINT32_MAX;
	reduce_tell_from(c, r, 0, wait);
	if (reduce_gathers(r) && !wait)
		reduce_receivers_tell(c, r);
}

void reduce_tell_more(struct control *c, struct reduce *r)
{
	if (!r->plan.held || r->state == REDUCE_ENDED)
		return;
	for (; r->plan.next < r->plan.graph.vertices; r->plan.next++) {
		struct reduce_vertex *p = &r->plan.vertex[r->plan.next];

		if (rpc_plans_full(c))
			return;
		/* one whose node has too many waits for the watchdog: that node may be dead */
		if (reduce_is(p, RUN_DIRTY) && reduce_is(p, RUN_STARTED) &&
		    reduce_tell_fits(c, r, p))
			reduce_tell(c, r, p);
	}
	if (reduce_gathers(r))
		reduce_receivers_tell(c, r);
}

void reduce_beat(struct control *c, struct reduce *r)
{
	bool open = r->state < REDUCE_COMMITTING;

	for (uint32_t i = 0; open && i < r->from.count; i++)
		if (r->from.source[i].state != SOURCE_KNOWN && !r->from.source[i].call &&
		    !r->from.source[i].with)
			reduce_locate(c, &r->from.source[i]);
	if (open)
		reduce_look_retry(c, r);
	for (uint32_t v = 0; v < r->plan.graph.vertices; v++) {
		uint8_t *state = &r->plan.run.vertex[v];

		*state = *state & RUN_STARTED ? *state | RUN_DIRTY : *state & (uint8_t)~RUN_DIRTY;
	}
	list_each(l, after, &r->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		g->dirty = true;
		g->avoid = (struct reduce_set){{0}}; /* it may reach them by now */
	}
	reduce_tell_all(c, r);
}
