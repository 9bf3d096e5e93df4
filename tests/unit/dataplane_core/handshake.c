/* SPDX-License-Identifier: BSD-3-Clause */
/* The accepting side: cookies, floods, restarted peers, and what must leave no trace. */
#include "fixtures/core_test.h"

struct cookie {
	uint8_t time_and_cookie[8 + WIRE_COOKIE_BYTES];
};

static void hello_send(struct rig *r, const struct peer *peer, const struct cookie *cookie)
{
	struct packet p;
	uint8_t *body = forge_hello(&p, WIRE_HELLO, peer, WIRE_HELLO_MIN);

	if (cookie)
		memcpy(body + HELLO_AT_TIME, cookie, sizeof(*cookie));
	peer_send(r, peer, &p);
}

static struct cookie cookie_get(struct rig *r, const struct peer *peer)
{
	struct cookie cookie;
	struct packet p;

	rig_drain(r);
	hello_send(r, peer, NULL);
	assert_true(rig_take(r, &p));
	assert_int_equal(p.bytes[0], WIRE_VERSION << 4 | WIRE_COOKIE);
	assert_true(net_addr_equal(&p.to, &peer->addr));
	assert_int_equal(wire_get32(p.bytes + WIRE_AT_CONN), peer->id);
	assert_int_equal(wire_get64(p.bytes + WIRE_BODY + HELLO_AT_INCARNATION), peer->incarnation);
	assert_true(p.length < WIRE_HELLO_MIN);
	memcpy(&cookie, p.bytes + WIRE_BODY + HELLO_AT_TIME, sizeof(cookie));
	return cookie;
}

static uint32_t accept_take(struct rig *r, const struct peer *peer)
{
	struct packet p;

	do
		assert_true(rig_take(r, &p));
	while (p.bytes[0] != (WIRE_VERSION << 4 | WIRE_ACCEPT));
	assert_true(net_addr_equal(&p.to, &peer->addr));
	assert_int_equal(wire_get32(p.bytes + WIRE_AT_CONN), peer->id);
	assert_int_equal(wire_get16(p.bytes + WIRE_AT_CHECK),
			 wire_check(r->config.incarnation, peer->incarnation));
	assert_int_equal(wire_get64(p.bytes + WIRE_BODY + HELLO_AT_PEER), peer->incarnation);
	assert_true(p.length <= WIRE_HELLO_MIN);
	for (uint32_t at = WIRE_BODY + HELLO_AT_PATH; at < p.length; at++)
		assert_int_equal(p.bytes[at], 0);
	return wire_get32(p.bytes + WIRE_BODY + HELLO_AT_CONN);
}

static void a_cookie_is_for_one_opener_and_time(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1), other;
	struct cookie cookie = cookie_get(r, &peer), bad;

	rig_freeze(r);
	other = peer;
	other.addr.port++;
	hello_send(r, &other, &cookie);
	other = peer;
	other.addr.ip[15]++;
	hello_send(r, &other, &cookie);
	other = peer;
	other.id++;
	hello_send(r, &other, &cookie);
	other = peer;
	other.incarnation++;
	hello_send(r, &other, &cookie);
	rig_drops(r, "drop_cookie", 4, NULL);
	for (uint32_t bit = 0; bit < 8 * sizeof(cookie); bit++) {
		bad = cookie;
		bad.time_and_cookie[bit / 8] ^= (uint8_t)(1 << bit % 8);
		hello_send(r, &peer, &bad);
	}
	rig_drops(r, "drop_cookie", 8 * (int)sizeof(cookie), NULL);
	r->now_ns--; /* made in the future */
	hello_send(r, &peer, &cookie);
	r->now_ns += UINT64_C(10000000002);
	hello_send(r, &peer, &cookie);
	rig_drops(r, "drop_cookie", 2, NULL);
	rig_same(r);
	r->now_ns--;
	hello_send(r, &peer, &cookie);
	rig_drops(r, NULL);
	rig_expect(r, EVENT_PEER_UP);
}

