/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OUT edges: which chunks of a buffer go to which stream of a peer, what of that has been sent and
 * acknowledged, and the credit that the receiver has granted. transmit.c takes the next chunk from
 * here, sent.c and frame.c bring acknowledgements and grants.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_OUT_EDGE_H
#define SARISSA_DATAPLANE_CORE_PLAN_OUT_EDGE_H

#include "buffer.h"
#include "core/wire/frame.h"
#include "core/list.h"

struct conn;
struct engine;

enum { CHUNK_NONE = UINT32_MAX };

struct out_edge {
	uint32_t handle; /* 0: free */
	uint32_t epoch;
	uint64_t token;
	struct buffer *buffer;
	struct conn *conn; /* NULL: the connection died or the edge failed */
	uint64_t *sent;	   /* bit per chunk of the buffer */
	uint32_t stream;
	uint32_t first, end;  /* chunks */
	uint32_t cursor;      /* no unsent ready chunk lies below */
	uint32_t total;	      /* chunks to send in all */
	uint32_t sent_count;  /* first transmissions */
	uint32_t acked_count; /* without part_chunks */
	uint32_t credit;      /* first transmissions allowed */
	uint64_t since_ns;    /* it has chunks to send and no credit; 0: it has */
	struct list on_buffer, on_conn;
	struct list by_stream; /* on a bucket of engine.by_stream, while it has a connection */
	struct list active;    /* on conn->active while it may have a chunk to send */
	/* Where the path does not carry a chunk, it leaves in parts: part_chunk, of which so many
	 * are left. part_chunks have gone so since none was on its way; of their parts parts_open
	 * are not acknowledged. */
	uint32_t part_chunk, part_chunks, parts_open;
	uint8_t parts_left;
};

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
/* The chunk, marked as sent, is to leave in parts. */
void out_edge_part(struct out_edge *o, uint32_t chunk);
void out_edge_parts_acked(struct engine *e, uint32_t handle, uint32_t parts);
/* A chunk that was sent whole and lost is to leave again as if it had not been sent. */
void out_edge_unsent(struct engine *e, struct out_edge *o, uint32_t chunk);
void out_edge_ready(struct engine *e, struct out_edge *o, uint32_t chunk);
enum verdict out_edge_granted(struct engine *e, struct conn *c, uint32_t stream, uint32_t chunks);
void out_edge_reset(struct engine *e, struct conn *c, uint32_t stream);

#endif
