/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines in a binary heap of bounded capacity: set, cancel O(log n), next O(1). A timer is
 * embedded in what it belongs to; zeroed it is not set.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_TIMERS_H
#define SARISSA_CONTROL_CORE_BASE_TIMERS_H

#include "arena.h"

struct control;
struct timer;

typedef void timer_fire(struct control *c, struct timer *t);

struct timer {
	uint64_t at_ns;
	timer_fire *fire;
	uint32_t position; /* in the heap, from 1; 0: not set */
};

struct timers {
	struct timer **heap; /* from index 1 */
	uint32_t count, capacity;
};

void timers_carve(struct timers *ts, struct arena *a, uint32_t capacity);

/* Sets or moves a timer. The owner sized the heap for all timers that exist. */
void timers_set(struct timers *ts, struct timer *t, uint64_t at_ns, timer_fire *fire);
void timers_cancel(struct timers *ts, struct timer *t);

/* When the first timer is due; UINT64_MAX when none is set. */
uint64_t timers_next(const struct timers *ts);

/* Fires those that are due at now; a timer is unset when it fires and may be set again. */
void timers_run(struct timers *ts, struct control *c, uint64_t now_ns);

#endif
