/* SPDX-License-Identifier: BSD-3-Clause */
/* The verifier: graphs that planners build and one with relays are right; each kind of change to
 * one is refused, with the text that says what is wrong. */
#include "fixtures/planner_test.h"

static struct graph g;

static void plan(const struct planner_request *q, const struct planner *p)
{
	struct planner_choice c;

	assert_int_equal(planner_shape(q, p, &c), 0);
	if (p == &planner_dary)
		c.degree = 2;
	planner_built(q, &c, &g);
}

/* Seven slots of two contributions, some late ones. */
static void tree(void)
{
	struct planner_request q = planner_asked(7, 2, 3, 1 << 20);

	plan(&q, &planner_dary);
}

static void chains(void)
{
	struct planner_request q = planner_asked(12, 1, 0, 1 << 20);

	plan(&q, &planner_chains);
	assert_non_null(g.feeder);
}

static void exchange(void)
{
	struct planner_request q = planner_asked(8, 1, 0, 32 << 10);

	plan(&q, &planner_exchange);
}

/* Two slots of three each give to a relay of their rack; the relays give to a root of their own. */
static void relays(void)
{
	assert_true(graph_begin(&g, (struct graph_size){6, 1, 3, false}, planner_memory,
				sizeof(planner_memory)));
	graph_cut(&g, 1 << 20, PLANNER_CHUNK);
	g.needed = 6;
	for (uint32_t i = 0; i < 6; i++)
		graph_join(&g, i, 6 + i / 3);
	graph_join(&g, 6, 8);
	graph_join(&g, 7, 8);
	for (uint32_t i = 0; i < 3; i++)
		g.relay[i] = (struct graph_relay){100 + i, 0};
	graph_settle(&g);
	assert_int_equal(g.segment[0].root, 8);
}

static void each_plan_is_right(void **state)
{
	void (*const build[])(void) = {tree, chains, exchange, relays};

	for (uint32_t i = 0; i < 4; i++) {
		const char *wrong;

		build[i]();
		wrong = verify_graph(&g, &planner_limits_usual.graph);
		if (wrong)
			fail_msg("%u: %s", i, wrong);
	}
}

/* ---- what is changed ------------------------------------------------------------------------ */

static uint32_t leaf(void) /* an alias in the tree that is no root */
{
	for (uint32_t v = 0; v < g.vertices; v++)
		if (g.vertex[v].ins == 0 && g.vertex[v].out != GRAPH_NONE)
			return v;
	fail();
	return 0;
}

#define CHANGE(name, ...)      \
	static void name(void) \
	{                      \
		__VA_ARGS__;   \
	}                      \
	_Static_assert(true, "")

CHANGE(one_slot_more, g.slots++);
CHANGE(no_slots, g.slots = 0);
CHANGE(many_segments, g.segments = GRAPH_SEGMENTS_MAX + 1);
CHANGE(an_edge_less, g.edges--);
CHANGE(another_output, g.out = 2);
CHANGE(values_in_a_tree, g.values = true);
CHANGE(gathered_by_the_root, g.out = GRAPH_OUT_ROOT);
CHANGE(no_chunks, g.chunk_bytes = 0);
CHANGE(a_chunk_more, g.size += PLANNER_CHUNK);
CHANGE(a_gap, g.segment[3].first++);
CHANGE(an_overlap, g.segment[2].count++);
CHANGE(an_empty_segment, g.segment[11].first += g.segment[11].count;
       g.segment[10].count += g.segment[11].count; g.segment[11].count = 0);
CHANGE(root_out_of_range, g.segment[0].root = g.vertices);
CHANGE(another_segments_root, g.segment[1].root = g.segment[2].root);
CHANGE(a_relay_of_nobody, g.relay[1].host = GRAPH_NODE_NONE);
CHANGE(a_relay_nowhere, g.relay[1].segment = 1);
CHANGE(no_contribution, g.slot[2].wants = g.slot[2].booked = 0);
CHANGE(many_contributions, g.slot[0].wants = g.slot[0].booked = 121);
CHANGE(booked_by_nobody, g.slot[0].host = GRAPH_NODE_NONE);
CHANGE(several_of_anybody, g.slot[0].host = GRAPH_NODE_NONE; g.slot[0].booked = 0);
CHANGE(booked_in_part, g.slot[0].booked = 1);
CHANGE(one_needed_more, g.needed++);
CHANGE(no_way_out, g.vertex[leaf()].out = GRAPH_NONE);
CHANGE(out_of_range, g.vertex[leaf()].out = g.vertices);
CHANGE(out_of_segment, g.vertex[leaf()].out = (g.vertex[leaf()].out + g.slots) % g.vertices);
CHANGE(a_root_that_gives, g.vertex[g.segment[0].root].out = leaf());
CHANGE(another_root, g.segment[0].root = leaf());
CHANGE(edges_out_of_range, g.vertex[g.segment[0].root].in = g.edges);
CHANGE(edges_far_out, g.vertex[g.segment[0].root].in = UINT32_MAX);
CHANGE(fewer_edges_in, g.vertex[g.segment[0].root].ins--);
CHANGE(a_child_twice, g.edge[g.vertex[g.segment[0].root].in].vertex =
			      g.edge[g.vertex[g.segment[0].root].in + 1].vertex);
