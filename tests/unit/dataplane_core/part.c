/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks in parts: how they are put together and what is refused, how they leave and leave again.
 */
#include "fixtures/core_test.h"
#include "plan/part.h"

enum {
	CHUNK = 8896,
	CHUNKS = 100,
	LAST_BYTES = 3000, /* of the last chunk */
	PARTS = 8,
	TAIL = CHUNK - (PARTS - 1) * PART_BYTES,
};

static const uint64_t object_bytes = (uint64_t)(CHUNKS - 1) * CHUNK + LAST_BYTES;

static void jumbo_frames(struct engine_config *f)
{
	f->mtu = 9000;
}

static int jumbo_setup(void **state)
{
	*state = rig_new(jumbo_frames);
	return 0;
}

/* ---- the receiver ------------------------------------------------------------------------- */

static struct in_edge *sink_open(struct rig *r, const struct peer *peer, uint32_t index,
				 uint32_t buffer)
{
	struct record b = record_buffer(buffer, object_bytes);
	struct record in = record_edge(COMMAND_IN, index, buffer, peer, 0, CHUNKS);

	b.buffer.chunk_bytes = CHUNK;
	if (!buffer_find(r->e, b.buffer.buffer))
		rig_command(r, &b);
	rig_command(r, &in);
	in_edge_find(r->e, record_handle(index))->granted = CHUNKS;
	return in_edge_find(r->e, record_handle(index));
}

/* Gives parts first to first + count - 1 of a chunk; are they acknowledged? */
static bool give(struct rig *r, struct peer *peer, uint32_t index, uint32_t chunk, uint32_t first,
		 uint32_t count)
{
	uint32_t whole = chunk == CHUNKS - 1 ? LAST_BYTES : CHUNK, at = first * PART_BYTES;
	uint32_t bytes = (uint32_t)numbers_min(count * PART_BYTES, whole - at);
	struct packet p;

	peer_begin(r, peer, &p);
	uint64_t pn = peer->pn - 1;
	forge_part(&p, record_handle(index), chunk, at, bytes, (uint8_t)(16 * chunk + first + 1));
	peer_send(r, peer, &p);
	return ack_look(r->e, peer->c, pn) == ACK_DUPLICATE;
}

static void chunk_is_whole(struct rig *r, uint32_t chunk)
{
	const uint8_t *at = rig_data(r, 0) + (size_t)chunk * CHUNK;
	uint32_t whole = chunk == CHUNKS - 1 ? LAST_BYTES : CHUNK;

	for (uint32_t k = 0; k < whole; k++)
		assert_int_equal(at[k], (uint8_t)(16 * chunk + k / PART_BYTES + 1));
}

/* In any order, each of them more than once. */
static void parts_make_a_chunk(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint64_t seed = 5;

	struct in_edge *i = sink_open(r, &peer, 0, 0);
	for (uint32_t k = 0; k < 20; k++) {
		uint32_t chunk = k == 0 ? CHUNKS - 1 : k, parts = k == 0 ? 3 : PARTS;
		uint32_t got = 0, all = (1u << parts) - 1;
		while (got != all) {
			uint32_t first = (uint32_t)draw_below(&seed, parts);
			assert_int_equal(r->counters.rx_chunks, k);
			assert_true(give(r, &peer, 0, chunk, first, 1));
			got |= 1u << first;
			assert_int_equal(rig_data(r, 0)[(size_t)chunk * CHUNK] != 0, got == all);
		}
		chunk_is_whole(r, chunk);
		assert_int_equal(r->counters.rx_chunks, k + 1);
		assert_int_equal(r->e->parts.used, 0);
	}
	assert_int_equal(i->received, 20);
	assert_int_equal(i->taken, 20);
	assert_int_equal(r->counters.rx_chunk_duplicates, 0);
	rig_drops(r, NULL);
}

