/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bounded table of equal items, carved once from the memory that the owner gave. Untouched items
 * are never written, so a large pool costs only the pages in use. An item taken is zeroed.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_ARENA_H
#define SARISSA_CONTROL_CORE_BASE_ARENA_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define POOL_NONE UINT32_MAX

struct pool {
	uint8_t *items;
	uint32_t *next_free; /* by index */
	uint32_t item_bytes;
	uint32_t capacity;
	uint32_t fresh; /* items from here on were never taken */
	uint32_t free;	/* head of the list of given-back items */
	uint32_t used;
};

/* A cursor over the owner's memory; with memory NULL it only adds up. */
struct arena {
	uint8_t *memory;
	size_t bytes;
	uint64_t hash_key[2]; /* of the tables in it that find things by id: random and secret */
};

static inline void *arena_carve(struct arena *a, size_t bytes)
{
	size_t at = (a->bytes + 63) & ~(size_t)63;

	a->bytes = at + bytes;
	return a->memory ? a->memory + at : NULL;
}

static inline void pool_carve(struct pool *p, struct arena *a, uint32_t item_bytes,
			      uint32_t capacity)
{
	uint8_t *items = arena_carve(a, (size_t)item_bytes * capacity);
	uint32_t *links = arena_carve(a, sizeof(uint32_t) * capacity);

	*p = (struct pool){items, links, item_bytes, capacity, 0, POOL_NONE, 0};
}

static inline void *pool_at(const struct pool *p, uint32_t index)
{
	assert(index < p->capacity);
	return p->items + (size_t)index * p->item_bytes;
}

static inline uint32_t pool_index(const struct pool *p, const void *item)
{
	assert((const uint8_t *)item >= p->items);
	return (uint32_t)(((const uint8_t *)item - p->items) / p->item_bytes);
}

/* A zeroed item, or NULL when all are taken. [G1.11] */
static inline void *pool_take(struct pool *p)
{
	uint32_t index = p->free;

	if (index != POOL_NONE)
		p->free = p->next_free[index];
	else if (p->fresh < p->capacity)
		index = p->fresh++;
	else
		return NULL;
	p->used++;
	assert(p->used <= p->fresh);
	return memset(pool_at(p, index), 0, p->item_bytes);
}

static inline void pool_give(struct pool *p, void *item)
{
	uint32_t index = pool_index(p, item);

	assert(index < p->fresh && p->used > 0);
	p->next_free[index] = p->free;
	p->free = index;
	p->used--;
}

#endif
