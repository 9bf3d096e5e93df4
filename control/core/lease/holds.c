/* SPDX-License-Identifier: BSD-3-Clause */
/* The holds of this node's leases: their table, and their states (leases.h). */
#include <errno.h>
#include "state.h"
#include "kept.h"

static struct hold **holds_bucket(struct control *c, const struct object_id *id)
{
	const struct leases *l = &c->lease->leases;

	return &l->bucket[(uint32_t)object_id_hash(l->bucket_key, id) & l->bucket_mask];
}

struct hold *holds_find(struct control *c, const struct object_id *id, const struct lease *lease)
{
	struct hold *h = *holds_bucket(c, id);

	while (h && (h->lease != lease || !object_id_equal(&h->id, id)))
		h = h->same_bucket;
	return h;
}

struct hold *holds_take(struct control *c, struct lease *lease, const struct object_id *id,
			enum hold_state state)
{
	struct hold *h = pool_take(&c->lease->leases.holds), **bucket = holds_bucket(c, id);

	if (!h)
		return NULL;
	h->id = *id;
	h->lease = lease;
	h->state = state;
	h->due_ns = UINT64_MAX;
	h->same_bucket = *bucket;
	*bucket = h;
	if (lease)
		list_append(&lease->holds, &h->of_lease);
	return h;
}

void holds_free(struct control *c, struct hold *h)
{
	struct hold **at = holds_bucket(c, &h->id);
	struct lease *lease = h->lease;

	announcer_forget(c, &c->lease->leases.announcer, &h->announced);
	timers_cancel(&c->timers, &h->timer);
	list_remove(&h->of_lease);
	while (*at != h)
		at = &(*at)->same_bucket;
	*at = h->same_bucket;
	h->state = HOLD_FREE;
	kept_hold(c, h);
	pool_give(&c->lease->leases.holds, h);
	if (lease)
		leases_settle(c, lease);
}

void holds_dirty(struct control *c, struct hold *h)
{
	if (!h->announced.call && h->state != HOLD_CREATING) /* the end of either looks again */
		announcer_mark(&c->lease->leases.announcer, &h->announced);
}

void holds_drop(struct control *c, struct hold *h)
{
	if (h->state == HOLD_CREATING)
		return; /* dropped when its creation has ended */
	if (h->state == HOLD_ASKED && !h->announced.call) {
		holds_answer(c, h, -ESTALE, 0, "the lease has ended: open another one");
		holds_free(c, h);
		return;
	}
	h->state = HOLD_DROPPING;
	timers_cancel(&c->timers, &h->timer);
	holds_dirty(c, h);
}

static void holds_fire(struct control *c, struct timer *t)
{
	holds_drop(c, list_item(t, struct hold, timer));
}

void holds_due(struct control *c, struct hold *h, uint64_t due_ns)
{
	h->due_ns = due_ns;
	timers_set(&c->timers, &h->timer, due_ns, holds_fire);
}

void holds_answer(struct control *c, struct hold *h, int32_t status, uint64_t generation,
		  const char *text)
{
	void *waiter = h->waiter;

	h->waiter = NULL;
	if (waiter)
		wiring_lease_answer(c, waiter, h->waiter_number, status, generation, text);
}

void holds_gone(struct control *c, const struct object_id *id, uint64_t generation)
{
	for (struct hold *h = *holds_bucket(c, id), *next; h; h = next) {
		next = h->same_bucket;
		if (h->state == HOLD_HELD && h->generation == generation &&
		    object_id_equal(&h->id, id))
			holds_free(c, h);
	}
}

/* ---- creations ------------------------------------------------------------------------------- */

static struct hold *holds_creating(struct control *c, uint64_t number, const struct object_id *id)
{
	struct hold *h = *holds_bucket(c, id);

	while (h && (!h->lease || h->lease->number != number || !object_id_equal(&h->id, id)))
		h = h->same_bucket;
	return h;
}

bool holds_create_begin(struct control *c, uint64_t number, const struct object_id *id,
			uint64_t generation, struct message_lease *out)
{
	struct hold *h = holds_creating(c, number, id);
	struct lease *l = h ? h->lease : leases_by_number(c, number);

	if (!l || l->ended)
		return false;
	if (h && (h->state == HOLD_ASKED || h->state == HOLD_DROPPING))
		return false;
	holds_describe(l, out);
	if (h && h->state == HOLD_HELD) /* a hold of an existing object, should this create fail */
		return true;
	if (!h)
		h = holds_take(c, l, id, HOLD_CREATING);
	if (!h)
		return false;
	h->generation = generation;
	kept_hold(c, h);
	return true;
}

void holds_describe(const struct lease *l, struct message_lease *out)
{
	out->number = l->number;
	out->ttl_ns = l->ttl_ns;
	memcpy(out->name, l->name, sizeof(out->name));
}

void holds_create_made(struct control *c, uint64_t number, const struct object_id *id,
		       uint64_t generation, const struct node *owner, uint64_t epoch)
{
	struct hold *h = number ? holds_creating(c, number, id) : NULL;

	if (!h || (h->state != HOLD_CREATING && h->state != HOLD_HELD))
		return;
	h->state = HOLD_HELD;
	h->generation = generation;
	announcer_acked(&h->announced, owner, epoch);
	kept_hold(c, h);
	if (h->lease->ended)
		holds_drop(c, h);
	else if (announcer_unacked(c, &h->announced, &h->id))
		holds_dirty(c, h);
}

void holds_create_not(struct control *c, uint64_t number, const struct object_id *id, bool unsure)
{
	struct hold *h = number ? holds_creating(c, number, id) : NULL;

	if (!h || h->state != HOLD_CREATING)
		return;
	if (!unsure) {
		holds_free(c, h);
		return;
	}
	h->state = HOLD_HELD;
	holds_drop(c, h);
}
