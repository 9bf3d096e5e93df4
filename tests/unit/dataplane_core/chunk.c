/* SPDX-License-Identifier: BSD-3-Clause */
/* CHUNK packets: whose they are, which number they have, and what is wrong with them. */
#include "fixtures/core_test.h"
#include "kernel/copy.h"

enum { CHUNKS = 40, LAST_BYTES = 100 };

/* A connection whose stream 0 expects chunks, the last one short. */
static struct peer sink_open(struct rig *r)
{
	struct peer peer = rig_connect(r, 1);
	struct record buffer = record_buffer(0, (CHUNKS - 1) * RIG_CHUNK + LAST_BYTES);
	struct record in = record_edge(COMMAND_IN, 0, 0, &peer, 0, CHUNKS);

	rig_command(r, &buffer);
	rig_command(r, &in);
	return peer;
}

static void send_chunk(struct rig *r, struct peer *peer, uint32_t chunk, uint32_t bytes)
{
	struct packet p;

	peer_chunk(r, peer, &p, record_handle(0), chunk, bytes, 7);
	peer_send(r, peer, &p);
}

/* As if the peer's numbers up to this one had been seen. */
static void seen_up_to(struct rig *r, struct peer *peer, uint64_t pn)
{
	memset(peer->c->rx.bitmap, 0, r->e->rx_window / 8);
	peer->c->rx.any = true;
	peer->c->rx.largest = pn;
	for (uint32_t k = 0; k < 4; k++)
		peer->c->rx.ack_history[k] = pn;
}

static void numbers_are_taken_for_the_nearest(void **state)
{
	static const struct {
		uint64_t largest, pn;
		const char *drop;
	} cases[] = {
		{0, 1, NULL},
		{0, 32767, NULL},
		{0, 32768, "drop_checksum"}, /* taken for a number below 0 */
		{0, 65535, "drop_checksum"},
		{65535, 65536, NULL},
		{65535, 65535 + 32767, NULL},
		{65535, 65535 + 32768, "drop_checksum"}, /* for one far below */
		{65536, 65535, NULL},			 /* late */
		{65536 + 5, 65535 - 5, NULL},
		{100000, 100000 - 150, NULL},
		{100000, 100000 - 300, "drop_old"}, /* beyond the ring of this rig */
		{100000, 100000 - 32768, "drop_old"},
		{100000, 100000 - 32769, "drop_checksum"},
		{UINT64_C(0xffffffff), UINT64_C(0x100000000), NULL},
		{UINT64_C(0x100000000), UINT64_C(0xffffffff), NULL},
		{UINT64_MAX - 1, UINT64_MAX, NULL},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct rig *r = *state;
		struct peer peer = sink_open(r);

		seen_up_to(r, &peer, cases[k].largest);
		peer.pn = cases[k].pn;
		r->before = r->counters;
		if (cases[k].drop)
			rig_freeze(r);
		send_chunk(r, &peer, 3, RIG_CHUNK);
		if (cases[k].drop) {
			rig_drops(r, cases[k].drop, 1, NULL);
			rig_same(r);
		} else {
			rig_drops(r, NULL);
			assert_int_equal(r->counters.rx_chunks, 1);
			assert_int_equal(peer.c->rx.largest,
					 numbers_max(cases[k].largest, cases[k].pn));
			assert_int_equal(ack_look(r->e, peer.c, cases[k].pn), ACK_DUPLICATE);
		}
		rig_free(r);
		*state = rig_new(NULL);
	}
}

/* The first packet of all, though none has been seen to compare with. */
static void the_first_number_of_all(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r);

	peer.c->rx.any = false;
	peer.c->rx.largest = 0;
	memset(peer.c->rx.bitmap, 0, r->e->rx_window / 8);
	peer.pn = 200;
	send_chunk(r, &peer, 0, RIG_CHUNK);
	rig_drops(r, NULL);
	assert_int_equal(peer.c->rx.largest, 200);
}

