/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers: ranges of the store, cut into chunks, and which chunks are ready. Records open and drop
 * them (plan.c), combine.c fills them; a buffer tells its edges and control what has become ready.
 * It knows nothing of packets and connections.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_BUFFER_H
#define SARISSA_DATAPLANE_CORE_PLAN_BUFFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include "core/engine.h"
#include "core/kernel/kernel.h"
#include "core/list.h"
#include "core/numbers.h"

struct engine;

struct buffer {
	uint32_t handle; /* 0: free */
	uint32_t number; /* no other buffer of late had the same */
	uint32_t carry;	 /* of a CRC over a chunk, once it is needed; 0: not yet */
	uint32_t epoch;
	uint64_t token;
	uint8_t *data;
	uint64_t size;
	uint64_t *bitmap;	     /* NULL: a local source, ready up to ready_low */
	uint8_t *counts;	     /* contributions to each chunk so far; NULL: a copy */
	_Atomic uint64_t *watermark; /* in the object table, or NULL */
	uint32_t chunks;
	uint32_t chunk_bytes;
	uint32_t ready_low;  /* chunks ready without a gap from the start */
	uint32_t ready_high; /* no chunk at or beyond is ready */
	uint32_t ready_count;
	uint32_t progress_low; /* ready_low when progress was last reported */
	bool progress_queued;
	bool done_reported;
	bool withhold;	/* the last chunk is given to nobody yet, be it in or not */
	uint8_t need;	/* contributions that make a chunk ready */
	uint16_t scale; /* by which a chunk is divided then, when divide is there */
	kernel_fn *apply;
	kernel_many_fn *many;
	kernel_scale_fn *divide;
	struct list out_edges, in_edges;
	struct list locals; /* LOCAL edges into it */
	struct list takers; /* LOCAL edges out of it */
};

struct buffer *buffer_find(struct engine *e, uint32_t handle);
enum reason buffer_open(struct engine *e, const struct record *r);
enum reason buffer_advance(struct engine *e, const struct record *r);
enum reason buffer_drop(struct engine *e, const struct record *r);
enum reason buffer_finish(struct engine *e, const struct record *r);
bool buffer_has(const struct buffer *b, uint32_t chunk);
/* A range that records of buffers and edges must hold: chunks of the buffer, not empty; a
 * bitmap in the store, aligned to its words. */
bool buffer_has_range(const struct buffer *b, uint32_t first, uint32_t chunks);
bool buffer_map_fits(const struct engine *e, uint64_t offset, uint64_t bytes);
/* It is in, but stays here for now. */
static inline bool buffer_withholds(const struct buffer *b, uint32_t chunk)
{
	return b->withhold && chunk + 1 == b->chunks;
}
/* A chunk has all its contributions: marked, told to the edges and to control. */
void buffer_ready(struct engine *e, struct buffer *b, uint32_t chunk);
/* A word of a bitmap in the store, which a client may be writing to: read once, so that all that is
 * concluded from it is of one value. */
static inline uint64_t buffer_map_word(const uint64_t *map, uint32_t word)
{
	return __atomic_load_n(&map[word], __ATOMIC_RELAXED);
}
/* 64 chunks from word * 64 on, those that may be given set. Bits at or beyond buffer.chunks are
 * undefined. */
static inline uint64_t buffer_ready_word(const struct buffer *b, uint32_t word)
{
	uint32_t base = word * 64;

	if (base + 64 <= b->ready_low)
		return UINT64_MAX;
	uint64_t bits = b->bitmap ? buffer_map_word(b->bitmap, word) : 0;
	if (base < b->ready_low)
		bits |= (UINT64_C(1) << (b->ready_low - base)) - 1;
	if (b->withhold && b->chunks - base <= 64)
		bits &= (UINT64_C(1) << (b->chunks - base - 1)) - 1;
	return bits;
}
/* Bytes that are ready without a gap from the start. */
static inline uint64_t buffer_ready_bytes(const struct buffer *b)
{
	return numbers_min((uint64_t)b->ready_low * b->chunk_bytes, b->size);
}
/* Bytes of a chunk: the last one may be short. */
static inline uint32_t buffer_chunk_length(const struct buffer *b, uint32_t chunk)
{
	uint64_t at = (uint64_t)chunk * b->chunk_bytes;
	return (uint32_t)numbers_min(b->chunk_bytes, b->size - at);
}

#endif
