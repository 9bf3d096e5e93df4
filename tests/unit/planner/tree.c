/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of reduce trees: every n and d up to 200, Hoplite's worked example. */
#include "fixtures/control_test.h"
#include "fixtures/tree_test.h"

enum { COUNT_MAX = 200, VALUES = 3 };

/* ---- consistency ---------------------------------------------------------------------------- */

/* Appends the positions below i to order: first child, node, other children. Returns the height. */
static uint32_t walk(uint32_t n, uint32_t d, uint32_t i, uint32_t *order, uint32_t *count)
{
	uint32_t child[COUNT_MAX], height = 0;
	uint32_t children = children_of(n, d, i, child);

	assert_in_range(children, 0, d);
	for (uint32_t j = 0; j < children; j++) {
		uint32_t below;

		assert_int_equal(parent_of(n, d, child[j]), i);
		below = walk(n, d, child[j], order, count);
		height = height > below + 1 ? height : below + 1;
		if (j == 0)
			order[(*count)++] = i;
	}
	if (children == 0)
		order[(*count)++] = i;
	return height;
}

/* The least depth into which n positions fit. */
static uint32_t least_depth(uint32_t n, uint32_t d)
{
	uint32_t depth = 0;

	for (uint64_t level = 1, room = 1; room < n; depth++)
		room += level *= d;
	return depth;
}

static void positions_are_the_inorder_of_the_shallowest_tree(void **state)
{
	for (uint32_t n = 1; n <= COUNT_MAX; n++)
		for (uint32_t d = 1; d <= n; d++) {
			uint32_t order[COUNT_MAX], count = 0;
			uint32_t root = top_of(n, d);
			uint32_t height = walk(n, d, root, order, &count);

			assert_int_equal(count, n);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(order[i], i);
			assert_int_equal(parent_of(n, d, root), GRAPH_NONE);
			assert_int_equal(tree_depth(n, d), height);
			assert_int_equal(height, least_depth(n, d));
		}
}

static void degree_one_is_the_chain_and_the_largest_the_star(void **state)
{
	uint32_t child[GRAPH_SLOTS_MAX];
	const uint32_t n = GRAPH_SLOTS_MAX;

	assert_int_equal(top_of(n, 1), n - 1);
	assert_int_equal(tree_depth(n, 1), n - 1);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(parent_of(n, 1, i), i + 1 < n ? i + 1 : GRAPH_NONE);
		assert_int_equal(children_of(n, 1, i, child), i > 0);
		assert_true(i == 0 || child[0] == i - 1);
	}
	for (uint32_t d = n - 1; d; d = d < n ? n : d < UINT32_MAX ? UINT32_MAX : 0) {
		assert_int_equal(top_of(n, d), 1);
		assert_int_equal(tree_depth(n, d), 1);
		assert_int_equal(children_of(n, d, 1, child), n - 1);
		for (uint32_t j = 0; j < n - 1; j++) {
			assert_int_equal(child[j], j + (j > 0));
			assert_int_equal(parent_of(n, d, child[j]), 1);
		}
	}
}

static void ends_of_the_range_have_a_tree(void **state)
{
	const struct topology_link link = {1, 1, 0};
	const struct cost_object one = {1, 1}, most = {UINT64_MAX, 1};

	assert_int_equal(cost_tree_degree(GRAPH_SLOTS_MAX, most, link), 1);
	assert_int_equal(top_of(1, 7), 0);
	assert_int_equal(cost_tree_degree(1, one, link), 1);
	assert_int_equal(cost_tree_ns(1, 1, one, link), 0);
}

