/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that nobody has to ask for: in an allreduce whose stripes are values each node that has a
 * source sends every root its stripe of it (PUSH) as soon as it has been told which nodes these
 * are, and its own stripe of the sum to all of them when it is complete, the one after it first. So
 * no link waits for requests, and no two nodes begin with the same one.
 *
 * Nothing depends on it: an offer that is lost, or that finds nobody who waits for it in
 * PUSH_KEEP_NS, is asked for (pull.h). Bounds: pushes_max that wait.
 */
#ifndef SARISSA_CONTROL_CORE_PARTICIPANT_PUSH_H
#define SARISSA_CONTROL_CORE_PARTICIPANT_PUSH_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"

struct participant;
struct control;
struct node;
struct part;

#define PUSH_KEEP_NS UINT64_C(50000000)

struct push { /* that came before the coordinator's word what it is for */
	struct list link;
	struct timer timer;
	struct node *node;
	struct message_push what;
};

struct pushes {
	struct pool pool;
	struct list early;
	uint8_t *data; /* OBJECT_INLINE_MAX each */
};

struct control_config;
void pushes_carve(struct pushes *os, struct arena *a, const struct control_config *config);

/* PUSH. */
void push_received(struct control *c, struct node *n, const struct message *m);
/* Parts of an object are known: some may be here already. */
void push_begun(struct control *c, struct participant *k);
/* A source of this node is in its own stripe: all other stripes' roots are sent theirs. */
void push_source(struct control *c, const struct part *own);
/* This node's stripe is complete: the other roots are sent it. */
void push_stripe(struct control *c, const struct participant *k);

#endif
