/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/planner/graph.h"
#include "core/planner/segment.h"
#include "room.h"

void offers_carve(struct offers *os, struct arena *a, const struct control_config *config)
{
	pool_carve(&os->pool, a, sizeof(struct offer), config->offers_max);
	os->data = arena_carve(a, (size_t)config->offers_max * OBJECT_INLINE_MAX);
}

/* Returns whether somebody here knows what it is for. */
static bool offer_use(struct control *c, const struct node *n, const struct message_offer *m)
{
	struct combine *k = combine_of(c, &m->into);

	if (k == NULL || !k->values)
		return false;
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_combine);

		if (p->node == n && p->generation == m->bytes.generation &&
		    object_id_equal(&p->id, &m->bytes.id))
			return part_value_take(c, p, &m->bytes) || p->state > PART_REQUEST;
	}
	return false;
}

static void offer_free(struct control *c, struct offer *o)
{
	timers_cancel(&c->timers, &o->timer);
	list_remove(&o->link);
	pool_give(&c->participant->offers.pool, o);
}

static void offer_fire(struct control *c, struct timer *t)
{
	offer_free(c, list_item(t, struct offer, timer));
}

void offer_take(struct control *c, struct node *n, const struct message *m)
{
	struct offer *o =
		offer_use(c, n, &m->offer) ? NULL : pool_take(&c->participant->offers.pool);
	uint8_t *data;

	if (o == NULL)
		return;
	data = c->participant->offers.data +
	       (size_t)pool_index(&c->participant->offers.pool, o) * OBJECT_INLINE_MAX;
	o->node = n;
	o->what = m->offer;
	o->what.bytes.value = memcpy(data, m->offer.bytes.value, m->offer.bytes.bytes);
	list_append(&c->participant->offers.early, &o->link);
	timers_set(&c->timers, &o->timer, c->now_ns + OFFER_KEEP_NS, offer_fire);
}

void offer_begun(struct control *c, struct combine *k)
{
	list_each(l, after, &c->participant->offers.early)
	{
		struct offer *o = list_item(l, struct offer, link);

		if (object_id_equal(&o->what.into, &k->by_id.id) && offer_use(c, o->node, &o->what))
			offer_free(c, o);
	}
}

void offer_source(struct control *c, const struct part *own)
{
	const struct combine *k = own->combine;
	uint32_t slot = objects_find(c, &own->id), first, count;
	const struct object_slot *s;
	struct message m = {.kind = MESSAGE_OFFER};
	uint32_t chunks;

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, own->generation))
		return;
	s = &c->table->slot[slot];
	if (s->state == OBJECT_SPILLED) {
		spill_restore(c, slot); /* they ask for it */
		return;
	}
	chunks = (uint32_t)chunk_count(s->size, k->chunk_bytes);
	m.offer.bytes.id = own->id;
	m.offer.bytes.generation = own->generation;
	list_each(l, after, &k->parts)
	{
		const struct part *p = list_item(l, struct part, of_combine);
		uint64_t bytes = segment_bytes(s->size, k->chunk_bytes, k->need, p->stripe);

		if (p->node == c->cluster->self || bytes == 0 || bytes > OBJECT_INLINE_MAX)
			continue;
		segment_range(chunks, k->need, p->stripe, &first, &count);
		/* the root of segment j is in slot j (planner/exchange.c) */
		graph_name(&k->target, k->reduce, p->stripe * k->need + p->stripe, &m.offer.into);
		m.offer.bytes.first = (uint64_t)first * k->chunk_bytes;
		m.offer.bytes.bytes = (uint32_t)bytes;
		m.offer.bytes.value = c->memory + s->offset + m.offer.bytes.first;
		peers_send(c, p->node, &m);
	}
}

void offer_stripe(struct control *c, const struct combine *k)
{
	struct message m = {.kind = MESSAGE_OFFER};

	m.offer.into = k->target;
	m.offer.bytes.id = k->by_id.id;
	m.offer.bytes.generation = k->generation;
	m.offer.bytes.bytes = (uint32_t)k->size;
	m.offer.bytes.value = c->memory + c->table->slot[k->slot].offset;
	list_each(l, after, &k->parts)
	{
		struct node *n = list_item(l, struct part, of_combine)->node;

		if (n != c->cluster->self)
			peers_send(c, n, &m);
	}
}
