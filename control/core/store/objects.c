/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/text.h"
#include "state.h"
#include "events.h"

enum {
	LOOKS_MAX = 65536, /* objects that one turn looks at for nothing */
	EVICTABLE_LOOKS_MAX = 4 * LOOKS_MAX,
	SLOTS_SHARE = 1024, /* of the slots one is freed at a time, when all are in use */
};

static void objects_strike(struct control *c, uint32_t slot, const char *why);

struct object *objects_at(struct control *c, uint32_t slot)
{
	assert(slot < c->table->slots);
	return &c->store->objects.meta[slot];
}

uint32_t objects_slot(struct control *c, const struct object *o)
{
	return (uint32_t)(o - c->store->objects.meta);
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

bool objects_is(struct control *c, uint32_t slot, uint64_t generation)
{
	const struct object_slot *s;

	if (slot >= c->table->slots)
		return false;
	s = &c->table->slot[slot];
	return s->state != OBJECT_FREE && s->state != OBJECT_ZOMBIE && s->generation == generation;
}

bool objects_incomplete(const struct control *c, uint32_t slot)
{
	const struct object_slot *s = &c->table->slot[slot];

	return s->state != OBJECT_SEALED &&
	       atomic_load_explicit(&s->watermark, memory_order_acquire) < s->size;
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
	texts_give(c, c->private->note[slot].text);
	slots_give(c, slot);
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
		announce_abandon(c, objects_slot(c, o), "its creator has gone: get it again");
	}
}

static void objects_reap_later(struct control *c);

static void objects_reap_fire(struct control *c, struct timer *t)
{
	if (c->store->objects.old_clients)
		c->store->objects.old_clients = c->ops.old_clients(c->ops.arg);
	if (!c->store->objects.old_clients)
		objects_give_up_unclaimed(c);
	objects_reap(c);
}

static void objects_reap_later(struct control *c)
{
	timers_set(&c->timers, &c->store->objects.reap, c->now_ns + c->config.pins_ns,
		   objects_reap_fire);
}

/* As the last scan of pins found it. */
static bool objects_try_free(struct control *c, struct object *o)
{
	if (o->holds > 0 || objects_in_use(c, o))
		return false;
	objects_free(c, objects_slot(c, o));
	return true;
}

void objects_reap(struct control *c)
{
	struct objects *os = &c->store->objects;
	uint32_t looks = os->zombie_count < LOOKS_MAX ? os->zombie_count : LOOKS_MAX;

	if (!list_empty(&os->unclaimed))
		objects_reap_later(c);
	if (list_empty(&os->zombies))
		return;
	objects_scan_pins(c);
	while (looks-- > 0) {
		struct list *l = list_first(&os->zombies);

		if (objects_try_free(c, list_item(l, struct object, link)))
			continue;
		list_remove(l);
		list_append(&os->zombies, l);
	}
	if (!list_empty(&os->zombies))
		objects_reap_later(c);
}

/* Only this one: others are looked at by the timer. */
static void objects_reap_one(struct control *c, struct object *o)
{
	objects_scan_pins(c);
	if (!objects_try_free(c, o))
		objects_reap_later(c);
}

static bool objects_unused(struct control *c, const struct object *o)
{
	return !objects_in_use(c, o) && o->holds == 0;
}

static bool objects_may_go(struct control *c, const struct object *o)
{
	return objects_unused(c, o) && replica_lives(c, o) == REPLICA_LIVES;
}

/* Copies that leave: readers find them no more, unless one was faster. */
static uint32_t objects_leave(struct control *c, struct list *leaving)
{
	uint32_t count = 0;

	objects_scan_pins(c);
	list_each(l, after, leaving)
	{
		struct object *o = list_item(l, struct object, link);
		uint32_t slot = objects_slot(c, o);
		const struct object_slot *s = &c->table->slot[slot];

		list_remove(&o->link);
		if (objects_in_use(c, o)) {
			objects_set_state(c, slot, OBJECT_SEALED);
			list_append(&c->store->objects.lru, &o->link);
			continue;
		}
		c->counters.evictions++;
		announce_disown(c, &s->id, s->generation);
		objects_strike(c, slot, "evicted");
		if (!objects_try_free(c, o))
			objects_reap_later(c);
		count++;
	}
	return count;
}

