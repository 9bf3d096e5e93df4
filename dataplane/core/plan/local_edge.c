/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "local_edge.h"
#include "combine.h"
#include "core/conn/conn.h"
#include "in_edge.h"

enum {
	SWEEP_BYTES = 65536, /* of sources read, in one turn */
	SWEEP_LOOK = 64,     /* what looking at a word of chunks, or at one in vain, counts for */
};

void local_edge_wake(struct engine *e, struct in_edge *i, uint32_t from, uint32_t to)
{
	uint32_t end = i->origin_first + (i->end - i->first);

	if (i->missing == 0 || !i->source || to <= i->origin_first || from >= end)
		return;
	uint32_t chunk = from <= i->origin_first ? i->first : i->first + (from - i->origin_first);
	if (chunk < i->cursor)
		i->cursor = chunk;
	list_want(&e->sweeps, &i->due);
}

/* 64 bits from a bit on; bits at or beyond the end of the map's words are 0. */
static uint64_t local_edge_shift(uint64_t low, uint64_t high, uint32_t shift)
{
	return shift == 0 ? low : low >> shift | high << (64 - shift);
}

static uint64_t local_edge_ready(const struct buffer *b, uint32_t at)
{
	uint32_t word = at / 64;
	bool more = (uint64_t)(word + 1) * 64 < b->chunks;

	return local_edge_shift(buffer_ready_word(b, word),
				more ? buffer_ready_word(b, word + 1) : 0, at % 64);
}

static uint64_t local_edge_took(const struct in_edge *i, uint32_t at)
{
	uint32_t word = at / 64;
	bool more = (uint64_t)(word + 1) * 64 < i->buffer->chunks;

	return local_edge_shift(buffer_map_word(i->took, word),
				more ? buffer_map_word(i->took, word + 1) : 0, at % 64);
}

/* Of 64 chunks from one on, those in a group of eight that has begun. An only LOCAL edge waits
 * for a payload everywhere else: a source that is there at once is not looked at chunk by chunk. */
static uint64_t local_edge_begun(const struct in_edge *i, uint32_t chunk)
{
	const struct buffer *b = i->buffer;
	uint64_t bits = UINT64_MAX;

	if (b->need == 1 || b->locals.next != b->locals.prev || chunk + 64 > b->chunks)
		return bits;
	for (uint32_t k = 0; k < 8; k++) {
		uint64_t counts;
		memcpy(&counts, b->counts + chunk + 8 * k, sizeof(counts));
		if (counts == 0)
			bits &= ~(UINT64_C(0xff) << (8 * k));
	}
	return bits;
}

/* The next chunk, from the cursor on, that may be taken now. False, and off the list: none. */
static bool local_edge_next(struct in_edge *i, int64_t *budget)
{
	uint32_t ready = i->source->ready_high > i->origin_first
				 ? i->source->ready_high - i->origin_first
				 : 0;
	uint32_t limit = i->first + (uint32_t)numbers_min(ready, i->end - i->first);

	assert(i->cursor >= i->first);

	while (i->cursor<limit && * budget> 0) {
		uint64_t bits =
			local_edge_ready(i->source, i->origin_first + (i->cursor - i->first)) &
			~local_edge_took(i, i->cursor) & local_edge_begun(i, i->cursor);
		*budget -= SWEEP_LOOK;
		if (bits != 0) {
			i->cursor += (uint32_t)__builtin_ctzll(bits);
			if (i->cursor < limit)
				return true;
			break;
		}
		i->cursor += 64;
	}
	if (i->cursor < limit)
		return false;
	i->cursor = limit;
	list_remove(&i->due);
	return false;
}

void local_edge_sweep(struct engine *e)
{
	int64_t budget = SWEEP_BYTES;

	while (budget > 0 && !list_empty(&e->sweeps)) {
		struct in_edge *i = list_entry(e->sweeps.next, struct in_edge, due);
		while (budget > 0 && local_edge_next(i, &budget)) {
			uint32_t chunk = i->cursor++;
			/* the next one; of longer chunks the processor fetches more by itself */
			if (i->cursor < i->end && i->buffer->chunk_bytes <= COMBINE_PREFETCH_BYTES)
				combine_prefetch(i->buffer, i->cursor);
			budget -= (int64_t)combine_chunk(e, i->buffer, chunk, NULL, NULL) *
				  i->buffer->chunk_bytes;
		}
		if (!list_empty(&i->due)) { /* behind the others */
			list_remove(&i->due);
			list_append(&e->sweeps, &i->due);
		}
	}
}

/* Kernels allow no ranges that overlap in part, and a chunk is not to be added to itself. */
static bool local_edge_overlaps(const struct buffer *b, const struct buffer *source,
				const struct record *r)
{
	const uint8_t *to = b->data + (uint64_t)r->local.first_chunk * b->chunk_bytes;
	const uint8_t *from = source->data + (uint64_t)r->local.peer_first * b->chunk_bytes;
	uint32_t last = r->local.chunks - 1;
	uint64_t bytes = (uint64_t)last * b->chunk_bytes +
			 buffer_chunk_length(b, r->local.first_chunk + last);

	return to < from + bytes && from < to + bytes;
}

static enum reason local_edge_check_source(const struct buffer *b, const struct buffer *source,
					   const struct record *r)
{
	uint32_t first = r->local.peer_first, chunks = r->local.chunks;

	if (source->chunk_bytes != b->chunk_bytes)
		return REASON_BAD_CHUNK;
	if (!buffer_has_range(source, first, chunks))
		return REASON_BAD_RANGE;
	if (buffer_chunk_length(b, r->local.first_chunk + chunks - 1) !=
	    buffer_chunk_length(source, first + chunks - 1))
		return REASON_BAD_CHUNK;
	return local_edge_overlaps(b, source, r) ? REASON_BAD_RANGE : REASON_NONE;
}

static enum reason local_edge_check(struct engine *e, const struct record *r)
{
	uint16_t index = handle_index(r->local.edge);
	const struct buffer *b = buffer_find(e, r->local.buffer);
	const struct buffer *source = buffer_find(e, r->local.source);

	if (handle_generation(r->local.edge) == 0 || index >= e->config.edges_max || !b ||
	    !source || source == b)
		return REASON_BAD_ID;
	if (e->in_edges[index].handle != 0)
		return REASON_BUSY_ID;
	if (r->epoch < b->epoch || r->epoch < source->epoch)
		return REASON_STALE_EPOCH;
	if (r->local.bitmap_offset == 0)
		return REASON_BAD_RANGE;
	enum reason bad = in_edge_check_range(e, b, r);
	return bad != REASON_NONE ? bad : local_edge_check_source(b, source, r);
}

enum reason local_edge_open(struct engine *e, const struct record *r)
{
	enum reason bad = local_edge_check(e, r);
	if (bad != REASON_NONE)
		return bad;

	struct buffer *b = buffer_find(e, r->local.buffer);
	struct in_edge *i = in_edge_new(e, r, b);
	i->source = buffer_find(e, r->local.source);
	assert(i->source && i->source != b);
	i->tells = true;
	list_append(&b->locals, &i->on_buffer);
	list_append(&i->source->takers, &i->on_origin);
	in_edge_begin(e, i);
	local_edge_wake(e, i, 0, i->source->ready_high);
	return REASON_NONE;
}
