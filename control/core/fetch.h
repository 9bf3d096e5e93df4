/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object on its way to this node: asks the directory for a holder, makes room, connects, has
 * the holder send, and goes on with another holder from what has arrived when one fails.
 *
 *   ASK      a GET is out                    -> LINK (holder), finished (value), ended (refused)
 *   LINK     waits for the connection        -> REQUEST, or ASK when it does not come
 *   REQUEST  IN edge set, a STREAM is out    -> STREAM, or REST / ASK when refused
 *   STREAM   chunks arrive                   -> finished (BUFFER_DONE), or ASK when the edge fails
 *   REST     a pause after a failure         -> ASK
 *
 * It ends when the object is complete, deleted, refused, or when nobody wants it any more.
 */
#ifndef SARISSA_CONTROL_CORE_FETCH_H
#define SARISSA_CONTROL_CORE_FETCH_H

#include "idmap.h"
#include "internal/record.h"
#include "list.h"
#include "message.h"
#include "timers.h"

struct call;
struct control;
struct edge;
struct link;
struct node;
struct object;
struct wait;

enum fetch_state {
	FETCH_ASK,
	FETCH_LINK,
	FETCH_REQUEST,
	FETCH_STREAM,
	FETCH_REST,
};

struct fetch {
	struct idmap_node by_id;
	struct list active;
	struct list waits; /* GETs, until the object has a place */
	struct timer timer;
	struct call *call; /* GET or STREAM */
	struct node *holder;
	struct edge *edge;
	uint64_t generation; /* 0: no place yet */
	uint64_t size;
	uint64_t holder_incarnation;
	uint64_t moved; /* watermark when last looked at */
	uint32_t slot;	/* TABLE_SLOT_NONE: no place yet */
	uint32_t chunk_bytes;
	uint32_t first;	   /* chunk that the stream begins with */
	uint32_t bitmap;   /* kept while there is no stage */
	uint32_t failed;   /* the holder to avoid */
	uint32_t why;	   /* enum message_get_why */
	uint16_t attempts; /* without progress */
	uint8_t state;
	bool known;    /* the directory knows the object */
	bool answered; /* the GET that is out was answered with "wait" */
};

struct fetches {
	struct pool pool;
	struct idmap by_id;
	struct list active;
};

struct control_config;
void fetches_carve(struct fetches *f, struct arena *a, const struct control_config *config);

/* The fetch of an id, begun if need be; NULL when too many are under way. */
struct fetch *fetch_get(struct control *c, const struct object_id *id);
/* Those that do not want to wait are told what is known, if it is. */
void fetch_answer_nowait(struct control *c, struct fetch *f);
/* A wait has left: ends the fetch when nobody wants it. */
void fetch_unwanted(struct control *c, struct fetch *f);

/* A pause, then it asks again. */
void fetch_rest(struct control *c, struct fetch *f);

void fetch_done(struct control *c, struct fetch *f);
void fetch_edge_failed(struct control *c, struct fetch *f, enum reason why);
/* The worker has lost the buffer. */
void fetch_stage_lost(struct control *c, struct fetch *f);
/* The object was taken away. */
void fetch_killed(struct control *c, struct fetch *f);
/* A node has become reachable, or a connection to it has come up. */
void fetch_node_up(struct control *c, struct node *n);
/* Whether some fetch waits for this link. */
bool fetch_wants(struct control *c, const struct link *l);
/* Node that feeds it, or MESSAGE_NODE_NONE. */
uint32_t fetch_upstream(const struct fetch *f);
/* The store is gone: all begin anew. */
void fetch_restart_all(struct control *c);
/* Those of a shard's objects are announced to it again. */
void fetch_announce(struct control *c, const struct node *shard);

/* fetch_place.c: where the bytes go */
int fetch_place(struct control *c, struct fetch *f, const struct message_got *got);
void fetch_take_value(struct control *c, struct fetch *f, const struct message_got *got);
/* The stage of the fetch, made if need be; NULL when there is no room for it now. */
struct stage *fetch_stage(struct control *c, struct fetch *f);
void fetch_end(struct control *c, struct fetch *f);
void fetch_fail(struct control *c, struct fetch *f, int32_t status, const char *text);
unsigned fetch_worker(const struct object_id *id, uint32_t workers);

#endif
