/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is lost, and what must be built anew for it: the lost position, and all its ancestors that
 * have been told of it. Everything else keeps what it has.
 */
#include <errno.h>
#include "core/planner/reduce_tree.h"
#include "core/state.h"

static void repair_anew(struct reduce *r, uint32_t seat)
{
	for (uint32_t j = 0; j < r->stripes; j++)
		r->cell[j * r->seats + seat].anew = true;
}

/* The source no longer counts; it may turn up again, here or elsewhere. */
static void repair_vacate_source(struct control *c, struct reduce *r, struct reduce_source *s)
{
	if (s->seat != REDUCE_NONE) {
		if (--r->seat[s->seat].has == 0)
			r->seat[s->seat].host = REDUCE_NONE;
		repair_anew(r, s->seat); /* one set in all stripes */
	}
	s->seat = REDUCE_NONE;
	s->absorbed = false;
	s->state = SOURCE_ABSENT;
	if (s->call == NULL)
		reduce_locate(c, s);
}

/* Takes the sources that are on a node out of a seat. */
static void repair_vacate(struct control *c, struct reduce *r, uint32_t seat, uint32_t node)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->seat != seat || s->node != node)
			continue;
		s->failed = node;
		repair_vacate_source(c, r, s);
	}
}

/* A cell is built anew: its parts are wanted again, and some of them may be gone by now. Returns
 * whether that concerns other cells. */
static bool repair_wants(struct control *c, struct reduce *r, uint32_t i)
{
	uint32_t child[REDUCE_DEGREE_MAX], n = reduce_children(r, i, child);
	bool changed = false;

	for (uint32_t k = 0; k < r->count; k++) {
		struct reduce_source *s = &r->source[k];

		if (s->seat != r->cell[i].seat)
			continue;
		s->absorbed = false;
		if (reduce_reachable(c, s->node))
			continue;
		repair_vacate_source(c, r, s);
		changed = true;
	}
	for (uint32_t k = 0; k < n; k++) {
		struct reduce_cell *q = &r->cell[child[k]];

		q->delivered = false;
		if (q->gone && !q->anew)
			q->anew = changed = true;
		if (q->anew || reduce_seat_of(q)->has == 0 ||
		    reduce_reachable(c, reduce_seat_of(q)->host))
			continue;
		repair_vacate(c, r, q->seat, reduce_seat_of(q)->host);
		q->anew = changed = true;
	}
	return changed;
}

/* It stays where it is as long as one of its sources is there: its cells in other stripes may go
 * on.
 */
static void repair_host(struct reduce *r, uint32_t seat)
{
	uint32_t first = REDUCE_NONE;

	for (uint32_t k = 0; k < r->count; k++) {
		if (r->source[k].seat != seat)
			continue;
		if (r->source[k].node == r->seat[seat].host)
			return;
		first = first == REDUCE_NONE ? r->source[k].node : first;
	}
	r->seat[seat].host = first;
}

static void repair_begin(struct control *c, struct reduce *r, uint32_t i)
{
	struct reduce_cell *p = &r->cell[i];

	p->anew = p->started = p->delivered = p->done = p->gone = false;
	calls_cancel(c, p->call);
	p->call = NULL;
	repair_host(r, p->seat);
	if (!p->combines)
		return;
	p->generation = reduce_generation(c, r);
	if (!reduce_is_root(p))
		return;
	if (r->stripes > 1) /* who reads the old one begins again */
		reduce_spread_anew(c, r);
	else
		reduce_reserve(c, r, p->generation);
}

static void repair(struct control *c, struct reduce *r)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < r->cells; i++) {
			uint32_t parent = reduce_parent(r, i);
			struct reduce_cell *up;

			if (!r->cell[i].anew)
				continue;
			changed |= repair_wants(c, r, i);
			up = parent == REDUCE_NONE ? NULL : &r->cell[parent];
			if (up && up->started && !up->anew)
				up->anew = changed = true;
		}
	}
	for (uint32_t i = 0; i < r->cells; i++)
		if (r->cell[i].anew)
			repair_begin(c, r, i);
	for (uint32_t i = 0; i < r->cells; i++)
		reduce_resume(c, r, i);
	reduce_fill(c, r);
}

static struct reduce_source *repair_source(struct reduce *r, uint32_t seat,
					   const struct message_combined *m)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->seat == seat && s->node == m->part_node &&
		    s->generation == m->part_generation && object_id_equal(&s->id, &m->part_id))
			return s;
	}
	return NULL;
}

/* What a part is to the coordinator: a source of the cell's own seat, or a child's object or only
 * source; neither: of an earlier state of things. */
struct repair_part {
	struct reduce_source *source;
	struct reduce_cell *child;
};

