/* SPDX-License-Identifier: BSD-3-Clause */
/* Counted buffers: what contributes, how often, and when a chunk is ready; resuming, refusals. */
#include "fixtures/reduce_test.h"

/* ---- contributions ------------------------------------------------------------------------ */

static void a_chunk_is_ready_when_all_are_in(void **state)
{
	struct rig *r = *state;
	struct peer one = rig_connect(r, 1), two = rig_connect(r, 2);

	command(r, record_counted(0, 2));
	command(r, record_taken(r, 0, 0, &one, 0, CHUNKS));
	command(r, record_taken(r, 1, 0, &two, 0, CHUNKS));
	send(r, &one, 0, 3, 10);
	chunk_is(r, 0, 3, 10);
	assert_false(buffer_has(buffer_at(r, 0), 3));
	send(r, &one, 0, 3, 99); /* again, in another packet */
	chunk_is(r, 0, 3, 10);
	assert_int_equal(r->counters.rx_chunk_duplicates, 1);
	send(r, &two, 1, 3, 5);
	chunk_is(r, 0, 3, 15);
	assert_true(buffer_has(buffer_at(r, 0), 3));
	send(r, &two, 1, 3, 5);
	send(r, &one, 0, 3, 5);
	chunk_is(r, 0, 3, 15);
	assert_int_equal(r->counters.rx_chunk_duplicates, 3);
	chunk_is(r, 0, 2, 0);
	chunk_is(r, 0, 4, 0);
	rig_drops(r, NULL);
	rig_silent(r);
}

static void the_ends_are_told_once(void **state)
{
	struct rig *r = *state;
	struct peer one = rig_connect(r, 1), two = rig_connect(r, 2);

	command(r, record_counted(0, 2));
	command(r, record_taken(r, 0, 0, &one, 0, CHUNKS));
	command(r, record_taken(r, 1, 0, &two, 0, CHUNKS));
	grant_all(r, 0);
	grant_all(r, 1);
	for (uint32_t k = 0; k < CHUNKS; k++)
		send(r, &one, 0, k, (uint8_t)k);
	in_done(r, 0);
	rig_silent(r);
	assert_int_equal(r->e->in_active, 1);
	for (uint32_t k = CHUNKS; k-- > 0;) {
		rig_silent(r);
		send(r, &two, 1, k, 1);
		chunk_is(r, 0, k, (uint8_t)(k + 1));
	}
	in_done(r, 1);
	rig_expect(r, EVENT_BUFFER_DONE);
	rig_silent(r);
	assert_int_equal(r->e->in_active, 0);
	assert_int_equal(r->config.table->slot[0].watermark, object_bytes);
}

static void the_numbers_of_the_sender_are_shifted(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record in = record_taken(r, 0, 0, &peer, 10, 20);

	command(r, record_counted(0, 1));
	in.edge.peer_first = 1000;
	command(r, in);
	send_bytes(r, &peer, 0, 999, RIG_CHUNK, 1);
	rig_drops(r, "drop_chunk_range", 1, NULL);
	send_bytes(r, &peer, 0, 1020, RIG_CHUNK, 1);
	rig_drops(r, "drop_chunk_range", 1, NULL);
	send_bytes(r, &peer, 0, 10, RIG_CHUNK, 1);
	rig_drops(r, "drop_chunk_range", 1, NULL);
	send_bytes(r, &peer, 0, 1005, RIG_CHUNK - 1, 1);
	rig_drops(r, "drop_chunk_size", 1, NULL);
	assert_int_equal(r->counters.rx_chunks, 0);
	for (uint32_t k = 0; k < 20; k++)
		send_bytes(r, &peer, 0, 1000 + k, RIG_CHUNK, (uint8_t)(k + 1));
	for (uint32_t k = 0; k < CHUNKS; k++)
		chunk_is(r, 0, k, k >= 10 && k < 30 ? (uint8_t)(k - 9) : 0);
	in_done(r, 0);
	rig_silent(r);
}

static void a_copy_is_shifted_too(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record in = record_edge(COMMAND_IN, 0, 0, &peer, 50, 2);

	command(r, record_buffer(0, object_bytes));
	in.edge.peer_first = 0;
	command(r, in);
	send_bytes(r, &peer, 0, 1, RIG_CHUNK, 7);
	chunk_is(r, 0, 51, 7);
	send_bytes(r, &peer, 0, 0, RIG_CHUNK, 6);
	chunk_is(r, 0, 50, 6);
	in_done(r, 0);
	rig_silent(r);
	struct record drop = record_drop(RECORD_FLAG_BUFFER, record_handle(0));
	command(r, drop);
	rig_expect(r, EVENT_DROPPED);
	rig_silent(r);
}

