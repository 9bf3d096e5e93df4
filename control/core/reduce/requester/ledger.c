/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduces that have ended with a result: which sources it holds outlives the coordinator. The
 * requester remembers it, and reports it to each new owner of the target (RECALL). Called by
 * requester.c, by sessions, and when the members change.
 */
#include <errno.h>
#include "state.h"

enum { RECALLS_MAX = 32 };

static struct requester *ledger_find(const struct list *head, const struct object_id *target)
{
	for (struct list *l = head->prev; l != head; l = l->prev) {
		struct requester *r = list_item(l, struct requester, link);

		if (object_id_equal(&r->reduce.target, target))
			return r;
	}
	return NULL;
}

struct requester *requester_find(struct control *c, const struct object_id *target)
{
	return ledger_find(&c->requester->requesters.active, target);
}

struct requester *requester_recall(struct control *c, const struct object_id *target)
{
	return ledger_find(&c->requester->requesters.kept, target);
}

void requester_note(struct requester *r, const struct message_used *m)
{
	uint32_t k = 0;

	r->generation = m->generation;
	memset(r->used, 0, sizeof(r->used));
	for (uint32_t i = 0; i < r->reduce.count && k < m->count; i++) {
		if (!object_id_equal(&r->reduce.sources[i], &m->sources[k]))
			continue;
		r->used[i / 8] |= (uint8_t)(1u << (i % 8));
		k++;
	}
}

void requester_used(struct control *c, const struct requester *r, struct message_used *m)
{
	*m = (struct message_used){.target = r->reduce.target,
				   .generation = r->generation,
				   .node = MESSAGE_NODE_NONE,
				   .asked = r->reduce.asked,
				   .sources = c->requester->requesters.used};
	for (uint32_t i = 0; i < r->reduce.count; i++)
		if (r->used[i / 8] >> (i % 8) & 1)
			c->requester->requesters.used[m->count++] = r->reduce.sources[i];
}

void requester_keep(struct control *c, struct requester *r)
{
	const struct node *owner = ownership_shard(c, &r->reduce.target);

	r->state = REQUESTER_KEPT;
	list_remove(&r->link);
	list_append(&c->requester->requesters.kept, &r->link);
	if (r->lost_ns == 0) { /* the owner itself reported the end */
		r->acked_by = owner->number + 1;
		r->acked_epoch = membership_epoch(c, owner);
	}
	c->requester->requesters.unacked |= r->lost_ns != 0;
}

void requester_forget(struct control *c, struct requester *r)
{
	rpc_cancel(c, r->call);
	c->requester->requesters.sending -= r->state == REQUESTER_KEPT && r->call;
	timers_cancel(&c->timers, &r->timer);
	timers_cancel(&c->timers, &r->watch);
	list_remove(&r->link);
	pool_give(&c->requester->requesters.pool, r);
}

/* ---- RECALL --------------------------------------------------------------------------------- */

void requester_fill_recall(struct control *c, struct call *call)
{
	requester_used(c, call->owner, &call->message.used);
}

static void ledger_retry(struct control *c, struct timer *t)
{
	c->requester->requesters.unacked = true;
}

static bool ledger_acked(struct control *c, struct call *call, const struct message *answer)
{
	struct requester *r = call->owner;

	r->call = NULL;
	c->requester->requesters.sending--;
	c->requester->requesters.unacked = true; /* the next ones */
	if (answer && answer->reply.status == -ESTALE) {
		requester_forget(c, r); /* the target was deleted */
		return false;
	}
	if (answer && answer->reply.status ==
			      -EAGAIN) { /* the target is being rebuilt, or there is no room */
		timers_set(&c->timers, &r->timer, c->now_ns + c->config.retry_ns, ledger_retry);
		return false;
	}
	r->acked_by = call->node->number + 1;
	r->acked_epoch = call->cookie;
	return false;
}

static void ledger_send(struct control *c, struct requester *r)
{
	struct message m = {.kind = MESSAGE_RECALL};
	struct node *owner = ownership_shard(c, &r->reduce.target);

	if (r->call || r->timer.position ||
	    (r->acked_by == owner->number + 1 && r->acked_epoch == membership_epoch(c, owner)))
		return;
	m.used.target = r->reduce.target;
	r->call = rpc_start(c, owner, &m, TABLE_SLOT_NONE, c->config.directory_ns, ledger_acked, r);
	if (!r->call) { /* too many: soon */
		c->requester->requesters.unacked = true;
		return;
	}
	r->call->cookie = membership_epoch(c, owner);
	c->requester->requesters.sending++;
}

void requesters_tell(struct control *c)
{
	c->requester->requesters.unacked = true;
}

void requesters_pump(struct control *c)
{
	if (!c->requester->requesters.unacked || !membership_joined(c))
		return;
	c->requester->requesters.unacked = false;
	list_each(l, after, &c->requester->requesters.kept)
	{
		if (c->requester->requesters.sending >= RECALLS_MAX)
			return;
		ledger_send(c, list_item(l, struct requester, link));
	}
}