static struct repair_part repair_find(struct reduce *r, uint32_t i,
				      const struct message_combined *m)
{
	struct repair_part part = {repair_source(r, r->cell[i].seat, m), NULL};
	uint32_t child[REDUCE_DEGREE_MAX], n = reduce_children(r, i, child);

	for (uint32_t k = 0; part.source == NULL && part.child == NULL && k < n; k++) {
		struct reduce_cell *q = &r->cell[child[k]];

		if (q->combines ? reduce_seat_of(q)->host == m->part_node &&
					  q->generation == m->part_generation &&
					  object_id_equal(&q->id, &m->part_id)
				: repair_source(r, q->seat, m) != NULL)
			part.child = q;
	}
	return part;
}

/* Its node is done without. */
static void repair_forgo(struct control *c, struct reduce *r, struct repair_part part,
			 uint32_t node)
{
	if (part.source) {
		part.source->failed = node;
		repair_vacate_source(c, r, part.source);
	} else { /* a seat's host has one of its sources at least: the cell begins anew */
		repair_vacate(c, r, part.child->seat, node);
	}
}

static void repair_part(struct control *c, struct reduce *r, uint32_t i,
			const struct message_combined *m)
{
	struct repair_part part = repair_find(r, i, m);
	struct reduce_cell *q = part.child;

	/* It may be that only its parent does not reach it; when it happens again it moves. */
	if (q && q->combines && reduce_reachable(c, m->part_node) && q->tries++ == 0)
		q->anew = true;
	else if (q || part.source)
		repair_forgo(c, r, part, m->part_node);
}

void reduce_lost(struct control *c, struct reduce *r, uint32_t i, const struct message_combined *m)
{
	struct reduce_cell *p = &r->cell[i];
	uint32_t host = reduce_seat_of(p)->host;

	if (r->state != REDUCE_RUNNING)
		return;
	if (m->part_node != MESSAGE_NODE_NONE) {
		repair_part(c, r, i, m);
	} else if (p->delivered) {
		p->gone = true; /* nobody needs it, unless its parent is built anew */
		return;
	} else {
		p->anew = true;
		if (!reduce_reachable(c, host) || p->tries++ > 0)
			repair_vacate(c, r, p->seat, host);
	}
	repair(c, r);
}

static bool repair_has_reserve(struct control *c, const struct reduce *r, uint32_t silent)
{
	for (uint32_t i = 0; i < r->count; i++) {
		const struct reduce_source *s = &r->source[i];

		if (s->state == SOURCE_KNOWN && s->seat == REDUCE_NONE && s->node != silent &&
		    reduce_reachable(c, s->node))
			return true;
	}
	return false;
}

/* A node may be dead, or only slow. With a reserve nobody waits to find out; if it lives its source
 * is found again, and is in reserve then. As often as there was a reserve in the beginning: on an
 * overloaded network work that is thrown away must not go on without end. */
static void repair_silent(struct control *c, struct reduce *r, struct repair_part part,
			  uint32_t node)
{
	if ((part.source == NULL && part.child == NULL) || r->hasty >= r->count - r->num ||
	    !repair_has_reserve(c, r, node))
		return;
	r->hasty++;
	repair_forgo(c, r, part, node);
	repair(c, r);
}

void reduce_silent(struct control *c, struct reduce *r, uint32_t i)
{
	struct reduce_cell *p = &r->cell[i];

	if (r->state == REDUCE_RUNNING)
		repair_silent(c, r, (struct repair_part){NULL, p}, reduce_seat_of(p)->host);
}

/* All of the part is in: its loss would no longer matter. */
static void repair_taken(struct reduce *r, uint32_t i, const struct message_combined *m)
{
	struct repair_part part = repair_find(r, i, m);

	if (part.source)
		part.source->absorbed = r->stripes == 1;
	if (part.child)
		part.child->delivered = true;
}

static void repair_done(struct control *c, struct reduce *r, uint32_t i)
{
	uint32_t child[REDUCE_DEGREE_MAX], n = reduce_children(r, i, child);

	for (uint32_t k = 0; k < n; k++)
		r->cell[child[k]].delivered = true;
	for (uint32_t k = 0; r->stripes == 1 && k < r->count; k++)
		r->source[k].absorbed |= r->source[k].seat == r->cell[i].seat;
	r->cell[i].done = true;
	if (!reduce_is_root(&r->cell[i]))
		return;
	if (r->stripes > 1)
		reduce_spread_check(c, r);
	else
		reduce_commit(c, r, reduce_seat_of(&r->cell[i])->host);
}

/* The cell that a node tells of; NULL: of an earlier state of things. */
static struct reduce_cell *repair_cell(struct reduce *r, const struct node *n,
				       const struct message_combined *in)
{
	for (uint32_t i = 0; r && i < r->cells; i++) {
		struct reduce_cell *p = &r->cell[i];

		if (p->started && reduce_seat_of(p)->host == n->number &&
		    p->generation == in->generation && object_id_equal(&p->id, &in->id))
			return p;
	}
	return NULL;
}

