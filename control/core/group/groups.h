/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The groups that this node owns: members, clocks, the policy, the open round, decided rounds. A
 * pure state machine: requests of members, ends of tasks and the time go in; answers and tasks go
 * out by struct groups_ops (shell.c). Called by the front door and by tests. It must not know
 * sessions, messages or the store.
 *
 *   phase    meaning                                           next
 *   CREATE   the object of what was created is put             LIVE, or gone
 *   META     it is read: an earlier owner had the group        LIST, OTHER, or gone
 *   OTHER    it is no group: the next request is told so       gone
 *   LIST     the policies and decisions are listed             POLICY, LAST or LIVE
 *   POLICY   the last policy is read                           LAST or LIVE
 *   LAST     the last decision is read                         SIFT
 *   SIFT     the contributions that are there are listed       LIVE
 *   LIVE     requests are served                               REMOVE
 *   REMOVE   its objects are listed and deleted                gone
 *
 * A round, one at a time, while the next one is open:
 *
 *   open --quorum of each row, or deadline--> DECIDE: the decision is put
 *   DECIDE --put--> REDUCE; --somebody else has decided--> ADOPT: that decision is read, REDUCE
 *   ADOPT --nobody can read it--> DECIDE, next attempt
 *   ADOPT, or a new owner --> LOOK: is the result there? --yes--> published; --no--> REDUCE
 *   REDUCE --result--> published; --a source is lost--> DECIDE, next attempt, without it
 *   REDUCE --GROUP_ATTEMPTS have failed--> ended by name: pulls that need it fail
 *   DECIDE --put, a switch may make it--> GATHER: its members' pulls are waited for
 *   GATHER --all are there: each is answered with its part--> SWITCH; --time--> REDUCE
 *   SWITCH --member 0 has the result--> published; --a member has failed or died, time--> REDUCE
 *
 * A result that nobody has any more (results.c): MEND makes it again from its contributions, which
 * stay until it has two copies or the next one is there. If they are lost too, the newest older
 * result that lives takes its place, and every member is told once which rounds have gone.
 *
 * Invariants (tests/unit/group/swarm.c):
 *   1. A (member, clock) is in at most one decision whose result is published.
 *   2. The result of a round is published once, under one name; it never changes.
 *   3. A round closes by the policy under which it opened.
 *   4. While all members are under ssp S, no contribution is staler than S (docs/user/groups.md).
 *   5. A contribution is in a round, or its member was told that it is refused or lost.
 *   6. A pull ends when its member leaves, its round ends, or the policy lets it go on.
 *   7. A total has each round that a live member has got, but for those named as lost.
 */
#ifndef SARISSA_CONTROL_CORE_GROUP_GROUPS_H
#define SARISSA_CONTROL_CORE_GROUP_GROUPS_H

#include "core/base/arena.h"
#include "core/base/idmap.h"
#include "core/base/list.h"
#include "core/base/text.h"
#include "core/base/times.h"
#include "internal/group.h"
#include "clocks.h"
#include "policy.h"

struct call;
struct control;
struct group;

enum {
	GROUP_ATTEMPTS = 3,	  /* of a round */
	GROUP_ATTEMPT_MAX = 128,  /* below, in a name that is read: that of a decision nobody can
				   * read is passed over */
	GROUP_POLICIES = 4,	  /* newest ones that an owner tries to read */
	GROUP_KEEP = 8,		  /* newest rounds whose objects stay */
	GROUP_SWEEP_MAX = 64,	  /* rounds whose objects are deleted at a time */
	GROUP_BLOB_BYTES = 60000, /* of a decision: below OBJECT_INLINE_MAX */
};
_Static_assert((int)GROUP_ATTEMPT_MAX + (int)GROUP_ATTEMPTS < (int)GROUP_BY_SWITCH,
	       "attempts and that bit are apart");

enum group_phase {
	GROUP_PHASE_FREE,
	GROUP_PHASE_CREATE,
	GROUP_PHASE_META,
	GROUP_PHASE_OTHER,
	GROUP_PHASE_LIST,
	GROUP_PHASE_READ_POLICY,
	GROUP_PHASE_LAST,
	GROUP_PHASE_SIFT,
	GROUP_PHASE_LIVE,
	GROUP_PHASE_REMOVE,
};

#define GROUP_NODE_DEAD UINT32_MAX /* group_contribution.node: its object is lost */

