/* SPDX-License-Identifier: BSD-3-Clause */
/* Short acknowledgements, with a chunk and alone: what they say, when, and what is wrong with them.
 */
#include "fixtures/core_test.h"

enum { CHUNKS = 90 };

/* The peer is to be sent an object, and the first `sent` chunks have left. */
static struct peer source_open(struct rig *r, uint32_t sent)
{
	struct peer peer = rig_connect(r, 1);
	struct record source = record_source(1, CHUNKS * RIG_CHUNK, CHUNKS * RIG_CHUNK);
	struct record out = record_edge(COMMAND_OUT, 1, 1, &peer, 0, CHUNKS);
	struct packet p;

	rig_command(r, &source);
	rig_command(r, &out);
	peer.c->cc.cwnd_bytes = 1 << 20;
	out_edge_find(r->e, record_handle(1))->credit = CHUNKS;
	for (uint32_t k = 0; k < sent; k++)
		assert_true(rig_take(r, &p));
	return peer;
}

/* Packets of the peer with these numbers behind its next one, which ask for an acknowledgement. */
static void hear(struct rig *r, struct peer *peer, uint64_t more)
{
	struct packet p;

	peer->pn += more;
	peer_begin(r, peer, &p);
	forge_grant(&p, 1, 1);
	peer_send(r, peer, &p);
}

/* Every bit of it, whatever has come and wherever a word of the ring begins. [P6.5] */
static void it_says_what_has_come(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint8_t brief[SHORT_BYTES];
	uint64_t seed = 1;

	for (uint32_t k = 0; k < 2000; k++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		hear(r, &peer, seed >> 62);
		if (seed >> 32 & 3)
			continue;
		uint64_t back =
			peer.c->rx.largest - peer.c->rx.ack_history[peer.c->rx.ack_sent % 4];
		assert_int_equal(ack_short(peer.c), back < 64);
		ack_write_short(r->e, peer.c, brief);
		assert_int_equal(wire_get16(brief + SHORT_AT_LARGEST),
				 peer.c->rx.largest & UINT16_MAX);
		for (uint64_t i = 0; i < 64 && i <= peer.c->rx.largest; i++)
			assert_int_equal(wire_get64(brief + SHORT_AT_BITMAP) >> (63 - i) & 1,
					 ack_look(r->e, peer.c, peer.c->rx.largest - i) ==
						 ACK_DUPLICATE);
		assert_int_equal(peer.c->rx.ack_pending, 0);
		assert_false(ack_short(peer.c));
	}
}

static void it_reaches_as_far_as_the_frame(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	for (uint64_t back = 62; back < 66; back++) {
		hear(r, &peer, 0);
		for (uint32_t k = 0; k < 4; k++)
			peer.c->rx.ack_history[k] = peer.c->rx.largest - back;
		assert_int_equal(ack_short(peer.c), back < 64);
	}
	peer.c->rx.ack_history[peer.c->rx.ack_sent % 4] = peer.c->rx.largest;
	assert_true(ack_short(peer.c));
	peer.c->rx.ecn_changed = true; /* goes with the frame only */
	assert_false(ack_short(peer.c));
}

/* With a chunk of ours, unless that asks; alone when there is none. */
static void it_goes_with_a_chunk_or_alone(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 3);
	struct packet p;

	hear(r, &peer, 0);
	assert_true(rig_take(r, &p));
	assert_true(wire_is_chunk(p.bytes));
	assert_int_equal(p.bytes[WIRE_AT_FLAGS], CHUNK_FLAG_ACK);
	assert_int_equal(p.length, CHUNK_BODY + SHORT_BYTES + RIG_CHUNK);
	assert_int_equal(wire_get32(p.bytes + CHUNK_AT_CHUNK), 3);
	assert_memory_equal(p.bytes + CHUNK_BODY + SHORT_BYTES, rig_data(r, 1) + 3 * RIG_CHUNK,
			    RIG_CHUNK);
	assert_int_equal(p.ecn, ENGINE_ECN_ECT0);
	assert_true(rig_take(r, &p));
	assert_int_equal(p.bytes[WIRE_AT_FLAGS], 0); /* it has been said */
	hear(r, &peer, 0);
	peer.c->loss.probes_due = 1;
	assert_true(rig_take(r, &p));
	assert_false(wire_is_short(p.bytes));
	assert_non_null(packet_frame(&p, FRAME_ACK));
	peer.c->loss.probes_due = 0;
	peer.c->cc.cwnd_bytes = 1;
	hear(r, &peer, 1); /* a gap */
	uint64_t inflight = peer.c->tx.inflight_pkts;
	assert_true(rig_take(r, &p));
	assert_true(wire_is_short(p.bytes) && !wire_is_chunk(p.bytes));
	assert_int_equal(p.length, WIRE_ACK_BYTES);
	assert_int_equal(p.ecn, ENGINE_ECN_NOT);
	assert_int_equal(peer.c->tx.inflight_pkts, inflight);
	assert_false(rig_take(r, &p));
}