CHANGE(an_edge_from_nowhere, g.edge[0].vertex = (1 << 24) - 1);
CHANGE(another_parent, g.vertex[leaf()].out = g.segment[0].root);
CHANGE(no_operation, g.vertex[0].op = 9);
CHANGE(an_alias_with_edges,
       g.vertex[g.edge[g.vertex[g.segment[0].root].in].vertex].op = GRAPH_ALIAS);
CHANGE(an_alias_of_two, g.vertex[leaf()].op = GRAPH_ALIAS);
CHANGE(an_alias_as_root, g.vertex[g.segment[0].root].op = GRAPH_ALIAS);
CHANGE(two_targets, g.vertex[leaf()].target = true);
CHANGE(no_target, g.vertex[g.segment[0].root].target = false);
CHANGE(a_target_of_readers, g.vertex[g.segment[0].root].target = true);
CHANGE(late_values, g.slot[3].host = GRAPH_NODE_NONE; g.slot[3].booked = 0);
CHANGE(fed_by_itself, g.feeder[5] = 5);
CHANGE(fed_in_a_circle, g.feeder[5] = 6; g.feeder[6] = 5);
CHANGE(fed_from_nowhere, g.feeder[5] = 12);
CHANGE(a_root_that_is_fed, g.feeder[0] = 1);

/* Two vertices take from each other, and each edge has its inverse. */
static void a_circle(void)
{
	struct graph_vertex *a = &g.vertex[1], *b = &g.vertex[2];

	/* in the chain of segment 0: 1 -> 2 -> 3 ...; now 1 <-> 2, and 3 takes from nobody */
	assert_int_equal(a->out, 2);
	assert_int_equal(b->out, 3);
	a->ins = 1;
	a->in = g.vertex[3].in;
	g.vertex[3].ins = 0;
	g.edge[a->in].vertex = 2;
	b->out = 1;
}

/* More edges than a vertex may have, all in order. */
static void a_wide_star(void)
{
	struct planner_request q = planner_asked(0, 1, 200, 1 << 20);
	struct planner_choice c;

	assert_int_equal(planner_shape(&q, &planner_dary, &c), 0);
	c.degree = 121;
	assert_int_equal(planner_build(&q, &c, planner_memory, sizeof(planner_memory), &g), 0);
}

static void large_values(void)
{
	struct planner_request q = planner_asked(2, 1, 0, 1 << 20);

	plan(&q, &planner_chains);
	g.values = true;
}

static void a_relay_of_nothing(void)
{
	assert_true(graph_begin(&g, (struct graph_size){2, 1, 1, false}, planner_memory,
				sizeof(planner_memory)));
	graph_cut(&g, 1 << 20, PLANNER_CHUNK);
	g.needed = 2;
	graph_join(&g, 0, 1);
	graph_join(&g, 2, 1);
	g.relay[0].host = 7;
	graph_settle(&g);
}

static void a_relay_that_feeds(void)
{
	struct graph_size size = {2, 1, 1, true};

	assert_true(graph_begin(&g, size, planner_memory, sizeof(planner_memory)));
	graph_cut(&g, 1 << 20, PLANNER_CHUNK);
	g.needed = 2;
	graph_join(&g, 0, 2);
	graph_join(&g, 1, 2);
	g.relay[0].host = 7;
	graph_settle(&g);
	g.out = GRAPH_OUT_GATHER;
	g.vertex[2].target = false;
}

