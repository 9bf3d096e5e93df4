/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine as a whole: limits of its configuration, records, events, turns of connections. */
#include "fixtures/core_test.h"

static void refuse_config(const struct engine_config *f)
{
	uint64_t memory[8] = {0};

	assert_int_equal(engine_bytes(f), 0);
	assert_null(engine_init(memory, f, 0));
}

/* [P14] */
static void a_configuration_out_of_bounds_is_refused(void **state)
{
	struct rig *r = *state;
	const struct engine_config good = r->config;
	struct engine_config f;

	assert_int_not_equal(engine_bytes(&good), 0);
#define REFUSE(...)                \
	do {                       \
		f = good;          \
		__VA_ARGS__;       \
		refuse_config(&f); \
	} while (0)
	REFUSE(f.incarnation = 0);
	REFUSE(f.mtu = MTU_BASE - 1);
	REFUSE(f.mtu = ENGINE_HEAD_MAX + 1); /* heads would not fit where shells write them */
	REFUSE(f.workers = 0);
	REFUSE(f.conns_max = 0);
	REFUSE(f.conns_max = 4097);
	REFUSE(f.window_pkts = 0);
	REFUSE(f.window_pkts = 32);
	REFUSE(f.window_pkts = 65);
	REFUSE(f.window_pkts = 32768);
	REFUSE(f.buffers_max = 0);
	REFUSE(f.buffers_max = BUFFERS_MAX + 1);
	REFUSE(f.edges_max = 0);
	REFUSE(f.edges_max = EDGES_MAX + 1);
	REFUSE(f.msgs_max = 65537);
	REFUSE(f.msg_rx_slots = 65537);
	REFUSE(f.credit_bytes = 0);
	REFUSE(f.delay_target_ns = 0);
	REFUSE(f.idle_timeout_ns = 0);
	REFUSE(f.block_bytes = 0);
	REFUSE(f.handshakes_per_s = 0);
	REFUSE(f.handshakes_per_s = UINT64_MAX);
	REFUSE(f.store = NULL);
	REFUSE(f.counters = NULL);
	REFUSE(f.msg_rx = NULL);
	REFUSE(f.msg_tx = NULL);
#undef REFUSE
}

static void the_least(struct engine_config *f)
{
	f->conns_max = f->buffers_max = f->edges_max = 1;
	f->msgs_max = 0;
	f->msg_rx_slots = 0;
	f->msg_tx_bytes = 0;
	f->mtu = MTU_BASE;
}

/* The smallest engine still works, without any room for messages. */
static void the_least_configuration_works(void **state)
{
	struct rig *r = rig_new(the_least);
	struct peer peer = rig_connect(r, 1);
	struct record send = record_msg(&peer, 0, 1);
	struct packet p;

	(void)state;
	rig_refuse(r, &send, REASON_BAD_MESSAGE);
	peer_begin(r, &peer, &p);
	forge_msg(&p, 0, 0, 10, 1);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_msg_full", 1, NULL);
	assert_int_equal(engine_connections(r->e), 1);
	rig_free(r);
}

/* engine_bytes() says how much, and no byte beyond it is touched. */
static void the_memory_is_what_was_asked_for(void **state)
{
	struct rig *r = *state;
	size_t bytes = engine_bytes(&r->config);
	uint8_t *memory = aligned_alloc(64, bytes + 64);

	memset(memory, 0, bytes);
	memset(memory + bytes, 0xa5, 64);
	struct engine *e = engine_init(memory, &r->config, 1);
	assert_ptr_equal(e, memory);
	struct peer peer;
	for (uint32_t k = 0; k < r->config.conns_max; k++) {
		peer = peer_new(k + 1);
		struct conn *c = conn_alloc(e, &peer.addr);
		memset(c->rx.bitmap, 0xff, e->rx_window / 8);
		memset(c->tx.sent, 0xff, e->sent_slots * sizeof(struct sent));
		memset(c->tx.lost, 0xff, e->sent_slots * sizeof(struct lost_item));
		memset(c->msg.in, 0xff, MSG_WINDOW * sizeof(struct msg_in));
	}
	for (uint32_t k = 0; k < 64; k++)
		assert_int_equal(memory[bytes + k], 0xa5);
	free(memory);
}

static void unknown_operations_are_refused(void **state)
{
	struct rig *r = *state;

	for (uint32_t op = 0; op < 256; op++) {
		struct record bad = {.op = (uint8_t)op, .token = 9, .epoch = 4};
		if (op == COMMAND_NONE || op >= COMMAND_OPS)
			rig_refuse(r, &bad, REASON_BAD_OP);
	}
}

