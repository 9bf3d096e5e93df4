/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/text.h"
#include "room.h"
#include "events.h"

struct object *objects_at(struct control *c, uint32_t slot)
{
	assert(slot < c->table->slots);
	return &c->store->objects.meta[slot];
}

uint32_t objects_slot(struct control *c, const struct object *o)
{
	return (uint32_t)(o - c->store->objects.meta);
}

const char *objects_name(struct control *c, uint32_t slot)
{
	return (const char *)c->table + c->table->names_offset + (uint64_t)slot * OBJECT_NAME_BYTES;
}

const struct object_meta *objects_meta(struct control *c, uint32_t slot)
{
	return &objects_at(c, slot)->described;
}

/* The writer's half of the sequence lock: object_slot_read has the other. */
static struct object_slot *objects_write(struct control *c, uint32_t slot)
{
	struct object_slot *s = &c->table->slot[slot];

	sequence_write(&s->sequence);
	return s;
}

void objects_set_state(struct control *c, uint32_t slot, enum object_state state)
{
	struct object_slot *s = objects_write(c, slot);

	s->state = (uint16_t)state;
	sequence_written(&s->sequence);
}

void objects_set_staged(struct control *c, uint32_t slot)
{
	struct object_slot *s = objects_write(c, slot);

	s->flags |= OBJECT_FLAG_STAGED;
	sequence_written(&s->sequence);
}

uint32_t objects_find(struct control *c, const struct object_id *id)
{
	uint32_t home = object_table_home(c->table, id);

	for (uint32_t k = 0; k < OBJECT_TABLE_PROBE; k++) {
		uint32_t i = (home + k) & (c->table->slots - 1);
		const struct object_slot *s = &c->table->slot[i];

		if (s->state != OBJECT_FREE && s->state != OBJECT_ZOMBIE &&
		    object_id_equal(&s->id, id))
			return i;
	}
	return TABLE_SLOT_NONE;
}

bool objects_is(struct control *c, uint32_t slot, uint64_t generation)
{
	const struct object_slot *s;

	if (slot >= c->table->slots)
		return false;
	s = &c->table->slot[slot];
	return s->state != OBJECT_FREE && s->state != OBJECT_ZOMBIE && s->generation == generation;
}

static void objects_free(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	list_remove(&o->link);
	c->store->objects.zombie_count--;
	c->store->objects.count--;
	if (o->range)
		allocator_give(&c->store->objects.space, o->range);
	memset(o, 0, sizeof(*o));
	objects_set_state(c, slot, OBJECT_FREE);
}

/* Marks the objects that clients have pinned. The fence orders the state written before, which
 * keeps new readers away, and the pins read after: so each reader either sees the state or is seen
 * here. */
void objects_scan_pins(struct control *c)
{
	if (c->store->objects.old_clients)
		c->store->objects.old_clients = c->ops.old_clients(c->ops.arg);
	c->store->objects.scan++;
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < c->store->objects.pins_count; i++) {
		_Atomic uint64_t *pins = c->store->objects.pins[i];

		for (uint32_t p = 0; pins && p < SESSION_PINS; p++) {
			uint64_t word = atomic_load_explicit(&pins[p], memory_order_relaxed);
			uint32_t slot = (uint32_t)word - 1;

			if (word == 0 || slot >= c->table->slots)
				continue;
			if (pin_make(slot, c->table->slot[slot].generation) == word)
				c->store->objects.meta[slot].pinned_scan = c->store->objects.scan;
		}
	}
}

/* As the last scan found it. */
static bool objects_in_use(const struct control *c, const struct object *o)
{
	return o->pinned_scan == c->store->objects.scan ||
	       (o->adopted && c->store->objects.old_clients);
}

bool objects_unpinned(const struct control *c, const struct object *o)
{
	return !objects_in_use(c, o);
}

void objects_pins(struct control *c, uint32_t reader, _Atomic uint64_t *pins)
{
	c->store->objects.pins[reader] = pins;
	if (reader >= c->store->objects.pins_count)
		c->store->objects.pins_count = reader + 1;
}

bool objects_pinned(struct control *c, uint32_t slot)
{
	objects_scan_pins(c);
	return objects_in_use(c, objects_at(c, slot));
}

void objects_claim(struct object *o)
{
	o->unclaimed = false;
	list_remove(&o->of_session);
}

/* Aborts the unclaimed objects: their creators will not come back. */
static void objects_give_up_unclaimed(struct control *c)
{
	list_each(l, after, &c->store->objects.unclaimed)
	{
		struct object *o = list_item(l, struct object, of_session);

		objects_claim(o);
		objects_abandon(c, objects_slot(c, o), "its creator has gone: get it again");
	}
}

