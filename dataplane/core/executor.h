/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan executor: records in, chunks between buffers and edges, messages, events out. Called by
 * engine.c, by the frame handlers (receive) and by the packet writer (transmit).
 */
#ifndef SARISSA_DATAPLANE_CORE_EXECUTOR_H
#define SARISSA_DATAPLANE_CORE_EXECUTOR_H

#include "state.h"

/* What became of a frame. Only VERDICT_TAKEN lets the packet be acknowledged. */
enum verdict {
	VERDICT_TAKEN,
	VERDICT_REFUSED, /* counted by whoever refused; the packet stays unacknowledged */
};

enum { CHUNK_NONE = UINT32_MAX, SLOT_NONE = UINT32_MAX };

/* event.c: the ring never overflows: each thing has at most its own few events in it. */
struct record *event_push(struct engine *e, enum event_op op);
/* Is there room for so many, beside what everything that exists now may have to say? */
bool event_spare(const struct engine *e, uint32_t records);

/* buffer.c */
struct buffer *buffer_find(struct engine *e, uint32_t handle);
enum reason buffer_open(struct engine *e, const struct record *r);
enum reason buffer_advance(struct engine *e, const struct record *r);
enum reason buffer_drop(struct engine *e, const struct record *r);
enum reason buffer_finish(struct engine *e, const struct record *r);
bool buffer_has(const struct buffer *b, uint32_t chunk);
/* What records of buffers and edges must hold: a range of chunks of the buffer that is not empty; a
 * bitmap in the store, aligned to its words. */
bool buffer_has_range(const struct buffer *b, uint32_t first, uint32_t chunks);
bool buffer_map_fits(const struct engine *e, uint64_t offset, uint64_t bytes);
/* It is in, but stays here for now. */
static inline bool buffer_holds(const struct buffer *b, uint32_t chunk)
{
	return b->hold && chunk + 1 == b->chunks;
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
	uint64_t bits = b->bitmap != NULL ? buffer_map_word(b->bitmap, word) : 0;
	if (base < b->ready_low)
		bits |= (UINT64_C(1) << (b->ready_low - base)) - 1;
	if (b->hold && b->chunks - base <= 64)
		bits &= (UINT64_C(1) << (b->chunks - base - 1)) - 1;
	return bits;
}
/* Bytes that are ready without a gap from the start. */
static inline uint64_t buffer_ready_bytes(const struct buffer *b)
{
	return state_min((uint64_t)b->ready_low * b->chunk_bytes, b->size);
}
/* Bytes of a chunk: the last one may be short. */
static inline uint32_t buffer_chunk_length(const struct buffer *b, uint32_t chunk)
{
	uint64_t at = (uint64_t)chunk * b->chunk_bytes;
	return (uint32_t)state_min(b->chunk_bytes, b->size - at);
}

/* out_edge.c */
struct out_edge *out_edge_find(struct engine *e, uint32_t handle);
enum reason out_edge_open(struct engine *e, const struct record *r);
enum reason out_edge_drop(struct engine *e, const struct record *r);
void out_edge_close(struct out_edge *o);
void out_edge_fail(struct engine *e, struct out_edge *o, enum reason why);
/* The lowest chunk that is ready, not sent and within credit, or CHUNK_NONE (the edge then leaves
 * the active list until something changes). */
uint32_t out_edge_next(const struct engine *e, struct out_edge *o);
void out_edge_sent(struct out_edge *o, uint32_t chunk);
void out_edge_acked(struct engine *e, uint32_t handle);
void out_edge_ready(struct engine *e, struct out_edge *o, uint32_t chunk);
enum verdict out_edge_granted(struct engine *e, struct conn *c, uint32_t stream, uint32_t chunks);
void out_edge_reset(struct engine *e, struct conn *c, uint32_t stream);

/*
 * combine.c: contributions to a chunk, of a payload and of all LOCAL edges that have theirs, in as
 * few passes over memory as there can be. A chunk is marked torn while its bytes are not one
 * number of whole contributions: what a killed process leaves behind is found when it is opened.
 */
enum { COUNT_TORN = 255 /* not ready and this: no count, as that is below need */ };
/* May anything still be added to this chunk? */
static inline bool combine_open(const struct buffer *b, uint32_t chunk)
{
	return !buffer_has(b, chunk) && (b->counts == NULL || b->counts[chunk] < b->need);
}
/* Takes the payload (of edge i, not given before; may be NULL) and what LOCAL edges have. Returns
 * the contributions taken. A LOCAL edge that is alone is left to wait for a payload to be added to
 * in the same pass, if there is one to come. */
