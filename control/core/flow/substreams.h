/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Substreams: the streams that bring a range of chunks. Two nodes may cut an object into lanes
 * differently (base/lanes.h), so each substream lies within one lane of both. The same cut serves a
 * sum and the mirror stages that it reads. Called by transfer and by participants.
 */
#ifndef SARISSA_CONTROL_CORE_FLOW_SUBSTREAMS_H
#define SARISSA_CONTROL_CORE_FLOW_SUBSTREAMS_H

#include "core/base/list.h"
#include "core/message/message.h"

struct control;
struct node;
struct part;
struct stage;

/* The lanes of an object at a node. */
struct substream_cut {
	struct object_id id;
	uint32_t chunks, lanes, workers;
};

struct substream_range {
	struct substream_cut here, there;
	uint32_t first, end; /* chunks here */
	uint32_t peer_first; /* number of the first chunk at the peer */
};

struct substream {
	uint32_t first, end;
	uint32_t peer_first;
	uint32_t base, peer_base; /* first chunks of the lanes that it lies in */
	unsigned worker, peer_worker;
};

/* Whether the node's number of workers is known; otherwise asks for a link. Sets the lanes of an
 * object of that size there, unless they are known (not 0). */
bool substreams_greeted(struct control *c, struct node *n, uint64_t size, uint32_t *lanes);
/* The substream that begins at that chunk of the range. */
struct substream substream_at(const struct substream_range *r, uint32_t chunk);
/* Whether all links that the range needs are up; asks for missing ones. */
bool substreams_linked(struct control *c, struct node *n, const struct substream_range *r);
/* Opens IN edges for the substreams that miss chunks, on struct edge.of_owner. map: the chunks that
 * are here; part: NULL, or the part that they belong to. False: there is no room. */
bool substreams_open(struct control *c, struct node *n, const struct substream_range *r,
		     struct stage *head, const uint64_t *map, struct part *part,
		     struct list *edges);
/* Names the substreams in m. If m only checks them, those that miss chunks: the holder may have
 * forgotten the others. */
void substreams_name(const struct list *edges, const uint64_t *map, struct message_stream *m);
/* Whether the holder has cut the object into another number of lanes, and sets that number. */
bool substreams_recut(const struct message_reply *r, uint32_t *lanes);
void substreams_drop(struct control *c, struct list *edges);
/* Forgets edges that end with their stage. */
void substreams_forget(struct list *edges);

#endif
