/* SPDX-License-Identifier: BSD-3-Clause */
/* LOCAL edges: one pass with a payload, sweeps, sources that are late, partial or gone. */
#include "fixtures/reduce_test.h"

static void a_payload_and_what_is_here_make_one_pass(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	here_and_to_come(r, &peer, object_bytes);
	rig_pass(r, 1000);
	for (uint32_t k = 0; k < CHUNKS; k++)
		chunk_is(r, 0, k, 0); /* it waits: a payload will come */
	assert_true(engine_next_timeout(r->e) > r->now_ns);
	for (uint32_t k = 0; k < CHUNKS; k++) {
		send(r, &peer, 0, k, 1);
		chunk_is(r, 0, k, (uint8_t)(101 + k));
		assert_true(buffer_has(buffer_at(r, 0), k));
		if (k == CHUNKS - 1)
			break;
		send(r, &peer, 0, k, 1);
		chunk_is(r, 0, k, (uint8_t)(101 + k));
	}
	rig_expect(r, EVENT_PROGRESS);
	in_done(r, 0);
	in_done(r, 1);
	rig_expect(r, EVENT_BUFFER_DONE);
	rig_silent(r);
}

static void a_late_source_is_swept_in_bounded_turns(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	here_and_to_come(r, &peer, 0);
	for (uint32_t k = 0; k < CHUNKS; k++)
		send(r, &peer, 0, k, 1);
	in_done(r, 0);
	rig_drain(r);
	rig_pass(r, 50000000);
	assert_true(engine_next_timeout(r->e) > r->now_ns);
	command(r, record_advance(record_handle(1), object_bytes));
	uint32_t turns = 0, before = 0;
	while (engine_next_timeout(r->e) <= r->now_ns) {
		engine_tick(r->e, r->now_ns);
		assert_true((buffer_at(r, 0)->ready_count - before) * RIG_CHUNK < 70000);
		before = buffer_at(r, 0)->ready_count;
		rig_drain(r);
		assert_true(++turns < 10);
	}
	assert_true(turns >= 2);
	for (uint32_t k = 0; k < CHUNKS; k++)
		chunk_is(r, 0, k, (uint8_t)(101 + k));
	rig_expect(r, EVENT_PROGRESS);
	in_done(r, 1);
	rig_expect(r, EVENT_BUFFER_DONE);
	rig_silent(r);
}

/* The source's chunks become ready one by one, by ADVANCE, before and after payloads. */
static void a_source_is_followed(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	here_and_to_come(r, &peer, 0);
	for (uint32_t k = 0; k < CHUNKS; k++) {
		uint64_t ready = k == CHUNKS - 1 ? object_bytes : (uint64_t)(k + 1) * RIG_CHUNK;
		if (k % 2)
			send(r, &peer, 0, k, 1);
		assert_false(buffer_has(buffer_at(r, 0), k));
		command(r, record_advance(record_handle(1), ready - 1));
		rig_pass(r, 0);
		assert_false(buffer_has(buffer_at(r, 0), k));
		command(r, record_advance(record_handle(1), ready));
		rig_pass(r, 0);
		if (k % 2 == 0)
			send(r, &peer, 0, k, 1);
		assert_true(buffer_has(buffer_at(r, 0), k));
		chunk_is(r, 0, k, (uint8_t)(101 + k));
	}
}

static void an_only_source_is_copied(void **state)
{
	struct rig *r = *state;

	for (uint32_t round = 0; round < 2; round++) { /* a counted buffer of one, and a copy */
		source_open(r, 1, 100, object_bytes);
		memset(rig_data(r, 0), 0, object_bytes);
		memset(rig_bitmap(r, 0), 0, RIG_BITMAP_BYTES);
		memset(rig_bitmap(r, TAKEN_AT + 1), 0, RIG_BITMAP_BYTES);
		command(r, round ? record_buffer(0, object_bytes) : record_counted(0, 1));
		command(r, record_local(r, 1, 0, 1));
		rig_pass(r, 0);
		for (uint32_t k = 0; k < CHUNKS; k++)
			chunk_is(r, 0, k, (uint8_t)(100 + k));
		rig_expect(r, EVENT_PROGRESS);
		in_done(r, 1);
		rig_expect(r, EVENT_BUFFER_DONE);
		for (uint32_t k = 2; k-- > 0;) { /* done: the end of the source says nothing */
			command(r, record_drop(RECORD_FLAG_BUFFER, record_handle(k)));
			assert_int_equal(rig_expect(r, EVENT_DROPPED).flags, RECORD_FLAG_BUFFER);
		}
		rig_silent(r);
	}
}

