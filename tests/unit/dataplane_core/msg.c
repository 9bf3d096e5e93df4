/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: every boundary of fragments, order, windows, slots, and what must be refused. */
#include "fixtures/core_test.h"

static void send_fragment(struct rig *r, struct peer *peer, uint32_t id, uint32_t fragment,
			  uint32_t total)
{
	struct packet p;

	peer_begin(r, peer, &p);
	forge_msg(&p, id, fragment, total, (uint8_t)(id + 3 * fragment + 1));
	peer_send(r, peer, &p);
}

static uint32_t fragments(uint32_t total)
{
	return (total + MSG_FRAGMENT_BYTES - 1) / MSG_FRAGMENT_BYTES;
}

static void send_message(struct rig *r, struct peer *peer, uint32_t id, uint32_t total)
{
	for (uint32_t k = 0; k < fragments(total); k++)
		send_fragment(r, peer, id, k, total);
}

static void message_free(struct rig *r, uint64_t offset)
{
	struct record free_it = {.op = COMMAND_MSG_FREE, .msg = {.offset = offset}};

	rig_command(r, &free_it);
}

/* The next event is this message, whole; its slot goes back. */
static void expect_message(struct rig *r, const struct peer *peer, uint32_t id, uint32_t total)
{
	struct record event = rig_expect(r, EVENT_MSG);
	const uint8_t *at = r->config.msg_rx + event.msg.offset;

	assert_int_equal(event.msg.conn, peer->conn);
	assert_int_equal(event.msg.length, total);
	assert_int_equal(event.msg.offset % MSG_SLOT_BYTES, 0);
	for (uint32_t k = 0; k < total; k++)
		assert_int_equal(at[k], (uint8_t)(id + 3 * (k / MSG_FRAGMENT_BYTES) + 1));
	message_free(r, event.msg.offset);
}

static const uint32_t sizes[] = {1, 2, 1151, 1152, 1153, 2303, 2304, 2305, 73727, 73728};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void every_boundary_arrives(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	for (uint32_t k = 0; k < SIZES; k++) {
		send_message(r, &peer, k, sizes[k]);
		expect_message(r, &peer, k, sizes[k]);
		rig_silent(r);
	}
	rig_drops(r, NULL);
	assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS);
}

static void any_order_is_delivered_in_order(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint32_t order[SIZES * 64][2], n = 0;
	uint64_t seed = 4;

	for (uint32_t id = 0; id < SIZES; id++)
		for (uint32_t k = 0; k < fragments(sizes[id]); k++, n++) {
			uint32_t at = (uint32_t)draw_below(&seed, n + 1);
			memcpy(order[n], order[at], sizeof(order[n]));
			order[at][0] = id;
			order[at][1] = k;
		}
	for (uint32_t k = 0; k < n; k++)
		for (uint64_t copies = 1 + draw_below(&seed, 3); copies > 0; copies--)
			send_fragment(r, &peer, order[k][0], order[k][1], sizes[order[k][0]]);
	rig_drops(r, NULL);
	for (uint32_t id = 0; id < SIZES; id++)
		expect_message(r, &peer, id, sizes[id]);
	rig_silent(r);
	assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS);
}

static void refuse_raw(struct rig *r, struct peer *peer, uint32_t id, uint32_t fragment,
		       uint32_t total, uint32_t bytes, const char *drop)
{
	uint32_t pending = peer->c->rx.ack_pending, slots = r->e->slots.free_count;
	struct packet p;

	peer_begin(r, peer, &p);
	uint8_t *f = forge_add(&p, MSG_FRAME_BYTES + bytes);
	f[0] = FRAME_MSG;
	wire_put16(f + MSG_AT_LENGTH, (uint16_t)bytes);
	wire_put32(f + MSG_AT_ID, id);
	wire_put16(f + MSG_AT_FRAGMENT, (uint16_t)fragment);
	wire_put32(f + MSG_AT_TOTAL, total);
	peer_send(r, peer, &p);
	rig_drops(r, drop, 1, NULL);
	assert_int_equal(peer->c->rx.ack_pending, pending);
	assert_int_equal(r->e->slots.free_count, slots);
	rig_silent(r);
}

