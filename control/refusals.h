/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that cannot be served. Each has its answer when its request is there; before that a
 * closed socket would tell it no more than that we are gone. One thread.
 */
#ifndef SARISSA_CONTROL_REFUSALS_H
#define SARISSA_CONTROL_REFUSALS_H

#include <stdint.h>

struct clients;
struct refused;

enum { REFUSALS_MAX = 16 };

struct refusals {
	struct clients *clients;
	struct refused *waiting[REFUSALS_MAX]; /* for their request */
	uint32_t next;
};

/* Takes the socket of one; error says why. Of more than REFUSALS_MAX the first goes without an
 * answer. */
void refusals_add(struct refusals *all, int fd, int error);
/* At the end of the process: who waits hears of it. */
void refusals_leave(const struct refusals *all);

#endif
