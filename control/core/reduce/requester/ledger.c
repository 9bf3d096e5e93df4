/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduces that have ended with a result: which sources it holds outlives the coordinator. The
 * requester remembers it, and reports it to each new owner of the target (RECALL), by the
 * announcer. Called by requester.c and by sessions.
 */
#include <errno.h>
#include "state.h"

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
	if (r->lost_ns == 0) /* the owner itself reported the end */
		announcer_acked(&r->announced, owner, membership_epoch(c, owner));
	else
		announcer_mark(&c->requester->requesters.announcer, &r->announced);
}

void requester_forget(struct control *c, struct requester *r)
{
	rpc_cancel(c, r->call);
	announcer_forget(c, &c->requester->requesters.announcer, &r->announced);
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
	struct requester *r = list_item(t, struct requester, timer);

	announcer_mark(&c->requester->requesters.announcer, &r->announced);
}

static void ledger_look(struct control *c, uint32_t index)
{
	struct requester *r = pool_at(&c->requester->requesters.pool, index);

	if (list_linked(&r->link) && r->state == REQUESTER_KEPT && !r->timer.position)
		announcer_check(c, &c->requester->requesters.announcer, &r->announced,
				&r->reduce.target);
}

static bool ledger_acked(struct control *c, struct call *call, const struct message *answer)
{
	struct requester *r = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	announcer_heard(&c->requester->requesters.announcer, &r->announced);
	if (status == -ESTALE) { /* the target was deleted */
		requester_forget(c, r);
	} else if (status == -EAGAIN) { /* the target is being rebuilt, or there is no room */
		timers_set(&c->timers, &r->timer, c->now_ns + c->config.retry_ns, ledger_retry);
	} else {
		announcer_acked(&r->announced, call->node, call->cookie);
		announcer_check(c, &c->requester->requesters.announcer, &r->announced,
				&r->reduce.target);
	}
	return false;
}

static struct call *ledger_say(struct control *c, struct announced *a)
{
	struct requester *r = list_item(a, struct requester, announced);
	struct message m = {.kind = MESSAGE_RECALL, .used.target = r->reduce.target};

	return rpc_start(c, ownership_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
			 c->config.directory_ns, ledger_acked, r);
}

void ledger_init(struct control *c)
{
	announcer_init(c, &c->requester->requesters.announcer, &c->requester->requesters.pool.fresh,
		       32, ledger_look, ledger_say);
}
