/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The object table: one memfd that control writes, the dataplane writes one word of (watermark),
 * and clients map read-only. It outlives each of the two processes in the hands of the other. It
 * holds what a client needs to find, pin and read an object, and nothing else of it: its name, its
 * creator and so on lie in object_private.h, which clients never map.
 *
 * An object stays in its slot, any of them, while anybody may use it. Each slot has a sequence
 * counter (odd while control changes it): a reader copies the slot, then checks that the counter
 * was even and is unchanged.
 *
 * Behind the slots lies an index: buckets of places, each of which names a slot and half of the
 * hash of its id. An object has at most one place, in one of two buckets that follow from the hash
 * (Azar et al., "Balanced allocations", SIAM J. Comput. 29, 1999), and never changes it. With two
 * places for each slot, an object finds both buckets full once in a million, or when somebody who
 * has read the seed wants it so. Then it has no place, and its readers have to ask control.
 *
 * A reader that wants to use the bytes pins the slot first in its session's pin page (session.h):
 * write the pin, full fence, read the slot again; if it still names the same id and generation and
 * is readable, control will not free its range until the pin is gone. Hazard pointers: M. M.
 * Michael, IEEE TPDS 15(6), 2004.
 *
 * The metadata of an object (object_meta.h) lies in the store, right behind its bytes.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_OBJECT_TABLE_H
#define SARISSA_INCLUDE_INTERNAL_OBJECT_TABLE_H

#include "ids.h"
#include "sequence.h"

#define OBJECT_TABLE_MAGIC 0x354c425453524153ull /* "SARSTBL5" */

enum {
	OBJECT_TABLE_SLOTS_DEFAULT = 65536,
	OBJECT_TABLE_SLOTS_MIN = 1024, /* that a user may choose; tests make smaller ones */
	OBJECT_TABLE_SLOTS_MAX = 1 << 20,
	OBJECT_BUCKET_PLACES = 8,
};

enum object_state {
	OBJECT_FREE,
	OBJECT_CREATING, /* a client of this node writes it; watermark = published bytes */
	OBJECT_FETCHING, /* arrives from elsewhere; watermark = contiguous ready bytes */
	OBJECT_SEALED,	 /* complete and immutable */
	OBJECT_ZOMBIE,	 /* deleted or evicted, freed when the last pin is gone */
	OBJECT_SPILLED,	 /* complete, in a file: offset says nothing. GET brings it back */
};

enum {
	OBJECT_FLAG_PRIMARY = 1,  /* put on this node, or appointed as the copy that stays when that
				   * one was lost: never evicted */
	OBJECT_FLAG_REPLACED = 2, /* ZOMBIE: another generation of the same takes its place */
	OBJECT_FLAG_LOST = 4,	  /* ZOMBIE: nobody has the part of it that did not arrive */
	OBJECT_FLAG_STAGED = 8, /* CREATING: its creator writes it elsewhere, and control copies */
	OBJECT_FLAG_APPOINTED = 32, /* PRIMARY until the one that was put is there again */
};

struct object_slot {
	_Atomic uint32_t sequence;
	uint16_t state; /* enum object_state */
	uint16_t flags;
	struct object_id id;
	uint64_t generation;	    /* of the object: a deleted and re-put id gets another */
	uint64_t offset;	    /* bytes, in the store */
	uint64_t size;		    /* bytes */
	_Atomic uint64_t watermark; /* bytes readable from the start; only grows */
	uint32_t chunk_bytes;
	uint8_t meta_bytes; /* of metadata, at offset + size; not when SPILLED */
	uint8_t pad[3];
};
_Static_assert(sizeof(struct object_slot) == 64, "a slot is one cache line");

/* A place is 0, or object_place_make. */
struct object_bucket {
	_Alignas(64) _Atomic uint64_t place[OBJECT_BUCKET_PLACES];
};
_Static_assert(sizeof(struct object_bucket) == 64, "a bucket is one cache line");

struct object_table {
	uint64_t magic;
	uint32_t slots; /* count */
	uint32_t slot_bytes;
	uint64_t store_bytes; /* size of the store memfd */
	uint64_t incarnation; /* of the node that this store belongs to */
	/* Control changes it when it takes over the table of an earlier control, whose sessions'
	 * pins it does not know, before it frees anything. A client compares it with the value at
	 * ATTACH whenever it has set a pin by itself. */
	_Atomic uint64_t control_epoch;
	uint64_t seed[2]; /* key of the index's hash, random */
	uint32_t buckets; /* count, a power of two */
	uint32_t pad;
	struct object_slot slot[];
};
_Static_assert(sizeof(struct object_table) == 64, "the slots start on a cache line");