enum group_task { /* what LIVE waits for */
		  GROUP_TASK_NONE,
		  GROUP_TASK_DECIDE,
		  GROUP_TASK_ADOPT,
		  GROUP_TASK_REDUCE,
		  GROUP_TASK_GATHER, /* no task of ops */
		  GROUP_TASK_SWITCH, /* the same */
		  GROUP_TASK_SWAP,   /* a policy is put */
		  GROUP_TASK_LOOK,   /* what results are there is looked at */
		  GROUP_TASK_MEND,   /* the newest result, which was lost, is reduced again */
};

enum group_look { /* what is looked for: */
		  GROUP_LOOK_NONE,
		  GROUP_LOOK_COPIES,	/* how many copies the newest result has: beside the task */
		  GROUP_LOOK_MADE,	/* the result of the closing round */
		  GROUP_LOOK_BASE,	/* the result that the closing round adds to */
		  GROUP_LOOK_EARLIER,	/* that which the lost one added to */
		  GROUP_LOOK_FALL_BACK, /* an older result to go on from */
};

struct group_contribution {
	struct list link; /* in the open or the closing round */
	uint64_t member, clock;
	uint64_t staleness; /* when it was decided */
	uint32_t node;
	bool there; /* SIFT */
};

struct group_kept {	 /* a result that is there */
	uint64_t number; /* of its round; 0: none */
	uint32_t attempt;
};

struct group_round {
	uint64_t number;
	uint64_t version; /* of its policy */
	struct group_policy policy;
	struct list contributions;
	uint32_t count;
	uint32_t attempt;
	uint64_t due_ns;	/* its deadline; UINT64_MAX: none */
	uint64_t top;		/* its largest clock */
	struct group_kept base; /* closing, GROUP_TOTAL: the result that it adds to; 0: none */
	bool resumed;		/* closing: an earlier owner may have published the result */
	bool begun;		/* closing: so may this owner, its reduce */
	bool spent;		/* closing: its reduce has failed: the next attempt follows */
};

struct group_member {
	struct idmap_node by_number;
	struct list of_group;
	struct list waits; /* in group.waits */
	struct group *group;
	uint64_t number;
	uint64_t clock;		      /* last one pushed, or passed over */
	uint64_t decided;	      /* all up to this clock are decided, or never will be */
	uint64_t done;		      /* all up to this clock have had their round */
	uint64_t need;		      /* round that has its last contribution; 0: none */
	uint64_t in_round;	      /* newest round with a contribution of it */
	uint64_t seen;		      /* newest round that it has pulled */
	uint32_t seen_attempt;	      /* of that; an earlier owner may have told it */
	uint64_t reported;	      /* it knows what has gone of all rounds up to this one */
	uint64_t joined;	      /* round that was open then */
	uint64_t request;	      /* of the pull that waits; 0: none */
	uint64_t push_request;	      /* of the last push that was taken */
	uint64_t since_ns;	      /* when that began; before the first one: the join */
	uint64_t answered_ns, gap_ns; /* last pull answered; smoothed time to the next push */
	uint64_t waiting_ns, counted, late, refused;
	uint32_t node;
	uint32_t cohort;  /* in group.cohort */
	uint32_t slow;	  /* pushes in a row with gaps far above the percentile */
	bool provisional; /* of an earlier owner, or its node has restarted: it must announce itself
			   */
	bool residual;	  /* its last contribution was refused: its pull needs no round */
	bool bereft;	  /* its next pull tells that rounds have gone */
	uint64_t failed;  /* the same: of this round, which had its contribution; 0: none */
	bool switchable;  /* the pull that waits, or waited last, can be answered with a job */
	bool in_job;	  /* it has its part of the closing round, and has not told the end */
	uint32_t place;	  /* in_job: at the switch */
	bool resumed;	  /* a pull that a job has answered goes on with its next one */
	uint64_t job_request; /* in_job: the pull that was answered so */
	uint64_t job_clock;   /* in_job: of its contribution */
	uint64_t job_round;   /* of switching_fits */
};

struct group_cohort {
	char name[GROUP_COHORT_MAX + 1];
	struct clocks clocks; /* while tracked */
	uint32_t live;
	uint32_t present;  /* members with a contribution in the open round */
	uint64_t low;	   /* smallest clock of these; 0: none */
	uint32_t row;	   /* in group.policy */
	uint32_t open_row; /* in open.policy */
	bool tracked;	   /* somebody is bound to its slowest member */
};

