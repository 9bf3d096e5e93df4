/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sums of sums.c are to be like. */
#ifndef SARISSA_TESTS_SIM_SUMS_SUMS_H
#define SARISSA_TESTS_SIM_SUMS_SUMS_H

#include "full/full.h"

enum { SUMS_NODES = FULL_SOURCES, SUMS_LINKS = 8 * SUMS_NODES, SUMS_ROUNDS = 32 };
enum { SUMS_RESERVE = FULL_SESSIONS - 1 }; /* of a network: sources on node 0 beside its own */

struct sums_options {
	uint32_t nodes, kill, num, stalls;
	uint64_t size, rate_bps, hop_ns, turn_ns, latency_ns, stagger_ns, trace_ns, seed;
	uint64_t late_ns, stall_ns;
	uint64_t kill_at_ns, order; /* order: 0 rising, 1 falling, else the seed of a shuffle */
	uint16_t mtu;
	uint32_t rounds;
	const char *network, *planner; /* or NULL */
	struct places places;	       /* of the network */
	bool all;
	double ratio_max;
};

/* False: it has said what is wrong. --help ends the program. */
bool sums_options_parse(struct sums_options *o, int argc, char **argv);

#endif
