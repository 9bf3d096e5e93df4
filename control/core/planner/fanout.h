/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a link can do, from what was measured: the figures that planners reckon with (cost.h has the
 * model). Pure; a shard of the directory owns one struct fanout_link that stands for all links, and
 * one for each node.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_FANOUT_H
#define SARISSA_CONTROL_CORE_PLANNER_FANOUT_H

#include <stdbool.h>
#include <stdint.h>
#include "topology.h"

enum { FANOUT_RATE_BYTES = 4 << 10 }; /* fewer show nothing of a link */

struct fanout_link {
	uint64_t start_ns;    /* a: a request to another control and its answer */
	uint64_t hop_ns;      /* h: half a round trip between two workers, at most half of a */
	uint64_t bytes_per_s; /* B: what one receiver takes from one sender */
	bool start_seen, hop_seen, rate_seen; /* else still as assumed */
};

/* The rate before anything was measured: a data centre's 10 Gbit/s. */
struct fanout_link fanout_prior(void);

/* One more measurement each. The first takes the place of what was assumed. Of times the least
 * counts, and is forgotten slowly; of rates the most. */
void fanout_saw_start(struct fanout_link *l, uint64_t ns);
void fanout_saw_hop(struct fanout_link *l, uint64_t ns);
void fanout_saw_rate(struct fanout_link *l, uint64_t bytes_per_s);

/* The rate at which so many bytes came that took so long, a request before them included; 0: they
 * are too few to tell. */
uint64_t fanout_rate(const struct fanout_link *l, uint64_t bytes, uint64_t taken_ns);

#endif
