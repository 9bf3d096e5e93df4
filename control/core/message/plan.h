/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last plan that a node has coordinated: what its planner predicted, and what was measured
 * there. The coordinator fills it in, NODE carries it to nodes whose clients ask, and the shell
 * writes it to a file. A level is one of the network, the last one what crosses several; without a
 * network there is one. Times are from the plan on, in nanoseconds.
 */
#ifndef SARISSA_CONTROL_CORE_MESSAGE_PLAN_H
#define SARISSA_CONTROL_CORE_MESSAGE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum { CONTROL_PLAN_LEVELS_MAX = 9, CONTROL_PLAN_NAME_BYTES = 32 };

struct control_plan_level {
	uint64_t bytes;	       /* that the busiest node sends on it, upwards and downwards */
	uint64_t predicted_ns; /* these over its link */
	uint64_t measured_ns;  /* until the last sum over it was complete */
};

struct control_plan {
	uint64_t number;     /* of plans of its node so far; 0: there is none */
	uint64_t generation; /* of the target: a later plan has a later one */
	uint32_t node;	     /* that coordinated it */
	char planner[CONTROL_PLAN_NAME_BYTES];
	uint64_t size, chunk_bytes, predicted_ns;
	uint64_t measured_ns; /* 0: some contributions came later, so there is no measure */
	uint32_t nodes, levels;
	bool everyone, repaired; /* it is an allreduce; something began again */
	bool network;		 /* it was known */
	struct control_plan_level level[CONTROL_PLAN_LEVELS_MAX];
};

#endif
