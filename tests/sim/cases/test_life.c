/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lives and deaths of connections: restart in the middle, silence, cut cables, both sides opening
 * at once, paths that carry less than they said, nodes that read slowly, and doing nothing.
 */
#include "engine_state.h"
#include "model/testkit.h"

#define RTT_NS	  (100 * WORLD_US)
#define MIB	  (1ull << 20)
#define BYTES	  (8 * MIB)
#define WITHIN_NS (60 * WORLD_S)

static void open_world(struct world *w, uint32_t count, uint64_t seed)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	world_init(w, count, &link, &o, seed, false);
}

static void connect_pair(struct world *w)
{
	assert_true(world_connect(w, 0, 1, WITHIN_NS) != UINT64_MAX);
	world_run(w, 5 * WORLD_MS);
}

static void open_pair(struct world *w)
{
	open_world(w, 2, TESTKIT_SEED);
	connect_pair(w);
}

static void close_world(struct world *w)
{
	testkit_clean(w);
	world_free(w);
}

static uint64_t idle_ns(const struct world *w)
{
	return w->nodes[0].config.idle_timeout_ns;
}

/* ---- restart ------------------------------------------------------------------------------ */

struct stage {
	struct world *w;
	uint64_t chunks;
};

static bool arrived(void *context)
{
	const struct stage *s = context;
	return s->w->nodes[1].counters.rx_chunks >= s->chunks;
}

static struct transfer half_way(struct world *w)
{
	struct transfer t = testkit_begin(w, 0, 1, BYTES, TESTKIT_CHUNK, TESTKIT_SEED);
	struct stage s = {w, BYTES / TESTKIT_CHUNK / 2};
	assert_true(world_until(w, WITHIN_NS, arrived, &s) != UINT64_MAX);
	return t;
}

static struct transfer open_half_way(struct world *w)
{
	open_pair(w);
	return half_way(w);
}

/* When the edge fails. */
static uint64_t edge_fails(struct world *w, uint32_t node, uint32_t edge)
{
	uint64_t took = world_edge_ended(w, node, edge, WITHIN_NS);
	assert_true(took != UINT64_MAX);
	assert_int_equal(w->nodes[node].edges[edge].state, EDGE_FAILED);
	printf("  reason: %s\n", reason_name(w->nodes[node].edges[edge].reason));
	return took;
}

static uint64_t edge_fails_for(struct world *w, uint32_t node, uint32_t edge, enum reason why)
{
	uint64_t took = edge_fails(w, node, edge);
	assert_int_equal(w->nodes[node].edges[edge].reason, why);
	return took;
}

static void arrives(struct world *w, uint32_t node, uint32_t sink)
{
	assert_true(world_buffer_done(w, node, sink, WITHIN_NS) != UINT64_MAX);
}

/* Both ends of the pair have so many connections. */
static void connections(const struct world *w, uint32_t count)
{
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(engine_connections(w->nodes[i].engine), count);
}

static void receiver_restarts_and_resumes(void **state)
{
	struct world w;
	struct transfer t = open_half_way(&w);
	node_kill(&w.nodes[1]);
	node_check(&w.nodes[1]);
	node_start(&w.nodes[1]);
	uint64_t took = edge_fails(&w, 0, t.out);
	uint16_t why = w.nodes[0].edges[t.out].reason;
	if (why != REASON_PEER_RESTARTED && why != REASON_PEER_TIMEOUT && why != REASON_PEER_CLOSED)
		fail_msg("edge failed with: %s", reason_name(why));
	testkit_at_most("a restarted peer is noticed after (ms)", took / 1e6,
			2 * idle_ns(&w) / 1e6);
	/* the receiver goes on from its bitmap; the sender sends all but what is there */
	assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
	uint64_t words[1024] = {0};
	struct node_buffer *sink = &w.nodes[1].buffers[t.sink];
	memcpy(words, w.nodes[1].store.base + sink->bitmap_offset,
	       chunk_bitmap_bytes(chunk_count(sink->size, sink->chunk_bytes)));
	node_adopt(&w.nodes[1], t.sink);
	uint32_t in = node_in(&w.nodes[1], t.sink, 0, 0, 0);
	uint64_t before = w.nodes[0].counters.tx_chunks;
	node_out_resumed(&w.nodes[0], t.source, 1, w.nodes[1].edges[in].handle, words);
	arrives(&w, 1, t.sink);
	testkit_at_most("chunks sent after resuming",
			(double)(w.nodes[0].counters.tx_chunks - before),
			0.55 * BYTES / TESTKIT_CHUNK);
	close_world(&w);
}

