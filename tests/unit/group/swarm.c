/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random runs of a group: loss, doubles, reordering, deaths of owner, processes and nodes, changes
 * of policy at any moment. The world checks the invariants (groups.h) after each event. After the
 * faults every live member must go on.
 *
 * usage: unit_group_swarm [--seed N [--runs M]]
 */
#include "world.h"

static uint64_t swarm_seed = 1, swarm_runs = 30, swarm_switched; /* pulls of such results */

static const char *const swarm_policies[] = {
	"bsp",
	"ssp 2",
	"asp",
	"k-of-n 2",
	"k-of-n 3 deadline 20ms late refuse",
	"bsp deadline 30ms",
	"fast: bsp, slow: ssp 3",
	"fast: bsp, slow: asp",
	"fast: k-of-n 1, slow: ssp 1",
	"auto",
	"ssp 0",
	"share 60",
};

enum { SWARM_POLICIES = sizeof(swarm_policies) / sizeof(swarm_policies[0]) };

static const char *swarm_policy(struct world *w)
{
	return swarm_policies[world_random(w, SWARM_POLICIES)];
}

static void swarm_fault(struct world *w, bool swaps)
{
	uint32_t i = world_random(w, w->clients);

	switch (world_random(w, swaps ? 5 : 4)) {
	case 0:
		world_kill_owner(w);
		break;
	case 1:
		world_kill_client(w, i, false);
		break;
	case 2:
		world_kill_client(w, i, true);
		break;
	case 3:
		if (w->client[i].state == CLIENT_DEAD)
			world_start_client(w, i);
		break;
	default:
		world_policy(w, swarm_policy(w));
		break;
	}
}

/* All clients that live must contribute more, and their results must come. */
static void swarm_heal(struct world *w, uint64_t seed)
{
	uint64_t before;

	w->loss = w->doubles = 0;
	for (uint32_t i = 0; i < WORLD_NODES; i++)
		if (w->node[i].dead || w->node[i].cut)
			world_node_back(w, i);
	for (uint32_t i = 0; i < w->clients; i++)
		if (w->client[i].state == CLIENT_DEAD)
			world_start_client(w, i);
	world_run(w, 12000 * WORLD_MS); /* grace, and reduces whose sources are lost */
	before = world_pushed(w);
	world_run(w, 4000 * WORLD_MS);
	if (world_pushed(w) < before + 5) {
		print_message("seed %llu: a member does not go on\n", (unsigned long long)seed);
		world_show(w);
	}
	assert_true(world_pushed(w) >= before + 5);
}

static void swarm(uint64_t seed, bool swaps, bool faults)
{
	struct world *w =
		world_new(seed, 3 + (uint32_t)seed % (WORLD_MEMBERS - 2),
			  swarm_policies[seed % SWARM_POLICIES],
			  (seed / 7 % 2 ? GROUP_TOTAL : 0) | (seed % 3 ? WORLD_SWITCHES : 0));

	w->loss = faults ? world_random(w, 20) : 0;
	w->doubles = faults ? 10 : 0;
	w->pulls_end = faults;
	for (uint32_t i = 0; i < 12; i++) {
		world_run(w, (1 + world_random(w, 300)) * WORLD_MS);
		if (faults)
			swarm_fault(w, swaps);
		else if (swaps)
			world_policy(w, swarm_policy(w));
	}
	swarm_heal(w, seed);
	assert_true(w->results > 0);
	swarm_switched += w->switched;
	world_free(w);
}

static void swarm_all(bool swaps, bool faults)
{
	for (uint64_t seed = swarm_seed; seed < swarm_seed + swarm_runs; seed++) {
		if (getenv("SWARM_VERBOSE"))
			print_message("seed %llu\n", (unsigned long long)seed);
		swarm(seed, swaps, faults);
	}
	assert_true(swarm_runs < 30 || swarm_switched > 100);
	swarm_switched = 0;
}

static void calm(void **state)
{
	swarm_all(false, false);
}

static void policies_change(void **state)
{
	swarm_all(true, false);
}

static void faults_happen(void **state)
{
	swarm_all(false, true);
}

static void everything_happens(void **state)
{
	swarm_all(true, true);
}

/* An owner that dies, whatever it was doing, costs nobody the membership. */
static void owners_die(void **state)
{
	for (uint64_t seed = swarm_seed; seed < swarm_seed + swarm_runs; seed++) {
		struct world *w = world_new(seed, 4, swarm_policies[seed % SWARM_POLICIES], 0);

		for (uint32_t i = 0; i < 20; i++) {
			world_run(w, (50 + world_random(w, 300)) * WORLD_MS);
			world_kill_owner(w);
		}
		if (w->turned_away > 0)
			print_message("seed %llu\n", (unsigned long long)seed);
		assert_int_equal(w->turned_away, 0);
		swarm_heal(w, seed);
		world_free(w);
	}
}

