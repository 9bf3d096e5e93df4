/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester of a reduce: follows a reduce of a local client until it ends, also when the client
 * leaves. If the coordinator is lost, or the target gets a new owner, it repeats the request there
 * with the time that is left, and the reduce restarts. It agrees to one result (COMMIT), whatever
 * coordinators ask, and remembers its sources (ledger.c). Called by sessions and the front door. It
 * must not know the graph or participants. Bounds: requesters_max, of MESSAGE_SOURCES_MAX sources.
 *
 *   state   meaning                                          next
 *   ASK     REDUCE is out                                    FOLLOW, LOOK, ended
 *   FOLLOW  accepted; REDUCED is out                         ended, ASK (no coordinator knows it),
 *                                                            FINISH (a result is agreed to)
 *   FINISH  the coordinator is lost after the agreement:     ended, LOOK
 *           its builder is told to release the last chunk
 *   LOOK    asks the directory whether the target exists:    ended; ASK or LOOK after a pause
 *           a repeated REDUCE found it, or its builder
 *           does not answer
 *   KEPT    it has ended with a result
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_REQUESTER_REQUESTER_H
#define SARISSA_CONTROL_CORE_REDUCE_REQUESTER_REQUESTER_H

#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"
#include "core/cluster/state.h"

struct call;
struct control;
struct node;

enum requester_phase {
	REQUESTER_ASK,
	REQUESTER_FOLLOW,
	REQUESTER_FINISH,
	REQUESTER_LOOK,
	REQUESTER_KEPT, /* it has ended well */
};

struct requester {
	struct list link;  /* on active or kept */
	struct list waits; /* REDUCE until it is accepted; REDUCED */
	struct timer timer, watch;
	struct call *call;
	struct node *asked;	    /* node that the first REDUCE went to */
	uint64_t asked_incarnation; /* its incarnation then; 0: it was not up */
	struct message_reduce reduce;
	uint64_t until_ns;   /* UINT64_MAX: no limit */
	uint64_t at_ns;	     /* its deadline, if it has one */
	uint64_t lost_ns;    /* when the coordinator of an agreed result was lost; 0: it lives */
	uint64_t generation; /* of the agreed result; 0: none yet */
	uint32_t holder;     /* node that has built it */
	uint32_t attempts;
	struct announced announced;	       /* KEPT: how it ended, to the target's owner */
	uint8_t used[MESSAGE_SOURCES_MAX / 8]; /* bit per source of the result */
	uint8_t state;
	bool accepted; /* a coordinator has accepted it: the client gets no refusal any more */
	bool retried;  /* an earlier coordinator may have begun it */
	bool resumed;  /* of an earlier control here, which may have agreed to a result */
};

struct requesters {
	struct pool pool;
	struct list active; /* oldest first */
	struct list kept;   /* the same */
	struct object_id *sources;
	struct object_id used[MESSAGE_SOURCES_MAX]; /* for one message at a time */
	struct announcer announcer;		    /* RECALLs */
};

struct control_config;
void requesters_carve(struct requesters *rs, struct arena *a, const struct control_config *config);
void requesters_init(struct control *c);

/* Copies the request and sends it. NULL: too many. */
struct requester *requester_start(struct control *c, const struct message_reduce *reduce);
/* Takes over a request of an earlier control of this node: follows it, and repeats it if no
 * coordinator knows it. */
struct requester *requester_resume(struct control *c, const struct message_reduce *reduce);
/* The youngest requester with this target, or NULL. */
struct requester *requester_find(struct control *c, const struct object_id *target);
/* The rest of its time; UINT64_MAX: no limit. */
uint64_t requester_left(struct control *c, const struct requester *r);
/* Sets what is left of its time and of its deadline in a REDUCE of it. */
void requester_set_times(struct control *c, const struct requester *r, struct message_reduce *m);
/* A local client has deleted the target. */
void requester_deleted(struct control *c, const struct object_id *target);
/* COMMIT. */
void requester_commit(struct control *c, struct node *n, const struct message *m);

/* ledger.c */
/* The latest reduce into the target that has ended with a result, or NULL. */
struct requester *requester_recall(struct control *c, const struct object_id *target);
/* Notes which of its sources are in the result, in the order of the request. */
void requester_note(struct requester *r, const struct message_used *m);
/* Fills in the noted sources. They are valid until the next call. */
void requester_used(struct control *c, const struct requester *r, struct message_used *m);
/* It has ended with a result: remembers it. */
void requester_keep(struct control *c, struct requester *r);
/* Forgets it. */
void requester_forget(struct control *c, struct requester *r);
void ledger_init(struct control *c);
/* Fills in the sources of a RECALL, when it is sent. */
void requester_fill_recall(struct control *c, struct call *call);

#endif
