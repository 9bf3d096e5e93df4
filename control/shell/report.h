/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RUNDIR/control.counters (internal/control_counters.h): written about once a second while the loop
 * runs, and kept when the process ends; RUNDIR/plan.last. Called by host.c. One thread.
 */
#ifndef SARISSA_CONTROL_SHELL_REPORT_H
#define SARISSA_CONTROL_SHELL_REPORT_H

#include "core/control.h"
#include "internal/counters.h"

#define REPORT_TURN_LONG_NS UINT64_C(100000000)

struct report {
	struct counters_file *file; /* NULL: could not be made */
	struct control_block *block;
	struct control_counters shell; /* what the core does not see */
	enum control_creators creators;
	uint64_t closes_held; /* threads that have been closing one thing for long */
	uint64_t turn_ns;     /* the longest of late */
	uint64_t due_ns;
	uint64_t held_up; /* times, whatever it was, the machine or its own work; */
	uint64_t held_up_reported;
	uint64_t ticks_late; /* until the last turn */
	bool was_long;	     /* it was */
	uint64_t tell_due_ns;
	const char *rundir;
	uint64_t plan_generation, plan_ns; /* of the plan in RUNDIR/plan.last */
	uint64_t plan_due_ns;		   /* earliest time of the next one */
};

/* Without the file there are no counters, and all else works; one line says why. */
void report_open(struct report *r, const char *rundir);
/* A turn of the loop has ended: how long it was without the sleep in it, and how often until now
 * the core came late to its timers. Those that a long turn has kept waiting are late in the next.
 */
void report_turn(struct report *r, uint64_t took_ns, uint64_t ticks_late);
/* When it is due. */
void report_write(struct report *r, struct control *core, uint64_t now_ns);
/* RUNDIR/plan.last (internal/plan_file.h), when there is a new plan, at most ten times a second.
 * Returns when it wants to be called again; UINT64_MAX: when something happens. */
uint64_t report_plan(struct report *r, const struct control *core, uint64_t now_ns);

#endif
