/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The coordinator of reduces, of targets whose shard this node owns. It finds the sources, plans a
 * graph, tells participants what to build, and repairs what is lost. Called by the front door with
 * messages, and by the cluster's events. It must not know clients, nor how bytes are moved.
 * Bounds: reduces_max, reduce_sources_max.
 *
 *   state      meaning                                       next
 *   LOCATING   asks the directory where the sources are      RUNNING (the policy says when),
 *                                                            ENDED
 *   RUNNING    slots are filled, vertices are built          COMMITTING, ENDED
 *   COMMITTING a node has the target without its last chunk; COMMITTED, dropped (another result
 *              the requester (COMMIT) is asked to agree      was agreed to)
 *   COMMITTED  participants may release the last chunk       ENDED
 *   ENDED      remembered for questions, until its place is needed
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_COORDINATOR_H
#define SARISSA_CONTROL_CORE_REDUCE_COORDINATOR_COORDINATOR_H

#include "core/base/allocator.h"
#include "core/cluster/state.h"
#include "core/base/idmap.h"
#include "core/base/list.h"
#include "core/message/message.h"
#include "core/base/arena.h"
#include "core/base/timers.h"
#include "core/planner/closure.h"
#include "core/planner/planner.h"
#include "core/planner/policy.h"

struct call;
struct control;
struct node;
struct reduce;
struct text;

#define REDUCE_NONE UINT32_MAX

enum reduce_source_state {
	SOURCE_ASKED,  /* no answer yet */
	SOURCE_ABSENT, /* nobody has it */
	SOURCE_KNOWN,
};

struct reduce_source {
	struct reduce *reduce;
	struct call *call; /* GET, LOCATE */
	struct object_id id;
	uint64_t generation;
	uint32_t node;	  /* the holder */
	uint32_t slot;	  /* of the tree; REDUCE_NONE: in reserve, or not KNOWN */
	uint32_t arrival; /* position in the order of becoming KNOWN */
	uint32_t failed;  /* a holder that could not send it */
	uint32_t next;	  /* next source that the same LOCATE names, or REDUCE_NONE */
	uint8_t state;
	bool absorbed; /* its vertex has all bytes of it (plans of one segment only) */
	bool with;     /* named by the LOCATE of another source, which is open */
	bool refused;  /* the directory has no room for another waiter */
};

/* The state of a vertex of the plan graph, beside the RUN_ bits. */
struct reduce_vertex {
	struct reduce *reduce;
	struct call *call;   /* COMBINE */
	struct object_id id; /* of the partial sum */
	uint64_t generation;
	uint32_t tries; /* losses in a row on the same node */
	bool watched;	/* its COMBINE is older than one round of the watchdog */
};

struct reduce_set { /* a bit for each slot, or node by number */
	uint64_t word[GRAPH_SLOTS_MAX / 64];
};

struct reduce_receiver { /* a node that assembles the target from the roots of its segments */
	struct list link;
	struct reduce *reduce;
	struct call *call; /* COMBINE */
	uint64_t request;  /* its GET */
	uint32_t node;
	uint32_t slot;		 /* its first slot: its position in the grid; or REDUCE_NONE */
	struct reduce_set avoid; /* nodes that cannot send to it */
	uint32_t whole;		 /* node that sends what the roots do not; or REDUCE_NONE */
	struct reduce_set left;	 /* feeders, by slot, that fell silent: the roots feed instead */
	struct reduce_set lost;	 /* feeders in `left` that stay out for this generation */
	uint64_t back_ns;	 /* the other feeders in `left` stay out until then */
	uint32_t leaves;	 /* feeders that it has left so far */
	bool dirty;		 /* its node must get a new COMBINE */
	bool done;		 /* it has all segments */
	bool missed;		 /* another receiver has left it; it has not answered since */
};

enum reduce_state {
	REDUCE_LOCATING,
	REDUCE_RUNNING,
	REDUCE_COMMITTING,
	REDUCE_COMMITTED,
	REDUCE_ENDED,
};

/* The request. Constant, but for `request`, and for `num`: at a deadline it becomes the number of
 * sources that are there. */