static void refuse_hello(struct rig *r, uint32_t at, uint32_t bytes, uint64_t value,
			 uint32_t length, const char *drop)
{
	struct peer peer = peer_new(1);
	struct packet p;
	uint8_t *body = forge_hello(&p, WIRE_HELLO, &peer, WIRE_HELLO_MIN);

	memcpy(body + at, &value, bytes);
	p.length = length;
	peer_send(r, &peer, &p);
	rig_drops(r, drop, 1, NULL);
}

static void another_key(struct engine_config *f)
{
	memset(f->key, 0x77, sizeof(f->key));
}

/* Neither cookies nor connection ids can be told from another node's. */
static void keys_make_a_difference(void **state)
{
	struct rig *r = *state, *other = rig_new(another_key);
	struct peer peer = peer_new(1);
	struct cookie cookie = cookie_get(r, &peer);
	uint32_t same = 0;

	hello_send(other, &peer, &cookie);
	rig_drops(other, "drop_cookie", 1, NULL);
	for (uint32_t k = 0; k < r->config.conns_max; k++)
		same += r->e->conns[k].generation == other->e->conns[k].generation;
	assert_true(same < 2);
	rig_free(other);
}

/* [P2.4] */
static void a_hello_that_is_wrong_leaves_no_trace(void **state)
{
	struct rig *r = *state;

	rig_freeze(r);
	for (uint32_t length = 0; length < WIRE_HELLO_MIN; length += length < 80 ? 1 : 31)
		refuse_hello(r, HELLO_AT_WORKERS, 2, 1, length, "drop_truncated");
	refuse_hello(r, HELLO_AT_CONN, 4, 0, WIRE_HELLO_MIN, "drop_flags");
	refuse_hello(r, HELLO_AT_MTU, 2, 0, WIRE_HELLO_MIN, "drop_flags");
	refuse_hello(r, HELLO_AT_MTU, 2, MTU_BASE - 1, WIRE_HELLO_MIN, "drop_flags");
	refuse_hello(r, HELLO_AT_INCARNATION, 8, 0, WIRE_HELLO_MIN, "drop_flags");
	refuse_hello(r, HELLO_AT_PATH, 4, 1, WIRE_HELLO_MIN, "drop_flags");
	refuse_hello(r, HELLO_AT_WINDOW, 4, ENGINE_WINDOW_MIN - 1, WIRE_HELLO_MIN, "drop_flags");
	rig_same(r);
}

/* Hellos without a cookie, from anywhere: no connection, no event, answers at a bounded rate. */
static void a_flood_gets_a_bounded_answer(void **state)
{
	struct rig *r = *state;
	uint64_t answers = 0, per_s = 32 * r->config.handshakes_per_s;
	struct peer peer = peer_new(1);

	for (uint32_t k = 0; k < 200000; k++) {
		peer.addr.ip[13] = (uint8_t)(k >> 16);
		peer.addr.ip[14] = (uint8_t)(k >> 8);
		peer.addr.ip[15] = (uint8_t)k;
		r->now_ns += 5000; /* one second in all */
		hello_send(r, &peer, NULL);
		if (k % 16 == 0)
			answers += rig_drain(r);
	}
	answers += rig_drain(r);
	assert_true(answers <= per_s + per_s / 20 + 1);
	assert_true(answers >= per_s / 2);
	rig_drops(r, "drop_hello_rate", 200000 - (int)answers, NULL);
	assert_int_equal(engine_connections(r->e), 0);
	rig_silent(r);
}

/* Nobody takes the answers: they stay as few as there is room for. */
static void waiting_answers_are_bounded(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);

	for (uint32_t k = 0; k < 10 * REPLIES_MAX; k++) {
		r->now_ns += 10000000;
		hello_send(r, &peer, NULL);
	}
	rig_drops(r, "drop_hello_rate", 9 * REPLIES_MAX, NULL);
	assert_int_equal(rig_drain(r), REPLIES_MAX);
	assert_int_equal(rig_drain(r), 0);
}

