/* SPDX-License-Identifier: BSD-3-Clause */
/* The swarm with whole nodes: clients put, get and delete while processes die and cables are cut.
 */
#include <stdio.h>
#include <stdlib.h>

#include "full/books.h"
#include "full/clients.h"
#include "full/reducers.h"
#include "swarm.h"
#include "tally.h"
#include "model/work_trace.h"

#define STEP_NS WORLD_MS
/* A healed cluster has come to rest: peers are missed, nodes forgotten, all retries are over. */
#define REST_NS (20 * WORLD_S)

struct full_swarm {
	struct world w;
	struct full_group g;
	struct clients c;
	struct reducers r; /* instead of clients */
	struct splits splits;
	struct prng draw, crash; /* crash: at which crash point a process dies */
	const struct swarm_scenario *scenario;
	uint64_t control_at_ns[CLIENTS_NODES_MAX], dataplane_at_ns[CLIENTS_NODES_MAX];
	uint64_t die_by_ns[CLIENTS_NODES_MAX]; /* who has passed no crash point until then */
	uint64_t cable_at_ns[CLIENTS_NODES_MAX];
	bool lose[CLIENTS_NODES_MAX];		/* the store, when both are dead */
	uint64_t gone_at_ns[CLIENTS_NODES_MAX]; /* it has said goodbye */
	uint32_t kills, cuts, losses, leaves;
};

enum {
	REDUCES_STORE_BYTES = 40 << 20,
	REDUCES_MAX = 256,
	WIDE_STORE_BYTES = 80 << 20,
	WIDE_NODES_MAX = 4,
	WIDE_MTU = 9000,
	WIDE_WORKERS_MAX = 3,
	CRASH_PPM = 700000, /* of the processes that are killed alone */
	CRASH_BITS = 6,
	ADOPTION_PPM = 300000, /* of the controls that take a table over */
	ADOPTION_BITS = 6,
};

#define CRASH_NS WORLD_S

/* Each table with room for what one request needs, or as it was. */
static void full_swarm_tight(struct prng *p, struct control_config *c, struct node_options *o)
{
	const struct {
		uint32_t *limit, least;
	} tables[] = {
		{&c->calls_max, 24},  {&c->loopback_max, 8}, {&c->stages_max, 2},
		{&c->edges_max, 2},   {&c->fetches_max, 2},  {&c->serves_max, 2},
		{&c->entries_max, 8}, {&c->copies_max, 16},  {&c->waiters_max, 4},
		{&c->tombstones, 4},  {&c->waits_max, 6},    {&c->links_max, 8},
		{&o->msg_slots, 6},
	};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (prng_chance(p, 400000))
			*tables[i].limit = tables[i].least;
}

/* Its dataplane begins with another number of workers each time. */
static void full_draw_workers(struct full_swarm *s, struct full *f)
{
	if (s->scenario->wide)
		f->workers = (uint32_t)prng_between(&s->draw, 1, WIDE_WORKERS_MAX);
}

static void full_swarm_wide(struct full_swarm *s)
{
	for (uint32_t i = 0; i < s->w.count; i++) {
		full_kill_dataplane(&s->g.full[i]);
		full_draw_workers(s, &s->g.full[i]);
		full_start_dataplane(&s->g.full[i]);
	}
}

/* In half of the runs; of a generator of its own, so that all else stays as it is. What a partition
 * does is judged by generations as times. */
static void full_swarm_clocks(struct full_swarm *s, uint64_t seed)
{
	struct prng draw = prng_fork(seed, 0x636c6f636b);
	if (!swarm_one_clock && !s->scenario->split_ppm && prng_chance(&draw, 500000))
		s->w.clock_seed = prng_next(&draw) | 1;
}

