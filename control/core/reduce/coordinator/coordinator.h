/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduces whose targets belong to this node's part of the directory, and large ones that its
 * clients have asked for (borrowed: delegate.c). The coordinator finds the sources, puts them into
 * a plan as they arrive, tells the nodes what to build from what
 * (reduce/participant/participant.h), and mends what is lost. It never touches payload, but for
 * small objects, whose values come with the answers of the directory and are added up here.
 *
 *   LOCATING   it is asked where the sources are         -> RUNNING (when its policy says so: all
 *                                                           have answered once, or the deadline
 *                                                           has come), LENT, ENDED
 *   LENT       the node that has asked coordinates it (delegate.c) -> COMMITTED (it is asked
 *              whether it may be that), LOCATING, ENDED; dropped
 *   RUNNING    slots are filled, objects are built       -> COMMITTING; ENDED
 *   COMMITTING somebody has all of the target but its last chunk: who asked for the reduce is
 *              asked whether that may be the result, or, if that is we, the directory's node
 *                                                        -> COMMITTED; dropped (another one is)
 *   COMMITTED  it is: whoever holds a last chunk may let it go -> ENDED
 *   ENDED      kept for those who ask how it ended, until its place is needed
 *
 * A plan is a graph (planner/graph.h) that a planner makes when all sources have answered once
 * (binding.c). Its slots are filled in the order in which sources come; a slot is for one
 * source, or for several that were on one node then; those beyond num wait as a reserve. Usually
 * the graph is one tree, whose root builds the target. When all contributors will get the result it
 * is cut into segments, and each who gets the target puts it together from the segments' roots
 * (receivers.c, relays.c); small ones go in messages. A vertex is a slot's part in one
 * segment. One that adds something up has an object of its own, hidden but for the target; any
 * other hands its only source on.
 *
 * When something is lost that whoever takes it has not taken completely, its slot is vacated as far
 * as it is lost, and filled again from the reserve or with what turns up; the closure over the
 * graph (repair.c) says which vertices get objects of new generations. The others keep what
 * they have built and send it again.
 *
 * From COMMITTING on nothing is repaired any more (commit.c): nobody has all bytes of
 * the target before that, and the set of the sources is never another one after it.
 *
 * A coordinator that dies takes this with it: the caller's node (reduce/requester/requester.c)
 * repeats the request at the next one, unless it has agreed to a result. Bounds: reduces_max,
 * reduce_sources_max.
 */
#ifndef SARISSA_CONTROL_CORE_COORDINATOR_COORDINATOR_H
#define SARISSA_CONTROL_CORE_COORDINATOR_COORDINATOR_H

#include "core/base/allocator.h"
#include "core/cluster/room.h"
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
	uint32_t node;	  /* that holds it */
	uint32_t slot;	  /* slot, or REDUCE_NONE */
	uint32_t arrival; /* the order of becoming KNOWN */
	uint32_t failed;  /* a node that could not give it */
	uint32_t next;	  /* another one that is asked for with it, or REDUCE_NONE */
	uint8_t state;
	bool absorbed; /* its vertex's object has all of it (one segment only) */
	bool with;     /* it is asked for with another one, whose call is open */
	bool refused;  /* the directory has no room to note that it is looked for */
};

/* What is known of a vertex of the graph beside the bits of the run. */
struct reduce_vertex {
	struct reduce *reduce;
	struct call *call;   /* COMBINE */
	struct object_id id; /* of its object */
	uint64_t generation;
	uint32_t tries; /* times that it was lost without having moved */
	bool watched;	/* its node has been told of it for a while */
};

struct reduce_set { /* a bit for each slot, or node by number */
	uint64_t word[GRAPH_SLOTS_MAX / 64];
};