/* Several in one frame, and copies behind the end. */
static void parts_together_and_late_copies(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	struct in_edge *i = sink_open(r, &peer, 0, 0);
	assert_true(give(r, &peer, 0, 3, 5, 3));
	assert_true(give(r, &peer, 0, 3, 0, 5));
	assert_int_equal(r->counters.rx_chunks, 1);
	assert_int_equal(rig_data(r, 0)[3 * CHUNK], 16 * 3 + 1);
	assert_int_equal(rig_data(r, 0)[3 * CHUNK + 5 * PART_BYTES], 16 * 3 + 6);
	assert_int_equal(rig_data(r, 0)[4 * CHUNK - 1], 16 * 3 + 6);
	for (uint32_t k = 0; k < PARTS; k++)
		assert_true(give(r, &peer, 0, 3, k, 1));
	assert_int_equal(r->e->parts.used, 0); /* nothing waits for more of it */
	assert_int_equal(rig_data(r, 0)[3 * CHUNK + PART_BYTES], 16 * 3 + 1);
	assert_int_equal(i->taken, 1);
	assert_int_equal(i->received, 2); /* as after one copy of the chunk */
	assert_int_equal(r->counters.rx_chunk_duplicates, 1);
	rig_drops(r, NULL);
}

/* Another stream brings the chunk between its parts: it counts once for each. */
static void another_stream_is_faster(void **state)
{
	struct rig *r = *state;
	struct peer one = rig_connect(r, 1), two = rig_connect(r, 2);

	struct in_edge *i = sink_open(r, &one, 0, 0), *j = sink_open(r, &two, 1, 0);
	assert_true(give(r, &one, 0, 2, 7, 1));
	for (uint32_t k = 0; k < PARTS; k++)
		assert_true(give(r, &two, 1, 2, k, 1));
	for (uint32_t k = 0; k < PARTS - 1; k++)
		assert_true(give(r, &one, 0, 2, k, 1));
	for (uint32_t k = 0; k < PARTS; k++)
		assert_true(give(r, &one, 0, 5, k, 1));
	for (uint32_t k = 0; k < PARTS; k++)
		assert_true(give(r, &two, 1, 5, k, 1));
	chunk_is_whole(r, 2);
	chunk_is_whole(r, 5);
	assert_int_equal(i->received, 2);
	assert_int_equal(j->received, 2);
	assert_int_equal(i->taken, 1);
	assert_int_equal(j->taken, 1);
	assert_int_equal(r->e->parts.used, 0);
	rig_drops(r, NULL);
}

static void refuse_part(struct rig *r, struct peer *peer, uint32_t chunk, uint32_t offset,
			uint32_t bytes, const char *drop)
{
	struct packet p;

	peer_begin(r, peer, &p);
	uint64_t pn = peer->pn - 1;
	forge_part(&p, record_handle(0), chunk, offset, bytes, 0xee);
	peer_send(r, peer, &p);
	rig_drops(r, drop, 1, NULL);
	assert_int_not_equal(ack_look(r->e, peer->c, pn), ACK_DUPLICATE);
}

/* [P9.1] */
static void what_is_no_part_is_refused(void **state)
{
	static const struct {
		uint32_t chunk, offset, bytes;
	} bad[] = {
		{0, 1, PART_BYTES},
		{0, PART_BYTES / 2, PART_BYTES},
		{0, 0, 0},
		{0, 0, 1},
		{0, 0, PART_BYTES - 1},
		{0, 0, PART_BYTES + 1},
		{0, 0, CHUNK - 1},
		{0, 7 * PART_BYTES, TAIL - 1},
		{0, 7 * PART_BYTES, TAIL + 1},
		{0, 7 * PART_BYTES, PART_BYTES},
		{0, 8 * PART_BYTES, 1},
		{0, 56 * PART_BYTES, PART_BYTES},
		{CHUNKS - 1, 2 * PART_BYTES, PART_BYTES},
		{CHUNKS - 1, 3 * PART_BYTES, PART_BYTES},
	};
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	sink_open(r, &peer, 0, 0);
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
		refuse_part(r, &peer, bad[k].chunk, bad[k].offset, bad[k].bytes, "drop_chunk_size");
	refuse_part(r, &peer, CHUNKS, 0, PART_BYTES, "drop_chunk_range");
	refuse_part(r, &peer, UINT32_MAX, 0, PART_BYTES, "drop_chunk_range");
	assert_int_equal(r->e->parts.used, 0);
	/* longer than its packet */
	peer_begin(r, &peer, &p);
	forge_part(&p, record_handle(0), 0, 0, PART_BYTES, 1);
	p.length--;
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_frame", 1, NULL);
	/* of no stream: taken, and answered */
	peer_begin(r, &peer, &p);
	forge_part(&p, record_handle(3), 0, 0, PART_BYTES, 1);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_unknown_stream", 1, NULL);
	assert_int_equal(peer.c->resets_count, 1);
}

