/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time that a plan by routes takes over a network, by simulation of every piece on every port:
 * the check of the planners' estimates, and the source of the tables in docs/user/topology.md.
 * Works for hundreds of nodes, as it needs no graph, only the planner's next hop.
 */
#ifndef SARISSA_CONTROL_TOPOLOGY_SIMULATE_H
#define SARISSA_CONTROL_TOPOLOGY_SIMULATE_H

#include "core/planner/planner.h"

struct simulated {
	uint64_t ns;	   /* until the last node has the last piece */
	uint32_t starts;   /* hops of the longest way up and down: start-ups one after the other */
	uint32_t fan_in;   /* the most that one node takes from at once for one segment */
	uint64_t messages; /* pieces that crossed a link */
};

/*
 * Simulates an allreduce by a planner that has `next`. All contributions are there at time 0, all
 * levels have rates and latencies. Returns 0, or -ENOMEM.
 *
 * The model: a port sends one piece at a time and takes one at a time, at the rate of its level; a
 * piece arrives a latency after it was sent. Nodes that share no link reach each other through
 * nodes between them, a level after the other (as BCube and tori route), where ports of one rail
 * belong to a tree of switches directly. Adding takes no time.
 */
int simulate_allreduce(const struct planner_request *q, const struct planner *planner,
		       const struct planner_choice *choice, struct simulated *out);

#endif