struct reduce_receiver { /* a node that puts the target together from the roots' stripes */
	struct list link;
	struct reduce *reduce;
	struct call *call; /* COMBINE */
	uint64_t request;  /* its GET */
	uint32_t node;
	uint32_t slot; /* its first one, of its place in the order of feeding; or REDUCE_NONE */
	struct reduce_set avoid; /* nodes that do not give it anything */
	uint32_t whole;		 /* node that gives it what roots do not, or REDUCE_NONE */
	struct reduce_set left;	 /* slots that were to feed it and fell silent: the roots do */
	struct reduce_set lost;	 /* of those: as long as the generation lasts, */
	uint64_t back_ns;	 /* of the others: until then at least */
	uint32_t leaves;	 /* times that it has left one */
	bool dirty, done;
	bool missed; /* somebody has left it, and it has not answered since */
};

enum reduce_state {
	REDUCE_LOCATING,
	REDUCE_DELEGATED,
	REDUCE_RUNNING,
	REDUCE_COMMITTING,
	REDUCE_COMMITTED,
	REDUCE_ENDED,
};

/* What was asked for. It stays as it is, but for `request`, and for num, which becomes what is
 * there when a deadline comes. */
struct reduce_want {
	uint64_t number;  /* ours for it */
	uint64_t request; /* of the REDUCE, as it came last */
	uint64_t asked;	  /* the caller's number for it */
	uint64_t before;  /* latest generation of the target that is known to be another's */
	uint32_t caller;  /* node */
	uint32_t op, dtype, num, flags;
	char name[OBJECT_NAME_MAX + 1];
};

/* The contributions, and what they have in common. */
struct reduce_from {
	struct reduce_source *source;
	uint32_t count;
	uint32_t range; /* of the sources */
	uint32_t unanswered, arrivals;
	uint64_t size; /* 0 and no source known: not known yet */
	uint32_t chunk_bytes;
	bool sized;
};

/* The sum of small ones, whose values come along with the answers of the directory. */
struct reduce_sum {
	uint32_t value;	    /* range: the sum so far */
	uint32_t value_max; /* bytes of a source whose value is to come along */
	uint32_t summed;    /* sources in it */
	bool small;	    /* as far as is known all values come along */
	bool roomless;	    /* it waits for room (store/replica.h) */
};

/* How it is built. */
struct reduce_plan {
	uint32_t tree;		      /* range: of the vertices, the run and the graph */
	uint32_t speculative;	      /* times that a silent node was not waited for */
	uint64_t planned_ns;	      /* when it was; 0: not all of them were there */
	struct graph graph;	      /* no vertices: not planned yet, or not any more */
	struct graph_run run;	      /* how far it is */
	struct reduce_vertex *vertex; /* of the graph's */
};

/* The target, and who gets it in stripes. */
struct reduce_out {
	struct list receivers;
	uint64_t generation; /* of the result */
	uint32_t forced;     /* nodes that were made to get a target in stripes */
	bool finished;	     /* somebody has all of the result */
	bool broken;	     /* COMMITTED: a stripe is lost */
};

/* From COMMITTING on. */
struct reduce_choice {
	struct call *call; /* COMMITTING: COMMIT; COMMITTED: FINISH */
	uint64_t ask_ns;   /* COMMITTING: when it may be asked again */
	uint64_t lost_ns;  /* holder NONE: since when */
	uint32_t holder;   /* who has built the result; or NONE */
	uint32_t unknown;  /* COMMITTING: times that the directory's node did not know of it */
};

/* Delegated, to the node that has asked, or by the directory's node to us (delegate.c). */
struct reduce_delegated {
	uint64_t until_ns; /* LENT: the end of its time; UINT64_MAX: none */
	uint64_t there;	   /* LENT: earlier than what is made, and somebody has all of it; or 0 */
	uint64_t made;	   /* LENT: what was announced last by who builds it */
	uint64_t other;	   /* LENT: somebody has all of it, who has not built it; or 0 */
	bool is_delegate;  /* from the directory's node: we have asked for it */
	bool kept;	   /* so it was: we keep the target now */
	bool undelegable;  /* it is not to be lent */
};

/* When it is planned, and with how many. */
struct reduce_rule {
	const struct policy *policy;
	struct policy_args args; /* the policy's */
	uint64_t located_ns;	 /* when this node began to count them */
};