static void objects_reap_fire(struct control *c, struct timer *t)
{
	if (c->store->objects.old_clients)
		c->store->objects.old_clients = c->ops.old_clients(c->ops.arg);
	if (!c->store->objects.old_clients)
		objects_give_up_unclaimed(c);
	objects_reap(c);
}

void objects_reap(struct control *c)
{
	struct objects *os = &c->store->objects;

	if (!list_empty(&os->unclaimed))
		timers_set(&c->timers, &os->reap, c->now_ns + c->config.pins_ns, objects_reap_fire);
	if (list_empty(&os->zombies))
		return;
	objects_scan_pins(c);
	list_each(l, after, &os->zombies)
	{
		struct object *o = list_item(l, struct object, link);

		if (o->holds == 0 && !objects_in_use(c, o))
			objects_free(c, objects_slot(c, o));
	}
	if (!list_empty(&os->zombies))
		timers_set(&c->timers, &os->reap, c->now_ns + c->config.pins_ns, objects_reap_fire);
}

static bool objects_unused(struct control *c, const struct object *o)
{
	return !objects_in_use(c, o) && o->holds == 0;
}

static bool objects_may_go(struct control *c, const struct object *o)
{
	return objects_unused(c, o) && replica_lives(c, o) == REPLICA_LIVES;
}

/* Evicts the least recently used copy. Returns false when none may be evicted. */
static bool objects_evict(struct control *c)
{
	objects_scan_pins(c);
	list_each(l, after, &c->store->objects.lru)
	{
		struct object *o = list_item(l, struct object, link);
		uint32_t slot = objects_slot(c, o);
		struct object_slot *s = &c->table->slot[slot];

		if (!objects_may_go(c, o))
			continue;
		objects_set_state(c, slot, OBJECT_ZOMBIE);
		if (objects_pinned(c, slot)) { /* a reader was faster */
			objects_set_state(c, slot, OBJECT_SEALED);
			continue;
		}
		c->counters.evictions++;
		objects_disown(c, &s->id, s->generation);
		objects_kill(c, slot, "evicted");
		return true;
	}
	return false;
}

static uint64_t objects_bytes_max(const struct control *c)
{
	return c->store->objects.scratch_offset;
}

uint64_t objects_evictable_bytes(struct control *c)
{
	uint64_t bytes = 0;

	objects_scan_pins(c);
	list_each(l, after, &c->store->objects.lru)
	{
		const struct object *o = list_item(l, struct object, link);

		if (objects_unused(c, o) && replica_elsewhere(c, o))
			bytes += allocator_bytes(&c->store->objects.space, o->range);
	}
	return bytes;
}

/* Whether evicting all copies that may leave would free so many bytes; otherwise none is evicted.
 * 0, -ENOSPC, or -EAGAIN: some may leave when the nodes of their pinned replicas have answered. */
static int objects_can_evict(struct control *c, uint64_t bytes)
{
	uint64_t there = objects_bytes_max(c) - c->store->objects.space.used_bytes, asked = 0;

	objects_scan_pins(c);
	list_each(l, after, &c->store->objects.lru)
	{
		const struct object *o = list_item(l, struct object, link);
		uint64_t more = allocator_bytes(&c->store->objects.space, o->range);
		enum replica_state state;

		if (there + asked >= bytes)
			break;
		if (!objects_unused(c, o))
			continue;
		state = replica_lives(c, o);
		if (state == REPLICA_LIVES)
			there += more;
		else if (state == REPLICA_ASKED)
			asked += more;
	}
	return there >= bytes ? 0 : there + asked >= bytes ? -EAGAIN : -ENOSPC;
}

bool objects_may_fit(struct control *c, uint64_t size)
{
	return objects_can_evict(c, size) != -ENOSPC;
}

/* Bytes that stay: put here, and not deleted. Counted again when that was some time ago. */
static uint64_t objects_primary_bytes(struct control *c)
{
	struct objects *all = &c->store->objects;
	uint64_t bytes = 0;

	if (all->primary_ns != 0 && c->now_ns - all->primary_ns < OBJECTS_PRIMARY_NS)
		return all->primary_bytes;
	for (uint32_t i = 0; i < c->table->slots; i++) {
		const struct object_slot *s = &c->table->slot[i];

		if (s->state != OBJECT_FREE && s->state != OBJECT_ZOMBIE &&
		    s->flags & OBJECT_FLAG_PRIMARY && objects_at(c, i)->range)
			bytes += allocator_bytes(&all->space, objects_at(c, i)->range);
	}
	all->primary_ns = c->now_ns;
	all->primary_bytes = bytes;
	return bytes;
}