/* A sender of many chunks waits for no ACK of each; ACKs of other packets come sooner. */
static void a_chunk_waits_for_more(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r);
	struct packet p;

	send_chunk(r, &peer, 0, RIG_CHUNK);
	rig_drain(r); /* a grant, which takes the acknowledgement along */
	send_chunk(r, &peer, 1, RIG_CHUNK);
	for (uint32_t k = 1; k <= ACK_FEW_DELAYS; k++) {
		r->now_ns += r->config.ack_delay_ns;
		engine_tick(r->e, r->now_ns + (k == ACK_FEW_DELAYS ? WHEEL_SLOT_NS : 0));
		assert_int_equal(rig_take(r, &p), k == ACK_FEW_DELAYS);
	}
	assert_non_null(packet_frame(&p, FRAME_ACK));
	send_chunk(r, &peer, 2, RIG_CHUNK);
	peer_begin(r, &peer, &p);
	forge_grant(&p, 1, 1);
	peer_send(r, &peer, &p);
	assert_int_equal(peer.c->rx.ack_deadline_ns, r->now_ns + r->config.ack_delay_ns);
	rig_drain(r);
	r->now_ns += r->config.ack_delay_ns;
	engine_tick(r->e, r->now_ns + WHEEL_SLOT_NS);
	rig_drain(r);
	r->e->in_senders = ACK_LATER_SENDERS + 1; /* where many send their windows are small */
	send_chunk(r, &peer, 3, RIG_CHUNK);
	assert_int_equal(peer.c->rx.ack_deadline_ns, r->now_ns + r->config.ack_delay_ns);
	r->e->in_senders = 1;
}

static void a_second_copy_is_a_duplicate(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r);

	send_chunk(r, &peer, 3, RIG_CHUNK);
	rig_freeze(r);
	peer.pn--;
	send_chunk(r, &peer, 3, RIG_CHUNK);
	rig_drops(r, "drop_duplicate", 1, NULL);
	rig_same(r);
}

/* Of another life of either side, of a former connection, for another id of ours. [P2.6] */
static void another_life_fails_the_check(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r), wrong;

	rig_freeze(r);
	wrong = peer;
	wrong.incarnation++;
	send_chunk(r, &wrong, 3, RIG_CHUNK);
	wrong = peer;
	wrong.id += 0x10000;
	send_chunk(r, &wrong, 3, RIG_CHUNK);
	wrong = peer;
	wrong.conn += 0x10000;
	send_chunk(r, &wrong, 3, RIG_CHUNK);
	rig_drops(r, "drop_checksum", 3, NULL);
	r->config.incarnation++;
	send_chunk(r, &peer, 3, RIG_CHUNK);
	r->config.incarnation--;
	rig_drops(r, "drop_checksum", 1, NULL);
	rig_same(r);
}

static void every_flipped_bit_is_seen(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r);
	struct packet p;

	peer_chunk(r, &peer, &p, record_handle(0), CHUNKS - 1, LAST_BYTES, 7);
	forge_seal(&p);
	rig_sees_flips(r, &p, &peer.addr);
	rig_receive(r, &p, &peer.addr);
	assert_int_equal(r->counters.rx_chunks, 1);
}

static void flags_are_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r);
	struct packet p;

	rig_freeze(r);
	for (uint32_t flags = 1; flags < 256; flags++) {
		if (flags & CHUNK_FLAG_ACK)
			continue; /* short.c */
		peer_chunk(r, &peer, &p, record_handle(0), 3, RIG_CHUNK, 7);
		p.bytes[WIRE_AT_FLAGS] = (uint8_t)flags;
		peer_send(r, &peer, &p);
		rig_drops(r, "drop_flags", 1, NULL);
	}
	rig_same(r);
}

static void any_length_is_looked_at(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r);
	struct packet p;

	rig_freeze(r);
	for (uint32_t length = 1; length < CHUNK_BODY; length++) {
		peer_chunk(r, &peer, &p, record_handle(0), 3, RIG_CHUNK, 7);
		forge_seal(&p);
		p.length = length;
		rig_receive(r, &p, &peer.addr);
		rig_drops(r, "drop_truncated", 1, NULL);
	}
	rig_same(r);
	const uint32_t lengths[] = {0, 1, 2, 3, 4, 5, RIG_CHUNK - 1, RIG_CHUNK + 1, 1456};
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		send_chunk(r, &peer, 3, lengths[k]);
		rig_drops(r, "drop_chunk_size", 1, NULL);
	}
	send_chunk(r, &peer, CHUNKS - 1, RIG_CHUNK);
	rig_drops(r, "drop_chunk_size", 1, NULL);
	assert_int_equal(r->counters.rx_chunks, 0);
	assert_int_equal(peer.c->rx.ack_pending, 0); /* nothing of this is acknowledged */
	send_chunk(r, &peer, CHUNKS - 1, LAST_BYTES);
	rig_drops(r, NULL);
	assert_int_equal(r->counters.rx_chunks, 1);
	assert_int_equal(rig_data(r, 0)[(CHUNKS - 1) * RIG_CHUNK + LAST_BYTES - 1], 7);
	assert_int_equal(rig_data(r, 0)[(CHUNKS - 1) * RIG_CHUNK + LAST_BYTES], 0);
}

