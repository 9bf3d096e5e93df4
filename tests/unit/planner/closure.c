/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of the closure, one by one: what restarts when something of a running reduce is lost,
 * and what stays. planner_run has random losses, and what must hold whatever happens.
 */
#include "fixtures/planner_test.h"
#include "core/planner/closure.h"

enum { SLOTS = 8, VERTICES = 64, SOURCES = 16 };

static struct {
	struct graph g;
	struct graph_run run;
	struct run_slot slot[SLOTS];
	uint8_t vertex[VERTICES];
	struct run_contribution contribution[SOURCES];
	struct closure_vacated vacated[SOURCES];
	uint64_t reachable;
	struct closure k;
} t;

/* Slot i has one contribution, of node i; all that add up have begun. */
static void begin_run(void)
{
	t.run = (struct graph_run){t.slot, t.vertex};
	t.reachable = UINT64_MAX;
	t.k = (struct closure){.graph = &t.g,
			       .run = &t.run,
			       .contribution = t.contribution,
			       .contributions = t.g.slots,
			       .reachable = &t.reachable,
			       .nodes = 64,
			       .vacated = t.vacated};
	for (uint32_t i = 0; i < t.g.slots; i++) {
		t.slot[i] = (struct run_slot){i, 1};
		t.contribution[i] = (struct run_contribution){i, i, true, false};
	}
	for (uint32_t v = 0; v < t.g.vertices; v++)
		t.vertex[v] = t.g.vertex[v].op == GRAPH_SUM ? RUN_STARTED : 0;
}

/* A chain of so many slots: slot i gives to slot i + 1. */
static void begin_chain(uint32_t n)
{
	struct planner_request q = planner_asked(n, 1, 0, 1 << 20);
	struct planner_choice c;

	q.everyone = false;
	q.caller = GRAPH_NODE_NONE;
	assert_int_equal(planner_shape(&q, &planner_dary, &c), 0);
	c.degree = 1;
	planner_built(&q, &c, &t.g);
	begin_run();
}

/* So many segments, each with a chain that ends at its own slot. */
static void begin_chains(uint32_t p)
{
	const struct planner_request q = planner_asked(p, 1, 0, (uint64_t)p * PLANNER_CHUNK * 20);
	struct planner_choice c;

	assert_int_equal(planner_shape(&q, &planner_chains, &c), 0);
	planner_built(&q, &c, &t.g);
	begin_run();
}

static bool lose_node(uint32_t node)
{
	t.reachable &= ~(UINT64_C(1) << node);
	return closure_node_lost(&t.k, node);
}

static void a_loss_restarts_all_that_take_from_it(void **state)
{
	begin_chain(5);
	t.vertex[1] |= RUN_DELIVERED | RUN_DONE;
	assert_true(lose_node(2));
	assert_true(closure_run(&t.k)); /* and with the root the output */
	assert_int_equal(t.vertex[0], 0);
	assert_int_equal(t.vertex[1], RUN_STARTED | RUN_DONE); /* it is given again */
	for (uint32_t v = 2; v < 5; v++)
		assert_int_equal(t.vertex[v], RUN_RESTART);
	assert_int_equal(t.k.vacated_count, 1);
	assert_int_equal(t.vacated[0].contribution, 2);
	assert_false(t.vacated[0].avoid);
	assert_int_equal(t.slot[2].has, 0);
	assert_int_equal(t.slot[2].host, GRAPH_NODE_NONE);
	assert_int_equal(t.slot[3].host, 3);
}

static void what_was_delivered_is_not_missed(void **state)
{
	begin_chain(5);
	t.vertex[1] |= RUN_DELIVERED;
	assert_false(lose_node(1));
	assert_int_equal(t.vertex[1], RUN_STARTED | RUN_DELIVERED | RUN_GONE);
	assert_int_equal(t.k.vacated_count, 0);
	/* until the one that has it is lost */
	assert_true(lose_node(2));
	assert_true(closure_run(&t.k));
	for (uint32_t v = 1; v < 5; v++)
		assert_int_equal(t.vertex[v], RUN_RESTART);
	assert_int_equal(t.vertex[0], 0);
	assert_int_equal(t.k.vacated_count, 2);
}

static void a_contribution_that_is_in_a_sum_elsewhere_is_not_missed(void **state)
{
	begin_chain(3);
	t.contribution[1].node = 7; /* slot 1 is built at node 1 */
	t.contribution[1].absorbed = true;
	assert_false(lose_node(7));
	assert_int_equal(t.k.vacated_count, 0);
	t.contribution[1].absorbed = false;
	assert_true(lose_node(7));
	assert_int_equal(t.k.vacated_count, 1);
}

