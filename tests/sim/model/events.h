/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time: a binary heap of things to run. Equal times run in the order of their insertion,
 * so a run is a function of its inputs alone. One thread.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_EVENTS_H
#define SARISSA_TESTS_SIM_MODEL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*events_fn)(void *context, uint64_t argument);

struct event {
	uint64_t at_ns;
	uint64_t sequence;
	events_fn run;
	void *context;
	uint64_t argument;
};

struct events {
	struct event *heap;
	size_t count, room;
	uint64_t now_ns;
	uint64_t sequence;
	uint64_t ran; /* count of events run so far */
};

void events_init(struct events *q, uint64_t now_ns);
void events_free(struct events *q);

/* Runs fn(context, argument) at at_ns, or now when that has passed. */
void events_add(struct events *q, uint64_t at_ns, events_fn run, void *context, uint64_t argument);

/* Time of the next event; UINT64_MAX when there is none. */
uint64_t events_next_ns(const struct events *q);

/* Moves the clock to the next event and runs it; false when there is none at or before until_ns,
 * and then the clock stands at until_ns (unless that is UINT64_MAX). */
bool events_step(struct events *q, uint64_t until_ns);

#endif
