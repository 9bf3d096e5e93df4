/* SPDX-License-Identifier: BSD-3-Clause */
/* The opening side of the handshake, keep-alive, silence, closing, and their records. */
#include "fixtures/core_test.h"

static struct record open_record(const struct peer *peer)
{
	return (struct record){.op = COMMAND_PEER_OPEN, .token = 42, .peer = {.addr = peer->addr}};
}

/* Our HELLO to the peer; its conn is remembered. */
static bool hello_take(struct rig *r, struct peer *peer, struct packet *p)
{
	if (!rig_take(r, p))
		return false;
	assert_int_equal(p->bytes[0], WIRE_VERSION << 4 | WIRE_HELLO);
	assert_true(p->length >= WIRE_HELLO_MIN);
	assert_true(net_addr_equal(&p->to, &peer->addr));
	assert_int_equal(wire_get16(p->bytes + WIRE_BODY + HELLO_AT_MTU), r->config.mtu);
	assert_int_equal(wire_get64(p->bytes + WIRE_BODY + HELLO_AT_INCARNATION),
			 r->config.incarnation);
	assert_int_equal(wire_get32(p->bytes + WIRE_BODY + HELLO_AT_WINDOW), r->config.window_pkts);
	for (uint32_t at = WIRE_BODY + HELLO_AT_PATH; at < p->length; at++)
		assert_int_equal(p->bytes[at], 0);
	peer->conn = wire_get32(p->bytes + WIRE_BODY + HELLO_AT_CONN);
	peer->c = conn_find(r->e, peer->conn);
	return true;
}

static void cookie_send(struct rig *r, const struct peer *peer, uint64_t incarnation)
{
	struct packet p;

	forge_begin(&p, WIRE_COOKIE, 0, peer->conn, 0);
	uint8_t *body = forge_add(&p, HELLO_BYTES);
	wire_put64(body + HELLO_AT_INCARNATION, incarnation);
	wire_put64(body + HELLO_AT_TIME, 777);
	memset(body + HELLO_AT_COOKIE, 0xc0, WIRE_COOKIE_BYTES);
	peer_send(r, peer, &p);
}

static void accept_send(struct rig *r, const struct peer *peer, uint64_t echo, uint64_t check_from,
			uint32_t length)
{
	struct packet p;
	uint8_t *body = forge_hello(&p, WIRE_ACCEPT, peer, length);

	wire_put16(p.bytes + WIRE_AT_CHECK, wire_check(check_from, r->config.incarnation));
	wire_put32(p.bytes + WIRE_AT_CONN, peer->conn);
	wire_put64(body + HELLO_AT_PEER, echo);
	p.length = length;
	peer_send(r, peer, &p);
}

