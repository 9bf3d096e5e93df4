/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks that arrive: what is taken, what is refused and why, credit, resets of streams. */
#include "fixtures/core_test.h"

enum { CHUNKS = 700, LAST_BYTES = 100 };

static bool alone; /* chunks come as CHUNK packets, not in frames */

static const uint64_t sink_bytes = (uint64_t)(CHUNKS - 1) * RIG_CHUNK + LAST_BYTES;

/* Buffer 0 with one IN edge (index 0) over this range. */
static struct in_edge *sink_open(struct rig *r, const struct peer *peer, uint32_t first,
				 uint32_t chunks)
{
	struct record buffer = record_buffer(0, sink_bytes);
	struct record in = record_edge(COMMAND_IN, 0, 0, peer, first, chunks);

	rig_command(r, &buffer);
	rig_command(r, &in);
	return in_edge_find(r->e, record_handle(0));
}

static void make_chunk(struct rig *r, struct peer *peer, struct packet *p, uint32_t stream,
		       uint32_t chunk, uint32_t bytes)
{
	if (alone) {
		peer_chunk(r, peer, p, stream, chunk, bytes, (uint8_t)(chunk + 1));
		return;
	}
	peer_begin(r, peer, p);
	forge_data(p, stream, chunk, bytes, (uint8_t)(chunk + 1));
}

static void send_chunk(struct rig *r, struct peer *peer, uint32_t stream, uint32_t chunk,
		       uint32_t bytes)
{
	struct packet p;

	make_chunk(r, peer, &p, stream, chunk, bytes);
	peer_send(r, peer, &p);
}

static void a_chunk_lands_in_its_place(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	sink_open(r, &peer, 0, CHUNKS);
	send_chunk(r, &peer, record_handle(0), 3, RIG_CHUNK);
	for (uint32_t k = 0; k < RIG_BUFFER_BYTES; k++)
		assert_int_equal(rig_data(r, 0)[k], k / RIG_CHUNK == 3 ? 4 : 0);
	assert_int_equal(r->config.table->slot[0].watermark, 0);
	send_chunk(r, &peer, record_handle(0), 0, RIG_CHUNK);
	assert_int_equal(r->config.table->slot[0].watermark, RIG_CHUNK);
	send_chunk(r, &peer, record_handle(0), 2, RIG_CHUNK);
	send_chunk(r, &peer, record_handle(0), 1, RIG_CHUNK);
	assert_int_equal(r->config.table->slot[0].watermark, 4 * RIG_CHUNK);
	assert_int_equal(r->counters.rx_chunks, 4);
	rig_drops(r, NULL);
}

static void a_second_copy_writes_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	sink_open(r, &peer, 0, CHUNKS);
	send_chunk(r, &peer, record_handle(0), 5, RIG_CHUNK);
	peer_begin(r, &peer, &p);
	forge_data(&p, record_handle(0), 5, RIG_CHUNK, 0xee);
	peer_send(r, &peer, &p);
	assert_int_equal(rig_data(r, 0)[5 * RIG_CHUNK], 6);
	assert_int_equal(r->counters.rx_chunks, 1);
	assert_int_equal(r->counters.rx_chunk_duplicates, 1);
	rig_drops(r, NULL);
}

static void refuse_chunk(struct rig *r, struct peer *peer, uint32_t stream, uint32_t chunk,
			 uint32_t bytes, const char *drop)
{
	struct in_edge *i = in_edge_find(r->e, record_handle(0));
	uint32_t received = i->received, taken = i->taken;
	uint64_t pending = peer->c->rx.ack_pending;

	send_chunk(r, peer, stream, chunk, bytes);
	rig_drops(r, drop, 1, NULL);
	assert_int_equal(i->received, received);
	assert_int_equal(i->taken, taken);
	if (drop[5] == 'c' || drop[5] == 'o') /* refused: never acknowledged */
		assert_int_equal(peer->c->rx.ack_pending, pending);
	rig_silent(r);
}

