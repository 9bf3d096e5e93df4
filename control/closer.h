/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes what may take long to close, in a thread of its own: what clients have sent, the sockets
 * in whose queues such may lie, and much memory. The last close of a socket that lingers takes as
 * long as its owner has set; here it is cut short.
 *
 * One thread gives; what it has given is gone for it. Waiting are at most two descriptors for each
 * client and one for each object that is created apart: whoever takes new clients in looks at
 * closer_behind first.
 */
#ifndef SARISSA_CONTROL_CLOSER_H
#define SARISSA_CONTROL_CLOSER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct closing;

struct closer {
	uv_thread_t thread;
	uv_mutex_t lock; /* of what follows, but done */
	uv_cond_t given;
	struct closing *first, **last;
	uint32_t waiting; /* with the one that is being closed */
	uv_async_t done;  /* in the giver's loop, each time that one is closed */
};

/* Returns 0, or 1 when there is no thread to be had. */
int closer_start(struct closer *c, uv_loop_t *loop, uv_async_cb done, void *arg);
/* Closes both in this order; -1: none. */
void closer_take(struct closer *c, int fd, int then);
/* Whether so many wait that more must not come. */
bool closer_behind(struct closer *c);

#endif
