/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of broadcast trees against trees that are played through, chunk by chunk. */
#include "fixtures/control_test.h"
#include "core/planner/cost.h"
#include "core/planner/fanout.h"
#include "core/planner/planner.h"

enum { CHUNK = 1408, RECEIVERS_MAX = 200, CHUNKS_MAX = 4096 };

static const struct topology_link links[] = {
	/* hop, start, B */
	{100000, 200000, 25000000},   /* 200 Mbit/s, emulated */
	{20000, 100000, 1250000000},  /* 10 Gbit/s */
	{5000, 20000, 12500000000},   /* 100 Gbit/s */
	{5000000, 2000000, 12500000}, /* far away */
};
enum { LINKS = sizeof(links) / sizeof(links[0]) };

static const uint64_t sizes[] = {1, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static uint64_t chunk_ns(const struct topology_link *l, uint64_t bytes)
{
	return (uint64_t)((double)(bytes < CHUNK ? bytes : CHUNK) * 1e9 / (double)l->bytes_per_s);
}

/* One node: when each chunk is there. It sends each to its children in turn as it comes. */
static void play_node(const struct topology_link *l, uint64_t (*at)[CHUNKS_MAX], uint32_t node,
		      uint32_t n, uint32_t d, uint32_t chunks, uint64_t each_ns)
{
	uint64_t free_ns = 0;

	for (uint32_t k = 0; k < chunks; k++) {
		for (uint32_t child = node * d + 1; child <= node * d + d && child <= n; child++) {
			free_ns = (free_ns > at[node][k] ? free_ns : at[node][k]) + each_ns;
			at[child][k] = free_ns + l->latency_ns;
		}
	}
}

/* Until all n receivers of a d-ary tree, filled level by level, have all chunks. */
static uint64_t play_tree(const struct topology_link *l, uint32_t n, uint32_t d, uint64_t bytes)
{
	static uint64_t at[RECEIVERS_MAX + 1][CHUNKS_MAX];
	uint32_t chunks = (uint32_t)((bytes + CHUNK - 1) / CHUNK);
	uint64_t last = 0;

	memset(at[0], 0, sizeof(at[0]));
	for (uint32_t node = 0; node <= n; node++)
		play_node(l, at, node, n, d, chunks, chunk_ns(l, bytes));
	for (uint32_t node = 1; node <= n; node++)
		last = at[node][chunks - 1] > last ? at[node][chunks - 1] : last;
	return l->start_ns + last;
}

/* The directory's node sends n whole values, one after the other. */
static uint64_t play_star(const struct topology_link *l, uint32_t n, uint64_t bytes)
{
	return (uint64_t)((double)n * (double)bytes * 1e9 / (double)l->bytes_per_s) + l->latency_ns;
}

static uint64_t play_best(const struct topology_link *l, uint32_t n, uint64_t bytes)
{
	uint64_t best = UINT64_MAX;

	for (uint32_t d = 1; d <= PLANNER_WIDTH_MAX && d <= n; d++) {
		uint64_t ns = play_tree(l, n, d, bytes);

		best = ns < best ? ns : best;
	}
	return best;
}

/* A tree with all its levels full takes what the formula says; others take less. */
static void the_formula_is_what_full_trees_take(void **state)
{
	static const uint32_t full[][2] = {{1, 1},  {7, 1},  {6, 2}, {14, 2},
					   {12, 3}, {20, 4}, {9, 9}};

	(void)state;
	for (int l = 0; l < LINKS; l++) {
		for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
			uint32_t n = full[i][0], d = full[i][1];
			uint64_t bytes = 100 * CHUNK, played = play_tree(&links[l], n, d, bytes);
			uint64_t told = cost_broadcast_ns(n, d, (struct cost_object){bytes, CHUNK},
							  links[l]);

			assert_in_range(told, played - played / 100, played + played / 100);
			assert_true(play_tree(&links[l], n - (n > 1), d, bytes) <=
				    told + told / 100);
		}
	}
}

static void the_tree_chosen_is_near_the_best(void **state)
{
	static const uint32_t counts[] = {1, 2, 3, 7, 15, 16, 31, 100, 200};

	(void)state;
	for (int l = 0; l < LINKS; l++)
		for (int s = 0; s < SIZES; s++)
			for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
				uint32_t n = counts[i];
				uint32_t d = planner_width(links[l], n, sizes[s], CHUNK);
				uint64_t chosen = play_tree(&links[l], n, d, sizes[s]);

				assert_true(d >= 1 && d <= n);
				assert_true(chosen * 100 <=
					    play_best(&links[l], n, sizes[s]) * 115);
			}
}

