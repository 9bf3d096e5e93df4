/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The leases that this connection has open, so that they are taken up again at another control, and
 * the one that its creations are held by. Any thread.
 */
#ifndef SARISSA_CLIENT_LINK_LEASES_H
#define SARISSA_CLIENT_LINK_LEASES_H

#include <pthread.h>
#include "mux.h"
#include "sarissa/sarissa.h"

struct leases_one;

struct leases {
	pthread_mutex_t lock;
	struct leases_one *first;
	_Atomic uint64_t current; /* sar_set_lease; 0: none */
};

/* The lease that the request of a CREATE or PUT names. */
static inline uint64_t leases_current(const struct leases *l)
{
	return atomic_load_explicit(&l->current, memory_order_relaxed);
}

/* Opens all of them through m. 0, or why m is of no use. */
int leases_resume(struct leases *l, struct mux *m, int64_t deadline_ns);
void leases_fini(struct leases *l);

#endif
