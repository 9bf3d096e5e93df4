/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plans of allreduces whose every segment goes along a tree given by one function: from a slot, the
 * next slot on the way to the segment's root. The edges of the reduce follow it upwards. Readers
 * get the segment along the same tree downwards, or, where the tree is a ring, on around it: then
 * each member sends to one other only, and nothing but acknowledgements comes back. The planners
 * hips, mesh, server, halving and circulant are such functions; dary and chains have
 * shapes of their own.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_ROUTE_H
#define SARISSA_CONTROL_CORE_PLANNER_ROUTE_H

#include "planner.h"

/* The most segments that a graph of that request may have. */
uint32_t route_segments(const struct planner_request *q);
/* NULL, or why an allreduce in so many segments cannot be a graph: all contributions must be there,
 * each slot one node's, `most` at most, and there must be enough chunks. */
const char *route_unfit(const struct planner_request *q, uint32_t segments, uint32_t most);
/* The choice of a planner by routes: so many segments, readers fed along the trees. */
void route_shape(const struct planner_request *q, uint32_t segments, uint64_t estimate_ns,
		 struct planner_choice *c);
/* From a slot other than a segment's root, the slot that passes the segment on to it. */
typedef uint32_t route_feeder(const struct planner_request *q, uint32_t slots, uint32_t segments,
			      uint32_t segment, uint32_t slot);
/* Adds the edges and the feeders. Each slot must reach each segment's root. feeder NULL: readers
 * are fed along the same tree. */
void route_fill(const struct planner_request *q, route_next *next, route_feeder *feeder,
		struct graph *g);

/* Of a network: whether each place has exactly one group; then slot i can be place i. */
bool route_full(const struct planner_request *q);
/* Books each group into the slot of its node's place; all get the target. */
void route_book_places(const struct planner_request *q, struct graph *g);

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
