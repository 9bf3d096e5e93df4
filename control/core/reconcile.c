/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

#define RECONCILE_NS UINT64_C(20000000)

static void reconcile_fire(struct control *c, struct timer *t);

void reconcile_stamp(struct control *c, struct node *n, struct message *m)
{
	uint64_t life = members_life(c, n);

	if (m->kind == MESSAGE_HAVE)
		m->have.life = life;
	else if (m->kind == MESSAGE_GET && m->get.life == 0)
		m->get.life = life;
	else if (m->kind != MESSAGE_GET)
		return;
	if (n->told_life == 0)
		n->told_life = life; /* there is nothing older */
}

void reconcile_asked(struct node *n)
{
	if (n->told_life == 0)
		n->told_life = 1;
}

static void reconcile_later(struct control *c)
{
	timers_set(&c->timers, &c->reconcile.timer,
		   c->now_ns + (c->attached ? RECONCILE_NS : c->config.retry_ns), reconcile_fire);
}

void reconcile_more(struct control *c)
{
	c->reconcile.swept = false;
}

void reconcile_begin(struct control *c)
{
	reconcile_more(c);
	reconcile_later(c);
}

static bool reconcile_told(struct control *c, struct call *call, const struct message *answer)
{
	if (answer)
		call->node->told_life = call->cookie;
	return false; /* without: its connection was lost, and it asks or all is told anew */
}

/* Whether a creator may come back whose object that node keeps the name of: it is announced then,
 * and would be ended for all before that. */
static bool reconcile_unclaimed(struct control *c, const struct node *n)
{
	list_each(l, after, &c->objects.unclaimed)
	{
		struct object *o = list_item(l, struct object, of_session);

		if (control_shard(c, &c->table->slot[objects_slot(c, o)].id) == n)
			return true;
	}
	return false;
}

/* Whether a HAVE to that node is out of an object that it may have been told of in an earlier life:
 * when it is answered, the object is told in this one. It may have found no message slot, and be
 * sent again after what we say now. */
static bool reconcile_waits(const struct control *c, const struct node *n)
{
	list_each(l, after, &n->calls)
	{
		const struct call *call = list_item(l, struct call, of_node);

		if ((call->message.kind == MESSAGE_HAVE &&
		     call->message.request >> CALLS_INDEX_BITS <= c->reconcile.calls) ||
		    call->message.kind == MESSAGE_TOLD)
			return true;
	}
	return false;
}

/* Returns false when that must wait. */
static bool reconcile_tell(struct control *c, struct node *n)
{
	struct message m = {.kind = MESSAGE_TOLD, .told.life = members_life(c, n)};
	struct call *call;

	if (n->told_life == 0 || n->told_life == m.told.life)
		return true;
	if (reconcile_unclaimed(c, n) || reconcile_waits(c, n))
		return false;
	call = calls_start(c, n, &m, TABLE_SLOT_NONE, c->config.directory_ns, reconcile_told, NULL);
	if (call)
		call->cookie = m.told.life;
	return call != NULL;
}

static void reconcile_fire(struct control *c, struct timer *t)
{
	bool done = c->objects.sweep == TABLE_SLOT_NONE && list_empty(&c->objects.dirty) &&
		    !c->members.changed; /* else lives have risen, and the sweep is to come */
	struct node *n;

	if (c->table == NULL)
		return; /* an attach begins it */
	if (done && !c->reconcile.swept) {
		c->reconcile.swept = true;
		c->reconcile.calls = c->calls.count;
	}
	if (done)
		for (uint32_t i = 0; (n = reshard_next(c, &i)) != NULL; i++)
			done &= reconcile_tell(c, n);
	if (!done || !c->attached)
		reconcile_later(c);
}
