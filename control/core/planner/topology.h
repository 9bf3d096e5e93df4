/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the links of a reduce's contributors can do, as plain values: the best that they have, and
 * which are worse. The coordinator copies its measurements into them before it asks for a plan;
 * nothing here measures, or knows a clock.
 *
 * Units: nanoseconds, bytes per second. Nothing is kept; the arrays are the caller's.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_TOPOLOGY_H
#define SARISSA_CONTROL_CORE_PLANNER_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

struct topology_link {
	uint64_t latency_ns;  /* one way; 0: not measured */
	uint64_t start_ns;    /* what passes before a stream flows, once */
	uint64_t bytes_per_s; /* in each direction; 0: not measured */
};

/* The contributions that one node has when the reduce is planned. */
struct planner_group {
	uint32_t node, count;
	struct topology_link link;
	uint32_t domain; /* rack or machine that it shares with others; 0: not known */
};

/* Groups in an order of their own: the one with number `first` moves to the front. */
struct topology_groups {
	const struct planner_group *group;
	uint32_t count, first;
};

static inline const struct planner_group *topology_group(struct topology_groups gs, uint32_t i)
{
	return &gs.group[i == 0 ? gs.first : i <= gs.first ? i - 1 : i];
}

/* A position whose link is worse than the others'. */
struct topology_slow {
	uint32_t position;
	struct topology_link link;
};

enum { TOPOLOGY_SLOW_MAX = 16 };

/* Best latency, start and rate that some group has; `all` if contributors are still to come, as
 * they may have what stands for all. */
struct topology_link topology_best(struct topology_groups gs, bool complete,
				   struct topology_link all);
struct network;
/* A node's link in a network that is known: the rate of its fastest level, and no less latency than
 * was measured. Where the network does not say, what was measured. */
struct topology_link topology_known(const struct network *w, struct topology_link measured);
/* The groups that are worse than the best in any respect, in order; of more than TOPOLOGY_SLOW_MAX
 * the worst. Returns how many; a position is an index into the groups as ordered. */
uint32_t topology_slow(struct topology_groups gs, struct topology_link best, uint64_t size_bytes,
		       struct topology_slow slow[TOPOLOGY_SLOW_MAX]);
/* The group whose object takes longest and longer than by the best link, but for those of node
 * `but`; 0 if there is none. */
uint32_t topology_worst(struct topology_groups gs, struct topology_link best, uint64_t size_bytes,
			uint32_t but);
/* The only node whose rate is below the best; NULL: there is none, or more than one. */
const struct planner_group *topology_slowest(struct topology_groups gs, struct topology_link best);

#endif
