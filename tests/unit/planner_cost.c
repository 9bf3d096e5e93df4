/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model against the two that it replaces, bit for bit: trees, slow links, degrees, values,
 * exchanges, the width of broadcasts, and the threshold of values at the coordinator. */
#include "planner_test.h"
#include "core/planner/cost.h"
#include "core/planner/segment.h"
#include "core/planner/reduce_stripe.h"
#include "core/planner/reduce_tree.h"
#include "core/state.h"

enum { NODES = 8, DRAWS = 40000 };

static const uint32_t chunks[] = {0, 64, 1408, 8448, 1 << 20};

/* What a measurement may be, zeros included. */
static struct topology_link draw_link(uint64_t *seed, bool zeros)
{
	struct topology_link l = {planner_draw(seed, 1u << planner_draw(seed, 27)),
				  planner_draw(seed, 1u << planner_draw(seed, 27)),
				  planner_draw(seed, 1u << planner_draw(seed, 31))};

	if (!zeros)
		l.bytes_per_s += 10000;
	return l;
}

static struct reduce_link as_reduce(struct topology_link l)
{
	return (struct reduce_link){l.latency_ns, l.bytes_per_s, l.start_ns};
}

static struct fanout_link as_fanout(struct topology_link l)
{
	return (struct fanout_link){l.start_ns, l.latency_ns, l.bytes_per_s, true, true, true};
}

static struct cost_object draw_object(uint64_t *seed)
{
	return (struct cost_object){planner_draw(seed, 1u << planner_draw(seed, 31)),
				    chunks[planner_draw(seed, 5)]};
}

static void trees_cost_the_same(void **state)
{
	uint64_t seed = 3;

	for (uint32_t run = 0; run < DRAWS; run++) {
		uint32_t n = 1 + planner_draw(&seed, run % 50 ? 64 : GRAPH_SLOTS_MAX);
		uint32_t d = 1 + planner_draw(&seed, n), slow = planner_draw(&seed, 20);
		struct cost_object o = draw_object(&seed);
		struct topology_link l = draw_link(&seed, true);
		struct topology_slow at[20];
		struct reduce_slow was[20];

		for (uint32_t k = 0; k < slow; k++) {
			at[k] = (struct topology_slow){planner_draw(&seed, n),
						       draw_link(&seed, true)};
			was[k] = (struct reduce_slow){at[k].position, as_reduce(at[k].link)};
		}
		assert_int_equal(cost_tree_ns(n, d, o, l),
				 reduce_tree_time(n, d, o.size_bytes, o.chunk_bytes, as_reduce(l)));
		assert_int_equal(cost_tree_slow_ns(n, d, o, l, at, slow),
				 reduce_tree_time_slow(n, d, o.size_bytes, o.chunk_bytes,
						       as_reduce(l), was, slow));
	}
}

static void degrees_and_thresholds_are_the_same(void **state)
{
	uint64_t seed = 4;

	for (uint32_t run = 0; run < DRAWS / 40; run++) {
		uint32_t n = 1 + planner_draw(&seed, 64), copies = 1 + planner_draw(&seed, 64);
		struct cost_object o = draw_object(&seed);
		struct topology_link l = draw_link(&seed, true);
		uint64_t most = 1 + planner_draw(&seed, 1 << 17),
			 setup = planner_draw(&seed, 1 << 22);

		assert_int_equal(cost_tree_degree(n, o, l),
				 reduce_tree_degree(n, o.size_bytes, o.chunk_bytes, as_reduce(l)));
		assert_int_equal(
			cost_values_max(n, copies, most, o.chunk_bytes, setup, l),
			reduce_tree_value_max(n, copies, most, o.chunk_bytes, setup, as_reduce(l)));
		assert_int_equal(cost_exchange_max(n, copies, most, o.chunk_bytes, setup, l),
				 reduce_stripe_value_max(n, copies, most, o.chunk_bytes, setup,
							 as_reduce(l)));
	}
}

