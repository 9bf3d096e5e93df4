/* SPDX-License-Identifier: BSD-3-Clause */
/* Who died, and who did not: whole nodes with the times that real ones have. How soon all know of a
 * death, and whether anybody is taken for dead who lives, under loss and starvation. */
#include "full/full.h"
#include "model/testkit.h"

enum { NODES_MOST = 16, NODES_MANY = 100 };

struct group {
	struct world w;
	struct full_group g;
	struct prng draw;
};

static void group_open(struct group *t, uint32_t nodes, uint32_t loss_ppm, uint64_t latency_ns)
{
	struct network_link link = testkit_link(1000, 100 * WORLD_US);
	struct network_faults f = {.loss_ppm = loss_ppm};
	struct node_options o = full_options(1 << 20);
	struct control_config config, real;

	*t = (struct group){0}; /* nobody looks at the logs */
	o.config.idle_timeout_ns = 3 * WORLD_S;
	full_config(&config);
	if (nodes > config.links_max / 2) /* each tells each what it holds: twice, when both open */
		o.config.conns_max = config.conns_max = config.links_max = 2 * NODES_MANY;
	control_config_default(&real);
	config.gossip_ns = real.gossip_ns;
	config.silence_ns = real.silence_ns;
	config.probe_ns = real.probe_ns;
	config.watch_ns = real.watch_ns;
	config.confirm_ns = real.confirm_ns;
	config.suspect_ns = real.suspect_ns;
	t->draw = prng_fork(TESTKIT_SEED, nodes + loss_ppm);
	world_init(&t->w, nodes, &link, &o, TESTKIT_SEED, false);
	full_open(&t->g, &t->w, &config, 0, latency_ns);
	world_run(&t->w, 3 * WORLD_S);
	network_faults_all(&t->w.net, &f);
	world_run(&t->w, WORLD_S);
}

static void group_close(struct group *t)
{
	assert_int_equal(t->w.violations, 0);
	full_close(&t->g);
	world_free(&t->w);
}

struct sums {
	uint64_t missed, refuted, dead;
};

static struct sums group_sums(const struct group *t)
{
	struct sums s = {0};

	for (uint32_t i = 0; i < t->w.count; i++) {
		const struct control_counters *c =
			t->g.full[i].core ? control_counters(t->g.full[i].core) : NULL;

		s.missed += c ? c->members_missed : 0;
		s.refuted += c ? c->members_refuted : 0;
		s.dead += c ? c->members_died : 0;
	}
	return s;
}

/* ---- the dead ------------------------------------------------------------------------------ */

static bool all_know(void *context)
{
	const struct group *t = context;

	for (uint32_t i = 0; i < t->w.count; i++)
		if (i != 1 && control_members(t->g.full[i].core) != t->w.count - 1)
			return false;
	return true;
}

static void kill_one(uint32_t nodes, uint32_t loss_ppm, bool cut)
{
	struct group t;
	char what[64];
	uint64_t took;

	group_open(&t, nodes, loss_ppm, 20 * WORLD_US);
	assert_int_equal(group_sums(&t).dead, 0);
	if (cut) {
		t.w.net.endpoints[1].is_down = true;
	} else {
		full_kill_control(&t.g.full[1]);
		full_kill_dataplane(&t.g.full[1]);
	}
	took = world_until(&t.w, 10 * WORLD_S, all_know, &t);
	assert_true(took != UINT64_MAX);
	snprintf(what, sizeof(what), "%u nodes, %u %% loss, %s: ms until all know", nodes,
		 loss_ppm / 10000, cut ? "cut" : "killed");
	testkit_at_most(what, (double)took / WORLD_MS, 1000);
	group_close(&t);
}

static void a_death_is_known_within_a_second(void **state)
{
	static const uint32_t nodes[] = {2, 3, 5, NODES_MOST};

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		kill_one(nodes[i], 0, false);
		kill_one(nodes[i], 0, true);
	}
	kill_one(5, 100000, false);
}

/* ---- the living ---------------------------------------------------------------------------- */

