/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IN edges: streams of peers into buffers, the credit that they are granted, and which chunks they
 * have given. LOCAL edges (local_edge.h) are of the same struct: another buffer in place of a
 * connection. frame.c brings the chunks, transmit.c fetches the grants.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_IN_EDGE_H
#define SARISSA_DATAPLANE_CORE_PLAN_IN_EDGE_H

#include "buffer.h"
#include "core/wire/frame.h"
#include "core/list.h"

struct conn;
struct crc_span;
struct engine;

enum {
	/* Parts of a stream's window, one GRANT for each: each costs a packet, fewer are missed
	 * where the window is little more than what is on the way. */
	GRANTS = 4,
	/* Grants for short windows, of up to 2 * GRANT_CHUNKS, on a node to which few send: half
	 * as many packets. */
	GRANTS_LATER = 2,
	/* Connections that send here, above which GRANTS holds for all: 15 senders at 10 Gbit/s
	 * send 3.6 % again otherwise, instead of 2.7. */
	GRANT_LATER_SENDERS = 8,
	/* Chunks, the most that GRANTS_LATER waits for: half of a large window would be missed, as
	 * credit_bytes is little more than what is on the way of a long path (1.22 of the bound
	 * instead of 1.14 at 10 Gbit/s and 1 ms). */
	GRANT_CHUNKS = 48,
};

/* With neither conn nor source it has failed. */
struct in_edge {
	uint32_t handle; /* 0: free */
	uint32_t epoch;
	uint64_t token;
	struct buffer *buffer;
	struct conn *conn;     /* IN */
	struct buffer *source; /* LOCAL */
	uint64_t *took;	       /* bit per chunk of the buffer: given already. A copy's own bitmap */
	uint32_t first, end;   /* chunks */
	uint32_t origin_first; /* the sender's or source's number of the first */
	uint32_t missing;      /* chunks of the range not given yet */
	bool tells;	       /* IN_DONE is due when none is missing */
	uint32_t cursor;       /* LOCAL: the sweep looks from here on */
	uint32_t taken;	       /* chunks that were new to the buffer */
	uint32_t received;     /* and those that were not: what the credit follows */
	uint32_t granted;      /* first transmissions allowed */
	bool active;	       /* in engine.in_active */
	struct list on_buffer;
	struct list on_origin; /* of the connection, or of the source */
	struct list due; /* IN: on conn->grants while a grant waits; LOCAL: on engine.sweeps */
};

struct in_edge *in_edge_find(struct engine *e, uint32_t handle);
enum reason in_edge_open(struct engine *e, const struct record *r);
enum reason in_edge_drop(struct engine *e, const struct record *r);
void in_edge_close(struct engine *e, struct in_edge *i);
/* Also for LOCAL edges. Silent when nothing was missing. */
void in_edge_fail(struct engine *e, struct in_edge *i, enum reason why);
/* The common part of IN and LOCAL edges: the checks of range and bitmap, and the fields. */
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
/* A chunk of the buffer that this edge need not bring: it has, or others have. */
bool in_edge_has(const struct in_edge *i, uint32_t chunk);
/* span: of the packet's CRC, over the payload; NULL: not known. */
enum verdict in_edge_take(struct engine *e, struct conn *c, const uint8_t *head,
			  const uint8_t *payload, uint16_t length, const struct crc_span *span);
/* The credit to announce now; remembers it as granted. */
uint32_t in_edge_grant(struct engine *e, struct in_edge *i);
/* How many send to this node now, 255 at most: as many to each of its workers as to this one. */
uint32_t in_edge_senders(const struct engine *e);

#endif
