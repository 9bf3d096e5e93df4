/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scenarios of the swarm without control, and one run of one of them: draws the network, work
 * and faults from the seed, steps the nodes, and judges the end. swarm.c calls it.
 */
#include "swarm.h"

#include <stdio.h>
#include <stdlib.h>

#define SWARM_STEP_NS (250 * WORLD_US)

#define BAD_PATH                                                                        \
	.loss_max_ppm = 300000, .duplicate_max_ppm = 100000, .reorder_max_ppm = 100000, \
	.corrupt_max_ppm = 20000
#define FAIR_PATH                                                                    \
	.loss_max_ppm = 20000, .duplicate_max_ppm = 10000, .reorder_max_ppm = 10000, \
	.corrupt_max_ppm = 1000
#define POOR_PATH                                                                     \
	.loss_max_ppm = 200000, .duplicate_max_ppm = 50000, .reorder_max_ppm = 50000, \
	.corrupt_max_ppm = 10000
#define MEAN_PATH                                                                     \
	.loss_max_ppm = 150000, .duplicate_max_ppm = 50000, .reorder_max_ppm = 50000, \
	.corrupt_max_ppm = 10000
#define SPLIT_PATH   .loss_max_ppm = 5000, .split_ppm = 400000
#define WIDE	     .full = true, .wide = true, .crowd_ppm = 2000000
#define WIDE_REDUCES .full = true, .wide = true, .reduces = true
#define ALL_WORK     .job_ppm = 300000, .message_ppm = 1000000

