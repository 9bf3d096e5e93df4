/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of each node's link, and what follows for the shape of a reduce: its degree, who
 * has no children, who has the root, whether there are segments. */
#include "fixtures/control_test.h"
#include "core/planner/cost.h"
#include "core/state.h"

enum { NODES = 12, SLOTS = 8, CHUNK = 1408, CALLER = 1, ONE = 3, OTHER = 10 };

#define MS   UINT64_C(1000000)
#define RATE UINT64_C(12500000)

struct plan_fixture {
	struct core k;
	struct node self;
	struct link_node nodes[NODES];
	struct reduce r;
	struct planner_group group[SLOTS];
	struct planner_request q;
	struct planner_choice choice;
};

/* All nodes have shown what they can; the first ones take part, the caller is one of them. */
static struct plan_fixture *planner_new(uint64_t size)
{
	static struct plan_fixture p;

	memset(&p, 0, sizeof(p));
	core_join(&p.k);
	p.k.cluster.self = &p.self;
	p.k.cluster.links.nodes = p.nodes;
	p.k.cluster.links.nodes_count = NODES;
	p.k.cluster.links.all = fanout_prior();
	p.k.control.dataplane.chunk_bytes = CHUNK;
	for (uint32_t i = 0; i < NODES; i++) {
		linkstats_saw_start(&p.k.cluster.links, i, 400000);
		linkstats_saw_hop(&p.k.cluster.links, i, 100000);
		linkstats_saw_rate(&p.k.cluster.links, i, (i + 1) % NODES, RATE, 1 << 20);
	}
	p.k.coordinator.reduces.limits = planner_limits_usual;
	p.r.want.num = SLOTS;
	p.q = (struct planner_request){.size = size,
				       .chunk_bytes = CHUNK,
				       .needed = SLOTS,
				       .group = p.group,
				       .groups = SLOTS,
				       .present = SLOTS,
				       .caller = CALLER,
				       .limits = &p.k.coordinator.reduces.limits};
	return &p;
}

/* One that the node had alone from another one, which can do more. */
static void takes(struct plan_fixture *p, uint32_t node, uint64_t rate)
{
	linkstats_saw_rate(&p->k.cluster.links, node, (node + 1) % NODES, rate, 1 << 20);
}

/* Asks for a plan with what is known now. */
static void choose(struct plan_fixture *p)
{
	p->q.all = reduce_links_all(&p->k.control);
	p->q.rate_seen = p->k.cluster.links.all.rate_seen;
	for (uint32_t i = 0; i < SLOTS; i++)
		p->group[i] = (struct planner_group){i, 1, reduce_links_of(&p->k.control, i), 0};
	assert_int_equal(planner_choose(&p->q, &p->choice), 0);
}

static uint32_t degree(struct plan_fixture *p)
{
	choose(p);
	return p->choice.degree;
}

/* The node of the group that takes that place in the order of slots. */
static uint32_t node_of(const struct plan_fixture *p, uint32_t i)
{
	return topology_group(planner_groups(&p->q, &p->choice), i)->node;
}

static void make_far(struct plan_fixture *p, uint32_t node)
{
	linkstats_saw_start(&p->k.cluster.links, node, 40 * MS);
	for (int i = 0; i < 200; i++)
		linkstats_saw_start(&p->k.cluster.links, node, 40 * MS);
	linkstats_saw_hop(&p->k.cluster.links, node, 20 * MS);
	linkstats_saw_start(&p->k.cluster.links, 0, 400000);
}

/* It could do better before; the other one still does with others. */
static void make_slow(struct plan_fixture *p, uint32_t node)
{
	for (int i = 0; i < 200; i++) {
		takes(p, node, RATE / 10);
		takes(p, (node + 1) % NODES, RATE);
	}
}

/* ---- the degree ----------------------------------------------------------------------------- */

/* A far one makes all wait in any case: what the others take meanwhile costs nothing, and each hop
 * that its bytes have behind it does. */
static void one_that_is_far_makes_the_tree_wider(void **state)
{
	struct plan_fixture *p = planner_new(16 << 10);
	uint32_t before = degree(p);

	make_far(p, OTHER); /* who does not take part */
	assert_int_equal(degree(p), before);
	make_far(p, ONE);
	assert_true(degree(p) > before);
}

