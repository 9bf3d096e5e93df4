/* SPDX-License-Identifier: BSD-3-Clause */
/* Buffers: the low watermark at word boundaries, resuming, progress, local producers, refusals. */
#include "fixtures/core_test.h"

static const uint32_t counts[] = {1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 700};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]), LAST_BYTES = 65 };

static uint64_t bytes_of(uint32_t chunks)
{
	return (uint64_t)(chunks - 1) * RIG_CHUNK + LAST_BYTES;
}

struct fill {
	struct rig *r;
	struct peer peer;
	struct buffer *b;
	uint32_t chunks;
	bool have[1024];
	uint64_t reported; /* by PROGRESS */
	bool done;
};

static void fill_begin(struct fill *f, struct rig *r, uint32_t chunks)
{
	struct record buffer = record_buffer(0, bytes_of(chunks));

	memset(f, 0, sizeof(*f));
	f->r = r;
	f->peer = rig_connect(r, 1);
	f->chunks = chunks;
	rig_command(r, &buffer);
	struct record in = record_edge(COMMAND_IN, 0, 0, &f->peer, 0, chunks);
	rig_command(r, &in);
	f->b = buffer_find(r->e, buffer.buffer.buffer);
	in_edge_find(r->e, in.edge.edge)->granted = chunks;
}

static void fill_take(struct fill *f, uint32_t chunk)
{
	struct packet p;

	peer_begin(f->r, &f->peer, &p);
	forge_data(&p, record_handle(0), chunk, buffer_chunk_length(f->b, chunk), 1);
	peer_send(f->r, &f->peer, &p);
	f->have[chunk] = true;
}

static void fill_events(struct fill *f, uint64_t watermark)
{
	struct record event;

	while (rig_event(f->r, &event)) {
		assert_false(f->done);
		assert_int_equal(event.token, 100);
		assert_int_equal(event.epoch, 1);
		assert_int_equal(event.progress.buffer, f->b->handle);
		assert_int_equal(event.progress.ready_bytes, watermark);
		if (event.op == EVENT_BUFFER_DONE) {
			f->done = true;
			continue;
		}
		assert_int_equal(event.op, EVENT_PROGRESS);
		assert_true(watermark >=
			    f->reported + f->r->config.block_bytes / RIG_CHUNK * RIG_CHUNK);
		f->reported = watermark;
	}
}

/* The buffer says what a plain array of flags says. */
static void fill_check(struct fill *f)
{
	uint32_t low = 0, count = 0, high = 0;

	while (low < f->chunks && f->have[low])
		low++;
	for (uint32_t k = 0; k < f->chunks; k++) {
		count += f->have[k];
		high = f->have[k] ? k + 1 : high;
		assert_int_equal(buffer_has(f->b, k), f->have[k]);
		assert_int_equal(buffer_ready_word(f->b, k / 64) >> (k % 64) & 1, f->have[k]);
	}
	assert_int_equal(f->b->ready_low, low);
	assert_int_equal(f->b->ready_count, count);
	assert_int_equal(f->b->ready_high, high);
	uint64_t watermark = numbers_min((uint64_t)low * RIG_CHUNK, f->b->size);
	assert_int_equal(f->r->config.table->slot[0].watermark, watermark);
	fill_events(f, watermark);
	assert_int_equal(f->done, low == f->chunks);
}

static void fill_drop(struct fill *f)
{
	struct record drop = record_drop(RECORD_FLAG_BUFFER, f->b->handle);

	rig_command(f->r, &drop);
	struct record event = rig_expect(f->r, EVENT_DROPPED);
	assert_int_equal(event.flags, RECORD_FLAG_BUFFER);
	assert_int_equal(event.token, 100);
	assert_int_equal(event.epoch, 1);
	assert_int_equal(event.progress.buffer, drop.progress.buffer);
	assert_null(in_edge_find(f->r->e, record_handle(0)));
	assert_int_equal(f->r->e->in_active, 0);
}

static void any_order_moves_the_watermark(void **state)
{
	(void)state;
	for (uint32_t c = 0; c < COUNTS; c++) {
		for (uint64_t seed = 1; seed < 8; seed++) {
			struct fill f;
			uint32_t order[1024];
			uint64_t s = seed;

			fill_begin(&f, rig_new(NULL), counts[c]);
			for (uint32_t k = 0; k < f.chunks; k++) {
				uint32_t spread = seed == 1 ? 1 : seed == 2 ? 70 : f.chunks;
				uint32_t back =
					(uint32_t)draw_below(&s, numbers_min(spread, k + 1));
				order[k] = order[k - back];
				order[k - back] = k;
			}
			for (uint32_t k = 0; k < f.chunks; k++) {
				fill_take(&f, order[k]);
				fill_check(&f);
			}
			assert_true(f.done);
			rig_drops(f.r, NULL);
			fill_drop(&f);
			rig_free(f.r);
		}
	}
}

