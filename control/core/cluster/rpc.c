/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "core/base/env.h"
#include "state.h"
#include "events.h"
#include "gossip.h"

enum {
	CALLS_PLANS_MAX = 256,	  /* a quarter of the slots for messages */
	CALLS_PLANS_NODE_MAX = 32 /* that one dead node can hold */
};
enum { CALLS_SOON = 4, CALLS_SOON_MORE = 10 }; /* pauses of up to 160 ms, for 1.5 s in all */

void rpc_carve(struct calls *cs, struct arena *a, uint32_t calls_max)
{
	pool_carve(&cs->pool, a, sizeof(struct call), calls_max);
}

static void rpc_transmit(struct control *c, struct call *call)
{
	struct message *m = &call->message;

	call->sent_ns = 0;
	if (!wiring_prepare(c, call))
		return;
	peers_send(c, call->node, m);
	if (m->kind == MESSAGE_HAVE || m->kind == MESSAGE_KEEP)
		m->have.value = NULL;
}

static void rpc_plan_count(struct control *c, const struct call *call, int32_t by)
{
	if (call->message.kind != MESSAGE_COMBINE)
		return;
	assert(by > 0 || (c->cluster->calls.plans > 0 && call->node->plans > 0));
	c->cluster->calls.plans += (uint32_t)by;
	call->node->plans += (uint32_t)by;
}

bool rpc_plans_full(const struct control *c)
{
	return c->cluster->calls.plans >= CALLS_PLANS_MAX;
}

bool rpc_plan_fits(const struct control *c, const struct node *n)
{
	return !rpc_plans_full(c) && n->plans < CALLS_PLANS_NODE_MAX;
}

static void rpc_free(struct control *c, struct call *call)
{
	assert(list_linked(&call->of_node));
	rpc_plan_count(c, call, -1);
	timers_cancel(&c->timers, &call->timer);
	list_remove(&call->of_node);
	call->message.request = 0; /* no answer finds it any more */
	pool_give(&c->cluster->calls.pool, call);
}

static void rpc_fire(struct control *c, struct timer *t);

static void rpc_retry(struct control *c, struct call *call, uint64_t pause_ns)
{
	uint64_t at = c->now_ns + pause_ns;

	timers_set(&c->timers, &call->timer, at < call->deadline_ns ? at : call->deadline_ns,
		   rpc_fire);
}

static void rpc_rearm(struct control *c, struct call *call)
{
	rpc_retry(c, call, c->config.retry_ns);
}

/* The node is alive, but cannot answer the request yet. */
static void rpc_later(struct control *c, struct call *call)
{
	rpc_retry(c, call, env_backoff(c, ++call->redirects));
}

/* Retries after a short, constant pause for a while: both nodes will soon have the same view of the
 * members, or the owner will be settled (settle.c). Growing pauses would double the delay. */
static void rpc_soon(struct control *c, struct call *call)
{
	uint32_t count = ++call->redirects;

	if (count > CALLS_SOON + CALLS_SOON_MORE)
		count -= CALLS_SOON_MORE;
	else if (count > CALLS_SOON)
		count = CALLS_SOON;
	rpc_retry(c, call, env_backoff(c, count));
}

/* [G1.1] */
static void rpc_fire(struct control *c, struct timer *t)
{
	struct call *call = list_item(t, struct call, timer);

	if (c->now_ns >= call->deadline_ns) {
		call->end(c, call, NULL);
		rpc_free(c, call);
		return;
	}
	rpc_transmit(c, call);
	rpc_rearm(c, call);
}

static void rpc_number(struct control *c, struct call *call)
{
	c->cluster->calls.count++;
	call->message.request = c->cluster->calls.count << CALLS_INDEX_BITS |
				pool_index(&c->cluster->calls.pool, call);
}

struct call *rpc_start(struct control *c, struct node *n, const struct message *m,
		       uint32_t value_slot, uint64_t timeout_ns, call_end *end, void *owner)
{
	struct call *call = pool_take(&c->cluster->calls.pool);

	if (!call)
		return NULL;
	assert(n);
	call->node = n;
	call->message = *m;
	rpc_plan_count(c, call, 1);
	rpc_number(c, call);
	if (m->kind == MESSAGE_GET && m->get.why == MESSAGE_GET_LOCATE)
		call->message.request |= CALLS_LOCATE;
	call->value_slot = value_slot;
	call->deadline_ns =
		timeout_ns > UINT64_MAX - c->now_ns ? UINT64_MAX : c->now_ns + timeout_ns;
	call->end = end;
	call->owner = owner;
	list_append(&n->calls, &call->of_node);
	rpc_transmit(c, call);
	rpc_rearm(c, call);
	call->sent_ns = n == c->cluster->self ? 0 : c->now_ns;
	return call;
}

