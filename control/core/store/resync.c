/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"
#include "core/lease/state.h"

enum { RECONCILE_SENDING_MAX = 64 }; /* leaves message slots for other requests */

static void resync_fire(struct control *c, struct timer *t);

void resync_stamp(struct control *c, struct node *n, struct message *m)
{
	uint64_t epoch = membership_epoch(c, n);

	if (m->kind == MESSAGE_HAVE)
		m->have.epoch = epoch;
	else if (m->kind == MESSAGE_HOLD)
		m->hold.epoch = epoch;
	else if (m->kind == MESSAGE_GET && m->get.epoch == 0)
		m->get.epoch = epoch;
	else if (m->kind != MESSAGE_GET)
		return;
	if (n->acked_epoch == 0)
		n->acked_epoch = epoch; /* there is nothing older */
}

void resync_asked(struct node *n)
{
	if (n->acked_epoch == 0)
		n->acked_epoch = 1;
}

static void resync_later(struct control *c)
{
	timers_set(&c->timers, &c->store->reconcile.timer,
		   c->now_ns + (c->attached ? RECONCILE_NS : c->config.retry_ns), resync_fire);
}

void resync_more(struct control *c)
{
	c->store->reconcile.swept = false;
}

void resync_begin(struct control *c)
{
	announcer_sweep_all(c);
	resync_more(c);
	resync_later(c);
}

static bool resync_acked(struct control *c, struct call *call, const struct message *answer)
{
	c->store->reconcile.sending--;
	if (answer) {
		call->node->acked_epoch = call->cookie;
		call->node->acked_view = call->message.announced.view;
	}
	return false; /* no answer: the connection was lost, and all is announced again */
}

/* Whether a creator may come back for an object of that node's shard. Then the object is announced;
 * until then the owner must not take it for gone. */
static bool resync_unclaimed(struct control *c, const struct node *n)
{
	list_each(l, after, &c->store->objects.unclaimed)
	{
		struct object *o = list_item(l, struct object, of_session);

		if (ownership_shard(c, &c->table->slot[objects_slot(c, o)].id) == n)
			return true;
	}
	return false;
}

/* How much ANNOUNCED may say to a node while older HAVEs to it are unanswered. They may be of
 * objects that were announced in an earlier epoch; and one that found no message slot is sent again
 * after the ANNOUNCED. */
enum resync_may {
	RECONCILE_ALL,	   /* the present epoch: each object is acknowledged in it */
	RECONCILE_VIEW,	   /* only the view: an open HAVE waits there for a decision that may
			    * depend on this ANNOUNCED */
	RECONCILE_NOTHING, /* no ANNOUNCED now */
};

static enum resync_may resync_may(const struct control *c, const struct node *n)
{
	enum resync_may may = RECONCILE_ALL;

	list_each(l, after, &n->calls)
	{
		const struct call *call = list_item(l, struct call, of_node);
		const struct message *m = &call->message;

		if (m->kind == MESSAGE_ANNOUNCED)
			return RECONCILE_NOTHING;
		if (m->kind == MESSAGE_HOLD && m->hold.generation == 0)
			continue; /* a new one */
		if ((m->kind != MESSAGE_HAVE && m->kind != MESSAGE_HOLD) ||
		    m->request >> CALLS_INDEX_BITS > c->store->reconcile.calls)
			continue;
		if ((m->kind == MESSAGE_HOLD || !m->have.create) && !call->deferred)
			return RECONCILE_NOTHING;
		may = RECONCILE_VIEW;
	}
	return may;
}

/* Returns false when that must wait. */
static bool resync_send(struct control *c, struct node *n)
{
	/* configured owners do not wait for a view */
	uint64_t view = c->config.shards > 0 ? 0 : c->cluster->members.view,
		 epoch = membership_epoch(c, n);
	bool known = n->acked_epoch == 0 || n->acked_epoch == epoch;
	struct message m = {.kind = MESSAGE_ANNOUNCED, .announced.view = view};
	enum resync_may may;
	struct call *call;

	if (known && n->acked_view == view)
		return true;
	if (c->store->reconcile.sending >= RECONCILE_SENDING_MAX || resync_unclaimed(c, n))
		return false;
	may = resync_may(c, n);
	if (may == RECONCILE_NOTHING || (may == RECONCILE_VIEW && n->acked_view == view))
		return false;
	m.announced.epoch = may == RECONCILE_ALL ? epoch : n->acked_epoch;
	call = rpc_start(c, n, &m, TABLE_SLOT_NONE, c->config.directory_ns, resync_acked, NULL);
	if (call) {
		call->cookie = m.announced.epoch;
		c->store->reconcile.sending++;
	}
	return call && may == RECONCILE_ALL;
}

static void resync_fire(struct control *c, struct timer *t)
{
	bool done = !announcer_sweeping(c) && list_empty(&c->store->objects.announcer.dirty) &&
		    tell_acked(c) &&
		    !c->cluster->members.changed; /* else epochs have risen, and a sweep follows */
	struct node *n;

	if (!c->table)
		return; /* an attach begins it */
	if (done && !c->store->reconcile.swept) {
		c->store->reconcile.swept = true;
		c->store->reconcile.calls = c->cluster->calls.count;
	}
	if (done)
		for (uint32_t i = 0; (n = ownership_next(c, &i)) != NULL; i++)
			done &= resync_send(c, n);
	if (!done || !c->attached)
		resync_later(c);
}