void reduce_combined(struct control *c, struct node *n, const struct message *m)
{
	const struct message_combined *in = &m->combined;
	struct reduce *r = reduce_find(c, &in->target);
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	struct reduce_cell *p;
	bool whole;
	uint32_t i;

	if (r && (r->number != in->reduce || r->state == REDUCE_ENDED))
		r = NULL;
	whole = r && r->stripes > 1 && object_id_equal(&in->id, &in->target);
	p = whole ? NULL : repair_cell(r, n, in);
	if (whole ? !reduce_spread_knows(r, n, in) : p == NULL)
		answer.reply.status = -ESTALE; /* nobody needs what it builds */
	peers_send(c, n, &answer);
	if (r == NULL)
		return;
	if (whole) {
		reduce_spread_combined(c, r, n, in);
		return;
	}
	if (r->state == REDUCE_COMMITTED && r->stripes == 1 && n->number == r->holder &&
	    in->what == MESSAGE_COMBINED_LOST && in->generation == r->generation) {
		reduce_commit_lost(c, r);
		return;
	}
	if (p == NULL || r->state != REDUCE_RUNNING)
		return;
	i = (uint32_t)(p - r->cell);
	if (in->what == MESSAGE_COMBINED_LOST)
		reduce_lost(c, r, i, in);
	else if (in->what == MESSAGE_COMBINED_SILENT)
		repair_silent(c, r, repair_find(r, i, in), in->part_node);
	else if (in->what == MESSAGE_COMBINED_PART)
		repair_taken(r, i, in);
	else if (in->what == MESSAGE_COMBINED_DONE)
		repair_done(c, r, i);
}

/* Whether the parents have all of what a seat gives. */
static bool repair_delivered(const struct reduce *r, uint32_t seat)
{
	for (uint32_t j = 0; j < r->stripes; j++)
		if (!r->cell[j * r->seats + seat].delivered)
			return false;
	return true;
}

void reduce_look_again(struct control *c, struct reduce *r)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->state == SOURCE_KNOWN && s->seat == REDUCE_NONE &&
		    !reduce_reachable(c, s->node)) {
			s->failed = MESSAGE_NODE_NONE;
			repair_vacate_source(c, r, s);
		}
	}
	if (r->state == REDUCE_RUNNING && r->cells > 0)
		reduce_fill(c, r);
}

static void repair_node(struct control *c, struct reduce *r, uint32_t node)
{
	bool lost = false;

	for (uint32_t i = 0; i < r->count; i++) {
		struct reduce_source *s = &r->source[i];

		if (s->state != SOURCE_KNOWN || s->node != node)
			continue;
		/* in its cell's object, or, of a leaf, in its parent's; and that is not here */
		if (s->seat != REDUCE_NONE && (repair_delivered(r, s->seat) ||
					       (s->absorbed && r->seat[s->seat].host != node)))
			continue;
		lost |= s->seat != REDUCE_NONE;
		repair_vacate_source(c, r, s);
	}
	for (uint32_t i = 0; i < r->cells; i++) {
		struct reduce_cell *p = &r->cell[i];

		if (reduce_seat_of(p)->host != node || !p->started)
			continue;
		if (p->delivered) {
			p->gone = true;
			continue;
		}
		p->anew = lost = true;
	}
	if (lost)
		repair(c, r);
}

void reduce_buried(struct control *c, const struct message_bury *b)
{
	struct idmap_node *known = idmap_find(&c->reduces.by_id, &b->id);
	struct reduce *r = known ? idmap_item(known, struct reduce, by_id) : NULL;

	if (r == NULL || r->state != REDUCE_RUNNING || r->cells == 0)
		return;
	if (r->stripes > 1 && r->generation <= b->generation) {
		reduce_spread_anew(c, r);
		reduce_spread_tell(c, r);
	} else if (r->stripes == 1 && r->cell[r->root].generation <= b->generation &&
		   r->cell[r->root].started) {
		r->cell[r->root].anew = true;
		repair(c, r);
	}
}

/* Sources that were found there before anything of theirs could be reached. */
void reduce_node_up(struct control *c, const struct node *n)
{
	list_each(l, after, &c->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		for (uint32_t i = 0; r->state == REDUCE_RUNNING && r->cells && i < r->count; i++) {
			const struct reduce_source *s = &r->source[i];

			if (s->state != SOURCE_KNOWN || s->seat != REDUCE_NONE ||
			    s->node != n->number)
				continue;
			reduce_fill(c, r);
			break;
		}
	}
}

void reduce_node_down(struct control *c, struct node *n)
{
	list_each(l, after, &c->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (r->stripes > 1)
			reduce_spread_node_down(c, r, n->number);
		if (r->state < REDUCE_COMMITTING)
			repair_node(c, r, n->number);
	}
}
