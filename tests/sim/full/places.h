/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks of servers for the simulator: bcube:N,K and torus:AxBxC as the planner knows them, and
 * the way of a packet through them, which the model network (network.h) asks for. Apart from both,
 * as planner and model each have a struct of that name.
 */
#ifndef SARISSA_TESTS_SIM_FULL_PLACES_H
#define SARISSA_TESTS_SIM_FULL_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct network;
struct planner;

struct network_hop {
	uint32_t to;	       /* endpoint */
	uint32_t sends, takes; /* rails at both ends */
};

struct places {
	const struct network *network; /* the planner's; node i is at place i */
	uint32_t nodes, rails;
};

/* False: no such shape. One at a time. The latency, one way, is that of a link. */
bool places_parse(const char *shape, uint64_t rate_bps, uint64_t latency_ns, struct places *out);
/* From one place to another: the levels in turn, of a ring the shorter way. The context is the
 * planner's network. */
struct network_hop places_hop(const void *network, uint32_t at, uint32_t to);

/* planner_named. */
const struct planner *places_planner(const char *name);

#endif
