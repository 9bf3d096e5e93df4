/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "internal/crash_point.h"
#include "buffer.h"
#include "combine.h"
#include "core/engine_state.h"
#include "event.h"
#include "in_edge.h"
#include "local_edge.h"
#include "out_edge.h"

struct buffer *buffer_find(struct engine *e, uint32_t handle)
{
	uint16_t index = handle_index(handle);

	if (handle == 0 || index >= e->config.buffers_max || e->buffers[index].handle != handle)
		return NULL;
	return &e->buffers[index];
}

bool buffer_has(const struct buffer *b, uint32_t chunk)
{
	return chunk < b->ready_low || (b->bitmap && (b->bitmap[chunk / 64] >> (chunk % 64) & 1));
}

static void buffer_publish(struct buffer *b)
{
	if (b->watermark)
		atomic_store_explicit(b->watermark, buffer_ready_bytes(b), memory_order_release);
}

/* Moves ready_low over every ready chunk that follows it, a word at a time. */
static void buffer_settle(struct buffer *b)
{
	uint32_t limit = b->chunks - b->withhold;

	while (b->ready_low < limit) {
		uint64_t missing =
			~buffer_map_word(b->bitmap, b->ready_low / 64) >> (b->ready_low % 64);
		uint32_t run = missing == 0 ? 64 : (uint32_t)__builtin_ctzll(missing);
		uint32_t in_word = 64 - b->ready_low % 64;

		b->ready_low += run < in_word ? run : in_word;
		if (run < in_word)
			break;
	}
	if (b->ready_low > limit)
		b->ready_low = limit;
	assert(b->ready_low <= b->chunks);
}

static void buffer_report(struct engine *e, struct buffer *b)
{
	if (b->ready_count == b->chunks && !b->done_reported) {
		struct record *r = event_push(e, EVENT_BUFFER_DONE);
		r->epoch = b->epoch;
		r->token = b->token;
		r->progress.buffer = b->handle;
		r->progress.ready_bytes = b->size;
		b->done_reported = true;
		return;
	}
	uint64_t block_chunks = numbers_max(1, e->config.block_bytes / b->chunk_bytes);
	if (!b->progress_queued && !b->done_reported &&
	    b->ready_low - b->progress_low >= block_chunks) {
		struct record *r = event_push(e, EVENT_PROGRESS);
		r->epoch = b->epoch;
		r->token = b->token;
		r->progress.buffer = b->handle;
		r->progress.ready_bytes = buffer_ready_bytes(b);
		b->progress_queued = true;
	}
}

/* A copy's chunk is in: every edge into the buffer misses one chunk less. */
static void buffer_tell(struct engine *e, struct buffer *b, uint32_t chunk)
{
	list_each(i, &b->in_edges)
		in_edge_covered(e, list_entry(i, struct in_edge, on_buffer), chunk);
	list_each(l, &b->locals)
		in_edge_covered(e, list_entry(l, struct in_edge, on_buffer), chunk);
}

/* To all readers of the buffer, here and on other nodes. */
static void buffer_give(struct engine *e, struct buffer *b, uint32_t chunk)
{
	if (chunk == b->ready_low) {
		buffer_settle(b);
		buffer_publish(b);
	}
	list_each(l, &b->out_edges)
		out_edge_ready(e, list_entry(l, struct out_edge, on_buffer), chunk);
	list_each(t, &b->takers)
		local_edge_wake(e, list_entry(t, struct in_edge, on_origin), chunk, chunk + 1);
}

void buffer_ready(struct engine *e, struct buffer *b, uint32_t chunk)
{
	assert(chunk < b->chunks && b->bitmap);
	crash_point();
	b->bitmap[chunk / 64] |= UINT64_C(1) << (chunk % 64);
	crash_point();
	b->ready_count++;
	if (chunk >= b->ready_high)
		b->ready_high = chunk + 1;
	if (!buffer_withholds(b, chunk))
		buffer_give(e, b, chunk);
	if (!b->counts)
		buffer_tell(e, b, chunk);
	buffer_report(e, b);
}

/* A buffer that goes on from an earlier life: counts what the bitmap holds. */
static void buffer_resume(struct buffer *b)
{
	uint32_t words = (b->chunks + 63) / 64;

	if (b->chunks % 64 != 0) /* no bits beyond the end, whatever memory held there */
		b->bitmap[words - 1] &= (UINT64_C(1) << (b->chunks % 64)) - 1;
	for (uint32_t w = 0; w < words; w++) {
		uint64_t bits = buffer_map_word(b->bitmap, w);
		if (bits == 0)
			continue;
		b->ready_count += (uint32_t)__builtin_popcountll(bits);
		b->ready_high = w * 64 + 64 - (uint32_t)__builtin_clzll(bits);
	}
	buffer_settle(b);
	b->progress_low = b->ready_low;
}

