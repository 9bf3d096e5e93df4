/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One holder that feeds a fetch: connections, a STREAM request, IN edges for a range of chunks:
 * one, or as many as there are lanes (base/lanes.h), here and there.
 *
 *   FREE     no holder
 *   LINK     waits for the connections          -> REQUEST, or feed_failed
 *   REQUEST  IN edges set, a STREAM is out       -> STREAM, or feed_failed
 *   STREAM   chunks arrive                      -> FREE (feed_stop), or feed_failed
 *
 * The range [first, end) is what the feed is to bring. A single stream may reach further, after the
 * rest was given to others; streams that begin elsewhere take the place of those before at the
 * holder, and the old edges go when the holder has agreed.
 *
 * A holder that owes an answer, or chunks, and gives none is silent (cluster/stall.h): its fetch
 * asks for another one. The first of the two to answer stays.
 */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_UPSTREAM_H
#define SARISSA_CONTROL_CORE_TRANSFER_UPSTREAM_H

#include "internal/record.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/timers.h"
#include "core/cluster/room.h"

struct call;
struct control;
struct edge;
struct fetch;
struct link;
struct node;

enum { FETCH_FEEDS = MESSAGE_UPSTREAMS_MAX };

enum feed_state {
	FEED_FREE,
	FEED_LINK,
	FEED_REQUEST,
	FEED_STREAM,
};

struct feed {
	struct fetch *fetch;
	struct timer timer;
	struct call *call; /* STREAM */
	struct node *holder;
	struct list edges, old_edges; /* struct edge.of_owner */
	uint32_t lanes;		      /* at the holder, as far as we know; 0: not known */
	uint64_t began_ns;
	uint64_t rate; /* bytes per second, at the last look */
	uint32_t first, end;
	uint32_t edge_first, edge_end; /* of its streams */
	uint32_t missing;	       /* of the range, at the last look */
	uint64_t looked_ns, moved_ns;
	uint64_t linking_ns; /* LINK: since when */
	struct watch watch;
	uint32_t lead;	   /* chunks that the holder had beyond ours when it was asked last */
	uint32_t behind;   /* chunks that we had beyond the holder's */
	uint16_t attempts; /* without progress */
	uint16_t idle;	   /* looks without progress */
	uint8_t state;
	bool fresh;	/* has brought nothing yet */
	bool silent;	/* was asked and does not answer */
	bool stands_in; /* asked for because another was silent */
	bool surplus;	/* its holder may feed more than it should */
	bool reparent;	/* to take the place of the others */
};

void feed_init(struct feed *d, struct fetch *f);
/* Begins with a holder that the directory has booked; the range is set. */
void feed_start(struct control *c, struct feed *d, struct node *holder);
/* Brings another range; from the same stream when that covers it. */
void feed_assign(struct control *c, struct feed *d, uint32_t first, uint32_t end);
/* Asks the holder how far it is: lead. */
void feed_query(struct control *c, struct feed *d);
/* Lets go of everything; the directory is not told. */
void feed_stop(struct control *c, struct feed *d);
/* It brings nothing any more: its fetch goes on without. why: enum message_get_why. */
void feed_failed(struct control *c, struct feed *d, uint32_t why);
/* Its edges go with their stage. */
void feed_forget_edges(struct feed *d);
/* The connections to its holder may be up. */
void feed_linked(struct control *c, struct feed *d);

#endif