/* [P10] */
static void what_does_not_fit_is_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	const char *drop = "drop_msg_range";

	refuse_raw(r, &peer, 0, 0, 0, 0, drop);
	refuse_raw(r, &peer, 0, 0, MSG_BYTES_MAX + 1, MSG_FRAGMENT_BYTES, drop);
	refuse_raw(r, &peer, 0, 0, UINT32_MAX, MSG_FRAGMENT_BYTES, drop);
	refuse_raw(r, &peer, 0, 64, MSG_BYTES_MAX, MSG_FRAGMENT_BYTES, drop);
	refuse_raw(r, &peer, 0, UINT16_MAX, MSG_BYTES_MAX, MSG_FRAGMENT_BYTES, drop);
	refuse_raw(r, &peer, 0, 1, MSG_FRAGMENT_BYTES, 1, drop);
	refuse_raw(r, &peer, 0, 0, 10, 9, drop);
	refuse_raw(r, &peer, 0, 0, 10, 11, drop);
	refuse_raw(r, &peer, 0, 0, 10, 0, drop);
	refuse_raw(r, &peer, 0, 0, MSG_FRAGMENT_BYTES + 1, MSG_FRAGMENT_BYTES - 1, drop);
	refuse_raw(r, &peer, 0, 1, MSG_FRAGMENT_BYTES + 1, 2, drop);
	refuse_raw(r, &peer, MSG_WINDOW, 0, 10, 10, drop);
	refuse_raw(r, &peer, INT32_MAX, 0, 10, 10, drop);
	send_fragment(r, &peer, 0, 0, 3000); /* a message may not change its length */
	refuse_raw(r, &peer, 0, 1, 2999, MSG_FRAGMENT_BYTES, drop);
	refuse_raw(r, &peer, 0, 1, MSG_BYTES_MAX, MSG_FRAGMENT_BYTES, drop);
	send_fragment(r, &peer, 0, 1, 3000);
	send_fragment(r, &peer, 0, 2, 3000);
	expect_message(r, &peer, 0, 3000);
	send_fragment(r, &peer, MSG_WINDOW, 0, 10); /* now it is in the window */
	rig_drops(r, NULL);
}

static void old_copies_are_taken_and_forgotten(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	send_message(r, &peer, 0, 100);
	expect_message(r, &peer, 0, 100);
	rig_freeze(r);
	for (uint32_t id = 0; id > UINT32_MAX - 3 || id == 0; id--) {
		send_fragment(r, &peer, id, 0, 100);
		rig_silent(r);
	}
	rig_drops(r, NULL);
	assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS);
	assert_int_equal(peer.c->msg.deliver_id, 1);
}

/* Ids wrap: the window lies across 2^32. */
static void ids_wrap(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint32_t first = UINT32_MAX - 5;
	struct packet p;

	peer.c->msg.deliver_id = first;
	refuse_raw(r, &peer, first + MSG_WINDOW, 0, 10, 10, "drop_msg_range");
	for (uint32_t k = 12; k-- > 0;)
		send_message(r, &peer, first + k, 1000 + k);
	for (uint32_t k = 0; k < 12; k++)
		expect_message(r, &peer, first + k, 1000 + k);
	rig_drops(r, NULL);

	peer.c->msg.next_id = first;
	for (uint32_t k = 0; k < 12; k++) {
		struct record send = record_msg(&peer, 100 * k, 100);
		rig_command(r, &send);
	}
	for (uint32_t k = 0; k < 12; k++) {
		do
			assert_true(rig_take(r, &p));
		while (!packet_frame(&p, FRAME_MSG));
		assert_int_equal(wire_get32(packet_frame(&p, FRAME_MSG) + MSG_AT_ID), first + k);
		peer_ack(r, &peer, p.pn);
		assert_int_equal(rig_expect(r, EVENT_MSG_SENT).reason, REASON_NONE);
	}
}