struct reduce {
	struct idmap_node by_id; /* the target */
	struct list active;	 /* on reduces.active, or ended ones on reduces.ended */
	struct list followers;
	struct reduce *superseded; /* that has a result, into the same target; or NULL */
	struct control *control;
	struct timer deadline, beat, watch;
	struct timer turn;   /* LOCATING: the policy is asked again */
	uint32_t watch_turn; /* which of the roots are told at the next fire of watch */
	uint32_t cancelled_by;
	uint64_t cancelled; /* -ECANCELED: the DELETE that did it, and whose */
	uint64_t begun_ns;  /* when this node heard of it */
	struct reduce_want want;
	struct reduce_rule rule;
	struct reduce_from from;
	struct reduce_sum sum;
	struct reduce_plan plan;
	struct reduce_out out;
	struct reduce_choice commit;
	struct reduce_delegated delegated;
	int32_t status;
	uint8_t state;
	bool answered;	    /* the REDUCE */
	bool is_superseded; /* it is another's older one */
	char text[MESSAGE_TEXT_MAX + 1];
};

struct reduce_follower { /* a REDUCED that waits */
	struct list link;
	uint64_t request;
	uint64_t asked; /* its number for the reduce; 0: it has not asked for it */
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
	struct planner_group group[MESSAGE_SOURCES_MAX];
	struct closure closure; /* for one repair at a time */
	struct run_contribution contribution[MESSAGE_SOURCES_MAX];
	struct closure_vacated vacated[MESSAGE_SOURCES_MAX];
	uint64_t reachable[NODES_MAX / 64];
};

/* What one of reduce_sources_max stands for: a source with a slot, or a vertex. */
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

/* Node that builds it; REDUCE_NONE: its slot is empty. */
static inline uint32_t reduce_host(const struct reduce_vertex *p)
{
	return p->reduce->plan.run.slot[reduce_slot(p)].host;
}

/* Whether it has that RUN_ bit. */
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

/* Whether who gets the target puts it together from segments. */
static inline bool reduce_gathers(const struct reduce *r)
{
	return r->plan.graph.out == GRAPH_OUT_GATHER;
}

struct control_config;
void reduces_carve(struct reduces *rs, struct arena *a, const struct control_config *config);
void reduces_init(struct control *c);

/* REDUCE, REDUCED, COMBINED, RECALL, PROPOSE. */
void reduce_request(struct control *c, struct node *n, const struct message *m);
void reduce_ask(struct control *c, struct node *n, const struct message *m);
void reduce_combined(struct control *c, struct node *n, const struct message *m);
void reduce_recall(struct control *c, struct node *n, const struct message *m);
void reduce_proposed(struct control *c, struct node *n, const struct message *m);
/* A HAVE, before the directory gets it: somebody may have all of what another coordinator made, or
 * of what the target was before. Returns whether it was answered: it must come again. */
bool reduce_have(struct control *c, const struct node *n, const struct message *m);

/* Whether that generation of the target is not this reduce's: it was there before that was asked
 * for, or who lent it has seen it come from elsewhere. One that is asked again may have made what
 * was there itself, under another coordinator. */
bool reduce_is_another(const struct reduce *r, uint64_t generation);

/* The parts of a COMBINE that is about to leave, as they are now; the sources of a COMMIT. */
void reduce_fill_message(struct control *c, struct call *call);
void reduce_fill_commit(struct control *c, struct call *call);

/* Messages reach the node again; none does any more. */
void reduce_node_up(struct control *c, const struct node *n);
void reduce_node_down(struct control *c, struct node *n);
/* That generation of the target is ended, wherever it was made. */
void reduce_tombstone(struct control *c, const struct message_tombstone *b);
/* The target is to be deleted. Returns whether it was being made: then its reduce has ended so. */
bool reduce_deleted(struct control *c, const struct object_id *target, const char *text);
/* The members have changed: those that are another's now begin again there. */
void reduce_keep(struct control *c);
/* Sums that wait for room (store/replica.h) are tried again. */
void reduce_roomless(struct control *c);

/* show.c */
/* DELETE of a target: its reduce is cancelled. Returns whether that was all there was, and the
 * request is answered. */
