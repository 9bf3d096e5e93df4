/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of counted buffers and LOCAL edges share: records, sources, chunks. Sums of bytes,
 * so that every contribution shows.
 */
#ifndef SARISSA_TESTS_REDUCE_TEST_H
#define SARISSA_TESTS_REDUCE_TEST_H

#include "core_test.h"

enum { CHUNKS = 100, LAST_BYTES = 64, TAKEN_AT = 16 /* the first bitmap for IN edges */ };

static const uint64_t object_bytes = (uint64_t)(CHUNKS - 1) * RIG_CHUNK + LAST_BYTES;

static inline uint64_t taken_offset(struct rig *r, uint32_t edge)
{
	return (uint64_t)((uint8_t *)rig_bitmap(r, TAKEN_AT + edge) - r->config.store);
}

static inline struct record record_counted(uint32_t index, uint8_t need)
{
	struct record b = record_buffer(index, object_bytes);

	b.buffer.need = need;
	b.buffer.reduce_op = REDUCE_SUM;
	b.buffer.dtype = REDUCE_U8;
	return b;
}

static inline struct record record_taken(struct rig *r, uint32_t edge, uint32_t buffer,
					 const struct peer *peer, uint32_t first, uint32_t chunks)
{
	struct record in = record_edge(COMMAND_IN, edge, buffer, peer, first, chunks);

	in.edge.bitmap_offset = taken_offset(r, edge);
	return in;
}

static inline struct record record_local(struct rig *r, uint32_t edge, uint32_t buffer,
					 uint32_t source)
{
	struct record l = {.op = COMMAND_LOCAL, .epoch = 1, .token = 200 + edge};

	l.local.edge = record_handle(edge);
	l.local.buffer = record_handle(buffer);
	l.local.source = record_handle(source);
	l.local.chunks = CHUNKS;
	l.local.bitmap_offset = taken_offset(r, edge);
	return l;
}

static inline void command(struct rig *r, struct record record)
{
	rig_command(r, &record);
}

/* Buffer `index` as a producer's, every byte of chunk k holds value + k. */
static inline void source_open(struct rig *r, uint32_t index, uint8_t value, uint64_t ready_bytes)
{
	for (uint64_t at = 0; at < object_bytes; at++)
		rig_data(r, index)[at] = (uint8_t)(value + at / RIG_CHUNK);
	command(r, record_source(index, object_bytes, ready_bytes));
}

static inline uint32_t length_of(uint32_t chunk)
{
	return chunk == CHUNKS - 1 ? LAST_BYTES : RIG_CHUNK;
}

static inline void send_bytes(struct rig *r, struct peer *peer, uint32_t edge, uint32_t chunk,
			      uint32_t bytes, uint8_t fill)
{
	struct packet p;

	peer_begin(r, peer, &p);
	forge_data(&p, record_handle(edge), chunk, bytes, fill);
	peer_send(r, peer, &p);
}

static inline void send(struct rig *r, struct peer *peer, uint32_t edge, uint32_t chunk,
			uint8_t fill)
{
	send_bytes(r, peer, edge, chunk, length_of(chunk), fill);
}

/* Every byte of the chunk, and none beside it. */
static inline void chunk_is(struct rig *r, uint32_t buffer, uint32_t chunk, uint8_t value)
{
	const uint8_t *at = rig_data(r, buffer) + (size_t)chunk * RIG_CHUNK;

	for (uint32_t k = 0; k < length_of(chunk); k++)
		assert_int_equal(at[k], value);
}

static inline struct buffer *buffer_at(struct rig *r, uint32_t index)
{
	return buffer_find(r->e, record_handle(index));
}

static inline void grant_all(struct rig *r, uint32_t edge)
{
	in_edge_find(r->e, record_handle(edge))->granted = CHUNKS;
}

/* Buffer 0 adds what edge 0 brings from the peer to buffer 1, which is here as far as that. */
static inline void here_and_to_come(struct rig *r, const struct peer *peer, uint64_t ready_bytes)
{
	source_open(r, 1, 100, ready_bytes);
	command(r, record_counted(0, 2));
	command(r, record_local(r, 1, 0, 1));
	command(r, record_taken(r, 0, 0, peer, 0, CHUNKS));
	grant_all(r, 0);
}

static inline void in_done(struct rig *r, uint32_t edge)
{
	struct record event = rig_expect(r, EVENT_IN_DONE);

	assert_int_equal(event.edge.edge, record_handle(edge));
	assert_int_equal(event.token, 200 + edge);
	assert_int_equal(event.flags, RECORD_FLAG_IN);
	assert_int_equal(event.epoch, 1);
}

#endif
