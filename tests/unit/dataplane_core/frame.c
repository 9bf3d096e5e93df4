/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets and frames as an attacker writes them: each wrong in one way, its checksum right. */
#include "fixtures/core_test.h"
#include "core/wire/frame.h"

/* [P2] [P2.2] */
static void a_header_that_is_wrong_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	rig_freeze(r);
	for (uint32_t length = 0; length < WIRE_BODY; length++) {
		peer_begin(r, &peer, &p);
		forge_seal(&p);
		p.length = length;
		rig_receive(r, &p, &peer.addr);
		rig_drops(r, "drop_truncated", 1, NULL);
	}
	for (uint32_t type = 0; type < 16; type++) {
		if (type >= WIRE_HELLO && type <= WIRE_ACK)
			continue;
		forge_begin(&p, type, 0, 0, 0);
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_type", 1, NULL);
	}
	for (uint32_t flags = 1; flags < 256; flags++) {
		peer_begin(r, &peer, &p);
		p.bytes[WIRE_AT_FLAGS] = (uint8_t)flags;
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_flags", 1, NULL);
	}
	for (uint32_t version = 0; version < 16; version++) {
		peer_begin(r, &peer, &p);
		p.bytes[0] = (uint8_t)(version << 4 | WIRE_PAYLOAD);
		if (version == WIRE_VERSION)
			continue;
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_version", 1, NULL);
	}
	rig_same(r);
}

/* [P2.1] */
static void any_flipped_bit_is_seen(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	rig_freeze(r);
	peer_begin(r, &peer, &p);
	forge_grant(&p, 5, 6);
	forge_frame(&p, FRAME_PING, PING_BYTES);
	forge_seal(&p);
	for (uint32_t bit = 0; bit < 8 * p.length; bit++) {
		p.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		rig_receive(r, &p, &peer.addr);
		rig_drops(r, "drop_checksum", 1, NULL);
		p.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	rig_same(r);
}

static void whose_packet_is_it(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1), other = rig_connect(r, 2), wrong;
	struct record open = {.op = COMMAND_PEER_OPEN, .peer = {.addr = peer_new(3).addr}};
	struct packet p;

	rig_command(r, &open);
	rig_freeze(r);
	wrong = peer;
	wrong.addr.port++;
	peer_begin(r, &wrong, &p);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_address", 1, NULL);
	wrong = peer;
	wrong.addr = other.addr;
	peer_begin(r, &wrong, &p);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_address", 1, NULL);
	wrong = peer;
	wrong.incarnation++; /* of another life of the peer */
	peer_begin(r, &wrong, &p);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_incarnation", 1, NULL);
	wrong = peer_new(3);
	wrong.conn = conn_by_addr(r->e, &wrong.addr)->handle; /* still opening */
	peer_begin(r, &wrong, &p);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_state", 1, NULL);
	rig_same(r);

	rig_drain(r);
	const uint32_t nobody[] = {0,
				   1,
				   UINT32_MAX,
				   peer.conn + 0x10000,
				   peer.conn - 0x10000,
				   handle_make(7, handle_generation(peer.conn)),
				   handle_make(8, handle_generation(peer.conn))};
	for (size_t k = 0; k < sizeof(nobody) / sizeof(nobody[0]); k++) {
		wrong = peer;
		wrong.conn = nobody[k];
		struct packet answer;
		peer_begin(r, &wrong, &p);
		peer_send(r, &wrong, &p); /* shorter than the answer would be: none */
		rig_drops(r, "drop_unknown_conn", 1, NULL);
		assert_false(rig_take(r, &answer));
		peer_begin(r, &wrong, &p);
		memset(p.bytes + p.length, 0, RESET_BYTES);
		p.length += RESET_BYTES;
		peer_send(r, &wrong, &p);
		rig_drops(r, "drop_unknown_conn", 1, NULL);
		assert_true(rig_take(r, &answer));
		assert_int_equal(answer.bytes[0], WIRE_VERSION << 4 | WIRE_RESET);
		assert_int_equal(wire_get32(answer.bytes + WIRE_BODY + RESET_AT_CONN), nobody[k]);
	}
}

static const struct {
	uint8_t type;
	uint8_t bytes;
} fixed[] = {
	{FRAME_DATA, DATA_BYTES},     {FRAME_ACK, ACK_AT_BITMAP}, {FRAME_GRANT, GRANT_BYTES},
	{FRAME_MSG, MSG_FRAME_BYTES}, {FRAME_PING, PING_BYTES},	  {FRAME_RESET_STREAM, 8},
	{FRAME_CLOSE, CLOSE_BYTES},   {FRAME_ECN, ECN_BYTES},	  {FRAME_PART, PART_FRAME_BYTES},
};