/* A place that is used again knows nothing of its former owner. */
static void a_place_is_used_again(void **state)
{
	struct fill f;
	struct record source = record_source(0, bytes_of(65), RIG_CHUNK);

	fill_begin(&f, *state, 65);
	for (uint32_t k = 0; k < 65; k++)
		fill_take(&f, k);
	fill_check(&f);
	fill_drop(&f);
	memset(rig_bitmap(f.r, 0), 0, RIG_BITMAP_BYTES);
	struct record again = record_buffer(0, bytes_of(64));
	again.buffer.buffer = handle_make(0, 8);
	rig_command(f.r, &again);
	rig_silent(f.r);
	assert_int_equal(f.b->ready_count, 0);
	assert_int_equal(f.b->ready_high, 0);
	struct record drop = record_drop(RECORD_FLAG_BUFFER, again.buffer.buffer);
	rig_command(f.r, &drop);
	rig_expect(f.r, EVENT_DROPPED);
	rig_command(f.r, &source);
	assert_null(f.b->bitmap);
	assert_int_equal(f.b->ready_count, 1);
}

/* Whatever memory held beyond the last chunk, only chunks count. */
static void resuming_counts_what_is_there(void **state)
{
	uint64_t seed = 31;

	(void)state;
	for (uint32_t round = 0; round < 40 * COUNTS; round++) {
		struct fill f = {.r = rig_new(NULL), .chunks = counts[round % COUNTS]};
		uint64_t *bits = rig_bitmap(f.r, 0);
		uint32_t prefix = (uint32_t)draw_below(&seed, f.chunks + 1);
		struct record buffer = record_buffer(0, bytes_of(f.chunks));

		memset(bits, 0xff, RIG_BITMAP_BYTES); /* junk behind the end */
		for (uint32_t k = 0; k < f.chunks; k++) {
			f.have[k] = k < prefix || draw_below(&seed, 3) == 0;
			if (!f.have[k])
				bits[k / 64] &= ~(UINT64_C(1) << (k % 64));
		}
		rig_command(f.r, &buffer);
		f.b = buffer_find(f.r->e, buffer.buffer.buffer);
		fill_check(&f);
		assert_int_equal(bits[(f.chunks + 63) / 64], UINT64_MAX); /* not ours to touch */
		rig_free(f.r);
	}
}

static void a_local_producer_advances(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record source = record_source(0, bytes_of(100), 0);

	rig_command(r, &source);
	struct buffer *b = buffer_find(r->e, record_handle(0));
	struct record out = record_edge(COMMAND_OUT, 0, 0, &peer, 0, 100);
	rig_command(r, &out);
	struct out_edge *o = out_edge_find(r->e, out.edge.edge);
	assert_int_equal(out_edge_next(r->e, o), CHUNK_NONE);
	static const struct {
		uint64_t bytes;
		uint32_t low;
	} steps[] = {{1, 0},
		     {RIG_CHUNK - 1, 0},
		     {RIG_CHUNK, 1},
		     {10 * RIG_CHUNK + 5, 10},
		     {3 * RIG_CHUNK, 10},
		     {0, 10},
		     {64 * RIG_CHUNK, 64}};
	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		struct record advance = record_advance(record_handle(0), steps[k].bytes);
		rig_command(r, &advance);
		assert_int_equal(b->ready_low, steps[k].low);
		assert_int_equal(b->ready_high, steps[k].low);
		assert_int_equal(out_edge_next(r->e, o), steps[k].low > 0 ? 0 : CHUNK_NONE);
	}
	struct record advance = record_advance(record_handle(0), bytes_of(100));
	rig_command(r, &advance); /* the short last chunk is whole now */
	assert_int_equal(b->ready_low, 100);
	assert_int_equal(r->config.table->slot[0].watermark, 0); /* the producer keeps it */
	rig_silent(r);
}