struct group_waiter { /* a request that waits for a task */
	uint32_t node;
	uint64_t request; /* 0: none */
};

struct group {
	struct idmap_node by_id;
	char name[GROUP_NAME_MAX + 1];
	uint32_t phase; /* enum group_phase */
	uint32_t task;	/* enum group_task */
	uint32_t op, dtype, flags;
	uint64_t count; /* elements */
	uint32_t start; /* rounds begin when so many have joined */
	bool started;
	uint64_t version;
	struct group_policy policy;
	char policy_text[GROUP_POLICY_MAX + 1];
	uint32_t cohorts;
	struct group_cohort cohort[GROUP_COHORTS_MAX];
	/* slack[i][k]: how far a member of cohort i may be ahead of cohort k; before: for clocks
	 * below `from`, under which a tighter policy does not apply yet. */
	uint32_t slack[GROUP_COHORTS_MAX][GROUP_COHORTS_MAX];
	uint32_t before[GROUP_COHORTS_MAX][GROUP_COHORTS_MAX];
	uint64_t from;
	struct list members;
	uint32_t live;
	struct list waits; /* members in a pull */
	struct group_round open, closing;
	uint64_t published;			/* newest round with a result, or ended; 0: none */
	uint64_t result;			/* newest round that has a result */
	uint64_t failed;			/* newest round that ended without one */
	uint64_t oldest;			/* rounds below are deleted */
	struct group_kept kept[2 * GROUP_KEEP]; /* results that are there, by number */
	struct group_round
		newest;		/* of the newest result, with the contributions that still stay */
	uint64_t safe;		/* newest round whose result had two complete copies */
	uint64_t safe_ns;	/* copies are counted then; UINT64_MAX: no */
	uint64_t safe_pause_ns; /* doubled each time */
	bool doubt;		/* the newest result may be lost: it is looked at before use */
	uint64_t missing; /* this result is lost: no pull is answered before that is settled */
	uint64_t gone_first, gone_last;	 /* newest rounds that were lost after their end; 0: none */
	uint32_t looking;		 /* enum group_look: the look that is out */
	uint32_t look_next;		 /* LOOK: the next one */
	struct group_kept look_at, want; /* of these */
	uint64_t top;			 /* largest clock in a decided round */
	uint64_t pushed;		 /* largest clock pushed */
	uint64_t percentile_ns;
	struct group_waiter creator, swapper, remover;
	struct group_policy wanted; /* of the swapper */
	char wanted_text[GROUP_POLICY_MAX + 1];
	uint64_t listed[GROUP_POLICIES]; /* versions found by LIST, the newest first; 0: none */
	struct group_kept last, earlier; /* decisions, the same: the two newest */
	struct group_kept spoilt;	 /* a decision that nobody can read, and nobody has used */
	uint64_t patience_ns;		 /* the last decision, or that of ADOPT, is waited for
					  * until then */
	uint64_t grace_ns; /* provisional members go then; UINT64_MAX: none are there */
	uint64_t retry_ns; /* the task is tried again then; UINT64_MAX: no */
	uint64_t look_ns;  /* the policy looks for overdue members then; UINT64_MAX: no */
	uint64_t used_ns;
	uint32_t switches;
	struct group_switch {
		uint32_t ip;	  /* as group_request.switch_ip */
		uint64_t rest_ns; /* it is not used before */
		uint32_t failed;  /* times since a round there: it rests longer each time */
	} at_switch[GROUP_SWITCHES_MAX];
	uint32_t switch_chosen;	   /* GATHER, SWITCH */
	uint32_t switch_number;	   /* of this group there; drawn by this owner */
	uint64_t switch_key;	   /* the same; 0: not drawn yet */
	uint64_t switch_first;	   /* member 0 of the last round there: it has that result */
	uint64_t switch_due_ns;	   /* GATHER, SWITCH end then; UINT64_MAX: no such task */
	uint64_t switch_gather_ns; /* no GATHER before */
	bool switch_lost;	   /* a member of GATHER or SWITCH has gone */
	uint64_t switched, fallen;
	uint64_t rounds, counted, late, refused, lost, waiting_ns;
	uint64_t histogram[GROUP_HISTOGRAM];
	bool spent; /* the window of a cohort must be rebuilt */
	bool moved; /* pulls may have become ready */
	/* of shell.c */
	struct call *call;
	void *shell;
};