static void more_than_granted_is_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	command(r, record_counted(0, 1));
	command(r, record_taken(r, 0, 0, &peer, 0, CHUNKS));
	for (uint32_t k = 0; k < UNSCHEDULED_CHUNKS; k++)
		send(r, &peer, 0, k, 1);
	rig_drops(r, NULL);
	send(r, &peer, 0, 50, 1);
	rig_drops(r, "drop_over_credit", 1, NULL);
	chunk_is(r, 0, 50, 0);
	assert_int_equal(buffer_at(r, 0)->counts[50], 0);
	rig_drain(r); /* the grant leaves */
	send(r, &peer, 0, 50, 1);
	rig_drops(r, NULL);
	chunk_is(r, 0, 50, 1);
}

/* An edge that ends leaves what it gave; the next one with its bitmap gives only the rest. */
static void an_edge_goes_on_where_it_was(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record in = record_taken(r, 0, 0, &peer, 0, CHUNKS);

	source_open(r, 1, 100, 0);
	command(r, record_counted(0, 2));
	command(r, in);
	for (uint32_t k = 0; k < 20; k += 2)
		send(r, &peer, 0, k, 1);
	command(r, record_drop(RECORD_FLAG_IN, record_handle(0)));
	rig_expect(r, EVENT_DROPPED);
	chunk_is(r, 0, 2, 1);
	in.edge.edge = handle_make(0, 9);
	command(r, in);
	in_edge_find(r->e, in.edge.edge)->granted = CHUNKS;
	assert_int_equal(in_edge_find(r->e, in.edge.edge)->missing, CHUNKS - 10);
	for (uint32_t k = 0; k < CHUNKS; k++) {
		struct packet p;
		peer_begin(r, &peer, &p);
		forge_data(&p, in.edge.edge, k, length_of(k), 1);
		peer_send(r, &peer, &p);
	}
	struct record event = rig_expect(r, EVENT_IN_DONE);
	assert_int_equal(event.edge.edge, in.edge.edge);
	for (uint32_t k = 0; k < CHUNKS; k++) {
		chunk_is(r, 0, k, 1);
		assert_int_equal(buffer_at(r, 0)->counts[k], 1);
	}
	command(r, record_drop(RECORD_FLAG_IN, in.edge.edge));
	rig_expect(r, EVENT_DROPPED);
	in.edge.edge = handle_make(0, 10);
	command(r, in); /* complete already: said at once */
	rig_expect(r, EVENT_IN_DONE);
	rig_silent(r);
	assert_int_equal(r->e->in_active, 0);
}

/* A place that has all it needs takes no more, whatever control has planned. */
static void too_many_contributors_change_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer[3] = {rig_connect(r, 1), rig_connect(r, 2), rig_connect(r, 3)};

	command(r, record_counted(0, 2));
	for (uint32_t k = 0; k < 3; k++) {
		command(r, record_taken(r, k, 0, &peer[k], 7, 1));
		send(r, &peer[k], k, 7, (uint8_t)(1 << k));
		in_done(r, k);
		chunk_is(r, 0, 7, k == 0 ? 1 : 3);
	}
	assert_int_equal(r->counters.rx_chunk_duplicates, 1);
	rig_silent(r);
}

/* ---- resuming and refusing ---------------------------------------------------------------- */

static void counts_are_kept_with_the_bits(void **state)
{
	struct rig *r = *state;
	struct peer one = rig_connect(r, 1), two = rig_connect(r, 2);
	struct record buffer = record_counted(0, 2);

	command(r, buffer);
	command(r, record_taken(r, 0, 0, &one, 0, CHUNKS));
	command(r, record_taken(r, 1, 0, &two, 0, CHUNKS));
	send(r, &one, 0, 0, 1);
	send(r, &one, 0, 1, 1);
	send(r, &two, 1, 1, 1);
	command(r, record_drop(RECORD_FLAG_BUFFER, record_handle(0)));
	rig_expect(r, EVENT_DROPPED);
	command(r, buffer);
	assert_int_equal(buffer_at(r, 0)->ready_count, 1);
	command(r, record_taken(r, 0, 0, &one, 0, CHUNKS));
	command(r, record_taken(r, 1, 0, &two, 0, CHUNKS));
	for (uint32_t k = 0; k < 3; k++) {
		send(r, &one, 0, k, 1);
		send(r, &two, 1, k, 1);
		chunk_is(r, 0, k, 2);
	}
	assert_int_equal(buffer_at(r, 0)->ready_low, 3);
}

/* A process that died while it wrote a chunk has left its mark. */
static void a_torn_chunk_is_found(void **state)
{
	struct rig *r = *state;
	struct record buffer = record_counted(0, 2);
	uint8_t *counts = (uint8_t *)rig_bitmap(r, 0) + chunk_bitmap_bytes(CHUNKS);

	counts[CHUNKS - 1] = COUNT_TORN;
	rig_refuse(r, &buffer, REASON_TORN_CHUNK);
	counts[CHUNKS - 1] = 2;
	rig_refuse(r, &buffer, REASON_TORN_CHUNK);
	counts[CHUNKS - 1] = 1;
	command(r, buffer);
	command(r, record_drop(RECORD_FLAG_BUFFER, record_handle(0)));
	rig_expect(r, EVENT_DROPPED);
	counts[CHUNKS - 1] = COUNT_TORN; /* ready, but for the count */
	rig_bitmap(r, 0)[(CHUNKS - 1) / 64] |= UINT64_C(1) << ((CHUNKS - 1) % 64);
	command(r, buffer);
	assert_int_equal(buffer_at(r, 0)->ready_count, 1);
}

