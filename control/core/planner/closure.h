/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repair: what must restart when something of a running reduce is lost. The state of the run stands
 * beside the immutable graph; a closure follows the graph until nothing more is concerned. Pure: it
 * sends nothing and cancels nothing. The coordinator marks what is lost, calls closure_run, and
 * then does the effects: it looks for the vacated contributions, in order, gives restarted vertices
 * new generations, and fills the open slots again. It must not run once a commit has begun.
 *
 * The rule. A vertex that restarts takes all its parts again: nothing counts as delivered to it.
 * Of its parts those restart that were lost after they had been delivered, and those whose host is
 * out of reach, which leave their slots. Its own contributions that are out of reach leave theirs,
 * and a slot that loses one restarts in all segments, as all have one set. A vertex that has
 * started and takes from one that restarts does so, too. When a root restarts so does the output.
 * docs/developer/reduce.md, "When something fails", has the reasons.
 *
 * All arrays are the caller's. Indices are those of the graph.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_CLOSURE_H
#define SARISSA_CONTROL_CORE_PLANNER_CLOSURE_H

#include "graph.h"

struct run_slot {
	uint32_t host; /* node that builds its vertices; GRAPH_NODE_NONE: empty */
	uint16_t has;  /* contributions */
};

/* Of a vertex, as bits. */
enum {
	RUN_STARTED = 1,   /* its host has been told to build it */
	RUN_DIRTY = 2,	   /* its host must be told */
	RUN_RESTART = 4,   /* what it has is of no use any more */
	RUN_DELIVERED = 8, /* the vertex that takes it has all of it */
	RUN_GONE = 16,	   /* lost after that */
	RUN_DONE = 32,	   /* complete */
};

struct graph_run {
	struct run_slot *slot;
	uint8_t *vertex; /* RUN_ bits */
};

struct run_contribution {
	uint32_t node; /* that holds it */
	uint32_t slot; /* or GRAPH_NONE: in reserve, or not found */
	bool known;    /* it was found at that node */
	bool absorbed; /* its slot's vertex has all of it; one segment only */
};

struct closure_vacated {
	uint32_t contribution;
	bool avoid; /* its node could not give it: look elsewhere first */
};

struct closure {
	const struct graph *graph;
	struct graph_run *run;
	struct run_contribution *contribution;
	uint32_t contributions;
	const uint64_t *reachable; /* a bit per node number below `nodes` */
	uint32_t nodes;
	struct closure_vacated *vacated; /* room for all contributions: each leaves once */
	uint32_t vacated_count;		 /* 0 before the first call */
};

/* A contribution no longer counts; it may be found again. Its slot restarts, if it had one. */
void closure_vacate(struct closure *k, uint32_t contribution, bool avoid);
/* The contributions of a slot that are on a node. */
void closure_vacate_node(struct closure *k, uint32_t slot, uint32_t node);
/* All that is on a node is lost: contributions that are not delivered, vertices that have started.
 * Returns whether something has to restart. */
bool closure_node_lost(struct closure *k, uint32_t node);
/*
 * Follows the graph from the vertices marked RUN_RESTART and moves the hosts of slots whose host
 * has none of their contributions left. Afterwards the vertices that restart have that bit, and
 * RUN_DIRTY if they had it. Returns whether one of them is a root.
 */
bool closure_run(struct closure *k);

#endif