static void what_has_not_begun_does_not_restart(void **state)
{
	begin_chain(4);
	t.vertex[3] = RUN_DIRTY;
	assert_true(lose_node(2));
	assert_false(closure_run(&t.k));
	assert_int_equal(t.vertex[2], RUN_RESTART);
	assert_int_equal(t.vertex[3], RUN_DIRTY);
}

static void a_slot_has_one_set_in_all_segments(void **state)
{
	begin_chains(3);
	closure_vacate(&t.k, 0, true);
	assert_true(t.vacated[0].avoid);
	for (uint32_t j = 0; j < 3; j++)
		assert_true(t.vertex[graph_vertex_of(&t.g, j, 0)] & RUN_RESTART);
	assert_true(closure_run(&t.k));
	/* segment 2 begins with slot 0, segment 1 has it in the middle, segment 0 at the end */
	assert_false(t.vertex[graph_vertex_of(&t.g, 0, 1)] & RUN_RESTART);
	assert_false(t.vertex[graph_vertex_of(&t.g, 0, 2)] & RUN_RESTART);
	assert_true(t.vertex[graph_vertex_of(&t.g, 1, 1)] & RUN_RESTART);
	assert_false(t.vertex[graph_vertex_of(&t.g, 1, 2)] & RUN_RESTART);
	assert_true(t.vertex[graph_vertex_of(&t.g, 2, 1)] & RUN_RESTART);
	assert_true(t.vertex[graph_vertex_of(&t.g, 2, 2)] & RUN_RESTART);
}

static void a_part_whose_host_is_out_of_reach_restarts_too(void **state)
{
	begin_chain(4);
	t.vertex[1] |= RUN_DELIVERED;
	t.reachable &= ~(UINT64_C(1) << 1);
	t.vertex[2] |= RUN_RESTART;
	assert_true(closure_run(&t.k));
	assert_int_equal(t.vertex[1], RUN_RESTART);
	assert_int_equal(t.k.vacated_count, 1);
	assert_int_equal(t.vacated[0].contribution, 1);
	assert_true(t.vacated[0].avoid);
}

static void a_slot_stays_where_one_of_its_contributions_is(void **state)
{
	begin_chain(3);
	t.contribution[3] = (struct run_contribution){9, 1, true, false};
	t.contribution[4] = (struct run_contribution){8, 1, true, false};
	t.k.contributions = 5;
	t.slot[1].has = 3;
	closure_vacate(&t.k, 3, false);
	assert_true(closure_run(&t.k));
	assert_int_equal(t.slot[1].host, 1);
	closure_vacate(&t.k, 1, false);
	assert_true(closure_run(&t.k));
	assert_int_equal(t.slot[1].host, 8);
	assert_int_equal(t.slot[1].has, 1);
}

/* Two slots of three each give to a relay of their rack, and those to a third relay. */
static void a_relay_restarts_with_what_it_gives_to(void **state)
{
	assert_true(graph_begin(&t.g, (struct graph_size){6, 1, 3, false}, planner_memory,
				sizeof(planner_memory)));
	graph_cut(&t.g, 1 << 20, 1408);
	t.g.needed = 6;
	for (uint32_t i = 0; i < 6; i++)
		graph_join(&t.g, i, 6 + i / 3);
	graph_join(&t.g, 6, 8);
	graph_join(&t.g, 7, 8);
	for (uint32_t i = 0; i < 3; i++)
		t.g.relay[i] = (struct graph_relay){10 + i, 0};
	graph_settle(&t.g);
	assert_null(verify_graph(&t.g, &planner_limits_usual.graph));
	begin_run();
	t.vertex[7] |= RUN_DELIVERED | RUN_DONE;
	assert_true(lose_node(10));
	assert_true(closure_run(&t.k));
	assert_int_equal(t.vertex[6], RUN_RESTART);
	assert_int_equal(t.vertex[7], RUN_STARTED | RUN_DONE); /* it is given again */
	assert_int_equal(t.vertex[8], RUN_RESTART);
	assert_int_equal(t.k.vacated_count, 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(t.vertex[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loss_restarts_all_that_take_from_it),
		cmocka_unit_test(what_was_delivered_is_not_missed),
		cmocka_unit_test(a_contribution_that_is_in_a_sum_elsewhere_is_not_missed),
		cmocka_unit_test(what_has_not_begun_does_not_restart),
		cmocka_unit_test(a_slot_has_one_set_in_all_segments),
		cmocka_unit_test(a_part_whose_host_is_out_of_reach_restarts_too),
		cmocka_unit_test(a_slot_stays_where_one_of_its_contributions_is),
		cmocka_unit_test(a_relay_restarts_with_what_it_gives_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