/* A source at an offset, in a part of the destination, the short chunk in step. */
static void a_part_of_a_source(void **state)
{
	struct rig *r = *state;
	struct record local = record_local(r, 1, 0, 1);
	struct record buffer = record_counted(0, 1);

	source_open(r, 1, 0, object_bytes);
	buffer.buffer.size = 10 * RIG_CHUNK + LAST_BYTES;
	command(r, buffer);
	local.local.first_chunk = 1;
	local.local.chunks = 10;
	local.local.peer_first = CHUNKS - 9;
	rig_refuse(r, &local, REASON_BAD_RANGE);
	local.local.peer_first = CHUNKS - 11;
	rig_refuse(r, &local, REASON_BAD_CHUNK); /* a whole chunk into the short one */
	local.local.chunks = 9;
	local.local.peer_first = CHUNKS - 9;
	rig_refuse(r, &local, REASON_BAD_CHUNK); /* and the reverse */
	local.local.chunks = 10;
	local.local.peer_first = CHUNKS - 10;
	command(r, local);
	rig_pass(r, 0);
	in_done(r, 1);
	rig_silent(r);
	for (uint32_t at = 0; at < buffer.buffer.size; at++)
		assert_int_equal(rig_data(r, 0)[at],
				 at < RIG_CHUNK ? 0 : CHUNKS - 11 + at / RIG_CHUNK);
}

/* As many sources as a chunk can count, more than one pass takes. */
static void many_locals(void **state)
{
	struct rig *r = *state;
	enum { LOCALS = 15 };
	uint32_t sum = 0;

	command(r, record_counted(0, 2 * LOCALS - 1));
	for (uint32_t k = 0; k < 2 * LOCALS - 1; k++) {
		struct record local = record_local(r, k % LOCALS, 0, 1 + k % 7);
		if (k < 7)
			source_open(r, 1 + k, (uint8_t)(k + 1), object_bytes);
		local.local.edge = record_handle(k);
		local.local.bitmap_offset =
			taken_offset(r, k % LOCALS) + (k < LOCALS ? 0 : RIG_BITMAP_BYTES / 2);
		local.token = 200 + k;
		command(r, local);
		sum += 1 + k % 7;
		if (k < 2 * LOCALS - 2) /* all but the last are here: some have gone in */
			assert_false(buffer_has(buffer_at(r, 0), 0));
		if (k == 1 || k == LOCALS)
			rig_pass(r, 0);
	}
	rig_pass(r, 0);
	for (uint32_t k = 0; k < CHUNKS; k++)
		chunk_is(r, 0, k, (uint8_t)(sum + (2 * LOCALS - 1) * k));
	uint32_t done = 0;
	struct record event;
	while (rig_event(r, &event))
		done += event.op == EVENT_IN_DONE;
	assert_int_equal(done, 2 * LOCALS - 1);
}

