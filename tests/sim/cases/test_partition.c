/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two of five nodes are cut off for 5 s in the middle of an allreduce of four of their five arrays,
 * as in `scripts/bench recovery`: what it takes after the cut is the sum itself, from the beginning
 * where it was given up on both sides, and little else. With the times of real nodes; moments are
 * drawn, and the names, so that each node coordinates some.
 *
 * usage: test_partition [FIRST LAST]   seeds; one line each, and the distribution
 */
#include "full/cast.h"
#include "full/peek.h"

enum { NODES = 5, NEEDED = 4, AWAY = 2, TARGET = 40, NAMES = 60, RUNS_MAX = 1000 };

#define SIZE	(UINT64_C(8) << 20)
#define MBIT	UINT64_C(200)
#define WIRE_NS (SIZE * 8 * 1000 / MBIT)
#define CUT_NS	(5 * WORLD_S)
#define SOON_NS (30 * WORLD_MS) /* all begin within that; so long cables are pulled, plugged in */

static uint64_t first = 1, last = 10;

struct moments { /* since the beginning */
	uint64_t reduce_ns, get_ns[NODES], cut_ns[AWAY], heal_ns[AWAY];
	uint8_t target;
};

static struct moments draw(uint64_t seed)
{
	struct prng p = prng_fork(seed, 7);
	struct moments m = {.target = (uint8_t)(TARGET + prng_below(&p, NAMES))};

	m.reduce_ns = prng_below(&p, SOON_NS);
	for (uint32_t i = 0; i < NODES; i++)
		m.get_ns[i] = prng_below(&p, SOON_NS);
	/* the requester's client does one thing at a time */
	m.get_ns[NODES - 1] = m.reduce_ns + WORLD_MS;
	for (uint32_t i = 0; i < AWAY; i++) {
		m.cut_ns[i] = WIRE_NS / 2 + prng_below(&p, SOON_NS);
		m.heal_ns[i] = WIRE_NS / 2 + CUT_NS + prng_below(&p, SOON_NS);
	}
	return m;
}

/* Tables for simulated nodes, times of real ones. */
static void real_times(struct control_config *config)
{
	control_config_default(config);
	config->table_slots = FULL_TABLE_SLOTS;
	config->sessions_max = FULL_SESSIONS;
	config->stages_max = config->edges_max = 64;
	config->entries_max = config->copies_max = config->waiters_max = config->tombstones = 1024;
}

/* A reader that must get it again does, and keeps nothing of what it had. */
static bool all_have_it(struct cast *c, uint8_t target)
{
	bool all = true;

	for (uint32_t i = 0; i < NODES; i++) {
		if (c->task[i].done && c->task[i].status != 0) {
			memset(c->g.full[i].pins, 0, sizeof(c->g.full[i].pins));
			cast_begin(c, i, target);
		}
		all &= c->task[i].done;
	}
	return all;
}

struct run {
	struct cast c;
	struct moments m;
	bool reduced, begun[NODES];
	uint32_t coordinator;
};

/* What is due now, and was not a step ago. */
static void due(struct run *r, uint64_t at)
{
	const struct moments *m = &r->m;

	if (!r->reduced && at >= m->reduce_ns) {
		r->reduced = true;
		cast_reduce(&r->c, NODES - 1, m->target, 1, NODES, NEEDED);
		r->coordinator = peek_coordinator(r->c.g.full[NODES - 1].core);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		if (r->begun[i] || at < m->get_ns[i])
			continue;
		r->begun[i] = true;
		cast_begin(&r->c, i, m->target);
	}
	for (uint32_t i = 0; i < AWAY; i++)
		r->c.w.net.endpoints[i].side = at >= m->cut_ns[i] && at < m->heal_ns[i];
}

/* From the end of the cut until all have the sum. */
static uint64_t allreduce(uint64_t seed)
{
	static struct run r;
	struct control_config config;
	uint64_t healed, began, at = 0;

	r = (struct run){.m = draw(seed)};
	healed = r.m.heal_ns[0] > r.m.heal_ns[1] ? r.m.heal_ns[0] : r.m.heal_ns[1];
	real_times(&config);
	cast_open_as(&r.c, NODES, SIZE, MBIT, 0, &config);
	cast_put_sources(&r.c, NODES);
	r.c.allreduce = true;
	began = world_now(&r.c.w);
	do {
		due(&r, at);
		world_run(&r.c.w, WORLD_MS);
		at = world_now(&r.c.w) - began;
		assert_true(at < 40 * WORLD_S);
	} while (!all_have_it(&r.c, r.m.target) || at <= healed);
	cast_close(&r.c);
	print_message("%2llu: node %u coordinates, %.0f ms after the cut\n",
		      (unsigned long long)seed, r.coordinator, (double)(at - healed) / 1e6);
	return at - healed;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void what_follows_a_cut_is_the_sum(void **state)
{
	static uint64_t took[RUNS_MAX];
	uint32_t runs = 0;

	for (uint64_t seed = first; seed <= last && runs < RUNS_MAX; seed++)
		took[runs++] = allreduce(seed);
	qsort(took, runs, sizeof(took[0]), compare);
	print_message("median %.0f ms, nine of ten %.0f ms\n", (double)took[runs / 2] / 1e6,
		      (double)took[runs * 9 / 10] / 1e6);
	testkit_at_most("seconds after the cut, worst", (double)took[runs - 1] / 1e9, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_follows_a_cut_is_the_sum)};

	if (argc == 3) {
		first = strtoull(argv[1], NULL, 10);
		last = strtoull(argv[2], NULL, 10);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
