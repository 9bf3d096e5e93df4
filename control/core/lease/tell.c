/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announces the holds of this node's leases to their shard owners, by the announcer. The answer is
 * awaited without a limit. One call per hold is out at a time, so that no HOLD arrives after the
 * DELETE that ends it.
 */
#include <errno.h>
#include "state.h"
#include "kept.h"

bool tell_acked(const struct control *c)
{
	list_each(i, after, &c->lease->leases.announcer.dirty)
	{
		if (list_item(i, struct hold, announced.dirty)->state == HOLD_HELD)
			return false;
	}
	return true;
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
		announcer_park(&c->lease->leases.announcer, &h->announced);
	}
	if (answer->reply.status == -EAGAIN || answer->reply.status == -EHOSTUNREACH)
		return true;
	announcer_heard(&c->lease->leases.announcer, &h->announced);
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
	announcer_acked(&h->announced, call->node, call->cookie);
	h->generation = generation;
	if (h->state == HOLD_ASKED)
		h->state = HOLD_HELD;
	kept_hold(c, h);
	holds_answer(c, h, 0, generation, "");
	if (h->lease && h->lease->ended)
		h->state = HOLD_DROPPING;
	if (h->state == HOLD_DROPPING)
		holds_dirty(c, h);
	else if (announcer_unacked(c, &h->announced,
				   &h->id)) { /* the owner, or the epoch, has changed meanwhile */
		wiring_announce_more(c);
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
	announcer_heard(&c->lease->leases.announcer, &h->announced);
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

	m.hold.id = h->id;
	m.hold.generation = h->generation;
	m.hold.left_ns = UINT64_MAX;
	m.hold.known = h->state == HOLD_HELD;
	m.hold.joins = h->joins;
	if (h->lease)
		holds_describe(h->lease, &m.hold.lease);
	return rpc_start(c, ownership_shard(c, &h->id), &m, TABLE_SLOT_NONE, UINT64_MAX, tell_heard,
			 h);
}

/* ---- in turn --------------------------------------------------------------------------------- */

static void tell_look(struct control *c, uint32_t index)
{
	struct hold *h = pool_at(&c->lease->leases.holds, index);

	if (h->state == HOLD_HELD && announcer_unacked(c, &h->announced, &h->id))
		holds_dirty(c, h);
}

static struct call *tell_say(struct control *c, struct announced *a)
{
	struct hold *h = list_item(a, struct hold, announced);

	return h->state == HOLD_DROPPING ? tell_say_drop(c, h) : tell_say_hold(c, h);
}

void tell_init(struct control *c)
{
	announcer_init(c, &c->lease->leases.announcer, &c->lease->leases.holds.fresh, 64, tell_look,
		       tell_say);
}
