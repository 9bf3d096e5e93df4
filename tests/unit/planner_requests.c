/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: those that contradict themselves or are too large are refused, and what the
 * representation has room for beyond the coordinator's limits is planned and verified. */
#include "planner_test.h"

static struct graph g;

static void requests_that_cannot_be_are_refused(void **state)
{
	struct planner_request q;
	struct planner_choice c;

	q = planner_asked(4, 1, 0, 1000);
	q.needed = 3;
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
	q = planner_asked(4, 1, 0, 1000);
	planner_asked_group[2].count = 2;
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
	q = planner_asked(4, 1, 0, 1000);
	planner_asked_group[2].node = GRAPH_NODE_NONE;
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
	q = planner_asked(1, 121, 0, 1000);
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
	q = planner_asked(0, 1, 0, 1000);
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
	q = planner_asked(4, 1, 0, 1000);
	q.chunk_bytes = 0;
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
	q = planner_asked(4, 1, 0, UINT64_MAX);
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
	q = planner_asked(1, 1, GRAPH_SLOTS_MAX, 1000);
	assert_int_equal(planner_choose(&q, &c), -E2BIG);
	q = planner_asked(1, 1, 7, 1000); /* nothing of it is late */
	assert_int_equal(planner_shape(&q, &planner_exchange, &c), -EINVAL);
	q = planner_asked(7, 1, 7, 1000);
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_int_equal(planner_build(&q, &c, planner_memory, planner_bytes(&c) - 1, &g), -ENOMEM);
}

/* 128 slots, each with a segment: what the representation has room for is planned and verified. */
static void more_slots_than_readers_have_bits(void **state)
{
	const uint32_t slots[] = {65, 128, GRAPH_SEGMENTS_MAX};

	for (uint32_t k = 0; k < 3; k++) {
		struct planner_limits wide = planner_limits_usual;
		struct planner_request q = planner_asked(slots[k], 1, 0, 64 << 20);
		struct planner_choice c;

		wide.graph.gather_slots_max = wide.segments_max = GRAPH_SLOTS_MAX;
		q.limits = &wide;
		assert_int_equal(planner_choose(&q, &c), 0);
		assert_ptr_equal(c.planner, &planner_chains);
		planner_built(&q, &c, &g);
		print_message("%u slots: %zu bytes\n", slots[k], planner_bytes(&c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_cannot_be_are_refused),
		cmocka_unit_test(more_slots_than_readers_have_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