/* [P9] [P13] */
static void each_refusal_is_counted_and_writes_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	const uint32_t stream = record_handle(0);

	sink_open(r, &peer, 10, CHUNKS - 20);
	refuse_chunk(r, &peer, stream, 9, RIG_CHUNK, "drop_chunk_range");
	refuse_chunk(r, &peer, stream, CHUNKS - 10, RIG_CHUNK, "drop_chunk_range");
	refuse_chunk(r, &peer, stream, CHUNKS - 1, LAST_BYTES, "drop_chunk_range");
	refuse_chunk(r, &peer, stream, UINT32_MAX, RIG_CHUNK, "drop_chunk_range");
	refuse_chunk(r, &peer, stream, UINT32_MAX / RIG_CHUNK + 11, RIG_CHUNK, "drop_chunk_range");
	refuse_chunk(r, &peer, stream, 10, 0, "drop_chunk_size");
	refuse_chunk(r, &peer, stream, 10, 1, "drop_chunk_size");
	refuse_chunk(r, &peer, stream, 10, RIG_CHUNK - 1, "drop_chunk_size");
	refuse_chunk(r, &peer, stream, 10, RIG_CHUNK + 1, "drop_chunk_size");
	refuse_chunk(r, &peer, stream + 1, 10, RIG_CHUNK, "drop_unknown_stream");
	refuse_chunk(r, &peer, 0, 10, RIG_CHUNK, "drop_stale_stream"); /* index 0 is in use */
	refuse_chunk(r, &peer, stream + 0x10000, 10, RIG_CHUNK, "drop_stale_stream");
	refuse_chunk(r, &peer, UINT32_MAX, 10, RIG_CHUNK, "drop_unknown_stream");
	refuse_chunk(r, &peer, handle_make(32, 7), 10, RIG_CHUNK, "drop_unknown_stream");

	struct peer stranger = rig_connect(r, 2); /* names the stream of somebody else */
	refuse_chunk(r, &stranger, stream, 10, RIG_CHUNK, "drop_unknown_stream");
	for (uint32_t k = 0; k < RIG_BUFFER_BYTES; k++)
		assert_int_equal(rig_data(r, 0)[k], 0);
}

static void the_short_chunk_is_the_last(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	sink_open(r, &peer, 0, CHUNKS);
	refuse_chunk(r, &peer, record_handle(0), CHUNKS - 1, RIG_CHUNK, "drop_chunk_size");
	refuse_chunk(r, &peer, record_handle(0), CHUNKS - 1, LAST_BYTES - 1, "drop_chunk_size");
	send_chunk(r, &peer, record_handle(0), CHUNKS - 1, LAST_BYTES);
	rig_drops(r, NULL);
	assert_int_equal(rig_data(r, 0)[sink_bytes - 1], (uint8_t)CHUNKS);
	assert_int_equal(rig_data(r, 0)[sink_bytes], 0);
}

/* A flood of made-up streams fills the list of resets once, then nothing is acknowledged. */
static void resets_are_bounded(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;
	uint32_t told = 0;

	for (uint32_t k = 0; k < 3 * RESETS_MAX; k++)
		send_chunk(r, &peer, 0x90001 + (k % (2 * RESETS_MAX)), 0, 64);
	rig_drops(r, "drop_unknown_stream", 3 * RESETS_MAX, NULL);
	assert_int_equal(peer.c->resets_count, RESETS_MAX);
	assert_int_equal(peer.c->rx.ack_pending, RESETS_MAX + RESETS_MAX);
	while (rig_take(r, &p)) {
		const uint8_t *f = packet_frame(&p, FRAME_RESET_STREAM);
		uint64_t pn = p.pn;
		if (!f)
			continue;
		told++;
		if (told == 3) { /* what is lost is said again */
			uint32_t stream = wire_get32(f + RESET_STREAM_AT_STREAM);
			sent_lose(r->e, peer.c, pn);
			assert_true(rig_take(r, &p));
			f = packet_frame(&p, FRAME_RESET_STREAM);
			assert_int_equal(wire_get32(f + RESET_STREAM_AT_STREAM), stream);
		}
	}
	assert_int_equal(told, RESETS_MAX);
}