static void values_go_along_only_when_that_is_faster(void **state)
{
	uint32_t both[2] = {0, 0};

	(void)state;
	for (int l = 0; l < LINKS; l++)
		for (int s = 0; s < SIZES; s++)
			for (uint32_t n = 1; n <= 64; n = n * 2 + 1) {
				bool star = planner_inline(links[l], n, sizes[s], CHUNK);
				uint64_t tree_ns = play_best(&links[l], n, sizes[s]);
				uint64_t star_ns = play_star(&links[l], n, sizes[s]);

				both[star]++;
				assert_true(n > 1 || star); /* a single receiver */
				assert_true((star ? star_ns : tree_ns) * 100 <=
					    (star ? tree_ns : star_ns) * 115);
			}
	assert_true(both[0] > 10 && both[1] > 10);
}

static void size_makes_chains_and_start_ups_make_trees(void **state)
{
	const struct topology_link *slow = &links[0], *fast = &links[2];

	(void)state;
	assert_int_equal(planner_width(*slow, 7, 32 << 20, CHUNK), 1);
	assert_int_equal(planner_width(*slow, 15, 1 << 20, CHUNK), 1);
	assert_int_equal(planner_width(*slow, 15, 65536, CHUNK), 1);
	assert_true(planner_width(*slow, 200, 65536, CHUNK) > 1);
	assert_true(planner_width(*fast, 15, 65536, CHUNK) > 1);
	assert_int_equal(planner_width(*fast, 15, UINT64_C(1) << 30, CHUNK), 1);
	assert_int_equal(planner_width(*fast, 1000, UINT64_C(1) << 30, CHUNK), 1);
	assert_true(planner_inline(*slow, 15, 1024, CHUNK));
	assert_false(planner_inline(*slow, 15, 65536, CHUNK));
	/* nothing overflows */
	assert_int_equal(planner_width(*slow, 100, UINT64_C(1) << 50, CHUNK), 1);
	assert_true(planner_width(*slow, UINT32_MAX, UINT64_MAX, CHUNK) >= 1);
}

static void measurements_count_as_the_header_says(void **state)
{
	struct fanout_link l = fanout_prior();

	(void)state;
	fanout_saw_start(&l, 700000);
	assert_int_equal(l.start_ns, 700000); /* the first replaces the guess, be it worse */
	fanout_saw_start(&l, 300000);
	assert_int_equal(l.start_ns, 300000);
	fanout_saw_start(&l, 620000);
	assert_int_equal(l.start_ns, 310000);
	fanout_saw_hop(&l, 50000);
	assert_int_equal(l.hop_ns, 50000);
	l.hop_seen = false;
	fanout_saw_hop(&l, 9000000); /* a slow handshake */
	fanout_saw_start(&l, 300000);
	assert_int_equal(l.hop_ns, 150000);
	fanout_saw_rate(&l, 25000000);
	assert_int_equal(l.bytes_per_s, 25000000);
	fanout_saw_rate(&l, 50000000);
	assert_int_equal(l.bytes_per_s, 50000000);
	for (int i = 0; i < 400; i++)
		fanout_saw_rate(&l, 10000000);
	assert_in_range(l.bytes_per_s, 10000000, 10100000);
	assert_int_equal(fanout_rate(&l, FANOUT_RATE_BYTES, 2 * l.start_ns),
			 FANOUT_RATE_BYTES * UINT64_C(1000000000) / l.start_ns);
	assert_int_equal(fanout_rate(&l, FANOUT_RATE_BYTES - 1, l.start_ns), 0); /* too few */
	assert_int_equal(fanout_rate(&l, UINT64_MAX, 1), 0);
	fanout_saw_rate(&l, 0); /* from the network: any number is survived */
	for (int i = 0; i < 3; i++)
		fanout_saw_rate(&l, UINT64_MAX);
	assert_true(planner_width((struct topology_link){l.hop_ns, l.start_ns, l.bytes_per_s}, 15,
				  1 << 20, CHUNK) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_formula_is_what_full_trees_take),
		cmocka_unit_test(the_tree_chosen_is_near_the_best),
		cmocka_unit_test(values_go_along_only_when_that_is_faster),
		cmocka_unit_test(size_makes_chains_and_start_ups_make_trees),
		cmocka_unit_test(measurements_count_as_the_header_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
