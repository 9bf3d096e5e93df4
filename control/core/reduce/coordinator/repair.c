/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repair of a running reduce. The coordinator marks what is lost; the closure over the graph
 * (planner/closure.h, pure) says which vertices restart. Then this file locates sources elsewhere,
 * gives restarted vertices new generations, and fills vacated slots. Other vertices keep what they
 * have built. Called with COMBINED, and when nodes go up or down. After the commit nothing is
 * repaired.
 */
#include <errno.h>
#include "state.h"

/* ---- the closure ----------------------------------------------------------------------------- */

static void repair_reach(struct control *c, uint32_t node)
{
	uint64_t bit = UINT64_C(1) << node % 64;

	if (node >= NODES_MAX)
		return;
	if (reduce_reachable(c, node))
		c->coordinator->reduces.reachable[node / 64] |= bit;
	else
		c->coordinator->reduces.reachable[node / 64] &= ~bit;
}

/* The state of the sources as the closure wants it; for one repair at a time. */
static struct closure *repair_open(struct control *c, struct reduce *r)
{
	struct reduces *rs = &c->coordinator->reduces;

	for (uint32_t i = 0; i < r->from.count; i++) {
		const struct reduce_source *s = &r->from.source[i];

		rs->contribution[i] = (struct run_contribution){
			s->node, s->slot, s->state == SOURCE_KNOWN, s->absorbed};
		repair_reach(c, s->node);
	}
	for (uint32_t i = 0; i < r->plan.graph.slots; i++)
		repair_reach(c, r->plan.run.slot[i].host);
	rs->closure = (struct closure){.graph = &r->plan.graph,
				       .run = &r->plan.run,
				       .contribution = rs->contribution,
				       .contributions = r->from.count,
				       .reachable = rs->reachable,
				       .nodes = NODES_MAX,
				       .vacated = rs->vacated};
	return &rs->closure;
}

/* The source no longer counts; it may turn up again, here or elsewhere. */
static void repair_vacated(struct control *c, struct reduce_source *s, uint32_t failed)
{
	s->failed = failed;
	s->state = SOURCE_ABSENT;
	if (!s->call)
		reduce_locate(c, s);
}

/* Copies the state of the sources back from the closure. */
static void repair_sources(struct control *c, struct reduce *r, const struct closure *k)
{
	for (uint32_t i = 0; i < r->from.count; i++) {
		r->from.source[i].slot = k->contribution[i].slot;
		r->from.source[i].absorbed = k->contribution[i].absorbed;
	}
	for (uint32_t i = 0; i < k->vacated_count; i++) {
		struct reduce_source *s = &r->from.source[k->vacated[i].contribution];

		repair_vacated(c, s, k->vacated[i].avoid ? s->node : s->failed);
	}
}

static void repair_restart(struct control *c, struct reduce *r, uint32_t v)
{
	struct reduce_vertex *p = &r->plan.vertex[v];

	r->plan.run.vertex[v] &= (uint8_t)~RUN_RESTART;
	r->plan.repaired = true;
	rpc_cancel(c, p->call);
	p->call = NULL;
	if (r->plan.graph.vertex[v].op != GRAPH_SUM)
		return;
	p->generation = reduce_generation(c, r);
	if (!reduce_is_root(p))
		return;
	if (reduce_gathers(r)) /* receivers of the old one restart */
		reduce_receivers_restart(c, r);
	else
		reduce_reserve(c, r, p->generation);
}

static void repair(struct control *c, struct reduce *r, struct closure *k)
{
	closure_run(k);
	repair_sources(c, r, k);
	for (uint32_t v = 0; v < r->plan.graph.vertices; v++)
		if (r->plan.run.vertex[v] & RUN_RESTART)
			repair_restart(c, r, v);
	for (uint32_t v = 0; v < r->plan.graph.vertices; v++)
		reduce_resume(c, r, v);
	reduce_fill(c, r);
}

/* ---- COMBINED -------------------------------------------------------------------------------- */

static struct reduce_source *repair_source(struct reduce *r, uint32_t slot,
					   const struct message_combined *m)
{
	for (uint32_t i = 0; i < r->from.count; i++) {
		struct reduce_source *s = &r->from.source[i];

		if (s->slot == slot && s->node == m->part_node &&
		    s->generation == m->part_generation && object_id_equal(&s->id, &m->part_id))
			return s;
	}
	return NULL;
}

/* A part of a vertex, as the coordinator knows it: a source of the vertex's slot, or the vertex
 * whose object or only source it is. Both NULL: the message is of an earlier plan. */
struct repair_part {
	struct reduce_source *source;
	struct reduce_vertex *from;
};

static bool repair_is(struct reduce *r, const struct reduce_vertex *q,
		      const struct message_combined *m)
{
	if (r->plan.graph.vertex[reduce_number(q)].op == GRAPH_ALIAS)
		return repair_source(r, reduce_slot(q), m) != NULL;
	return reduce_host(q) == m->part_node && q->generation == m->part_generation &&
	       object_id_equal(&q->id, &m->part_id);
}