static void more_than_granted_is_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct in_edge *i = sink_open(r, &peer, 0, CHUNKS);
	uint32_t granted = i->granted;

	assert_int_equal(granted, UNSCHEDULED_CHUNKS);
	for (uint32_t k = 0; k < granted; k++)
		send_chunk(r, &peer, record_handle(0), k, RIG_CHUNK);
	assert_int_equal(i->taken, granted);
	rig_drops(r, NULL);
	refuse_chunk(r, &peer, record_handle(0), granted, RIG_CHUNK, "drop_over_credit");
	send_chunk(r, &peer, record_handle(0), 0, RIG_CHUNK); /* a copy needs no credit */
	rig_drops(r, NULL);
	rig_drain(r); /* the grant leaves */
	assert_true(i->granted > granted);
	send_chunk(r, &peer, record_handle(0), granted, RIG_CHUNK);
	rig_drops(r, NULL);
	assert_int_equal(i->taken, granted + 1);
}

/* What is granted only grows, never passes the range, and is never less than what has come. */
static void credit_follows_the_rule(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct in_edge *i = sink_open(r, &peer, 0, CHUNKS - 1);
	uint64_t seed = 77;
	uint32_t announced = UNSCHEDULED_CHUNKS, highest = 0, chunk = 0;
	struct packet p;

	while (i->taken < CHUNKS - 1) {
		bool copy = chunk > 0 && draw_below(&seed, 4) == 0;

		if (!copy && i->taken >= i->granted)
			rig_pass(r, 1000000);
		assert_true(copy || i->taken < i->granted);
		send_chunk(r, &peer, record_handle(0),
			   copy ? (uint32_t)draw_below(&seed, chunk) : chunk++, RIG_CHUNK);
		while (draw_below(&seed, 3) == 0 && rig_take(r, &p)) {
			const uint8_t *grant = packet_frame(&p, FRAME_GRANT);
			if (!grant)
				continue;
			assert_int_equal(wire_get32(grant + GRANT_AT_STREAM), record_handle(0));
			announced = wire_get32(grant + GRANT_AT_CHUNKS);
			assert_true(announced >= highest && announced <= CHUNKS - 1);
			highest = announced;
		}
		assert_true(i->received <= CHUNKS - 1 && i->taken <= i->received);
	}
	rig_drops(r, NULL);
	assert_int_equal(i->granted, CHUNKS - 1);
}

static void little_credit(struct engine_config *f)
{
	f->credit_bytes = 40 * RIG_CHUNK;
}

/* Two streams share the credit: together no more than it is on the way, and neither stands still.
 */
static void credit_is_shared_and_bounded(void **state)
{
	struct rig *r = rig_new(little_credit);
	struct peer peer = rig_connect(r, 1);
	struct record buffer = record_buffer(0, sink_bytes);
	struct in_edge *i[2];

	(void)state;
	rig_command(r, &buffer);
	for (uint32_t k = 0; k < 2; k++) {
		struct record in = record_edge(COMMAND_IN, k, 0, &peer, 350 * k, 350);
		rig_command(r, &in);
		i[k] = in_edge_find(r->e, in.edge.edge);
		i[k]->granted = 0;
		list_want(&peer.c->grants, &i[k]->due);
	}
	conn_wake(r->e, peer.c);
	for (uint32_t n = 0; n < 349; n++) {
		struct packet p;

		while (rig_take(r, &p))
			peer_ack(r, &peer, p.pn);
		for (uint32_t k = 0; k < 2; k++) {
			assert_in_range(i[k]->granted - i[k]->received, n < 340 ? 10 : 350 - n, 20);
			send_chunk(r, &peer, record_handle(k), 350 * k + n, RIG_CHUNK);
		}
	}
	rig_drops(r, NULL);
	rig_free(r);
}

/* Half of a small window is granted at once, of a large one a quarter: what is left goes on. */
static void a_large_window_is_kept_full(void **state)
{
	static const struct {
		uint32_t chunks, step;
	} windows[] = {{20, 10}, {80, 40}, {160, GRANT_CHUNKS}, {400, 100}};
	struct packet p;

	(void)state;
	for (size_t k = 0; k < sizeof(windows) / sizeof(windows[0]); k++) {
		struct rig *r = rig_new(little_credit);
		struct peer peer = rig_connect(r, 1);
		struct record buffer = record_buffer(0, sink_bytes);
		struct record in = record_edge(COMMAND_IN, 0, 0, &peer, 0, 700);
		uint32_t least = UINT32_MAX;

		r->e->config.credit_bytes = (uint64_t)windows[k].chunks * RIG_CHUNK;
		rig_command(r, &buffer);
		rig_command(r, &in);
		struct in_edge *i = in_edge_find(r->e, in.edge.edge);
		for (uint32_t n = 0; n < 300; n++) {
			send_chunk(r, &peer, record_handle(0), n, RIG_CHUNK);
			while (rig_take(r, &p))
				peer_ack(r, &peer, p.pn);
			least = (uint32_t)numbers_min(least, i->granted - i->received);
		}
		assert_int_equal(least, windows[k].chunks - windows[k].step + 1);
		rig_free(r);
	}
}

