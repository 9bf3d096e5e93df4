/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the bitmap of arrived chunks, one bit each, while a worker sets bits in it. Bits are only
 * ever set: so an answer may be a moment old, but a chunk that it shows has arrived.
 * internal/record.h counts missing ones.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_BITMAP_H
#define SARISSA_CONTROL_CORE_BASE_BITMAP_H

#include <stdbool.h>
#include <stdint.h>
#include "internal/record.h"

enum { CHUNK_RUNS_MAX = 32 };

struct chunk_run {
	uint32_t first, count;
};

/* Of so many chunks: whole words, and no bit behind the last chunk. For tests: a bitmap lies in the
 * store, where a client may write, so that no process may end for one that is not. */
bool bitmap_valid(const uint64_t *map, uint32_t chunks);
/* The chunk of [first, end) before which so many are missing; end when fewer are. */
uint32_t bitmap_after(const uint64_t *map, uint32_t first, uint32_t end, uint32_t missing);
/* The longest runs of [first, end) that are there, in rising order; returns how many. */
uint32_t bitmap_runs(const uint64_t *map, uint32_t first, uint32_t end,
		     struct chunk_run runs[CHUNK_RUNS_MAX]);
/* The next run that is there, from *at on: [*at, the returned end); empty at the end of the range.
 */
uint32_t bitmap_run(const uint64_t *map, uint32_t *at, uint32_t end);
/* Sets the bits of [first, first + count): the map is not shared yet. */
void bitmap_set(uint64_t *map, uint32_t first, uint32_t count);
/* Sets what is set in another map of so many chunks. */
void bitmap_add(uint64_t *map, const uint64_t *other, uint32_t chunks);

#endif