/* Handle 0 stands in every free place: it names nothing all the same, nor does what lies beyond. */
static void free_places_have_no_name(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	const uint32_t names[] = {0, 1, handle_make(RIG_BUFFERS, 0), handle_make(32, 0),
				  handle_make(UINT16_MAX, 1)};

	for (uint32_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		struct record bad = record_advance(names[k], 0);
		rig_refuse(r, &bad, REASON_BAD_ID);
		bad = record_drop(RECORD_FLAG_BUFFER, names[k]);
		rig_refuse(r, &bad, REASON_BAD_ID);
		bad = record_drop(RECORD_FLAG_IN, names[k]);
		rig_refuse(r, &bad, REASON_BAD_ID);
		bad = record_drop(RECORD_FLAG_OUT, names[k]);
		rig_refuse(r, &bad, REASON_BAD_ID);
		bad = record_edge(COMMAND_IN, 0, 0, &peer, 0, 1);
		bad.edge.buffer = names[k];
		rig_refuse(r, &bad, REASON_BAD_ID);
		bad.op = COMMAND_OUT;
		rig_refuse(r, &bad, REASON_BAD_ID);
	}
}

/* A message slot goes back by the usual event, also when its record is refused. */
static void a_refusal_says_which_and_why(void **state)
{
	struct rig *r = *state;
	struct record bad = {.op = COMMAND_MSG_SEND, .token = 5, .epoch = 6};

	bad.msg.conn = 77;
	bad.msg.offset = 4096;
	bad.msg.length = 10;
	rig_command(r, &bad);
	struct record event = rig_expect(r, EVENT_MSG_SENT);
	assert_int_equal(event.reason, REASON_BAD_CONN);
	assert_int_equal(event.token, 5);
	assert_int_equal(event.msg.offset, 4096);
	assert_int_equal(event.msg.length, 10);

	bad = (struct record){.op = COMMAND_IN, .token = 8, .flags = 3};
	bad.edge.edge = 1234;
	rig_command(r, &bad);
	event = rig_expect(r, EVENT_REFUSED);
	assert_int_equal(event.refused.id, 1234);
	assert_int_equal(event.refused.refused_op, COMMAND_IN);
	assert_int_equal(event.flags, 3);
	assert_int_equal(r->counters.records, 2);
	assert_int_equal(r->counters.records_refused, 2);
}

/* Everything that can exist exists; control reads no event while all of it ends at once. */
static void events_of_everything_have_room(void **state)
{
	struct rig *r = *state;
	struct peer peers[8];
	struct record event, nothing = {.op = COMMAND_NONE};
	uint32_t count[EVENT_OPS] = {0};
	struct packet p;

	for (uint32_t n = 0; n < 8; n++)
		peers[n] = rig_connect(r, n + 1);
	for (uint32_t b = 0; b < RIG_BUFFERS; b++) {
		struct record buffer = record_buffer(b, 700 * RIG_CHUNK);
		rig_command(r, &buffer);
	}
	for (uint32_t k = 0; k < r->config.edges_max; k++) {
		struct record in =
			record_edge(COMMAND_IN, k, k % RIG_BUFFERS, &peers[k % 8], 0, 700);
		struct record out = record_edge(COMMAND_OUT, k % 16, k % RIG_BUFFERS,
						&peers[k / 8 % 8], 0, 700);
		out.edge.edge = record_handle(k);
		rig_command(r, &in);
		rig_command(r, &out);
	}
	for (uint32_t k = 0; k < r->config.msgs_max; k++) {
		struct record send = record_msg(&peers[k % 8], 0, 10);
		rig_command(r, &send);
	}
	while (engine_command(r->e, &nothing, r->now_ns)) /* control fills what is spare */
		;
	for (uint32_t id = 0; id < RIG_RX_SLOTS / 8; id++)
		for (uint32_t n = 0; n < 8; n++) {
			peer_begin(r, &peers[n], &p);
			forge_msg(&p, id, 0, 10, 1);
			peer_send(r, &peers[n], &p);
		}
	for (uint32_t k = 0; k < 700 * RIG_BUFFERS; k++) {
		uint32_t stream = record_handle(k / 700);
		in_edge_find(r->e, stream)->granted = 700;
		peer_begin(r, &peers[k / 700 % 8], &p);
		forge_data(&p, stream, k % 700, RIG_CHUNK, 1);
		peer_send(r, &peers[k / 700 % 8], &p);
	}
	for (uint32_t n = 0; n < 8; n++) {
		peer_begin(r, &peers[n], &p);
		forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
		peer_send(r, &peers[n], &p);
	}
	while (rig_event(r, &event))
		count[event.op]++;
	assert_int_equal(count[EVENT_PEER_DOWN], 8);
	assert_int_equal(count[EVENT_BUFFER_DONE], RIG_BUFFERS);
	assert_int_equal(count[EVENT_PROGRESS], RIG_BUFFERS);
	assert_int_equal(count[EVENT_MSG], RIG_RX_SLOTS);
	assert_int_equal(count[EVENT_MSG_SENT], r->config.msgs_max);
	assert_int_equal(count[EVENT_EDGE_FAILED], r->config.edges_max); /* OUT; IN were complete */
	assert_int_equal(r->counters.drop_events_full, 0);
}

