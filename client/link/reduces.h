/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reduces that this connection has asked for and whose end it has not heard: the node's control
 * follows them, and where it directed them as well they end with it. So they are asked for again
 * at another control. The latest REDUCES_MAX of them. Any thread.
 */
#ifndef SARISSA_CLIENT_LINK_REDUCES_H
#define SARISSA_CLIENT_LINK_REDUCES_H

#include "internal/session.h"
#include "mux.h"
#include "sarissa/sarissa.h"

enum { REDUCES_MAX = 64 };

struct reduces_one;

struct reduces {
	pthread_mutex_t lock;
	struct reduces_one *first; /* the latest */
	_Atomic unsigned count;
};

/* request was answered; sources: those that went with it. One that finds no memory is forgotten. */
void reduces_remember(struct reduces *r, const struct session_request *request,
		      const sar_id *sources, int64_t until_ns, int64_t began_ns);
/* No lock when there is none. */
void reduces_forget(struct reduces *r, const sar_id *target);
/* Asks for all of them through m. 0, or why m is of no use. */
int reduces_resume(struct reduces *r, struct mux *m, int64_t deadline_ns);
void reduces_fini(struct reduces *r);

#endif