static void one_per_second(struct engine_config *f)
{
	f->handshakes_per_s = 1;
}

static void a_low_rate_still_lets_somebody_in(void **state)
{
	struct rig *r = rig_new(one_per_second);

	(void)state;
	for (uint32_t n = 1; n < 5; n++) {
		rig_connect(r, n);
		r->now_ns += UINT64_C(1000000000);
	}
	rig_free(r);
}

static void a_large_table(struct engine_config *f)
{
	f->conns_max = 180;
	f->handshakes_per_s = 1000;
}

/* All want what this node keeps, at the same moment; only the table's size is in their way. */
static void a_whole_table_of_newcomers_gets_in_at_once(void **state)
{
	struct rig *r = rig_new(a_large_table);
	uint64_t begin = r->now_ns;

	(void)state;
	for (uint32_t n = 1; n <= r->config.conns_max; n++)
		rig_connect(r, n);
	assert_int_equal(engine_connections(r->e), r->config.conns_max);
	assert_true(r->now_ns - begin < UINT64_C(50000000));
	rig_free(r);
}

/* [P4.2] */
static void a_repeated_hello_is_accepted_again(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct cookie cookie = cookie_get(r, &peer);

	hello_send(r, &peer, &cookie);
	rig_expect(r, EVENT_PEER_UP);
	uint32_t conn = accept_take(r, &peer);
	for (int k = 0; k < 5; k++) {
		hello_send(r, &peer, &cookie);
		assert_int_equal(accept_take(r, &peer), conn);
	}
	rig_silent(r);
	rig_drops(r, NULL);
	assert_int_equal(engine_connections(r->e), 1);
}

/* [P4.1] [P4.4] */
static void a_restarted_peer_takes_the_place_of_the_old(void **state)
{
	struct rig *r = *state;
	struct peer old = rig_connect(r, 1), peer = peer_new(1);

	peer.incarnation++;
	peer.id += 5;
	r->now_ns += 1000;
	struct cookie cookie = cookie_get(r, &peer);
	hello_send(r, &peer, &cookie);
	struct record down = rig_expect(r, EVENT_PEER_DOWN);
	assert_int_equal(down.reason, REASON_PEER_RESTARTED);
	assert_int_equal(down.peer.conn, old.conn);
	assert_int_equal(down.peer.incarnation, old.incarnation);
	struct record up = rig_expect(r, EVENT_PEER_UP);
	assert_int_equal(up.peer.incarnation, peer.incarnation);
	assert_int_not_equal(up.peer.conn, old.conn);
	rig_drops(r, NULL);

	/* the old life speaks up late: with a cookie, and on its old connection */
	cookie = cookie_get(r, &old);
	hello_send(r, &old, &cookie);
	rig_drops(r, "drop_incarnation", 1, NULL);
	struct packet p;
	peer_begin(r, &old, &p);
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	peer_send(r, &old, &p);
	rig_drops(r, "drop_unknown_conn", 1, NULL);
	rig_silent(r);
	assert_int_equal(engine_connections(r->e), 1);
}

/* A copy of the HELLO that opened an earlier connection of the same life, replayed later. */
static void a_replayed_hello_closes_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1), second = peer_new(1);
	struct cookie first_cookie = cookie_get(r, &peer), cookie;
	struct record event;

	second.id += 9;
	hello_send(r, &peer, &first_cookie);
	rig_expect(r, EVENT_PEER_UP);
	r->now_ns += 1000;
	cookie = cookie_get(r, &second); /* it has closed and opens again */
	hello_send(r, &second, &cookie);
	assert_int_equal(rig_expect(r, EVENT_PEER_DOWN).reason, REASON_PEER_CLOSED);
	event = rig_expect(r, EVENT_PEER_UP);
	rig_drops(r, NULL);
	r->now_ns += 1000;
	hello_send(r, &peer, &first_cookie);
	rig_drops(r, "drop_cookie", 1, NULL);
	rig_silent(r);
	assert_non_null(conn_find(r->e, event.peer.conn));
}