static void sender_restarts(void **state)
{
	struct world w;
	open_half_way(&w);
	node_kill(&w.nodes[0]);
	node_start(&w.nodes[0]);
	uint64_t took = edge_fails(&w, 1, 0);
	testkit_at_most("a restarted sender is noticed after (ms)", took / 1e6,
			2 * idle_ns(&w) / 1e6);
	/* and a new life connects and works at once */
	connect_pair(&w);
	struct transfer again = testkit_begin(&w, 0, 1, MIB, TESTKIT_CHUNK, 77);
	arrives(&w, 1, again.sink);
	close_world(&w);
}

/* The new life calls at once, before the peer noticed that the old one is gone. */
static void new_life_calls_before_the_old_is_missed(void **state)
{
	struct world w;
	open_half_way(&w);
	node_kill(&w.nodes[0]);
	node_start(&w.nodes[0]);
	assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 10 * WORLD_MS);
	assert_int_equal(w.nodes[1].edges[0].state, EDGE_FAILED);
	assert_int_equal(w.nodes[1].edges[0].reason, REASON_PEER_RESTARTED);
	assert_int_equal(engine_connections(w.nodes[1].engine), 1);
	close_world(&w);
}

static void idle_peer_restarts_and_is_recognised(void **state)
{
	struct world w;
	open_pair(&w);
	node_kill(&w.nodes[1]);
	node_start(&w.nodes[1]);
	assert_int_not_equal(node_message(&w.nodes[0], 1, 100), NODE_NONE);
	world_run(&w, 3 * idle_ns(&w));
	assert_true(w.nodes[0].messages[0].ended);
	assert_false(w.nodes[0].messages[0].acknowledged);
	assert_int_equal(node_conn_to(&w.nodes[0], 1), 0);
	printf("  reason: %s\n", reason_name(w.nodes[0].conns[0].reason));
	close_world(&w);
}

/* ---- silence ------------------------------------------------------------------------------ */

static void dead_peer_is_noticed(void **state)
{
	struct world w;
	struct transfer t = open_half_way(&w);
	node_kill(&w.nodes[1]);
	uint64_t took = edge_fails_for(&w, 0, t.out, REASON_PEER_TIMEOUT);
	testkit_at_most("a dead receiver is noticed after (ms)", took / 1e6, 2 * idle_ns(&w) / 1e6);
	assert_true(took >= idle_ns(&w) / 2);
	close_world(&w);
}

static void dead_sender_is_noticed(void **state)
{
	struct world w;
	open_half_way(&w);
	node_kill(&w.nodes[0]);
	uint64_t took = edge_fails_for(&w, 1, 0, REASON_PEER_TIMEOUT);
	testkit_at_most("a dead sender is noticed after (ms)", took / 1e6, 3 * idle_ns(&w) / 1e6);
	close_world(&w);
}

static void nobody_there(void **state)
{
	struct world w;
	open_world(&w, 3, TESTKIT_SEED);
	node_kill(&w.nodes[1]);
	node_connect(&w.nodes[0], 1);
	world_run(&w, 4 * idle_ns(&w));
	assert_int_equal(w.nodes[0].open_answers, 1);
	assert_int_equal(w.nodes[0].conns_count, 0);
	assert_int_equal(engine_connections(w.nodes[0].engine), 0);
	/* few packets are spent on nobody */
	testkit_at_most("HELLOs to nobody", w.net.pair_sent[1], 64);
	node_start(&w.nodes[1]);
	assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
	close_world(&w);
}

static void short_cut_of_the_cable_is_survived(void **state)
{
	struct world w;
	struct transfer t = open_half_way(&w);
	w.net.endpoints[1].is_down = true;
	world_run(&w, idle_ns(&w) / 4);
	w.net.endpoints[1].is_down = false;
	uint64_t took = world_buffer_done(&w, 1, t.sink, WITHIN_NS);
	assert_true(took != UINT64_MAX);
	assert_int_equal(w.nodes[0].conns_count, 1);
	/* the probe's back-off is at most as long as the silence was */
	testkit_at_most("after the cable is back (ms)", took / 1e6,
			testkit_bound_ns(4 * MIB, 1000) * 1.2 / 1e6 + idle_ns(&w) / 4e6 + 20);
	close_world(&w);
}