/* On IPv6 a chunk of 1408 bytes leaves no room for a frame: the short form goes with it all the
 * same, when it is due as well. Beside a chunk that asks it does not, and goes alone behind that.
 */
static void it_fits_where_a_frame_does_not(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 3);
	struct packet p;

	peer.c->mtu -= ENGINE_OVERHEAD_V6 - ENGINE_OVERHEAD_V4;
	hear(r, &peer, 1); /* a gap: due at once */
	assert_true(ack_due(r->e, peer.c));
	assert_true(rig_take(r, &p));
	assert_true(wire_is_chunk(p.bytes));
	assert_int_equal(p.bytes[WIRE_AT_FLAGS], CHUNK_FLAG_ACK);
	hear(r, &peer, 1);
	peer.c->loss.probes_due = 1;
	assert_true(rig_take(r, &p));
	assert_non_null(packet_frame(&p, FRAME_DATA));
	assert_null(packet_frame(&p, FRAME_ACK));
	peer.c->cc.cwnd_bytes = 1;
	assert_true(rig_take(r, &p));
	assert_int_equal(p.length, WIRE_ACK_BYTES);
	assert_false(rig_take(r, &p));
	/* nor can it be short beyond reach: then it goes first */
	peer.c->cc.cwnd_bytes = 1 << 20;
	hear(r, &peer, 1);
	peer.c->tx.largest_acked = peer.c->tx.next_pn - CHUNK_PN_REACH;
	assert_true(rig_take(r, &p));
	assert_false(wire_is_short(p.bytes));
	assert_non_null(packet_frame(&p, FRAME_ACK));
	assert_null(packet_frame(&p, FRAME_DATA));
}

static void a_number_beyond_reach_goes_in_a_frame(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	for (uint64_t ahead = CHUNK_PN_REACH - 2; ahead < CHUNK_PN_REACH + 2; ahead++) {
		hear(r, &peer, 1);
		peer.c->tx.next_pn = peer.c->tx.oldest_pn = peer.c->tx.largest_acked + ahead;
		assert_true(rig_take(r, &p));
		assert_int_equal(wire_is_short(p.bytes), ahead < CHUNK_PN_REACH);
		assert_non_null(packet_frame(&p, FRAME_ACK));
	}
}

/* Each bit acknowledges its number and no other; the packet alone asks for nothing. */
static void each_bit_is_a_number(void **state)
{
	for (uint64_t first = 0; first < 130; first++) {
		struct rig *r = *state;
		struct peer peer = source_open(r, 0);
		struct packet p;

		peer.c->tx.next_pn = peer.c->tx.oldest_pn = peer.c->tx.largest_acked = 1000 + first;
		for (uint32_t k = 0; k < 60; k++)
			assert_true(rig_take(r, &p));
		uint64_t largest = peer.c->tx.next_pn - 1 - first % 7;
		uint64_t bits = UINT64_C(0x8000000000000005) << (first % 3) |
				UINT64_C(1) << (63 - first % 50) | UINT64_C(1) << 63;
		peer_short(r, &peer, &p, largest, bits);
		peer_send(r, &peer, &p);
		for (uint64_t pn = 1000 + first; pn < peer.c->tx.next_pn; pn++) {
			bool said = pn <= largest && bits >> (63 - (largest - pn)) & 1;
			assert_int_equal(sent_outstanding(r->e, peer.c, pn), !said);
		}
		assert_int_equal(peer.c->tx.largest_acked, largest);
		assert_int_equal(peer.c->rx.ack_pending, 0);
		rig_drops(r, NULL);
		rig_free(r);
		*state = rig_new(NULL);
	}
}

