/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of the nodes of a reduce over links of a given rate dies half way, and one in reserve takes
 * its place. What the others have of the sum must come again: half of S/B is lost, the time until
 * somebody notices, and little else. The shard owner of the target coordinates the reduce. When it
 * dies, the reduce begins again as soon as its death is certain.
 */
#include "full/cast.h"
#include "full/peek.h"

/* Nodes 0 to 5 have objects 1 to 6, of which five are needed; the last comes late, and another
 * asks. Node 1 keeps the target. */
enum { SOURCES = 6, NEEDED = 5, CALLER = 6, NODES = 7, TARGET = 42 };

#define SIZE	  (UINT64_C(16) << 20)
#define MBIT	  UINT64_C(200)
#define WIRE_NS	  (SIZE * 8 * 1000 / MBIT)
#define LATE_NS	  (20 * WORLD_MS)
#define NOTICE_NS (60 * WORLD_MS)  /* cluster/stall.c, reduce/coordinator/watchdog.c */
#define DEAD_NS	  (850 * WORLD_MS) /* docs/user/guarantees.md, 6 */

/* The time from the request to the end when a node dies half way; CALLER: none does. */
static uint64_t reduce_without(uint32_t victim, uint32_t *owner)
{
	static struct cast c;
	uint64_t took;

	cast_open_sources(&c, NODES, NEEDED, SIZE, MBIT);
	took = world_now(&c.w);
	cast_reduce(&c, CALLER, TARGET, 1, SOURCES, NEEDED);
	*owner = peek_coordinator(c.g.full[CALLER].core);
	world_run(&c.w, LATE_NS);
	cast_put_at(&c, NEEDED, NEEDED + 1);
	cast_begin(&c, CALLER, TARGET);
	if (victim != CALLER) {
		world_run(&c.w, took + WIRE_NS / 2 - world_now(&c.w));
		cast_kill(&c, victim);
	}
	cast_sum_ends(&c, CALLER, TARGET);
	took = world_now(&c.w) - took;
	cast_close(&c);
	return took;
}

static void a_death_costs_half(void **state)
{
	uint32_t owner;
	uint64_t alone = reduce_without(CALLER, &owner);

	print_message("undisturbed %.3f S/B\n", (double)alone / (double)WIRE_NS);
	for (uint32_t victim = 0; victim < SOURCES; victim++) {
		uint64_t later = reduce_without(victim, &owner) - alone;

		print_message("without %u%s: %.0f ms, %.3f S/B later\n", victim,
			      victim == owner ? ", the target's owner" : "", (double)later / 1e6,
			      (double)later / (double)WIRE_NS);
		assert_in_range(later, 0,
				WIRE_NS / 2 + (victim == owner ? DEAD_NS : NOTICE_NS) +
					WIRE_NS / 20);
	}
}

/* ---- who passes a sum on ----------------------------------------------------------------------
 */

/* Nodes 0 to 4 have a source and get the sum from each other; node 5 has asked for it. */
enum { SLOTS = 5, REQUESTER = 5, LATE = 3, MEMBERS = 6 };

#define SUM_SIZE    (UINT64_C(8) << 20)
#define SUM_WIRE_NS (SUM_SIZE * 8 * 1000 / MBIT)

static bool others_have_it(void *context)
{
	const struct cast *c = context;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (i != LATE && !c->task[i].done)
			return false;
	return true;
}

/* One asks when the sum is half way, and gets what is left of it when all others have it. How long
 * it takes when the workers of some of those (a bit for each) stand still then, whose cables are
 * in: they pass stripes on, and each keeps the root of one. */
static uint64_t late_receiver_without(uint32_t victims, uint32_t *coordinator)
{
	static struct cast c;
	struct control_config config;
	uint64_t took;

	full_config(&config);
	config.grid_slots = SLOTS;
	cast_open_as(&c, MEMBERS, SUM_SIZE, MBIT, 0, &config);
	cast_put_sources(&c, SLOTS);
	c.allreduce = true;
	cast_reduce(&c, REQUESTER, TARGET, 1, SLOTS, SLOTS);
	*coordinator = peek_coordinator(c.g.full[REQUESTER].core);
	for (uint32_t i = 0; i < SLOTS; i++)
		if (i != LATE)
			cast_begin(&c, i, TARGET);
	world_run(&c.w, 5 * SUM_WIRE_NS / 4);
	cast_begin(&c, LATE, TARGET);
	took = world_now(&c.w);
	assert_true(world_until(&c.w, WORLD_S, others_have_it, &c) != UINT64_MAX);
	world_run(&c.w, 10 * WORLD_MS);
	assert_false(c.task[LATE].done);
	for (uint32_t i = 0; i < SLOTS; i++)
		if (victims >> i & 1)
			node_freeze(&c.w.nodes[i], world_now(&c.w) + 60 * WORLD_S);
	cast_sum_ends(&c, LATE, TARGET);
	took = world_now(&c.w) - took;
	for (uint32_t i = 0; i < SLOTS; i++)
		c.w.nodes[i].frozen_until_ns = 0;
	cast_close(&c);
	return took;
}

