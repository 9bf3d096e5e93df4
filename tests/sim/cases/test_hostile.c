/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad bytes in number: flipped, cut short, late, beyond credit, floods, full tables, bad records.
 */
#include "model/stage.h"

typedef void make_fn(struct stage *s, struct forge *f, uint32_t stream, uint32_t chunk,
		     uint32_t bytes);

static void each_changed_byte_is_seen(make_fn *make)
{
	static struct stage s;
	struct node_options o = world_options();
	struct forge f;
	stage_open(&s, &o);
	struct counters before = victim(&s)->counters;
	make(&s, &f, victim(&s)->edges[s.in].handle, 0, TESTKIT_CHUNK);
	forge_seal(&f);
	for (uint32_t i = 0; i < f.length; i++) {
		f.bytes[i] ^= (uint8_t)(1u << i % 8);
		forge_send(&s.w, &f, PEER, VICTIM);
		f.bytes[i] ^= (uint8_t)(1u << i % 8);
		world_run(&s.w, 100 * WORLD_US);
	}
	stage_expect_only("checksum", &before, &victim(&s)->counters, EXPECT(drop_checksum),
			  f.length);
	stage_close(&s);
}

static void a_wrong_checksum_is_seen(void **state)
{
	(void)state;
	each_changed_byte_is_seen(stage_data);
	each_changed_byte_is_seen(stage_chunk);
}

/* Every length but the whole: `behind` counts what ends behind the header. */
static void each_cut_is_refused(make_fn *make, uint16_t header, size_t behind)
{
	static struct stage s;
	struct node_options o = world_options();
	struct forge f = {.length = UINT16_MAX};
	stage_open(&s, &o);
	for (uint16_t length = 1; length < f.length; length++) {
		struct counters before = victim(&s)->counters;
		if (length == WIRE_BODY && header == WIRE_BODY)
			continue; /* no frame at all, and nothing wrong with it */
		make(&s, &f, victim(&s)->edges[s.in].handle, 0, TESTKIT_CHUNK);
		uint16_t whole = f.length;
		f.length = length;
		if (length >= header)
			forge_seal(&f);
		forge_send(&s.w, &f, PEER, VICTIM);
		f.length = whole;
		world_run(&s.w, 100 * WORLD_US);
		stage_expect_only("cut", &before, &victim(&s)->counters,
				  length < header ? EXPECT(drop_truncated) : behind, 1);
	}
	stage_close(&s);
}

static void every_truncation_is_refused(void **state)
{
	(void)state;
	each_cut_is_refused(stage_data, WIRE_BODY, EXPECT(drop_frame));
	each_cut_is_refused(stage_chunk, CHUNK_BODY, EXPECT(drop_chunk_size));
}

static void old_packet_numbers_are_refused(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	struct forge old;
	(void)state;
	o.config.window_pkts = 64;
	stage_open(&s, &o);
	old = s.captured;
	uint32_t bytes = 2000 * TESTKIT_CHUNK;
	struct transfer t = testkit_begin(&s.w, PEER, VICTIM, bytes, TESTKIT_CHUNK, 9);
	assert_true(world_buffer_done(&s.w, VICTIM, t.sink, WITHIN_NS) != UINT64_MAX);
	world_run(&s.w, 10 * WORLD_MS);
	struct counters before = victim(&s)->counters;
	forge_send(&s.w, &old, PEER, VICTIM);
	world_run(&s.w, 400 * WORLD_US);
	stage_expect_only("old", &before, &victim(&s)->counters, EXPECT(drop_old), 1);
	stage_close(&s);
}

static void chunks_beyond_the_credit_are_refused(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	struct forge f;
	uint32_t taken = 0;
	(void)state;
	o.config.credit_bytes = 4096; /* next to none beyond the unscheduled part */
	o.turn_ns = 3 * WORLD_MS;     /* all arrive before the next grant can leave */
	stage_open(&s, &o);
	struct counters before = victim(&s)->counters;
	for (uint32_t chunk = 0; chunk < 90; chunk++) {
		stage_data(&s, &f, victim(&s)->edges[s.in].handle, chunk, TESTKIT_CHUNK);
		memory_fill(f.bytes + WIRE_BODY + DATA_BYTES - (size_t)chunk * TESTKIT_CHUNK, 2,
			    (size_t)chunk * TESTKIT_CHUNK, ((size_t)chunk + 1) * TESTKIT_CHUNK);
		wire_put64(f.bytes + WIRE_AT_PN, s.last_pn + 1 + chunk);
		forge_seal(&f);
		forge_send(&s.w, &f, PEER, VICTIM);
	}
	world_run(&s.w, 10 * WORLD_MS);
	taken = (uint32_t)(victim(&s)->counters.rx_chunks - before.rx_chunks);
	printf("  taken %u of 90, refused %llu\n", taken,
	       (unsigned long long)(victim(&s)->counters.drop_over_credit -
				    before.drop_over_credit));
	assert_in_range(taken, 32, 64);
	assert_int_equal(victim(&s)->counters.drop_over_credit - before.drop_over_credit,
			 90 - taken);
	testkit_clean(&s.w);
	world_free(&s.w);
}