bool reduce_cancel(struct control *c, const struct node *n, const struct message *m);
/* Gives the objects of an answer that reduces make their names. */
void reduce_name_targets(struct control *c, struct session_object *objects, uint32_t count);
/* Nobody has the target: a reduce makes it, or has failed. Sets the text that says so. */
void reduce_explain(struct control *c, struct message_got *got);
/* How far it is, with all its sources, and who coordinates it: for a REDUCED that does not wait. */
void reduce_progress(struct control *c, const struct reduce *r, struct message_used *m);
/* REDUCED that does not wait, at the coordinator of a reduce that was lent. Returns whether it is
 * answered. */
bool reduce_progress_here(struct control *c, struct node *n, const struct message *m);
/* Why it has ended when its time is over. */
void reduce_say_late(const struct control *c, const struct reduce *r, struct text *t);
/* HAVE: somebody creates an object that a reduce makes. Returns whether that is so, and the request
 * is refused. */
bool reduce_refuses(struct control *c, const struct node *n, const struct message *m);
/* It has ended: those who wait for the target hear why it does not come. */
void reduce_tell_waiters(struct control *c, const struct reduce *r);

/* For the files of the coordinator. */
/* A new one, later than what was there, or was buried: another coordinator's clock may be ahead. */
uint64_t reduce_generation(struct control *c, const struct reduce *r);
struct reduce *reduce_find(struct control *c, const struct object_id *target);
/* Which sources are in it. */
void reduce_used(struct control *c, const struct reduce *r, struct message_used *m);
/* Tells those who have asked. */
void reduce_answer_all(struct control *c, struct reduce *r);
/* It is another's to make, or made already: whoever has asked us asks again. */
void reduce_drop(struct control *c, struct reduce *r);
/* The same where its result is there already, perhaps of an earlier generation than what is being
 * made: that ends first, or the directory would take the result for what was there before it. */
void reduce_give_way(struct control *c, struct reduce *r);
void reduce_end(struct control *c, struct reduce *r, int32_t status, const char *text);
/* The same before anybody has all of it: what there is of it goes, and nothing is buried. On the
 * other side of a cut it may have been decided, under an earlier generation. */
void reduce_fail(struct control *c, struct reduce *r, int32_t status, const char *text);
/* Its policy, as the request says, counted from now. */
void reduce_set_policy(struct control *c, struct reduce *r, const struct message_reduce *m);
/* The deadline, in the clock of this node; UINT64_MAX: none. */
uint64_t reduce_deadline(const struct reduce *r);
/* The fewest sources that a result of it holds; the most are num. */
static inline uint32_t reduce_fewest(const struct reduce *r)
{
	return r->rule.args.least ? r->rule.args.least : r->want.num;
}
/* Whether so many sources can be asked for, and calls be left for all else. */
bool reduce_calls(const struct control *c, uint32_t count);
extern const char reduce_exists[];
/* To a REDUCE, a RECALL, a PROPOSE or a HAVE. */
void reduce_reply(struct control *c, uint32_t node, uint64_t request, int32_t status,
		  const char *text);
/* Answers the REDUCE: it goes on. */
void reduce_accept(struct control *c, struct reduce *r);

/* Forgets it, and its older one. */
void reduce_free(struct control *c, struct reduce *r);

/* history.c */
/* One that has ended (or NULL) makes room for another into its target. Returns what is kept beside
 * that until it has a result: the reduce itself or one before, whose result may yet be the one that
 * stays; or NULL. */
struct reduce *reduce_supersede(struct control *c, struct reduce *r);
/* The other one never was: what was kept (or NULL) is in its place again. */
void reduce_reinstate(struct control *c, struct reduce *superseded);
/* Which of the two is told of. The result that is there may be the older one's, which was out of
 * reach when the other began, and which made that one fail. */
struct reduce *reduce_standing(struct control *c, struct reduce *r);
/* Forgets the oldest one that is only remembered. Returns whether there was one. */
bool reduce_evict(struct control *c);

/* commit.c */
/* That node has all of the target but its last chunk. */
void reduce_commit(struct control *c, struct reduce *r, uint32_t node);
/* Lets that node's last chunk go, and follows what becomes of it. */
void reduce_commit_finish(struct control *c, struct reduce *r, uint32_t node);
/* Only tells it so: -EAGAIN, it will go when it is there; -ENOENT, the node builds no such. */
struct call *reduce_commit_call(struct control *c, const struct reduce *r, uint32_t node,
				call_end *end, void *owner);