static struct repair_part repair_find(struct reduce *r, uint32_t v,
				      const struct message_combined *m)
{
	struct repair_part part = {repair_source(r, reduce_slot(&r->plan.vertex[v]), m), NULL};
	const struct graph_vertex *at = &r->plan.graph.vertex[v];

	for (uint32_t e = 0; !part.source && !part.from && e < at->ins; e++) {
		struct reduce_vertex *q = &r->plan.vertex[r->plan.graph.edge[at->in + e].vertex];

		if (repair_is(r, q, m))
			part.from = q;
	}
	return part;
}

/* Replaces the node that has the part. */
static void repair_forgo(struct reduce *r, struct closure *k, struct repair_part part,
			 uint32_t node)
{
	if (part.source)
		closure_vacate(k, (uint32_t)(part.source - r->from.source), true);
	else /* the host has at least one source of its slot, so the vertex restarts */
		closure_vacate_node(k, reduce_slot(part.from), node);
}

static void repair_part(struct control *c, struct reduce *r, struct closure *k, uint32_t v,
			const struct message_combined *m)
{
	struct repair_part part = repair_find(r, v, m);
	struct reduce_vertex *q = part.from;
	uint32_t from = q ? reduce_number(q) : 0;

	/* Perhaps only this reader cannot reach the host. At the second loss the vertex moves. */
	if (q && r->plan.graph.vertex[from].op == GRAPH_SUM && reduce_reachable(c, m->part_node) &&
	    q->tries++ == 0)
		r->plan.run.vertex[from] |= RUN_RESTART;
	else if (q || part.source)
		repair_forgo(r, k, part, m->part_node);
}

void reduce_lost(struct control *c, struct reduce *r, uint32_t v, const struct message_combined *m)
{
	struct reduce_vertex *p = &r->plan.vertex[v];
	uint32_t host = reduce_host(p);
	struct closure *k;

	if (r->state != REDUCE_RUNNING)
		return;
	k = repair_open(c, r);
	if (m->part_node != MESSAGE_NODE_NONE) {
		repair_part(c, r, k, v, m);
	} else if (reduce_is(p, RUN_DELIVERED)) {
		r->plan.run.vertex[v] |= RUN_GONE; /* not needed, unless its reader restarts */
		return;
	} else {
		r->plan.run.vertex[v] |= RUN_RESTART;
		if (!reduce_reachable(c, host) || p->tries++ > 0)
			closure_vacate_node(k, reduce_slot(p), host);
	}
	repair(c, r, k);
}

static bool repair_has_reserve(struct control *c, const struct reduce *r, uint32_t silent)
{
	for (uint32_t i = 0; i < r->from.count; i++) {
		const struct reduce_source *s = &r->from.source[i];

		if (s->state == SOURCE_KNOWN && s->slot == REDUCE_NONE && s->node != silent &&
		    reduce_reachable(c, s->node))
			return true;
	}
	return false;
}

/* Speculative repair: the silent node may be dead, or only slow. If there is a reserve it is
 * replaced at once, as often as the policy allows. If it lives, its source is located again and
 * becomes a reserve. */
static void repair_silent(struct control *c, struct reduce *r, struct repair_part part,
			  uint32_t node)
{
	struct policy_view v;
	struct closure *k;

	reduce_view(c, r, &v);
	if ((!part.source && !part.from) || !policy_replaces(&v) || !repair_has_reserve(c, r, node))
		return;
	r->plan.speculative++;
	k = repair_open(c, r);
	repair_forgo(r, k, part, node);
	repair(c, r, k);
}

void reduce_silent(struct control *c, struct reduce *r, uint32_t v)
{
	struct reduce_vertex *p = &r->plan.vertex[v];

	if (r->state == REDUCE_RUNNING)
		repair_silent(c, r, (struct repair_part){NULL, p}, reduce_host(p));
}

/* The vertex has all bytes of the part: a loss of the part does not matter any more. */
static void repair_taken(struct reduce *r, uint32_t v, const struct message_combined *m)
{
	struct repair_part part = repair_find(r, v, m);

	if (part.source)
		part.source->absorbed = r->plan.graph.segments == 1;
	if (part.from)
		r->plan.run.vertex[reduce_number(part.from)] |= RUN_DELIVERED;
}

static void repair_done(struct control *c, struct reduce *r, uint32_t v)
{
	const struct graph_vertex *at = &r->plan.graph.vertex[v];

	for (uint32_t e = 0; e < at->ins; e++)
		r->plan.run.vertex[r->plan.graph.edge[at->in + e].vertex] |= RUN_DELIVERED;
	for (uint32_t i = 0; r->plan.graph.segments == 1 && i < r->from.count; i++)
		r->from.source[i].absorbed |=
			r->from.source[i].slot == reduce_slot(&r->plan.vertex[v]);
	r->plan.run.vertex[v] |= RUN_DONE;
	reduce_measured_done(c, r, v);
	if (at->out != GRAPH_NONE)
		return;
	if (reduce_gathers(r))
		reduce_receivers_check(c, r);
	else
		reduce_commit(c, r, reduce_host(&r->plan.vertex[v]));
}

