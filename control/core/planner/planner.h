/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planners: from what is known when a reduce is planned to its graph. Pure: the same request gives
 * the same graph; no control, no clock, no directory, no memory of its own.
 *
 * The coordinator copies what it knows into a planner_request, calls planner_choose, finds memory
 * for planner_bytes, and calls planner_build. A new planner is a file with one struct planner, a
 * line in the table of choose.c, and a test; verify.c must find nothing wrong with what it builds.
 *
 * Errors: -EINVAL, the request contradicts itself; -E2BIG, more slots than a graph can have;
 * -ENOMEM, less memory than planner_bytes. The request is read only, and only during the call.
 * Units: bytes, nanoseconds, bytes per second.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_PLANNER_H
#define SARISSA_CONTROL_CORE_PLANNER_PLANNER_H

#include "graph.h"
#include "network.h"
#include "topology.h"

/* Limits and thresholds that planners keep to. The thresholds were tuned by the experiments in
 * docs/study/tried.md. */
struct planner;

struct planner_limits {
	struct graph_limits graph;
	uint32_t segments_max;	 /* of an allreduce */
	uint32_t flat_slots_max; /* of segments that do not go along the levels of a network */
	uint32_t vertices_max;	 /* of an allreduce: with many slots there are fewer segments */
	uint32_t segment_chunks; /* the fewest of a segment that is passed on by chunks */
	uint32_t segment_chunks_unseen; /* the same while no rate was measured */
	uint32_t segments_unseen_max;	/* up to so many segments */
	uint32_t exchange_bytes_max;	/* the most that all send each other at once */
	uint32_t grid_slots;		/* from so many on readers pass segments on along a grid */
	uint32_t servers;		/* of planner `server` */
	uint32_t mesh_members;		/* HiPS: up to so many members a level is a mesh */
	uint32_t route_segments_max;	/* of planners by routes */
	const struct planner *only;	/* taken wherever it fits; NULL: the choice is free */
};
extern const struct planner_limits planner_limits_usual;

struct planner_request {
	uint64_t size;
	uint32_t chunk_bytes, needed;	   /* needed: contributions, K */
	const struct planner_group *group; /* in the order of arrival */
	uint32_t groups, present;	   /* present: contributions in the groups */
	uint32_t caller;		   /* node that wants the result, or GRAPH_NODE_NONE */
	bool everyone;			   /* all contributors get the result */
	bool rate_seen;			   /* the rate of `all` was measured */
	struct topology_link all;	   /* stands for links that are not known */
	const struct network *network;	   /* NULL: nothing is known of it */
	const struct planner_limits *limits;
};

/* A planner's decision before it knows its memory. */
struct planner_choice {
	const struct planner *planner;
	struct graph_size size;
	uint32_t degree; /* of a tree */
	uint32_t first;	 /* group that is moved to the front of the order of arrival */
	uint32_t prefer; /* node that the root is meant for, or GRAPH_NODE_NONE */
	uint64_t estimate_ns;
};

struct route_hop {
	uint32_t slot; /* the next one; the root's own: the root */
	uint32_t rail; /* that the hop takes */
};

/* From a slot, the next one on the way to a segment's root. Pure: the same answer for the same
 * arguments. */
typedef struct route_hop route_next(const struct planner *planner, const struct planner_request *q,
				    uint32_t slots, uint32_t segments, uint32_t segment,
				    uint32_t slot);
/* From a slot other than a segment's root, the slot that passes the segment on to it. */
typedef uint32_t route_feeder(const struct planner *planner, const struct planner_request *q,
			      uint32_t slots, uint32_t segments, uint32_t segment, uint32_t slot);

struct planner {
	const char *name;
	/* NULL; or why its graph cannot do what the request asks for, a constant text. No function:
	 * it can do all, or all that planners by routes can. */
	const char *(*unfit)(const struct planner *planner, const struct planner_request *q);
	/* Completes a choice that has its planner and prefer: size, estimate and what build needs.
	 */
	void (*shape)(const struct planner_request *q, struct planner_choice *c);
	/* Adds edges, bookings and feeders to a graph that has been begun and cut. */
	void (*build)(const struct planner_request *q, const struct planner_choice *c,
		      struct graph *g);
	/* Of planners by routes (route.h), and of those that are simulated; else NULL. */
	route_next *next;
	/* Of planners by routes, in place of shape and build: */
	uint32_t (*segments)(const struct planner *planner, const struct planner_request *q);
	uint64_t (*estimate)(const struct planner *planner, const struct planner_request *q,
			     uint32_t segments);
	route_feeder *feeder; /* NULL: readers are fed along the same tree */
	bool places;	      /* slot i is place i of the network */
	uint32_t scheme;      /* of hips.c */
};

