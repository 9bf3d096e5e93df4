/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of one object (GET_RANGES of session.h), and where their bytes lie in a scratch object
 * that has only the chunks that they touch, in rising order, each once. Used by control, which has
 * the scratch object built, and by the client, which copies from it. It must not know who holds the
 * object.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_OBJECT_RANGES_H
#define SARISSA_INCLUDE_INTERNAL_OBJECT_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct object_range {
	uint64_t offset, bytes;
};

/* The chunks of the ranges so far. Zeroed but for chunk_bytes. */
struct object_ranges {
	uint32_t chunk_bytes;
	uint32_t runs;	     /* of neighbouring chunks */
	uint64_t first, end; /* of the last run: chunks of the object */
	uint64_t to;	     /* of the last run: its first chunk in the scratch object */
	uint64_t chunks;     /* in the scratch object */
};

static inline bool object_range_fits(const struct object_range *r, uint64_t size)
{
	return r->offset <= size && r->bytes <= size - r->offset;
}

/* Adds a range, which begins at no byte before the last one's first. Returns where its bytes lie in
 * the scratch object. */
static inline uint64_t object_ranges_add(struct object_ranges *all, const struct object_range *r)
{
	uint64_t first = r->offset / all->chunk_bytes, end;

	if (r->bytes == 0)
		return 0;
	end = (r->offset + r->bytes - 1) / all->chunk_bytes + 1;
	if (all->runs == 0 || first > all->end) {
		all->runs++;
		all->first = all->end = first;
		all->to = all->chunks;
	}
	if (end > all->end) {
		all->chunks += end - all->end;
		all->end = end;
	}
	return (all->to + first - all->first) * all->chunk_bytes + r->offset % all->chunk_bytes;
}

/* Bytes of the scratch object. */
static inline uint64_t object_ranges_bytes(const struct object_ranges *all, uint64_t size)
{
	uint64_t end = all->end * all->chunk_bytes;

	return all->chunks * all->chunk_bytes - (all->runs > 0 && end > size ? end - size : 0);
}

#endif