/* The node that has built the result has it no more: it is what others have of it, of whom one may
 * be about to say that it has all. */
void reduce_commit_lost(struct control *c, struct reduce *r);
/* For so long that nobody will. */
bool reduce_commit_hopeless(const struct control *c, const struct reduce *r);
/* Now and then, while somebody is waited for who may not live. */
void reduce_commit_look(struct control *c, struct reduce *r);

struct reduce *reduce_make(struct control *c, struct node *n, uint64_t request,
			   const struct message_reduce *in);
void reduce_begin(struct control *c, struct reduce *r, const struct message_reduce *m);
/* Nothing is known of it yet. */
void reduce_source_begin(struct reduce *r, uint32_t i, struct object_id id);
void reduce_end_calls(struct control *c, struct reduce *r);
/* Answers the REDUCE: the caller is to coordinate it. */
void reduce_delegated_reply(struct control *c, struct reduce *r);
/* Keeps the target's id for that generation alone, where its part of the directory is ours. */
void reduce_reserve(struct control *c, const struct reduce *r, uint64_t generation);

/* delegate.c */
/* Lends it to the caller if that is worth it. Returns whether it is. */
bool reduce_delegate(struct control *c, struct reduce *r);
/* Of what was lent by an earlier keeper, and what nobody here has all of: 0, this one may agree;
 * -EAGAIN, not yet; -ESTALE, it is lost with its holder. */
int32_t reduce_delegate_settled(struct control *c, const struct object_id *target,
				const struct node *requester, const struct node *holder);
void reduce_delegated(struct control *c, struct reduce *r, uint64_t until_ns);
/* REDUCED of one that is lent. Returns whether that was the answer. */
bool reduce_delegated_ask(struct control *c, struct reduce *r, const struct node *n,
			  const struct message *m);
/* Somebody has all of the target of one that is lent. Returns whether that must come again. */
bool reduce_delegated_have(struct control *c, struct reduce *r, const struct message_have *have);
/* Whether the caller of one that is lent, who asks for it anew, coordinates it no more. */
bool reduce_delegated_given_up(const struct reduce *r, const struct message *m);
void reduce_delegated_end(struct control *c, struct reduce *r);
/* A node is dead, or has begun anew: what was lent to it. */
void reduce_caller_gone(struct control *c, const struct node *n, bool dead);
/* Somebody has all of it but its last chunk. */
void reduce_delegate_done(struct control *c, const struct reduce *r);
/* What the directory's node says to PROPOSE; it has failed. It may be gone, or is gone, afterwards.
 */
void reduce_delegate_answered(struct control *c, struct reduce *r, int32_t status);
void reduce_delegate_failed(struct control *c, struct reduce *r, int32_t status, const char *text);
void reduce_delegate_owns(struct control *c, struct reduce *r);
/* Its root's node has said that it builds it; again: the directory's node should know. */
void reduce_delegate_found(struct control *c, const struct reduce *r, bool retry);
/* Whether it is known here where the target is made. */
bool reduce_delegate_look(struct control *c, const struct object_id *target);

/* watchdog.c */
/* Looks now and then whether those live that it depends on. */
void reduce_watch(struct control *c, struct reduce *r);

/* contributions.c */
/* All of them for the first time. */
void reduce_locate_all(struct control *c, struct reduce *r);
void reduce_locate(struct control *c, struct reduce_source *s);
/* The others that a LOCATE names, as it is about to leave. */
void reduce_fill_locate(struct control *c, struct call *call);
/* What its policy looks at, which decides when it is planned, and whether a reserve replaces one
 * that is silent. */
void reduce_view(struct control *c, const struct reduce *r, struct policy_view *v);
/* Asks the policy again of one that waits for its deadline, and does what it says; it may have
 * ended afterwards. */
