/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules by which a contribution takes a slot: binding.h. planner_run binds at random. */
#include "fixtures/planner_test.h"
#include "core/planner/binding.h"

enum { SLOTS = 8, CALLER = 1 };

static struct graph g;
static struct run_slot slot[SLOTS];
static const struct graph_run run = {slot, NULL};

/* One tree for node CALLER: so many groups of `each` contributions are there, of nodes from 0 on,
 * others come late. */
static void begin(uint32_t groups, uint32_t each, uint32_t late)
{
	struct planner_request q = planner_asked(groups, each, late, 1 << 20);
	struct planner_choice c;

	q.everyone = false;
	assert_int_equal(planner_shape(&q, &planner_dary, &c), 0);
	planner_built(&q, &c, &g);
	for (uint32_t i = 0; i < g.slots; i++)
		slot[i] = (struct run_slot){g.slot[i].host, 0};
}

static bool take(uint32_t at, uint32_t node)
{
	struct graph_run r = run;

	return binding_take(&g, &r, at, node);
}

static uint32_t root(void)
{
	return g.segment[0].root;
}

static void booked_slots_are_their_nodes(void **state)
{
	begin(4, 2, 0);
	for (uint32_t node = 0; node < 4; node++) {
		uint32_t at = binding_booked(&g, &run, node);

		assert_int_equal(g.slot[at].host, node);
		assert_false(take(at, node)); /* it wants two */
		assert_int_equal(binding_booked(&g, &run, node), at);
		assert_true(take(at, node));
		assert_int_equal(binding_booked(&g, &run, node), GRAPH_NONE);
	}
	assert_int_equal(binding_slot(&g, &run, 0), GRAPH_NONE);
}

static void late_ones_take_slots_in_order(void **state)
{
	begin(0, 1, 5);
	for (uint32_t k = 0; k < 5; k++) {
		uint32_t at = binding_slot(&g, &run, 20 + k);

		assert_int_equal(at, k);
		assert_true(take(at, 20 + k));
		assert_int_equal(slot[at].host, 20 + k);
	}
	assert_int_equal(binding_slot(&g, &run, 30), GRAPH_NONE);
}

static void the_root_is_meant_for_the_caller(void **state)
{
	begin(0, 1, 5);
	assert_int_equal(binding_slot(&g, &run, CALLER), root());
	assert_int_equal(g.slot[root()].prefer, CALLER);
	take(root(), CALLER);
	/* a second one of its node has the next slot, as all others */
	assert_int_equal(binding_slot(&g, &run, CALLER), 0);
	/* nor does it take what another one has begun */
	begin(0, 1, 5);
	slot[root()].host = 7;
	assert_int_equal(binding_slot(&g, &run, CALLER), 0);
}

static void a_lost_place_is_the_first_that_is_filled(void **state)
{
	begin(4, 1, 0);
	for (uint32_t node = 0; node < 4; node++)
		take(binding_booked(&g, &run, node), node);
	slot[2] = (struct run_slot){GRAPH_NODE_NONE, 0};
	assert_int_equal(binding_slot(&g, &run, 9), 2);
	assert_true(take(2, 9));
	assert_int_equal(slot[2].host, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(booked_slots_are_their_nodes),
		cmocka_unit_test(late_ones_take_slots_in_order),
		cmocka_unit_test(the_root_is_meant_for_the_caller),
		cmocka_unit_test(a_lost_place_is_the_first_that_is_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