/* No connection with the source address: nobody can check it, and nobody is answered. */
static void strangers_are_not_answered(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r), wrong = peer;
	struct record open = {.op = COMMAND_PEER_OPEN, .peer = {.addr = peer_new(3).addr}};
	struct packet p;

	rig_command(r, &open);
	rig_drain(r);
	rig_freeze(r);
	wrong.addr.port++;
	send_chunk(r, &wrong, 3, RIG_CHUNK);
	rig_drops(r, "drop_address", 1, NULL);
	peer_chunk(r, &wrong, &p, handle_make(9, 7), 3, RIG_CHUNK, 7);
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_unknown_conn", 1, NULL);
	wrong.addr = open.peer.addr; /* that one is still opening */
	peer_send(r, &wrong, &p);
	rig_drops(r, "drop_state", 1, NULL);
	rig_same(r);
	assert_false(rig_take(r, &p));
}

/* A peer that names a stream which is not (any more) its own hears so, as with a frame. */
static void a_stream_of_nobody_is_reset(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r), other = rig_connect(r, 2);
	const uint32_t streams[] = {record_handle(0), handle_make(9, 7),
				    record_handle(0) + 0x10000};
	static const char *const drops[] = {"drop_unknown_stream", "drop_unknown_stream",
					    "drop_stale_stream"};
	struct packet p;

	for (size_t k = 0; k < 3; k++) {
		peer_chunk(r, &other, &p, streams[k], 3, RIG_CHUNK, 7);
		peer_send(r, &other, &p);
		rig_drops(r, drops[k], 1, NULL);
		assert_int_equal(other.c->rx.ack_pending, 1); /* it would be useless again */
		assert_true(rig_take(r, &p));
		const uint8_t *f = packet_frame(&p, FRAME_RESET_STREAM);
		assert_non_null(f);
		assert_int_equal(wire_get32(f + RESET_STREAM_AT_STREAM), streams[k]);
		assert_true(net_addr_equal(&p.to, &other.addr));
	}
	struct record drop = record_drop(RECORD_FLAG_IN, record_handle(0));
	rig_command(r, &drop);
	send_chunk(r, &peer, 3, RIG_CHUNK);
	rig_drops(r, "drop_unknown_stream", 1, NULL);
	assert_int_equal(r->counters.rx_chunks, 0);
}

/* The peer is to be sent an object of 90 chunks. */
static struct peer source_open(struct rig *r)
{
	struct peer peer = rig_connect(r, 1);
	struct record source = record_source(1, 90 * RIG_CHUNK, 90 * RIG_CHUNK);
	struct record out = record_edge(COMMAND_OUT, 1, 1, &peer, 0, 90);

	rig_command(r, &source);
	rig_command(r, &out);
	peer.c->cc.cwnd_bytes = 1 << 20;
	return peer;
}

/* A sender says the whole number when the receiver could take the low bits for another. */
static void a_number_beyond_reach_is_said_in_full(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r);
	struct packet p;

	for (uint64_t ahead = CHUNK_PN_REACH - 2; ahead < CHUNK_PN_REACH + 2; ahead++) {
		peer.c->tx.next_pn = peer.c->tx.oldest_pn = peer.c->tx.largest_acked + ahead;
		assert_true(rig_take(r, &p));
		assert_int_equal(wire_is_chunk(p.bytes), ahead < CHUNK_PN_REACH);
		assert_non_null(packet_frame(&p, FRAME_DATA));
	}
}

/* What asks for an answer is a packet that a peer who has forgotten us can answer. */
static void a_probe_goes_in_a_frame(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r);
	struct packet p;

	for (uint32_t k = 0; k < UNSCHEDULED_CHUNKS; k++) {
		peer.c->loss.probes_due = k == 4;
		assert_true(rig_take(r, &p));
		const uint8_t *f = packet_frame(&p, FRAME_DATA);
		assert_int_equal(wire_get32(f + DATA_AT_CHUNK), k);
		assert_int_equal(wire_is_chunk(p.bytes), k != 4);
		if (!wire_is_chunk(p.bytes))
			assert_int_equal(f[FRAME_AT_FLAGS], FRAME_FLAG_ASK);
	}
}