/* Evicts copies, the least recently used first, until it has evicted so many, or so many bytes.
 * Returns how many. What is in use goes to the end of the list: it is used recently. */
static uint32_t objects_evict(struct control *c, uint32_t count, uint64_t bytes)
{
	struct list *lru = &c->store->objects.lru, leaving;
	uint32_t looks = 0, idle = 0;

	list_init(&leaving);
	objects_scan_pins(c);
	for (struct list *l = lru->next, *after; l != lru; l = after) {
		struct object *o = list_item(l, struct object, link);
		uint64_t more = allocator_bytes(&c->store->objects.space, o->range);

		after = l->next;
		if (idle > LOOKS_MAX || looks++ == c->table->slots)
			break;
		if (!objects_may_go(c, o)) {
			idle++;
			if (objects_unused(c, o))
				continue;
			list_remove(l);
			list_append(lru, l);
			continue;
		}
		objects_set_state(c, objects_slot(c, o), OBJECT_ZOMBIE);
		list_remove(l);
		list_append(&leaving, l);
		if (--count == 0 || more >= bytes)
			break;
		bytes -= more;
	}
	return objects_leave(c, &leaving);
}

static uint64_t objects_bytes_max(const struct control *c)
{
	return c->store->objects.scratch_offset;
}

uint64_t objects_evictable_bytes(struct control *c)
{
	uint32_t looks = 0;
	uint64_t bytes = 0;

	objects_scan_pins(c);
	list_each(l, after, &c->store->objects.lru)
	{
		const struct object *o = list_item(l, struct object, link);

		if (looks++ > EVICTABLE_LOOKS_MAX)
			break;
		if (objects_unused(c, o) && replica_elsewhere(c, o))
			bytes += allocator_bytes(&c->store->objects.space, o->range);
	}
	return bytes;
}

/* Whether evicting all copies that may leave would free so many bytes; otherwise none is evicted.
 * evictable: how many these would free, with those that wait for an answer. 0, -ENOSPC, or -EAGAIN:
 * some may leave when the nodes of their pinned replicas have answered. */
static int objects_can_evict(struct control *c, uint64_t bytes, uint64_t *evictable)
{
	uint64_t there = objects_bytes_max(c) - c->store->objects.space.used_bytes, asked = 0,
		 unused = there;
	uint32_t idle = 0;

	objects_scan_pins(c);
	list_each(l, after, &c->store->objects.lru)
	{
		const struct object *o = list_item(l, struct object, link);
		uint64_t more = allocator_bytes(&c->store->objects.space, o->range);
		enum replica_state state;

		if (there + asked >= bytes || idle > LOOKS_MAX)
			break;
		state = objects_unused(c, o) ? replica_lives(c, o) : REPLICA_GONE;
		if (state == REPLICA_LIVES)
			there += more;
		else if (state == REPLICA_ASKED)
			asked += more;
		else
			idle++;
	}
	*evictable = there + asked - unused;
	return there >= bytes ? 0 : there + asked >= bytes ? -EAGAIN : -ENOSPC;
}

bool objects_may_fit(struct control *c, uint64_t size)
{
	struct objects *all = &c->store->objects;
	uint64_t evictable;

	if (size <= objects_bytes_max(c) - all->space.used_bytes)
		return true;
	if (c->now_ns < all->tight_until_ns && size >= all->tight_bytes)
		return false;
	if (objects_can_evict(c, size, &evictable) != -ENOSPC)
		return true;
	all->tight_until_ns = c->now_ns + OBJECTS_TIGHT_NS;
	all->tight_bytes = size;
	return false;
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
	uint64_t more = bytes, evictable;
	int error;

	*range = allocator_take(&c->store->objects.space, bytes);
	if (*range == 0 && c->store->objects.zombie_count > 0) {
		objects_reap(c);
		*range = allocator_take(&c->store->objects.space, bytes);
	}
	if (*range)
		return 0;
	error = objects_can_evict(c, bytes, &evictable);
	if (error == -ENOSPC && spill_make_room(c, bytes, evictable))
		return -EAGAIN;
	if (error)
		return error;
	more -= objects_bytes_max(c) - c->store->objects.space.used_bytes < bytes
			? objects_bytes_max(c) - c->store->objects.space.used_bytes
			: bytes;
	while ((*range = allocator_take(&c->store->objects.space, bytes)) == 0) {
		if (!objects_evict(c, UINT32_MAX, more)) { /* enough bytes, not in one piece */
			objects_can_evict(c, UINT64_MAX, &evictable);
			return c->store->pinned.asks > 0 || spill_make_room(c, bytes, 0) ? -EAGAIN
											 : -ENOSPC;
		}
		more = 0; /* one by one, until there is a piece */
	}
	return 0;
}