struct reduce_want {
	uint64_t number;  /* of this reduce, at this coordinator */
	uint64_t request; /* of the latest REDUCE message */
	uint64_t asked;	  /* of this reduce, at the requester */
	uint64_t before;  /* latest generation of the target that another writer has made */
	uint32_t caller;  /* node of the requester */
	uint32_t op, num, flags;
	uint32_t dtype;	      /* 0: that of the sources, and none is known yet */
	uint32_t asked_dtype; /* as the request has it; 0: that of the sources */
	char name[OBJECT_NAME_MAX + 1];
};

struct reduce_named { /* a source that others are compared with */
	bool known;
	struct object_id id;
	uint64_t size;
	struct object_meta meta;
	char name[OBJECT_NAME_MAX + 1];
};

/* The contributions. */
struct reduce_from {
	struct reduce_source *source;
	uint32_t count;
	uint32_t range;	     /* allocation of the array */
	uint32_t unanswered; /* sources without a first answer */
	uint32_t arrivals;   /* sources that have become KNOWN */
	uint64_t size;	     /* bytes of each source, when `sized` */
	uint32_t chunk_bytes;
	bool sized;
	struct reduce_named first;     /* the first that was found, when `sized` */
	struct reduce_named described; /* the first that is described as an array */
	struct reduce_named misfit;    /* of another type than asked for: named with the next one */
	struct object_meta meta;       /* of the result: the description of the arrays */
};

/* A sum of small sources. Their values come with the answers of the directory, and are added up
 * here. */
struct reduce_sum {
	uint32_t value;	    /* allocation of the sum so far */
	uint32_t value_max; /* largest source, in bytes, that LOCATE asks the value of */
	uint32_t summed;    /* sources in the sum */
	bool small;	    /* no source has turned out to be larger */
	bool roomless;	    /* waits for room in the store (store/replica.h) */
};

/* The plan, and how far it is. */
struct reduce_plan {
	uint32_t tree;	      /* allocation of the vertices, the run and the graph */
	uint32_t speculative; /* silent nodes that were replaced before they were dead */
	uint64_t planned_ns;  /* time of the plan; 0: some sources were missing then */
	uint64_t
		level_ns[CONTROL_PLAN_LEVELS_MAX]; /* when the last sum over a level was complete */
	uint64_t shown;	    /* its number in reduces.last; 0: not yet there */
	uint32_t next;	    /* `held`: the vertex to tell next */
	bool held;	    /* vertices or receivers are to be told when others have answered */
	bool repaired;	    /* vertices have begun again */
	struct graph graph; /* without vertices: there is no plan */
	struct graph_run run;
	struct reduce_vertex *vertex; /* one per vertex of the graph */
};

/* The target, and its receivers when it is made in segments. */
struct reduce_out {
	struct list receivers;
	uint64_t generation; /* of the target */
	uint32_t forced;     /* nodes that this coordinator has made receivers */
	bool finished;	     /* a node has all bytes of the result */
	bool broken;	     /* COMMITTED: a segment is lost */
};

/* From COMMITTING on. */
struct reduce_choice {
	struct call *call; /* COMMITTING: COMMIT; COMMITTED: FINISH */
	uint64_t lost_ns;  /* when the holder was lost */
	uint32_t holder;   /* node that has built the result; NONE: it is lost */
};

/* The policy: when to plan, and with how many sources. */
struct reduce_rule {
	struct policy_args args;
	uint64_t located_ns; /* start of the policy's clock */
};

struct reduce {
	struct idmap_node by_id; /* the target */
	struct list active;	 /* on reduces.active; ENDED: on reduces.ended */
	struct list followers;
	struct reduce *superseded; /* earlier reduce into the target, which has a result; or NULL */
	struct control *control;
	struct timer deadline, beat, watch;
	struct timer turn;     /* LOCATING: asks the policy again */
	uint32_t watch_turn;   /* index of the roots that get a COMBINE at the next `watch` */
	uint32_t cancelled_by; /* -ECANCELED: node whose DELETE cancelled it */
	uint64_t cancelled;    /* -ECANCELED: request of that DELETE */
	uint64_t begun_ns;     /* when this node got the REDUCE */
	uint64_t ended_ns;     /* ENDED: since then */
	struct reduce_want want;
	struct reduce_rule rule;
	struct reduce_from from;
	struct reduce_sum sum;
	struct reduce_plan plan;
	struct reduce_out out;
	struct reduce_choice commit;
	int32_t status;
	uint8_t state;
	bool answered;	    /* the REDUCE has its REPLY */
	bool is_superseded; /* it is the `superseded` of another reduce */
	char text[MESSAGE_TEXT_MAX + 1];
};