static void full_swarm_open(struct full_swarm *s, uint64_t seed, uint32_t nodes)
{
	static const uint64_t rates[] = {100, 1000, 10000}, delays[] = {25, 50, 500};
	static const uint64_t latencies[] = {0, 20, 300}, stores[] = {3, 8};
	struct prng *p = &s->draw;
	*p = prng_fork(seed, 0x66756c6c);
	s->crash = prng_fork(seed, 0x6372617368);
	struct network_link link = {.rate_bps = rates[prng_below(p, 3)] * 1000000,
				    .delay_ns = delays[prng_below(p, 3)] * WORLD_US,
				    .buffer_bytes = 512 << 10};
	struct node_options o = full_options(stores[prng_below(p, 2)] << 20);
	struct control_config config;
	const struct swarm_scenario *c = s->scenario;
	uint32_t count = (uint32_t)prng_between(p, 2, 6);
	count = nodes ? nodes : c->split_ppm ? SPLITS_NODES : count;
	full_config(&config);
	config.grid_slots = 3; /* few sources, and yet a grid */
	if (!c->reduces)
		config.tombstones = FULL_TABLE_SLOTS; /* what a table keeps for the next control */
	if (c->wide) {
		count = nodes || c->split_ppm || count < WIDE_NODES_MAX ? count : WIDE_NODES_MAX;
		link.rate_bps = rates[1 + prng_below(p, 2)] * 1000000;
		o.store_bytes = WIDE_STORE_BYTES;
		o.config.mtu = WIDE_MTU;
		o.config.workers = WIDE_WORKERS_MAX;
	}
	if (c->tight)
		full_swarm_tight(p, &config, &o);
	if (c->reduces) {
		o.store_bytes = c->wide ? 2 * WIDE_STORE_BYTES : REDUCES_STORE_BYTES;
		o.config.buffers_max = o.config.edges_max = REDUCES_MAX;
		config.stages_max = config.edges_max = REDUCES_MAX;
		config.calls_max = 1024;
	}
	world_init(&s->w, count, &link, &o, seed, prng_chance(p, 300000));
	full_swarm_clocks(s, seed);
	full_open(&s->g, &s->w, &config, prng_chance(p, 300000) ? 1 : 0,
		  latencies[prng_below(p, 3)] * WORLD_US);
	if (c->reduces)
		reducers_open(&s->r, &s->g, p, c->wide);
	else
		clients_open(&s->c, &s->g, p, c->wide);
	splits_open(&s->splits, &s->g);
	s->c.history.trouble = c->loss_max_ppm > 0;
	s->c.history.tight = c->tight;
	s->c.splits = c->split_ppm ? &s->splits : NULL;
	s->r.splits = c->split_ppm > 0;
	s->r.calm = !c->loss_max_ppm && !c->kill_control_ppm && !c->kill_dataplane_ppm &&
		    !c->kill_node_ppm && !c->cut_ppm && !c->freeze_ppm && !c->leave_ppm &&
		    !c->split_ppm;
	if (c->wide)
		full_swarm_wide(s);
	s->r.exchanged = c->exchanged;
	s->r.deadlines = c->deadlines;
	struct network_faults f = {.loss_ppm = (uint32_t)prng_below(p, c->loss_max_ppm + 1),
				   .duplicate_ppm =
					   (uint32_t)prng_below(p, c->duplicate_max_ppm + 1),
				   .reorder_ppm = (uint32_t)prng_below(p, c->reorder_max_ppm + 1),
				   .corrupt_ppm = (uint32_t)prng_below(p, c->corrupt_max_ppm + 1),
				   .reorder_ns = 4 * link.delay_ns};
	network_faults_all(&s->w.net, &f);
}

static bool full_strikes(struct full_swarm *s, uint32_t ppm_per_s)
{
	return prng_chance(&s->draw, (uint32_t)(ppm_per_s * (STEP_NS / 1e9)));
}

static uint64_t full_pause(struct full_swarm *s)
{
	return world_now(&s->w) +
	       prng_below(&s->draw, prng_chance(&s->draw, 300000) ? 8 * WORLD_S : WORLD_S);
}

/* ---- death at a crash point ---------------------------------------------------------------- */