struct groups_ops {
	void *arg;
	void (*answer)(void *arg, uint32_t node, uint64_t request, int32_t status, const char *text,
		       const struct group_answer *answer);
	/* Each begins a task of the group, which has no other; its end follows in a later turn, or
	 * false: it cannot begin now. */
	bool (*put)(void *arg, struct group *g, const char *name, const char *bytes,
		    uint32_t length);				    /* groups_put */
	bool (*read)(void *arg, struct group *g, const char *name); /* groups_read */
	bool (*list)(void *arg, struct group *g,
		     const char *prefix); /* groups_listed, _list_ended */
	/* sources: valid during the call; resume: an earlier owner may have begun it */
	bool (*reduce)(void *arg, struct group *g, const char *target,
		       const struct object_id *sources, uint32_t count, bool resume);
	/* Begins to count the complete copies of the object, beside the task: groups_looked
	 * follows. One at a time. False: not now. */
	bool (*look)(void *arg, struct group *g, const char *name);
	/* Tells people. */
	void (*log)(void *arg, const char *text);
	/* Ends the reduce into the target: groups_reduced follows. */
	void (*cancel)(void *arg, struct group *g, const char *target);
	/* The group's task and look have no end any more. */
	void (*abandon)(void *arg, struct group *g);
	/* Deletes an object; nobody waits for that. */
	void (*remove)(void *arg, const char *name);
	/* Whether a complete object of that id is there, which this node is the shard owner of. */
	bool (*exists)(void *arg, const struct object_id *id);
	/* Whether the node is a live member of the cluster. */
	bool (*alive)(void *arg, uint32_t node);
	/* A number that nobody can guess. */
	uint64_t (*random)(void *arg);
};

struct groups {
	const struct groups_ops *ops;
	uint64_t now_ns;
	uint32_t node;			   /* this one */
	uint64_t switched, hosted, fallen; /* rounds of all groups, as group.switched and fallen */
	struct pool pool, members, contributions;
	struct idmap by_id, by_member;
	struct group_answer answer; /* for one at a time */
	struct object_id sources[GROUP_MEMBERS_MAX + 1];
	char blob[GROUP_BLOB_BYTES];
};

struct groups_limits {
	uint32_t groups, members, contributions;
};

void groups_carve(struct groups *gs, struct arena *a, const struct groups_limits *limits);
void groups_init(struct groups *gs, const struct groups_ops *ops, uint32_t node);

/* A request of a node, checked for its form. False: the group is being taken over from an earlier
 * owner: the node must ask again soon. */
bool groups_request(struct groups *gs, uint32_t node, uint64_t request,
		    const struct group_request *r);
/* The node is dead, and its members with it. */
void groups_node_lost(struct groups *gs, uint32_t node);
/* The control process of the node has restarted: its members have to announce themselves within
 * GROUP_GRACE_NS. */
void groups_node_reborn(struct groups *gs, uint32_t node);
/* Forgets the groups that another node owns now. */
void groups_keep(struct groups *gs, bool (*mine)(void *arg, const struct object_id *id), void *arg);
void groups_tick(struct groups *gs);
/* When groups_tick has something to do. */
uint64_t groups_next(const struct groups *gs);

/* The ends of tasks. status: 0 or -errno. */
void groups_put(struct groups *gs, struct group *g, int32_t status, const char *text);
void groups_read(struct groups *gs, struct group *g, int32_t status, const char *bytes,
		 uint32_t length);
/* there: somebody has all of it. */
void groups_listed(struct groups *gs, struct group *g, const char *name, bool there);
void groups_list_ended(struct groups *gs, struct group *g, int32_t status);
void groups_reduced(struct groups *gs, struct group *g, int32_t status, const char *text);
void groups_looked(struct groups *gs, struct group *g, int32_t status, uint32_t copies);

/* names.c */
struct object_id group_id(const char *name);
/* ".group/NAME"; with kind: "/KIND/NUMBER" and, unless 0, ".ATTEMPT". */
void group_name(struct text *t, const char *group, const char *kind, uint64_t number,
		uint32_t attempt);
void group_contribution_name(struct text *t, const char *group, uint64_t clock, uint64_t member);
/* Takes the clock and the member off the name of a contribution. */
bool group_contribution_parse(const char *group, const char *name, uint64_t *clock,
			      uint64_t *member);
