/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/env.h"
#include "state.h"
#include "events.h"

enum {
	REPLICA_PATIENCE = 5, /* answers that name none before it counts as lost: its node may be
			       * about to announce it */
	REPLICA_STEP = 16384, /* slots that one turn looks at */
};

static struct node *replica_node(struct control *c, const struct object *o)
{
	return o->replica == 0 ? NULL : peers_node(c, o->replica - 1);
}

bool replica_elsewhere(struct control *c, const struct object *o)
{
	const struct node *n = replica_node(c, o);

	return n && (n->losses & 1) == 0 && n->member == MEMBER_ALIVE &&
	       n->member_incarnation == o->replica_incarnation &&
	       (o->replica_store == 0 || n->store_incarnation == o->replica_store);
}

/* ---- a sign of life ---------------------------------------------------------------------------
 */

/* [G8.3] */
void replica_heard(struct control *c, struct node *n, uint64_t taken_ns)
{
	uint64_t fresh_ns = c->now_ns + taken_ns + REPLICA_SLACK_NS;

	n->mute_ns = 0;
	if (taken_ns <= REPLICA_ANSWER_NS && fresh_ns > n->fresh_ns)
		n->fresh_ns = fresh_ns;
}

static bool replica_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct node *n = call->node;

	c->store->pinned.asks--;
	n->asking = false;
	n->mute_ns = answer ? 0 : c->now_ns + REPLICA_MUTE_NS;
	wiring_room(c);
	return false;
}

/* Any question will do. */
static bool replica_ask(struct control *c, struct node *n)
{
	struct message m = {.kind = MESSAGE_STATUS};

	if (n->asking)
		return true;
	if (n == c->cluster->self || !c->attached || c->now_ns < n->mute_ns)
		return false;
	n->asking = rpc_start(c, n, &m, TABLE_SLOT_NONE, REPLICA_ANSWER_NS, replica_answered,
			      NULL) != NULL;
	c->store->pinned.asks += n->asking;
	return n->asking;
}

enum replica_state replica_lives(struct control *c, const struct object *o)
{
	struct node *n = replica_node(c, o);

	if (!replica_elsewhere(c, o))
		return REPLICA_GONE;
	if (c->now_ns < n->fresh_ns)
		return REPLICA_LIVES;
	return replica_ask(c, n) ? REPLICA_ASKED : REPLICA_GONE;
}

/* ---- the node of the pinned replica ---------------------------------------------------------- */

void replica_describe(struct control *c, uint32_t slot, struct message_have *have)
{
	const struct object_slot *s = &c->table->slot[slot];
	struct object *o = objects_at(c, slot);
	const struct node *n = replica_node(c, o);
	bool primary = (s->flags & OBJECT_FLAG_PRIMARY) != 0;
	bool asks = o->yields && !announce_unacked(c, slot); /* a new owner is told first */

	have->appointed = (s->flags & OBJECT_FLAG_APPOINTED) != 0;
	have->pinned = s->state == OBJECT_CREATING || (primary && !asks);
	have->pin_lost = s->state == OBJECT_SEALED && !primary &&
			 ((n && !membership_live(n)) || o->replica_unknown >= REPLICA_PATIENCE);
	o->yields = o->yielded = false;
}

bool replica_asks(const struct message_have *have)
{
	return have->appointed && !have->pinned;
}

/* Returns false when the answer is from before the last loss. */
static bool replica_note(struct control *c, struct object *o, uint32_t pinned)
{
	const struct node *n;

	if (pinned && o->replica_doubts != c->store->pinned.doubts)
		return false;
	o->replica = pinned;
	n = replica_node(c, o);
	o->replica_incarnation = n ? n->member_incarnation : 0;
	o->replica_store = n ? n->store_incarnation : 0;
	o->replica_unknown = n ? 0 : o->replica_unknown + 1;
	return true;
}

void replica_released(struct control *c, uint32_t slot, uint32_t pinned)
{
	struct object *o = objects_at(c, slot);

	if (pinned == c->cluster->self->number + 1)
		return;
	o->yielded = c->table->slot[slot].flags & OBJECT_FLAG_APPOINTED && pinned &&
		     replica_note(c, o, pinned);
	if (o->yielded)
		replica_retry(c);
	else
		announce_object(c, slot);
}