/* Of a process that is to be killed: in how many crash points, or 0: now. */
static uint32_t full_crash_draw(struct full_swarm *s, uint32_t ppm, uint32_t bits)
{
	if (!swarm_inside_writes || !prng_chance(&s->crash, ppm))
		return 0;
	return 1 + (uint32_t)prng_below(&s->crash, 1u << prng_below(&s->crash, bits));
}

static void full_die_control(struct full_swarm *s, uint32_t i)
{
	struct full *f = &s->g.full[i];
	uint32_t left = full_crash_draw(s, CRASH_PPM, CRASH_BITS);
	s->die_by_ns[i] = world_now(&s->w) + CRASH_NS;
	if (f->core && left)
		f->crash_left = left;
	else
		full_kill_control(f);
}

static void full_die_dataplane(struct full_swarm *s, uint32_t i)
{
	struct full *f = &s->g.full[i];
	uint32_t left = full_crash_draw(s, CRASH_PPM, CRASH_BITS);
	uint32_t one = (uint32_t)prng_below(&s->crash, f->workers);
	s->die_by_ns[i] = world_now(&s->w) + CRASH_NS;
	if (f->n->alive && left)
		full_worker(f, one)->crash_left = left;
	else
		full_kill_dataplane(f);
}

static bool full_dies_dataplane(const struct full *f)
{
	bool dies = false;
	for (uint32_t k = 0; k < f->workers; k++)
		dies |= full_worker(f, k)->crash_left > 0;
	return dies;
}

/* A process that has met no crash point dies all the same. */
static void full_die_late(struct full_swarm *s, uint32_t i, bool all)
{
	struct full *f = &s->g.full[i];
	if (!all && world_now(&s->w) < s->die_by_ns[i])
		return;
	if (f->crash_left)
		full_kill_control(f);
	if (full_dies_dataplane(f))
		full_kill_dataplane(f);
}

static void full_count_crashes(struct full_swarm *s, uint32_t i)
{
	struct full *f = &s->g.full[i];
	for (; f->crashes > 0; f->crashes--)
		tally(TALLY_CRASH_CONTROL);
	for (; f->dataplane_crashes > 0; f->dataplane_crashes--)
		tally(TALLY_CRASH_DATAPLANE);
}

/* Where controls are killed, some die again while they take the table over. */
static void full_begin_control(struct full_swarm *s, uint32_t i, bool all)
{
	struct full *f = &s->g.full[i];
	if (!all && s->scenario->kill_control_ppm)
		f->crash_left = full_crash_draw(s, ADOPTION_PPM, ADOPTION_BITS);
	full_start_control(f);
	if (!f->core)
		tally(TALLY_CRASH_ADOPTION);
	f->crash_left = 0;
}

static void full_repair(struct full_swarm *s, uint32_t i, bool all)
{
	struct full *f = &s->g.full[i];
	uint64_t now = world_now(&s->w);
	full_count_crashes(s, i);
	full_die_late(s, i, all);
	if (s->lose[i] && !f->core && !f->n->alive) {
		if (s->scenario->reduces)
			reducers_store_lost(&s->r, i);
		else
			history_store_lost(&s->c, i);
		full_lose_store(f);
		s->lose[i] = false;
		s->losses++;
	}
	if (all || now >= s->cable_at_ns[i])
		s->w.net.endpoints[i].is_down = false;
	if (!f->n->alive && (all || now >= s->dataplane_at_ns[i])) {
		full_draw_workers(s, f);
		full_start_dataplane(f);
	}
	if (!f->core && (all || now >= s->control_at_ns[i])) {
		full_draw_workers(s, f);
		full_begin_control(s, i, all);
	}
}

/* Both processes end; the node comes back, at the earliest at that time, with an empty store. */
static void full_stop(struct full_swarm *s, uint32_t i, uint64_t back_ns)
{
	full_kill_control(&s->g.full[i]);
	full_kill_dataplane(&s->g.full[i]);
	s->control_at_ns[i] = s->dataplane_at_ns[i] = back_ns;
	s->lose[i] = true;
}

