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
	struct fanout_link link; /* its own; a rate only if it is low */
	uint64_t shown;		 /* bytes per second that it has taken or given */
	uint64_t low;		 /* times that it was slow, and since then no better */
	uint64_t starts;	 /* measured; both no further than they are counted */
};

struct linkstats {
	struct fanout_link all; /* that stands for all: the best */
	struct link_node *nodes;
	uint32_t nodes_count;
	uint32_t low;	 /* nodes whose own link is believed to be slow */
	uint32_t doubts; /* slow transfers that a slow node explained, since one was not slow */
};

void linkstats_carve(struct linkstats *s, struct arena *a, const struct control_config *config);
void linkstats_init(struct linkstats *s, uint32_t nodes);

/* One more measurement of the way to that node: of what stands for all, and of its own. */
void linkstats_saw_start(struct linkstats *s, uint32_t node, uint64_t ns);
void linkstats_saw_hop(struct linkstats *s, uint32_t node, uint64_t ns); /* known: not 0 */
/* Of so many bytes that it has had from the other one, or given to it, and that waited for nothing
 * else; other MESSAGE_NODE_NONE: they may have waited, or come from several. */
void linkstats_saw_rate(struct linkstats *s, uint32_t node, uint32_t other, uint64_t bytes_per_s,
			uint64_t bytes);
/* The same, but it may have been any part of what it can. */
void linkstats_saw_least(struct linkstats *s, uint32_t node, uint64_t bytes_per_s);
/* The node has restarted: it may be another machine. */
void linkstats_forget(struct linkstats *s, uint32_t node);
/* What to reckon with where that node takes part: what stands for all, or its own where that is
 * worse by more than chance makes it. */
struct fanout_link linkstats_of(const struct linkstats *s, uint32_t node);

#endif