/* [P4] */
static void opening_step_by_step(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1), wrong;
	struct record open = open_record(&peer);
	uint64_t ours = r->config.incarnation;
	struct packet p;

	rig_command(r, &open);
	assert_true(hello_take(r, &peer, &p));
	assert_int_equal(p.length, r->config.mtu - ENGINE_OVERHEAD_V4);
	accept_send(r, &peer, ours, peer.incarnation, 1200); /* without any cookie */
	rig_drops(r, "drop_state", 1, NULL);
	cookie_send(r, &peer, ours + 1);
	rig_drops(r, "drop_incarnation", 1, NULL);
	wrong = peer;
	wrong.addr.port++;
	cookie_send(r, &wrong, ours);
	rig_drops(r, "drop_address", 1, NULL);
	wrong = peer;
	wrong.conn ^= 0x10000;
	cookie_send(r, &wrong, ours);
	rig_drops(r, "drop_unknown_conn", 1, NULL);
	assert_false(rig_take(r, &p));

	cookie_send(r, &peer, ours);
	assert_true(hello_take(r, &peer, &p));
	assert_int_equal(wire_get64(p.bytes + WIRE_BODY + HELLO_AT_TIME), 777);
	assert_int_equal(p.bytes[WIRE_BODY + HELLO_AT_COOKIE], 0xc0);
	cookie_send(r, &peer, ours); /* a second one */
	rig_drops(r, "drop_state", 1, NULL);
	accept_send(r, &peer, ours - 1, peer.incarnation, 1200);
	rig_drops(r, "drop_incarnation", 1, NULL);
	accept_send(r, &peer, ours, peer.incarnation + 1, 1200);
	rig_drops(r, "drop_incarnation", 1, NULL);
	accept_send(r, &wrong, ours, peer.incarnation, 1200);
	rig_drops(r, "drop_unknown_conn", 1, NULL);
	for (uint32_t length = WIRE_BODY; length < WIRE_BODY + HELLO_BYTES; length++) {
		accept_send(r, &peer, ours, peer.incarnation, length);
		rig_drops(r, "drop_truncated", 1, NULL);
	}
	rig_silent(r);
	r->now_ns += 300000;
	accept_send(r, &peer, ours, peer.incarnation, 1200);
	rig_drops(r, NULL);
	struct record up = rig_expect(r, EVENT_PEER_UP);
	assert_int_equal(up.token, 42);
	assert_int_equal(up.peer.rtt_us, 300); /* since the HELLO that was accepted */
	assert_int_equal(r->counters.conns_opened, 1);
	assert_int_equal(up.peer.conn, peer.conn);
	assert_int_equal(up.peer.incarnation, peer.incarnation);
	accept_send(r, &peer, ours, peer.incarnation, 1200); /* a copy says nothing */
	rig_drops(r, NULL);
	wrong = peer;
	wrong.id++;
	accept_send(r, &wrong, ours, peer.incarnation, 1200);
	rig_drops(r, "drop_state", 1, NULL);
	cookie_send(r, &peer, ours);
	rig_drops(r, "drop_state", 1, NULL);
	rig_silent(r);
	assert_int_equal(engine_connections(r->e), 1);
	conn_by_addr(r->e, &peer.addr)->loss.srtt_ns = 30000000; /* behind a queue of our own */
	rig_command(r, &open);					 /* of control's next life */
	assert_int_equal(rig_expect(r, EVENT_PEER_UP).peer.rtt_us, 300);
}

static void an_accept_of_full_size_shows_the_path(void **state)
{
	struct rig *r = *state;
	const uint32_t lengths[] = {1472, 1471, 1200};

	for (uint32_t k = 0; k < 3; k++) {
		struct peer peer = peer_new(k + 1);
		struct record open = open_record(&peer);
		struct packet p;

		rig_command(r, &open);
		assert_true(hello_take(r, &peer, &p));
		cookie_send(r, &peer, r->config.incarnation);
		assert_true(hello_take(r, &peer, &p));
		accept_send(r, &peer, r->config.incarnation, peer.incarnation, lengths[k]);
		assert_int_equal(rig_expect(r, EVENT_PEER_UP).peer.mtu,
				 lengths[k] == 1472 ? 1500 : MTU_BASE);
		rig_drain(r);
	}
}

/* Nobody answers: fewer and fewer HELLOs, then control hears of it. */
static void nobody_answers(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record open = open_record(&peer);
	uint64_t begin = r->now_ns;

	rig_command(r, &open);
	rig_drain(r);
	rig_pass(r, r->config.idle_timeout_ns - 1000000);
	rig_silent(r);
	rig_pass(r, UINT64_C(300000000));
	struct record down = rig_expect(r, EVENT_PEER_DOWN);
	assert_int_equal(down.reason, REASON_PEER_TIMEOUT);
	assert_int_equal(down.token, 42);
	assert_true(net_addr_equal(&down.peer.addr, &peer.addr));
	assert_in_range(r->counters.tx_pkts, 12, 20);
	assert_int_equal(engine_connections(r->e), 0);
	assert_int_equal(engine_next_timeout(r->e), NEVER);
	assert_true(r->now_ns > begin);
}

static void another_version_is_the_reason(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record open = open_record(&peer);
	struct packet p;

	rig_command(r, &open);
	rig_drain(r);
	forge_begin(&p, WIRE_RESET, 0, 0, 0);
	forge_add(&p, RESET_BYTES);
	p.bytes[0] = 7 << 4 | WIRE_RESET;
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_version", 1, NULL);
	rig_pass(r, r->config.idle_timeout_ns + UINT64_C(1200000000));
	assert_int_equal(rig_expect(r, EVENT_PEER_DOWN).reason, REASON_PEER_VERSION);
}