void reduce_turn(struct control *c, struct reduce *r);
/* It is not asked for any more. */
void reduce_unlocate(struct control *c, struct reduce_source *s);
/* The directory stops to look for what that LOCATE has asked for, if it does. */
void reduce_forget(struct control *c, const struct object_id *id, uint64_t request);
/* Whether messages may reach the node. */
bool reduce_reachable(struct control *c, uint32_t node);

/* links.c */
/* Up to how many bytes it pays to add up the sources here, where so many values come in. */
uint32_t reduce_value_max(const struct control *c, const struct reduce *r, uint32_t values);
/* What a planner is to know of the links: of one that stands for all; of a node's. */
struct topology_link reduce_links_all(const struct control *c);
struct topology_link reduce_links_of(const struct control *c, uint32_t node);

/* It has taken so long until somebody had all of it: so each has sent or taken an object in that
 * time. One that is known to be slow and only sends shows in no other way that it is not any more.
 */
void reduce_links_show(struct control *c, const struct reduce *r);

/* binding.c */
/* All sources have answered once: chooses the graph, and fills it. */
void reduce_plan(struct control *c, struct reduce *r);
/* Seats sources, and tells the nodes. */
void reduce_fill(struct control *c, struct reduce *r);
/* Begins a vertex whose slot has all its sources and which is not begun. */
void reduce_resume(struct control *c, struct reduce *r, uint32_t v);

/* vertices.c */
/* Tells the nodes of those that are dirty. */
void reduce_tell_all(struct control *c, struct reduce *r);
/* All objects that are being built are named again: their nodes see that we are there. */
void reduce_beat(struct control *c, struct reduce *r);
/* Whether its slot has all its sources. */
bool reduce_complete(const struct reduce_vertex *p);

/* receivers.c */
/* A GET for a target in stripes: the node is told what to put together. Returns whether it is one.
 */
bool reduce_receivers_get(struct control *c, struct node *n, const struct message *m);
void reduce_receivers_tell(struct control *c, struct reduce *r);
/* The target is made in stripes: who waits for it already is taken over from the directory. */
void reduce_receivers_begin(struct control *c, struct reduce *r);
/* The set is chosen: those who put it together may let its last chunk go. */
void reduce_receivers_finish(struct control *c, struct reduce *r);
/* The stripes have changed: those who have some begin again. */
void reduce_receivers_restart(struct control *c, struct reduce *r);
/* Whether one that puts the target together will hear how it ends. */
bool reduce_receivers_knows(struct reduce *r, const struct node *n,
			    const struct message_combined *m);
/* COMBINED from one that puts the target together. */
void reduce_receivers_combined(struct control *c, struct reduce *r, struct node *n,
			       const struct message_combined *m);
/* Stripes, or somebody's copy, are complete, or lost: what follows. */
void reduce_receivers_check(struct control *c, struct reduce *r);
void reduce_receivers_node_down(struct control *c, struct reduce *r, uint32_t node);
void reduce_receivers_free(struct control *c, struct reduce *r);

/* relays.c */
/* The parts of a COMBINE to one that puts the target together. */
void reduce_feed_fill_message(struct control *c, struct call *call);
/* It puts the target together from now on, or no longer: others are to be told. */
void reduce_feed_changed(struct reduce *r, struct reduce_receiver *g);
/* A node does not give a getter what it has: when the set is chosen others do. */
void reduce_feed_avoid(struct reduce_receiver *g, uint32_t node);
/* The one of the getters that feeds it falls silent, or cannot be had. */
void reduce_feed_leave(struct control *c, struct reduce_receiver *g, uint32_t node, bool silent);
/* Who has left one that answers again goes back to it. */
void reduce_feed_return(struct control *c, struct reduce *r);
/* Chooses who gives it what roots do not. Returns whether that is another one than before. */
bool reduce_feed_choose(struct control *c, struct reduce *r, struct reduce_receiver *g);

/* repair.c */
/* Reserves that nobody reaches are looked for; others may be reachable again. */
void reduce_look_retry(struct control *c, struct reduce *r);
void reduce_lost(struct control *c, struct reduce *r, uint32_t v, const struct message_combined *m);
/* A root's node does not answer. */
void reduce_silent(struct control *c, struct reduce *r, uint32_t v);

#endif