static void a_source_that_goes_fails_its_edges(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	source_open(r, 1, 100, 5 * RIG_CHUNK);
	command(r, record_counted(0, 2));
	command(r, record_local(r, 1, 0, 1));
	command(r, record_taken(r, 0, 0, &peer, 0, CHUNKS));
	send(r, &peer, 0, 2, 1);
	chunk_is(r, 0, 2, 103);
	command(r, record_drop(RECORD_FLAG_BUFFER, record_handle(1)));
	struct record event = rig_expect(r, EVENT_EDGE_FAILED);
	assert_int_equal(event.edge.edge, record_handle(1));
	assert_int_equal(event.flags, RECORD_FLAG_IN);
	assert_int_equal(event.reason, REASON_CLOSED);
	rig_expect(r, EVENT_DROPPED);
	rig_silent(r);
	memset(rig_data(r, 1), 0xee, object_bytes); /* not ours any more */
	send(r, &peer, 0, 3, 1);
	rig_pass(r, 0);
	chunk_is(r, 0, 3, 1);
	chunk_is(r, 0, 2, 103);
	command(r, record_drop(RECORD_FLAG_IN, record_handle(1)));
	rig_expect(r, EVENT_DROPPED);
	source_open(r, 1, 100, object_bytes); /* back: it gives what it had not given */
	command(r, record_local(r, 1, 0, 1));
	rig_pass(r, 0);
	chunk_is(r, 0, 3, 104);
	chunk_is(r, 0, 2, 103);
	command(r, record_drop(RECORD_FLAG_BUFFER, record_handle(0)));
	rig_expect(r, EVENT_DROPPED);
	command(r, record_advance(record_handle(1), object_bytes));
	command(r, record_drop(RECORD_FLAG_BUFFER, record_handle(1)));
	rig_expect(r, EVENT_DROPPED);
	rig_silent(r);
	assert_true(list_empty(&r->e->sweeps));
}

/* Nobody outside may name a LOCAL edge. */
static void a_local_edge_is_no_stream(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	source_open(r, 1, 100, 0);
	command(r, record_counted(0, 2));
	command(r, record_local(r, 1, 0, 1));
	send(r, &peer, 1, 2, 1);
	rig_drops(r, "drop_unknown_stream", 1, NULL);
	chunk_is(r, 0, 2, 0);
}

/* Chunks pass on through counted buffers of the same worker, and leave divided. */
static void one_feeds_the_next_and_is_scaled(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record last = record_counted(3, 2);
	struct packet p;

	source_open(r, 1, 11, object_bytes);
	source_open(r, 2, 30, object_bytes);
	command(r, record_counted(0, 2));
	last.buffer.scale = 3;
	command(r, last);
	command(r, record_local(r, 3, 3, 0));
	command(r, record_local(r, 4, 3, 2));
	command(r, record_edge(COMMAND_OUT, 5, 3, &peer, 0, CHUNKS));
	command(r, record_local(r, 0, 0, 1));
	rig_pass(r, 0);
	chunk_is(r, 3, 0, 0);
	assert_int_equal(buffer_at(r, 0)->counts[0], 0); /* it waits for its second */
	command(r, record_local(r, 1, 0, 2));
	engine_tick(r->e, r->now_ns);
	engine_tick(r->e, r->now_ns);
	assert_true(rig_take(r, &p));
	const uint8_t *frame = packet_frame(&p, FRAME_DATA);
	assert_non_null(frame);
	assert_int_equal(wire_get32(frame + DATA_AT_CHUNK), 0);
	assert_int_equal(p.bytes[p.length - 1], (11 + 30 + 30) / 3);
	rig_pass(r, 0);
	for (uint32_t k = 0; k < CHUNKS; k++) {
		chunk_is(r, 0, k, (uint8_t)(41 + 2 * k));
		chunk_is(r, 3, k, (uint8_t)((uint8_t)(71 + 3 * k) / 3));
	}
}

/* A reader of the buffer here, one elsewhere, and one of its bytes lack the last chunk, though it
 * is in and told, until it is let go: counted or not. */
