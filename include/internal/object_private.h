/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The private part of the object table: one memfd that only control maps, and that the dataplane
 * keeps for the control after it. For each slot of the table it has a note of who made the object,
 * and its text: metadata and name. Behind the notes lies what control remembers of deleted objects.
 *
 * Texts lie in boxes of a few sizes. Each size has a region of its own with a box for every slot,
 * so that a slot always finds one, whatever was there before; memory that no text has touched does
 * not exist. Which boxes are free follows from the notes.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_OBJECT_PRIVATE_H
#define SARISSA_INCLUDE_INTERNAL_OBJECT_PRIVATE_H

#include "object_meta.h"
#include "object_table.h"

#define OBJECT_PRIVATE_MAGIC 0x3156525053524153ull /* "SARSPRV1" */

enum {
	OBJECT_NAME_BYTES = 256, /* with the terminating zero */
	OBJECT_TEXT_SIZES = 9,
	OBJECT_TEXT_BYTES_MAX = sizeof(struct object_meta) + OBJECT_NAME_BYTES,
	OBJECT_TEXT_SHIFT = 24, /* of the size in a note; below it the box's number + 1 */
};

/* A text: one byte with the length of the metadata, the metadata, the name and its zero. */
static const uint16_t object_text_bytes[OBJECT_TEXT_SIZES] = {16,  32,	48,  64, 96,
							      128, 192, 256, 392};
_Static_assert(OBJECT_TEXT_BYTES_MAX <= 392, "the longest text fits the largest box");

/* More of the object in a slot. */
struct object_note {
	uint64_t birth;	  /* of the creator's process (struct control_client) */
	uint32_t process; /* CREATING: the client's process, as the kernel names it; 0: unknown, or
			   * nobody: it is made from others. The others say something only then */
	uint32_t user;
	uint32_t owned; /* low bits of the generation that counts as this user's bytes, | 1 */
	uint32_t text;	/* size << OBJECT_TEXT_SHIFT | box + 1; 0: no name and no metadata */
};
_Static_assert(sizeof(struct object_note) == 24, "no holes");

/* A tombstone (control/core/directory/directory.h). While generation is 0 the rest says nothing. */
struct object_tombstone {
	struct object_id id;
	_Atomic uint64_t generation;
	uint64_t request;
	uint32_t node;
	uint32_t order; /* rises with each delete that control hears of */
};
_Static_assert(sizeof(struct object_tombstone) == 40, "no holes");

struct object_private {
	uint64_t magic;
	uint32_t slots;		  /* of the table */
	uint32_t tombstones;	  /* count, a power of two */
	uint64_t incarnation;	  /* of the table */
	_Atomic uint64_t horizon; /* highest generation of a tombstone that was forgotten */
	uint8_t pad[32];
	struct object_note note[];
};
_Static_assert(sizeof(struct object_private) == 64, "the notes start on a cache line");

static inline uint32_t object_private_tombstones(uint32_t slots)
{
	uint32_t count = 2;
	while (count < slots)
		count *= 2;
	return count;
}

/* Where the boxes of a size begin; of OBJECT_TEXT_SIZES: where they all end. */
static inline uint64_t object_private_texts(uint32_t slots, unsigned size)
{
	uint64_t at = sizeof(struct object_private) + (uint64_t)slots * sizeof(struct object_note) +
		      (uint64_t)object_private_tombstones(slots) * sizeof(struct object_tombstone);
	for (unsigned i = 0; i < size; i++)
		at += (uint64_t)slots * object_text_bytes[i];
	return at;
}

static inline uint64_t object_private_bytes(uint32_t slots)
{
	return object_private_texts(slots, OBJECT_TEXT_SIZES) + OBJECT_TEXT_BYTES_MAX;
}

/* Makes the header in zeroed memory of object_private_bytes(t->slots). */
static inline void object_private_begin(struct object_private *p, const struct object_table *t)
{
	p->slots = t->slots;
	p->tombstones = object_private_tombstones(t->slots);
	p->incarnation = t->incarnation;
	p->magic = OBJECT_PRIVATE_MAGIC;
}

/* Whether a header that another process wrote holds, in memory of that many bytes, and belongs to
 * the table, which holds. */
static inline bool object_private_valid(const struct object_private *p, uint64_t bytes,
					const struct object_table *t)
{
	return bytes >= sizeof(*p) && p->magic == OBJECT_PRIVATE_MAGIC && p->slots == t->slots &&
	       p->tombstones == object_private_tombstones(t->slots) &&
	       p->incarnation == t->incarnation && object_private_bytes(t->slots) <= bytes;
}

static inline struct object_tombstone *object_private_tombstone(struct object_private *p)
{
	return (struct object_tombstone *)(void *)&p->note[p->slots];
}

#endif
