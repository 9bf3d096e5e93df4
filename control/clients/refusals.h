/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that cannot be served. Each gets an answer to its first request; a socket closed before
 * would look as if control were gone. Called by clients.c. One thread.
 */
#ifndef SARISSA_CONTROL_CLIENTS_REFUSALS_H
#define SARISSA_CONTROL_CLIENTS_REFUSALS_H

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
/* At the end of the process: disconnects all. */
void refusals_leave(const struct refusals *all);

#endif
