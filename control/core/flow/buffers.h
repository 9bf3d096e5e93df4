/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers and edges that workers hold for control. A stage is a buffer over a range of one
 * object: IN edges feed it, OUT edges leave it, also while it is still arriving (cut-through).
 * Stages and edges end with a DROP, and are free after EVENT_DROPPED; until then they hold the
 * object's memory. A large object has a stage per lane (base/lanes.h), each on its own worker, with
 * one bitmap; the head of the chain stands for all. Called by transfer and participants. It must
 * not know what an object is for.
 */
#ifndef SARISSA_CONTROL_CORE_FLOW_BUFFERS_H
#define SARISSA_CONTROL_CORE_FLOW_BUFFERS_H

#include "internal/record.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/allocator.h"
#include "core/base/arena.h"
#include "substreams.h"

struct control;
struct feed;
struct part;
struct serve;

struct stage {
	struct list ins;     /* struct edge.of_stage */
	struct list outs;    /* struct edge.of_stage */
	struct list advance; /* on buffers.advances: an ADVANCE is due */
	struct list mirror;  /* on object.mirrors: a stage beside the object's own */
	struct part *part;   /* a mirror's */
	struct stage *head, *next;
	uint64_t size;
	uint64_t ready_bytes; /* of a local producer, for the next ADVANCE; else arrived bytes */
	uint32_t handle;
	uint32_t slot;	 /* of the object table */
	uint32_t bitmap; /* head: range of the scratch space; 0: none */
	uint32_t chunk_bytes;
	uint32_t first; /* first chunk of the stage, in the object */
	uint16_t worker;
	uint16_t lanes;	  /* head: in the chain */
	uint16_t dropped; /* head: stages of the chain whose workers have dropped them */
	bool dropping;	  /* head */
	bool withhold;	  /* its last chunk stays here, whatever ready_bytes says */
};

struct edge {
	struct list of_stage;
	struct list of_owner; /* on the list of its feed or part */
	struct stage *stage;
	struct feed *feed;   /* IN, or NULL when it no longer matters */
	struct part *part;   /* IN, LOCAL: the part of a participant, or NULL */
	struct serve *serve; /* OUT, or NULL when it no longer matters */
	uint32_t handle;
	uint32_t conn;
	uint32_t first, end; /* IN: chunks of the object */
	uint32_t peer_first; /* IN: number of the first chunk at the sender */
	uint32_t bitmap;     /* OUT: what has been sent */
	bool out;
	bool dropping;
};

struct buffers {
	struct allocator scratch; /* at the end of the store: bitmaps */
	uint64_t scratch_offset;
	struct pool stages, ins, outs;
	uint16_t *stage_generation, *in_generation, *out_generation;
	struct list advances;
};

struct control_config;
void buffers_carve(struct buffers *p, struct arena *a, const struct control_config *config);
void buffers_init(struct control *c);

/* Moves records for the worker out: commands; if there are none, ADVANCEs. */
unsigned buffers_commands(struct control *c, unsigned worker, struct record *out, unsigned count);

/* Buffers over the object in slot, one per lane. bitmap: a zeroed or kept scratch range that
 * passes to the stage, or 0 for one that is written (or has been) by a local producer up to
 * ready_bytes. NULL when the tables are full; then the bitmap stays the caller's. */
struct stage *buffers_stage(struct control *c, uint32_t slot, uint32_t chunk_bytes, uint32_t bitmap,
			    uint64_t ready_bytes);
/* The stage of the chain that has the chunk. */
struct stage *buffers_lane(struct stage *head, uint32_t chunk);
void buffers_advance(struct control *c, struct stage *s, uint64_t ready_bytes);

/* The operation of a stage on arriving chunks; op 0: stores them. */
struct buffer_sum {
	uint32_t op, dtype;
	uint32_t need;	/* contributions to each chunk */
	uint32_t scale; /* divisor of the final sum; 0, 1: none */
	bool withhold;	/* its last chunk stays here until buffers_finish */
};
/* Buffers that take parts. bitmap: buffers_bitmap, or, to add them up, buffers_bitmap_counted. */
struct stage *buffers_stage_sum(struct control *c, uint32_t slot, uint32_t chunk_bytes,
				uint32_t bitmap, const struct buffer_sum *sum);
void buffers_finish(struct control *c, struct stage *head);
/* Mirror stages of an object, for a part that reads it on `count` workers from `worker` on. Each
 * covers the whole object, and follows its watermark. */
struct stage *buffers_mirror(struct control *c, uint32_t slot, unsigned worker, uint32_t count,
			     uint32_t chunk_bytes, struct part *part);

/* Drops a stage with all its edges, which have no owners any more. */
void buffers_drop_stage(struct control *c, struct stage *s);
/* Drops a stage if nothing flows through it and its object is not arriving. */
void buffers_settle_stage(struct control *c, struct stage *s);

/* An IN edge for a substream, from a connection or from another stage of the same worker; part:
 * NULL, or the part that it belongs to. */
struct edge *buffers_in(struct control *c, struct stage *head, uint32_t conn,
			const struct substream *t, struct part *part);
struct edge *buffers_local(struct control *c, struct stage *head, const struct stage *source,
			   const struct substream *t, struct part *part);
/* The chunks of a part that have been added, a bit each. */
const uint64_t *buffers_given(struct control *c, const struct stage *head, const struct part *part);
/* An OUT edge for the receiver's stream and its range, all of one lane; m: the chunks to leave out.
 */
struct edge *buffers_out(struct control *c, struct stage *s, uint32_t conn,
			 const struct message_substream *substream, const struct message_stream *m);
void buffers_drop_edge(struct control *c, struct edge *e);

/* Events about buffers and edges, and refusals. */
void buffer_events_event(struct control *c, unsigned worker, const struct record *r);

/* The dataplane is gone: no worker uses the store any more. Bitmaps of arriving objects go back to
 * their fetches. */
void buffer_events_detach(struct control *c);

/* Makes that part of the store the scratch space, empty. */
void scratch_reset(struct control *c, uint64_t offset, uint64_t bytes);
/* Where a range of it lies. */
uint8_t *scratch_at(struct control *c, uint32_t range);
/* A zeroed bitmap for so many chunks in the scratch space; 0 when it is full. */
uint32_t buffers_bitmap(struct control *c, uint64_t chunks);
/* A buffer for a sum of so many parts: per lane counts, and a bitmap per part. */
uint32_t buffers_bitmap_counted(struct control *c, uint64_t chunks, uint32_t parts);

#endif
