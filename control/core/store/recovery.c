/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * * Takes over the store and table of a dataplane, or of an earlier control process:
 * recovery_attach. Everything that it reads is checked like input from outside.
 */
#include <errno.h>
#include "state.h"
#include "events.h"

enum {
	STORE_GRAIN_BYTES = 4096,
	SCRATCH_BYTES_MIN = 64 * 1024,
	ORDER_SHIFT = 24, /* below it a slot, above the offset in grains */
	ORDER_DIGIT_BITS = 10,
	ORDER_DIGITS = 1 << ORDER_DIGIT_BITS,
	SCRATCH_SHARE = 128, /* of the store: at 1,408-byte chunks 88 whole-store bitmaps */
};

void objects_carve(struct objects *o, struct arena *a, const struct control_config *config)
{
	o->meta = arena_carve(a, sizeof(*o->meta) * config->table_slots);
	o->pins = arena_carve(a, sizeof(*o->pins) * config->sessions_max);
	o->order = arena_carve(a, 2 * sizeof(*o->order) * config->table_slots);
	slots_carve(&o->slots, a, config->table_slots);
	texts_carve(&o->texts, a, config->table_slots);
	allocator_carve(&o->space, a, config->table_slots);
}

static bool recovery_table_valid(const struct control *c)
{
	const struct object_table *t = c->table;

	return object_table_valid(t, UINT64_MAX, t->store_bytes) &&
	       object_private_valid(c->private, UINT64_MAX, t) &&
	       t->slots <= c->config.table_slots && t->store_bytes >= 2 * SCRATCH_BYTES_MIN;
}

/* Zeroes it, but does not write to pages that are zero: those of unused slots stay unallocated. */
static void recovery_wipe(struct object *o)
{
	static const struct object nothing;

	if (memcmp(o, &nothing, sizeof(nothing)))
		memset(o, 0, sizeof(*o));
}

/* The store is gone, and all objects with it. */
static void recovery_reset(struct control *c)
{
	struct objects *o = &c->store->objects;
	uint64_t scratch = c->table->store_bytes / SCRATCH_SHARE;

	for (uint32_t i = 0; i < c->config.table_slots; i++) {
		announcer_forget(c, &o->announcer, &o->meta[i].announced);
		if (o->meta[i].fileless)
			replica_acked(c);
		recovery_wipe(&o->meta[i]);
	}
	list_init(&o->lru);
	list_init(&o->zombies);
	list_init(&o->late);
	list_init(&o->unclaimed);
	spill_init(c);
	slots_reset(c);
	texts_reset(c);
	o->table_full = false;
	o->replica_sweep = 0;
	c->store->pinned.tries = REPLICA_TRIES;
	o->count = o->zombie_count = 0;
	timers_cancel(&c->timers, &o->reap);
	timers_cancel(&c->timers, &o->later);
	timers_cancel(&c->timers, &o->replica_timer);
	scratch = scratch < SCRATCH_BYTES_MIN ? SCRATCH_BYTES_MIN : scratch;
	o->scratch_offset =
		(c->table->store_bytes - scratch) / STORE_GRAIN_BYTES * STORE_GRAIN_BYTES;
	allocator_reset(&o->space, o->scratch_offset, STORE_GRAIN_BYTES);
	scratch_reset(c, o->scratch_offset, c->table->store_bytes - o->scratch_offset);
}

/* Whether a slot holds an object that a new control can keep, or must while its readers or its
 * writer may live. A slot that an earlier control left half written (odd sequence) holds none. */
static bool recovery_keeps(const struct control *c, uint32_t slot)
{
	const struct object_slot *s = &c->table->slot[slot];

	return (s->state == OBJECT_SEALED ||
		(s->state != OBJECT_FREE && c->store->objects.old_clients)) &&
	       (atomic_load_explicit(&s->sequence, memory_order_relaxed) & 1) == 0 &&
	       s->offset % STORE_GRAIN_BYTES == 0 &&
	       s->offset <= c->store->objects.scratch_offset &&
	       s->size <= c->store->objects.scratch_offset - s->offset &&
	       s->meta_bytes <= c->store->objects.scratch_offset - s->offset - s->size;
}

/* Sorts o->order, of count values, by what is above ORDER_SHIFT: by digits, the least first. */
static void recovery_sort(struct objects *o, uint32_t slots, uint32_t count)
{
	uint64_t *from = o->order, *to = o->order + slots, all = 0;

	for (uint32_t i = 0; i < count; i++)
		all |= from[i];
	for (unsigned shift = ORDER_SHIFT; shift < 64 && all >> shift; shift += ORDER_DIGIT_BITS) {
		uint32_t before[1 << ORDER_DIGIT_BITS] = {0}, sum = 0;

		for (uint32_t i = 0; i < count; i++)
			before[from[i] >> shift & (ORDER_DIGITS - 1)]++;
		for (uint32_t k = 0; k < ORDER_DIGITS; k++) {
			uint32_t here = before[k];

			before[k] = sum;
			sum += here;
		}
		for (uint32_t i = 0; i < count; i++)
			to[before[from[i] >> shift & (ORDER_DIGITS - 1)]++] = from[i];
		memcpy(from, to, sizeof(*from) * count);
	}
}