static const struct change {
	void (*build)(void), (*change)(void);
	const char *wrong; /* the beginning of what is said */
} changes[] = {
	{tree, no_slots, "no such number"},
	{tree, many_segments, "no such number"},
	{tree, one_slot_more, "a slot has not one vertex"},
	{tree, an_edge_less, "not every vertex but the roots"},
	{tree, another_output, "no such output"},
	{tree, values_in_a_tree, "a target that its root builds"},
	{chains, gathered_by_the_root, "a target that its root builds"},
	{chains, no_chunks, "no such size"},
	{chains, a_chunk_more, "the segments do not tile"},
	{chains, a_gap, "the segments do not tile"},
	{chains, an_overlap, "the segments do not tile"},
	{chains, an_empty_segment, "the segments do not tile"},
	{chains, root_out_of_range, "a segment's root is no vertex"},
	{chains, another_segments_root, "a segment's root is another"},
	{relays, a_relay_of_nobody, "a relay has no segment"},
	{relays, a_relay_nowhere, "a relay has no segment"},
	{tree, no_contribution, "a slot wants no contribution"},
	{tree, many_contributions, "a slot wants no contribution"},
	{tree, booked_by_nobody, "a slot is booked"},
	{tree, booked_in_part, "a slot is booked"},
	{tree, several_of_anybody, "a slot of several"},
	{tree, one_needed_more, "the slots do not take"},
	{tree, no_way_out, "a vertex gives to nobody"},
	{tree, out_of_range, "an edge leads out"},
	{chains, out_of_segment, "an edge leads out"},
	{chains, a_root_that_gives, "a root gives"},
	{chains, another_root, "a vertex gives to nobody"},
	{tree, a_wide_star, "a vertex takes too many"},
	{tree, edges_out_of_range, "a vertex's edges"},
	{tree, edges_far_out, "a vertex's edges"},
	{tree, fewer_edges_in, "an edge leads to no vertex"},
	{tree, a_child_twice, "an edge is not the inverse"},
	{tree, an_edge_from_nowhere, "an edge is not the inverse"},
	{tree, another_parent, "an edge is not the inverse"},
	{chains, a_circle, "vertices take from each other"},
	{tree, no_operation, "no such operation"},
	{relays, a_relay_of_nothing, "a relay takes from nobody"},
	{chains, an_alias_with_edges, "an alias"},
	{tree, an_alias_of_two, "an alias"},
	{chains, an_alias_as_root, "an alias"},
	{tree, two_targets, "the target is built"},
	{tree, no_target, "the target is built"},
	{chains, a_target_of_readers, "the target is built"},
	{exchange, large_values, "a segment is too large"},
	{exchange, late_values, "values are exchanged"},
	{chains, fed_by_itself, "a slot's feeders"},
	{chains, fed_in_a_circle, "a slot's feeders"},
	{chains, fed_from_nowhere, "a slot's feeders"},
	{chains, a_root_that_is_fed, "a root that readers"},
	{relays, a_relay_that_feeds, "a root that readers"},
};

static void each_change_is_refused(void **state)
{
	for (uint32_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		const char *wrong;

		changes[i].build();
		changes[i].change();
		wrong = verify_graph(&g, &planner_limits_usual.graph);
		if (!wrong || strncmp(wrong, changes[i].wrong, strlen(changes[i].wrong)))
			fail_msg("change %u (%s): %s", i, changes[i].wrong,
				 wrong ? wrong : "right");
	}
}

static void too_many_readers_are_refused(void **state)
{
	struct graph_limits few = planner_limits_usual.graph;

	chains();
	few.gather_slots_max = g.slots - 1;
	assert_string_equal(verify_graph(&g, &few), "more slots than readers can be fed from");
	few.gather_slots_max = g.slots;
	assert_null(verify_graph(&g, &few));
}

static void a_reader_of_too_many_parts_is_refused(void **state)
{
	struct graph_limits few = planner_limits_usual.graph;

	chains();
	few.parts_max = 12; /* and the last segment comes in two parts */
	assert_non_null(verify_graph(&g, &few));
	few.parts_max = 13;
	assert_null(verify_graph(&g, &few));
}

/* Slots whose contributions are in a vertex's partial sum, counted along the edges. */
static void count_slots(uint32_t v, uint32_t *count, uint32_t depth)
{
	const struct graph_vertex *p = &g.vertex[v];

	assert_true(depth < g.vertices);
	if (!graph_is_relay(&g, v))
		count[graph_slot_of(&g, v)]++;
	for (uint32_t k = 0; k < p->ins; k++)
		count_slots(g.edge[p->in + k].vertex, count, depth + 1);
}

/* What the verifier promises, without its way of finding out. */
static void each_slot_is_in_each_segment_once(void)
{
	uint64_t chunks = 0;

	for (uint32_t j = 0; j < g.segments; j++) {
		uint32_t count[GRAPH_SLOTS_MAX] = {0};

		count_slots(g.segment[j].root, count, 0);
		for (uint32_t i = 0; i < g.slots; i++)
			assert_int_equal(count[i], 1);
		assert_int_equal(g.segment[j].first, chunks);
		chunks += g.segment[j].count;
	}
	assert_int_equal(chunks, (g.size + PLANNER_CHUNK - 1) / PLANNER_CHUNK);
}

/* Any bytes where the arrays were: nothing is read out of their range, no check goes on for ever.
 */
static void noise_is_refused_or_right(void **state)
{
	void (*const build[])(void) = {tree, chains, exchange, relays};
	uint64_t seed = 11;
	uint32_t right = 0;

	for (uint32_t run = 0; run < 20000; run++) {
		size_t bytes;

		build[run % 4]();
		bytes = graph_bytes((struct graph_size){g.slots, g.segments, g.relays, g.feeder});
		for (uint32_t k = planner_draw(&seed, 4); k < 4; k++)
			planner_memory[planner_draw(&seed, (uint32_t)bytes)] =
				(uint8_t)planner_draw(&seed, 256);
		if (verify_graph(&g, &planner_limits_usual.graph))
			continue;
		right++;
		each_slot_is_in_each_segment_once();
	}
	print_message("%u of 20000 are right still\n", right);
	assert_in_range(right, 1, 8000); /* preferred roots and feeders may differ */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_plan_is_right),
		cmocka_unit_test(each_change_is_refused),
		cmocka_unit_test(too_many_readers_are_refused),
		cmocka_unit_test(a_reader_of_too_many_parts_is_refused),
		cmocka_unit_test(noise_is_refused_or_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