/* What the next grant to this peer says of how many send; 0: none waits. */
static uint32_t senders_said(struct rig *r, const struct peer *peer)
{
	struct packet p;
	uint32_t said = 0;

	while (rig_take(r, &p)) {
		const uint8_t *grant = packet_frame(&p, FRAME_GRANT);
		if (grant && net_addr_equal(&p.to, &peer->addr))
			said = grant[GRANT_AT_SENDERS];
	}
	return said;
}

/* A grant says how many send. When they are no longer few, who heard of few hears it at once; a
 * stream whose sender may not know it yet is granted nothing by that. */
static void a_grant_says_how_many_send(void **state)
{
	struct rig *r = *state;
	struct peer peer[CONGESTION_FEW_SENDERS + 1];
	struct record buffer = record_buffer(0, sink_bytes);

	rig_command(r, &buffer);
	for (uint32_t k = 0; k <= CONGESTION_FEW_SENDERS; k++) {
		peer[k] = rig_connect(r, k + 1);
		struct record in = record_edge(COMMAND_IN, k, 0, &peer[k], 100 * k, 100);
		rig_command(r, &in);
		if (k == CONGESTION_FEW_SENDERS)
			break;
		assert_int_equal(senders_said(r, &peer[0]), 0);
		if (k == 1)
			continue; /* has sent nothing */
		send_chunk(r, &peer[k], record_handle(k), 100 * k, RIG_CHUNK);
		assert_int_equal(senders_said(r, &peer[k]), k + 1);
		assert_int_equal(peer[k].c->rx.peer_senders, k + 1);
	}
	assert_int_equal(r->e->in_senders, CONGESTION_FEW_SENDERS + 1);
	assert_false(list_empty(&peer[2].c->grants));
	assert_true(list_empty(&peer[1].c->grants));
	assert_int_equal(in_edge_find(r->e, record_handle(1))->granted, UNSCHEDULED_CHUNKS);
	assert_int_equal(senders_said(r, &peer[0]), CONGESTION_FEW_SENDERS + 1);
	for (uint32_t k = 0; k <= CONGESTION_FEW_SENDERS; k++) {
		struct record drop = record_drop(RECORD_FLAG_IN, record_handle(k));
		rig_command(r, &drop);
		rig_expect(r, EVENT_DROPPED);
		assert_int_equal(r->e->in_senders, CONGESTION_FEW_SENDERS - k);
	}
}

static uint32_t grants_left(struct rig *r, uint32_t most)
{
	struct packet p;
	uint32_t n = 0, packets = 0;

	while (rig_take(r, &p)) {
		if (packet_frame(&p, FRAME_GRANT))
			n++;
		assert_true(++packets < most);
	}
	return n;
}

/*
 * The buffer is complete, late copies still arrive on an edge whose sender has not sent all: it
 * is granted on, so that the sender comes to an end. Then the edge goes and its place is used
 * again: no grant of the old one is left behind.
 */
static void a_grant_leaves_with_its_edge(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record buffer = record_buffer(0, sink_bytes);

	memset(rig_bitmap(r, 0), 0xff, RIG_BITMAP_BYTES);
	rig_command(r, &buffer);
	rig_expect(r, EVENT_BUFFER_DONE);
	struct record in = record_edge(COMMAND_IN, 0, 0, &peer, 0, CHUNKS);
	rig_command(r, &in);
	for (uint32_t k = 0; k < UNSCHEDULED_CHUNKS; k++)
		send_chunk(r, &peer, record_handle(0), k, RIG_CHUNK);
	assert_false(list_empty(&peer.c->grants));

	struct record drop = record_drop(RECORD_FLAG_IN, record_handle(0));
	rig_command(r, &drop);
	rig_expect(r, EVENT_DROPPED);
	assert_true(list_empty(&peer.c->grants));
	in.edge.edge = handle_make(0, 8);
	rig_command(r, &in);
	assert_int_equal(grants_left(r, 50), 0);
}