/* Values up to the limit are faster than any tree, larger ones are not. */
static void values_pay_up_to_a_size(void **state)
{
	static const struct {
		uint32_t n;
		struct topology_link link;
		uint64_t setup_ns, least, most;
	} known[] = {
		{16, {300000, 0, 9000000}, 400000, 512, 4096},	     /* 75 Mbit/s */
		{8, {300000, 0, 25000000}, 400000, 4096, 16384},     /* 200 Mbit/s */
		{16, {120000, 0, 1250000000}, 200000, 16384, 65535}, /* as assumed */
		{5, {120000, 0, 1250000000}, 200000, 65536, 65536},  /* the same, all */
		{1, {300000, 0, 9000000}, 0, 0, 0},
		{GRAPH_SLOTS_MAX, {1, 0, 1}, 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint64_t setup = known[i].setup_ns;
		uint64_t limit =
			cost_values_max(known[i].n, known[i].n, 65536, 1408, setup, known[i].link);

		assert_in_range(limit, known[i].least, known[i].most);
		for (uint64_t size = 64; size <= 65536; size += 64) {
			uint32_t d = cost_tree_degree(known[i].n, (struct cost_object){size, 1408},
						      known[i].link);
			uint64_t tree = setup + cost_tree_ns(known[i].n, d,
							     (struct cost_object){size, 1408},
							     known[i].link);
			double values = (double)known[i].n * (double)size * 1e9 /
					(double)known[i].link.bytes_per_s;

			assert_true(size <= limit ? values <= (double)tree
						  : size < limit + 64 || values > (double)tree);
		}
	}
}

/* ---- the worked example of Hoplite's paper: sums of three numbers over six positions, d = 2 ---
 */

struct sums {
	int at[6][VALUES]; /* the partial result of each position */
	uint32_t made[6];  /* how often it has been computed */
};

static void add_up(struct sums *s, const int (*object)[VALUES], uint32_t i)
{
	uint32_t child[2];
	uint32_t children = children_of(6, 2, i, child);

	for (int v = 0; v < VALUES; v++) {
		s->at[i][v] = object[i][v];
		for (uint32_t j = 0; j < children; j++)
			s->at[i][v] += s->at[child[j]][v];
	}
	s->made[i]++;
}

static void add_up_below(struct sums *s, const int (*object)[VALUES], uint32_t i)
{
	uint32_t child[2];
	uint32_t children = children_of(6, 2, i, child);

	for (uint32_t j = 0; j < children; j++)
		add_up_below(s, object, child[j]);
	add_up(s, object, i);
}

static void partial_is(const struct sums *s, uint32_t i, int a, int b, int c)
{
	assert_int_equal(s->at[i][0], a);
	assert_int_equal(s->at[i][1], b);
	assert_int_equal(s->at[i][2], c);
}

static void worked_example_and_its_repair(void **state)
{
	int object[6][VALUES] = {{1, 2, 3}, {1, 2, 1}, {2, 0, 1},  /* R1 R2 R3 */
				 {0, 1, 0}, {2, 2, 3}, {0, 1, 1}}; /* R4 R5 R6 */
	const int returned[VALUES] = {2, 1, 0};			   /* R7 */
	static const uint32_t parent[6] = {1, 3, 1, GRAPH_NONE, 5, 3};
	static const uint32_t made[6] = {1, 2, 1, 2, 1, 1};
	struct sums s = {0};

	assert_int_equal(top_of(6, 2), 3);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(parent_of(6, 2, i), parent[i]);
	add_up_below(&s, object, 3);
	partial_is(&s, 1, 4, 4, 5);
	partial_is(&s, 5, 2, 3, 4);
	partial_is(&s, 3, 6, 8, 9);

	/* R2 is lost: R7 takes its position, only it and what lies above is computed again */
	memcpy(object[1], returned, sizeof(returned));
	for (uint32_t i = 1; i != GRAPH_NONE; i = parent_of(6, 2, i))
		add_up(&s, object, i);
	partial_is(&s, 1, 5, 3, 4);
	partial_is(&s, 5, 2, 3, 4);
	partial_is(&s, 3, 7, 7, 8);
	assert_memory_equal(s.made, made, sizeof(made));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(positions_are_the_inorder_of_the_shallowest_tree),
		cmocka_unit_test(degree_one_is_the_chain_and_the_largest_the_star),
		cmocka_unit_test(ends_of_the_range_have_a_tree),
		cmocka_unit_test(values_pay_up_to_a_size),
		cmocka_unit_test(worked_example_and_its_repair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