static bool buffer_inside(uint64_t offset, uint64_t size, uint64_t whole)
{
	return offset <= whole && size <= whole - offset;
}

bool buffer_map_fits(const struct engine *e, uint64_t offset, uint64_t bytes)
{
	return offset % 8 == 0 && buffer_inside(offset, bytes, e->config.store_bytes);
}

bool buffer_has_range(const struct buffer *b, uint32_t first, uint32_t chunks)
{
	return chunks != 0 && first < b->chunks && chunks <= b->chunks - first;
}

/* A chunk that is not ready but has all it needs, or is marked, was being written when an earlier
 * life of this process ended. */
static bool buffer_torn(const struct engine *e, const struct record *r, uint32_t chunks)
{
	const uint8_t *at = e->config.store + r->buffer.bitmap_offset;
	const uint8_t *counts = at + chunk_bitmap_bytes(chunks);
	const uint64_t *map = (const uint64_t *)(const void *)at;

	for (uint32_t chunk = 0; chunk < chunks; chunk++)
		if (counts[chunk] >= r->buffer.need || counts[chunk] == COUNT_TORN)
			if (!(map[chunk / 64] >> (chunk % 64) & 1))
				return true;
	return false;
}

static enum reason buffer_check_rule(const struct engine *e, const struct record *r)
{
	uint64_t chunks = chunk_count(r->buffer.size, r->buffer.chunk_bytes);

	if (r->buffer.withhold > (r->buffer.bitmap_offset != 0))
		return REASON_UNSUPPORTED;
	if (r->buffer.reduce_op == 0)
		return r->buffer.need == 1 ? REASON_NONE : REASON_UNSUPPORTED;
	if (!reduce_op_valid(r->buffer.reduce_op) || !reduce_dtype_valid(r->buffer.dtype) ||
	    r->buffer.need == 0)
		return REASON_UNSUPPORTED;
	if (r->buffer.bitmap_offset == 0 || r->buffer.size % reduce_dtype_bytes(r->buffer.dtype))
		return REASON_BAD_RANGE;
	if (!buffer_map_fits(e, r->buffer.bitmap_offset, chunk_counted_bytes(chunks)))
		return REASON_BAD_RANGE;
	return buffer_torn(e, r, (uint32_t)chunks) ? REASON_TORN_CHUNK : REASON_NONE;
}

static enum reason buffer_check(struct engine *e, const struct record *r)
{
	uint16_t index = handle_index(r->buffer.buffer);
	uint16_t chunk = r->buffer.chunk_bytes;

	if (handle_generation(r->buffer.buffer) == 0 || index >= e->config.buffers_max)
		return REASON_BAD_ID;
	if (e->buffers[index].handle != 0)
		return r->epoch < e->buffers[index].epoch ? REASON_STALE_EPOCH : REASON_BUSY_ID;
	if (chunk < CHUNK_BYTES_MIN || chunk > CHUNK_BYTES_MAX || chunk % 64 != 0)
		return REASON_BAD_CHUNK;
	if (r->buffer.size == 0 || chunk_count(r->buffer.size, chunk) > CHUNKS_MAX)
		return REASON_BAD_RANGE;
	if (!buffer_inside(r->buffer.store_offset, r->buffer.size, e->config.store_bytes))
		return REASON_BAD_RANGE;
	if (r->buffer.ready_bytes > r->buffer.size)
		return REASON_BAD_RANGE;
	if (r->buffer.bitmap_offset != 0 &&
	    !buffer_map_fits(e, r->buffer.bitmap_offset,
			     chunk_bitmap_bytes(chunk_count(r->buffer.size, chunk))))
		return REASON_BAD_RANGE;
	if (r->buffer.table_slot != TABLE_SLOT_NONE &&
	    (!e->config.table || r->buffer.table_slot >= e->config.table->slots))
		return REASON_BAD_RANGE;
	return buffer_check_rule(e, r);
}

static void buffer_rule(const struct engine *e, struct buffer *b, const struct record *r)
{
	uint32_t op = r->buffer.reduce_op, dtype = r->buffer.dtype;

	b->need = r->buffer.need;
	if (op == 0)
		return;
	b->counts = (uint8_t *)b->bitmap + chunk_bitmap_bytes(b->chunks);
	b->apply = kernel_find(e->kernels, op, dtype);
	b->many = kernel_find_many(e->kernels, op, dtype);
	b->scale = r->buffer.scale;
	if (b->scale > 1)
		b->divide = kernel_find_scale(e->kernels, dtype);
}

