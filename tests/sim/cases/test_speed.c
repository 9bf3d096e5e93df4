/* SPDX-License-Identifier: BSD-3-Clause */
/* How close to its bound the transport comes, in virtual time: clean paths, lossy paths, shapes. */
#include "model/testkit.h"

#define WITHIN_NS (60 * WORLD_S)
#define MIB	  (1ull << 20)

static struct node_options speed_options(uint64_t store_bytes, uint16_t mtu)
{
	struct node_options o = world_options();
	o.store_bytes = store_bytes;
	o.config.mtu = mtu;
	return o;
}

struct path {
	const char *name;
	uint64_t mbit, rtt_ns, bytes;
	uint16_t mtu;
	uint32_t loss_ppm;
	double ratio; /* of the payload bound, at most */
	uint64_t turn_ns;
};

static double path_run(const struct path *p, struct counters *tx)
{
	struct world w;
	struct network_link link = testkit_link(p->mbit, p->rtt_ns);
	struct node_options o = speed_options(p->bytes + (4 << 20), p->mtu);
	struct network_faults f = {.loss_ppm = p->loss_ppm};
	o.turn_ns = p->turn_ns;
	world_init(&w, 2, &link, &o, TESTKIT_SEED, false);
	assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	network_faults_all(&w.net, &f);
	struct transfer t =
		testkit_transfer(&w, p->bytes, engine_chunk_bytes(p->mtu, true), WITHIN_NS);
	if (t.done_ns == UINT64_MAX)
		fail_msg("%s: not complete", p->name);
	testkit_clean(&w);
	*tx = w.nodes[0].counters;
	world_free(&w);
	return (double)t.done_ns / (double)testkit_bound_ns(p->bytes, p->mbit);
}

static void resent_at_most(const struct counters *tx, double share)
{
	testkit_at_most("re-sent, share of chunks",
			(double)tx->tx_chunk_resends / (double)tx->tx_chunks, share);
}

static void clean_paths_are_near_their_bound(void **state)
{
	static const struct path paths[] = {
		{"200 Mbit/s, 100 us, MTU 1500", 200, 100000, 64 * MIB, 1500, 0, 1.06, 0},
		{"200 Mbit/s, 5 ms, MTU 1500", 200, 5000000, 64 * MIB, 1500, 0, 1.08, 0},
		{"10 Gbit/s, 100 us, MTU 1500", 10000, 100000, 64 * MIB, 1500, 0, 1.08, 0},
		{"10 Gbit/s, 100 us, MTU 9000", 10000, 100000, 64 * MIB, 9000, 0, 1.04, 0},
		{"100 Gbit/s, 10 us, MTU 1500", 100000, 10000, 64 * MIB, 1500, 0, 1.08, 0},
		{"100 Gbit/s, 10 us, MTU 9000", 100000, 10000, 64 * MIB, 9000, 0, 1.05, 0},
		{"10 Gbit/s, polled each 20 us", 10000, 100000, 64 * MIB, 1500, 0, 1.08, 20000},
	};
	struct counters tx;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		testkit_at_most(paths[i].name, path_run(&paths[i], &tx), paths[i].ratio);
		resent_at_most(&tx, 0.10);
	}
}

static void one_percent_of_loss_costs_at_most_a_tenth(void **state)
{
	static const struct path paths[] = {
		{"200 Mbit/s, 1 % loss", 200, 100000, 32 * MIB, 1500, 10000, 0, 0},
		{"1 Gbit/s, 1 ms, 1 % loss", 1000, 1000000, 32 * MIB, 1500, 10000, 0, 0},
		{"10 Gbit/s, 1 % loss", 10000, 100000, 32 * MIB, 1500, 10000, 0, 0},
	};
	struct counters tx;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct path clean = paths[i];
		clean.loss_ppm = 0;
		double base = path_run(&clean, &tx), lossy = path_run(&paths[i], &tx);
		testkit_at_most(paths[i].name, lossy / base, 1 / 0.9);
		/* what is lost is sent again, and little else */
		resent_at_most(&tx, 0.02);
	}
}

static void heavy_loss_completes(void **state)
{
	static const struct path paths[] = {
		{"5 % loss", 1000, 100000, 8 * MIB, 1500, 50000, 1.5, 0},
		{"10 % loss", 1000, 100000, 8 * MIB, 1500, 100000, 2, 0},
		{"20 % loss", 1000, 100000, 4 * MIB, 1500, 200000, 3, 0},
		{"30 % loss", 1000, 100000, 4 * MIB, 1500, 300000, 6, 0},
	};
	struct counters tx;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		testkit_at_most(paths[i].name, path_run(&paths[i], &tx), paths[i].ratio);
}

