/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The streams that bring a range of chunks: as two nodes may cut an object into lanes differently
 * (base/lanes.h), each substream lies within one lane of either. The same for a sum here and the
 * stages that it reads its source from.
 */
#ifndef SARISSA_CONTROL_CORE_FLOW_SUBSTREAMS_H
#define SARISSA_CONTROL_CORE_FLOW_SUBSTREAMS_H

#include "core/base/list.h"
#include "core/message/message.h"

struct control;
struct node;
struct part;
struct stage;

/* How a node has cut an object. */
struct substream_cut {
	struct object_id id;
	uint32_t chunks, lanes, workers;
};

struct substream_range {
	struct substream_cut here, there;
	uint32_t first, end; /* chunks here */
	uint32_t peer_first; /* the number of the first there */
};

struct substream {
	uint32_t first, end;
	uint32_t peer_first;
	uint32_t base, peer_base; /* where the lanes begin that it lies in */
	unsigned worker, peer_worker;
};

/* Whether its number of workers is known; else asks for a link. */
bool substreams_greeted(struct control *c, struct node *n);
/* From that chunk of the range on. */
struct substream substream_at(const struct substream_range *r, uint32_t chunk);
/* Whether the links are up of all streams that the range needs; asks for those that are missing. */
bool substreams_linked(struct control *c, struct node *n, const struct substream_range *r);
/* IN edges for those that have something to bring, on struct edge.of_owner. map: what is here;
 * part: NULL, or whose they are. False: there is no room. */
bool substreams_open(struct control *c, struct node *n, const struct substream_range *r,
		     struct stage *head, const uint64_t *map, struct part *part,
		     struct list *edges);
/* Names them in m; if m only asks how they are, those that lack something, as of the others the
 * holder may know no more. */
void substreams_name(const struct list *edges, const uint64_t *map, struct message_stream *m);
/* Whether the holder says that it has cut otherwise than into so many, which then is corrected. */
bool substreams_recut(const struct message_reply *r, uint32_t *lanes);
void substreams_drop(struct control *c, struct list *edges);
/* They go with their stage. */
void substreams_forget(struct list *edges);

#endif
