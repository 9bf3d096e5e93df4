/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "bitmap.h"

bool bitmap_valid(const uint64_t *map, uint32_t chunks)
{
	return (uintptr_t)map % sizeof(*map) == 0 &&
	       (chunks % 64 == 0 || map[chunks / 64] >> (chunks % 64) == 0);
}

uint32_t bitmap_after(const uint64_t *map, uint32_t first, uint32_t end, uint32_t missing)
{
	for (uint32_t w = first / 64; first < end && w <= (end - 1) / 64; w++) {
		uint64_t holes = chunks_holes(map, w, first, end);
		uint32_t here = (uint32_t)__builtin_popcountll(holes);

		if (here <= missing) {
			missing -= here;
			continue;
		}
		for (; missing > 0; missing--)
			holes &= holes - 1;
		return w * 64 + (uint32_t)__builtin_ctzll(holes);
	}
	return end;
}

uint32_t bitmap_run(const uint64_t *map, uint32_t *at, uint32_t end)
{
	uint32_t i = *at;

	while (i < end && chunks_missing(map, i, i + 1)) {
		uint64_t there = i % 64 == 0 ? ~chunks_holes(map, i / 64, i, UINT32_MAX)
					     : 1; /* MUTANT-OK: only speed */

		i += there == 0 ? 64 : 1;
	}
	*at = i < end ? i : end;
	return bitmap_after(map, *at, end, 0);
}

uint32_t bitmap_runs(const uint64_t *map, uint32_t first, uint32_t end,
		     struct chunk_run runs[CHUNK_RUNS_MAX])
{
	for (uint32_t shortest = 1;; shortest *= 2) {
		uint32_t count = 0, at = first;

		while (at < end && count <= CHUNK_RUNS_MAX) {
			uint32_t stop = bitmap_run(map, &at, end);

			if (stop - at >= shortest && count++ < CHUNK_RUNS_MAX)
				runs[count - 1] = (struct chunk_run){at, stop - at};
			at = stop;
		}
		if (count <= CHUNK_RUNS_MAX)
			return count;
	}
}

void bitmap_set(uint64_t *map, uint32_t first, uint32_t count)
{
	assert(count <= UINT32_MAX - first);
	for (uint32_t i = first; i < first + count;) {
		uint32_t in_word = 64 - i % 64, left = first + count - i;
		uint32_t run = in_word < left ? in_word : left;
		uint64_t bits = run == 64 ? UINT64_MAX : (UINT64_C(1) << run) - 1;

		map[i / 64] |= bits << (i % 64);
		i += run;
	}
}

void bitmap_add(uint64_t *map, const uint64_t *other, uint32_t chunks)
{
	assert(chunks > 0);
	for (uint32_t w = 0; w <= (chunks - 1) / 64; w++)
		map[w] |= __atomic_load_n(&other[w], __ATOMIC_RELAXED);
}