/* The vertex that the node's message is about; NULL: of an earlier plan. */
static struct reduce_vertex *repair_vertex(struct reduce *r, const struct node *n,
					   const struct message_combined *in)
{
	for (uint32_t i = 0; r && i < r->plan.graph.slots; i++) {
		if (r->plan.run.slot[i].host != n->number)
			continue;
		for (uint32_t j = 0; j < r->plan.graph.segments; j++) {
			struct reduce_vertex *p =
				&r->plan.vertex[graph_vertex_of(&r->plan.graph, j, i)];

			if (p->generation == in->generation && reduce_is(p, RUN_STARTED) &&
			    object_id_equal(&p->id, &in->id))
				return p;
		}
	}
	return NULL;
}

void reduce_combined(struct control *c, struct node *n, const struct message *m)
{
	const struct message_combined *in = &m->combined;
	struct reduce *r = reduce_find(c, &in->target);
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	struct reduce_vertex *p;
	bool whole;
	uint32_t i;

	if (r && (r->want.number != in->reduce || r->state == REDUCE_ENDED))
		r = NULL;
	whole = r && reduce_gathers(r) && object_id_equal(&in->id, &in->target);
	p = whole ? NULL : repair_vertex(r, n, in);
	if (whole ? !reduce_receivers_knows(r, n, in) : !p)
		answer.reply.status = -ESTALE; /* nobody needs what it builds */
	peers_send(c, n, &answer);
	if (!r)
		return;
	if (whole) {
		reduce_receivers_combined(c, r, n, in);
		return;
	}
	if (r->state == REDUCE_COMMITTED && !reduce_gathers(r) && n->number == r->commit.holder &&
	    in->what == MESSAGE_COMBINED_LOST && in->generation == r->out.generation) {
		reduce_commit_lost(c, r);
		return;
	}
	if (!p || r->state != REDUCE_RUNNING)
		return;
	i = reduce_number(p);
	if (in->what == MESSAGE_COMBINED_LOST)
		reduce_lost(c, r, i, in);
	else if (in->what == MESSAGE_COMBINED_SILENT)
		repair_silent(c, r, repair_find(r, i, in), in->part_node);
	else if (in->what == MESSAGE_COMBINED_PART)
		repair_taken(r, i, in);
	else if (in->what == MESSAGE_COMBINED_DONE)
		repair_done(c, r, i);
}

void reduce_look_retry(struct control *c, struct reduce *r)
{
	for (uint32_t i = 0; i < r->from.count; i++) {
		struct reduce_source *s = &r->from.source[i];

		if (s->state == SOURCE_KNOWN && s->slot == REDUCE_NONE &&
		    !reduce_reachable(c, s->node)) {
			repair_vacated(c, s, MESSAGE_NODE_NONE);
		}
	}
	if (r->state == REDUCE_RUNNING && r->plan.graph.vertices > 0)
		reduce_fill(c, r);
}

static void repair_node(struct control *c, struct reduce *r, uint32_t node)
{
	struct closure *k = repair_open(c, r);

	if (closure_node_lost(k, node))
		repair(c, r, k);
	else
		repair_sources(c, r, k);
}

void reduce_tombstone(struct control *c, const struct message_tombstone *b)
{
	struct idmap_node *known = idmap_find(&c->coordinator->reduces.by_id, &b->id);
	struct reduce *r = known ? idmap_item(known, struct reduce, by_id) : NULL;
	uint32_t root;

	if (!r || r->state != REDUCE_RUNNING || r->plan.graph.vertices == 0)
		return;
	root = r->plan.graph.segment[0].root;
	if (reduce_gathers(r) && r->out.generation <= b->generation) {
		reduce_receivers_restart(c, r);
		reduce_receivers_tell(c, r);
	} else if (!reduce_gathers(r) && r->plan.vertex[root].generation <= b->generation &&
		   r->plan.run.vertex[root] & RUN_STARTED) {
		r->plan.run.vertex[root] |= RUN_RESTART;
		repair(c, r, repair_open(c, r));
	}
}

/* Binds sources that were located on the node before it could be reached. */
void reduce_node_up(struct control *c, const struct node *n)
{
	list_each(l, after, &c->coordinator->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		reduce_turn(c, r);
		for (uint32_t i = 0;
		     r->state == REDUCE_RUNNING && r->plan.graph.vertices && i < r->from.count;
		     i++) {
			const struct reduce_source *s = &r->from.source[i];

			if (s->state != SOURCE_KNOWN || s->slot != REDUCE_NONE ||
			    s->node != n->number)
				continue;
			reduce_fill(c, r);
			break;
		}
	}
}

void reduce_node_down(struct control *c, struct node *n)
{
	list_each(l, after, &c->coordinator->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (reduce_gathers(r))
			reduce_receivers_node_down(c, r, n->number);
		if (r->state < REDUCE_COMMITTING)
			repair_node(c, r, n->number);
	}
}
