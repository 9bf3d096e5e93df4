/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A feed: one holder that sends chunks of a fetch. It has connections, a STREAM request, and IN
 * edges for a range of chunks: one, or one per substream (flow/substreams.h). Called by fetch.c,
 * ranges.c and monitor.c. It must not know other feeds.
 *
 *   state    meaning                         next
 *   FREE     no holder
 *   LINK     waits for connections           REQUEST, or upstream_failed
 *   REQUEST  IN edges set, STREAM is out     STREAM, or upstream_failed
 *   STREAM   chunks arrive                   FREE (upstream_stop), or upstream_failed
 *
 * The feed brings the range [first, end). A single stream may reach further, after the rest was
 * assigned to other feeds. Streams that begin elsewhere replace the present ones at the holder; the
 * old edges end when the holder has agreed. A holder that owes an answer or chunks is silent
 * (cluster/stall.h): the fetch then asks for a stand-in, and keeps the first of the two to answer.
 */
#ifndef SARISSA_CONTROL_CORE_TRANSFER_UPSTREAM_H
#define SARISSA_CONTROL_CORE_TRANSFER_UPSTREAM_H

#include "internal/record.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/timers.h"
#include "core/cluster/state.h"

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
	uint32_t lanes;		      /* of the object at the holder; 0: not known */
	uint64_t began_ns;
	uint64_t rate; /* bytes per second, at the last look */
	uint32_t first, end;
	uint32_t edge_first, edge_end; /* of its streams */
	uint32_t missing;	       /* of the range, at the last look */
	uint64_t looked_ns, moved_ns;
	uint64_t linking_ns; /* LINK: since when */
	struct watch watch;
	uint32_t lead;	   /* chunks that the holder had before us, when asked last */
	uint32_t behind;   /* chunks that we had before the holder */
	uint16_t attempts; /* without progress */
	uint16_t idle;	   /* looks without progress */
	uint8_t state;
	bool fresh;	/* has brought nothing yet */
	bool silent;	/* its holder does not answer */
	bool stands_in; /* the stand-in for a silent one */
	bool surplus;	/* its holder may feed more than it should */
	bool reparent;	/* is to replace the other feeds */
};

void upstream_init(struct feed *d, struct fetch *f);
/* Begins with a holder that the directory has booked; the range is set. */
void upstream_start(struct control *c, struct feed *d, struct node *holder);
/* Brings another range; from the same stream when that covers it. */
void upstream_assign(struct control *c, struct feed *d, uint32_t first, uint32_t end);
/* Asks the holder how many chunks it has: sets lead. */
void upstream_query(struct control *c, struct feed *d);
/* Ends the feed; does not tell the owner. */
void upstream_stop(struct control *c, struct feed *d);
/* The feed has failed: the fetch goes on without it. why: enum message_get_why. */
void upstream_failed(struct control *c, struct feed *d, uint32_t why);
/* Its edges go with their stage. */
void upstream_forget_edges(struct feed *d);
/* The connections to its holder may be up. */
void upstream_linked(struct control *c, struct feed *d);

#endif
