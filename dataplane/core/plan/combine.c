/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdatomic.h>
#include "internal/crash_point.h"
#include "combine.h"
#include "core/kernel/copy.h"
#include "core/engine_state.h"
#include "in_edge.h"
#include "local_edge.h"

/* The sources of one pass: what the chunk holds already, if anything, and whose is added. */
struct participant {
	const void *source[KERNEL_SOURCES_MAX];
	struct in_edge *edge[KERNEL_SOURCES_MAX]; /* of the last `added` sources */
	uint32_t count, added;
};

bool combine_past_caches(const struct buffer *b)
{
	return b->chunk_bytes >= COMBINE_PAST_CHUNK && b->size >= COMBINE_PAST_SIZE && !b->counts &&
	       list_empty(&b->out_edges) && list_empty(&b->takers);
}

void combine_prefetch(const struct buffer *b, uint32_t chunk)
{
	if (combine_past_caches(b))
		return;
	uint32_t bytes = (uint32_t)numbers_min(b->chunk_bytes, COMBINE_PREFETCH_BYTES);
	const uint8_t *to = b->data + (uint64_t)chunk * b->chunk_bytes;
	uint32_t looked = 0;

	for (uint32_t at = 0; at < bytes; at += 64)
		__builtin_prefetch(to + at, 1, 3);
	list_each(l, &b->locals)
	{
		const struct in_edge *i = list_entry(l, struct in_edge, on_buffer);
		if (looked++ == KERNEL_SOURCES_MAX)
			return;
		if (!local_edge_has(i, chunk))
			continue;
		const uint8_t *from = local_edge_chunk(i, chunk);
		for (uint32_t at = 0; at < bytes; at += 64)
			__builtin_prefetch(from + at, 0, 3);
	}
}

static void combine_add(struct participant *m, struct in_edge *i, const uint8_t *bytes)
{
	assert(m->count < KERNEL_SOURCES_MAX && m->added <= m->count);
	m->source[m->count++] = bytes;
	m->edge[m->added++] = i;
}

static void combine_locals(struct participant *m, const struct buffer *b, uint32_t chunk,
			   uint32_t room)
{
	list_each(l, &b->locals)
	{
		struct in_edge *i = list_entry(l, struct in_edge, on_buffer);
		if (m->added == room || m->count == KERNEL_SOURCES_MAX)
			return;
		if (local_edge_has(i, chunk))
			combine_add(m, i, local_edge_chunk(i, chunk));
	}
}

static void combine_run(struct engine *e, const struct buffer *b, const struct participant *m,
			uint8_t *to, uint32_t length, bool last)
{
	uint64_t before = e->config.cycles ? e->config.cycles() : 0;

	assert(m->count >= 1 && (m->count == 1 || b->apply));
	if (m->count == 1 && combine_past_caches(b))
		copy_past_caches(to, m->source[0], length);
	else if (m->count == 1)
		kernel_copy(to, NULL, m->source[0], length);
	else if (m->count == 2)
		b->apply(to, m->source[0], m->source[1], length);
	else
		b->many(to, m->source, m->count, length);
	if (last && b->divide)
		b->divide(to, b->scale, length);
	if (e->config.cycles)
		e->stages.copy += e->config.cycles() - before;
}

static void combine_book(struct engine *e, struct buffer *b, const struct participant *m,
			 uint32_t chunk, uint32_t length, uint32_t counted)
{
	uint64_t bit = UINT64_C(1) << (chunk % 64);
	bool last = counted == b->need;

	for (uint32_t k = 0; b->counts && k < m->added; k++)
		m->edge[k]->took[chunk / 64] |= bit;
	crash_point();
	combine_run(e, b, m, b->data + (uint64_t)chunk * b->chunk_bytes, length, last);
	crash_point();
	for (uint32_t k = 0; b->counts && k < m->added; k++)
		in_edge_given(e, m->edge[k]);
	if (last)
		buffer_ready(e, b, chunk);
}

static uint32_t combine_pass(struct engine *e, struct buffer *b, uint32_t chunk, struct in_edge *i,
			     const uint8_t *payload)
{
	struct participant m;
	uint32_t before = b->counts ? b->counts[chunk] : 0;

	/* the count is read once: it lies where a creator of objects can write */
	if (buffer_has(b, chunk) || before >= b->need)
		return 0;
	m.count = m.added = 0; /* the arrays are read no further than written */
	if (before > 0)
		m.source[m.count++] = b->data + (uint64_t)chunk * b->chunk_bytes;
	if (payload)
		combine_add(&m, i, payload);
	combine_locals(&m, b, chunk, b->need - before);
	if (m.added == 0 || (m.count == 1 && !payload && b->need > 1))
		return 0;
	uint32_t length = buffer_chunk_length(b, chunk), counted = before + m.added;
	if (!b->counts) {
		combine_book(e, b, &m, chunk, length, counted);
		return 1;
	}
	/* The next owner of the store must see the writes in this order. */
	crash_point();
	b->counts[chunk] = COUNT_TORN;
	atomic_signal_fence(memory_order_seq_cst);
	crash_point();
	combine_book(e, b, &m, chunk, length, counted);
	atomic_signal_fence(memory_order_seq_cst);
	crash_point();
	b->counts[chunk] = (uint8_t)counted;
	crash_point();
	return m.added;
}

uint32_t combine_chunk(struct engine *e, struct buffer *b, uint32_t chunk, struct in_edge *i,
		       const uint8_t *payload)
{
	uint32_t taken = combine_pass(e, b, chunk, i, payload), more = taken;

	while (more >= KERNEL_SOURCES_MAX - 1) { /* as many locals as a pass takes, or more */
		more = combine_pass(e, b, chunk, NULL, NULL);
		taken += more;
	}
	return taken;
}
