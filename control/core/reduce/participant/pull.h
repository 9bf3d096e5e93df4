/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes of objects in messages: a node asks for a range (TAKE) and is given it (GIVEN) as soon as
 * all of the object is there. What is being built here answers when it is complete; a request that
 * comes before the coordinator's word what to build is kept for a while. Who is kept waiting hears
 * every TAKE_KEEP_NS at the latest that this node lives, and asks again.
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

struct combine;
struct control;
struct node;

#define TAKE_KEEP_NS UINT64_C(50000000)

struct take {		  /* a request that waits */
	struct list link; /* on the combine's, or takes.early */
	struct timer timer;
	struct node *node;
	uint64_t request;
	struct message_take wanted;
};

struct takes {
	struct pool pool;
	struct list early; /* for objects that nobody has told us of yet */
};

struct control_config;
void takes_carve(struct takes *ts, struct arena *a, const struct control_config *config);

/* TAKE. */
void take_request(struct control *c, struct node *n, const struct message *m);
/* An object is being built: those who were early wait for it. */
void take_begun(struct control *c, struct combine *k);
/* It is complete: those who wait are answered. */
void take_done(struct control *c, struct combine *k);
/* It is built no more, here and now: who waits hears so when its time is over. */
void take_given_up(struct control *c, struct combine *k);

#endif
