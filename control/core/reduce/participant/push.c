/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/planner/graph.h"
#include "core/planner/segment.h"
#include "state.h"

void push_carve(struct pushes *os, struct arena *a, const struct control_config *config)
{
	pool_carve(&os->pool, a, sizeof(struct push), config->pushes_max);
	os->data = arena_carve(a, (size_t)config->pushes_max * OBJECT_INLINE_MAX);
}

/* Hands the bytes to the part that they are for. False: no COMBINE has named it yet. */
static bool push_use(struct control *c, const struct node *n, const struct message_push *m)
{
	struct participant *k = participant_of(c, &m->into);

	if (!k || !k->values)
		return false;
	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_participant);

		if (p->node == n && p->generation == m->bytes.generation &&
		    object_id_equal(&p->id, &m->bytes.id))
			return input_value_accept(c, p, &m->bytes) || p->state > PART_REQUEST;
	}
	return false;
}

static void push_free(struct control *c, struct push *o)
{
	timers_cancel(&c->timers, &o->timer);
	list_remove(&o->link);
	pool_give(&c->participant->pushes.pool, o);
}

static void push_fire(struct control *c, struct timer *t)
{
	push_free(c, list_item(t, struct push, timer));
}

void push_received(struct control *c, struct node *n, const struct message *m)
{
	struct push *o = push_use(c, n, &m->push) ? NULL : pool_take(&c->participant->pushes.pool);
	uint8_t *data;

	if (!o)
		return;
	data = c->participant->pushes.data +
	       (size_t)pool_index(&c->participant->pushes.pool, o) * OBJECT_INLINE_MAX;
	o->node = n;
	o->what = m->push;
	o->what.bytes.value = memcpy(data, m->push.bytes.value, m->push.bytes.bytes);
	list_append(&c->participant->pushes.early, &o->link);
	timers_set(&c->timers, &o->timer, c->now_ns + PUSH_KEEP_NS, push_fire);
}

void push_begun(struct control *c, struct participant *k)
{
	list_each(l, after, &c->participant->pushes.early)
	{
		struct push *o = list_item(l, struct push, link);

		if (object_id_equal(&o->what.into, &k->by_id.id) && push_use(c, o->node, &o->what))
			push_free(c, o);
	}
}

void push_source(struct control *c, const struct part *own)
{
	const struct participant *k = own->participant;
	uint32_t slot = slots_find(c, &own->id), first, count;
	const struct object_slot *s;
	struct message m = {.kind = MESSAGE_PUSH};
	uint32_t chunks;

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, own->generation))
		return;
	s = &c->table->slot[slot];
	if (s->state == OBJECT_SPILLED) {
		spill_restore(c, slot); /* they ask for it */
		return;
	}
	chunks = (uint32_t)chunk_count(s->size, k->chunk_bytes);
	m.push.bytes.id = own->id;
	m.push.bytes.generation = own->generation;
	list_each(l, after, &k->parts)
	{
		const struct part *p = list_item(l, struct part, of_participant);
		uint64_t bytes = segment_bytes(s->size, k->chunk_bytes, k->need, p->stripe);

		if (p->node == c->cluster->self || bytes == 0 || bytes > OBJECT_INLINE_MAX)
			continue;
		segment_range(chunks, k->need, p->stripe, &first, &count);
		/* the root of segment j is in slot j (planner/flat.c) */
		graph_name(&k->target, k->reduce, p->stripe * k->need + p->stripe, &m.push.into);
		m.push.bytes.first = (uint64_t)first * k->chunk_bytes;
		m.push.bytes.bytes = (uint32_t)bytes;
		m.push.bytes.value = c->memory + s->offset + m.push.bytes.first;
		peers_send(c, p->node, &m);
	}
}

void push_stripe(struct control *c, const struct participant *k)
{
	struct message m = {.kind = MESSAGE_PUSH};

	m.push.into = k->target;
	m.push.bytes.id = k->by_id.id;
	m.push.bytes.generation = k->generation;
	m.push.bytes.bytes = (uint32_t)k->size;
	m.push.bytes.value = c->memory + c->table->slot[k->slot].offset;
	list_each(l, after, &k->parts)
	{
		struct node *n = list_item(l, struct part, of_participant)->node;

		if (n != c->cluster->self)
			peers_send(c, n, &m);
	}
}
