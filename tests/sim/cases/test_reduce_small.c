/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduces of small objects over slow links: as values while these are faster, else in a tree, and
 * never all of them through one link because they would fit a message. What a link carries is
 * known from the puts alone.
 */
#include "full/cast.h"

enum { CALLER = 0, TARGET = 40 };

/* The time that the sum of so many of one object per node takes; one node may die meanwhile. */
static uint64_t reduce_ns(uint32_t nodes, uint64_t size, uint64_t mbit, uint32_t num,
			  uint64_t death_ns)
{
	static struct cast c;
	uint64_t took;

	cast_open_sources(&c, nodes, nodes, size, mbit);
	took = world_now(&c.w);
	cast_reduce(&c, CALLER, TARGET, 1, nodes, num);
	cast_begin(&c, CALLER, TARGET);
	if (death_ns > 0) {
		world_run(&c.w, death_ns);
		cast_kill(&c, nodes - 1);
	}
	cast_sum_ends(&c, CALLER, TARGET);
	took = world_now(&c.w) - took;
	cast_close(&c);
	return took;
}

static void no_link_carries_all(void **state)
{
	static const struct {
		uint32_t nodes;
		uint64_t size, mbit;
		double most; /* ms: with room; first connections are included */
	} known[] = {
		{4, 1024, 200, 1},   {8, 1024, 200, 2},	  {16, 1024, 75, 8},   {8, 16384, 200, 6},
		{16, 16384, 75, 17}, {8, 65536, 200, 11}, {16, 65536, 75, 30},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint64_t ns =
			reduce_ns(known[i].nodes, known[i].size, known[i].mbit, known[i].nodes, 0);
		double bound = (double)known[i].size * 8e3 / (double)known[i].mbit;

		print_message("%u nodes, %u bytes, %u Mbit/s: %.2f ms, %.2f S/B\n", known[i].nodes,
			      (unsigned)known[i].size, (unsigned)known[i].mbit, (double)ns / 1e6,
			      (double)ns / bound);
		assert_true((double)ns / 1e6 < known[i].most);
	}
}

/* Whenever the one dies that is not needed: the others' sum is there. */
static void one_may_die(void **state)
{
	for (uint32_t k = 1; k <= 16; k++) {
		uint64_t ns = reduce_ns(6, k % 2 ? 65536 : 1024, 75, 5, k * WORLD_MS / 2);

		assert_true(ns < 3 * WORLD_S);
	}
}

static uint64_t messages(const struct cast *c)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < c->nodes; i++)
		count += control_counters(c->g.full[i].core)->messages_in;
	return count;
}

/* What one allreduce takes in messages until all have the sum: the least of several, for some open
 * connections as well. */
static uint64_t allreduce_messages(uint32_t nodes, uint64_t size, uint64_t mbit)
{
	static struct cast c;
	uint64_t least = UINT64_MAX;

	cast_open_sources(&c, nodes, nodes, size, mbit);
	c.allreduce = true;
	for (uint8_t target = TARGET; target < TARGET + 16; target++) {
		uint64_t before = messages(&c), count;

		for (uint32_t i = 1; i < nodes; i++)
			cast_begin(&c, i, target);
		cast_reduce(&c, CALLER, target, 1, nodes, nodes);
		cast_begin(&c, CALLER, target);
		for (uint32_t i = 0; i < nodes; i++)
			cast_sum_ends(&c, i, target);
		count = messages(&c) - before;
		least = count < least ? count : least;
		world_run(&c.w, 100 * WORLD_MS);
	}
	cast_close(&c);
	return least;
}

/* Each node's share of the sources to each other, each node's stripe to each other, and some for
 * each node; nobody is asked for any of them. */
static void stripes_go_unasked(void **state)
{
	for (uint32_t p = 4; p <= 8; p *= 2) {
		uint64_t count = allreduce_messages(p, 65536, 200);

		print_message("%u nodes: %u messages\n", p, (unsigned)count);
		assert_true(count <= 2 * p * (p - 1) + 15 * p);
	}
}

/* Of small objects: a GET and its answer per reader, a LOCATE and its answer per owner of sources,
 * the REDUCE and its end. No reader is told to wait, and no REDUCED is needed. */
static void values_take_few_messages(void **state)
{
	for (uint32_t p = 4; p <= 8; p *= 2) {
		uint64_t count = allreduce_messages(p, 1024, 200);

		print_message("%u nodes: %u messages\n", p, (unsigned)count);
		assert_true(count <= 3 * p + 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_link_carries_all),
		cmocka_unit_test(one_may_die),
		cmocka_unit_test(stripes_go_unasked),
		cmocka_unit_test(values_take_few_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