/* At the caller all streams end. */
static void one_that_is_slow_takes_from_fewer(void **state)
{
	struct plan_fixture *p = planner_new(4 << 10);
	uint32_t before = degree(p);

	assert_true(before > 1);
	make_slow(p, OTHER);
	assert_int_equal(degree(p), before);
	make_slow(p, CALLER);
	assert_true(degree(p) < before);
}

/* Nobody is known to be worse: the degree is that of one link that stands for all. */
static void alike_links_are_one(void **state)
{
	for (uint64_t size = 1 << 10; size <= 8 << 20; size *= 2) {
		struct plan_fixture *p = planner_new(size);
		const struct cost_object o = {size, CHUNK};

		for (uint32_t i = 0; i < NODES; i++)
			takes(p, i, RATE / 2); /* not so much less that it would tell anything */
		assert_int_equal(degree(p),
				 cost_tree_degree(SLOTS, o, reduce_links_all(&p->k.control)));
		for (uint32_t i = 0; i < SLOTS; i++)
			assert_int_equal(node_of(p, i), i);
	}
}

/* All streams begin at the same time, so that makes no tree wider. What a hop takes does. */
static void what_a_start_takes_is_no_hops(void **state)
{
	struct plan_fixture *p;

	for (uint64_t size = 1 << 10; size <= 1 << 20; size *= 2) {
		uint32_t before = degree(p = planner_new(size));

		p->k.cluster.links.all.start_ns *= 20;
		assert_int_equal(degree(p), before);
	}
	p = planner_new(64 << 10);
	assert_int_equal(degree(p), 1);
	p->k.cluster.links.all.hop_ns *= 20;
	assert_true(degree(p) > 1);
}

/* ---- who sits where ------------------------------------------------------------------------- */

static void the_worst_has_no_children(void **state)
{
	struct plan_fixture *p = planner_new(1 << 20);

	make_far(p, 5);
	make_slow(p, ONE);
	degree(p);
	assert_int_equal(node_of(p, 0), ONE);
	for (uint32_t i = 1; i < SLOTS; i++) /* the others as they came */
		assert_int_equal(node_of(p, i), i <= ONE ? i - 1 : i);

	p = planner_new(1 << 20);
	make_slow(p, CALLER); /* it has the root */
	degree(p);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(node_of(p, i), i);
	assert_int_equal(p->choice.degree, 1);
}

static uint32_t segments(struct plan_fixture *p)
{
	choose(p);
	return p->choice.size.segments;
}

static void one_slow_link_ends_the_segments(void **state)
{
	struct plan_fixture *p = planner_new(1 << 20);

	p->q.everyone = true;
	assert_int_equal(segments(p), SLOTS);
	make_slow(p, OTHER);
	make_far(p, 5);
	assert_int_equal(segments(p), SLOTS);
	make_slow(p, ONE);
	assert_int_equal(segments(p), 1);
	assert_int_equal(p->choice.prefer, ONE);
	assert_int_equal(p->choice.degree, 1);
	/* of two one would have to carry the object twice each way */
	make_slow(p, ONE + 2);
	assert_int_equal(segments(p), SLOTS);

	/* two nodes' segments carry no more than a chain */
	p = planner_new(1 << 20);
	p->q.everyone = true;
	make_slow(p, CALLER);
	p->q.needed = p->q.groups = p->q.present = 2;
	assert_int_equal(segments(p), 2);
}

/* What is added up here comes over this node's link. */
static void a_slow_coordinator_takes_smaller_values(void **state)
{
	struct plan_fixture *p = planner_new(0);
	uint32_t most = reduce_value_max(&p->k.control, &p->r, SLOTS);

	make_slow(p, OTHER);
	assert_int_equal(reduce_value_max(&p->k.control, &p->r, SLOTS), most);
	make_slow(p, 0);
	assert_true(reduce_value_max(&p->k.control, &p->r, SLOTS) < most / 2);
}

/* ---- what is known -------------------------------------------------------------------------- */

static uint64_t rate_of(const struct plan_fixture *p, uint32_t node)
{
	return linkstats_of(&p->k.cluster.links, node).bytes_per_s;
}