static void long_cut_fails_both_sides(void **state)
{
	struct world w;
	struct transfer t = open_half_way(&w);
	w.net.endpoints[1].side = 1;
	world_run(&w, 4 * idle_ns(&w));
	assert_int_equal(w.nodes[0].edges[t.out].state, EDGE_FAILED);
	assert_int_equal(w.nodes[1].edges[0].state, EDGE_FAILED);
	connections(&w, 0);
	w.net.endpoints[1].side = 0;
	connect_pair(&w);
	/* the same buffer on a fresh edge: only what is missing is stored */
	uint32_t in = node_in(&w.nodes[1], t.sink, 0, 0, 0);
	node_out(&w.nodes[0], t.source, 1, w.nodes[1].edges[in].handle, 0, 0);
	arrives(&w, 1, t.sink);
	assert_int_equal(w.nodes[1].counters.rx_chunks, chunk_count(BYTES, TESTKIT_CHUNK));
	close_world(&w);
}

static void closing_tells_the_peer(void **state)
{
	struct world w;
	struct transfer t = open_half_way(&w);
	node_disconnect(&w.nodes[1], 0);
	uint64_t took = edge_fails_for(&w, 0, t.out, REASON_PEER_CLOSED);
	world_run(&w, WORLD_MS);
	assert_int_equal(w.nodes[1].edges[0].state, EDGE_FAILED);
	assert_int_equal(w.nodes[1].edges[0].reason, REASON_CLOSED);
	connections(&w, 0);
	testkit_at_most("closing reaches the peer after (us)", took / 1e3, 10 * RTT_NS / 1e3);
	close_world(&w);
}

/* ---- both at once ------------------------------------------------------------------------- */

static bool both_up(void *context)
{
	struct world *w = context;
	return node_conn_to(&w->nodes[0], 1) && node_conn_to(&w->nodes[1], 0);
}

static void simultaneous_open(void **state)
{
	for (uint64_t gap_us = 0; gap_us <= 400; gap_us += 20) {
		struct world w;
		open_world(&w, 2, TESTKIT_SEED + gap_us);
		node_connect(&w.nodes[0], 1);
		world_run(&w, gap_us * WORLD_US);
		node_connect(&w.nodes[1], 0);
		assert_true(world_until(&w, WITHIN_NS, both_up, &w) != UINT64_MAX);
		world_run(&w, WORLD_S);
		/* each PEER_OPEN is answered, and a connection is reported once more at most */
		assert_in_range(w.nodes[0].open_answers, 1, 2);
		assert_in_range(w.nodes[1].open_answers, 1, 2);
		connections(&w, 1);
		assert_int_equal(node_conn_to(&w.nodes[0], 1) != 0, 1);
		assert_int_equal(node_conn_to(&w.nodes[1], 0) != 0, 1);
		struct transfer a = testkit_begin(&w, 0, 1, MIB, TESTKIT_CHUNK, 1);
		struct transfer b = testkit_begin(&w, 1, 0, MIB, TESTKIT_CHUNK, 2);
		arrives(&w, 1, a.sink);
		arrives(&w, 0, b.sink);
		close_world(&w);
	}
}

static void opening_twice_answers_twice(void **state)
{
	struct world w;
	open_pair(&w);
	w.nodes[0].expect_refused = true;
	node_connect(&w.nodes[0], 1);
	world_run(&w, 100 * WORLD_MS);
	/* however it is answered: once, and the connection stays the one it was */
	printf("  answers %u, refused %u\n", w.nodes[0].open_answers, w.nodes[0].refused);
	connections(&w, 1);
	w.violations = 0;
	struct transfer a = testkit_begin(&w, 0, 1, MIB, TESTKIT_CHUNK, 1);
	arrives(&w, 1, a.sink);
	close_world(&w);
}

/* ---- path MTU ----------------------------------------------------------------------------- */