/* The shell takes as few or as many packets at a time as it likes. */
static void connections_take_turns(void **state)
{
	struct rig *r = *state;
	struct peer peers[3] = {rig_connect(r, 1), rig_connect(r, 2), rig_connect(r, 3)};
	struct record source = record_source(0, 700 * RIG_CHUNK, 700 * RIG_CHUNK);
	static uint8_t heads[64][ENGINE_HEAD_MAX];
	struct packet_out out[64];
	uint32_t sent[3] = {0};

	rig_command(r, &source);
	for (uint32_t k = 0; k < 3; k++) {
		struct record edge = record_edge(COMMAND_OUT, k, 0, &peers[k], 0, 700);
		rig_command(r, &edge);
	}
	for (uint32_t k = 0; k < 64; k++)
		out[k] = (struct packet_out){.head = heads[k], .head_room = ENGINE_HEAD_MAX};
	unsigned n = engine_transmit(r->e, out, 24, r->now_ns);
	assert_int_equal(n, 24);
	for (unsigned k = 0; k < n; k++)
		for (uint32_t i = 0; i < 3; i++)
			sent[i] += net_addr_equal(&out[k].to, &peers[i].addr);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(sent[i], 8);
	assert_int_equal(engine_next_timeout(r->e), r->now_ns); /* there is more */
	while ((n = engine_transmit(r->e, out, 64, r->now_ns)) == 64)
		;
	assert_true(n < 64);
	assert_int_equal(engine_transmit(r->e, out, 64, r->now_ns), 0);
	assert_true(engine_next_timeout(r->e) > r->now_ns);
	assert_int_equal(engine_transmit(r->e, out, 0, r->now_ns), 0);
}

static uint64_t fake_cycles;

static uint64_t count_cycles(void)
{
	return fake_cycles += 10;
}

static void with_cycles(struct engine_config *f)
{
	f->cycles = count_cycles;
}

static void stages_are_accounted(void **state)
{
	struct rig *r = rig_new(with_cycles);
	struct peer peer = rig_connect(r, 1);
	struct engine_stages before = *engine_stages(r->e);
	struct packet p;

	(void)state;
	rig_sink(r, &peer, 10);
	peer_begin(r, &peer, &p);
	forge_data(&p, record_handle(0), 0, RIG_CHUNK, 1);
	peer_send(r, &peer, &p);
	const struct engine_stages *now = engine_stages(r->e);
	assert_int_equal(now->packets_in, before.packets_in + 1);
	assert_int_equal(now->check, before.check + 10);
	assert_int_equal(now->copy, before.copy + 10);
	assert_true(now->receive > before.receive);
	rig_free(r);
}

static void chunks_fit_their_link(void **state)
{
	(void)state;
	assert_int_equal(engine_chunk_bytes(1500, true), 1408);
	assert_int_equal(engine_chunk_bytes(3498, true), 3392);
	assert_int_equal(engine_chunk_bytes(9000, true), CHUNK_BYTES_MAX);
	assert_int_equal(engine_chunk_bytes(0, true), 0);
	for (uint32_t mtu = 0; mtu <= UINT16_MAX; mtu++)
		for (uint32_t v4 = 0; v4 < 2; v4++) {
			uint32_t chunk = engine_chunk_bytes((uint16_t)mtu, v4);
			uint32_t overhead = ENGINE_DATA_OVERHEAD +
					    (v4 ? ENGINE_OVERHEAD_V4 : ENGINE_OVERHEAD_V6);
			assert_int_equal(chunk % 64, 0);
			assert_true(chunk <= CHUNK_BYTES_MAX);
			assert_true(chunk == 0 || chunk + overhead <= mtu);
			assert_true(chunk == CHUNK_BYTES_MAX || chunk + 64 + overhead > mtu);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(a_configuration_out_of_bounds_is_refused),
		cmocka_unit_test(the_least_configuration_works),
		test_rig(the_memory_is_what_was_asked_for),
		test_rig(unknown_operations_are_refused),
		test_rig(free_places_have_no_name),
		test_rig(a_refusal_says_which_and_why),
		test_rig(events_of_everything_have_room),
		test_rig(connections_take_turns),
		cmocka_unit_test(stages_are_accounted),
		cmocka_unit_test(chunks_fit_their_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