struct reduce_follower { /* a node whose REDUCED waits for the end */
	struct list link;
	uint64_t request;
	uint64_t asked; /* number of the reduce at the requester; 0: it is not the requester */
	uint32_t node;
};

struct reduces {
	struct pool pool, followers, receivers;
	struct idmap by_id;
	struct list active, ended; /* oldest first */
	struct allocator space;
	uint8_t *memory;
	uint64_t number;
	struct message_part parts[MESSAGE_PARTS_MAX]; /* for one message at a time */
	struct object_id ids[MESSAGE_SOURCES_MAX];
	struct planner_limits limits;
	struct planner_request asked; /* for one plan at a time */
	struct control_plan last;
	uint64_t level_bytes[GRAPH_SLOTS_MAX][CONTROL_PLAN_LEVELS_MAX]; /* for one plan at a time */
	struct planner_group group[MESSAGE_SOURCES_MAX];
	struct closure closure; /* for one repair at a time */
	struct run_contribution contribution[MESSAGE_SOURCES_MAX];
	struct closure_vacated vacated[MESSAGE_SOURCES_MAX];
	uint64_t reachable[NODES_MAX / 64];
};

/* Memory behind one of reduce_sources_max: a source with its slot, or a vertex. */
#define REDUCE_SOURCE_BYTES                                                                      \
	(sizeof(struct reduce_source) + sizeof(struct run_slot) + sizeof(struct reduce_vertex) + \
	 sizeof(uint8_t) + sizeof(struct graph_slot) + sizeof(struct graph_segment) +            \
	 sizeof(struct graph_vertex) + sizeof(struct graph_edge) + sizeof(uint16_t))

static inline uint32_t reduce_number(const struct reduce_vertex *p)
{
	return (uint32_t)(p - p->reduce->plan.vertex);
}

static inline uint32_t reduce_slot(const struct reduce_vertex *p)
{
	return graph_slot_of(&p->reduce->plan.graph, reduce_number(p));
}

/* The node that builds the vertex; REDUCE_NONE: its slot is empty. */
static inline uint32_t reduce_host(const struct reduce_vertex *p)
{
	return p->reduce->plan.run.slot[reduce_slot(p)].host;
}

/* Whether the vertex has that RUN_ bit. */
static inline bool reduce_is(const struct reduce_vertex *p, uint8_t bit)
{
	return p->reduce->plan.run.vertex[reduce_number(p)] & bit;
}

static inline bool reduce_is_root(const struct reduce_vertex *p)
{
	return p->reduce->plan.graph.vertex[reduce_number(p)].out == GRAPH_NONE;
}

static inline struct reduce_vertex *reduce_root(const struct reduce *r, uint32_t segment)
{
	return &r->plan.vertex[r->plan.graph.segment[segment].root];
}

/* Whether receivers assemble the target from segments. */
static inline bool reduce_gathers(const struct reduce *r)
{
	return r->plan.graph.out == GRAPH_OUT_GATHER;
}

struct control_config;
void reduces_carve(struct reduces *rs, struct arena *a, const struct control_config *config);
void reduces_init(struct control *c);

/* REDUCE, REDUCED, COMBINED, RECALL. */
void reduce_request(struct control *c, struct node *n, const struct message *m);
void reduce_ask(struct control *c, struct node *n, const struct message *m);
void reduce_combined(struct control *c, struct node *n, const struct message *m);
void reduce_recall(struct control *c, struct node *n, const struct message *m);
/* A HAVE of a target, before the directory sees it. Another coordinator's result, or an object that
 * was there before, may be complete. Returns whether the HAVE was answered, to be sent again. */
bool reduce_have(struct control *c, const struct node *n, const struct message *m);

/* Whether that generation of the target was not made by this reduce: it is older than the request,
 * or the owner has seen another node announce it. A reduce that was restarted at this coordinator
 * may have made the older one itself. */
bool reduce_is_another(const struct reduce *r, uint64_t generation);

/* Fills in the parts of a COMBINE, or the sources of a COMMIT, as they are when it is sent. */
void reduce_fill_message(struct control *c, struct call *call);
void reduce_fill_commit(struct control *c, struct call *call);

