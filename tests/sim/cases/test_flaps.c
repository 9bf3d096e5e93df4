/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cable that is out for 50 ms, ten times in a second, in the middle of an allreduce: the node
 * behind it has half the time, and what it may lose beside that is little.
 */
#include "full/cast.h"

enum { NODES = 5, NEEDED = 4, TARGET = 40, FLAPS = 10 };

#define SIZE	(UINT64_C(8) << 20)
#define MBIT	UINT64_C(200)
#define WIRE_NS (SIZE * 8 * 1000 / MBIT)
#define FLAP_NS (50 * WORLD_MS)

static bool all_have_it(struct cast *c)
{
	bool all = true;

	for (uint32_t i = 0; i < NODES; i++) {
		if (c->task[i].done && c->task[i].status != 0)
			cast_begin(c, i, TARGET);
		all &= c->task[i].done;
	}
	return all;
}

/* The time that an allreduce takes when a cable is out, in, out, ... for a period each, from first
 * on; 0: it never is. */
static uint64_t allreduce(uint64_t first, uint32_t victim, uint64_t period)
{
	static struct cast c;
	bool *down;
	uint64_t began, at;

	cast_open_sources(&c, NODES, NODES, SIZE, MBIT);
	c.allreduce = true;
	down = &c.w.net.endpoints[victim].is_down;
	began = world_now(&c.w);
	cast_reduce(&c, NODES - 1, TARGET, 1, NODES, NEEDED);
	for (uint32_t i = 0; i < NODES; i++)
		cast_begin(&c, i, TARGET);
	while (!all_have_it(&c)) {
		at = world_now(&c.w) - began;
		*down = first && at >= first && (at - first) / period < 2 * FLAPS &&
			(at - first) / period % 2 == 0;
		world_run(&c.w, WORLD_MS);
		assert_true(world_now(&c.w) - began < 20 * WORLD_S);
	}
	at = world_now(&c.w) - began;
	cast_close(&c);
	return at;
}

/* All that the node lacks when they begin needs twice the time. A source on a node that is silent
 * for so long is replaced, where there is a reserve: its bytes are sent again. */
static void flaps_cost_little(void **state)
{
	uint64_t alone = allreduce(0, 0, 1), first = WIRE_NS / 2, sum = 0;
	uint32_t count = 0;

	print_message("undisturbed %.3f S/B\n", (double)alone / (double)WIRE_NS);
	for (uint32_t victim = 0; victim < NODES; victim += 2) {
		for (uint64_t k = 0; k < 6; k++) {
			uint64_t period = FLAP_NS + 3 * k * WORLD_MS;
			uint64_t took = allreduce(first + 7 * k * WORLD_MS, victim, period);

			print_message("node %u, %.0f ms each: %.0f ms later\n", victim,
				      (double)period / 1e6, (double)(took - alone) / 1e6);
			sum += took - alone;
			count++;
		}
	}
	testkit_at_most("seconds later, mean", (double)(sum / count) / 1e9, 0.87);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(flaps_cost_little)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
