/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RUNDIR/plan.last: what the planner of the last plan that this node knows of predicted, and what
 * was measured. Control writes a new file under the old name; `sarissa plan --last` reads it.
 * Both are of one version.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_PLAN_FILE_H
#define SARISSA_INCLUDE_INTERNAL_PLAN_FILE_H

#include <stdint.h>

#define PLAN_FILE_MAGIC UINT32_C(0x32504c53) /* "SLP2" */

enum { PLAN_FILE_LEVELS_MAX = 9, PLAN_FILE_NAME_BYTES = 32 };

struct plan_file {
	uint32_t magic;
	uint32_t node;		    /* that coordinated it */
	uint32_t nodes, levels;	    /* levels: used of level[]; the last is for several at once */
	uint8_t everyone, repaired; /* an allreduce; something began again */
	uint8_t network;	    /* a topology was given */
	uint8_t reserved[5];	    /* zero */
	uint64_t size;		    /* bytes of one object */
	uint64_t time_ns;	    /* CLOCK_REALTIME of the last change */
	uint64_t predicted_ns;	    /* of all */
	uint64_t measured_ns;	    /* 0: some contributions came after the plan */
	struct {
		uint64_t bytes;	       /* that the busiest node sends on it */
		uint64_t predicted_ns; /* these over its link */
		uint64_t measured_ns;  /* until the last sum over it was complete */
	} level[PLAN_FILE_LEVELS_MAX];
	char planner[PLAN_FILE_NAME_BYTES]; /* zero-terminated */
};

_Static_assert(sizeof(struct plan_file) == 304, "no holes");

#endif