/* All slots but the last eighth: then only the message that its peer waits for gets one. */
static void full_slots_refuse_and_recover(void **state)
{
	struct rig *r = *state;
	struct peer peers[3] = {rig_connect(r, 1), rig_connect(r, 2), rig_connect(r, 3)};
	uint32_t taken = 0;

	for (uint32_t id = 1; id < MSG_WINDOW; id++)
		for (uint32_t k = 0; k < 2; k++)
			send_fragment(r, &peers[k], id, 0, 2000);
	taken = RIG_RX_SLOTS - r->e->slots.free_count;
	assert_int_equal(taken, RIG_RX_SLOTS - RIG_RX_SLOTS / 8);
	rig_drops(r, "drop_msg_full", 2 * (MSG_WINDOW - 1) - (int)taken, NULL);
	refuse_raw(r, &peers[2], 1, 0, 10, 10, "drop_msg_full");
	for (uint32_t k = 0; k < 3; k++) {
		send_message(r, &peers[k], 0, 2000);
		expect_message(r, &peers[k], 0, 2000);
	}
	rig_drops(r, NULL);
}

static void a_closed_connection_gives_its_slots_back(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record send = record_msg(&peer, 70, 5000);
	struct packet p;

	for (uint32_t id = 0; id < 5; id++)
		send_fragment(r, &peer, id, 0, 2000);
	send_message(r, &peer, 5, 10); /* whole, but not next in order */
	rig_command(r, &send);
	assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS - 6);
	peer_begin(r, &peer, &p);
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	peer_send(r, &peer, &p);
	assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS);
	struct record event = rig_expect(r, EVENT_MSG_SENT);
	assert_int_equal(event.reason, REASON_PEER_CLOSED);
	assert_int_equal(event.token, send.token);
	assert_int_equal(event.msg.offset, send.msg.offset);
	assert_int_equal(event.msg.length, send.msg.length);
	assert_int_equal(event.msg.conn, peer.conn);
	rig_expect(r, EVENT_PEER_DOWN);
	rig_silent(r);
}

static void records_that_do_not_hold_are_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record bad = record_msg(&peer, 0, 0);

	rig_refuse(r, &bad, REASON_BAD_MESSAGE);
	bad = record_msg(&peer, 0, MSG_BYTES_MAX + 1);
	rig_refuse(r, &bad, REASON_BAD_MESSAGE);
	bad = record_msg(&peer, RIG_TX_BYTES - 9, 10);
	rig_refuse(r, &bad, REASON_BAD_MESSAGE);
	bad = record_msg(&peer, UINT64_MAX - 5, 10);
	rig_refuse(r, &bad, REASON_BAD_MESSAGE);
	bad = record_msg(&peer, 0, 10);
	bad.msg.conn = 0;
	rig_refuse(r, &bad, REASON_BAD_CONN);
	bad.msg.conn = peer.conn ^ 0x10000;
	rig_refuse(r, &bad, REASON_BAD_CONN);
	bad = (struct record){.op = COMMAND_MSG_FREE};
	rig_refuse(r, &bad, REASON_BAD_ID); /* a slot that control does not have */
	bad.msg.offset = 1;
	rig_refuse(r, &bad, REASON_BAD_MESSAGE);
	bad.msg.offset = (uint64_t)RIG_RX_SLOTS * MSG_SLOT_BYTES;
	rig_refuse(r, &bad, REASON_BAD_MESSAGE);
	bad.msg.offset = UINT64_MAX / MSG_SLOT_BYTES * MSG_SLOT_BYTES;
	rig_refuse(r, &bad, REASON_BAD_MESSAGE);

	send_message(r, &peer, 0, 10);
	expect_message(r, &peer, 0, 10);
	bad.msg.offset = 0;
	for (uint32_t slot = 0; slot < RIG_RX_SLOTS; slot++) { /* not twice either */
		bad.msg.offset = (uint64_t)slot * MSG_SLOT_BYTES;
		rig_refuse(r, &bad, REASON_BAD_ID);
	}
	for (uint32_t k = 0; k < r->config.msgs_max; k++) {
		struct record send = record_msg(&peer, k, 10);
		rig_command(r, &send);
	}
	rig_silent(r);
	bad = record_msg(&peer, 0, 10);
	rig_refuse(r, &bad, REASON_FULL);
}