static void a_grant_leaves_with_its_connection(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	memset(rig_bitmap(r, 0), 0xff, RIG_BITMAP_BYTES);
	struct in_edge *i = sink_open(r, &peer, 0, CHUNKS);
	for (uint32_t k = 0; k < UNSCHEDULED_CHUNKS; k++)
		send_chunk(r, &peer, record_handle(0), k, RIG_CHUNK);
	peer_begin(r, &peer, &p);
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	peer_send(r, &peer, &p);
	assert_null(i->conn);
	assert_true(list_empty(&i->due));
}

/* The last grants of an edge must arrive even when the buffer was completed by another one. */
static void a_lost_grant_is_repeated_after_the_end(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	memset(rig_bitmap(r, 0), 0xff, RIG_BITMAP_BYTES);
	sink_open(r, &peer, 0, CHUNKS);
	for (uint32_t k = 0; k < UNSCHEDULED_CHUNKS; k++)
		send_chunk(r, &peer, record_handle(0), k, RIG_CHUNK);
	uint64_t pn = UINT64_MAX;
	while (rig_take(r, &p))
		if (packet_frame(&p, FRAME_GRANT))
			pn = p.pn;
	assert_int_not_equal(pn, UINT64_MAX);
	sent_lose(r->e, peer.c, pn);
	assert_int_equal(grants_left(r, 50), 1);
}

static void every_record_that_does_not_hold_is_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record source = record_source(1, sink_bytes, sink_bytes);
	struct record good, bad;

	sink_open(r, &peer, 0, CHUNKS);
	rig_command(r, &source);
	good = record_edge(COMMAND_IN, 1, 0, &peer, 0, CHUNKS);
	good.epoch = 1;
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = 0);
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = 1);		  /* generation 0 */
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = handle_make(32, 1)); /* beyond the table */
	REFUSE_RECORD(REASON_BUSY_ID, bad.edge.edge = record_handle(0));
	REFUSE_RECORD(REASON_BUSY_ID, bad.edge.edge = handle_make(0, 99)); /* the index is in use */
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.buffer = 0);
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.buffer = handle_make(0, 8)); /* another generation */
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.buffer = record_handle(2));
	REFUSE_RECORD(REASON_STALE_EPOCH, bad.epoch = 0);
	REFUSE_RECORD(REASON_BAD_CONN, bad.edge.conn = 0);
	REFUSE_RECORD(REASON_BAD_CONN, bad.edge.conn = peer.conn ^ 0x10000);
	REFUSE_RECORD(REASON_BAD_CONN, bad.edge.conn = peer.conn + 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.chunks = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.chunks = CHUNKS + 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.first_chunk = CHUNKS);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.first_chunk = 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.first_chunk = UINT32_MAX, bad.edge.chunks = 2);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.chunks = UINT32_MAX);
	REFUSE_RECORD(REASON_BAD_RANGE,
		      bad.edge.buffer = record_handle(1)); /* nobody may fill a source */
	good = record_drop(RECORD_FLAG_IN, record_handle(0));
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = record_handle(1));
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = handle_make(0, 6));
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = 0);
	REFUSE_RECORD(REASON_STALE_EPOCH, bad.epoch = 0);
	REFUSE_RECORD(REASON_BAD_OP, bad.flags = 0);
	REFUSE_RECORD(REASON_BAD_OP, bad.flags = RECORD_FLAG_IN | RECORD_FLAG_OUT);
}

/* A place is used again under another generation: what was meant for the former is not taken. */
static void a_late_chunk_does_not_reach_the_next_owner(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	sink_open(r, &peer, 0, CHUNKS);
	for (uint16_t generation = 8; generation < 20; generation++) {
		struct record drop =
			record_drop(RECORD_FLAG_IN, handle_make(0, (uint16_t)(generation - 1)));
		rig_command(r, &drop);
		struct record event = rig_expect(r, EVENT_DROPPED);
		assert_int_equal(event.flags, RECORD_FLAG_IN);
		assert_int_equal(event.edge.edge, drop.edge.edge);
		struct record in = record_edge(COMMAND_IN, 0, 0, &peer, 0, CHUNKS);
		in.edge.edge = handle_make(0, generation);
		rig_command(r, &in);
		send_chunk(r, &peer, drop.edge.edge, 0, RIG_CHUNK);
		rig_drops(r, "drop_stale_stream", 1, NULL);
		assert_int_equal(r->counters.rx_chunks, 0);
		rig_drain(r);
	}
	assert_int_equal(r->e->in_active, 1);
}

