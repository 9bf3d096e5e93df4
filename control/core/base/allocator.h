/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of a bounded space (the object store, the bitmaps' corner of it, the inline values):
 * two-level segregated fit, O(1) for allocate and free, with the bookkeeping outside of the space.
 * M. Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004.
 *
 * A range is known by its number (never 0) from allocation until it is freed. Sizes are rounded up
 * to the grain. Nothing here touches the space itself.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_ALLOCATOR_H
#define SARISSA_CONTROL_CORE_BASE_ALLOCATOR_H

#include "arena.h"

enum {
	ALLOCATOR_ORDERS = 48, /* grains in a range: below 2^48 */
	ALLOCATOR_STEPS = 16,  /* size classes per power of two */
};

struct range {
	uint64_t offset, length; /* grains */
	uint32_t before, after;	 /* neighbours by address; 0: none */
	uint32_t prev, next;	 /* on a free list */
	bool taken;
};

struct allocator {
	struct pool ranges; /* number 0 is never given out */
	uint64_t grain_bytes;
	uint64_t length;     /* grains */
	uint64_t used_bytes; /* whole grains */
	uint32_t last;	     /* the range at the end of the space */
	uint64_t orders;     /* bit per order with a free range */
	uint16_t steps[ALLOCATOR_ORDERS];
	uint32_t free[ALLOCATOR_ORDERS][ALLOCATOR_STEPS];
};

/* Room for the bookkeeping of at most ranges_max allocated ranges. */
void allocator_carve(struct allocator *a, struct arena *arena, uint32_t ranges_max);

/* Makes the whole space free; may be called again. bytes is rounded down to the grain. */
void allocator_reset(struct allocator *a, uint64_t bytes, uint64_t grain_bytes);

/* A range of at least bytes (0 counts as 1), or 0 when there is none. */
uint32_t allocator_take(struct allocator *a, uint64_t bytes);

/* Takes the range at a known place. Calls must come in ascending order of offset, directly after
 * allocator_reset. Returns 0 when it overlaps, is not aligned or lies outside. */
uint32_t allocator_take_at(struct allocator *a, uint64_t offset, uint64_t bytes);

void allocator_give(struct allocator *a, uint32_t range);

/* The ranges tile the space in order, no two free ones touch, each free one is on the list of its
 * class, and the account is right. Looks at all of them: for tests. */
bool allocator_valid(const struct allocator *a);

/* Offset in bytes of a taken range. */
uint64_t allocator_offset(const struct allocator *a, uint32_t range);
uint64_t allocator_bytes(const struct allocator *a, uint32_t range);

#endif
