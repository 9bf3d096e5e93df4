/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduces whose targets belong to this node's part of the directory. The coordinator finds the
 * sources, puts them into a tree as they arrive, tells the nodes what to build from what
 * (combine.h), and mends the tree when something is lost. It never touches payload, but for small
 * objects, whose values come with the answers of the directory and are added up here.
 *
 *   LOCATING  it is asked where the sources are         -> RUNNING (all have answered once), ENDED
 *   RUNNING   positions are filled, objects are built   -> ENDED
 *   ENDED     kept for those who ask how it ended, until its place is needed
 *
 * The tree (reduce_tree.h) has n positions, each for one source, or for several that were on one
 * node when the reduce began. A position with several sources, with children, and the root have an
 * object of their own, hidden but for the root's, which is the target. A leaf is its source.
 * Arrivals take the positions in order; but what is on the caller's node goes to the root if it
 * can. Sources beyond num wait as a reserve.
 *
 * When something is lost that its parent has not taken completely, the position is vacated as far
 * as it is lost, and filled again from the reserve or with what turns up; it and all its ancestors
 * get objects of new generations. The others keep what they have built and send it again.
 *
 * A coordinator that dies takes this with it: the caller's node (session_reduce.c) repeats the
 * request at the next one. Bounds: reduces_max, reduce_sources_max.
 */
#ifndef SARISSA_CONTROL_CORE_REDUCE_H
#define SARISSA_CONTROL_CORE_REDUCE_H

#include "allocator.h"
#include "idmap.h"
#include "list.h"
#include "message.h"
#include "pool.h"
#include "timers.h"

struct call;
struct control;
struct node;
struct reduce;

#define REDUCE_NONE UINT32_MAX

enum {
	REDUCE_GROUP_MAX = 120,	 /* sources of one position */
	REDUCE_DEGREE_MAX = 120, /* with them at most MESSAGE_PARTS_MAX parts */
};

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
	uint32_t node; /* that holds it */
	uint32_t position;
	uint32_t arrival; /* the order of becoming KNOWN */
	uint32_t failed;  /* a node that could not give it */
	uint8_t state;
	bool absorbed; /* its position's object has all of it */
};

struct reduce_position {
	struct reduce *reduce;
	struct call *call;   /* COMBINE */
	struct object_id id; /* of its object */
	uint64_t generation;
	uint32_t host;
	uint32_t wants, has; /* sources */
	uint32_t tries;	     /* times that it was lost without having moved */
	bool combines;	     /* it has an object of its own */
	bool started;	     /* which is being built */
	bool dirty;	     /* its node must be told */
	bool anew;	     /* what it has is of no use any more */
	bool delivered;	     /* its parent's object has all of it */
};

enum reduce_state {
	REDUCE_LOCATING,
	REDUCE_RUNNING,
	REDUCE_ENDED,
};

struct reduce {
	struct idmap_node by_id; /* the target */
	struct list active;	 /* on reduces.active, or ended ones on reduces.ended */
	struct list askers;
	struct timer deadline, beat;
	uint64_t number;
	uint64_t request; /* of the REDUCE that began it */
	uint32_t caller;  /* node */
	uint32_t op, dtype, num, flags;
	uint64_t size; /* 0 and no source known: not known yet */
	uint32_t chunk_bytes;
	uint32_t count; /* sources */
	uint32_t range; /* of the arrays */
	uint32_t value; /* range: the sum so far of a small one */
	uint32_t unanswered, arrivals;
	uint32_t summed; /* sources in it */
	uint32_t positions, degree, root;
	uint64_t generation; /* of the result */
	struct reduce_source *source;
	struct reduce_position *position;
	int32_t status;
	uint8_t state;
	bool answered; /* the REDUCE */
	bool small;    /* so far all values came along */
	bool sized;
	char name[OBJECT_NAME_MAX + 1];
	char text[MESSAGE_TEXT_MAX + 1];
};

struct reduce_asker { /* a REDUCED that waits */
	struct list link;
	uint64_t request;
	uint32_t node;
};

struct reduce_group { /* sources that are on one node when the tree is made */
	uint32_t node, count;
};

struct reduces {
	struct pool pool, askers;
	struct idmap by_id;
	struct list active, ended; /* oldest first */
	struct allocator space;
	uint8_t *memory;
	uint64_t number;
	struct message_part parts[MESSAGE_PARTS_MAX]; /* for one message at a time */
	struct object_id ids[MESSAGE_SOURCES_MAX];
	struct reduce_group group[MESSAGE_SOURCES_MAX];
};

struct control_config;
void reduces_carve(struct reduces *rs, struct arena *a, const struct control_config *config);
void reduces_init(struct control *c);

/* REDUCE, REDUCED, COMBINED. */
void reduce_request(struct control *c, struct node *n, const struct message *m);
void reduce_ask(struct control *c, struct node *n, const struct message *m);
void reduce_combined(struct control *c, struct node *n, const struct message *m);

/* Why a request cannot be, or NULL; nothing but its own fields is looked at. */
const char *reduce_wrong(const struct message_reduce *m);

/* The parts of a COMBINE that is about to leave, as they are now. */
void reduce_fill_message(struct control *c, struct call *call);

/* No message reaches the node any more. */
void reduce_node_down(struct control *c, struct node *n);
/* The target was deleted. */
void reduce_deleted(struct control *c, const struct object_id *target);
/* The members have changed: those that are another's now begin again there. */
void reduce_keep(struct control *c);

/* For the files of the coordinator. */
void reduce_end(struct control *c, struct reduce *r, int32_t status, const char *text);
/* Answers the REDUCE: it goes on. */
void reduce_accept(struct control *c, struct reduce *r);

/* reduce_source.c */
void reduce_locate(struct control *c, struct reduce_source *s);
/* Whether messages may reach the node. */
bool reduce_reachable(struct control *c, uint32_t node);

/* reduce_position.c */
/* All sources have answered once: makes the tree. */
void reduce_plan(struct control *c, struct reduce *r);
/* Puts sources into positions, and tells the nodes. */
void reduce_fill(struct control *c, struct reduce *r);
/* All objects that are being built are named again: their nodes see that we are there. */
void reduce_beat(struct control *c, struct reduce *r);
/* Begins a position that has all its sources and is not begun. */
void reduce_resume(struct control *c, struct reduce *r, uint32_t position);
uint32_t reduce_parent(const struct reduce *r, uint32_t i);
uint32_t reduce_children(const struct reduce *r, uint32_t i, uint32_t *out);

/* reduce_repair.c */
void reduce_lost(struct control *c, struct reduce *r, uint32_t position,
		 const struct message_combined *m);

#endif