/* Its time counts as that of a frame does. */
static void the_time_is_heard(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 5);
	struct packet p;

	r->now_ns += 3000000;
	peer_short(r, &peer, &p, peer.c->tx.next_pn - 1, UINT64_C(1) << 63);
	wire_put16(p.bytes + WIRE_ACK_AT_SHORT + SHORT_AT_DELAY, 250);
	wire_put32(p.bytes + WIRE_ACK_AT_SHORT + SHORT_AT_ARRIVAL, 123456);
	peer_send(r, &peer, &p);
	assert_int_equal(peer.c->loss.latest_rtt_ns, 2000000);
	assert_int_equal(peer.c->loss.latest_arrival_us, 123456);
}

/* One with a chunk: both are taken, and the chunk is answered. */
static void a_chunk_with_one_is_taken(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 5);
	struct packet p;

	rig_sink(r, &peer, 10);
	peer_chunk_ack(r, &peer, &p, record_handle(0), 3, RIG_CHUNK, peer.c->tx.next_pn - 1,
		       UINT64_C(1) << 63);
	peer_send(r, &peer, &p);
	rig_drops(r, NULL);
	assert_int_equal(r->counters.rx_chunks, 1);
	assert_int_equal(rig_data(r, 0)[3 * RIG_CHUNK], 7);
	assert_int_equal(rig_data(r, 0)[4 * RIG_CHUNK - 1], 7);
	assert_int_equal(peer.c->rx.ack_pending, 1);
	assert_int_equal(peer.c->tx.inflight_pkts, 4);
	/* what is refused in it is not acknowledged, be it the one or the other */
	peer_chunk_ack(r, &peer, &p, record_handle(0), 4, RIG_CHUNK - 1, peer.c->tx.next_pn - 1,
		       UINT64_C(1) << 62);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_chunk_size", 1, NULL);
	assert_int_equal(peer.c->tx.inflight_pkts, 3);
	peer_chunk_ack(r, &peer, &p, record_handle(0), 5, RIG_CHUNK, peer.c->tx.next_pn, 1);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_checksum", 1, NULL); /* never sent: taken for one of before */
	assert_int_equal(peer.c->rx.ack_pending, 1);
}

/* One that the path has held back for 2^16 packets speaks of others now, and changes nothing. */
static void one_of_long_ago_changes_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 0);
	struct packet p;

	for (uint64_t back = 65534; back < 65540; back++) {
		peer.c->tx.next_pn = peer.c->tx.oldest_pn = peer.c->tx.largest_acked = 200000;
		memset(peer.c->tx.outstanding, 0, r->e->sent_slots / 8);
		peer.c->tx.inflight_pkts = 0;
		peer.c->tx.inflight_bytes = 0;
		while (peer.c->tx.next_pn < 200010)
			assert_true(rig_take(r, &p));
		rig_freeze(r);
		peer_short(r, &peer, &p, 200009 - back, UINT64_MAX);
		peer_send(r, &peer, &p);
		if (back < 65536) { /* long past, but the right one */
			rig_drops(r, NULL);
		} else {
			rig_drops(r, "drop_checksum", 1, NULL);
			rig_same(r);
		}
		assert_int_equal(peer.c->tx.inflight_pkts, 10);
	}
}

/* Numbers below 0, and any when none was sent. */
static void what_was_never_sent_is_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 0);
	struct packet p;

	peer.c->tx.next_pn = peer.c->tx.oldest_pn = 0;
	memset(peer.c->tx.outstanding, 0, r->e->sent_slots / 8);
	peer_short(r, &peer, &p, UINT64_MAX, UINT64_C(1) << 63);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_ack_unsent", 1, NULL);
	for (uint32_t k = 0; k < 64; k++)
		assert_true(rig_take(r, &p));
	for (uint64_t largest = 0; largest < 5; largest++) {
		peer_short(r, &peer, &p, largest, UINT64_MAX << (62 - largest));
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_ack_unsent", 1, NULL);
		assert_int_equal(peer.c->tx.inflight_pkts, 64);
	}
	peer_short(r, &peer, &p, 4, UINT64_MAX << 59);
	peer_send(r, &peer, &p);
	rig_drops(r, NULL);
	assert_int_equal(peer.c->tx.inflight_pkts, 59);
}

