/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announces the holds of this node's leases to their shard owners. By state, not by a log: a hold
 * that changes is marked dirty, and its present state is sent in its turn. The answer is awaited
 * without a limit. One call per hold is out at a time, so that no HOLD arrives after the DELETE
 * that ends it.
 */
#include <errno.h>
#include "state.h"
#include "kept.h"

bool tell_unacked(struct control *c, const struct hold *h)
{
	const struct node *owner = ownership_shard(c, &h->id);

	return h->owner != owner->number + 1 || h->owner_epoch != membership_epoch(c, owner);
}

bool tell_acked(const struct control *c)
{
	if (c->lease->leases.sweep != UINT32_MAX)
		return false;
	list_each(i, after, &c->lease->leases.dirty)
	{
		if (list_item(i, struct hold, dirty)->state == HOLD_HELD)
			return false;
	}
	return true;
}

void tell_tell_all(struct control *c)
{
	c->lease->leases.sweep = 0;
}

void tell_fill(struct control *c, const struct call *call, struct message_hold *m)
{
	const struct hold *h = call->owner;

	if (!h->lease && h->due_ns != UINT64_MAX)
		m->left_ns = h->due_ns > c->now_ns ? h->due_ns - c->now_ns : 0;
}

/* ---- let go ---------------------------------------------------------------------------------- */

static bool tell_dropped(struct control *c, struct call *call, const struct message *answer)
{
	struct hold *h = call->owner;

	/* no deadline: never NULL */
	if (answer->reply.status == -EHOSTUNREACH) { /* it goes when the owner knows; nobody waits,
						      * and others are sent meanwhile */
		holds_answer(c, h, 0, 0, "");
		c->lease->leases.sending -= !h->parked;
		h->parked = true;
	}
	if (answer->reply.status == -EAGAIN || answer->reply.status == -EHOSTUNREACH)
		return true;
	c->lease->leases.sending -= !h->parked;
	h->parked = false;
	h->call = NULL;
	holds_answer(c, h, answer->reply.status == -ENOENT ? 0 : answer->reply.status, 0,
		     answer->reply.text);
	holds_free(c, h);
	return false;
}

static struct call *tell_say_drop(struct control *c, struct hold *h)
{
	struct message m = {.kind = MESSAGE_DELETE};

	m.object.id = h->id;
	m.object.generation = h->generation;
	m.object.lapsed = h->lease ? MESSAGE_LAPSED_LEASE : MESSAGE_LAPSED_TIME;
	m.object.lease = h->lease ? h->lease->number : 0;
	return rpc_start(c, ownership_shard(c, &h->id), &m, TABLE_SLOT_NONE, UINT64_MAX,
			 tell_dropped, h);
}

/* ---- held ------------------------------------------------------------------------------------ */

/* The owner knows of it. */
static void tell_agreed(struct control *c, struct hold *h, const struct call *call,
			uint64_t generation)
{
	h->owner = call->node->number + 1;
	h->owner_epoch = call->cookie;
	h->generation = generation;
	if (h->state == HOLD_ASKED)
		h->state = HOLD_HELD;
	kept_hold(c, h);
	holds_answer(c, h, 0, generation, "");
	if (h->lease && h->lease->ended)
		h->state = HOLD_DROPPING;
	if (h->state == HOLD_DROPPING)
		holds_dirty(c, h);
	else if (tell_unacked(c, h)) { /* the owner, or the epoch, has changed meanwhile */
		c->lease->ops->announce_more(c);
		holds_dirty(c, h);
	}
}

static bool tell_heard(struct control *c, struct call *call, const struct message *answer)
{
	struct hold *h = call->owner;
	int32_t status = answer->reply.status; /* no deadline: never NULL */

	if (status == -EAGAIN || (status == -ENOSPC && h->state == HOLD_HELD)) {
		call->deferred = true;
		return true;
	}
	c->lease->leases.sending--;
	h->call = NULL;
	if (status == 0 && answer->reply.generation != 0) {
		tell_agreed(c, h, call, answer->reply.generation);
		return false;
	}
	holds_answer(c, h, status, 0, answer->reply.text);
	if (h->generation != 0 && status == -ENOSPC) { /* a changed time to live stays as it was */
		h->state = HOLD_HELD;
		return false;
	}
	holds_free(c, h);
	return false;
}

static struct call *tell_say_hold(struct control *c, struct hold *h)
{
	struct message m = {.kind = MESSAGE_HOLD};
	struct node *owner = ownership_shard(c, &h->id);
	struct call *call;

	m.hold.id = h->id;
	m.hold.generation = h->generation;
	m.hold.left_ns = UINT64_MAX;
	m.hold.known = h->state == HOLD_HELD;
	m.hold.joins = h->joins;
	if (h->lease)
		holds_describe(h->lease, &m.hold.lease);
	call = rpc_start(c, owner, &m, TABLE_SLOT_NONE, UINT64_MAX, tell_heard, h);
	if (call)
		call->cookie = membership_epoch(c, owner);
	return call;
}

/* ---- in turn --------------------------------------------------------------------------------- */

static void tell_sweep(struct control *c)
{
	struct leases *ls = &c->lease->leases;

	while (ls->sweep != UINT32_MAX && list_empty(&ls->dirty)) {
		uint32_t end = ls->sweep + 1024;

		for (; ls->sweep < ls->holds.fresh && ls->sweep < end; ls->sweep++) {
			struct hold *h = pool_at(&ls->holds, ls->sweep);

			if (h->state == HOLD_HELD && tell_unacked(c, h))
				holds_dirty(c, h);
		}
		if (ls->sweep >= ls->holds.fresh)
			ls->sweep = UINT32_MAX;
	}
}

void tell_pump(struct control *c)
{
	struct leases *ls = &c->lease->leases;

	if (!c->table || !membership_joined(c))
		return;
	tell_sweep(c);
	while (ls->sending < HOLDS_SENDING_MAX && !list_empty(&ls->dirty)) {
		struct hold *h = list_item(list_first(&ls->dirty), struct hold, dirty);

		list_remove(&h->dirty);
		h->call = h->state == HOLD_DROPPING ? tell_say_drop(c, h) : tell_say_hold(c, h);
		if (!h->call) { /* too many calls: in another turn */
			list_append(&ls->dirty, &h->dirty);
			return;
		}
		ls->sending++;
		tell_sweep(c);
	}
}