/* The hint reads packets that nobody has checked yet. */
static void a_hint_trusts_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	const uint32_t streams[] = {
		0, 1, 31, 32, 0xffff, 0x10000, UINT32_MAX, record_handle(0), record_handle(1)};
	struct packet p;

	for (int round = 0; round < 3; round++) { /* nothing there, an edge, an edge that went */
		for (size_t k = 0; k < sizeof(streams) / sizeof(streams[0]); k++) {
			for (uint32_t length = 0; length < WIRE_BODY + DATA_BYTES + 2; length++) {
				make_chunk(r, &peer, &p, streams[k], k % 2 ? 0 : UINT32_MAX - 5,
					   64);
				uint8_t *exact = malloc(length + 1);
				memcpy(exact, p.bytes, length);
				struct packet_in in = {.data = exact,
						       .length = (uint16_t)length,
						       .from = peer.addr};
				engine_prefetch(r->e, &in);
				free(exact);
			}
		}
		struct record drop = record_drop(RECORD_FLAG_BUFFER, record_handle(0));
		if (round == 0)
			sink_open(r, &peer, 0, CHUNKS);
		else if (round == 1)
			rig_command(r, &drop);
	}
}

static int in_frames(void **state)
{
	(void)state;
	alone = false;
	return 0;
}

static int in_packets_of_their_own(void **state)
{
	(void)state;
	alone = true;
	return 0;
}

/* What may come before a grant is so many bytes, whatever the chunks: both ends reckon alike. */
static void large_chunks_need_a_grant_sooner(void **state)
{
	static const struct {
		uint16_t chunk_bytes;
		uint32_t chunks;
	} rows[] = {{64, 32}, {1408, 32}, {1472, 30}, {4096, 11}, {8896, 5}};
	(void)state;
	for (uint32_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct rig *r = rig_new(NULL);
		struct peer peer = rig_connect(r, 1);
		uint64_t bytes = 64 * (uint64_t)rows[k].chunk_bytes;
		struct record sink = record_buffer(0, bytes);
		struct record source = record_source(1, bytes, bytes);
		struct record in = record_edge(COMMAND_IN, 0, 0, &peer, 0, 64);
		struct record out = record_edge(COMMAND_OUT, 0, 1, &peer, 0, 64);

		sink.buffer.chunk_bytes = source.buffer.chunk_bytes = rows[k].chunk_bytes;
		rig_command(r, &sink);
		rig_command(r, &source);
		rig_command(r, &in);
		rig_command(r, &out);
		assert_int_equal(in_edge_find(r->e, in.edge.edge)->granted, rows[k].chunks);
		assert_int_equal(out_edge_find(r->e, out.edge.edge)->credit, rows[k].chunks);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(a_chunk_lands_in_its_place),
		cmocka_unit_test(large_chunks_need_a_grant_sooner),
		test_rig(a_second_copy_writes_nothing),
		test_rig(each_refusal_is_counted_and_writes_nothing),
		test_rig(the_short_chunk_is_the_last),
		test_rig(resets_are_bounded),
		test_rig(more_than_granted_is_refused),
		test_rig(credit_follows_the_rule),
		cmocka_unit_test(credit_is_shared_and_bounded),
		cmocka_unit_test(a_large_window_is_kept_full),
		test_rig(a_grant_says_how_many_send),
		test_rig(a_grant_leaves_with_its_edge),
		test_rig(a_grant_leaves_with_its_connection),
		test_rig(a_lost_grant_is_repeated_after_the_end),
		test_rig(every_record_that_does_not_hold_is_refused),
		test_rig(a_hint_trusts_nothing),
		test_rig(a_late_chunk_does_not_reach_the_next_owner),
	};

	return cmocka_run_group_tests_name("DATA frames", tests, in_frames, NULL) +
	       cmocka_run_group_tests_name("CHUNK packets", tests, in_packets_of_their_own, NULL);
}