/* Each dataplane stands still about once per so long, for up to at most. */
static void group_live(struct group *t, uint64_t for_ns, uint64_t every_ns, uint64_t most_ns)
{
	for (uint64_t ms = 0; ms < for_ns / WORLD_MS; ms++) {
		for (uint32_t i = 0; every_ns && i < t->w.count; i++)
			if (t->w.nodes[i].frozen_until_ns < world_now(&t->w) &&
			    prng_chance(&t->draw, (uint32_t)(1000000 * WORLD_MS / every_ns)))
				node_freeze(t->w.nodes + i,
					    world_now(&t->w) + prng_below(&t->draw, most_ns));
		world_run(&t->w, WORLD_MS);
	}
}

static void expect_none_dead(struct group *t, const char *what)
{
	const struct sums s = group_sums(t);

	printf("  %s: missed %llu times, %llu refutations, %llu taken for dead\n", what,
	       (unsigned long long)s.missed, (unsigned long long)s.refuted,
	       (unsigned long long)s.dead);
	assert_int_equal(s.dead, 0);
	group_close(t);
}

static void nobody_dies_of_loss(void **state)
{
	struct group t;

	(void)state;
	group_open(&t, 8, 300000, 20 * WORLD_US);
	group_live(&t, 300 * WORLD_S, 0, 0);
	expect_none_dead(&t, "8 nodes, 30 % loss, 5 minutes");
}

static void nobody_dies_of_loss_among_many(void **state)
{
	struct group t;

	(void)state;
	group_open(&t, NODES_MANY, 300000, 20 * WORLD_US);
	for (uint32_t i = 0; i < t.w.count; i++)
		assert_int_equal(control_members(t.g.full[i].core), NODES_MANY);
	group_live(&t, 30 * WORLD_S, 0, 0);
	expect_none_dead(&t, "100 nodes, 30 % loss, 30 s");
}

static void nobody_dies_of_starvation(void **state)
{
	struct group t;

	(void)state;
	group_open(&t, NODES_MOST, 10000, 20 * WORLD_MS);
	group_live(&t, 120 * WORLD_S, 2 * WORLD_S, 250 * WORLD_MS);
	expect_none_dead(&t, "16 nodes, standing still for up to 0.25 s every 2 s, 2 minutes");
	group_open(&t, NODES_MOST, 10000, 20 * WORLD_MS);
	group_live(&t, 120 * WORLD_S, 10 * WORLD_S, 400 * WORLD_MS);
	expect_none_dead(&t, "16 nodes, standing still for up to 0.4 s every 10 s, 2 minutes");
}

/* One that stands still for longer is taken for dead, comes back by itself, and has what it had. */
static void the_dead_come_back(void **state)
{
	struct group t;
	struct sums s;

	(void)state;
	group_open(&t, 5, 0, 20 * WORLD_US);
	node_freeze(&t.w.nodes[1], world_now(&t.w) + 2 * WORLD_S);
	world_run(&t.w, 2 * WORLD_S);
	assert_int_equal(group_sums(&t).dead, 4);
	world_run(&t.w, 3 * WORLD_S);
	s = group_sums(&t);
	assert_true(s.refuted >= 1);
	for (uint32_t i = 0; i < t.w.count; i++)
		assert_int_equal(control_members(t.g.full[i].core), 5);
	group_live(&t, 5 * WORLD_S, 0, 0);
	assert_int_equal(group_sums(&t).dead, s.dead);
	group_close(&t);
}

/* Cables are pulled and plugged: in the end everybody talks with everybody whom it watches. */
static void all_meet_again(void **state)
{
	struct group t;

	(void)state;
	group_open(&t, 5, 50000, WORLD_MS);
	for (uint32_t turn = 0; turn < 200; turn++) {
		uint32_t i = (uint32_t)prng_below(&t.draw, 5);

		t.w.net.endpoints[i].is_down = true;
		world_run(&t.w, prng_between(&t.draw, 200 * WORLD_MS, 2 * WORLD_S));
		t.w.net.endpoints[i].is_down = false;
		world_run(&t.w, 6 * WORLD_S);
		for (i = 0; i < 5; i++) {
			struct control_usage u;

			control_usage(t.g.full[i].core, &u);
			if (u.nodes_up != 5)
				fail_msg("turn %u: node %u talks with %u of 5", turn, i,
					 u.nodes_up);
		}
	}
	group_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_is_known_within_a_second),
		cmocka_unit_test(nobody_dies_of_loss),
		cmocka_unit_test(nobody_dies_of_loss_among_many),
		cmocka_unit_test(nobody_dies_of_starvation),
		cmocka_unit_test(the_dead_come_back),
		cmocka_unit_test(all_meet_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