/* One of its workers, or all. */
static void full_freeze(struct full_swarm *s, struct full *f, uint64_t until_ns)
{
	uint32_t one = s->scenario->wide ? (uint32_t)prng_below(&s->draw, f->workers + 1) : 0;
	for (uint32_t k = 0; k < f->workers; k++)
		if (k == one || one == f->workers)
			node_freeze(full_worker(f, k), until_ns);
}

static void full_trouble(struct full_swarm *s, uint32_t i)
{
	const struct swarm_scenario *c = s->scenario;
	struct full *f = &s->g.full[i];
	bool node = full_strikes(s, c->kill_node_ppm), lose = full_strikes(s, c->lose_store_ppm);
	if (node || lose || full_strikes(s, c->kill_control_ppm)) {
		s->kills++;
		if (node || lose)
			full_kill_control(f);
		else
			full_die_control(s, i);
		s->control_at_ns[i] = full_pause(s);
	}
	if (node || lose || full_strikes(s, c->kill_dataplane_ppm)) {
		s->kills++;
		if (node || lose)
			full_kill_dataplane(f);
		else
			full_die_dataplane(s, i);
		s->dataplane_at_ns[i] = full_pause(s);
		s->lose[i] = lose;
	}
	if (f->core && full_strikes(s, c->leave_ppm)) {
		s->leaves++;
		control_leave(f->core, full_now(f));
		full_wake(f, world_now(&s->w));
		s->gone_at_ns[i] = world_now(&s->w) + prng_below(&s->draw, 20 * WORLD_MS);
	}
	if (s->gone_at_ns[i] && world_now(&s->w) >= s->gone_at_ns[i]) {
		full_stop(s, i, full_pause(s));
		s->gone_at_ns[i] = 0;
	}
	if (full_strikes(s, c->cut_ppm)) {
		s->cuts++;
		s->w.net.endpoints[i].is_down = true;
		s->cable_at_ns[i] = full_pause(s);
	}
	if (full_strikes(s, c->freeze_ppm) && f->n->alive)
		full_freeze(s, f, world_now(&s->w) + prng_below(&s->draw, 200 * WORLD_MS));
}

static void full_split(struct full_swarm *s, bool trouble)
{
	if (!trouble || world_now(&s->w) >= s->splits.until_ns)
		splits_heal(&s->splits);
	if (trouble && !s->splits.split && full_strikes(s, s->scenario->split_ppm))
		splits_begin(&s->splits, &s->draw,
			     prng_between(&s->draw, 300 * WORLD_MS, 8 * WORLD_S));
}

static void full_judge(struct full_swarm *s)
{
	if (s->scenario->split_ppm)
		splits_judge(&s->splits);
	for (uint32_t i = 0; i < s->w.engines; i++) {
		struct node *n = &s->w.nodes[i];
		const char *bad = n->alive ? invariants_check(n->engine) : NULL;
		if (bad)
			world_violation(&s->w, "node %u: %s", n->index, bad);
	}
	for (uint32_t i = 0; i < s->w.count; i++) {
		const char *bad = books_check(s->g.full[i].core);
		if (bad)
			world_violation(&s->w, "node %u, control: %s", i, bad);
	}
}

static void full_steps(struct full_swarm *s, uint64_t for_ns, bool trouble)
{
	uint64_t end = world_now(&s->w) + for_ns;
	for (uint32_t step = 0; world_now(&s->w) < end && !s->w.violations; step++) {
		for (uint32_t i = 0; i < s->w.count; i++) {
			if (trouble)
				full_trouble(s, i);
			full_repair(s, i, !trouble);
		}
		if (s->scenario->split_ppm)
			full_split(s, trouble);
		if (trouble && full_strikes(s, s->scenario->crowd_ppm))
			clients_crowd(&s->c);
		if (s->scenario->reduces)
			reducers_step(&s->r);
		else
			clients_step(&s->c);
		world_run(&s->w, STEP_NS);
		if (step % 64 == 0)
			full_judge(s);
	}
}