void replica_named(struct control *c, uint32_t slot, uint32_t pinned)
{
	const struct object_slot *s = &c->table->slot[slot];

	if (s->flags & OBJECT_FLAG_PRIMARY)
		return;
	if (pinned != c->cluster->self->number + 1)
		replica_note(c, objects_at(c, slot), pinned);
	else if (s->state == OBJECT_SEALED)
		objects_appoint(c, slot, true);
}

/* ---- a node that loses one, and lives on ----------------------------------------------------- */

void replica_losing(struct control *c)
{
	c->store->pinned.losing++;
	c->cluster->losses = env_generation(c) | 1;
}

void replica_acked(struct control *c)
{
	assert(c->store->pinned.losing > 0);
	if (--c->store->pinned.losing == 0)
		c->cluster->losses = env_generation(c) & ~UINT64_C(1);
}

static bool replica_dropped(struct control *c, struct call *call, const struct message *answer)
{
	if (answer && answer->reply.status == -EAGAIN)
		return true;
	replica_acked(c);
	return false;
}

void replica_lost(struct control *c, const struct object_id *id, uint64_t generation)
{
	struct message m = {.kind = MESSAGE_DROP, .object = {.id = *id, .generation = generation}};

	replica_losing(c);
	if (!rpc_start(c, ownership_shard(c, id), &m, TABLE_SLOT_NONE, UINT64_MAX, replica_dropped,
		       NULL))
		replica_acked(
			c); /* too many calls: a receiver that finds nothing tells the owner */
}

void replica_doubt(struct control *c, struct node *n)
{
	c->store->pinned.doubts++;
	list_each(l, after, &c->store->objects.lru)
	{
		struct object *o = list_item(l, struct object, link);

		if (o->replica != n->number + 1)
			continue;
		o->replica = 0;
		o->replica_unknown = 0;
		if ((n->losses & 1) == 0)
			announce_object(c, objects_slot(c, o));
	}
	replica_watch(c);
}

/* ---- asking again ---------------------------------------------------------------------------- */

/* The owner counts it as pinned no more. Returns whether it is given up. */
static bool replica_give_back(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	o->yielded = false;
	if (c->table->slot[slot].state != OBJECT_SEALED || o->spilling ||
	    o->replica_doubts != c->store->pinned.doubts || !replica_elsewhere(c, o)) {
		announce_object(c, slot);
		return false;
	}
	replica_losing(c);
	objects_demote(c, slot);
	replica_acked(c); /* as the owner knows */
	return true;
}

/* Returns whether there is more room now. */
static bool replica_look(struct control *c, uint32_t slot)
{
	const struct object_slot *s = &c->table->slot[slot];
	struct object *o = objects_at(c, slot);

	if (o->yielded && (s->state == OBJECT_SEALED || s->state == OBJECT_SPILLED))
		return replica_give_back(c, slot);
	if (s->state != OBJECT_SEALED || o->announced.call)
		return false;
	o->yields = s->flags & OBJECT_FLAG_APPOINTED && c->store->pinned.tries > 0;
	if (o->yields || (!(s->flags & OBJECT_FLAG_PRIMARY) && !replica_elsewhere(c, o)))
		announce_object(c, slot);
	return false;
}

static void replica_fire(struct control *c, struct timer *t)
{
	struct objects *os = &c->store->objects;
	uint32_t end = os->replica_sweep + REPLICA_STEP;
	bool room = false;

	for (; os->replica_sweep < c->table->slots && os->replica_sweep < end; os->replica_sweep++)
		room |= replica_look(c, os->replica_sweep);
	if (room)
		wiring_room(c);
	if (os->replica_sweep < c->table->slots) {
		timers_set(&c->timers, t, c->now_ns + REPLICA_STEP_NS, replica_fire);
		return;
	}
	os->replica_sweep = 0;
	c->store->pinned.tries -= c->store->pinned.tries > 0;
	replica_watch(c);
}

void replica_retry(struct control *c)
{
	c->store->pinned.tries = REPLICA_TRIES;
	if (c->table)
		replica_watch(c);
}

void replica_watch(struct control *c)
{
	bool tries = c->store->pinned.tries > 0 && !list_empty(&c->store->spills.kept);

	if (c->store->objects.replica_timer.position == 0 &&
	    (tries || !list_empty(&c->store->objects.lru)))
		timers_set(&c->timers, &c->store->objects.replica_timer,
			   c->now_ns + c->config.replica_ns, replica_fire);
}
