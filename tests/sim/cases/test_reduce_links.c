/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums among nodes of which one has another link than the others, when those who plan them know of
 * it: each node has had an object from each other. Virtual time.
 */
#include "full/cast.h"
#include "full/peek.h"

enum { NODES = 8, MET = 100, TARGET = 40, SUMS = 12, MBIT = 100, SLOW_MBIT = 10 };

struct outlier { /* the node, and its link */
	uint32_t node;
	uint64_t mbit, far_ns;
};

static void move(struct cast *c, uint32_t from, uint32_t to, uint8_t id)
{
	cast_put_at(c, from, id);
	world_run(&c->w, 10 * WORLD_MS);
	cast_begin(c, to, id);
	cast_sum_ends(c, to, id);
	cast_remove(c, id);
}

/* And the one that plans, three. */
static void meet(struct cast *c)
{
	uint8_t id = MET;

	for (uint32_t from = 0; from < c->nodes; from++)
		for (uint32_t to = 0; to < c->nodes; to++)
			for (uint32_t k = 0; from != to && k < (to == 0 ? 3 : 1); k++)
				move(c, from, to, ++id);
}

static uint64_t sum_ns(struct cast *c, uint8_t target)
{
	uint64_t from = world_now(&c->w);

	for (uint32_t i = 1; i < NODES && c->allreduce; i++)
		cast_begin(c, i, target);
	cast_reduce(c, 0, target, 1, NODES, NODES);
	cast_begin(c, 0, target);
	for (uint32_t i = 0; i < (c->allreduce ? NODES : 1); i++)
		cast_sum_ends(c, i, target);
	return world_now(&c->w) - from;
}

/* The least and the most of several, the first left out: it opens connections. */
static void sums_take(const struct outlier *a, uint64_t size, bool allreduce, double range_ms[2])
{
	static struct cast c;

	cast_open(&c, NODES, size, MBIT, 1);
	c.w.net.endpoints[a->node].link.rate_bps = a->mbit * 1000000;
	c.w.net.endpoints[a->node].link.delay_ns += a->far_ns;
	meet(&c);
	cast_put_sources(&c, NODES);
	c.allreduce = allreduce;
	range_ms[0] = 1e9;
	range_ms[1] = 0;
	for (uint8_t target = TARGET; target < TARGET + SUMS; target++) {
		double ms = (double)sum_ns(&c, target) / 1e6;

		cast_remove(&c, target);
		if (target == TARGET)
			continue;
		range_ms[0] = ms < range_ms[0] ? ms : range_ms[0];
		range_ms[1] = ms > range_ms[1] ? ms : range_ms[1];
	}
	cast_close(&c);
}

/* In bounds of the slow link. In stripes it takes 2(p - 1)/p of them, or 1.75, at least. */
static void one_slow_link_carries_an_object_once(void **state)
{
	static const struct {
		uint64_t size;
		bool allreduce;
		double ratio;
	} known[] = {
		{128 << 10, false, 1.12}, {512 << 10, false, 1.07}, {2 << 20, false, 1.06},
		{128 << 10, true, 1.8},	  {512 << 10, true, 1.6},   {2 << 20, true, 1.35},
	};

	for (uint32_t node = 0; node < NODES; node += 3)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			const struct outlier slow = {node, SLOW_MBIT, 0};
			double bound = (double)known[i].size * 8e-3 / SLOW_MBIT, ms[2];

			sums_take(&slow, known[i].size, known[i].allreduce, ms);
			print_message("node %u slow, %u KiB%s: %.3f to %.3f S/B\n", node,
				      (unsigned)(known[i].size >> 10),
				      known[i].allreduce ? " to all" : "", ms[0] / bound,
				      ms[1] / bound);
			assert_true(ms[1] / bound < known[i].ratio);
		}
}

/* Its bytes come over its way once, not back and forth: as long as its node is not in the middle.
 */
static void one_long_way_is_gone_once(void **state)
{
	static const struct {
		uint64_t size;
		double ms;
	} known[] = {
		{80 << 10, 18}, {128 << 10, 22}, {256 << 10, 33}, {512 << 10, 55}, {2 << 20, 186.5},
	};

	for (uint32_t node = 3; node < NODES; node += 3)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
			const struct outlier far = {node, MBIT, 5 * WORLD_MS};
			double ms[2];

			sums_take(&far, known[i].size, false, ms);
			print_message("node %u far, %u KiB: %.3f to %.3f ms\n", node,
				      (unsigned)(known[i].size >> 10), ms[0], ms[1]);
			assert_true(ms[0] < known[i].ms);
		}
}

/* It has no children, so what it has comes from nobody. */
static void one_that_was_repaired_is_not_slow(void **state)
{
	enum { ONE = 3, WORST = 1250000, BEST = 5000000 }; /* bytes per second */
	static struct cast c;

	cast_open(&c, NODES, 1 << 20, MBIT, 1);
	c.w.net.endpoints[ONE].link.rate_bps = SLOW_MBIT * 1000000;
	meet(&c);
	cast_put_sources(&c, NODES);
	sum_ns(&c, TARGET);
	assert_true(peek_rate(c.g.full[0].core, ONE) < WORST);
	c.w.net.endpoints[ONE].link.rate_bps = MBIT * 1000000;
	for (uint8_t target = TARGET + 1; target < TARGET + 4; target++)
		sum_ns(&c, target);
	print_message("slow one, repaired: %u bytes/s\n",
		      (unsigned)peek_rate(c.g.full[0].core, ONE));
	assert_true(peek_rate(c.g.full[0].core, ONE) > BEST);
	cast_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_slow_link_carries_an_object_once),
		cmocka_unit_test(one_long_way_is_gone_once),
		cmocka_unit_test(one_that_was_repaired_is_not_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