/* Why a NAME is none, or NULL. */
const char *group_name_wrong(const char *name);
/* Takes "/KIND/NUMBER[.ATTEMPT]" off the name of an object of the group. */
bool group_name_parse(const char *group, const char *name, char *kind, uint64_t *number,
		      uint32_t *attempt);

/* ---- for the files of this folder -------------------------------------------------------------
 */

/* describe.c: the objects that are written, as texts */
uint32_t group_meta_write(const struct group *g, char *out, size_t room);
/* Sets what was created. False: not such a text. */
bool group_meta_read(struct group *g, const char *bytes, uint32_t length);
uint32_t group_decision_write(const struct group *g, char *out, size_t room);
struct group_decision_line {
	bool contributes; /* else it is a live member that does not */
	uint64_t member, clock, staleness;
	uint32_t node;
	char cohort[GROUP_COHORT_MAX + 1];
};
struct group_decision {
	struct group_kept of, base;
	uint64_t version, top;
	uint32_t count; /* contributions */
};
/* False: the text is not the decision of that round and attempt. */
bool group_decision_read(const char *bytes, uint32_t length, struct group_kept of,
			 struct group_decision *out);
/* One call for each line of a text that has been read. */
void group_decision_lines(const char *bytes, uint32_t length,
			  void (*line)(struct groups *gs, struct group *g,
				       const struct group_decision_line *l),
			  struct groups *gs, struct group *g);

/* roster.c */
struct group_member *roster_find(struct groups *gs, const struct group *g, uint64_t number);
/* NULL: a table is full, or no row has that cohort (-1 in *error is then -errno). */
struct group_member *roster_add(struct groups *gs, struct group *g, uint64_t number, uint32_t node,
				const char *cohort, uint64_t clock, int *error);
/* lost: its contributions of the open round go with it. */
void roster_drop(struct groups *gs, struct group *g, struct group_member *m, bool lost);
/* round: the one that holds what moved it. */
void roster_move(struct group *g, struct group_member *m, uint64_t clock, uint64_t round);
/* Fills windows that are spent. */
void roster_refill(struct group *g);
/* The clock that a joiner of that cohort begins at. */
uint64_t roster_clock(const struct group *g, uint32_t cohort);
/* Whether the policy lets a member that is at that clock go on, and the results are there. */
bool roster_may_go(const struct group *g, const struct group_member *m, uint64_t clock);
/* Whether it may push the next clock: the same, when the rounds have closed, with results or not.
 */
bool roster_may_push(const struct group *g, const struct group_member *m);
/* The member goes on in that cohort, which the policy has a row for. */
void roster_change(struct groups *gs, struct group *g, struct group_member *m, const char *name);
/* The policy, or the members' cohorts, have changed. swap: what is tighter applies to new clocks.
 */
void roster_bind(struct group *g, bool swap);
/* The cohort of that name, made if need be; -ENOENT: no row; -ENOSPC. */
int roster_cohort(struct group *g, const char *name);

/* rounds.c */
void rounds_open(struct group *g, uint64_t number);
/* Whether a pull need not wait for that round: it is open, and lacks contributions of others. */
bool rounds_unbound(const struct group *g, uint64_t number);
/* False: no room. */
bool rounds_contribute(struct groups *gs, struct group *g, struct group_member *m, uint64_t clock);
/* Members have changed their cohorts: sets group_cohort.low. */
void rounds_low(struct groups *gs, struct group *g);
/* The member's contributions leave the open round. remove: nobody will contribute them again. */
void rounds_forget(struct groups *gs, struct group *g, const struct group_member *m, bool remove);
/* After any event: closes the open round if it may close, answers pulls that may be answered, sets
 * a waiting policy in force. */
void rounds_turn(struct groups *gs, struct group *g);
void rounds_decided(struct groups *gs, struct group *g, int32_t status);
void rounds_adopted(struct groups *gs, struct group *g, int32_t status, const char *bytes,
		    uint32_t length);