bool objects_may_free(struct control *c, uint64_t size)
{
	uint64_t most = objects_bytes_max(c);

	return size > most - c->store->objects.space.used_bytes &&
	       objects_primary_bytes(c) + size <= most;
}

int objects_allocate(struct control *c, uint64_t bytes, uint32_t *range)
{
	int error;

	*range = allocator_take(&c->store->objects.space, bytes);
	if (*range)
		return 0;
	error = objects_can_evict(c, bytes);
	if (error == -ENOSPC && spill_make_room(c, bytes))
		return -EAGAIN;
	if (error)
		return error;
	while ((*range = allocator_take(&c->store->objects.space, bytes)) == 0)
		if (!objects_evict(c)) { /* enough bytes, but not in one piece */
			objects_can_evict(c, UINT64_MAX);
			return c->store->pinned.asks > 0 || spill_make_room(c, bytes) ? -EAGAIN
										      : -ENOSPC;
		}
	return 0;
}

static uint32_t objects_free_slot(struct control *c, const struct object_id *id)
{
	uint32_t home = object_table_home(c->table, id);

	for (uint32_t k = 0; k < OBJECT_TABLE_PROBE; k++) {
		uint32_t i = (home + k) & (c->table->slots - 1);

		if (c->table->slot[i].state == OBJECT_FREE)
			return i;
	}
	return TABLE_SLOT_NONE;
}

static void objects_fill(struct control *c, uint32_t slot, const struct object_id *id,
			 const char *name, uint64_t size, uint64_t generation, uint32_t chunk_bytes)
{
	struct object_slot *s = objects_write(c, slot);
	char *name_out = (char *)(uintptr_t)objects_name(c, slot);
	size_t length = strnlen(name, OBJECT_NAME_MAX);

	memset(name_out, 0, OBJECT_NAME_BYTES);
	memcpy(name_out, name, length);
	crash_point();
	s->id = *id;
	s->flags = 0;
	crash_point();
	s->generation = generation;
	crash_point();
	s->offset = allocator_offset(&c->store->objects.space, objects_at(c, slot)->range);
	s->size = size;
	crash_point();
	s->chunk_bytes = chunk_bytes;
	s->creator = 0;
	atomic_store_explicit(&s->watermark, 0, memory_order_relaxed);
	sequence_written(&s->sequence);
}

void objects_set_creator(struct control *c, uint32_t slot, const struct control_client *who)
{
	crash_point();
	object_table_creators(c->table)[slot] =
		(struct object_creator){.birth = who->birth,
					.user = who->user,
					.owned = object_table_creators(c->table)[slot].owned};
	atomic_signal_fence(memory_order_release); /* this process may be killed: the record is
						      valid before it is named */
	crash_point();
	c->table->slot[slot].creator = who->process;
}

int objects_insert(struct control *c, const struct object_id *id, const char *name,
		   const struct object_meta *meta, uint64_t size, uint64_t generation,
		   uint32_t chunk_bytes, enum object_state state, uint32_t *slot)
{
	uint32_t range, i;
	struct object *o;
	int error;

	if (size > objects_bytes_max(c))
		return -EFBIG;
	error = objects_allocate(c, size, &range);
	if (error == -EAGAIN)
		return error;
	i = range ? objects_free_slot(c, id) : TABLE_SLOT_NONE;
	if (i == TABLE_SLOT_NONE) {
		if (range)
			allocator_give(&c->store->objects.space, range);
		c->counters.store_full++;
		return -ENOSPC;
	}
	o = objects_at(c, i);
	memset(o, 0, sizeof(*o));
	list_init(&o->waits);
	list_init(&o->serves);
	list_init(&o->mirrors);
	o->range = range;
	if (meta)
		o->described = *meta;
	c->store->objects.count++;
	objects_fill(c, i, id, name, size, generation, chunk_bytes);
	objects_set_state(c, i, state);
	*slot = i;
	return 0;
}

void objects_publish(struct control *c, uint32_t slot, uint64_t watermark)
{
	struct object_slot *s = &c->table->slot[slot];

	crash_point();
	atomic_store_explicit(&s->watermark, watermark, memory_order_release);
	crash_point();
	if (objects_at(c, slot)->stage)
		buffers_advance(c, objects_at(c, slot)->stage, watermark);
	objects_progress(c, slot);
}

void objects_seal(struct control *c, uint32_t slot, bool primary)
{
	struct object *o = objects_at(c, slot);
	struct object_slot *s = objects_write(c, slot);

	s->state = OBJECT_SEALED;
	crash_point();
	s->flags = primary ? OBJECT_FLAG_PRIMARY : 0;
	crash_point();
	atomic_store_explicit(&s->watermark, s->size, memory_order_release);
	sequence_written(&s->sequence);
	if (primary && o->stage && o->stage->bitmap == 0)
		buffers_advance(c, o->stage, s->size);
	list_append(primary ? &c->store->spills.kept : &c->store->objects.lru, &o->link);
	replica_watch(c);
	o->creator = NULL;
	list_remove(&o->of_session);
	c->store->ops->sealed(c, o);
	objects_progress(c, slot);
}

