/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is lost, and what must be built anew for it: the lost position, and all its ancestors that
 * have been told of it. Everything else keeps what it has.
 */
#include <errno.h>
#include "reduce_tree.h"
#include "state.h"

/* The source no longer counts; it may turn up again, here or elsewhere. */
static void repair_vacate_source(struct control *c, struct reduce *r, struct reduce_source *s)
{
	struct reduce_position *p = s->position == REDUCE_NONE ? NULL : &r->position[s->position];

	if (p) {
		p->has--;
		p->anew = true;
		p->tries = 0;
		if (p->has == 0)
			p->host = REDUCE_NONE;
	}
	s->position = REDUCE_NONE;
	s->absorbed = false;
	s->state = SOURCE_ABSENT;
	if (s->call == NULL)
		reduce_locate(c, s);
}

/* Takes its sources that are on a node out of a position, or all of them. */
static void repair_vacate(struct control *c, struct reduce *r, uint32_t index, uint32_t node)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->position != index || (node != REDUCE_NONE && s->node != node))
			continue;
		s->failed = node != REDUCE_NONE ? node : MESSAGE_NODE_NONE;
		repair_vacate_source(c, r, s);
	}
}

/* A position is built anew: its parts are wanted again, and some of them may be gone by now.
 * Returns whether that concerns other positions. */
static bool repair_wants(struct control *c, struct reduce *r, uint32_t index)
{
	uint32_t child[REDUCE_DEGREE_MAX], n = reduce_children(r, index, child);
	bool changed = false;

	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->position != index)
			continue;
		s->absorbed = false;
		if (!reduce_reachable(c, s->node))
			repair_vacate_source(c, r, s);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct reduce_position *q = &r->position[child[i]];

		q->delivered = false;
		if (q->anew || q->has == 0 || reduce_reachable(c, q->host))
			continue;
		repair_vacate(c, r, child[i], q->host);
		q->anew = changed = true;
	}
	return changed;
}

static void repair_begin(struct control *c, struct reduce *r, uint32_t index)
{
	struct reduce_position *p = &r->position[index];

	p->anew = p->started = p->delivered = false;
	calls_cancel(c, p->call);
	p->call = NULL;
	p->host = REDUCE_NONE;
	for (uint32_t i = 0; i < r->count && p->host == REDUCE_NONE; i++)
		if (r->source[i].position == index)
			p->host = r->source[i].node;
	if (!p->combines)
		return;
	p->generation = control_generation(c);
	if (index == r->root) /* who reads the old one begins again */
		directory_reserve(&c->directory, &p->id, p->generation);
}

static void repair(struct control *c, struct reduce *r)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < r->positions; i++) {
			uint32_t parent = reduce_parent(r, i);
			struct reduce_position *up;

			if (!r->position[i].anew)
				continue;
			changed |= repair_wants(c, r, i);
			up = parent == REDUCE_TREE_NONE ? NULL : &r->position[parent];
			if (up && up->started && !up->anew)
				up->anew = changed = true;
		}
	}
	for (uint32_t i = 0; i < r->positions; i++)
		if (r->position[i].anew)
			repair_begin(c, r, i);
	for (uint32_t i = 0; i < r->positions; i++)
		reduce_resume(c, r, i);
	reduce_fill(c, r);
}

static struct reduce_source *repair_source(struct reduce *r, uint32_t position,
					   const struct message_combined *m)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->position == position && s->node == m->part_node &&
		    s->generation == m->part_generation && object_id_equal(&s->id, &m->part_id))
			return s;
	}
	return NULL;
}

/* The child whose object, or whose only source, the part is. */
static uint32_t repair_child(struct reduce *r, uint32_t position, const struct message_combined *m)
{
	uint32_t child[REDUCE_DEGREE_MAX], n = reduce_children(r, position, child);

	for (uint32_t i = 0; i < n; i++) {
		const struct reduce_position *q = &r->position[child[i]];

		if (q->combines ? q->host == m->part_node && q->generation == m->part_generation &&
					  object_id_equal(&q->id, &m->part_id)
				: repair_source(r, child[i], m) != NULL)
			return child[i];
	}
	return REDUCE_NONE;
}