static void a_cut_frame_is_bad(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	for (uint32_t k = 0; k < sizeof(fixed) / sizeof(fixed[0]); k++)
		for (uint32_t length = 1; length < fixed[k].bytes; length++) {
			uint64_t largest = peer.c->rx.largest;
			peer_begin(r, &peer, &p);
			forge_frame(&p, fixed[k].type, length);
			peer_send(r, &peer, &p);
			rig_drops(r, "drop_frame", 1, NULL);
			assert_int_equal(peer.c->rx.largest, largest); /* not acknowledged */
		}
	for (uint32_t type = FRAME_PART + 1; type < 256; type++) {
		peer_begin(r, &peer, &p);
		forge_frame(&p, (uint8_t)type, 40);
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_frame", 1, NULL);
	}
	assert_int_equal(peer.c->rx.ack_pending, 0);
	assert_int_equal(peer.c->state, CONN_UP);
	rig_silent(r);
}

/* Frames that say of themselves that they are longer than the packet. */
static void a_frame_beyond_the_packet_is_bad(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	for (uint32_t more = 1; more < 65000; more += more < 20 ? 1 : 997) {
		peer_begin(r, &peer, &p);
		forge_data(&p, 1, 1, 64, 1);
		wire_put16(p.bytes + WIRE_BODY + DATA_AT_LENGTH, (uint16_t)(64 + more));
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_frame", 1, NULL);
		peer_begin(r, &peer, &p);
		forge_msg(&p, 0, 0, 64, 1);
		wire_put16(p.bytes + WIRE_BODY + MSG_AT_LENGTH, (uint16_t)(64 + more));
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_frame", 1, NULL);
	}
	for (uint32_t words = 2; words < 256; words++) {
		uint64_t one = 1;
		peer_begin(r, &peer, &p);
		forge_ack(&p, 0, 1, &one);
		p.bytes[WIRE_BODY + ACK_AT_WORDS] = (uint8_t)words;
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_frame", 1, NULL);
	}
	assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS);
}

/* What came before a bad frame has been done once; the packet comes again and does it no twice. */
static void good_frames_before_a_bad_one(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	rig_sink(r, &peer, 10);
	peer_begin(r, &peer, &p);
	forge_data(&p, record_handle(0), 2, RIG_CHUNK, 9);
	forge_frame(&p, 200, 4);
	forge_data(&p, record_handle(0), 3, RIG_CHUNK, 9);
	peer_send(r, &peer, &p);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_frame", 2, NULL);
	assert_int_equal(r->counters.rx_chunks, 1);
	assert_int_equal(r->counters.rx_chunk_duplicates, 1);
	assert_int_equal(peer.c->rx.ack_pending, 0);
}

static void padding_ends_the_frames(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	peer_begin(r, &peer, &p);
	forge_frame(&p, FRAME_PING, PING_BYTES);
	memset(forge_add(&p, 1000), 0xff, 1000);
	p.bytes[WIRE_BODY + PING_BYTES] = FRAME_PADDING;
	peer_send(r, &peer, &p);
	rig_drops(r, NULL);
	assert_int_equal(rig_drain(r), 1);
	peer_begin(r, &peer, &p); /* no frame at all: seen, nothing to answer */
	peer_send(r, &peer, &p);
	rig_drops(r, NULL);
	assert_int_equal(rig_drain(r), 0);
}

/* CLOSE in the middle: what stands behind it belongs to nobody. */
static void a_close_in_the_middle(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1), other = rig_connect(r, 2);
	struct record out = record_edge(COMMAND_OUT, 1, 0, &other, 0, 100);
	struct record back = record_edge(COMMAND_OUT, 2, 0, &peer, 0, 100);
	struct record send = record_msg(&peer, 0, 70000);
	struct packet p;

	rig_sink(r, &peer, 100);
	rig_command(r, &out);
	rig_command(r, &back);
	rig_command(r, &send);
	rig_drain(r);
	peer_begin(r, &peer, &p);
	forge_data(&p, record_handle(0), 0, RIG_CHUNK, 9);
	forge_msg(&p, 0, 0, 2000, 1);
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	forge_data(&p, record_handle(0), 1, RIG_CHUNK, 9);
	forge_frame(&p, 77, 4);
	peer_send(r, &peer, &p);
	rig_drops(r, NULL);
	assert_int_equal(r->counters.rx_chunks, 1);
	assert_int_equal(rig_expect(r, EVENT_EDGE_FAILED).flags, RECORD_FLAG_OUT);
	assert_int_equal(rig_expect(r, EVENT_EDGE_FAILED).flags, RECORD_FLAG_IN);
	assert_int_equal(rig_expect(r, EVENT_MSG_SENT).reason, REASON_PEER_CLOSED);
	assert_int_equal(rig_expect(r, EVENT_PEER_DOWN).reason, REASON_PEER_CLOSED);
	rig_silent(r);
	assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS);
	assert_int_equal(r->e->in_active, 0);
	assert_true(rig_take(r, &p)); /* the chunk that came goes on to the other */
	assert_true(net_addr_equal(&p.to, &other.addr));
	assert_int_equal(wire_get32(packet_frame(&p, FRAME_DATA) + DATA_AT_CHUNK), 0);
	assert_false(rig_take(r, &p));
}

