/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The object table: one memfd that control writes, the dataplane writes one word of (watermark),
 * and clients map read-only. It outlives each of the two processes in the hands of the other.
 *
 * Open addressing on the object id, linear probing, at most OBJECT_TABLE_PROBE slots from home;
 * slots never move. Each slot has a sequence counter (odd while control changes it): a
 * reader copies the slot, then checks that the counter was even and is unchanged.
 *
 * A reader that wants to use the bytes pins the slot first in its session's pin page (session.h):
 * write the pin, full fence, read the slot again; if it still names the same id and generation and
 * is readable, control will not free its range until the pin is gone. Hazard pointers: M. M.
 * Michael, IEEE TPDS 15(6), 2004.
 *
 * Behind the slots and their names lies what control remembers of deleted objects and of creators,
 * for the control that takes the table over. Nobody else reads or writes it.
 */
#ifndef SARISSA_INTERNAL_OBJECT_TABLE_H
#define SARISSA_INTERNAL_OBJECT_TABLE_H

#include "internal/ids.h"
#include "internal/sequence.h"

#define OBJECT_TABLE_MAGIC 0x344c425453524153ull /* "SARSTBL4" */

enum {
	OBJECT_TABLE_SLOTS_DEFAULT = 65536, /* a power of two */
	OBJECT_TABLE_PROBE = 64,
	OBJECT_NAME_BYTES = 256,
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
	uint32_t creator; /* CREATING: the client's process, as the kernel names it; 0: unknown,
			   * or nobody: it is made from others */
};
_Static_assert(sizeof(struct object_slot) == 64, "a slot is one cache line");

struct object_table {
	uint64_t magic;
	uint32_t slots; /* count, a power of two */
	uint32_t slot_bytes;
	uint64_t store_bytes;  /* size of the store memfd */
	uint64_t incarnation;  /* of the node that this store belongs to */
	uint64_t names_offset; /* bytes: char[slots][OBJECT_NAME_BYTES], zero-terminated */
	/* Control changes it when it takes over the table of an earlier control, whose sessions'
	 * pins it does not know, before it frees anything. A client compares it with the value at
	 * ATTACH whenever it has set a pin by itself. */
	_Atomic uint64_t control_epoch;
	_Atomic uint64_t horizon; /* highest generation of a tombstone that was forgotten */
	uint8_t pad[8];
	struct object_slot slot[];
};
_Static_assert(sizeof(struct object_table) == 64, "the slots start on a cache line");

/* A tombstone (control/core/directory/directory.h). While generation is 0 the rest says nothing. */
struct object_tombstone {
	struct object_id id;
	_Atomic uint64_t generation;
	uint64_t request;
	uint32_t node;
	uint32_t order; /* rises with each delete that control hears of */
};
_Static_assert(sizeof(struct object_tombstone) == 40, "no holes");

/* More of who creates the object in a slot. */
struct object_creator {
	uint64_t birth; /* of the process (struct control_client) */
	uint32_t user;
	uint32_t owned; /* low bits of the generation that counts as this user's bytes, | 1 */
};
_Static_assert(sizeof(struct object_creator) == 16, "no holes");

/* Bytes of a table with this many slots, with all that follows them. */
static inline uint64_t object_table_bytes(uint32_t slots)
{
	return sizeof(struct object_table) +
	       (uint64_t)slots * (sizeof(struct object_slot) + OBJECT_NAME_BYTES +
				  sizeof(struct object_tombstone) + sizeof(struct object_creator));
}

/* Makes the header of an empty table in zeroed memory of object_table_bytes(slots). */
static inline void object_table_begin(struct object_table *t, uint32_t slots, uint64_t store_bytes,
				      uint64_t incarnation)
{
	t->slots = slots;
	t->slot_bytes = sizeof(struct object_slot);
	t->store_bytes = store_bytes;
	t->incarnation = incarnation;
	t->names_offset = sizeof(*t) + (uint64_t)slots * sizeof(struct object_slot);
	t->magic = OBJECT_TABLE_MAGIC;
}

/* Whether a header that another process wrote holds, in memory of that many bytes. */
static inline bool object_table_valid(const struct object_table *t, uint64_t table_bytes,
				      uint64_t store_bytes)
{
	if (table_bytes < sizeof(*t) || t->magic != OBJECT_TABLE_MAGIC)
		return false;
	uint32_t slots = t->slots;
	return slots > 0 && (slots & (slots - 1)) == 0 && t->store_bytes == store_bytes &&
	       t->slot_bytes == sizeof(struct object_slot) &&
	       t->names_offset == sizeof(*t) + (uint64_t)slots * sizeof(struct object_slot) &&
	       object_table_bytes(slots) <= table_bytes;
}

/* As many as there are slots. */
static inline struct object_tombstone *object_table_tombstones(struct object_table *t)
{
	return (struct object_tombstone *)(void *)((uint8_t *)t + t->names_offset +
						   (uint64_t)t->slots * OBJECT_NAME_BYTES);
}

/* One for each slot. */
static inline struct object_creator *object_table_creators(struct object_table *t)
{
	return (struct object_creator *)(void *)(object_table_tombstones(t) + t->slots);
}

/* The slot where probing for an id starts. The id is a hash already. */
static inline uint32_t object_table_home(const struct object_table *t, const struct object_id *id)
{
	uint32_t h;
	memcpy(&h, id->bytes, sizeof(h));
	return h & (t->slots - 1);
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
	uint32_t home = object_table_home(t, id);
	for (uint32_t k = 0; k < OBJECT_TABLE_PROBE; k++) {
		uint32_t i = (home + k) & (t->slots - 1);
		if (object_slot_read(t, i, out) && out->state != OBJECT_FREE &&
		    out->state != OBJECT_ZOMBIE && object_id_equal(&out->id, id))
			return i;
	}
	return -1;
}

#endif
