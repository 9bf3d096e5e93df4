/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reduce that a client of this node has asked for, followed until it has ended. The coordinator
 * (the directory's node for the target) may be lost, or the target may become another node's: then
 * the next one gets the request from here, with the time that is left, and begins from zero. Large
 * ones are coordinated here (reduce/coordinator/delegate.c): the next one is told only that. The
 * client may go meanwhile.
 *
 *   ASK     REDUCE is out: who may not begin hears so    -> FOLLOW, LOOK, ended
 *   FOLLOW  accepted; REDUCED is out                     -> ended, or ASK (nobody knows it); FINISH
 *           (a result was agreed on)
 *   FINISH  the coordinator is lost after that: whoever has built the result is told to let it go
 *                                                        -> ended, LOOK
 *   LOOK    is the target there? Asked again, it existed; or its builder did not answer
 *                                                        -> ended, ASK or LOOK after a pause
 *
 * Here is decided which result a reduce has: a coordinator asks before anybody has all of one
 * (COMMIT), and only the first is agreed to, whatever other coordinators think. That one's sources
 * are remembered here, after the end as well (as long as its place is not needed), and told to
 * whoever keeps the target's part of the directory (RECALL, ledger.c).
 *
 * Bounds: requesters_max of MESSAGE_SOURCES_MAX sources.
 */
#ifndef SARISSA_CONTROL_CORE_REQUESTER_REQUESTER_H
#define SARISSA_CONTROL_CORE_REQUESTER_REQUESTER_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"

struct call;
struct control;
struct node;

enum requester_state {
	REQUESTER_ASK,
	REQUESTER_FOLLOW,
	REQUESTER_FINISH,
	REQUESTER_LOOK,
	REQUESTER_KEPT, /* it has ended well */
};

/* What was proposed and was refused by another node than had been asked first: that one may have
 * agreed. If somebody has all of it, it did. */
struct requester_doubt {
	uint64_t generation; /* 0: none */
	uint8_t used[MESSAGE_SOURCES_MAX / 8];
};

struct requester {
	struct list link;  /* on active or kept */
	struct list waits; /* REDUCE until it is accepted; REDUCED */
	struct timer timer, watch;
	struct call *call;
	struct node *asked;	    /* who got the REDUCE first */
	uint64_t asked_incarnation; /* its incarnation then; 0: it was not up */
	struct message_reduce reduce;
	uint64_t until_ns; /* UINT64_MAX: no limit */
	uint64_t at_ns;	   /* its deadline, if it has one */
	uint64_t
		lost_ns; /* since when the coordinator of a result agreed on is lost; 0: it lives */
	uint64_t generation; /* of the result agreed on; 0: none yet */
	uint32_t holder;     /* who has built that */
	uint32_t attempts;
	uint32_t acked_by;    /* number + 1 of the directory's node that knows of the end */
	uint64_t acked_epoch; /* members_epoch of then */
	uint8_t used[MESSAGE_SOURCES_MAX / 8]; /* bit per source of the result */
	struct requester_doubt doubt;
	uint8_t state;
	bool accepted; /* once: what the client asked for is no longer to be refused */
	bool retried;  /* a coordinator before may have begun it */
	bool proposed; /* generation: as far as is known the directory's node has not agreed yet */
	bool doubted; /* proposed, and who is asked now may be another one than has heard of that */
	bool resumed; /* for an earlier control here, which may have agreed to a result */
};

struct requesters {
	struct pool pool;
	struct list active; /* oldest first */
	struct list kept;   /* the same */
	struct object_id *sources;
	struct object_id used[MESSAGE_SOURCES_MAX]; /* for one message at a time */
	uint32_t sending;			    /* RECALLs under way */
	bool unacked; /* somebody may have to be told of some that are kept */
};

struct control_config;
void requesters_carve(struct requesters *rs, struct arena *a, const struct control_config *config);
void requesters_init(struct control *c);

/* Copies the request and sends it. NULL: too many. */
struct requester *requester_start(struct control *c, const struct message_reduce *reduce);
/* The same for one that an earlier control of this node had asked for: looks how it goes, and asks
 * anew where nobody knows it any more. */
struct requester *requester_resume(struct control *c, const struct message_reduce *reduce);
/* The youngest one into this target, or NULL. */
struct requester *requester_find(struct control *c, const struct object_id *target);
/* What is left of its time; UINT64_MAX: no limit. */
uint64_t requester_left(struct control *c, const struct requester *r);
/* Sets what is left of its time and of its deadline in a REDUCE of it. */
void requester_set_times(struct control *c, const struct requester *r, struct message_reduce *m);
/* A client of this node has deleted the target. */
void requester_deleted(struct control *c, const struct object_id *target);
/* What the one that is coordinated here has made is to be its result; the directory's node agrees,
 * or does not. Or it has failed. */
void requester_propose(struct control *c, const struct message_used *m);
void requester_confirmed(struct control *c, const struct message_used *m);
void requester_refused(struct control *c, const struct message_used *m);
void requester_own_failed(struct control *c, const struct message_used *m);
/* COMMIT. */
void requester_commit(struct control *c, struct node *n, const struct message *m);

/* ledger.c */
/* How one has ended that is kept: the youngest, or NULL. */
struct requester *requester_recall(struct control *c, const struct object_id *target);
/* Which of its sources are in the result, in the order of the request. */
void requester_note(struct requester *r, const struct message_used *m);
/* What was noted; the sources are valid until the next one. */
void requester_used(struct control *c, const struct requester *r, struct message_used *m);
/* It has ended well: remembers it. */
void requester_keep(struct control *c, struct requester *r);
/* Forgets it. */
void requester_forget(struct control *c, struct requester *r);
/* The directory's nodes may know less than before. */
void requesters_tell(struct control *c);
/* Sends as many as may be under way. */
void requesters_pump(struct control *c);
/* The sources of a RECALL that is about to leave. */
void requester_fill_recall(struct control *c, struct call *call);

#endif