/* More frames than anybody needs to put into a packet: their work is bounded. [P3] */
static void a_packet_holds_few_frames(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	peer_begin(r, &peer, &p);
	for (uint32_t k = 0; k < FRAMES_MAX; k++)
		forge_reset_stream(&p, k);
	peer_send(r, &peer, &p);
	rig_drops(r, NULL);
	peer_begin(r, &peer, &p);
	for (uint32_t k = 0; k < FRAMES_MAX + 1; k++)
		forge_reset_stream(&p, k);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_frame", 1, NULL);
}

static void forge_any_frame(struct packet *p, uint64_t *seed, uint64_t next_pn)
{
	uint64_t bitmap[ACK_WORDS_MAX];
	uint32_t small = (uint32_t)draw_below(seed, 200);

	switch (draw_below(seed, 9)) {
	case 0:
		forge_data(p, record_handle((uint32_t)draw_below(seed, 3)), small,
			   draw_below(seed, 3) == 0 ? small : 64, 1);
		break;
	case 1:
		for (uint32_t k = 0; k < ACK_WORDS_MAX; k++)
			bitmap[k] = draw(seed) | draw(seed);
		forge_ack(p, next_pn - draw_below(seed, 70) + draw_below(seed, 20),
			  (uint32_t)draw_below(seed, ACK_WORDS_MAX + 1), bitmap);
		break;
	case 2:
		forge_grant(p, 0x70000 + small % 4, (uint32_t)draw_below(seed, 250));
		break;
	case 3:
		forge_msg(p, small % 40, small % 3, 1 + (uint32_t)draw_below(seed, 3000), 1);
		break;
	case 4:
		if (small == 0)
			forge_reset_stream(p, 0x70000 + (uint32_t)draw_below(seed, 4));
		break;
	case 5:
		forge_ecn(p, small < 100 ? small : (uint32_t)draw(seed));
		break;
	case 6:
		forge_frame(p, small < 3 ? FRAME_CLOSE : FRAME_PING, 4);
		break;
	case 7:
		forge_frame(p, (uint8_t)small, 1 + small % 40);
		break;
	default:
		forge_frame(p, FRAME_PING, PING_BYTES);
	}
}

/* Edges in both directions over 200 chunks of 64 bytes, and messages under way. */
static void offer_work(struct rig *r, const struct peer *peer, uint16_t generation)
{
	struct record buffer = record_buffer(0, 200 * 64);
	struct record drop = record_drop(RECORD_FLAG_BUFFER, record_handle(0)), event;
	struct record send = record_msg(peer, 0, 5000);

	buffer.buffer.chunk_bytes = 64;
	engine_command(r->e, &drop, r->now_ns);
	memset(rig_bitmap(r, 0), 0, RIG_BITMAP_BYTES);
	rig_command(r, &buffer);
	for (uint32_t k = 0; k < 3; k++) {
		struct record in = record_edge(COMMAND_IN, k, 0, peer, 0, 200);
		struct record out = record_edge(COMMAND_OUT, k, 0, peer, 0, 200);

		memset(rig_bitmap(r, RIG_BUFFERS + k), 0, RIG_BITMAP_BYTES);
		out.edge.edge = handle_make((uint16_t)k, generation);
		rig_command(r, &in);
		rig_command(r, &out);
	}
	for (uint32_t k = 0; k < 10; k++)
		rig_command(r, &send);
	while (rig_event(r, &event))
		if (event.op == EVENT_MSG) {
			struct record back = {.op = COMMAND_MSG_FREE, .msg = event.msg};
			rig_command(r, &back);
		}
}

