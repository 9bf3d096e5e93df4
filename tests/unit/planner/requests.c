/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests: those that contradict themselves or are too large are refused, and what the
 * representation has room for beyond the coordinator's limits is planned and verified. */
#include "fixtures/planner_test.h"

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

/* With many slots there are fewer segments, so that not too many vertices have to be told to their
 * nodes. The usual limits have one tree for more than 64 slots. */
static void many_slots_share_segments(void **state)
{
	struct planner_limits wide = planner_limits_usual;
	static const struct {
		uint32_t slots, segments;
	} of[] = {{64, 64}, {65, 64}, {128, 64}, {129, 64}, {257, 63}, {1024, 16}};

	for (uint32_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		struct planner_request q = planner_asked(of[k].slots, 1, 0, 64 << 20);
		struct planner_choice c;
		uint32_t last = 0;

		assert_int_equal(planner_choose(&q, &c), 0);
		assert_ptr_equal(c.planner, k ? &planner_dary : &planner_chains);
		wide.flat_slots_max = GRAPH_SLOTS_MAX;
		q.limits = &wide;
		assert_int_equal(planner_choose(&q, &c), 0);
		assert_ptr_equal(c.planner, &planner_chains);
		assert_int_equal(c.size.segments, of[k].segments);
		planner_built(&q, &c, &g);
		assert_true(g.vertices <= planner_limits_usual.vertices_max);
		for (uint32_t j = 0; j < g.segments; j++) { /* the roots lie apart */
			uint32_t root = graph_slot_of(&g, g.segment[j].root);

			assert_true(j == 0 || root - last >= g.slots / g.segments);
			last = root;
		}
	}
}

/* What the representation has room for beyond the coordinator's limits is planned and verified. */
static void each_slot_may_have_a_segment(void **state)
{
	const uint32_t slots[] = {65, 128, GRAPH_SEGMENTS_MAX};

	for (uint32_t k = 0; k < 3; k++) {
		struct planner_limits wide = planner_limits_usual;
		struct planner_request q = planner_asked(slots[k], 1, 0, 64 << 20);
		struct planner_choice c;

		wide.vertices_max = UINT32_MAX;
		wide.flat_slots_max = GRAPH_SLOTS_MAX;
		wide.segments_max = GRAPH_SLOTS_MAX;
		q.limits = &wide;
		assert_int_equal(planner_choose(&q, &c), 0);
		assert_ptr_equal(c.planner, &planner_chains);
		assert_int_equal(c.size.segments, slots[k]);
		planner_built(&q, &c, &g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_cannot_be_are_refused),
		cmocka_unit_test(many_slots_share_segments),
		cmocka_unit_test(each_slot_may_have_a_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