/* Sends every size and rebuilds it from the packets, losing some on the way. */
static void every_boundary_leaves(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	static uint8_t got[MSG_BYTES_MAX];
	uint64_t seed = 8;
	struct packet p;

	for (uint32_t k = 0; k < RIG_TX_BYTES; k++)
		r->config.msg_tx[k] = (uint8_t)(k * 7 + k / 1000);
	for (uint32_t k = 0; k < SIZES; k++) {
		struct record send = record_msg(&peer, 11 * k, sizes[k]), event;

		rig_command(r, &send);
		memset(got, 0, sizeof(got));
		while (!rig_event(r, &event)) {
			r->now_ns += 200000;
			engine_tick(r->e, r->now_ns);
			if (!rig_take(r, &p))
				continue;
			const uint8_t *f = packet_frame(&p, FRAME_MSG);
			uint64_t pn = p.pn;
			if (draw_below(&seed, 4) == 0)
				continue; /* lost */
			peer_ack(r, &peer, pn);
			if (!f)
				continue;
			assert_int_equal(wire_get32(f + MSG_AT_ID), k);
			assert_int_equal(wire_get32(f + MSG_AT_TOTAL), sizes[k]);
			uint32_t at = wire_get16(f + MSG_AT_FRAGMENT) * MSG_FRAGMENT_BYTES;
			assert_true(at + wire_get16(f + MSG_AT_LENGTH) <= sizes[k]);
			memcpy(got + at, f + MSG_FRAME_BYTES, wire_get16(f + MSG_AT_LENGTH));
		}
		assert_int_equal(event.op, EVENT_MSG_SENT);
		assert_int_equal(event.reason, REASON_NONE);
		assert_int_equal(event.token, send.token);
		assert_int_equal(event.msg.conn, peer.conn);
		assert_int_equal(event.msg.offset, send.msg.offset);
		assert_int_equal(event.msg.length, send.msg.length);
		assert_memory_equal(got, r->config.msg_tx + 11 * k, sizes[k]);
		assert_int_equal(r->counters.tx_msgs, k + 1);
	}
}

/* No message beyond the window leaves before the oldest is acknowledged. */
static void the_window_waits_for_the_oldest(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint64_t first = UINT64_MAX;
	uint32_t seen = 0;
	struct packet p;

	for (uint32_t k = 0; k < MSG_WINDOW + 8; k++) {
		struct record send = record_msg(&peer, 0, 10);
		rig_command(r, &send);
	}
	while (rig_take(r, &p)) {
		uint64_t pn = p.pn;
		if (!packet_frame(&p, FRAME_MSG))
			continue;
		seen++;
		if (first == UINT64_MAX)
			first = pn;
		else
			peer_ack(r, &peer, pn);
	}
	assert_int_equal(seen, MSG_WINDOW);
	peer_ack(r, &peer, first);
	while (rig_take(r, &p))
		seen += packet_frame(&p, FRAME_MSG) != NULL;
	assert_true(seen >= MSG_WINDOW + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(every_boundary_arrives),
		test_rig(any_order_is_delivered_in_order),
		test_rig(what_does_not_fit_is_refused),
		test_rig(old_copies_are_taken_and_forgotten),
		test_rig(ids_wrap),
		test_rig(full_slots_refuse_and_recover),
		test_rig(a_closed_connection_gives_its_slots_back),
		test_rig(records_that_do_not_hold_are_refused),
		test_rig(every_boundary_leaves),
		test_rig(the_window_waits_for_the_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
