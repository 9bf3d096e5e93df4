/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pushes: in an allreduce whose segments travel in messages, each node sends every root its part of
 * that root's segment (PUSH) without being asked, and then its own segment of the sum to all
 * others. The next node in number order comes first, so that no two nodes begin with the same one.
 * Nothing depends on a PUSH: a part that does not come in PUSH_KEEP_NS is pulled (pull.h). Called
 * by the front door and input_value.c. Bounds: pushes_max PUSHes that wait for their COMBINE.
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_PUSH_H
#define SARISSA_CONTROL_CORE_REDUCE_PARTICIPANT_PUSH_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"

struct participant;
struct control;
struct node;
struct part;

struct push { /* a PUSH that came before its COMBINE */
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
void push_carve(struct pushes *os, struct arena *a, const struct control_config *config);

/* PUSH. */
void push_received(struct control *c, struct node *n, const struct message *m);
/* A COMBINE has come: uses the early PUSHes of its parts. */
void push_begun(struct control *c, struct participant *k);
/* A source of this node has arrived in its own segment: sends the other roots their parts. */
void push_source(struct control *c, const struct part *own);
/* This node's segment of the sum is complete: sends it to the other roots. */
void push_stripe(struct control *c, const struct participant *k);

#endif