static void full_heal(struct full_swarm *s)
{
	struct network_faults none = {0};
	network_faults_all(&s->w.net, &none);
	s->c.history.disturbed_ns = world_now(&s->w);
	s->c.history.trouble = false;
	s->c.quiet = s->r.quiet = true;
	for (uint32_t i = 0; i < s->w.count; i++)
		if (s->gone_at_ns[i])
			full_stop(s, i, 0);
	full_steps(s, REST_NS, false);
	if (!s->w.violations &&
	    !(s->scenario->reduces ? reducers_idle(&s->r) : clients_idle(&s->c)))
		world_violation(&s->w, "a client still waits in a healthy cluster");
}

/* Whatever was put and not deleted can be had everywhere. */
static void full_read_all(struct full_swarm *s)
{
	for (uint32_t name = 0; name < CLIENTS_NAMES && !s->w.violations; name++) {
		const struct client_truth *t = clients_must_exist(&s->c, name);
		/* tables that are full may refuse a get */
		uint64_t held = s->scenario->tight ? 0 : history_held(&s->c, name);
		if (!t && !held)
			continue;
		if (held)
			tally(TALLY_HELD);
		if (t)
			tally(t->moved ? TALLY_KEPT_ELSEWHERE : TALLY_KEPT);
		for (uint32_t i = 0; i < s->w.count && !s->w.violations; i++) {
			clients_ask(&s->c, i, name, false);
			while (!clients_idle(&s->c) && !s->w.violations)
				full_steps(s, 10 * WORLD_MS, false);
		}
	}
}

/* And deleted everywhere; then nothing may be left, in the stores or in any table. Where there are
 * fewer tombstones than names, a node that had no room to announce all does so before the next one.
 */
static void full_delete_all(struct full_swarm *s)
{
	for (uint32_t name = 0; name < CLIENTS_NAMES && !s->w.violations; name++) {
		clients_ask(&s->c, 0, name, true);
		while (!clients_idle(&s->c) && !s->w.violations)
			full_steps(s, 10 * WORLD_MS, false);
		if (s->scenario->tight)
			full_steps(s, WORLD_S, false);
	}
	clients_leave(&s->c);
	world_run(&s->w, REST_NS);
}

static void full_clients_end(struct full_swarm *s)
{
	if (!s->scenario->tight)
		history_rest(&s->c);
	full_read_all(s);
	if (!s->w.violations)
		full_delete_all(s);
}

static void full_reduces_end(struct full_swarm *s)
{
	reducers_finish(&s->r);
	if (!s->w.violations)
		reducers_read_all(&s->r);
	if (!s->w.violations)
		reducers_delete_all(&s->r);
	reducers_leave(&s->r);
	if (!s->w.violations)
		world_run(&s->w, REST_NS);
}

/* What a table still holds, to replay a failure. */
static void full_print_table(const struct full *f)
{
	const struct object_table *t = (const struct object_table *)f->n->table.base;
	for (uint32_t i = 0; i < t->slots; i++) {
		const struct object_slot *o = &t->slot[i];
		if (o->state != OBJECT_FREE)
			fprintf(stderr,
				"  node %u slot %u: object %u generation %llx, state %u flags %u, "
				"%llu of %llu bytes\n",
				f->n->index, i, o->id.bytes[5], (unsigned long long)o->generation,
				o->state, o->flags, (unsigned long long)o->watermark,
				(unsigned long long)o->size);
	}
}

static void full_print(const struct full *f)
{
	full_print_table(f);
	if (f->core)
		work_trace(f->core);
}

/* The members probe each other now and then: looks again when one is just doing so. */
static const char *full_check_idle(struct full_swarm *s, struct full *f)
{
	const char *bad = NULL;
	for (uint32_t k = 0; k < f->workers && !bad; k++) {
		bad = invariants_check_idle(full_worker(f, k)->engine);
		for (int again = 0; bad && again < 20; again++) {
			world_run(&s->w, WORLD_MS);
			bad = invariants_check_idle(full_worker(f, k)->engine);
		}
	}
	return bad;
}