static void broadcasts_are_the_same(void **state)
{
	uint64_t seed = 5;

	for (uint32_t run = 0; run < DRAWS; run++) {
		uint32_t n = 1 + planner_draw(&seed, 1 << planner_draw(&seed, 11));
		uint32_t d = 1 + planner_draw(&seed, PLANNER_WIDTH_MAX);
		struct cost_object o = draw_object(&seed);
		struct topology_link l = draw_link(&seed, false);
		struct fanout_link f = as_fanout(l);
		uint32_t chunk = (uint32_t)o.chunk_bytes;

		assert_int_equal(cost_broadcast_ns(n, d, o, l),
				 fanout_tree_ns(&f, n, d, o.size_bytes, chunk));
		assert_int_equal(cost_answers_ns(n, o.size_bytes, l),
				 fanout_star_ns(&f, n, o.size_bytes));
		assert_int_equal(planner_width(l, n, o.size_bytes, chunk),
				 fanout_choose(&f, n, o.size_bytes, chunk));
		assert_int_equal(planner_inline(l, n, o.size_bytes, chunk),
				 fanout_inline(&f, n, o.size_bytes, chunk));
	}
	assert_int_equal(PLANNER_WIDTH_MAX, FANOUT_MAX);
}

static void values_are_asked_for_up_to_the_same_size(void **state)
{
	static struct control c;
	static struct directory_node nodes[NODES];
	static struct node self = {.number = 3};
	uint64_t seed = 6;

	c.self = &self;
	c.directory.nodes = nodes;
	c.directory.nodes_count = NODES;
	for (uint32_t run = 0; run < DRAWS / 40; run++) {
		struct topology_link l = draw_link(&seed, false);
		struct reduce r = {.num = 1 + planner_draw(&seed, 80)};
		uint32_t values = planner_draw(&seed, 80);
		struct planner_values v = {.all = l,
					   .needed = r.num,
					   .values = values,
					   .limits = &planner_limits_usual};

		r.flags = planner_draw(&seed, 2) ? MESSAGE_REDUCE_SPREAD : 0;
		c.directory.link = as_fanout(l);
		c.directory.link.rate_seen = planner_draw(&seed, 2);
		c.dataplane.chunk_bytes = chunks[1 + planner_draw(&seed, 3)];
		nodes[3].low = planner_draw(&seed, 2) ? 3 : 0;
		nodes[3].link.bytes_per_s = l.bytes_per_s / 10;
		v.own_bytes_per_s = directory_link(&c.directory, 3).bytes_per_s;
		v.chunk_bytes = c.dataplane.chunk_bytes;
		v.everyone = r.flags;
		v.rate_seen = c.directory.link.rate_seen;
		assert_int_equal(planner_value_max(&v), reduce_value_max(&c, &r, values));
	}
}

static void segments_are_the_same(void **state)
{
	for (uint32_t p = 1; p <= GRAPH_SEGMENTS_MAX; p++)
		for (uint64_t size = 1; size < UINT64_C(1) << 40; size = size * 5 + p)
			for (uint32_t j = 0; j < p; j += 1 + p / 7)
				assert_int_equal(segment_bytes(size, 1408, p, j),
						 reduce_stripe_bytes(size, 1408, p, j));
	assert_int_equal(segment_chunks(0, 64), 0);
	assert_int_equal(segment_chunks(64, 0), 0);
	assert_int_equal(segment_bytes(64, 0, 1, 0), 0);
	assert_int_equal(segment_bytes(UINT64_MAX, 64, 2, 0), 0);
	assert_int_equal(segment_bytes(640, 64, 2, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees_cost_the_same),
		cmocka_unit_test(degrees_and_thresholds_are_the_same),
		cmocka_unit_test(broadcasts_are_the_same),
		cmocka_unit_test(values_are_asked_for_up_to_the_same_size),
		cmocka_unit_test(segments_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