/* Both open at once: one connection comes of it, told once. [P4.3] */
static void both_open_at_once(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record open = open_record(&peer);
	struct packet p, answer;

	rig_command(r, &open);
	assert_true(hello_take(r, &peer, &p));
	forge_hello(&p, WIRE_HELLO, &peer, WIRE_HELLO_MIN);
	peer_send(r, &peer, &p);
	assert_true(rig_take(r, &answer));
	uint8_t *body = forge_hello(&p, WIRE_HELLO, &peer, WIRE_HELLO_MIN);
	memcpy(body + HELLO_AT_TIME, answer.bytes + WIRE_BODY + HELLO_AT_TIME,
	       8 + WIRE_COOKIE_BYTES);
	peer_send(r, &peer, &p);
	struct record up = rig_expect(r, EVENT_PEER_UP);
	assert_int_equal(up.peer.conn, peer.conn); /* the one that we were opening */
	assert_int_equal(up.token, 42);
	accept_send(r, &peer, r->config.incarnation, peer.incarnation, 1200);
	rig_silent(r);
	rig_drops(r, NULL);
	assert_int_equal(engine_connections(r->e), 1);
}

static void opening_twice_is_told_at_once(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record open = open_record(&peer);

	rig_command(r, &open);
	struct record up = rig_expect(r, EVENT_PEER_UP);
	assert_int_equal(up.peer.conn, peer.conn);
	assert_int_equal(up.token, 42);
	assert_int_equal(rig_drain(r), 0);
}

/* It may answer again: a HELLO leaves at once, and the pauses are short again, not the HELLO long.
 */
static void opening_again_asks_at_once(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record open = open_record(&peer);
	struct packet p;
	uint64_t before;

	rig_command(r, &open);
	rig_drain(r);
	rig_pass(r, UINT64_C(2000000000));
	rig_drain(r);
	rig_command(r, &open);
	assert_true(hello_take(r, &peer, &p));
	assert_int_equal(p.length, WIRE_HELLO_MIN); /* the path may be narrow */
	before = r->counters.tx_pkts;
	rig_pass(r, UINT64_C(30000000));
	assert_int_equal(r->counters.tx_pkts, before + 1);
	cookie_send(r, &peer, r->config.incarnation);
	assert_true(hello_take(r, &peer, &p));
	rig_command(r, &open); /* it has been heard: the answer is awaited */
	assert_false(rig_take(r, &p));
	accept_send(r, &peer, r->config.incarnation, peer.incarnation, 1200);
	rig_expect(r, EVENT_PEER_UP);
}

static void records_that_do_not_hold_are_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record bad = open_record(&peer);

	bad.peer.addr.port = 0;
	rig_refuse(r, &bad, REASON_BAD_RANGE);
	bad = open_record(&peer);
	memset(bad.peer.addr.ip, 0, sizeof(bad.peer.addr.ip));
	rig_refuse(r, &bad, REASON_BAD_RANGE);
	bad.peer.addr = r->config.addr; /* ourselves */
	rig_refuse(r, &bad, REASON_BAD_RANGE);
	bad = (struct record){.op = COMMAND_PEER_CLOSE};
	rig_refuse(r, &bad, REASON_BAD_CONN);
	peer = rig_connect(r, 1);
	bad.peer.conn = peer.conn + 0x10000;
	rig_refuse(r, &bad, REASON_BAD_CONN);
	bad.peer.conn = handle_make(r->config.conns_max, 1);
	rig_refuse(r, &bad, REASON_BAD_CONN);
}

/* Closing what is not open yet: nothing to say to anybody. */
static void closing_before_it_is_open(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record open = open_record(&peer), close = {.op = COMMAND_PEER_CLOSE};
	struct packet p;

	memset(open.peer.addr.pad, 0xff, sizeof(open.peer.addr.pad));
	rig_command(r, &open);
	assert_true(hello_take(r, &peer, &p));
	close.peer.conn = peer.conn;
	rig_command(r, &close);
	struct record down = rig_expect(r, EVENT_PEER_DOWN);
	assert_int_equal(down.reason, REASON_CLOSED);
	assert_memory_equal(&down.peer.addr, &peer.addr, sizeof(peer.addr));
	assert_int_equal(rig_drain(r), 0);
	assert_int_equal(engine_connections(r->e), 0);
	assert_int_equal(engine_next_timeout(r->e), NEVER);
	cookie_send(r, &peer, r->config.incarnation);
	rig_drops(r, "drop_unknown_conn", 1, NULL);
}