/* The node can be reached again; it cannot any more. */
void reduce_node_up(struct control *c, const struct node *n);
void reduce_node_down(struct control *c, struct node *n);
/* A generation of the target is deleted: what is being built of it restarts with a later one. */
void reduce_tombstone(struct control *c, const struct message_tombstone *b);
/* Ends the reduce that makes the target, if there is one. Returns whether there was. */
bool reduce_deleted(struct control *c, const struct object_id *target, const char *text);
/* The members have changed: reduces whose targets have a new owner restart there. */
void reduce_keep(struct control *c);
/* There is room in the store: tries the sums that waited for it. */
void reduce_roomless(struct control *c);

/* ---- show.c ---------------------------------------------------------------------------------- */

/* DELETE of a target: cancels its reduce. Returns whether there was no object to delete, so that
 * the request is answered. */
bool reduce_cancel(struct control *c, const struct node *n, const struct message *m);
/* Sets the names of the objects of an answer that are targets of running reduces. */
void reduce_name_targets(struct control *c, struct session_object *objects, uint32_t count);
/* A GET finds no copy of a target: sets the text, that a reduce makes it or has failed. */
void reduce_explain(struct control *c, struct message_got *got);
/* Progress of a reduce: its sources and its coordinator, for a REDUCED that does not wait. */
void reduce_progress(struct control *c, const struct reduce *r, struct message_used *m);
/* The text for a reduce that ended at its timeout. */
void reduce_say_late(const struct control *c, const struct reduce *r, struct text *t);
/* A HAVE that creates an object with the id of a running reduce's target: refuses it. Returns
 * whether it did. */
bool reduce_refuses(struct control *c, const struct node *n, const struct message *m);
/* A GET of the target of a reduce that has just failed, as its sources do not fit together: refuses
 * it. Returns whether it did. */
bool reduce_refuses_get(struct control *c, const struct node *n, const struct message *m);
/* The reduce has ended without a result: answers the GETs of its target. */
void reduce_tell_waiters(struct control *c, const struct reduce *r);

/* ---- coordinator.c, for the other files of this folder ----------------------------------------
 */

/* A new generation, later than all that this node knows of the target. Another coordinator's clock
 * may be ahead. */
uint64_t reduce_generation(struct control *c, const struct reduce *r);
struct reduce *reduce_find(struct control *c, const struct object_id *target);
/* Fills in the sources that the result holds. */
void reduce_used(struct control *c, const struct reduce *r, struct message_used *m);
/* Answers the followers. */
void reduce_answer_all(struct control *c, struct reduce *r);
/* Forgets a reduce that another node coordinates or has finished. Followers ask there. */
void reduce_drop(struct control *c, struct reduce *r);
/* Forgets a reduce whose result is complete already, perhaps of an earlier generation than the one
 * being made. That one ends first: otherwise the directory takes the result for an older object. */
void reduce_give_way(struct control *c, struct reduce *r);
void reduce_end(struct control *c, struct reduce *r, int32_t status, const char *text);
/* Ends a reduce before a node has all bytes of the target. Partial objects are removed without a
 * tombstone: across a partition an earlier generation may have been agreed to. */
void reduce_fail(struct control *c, struct reduce *r, int32_t status, const char *text);
/* Sets the policy that the request names. Its clock starts now. */
void reduce_set_policy(struct control *c, struct reduce *r, const struct message_reduce *m);
/* The deadline by the clock of this node; UINT64_MAX: none. */
uint64_t reduce_deadline(const struct reduce *r);
/* The least sources of a result; the most are want.num. */
static inline uint32_t reduce_fewest(const struct reduce *r)
{
	return r->rule.args.least ? r->rule.args.least : r->want.num;
}
extern const char reduce_exists[];
/* Sends the REPLY to a REDUCE, RECALL or HAVE. */
void reduce_reply(struct control *c, uint32_t node, uint64_t request, int32_t status,
		  const char *text);
/* Answers the REDUCE with success: the reduce runs. */
void reduce_accept(struct control *c, struct reduce *r);

/* Forgets the reduce, and its superseded one. */
void reduce_free(struct control *c, struct reduce *r);

/* ---- history.c ------------------------------------------------------------------------------- */

/* A reduce that has ended (or NULL) gives its place to a new one into the same target. Returns the
 * superseded reduce that the new one keeps until it has a result, or NULL. */