static void check_conn(const struct rig *r, const struct conn *c)
{
	uint32_t packets = 0;
	uint64_t bytes = 0;

	for (uint32_t slot = 0; slot < r->e->sent_slots; slot++)
		if (c->tx.outstanding[slot / 64] >> (slot % 64) & 1) {
			packets++;
			bytes += c->tx.sent[slot].bytes;
		}
	assert_int_equal(c->tx.inflight_pkts, packets);
	assert_int_equal(c->tx.inflight_bytes, bytes);
	assert_true(c->tx.lost_count <= r->config.window_pkts);
}

/* Whatever a connected peer says, in any order: nothing breaks, and it can connect again. */
static void a_peer_that_talks_nonsense(void **state)
{
	struct rig *r = *state;
	uint64_t seed = 0xbad;
	uint16_t generation = 1;

	for (uint32_t life = 0; life < 40; life++) {
		struct peer peer = rig_connect(r, 1);

		offer_work(r, &peer, generation++);
		for (uint32_t step = 0; step < 500 && peer.c->handle == peer.conn; step++) {
			struct packet p;

			peer_begin(r, &peer, &p);
			peer.pn += draw_below(&seed, 3) == 0 ? draw_below(&seed, 100) : 0;
			peer.pn -= numbers_min(peer.pn, draw_below(&seed, 10) == 0 ? 50 : 0);
			for (uint64_t k = draw_below(&seed, 8); k > 0; k--)
				forge_any_frame(&p, &seed, peer.c->tx.next_pn);
			peer_send(r, &peer, &p);
			if (peer.c->handle != peer.conn)
				break;
			check_conn(r, peer.c);
			if (draw_below(&seed, 4) == 0)
				rig_drain(r);
			if (draw_below(&seed, 4) == 0)
				rig_pass(r, draw_below(&seed, 3000000));
			if (step % 100 == 99 && peer.c->handle == peer.conn)
				offer_work(r, &peer, generation++);
		}
		struct record close = {.op = COMMAND_PEER_CLOSE, .peer = {.conn = peer.conn}},
			      event;
		engine_command(r->e, &close, r->now_ns);
		rig_drain(r);
		rig_pass(r, 200000000);
		while (rig_event(r, &event))
			if (event.op == EVENT_MSG) {
				struct record back = {.op = COMMAND_MSG_FREE, .msg = event.msg};
				rig_command(r, &back);
			}
		assert_int_equal(engine_connections(r->e), 0);
		assert_int_equal(r->e->slots.free_count, RIG_RX_SLOTS);
		assert_int_equal(r->e->in_active, 0);
	}
}

/* The table of protocol.md, 3, once more: what of a frame is always there, and what may follow. */
static uint32_t frame_bytes(const uint8_t *f)
{
	static const uint8_t there[] = {0, 12, 16, 12, 16, 4, 8, 4, 8, 16};
	uint32_t payload = f[2] | (uint32_t)f[3] << 8;

	if (f[0] >= sizeof(there))
		return 0;
	switch (f[0]) {
	case FRAME_DATA:
	case FRAME_MSG:
	case FRAME_PART:
		return there[f[0]] + payload;
	case FRAME_ACK:
		return there[f[0]] + 8u * f[1];
	default:
		return there[f[0]];
	}
}

/* [P3] */
static void every_short_frame_is_judged(void **state)
{
	uint8_t f[64] = {0};

	(void)state;
	for (uint32_t type = 0; type < 256; type++) {
		for (uint32_t one = 0; one < 8; one++) {
			for (uint32_t two = 0; two < 40; two++) {
				f[0] = (uint8_t)type, f[1] = (uint8_t)one, f[2] = (uint8_t)two;
				uint32_t bytes = frame_bytes(f);

				for (uint32_t left = 0; left <= sizeof(f); left++)
					assert_int_equal(frame_valid(f, left),
							 bytes <= left ? bytes : 0);
			}
		}
	}
	f[0] = FRAME_DATA, f[2] = f[3] = 255;
	assert_int_equal(frame_valid(f, 65535 + DATA_BYTES), 65535 + DATA_BYTES);
	assert_int_equal(frame_valid(f, 65535 + DATA_BYTES - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_short_frame_is_judged),
		test_rig(a_header_that_is_wrong_changes_nothing),
		test_rig(any_flipped_bit_is_seen),
		test_rig(whose_packet_is_it),
		test_rig(a_cut_frame_is_bad),
		test_rig(a_frame_beyond_the_packet_is_bad),
		test_rig(good_frames_before_a_bad_one),
		test_rig(padding_ends_the_frames),
		test_rig(a_close_in_the_middle),
		test_rig(a_packet_holds_few_frames),
		test_rig(a_peer_that_talks_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