const struct swarm_scenario swarm_scenarios[] = {
	{.name = "mixed",
	 .help = "everything at once",
	 BAD_PATH,
	 ALL_WORK,
	 .restart_ppm = 3000,
	 .cut_ppm = 5000,
	 .freeze_ppm = 5000,
	 .close_ppm = 3000,
	 .cancel_ppm = 20000},
	{.name = "clean", .help = "no faults at all", ALL_WORK, .cancel_ppm = 5000},
	{.name = "lossy",
	 .help = "a bad path, healthy nodes",
	 BAD_PATH,
	 ALL_WORK,
	 .cancel_ppm = 5000},
	{.name = "restarts",
	 .help = "nodes die and come back",
	 FAIR_PATH,
	 ALL_WORK,
	 .restart_ppm = 30000,
	 .close_ppm = 20000,
	 .cancel_ppm = 10000},
	{.name = "cuts",
	 .help = "cables are pulled and plugged",
	 FAIR_PATH,
	 ALL_WORK,
	 .cut_ppm = 30000,
	 .freeze_ppm = 20000,
	 .cancel_ppm = 10000},
	{.name = "incast",
	 .help = "all send to one",
	 .loss_max_ppm = 50000,
	 .duplicate_max_ppm = 10000,
	 .reorder_max_ppm = 10000,
	 .corrupt_max_ppm = 1000,
	 .freeze_ppm = 5000,
	 .job_ppm = 500000,
	 .incast = true},
	{.name = "messages",
	 .help = "only messages",
	 BAD_PATH,
	 .restart_ppm = 5000,
	 .cut_ppm = 10000,
	 .freeze_ppm = 10000,
	 .close_ppm = 10000,
	 .message_ppm = 4000000},
	{.name = "narrow",
	 .help = "paths become narrow and wide, and stay as they are then",
	 FAIR_PATH,
	 ALL_WORK,
	 .narrow_ppm = 20000,
	 .restart_ppm = 3000,
	 .cut_ppm = 5000,
	 .close_ppm = 3000,
	 .cancel_ppm = 10000},
#ifdef SWARM_FULL
	{.name = "objects", .help = "whole nodes, clean network", .full = true},
	{.name = "objects-lossy", .help = "whole nodes, a bad path", .full = true, POOR_PATH},
	{.name = "objects-cuts",
	 .help = "whole nodes, cables pulled",
	 .full = true,
	 .loss_max_ppm = 20000,
	 .cut_ppm = 300000,
	 .freeze_ppm = 300000},
	{.name = "objects-kills",
	 .help = "whole nodes, processes killed",
	 .full = true,
	 .loss_max_ppm = 20000,
	 .kill_control_ppm = 200000,
	 .kill_dataplane_ppm = 300000,
	 .kill_node_ppm = 200000},
	{.name = "objects-churn",
	 .help = "whole nodes come late, say goodbye, come back empty",
	 .full = true,
	 .loss_max_ppm = 20000,
	 .kill_node_ppm = 50000,
	 .leave_ppm = 200000,
	 .crowd_ppm = 2000000},
	{.name = "objects-mixed",
	 .help = "whole nodes, all of it, stores lost",
	 .full = true,
	 .crowd_ppm = 500000,
	 MEAN_PATH,
	 .cut_ppm = 200000,
	 .freeze_ppm = 200000,
	 .kill_control_ppm = 100000,
	 .kill_dataplane_ppm = 150000,
	 .kill_node_ppm = 100000,
	 .lose_store_ppm = 100000},
	{.name = "objects-partition",
	 .help = "whole nodes, two apart from three, or deaf to them",
	 .full = true,
	 SPLIT_PATH,
	 .crowd_ppm = 500000},
	{.name = "objects-tight",
	 .help = "whole nodes, tables that are often full, processes killed",
	 .full = true,
	 .tight = true,
	 .loss_max_ppm = 20000,
	 .cut_ppm = 100000,
	 .kill_control_ppm = 50000,
	 .kill_dataplane_ppm = 100000,
	 .crowd_ppm = 4000000},
	{.name = "wide",
	 .help = "whole nodes of several workers, large objects, a fair path",
	 WIDE,
	 FAIR_PATH},
	{.name = "wide-kills",
	 .help = "the same, processes killed; back with another number of workers",
	 WIDE,
	 .loss_max_ppm = 5000,
	 .kill_control_ppm = 200000,
	 .kill_dataplane_ppm = 400000,
	 .kill_node_ppm = 100000},
	{.name = "wide-mixed",
	 .help = "the same, all of it, stores lost",
	 WIDE,
	 FAIR_PATH,
	 .cut_ppm = 200000,
	 .freeze_ppm = 400000,
	 .kill_control_ppm = 100000,
	 .kill_dataplane_ppm = 150000,
	 .kill_node_ppm = 100000,
	 .lose_store_ppm = 100000,
	 .leave_ppm = 50000},
	{.name = "wide-partition",
	 .help = "the same, two apart from three, or deaf to them",
	 WIDE,
	 SPLIT_PATH},
	{.name = "wide-reduces",
	 .help = "whole nodes of several workers reduce large objects, a fair path",
	 WIDE_REDUCES,
	 FAIR_PATH},
	{.name = "wide-reduces-mixed",
	 .help = "the same, processes killed and frozen, cables pulled",
	 WIDE_REDUCES,
	 .loss_max_ppm = 5000,
	 .cut_ppm = 200000,
	 .freeze_ppm = 400000,
	 .kill_control_ppm = 100000,
	 .kill_dataplane_ppm = 200000,
	 .kill_node_ppm = 50000},
	{.name = "reduces",
	 .help = "whole nodes reduce, clean network",
	 .full = true,
	 .reduces = true},
	{.name = "reduces-lossy",
	 .help = "whole nodes reduce, a bad path",
	 .full = true,
	 .reduces = true,
	 POOR_PATH},
	{.name = "reduces-cuts",
	 .help = "whole nodes reduce, cables pulled",
	 .full = true,
	 .reduces = true,
	 .loss_max_ppm = 20000,
	 .cut_ppm = 300000,
	 .freeze_ppm = 300000},
	{.name = "reduces-partition",
	 .help = "whole nodes reduce, two apart from three, or deaf to them",
	 .full = true,
	 .reduces = true,
	 SPLIT_PATH},
	{.name = "reduces-kills",
	 .help = "whole nodes reduce, processes killed",
	 .full = true,
	 .reduces = true,
	 .loss_max_ppm = 20000,
	 .kill_control_ppm = 100000,
	 .kill_dataplane_ppm = 200000,
	 .kill_node_ppm = 100000},
	{.name = "reduces-mixed",
	 .help = "whole nodes reduce, all of it, stores lost",
	 .full = true,
	 .reduces = true,
	 MEAN_PATH,
	 .cut_ppm = 200000,
	 .freeze_ppm = 200000,
	 .kill_control_ppm = 50000,
	 .kill_dataplane_ppm = 100000,
	 .kill_node_ppm = 50000,
	 .lose_store_ppm = 100000,
	 .leave_ppm = 50000},
	{.name = "reduces-exchanged",
	 .help = "whole nodes exchange small values, processes killed, cables pulled",
	 .full = true,
	 .reduces = true,
	 .exchanged = true,
	 .loss_max_ppm = 20000,
	 .cut_ppm = 100000,
	 .freeze_ppm = 100000,
	 .kill_control_ppm = 50000,
	 .kill_dataplane_ppm = 100000,
	 .kill_node_ppm = 50000},
	{.name = "deadlines",
	 .help = "whole nodes reduce what is there at a deadline, processes killed, cables pulled",
	 .full = true,
	 .reduces = true,
	 .deadlines = true,
	 .loss_max_ppm = 20000,
	 .cut_ppm = 200000,
	 .freeze_ppm = 200000,
	 .kill_control_ppm = 50000,
	 .kill_dataplane_ppm = 100000,
	 .kill_node_ppm = 50000},
#endif
	{.name = NULL},
};

