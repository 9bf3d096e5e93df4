/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa plan`: which plan an operation would get over a network, what each candidate is
 * predicted to take, and why it lost. Runs the planners of the control process without a cluster.
 */
#ifndef SARISSA_CONTROL_TOPOLOGY_PLAN_H
#define SARISSA_CONTROL_TOPOLOGY_PLAN_H

#include "core/planner/network.h"

enum plan_op { PLAN_ALLREDUCE, PLAN_REDUCE };

struct plan_asked {
	enum plan_op op;
	uint64_t size; /* bytes */
	uint32_t chunk_bytes;
	const struct network *network;
	const uint32_t *node; /* their numbers, network->places of them */
	const char *planner;  /* the only candidate, or NULL */
	bool why, json;	      /* every candidate; a JSON object per line */
	bool simulate;	      /* by pieces on ports; planners by routes only, any number of nodes */
	bool dot;	      /* the chosen plan as a graph for graphviz, nothing else */
	const char *svg;      /* file for its drawing, made by graphviz's dot, or NULL */
};

/* Prints to standard output. Exit status: 0, or 1 with one line on standard error. */
int plan_run(const struct plan_asked *a);

#endif