struct reduce *reduce_supersede(struct control *c, struct reduce *r);
/* The new reduce has failed: its superseded one (or NULL) gets its place back. */
void reduce_reinstate(struct control *c, struct reduce *superseded);
/* The reduce that questions are answered for: r, or its superseded one when that one's result is
 * what the directory has. Its holder may have been out of reach when r began, and made r fail. */
struct reduce *reduce_standing(struct control *c, struct reduce *r);
/* Forgets the oldest ENDED reduce. Returns whether there was one. */
bool reduce_evict(struct control *c);

/* ---- commit.c -------------------------------------------------------------------------------- */

/* The node has all of the target but its last chunk: asks for agreement. */
void reduce_commit(struct control *c, struct reduce *r, uint32_t node);
/* Sends FINISH to the node: it may release the last chunk. */
void reduce_commit_finish(struct control *c, struct reduce *r, uint32_t node);
/* Sends FINISH as a bare call. Answers: -EAGAIN, the chunk is not there yet; -ENOENT, the node
 * builds no such object. */
struct call *reduce_commit_call(struct control *c, const struct reduce *r, uint32_t node,
				call_end *end, void *owner);
/* The builder of the result has lost it. Another holder may announce a complete copy soon. */
void reduce_commit_lost(struct control *c, struct reduce *r);
/* Whether no such announcement can come any more. */
bool reduce_commit_hopeless(const struct control *c, const struct reduce *r);
/* Periodic: asks again, or gives up, when the awaited node may be dead. */
void reduce_commit_look(struct control *c, struct reduce *r);

struct reduce *reduce_make(struct control *c, struct node *n, uint64_t request,
			   const struct message_reduce *in);
/* Reserves the target's id for that generation alone. */
void reduce_reserve(struct control *c, const struct reduce *r, uint64_t generation);

/* ---- watchdog.c ------------------------------------------------------------------------------ */

/* Starts the periodic look at the nodes that the reduce depends on. */
void reduce_watch(struct control *c, struct reduce *r);

/* ---- contributions.c ------------------------------------------------------------------------- */

/* Sends the first LOCATE of each source. */
void reduce_locate_all(struct control *c, struct reduce *r);
void reduce_locate(struct control *c, struct reduce_source *s);
/* Fills in the other sources that a LOCATE names, when it is sent. */
void reduce_fill_locate(struct control *c, struct call *call);
/* Fills in what the policy decides by: when to plan, and whether to replace a silent source. */
void reduce_view(struct control *c, const struct reduce *r, struct policy_view *v);
/* Asks the policy again, while LOCATING, and acts on its answer. The reduce may end. */
void reduce_turn(struct control *c, struct reduce *r);
/* Cancels the LOCATE of a source. */
void reduce_unlocate(struct control *c, struct reduce_source *s);
/* Tells the directory to drop the waiter of that LOCATE. */
void reduce_forget(struct control *c, const struct object_id *id, uint64_t request);
/* Whether the node is up. */
bool reduce_reachable(struct control *c, uint32_t node);

/* ---- types.c --------------------------------------------------------------------------------- */

/* Whether a source that was found fits the request and the sources before it; else why says what
 * differs. Sets the type of the reduce, if it is not set, and the metadata of its result. */
bool reduce_types_hold(struct reduce *r, const struct reduce_source *s,
		       const struct message_got *got, struct text *why);

/* Says why a source that was put off does not fit (reduce_from.misfit). */
void reduce_types_misfit(const struct reduce *r, struct text *why);

enum reduce_differs {
	REDUCE_SAME,
	REDUCE_OTHER_SOURCES,
	REDUCE_OTHER_KIND, /* the same sources, but another type or operation */
};
/* How a second request for the target of a reduce differs from its own; why: in words. */
enum reduce_differs reduce_differs(const struct reduce *r, const struct message_reduce *m,
				   struct text *why);

/* ---- links.c --------------------------------------------------------------------------------- */

/* Largest source, in bytes, that is cheaper to add up here, where `values` of them arrive. */
uint32_t reduce_value_max(const struct control *c, const struct reduce *r, uint32_t values);
/* The link that stands for all nodes; the link of one node. */
struct topology_link reduce_links_all(const struct control *c);
struct topology_link reduce_links_of(const struct control *c, uint32_t node);

/* The reduce is complete: each participant has sent or received one object in its time. Notes that
 * as a lower bound of their rates. No other measurement shows that a slow sender has recovered. */