/* A slot, which a copy gives up when all are in use. 0, -ENOSPC, or -EAGAIN: perhaps when the nodes
 * of pinned replicas have answered. */
static int objects_take_slot(struct control *c, uint32_t *slot)
{
	uint32_t some = 1 + c->table->slots / SLOTS_SHARE;

	*slot = slots_take(c);
	if (*slot == TABLE_SLOT_NONE) {
		objects_reap(c);
		*slot = slots_take(c);
	}
	if (*slot == TABLE_SLOT_NONE && objects_evict(c, some, UINT64_MAX))
		*slot = slots_take(c);
	if (*slot != TABLE_SLOT_NONE)
		return 0;
	return c->store->pinned.asks > 0 ? -EAGAIN : -ENOSPC;
}

static void objects_fill(struct control *c, uint32_t slot, const struct object_id *id,
			 const char *name, const struct object_meta *meta, uint64_t size)
{
	uint32_t text = texts_write(c, name, meta);
	struct object_slot *s = objects_write(c, slot);

	c->private->note[slot].text = text;
	crash_point();
	c->private->note[slot].process = 0;
	s->id = *id;
	s->flags = 0;
	crash_point();
	s->offset = allocator_offset(&c->store->objects.space, objects_at(c, slot)->range);
	s->size = size;
	crash_point();
	s->meta_bytes = meta ? meta->bytes : 0;
	atomic_store_explicit(&s->watermark, 0, memory_order_relaxed);
	sequence_written(&s->sequence);
}

/* Where readers of this node find it. */
static void objects_put_meta(struct control *c, uint32_t slot)
{
	const struct object_meta *m = texts_meta(c, slot);
	const struct object_slot *s = &c->table->slot[slot];

	if (m->bytes)
		memcpy(c->memory + s->offset + s->size, m->data, m->bytes);
}

uint64_t objects_need(uint64_t size, const struct object_meta *meta)
{
	uint64_t more = meta ? meta->bytes : 0;

	return size > UINT64_MAX - more ? UINT64_MAX : size + more;
}

uint64_t objects_bytes(const struct control *c, uint32_t slot)
{
	return c->table->slot[slot].size + c->table->slot[slot].meta_bytes;
}

void objects_set_creator(struct control *c, uint32_t slot, const struct control_client *who)
{
	struct object_note *note = &c->private->note[slot];

	crash_point();
	note->birth = who->birth;
	note->user = who->user;
	atomic_signal_fence(memory_order_release); /* this process may be killed: the record is
						      valid before it is named */
	crash_point();
	note->process = who->process;
}

/* The place and the slot of a new object. */
static int objects_place(struct control *c, uint64_t bytes, uint32_t *slot, uint32_t *range)
{
	int error;

	if (bytes > objects_bytes_max(c))
		return -EFBIG;
	error = objects_allocate(c, bytes, range);
	if (error)
		return error;
	error = objects_take_slot(c, slot);
	if (error)
		allocator_give(&c->store->objects.space, *range);
	c->store->objects.table_full = error == -ENOSPC;
	return error;
}