/* Closing says so to the peer once; what it sends afterwards belongs to nobody. */
static void closing_is_said_once(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record close = {.op = COMMAND_PEER_CLOSE, .peer = {.conn = peer.conn}};
	struct packet p;

	rig_command(r, &close);
	rig_command(r, &close);
	assert_true(rig_take(r, &p));
	static const uint8_t frame[CLOSE_BYTES] = {FRAME_CLOSE};
	assert_memory_equal(packet_frame(&p, FRAME_CLOSE), frame, sizeof(frame));
	assert_false(rig_take(r, &p));
	assert_int_equal(rig_expect(r, EVENT_PEER_DOWN).reason, REASON_CLOSED);
	rig_silent(r);
	rig_refuse(r, &close, REASON_BAD_CONN);
	peer_begin(r, &peer, &p);
	forge_frame(&p, FRAME_PING, PING_BYTES);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_unknown_conn", 1, NULL);
	assert_int_equal(r->counters.conns_closed, 1);
}

/* An idle connection pings; its peer is asked for little, and missed when it is gone. [P12] */
static void a_silent_peer_is_missed(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	uint32_t pings = 0;
	for (uint64_t end = r->now_ns + UINT64_C(10000000000); r->now_ns < end;) {
		r->now_ns = engine_next_timeout(r->e);
		engine_tick(r->e, r->now_ns);
		while (rig_take(r, &p)) {
			assert_non_null(packet_frame(&p, FRAME_PING));
			/* a peer that has forgotten us can answer it: see handshake_send_reset() */
			assert_true(p.length >= WIRE_BODY + RESET_BYTES);
			pings++;
			peer_ack(r, &peer, p.pn);
		}
	}
	assert_in_range(pings, 5, 15);
	rig_silent(r);
	rig_pass(r, r->config.idle_timeout_ns - 1);
	rig_silent(r);
	rig_pass(r, UINT64_C(2000000000));
	assert_int_equal(rig_expect(r, EVENT_PEER_DOWN).reason, REASON_PEER_TIMEOUT);
	assert_int_equal(engine_next_timeout(r->e), NEVER);
}

static void watch(struct rig *r, const struct peer *peer, uint64_t silence_ns)
{
	struct record w = {.op = COMMAND_PEER_WATCH, .watch = {peer->conn, 0, silence_ns}};

	rig_command(r, &w);
}

#define WATCH_NS UINT64_C(300000000)

/* Runs the engine's timers, and acknowledges what comes when the peer is to live. */
static uint32_t watch_run(struct rig *r, struct peer *peer, uint64_t for_ns, bool alive)
{
	uint32_t packets = 0;
	struct packet p;

	for (uint64_t end = r->now_ns + for_ns; engine_next_timeout(r->e) < end;) {
		r->now_ns = engine_next_timeout(r->e);
		engine_tick(r->e, r->now_ns);
		while (rig_take(r, &p)) {
			packets++;
			if (alive)
				peer_ack(r, peer, p.pn);
		}
	}
	return packets;
}

static void a_watched_peer_is_told_of_when_silent(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;
	uint64_t begin;

	watch_run(r, &peer, 5 * WATCH_NS, true);
	watch(r, &peer, WATCH_NS);
	assert_in_range(watch_run(r, &peer, 10 * WATCH_NS, true), 15, 25);
	rig_silent(r);
	begin = r->now_ns;
	watch_run(r, &peer, WATCH_NS / 2, false);
	rig_silent(r);
	watch_run(r, &peer, WATCH_NS, false);
	assert_int_equal(rig_expect(r, EVENT_PEER_SILENT).peer.conn, peer.conn);
	assert_in_range(r->now_ns - begin, WATCH_NS / 2, 3 * WATCH_NS / 2);
	watch_run(r, &peer, 3 * WATCH_NS, false);
	rig_silent(r); /* once */
	peer_begin(r, &peer, &p);
	forge_frame(&p, FRAME_PING, 1);
	peer_send(r, &peer, &p);
	watch_run(r, &peer, 4 * WATCH_NS, true);
	watch_run(r, &peer, 2 * WATCH_NS, false);
	rig_expect(r, EVENT_PEER_SILENT);
}

