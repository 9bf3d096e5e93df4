/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reduce that a client of this node has asked for, followed until it has ended. The coordinator
 * (the directory's node for the target) may be lost, or the target may become another node's: then
 * the next one gets the request from here, with the time that is left, and begins from zero. The
 * client may go meanwhile.
 *
 *   ASK     REDUCE is out: who may not begin hears so          -> FOLLOW, LOOK, ended
 *   FOLLOW  accepted; REDUCED is out                           -> ended, or ASK (nobody knows it)
 *   LOOK    asked again, but the target exists: is it complete -> ended, or ASK after a pause
 *
 * Bounds: reductions_max of MESSAGE_SOURCES_MAX sources.
 */
#ifndef SARISSA_CONTROL_CORE_REDUCTION_H
#define SARISSA_CONTROL_CORE_REDUCTION_H

#include "list.h"
#include "message.h"
#include "pool.h"
#include "timers.h"

struct call;
struct control;
struct node;

enum reduction_state {
	REDUCTION_ASK,
	REDUCTION_FOLLOW,
	REDUCTION_LOOK,
};

struct reduction {
	struct list active;
	struct list waits; /* REDUCE until it is accepted; REDUCED */
	struct timer timer;
	struct call *call;
	struct node *asked;  /* who got the REDUCE first */
	uint64_t asked_life; /* its incarnation then; 0: it was not up */
	struct message_reduce reduce;
	uint64_t until_ns; /* UINT64_MAX: no limit */
	uint32_t attempts;
	uint8_t state;
	bool accepted; /* once: what the client asked for is no longer to be refused */
	bool again;    /* a coordinator before may have begun it */
};

struct reductions {
	struct pool pool;
	struct list active; /* oldest first */
	struct object_id *sources;
};

struct control_config;
void reductions_carve(struct reductions *rs, struct arena *a, const struct control_config *config);

/* Copies the request and sends it. NULL: too many. */
struct reduction *reduction_start(struct control *c, const struct message_reduce *reduce);
/* The same for one that an earlier control of this node had asked for: looks how it goes, and asks
 * anew where nobody knows it any more. */
struct reduction *reduction_resume(struct control *c, const struct message_reduce *reduce);
/* The youngest one into this target, or NULL. */
struct reduction *reduction_find(struct control *c, const struct object_id *target);
/* What is left of its time; UINT64_MAX: no limit. */
uint64_t reduction_left(struct control *c, const struct reduction *r);
/* A client of this node has deleted the target. */
void reduction_deleted(struct control *c, const struct object_id *target);

#endif
