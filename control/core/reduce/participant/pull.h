/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of objects in messages: a node asks for a range (PULL) and is given it (PULL_REPLY) as soon
 * as all of the object is there. What is being built here answers when it is complete; a request
 * that comes before the coordinator's word what to build is kept for a while. Who is kept waiting
 * hears every PULL_KEEP_NS at the latest that this node lives, and asks again.
 *
 * For sums whose parts are so small that a stream for each would cost more than its bytes
 * (docs/reduce.md, Small segments). Bounds: parts_max requests that wait.
 */
#ifndef SARISSA_CONTROL_CORE_PARTICIPANT_PULL_H
#define SARISSA_CONTROL_CORE_PARTICIPANT_PULL_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"

struct participant;
struct control;
struct node;

#define PULL_KEEP_NS UINT64_C(50000000)

struct pull {		  /* a request that waits */
	struct list link; /* on the combine's, or takes.early */
	struct timer timer;
	struct node *node;
	uint64_t request;
	struct message_pull wanted;
};

struct pulls {
	struct pool pool;
	struct list early; /* for objects that nobody has told us of yet */
};

struct control_config;
void pulls_carve(struct pulls *ts, struct arena *a, const struct control_config *config);

/* PULL. */
void pull_request(struct control *c, struct node *n, const struct message *m);
/* An object is being built: those who were early wait for it. */
void pull_begun(struct control *c, struct participant *k);
/* It is complete: those who wait are answered. */
void pull_done(struct control *c, struct participant *k);
/* It is built no more, here and now: who waits hears so when its time is over. */
void pull_given_up(struct control *c, struct participant *k);

#endif
