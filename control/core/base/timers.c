/* SPDX-License-Identifier: BSD-3-Clause */
#include "timers.h"

void timers_carve(struct timers *ts, struct arena *a, uint32_t capacity)
{
	ts->heap = arena_carve(a, sizeof(*ts->heap) * ((size_t)capacity + 1));
	ts->count = 0;
	ts->capacity = capacity;
}

static void timers_place(struct timers *ts, struct timer *t, uint32_t position)
{
	assert(position >= 1 && position <= ts->count);
	ts->heap[position] = t;
	t->position = position;
}

static void timers_rise(struct timers *ts, struct timer *t, uint32_t position)
{
	while (position > 1 && ts->heap[position / 2]->at_ns > t->at_ns) {
		timers_place(ts, ts->heap[position / 2], position);
		position /= 2;
	}
	timers_place(ts, t, position);
}

static void timers_sink(struct timers *ts, struct timer *t, uint32_t position)
{
	for (;;) {
		uint32_t child = position * 2;

		if (child > ts->count)
			break;
		if (child < ts->count && ts->heap[child + 1]->at_ns < ts->heap[child]->at_ns)
			child++;
		if (ts->heap[child]->at_ns >= t->at_ns)
			break;
		timers_place(ts, ts->heap[child], position);
		position = child;
	}
	timers_place(ts, t, position);
}

void timers_cancel(struct timers *ts, struct timer *t)
{
	uint32_t position = t->position;
	struct timer *last;

	if (position == 0)
		return;
	assert(position <= ts->count && ts->heap[position] == t);
	t->position = 0;
	last = ts->heap[ts->count--];
	if (last == t)
		return;
	timers_rise(ts, last, position);
	timers_sink(ts, last, last->position);
}

void timers_set(struct timers *ts, struct timer *t, uint64_t at_ns, timer_fire *fire)
{
	assert(fire);
	timers_cancel(ts, t);
	assert(ts->count < ts->capacity);
	t->at_ns = at_ns;
	t->fire = fire;
	ts->count++;
	timers_rise(ts, t, ts->count);
}

uint64_t timers_next(const struct timers *ts)
{
	return ts->count ? ts->heap[1]->at_ns : UINT64_MAX;
}

void timers_run(struct timers *ts, struct control *c, uint64_t now_ns)
{
	/* A timer that sets itself again for now would run for ever: one round each. */
	for (uint32_t left = ts->count; left > 0 && timers_next(ts) <= now_ns; left--) {
		struct timer *t = ts->heap[1];

		timers_cancel(ts, t);
		t->fire(c, t);
	}
}