/* A chunk that asks for nothing is answered later, and so a probe of it waits longer. */
static void a_probe_waits_for_a_late_answer(void **state)
{
	struct rig *r = *state;
	struct peer peer = source_open(r);
	const uint64_t few_ns = (ACK_FEW_DELAYS - 1) * r->config.ack_delay_ns;
	const uint64_t wait_ns = (ACK_CHUNK_DELAYS - 1) * r->config.ack_delay_ns;
	struct packet p;

	for (uint32_t k = 0; k < 2; k++) {
		peer.c->loss.probes_due = k;
		assert_true(rig_take(r, &p));
		assert_int_equal(wire_is_chunk(p.bytes), k == 0);
		uint64_t probe_ns = loss_probe_ns(r->e, peer.c);
		peer.c->tx.last_later = false;
		assert_int_equal(probe_ns - loss_probe_ns(r->e, peer.c), k == 0 ? wait_ns : 0);
		peer.c->tx.last_later = true;
		uint64_t least_ns = probe_ns - (1 - k) * wait_ns;
		peer.c->cc.senders = ACK_FEW_SENDERS;
		assert_int_equal(least_ns + few_ns, loss_probe_ns(r->e, peer.c));
		peer.c->cc.senders++; /* it answers sooner where more send to it, */
		assert_int_equal(least_ns + wait_ns, loss_probe_ns(r->e, peer.c));
		peer.c->cc.senders = ACK_LATER_SENDERS;
		assert_int_equal(least_ns + wait_ns, loss_probe_ns(r->e, peer.c));
		peer.c->cc.senders++; /* and as soon as it does others where many do */
		assert_int_equal(least_ns, loss_probe_ns(r->e, peer.c));
		peer.c->cc.senders = 0;
	}
}

/* Large chunks of large objects that nobody here reads; a sum is read again by the next pass. */
static void what_goes_past_the_caches(void **state)
{
	struct rig *r = *state;
	struct peer peer = sink_open(r);
	struct record out = record_edge(COMMAND_OUT, 1, 0, &peer, 0, CHUNKS);
	uint8_t counts[1];

	struct buffer *b = buffer_find(r->e, record_handle(0));
	assert_false(combine_past_caches(b));
	b->size = COMBINE_PAST_SIZE;
	assert_false(combine_past_caches(b));
	b->chunk_bytes = COMBINE_PAST_CHUNK;
	assert_true(combine_past_caches(b));
	b->size--;
	assert_false(combine_past_caches(b));
	b->size++;
	b->counts = counts;
	assert_false(combine_past_caches(b));
	b->counts = NULL;
	b->chunk_bytes = RIG_CHUNK;
	rig_command(r, &out);
	b->chunk_bytes = COMBINE_PAST_CHUNK;
	assert_false(combine_past_caches(b));
}

/* Whatever lengths and addresses: nothing but the range is written. */
static void a_copy_past_the_caches(void **state)
{
	static uint8_t from[9100], to[9100];
	uint64_t seed = 1;

	(void)state;
	for (uint32_t k = 0; k < sizeof(from); k++)
		from[k] = (uint8_t)draw(&seed);
	for (uint32_t length = 0; length <= 9000; length += length < 300 ? 1 : 211) {
		uint32_t a = (uint32_t)draw(&seed) % 70, b = (uint32_t)draw(&seed) % 70;

		memset(to, 0xee, sizeof(to));
		copy_past_caches(to + b, from + a, length);
		assert_memory_equal(to + b, from + a, length);
		assert_true(to[b + length] == 0xee && (b == 0 || to[b - 1] == 0xee));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(numbers_are_taken_for_the_nearest),
		test_rig(the_first_number_of_all),
		test_rig(a_chunk_waits_for_more),
		test_rig(a_second_copy_is_a_duplicate),
		test_rig(another_life_fails_the_check),
		test_rig(every_flipped_bit_is_seen),
		test_rig(flags_are_refused),
		test_rig(any_length_is_looked_at),
		test_rig(strangers_are_not_answered),
		test_rig(a_stream_of_nobody_is_reset),
		test_rig(a_number_beyond_reach_is_said_in_full),
		test_rig(a_probe_goes_in_a_frame),
		test_rig(a_probe_waits_for_a_late_answer),
		test_rig(what_goes_past_the_caches),
		cmocka_unit_test(a_copy_past_the_caches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
