/* SPDX-License-Identifier: BSD-3-Clause */
/* The cells of a reduce: how they hang together, and what their nodes are told. */
#include <errno.h>
#include "internal/reduce.h"
#include "core/planner/reduce_stripe.h"
#include "core/planner/reduce_tree.h"
#include "core/state.h"

/* ---- the tree ------------------------------------------------------------------------------- */

struct reduce_seat *reduce_seat_of(const struct reduce_cell *p)
{
	return &p->reduce->seat[p->seat];
}

bool reduce_is_root(const struct reduce_cell *p)
{
	const struct reduce *r = p->reduce;

	return p->seat == (r->stripes == 1 ? r->root : p->stripe);
}

/* The place of a seat in a stripe's chain: the inverse of reduce_stripe_order. */
static uint32_t reduce_link_of(const struct reduce *r, const struct reduce_cell *p)
{
	return (p->seat + r->seats - p->stripe - 1) % r->seats;
}

static uint32_t reduce_linked(const struct reduce *r, uint32_t stripe, uint32_t place)
{
	return stripe * r->seats + reduce_stripe_order(r->seats, stripe, place);
}

uint32_t reduce_parent(const struct reduce *r, uint32_t i)
{
	const struct reduce_cell *p = &r->cell[i];
	uint32_t place;

	if (r->stripes == 1)
		return reduce_tree_parent(r->seats, r->degree, i);
	if (r->direct)
		return reduce_is_root(p) ? REDUCE_NONE : p->stripe * r->seats + p->stripe;
	place = reduce_link_of(r, p);
	return place + 1 == r->seats ? REDUCE_NONE : reduce_linked(r, p->stripe, place + 1);
}

/* All other cells of a root's stripe; each root has another one first. */
static uint32_t reduce_others(const struct reduce *r, const struct reduce_cell *p, uint32_t *out)
{
	uint32_t count = reduce_is_root(p) ? r->seats - 1 : 0;

	for (uint32_t k = 0; k < count; k++)
		out[k] = p->stripe * r->seats + (p->seat + 1 + k) % r->seats;
	return count;
}

uint32_t reduce_children(const struct reduce *r, uint32_t i, uint32_t *out)
{
	const struct reduce_cell *p = &r->cell[i];
	uint32_t place;

	if (r->stripes == 1)
		return reduce_tree_children(r->seats, r->degree, i, out, REDUCE_DEGREE_MAX);
	if (r->direct)
		return reduce_others(r, p, out);
	place = reduce_link_of(r, p);
	if (place == 0)
		return 0;
	out[0] = reduce_linked(r, p->stripe, place - 1);
	return 1;
}

void reduce_extent(const struct reduce *r, uint32_t stripe, uint32_t *first, uint32_t *count)
{
	reduce_stripe((uint32_t)chunk_count(r->size, r->chunk_bytes), r->stripes, stripe, first,
		      count);
}

/* ---- what a node builds ---------------------------------------------------------------------- */

static bool reduce_complete(const struct reduce_cell *p)
{
	return reduce_seat_of(p)->has == reduce_seat_of(p)->wants;
}

static void reduce_add_sources(const struct reduce *r, const struct reduce_cell *p,
			       struct message_combine *m, struct message_part *parts)
{
	uint32_t first, count;

	reduce_extent(r, p->stripe, &first, &count);
	for (uint32_t i = 0; i < r->count; i++) {
		const struct reduce_source *s = &r->source[i];

		if (s->seat == p->seat)
			parts[m->count++] = (struct message_part){.id = s->id,
								  .generation = s->generation,
								  .node = s->node,
								  .first = first,
								  .count = count,
								  .size = r->size,
								  .stripe = s->seat};
	}
}

/* What a cell gives to its parent: its object, or its only source. */
static void reduce_add_cell(const struct reduce *r, const struct reduce_cell *q,
			    struct message_combine *m, struct message_part *parts)
{
	uint32_t first, count;

	if (!q->combines) {
		reduce_add_sources(r, q, m, parts);
		return;
	}
	reduce_extent(r, q->stripe, &first, &count);
	parts[m->count++] = (struct message_part){.id = q->id,
						  .generation = q->generation,
						  .node = reduce_seat_of(q)->host,
						  .count = count};
}

void reduce_fill_message(struct control *c, struct call *call)
{
	struct message_combine *m = &call->message.combine;
	const struct reduce_cell *p = call->owner;
	uint32_t child[REDUCE_DEGREE_MAX], n;

	m->count = 0;
	m->parts = c->reduces.parts;
	if (m->op == 0) {
		reduce_feed_fill_message(c, call);
		return;
	}
	reduce_add_sources(p->reduce, p, m, c->reduces.parts);
	n = reduce_children(p->reduce, (uint32_t)(p - p->reduce->cell), child);
	for (uint32_t i = 0; i < n; i++)
		if (reduce_complete(&p->reduce->cell[child[i]]))
			reduce_add_cell(p->reduce, &p->reduce->cell[child[i]], m, c->reduces.parts);
}

