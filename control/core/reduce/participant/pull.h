/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pulls: another node asks for a range of an object in a message (PULL), and gets it in a message
 * (PULL_REPLY) when the whole object is there. For sums whose parts are so small that streams would
 * cost more than the bytes (docs/developer/reduce.md, Small segments). A PULL that comes before the
 * COMBINE waits; each is answered after PULL_KEEP_NS at the latest, with -EAGAIN or -ENOENT if need
 * be. Called by the front door and participant.c. Bounds: parts_max PULLs that wait.
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_PULL_H
#define SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_PULL_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"

struct participant;
struct control;
struct node;

struct pull {		  /* a request that waits */
	struct list link; /* participant.pulls, or pulls.early */
	struct timer timer;
	struct node *node;
	uint64_t request;
	struct message_pull wanted;
};

struct pulls {
	struct pool pool;
	struct list early; /* PULLs of objects whose COMBINE has not come */
};

struct control_config;
void pulls_carve(struct pulls *ts, struct arena *a, const struct control_config *config);

/* PULL. */
void pull_request(struct control *c, struct node *n, const struct message *m);
/* A COMBINE has come: early PULLs of the object wait for it. */
void pull_begun(struct control *c, struct participant *k);
/* The object is complete: answers its PULLs. */
void pull_done(struct control *c, struct participant *k);
/* The object is given up: its PULLs are answered when their time is over. */
void pull_given_up(struct control *c, struct participant *k);

#endif
