/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bitmap of arrived chunks: every function against one that looks at each bit, for all ranges
 * of short maps around the end of a word.
 */
#include "fixtures/control_test.h"
#include "core/base/bitmap.h"

enum { WORDS = 3, CHUNKS = 64 * WORDS };

static const uint64_t patterns[] = {
	0,
	UINT64_MAX,
	1,
	UINT64_C(1) << 63,
	0xf0f0f0f0f0f0f0f0,
	0x5555555555555555,
	0x7fffffffffffffff,
	0xfffffffffffffffe,
};
enum { PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

static bool has(const uint64_t *map, uint32_t chunk)
{
	return map[chunk / 64] >> (chunk % 64) & 1;
}

/* Calls for each map of three patterns. */
static void each_map(void (*look)(const uint64_t *map))
{
	for (uint32_t k = 0; k < PATTERNS * PATTERNS * PATTERNS; k++) {
		uint64_t map[WORDS] = {patterns[k % PATTERNS], patterns[k / PATTERNS % PATTERNS],
				       patterns[k / PATTERNS / PATTERNS]};

		look(map);
	}
}

static const uint32_t edges[] = {0, 1, 5, 63, 64, 65, 127, 128, 129, 190, 191, 192};
enum { EDGES = sizeof(edges) / sizeof(edges[0]) };

static void look_after(const uint64_t *map)
{
	for (uint32_t i = 0; i < EDGES; i++) {
		for (uint32_t k = i; k < EDGES; k++) {
			uint32_t end = edges[k], missing = 0;

			for (uint32_t at = edges[i]; at < end; at++)
				if (!has(map, at))
					assert_int_equal(
						bitmap_after(map, edges[i], end, missing++), at);
			assert_int_equal(bitmap_after(map, edges[i], end, missing), end);
		}
	}
}

static void look_run(const uint64_t *map)
{
	for (uint32_t i = 0; i < EDGES; i++) {
		for (uint32_t k = i; k < EDGES; k++) {
			uint32_t end = edges[k], at = edges[i], first = at, stop;

			while (first < end && !has(map, first))
				first++;
			for (stop = first; stop < end && has(map, stop);)
				stop++;
			assert_int_equal(bitmap_run(map, &at, end), stop);
			assert_int_equal(at, first);
		}
	}
}

static void look_runs(const uint64_t *map)
{
	struct chunk_run runs[CHUNK_RUNS_MAX];
	uint32_t count = bitmap_runs(map, 0, CHUNKS, runs), all = 0, shortest = CHUNKS, at = 0;

	assert_true(count <= CHUNK_RUNS_MAX);
	for (uint32_t i = 0; i < count; i++) { /* whole runs, in order */
		assert_true(runs[i].first >= at && runs[i].count > 0);
		at = runs[i].first + runs[i].count;
		assert_true(runs[i].first == 0 || !has(map, runs[i].first - 1));
		assert_true(at == CHUNKS || !has(map, at));
		for (uint32_t k = runs[i].first; k < at; k++)
			assert_true(has(map, k));
		shortest = runs[i].count < shortest ? runs[i].count : shortest;
	}
	for (uint32_t k = 0; k < CHUNKS; k++)
		all += has(map, k) && (k == 0 || !has(map, k - 1));
	/* what is left out is shorter than twice the shortest that could stay */
	assert_true(all == count || all > CHUNK_RUNS_MAX);
}

static void every_range_is_as_bit_by_bit(void **state)
{
	(void)state;
	each_map(look_after);
	each_map(look_run);
	each_map(look_runs);
}

static void setting_sets_these_and_no_others(void **state)
{
	(void)state;
	for (uint32_t first = 0; first < CHUNKS; first++) {
		for (uint32_t count = 0; first + count <= CHUNKS; count++) {
			uint64_t map[WORDS] = {0}, other[WORDS] = {1, 0, UINT64_C(1) << 63};

			bitmap_set(map, first, count);
			for (uint32_t k = 0; k < CHUNKS; k++)
				assert_int_equal(has(map, k), k >= first && k < first + count);
			bitmap_add(map, other, CHUNKS);
			for (uint32_t k = 0; k < CHUNKS; k++)
				assert_int_equal(has(map, k), (k >= first && k < first + count) ||
								      has(other, k));
		}
	}
	uint64_t map[WORDS] = {0}, other[WORDS] = {1, 1, 1};
	bitmap_add(map, other, 64); /* one word only */
	assert_true(map[0] == 1 && map[1] == 0);
	bitmap_add(map, other, 65);
	assert_true(map[1] == 1 && map[2] == 0);
}

static void a_map_is_valid_with_no_bit_behind_the_last_chunk(void **state)
{
	(void)state;
	for (uint32_t chunks = 0; chunks <= CHUNKS; chunks++) {
		for (uint32_t bit = 0; bit < (chunks + 63) / 64 * 64; bit++) {
			uint64_t map[WORDS] = {0};

			bitmap_set(map, 0, chunks);
			assert_true(bitmap_valid(map, chunks));
			bitmap_set(map, bit, 1);
			assert_int_equal(bitmap_valid(map, chunks), bit < chunks);
		}
	}
	uint64_t map[2] = {0};
	assert_false(bitmap_valid((const uint64_t *)(const void *)((const uint8_t *)map + 1), 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_range_is_as_bit_by_bit),
		cmocka_unit_test(setting_sets_these_and_no_others),
		cmocka_unit_test(a_map_is_valid_with_no_bit_behind_the_last_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
