/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa plan`: which plan an operation would get over a network, what each candidate is
 * predicted to take, and why it lost. Runs the planners of the control process without a cluster.
 */
#ifndef SARISSA_CONTROL_TOPOLOGY_PLAN_H
#define SARISSA_CONTROL_TOPOLOGY_PLAN_H

#include "core/planner/network.h"
#include "internal/plan_options.h"

enum plan_op { PLAN_ALLREDUCE, PLAN_REDUCE }; /* as the choices of --op */

struct plan_asked {
	const struct plan_options *options;
	uint64_t size; /* bytes */
	uint32_t chunk_bytes;
	const struct network *network;
	const uint32_t *node; /* their numbers, network->places of them */
};

/* Prints to standard output. Exit status: 0, or 1 with one line on standard error. */
int plan_run(const struct plan_asked *a);

#endif