/* One of them, and two: the one that takes the place of a root may be silent as well. */
static void a_feeder_falls_silent(void **state)
{
	uint32_t coordinator;
	uint64_t alone = late_receiver_without(0, &coordinator);

	print_message("undisturbed %.0f ms\n", (double)alone / 1e6);
	for (uint32_t victims = 1; victims < 1u << SLOTS; victims++) {
		uint32_t count = (uint32_t)__builtin_popcount(victims);
		uint64_t took;

		if (count > 2 || victims >> LATE & 1 || victims >> coordinator & 1)
			continue;
		took = late_receiver_without(victims, &coordinator);
		print_message("without %x: %.0f ms\n", victims, (double)took / 1e6);
		assert_in_range(took, 0, alone + count * NOTICE_NS + SUM_WIRE_NS / 10);
	}
}

/* ---- along the levels of a network ----------------------------------------------------------- */

enum { PLACES = 9, RESERVE = PLACES + 1 };

#define LEVEL_SIZE (UINT64_C(2) << 20)

/* The sum of objects 1 to RESERVE but for one. */
static void check_sum(const struct cast *c, uint32_t node, uint8_t but)
{
	uint32_t *want = calloc(1, c->size), *part = malloc(c->size);

	assert_true(want && part);
	for (uint8_t id = 1; id <= RESERVE; id++) {
		if (id == but)
			continue;
		memory_fill((uint8_t *)part, id, 0, c->size);
		for (size_t i = 0; i < c->size / sizeof(*part); i++)
			want[i] += part[i];
	}
	assert_memory_equal(c->w.nodes[node].store.base + c->task[node].reply.offset, want,
			    c->size);
	free(want);
	free(part);
}

/* Whether each node but the victim has its sources and the sum, and nothing else. */
struct rest {
	struct cast *c;
	uint32_t victim;
};

static uint64_t rest_surplus(const struct rest *r, uint32_t node)
{
	uint64_t objects = node == 0 ? 3 : 2; /* the reserve is on node 0 */
	struct control_usage u;

	control_usage(r->c->g.full[node].core, &u);
	return u.store_bytes - objects * r->c->size + u.participants + u.parts;
}

static bool rest_clean(void *context)
{
	const struct rest *r = context;

	for (uint32_t i = 0; i < PLACES; i++)
		if (i != r->victim && rest_surplus(r, i) != 0)
			return false;
	return true;
}

static void check_rest(struct cast *c, uint32_t victim)
{
	struct rest r = {c, victim};

	if (world_until(&c->w, 10 * WORLD_S, rest_clean, &r) != UINT64_MAX)
		return;
	for (uint32_t i = 0; i < PLACES; i++)
		if (i != victim)
			print_message("node %u: %lld bytes of the store are left over\n", i,
				      (long long)rest_surplus(&r, i));
	fail_msg("without node %u something stays in the stores", victim);
}

/* All nodes of a BCube(3, 1) have a source and get the sum, in a HiPS plan. One dies half way: its
 * slot is filled by a source in reserve, which has come late, and all others get the same sum. */
static void a_death_in_the_hierarchy_is_repaired(void **state)
{
	for (uint32_t victim = 1; victim < PLACES; victim += 3) {
		static struct cast c;
		struct control_config config;
		const char *planner = NULL;

		full_config(&config);
		config.network = peek_cube(3, 2, MBIT);
		cast_open_as(&c, PLACES, LEVEL_SIZE, MBIT, 0, &config);
		cast_put_sources(&c, PLACES);
		c.allreduce = true;
		cast_reduce(&c, 0, TARGET, 1, RESERVE, PLACES);
		for (uint32_t i = 1; i < PLACES; i++)
			cast_begin(&c, i, TARGET);
		world_run(&c.w, LATE_NS);
		for (uint32_t i = 0; i < PLACES && !planner; i++)
			planner = peek_planner(c.g.full[i].core);
		assert_non_null(planner);
		assert_memory_equal(planner, "hips", 4);
		cast_put_at(&c, 0, RESERVE);
		cast_begin(&c, 0, TARGET);
		world_run(&c.w, LEVEL_SIZE * 8 * 1000 / MBIT);
		for (uint32_t i = 0; i < PLACES; i++)
			assert_false(c.task[i].done && c.task[i].status == 0);
		cast_kill(&c, victim);
		for (uint32_t i = 0; i < PLACES; i++) {
			if (i == victim)
				continue;
			cast_sum_ends(&c, i, TARGET);
			check_sum(&c, i, (uint8_t)(victim + 1));
		}
		check_rest(&c, victim);
		cast_close(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_death_costs_half),
					   cmocka_unit_test(a_feeder_falls_silent),
					   cmocka_unit_test(a_death_in_the_hierarchy_is_repaired)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