/* Chunks of which a producer that has written so much has written every byte. */
static uint32_t buffer_whole_chunks(const struct buffer *b, uint64_t ready_bytes)
{
	return ready_bytes == b->size ? b->chunks : (uint32_t)(ready_bytes / b->chunk_bytes);
}

enum reason buffer_open(struct engine *e, const struct record *r)
{
	enum reason bad = buffer_check(e, r);
	if (bad != REASON_NONE)
		return bad;

	struct buffer *b = &e->buffers[handle_index(r->buffer.buffer)];
	memset(b, 0, sizeof(*b));
	list_init(&b->out_edges);
	list_init(&b->in_edges);
	list_init(&b->locals);
	list_init(&b->takers);
	b->handle = r->buffer.buffer;
	e->buffer_number += e->buffer_number == UINT32_MAX ? 2 : 1;
	assert(e->buffer_number != 0);
	b->number = e->buffer_number;
	b->epoch = r->epoch;
	b->token = r->token;
	b->data = e->config.store + r->buffer.store_offset;
	b->size = r->buffer.size;
	b->chunk_bytes = r->buffer.chunk_bytes;
	b->chunks = (uint32_t)chunk_count(b->size, b->chunk_bytes);
	if (r->buffer.table_slot != TABLE_SLOT_NONE)
		b->watermark = &e->config.table->slot[r->buffer.table_slot].watermark;
	if (r->buffer.bitmap_offset != 0) {
		b->bitmap = (uint64_t *)(void *)(e->config.store + r->buffer.bitmap_offset);
		b->withhold = r->buffer.withhold;
		buffer_rule(e, b, r);
		buffer_resume(b);
		buffer_publish(b);
		buffer_report(e, b);
	} else { /* written by a local producer, who also keeps the watermark */
		b->watermark = NULL;
		b->ready_low = buffer_whole_chunks(b, r->buffer.ready_bytes);
		b->ready_high = b->ready_count = b->progress_low = b->ready_low;
		b->done_reported = true; /* the producer knows */
	}
	return REASON_NONE;
}

enum reason buffer_advance(struct engine *e, const struct record *r)
{
	struct buffer *b = buffer_find(e, r->progress.buffer);

	if (!b)
		return REASON_BAD_ID;
	if (r->epoch < b->epoch)
		return REASON_STALE_EPOCH;
	if (b->bitmap || r->progress.ready_bytes > b->size)
		return REASON_BAD_RANGE;
	uint32_t low = buffer_whole_chunks(b, r->progress.ready_bytes);
	if (low <= b->ready_low)
		return REASON_NONE;
	assert(low <= b->chunks && !b->counts);
	uint32_t first = b->ready_low;
	b->ready_low = b->ready_high = b->ready_count = low;
	list_each(l, &b->out_edges)
		out_edge_ready(e, list_entry(l, struct out_edge, on_buffer), first);
	list_each(t, &b->takers)
		local_edge_wake(e, list_entry(t, struct in_edge, on_origin), first, low);
	return REASON_NONE;
}

enum reason buffer_finish(struct engine *e, const struct record *r)
{
	struct buffer *b = buffer_find(e, r->progress.buffer);

	if (!b)
		return REASON_BAD_ID;
	if (r->epoch < b->epoch)
		return REASON_STALE_EPOCH;
	if (!b->withhold)
		return REASON_NONE;
	b->withhold = false;
	if (buffer_has(b, b->chunks - 1))
		buffer_give(e, b, b->chunks - 1);
	return REASON_NONE;
}

enum reason buffer_drop(struct engine *e, const struct record *r)
{
	struct buffer *b = buffer_find(e, r->progress.buffer);

	if (!b)
		return REASON_BAD_ID;
	if (r->epoch < b->epoch)
		return REASON_STALE_EPOCH;
	list_each(o, &b->out_edges) out_edge_close(list_entry(o, struct out_edge, on_buffer));
	list_each(i, &b->in_edges) in_edge_close(e, list_entry(i, struct in_edge, on_buffer));
	list_each(l, &b->locals) in_edge_close(e, list_entry(l, struct in_edge, on_buffer));
	list_each(t, &b->takers)
		in_edge_fail(e, list_entry(t, struct in_edge, on_origin), REASON_CLOSED);
	assert(list_empty(&b->out_edges) && list_empty(&b->in_edges) && list_empty(&b->locals));
	assert(list_empty(&b->takers));
	struct record *event = event_push(e, EVENT_DROPPED);
	event->flags = RECORD_FLAG_BUFFER;
	event->epoch = b->epoch;
	event->token = b->token;
	event->progress.buffer = b->handle;
	b->handle = 0;
	return REASON_NONE;
}
