/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planners by routes: allreduces whose every segment goes along a tree given by one function, from
 * a slot the next slot on the way to the segment's root. The edges of the reduce follow it upwards.
 * Readers get the segment along the same tree downwards, or, where the tree is a ring, on around
 * it: then each member sends to one other only, and nothing but acknowledgements comes back. Such a
 * planner is a row of struct planner with `segments`, `estimate` and `next` (flat.c, ring.c,
 * hips.c); choose.c calls the three functions here in place of its own. dary, chains and exchange
 * have shapes of their own.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_ROUTE_H
#define SARISSA_CONTROL_CORE_PLANNER_ROUTE_H

#include "planner.h"

/* The most segments that a graph of that request may have. */
uint32_t route_segments(const struct planner_request *q);
/* NULL, or why the request cannot be such a graph: all contributions must be there, each slot one
 * node's, not too many of them, and there must be enough chunks. */
const char *route_unfit(const struct planner *planner, const struct planner_request *q);
/* The choice: readers are fed along the trees. */
void route_shape(const struct planner_request *q, struct planner_choice *c);
/* Each slot must reach each segment's root. */
void route_build(const struct planner_request *q, const struct planner_choice *c, struct graph *g);

/* Of a network: whether each place has exactly one group; then slot i can be place i. */
bool route_full(const struct planner_request *q);

/* One round in which each node sends an equal part of the size to each other one, over the network
 * if it is known: nodes between relay. */
struct route_round {
	double bytes;	 /* through the busiest port */
	double latency;	 /* of the longest way, in nanoseconds */
	double level_ns; /* a byte on the slowest level */
};
struct route_round route_round(const struct planner_request *q);

/* Until all nodes know what they are to build: the coordinator tells a node of each vertex, and
 * that asks for its streams. */
uint64_t route_setup_ns(const struct planner_request *q, uint64_t vertices);
/* Bytes, and what more they take where connections carry chunks both ways: docs/study/tried.md. */
double route_both_ways(double bytes);
/*
 * The estimate that these planners share: a start, `hops` hops up and as many down in which a chunk
 * is taken from `fan_in` others, and `bytes` through the busiest link.
 */
uint64_t route_ns(struct topology_link link, uint32_t chunk_bytes, uint32_t hops, uint32_t fan_in,
		  double bytes);

#endif