static void swarm_node_fault(struct world *w)
{
	uint32_t node = world_random(w, 2) ? w->home : world_random(w, WORLD_NODES);

	switch (world_random(w, 6)) {
	case 0:
	case 1:
		world_kill_node(w, node);
		break;
	case 2:
	case 3:
		world_cut_node(w, node);
		break;
	case 4:
		world_kill_owner(w);
		break;
	default:
		world_kill_client(w, world_random(w, w->clients), false);
		break;
	}
}

/* Owners share nodes with members: they die together, and are cut off together. */
static void owners_die_with_members(void **state)
{
	uint64_t judged = 0, gone = 0;

	for (uint64_t seed = swarm_seed; seed < swarm_seed + swarm_runs; seed++) {
		struct world *w = world_new(seed, 3 + (uint32_t)seed % (WORLD_MEMBERS - 2),
					    swarm_policies[seed % SWARM_POLICIES],
					    (seed / 7 % 3 ? GROUP_TOTAL : 0) |
						    (seed % 4 ? 0 : WORLD_SWITCHES));

		if (getenv("SWARM_VERBOSE"))
			print_message("seed %llu\n", (unsigned long long)seed);
		w->loss = w->doubles = world_random(w, 2) * 5;
		for (uint32_t i = 0; i < 12; i++) {
			world_run(w, world_random(w, 400) * WORLD_MS);
			swarm_node_fault(w);
			world_run(w, world_random(w, 2000) * WORLD_MS);
			for (uint32_t k = 0; k < WORLD_NODES; k++)
				if (!(w->node[k].dead || w->node[k].cut) || world_random(w, 2))
					continue;
				else
					world_node_back(w, k);
			for (uint32_t k = 0; k < w->clients; k++)
				if (w->client[k].state == CLIENT_DEAD && world_random(w, 2))
					world_start_client(w, k);
		}
		swarm_heal(w, seed);
		world_judge_pushes(w);
		judged += w->judged;
		gone += w->gone;
		world_free(w);
	}
	if (getenv("SWARM_VERBOSE"))
		print_message("%llu contributions judged, %llu times rounds were lost\n",
			      (unsigned long long)judged, (unsigned long long)gone);
	assert_true(swarm_runs < 4 || judged > 100);
}

static const char *const swarm_slack[] = {"bsp", "ssp 1", "ssp 2", "ssp 5", "asp", "k-of-n 2"};

/* Under ssp S nothing is staler than S, whatever happens to messages. */
static void staleness_is_bounded(void **state)
{
	uint64_t stalest = 0;

	for (uint64_t seed = swarm_seed; seed < swarm_seed + swarm_runs; seed++) {
		struct world *w = world_new(seed, 4, swarm_slack[seed % 4], 0);

		w->client[0].pace_ns = 60 * WORLD_MS;
		world_judge_staleness(w);
		w->loss = w->doubles = 5;
		world_run(w, 2000 * WORLD_MS);
		stalest = w->stalest > stalest ? w->stalest : stalest;
		world_free(w);
	}
	assert_true(swarm_runs < 4 || stalest >= 2); /* else nothing was judged */
}

/* The same while policies change, from loose to tight and back, also many times at one clock. */
static void staleness_is_bounded_through_changes(void **state)
{
	uint64_t stalest = 0, bounded = 0;

	for (uint64_t seed = swarm_seed; seed < swarm_seed + swarm_runs; seed++) {
		struct world *w = world_new(seed, 4, swarm_slack[seed % 6], 0);
		uint32_t each = 1 + world_random(w, 150);

		w->client[world_random(w, 4)].pace_ns = 60 * WORLD_MS;
		w->loss = w->doubles = 5;
		world_judge_staleness(w);
		for (uint32_t i = 0; i < 30; i++) {
			world_run(w, world_random(w, each) * WORLD_MS);
			world_policy(w, swarm_slack[world_random(w, 6)]);
		}
		swarm_heal(w, seed);
		stalest = w->stalest > stalest ? w->stalest : stalest;
		bounded += w->bounded;
		world_free(w);
	}
	assert_true(swarm_runs < 4 || (stalest >= 5 && bounded > 100 * swarm_runs));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calm),
		cmocka_unit_test(policies_change),
		cmocka_unit_test(faults_happen),
		cmocka_unit_test(everything_happens),
		cmocka_unit_test(owners_die),
		cmocka_unit_test(owners_die_with_members),
		cmocka_unit_test(staleness_is_bounded),
		cmocka_unit_test(staleness_is_bounded_through_changes),
	};

	if (argc >= 3 && strcmp(argv[1], "--seed") == 0) {
		swarm_seed = strtoull(argv[2], NULL, 10);
		swarm_runs = argc >= 5 ? strtoull(argv[4], NULL, 10) : 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