static void open_wide(struct world *w, uint32_t count, uint16_t mtu)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	o.config.mtu = mtu;
	o.store_bytes = 64 * MIB;
	world_init(w, count, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i < count; i++)
		assert_true(world_connect(w, i - 1, i, WITHIN_NS) != UINT64_MAX);
	world_run(w, 5 * WORLD_MS);
}

/* From now until node 1 has more chunks than what is on the way now. */
static uint64_t goes_on(struct world *w)
{
	world_run(w, 10 * WORLD_MS); /* the longest queue takes 5 */
	struct stage s = {w, w->nodes[1].counters.rx_chunks + 1};
	uint64_t took = world_until(w, WITHIN_NS, arrived, &s);
	assert_true(took != UINT64_MAX);
	return took + 10 * WORLD_MS;
}

/* Both links carry more than what is between them: chunks go in parts. */
static void small_path_carries_large_chunks(void **state)
{
	static const uint32_t paths[] = {1280, 1400, 2600, 4000, 8950};
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	struct world w;
	o.config.mtu = 9000;
	for (size_t k = 0; k < sizeof(paths) / sizeof(paths[0]); k++) {
		link.mtu = paths[k];
		world_init(&w, 2, &link, &o, TESTKIT_SEED + k, k % 2 == 1);
		connect_pair(&w);
		uint16_t chunk = engine_chunk_bytes(9000, true);
		struct transfer t = testkit_begin(&w, 0, 1, 4 * MIB, chunk, 1);
		arrives(&w, 1, t.sink);
		assert_true(world_edge_ended(&w, 0, t.out, WITHIN_NS) != UINT64_MAX);
		assert_int_equal(w.nodes[0].edges[t.out].state, EDGE_DONE);
		/* one of all parts fits 1280 bytes, seven 8950 */
		uint64_t parts = w.nodes[0].counters.tx_parts, chunks = 4 * MIB / chunk;
		printf("  path of %u: %.1f packets per chunk\n", paths[k],
		       (double)parts / (double)chunks);
		assert_true(parts > chunks && parts < 9 * chunks);
		assert_int_equal(w.nodes[1].engine->parts.used, 0);
		close_world(&w);
	}
}

static void path_shrinks_in_the_middle(void **state)
{
	static const uint16_t mtus[] = {1500, 3498, 9000};
	struct world w;
	for (size_t k = 0; k < sizeof(mtus) / sizeof(mtus[0]); k++) {
		open_wide(&w, 2, mtus[k]);
		struct transfer t =
			testkit_begin(&w, 0, 1, 32 * MIB, engine_chunk_bytes(mtus[k], true), 1);
		world_run(&w, 50 * WORLD_MS);
		w.net.endpoints[0].link.mtu = 1400;
		testkit_at_most("goes on along a narrower path after (ms)", goes_on(&w) / 1e6,
				1000);
		arrives(&w, 1, t.sink);
		assert_int_equal(w.nodes[0].counters.path_narrowed, 1);
		close_world(&w);
	}
}

/* What a node passes on leaves by a path that is narrower than the one it came by. */
static void path_of_a_relay_shrinks(void **state)
{
	struct world w;
	uint16_t chunk = engine_chunk_bytes(9000, true);
	open_wide(&w, 3, 9000);
	struct transfer t = testkit_begin(&w, 0, 1, 8 * MIB, chunk, 1);
	uint32_t sink = node_sink(&w.nodes[2], 8 * MIB, chunk, 1);
	world_edge(&w, 1, t.sink, 2, sink);
	world_run(&w, 20 * WORLD_MS);
	w.net.endpoints[2].link.mtu = 1400;
	arrives(&w, 1, t.sink);
	arrives(&w, 2, sink);
	assert_int_equal(w.nodes[0].counters.tx_parts, 0);
	assert_true(w.nodes[1].counters.tx_parts > 0);
	close_world(&w);
}

