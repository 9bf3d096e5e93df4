/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coordinator of a reduce is dead, and we are the next one. Those who take part stream on
 * without it: all live nodes are asked what they build for the target. When that is a tree in which
 * every seat is taken and every part is bound, it is ours from then on, as it stands; no generation
 * is bound to anything that it was not bound to before, so it does not matter whether the one
 * before lives after all, and which of us is agreed with (reduce_commit.c). If anything is missing,
 * or does not fit, all begins anew: what was lost with a seat costs as much in either case.
 *
 * Only of large objects, in one tree, with one seat per node.
 */
#include <errno.h>
#include "state.h"

#define ADOPT_NS UINT64_C(100000000) /* who has not answered by then has nothing to show */

/* ---- what somebody shows -------------------------------------------------------------------- */

/* The first one says which tree it is. */
static bool adopt_shape(struct control *c, struct reduce *r, const struct message_combine *m)
{
	if (m->size != r->size || m->chunk_bytes != r->chunk_bytes || m->op != r->op ||
	    m->dtype != r->dtype || m->count != m->need)
		return false;
	if (r->seats)
		return m->reduce == r->number && m->seats == r->seats && m->degree == r->degree;
	if (m->seats == 0 || m->seats > r->num || m->degree == 0 || m->degree > REDUCE_DEGREE_MAX ||
	    (m->degree >= m->seats && m->seats > 1))
		return false;
	r->number = m->reduce;
	r->seats = m->seats;
	r->degree = m->degree;
	r->stripes = 1;
	return reduce_grow(c, r);
}

/* A cell's own node and its parent's must say the same of it. */
static bool adopt_cell(struct reduce_cell *p, uint32_t node, uint64_t generation)
{
	struct reduce_seat *seat = reduce_seat_of(p);

	if (p->generation)
		return p->generation == generation && seat->host == node;
	p->generation = generation;
	p->combines = true;
	seat->host = node;
	return true;
}

static bool adopt_source(struct control *c, struct reduce *r, const struct message_part *part)
{
	struct reduce_source *s = r->source, *end = s + r->count;

	while (s < end && !object_id_equal(&s->id, &part->id))
		s++;
	if (s == end || s->seat != REDUCE_NONE || part->size != r->size ||
	    (s->state == SOURCE_KNOWN && s->generation != part->generation))
		return false;
	reduce_unlocate(c, s);
	s->state = SOURCE_KNOWN;
	s->node = part->node;
	s->generation = part->generation;
	s->arrival = ++r->arrivals;
	s->seat = part->stripe;
	r->seat[s->seat].has++;
	return true;
}

/* Of what cell i is built: a child's object, or a source of its own seat or of a child's. */
static bool adopt_part(struct control *c, struct reduce *r, uint32_t i,
		       const struct message_part *part)
{
	uint32_t child[REDUCE_DEGREE_MAX], n = reduce_children(r, i, child);

	for (uint32_t k = 0; k < n; k++) {
		struct reduce_cell *q = &r->cell[child[k]];

		if (object_id_equal(&q->id, &part->id))
			return adopt_cell(q, part->node, part->generation);
	}
	return part->stripe < r->seats &&
	       (part->stripe == i || reduce_parent(r, part->stripe) == i) &&
	       adopt_source(c, r, part);
}

static bool adopt_take(struct control *c, struct reduce *r, uint32_t node,
		       const struct message_combine *m)
{
	uint32_t i = 0;

	if (!adopt_shape(c, r, m))
		return false;
	while (i < r->cells && !object_id_equal(&r->cell[i].id, &m->id))
		i++;
	if (i == r->cells || r->cell[i].started || !adopt_cell(&r->cell[i], node, m->generation))
		return false;
	for (uint32_t k = 0; k < m->count; k++)
		if (!adopt_part(c, r, i, &m->parts[k]))
			return false;
	r->cell[i].started = r->cell[i].dirty = true;
	control_generation_after(c, m->generation);
	return true;
}

/* ---- whether that is all -------------------------------------------------------------------- */

/* A source that nobody adds up is on its seat's node. Returns whether all can be reached. */
static bool adopt_sources(struct control *c, struct reduce *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct reduce_source *s = &r->source[i];

		if (s->seat == REDUCE_NONE)
			continue;
		if (!reduce_reachable(c, s->node))
			return false;
		if (!r->cell[s->seat].combines)
			r->seat[s->seat].host = s->node;
	}
	return true;
}

static bool adopt_complete(struct control *c, struct reduce *r)
{
	uint32_t seated = 0;

	if (r->seats == 0 || !adopt_sources(c, r))
		return false;
	for (uint32_t i = 0; i < r->cells; i++) {
		struct reduce_seat *seat = &r->seat[i];
		const struct reduce_cell *p = &r->cell[i];

		if (p->combines ? !p->started || seat->has == 0 : seat->has != 1)
			return false;
		if (!reduce_reachable(c, seat->host))
			return false;
		seat->wants = seat->has;
		seated += seat->has;
	}
	return seated == r->num;
}

static void adopt_follow(struct control *c, struct reduce *r)
{
	c->counters.reduces_adopted++;
	r->state = REDUCE_RUNNING;
	directory_reserve(&c->directory, &r->by_id.id, r->cell[r->root].generation);
	reduce_accept(c, r);
	reduce_watch(c, r);
	reduce_tell_all(c, r);
}

static void adopt_leave(struct control *c, struct reduce *r)
{
	reduce_release(c, r);
	reduce_fell(c, r);
	for (uint32_t i = 0; i < r->count; i++)
		r->source[i].seat = REDUCE_NONE;
	reduce_look_again(c, r);
	r->number = ++c->reduces.number;
	directory_reserve(&c->directory, &r->by_id.id, UINT64_MAX);
	reduce_plan(c, r);
}

/* ---- asking --------------------------------------------------------------------------------- */

static bool adopt_shown(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce *r = reduce_find(c, &call->message.combined.target);
	bool shown = answer && answer->kind == MESSAGE_SHOWN;

	if (r == NULL || r->state != REDUCE_ADOPTING || r->asked != call->cookie)
		return false;
	if (answer && !shown && answer->reply.status == -EAGAIN)
		return true;
	if (shown && !adopt_take(c, r, call->node->number, &answer->combine))
		r->misfit = true;
	if (--r->unanswered > 0)
		return false;
	if (!r->misfit && adopt_complete(c, r))
		adopt_follow(c, r);
	else
		adopt_leave(c, r);
	return false;
}

bool reduce_take_over(struct control *c, struct reduce *r)
{
	struct message m = {.kind = MESSAGE_SHOW};

	if (!(r->flags & MESSAGE_REDUCE_AGAIN) || r->flags & MESSAGE_REDUCE_SPREAD || !r->sized ||
	    r->size <= OBJECT_INLINE_MAX)
		return false;
	m.combined.target = r->by_id.id;
	m.combined.part_node = MESSAGE_NODE_NONE;
	r->searched = true;
	r->unanswered = 0;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = peers_node(c, i);
		struct call *call;

		if (!members_live(n))
			continue;
		call = calls_start(c, n, &m, TABLE_SLOT_NONE, ADOPT_NS, adopt_shown, NULL);
		if (call == NULL)
			continue;
		call->cookie = r->asked;
		r->unanswered++;
	}
	if (r->unanswered == 0)
		return false;
	r->state = REDUCE_ADOPTING;
	return true;
}
