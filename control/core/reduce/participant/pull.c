/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "state.h"

void pulls_carve(struct pulls *ts, struct arena *a, const struct control_config *config)
{
	pool_carve(&ts->pool, a, sizeof(struct pull), config->parts_max);
}

/* The participant with that id and generation, or NULL. */
static struct participant *pull_participant(struct control *c, const struct message_pull *m)
{
	struct participant *k = participant_of(c, &m->id);

	return k && k->generation == m->generation ? k : NULL;
}

/* 0 and the bytes; -ENOENT: no such object; -EAGAIN: it is not complete. */
static int32_t pull_find(struct control *c, const struct message_pull *m, const uint8_t **value)
{
	uint32_t slot = c->table ? slots_find(c, &m->id) : TABLE_SLOT_NONE;
	const struct object_slot *s;
	const struct participant *k;

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, m->generation))
		return -ENOENT;
	s = &c->table->slot[slot];
	if (m->bytes > s->size || m->first > s->size - m->bytes)
		return -EINVAL;
	k = objects_at(c, slot)->participant;
	if (s->state == OBJECT_SPILLED)
		spill_restore(c, slot);
	if (s->state != OBJECT_SEALED && !(k && k->hidden && k->done))
		return -EAGAIN;
	*value = c->memory + s->offset + m->first;
	return 0;
}

static void pull_answer(struct control *c, struct node *n, uint64_t request,
			const struct message_pull *m)
{
	struct message answer = {.kind = MESSAGE_PULL_REPLY, .request = request};

	answer.pull.status = pull_find(c, m, &answer.pull.value);
	answer.pull.bytes = answer.pull.status == 0 ? m->bytes : 0;
	peers_send(c, n, &answer);
}

static void pull_end(struct control *c, struct pull *t)
{
	pull_answer(c, t->node, t->request, &t->wanted);
	timers_cancel(&c->timers, &t->timer);
	list_remove(&t->link);
	pool_give(&c->participant->pulls.pool, t);
}

static void pull_fire(struct control *c, struct timer *timer)
{
	pull_end(c, list_item(timer, struct pull, timer));
}

/* Distance of a node from this one in the circle of node numbers. */
static uint32_t pull_place(const struct control *c, const struct node *n)
{
	return (n->number + NODES_MAX - c->cluster->self->number) % NODES_MAX;
}

/* Sorts by distance, so that nodes which answer all others at once begin with different ones. */
static void pull_insert(struct control *c, struct list *head, struct pull *t)
{
	list_each(l, after, head)
	{
		if (pull_place(c, list_item(l, struct pull, link)->node) <= pull_place(c, t->node))
			continue;
		list_append(l, &t->link); /* before it */
		return;
	}
	list_append(head, &t->link);
}

static bool pull_keep(struct control *c, struct list *head, struct node *n, const struct message *m)
{
	struct pull *t;

	list_each(l, after, head)
	{
		t = list_item(l, struct pull, link);
		if (t->node == n && t->request == m->request)
			return true; /* repeated */
	}
	t = pool_take(&c->participant->pulls.pool);
	if (!t)
		return false;
	t->node = n;
	t->request = m->request;
	t->wanted = m->pull;
	pull_insert(c, head, t);
	timers_set(&c->timers, &t->timer, c->now_ns + PULL_KEEP_NS, pull_fire);
	return true;
}

void pull_request(struct control *c, struct node *n, const struct message *m)
{
	const uint8_t *value;
	int32_t status = pull_find(c, &m->pull, &value);
	struct participant *k = status == -EAGAIN ? pull_participant(c, &m->pull) : NULL;
	struct list *head = k ? &k->pulls : status == -ENOENT ? &c->participant->pulls.early : NULL;

	if (!head || !pull_keep(c, head, n, m))
		pull_answer(c, n, m->request, &m->pull);
}

void pull_begun(struct control *c, struct participant *k)
{
	list_each(l, after, &c->participant->pulls.early)
	{
		struct pull *t = list_item(l, struct pull, link);

		if (t->wanted.generation != k->generation ||
		    !object_id_equal(&t->wanted.id, &k->by_id.id))
			continue;
		list_remove(&t->link);
		pull_insert(c, &k->pulls, t);
	}
}

void pull_done(struct control *c, struct participant *k)
{
	list_each(l, after, &k->pulls) pull_end(c, list_item(l, struct pull, link));
}

void pull_given_up(struct control *c, struct participant *k)
{
	list_each(l, after, &k->pulls)
	{
		list_remove(l);
		list_append(&c->participant->pulls.early, l);
	}
}