/* Two places for each slot. */
static inline uint32_t object_table_buckets(uint32_t slots)
{
	uint32_t buckets = 2;
	while ((uint64_t)buckets * OBJECT_BUCKET_PLACES < 2ull * slots)
		buckets *= 2;
	return buckets;
}

/* Bytes of a table with this many slots, with all that follows them. */
static inline uint64_t object_table_bytes(uint32_t slots)
{
	return sizeof(struct object_table) + (uint64_t)slots * sizeof(struct object_slot) +
	       (uint64_t)object_table_buckets(slots) * sizeof(struct object_bucket);
}

/* Makes the header of an empty table in zeroed memory of object_table_bytes(slots). */
static inline void object_table_begin(struct object_table *t, uint32_t slots, uint64_t store_bytes,
				      uint64_t incarnation, const uint64_t seed[2])
{
	t->slots = slots;
	t->slot_bytes = sizeof(struct object_slot);
	t->store_bytes = store_bytes;
	t->incarnation = incarnation;
	t->seed[0] = seed[0];
	t->seed[1] = seed[1];
	t->buckets = object_table_buckets(slots);
	t->magic = OBJECT_TABLE_MAGIC;
}

/* Whether a header that another process wrote holds, in memory of that many bytes. */
static inline bool object_table_valid(const struct object_table *t, uint64_t table_bytes,
				      uint64_t store_bytes)
{
	if (table_bytes < sizeof(*t) || t->magic != OBJECT_TABLE_MAGIC)
		return false;
	uint32_t slots = t->slots;
	return slots > 0 && slots <= OBJECT_TABLE_SLOTS_MAX && t->store_bytes == store_bytes &&
	       t->slot_bytes == sizeof(struct object_slot) &&
	       t->buckets == object_table_buckets(slots) &&
	       object_table_bytes(slots) <= table_bytes;
}

static inline struct object_bucket *object_table_bucket(const struct object_table *t, uint32_t i)
{
	return (struct object_bucket *)(uintptr_t)&t->slot[t->slots] + i;
}

/* Where an id may have its place. */
struct object_key {
	uint32_t bucket; /* first; the other one: object_key_other */
	uint32_t mark;	 /* upper half of the hash */
};

static inline struct object_key object_table_key(const struct object_table *t,
						 const struct object_id *id)
{
	uint64_t hash = object_id_hash(t->seed, id);
	return (struct object_key){(uint32_t)hash & (t->buckets - 1), (uint32_t)(hash >> 32)};
}

/* The other bucket of that mark: it leads back, too. */
static inline uint32_t object_key_other(const struct object_table *t, uint32_t bucket,
					uint32_t mark)
{
	return bucket ^ ((mark | 1) & (t->buckets - 1));
}

static inline uint64_t object_place_make(uint32_t mark, uint32_t slot)
{
	return (uint64_t)mark << 32 | (slot + 1);
}

/*
 * Copies a consistent image of slot i into out (sequence field excluded: left 0). Returns false
 * when control kept changing it for a bounded number of tries; the caller tries again or asks.
 */
static inline bool object_slot_read(const struct object_table *t, uint32_t i,
				    struct object_slot *out)
{
	const struct object_slot *s = &t->slot[i];
	for (int tries = 0; tries < 64; tries++) {
		uint32_t before = sequence_read(&s->sequence);
		if (before & 1)
			continue;
		out->state = s->state;
		out->flags = s->flags;
		out->id = s->id;
		out->generation = s->generation;
		out->offset = s->offset;
		out->size = s->size;
		out->chunk_bytes = s->chunk_bytes;
		out->meta_bytes = s->meta_bytes;
		atomic_store_explicit(&out->watermark,
				      atomic_load_explicit(&s->watermark, memory_order_acquire),
				      memory_order_relaxed);
		if (sequence_whole(&s->sequence, before))
			return true;
	}
	return false;
}

/* Finds an id: its slot index and image, or -1. No system call, no lock, bounded work. */
static inline int64_t object_table_find(const struct object_table *t, const struct object_id *id,
					struct object_slot *out)
{
	struct object_key key = object_table_key(t, id);
	for (unsigned k = 0; k < 2; k++) {
		const struct object_bucket *b = object_table_bucket(t, key.bucket);
		for (unsigned j = 0; j < OBJECT_BUCKET_PLACES; j++) {
			uint64_t place = atomic_load_explicit(&b->place[j], memory_order_acquire);
			uint32_t i = (uint32_t)place - 1;
			if (place >> 32 == key.mark && i < t->slots &&
			    object_slot_read(t, i, out) && out->state != OBJECT_FREE &&
			    out->state != OBJECT_ZOMBIE && object_id_equal(&out->id, id))
				return i;
		}
		key.bucket = object_key_other(t, key.bucket, key.mark);
	}
	return -1;
}

#endif