static void full_expect_empty(struct full_swarm *s)
{
	for (uint32_t i = 0; i < s->w.count && !s->w.violations; i++) {
		struct control_usage u;
		const char *bad = full_check_idle(s, &s->g.full[i]);
		control_usage(s->g.full[i].core, &u);
		if (u.participants || u.parts || u.pulls || u.pushes || u.reduces || u.requesters)
			world_violation(&s->w,
					"node %u, in the end: %u combines, %u parts, %u takes, "
					"%u offers, %u reduces, %u reductions",
					i, u.participants, u.parts, u.pulls, u.pushes, u.reduces,
					u.requesters);
		else if (u.fetches || u.serves || u.stages || u.edges || u.calls || u.waits)
			world_violation(&s->w,
					"node %u, in the end: %u fetches, %u serves, %u stages, "
					"%u edges, %u calls, %u waits",
					i, u.fetches, u.serves, u.stages, u.edges, u.calls,
					u.waits);
		else if (u.objects || u.zombies || u.store_bytes || u.scratch_bytes || u.entries)
			world_violation(&s->w,
					"node %u, in the end: %u objects, %u zombies, %llu + %llu "
					"bytes, %u entries",
					i, u.objects, u.zombies, (unsigned long long)u.store_bytes,
					(unsigned long long)u.scratch_bytes, u.entries);
		else if (!bad)
			bad = books_check_idle(s->g.full[i].core);
		if (bad)
			world_violation(&s->w, "node %u, in the end: %s", i, bad);
	}
}

bool swarm_full_run(const struct swarm_scenario *scenario, uint64_t seed, uint32_t nodes,
		    bool verbose)
{
	static struct full_swarm s;
	memset(&s, 0, sizeof(s));
	s.scenario = scenario;
	full_swarm_open(&s, seed, nodes < CLIENTS_NODES_MAX ? nodes : CLIENTS_NODES_MAX);
	for (uint32_t i = 1; scenario->leave_ppm && i < s.w.count; i++)
		if (prng_chance(&s.draw, 300000)) /* it joins later */
			full_stop(&s, i, full_pause(&s));
	full_steps(&s, prng_between(&s.draw, 2, scenario->split_ppm ? 20 : 10) * WORLD_S, true);
	full_heal(&s);
	if (!s.w.violations)
		scenario->reduces ? full_reduces_end(&s) : full_clients_end(&s);
	if (!s.w.violations)
		full_expect_empty(&s);
	if (verbose && s.w.violations)
		for (uint32_t i = 0; i < s.w.count; i++)
			full_print(&s.g.full[i]);
	if (verbose && s.w.violations && !scenario->reduces)
		history_print(&s.c);
	if (verbose && scenario->reduces)
		reducers_print(&s.r);
	if (verbose)
		printf("seed %llu %s: %u nodes, %llu puts, %llu gets (%.1f MB), %llu deletes, %llu "
		       "failures, %u kills, %u cuts, %u partitions, %u losses, %llu packets%s: %s\n",
		       (unsigned long long)seed, scenario->name, s.w.count,
		       (unsigned long long)s.c.puts, (unsigned long long)s.c.gets,
		       (double)s.c.bytes / 1e6, (unsigned long long)s.c.deletes,
		       (unsigned long long)s.c.failures, s.kills, s.cuts, s.splits.count, s.losses,
		       (unsigned long long)s.w.net.delivered, s.w.clock_seed ? ", own clocks" : "",
		       s.w.violations ? s.w.first : "good");
	bool good = !s.w.violations;
	if (!good)
		fprintf(stderr, "swarm: seed %llu broke an invariant: %s\n",
			(unsigned long long)seed, s.w.first);
	s.w.print_violations = false;
	if (scenario->reduces)
		reducers_close(&s.r);
	full_close(&s.g);
	world_free(&s.w);
	return good;
}