void reduce_links_show(struct control *c, const struct reduce *r);

/* ---- measured.c ------------------------------------------------------------------------------ */

/* A vertex is complete. */
void reduce_measured_done(struct control *c, struct reduce *r, uint32_t v);
/* The result, or one more copy of it, is complete: this is the last plan now. */
void reduce_measured_show(struct control *c, struct reduce *r);

/* ---- binding.c ------------------------------------------------------------------------------- */

/* Chooses the plan graph, and fills its slots. */
void reduce_plan(struct control *c, struct reduce *r);
/* Binds sources to open slots, and starts the vertices that have all. */
void reduce_fill(struct control *c, struct reduce *r);
/* Starts a vertex whose slot has all its sources, unless it has started. */
void reduce_resume(struct control *c, struct reduce *r, uint32_t v);

/* ---- vertices.c ------------------------------------------------------------------------------ */

/* Sends COMBINE for all dirty vertices, as far as open ones leave room; the rest follows. */
void reduce_tell_all(struct control *c, struct reduce *r);
/* A COMBINE was answered: sends what was held back. */
void reduce_tell_more(struct control *c, struct reduce *r);
/* Periodic: repeats COMBINE for all vertices, so that participants know the coordinator lives. */
void reduce_beat(struct control *c, struct reduce *r);
/* Whether the vertex' slot has all its sources. */
bool reduce_complete(const struct reduce_vertex *p);

/* ---- receivers.c ----------------------------------------------------------------------------- */

/* A GET of a target that is made in segments: makes the node a receiver. Returns whether the target
 * is one. */
bool reduce_receivers_get(struct control *c, struct node *n, const struct message *m);
/* Sends COMBINE to all dirty receivers. */
void reduce_receivers_tell(struct control *c, struct reduce *r);
/* The plan has segments: takes the waiters of the target over from the directory. */
void reduce_receivers_begin(struct control *c, struct reduce *r);
/* The result is agreed to: receivers may release the last chunk. */
void reduce_receivers_finish(struct control *c, struct reduce *r);
/* Segments were rebuilt: receivers restart. */
void reduce_receivers_restart(struct control *c, struct reduce *r);
/* Whether the node is a receiver, or the holder of the result, which will get FINISH or RELEASE. */
bool reduce_receivers_knows(struct reduce *r, const struct node *n,
			    const struct message_combined *m);
/* COMBINED from a receiver. */
void reduce_receivers_combined(struct control *c, struct reduce *r, struct node *n,
			       const struct message_combined *m);
/* A segment or a receiver's copy is complete, or lost: commits, ends, or goes on. */
void reduce_receivers_check(struct control *c, struct reduce *r);
void reduce_receivers_node_down(struct control *c, struct reduce *r, uint32_t node);
void reduce_receivers_free(struct control *c, struct reduce *r);

/* ---- relays.c -------------------------------------------------------------------------------- */

/* Fills in the parts of a COMBINE to a receiver. */
void reduce_feed_fill_message(struct control *c, struct call *call);
/* The node has become a receiver, or is none any more: marks dirty those that it feeds. */
void reduce_feed_changed(struct reduce *r, struct reduce_receiver *g);
/* A node cannot send to the receiver: from the commit on, others feed it instead. */
void reduce_feed_avoid(struct reduce_receiver *g, uint32_t node);
/* A receiver that feeds this one is silent, or unreachable: the roots feed it instead. */
void reduce_feed_leave(struct control *c, struct reduce_receiver *g, uint32_t node, bool silent);
/* Receivers go back to feeders that answer again. */
void reduce_feed_return(struct control *c, struct reduce *r);
/* Chooses receiver.whole. Returns whether it has changed. */
bool reduce_feed_choose(struct control *c, struct reduce *r, struct reduce_receiver *g);

/* ---- repair.c -------------------------------------------------------------------------------- */

/* Locates sources in reserve whose holders are unreachable, and fills slots from the others. */
void reduce_look_retry(struct control *c, struct reduce *r);
/* COMBINED says that a vertex, or a part of it, is lost: restarts what depends on it. */
void reduce_lost(struct control *c, struct reduce *r, uint32_t v, const struct message_combined *m);
/* The host of a root does not answer: speculative repair, if there is a reserve. */
void reduce_silent(struct control *c, struct reduce *r, uint32_t v);

#endif