void rpc_reuse(struct control *c, struct call *call, bool later)
{
	rpc_number(c, call);
	call->sent_ns = 0;
	if (!later)
		rpc_transmit(c, call);
}

void rpc_cancel(struct control *c, struct call *call)
{
	if (call)
		rpc_free(c, call);
}

static struct call *rpc_find(struct control *c, const struct node *n, uint64_t request)
{
	uint32_t index = (uint32_t)(request & CALLS_INDEX_MASK);
	struct call *call;

	if (request == 0 || index >= c->cluster->calls.pool.fresh) /* 0: an item that is free */
		return NULL;
	call = pool_at(&c->cluster->calls.pool, index);
	return call->message.request == request && call->node == n ? call : NULL;
}

/* Measures the round trip of a request that is answered at once. A value with it shows the rate. */
static void rpc_measure(struct control *c, const struct call *call)
{
	const struct message *m = &call->message;
	uint32_t node = call->node->number;
	uint64_t taken_ns = c->now_ns - call->sent_ns, rate = 0;

	if (call->sent_ns == 0)
		return;
	wiring_heard(c, call->node, taken_ns);
	if (m->kind == MESSAGE_HAVE)
		rate = fanout_rate(&c->cluster->links.all, m->have.value_bytes, taken_ns);
	if (rate > 0)
		linkstats_saw_rate(&c->cluster->links, node, MESSAGE_NODE_NONE, rate, 0);
	else if (m->kind == MESSAGE_HAVE || m->kind == MESSAGE_STREAM)
		linkstats_saw_start(&c->cluster->links, node, taken_ns);
	if (m->kind == MESSAGE_STREAM)
		stall_saw_answer(&c->cluster->watches, taken_ns);
}

void rpc_answer(struct control *c, struct node *n, const struct message *m)
{
	struct call *call = rpc_find(c, n, m->request);

	if (!call || message_answer_kind(call->message.kind) != m->kind) {
		c->counters.messages_unexpected++;
		wiring_late_answer(c, n, m);
		return;
	}
	rpc_measure(c, call);
	if (!call->end(c, call, m))
		rpc_free(c, call);
	else if (m->kind == MESSAGE_REPLY) /* not now */
		rpc_later(c, call);
	else
		rpc_rearm(c, call);
}

void rpc_resend(struct control *c, struct node *n)
{
	list_each(l, after, &n->calls)
	{
		struct call *call = list_item(l, struct call, of_node);

		rpc_transmit(c, call);
		rpc_rearm(c, call);
	}
}

void rpc_gone(struct control *c, struct node *n)
{
	list_each(l, after, &n->calls)
	{
		struct call *call = list_item(l, struct call, of_node);
		uint32_t kind = call->message.kind;

		if (kind != MESSAGE_LIST && kind != MESSAGE_STATUS && kind != MESSAGE_ANNOUNCED &&
		    (kind != MESSAGE_STAT || call->message.object.generation == 0))
			continue;
		call->deadline_ns = c->now_ns;
		timers_set(&c->timers, &call->timer, c->now_ns, rpc_fire);
	}
}

void rpc_redirected(struct control *c, struct node *n, const struct message *m)
{
	struct call *call = rpc_find(c, n, m->request);

	if (!call || !message_id(&call->message)) {
		c->counters.messages_unexpected++;
		return;
	}
	if (m->members.digest != membership_digest(c))
		gossip_probe(c, n);
	rpc_soon(c, call);
}

void rpc_move(struct control *c)
{
	for (uint32_t i = 0; i < c->cluster->calls.pool.fresh; i++) {
		struct call *call = pool_at(&c->cluster->calls.pool, i);
		const struct object_id *id = message_id(&call->message);
		struct node *owner;

		if (call->message.request == 0 || !id)
			continue;
		owner = ownership_shard(c, id);
		if (owner == call->node)
			continue;
		list_remove(&call->of_node);
		list_append(&owner->calls, &call->of_node);
		call->node = owner;
		call->redirects = 0;
		call->deferred = false;
		if (call->message.kind == MESSAGE_GET)
			call->message.get.epoch = 0;
		if (call->message.kind == MESSAGE_HAVE || call->message.kind == MESSAGE_HOLD ||
		    call->message.kind == MESSAGE_RECALL || call->message.kind == MESSAGE_GROUP)
			call->cookie = membership_epoch(c, owner);
		rpc_transmit(c, call);
		rpc_rearm(c, call);
	}
}
