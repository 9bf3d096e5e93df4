/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The swarm: random worlds with random work under random faults, all drawn from one seed. A small
 * scripted planner plays control: it builds broadcast trees and chains over the nodes, repairs
 * them when edges fail or nodes restart, and knows what must be true in the end.
 *
 * Each run has two phases. While faults strike, only safety is judged: no wrong byte, no event
 * that does not fit, the engine's books balance. Then everything is healed, and all that can be
 * completed must complete within a bound of virtual time.
 */
#ifndef SARISSA_TESTS_SIM_SWARM_SWARM_H
#define SARISSA_TESTS_SIM_SWARM_SWARM_H

#include "model/world.h"

enum { SWARM_NODES_MAX = 64, SWARM_JOBS_MAX = 24 };

/* How likely each kind of trouble is; a scenario is one such row. */
struct swarm_scenario {
	const char *name, *help;
	uint32_t loss_max_ppm, duplicate_max_ppm, reorder_max_ppm, corrupt_max_ppm;
	uint32_t restart_ppm, cut_ppm, freeze_ppm, close_ppm, cancel_ppm; /* per node and ms */
	uint32_t job_ppm, message_ppm;					  /* per ms */
	uint32_t narrow_ppm; /* per node and ms: its link carries packets of another size */
	bool incast;	     /* all jobs end at node 0 */
	/* whole nodes with clients instead of jobs; per node and second: */
	bool full;
	bool reduces;	/* they reduce */
	bool wide;	/* of one to three workers, with objects that all of them carry */
	bool tight;	/* of small tables, some of which are often full */
	bool exchanged; /* small objects, one from each of several nodes, for all of these */
	bool deadlines; /* their reduces have deadlines */
	uint32_t kill_control_ppm, kill_dataplane_ppm, kill_node_ppm, lose_store_ppm, leave_ppm;
	uint32_t crowd_ppm; /* per second: all get one object, at once or one after the other */
	uint32_t split_ppm; /* per second: two of five nodes are apart from the others */
};

/* One object on its way to some of the nodes. */
struct swarm_job {
	uint64_t seed, size;
	uint32_t chunk_bytes, origin;
	bool cancelled;
	uint64_t wanted;		       /* bit per node */
	uint32_t buffer[SWARM_NODES_MAX];      /* in the node's ledger, or NODE_NONE */
	uint32_t parent[SWARM_NODES_MAX];      /* node, or NODE_NONE */
	uint32_t in_edge[SWARM_NODES_MAX];     /* in the node's ledger */
	uint32_t out_edge[SWARM_NODES_MAX];    /* in the parent's ledger */
	uint32_t parent_life[SWARM_NODES_MAX]; /* when the edge was made */
};

struct swarm {
	struct world w;
	struct prng draw; /* the world and its work */
	const struct swarm_scenario *scenario;
	struct network_faults faults;
	struct swarm_job jobs[SWARM_JOBS_MAX];
	uint32_t jobs_count;
	bool chain; /* parents: the newest holder, else any */
	bool healing;
	uint64_t end_ns;
	uint64_t dead_until_ns[SWARM_NODES_MAX], cut_until_ns[SWARM_NODES_MAX];
	uint64_t asked_ns[SWARM_NODES_MAX][SWARM_NODES_MAX]; /* last PEER_OPEN */
	uint32_t restarts, cuts, freezes, messages, completed;
};

/* All nodes of a run have the same clock. */
extern bool swarm_one_clock;
/* Processes that are killed alone may die at crash points, not only between steps. */
extern bool swarm_inside_writes;
extern const struct swarm_scenario swarm_scenarios[];

/* One whole run. Returns true when every invariant held; else says so on stderr. */
bool swarm_run(const struct swarm_scenario *scenario, uint64_t seed, uint32_t nodes, bool verbose);

/* The same with whole nodes and clients (swarm_full.c). */
bool swarm_full_run(const struct swarm_scenario *scenario, uint64_t seed, uint32_t nodes,
		    bool verbose);

/* ---- between swarm_run.c and swarm_plan.c -------------------------------------------------- */

/* A new object at some node, wanted by some others. */
void swarm_job_add(struct swarm *s);
/* Gives the job up: every buffer of it is dropped. */
void swarm_job_cancel(struct swarm *s, struct swarm_job *j);
/* Looks at every job and node, and makes or repairs edges. */
void swarm_plan(struct swarm *s);
/* Is every wanted copy complete? Cancelled jobs are. */
bool swarm_jobs_done(const struct swarm *s);
/* Says on stderr which copies are incomplete, and why. */
void swarm_jobs_print(struct swarm *s);
/* Cancels jobs that no living node could complete any more. */
void swarm_jobs_give_up(struct swarm *s);

#endif