static void full_tables_refuse(void **state)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	struct world w;
	(void)state;
	o.config.conns_max = 4;
	world_init(&w, 8, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i < 5; i++)
		assert_true(world_connect(&w, i, 0, WITHIN_NS) != UINT64_MAX);
	assert_true(world_connect(&w, 5, 0, 200 * WORLD_MS) == UINT64_MAX);
	assert_true(w.nodes[0].counters.drop_conn_full > 0);
	assert_int_equal(engine_connections(w.nodes[0].engine), 4);
	struct transfer t = testkit_begin(&w, 1, 0, 100000, TESTKIT_CHUNK, 1);
	assert_true(world_buffer_done(&w, 0, t.sink, WITHIN_NS) != UINT64_MAX);
	/* one leaves, the next may come */
	node_disconnect(&w.nodes[1], 0);
	world_run(&w, 10 * WORLD_MS);
	assert_true(world_connect(&w, 6, 0, 5 * WORLD_S) != UINT64_MAX);
	testkit_clean(&w);
	world_free(&w);
}

/* 200,000 HELLOs per second from addresses that do not answer, while a transfer runs. */
static void a_flood_of_hellos_grows_nothing(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	(void)state;
	o.config.handshakes_per_s = 50;
	stage_open(&s, &o);
	struct counters before = victim(&s)->counters;
	struct transfer t = testkit_begin(&s.w, PEER, VICTIM, 4 << 20, TESTKIT_CHUNK, 9);
	uint64_t start = world_now(&s.w), sent = 0;
	while (world_now(&s.w) - start < 100 * WORLD_MS) {
		struct forge f;
		stage_hello(&s, &f, WIRE_HELLO, 0);
		wire_put32(f.bytes + WIRE_BODY + HELLO_AT_CONN, (uint32_t)sent + 1);
		if (sent % 3 == 1)
			stage_bad_cookie(&s, &f);
		forge_seal(&f);
		forge_send(&s.w, &f, STRANGER, VICTIM);
		sent++;
		world_run(&s.w, 12 * WORLD_US);
	}
	assert_true(world_buffer_done(&s.w, VICTIM, t.sink, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(engine_connections(victim(&s)->engine), 1);
	testkit_at_most("cookies per second to a flood",
			(double)(victim(&s)->counters.cookies_sent - before.cookies_sent) * 10,
			32 * 50 * 3 / 2 +
				100); /* and the burst; cookies are cheaper than connections */
	assert_true(victim(&s)->counters.drop_hello_rate > 0);
	assert_true(victim(&s)->counters.drop_cookie > 0);
	stage_close(&s);
}

/* Refused records alone must never crowd out what peers and edges have to say. */
static void refused_records_leave_room_for_events(void **state)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	struct world w;
	(void)state;
	world_init(&w, 2, &link, &o, TESTKIT_SEED, false);
	assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
	struct node *n = &w.nodes[1];
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t b = node_sink(n, 10000, TESTKIT_CHUNK, i);
		for (uint32_t k = 0; k < 2; k++)
			node_in(n, b, 0, 0, 0);
		world_run(&w, 10 * WORLD_US);
	}
	n->expect_refused = true;
	struct record bad = {.op = COMMAND_DROP_EDGE, .flags = RECORD_FLAG_IN};
	bad.edge.edge = handle_make(9, 9);
	uint32_t taken = 0;
	while (taken < 1000000 && engine_command(n->engine, &bad, world_now(&w)))
		taken++;
	assert_true(taken < 1000000);
	/* now the peer goes, and 120 edges fail, before control has read anything */
	node_disconnect(&w.nodes[0], 1);
	world_run(&w, 10 * WORLD_MS);
	assert_int_equal(engine_connections(n->engine), 0);
	assert_int_equal(n->refused, taken);
	for (uint32_t i = 0; i < n->edges_count; i++)
		assert_int_equal(n->edges[i].state, EDGE_FAILED);
	testkit_clean(&w);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_checksum_is_seen),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(old_packet_numbers_are_refused),
		cmocka_unit_test(chunks_beyond_the_credit_are_refused),
		cmocka_unit_test(full_tables_refuse),
		cmocka_unit_test(a_flood_of_hellos_grows_nothing),
		cmocka_unit_test(refused_records_leave_room_for_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