static bool reduce_told(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce_cell *p = call->owner;
	struct reduce *r = p->reduce;
	struct message_combined lost = {.part_node = MESSAGE_NODE_NONE, .status = -EHOSTUNREACH};
	int32_t status = answer ? answer->reply.status : -EHOSTUNREACH;
	struct text t = {.length = 0};
	bool watched = p->watched;

	p->watched = false;
	if (status == -EAGAIN) /* not yet: it will be repeated */
		return true;
	p->call = NULL;
	if (status == 0 && r->direct)
		reduce_tell_all(c, r);
	if (status == 0 && r->borrowed && reduce_is_root(p))
		reduce_borrowed_found(c, r, watched);
	if (status == 0 || status == -ESTALE || r->state >= REDUCE_COMMITTING)
		return false;
	if (status == -EHOSTUNREACH) {
		reduce_lost(c, r, (uint32_t)(p - r->cell), &lost);
		return false;
	}
	text_add(&t, "node ");
	text_add_number(&t, reduce_seat_of(p)->host);
	text_add(&t, status == -ENOSPC
			     ? " has no room for its part of the sum: delete objects there"
			     : " cannot build its part of the sum");
	reduce_fail(c, r, status, t.bytes);
	return false;
}

static void reduce_tell(struct control *c, struct reduce *r, struct reduce_cell *p)
{
	struct message m = {.kind = MESSAGE_COMBINE};
	uint32_t child[REDUCE_DEGREE_MAX];
	bool target = reduce_is_root(p) && r->stripes == 1;

	p->dirty = p->watched = false;
	calls_cancel(c, p->call);
	m.combine.id = p->id;
	m.combine.generation = p->generation;
	m.combine.target = r->by_id.id;
	m.combine.reduce = r->number;
	m.combine.size = reduce_stripe_bytes(r->size, r->chunk_bytes, r->stripes, p->stripe);
	m.combine.chunk_bytes = r->chunk_bytes;
	m.combine.op = r->op;
	m.combine.dtype = r->dtype;
	m.combine.need =
		reduce_seat_of(p)->wants + reduce_children(r, (uint32_t)(p - r->cell), child);
	m.combine.flags = target ? MESSAGE_COMBINE_HOLD : MESSAGE_COMBINE_HIDDEN;
	m.combine.flags |= r->direct ? MESSAGE_COMBINE_VALUES : 0;
	m.combine.flags |= r->borrowed ? MESSAGE_COMBINE_LENT : 0;
	m.combine.scale = reduce_is_root(p) && r->op == REDUCE_AVG ? r->num : 0;
	if (target)
		memcpy(m.combine.name, r->name, sizeof(m.combine.name));
	p->call = calls_start(c, peers_node(c, reduce_seat_of(p)->host), &m, TABLE_SLOT_NONE,
			      c->config.call_ns, reduce_told, p);
}

/* Whether no other node has said yet that it knows of its stripe. */
static bool reduce_unheard(const struct control *c, const struct reduce *r)
{
	bool told = false;

	for (uint32_t i = 0; i < r->cells; i++) {
		const struct reduce_cell *p = &r->cell[i];

		if (!p->started || reduce_seat_of(p)->host == c->self->number)
			continue;
		if (!p->dirty && p->call == NULL)
			return false;
		told = true;
	}
	return told;
}

void reduce_tell_all(struct control *c, struct reduce *r)
{
	bool wait = r->direct && reduce_unheard(c, r);

	for (uint32_t i = 0; i < r->cells; i++) {
		struct reduce_cell *p = &r->cell[i];

		if (p->dirty && p->started && !(wait && reduce_seat_of(p)->host == c->self->number))
			reduce_tell(c, r, p);
	}
	if (r->stripes > 1 && !wait)
		reduce_spread_tell(c, r);
}

void reduce_beat(struct control *c, struct reduce *r)
{
	bool open = r->state < REDUCE_COMMITTING;

	for (uint32_t i = 0; open && i < r->count; i++)
		if (r->source[i].state != SOURCE_KNOWN && r->source[i].call == NULL &&
		    !r->source[i].with)
			reduce_locate(c, &r->source[i]);
	if (open)
		reduce_look_again(c, r);
	for (uint32_t i = 0; i < r->cells; i++)
		r->cell[i].dirty = r->cell[i].started;
	list_each(l, after, &r->getters)
	{
		struct reduce_getter *g = list_item(l, struct reduce_getter, link);

		g->dirty = true;
		g->avoid = 0; /* what it could not reach it may reach by now */
	}
	reduce_tell_all(c, r);
}