/* An object that this node was fetching: its readers ask for it again. */
static void recovery_entomb(struct control *c, uint32_t slot)
{
	struct object_slot *s = &c->table->slot[slot];

	slots_leave(c, slot);
	if (s->state == OBJECT_FETCHING ||
	    (s->state == OBJECT_CREATING && c->private->note[slot].process == 0))
		s->flags |= OBJECT_FLAG_REPLACED;
	objects_set_state(c, slot, OBJECT_ZOMBIE);
	list_append(&c->store->objects.zombies, &c->store->objects.meta[slot].link);
	c->store->objects.zombie_count++;
}

/* Whether the slot is consistent: this node could have written it. */
static bool recovery_sound(struct control *c, uint32_t slot)
{
	const struct object_slot *s = &c->table->slot[slot];
	uint64_t ready = atomic_load(&s->watermark);

	return objects_valid(s->generation, s->size, s->chunk_bytes) &&
	       s->generation <= MESSAGE_GENERATION_MAX && ready <= s->size &&
	       (s->state != OBJECT_SEALED || ready == s->size) &&
	       slots_find(c, &s->id) == TABLE_SLOT_NONE;
}

/* Its name and metadata; without them it is not sound. */
static bool recovery_keep_text(struct control *c, uint32_t slot)
{
	struct object_note *note = &c->private->note[slot];

	if (texts_adopt(c, note->text, c->table->slot[slot].meta_bytes))
		return true;
	note->text = 0;
	return false;
}

static void recovery_keep(struct control *c, uint32_t slot, uint32_t range)
{
	struct object *o = &c->store->objects.meta[slot];
	const struct object_slot *s = &c->table->slot[slot];

	list_init(&o->waits);
	list_init(&o->serves);
	list_init(&o->mirrors);
	o->range = range;
	o->adopted = true;
	c->store->objects.count++;
	if (!recovery_keep_text(c, slot) || !recovery_sound(c, slot)) {
		recovery_entomb(c, slot);
		return;
	}
	slots_keep(c, slot);
	if (s->state == OBJECT_FETCHING && s->watermark == s->size)
		objects_set_state(c, slot, OBJECT_SEALED); /* nobody had noticed yet */
	if (s->state == OBJECT_SEALED) {
		list_append(s->flags & OBJECT_FLAG_PRIMARY ? &c->store->spills.kept
							   : &c->store->objects.lru,
			    &o->link);
		replica_watch(c);
	} else if (s->state == OBJECT_CREATING && c->private->note[slot].process != 0) {
		o->unclaimed = true;
		list_append(&c->store->objects.unclaimed, &o->of_session);
	} else if (s->state != OBJECT_FETCHING || !wiring_adopt(c, slot)) {
		recovery_entomb(c, slot);
	}
}

/* Keeps an object that an earlier control process has spilled to a file. */
static void recovery_keep_spilled(struct control *c, uint32_t slot)
{
	struct object *o = &c->store->objects.meta[slot];
	const struct object_slot *s = &c->table->slot[slot];

	if ((atomic_load_explicit(&s->sequence, memory_order_relaxed) & 1) != 0 ||
	    !recovery_sound(c, slot)) {
		objects_set_state(c, slot, OBJECT_FREE);
		return;
	}
	if (!recovery_keep_text(c, slot)) { /* its box may have been given to another */
		objects_set_state(c, slot, OBJECT_FREE); /* the shell sweeps its file away */
		return;
	}
	slots_keep(c, slot);
	list_init(&o->waits);
	list_init(&o->serves);
	list_init(&o->mirrors);
	c->store->objects.count++;
	spill_find(c, slot);
}

/* [G1.6] */
int recovery_attach(struct control *c)
{
	struct object *m = c->store->objects.meta;
	uint64_t *order = c->store->objects.order;
	uint32_t count = 0;

	if (!recovery_table_valid(c))
		return -EPROTO;
	recovery_reset(c);
	crash_point();
	atomic_fetch_add_explicit(&c->table->control_epoch, 1, memory_order_seq_cst);
	crash_point();
	c->store->objects.old_clients = c->ops.old_clients && c->ops.old_clients(c->ops.arg);
	for (uint32_t i = 0; i < c->table->slots; i++) {
		if (c->table->slot[i].state == OBJECT_SPILLED)
			continue;
		if (recovery_keeps(c, i))
			order[count++] =
				c->table->slot[i].offset / STORE_GRAIN_BYTES << ORDER_SHIFT | i;
		else if (c->table->slot[i].state != OBJECT_FREE ||
			 (atomic_load_explicit(&c->table->slot[i].sequence, memory_order_relaxed) &
			  1))
			objects_set_state(c, i, OBJECT_FREE);
	}
	recovery_sort(&c->store->objects, c->config.table_slots, count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t slot = (uint32_t)order[i] & ((1u << ORDER_SHIFT) - 1);

		m[slot].holds =
			allocator_take_at(&c->store->objects.space, c->table->slot[slot].offset,
					  objects_bytes(c, slot));
	}
	for (uint32_t i = 0; i < c->table->slots; i++) {
		uint32_t range = m[i].holds;

		recovery_wipe(&m[i]);
		if (range)
			recovery_keep(c, i, range);
		else if (c->table->slot[i].state == OBJECT_SPILLED)
			recovery_keep_spilled(c, i);
		else if (c->table->slot[i].state != OBJECT_FREE)
			objects_set_state(c, i, OBJECT_FREE);
	}
	texts_adopted(c);
	slots_adopted(c);
	objects_reap(c);
	resync_begin(c);
	return 0;
}
