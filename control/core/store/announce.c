/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announces this node's objects to their shard owners (HAVE, DROP), by the announcer. Called by
 * objects.c, by fetches and by sessions.
 */
#include <errno.h>
#include "state.h"
#include "events.h"

void announce_object(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	if (o->participant && o->hidden)
		return;
	if (c->table->slot[slot].state == OBJECT_CREATING && !o->creator && !o->participant)
		return; /* the directory has not admitted the create yet */
	if (o->announced.call)
		o->changed = true;
	else
		announcer_mark(&c->store->objects.announcer, &o->announced);
}

static void announce_later_fire(struct control *c, struct timer *t)
{
	list_each(l, after, &c->store->objects.late)
	{
		announcer_mark(&c->store->objects.announcer, list_item(l, struct announced, dirty));
	}
}

void announce_later(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	if (o->announced.call || list_linked(&o->announced.dirty)) {
		announce_object(c, slot);
		return;
	}
	if (list_empty(&c->store->objects.late))
		timers_set(&c->timers, &c->store->objects.later, c->now_ns + ANNOUNCE_LATER_NS,
			   announce_later_fire);
	list_append(&c->store->objects.late, &o->announced.dirty);
}

void announce_value(struct control *c, uint32_t slot, struct message_have *have)
{
	const struct object_slot *s;

	have->value = NULL;
	have->value_bytes = have->has_value = 0;
	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, have->generation))
		return;
	s = &c->table->slot[slot];
	if ((s->state != OBJECT_SEALED && !have->create) || s->size > OBJECT_INLINE_MAX)
		return;
	if ((!(s->flags & OBJECT_FLAG_PRIMARY) || replica_asks(have)) && !have->create)
		return; /* it is a copy of a value that the directory has */
	have->value = c->memory + s->offset;
	have->value_bytes = (uint32_t)s->size;
	have->has_value = 1;
}

void announce_have(struct control *c, uint32_t slot, struct message *m)
{
	const struct object_slot *s = &c->table->slot[slot];
	struct object *o = objects_at(c, slot);

	*m = (struct message){.kind = MESSAGE_HAVE};
	m->have.id = s->id;
	m->have.generation = s->generation;
	m->have.size = s->size;
	m->have.chunk_bytes = s->chunk_bytes;
	m->have.upstream = MESSAGE_NODE_NONE;
	m->have.state = MESSAGE_COPY_COMPLETE;
	if (s->state == OBJECT_CREATING)
		m->have.state = o->participant && o->gathered ? MESSAGE_COPY_PARTIAL
							      : MESSAGE_COPY_CREATING;
	m->have.made = o->participant != NULL;
	if (s->state == OBJECT_FETCHING) {
		m->have.state = MESSAGE_COPY_PARTIAL;
		if (o->fetch)
			wiring_upstreams(c, o, &m->have);
	}
	m->have.rate = o->rate;
	o->rate = 0;
	replica_describe(c, slot, &m->have);
	texts_copy_name(c, slot, m->have.name);
	texts_copy_meta(c, slot, &m->have.meta);
}

/* Whether what was refused was an object under creation, which an older one that stands keeps out.
 * A complete one takes its place: two sides of a partition have put the id, and the later stays. */
static bool announce_outgrew(const struct control *c, uint32_t slot,
			     const struct message_have *have)
{
	uint16_t state = c->table->slot[slot].state;

	return have->made || (have->state == MESSAGE_COPY_CREATING &&
			      (state == OBJECT_SEALED || state == OBJECT_SPILLED));
}

static bool announce_acked(struct control *c, struct call *call, const struct message *answer)
{
	struct object *o = call->owner;
	uint32_t slot = objects_slot(c, o);
	int32_t status = answer->reply.status; /* no deadline: never NULL */
	bool refused = status == -ESTALE || status == -ECANCELED;

	if (status != 0 && !refused) {
		call->deferred = status == -EAGAIN;
		return true; /* full: again later */
	}
	announcer_heard(&c->store->objects.announcer, &o->announced);
	announcer_acked(&o->announced, call->node, call->cookie);
	if (refused && o->participant) {
		wiring_refused(c, o, status);
	} else if (refused && announce_outgrew(c, slot, &call->message.have)) {
		announce_object(c, slot); /* it is complete by now: announced like any other */
		resync_more(c);
	} else if (refused) {
		objects_kill(c, slot, "the object was deleted: get it again");
	} else {
		if (replica_asks(&call->message.have))
			replica_released(c, slot, answer->reply.pinned);
		else
			replica_named(c, slot, answer->reply.pinned);
		if (o->fileless) {
			spill_lost(c, slot);
			return false;
		}
		if (call->message.have.state == MESSAGE_COPY_COMPLETE)
			wiring_announced(c, o);
		if (o->participant)
			wiring_led(c, o);
		if (o->changed) {
			if (announce_unacked(c, slot)) /* that was of an earlier life */
				resync_more(c);
			announce_object(c, slot);
		}
	}
	o->changed = false;
	return false;
}

bool announce_unacked(struct control *c, uint32_t slot)
{
	return announcer_unacked(c, &objects_at(c, slot)->announced, &c->table->slot[slot].id);
}

void announce_agreed(struct control *c, uint32_t slot, const struct node *owner, uint64_t epoch)
{
	announcer_acked(&objects_at(c, slot)->announced, owner, epoch);
	if (announce_unacked(c, slot))
		announce_object(c, slot);
}

static void announce_look(struct control *c, uint32_t slot)
{
	uint16_t state = c->table->slot[slot].state;

	if (state != OBJECT_FREE && state != OBJECT_ZOMBIE && announce_unacked(c, slot))
		announce_object(c, slot);
}

static struct call *announce_say(struct control *c, struct announced *a)
{
	struct object *o = list_item(a, struct object, announced);
	uint32_t slot = objects_slot(c, o);
	struct message m;

	announce_have(c, slot, &m);
	o->replica_doubts = c->store->pinned.doubts;
	return rpc_start(c, ownership_shard(c, &c->table->slot[slot].id), &m, slot, UINT64_MAX,
			 announce_acked, o);
}

void announce_init(struct control *c)
{
	announcer_init(c, &c->store->objects.announcer, &c->store->objects.slots.fresh, 64,
		       announce_look, announce_say);
	list_init(&c->store->objects.late);
}

static bool announce_disowned(struct control *c, struct call *call, const struct message *answer)
{
	return false;
}

bool announce_disowns(struct control *c, const struct object_id *id, uint64_t generation)
{
	uint32_t slot = c->table ? slots_find(c, id) : TABLE_SLOT_NONE;

	return slot == TABLE_SLOT_NONE ||
	       (generation != 0 && c->table->slot[slot].generation != generation);
}

void announce_disown(struct control *c, const struct object_id *id, uint64_t generation)
{
	struct message m = {.kind = MESSAGE_DROP};

	m.object.id = *id;
	m.object.generation = generation;
	/* Best effort: a receiver that finds nothing here tells the owner. */
	rpc_start(c, ownership_shard(c, id), &m, TABLE_SLOT_NONE, c->config.call_ns,
		  announce_disowned, NULL);
}

void announce_abandon(struct control *c, uint32_t slot, const char *why)
{
	struct object_id id = c->table->slot[slot].id;
	uint64_t generation = c->table->slot[slot].generation;

	objects_kill(c, slot, why);
	announce_disown(c, &id, generation);
}
