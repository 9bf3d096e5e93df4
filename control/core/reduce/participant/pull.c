/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "room.h"

void takes_carve(struct takes *ts, struct arena *a, const struct control_config *config)
{
	pool_carve(&ts->pool, a, sizeof(struct take), config->parts_max);
}

/* What is built under that id and generation, or NULL. */
static struct combine *take_combine(struct control *c, const struct message_take *m)
{
	struct combine *k = combine_of(c, &m->id);

	return k && k->generation == m->generation ? k : NULL;
}

/* 0 and where the bytes are; -ENOENT, no such object; -EAGAIN, not all of it is there. */
static int32_t take_find(struct control *c, const struct message_take *m, const uint8_t **value)
{
	uint32_t slot = c->table ? objects_find(c, &m->id) : TABLE_SLOT_NONE;
	const struct object_slot *s;
	const struct combine *k;

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, m->generation))
		return -ENOENT;
	s = &c->table->slot[slot];
	if (m->bytes > s->size || m->first > s->size - m->bytes)
		return -EINVAL;
	k = objects_at(c, slot)->combine;
	if (s->state == OBJECT_SPILLED)
		spill_restore(c, slot);
	if (s->state != OBJECT_SEALED && !(k && k->hidden && k->done))
		return -EAGAIN;
	*value = c->memory + s->offset + m->first;
	return 0;
}

static void take_answer(struct control *c, struct node *n, uint64_t request,
			const struct message_take *m)
{
	struct message answer = {.kind = MESSAGE_GIVEN, .request = request};

	answer.take.status = take_find(c, m, &answer.take.value);
	answer.take.bytes = answer.take.status == 0 ? m->bytes : 0;
	peers_send(c, n, &answer);
}

static void take_end(struct control *c, struct take *t)
{
	take_answer(c, t->node, t->request, &t->wanted);
	timers_cancel(&c->timers, &t->timer);
	list_remove(&t->link);
	pool_give(&c->participant->takes.pool, t);
}

static void take_fire(struct control *c, struct timer *timer)
{
	take_end(c, list_item(timer, struct take, timer));
}

/* How far behind us in the circle of the numbers a node is. */
static uint32_t take_place(const struct control *c, const struct node *n)
{
	return (n->number + NODES_MAX - c->cluster->self->number) % NODES_MAX;
}

/* In the order of the circle: when several nodes have something for all at the same time, each
 * begins with another one. */
static void take_insert(struct control *c, struct list *head, struct take *t)
{
	list_each(l, after, head)
	{
		if (take_place(c, list_item(l, struct take, link)->node) <= take_place(c, t->node))
			continue;
		list_append(l, &t->link); /* before it */
		return;
	}
	list_append(head, &t->link);
}

static bool take_keep(struct control *c, struct list *head, struct node *n, const struct message *m)
{
	struct take *t;

	list_each(l, after, head)
	{
		t = list_item(l, struct take, link);
		if (t->node == n && t->request == m->request)
			return true; /* repeated */
	}
	t = pool_take(&c->participant->takes.pool);
	if (t == NULL)
		return false;
	t->node = n;
	t->request = m->request;
	t->wanted = m->take;
	take_insert(c, head, t);
	timers_set(&c->timers, &t->timer, c->now_ns + TAKE_KEEP_NS, take_fire);
	return true;
}

void take_request(struct control *c, struct node *n, const struct message *m)
{
	const uint8_t *value;
	int32_t status = take_find(c, &m->take, &value);
	struct combine *k = status == -EAGAIN ? take_combine(c, &m->take) : NULL;
	struct list *head = k ? &k->takes : status == -ENOENT ? &c->participant->takes.early : NULL;

	if (head == NULL || !take_keep(c, head, n, m))
		take_answer(c, n, m->request, &m->take);
}

void take_begun(struct control *c, struct combine *k)
{
	list_each(l, after, &c->participant->takes.early)
	{
		struct take *t = list_item(l, struct take, link);

		if (t->wanted.generation != k->generation ||
		    !object_id_equal(&t->wanted.id, &k->by_id.id))
			continue;
		list_remove(&t->link);
		take_insert(c, &k->takes, t);
	}
}

void take_done(struct control *c, struct combine *k)
{
	list_each(l, after, &k->takes) take_end(c, list_item(l, struct take, link));
}

void take_given_up(struct control *c, struct combine *k)
{
	list_each(l, after, &k->takes)
	{
		list_remove(l);
		list_append(&c->participant->takes.early, l);
	}
}