int objects_insert(struct control *c, const struct object_id *id, const char *name,
		   const struct object_meta *meta, uint64_t size, uint64_t generation,
		   uint32_t chunk_bytes, enum object_state state, uint32_t *slot)
{
	uint32_t range, i;
	struct object_slot *s;
	struct object *o;
	int error;

	c->store->objects.table_full = false;
	error = objects_place(c, objects_need(size, meta), &i, &range);
	if (error == -ENOSPC)
		c->counters.store_full++;
	if (error)
		return error;
	o = objects_at(c, i);
	memset(o, 0, sizeof(*o));
	list_init(&o->waits);
	list_init(&o->serves);
	list_init(&o->mirrors);
	o->range = range;
	c->store->objects.count++;
	objects_fill(c, i, id, name, meta, size);
	objects_put_meta(c, i);
	s = objects_write(c, i);
	s->generation = generation;
	s->chunk_bytes = chunk_bytes;
	crash_point();
	s->state = (uint16_t)state;
	sequence_written(&s->sequence);
	slots_enter(c, i);
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
	wiring_sealed(c, o);
	objects_progress(c, slot);
}

void objects_restored(struct control *c, uint32_t slot)
{
	struct object *o = objects_at(c, slot);
	struct object_slot *s = objects_write(c, slot);

	s->offset = allocator_offset(&c->store->objects.space, o->range);
	objects_put_meta(c, slot);
	crash_point();
	s->state = OBJECT_SEALED;
	sequence_written(&s->sequence);
	list_append(&c->store->spills.kept, &o->link);
	if (s->flags & OBJECT_FLAG_APPOINTED)
		replica_retry(c);
	objects_progress(c, slot);
}

/* Sets both flags that say who may evict it. Its list follows from them. */
static void objects_set_pin(struct control *c, uint32_t slot, unsigned flags)
{
	struct object_slot *s = objects_write(c, slot);
	unsigned others = s->flags & ~(unsigned)(OBJECT_FLAG_PRIMARY | OBJECT_FLAG_APPOINTED);

	s->flags = (uint16_t)(others | flags);
	sequence_written(&s->sequence);
	objects_touch(c, slot);
	c->store->objects.primary_ns = 0;
}

void objects_appoint(struct control *c, uint32_t slot, bool interim)
{
	struct object *o = objects_at(c, slot);

	c->counters.appointed += !(c->table->slot[slot].flags & OBJECT_FLAG_PRIMARY);
	o->yields = o->yielded = false;
	objects_set_pin(c, slot, OBJECT_FLAG_PRIMARY | (interim ? OBJECT_FLAG_APPOINTED : 0));
	announce_object(c, slot); /* the directory gets the value of a small object back */
}

void objects_demote(struct control *c, uint32_t slot)
{
	objects_set_pin(c, slot, 0);
	announce_object(c, slot);
}

static void objects_strike(struct control *c, uint32_t slot, const char *why)
{
	struct object *o = objects_at(c, slot);

	if (c->table->slot[slot].state == OBJECT_SPILLED)
		spill_killed(c, slot);
	objects_set_state(c, slot, OBJECT_ZOMBIE);
	slots_leave(c, slot);
	list_remove(&o->link);
	list_append(&c->store->objects.zombies, &o->link);
	c->store->objects.zombie_count++;
	list_remove(&o->of_session);
	announcer_forget(c, &c->store->objects.announcer, &o->announced);
	wiring_killed(c, o, why);
	if (o->stage)
		buffers_drop_stage(c, o->stage);
	wiring_gone(c, &c->table->slot[slot].id);
}

void objects_kill(struct control *c, uint32_t slot, const char *why)
{
	struct object *o = objects_at(c, slot);

	objects_strike(c, slot, why);
	objects_reap_one(c, o);
}

static void objects_kill_as(struct control *c, uint32_t slot, uint16_t flag, int32_t status,
			    const char *why)
{
	struct object_slot *s = objects_write(c, slot);

	s->flags |= flag;
	sequence_written(&s->sequence);
	wiring_failed(c, objects_at(c, slot), status, why);
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
		objects_reap_one(c, o);
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
	wiring_progress(c, o);
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
	if (c->store->objects.table_full) {
		text_add(t, "table full (");
		text_add_number(t, c->store->objects.count);
		text_add(t, " of ");
		text_add_number(t, c->table->slots);
		text_add(t, " objects): delete objects, or start sarissa-dataplane with a larger "
			    "--objects");
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
	return generation != 0 && size <= INT64_MAX && chunk_bytes >= CHUNK_BYTES_MIN &&
	       chunk_bytes <= CHUNK_BYTES_MAX && chunk_bytes % 64 == 0 &&
	       chunk_count(size, chunk_bytes) < UINT32_MAX;
}