/* Who did not run for long has heard nobody: that tells nothing of the peer. */
static void a_late_worker_misses_nobody(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	watch(r, &peer, WATCH_NS);
	watch_run(r, &peer, WATCH_NS, true);
	watch_run(r, &peer, WATCH_NS / 3, false); /* a ping is out */
	r->now_ns += 5 * WATCH_NS;
	engine_tick(r->e, r->now_ns);
	rig_silent(r);
	watch_run(r, &peer, WATCH_NS / 2, true);
	watch(r, &peer, 0);
	watch_run(r, &peer, 5 * WATCH_NS, false);
	rig_silent(r);
}

static void a_watch_is_checked(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record bad = {.op = COMMAND_PEER_WATCH, .watch = {peer.conn + 0x10000, 0, WATCH_NS}};

	rig_refuse(r, &bad, REASON_BAD_CONN);
	bad.watch.conn = peer.conn;
	bad.watch.silence_ns = 1;
	rig_refuse(r, &bad, REASON_BAD_RANGE);
	bad.watch.silence_ns = r->config.idle_timeout_ns + 1;
	rig_refuse(r, &bad, REASON_BAD_RANGE);
}

/* Edges of a connection that ended stay until they are dropped; its place is used again before.
 * [P5] */
static void edges_outlive_their_connection(void **state)
{
	struct rig *r = *state;
	struct record buffer = record_buffer(0, 100 * RIG_CHUNK);
	uint32_t failed[2] = {0};
	struct record event;
	struct packet p;

	rig_command(r, &buffer);
	for (uint32_t life = 0; life < 4; life++) {
		struct peer peer = rig_connect(r, 1);

		for (uint32_t k = 0; k < 2; k++) {
			uint32_t index = 2 * (life % 2) + k;
			struct record in = record_edge(COMMAND_IN, index, 0, &peer, 0, 100);
			struct record out = record_edge(COMMAND_OUT, index, 0, &peer, 0, 100);
			rig_command(r, &in);
			rig_command(r, &out);
			if (life == 0)
				continue;
			index ^= 2; /* those of the life before */
			struct record drop = record_drop(RECORD_FLAG_IN, record_handle(index));
			rig_command(r, &drop);
			drop.flags = RECORD_FLAG_OUT;
			rig_command(r, &drop);
			rig_expect(r, EVENT_DROPPED);
			rig_expect(r, EVENT_DROPPED);
		}
		rig_silent(r);
		peer_begin(r, &peer, &p);
		forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
		peer_send(r, &peer, &p);
		memset(failed, 0, sizeof(failed));
		while (rig_event(r, &event) && event.op == EVENT_EDGE_FAILED) {
			assert_int_equal(event.edge.conn, peer.conn);
			failed[event.flags - RECORD_FLAG_IN]++;
		}
		assert_int_equal(event.op, EVENT_PEER_DOWN);
		assert_int_equal(failed[0], 2);
		assert_int_equal(failed[1], 2);
		assert_int_equal(r->e->in_active, 0);
		r->now_ns += 1000000;
	}
}

/* Ids of connections come back only after all generations. */
static void a_connection_id_changes_at_every_use(void **state)
{
	struct rig *r = *state;
	uint32_t last = 0;
	struct packet p;

	for (uint32_t k = 0; k < 40; k++) {
		struct peer peer = rig_connect(r, 1);

		assert_int_not_equal(peer.conn, last);
		assert_int_not_equal(handle_generation(peer.conn), 0);
		last = peer.conn;
		if (k == 20)
			peer.c->generation = UINT16_MAX; /* wraps, not to 0 */
		peer_begin(r, &peer, &p);
		forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
		peer_send(r, &peer, &p);
		rig_expect(r, EVENT_PEER_DOWN);
		peer.incarnation++;
		r->now_ns += 1000000;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(opening_step_by_step),
		test_rig(an_accept_of_full_size_shows_the_path),
		test_rig(nobody_answers),
		test_rig(another_version_is_the_reason),
		test_rig(both_open_at_once),
		test_rig(opening_twice_is_told_at_once),
		test_rig(opening_again_asks_at_once),
		test_rig(records_that_do_not_hold_are_refused),
		test_rig(closing_before_it_is_open),
		test_rig(closing_is_said_once),
		test_rig(a_silent_peer_is_missed),
		test_rig(a_watched_peer_is_told_of_when_silent),
		test_rig(a_late_worker_misses_nobody),
		test_rig(a_watch_is_checked),
		test_rig(edges_outlive_their_connection),
		test_rig(a_connection_id_changes_at_every_use),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