void rounds_reduced(struct groups *gs, struct group *g, int32_t status, const char *text);
/* Tries the task again that could not begin. */
void rounds_retry(struct groups *gs, struct group *g);
void rounds_node_lost(struct groups *gs, struct group *g, uint32_t node);
void rounds_free(struct groups *gs, struct group_round *r);
/* Deletes the contributions of a round that is over. */
void rounds_clear(struct groups *gs, struct group *g, struct group_round *r);
/* Begins the reduce of the closing round, when all that it needs is there. */
void rounds_reduce(struct groups *gs, struct group *g);
/* Begins that reduce without a look. */
void rounds_make(struct groups *gs, struct group *g);
/* Marks the contributions of dead nodes. Returns whether there are any. */
bool rounds_dead(struct groups *gs, struct group_round *r);
/* The base and the contributions as sources of a reduce: how many. */
uint32_t rounds_sources(struct groups *gs, const struct group *g, const struct group_round *r);
/* The closing round is decided again, without contributions that are lost. */
void rounds_next_attempt(struct groups *gs, struct group *g);
/* The closing round is decided: its members' clocks up to it are. */
void rounds_fix(struct groups *gs, struct group *g);
/* The result that is there of a round; NULL: none. */
const struct group_kept *rounds_kept(const struct group *g, uint64_t number);

/* The closing round has ended. */
void rounds_end(struct groups *gs, struct group *g, bool result);

/* results.c: whether results are there, and what follows when they are not */
/* The closing round has a decision, and may have its result: LOOK. */
void results_resume(struct groups *gs, struct group *g);
/* Whether the result that the closing round adds to is there: LOOK. */
void results_base(struct groups *gs, struct group *g);
/* Asks what LOOK wants to know. */
void results_ask(struct groups *gs, struct group *g);
/* Makes the newest result again: MEND. */
void results_mend(struct groups *gs, struct group *g);
void results_mended(struct groups *gs, struct group *g, int32_t status);
void results_looked(struct groups *gs, struct group *g, int32_t status, uint32_t copies);
/* A round has just been published; time has passed; a node is lost. */
void results_published(struct groups *gs, struct group *g);
void results_tick(struct groups *gs, struct group *g);
void results_node_lost(struct groups *gs, struct group *g, uint32_t node);
/* Before a pull is answered: what the member has got last may be lost, and made again otherwise. */
void results_compare(struct group *g, struct group_member *m);
/* Which rounds are lost, and what that means. */
void results_gone(const struct group *g, struct text *t);

/* switching.c: rounds that a switch makes */
/* The round is decided: false: the hosts have to make it. */
bool switching_begin(struct groups *gs, struct group *g);
/* In each turn. */
void switching_turn(struct groups *gs, struct group *g);
/* The member goes. */
void switching_gone(struct group *g, const struct group_member *m);
/* A pull: what it tells of a job. True: it has been answered, with the job that it has not heard
 * of.
 */
bool switching_pull(struct groups *gs, struct group *g, struct group_member *m,
		    const struct group_waiter *w, const struct group_request *r);

/* Nobody waits any more for the pull, which a job may have answered. */
void switching_withdrawn(struct groups *gs, struct group *g, struct group_member *m,
			 uint64_t request);

/* load.c */
void load_begin(struct groups *gs, struct group *g);
void load_read(struct groups *gs, struct group *g, int32_t status, const char *bytes,
	       uint32_t length);
void load_listed(struct groups *gs, struct group *g, const char *name, bool there);
/* The task that could not begin, or has no answer, begins again. REMOVE begins with this. */
void load_retry(struct groups *gs, struct group *g);
void load_list_ended(struct groups *gs, struct group *g, int32_t status);

/* groups.c */
struct group *groups_find(const struct groups *gs, const char *name);
/* NULL: the table is full. */
struct group *groups_make(struct groups *gs, const char *name);
void groups_free(struct groups *gs, struct group *g);
/* The group's task and look have no end any more. */
void groups_abandon(struct groups *gs, struct group *g);
void groups_fill(struct groups *gs, const struct group *g, const struct group_member *m);
/* The answer to a request, if there is one: of the group, unless that is NULL. */
void groups_tell(struct groups *gs, const struct group_waiter *w, int32_t status, const char *text,
		 const struct group *g);
void groups_refuse(struct groups *gs, const struct group_waiter *w, int32_t status,
		   const char *text);
void groups_answer(struct groups *gs, const struct group_waiter *w, const struct group *g,
		   const struct group_member *m);

/* requests.c */
/* The policy is put. */
void groups_swapped(struct groups *gs, struct group *g, int32_t status, const char *text);

#endif