/* The last part waits for the credit, the others stay. */
static void credit_holds_for_the_whole(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	struct in_edge *i = sink_open(r, &peer, 0, 0);
	i->granted = 0;
	for (uint32_t k = 0; k < PARTS; k++)
		assert_int_equal(give(r, &peer, 0, 1, k, 1), k + 1 < PARTS);
	rig_drops(r, "drop_over_credit", 1, NULL);
	assert_false(give(r, &peer, 0, 1, 7, 1));
	rig_drops(r, "drop_over_credit", 1, NULL);
	i->granted = 1;
	assert_true(give(r, &peer, 0, 1, 7, 1));
	chunk_is_whole(r, 1);
	assert_int_equal(r->counters.rx_parts, PARTS);
}

/* One connection leaves room for others, and a stream that ends gives its room back. */
static void room_is_bounded(void **state)
{
	struct rig *r = *state;
	struct peer peer[3] = {rig_connect(r, 1), rig_connect(r, 2), rig_connect(r, 3)};
	struct record drop = record_drop(RECORD_FLAG_IN, record_handle(0));

	for (uint32_t k = 0; k < 3; k++)
		sink_open(r, &peer[k], k, k);
	for (uint32_t k = 0; k < PART_SLOTS - PART_SLOTS_KEPT; k++)
		assert_true(give(r, &peer[0], 0, k, 0, 1));
	assert_false(give(r, &peer[0], 0, 90, 0, 1));
	rig_drops(r, "drop_part_full", 1, NULL);
	assert_true(give(r, &peer[0], 0, 0, 1, 1)); /* of one that has room */
	assert_true(give(r, &peer[1], 1, 90, 0, 1));
	assert_false(give(r, &peer[1], 1, 91, 0, 1));
	assert_true(give(r, &peer[2], 2, 90, 0, 1));
	rig_drops(r, "drop_part_full", 1, NULL);
	assert_true(give(r, &peer[0], 0, 0, 2, 6)); /* complete: room for another one */
	assert_int_equal(r->counters.rx_chunks, 1);
	rig_command(r, &drop);
	assert_true(give(r, &peer[1], 1, 91, 0, 1));
	assert_int_equal(__builtin_popcountll(r->e->parts.used), 3);
	rig_drops(r, NULL);
}

/* Handles come again: what a stream left behind is nothing of the next one of this name. */
static void a_stream_takes_its_parts_along(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1), other = rig_connect(r, 2);
	struct record drop = record_drop(RECORD_FLAG_IN, record_handle(0));

	sink_open(r, &peer, 0, 0);
	sink_open(r, &other, 1, 1);
	assert_true(give(r, &peer, 0, 1, 0, 4));
	assert_true(give(r, &other, 1, 1, 0, 4));
	rig_command(r, &drop);
	assert_int_equal(__builtin_popcountll(r->e->parts.used), 1);
	sink_open(r, &peer, 0, 0);
	for (uint32_t k = PARTS; k-- > 0;) {
		assert_int_equal(r->counters.rx_chunks, 0);
		assert_true(give(r, &peer, 0, 1, k, 1));
	}
	chunk_is_whole(r, 1);
	conn_close(r->e, other.c, REASON_CLOSED);
	assert_int_equal(r->e->parts.used, 0);
	rig_drops(r, NULL);
}

/* ---- the sender --------------------------------------------------------------------------- */

static struct out_edge *source_open(struct rig *r, const struct peer *peer, uint32_t index,
				    uint16_t mtu)
{
	struct record source = record_source(index, object_bytes, object_bytes);
	struct record out = record_edge(COMMAND_OUT, index, index, peer, 0, CHUNKS);
	uint8_t *data = rig_data(r, index);

	for (uint64_t k = 0; k < object_bytes; k++)
		data[k] = (uint8_t)(k / 64);
	source.buffer.chunk_bytes = CHUNK;
	rig_command(r, &source);
	rig_command(r, &out);
	peer->c->cc.cwnd_bytes = 16 << 20;
	peer->c->peer_mtu = 9000;
	peer->c->mtu = mtu;
	struct out_edge *o = out_edge_find(r->e, record_handle(index));
	o->credit = CHUNKS;
	return o;
}