static void a_full_table_refuses(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(99);

	for (uint32_t n = 1; n <= r->config.conns_max; n++)
		rig_connect(r, n);
	struct cookie cookie = cookie_get(r, &peer);
	rig_drain(r);
	rig_freeze(r);
	hello_send(r, &peer, &cookie);
	rig_drops(r, "drop_conn_full", 1, NULL);
	rig_silent(r);
	assert_int_equal(engine_connections(r->e), r->config.conns_max);
	struct record open = {.op = COMMAND_PEER_OPEN, .peer = {.addr = peer.addr}};
	rig_refuse(r, &open, REASON_FULL);
}

/* Control takes no events: nobody new comes in, and nothing that exists runs out of room. */
static void full_events_refuse(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(99), up = rig_connect(r, 1);
	struct cookie cookie = cookie_get(r, &peer);
	struct record nothing = {.op = COMMAND_NONE}, event;
	struct packet p;

	while (engine_command(r->e, &nothing, r->now_ns))
		;
	hello_send(r, &peer, &cookie);
	rig_drops(r, "drop_events_full", 1, NULL);
	peer_begin(r, &up, &p);
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	peer_send(r, &up, &p);
	while (rig_event(r, &event))
		;
	assert_int_equal(event.op, EVENT_PEER_DOWN);
	hello_send(r, &peer, &cookie);
	rig_drops(r, NULL);
	rig_expect(r, EVENT_PEER_UP);
}

static void reset_send(struct rig *r, const struct peer *peer, uint32_t conn, uint16_t check,
		       uint64_t pn, uint32_t length)
{
	struct packet p;

	forge_begin(&p, WIRE_RESET, 0, 0, 0);
	uint8_t *body = forge_add(&p, RESET_BYTES);
	wire_put32(body + RESET_AT_CONN, conn);
	wire_put16(body + RESET_AT_CHECK, check);
	wire_put64(body + RESET_AT_PN, pn);
	p.length = length;
	peer_send(r, peer, &p);
}

/* [P2.5] [P4.5] */
static void a_reset_must_know_the_connection(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1), other = rig_connect(r, 2);
	uint32_t whole = WIRE_BODY + RESET_BYTES;
	uint16_t check = peer.c->check_tx;
	uint64_t pn = peer.c->tx.next_pn - 1;

	rig_freeze(r);
	reset_send(r, &peer, peer.id + 1, check, pn, whole);
	reset_send(r, &peer, 0, check, pn, whole);
	reset_send(r, &peer, peer.id, (uint16_t)(check + 1), pn, whole);
	reset_send(r, &peer, peer.id, check, pn + 1, whole);
	reset_send(r, &peer, peer.id, check, UINT64_MAX, whole);
	reset_send(r, &other, peer.id, check, pn, whole);
	other.addr.port++;
	reset_send(r, &other, peer.id, check, pn, whole);
	rig_drops(r, "drop_reset", 7, NULL);
	for (uint32_t length = WIRE_BODY; length < whole; length++)
		reset_send(r, &peer, peer.id, check, pn, length);
	rig_drops(r, "drop_truncated", RESET_BYTES, NULL);
	rig_same(r);
	while (peer.c->tx.next_pn <= pn + r->e->sent_slots)
		sent_record(r->e, peer.c, SENT_NOTHING, 0, 0, 60);
	reset_send(r, &peer, peer.id, check, pn, whole); /* far too old to be an answer */
	rig_drops(r, "drop_reset", 1, NULL);
	reset_send(r, &peer, peer.id, check, peer.c->tx.next_pn - 1, whole);
	rig_drops(r, NULL);
	assert_int_equal(rig_expect(r, EVENT_PEER_DOWN).reason, REASON_PEER_RESTARTED);
}