static void every_record_that_does_not_hold_is_refused(void **state)
{
	struct rig *r = *state;
	const struct record good = record_buffer(0, bytes_of(100));
	struct record bad;
	uint64_t store = r->config.store_bytes;

	REFUSE_RECORD(REASON_BAD_ID, bad.buffer.buffer = 0);
	REFUSE_RECORD(REASON_BAD_ID, bad.buffer.buffer = 3); /* generation 0 */
	REFUSE_RECORD(REASON_BAD_ID, bad.buffer.buffer = handle_make(RIG_BUFFERS, 1));
	REFUSE_RECORD(REASON_BAD_ID, bad.buffer.buffer = UINT32_MAX);
	REFUSE_RECORD(REASON_BAD_CHUNK, bad.buffer.chunk_bytes = 0);
	REFUSE_RECORD(REASON_BAD_CHUNK, bad.buffer.chunk_bytes = 63);
	REFUSE_RECORD(REASON_BAD_CHUNK, bad.buffer.chunk_bytes = 65);
	REFUSE_RECORD(REASON_BAD_CHUNK, bad.buffer.chunk_bytes = CHUNK_BYTES_MAX + 64);
	REFUSE_RECORD(REASON_BAD_CHUNK, bad.buffer.chunk_bytes = UINT16_MAX);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.size = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.size = store + 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.size = UINT64_MAX);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.size = UINT64_MAX - RIG_CHUNK);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.store_offset = store - good.buffer.size + 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.store_offset = UINT64_MAX);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.ready_bytes = good.buffer.size + 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.bitmap_offset += 4);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.bitmap_offset = store - 8);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.bitmap_offset = UINT64_MAX - 7);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.table_slot = RIG_SLOTS);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.buffer.table_slot = UINT32_MAX - 1);
	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.need = 0);
	REFUSE_RECORD(REASON_UNSUPPORTED, bad.buffer.need = 2);
	rig_command(r, &good);
	REFUSE_RECORD(REASON_BUSY_ID, bad.buffer.size++);
	REFUSE_RECORD(REASON_BUSY_ID, bad.buffer.buffer = handle_make(0, 8));
	REFUSE_RECORD(REASON_STALE_EPOCH, bad.epoch = 0);
	struct record source = record_source(1, bytes_of(100), RIG_CHUNK);
	rig_command(r, &source);
	REFUSE_RECORD(REASON_BAD_ID, bad = record_advance(record_handle(2), 0));
	REFUSE_RECORD(REASON_BAD_ID, bad = record_advance(handle_make(1, 6), 0));
	REFUSE_RECORD(REASON_BAD_RANGE, bad = record_advance(record_handle(0), RIG_CHUNK));
	REFUSE_RECORD(REASON_BAD_RANGE, bad = record_advance(record_handle(1), bytes_of(100) + 1));
	REFUSE_RECORD(REASON_BAD_RANGE, bad = record_advance(record_handle(1), UINT64_MAX));
	REFUSE_RECORD(REASON_STALE_EPOCH, bad = record_advance(record_handle(1), 0), bad.epoch = 0);
	REFUSE_RECORD(REASON_BAD_ID, bad = record_drop(RECORD_FLAG_BUFFER, record_handle(2)));
	REFUSE_RECORD(REASON_BAD_ID, bad = record_drop(RECORD_FLAG_BUFFER, handle_make(0, 8)));
	REFUSE_RECORD(REASON_STALE_EPOCH, bad = record_drop(RECORD_FLAG_BUFFER, record_handle(0)),
		      bad.epoch = 0);
}

/* A store that holds more chunks than 32 bits can count in words of 64 (nothing of it is touched).
 */
static void huge_store(struct engine_config *f)
{
	f->store_bytes = UINT64_C(1) << 40;
}

static void chunk_numbers_stay_within_their_type(void **state)
{
	struct rig *r = rig_new(huge_store);
	struct record source = record_source(0, 0, 0), event;

	(void)state;
	source.buffer.chunk_bytes = 64;
	for (uint64_t chunks = (UINT64_C(1) << 32) - 130; chunks < (UINT64_C(1) << 32) + 3;
	     chunks++) {
		source.buffer.size = source.buffer.ready_bytes = 64 * chunks;
		rig_command(r, &source);
		assert_true(rig_event(r, &event));
		assert_int_equal(event.reason, REASON_BAD_RANGE);
	}
	source.buffer.size = source.buffer.ready_bytes = 64 * (UINT64_C(1) << 31);
	rig_command(r, &source);
	rig_silent(r);
	assert_int_equal(buffer_find(r->e, record_handle(0))->chunks, UINT32_C(1) << 31);
	rig_free(r);
}

/* What a queued mark of progress says when its buffer has gone meanwhile. */
static void progress_of_a_dropped_buffer(void **state)
{
	struct fill f;

	fill_begin(&f, *state, 700);
	for (uint32_t k = 0; k < 60; k++)
		fill_take(&f, k);
	struct record drop = record_drop(RECORD_FLAG_BUFFER, f.b->handle);
	rig_command(f.r, &drop);
	struct record event = rig_expect(f.r, EVENT_PROGRESS);
	assert_in_range(event.progress.ready_bytes, f.r->config.block_bytes - RIG_CHUNK,
			60 * RIG_CHUNK);
	rig_expect(f.r, EVENT_DROPPED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_order_moves_the_watermark),
		test_rig(a_place_is_used_again),
		cmocka_unit_test(resuming_counts_what_is_there),
		test_rig(a_local_producer_advances),
		test_rig(every_record_that_does_not_hold_is_refused),
		cmocka_unit_test(chunk_numbers_stay_within_their_type),
		test_rig(progress_of_a_dropped_buffer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