static void the_last_chunk_is_held(struct rig *r, bool counted)
{
	enum { TAIL = 30 };
	struct peer from = rig_connect(r, 1), to = rig_connect(r, 2);
	struct record b = counted ? record_counted(0, 1) : record_buffer(0, object_bytes);
	struct record finish = {.op = COMMAND_FINISH, .epoch = 1};
	struct out_edge *o;

	b.buffer.withhold = 1;
	command(r, b);
	command(r, counted ? record_taken(r, 0, 0, &from, 0, CHUNKS)
			   : record_edge(COMMAND_IN, 0, 0, &from, 0, CHUNKS));
	grant_all(r, 0);
	command(r, record_counted(2, 1));
	command(r, record_local(r, 1, 2, 0));
	command(r, record_edge(COMMAND_OUT, 0, 0, &to, CHUNKS - TAIL, TAIL));
	o = out_edge_find(r->e, record_handle(0));
	o->credit = TAIL;
	to.c->cc.cwnd_bytes = 1 << 20;
	for (uint32_t k = CHUNKS; k-- > 0;) {
		send(r, &from, 0, k, (uint8_t)k);
		if (k % 7 == 0)
			send(r, &from, 0, CHUNKS - 1, 99); /* again */
		rig_pass(r, 1000);
		rig_drain(r);
	}
	rig_pass(r, 1000);
	rig_drain(r);
	chunk_is(r, 0, CHUNKS - 1, CHUNKS - 1);
	assert_int_equal(buffer_at(r, 0)->ready_count, CHUNKS);
	assert_int_equal(r->config.table->slot[0].watermark, object_bytes - LAST_BYTES);
	assert_int_equal(o->sent_count, TAIL - 1);
	assert_true(out_edge_next(r->e, o) == CHUNK_NONE);
	assert_int_equal(buffer_at(r, 2)->ready_count, CHUNKS - 1);
	assert_false(buffer_has(buffer_at(r, 2), CHUNKS - 1));
	finish.progress.buffer = record_handle(0);
	command(r, finish);
	command(r, finish); /* twice is nothing more */
	rig_pass(r, 1000);
	rig_drain(r);
	assert_int_equal(r->config.table->slot[0].watermark, object_bytes);
	assert_int_equal(o->sent_count, TAIL);
	chunk_is(r, 2, CHUNKS - 1, CHUNKS - 1);
	assert_int_equal(buffer_at(r, 2)->ready_count, CHUNKS);
}

static uint32_t events_of(struct rig *r, enum event_op op)
{
	struct record event;
	uint32_t count = 0;

	while (rig_event(r, &event))
		count += event.op == op && event.progress.buffer == record_handle(0);
	return count;
}

static void the_last_chunk_of_a_sum_is_held(void **state)
{
	the_last_chunk_is_held(*state, true);
	assert_int_equal(events_of(*state, EVENT_BUFFER_DONE), 1);
}

static void the_last_chunk_of_a_copy_is_held(void **state)
{
	the_last_chunk_is_held(*state, false);
	assert_int_equal(events_of(*state, EVENT_BUFFER_DONE), 1);
}

/* Only what edges fill can be held, and a chunk that comes after FINISH is given at once. */
static void nothing_is_held_for_ever(void **state)
{
	struct rig *r = *state;
	struct peer from = rig_connect(r, 1);
	struct record b = record_counted(0, 1), finish = {.op = COMMAND_FINISH, .epoch = 1};
	struct record source = record_source(1, object_bytes, object_bytes);

	source.buffer.withhold = 1;
	rig_refuse(r, &source, REASON_UNSUPPORTED);
	b.buffer.withhold = 2;
	rig_refuse(r, &b, REASON_UNSUPPORTED);
	finish.progress.buffer = record_handle(5);
	rig_refuse(r, &finish, REASON_BAD_ID);
	b.buffer.withhold = 1;
	command(r, b);
	command(r, record_taken(r, 0, 0, &from, 0, CHUNKS));
	grant_all(r, 0);
	finish.progress.buffer = record_handle(0);
	command(r, finish);
	for (uint32_t k = 0; k < CHUNKS; k++)
		send(r, &from, 0, k, 1);
	assert_int_equal(r->config.table->slot[0].watermark, object_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(the_last_chunk_of_a_sum_is_held),
		test_rig(the_last_chunk_of_a_copy_is_held),
		test_rig(nothing_is_held_for_ever),
		test_rig(a_payload_and_what_is_here_make_one_pass),
		test_rig(a_late_source_is_swept_in_bounded_turns),
		test_rig(a_source_is_followed),
		test_rig(an_only_source_is_copied),
		test_rig(a_part_of_a_source),
		test_rig(many_locals),
		test_rig(a_source_that_goes_fails_its_edges),
		test_rig(a_local_edge_is_no_stream),
		test_rig(one_feeds_the_next_and_is_scaled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