/* The next packet beside probes of the path brings these parts. Returns its number. */
static uint64_t parts_leave(struct rig *r, uint32_t index, uint32_t chunk, uint32_t first,
			    uint32_t bytes)
{
	struct packet p;

	do {
		if (!rig_take(r, &p)) { /* its pace */
			rig_pass(r, 200000);
			assert_true(rig_take(r, &p));
		}
	} while (packet_frame(&p, FRAME_PING));
	const uint8_t *f = packet_frame(&p, FRAME_PART);
	assert_non_null(f);
	assert_int_equal(wire_get32(f + DATA_AT_STREAM), record_handle(index));
	assert_int_equal(wire_get32(f + DATA_AT_CHUNK), chunk);
	assert_int_equal(wire_get16(f + PART_AT_OFFSET), first * PART_BYTES);
	assert_int_equal(wire_get16(f + DATA_AT_LENGTH), bytes);
	assert_memory_equal(f + PART_FRAME_BYTES,
			    rig_data(r, index) + (size_t)chunk * CHUNK + first * PART_BYTES, bytes);
	return p.pn;
}

/* As many as fit, beside an acknowledgement; one chunk after another, edges in turn. */
static void parts_fill_packets(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint16_t room = ENGINE_OVERHEAD_V4 + WIRE_BODY + PART_FRAME_BYTES + 32;

	source_open(r, &peer, 0, MTU_BASE);
	source_open(r, &peer, 1, MTU_BASE);
	for (uint32_t k = 0; k < PARTS; k++)
		peer_ack(r, &peer, parts_leave(r, 0, 0, k, k + 1 < PARTS ? PART_BYTES : TAIL));
	peer.c->mtu = (uint16_t)(room + 3 * PART_BYTES);
	parts_leave(r, 1, 0, 0, 3 * PART_BYTES);
	parts_leave(r, 1, 0, 3, 3 * PART_BYTES);
	parts_leave(r, 1, 0, 6, PART_BYTES + TAIL);
	peer.c->mtu--;
	parts_leave(r, 0, 1, 0, 2 * PART_BYTES);
	peer.c->mtu = 9000; /* what has begun so ends so */
	parts_leave(r, 0, 1, 2, CHUNK - 2 * PART_BYTES);
	struct packet p;
	assert_true(rig_take(r, &p));
	assert_int_equal(wire_get32(packet_frame(&p, FRAME_DATA) + DATA_AT_STREAM),
			 record_handle(1));
	assert_int_equal(r->counters.tx_parts, PARTS + 3 + 2);
	assert_int_equal(r->counters.tx_chunks, 4);
}

/* Before the first search has ended nothing is cut. */
static void the_first_search_is_waited_for(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	source_open(r, &peer, 0, MTU_BASE);
	peer.c->pmtu.searching = true;
	assert_false(rig_take(r, &p));
	peer.c->pmtu.narrow = true;
	conn_wake(r->e, peer.c);
	parts_leave(r, 0, 0, 0, PART_BYTES);
}

/* A chunk counts when all its parts are acknowledged, the edge ends with the last one. */
static void parts_are_acknowledged(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct out_edge *o = source_open(r, &peer, 0, 2600);
	uint32_t packets = 0;
	struct packet p;

	while (o->acked_count < CHUNKS) {
		assert_in_range(++packets, 1, 4 * CHUNKS);
		assert_true(rig_take(r, &p));
		r->now_ns += 20000;
		peer_ack(r, &peer, p.pn);
		assert_int_equal(o->acked_count, packets / 4 + (packets == 4 * CHUNKS - 2));
	}
	assert_int_equal(packets, 4 * CHUNKS - 2); /* the last chunk takes two */
	assert_int_equal(rig_expect(r, EVENT_OUT_DONE).edge.chunks, CHUNKS);
	rig_silent(r);
}

/* Packets in flight when the path becomes narrow: those with a chunk leave again in parts, those
 * with parts in fewer at a time. A late acknowledgement of such a packet counts nothing twice. */