static void the_slower_end_is_blamed(void **state)
{
	struct plan_fixture *p = planner_new(1);
	struct linkstats *s = &p->k.cluster.links;

	linkstats_forget(s, ONE);
	linkstats_forget(s, ONE + 1);
	for (int i = 0; i < 4; i++)
		takes(p, ONE, RATE / 10); /* nothing is known of either */
	assert_int_equal(rate_of(p, ONE), s->all.bytes_per_s);
	assert_int_equal(rate_of(p, ONE + 1), s->all.bytes_per_s);
	for (int i = 0; i < 4; i++) {
		linkstats_saw_rate(s, ONE, MESSAGE_NODE_NONE, RATE / 10,
				   1 << 20);				/* may have waited */
		linkstats_saw_rate(s, ONE, OTHER, RATE / 10, 16 << 10); /* a pause does as much */
	}
	assert_int_equal(rate_of(p, ONE), s->all.bytes_per_s);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(rate_of(p, ONE), s->all.bytes_per_s);
		linkstats_saw_rate(s, ONE, OTHER, RATE / 10, 1 << 20);
	}
	assert_int_equal(rate_of(p, ONE), RATE / 10);
	for (int i = 0; i < 3; i++) /* whichever end it is */
		linkstats_saw_rate(s, OTHER, ONE + 1, RATE / 10, 1 << 20);
	assert_int_equal(rate_of(p, ONE + 1), RATE / 10);
	assert_int_equal(rate_of(p, OTHER), s->all.bytes_per_s);
	linkstats_saw_rate(s, ONE, OTHER, RATE, 1 << 20); /* it can do better after all */
	assert_int_equal(rate_of(p, ONE), s->all.bytes_per_s);
}

/* Sums with a slow one come slowly everywhere. */
static void what_a_slow_one_explains_tells_nothing_of_the_others(void **state)
{
	struct plan_fixture *p = planner_new(1);
	struct linkstats *s = &p->k.cluster.links;
	uint64_t all = s->all.bytes_per_s, start_ns = s->all.start_ns;

	make_slow(p, ONE);
	all = s->all.bytes_per_s;
	for (int k = 0; k < 80; k++) {
		for (uint32_t i = 0; i < NODES; i++)
			linkstats_saw_rate(s, i, MESSAGE_NODE_NONE, RATE / 10, 1 << 20);
		linkstats_saw_start(s, ONE, 100 * MS);
	}
	assert_int_equal(s->all.bytes_per_s, all);
	assert_int_equal(s->all.start_ns, start_ns);
	assert_int_equal(rate_of(p, ONE), RATE / 10);
	assert_int_equal(rate_of(p, OTHER), all);
	/* but all may have become slower */
	for (int k = 0; k < 500; k++)
		linkstats_saw_rate(s, OTHER, OTHER - 1, RATE / 20, 1 << 20);
	assert_true(s->all.bytes_per_s < RATE / 10);
}

static void a_new_incarnation_starts_unmeasured(void **state)
{
	struct plan_fixture *p = planner_new(1);
	const struct linkstats *s = &p->k.cluster.links;

	make_slow(p, ONE);
	make_far(p, ONE);
	assert_true(linkstats_of(s, ONE).start_ns > 2 * s->all.start_ns);
	assert_true(linkstats_of(s, ONE).hop_ns > 2 * s->all.hop_ns);
	linkstats_forget(&p->k.cluster.links, ONE);
	assert_int_equal(rate_of(p, ONE), s->all.bytes_per_s);
	assert_int_equal(linkstats_of(s, ONE).start_ns, s->all.start_ns);
	assert_int_equal(linkstats_of(s, ONE).hop_ns, s->all.hop_ns);
	/* a node without a number has no place */
	linkstats_forget(&p->k.cluster.links, NODES);
	linkstats_saw_hop(&p->k.cluster.links, NODES, 1);
	assert_int_equal(linkstats_of(s, NODES).bytes_per_s, s->all.bytes_per_s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_is_far_makes_the_tree_wider),
		cmocka_unit_test(one_that_is_slow_takes_from_fewer),
		cmocka_unit_test(alike_links_are_one),
		cmocka_unit_test(what_a_start_takes_is_no_hops),
		cmocka_unit_test(the_worst_has_no_children),
		cmocka_unit_test(one_slow_link_ends_the_segments),
		cmocka_unit_test(a_slow_coordinator_takes_smaller_values),
		cmocka_unit_test(the_slower_end_is_blamed),
		cmocka_unit_test(what_a_slow_one_explains_tells_nothing_of_the_others),
		cmocka_unit_test(a_new_incarnation_starts_unmeasured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
