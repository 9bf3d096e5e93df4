/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "room.h"
#include "events.h"

#define GUARD_SLACK_NS UINT64_C(1000000)
#define GUARD_MUTE_NS  UINT64_C(1000000000)

enum { GUARD_PATIENCE = 5 }; /* answers without a guard: it may be about to tell the directory */

static struct node *guard_node(struct control *c, const struct object *o)
{
	return o->guard == 0 ? NULL : peers_node(c, o->guard - 1);
}

bool guard_elsewhere(struct control *c, const struct object *o)
{
	const struct node *n = guard_node(c, o);

	return n && n->member == MEMBER_ALIVE && n->member_incarnation == o->guard_incarnation &&
	       (o->guard_store == 0 || n->store_incarnation == o->guard_store);
}

/* ---- a sign of life ---------------------------------------------------------------------------
 */

void guard_heard(struct control *c, struct node *n, uint64_t taken_ns)
{
	uint64_t fresh_ns = c->now_ns + taken_ns + GUARD_SLACK_NS;

	n->mute_ns = 0;
	if (taken_ns <= GUARD_ANSWER_NS && fresh_ns > n->fresh_ns)
		n->fresh_ns = fresh_ns;
}

static bool guard_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct node *n = call->node;

	c->store->guards.asks--;
	n->asking = false;
	n->mute_ns = answer ? 0 : c->now_ns + GUARD_MUTE_NS;
	c->store->ops->room(c);
	return false;
}

/* Any question will do. */
static bool guard_ask(struct control *c, struct node *n)
{
	struct message m = {.kind = MESSAGE_STATUS};

	if (n->asking)
		return true;
	if (n == c->cluster->self || !c->attached || c->now_ns < n->mute_ns)
		return false;
	n->asking = calls_start(c, n, &m, TABLE_SLOT_NONE, GUARD_ANSWER_NS, guard_answered, NULL) !=
		    NULL;
	c->store->guards.asks += n->asking;
	return n->asking;
}

enum guard_life guard_lives(struct control *c, const struct object *o)
{
	struct node *n = guard_node(c, o);

	if (!guard_elsewhere(c, o))
		return GUARD_GONE;
	if (c->now_ns < n->fresh_ns)
		return GUARD_LIVES;
	return guard_ask(c, n) ? GUARD_ASKED : GUARD_GONE;
}

/* ---- who guards -------------------------------------------------------------------------------
 */

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
	if (guard == c->cluster->self->number + 1) {
		if (c->table->slot[slot].state == OBJECT_SEALED)
			objects_appoint(c, slot);
		return;
	}
	o->guard = guard;
	n = guard_node(c, o);
	o->guard_incarnation = n ? n->member_incarnation : 0;
	o->guard_store = n ? n->store_incarnation : 0;
	o->unguarded = n ? 0 : o->unguarded + 1;
}

static void guard_fire(struct control *c, struct timer *t)
{
	list_each(l, after, &c->store->objects.lru)
	{
		struct object *o = list_item(l, struct object, link);

		if (!guard_elsewhere(c, o) && o->announce == NULL)
			objects_announce(c, objects_slot(c, o));
	}
	guard_watch(c);
}

void guard_watch(struct control *c)
{
	if (c->store->objects.guard.position == 0 && !list_empty(&c->store->objects.lru))
		timers_set(&c->timers, &c->store->objects.guard, c->now_ns + c->config.guard_ns,
			   guard_fire);
}