/* [P4.6] */
static void another_version_gets_a_short_answer(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct packet p, answer;

	for (uint32_t type = 0; type < 16; type++) {
		forge_hello(&p, type, &peer, WIRE_HELLO_MIN);
		p.bytes[0] = (uint8_t)(9 << 4 | type);
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_version", 1, NULL);
		if (type == WIRE_HELLO) {
			assert_true(rig_take(r, &answer));
			assert_true(answer.length < p.length);
			assert_int_equal(answer.bytes[0], WIRE_VERSION << 4 | WIRE_RESET);
		}
		assert_false(rig_take(r, &answer));
	}
	assert_int_equal(engine_connections(r->e), 0);
}

/* What a PING with this id and check, from this address, is answered with, but for the echo of id
 * and check. */
static struct packet answer_to(struct rig *r, const struct peer *from, uint32_t conn,
			       uint16_t check)
{
	struct packet ping, answer = {.length = 0};

	forge_begin(&ping, WIRE_PAYLOAD, check, conn, 1);
	forge_frame(&ping, FRAME_PING, PING_BYTES);
	forge_add(&ping, RESET_BYTES);
	peer_send(r, from, &ping);
	if (!rig_take(r, &answer))
		return answer;
	assert_false(rig_take(r, &ping)); /* one answer */
	const uint8_t *body = answer.bytes + WIRE_BODY;
	assert_int_equal(wire_get32(body + RESET_AT_CONN), conn);
	assert_int_equal(wire_get16(body + RESET_AT_CHECK), check);
	assert_int_equal(wire_get64(body + RESET_AT_PN), 1);
	assert_true(net_addr_equal(&answer.to, &from->addr));
	return answer;
}

/* A stranger who tries ids one after the other gets the same answer, in use or not. So does who
 * uses the address of a peer. */
static void ids_in_use_look_like_others(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1), stranger = peer_new(9);
	uint16_t wrong = (uint16_t)(peer.c->check_rx + 1);
	struct record open = {.op = COMMAND_PEER_OPEN, .peer = {.addr = peer_new(2).addr}};

	rig_command(r, &open);
	rig_drain(r);
	uint32_t opening = conn_by_addr(r->e, &open.peer.addr)->handle;
	struct packet unknown = answer_to(r, &stranger, peer.conn + 0x10000, wrong);
	assert_int_equal(unknown.length, WIRE_BODY + RESET_BYTES);
	assert_int_equal(answer_to(r, &stranger, peer.conn, wrong).length, unknown.length);
	assert_int_equal(answer_to(r, &stranger, opening, wrong).length, unknown.length);
	assert_int_equal(answer_to(r, &peer, peer.conn, wrong).length, unknown.length);
	rig_drops(r, "drop_unknown_conn", 1, "drop_address", 2, "drop_incarnation", 1, NULL);
	rig_silent(r);
	assert_int_equal(peer.c->state, CONN_UP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(a_cookie_is_for_one_opener_and_time),
		test_rig(keys_make_a_difference),
		test_rig(a_hello_that_is_wrong_leaves_no_trace),
		test_rig(a_flood_gets_a_bounded_answer),
		test_rig(waiting_answers_are_bounded),
		cmocka_unit_test(a_low_rate_still_lets_somebody_in),
		cmocka_unit_test(a_whole_table_of_newcomers_gets_in_at_once),
		test_rig(a_repeated_hello_is_accepted_again),
		test_rig(a_restarted_peer_takes_the_place_of_the_old),
		test_rig(a_replayed_hello_closes_nothing),
		test_rig(a_full_table_refuses),
		test_rig(full_events_refuse),
		test_rig(a_reset_must_know_the_connection),
		test_rig(ids_in_use_look_like_others),
		test_rig(another_version_gets_a_short_answer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