/* ---- shapes ------------------------------------------------------------------------------- */

static bool all_sinks_done(void *context)
{
	const struct world *w = context;
	for (uint32_t i = 0; i < w->count; i++)
		for (uint32_t b = 0; b < w->nodes[i].buffers_count; b++)
			if (w->nodes[i].buffers[b].kind == BUFFER_SINK &&
			    !w->nodes[i].buffers[b].done)
				return false;
	return true;
}

static void chain_of_five_is_cut_through(void **state)
{
	struct world w;
	struct network_link link = testkit_link(1000, 100 * WORLD_US);
	struct node_options o = speed_options(20 * MIB, 1500);
	uint64_t bytes = 16 * MIB;
	world_init(&w, 5, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(world_connect(&w, i, i + 1, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	uint32_t before = node_source(&w.nodes[0], bytes, TESTKIT_CHUNK, TESTKIT_SEED, bytes);
	for (uint32_t i = 1; i < 5; i++) {
		uint32_t b = node_sink(&w.nodes[i], bytes, TESTKIT_CHUNK, TESTKIT_SEED);
		world_edge(&w, i - 1, before, i, b);
		before = b;
	}
	uint64_t t = world_until(&w, WITHIN_NS, all_sinks_done, &w);
	assert_true(t != UINT64_MAX);
	/* the fill: one round trip and some packets per hop */
	testkit_at_most("chain of 5, ms", t / 1e6,
			testkit_bound_ns(bytes, 1000) * 1.06 / 1e6 + 4 * 0.3);
	testkit_clean(&w);
	world_free(&w);
}

/* Acknowledgements come back through a link that another node fills: they wait there, and the
 * sender must not take that for a queue of its own. */
static void a_loaded_way_back_slows_nobody(void **state)
{
	struct world w;
	struct network_link link = testkit_link(100, 100 * WORLD_US);
	struct node_options o = speed_options(20 * MIB, 1500);
	uint64_t bytes = 8 * MIB;
	static const struct {
		uint32_t from, to;
	} ways[] = {{0, 1}, {2, 0}, {1, 2}};
	world_init(&w, 3, &link, &o, TESTKIT_SEED, false);
	for (size_t i = 0; i < 3; i++)
		assert_true(world_connect(&w, ways[i].from, ways[i].to, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	for (size_t i = 0; i < 3; i++) {
		struct node *from = &w.nodes[ways[i].from], *to = &w.nodes[ways[i].to];
		uint32_t source = node_source(from, bytes, TESTKIT_CHUNK, TESTKIT_SEED, bytes);
		uint32_t sink = node_sink(to, bytes, TESTKIT_CHUNK, TESTKIT_SEED);
		world_edge(&w, ways[i].from, source, ways[i].to, sink);
	}
	uint64_t t = world_until(&w, WITHIN_NS, all_sinks_done, &w);
	assert_true(t != UINT64_MAX);
	testkit_at_most("ring of three, ratio", (double)t / (double)testkit_bound_ns(bytes, 100),
			1.08);
	testkit_clean(&w);
	world_free(&w);
}

static void fan_out_fills_the_link(void **state)
{
	struct world w;
	struct network_link link = testkit_link(1000, 100 * WORLD_US);
	struct node_options o = speed_options(20 * MIB, 1500);
	uint64_t bytes = 8 * MIB, first = UINT64_MAX, last = 0;
	world_init(&w, 4, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i < 4; i++)
		assert_true(world_connect(&w, 0, i, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	uint32_t source = node_source(&w.nodes[0], bytes, TESTKIT_CHUNK, TESTKIT_SEED, bytes);
	for (uint32_t i = 1; i < 4; i++)
		world_edge(&w, 0, source, i,
			   node_sink(&w.nodes[i], bytes, TESTKIT_CHUNK, TESTKIT_SEED));
	uint64_t t = world_until(&w, WITHIN_NS, all_sinks_done, &w);
	assert_true(t != UINT64_MAX);
	testkit_at_most("fan-out to 3, ratio", (double)t / testkit_bound_ns(3 * bytes, 1000), 1.07);
	for (uint32_t i = 1; i < 4; i++) {
		first = w.nodes[i].done_ns < first ? w.nodes[i].done_ns : first;
		last = w.nodes[i].done_ns > last ? w.nodes[i].done_ns : last;
	}
	testkit_at_most("fan-out: last beyond first, share of the time", (last - first) * 1.0 / t,
			0.45);
	testkit_clean(&w);
	world_free(&w);
}

/* Returns the share of chunks that were sent again. */
static double incast_share(uint32_t senders, uint64_t mbit, uint64_t bytes, double ratio)
{
	struct world w;
	struct network_link link = testkit_link(mbit, 100 * WORLD_US);
	struct node_options o = speed_options(senders * bytes + 8 * MIB, 1500);
	struct counters sum = {0};
	o.config.conns_max = (uint16_t)(senders + 1);
	o.config.buffers_max = 128;
	world_init(&w, senders + 1, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i <= senders; i++)
		assert_true(world_connect(&w, i, 0, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	for (uint32_t i = 1; i <= senders; i++)
		testkit_begin(&w, i, 0, bytes, TESTKIT_CHUNK, TESTKIT_SEED + i);
	uint64_t t = world_until(&w, WITHIN_NS, all_sinks_done, &w);
	assert_true(t != UINT64_MAX);
	for (uint32_t i = 1; i <= senders; i++) {
		sum.tx_chunks += w.nodes[i].counters.tx_chunks;
		sum.tx_chunk_resends += w.nodes[i].counters.tx_chunk_resends;
	}
	printf("  incast of %u at %llu Mbit/s: queue up to %llu KiB, %llu drops\n", senders,
	       (unsigned long long)mbit,
	       (unsigned long long)w.net.endpoints[0].down.backlog_max_bytes >> 10,
	       (unsigned long long)w.net.endpoints[0].down.drops_full);
	testkit_at_most("incast, ratio", (double)t / testkit_bound_ns(senders * bytes, mbit),
			ratio);
	testkit_clean(&w);
	world_free(&w);
	return (double)sum.tx_chunk_resends / (double)sum.tx_chunks;
}

static void incast_run(uint32_t senders, uint64_t mbit, uint64_t bytes, double ratio, double resent)
{
	testkit_at_most("incast, re-sent share", incast_share(senders, mbit, bytes, ratio), resent);
}

/* The buffer is 4 round trips. What the first overflow takes differs by half from rate to rate. */
static void incast_runs(uint32_t senders, uint64_t mbit, uint64_t bytes, double ratio,
			double resent)
{
	double share = 0;
	for (int k = 0; k < 12; k++)
		share += incast_share(senders, mbit * (uint64_t)(90 + 2 * k) / 100, bytes, ratio);
	testkit_at_most("incast, mean re-sent share", share / 12, resent);
}

static void incast_does_not_collapse(void **state)
{
	incast_run(15, 1000, 2 * MIB, 1.08, 0.01);
	incast_run(15, 200, 1 * MIB, 1.08, 0.01);
	incast_runs(15, 10000, 4 * MIB, 1.09, 0.03);
}

/* What all may send before the first grant is nine times what the switch can queue. */
static void incast_of_a_hundred_does_not_collapse(void **state)
{
	incast_run(100, 1000, MIB / 4, 1.09, 0.16);
	incast_run(100, 10000, MIB / 4, 1.18, 0.38);
}

/* As when readers ask for something: its streams are there before the requests come to those who
 * send. Few chunks of each, but of all more than three times what the port's buffer takes. */
static void short_incast_run(uint64_t mbit, uint64_t gap_ns, double ratio, double resent)
{
	enum { SENDERS = 100, BYTES = 18 * 1024 };
	struct network_link link = testkit_link(mbit, 100 * WORLD_US);
	struct node_options o = speed_options(SENDERS * BYTES + 8 * MIB, 1500);
	uint32_t in[SENDERS + 1], source;
	uint64_t sent = 0, again = 0;
	struct world w;

	o.config.conns_max = SENDERS + 1;
	o.config.buffers_max = 128;
	world_init(&w, SENDERS + 1, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i <= SENDERS; i++)
		assert_true(world_connect(&w, i, 0, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	for (uint32_t i = 1; i <= SENDERS; i++) {
		in[i] = node_in(&w.nodes[0],
				node_sink(&w.nodes[0], BYTES, TESTKIT_CHUNK, TESTKIT_SEED + i), i,
				0, 0);
		if (gap_ns > 0)
			world_run(&w, gap_ns);
	}
	world_run(&w, 400 * WORLD_US); /* so long the requests, behind the grants, are under way */
	for (uint32_t i = 1; i <= SENDERS; i++) {
		source = node_source(&w.nodes[i], BYTES, TESTKIT_CHUNK, TESTKIT_SEED + i, BYTES);
		node_out(&w.nodes[i], source, 0, w.nodes[0].edges[in[i]].handle, 0, 0);
	}
	uint64_t t = world_until(&w, WITHIN_NS, all_sinks_done, &w);
	assert_true(t != UINT64_MAX);
	for (uint32_t i = 1; i <= SENDERS; i++) {
		sent += w.nodes[i].counters.tx_chunks;
		again += w.nodes[i].counters.tx_chunk_resends;
	}
	testkit_at_most("short incast, ratio", (double)t / testkit_bound_ns(SENDERS * BYTES, mbit),
			ratio);
	testkit_at_most("short incast, re-sent share", (double)again / (double)sent, resent);
	testkit_clean(&w);
	world_free(&w);
}

static void incast_of_short_ones_is_no_storm(void **state)
{
	short_incast_run(1000, 0, 1.1, 0.1);
	short_incast_run(10000, 0, 1.1, 0.01);
	/* those that begin first would be told of few */
	short_incast_run(1000, 2 * WORLD_US, 1.1, 0.1);
	short_incast_run(1000, 50 * WORLD_US, 1.1, 0.1);
	short_incast_run(10000, 2 * WORLD_US, 1.1, 0.01);
}

static void ecn_keeps_queues_short(void **state)
{
	struct world w;
	struct network_link link = testkit_link(1000, 100 * WORLD_US);
	struct node_options o = speed_options(40 * MIB, 1500);
	uint64_t bytes = 16 * MIB;
	link.ecn_bytes = 30000;
	world_init(&w, 3, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i < 3; i++)
		assert_true(world_connect(&w, i, 0, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	for (uint32_t i = 1; i < 3; i++)
		testkit_begin(&w, i, 0, bytes, TESTKIT_CHUNK, TESTKIT_SEED + i);
	uint64_t t = world_until(&w, WITHIN_NS, all_sinks_done, &w);
	assert_true(t != UINT64_MAX);
	assert_true(w.nodes[0].counters.rx_ecn_ce > 0);
	testkit_at_most("2 to 1 with ECN, ratio", (double)t / testkit_bound_ns(2 * bytes, 1000),
			1.08);
	testkit_at_most("2 to 1 with ECN, queue in KiB",
			w.net.endpoints[0].down.backlog_max_bytes / 1024.0, 300);
	testkit_clean(&w);
	world_free(&w);
}

/* Two transfers that share a link get about equal parts of it. */
static void flows_share_fairly(void **state)
{
	struct world w;
	struct network_link link = testkit_link(1000, 100 * WORLD_US);
	struct node_options o = speed_options(80 * MIB, 1500);
	uint64_t bytes = 32 * MIB;
	struct transfer t[2];
	world_init(&w, 3, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i < 3; i++)
		assert_true(world_connect(&w, i, 0, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 5 * WORLD_MS);
	t[0] = testkit_begin(&w, 1, 0, bytes, TESTKIT_CHUNK, 1);
	world_run(&w, 20 * WORLD_MS); /* the first has the link for itself */
	t[1] = testkit_begin(&w, 2, 0, bytes, TESTKIT_CHUNK, 2);
	world_run(&w, 10 * WORLD_MS);
	uint64_t a = w.nodes[1].counters.tx_chunks, b = w.nodes[2].counters.tx_chunks;
	world_run(&w, 150 * WORLD_MS);
	a = w.nodes[1].counters.tx_chunks - a;
	b = w.nodes[2].counters.tx_chunks - b;
	testkit_at_most("old flow to new flow", (double)a / (double)b, 2.0);
	testkit_at_most("new flow to old flow", (double)b / (double)a, 2.0);
	assert_true(world_until(&w, WITHIN_NS, all_sinks_done, &w) != UINT64_MAX);
	(void)t;
	testkit_clean(&w);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_paths_are_near_their_bound),
		cmocka_unit_test(one_percent_of_loss_costs_at_most_a_tenth),
		cmocka_unit_test(heavy_loss_completes),
		cmocka_unit_test(chain_of_five_is_cut_through),
		cmocka_unit_test(a_loaded_way_back_slows_nobody),
		cmocka_unit_test(fan_out_fills_the_link),
		cmocka_unit_test(incast_does_not_collapse),
		cmocka_unit_test(incast_of_a_hundred_does_not_collapse),
		cmocka_unit_test(incast_of_short_ones_is_no_storm),
		cmocka_unit_test(ecn_keeps_queues_short),
		cmocka_unit_test(flows_share_fairly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
