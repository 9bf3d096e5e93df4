/* SPDX-License-Identifier: BSD-3-Clause */
/* One scenario over modelled nodes (scale.h), and what is measured in it. */
#ifndef SARISSA_TESTS_SIM_SCALE_SCALE_RUN_H
#define SARISSA_TESTS_SIM_SCALE_SCALE_RUN_H

#include "scale.h"

struct scale_cost { /* of handling one message, on this machine */
	uint64_t count, mean_ns, median_ns, p99_ns;
};

struct scale_result {
	uint32_t gets, failed, unfinished, depth;
	uint64_t ns, bound_ns;	     /* from the first get to the last end */
	uint64_t median_ns, most_ns; /* of a get */
	double source_copies, most_copies;
	double messages_per_get, bytes_per_get;
	uint64_t lost; /* messages that found no slot */
	uint64_t hellos_refused;
	uint64_t shard_messages, shard_cpu_ns;
	struct scale_cost get, have, drop, codec;
	double gossip_messages, gossip_bytes, gossip_cpu_ns; /* per node and second, at rest */
	uint64_t memory_bytes, memory_shard_bytes;
	uint64_t failovers, hedges;
};

/* Runs it: nodes meet, node 0 puts, all others get (or only receivers of them). */
void scale_run(const struct scale_options *o, struct scale_result *out);
/* The same, from cold, with the real dataplane and every packet (scale_full.c): times only. */
void scale_full(const struct scale_options *o, struct scale_result *out);

#endif