static void what_was_lost_leaves_in_parts(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct out_edge *o = source_open(r, &peer, 0, 5000);
	struct packet p;

	uint64_t first = parts_leave(r, 0, 0, 0, 4 * PART_BYTES);
	uint64_t second = parts_leave(r, 0, 0, 4, CHUNK - 4 * PART_BYTES);
	peer.c->mtu = 9000;
	assert_true(rig_take(r, &p));
	assert_int_equal(wire_get32(packet_frame(&p, FRAME_DATA) + DATA_AT_CHUNK), 1);
	uint64_t third = p.pn;
	assert_int_equal(o->sent_count, 2);
	r->now_ns += 1000000;
	engine_tick(r->e, r->now_ns);
	sent_lose(r->e, peer.c, first);
	sent_lose(r->e, peer.c, second);
	sent_lose(r->e, peer.c, third);
	peer.c->mtu = 2600;
	peer.c->pmtu.narrow = true;
	uint64_t a = parts_leave(r, 0, 0, 0, 2 * PART_BYTES);
	peer_ack(r, &peer, first); /* comes after all, too late to help */
	peer.c->mtu = 2600;
	assert_int_equal(o->parts_open, PARTS);
	uint64_t b = parts_leave(r, 0, 0, 2, 2 * PART_BYTES);
	peer_ack(r, &peer, second); /* in time */
	assert_int_equal(o->parts_open, 4);
	assert_int_equal(o->sent_count, 2);
	peer_ack(r, &peer, a);
	assert_int_equal(o->acked_count, 0);
	peer_ack(r, &peer, b);
	assert_int_equal(o->acked_count, 1);
	peer.c->mtu = 2600;
	uint64_t c = parts_leave(r, 0, 1, 0, 2 * PART_BYTES);
	assert_int_equal(o->sent_count, 2);
	peer_ack(r, &peer, c);
	assert_int_equal(o->acked_count, 1);
	peer_ack(r, &peer, third); /* sent again already: tells nothing */
	assert_int_equal(o->acked_count, 1);
	assert_int_equal(peer.c->tx.lost_count, 0);
}

/* All that a window of so many packets holds is lost, of parts that leave again as several. Returns
 * how many items there were at the same time. */
static uint32_t lose_windows(struct rig *r, uint16_t window_pkts)
{
	struct peer peer = rig_connect(r, 1);
	struct out_edge *o = source_open(r, &peer, 0, 8900);
	struct packet p;
	uint32_t largest = 0;

	peer.c->window_pkts = window_pkts;
	while (rig_take(r, &p))
		if (peer.c->cc.pace_blocked)
			r->now_ns += 100000;
	for (uint32_t round = 0; o->acked_count < CHUNKS; round++) {
		assert_in_range(round, 0, 3000);
		for (uint64_t pn = peer.c->tx.oldest_pn; pn < peer.c->tx.next_pn; pn++)
			if (sent_outstanding(r->e, peer.c, pn)) {
				if (round < 20)
					sent_lose(r->e, peer.c, pn);
				else
					peer_ack(r, &peer, pn);
			}
		peer.c->mtu = round < 2 ? 3700 : MTU_BASE;
		peer.c->cc.cwnd_bytes = 16 << 20;
		r->now_ns += 1000000;
		rig_drain(r);
		uint32_t items = peer.c->tx.inflight_pkts + peer.c->tx.lost_count;
		largest = items > largest ? items : largest;
	}
	rig_expect(r, EVENT_OUT_DONE);
	rig_silent(r);
	return largest;
}

/* There is room for it. */
static void a_full_window_is_lost(void **state)
{
	struct rig *r = *state;
	uint16_t window_pkts = r->e->config.window_pkts;

	assert_in_range(lose_windows(r, window_pkts), window_pkts, r->e->sent_slots - 1);
}

/* None is left, as when other paths' packets leave by this one: what needs no more goes first. */
static void there_is_no_room_to_split(void **state)
{
	struct rig *r = *state;

	assert_true(lose_windows(r, (uint16_t)r->e->sent_slots) >= r->e->sent_slots);
}

#define test_jumbo(name) cmocka_unit_test_setup_teardown(name, jumbo_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_jumbo(parts_make_a_chunk),
		test_jumbo(parts_together_and_late_copies),
		test_jumbo(another_stream_is_faster),
		test_jumbo(what_is_no_part_is_refused),
		test_jumbo(credit_holds_for_the_whole),
		test_jumbo(room_is_bounded),
		test_jumbo(a_stream_takes_its_parts_along),
		test_jumbo(parts_fill_packets),
		test_jumbo(the_first_search_is_waited_for),
		test_jumbo(parts_are_acknowledged),
		test_jumbo(what_was_lost_leaves_in_parts),
		test_jumbo(a_full_window_is_lost),
		test_jumbo(there_is_no_room_to_split),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
