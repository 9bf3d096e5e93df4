/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

enum { GUARD_PATIENCE = 5 }; /* answers without a guard: it may be about to tell the directory */

static const struct node *guard_node(struct control *c, const struct object *o)
{
	return o->guard == 0 ? NULL : peers_node(c, o->guard - 1);
}

bool guard_elsewhere(struct control *c, const struct object *o)
{
	const struct node *n = guard_node(c, o);

	return n && n->member == MEMBER_ALIVE && n->member_incarnation == o->guard_incarnation;
}

void guard_describe(struct control *c, uint32_t slot, struct message_have *have)
{
	const struct object_slot *s = &c->table->slot[slot];
	const struct object *o = objects_at(c, slot);
	const struct node *n = guard_node(c, o);

	have->guards = s->state == OBJECT_CREATING || (s->flags & OBJECT_FLAG_PRIMARY) != 0;
	have->orphan = s->state == OBJECT_SEALED && !have->guards &&
		       ((n && !members_live(n)) || o->unguarded >= GUARD_PATIENCE);
}

void guard_told(struct control *c, uint32_t slot, uint32_t guard)
{
	struct object *o = objects_at(c, slot);
	const struct node *n;

	if (c->table->slot[slot].flags & OBJECT_FLAG_PRIMARY)
		return;
	if (guard == c->self->number + 1) {
		if (c->table->slot[slot].state == OBJECT_SEALED)
			objects_appoint(c, slot);
		return;
	}
	o->guard = guard;
	n = guard_node(c, o);
	o->guard_incarnation = n ? n->member_incarnation : 0;
	o->unguarded = n ? 0 : o->unguarded + 1;
}

static void guard_fire(struct control *c, struct timer *t)
{
	list_each(l, after, &c->objects.lru)
	{
		struct object *o = list_item(l, struct object, link);

		if (!guard_elsewhere(c, o) && o->announce == NULL)
			objects_announce(c, objects_slot(c, o));
	}
	guard_watch(c);
}

void guard_watch(struct control *c)
{
	if (c->objects.guard.position == 0 && !list_empty(&c->objects.lru))
		timers_set(&c->timers, &c->objects.guard, c->now_ns + c->config.guard_ns,
			   guard_fire);
}
