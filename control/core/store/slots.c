/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/idmap.h"
#include "state.h"

enum {
	SLOTS_EVEN = 6
}; /* places of its first bucket that an object takes without a look at the
    * other one: a reader then looks at one line */

void slots_carve(struct slots *s, struct arena *a, uint32_t slots)
{
	uint32_t heads = 16;

	while (heads < slots)
		heads *= 2;
	s->head = arena_carve(a, sizeof(*s->head) * heads);
	s->chain = arena_carve(a, sizeof(*s->chain) * slots);
	s->mask = heads - 1;
	idmap_key(a, s->key);
}

static struct slots *slots_all(const struct control *c)
{
	return &c->store->objects.slots;
}

void slots_reset(struct control *c)
{
	struct slots *s = slots_all(c);

	memset(s->head, 0, sizeof(*s->head) * (s->mask + 1ull));
	s->fresh = s->free = s->used = 0;
}

/* [G8.4] */
uint32_t slots_take(struct control *c)
{
	struct slots *s = slots_all(c);
	uint32_t slot = s->free - 1;

	if (s->free)
		s->free = s->chain[slot];
	else if (s->fresh < c->table->slots)
		slot = s->fresh++;
	else
		return TABLE_SLOT_NONE;
	s->used++;
	return slot;
}

void slots_give(struct control *c, uint32_t slot)
{
	struct slots *s = slots_all(c);

	s->chain[slot] = s->free;
	s->free = slot + 1;
	s->used--;
}

/* ---- control's map --------------------------------------------------------------------------- */

static uint32_t *slots_head(const struct control *c, const struct object_id *id)
{
	const struct slots *s = slots_all(c);

	return &s->head[(uint32_t)object_id_hash(s->key, id) & s->mask];
}

uint32_t slots_find(struct control *c, const struct object_id *id)
{
	uint32_t i = *slots_head(c, id);

	while (i && (!object_id_equal(&c->table->slot[i - 1].id, id) ||
		     c->table->slot[i - 1].state == OBJECT_ZOMBIE))
		i = slots_all(c)->chain[i - 1];
	return i ? i - 1 : TABLE_SLOT_NONE;
}

/* ---- the index of the table ------------------------------------------------------------------ */

static unsigned slots_load(const struct object_bucket *b)
{
	unsigned n = 0;

	for (unsigned j = 0; j < OBJECT_BUCKET_PLACES; j++)
		n += atomic_load_explicit(&b->place[j], memory_order_relaxed) != 0;
	return n;
}

static void slots_index(struct control *c, uint32_t slot)
{
	struct object_key key = object_table_key(c->table, &c->table->slot[slot].id);
	uint32_t other = object_key_other(c->table, key.bucket, key.mark);
	struct object_bucket *b = object_table_bucket(c->table, key.bucket);
	unsigned load = slots_load(b);

	if (load >= SLOTS_EVEN && slots_load(object_table_bucket(c->table, other)) < load)
		b = object_table_bucket(c->table, other);
	for (unsigned j = 0; j < OBJECT_BUCKET_PLACES; j++) {
		if (atomic_load_explicit(&b->place[j], memory_order_relaxed))
			continue;
		crash_point();
		atomic_store_explicit(&b->place[j], object_place_make(key.mark, slot),
				      memory_order_release);
		crash_point();
		c->store->objects.meta[slot].indexed = true;
		return;
	}
}

static void slots_unindex(struct control *c, uint32_t slot)
{
	struct object_key key = object_table_key(c->table, &c->table->slot[slot].id);
	uint64_t place = object_place_make(key.mark, slot);

	if (!c->store->objects.meta[slot].indexed)
		return;
	c->store->objects.meta[slot].indexed = false;
	for (unsigned k = 0; k < 2; k++) {
		struct object_bucket *b = object_table_bucket(c->table, key.bucket);

		for (unsigned j = 0; j < OBJECT_BUCKET_PLACES; j++)
			if (atomic_load_explicit(&b->place[j], memory_order_relaxed) == place)
				atomic_store_explicit(&b->place[j], 0, memory_order_release);
		key.bucket = object_key_other(c->table, key.bucket, key.mark);
	}
	crash_point();
}

/* ---- both ------------------------------------------------------------------------------------ */

void slots_keep(struct control *c, uint32_t slot)
{
	uint32_t *head = slots_head(c, &c->table->slot[slot].id);

	slots_all(c)->chain[slot] = *head;
	*head = slot + 1;
	c->store->objects.meta[slot].found = true;
}

void slots_enter(struct control *c, uint32_t slot)
{
	slots_keep(c, slot);
	slots_index(c, slot);
}

void slots_leave(struct control *c, uint32_t slot)
{
	uint32_t *at = slots_head(c, &c->table->slot[slot].id);

	if (!c->store->objects.meta[slot].found)
		return;
	c->store->objects.meta[slot].found = false;
	while (*at != slot + 1)
		at = &slots_all(c)->chain[*at - 1];
	*at = slots_all(c)->chain[slot];
	slots_unindex(c, slot);
}

/* Whether a place that an earlier control wrote holds; the object is then marked as indexed. */
static bool slots_place_holds(struct control *c, uint32_t bucket, uint64_t place)
{
	uint32_t slot = (uint32_t)place - 1;
	struct object_key key;

	if (slot >= c->table->slots || !c->store->objects.meta[slot].found ||
	    c->store->objects.meta[slot].indexed)
		return false;
	key = object_table_key(c->table, &c->table->slot[slot].id);
	if (place >> 32 != key.mark ||
	    (bucket != key.bucket && bucket != object_key_other(c->table, key.bucket, key.mark)))
		return false;
	c->store->objects.meta[slot].indexed = true;
	return true;
}

void slots_adopted(struct control *c)
{
	struct slots *s = slots_all(c);

	/* Readers are looking at it: what holds stays. */
	for (uint32_t i = 0; i < c->table->buckets; i++) {
		struct object_bucket *b = object_table_bucket(c->table, i);

		for (unsigned j = 0; j < OBJECT_BUCKET_PLACES; j++) {
			uint64_t place = atomic_load_explicit(&b->place[j], memory_order_relaxed);

			if (place && !slots_place_holds(c, i, place))
				atomic_store_explicit(&b->place[j], 0, memory_order_relaxed);
		}
	}
	s->fresh = c->table->slots;
	s->used = s->fresh;
	while (s->fresh > 0 && c->table->slot[s->fresh - 1].state == OBJECT_FREE) {
		s->fresh--;
		s->used--;
	}
	for (uint32_t slot = s->fresh; slot-- > 0;) {
		if (c->store->objects.meta[slot].found && !c->store->objects.meta[slot].indexed)
			slots_index(c, slot);
		if (c->table->slot[slot].state == OBJECT_FREE)
			slots_give(c, slot);
	}
}