static void every_flipped_bit_is_seen(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 5);
	struct packet p;

	rig_sink(r, &peer, 10);
	for (int chunk = 0; chunk < 2; chunk++) {
		if (chunk)
			peer_chunk_ack(r, &peer, &p, record_handle(0), 3, RIG_CHUNK,
				       peer.c->tx.next_pn - 1, UINT64_C(1) << 62);
		else
			peer_short(r, &peer, &p, peer.c->tx.next_pn - 1, UINT64_C(1) << 63);
		forge_seal(&p);
		rig_sees_flips(r, &p, &peer.addr);
		rig_receive(r, &p, &peer.addr);
		assert_int_equal(peer.c->tx.inflight_pkts, 4 - chunk);
		rig_freeze(r);
		rig_receive(r, &p, &peer.addr);
		rig_drops(r, "drop_duplicate", 1, NULL);
		rig_same(r);
	}
}

/* [P2.7] */
static void flags_and_lengths_are_looked_at(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 5);
	struct packet p;

	rig_sink(r, &peer, 10);
	rig_freeze(r);
	for (uint32_t flags = 1; flags < 256; flags++) {
		peer_short(r, &peer, &p, peer.c->tx.next_pn - 1, UINT64_C(1) << 63);
		p.bytes[WIRE_AT_FLAGS] = (uint8_t)flags;
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_flags", 1, NULL);
		if (!(flags & CHUNK_FLAG_ACK) || flags == CHUNK_FLAG_ACK)
			continue;
		peer_chunk_ack(r, &peer, &p, record_handle(0), 3, RIG_CHUNK, peer.c->tx.next_pn - 1,
			       UINT64_C(1) << 63);
		p.bytes[WIRE_AT_FLAGS] = (uint8_t)flags;
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_flags", 1, NULL);
	}
	for (uint32_t length = 1; length < CHUNK_BODY + SHORT_BYTES; length++) {
		peer_chunk_ack(r, &peer, &p, record_handle(0), 3, RIG_CHUNK, peer.c->tx.next_pn - 1,
			       UINT64_C(1) << 63);
		forge_seal(&p);
		p.length = length;
		rig_receive(r, &p, &peer.addr);
		rig_drops(r, "drop_truncated", 1, NULL);
		peer_short(r, &peer, &p, peer.c->tx.next_pn - 1, UINT64_C(1) << 63);
		p.length = length;
		forge_seal(&p);
		if (length == WIRE_ACK_BYTES)
			continue;
		rig_receive(r, &p, &peer.addr);
		rig_drops(r, length < WIRE_ACK_BYTES ? "drop_truncated" : "drop_frame", 1, NULL);
	}
	rig_same(r);
}

/* Of another life or from a stranger: nobody can check it, and nobody is answered. */
static void strangers_are_not_answered(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r, 5), wrong = peer;
	struct record open = {.op = COMMAND_PEER_OPEN, .peer = {.addr = peer_new(3).addr}};
	struct packet p;

	rig_command(r, &open);
	rig_drain(r);
	rig_freeze(r);
	wrong.incarnation++;
	peer_short(r, &wrong, &p, peer.c->tx.next_pn - 1, UINT64_C(1) << 63);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_checksum", 1, NULL);
	wrong = peer;
	wrong.id += 0x10000;
	peer_short(r, &wrong, &p, peer.c->tx.next_pn - 1, UINT64_C(1) << 63);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_checksum", 1, NULL);
	wrong = peer;
	wrong.addr.port++;
	peer_short(r, &wrong, &p, peer.c->tx.next_pn - 1, UINT64_C(1) << 63);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_unknown_conn", 1, NULL);
	wrong.addr = open.peer.addr; /* that one is still opening */
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_state", 1, NULL);
	rig_same(r);
	assert_false(rig_take(r, &p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(it_says_what_has_come),
		test_rig(it_reaches_as_far_as_the_frame),
		test_rig(it_goes_with_a_chunk_or_alone),
		test_rig(it_fits_where_a_frame_does_not),
		test_rig(a_number_beyond_reach_goes_in_a_frame),
		test_rig(each_bit_is_a_number),
		test_rig(the_time_is_heard),
		test_rig(a_chunk_with_one_is_taken),
		test_rig(one_of_long_ago_changes_nothing),
		test_rig(what_was_never_sent_is_refused),
		test_rig(every_flipped_bit_is_seen),
		test_rig(flags_and_lengths_are_looked_at),
		test_rig(strangers_are_not_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