uint32_t combine_chunk(struct engine *e, struct buffer *b, uint32_t chunk, struct in_edge *i,
		       const uint8_t *payload);

/* Begins to fetch what combine_chunk() will touch, beside a payload. Of each range no more than
 * this: beyond it the processor's own prefetchers have caught on, and we would be in their way. */
enum { COMBINE_PREFETCH_BYTES = 1536 };
void combine_prefetch(const struct buffer *b, uint32_t chunk);

/* local_edge.c: one buffer's chunks into another. */
enum reason local_edge_open(struct engine *e, const struct record *r);
/* Chunks from..to - 1 of the source have become ready. */
void local_edge_wake(struct engine *e, struct in_edge *i, uint32_t from, uint32_t to);
/* Applies what has come late, for a bounded while; the rest waits for the next turn. */
void local_edge_sweep(struct engine *e);
/* Could it contribute this chunk of its buffer now? */
static inline bool local_edge_has(const struct in_edge *i, uint32_t chunk)
{
	return chunk >= i->first && chunk < i->end && i->source != NULL &&
	       !(i->took[chunk / 64] >> (chunk % 64) & 1) &&
	       buffer_has(i->source, i->origin_first + (chunk - i->first)) &&
	       !buffer_holds(i->source, i->origin_first + (chunk - i->first));
}
static inline const uint8_t *local_edge_chunk(const struct in_edge *i, uint32_t chunk)
{
	return i->source->data +
	       (uint64_t)(i->origin_first + (chunk - i->first)) * i->source->chunk_bytes;
}

/* in_edge.c */
struct in_edge *in_edge_find(struct engine *e, uint32_t handle);
enum reason in_edge_open(struct engine *e, const struct record *r);
enum reason in_edge_drop(struct engine *e, const struct record *r);
void in_edge_close(struct engine *e, struct in_edge *i);
/* Also for LOCAL edges. Silent when nothing was missing. */
void in_edge_fail(struct engine *e, struct in_edge *i, enum reason why);
/* What IN and LOCAL edges have in common: the checks of range and bitmap, and the fields. */
enum reason in_edge_check_range(const struct engine *e, const struct buffer *b,
				const struct record *r);
struct in_edge *in_edge_new(struct engine *e, const struct record *r, struct buffer *b);
/* All fields are set and it is on its lists: it counts, or is done at once. */
void in_edge_begin(struct engine *e, struct in_edge *i);
static inline bool in_edge_gave(const struct in_edge *i, uint32_t chunk)
{
	return i->took[chunk / 64] >> (chunk % 64) & 1;
}
/* One more chunk of its range is given. After the last one it has no share of the credit any more,
 * but is granted on as copies arrive, so that its sender comes to an end. */
void in_edge_given(struct engine *e, struct in_edge *i);
/* This chunk of its buffer, a copy, is in; perhaps it lies in the range. */
void in_edge_covered(struct engine *e, struct in_edge *i, uint32_t chunk);
/* Begins to fetch the place of a chunk, if there is one. head: of a DATA frame or CHUNK packet. */
void in_edge_prefetch(const struct engine *e, const uint8_t *head);
enum verdict in_edge_take(struct engine *e, struct conn *c, const uint8_t *head,
			  const uint8_t *payload, uint16_t length);
/* The credit to announce now; remembers it as granted. */
uint32_t in_edge_grant(struct engine *e, struct in_edge *i);
/* How many send to this node now, 255 at most: as many to each of its workers as to this one. */
uint32_t in_edge_senders(const struct engine *e);

/* msg.c */
enum reason msg_send(struct engine *e, const struct record *r);
enum reason msg_free(struct engine *e, const struct record *r);
/* The next fragment to send for the first time: message and fragment, or NULL. */
struct msg_out *msg_next(struct conn *c, uint16_t *fragment);
struct msg_out *msg_find(struct conn *c, uint32_t id);
void msg_acked(struct engine *e, struct conn *c, uint32_t id, uint32_t fragment);
enum verdict msg_take(struct engine *e, struct conn *c, const uint8_t *frame, uint16_t length);
/* The connection is gone: outgoing messages come back with a reason, partial ones are freed. */
void msg_abandon(struct engine *e, struct conn *c, enum reason why);
static inline uint32_t msg_fragment_length(uint32_t total, uint32_t fragment)
{
	return (uint32_t)state_min(MSG_FRAGMENT_BYTES, total - fragment * MSG_FRAGMENT_BYTES);
}

#endif
