/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to a SEAL of a small object waits until the directory has its value. Called by put.c
 * and by the store's events. */
#include "state.h"

static void seal_fire(struct control *c, struct timer *t)
{
	struct wait *w = list_item(t, struct wait, timer);

	waits_place(c, w, objects_slot(c, w->object));
}

bool seal_waits(struct control *c, uint32_t slot)
{
	const struct object_slot *s = &c->table->slot[slot];

	return s->size <= OBJECT_INLINE_MAX && c->cluster->members.live_count > 1 && c->attached &&
	       membership_joined(c);
}

bool seal_await(struct control *c, struct wait *w, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	if (!seal_waits(c, slot))
		return false;
	w->sealed = true;
	w->pin = SESSION_PIN_NONE; /* the creator has set it */
	w->object = o;
	if (!list_linked(&w->await.link))
		list_append(&o->waits, &w->await.link);
	timers_set(&c->timers, &w->timer, c->now_ns + SEAL_NS, seal_fire);
	return true;
}

void seal_acked(struct control *c, struct object *o)
{
	list_each(l, after, &o->waits)
	{
		struct wait *w = list_item(l, struct wait, await.link);

		if (w->sealed)
			waits_place(c, w, objects_slot(c, o));
	}
}