void objects_restored(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);
	struct object_slot *s = objects_write(c, slot);

	s->offset = allocator_offset(&c->store->objects.space, o->range);
	s->state = OBJECT_SEALED;
	sequence_written(&s->sequence);
	list_append(&c->store->spills.kept, &o->link);
	objects_progress(c, slot);
}

void objects_appoint(struct control *c, uint32_t slot)
{
	struct object_slot *s = objects_write(c, slot);

	s->flags |= OBJECT_FLAG_PRIMARY;
	sequence_written(&s->sequence);
	list_remove(&objects_at(c, slot)->link);
	list_append(&c->store->spills.kept, &objects_at(c, slot)->link);
	c->counters.appointed++;
	objects_announce(c, slot); /* the directory gets the value of a small object back */
}

void objects_kill(struct control *c, uint32_t slot, const char *why)
{
	struct object *o = objects_at(c, slot);

	if (c->table->slot[slot].state == OBJECT_SPILLED)
		spill_killed(c, slot);
	objects_set_state(c, slot, OBJECT_ZOMBIE);
	list_remove(&o->link);
	list_append(&c->store->objects.zombies, &o->link);
	c->store->objects.zombie_count++;
	list_remove(&o->dirty);
	list_remove(&o->of_session);
	if (o->announce) {
		calls_cancel(c, o->announce);
		o->announce = NULL;
		c->store->objects.announcing--;
	}
	c->store->ops->killed(c, o, why);
	if (o->stage)
		buffers_drop_stage(c, o->stage);
	c->store->ops->gone(c, &c->table->slot[slot].id);
	objects_reap(c);
}

static void objects_kill_as(struct control *c, uint32_t slot, uint16_t flag, int32_t status,
			    const char *why)
{
	struct object_slot *s = objects_write(c, slot);

	s->flags |= flag;
	sequence_written(&s->sequence);
	c->store->ops->failed(c, objects_at(c, slot), status, why);
	objects_kill(c, slot, why);
}

void objects_replace(struct control *c, uint32_t slot, const char *why)
{
	objects_kill_as(c, slot, OBJECT_FLAG_REPLACED, -ERESTART, why);
}

void objects_cancel(struct control *c, uint32_t slot, const char *why)
{
	objects_kill_as(c, slot, 0, -ECANCELED, why);
}

void objects_lose(struct control *c, uint32_t slot, const char *why)
{
	objects_kill_as(c, slot, OBJECT_FLAG_LOST, -ENODATA, why);
}

void objects_release(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);

	assert(o->holds > 0);
	o->holds--;
	if (o->holds == 0 && c->table->slot[slot].state == OBJECT_ZOMBIE)
		objects_reap(c);
}

void objects_progress(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);
	uint64_t ready =
		atomic_load_explicit(&c->table->slot[slot].watermark, memory_order_acquire);

	list_each(l, after, &o->mirrors)
	{
		buffers_advance(c, list_item(l, struct stage, mirror), ready);
	}
	c->store->ops->progress(c, o);
}

void objects_touch(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);
	const struct object_slot *s = &c->table->slot[slot];

	if (s->state != OBJECT_SEALED)
		return;
	list_remove(&o->link);
	list_append(s->flags & OBJECT_FLAG_PRIMARY ? &c->store->spills.kept
						   : &c->store->objects.lru,
		    &o->link);
}

void objects_no_room(struct control *c, int error, uint64_t size, struct text *t)
{
	*t = (struct text){.length = 0};
	if (error == -EFBIG) {
		text_add(t, "the object has ");
		text_add_number(t, size);
		text_add(t, " bytes, the store of this node ");
		text_add_number(t, objects_bytes_max(c));
		text_add(t, ": start it with a larger --store");
		return;
	}
	text_add(t, "store full (");
	text_add_number(t, c->store->objects.space.used_bytes);
	text_add(t, " of ");
	text_add_number(t, objects_bytes_max(c));
	text_add(t, " bytes used, this object has ");
	text_add_number(t, size);
	text_add(t, "): delete or release objects");
}

bool objects_valid(uint64_t generation, uint64_t size, uint32_t chunk_bytes)
{
	return generation != 0 && chunk_bytes >= CHUNK_BYTES_MIN &&
	       chunk_bytes <= CHUNK_BYTES_MAX && chunk_bytes % 64 == 0 &&
	       chunk_count(size, chunk_bytes) < UINT32_MAX;
}
