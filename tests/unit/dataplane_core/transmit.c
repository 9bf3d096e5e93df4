/* SPDX-License-Identifier: BSD-3-Clause */
/* What leaves, in which order, and how packets are filled. */
#include "fixtures/core_test.h"

enum { CHUNKS = 100 };

static void offer(struct rig *r, const struct peer *peer, uint32_t index, uint32_t chunk_bytes)
{
	struct record source = record_source(index, (uint64_t)CHUNKS * chunk_bytes,
					     (uint64_t)CHUNKS * chunk_bytes);
	struct record out = record_edge(COMMAND_OUT, index, index, peer, 0, CHUNKS);

	source.buffer.chunk_bytes = (uint16_t)chunk_bytes;
	rig_command(r, &source);
	rig_command(r, &out);
	peer->c->cc.cwnd_bytes = 1 << 20;
}

static uint8_t item_of(const struct packet *p)
{
	static const uint8_t items[] = {FRAME_DATA,	    FRAME_MSG,	FRAME_GRANT,
					FRAME_RESET_STREAM, FRAME_PING, FRAME_CLOSE};
	uint8_t found = 0;

	for (uint32_t k = 0; k < sizeof(items); k++)
		if (packet_frame(p, items[k])) {
			assert_int_equal(found, 0); /* never two */
			found = items[k];
		}
	return found;
}

/* What is small and unblocks others first, then what was lost, then messages, then chunks. */
static void items_leave_in_order(void **state)
{
	static const uint8_t want[] = {FRAME_RESET_STREAM, FRAME_GRANT, FRAME_PING, FRAME_PING,
				       FRAME_DATA,	   FRAME_MSG,	FRAME_DATA};
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record sink = record_buffer(1, 700 * RIG_CHUNK);
	struct record in = record_edge(COMMAND_IN, 1, 1, &peer, 0, 700);
	struct record send = record_msg(&peer, 0, 10);
	struct packet p;

	offer(r, &peer, 0, 1024);
	assert_true(rig_take(r, &p)); /* chunk 0, to be lost */
	sent_lose(r->e, peer.c, p.pn);
	rig_command(r, &sink);
	rig_command(r, &in);
	rig_command(r, &send);
	peer.c->ping_due = true;
	peer.c->mtu = MTU_BASE + 180; /* a search is due, chunks pass already */
	peer.c->pmtu.next_ns = r->now_ns;
	list_want(&peer.c->grants, &in_edge_find(r->e, in.edge.edge)->due);
	peer.c->resets[peer.c->resets_count++] = 5;
	peer.c->ping_due = true;
	for (uint32_t k = 0; k < sizeof(want); k++) {
		assert_true(rig_take(r, &p));
		if (k == 3) { /* the probe: its answer shows more than its size */
			assert_int_equal(p.length, 1500 - ENGINE_OVERHEAD_V4);
			peer.c->ping_due = false;
		}
		assert_int_equal(item_of(&p), want[k]);
		if (k == 4) /* the lost one */
			assert_int_equal(wire_get32(packet_frame(&p, FRAME_DATA) + DATA_AT_CHUNK),
					 0);
	}
}

static void edges_take_turns(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint32_t seen[3] = {0};
	struct packet p;

	for (uint32_t k = 0; k < 3; k++)
		offer(r, &peer, k, RIG_CHUNK);
	for (uint32_t k = 0; k < 30; k++) {
		assert_true(rig_take(r, &p));
		const uint8_t *f = packet_frame(&p, FRAME_DATA);
		uint32_t index = wire_get32(f + DATA_AT_STREAM) - 0x70000;
		assert_int_equal(wire_get32(f + DATA_AT_CHUNK), seen[index]);
		seen[index]++;
	}
	for (uint32_t k = 0; k < 3; k++)
		assert_int_equal(seen[k], 10);
}

/* A chunk leaves from where it lies. */
static void payload_is_not_copied(void **state)
{
	static uint8_t head[ENGINE_HEAD_MAX];
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet_out out = {.head = head, .head_room = ENGINE_HEAD_MAX};

	offer(r, &peer, 2, 1024);
	uint64_t pn = peer.c->tx.next_pn;
	for (uint32_t k = 0; k < 4; k++) {
		assert_int_equal(engine_transmit(r->e, &out, 1, r->now_ns), 1);
		assert_ptr_equal(out.payload, rig_data(r, 2) + 1024 * k);
		assert_int_equal(out.payload_length, 1024);
		assert_int_equal(out.head_length, CHUNK_BODY);
		assert_int_equal(out.ecn, ENGINE_ECN_ECT0);
		assert_int_equal(head[0], WIRE_VERSION << 4 | WIRE_CHUNK);
		assert_int_equal(head[WIRE_AT_FLAGS], 0);
		assert_int_equal(wire_get16(head + CHUNK_AT_PN), pn + k);
		assert_int_equal(wire_get32(head + CHUNK_AT_CHUNK), k);
	}
}

static void the_largest_chunk_that_fits(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	offer(r, &peer, 0, 1408);
	peer.c->mtu = WIRE_BODY + DATA_BYTES + 1408 + ENGINE_OVERHEAD_V4; /* when it asks */
	assert_true(rig_take(r, &p));
	assert_int_equal(p.length, CHUNK_BODY + 1408);
	peer.c->mtu--;
	assert_true(rig_take(r, &p)); /* part.c */
	assert_null(packet_frame(&p, FRAME_DATA));
	assert_non_null(packet_frame(&p, FRAME_PART));
}