/* Losses leave many chunks with some of their parts; the path becomes still narrower, then wide. */
static void narrow_path_that_loses(void **state)
{
	static const struct network_faults bad = {.loss_ppm = 50000,
						  .duplicate_ppm = 20000,
						  .reorder_ppm = 50000,
						  .corrupt_ppm = 5000,
						  .reorder_ns = 300000};
	struct world w;
	open_wide(&w, 2, 9000);
	network_faults_all(&w.net, &bad);
	w.net.endpoints[0].link.mtu = 6000;
	struct transfer t[8];
	for (uint32_t k = 0; k < 8; k++)
		t[k] = testkit_begin(&w, 0, 1, MIB + 1000 * k, engine_chunk_bytes(9000, true), k);
	world_run(&w, 2 * WORLD_S);
	w.net.endpoints[0].link.mtu = 1300;
	world_run(&w, 2 * WORLD_S);
	w.net.endpoints[0].link.mtu = 0;
	for (uint32_t k = 0; k < 8; k++) {
		arrives(&w, 1, t[k].sink);
		assert_true(world_edge_ended(&w, 0, t[k].out, WITHIN_NS) != UINT64_MAX);
		assert_int_equal(w.nodes[0].edges[t[k].out].state, EDGE_DONE);
	}
	assert_int_equal(w.nodes[1].engine->parts.used, 0);
	close_world(&w);
}

static void jumbo_path_is_found(void **state)
{
	struct network_link link = testkit_link(10000, RTT_NS);
	struct node_options o = world_options();
	struct world w;
	o.config.mtu = 9000;
	for (uint32_t mtu = 1500; mtu <= 9000; mtu += 2500) {
		link.mtu = mtu;
		world_init(&w, 2, &link, &o, TESTKIT_SEED, mtu == 4000);
		connect_pair(&w);
		world_run(&w, 2 * WORLD_S);
		struct transfer t = testkit_begin(
			&w, 0, 1, MIB, engine_chunk_bytes((uint16_t)mtu, mtu != 4000), 1);
		arrives(&w, 1, t.sink);
		close_world(&w);
	}
}

/* ---- slow receivers, and nothing at all --------------------------------------------------- */

static void frozen_receiver_is_waited_for(void **state)
{
	struct world w;
	struct transfer t = open_half_way(&w);
	node_freeze(&w.nodes[1], world_now(&w) + idle_ns(&w) / 4);
	uint64_t took = world_buffer_done(&w, 1, t.sink, WITHIN_NS);
	assert_true(took != UINT64_MAX);
	assert_int_equal(w.nodes[0].conns_count, 1);
	close_world(&w);
}

static void idle_connections_cost_little(void **state)
{
	struct world w;
	uint64_t sent = 0;
	open_world(&w, 8, TESTKIT_SEED);
	for (uint32_t a = 0; a < 8; a++)
		for (uint32_t b = a + 1; b < 8; b++)
			assert_true(world_connect(&w, a, b, WITHIN_NS) != UINT64_MAX);
	world_run(&w, 10 * WORLD_S);
	for (uint32_t i = 0; i < 64; i++)
		sent -= w.net.pair_sent[i];
	uint64_t events = w.events.ran;
	world_run(&w, 600 * WORLD_S);
	for (uint32_t i = 0; i < 64; i++)
		sent += w.net.pair_sent[i];
	testkit_at_most("packets per idle connection and second", sent / 28.0 / 600, 4);
	testkit_at_most("events per idle connection end and second",
			(w.events.ran - events) / 56.0 / 600, 25);
	for (uint32_t a = 0; a < 8; a++)
		assert_int_equal(engine_connections(w.nodes[a].engine), 7);
	for (uint32_t a = 0; a < 8; a++)
		assert_int_equal(w.nodes[a].conns_count, 7);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver_restarts_and_resumes),
		cmocka_unit_test(sender_restarts),
		cmocka_unit_test(new_life_calls_before_the_old_is_missed),
		cmocka_unit_test(idle_peer_restarts_and_is_recognised),
		cmocka_unit_test(dead_peer_is_noticed),
		cmocka_unit_test(dead_sender_is_noticed),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(short_cut_of_the_cable_is_survived),
		cmocka_unit_test(long_cut_fails_both_sides),
		cmocka_unit_test(closing_tells_the_peer),
		cmocka_unit_test(simultaneous_open),
		cmocka_unit_test(opening_twice_answers_twice),
		cmocka_unit_test(small_path_carries_large_chunks),
		cmocka_unit_test(path_shrinks_in_the_middle),
		cmocka_unit_test(path_of_a_relay_shrinks),
		cmocka_unit_test(narrow_path_that_loses),
		cmocka_unit_test(jumbo_path_is_found),
		cmocka_unit_test(frozen_receiver_is_waited_for),
		cmocka_unit_test(idle_connections_cost_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