extern const struct planner planner_dary;	 /* one tree; the chain and the star are its ends */
extern const struct planner planner_chains;	 /* allreduce: a rotated chain per segment */
extern const struct planner planner_exchange;	 /* allreduce: all send each other values */
extern const struct planner planner_mesh;	 /* allreduce: all to each root, and back */
extern const struct planner planner_server;	 /* allreduce: parameter servers */
extern const struct planner planner_halving;	 /* allreduce: halving and doubling, 2^k slots */
extern const struct planner planner_circulant;	 /* allreduce: halving for any number of slots */
extern const struct planner planner_ring;	 /* allreduce: a flat ring along the links */
extern const struct planner planner_hips;	 /* allreduce: along the levels of the network */
extern const struct planner planner_hips_mesh;	 /* the same, every level a mesh */
extern const struct planner planner_hips_ring;	 /* the same, every level a ring */
extern const struct planner planner_hips_server; /* the same, a server per group */
extern const struct planner *const planner_table[]; /* all of them, then NULL */

/* Reasons that several planners have. */
#define PLANNER_ONE_READER "the result is wanted at one node only"
#define PLANNER_LATE	   "not all contributions are there, one node's in each slot"
#define PLANNER_SLOTS	   "too few or too many contributors"
#define PLANNER_SEGMENTS   "it would take too few or too many segments"
#define PLANNER_SMALL	   "the object has fewer chunks than segments"
#define PLANNER_CROSSED	   "a link leads to another rail at its other end: give the dataplane one port"
#define PLANNER_NETWORK	   "no topology is given, or contributions do not fill its places"

/* The slots of a request: one for each group, and for each contribution still to come. */
static inline uint32_t planner_slots(const struct planner_request *q)
{
	return q->groups + (q->needed - q->present);
}

static inline struct topology_groups planner_groups(const struct planner_request *q,
						    const struct planner_choice *c)
{
	return (struct topology_groups){q->group, q->groups, c ? c->first : 0};
}

/* The segments of an allreduce: one for each slot, as long as these are few. */
uint32_t planner_segments(const struct planner_request *q);
/* The best link that contributors have, or what is assumed of those who are still to come. */
struct topology_link planner_best(const struct planner_request *q);

/* NULL; or why the planner cannot do what the request asks for, a constant text. */
const char *planner_unfit(const struct planner *planner, const struct planner_request *q);
/* The planner of that name; NULL: there is none. */
const struct planner *planner_named(const char *name);
/* Chooses a planner and its shape, or the shape of one that is named. Returns 0 or an error. */
int planner_choose(const struct planner_request *q, struct planner_choice *c);
int planner_shape(const struct planner_request *q, const struct planner *p,
		  struct planner_choice *c);
size_t planner_bytes(const struct planner_choice *c);
/* Builds the chosen graph in so many bytes of memory, aligned to 8. Returns 0 or an error. */
int planner_build(const struct planner_request *q, const struct planner_choice *c, void *memory,
		  size_t bytes, struct graph *g);

/* For planners: books the groups into the slots in order. One of the node that the root is meant
 * for gets `root`, which the others skip then; GRAPH_NONE: no slot is meant for anybody. */
void planner_book(const struct planner_request *q, const struct planner_choice *c, uint32_t root,
		  struct graph *g);

/* ---- distribution.c: how readers of a GATHER pass segments on -------------------------------- */

/* Whether that pays: with few slots the roots feed all. */
bool distribution_grids(const struct planner_request *q, uint32_t segments);
/* Positions in a row of the grid: the next whole root. */
uint32_t distribution_width(uint32_t slots);
/* Which position feeds one that is not the root's, 0. */
uint32_t distribution_feeder(uint32_t width, uint32_t position);
/* Fills the graph's feeders with that grid, turned so that each segment begins at its root. */
void distribution_fill(struct graph *g);
/* The slot that passes a segment on to this one among those of which `there` has a bit; GRAPH_NONE:
 * the segment's root. */
uint32_t distribution_from(const struct graph *g, uint32_t segment, uint32_t slot,
			   const uint64_t *there);

/* ---- width.c: broadcasts, which receivers drive -----------------------------------------------
 */

enum { PLANNER_WIDTH_MAX = 32 }; /* streams of one copy */

/* How many receivers a copy feeds at a time. The link must be measured or assumed: no zeros. */
uint32_t planner_width(struct topology_link link, uint32_t receivers, uint64_t size,
		       uint32_t chunk_bytes);
/* Whether answers with the value are faster than the fastest tree. */
bool planner_inline(struct topology_link link, uint32_t receivers, uint64_t size,
		    uint32_t chunk_bytes);

/* ---- width.c: sums at the coordinator, which need no graph ------------------------------------
 */

struct planner_values {
	struct topology_link all;
	uint64_t own_bytes_per_s; /* of the coordinator's link */
	uint32_t needed, chunk_bytes;
	uint32_t values; /* answers with values from other nodes */
	bool everyone, rate_seen;
	const struct planner_limits *limits;
};
/* Up to how many bytes it pays to add up the contributions at the coordinator. It is asked before
 * sizes are known. */
uint32_t planner_value_max(const struct planner_values *v);

#endif