static void wrong_records_are_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record good = record_counted(0, 2), bad;

	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.need = 0);
	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.reduce_op = 0); /* a copy of two */
	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.reduce_op = REDUCE_OP_END);
	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.dtype = 0);
	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.dtype = REDUCE_DTYPE_END);
	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.dtype = 255);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.bitmap_offset = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.dtype = REDUCE_F64, bad.buffer.size -= 4);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.bitmap_offset = r->config.store_bytes -
								   chunk_counted_bytes(CHUNKS) + 8);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.bitmap_offset =
						r->config.store_bytes - chunk_bitmap_bytes(CHUNKS));
	command(r, good);
	source_open(r, 1, 0, 0);

	good = record_taken(r, 0, 0, &peer, 0, CHUNKS);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset++);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset = r->config.store_bytes - 8);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset = UINT64_MAX - 7);

	good = record_local(r, 1, 0, 1);
	REFUSE_RECORD(REASON_BAD_ID, bad.local.edge = 1);
	REFUSE_RECORD(REASON_BAD_ID, bad.local.edge = handle_make(32, 1));
	REFUSE_RECORD(REASON_BAD_ID, bad.local.buffer = record_handle(2));
	REFUSE_RECORD(REASON_BAD_ID, bad.local.source = record_handle(2));
	REFUSE_RECORD(REASON_BAD_ID, bad.local.source = 0);
	REFUSE_RECORD(REASON_BAD_ID, bad.local.source = bad.local.buffer);
	REFUSE_RECORD(REASON_STALE_EPOCH, bad.epoch = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.chunks = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.chunks++);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.first_chunk = CHUNKS);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.peer_first = 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.peer_first = UINT32_MAX);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.bitmap_offset = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.bitmap_offset++);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.bitmap_offset = r->config.store_bytes);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.buffer = record_handle(1),
		      bad.local.source = record_handle(0)); /* nobody may fill a source */
	struct record other = record_source(2, object_bytes, 0);
	other.buffer.chunk_bytes = 64;
	command(r, other);
	REFUSE_RECORD(REASON_BAD_CHUNK, bad.local.source = record_handle(2));
	other = record_source(3, object_bytes, 0);
	other.buffer.store_offset = object_bytes - 1; /* overlaps the destination's last byte */
	command(r, other);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.local.source = record_handle(3));
	command(r, good);
	REFUSE_RECORD(REASON_BUSY_ID, bad.local.edge = handle_make(1, 99));
	good = record_drop(RECORD_FLAG_IN, record_handle(1));
	REFUSE_RECORD(REASON_STALE_EPOCH, bad.epoch = 0);
	command(r, good);
	rig_expect(r, EVENT_DROPPED);
}

/* A kernel for every operation and type, straight from the packet, beside an independent sum. */
static void every_type_has_its_kernel(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	for (uint8_t op = 1; op < REDUCE_OP_END; op++)
		for (uint8_t dtype = 1; dtype < REDUCE_DTYPE_END; dtype++) {
			struct record b = record_counted(0, 2);
			b.buffer.reduce_op = op;
			b.buffer.dtype = dtype;
			memset(rig_data(r, 0), 0, RIG_CHUNK);
			memset(rig_bitmap(r, 0), 0, RIG_BITMAP_BYTES);
			memset(rig_bitmap(r, TAKEN_AT), 0, 64);
			memset(rig_bitmap(r, TAKEN_AT + 1), 0, 64);
			command(r, b);
			command(r, record_taken(r, 0, 0, &peer, 0, CHUNKS));
			command(r, record_taken(r, 1, 0, &peer, 0, CHUNKS));
			send(r, &peer, 0, 0, 0);
			send(r, &peer, 1, 0, 0x3c);
			if (op != REDUCE_PROD && op != REDUCE_MIN)
				chunk_is(r, 0, 0, 0x3c); /* 0 + x, max(0, x) */
			else
				chunk_is(r, 0, 0, 0);
			assert_true(buffer_has(buffer_at(r, 0), 0));
			command(r, record_drop(RECORD_FLAG_BUFFER, record_handle(0)));
			rig_expect(r, EVENT_DROPPED);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(a_chunk_is_ready_when_all_are_in),
		test_rig(the_ends_are_told_once),
		test_rig(the_numbers_of_the_sender_are_shifted),
		test_rig(a_copy_is_shifted_too),
		test_rig(more_than_granted_is_refused),
		test_rig(an_edge_goes_on_where_it_was),
		test_rig(too_many_contributors_change_nothing),
		test_rig(counts_are_kept_with_the_bits),
		test_rig(a_torn_chunk_is_found),
		test_rig(wrong_records_are_refused),
		test_rig(every_type_has_its_kernel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