static void send_gaps(struct rig *r, struct peer *peer, uint32_t count, uint32_t step)
{
	struct packet p;

	for (uint32_t k = 0; k < count; k++) {
		peer_begin(r, peer, &p);
		forge_grant(&p, 1, 1);
		peer_send(r, peer, &p);
		peer->pn += step;
	}
}

static void takes_chunk(struct rig *r, bool with_ack)
{
	struct packet p;

	assert_true(rig_take(r, &p));
	assert_int_equal(item_of(&p), FRAME_DATA);
	assert_int_equal(packet_frame(&p, FRAME_ACK) != NULL, with_ack);
}

/* An ACK rides on a chunk when all of it finds room, due or not, else it goes alone and first. */
static void an_ack_rides_along_whole(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	offer(r, &peer, 0, RIG_CHUNK);
	send_gaps(r, &peer, 1, 1);
	takes_chunk(r, true);
	takes_chunk(r, false);
	send_gaps(r, &peer, 1, 1);
	r->now_ns += r->config.ack_delay_ns; /* it is due: alone it would take twice as much */
	takes_chunk(r, true);
	takes_chunk(r, false);
	peer.pn += 100; /* a gap: due at once, and too long to ride */
	send_gaps(r, &peer, 3, 60);
	assert_true(rig_take(r, &p));
	assert_non_null(packet_frame(&p, FRAME_ACK));
	assert_int_equal(item_of(&p), 0);
	assert_int_equal(p.ecn, ENGINE_ECN_NOT);
	assert_true(rig_take(r, &p));
	assert_int_equal(item_of(&p), FRAME_DATA);
}

/* Marks on packets from the peer are told behind an ACK, once. */
static void marks_are_told(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	for (uint32_t k = 0; k < 3; k++) {
		peer_begin(r, &peer, &p);
		forge_frame(&p, FRAME_PING, PING_BYTES);
		p.ecn = k < 2 ? ENGINE_ECN_CE : ENGINE_ECN_ECT0;
		peer_send(r, &peer, &p);
		rig_receive(r, &p, &peer.addr); /* a copy does not count */
		assert_true(rig_take(r, &p));
		const uint8_t *f = packet_frame(&p, FRAME_ECN);
		assert_int_equal(f != NULL, k < 2);
		if (f)
			assert_int_equal(wire_get32(f + ECN_AT_COUNT), k + 1);
	}
	assert_int_equal(r->counters.rx_ecn_ce, 2);
}

/* The last packet of what there is to send asks for an answer at once. */
static void the_last_one_asks(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record send = record_msg(&peer, 0, 5 * MSG_FRAGMENT_BYTES);
	struct packet p;

	peer.c->cc.cwnd_bytes = 1 << 20;
	rig_command(r, &send);
	for (uint32_t k = 0; k < 5; k++) {
		assert_true(rig_take(r, &p));
		const uint8_t *f = packet_frame(&p, FRAME_MSG);
		assert_int_equal(f[FRAME_AT_FLAGS] & FRAME_FLAG_ASK, k == 4);
	}
}

/* A peer on IPv6: the same path carries 20 bytes less. */
static void the_larger_header_is_counted(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record open = {.op = COMMAND_PEER_OPEN};
	struct packet p;

	peer.addr.ip[0] = 0xfd;
	open.peer.addr = peer.addr;
	rig_command(r, &open);
	assert_true(rig_take(r, &p));
	assert_int_equal(p.length, r->config.mtu - ENGINE_OVERHEAD_V6);
	assert_int_equal(conn_room(conn_by_addr(r->e, &peer.addr)), MTU_BASE - ENGINE_OVERHEAD_V6);
}

/* Nobody answers: still nothing is sent beyond window, pace and probes. */
static void silence_is_not_flooded(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint64_t before = r->counters.tx_pkts;

	offer(r, &peer, 0, RIG_CHUNK);
	congestion_init(r->e, peer.c);
	rig_pass(r, UINT64_C(2000000000));
	assert_in_range(r->counters.tx_pkts - before, 10, 120);
	assert_true(peer.c->tx.inflight_pkts + peer.c->tx.lost_count <= r->config.window_pkts);
	assert_int_equal(peer.c->state, CONN_UP);
}

/* One after the other: the answer to a request takes the acknowledgement along. */
static void few_short_messages_ask_for_no_acknowledgement(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	for (uint32_t k = 0; k < MSG_WINDOW; k++) {
		struct record send = record_msg(&peer, k, 10);
		const uint8_t *frame;

		rig_command(r, &send);
		assert_true(rig_take(r, &p));
		frame = packet_frame(&p, FRAME_MSG);
		assert_non_null(frame);
		assert_int_equal(frame[FRAME_AT_FLAGS] & FRAME_FLAG_ASK, k >= MSG_WINDOW / 2);
	}
}

static void the_end_of_a_long_message_asks(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record send = record_msg(&peer, 0, 2 * MSG_FRAGMENT_BYTES);
	struct packet p;

	rig_command(r, &send);
	for (int fragment = 0; fragment < 2; fragment++) {
		assert_true(rig_take(r, &p));
		assert_int_equal(packet_frame(&p, FRAME_MSG)[FRAME_AT_FLAGS] & FRAME_FLAG_ASK,
				 fragment == 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(items_leave_in_order),
		test_rig(edges_take_turns),
		test_rig(payload_is_not_copied),
		test_rig(the_largest_chunk_that_fits),
		test_rig(an_ack_rides_along_whole),
		test_rig(marks_are_told),
		test_rig(the_last_one_asks),
		test_rig(the_larger_header_is_counted),
		test_rig(silence_is_not_flooded),
		test_rig(few_short_messages_ask_for_no_acknowledgement),
		test_rig(the_end_of_a_long_message_asks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