static void repair_part(struct control *c, struct reduce *r, uint32_t position,
			const struct message_combined *m)
{
	struct reduce_source *s = repair_source(r, position, m);
	uint32_t child = s ? REDUCE_NONE : repair_child(r, position, m);
	struct reduce_position *q;

	if (s) {
		s->failed = m->part_node;
		repair_vacate_source(c, r, s);
		return;
	}
	if (child == REDUCE_NONE)
		return; /* of an earlier state of things */
	q = &r->position[child];
	q->anew = true;
	/* It may be that only its parent does not reach it; when it happens again it moves. */
	if (!q->combines || !reduce_reachable(c, q->host) || q->tries++ > 0)
		repair_vacate(c, r, child, q->host);
}

void reduce_lost(struct control *c, struct reduce *r, uint32_t position,
		 const struct message_combined *m)
{
	struct reduce_position *p = &r->position[position];

	if (r->state != REDUCE_RUNNING)
		return;
	if (m->part_node != MESSAGE_NODE_NONE) {
		repair_part(c, r, position, m);
	} else {
		p->anew = true;
		if (!reduce_reachable(c, p->host) || p->tries++ > 0)
			repair_vacate(c, r, position, p->host);
	}
	repair(c, r);
}

/* All of the part is in: its loss would no longer matter. */
static void repair_taken(struct reduce *r, uint32_t position, const struct message_combined *m)
{
	struct reduce_source *s = repair_source(r, position, m);
	uint32_t child = s ? REDUCE_NONE : repair_child(r, position, m);

	if (s)
		s->absorbed = true;
	if (child != REDUCE_NONE)
		r->position[child].delivered = true;
}

static void repair_done(struct control *c, struct reduce *r, uint32_t position)
{
	uint32_t child[REDUCE_DEGREE_MAX], n = reduce_children(r, position, child);

	for (uint32_t i = 0; i < n; i++)
		r->position[child[i]].delivered = true;
	for (uint32_t i = 0; i < r->count; i++)
		r->source[i].absorbed |= r->source[i].position == position;
	if (position != r->root)
		return;
	r->generation = r->position[position].generation;
	reduce_end(c, r, 0, "");
}

void reduce_combined(struct control *c, struct node *n, const struct message *m)
{
	const struct message_combined *in = &m->combined;
	struct idmap_node *known = idmap_find(&c->reduces.by_id, &in->target);
	struct reduce *r = known ? idmap_item(known, struct reduce, by_id) : NULL;
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	peers_send(c, n, &answer);
	if (r == NULL || r->number != in->reduce || r->state != REDUCE_RUNNING)
		return;
	for (uint32_t i = 0; i < r->positions; i++) {
		const struct reduce_position *p = &r->position[i];

		if (!p->started || p->host != n->number || p->generation != in->generation ||
		    !object_id_equal(&p->id, &in->id))
			continue;
		if (in->what == MESSAGE_COMBINED_LOST)
			reduce_lost(c, r, i, in);
		else if (in->what == MESSAGE_COMBINED_PART)
			repair_taken(r, i, in);
		else
			repair_done(c, r, i);
		return;
	}
}

static void repair_node(struct control *c, struct reduce *r, uint32_t node)
{
	bool lost = false;

	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];
		const struct reduce_position *p =
			s->position == REDUCE_NONE ? NULL : &r->position[s->position];

		if (s->state != SOURCE_KNOWN || s->node != node)
			continue;
		/* in its position's object, or, of a leaf, in its parent's; and that is not here */
		if (p && (p->delivered || (s->absorbed && p->host != node)))
			continue;
		lost |= p != NULL;
		repair_vacate_source(c, r, s);
	}
	for (uint32_t i = 0; i < r->positions; i++) {
		struct reduce_position *p = &r->position[i];

		if (p->host != node || p->delivered || !p->started)
			continue;
		p->anew = lost = true;
	}
	if (lost)
		repair(c, r);
}

void reduce_node_down(struct control *c, struct node *n)
{
	list_each(l, after, &c->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (r->state == REDUCE_RUNNING && r->positions > 0)
			repair_node(c, r, n->number);
	}
}
