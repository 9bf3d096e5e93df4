/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link measurements: one figure that stands for all links, and one per node. Fetches, participants
 * and calls add measurements when they end; the planners of broadcasts and reduces read them. It
 * must not know objects or connections.
 */
#ifndef SARISSA_CONTROL_CORE_CLUSTER_LINKSTATS_H
#define SARISSA_CONTROL_CORE_CLUSTER_LINKSTATS_H

#include <stdint.h>
#include "core/base/arena.h"
#include "core/planner/fanout.h"

struct control_config;

struct link_node {
	struct fanout_link link; /* of the node; its rate only if that is low */
	uint64_t shown;		 /* highest bytes per second, received or sent; fades */
	uint64_t low;		 /* slow transfers since the last fast one */
	uint64_t starts;	 /* measured starts; both counts saturate at LINK_SURE */
};

struct linkstats {
	struct fanout_link all; /* the common figure: the best of all */
	struct link_node *nodes;
	uint32_t nodes_count;
	uint32_t low;	 /* nodes whose own link is believed to be slow */
	uint32_t doubts; /* explained slow transfers since the last fast one */
};

void linkstats_carve(struct linkstats *s, struct arena *a, const struct control_config *config);
void linkstats_init(struct linkstats *s, uint32_t nodes);

/* A measured start, or hop, to that node: updates the common figure and the node's. */
void linkstats_saw_start(struct linkstats *s, uint32_t node, uint64_t ns);
void linkstats_saw_hop(struct linkstats *s, uint32_t node, uint64_t ns); /* known: not 0 */
/* The rate of a transfer of so many bytes between two nodes, which only the links limited; other
 * MESSAGE_NODE_NONE: there may have been other limits, or several senders. */
void linkstats_saw_rate(struct linkstats *s, uint32_t node, uint32_t other, uint64_t bytes_per_s,
			uint64_t bytes);
/* A lower bound of the node's rate. */
void linkstats_saw_least(struct linkstats *s, uint32_t node, uint64_t bytes_per_s);
/* The node has restarted: it may be another machine. */
void linkstats_forget(struct linkstats *s, uint32_t node);
/* The link to plan with for that node: the common figure, or its own where that is clearly worse.
 */
struct fanout_link linkstats_of(const struct linkstats *s, uint32_t node);

#endif