static uint64_t swarm_pick(struct prng *p, const uint64_t *values, uint32_t count)
{
	return values[prng_below(p, count)];
}
#define PICK(p, ...)                                   \
	swarm_pick(p, (const uint64_t[]){__VA_ARGS__}, \
		   sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static struct network_link swarm_link(struct prng *p)
{
	struct network_link link = {
		.rate_bps = PICK(p, 100, 1000, 1000, 10000, 25000) * 1000000,
		.delay_ns = PICK(p, 5, 50, 50, 500, 2500) * WORLD_US,
		.buffer_bytes = PICK(p, 64, 256, 512, 1024) << 10,
	};
	if (prng_chance(p, 300000))
		link.ecn_bytes = link.buffer_bytes / 8;
	return link;
}

static struct node_options swarm_options(struct prng *p)
{
	struct node_options o = world_options();
	o.store_bytes = 16 << 20;
	o.msg_slots = (uint32_t)PICK(p, 2, 8, 16);
	o.msg_rx_slots = (uint32_t)PICK(p, 2, 8, 16);
	o.turn_ns = PICK(p, 0, 0, 5, 50) * WORLD_US;
	o.config.mtu = (uint16_t)PICK(p, 1500, 1500, 3498, 9000);
	o.config.window_pkts = (uint16_t)PICK(p, 64, 256, 2048);
	o.config.credit_bytes = PICK(p, 64, 512, 2048) << 10;
	o.config.idle_timeout_ns = PICK(p, 100, 500, 3000) * WORLD_MS;
	o.config.block_bytes = PICK(p, 1, 64, 1024) << 10;
	o.config.edges_max = 64;
	return o;
}

static void swarm_open(struct swarm *s, const struct swarm_scenario *scenario, uint64_t seed,
		       uint32_t nodes)
{
	memset(s, 0, sizeof(*s));
	s->scenario = scenario;
	s->draw = prng_fork(seed, 0x737761726d);
	struct network_link link = swarm_link(&s->draw);
	struct node_options o = swarm_options(&s->draw);
	uint32_t count = (uint32_t)prng_between(&s->draw, 2, 8);
	bool v6 = prng_chance(&s->draw, 300000);
	world_init(&s->w, nodes ? nodes : count, &link, &o, seed, v6);
	s->chain = prng_chance(&s->draw, 500000);
	s->faults = (struct network_faults){
		.loss_ppm = (uint32_t)prng_below(&s->draw, scenario->loss_max_ppm + 1),
		.duplicate_ppm = (uint32_t)prng_below(&s->draw, scenario->duplicate_max_ppm + 1),
		.reorder_ppm = (uint32_t)prng_below(&s->draw, scenario->reorder_max_ppm + 1),
		.corrupt_ppm = (uint32_t)prng_below(&s->draw, scenario->corrupt_max_ppm + 1),
		.reorder_ns = link.delay_ns * prng_between(&s->draw, 1, 8),
		.jitter_ns = prng_below(&s->draw, link.delay_ns)};
	network_faults_all(&s->w.net, &s->faults);
	s->end_ns = world_now(&s->w) + PICK(&s->draw, 20, 60, 150) * WORLD_MS;
}

/* ---- trouble ------------------------------------------------------------------------------ */

static bool swarm_strikes(struct swarm *s, uint32_t ppm_per_ms)
{
	return prng_chance(&s->draw, (uint32_t)(ppm_per_ms * (SWARM_STEP_NS / 1e6)));
}

static void swarm_kill(struct swarm *s, uint32_t i)
{
	struct node *n = &s->w.nodes[i];
	s->restarts++;
	node_check(n);
	node_kill(n);
	if (prng_chance(&s->draw, 300000))
		node_forget(n);
	s->dead_until_ns[i] = world_now(&s->w) + prng_below(&s->draw, 20 * WORLD_MS);
}

static void swarm_trouble_node(struct swarm *s, uint32_t i)
{
	const struct swarm_scenario *c = s->scenario;
	struct node *n = &s->w.nodes[i];
	uint64_t now = world_now(&s->w), for_ns = prng_below(&s->draw, 30 * WORLD_MS);
	if (!n->alive) {
		if (now >= s->dead_until_ns[i])
			node_start(n);
		return;
	}
	if (s->w.net.endpoints[i].is_down && now >= s->cut_until_ns[i])
		s->w.net.endpoints[i].is_down = false;
	if (c->narrow_ppm && swarm_strikes(s, c->narrow_ppm))
		s->w.net.endpoints[i].link.mtu =
			(uint32_t)PICK(&s->draw, 0, 1280, 1400, 1400, 2600, 6000);
	if (swarm_strikes(s, c->restart_ppm)) {
		swarm_kill(s, i);
	} else if (swarm_strikes(s, c->cut_ppm)) {
		s->cuts++;
		s->w.net.endpoints[i].is_down = true;
		s->cut_until_ns[i] = now + for_ns;
	} else if (swarm_strikes(s, c->freeze_ppm)) {
		s->freezes++;
		node_freeze(n, now + for_ns);
	} else if (swarm_strikes(s, c->close_ppm)) {
		uint32_t peer = (uint32_t)prng_below(&s->draw, s->w.count);
		if (node_conn_to(n, peer))
			node_disconnect(n, peer);
	}
}

static void swarm_message(struct swarm *s)
{
	uint32_t a = (uint32_t)prng_below(&s->draw, s->w.count);
	uint32_t b = (uint32_t)prng_below(&s->draw, s->w.count);
	uint32_t length = 16 + (uint32_t)prng_below(&s->draw, 1u << prng_between(&s->draw, 1, 16));
	struct node *n = &s->w.nodes[a];
	if (a == b || !n->alive)
		return;
	if (!node_conn_to(n, b)) {
		if (world_now(&s->w) >= s->asked_ns[a][b] + 20 * WORLD_MS) {
			s->asked_ns[a][b] = world_now(&s->w);
			node_connect(n, b);
		}
		return;
	}
	s->messages += node_message(n, b, length) != NODE_NONE;
}

static void swarm_judge(struct swarm *s)
{
	for (uint32_t i = 0; i < s->w.count; i++) {
		struct node *n = &s->w.nodes[i];
		const char *bad = n->alive ? invariants_check(n->engine) : NULL;
		if (bad)
			world_violation(&s->w, "node %u: %s", i, bad);
	}
}

static void swarm_storm(struct swarm *s)
{
	for (uint32_t step = 0; world_now(&s->w) < s->end_ns && !s->w.violations; step++) {
		if (swarm_strikes(s, s->scenario->job_ppm) || step == 0)
			swarm_job_add(s);
		if (swarm_strikes(s, s->scenario->message_ppm))
			swarm_message(s);
		for (uint32_t i = 0; i < s->w.count; i++)
			swarm_trouble_node(s, i);
		if (s->jobs_count && swarm_strikes(s, s->scenario->cancel_ppm)) {
			struct swarm_job *j = &s->jobs[prng_below(&s->draw, s->jobs_count)];
			if (!j->cancelled)
				swarm_job_cancel(s, j);
		}
		swarm_plan(s);
		world_run(&s->w, SWARM_STEP_NS);
		if (step % 16 == 0)
			swarm_judge(s);
	}
}

/* ---- heal, and then everything must end ---------------------------------------------------- */

static void swarm_heal(struct swarm *s)
{
	struct network_faults none = {0};
	network_faults_all(&s->w.net, &none);
	s->healing = true;
	for (uint32_t i = 0; i < s->w.count; i++) {
		struct node *n = &s->w.nodes[i];
		s->w.net.endpoints[i].is_down = false;
		if (!n->alive)
			node_start(n);
		if (n->frozen_until_ns > world_now(&s->w))
			node_freeze(n, world_now(&s->w));
	}
	swarm_jobs_give_up(s);
}

static bool swarm_messages_ended(const struct swarm *s)
{
	for (uint32_t i = 0; i < s->w.count; i++)
		for (uint32_t m = 0; m < s->w.nodes[i].messages_count; m++)
			if (!s->w.nodes[i].messages[m].ended)
				return false;
	return true;
}

/* Virtual time in which a healed world must come to its end: peers that are gone are noticed, the
 * longest back-offs expire, and all bytes cross the slowest link some times over. */
static uint64_t swarm_bound_ns(const struct swarm *s)
{
	uint64_t bytes = 0;
	for (uint32_t k = 0; k < s->jobs_count; k++)
		bytes += s->jobs[k].size * s->w.count;
	const struct network_link *link = &s->w.net.endpoints[0].link;
	return 4 * s->w.nodes[0].config.idle_timeout_ns + 3 * WORLD_S + 1000 * link->delay_ns +
	       (uint64_t)(16.0 * 8e9 * (double)bytes / (double)link->rate_bps);
}

static bool swarm_store_full(const struct swarm *s)
{
	for (uint32_t i = 0; i < s->w.count; i++)
		if (!node_has_store(&s->w.nodes[i], 1 << 20))
			return true;
	return false;
}

static void swarm_calm(struct swarm *s)
{
	uint64_t start = world_now(&s->w), bound = swarm_bound_ns(s);
	while (!s->w.violations && (!swarm_jobs_done(s) || !swarm_messages_ended(s))) {
		if (world_now(&s->w) - start > bound) {
			if (swarm_store_full(s))
				return; /* bitmaps of edges never come back: our own limit */
			world_violation(&s->w, "%s after %.1f s of health",
					swarm_jobs_done(s) ? "a message waits"
							   : "a copy is incomplete",
					bound / 1e9);
			swarm_jobs_print(s);
			return;
		}
		swarm_plan(s);
		world_run(&s->w, SWARM_STEP_NS);
	}
}

/* Everything is taken down; the engines must be as empty as at the start. */
static void swarm_empty(struct swarm *s)
{
	for (uint32_t k = 0; k < s->jobs_count; k++) {
		s->completed += !s->jobs[k].cancelled;
		swarm_job_cancel(s, &s->jobs[k]);
	}
	/* long enough for keep-alives to find connections whose other end closed unheard */
	world_run(&s->w, 50 * WORLD_MS + 2 * s->w.nodes[0].config.idle_timeout_ns);
	for (uint32_t i = 0; i < s->w.count && !s->w.violations; i++) {
		const char *bad = invariants_check_idle(s->w.nodes[i].engine);
		if (bad)
			world_violation(&s->w, "node %u, in the end: %s", i, bad);
	}
	for (uint32_t i = 0; i < s->w.count; i++)
		for (uint32_t m = 0; m < s->w.nodes[i].messages_count; m++) {
			const struct node_message *msg = &s->w.nodes[i].messages[m];
			struct node_conn *c = node_conn_find(&s->w.nodes[i], msg->conn);
			if (msg->acknowledged && !msg->delivered && c &&
			    c->peer_incarnation == s->w.nodes[msg->peer].config.incarnation)
				world_violation(&s->w, "node %u: message %u never came out", i, m);
		}
}

bool swarm_run(const struct swarm_scenario *scenario, uint64_t seed, uint32_t nodes, bool verbose)
{
	static struct swarm s;
#ifdef SWARM_FULL
	if (scenario->full)
		return swarm_full_run(scenario, seed, nodes, verbose);
#endif
	swarm_open(&s, scenario, seed, nodes);
	swarm_storm(&s);
	double storm_ms = (double)(world_now(&s.w) - WORLD_START_NS) / 1e6;
	if (!s.w.violations)
		swarm_heal(&s);
	swarm_calm(&s);
	if (!s.w.violations)
		swarm_empty(&s);
	double all_ms = (double)(world_now(&s.w) - WORLD_START_NS) / 1e6;
	uint64_t pkts = s.w.net.delivered;
	for (uint32_t i = 0; i < s.w.count; i++)
		node_check(&s.w.nodes[i]);
	if (verbose)
		printf("seed %llu: %u nodes, loss %.1f %%, %u jobs (%u completed), %u messages, "
		       "%u restarts, %u cuts, %u freezes, %.0f + %.0f ms, %llu packets: %s\n",
		       (unsigned long long)seed, s.w.count, s.faults.loss_ppm / 1e4, s.jobs_count,
		       s.completed, s.messages, s.restarts, s.cuts, s.freezes, storm_ms,
		       all_ms - storm_ms, (unsigned long long)pkts,
		       s.w.violations ? s.w.first : "good");
	bool good = !s.w.violations;
	if (!good)
		fprintf(stderr, "swarm: seed %llu broke an invariant: %s\n",
			(unsigned long long)seed, s.w.first);
	s.w.print_violations = false;
	world_free(&s.w);
	return good;
}
