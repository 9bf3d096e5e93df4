/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams from this node. A receiver asks with STREAM; chunks leave on an OUT edge as they become
 * ready; the stream ends with the last acknowledgement, with its edge, or with its object. Called
 * by the front door, fetches and wiring.c. It must not know why the receiver wants the object.
 */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_SERVE_H
#define SARISSA_CONTROL_CORE_TRANSFER_SERVE_H

#include <stdbool.h>
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"

struct control;
struct edge;
struct node;
struct object;

struct serve {
	struct list of_object;
	struct object *object;
	struct node *node;
	struct edge *edge;
	uint64_t asked_ns; /* when the receiver asked for it last */
	uint32_t stream;
};

/* A STREAM that waits until this node's own fetch of the object has a place. */
struct serve_early {
	struct list of_fetch;
	struct node *node;
	uint64_t request;
	uint32_t conn;
	struct message_stream stream;
};

struct serves {
	struct pool pool;
	struct pool early;
	uint32_t fed; /* copies on other nodes, each in a stream or several */
};

struct control_config;
void serves_carve(struct serves *s, struct arena *a, const struct control_config *config);

/* Copies on other nodes that are fed from here. */
uint32_t serves_fed(const struct control *c);
/* A STREAM request that arrived on connection conn (of worker 0). If this node's own GET of the
 * object is open the answer waits for the directory's answer to it. */
void serve_request(struct control *c, struct node *n, uint32_t conn, const struct message *m);
/* PIECES: answers which chunks of the object are here. */
void serve_pieces(struct control *c, struct node *n, const struct message *m);
struct fetch;
/* The fetch has a place, or gets none soon: answers its early STREAMs. */
void serve_early(struct control *c, struct fetch *f);
/* Whether a receiver of the object has asked lately. A receiver without chunks checks its stream
 * every second or so. */
bool serve_any(const struct control *c, const struct object *o);
/* The edge of the stream has ended, done or failed. */
void serve_ended(struct control *c, struct serve *s);
/* Ends all streams of the object. */
void serve_end_all(struct control *c, struct object *o);
struct stage;
void serve_end_stage(struct control *c, struct object *o, const struct stage *head);

#endif
