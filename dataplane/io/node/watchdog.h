/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Says WATCHDOG=1 to the service manager, but only while every worker turns: at each step the main
 * thread wakes all workers, and at the next one each must have gone round its loop since. So a
 * worker that hangs, or a main thread that waits for one, ends the messages, and the manager ends
 * the process. Three steps in the time that the manager gives. Main thread only.
 */
#ifndef SARISSA_DATAPLANE_IO_NODE_WATCHDOG_H
#define SARISSA_DATAPLANE_IO_NODE_WATCHDOG_H

#include "internal/program/notify.h"
#include "worker.h"

struct watchdog {
	struct notify notify;
	uint64_t due_ns; /* of the next step; UINT64_MAX: nobody asks */
	uint64_t loops[WORKERS_MAX];
	bool stuck; /* and said so */
};

/* The workers run: says READY=1. */
void watchdog_start(struct watchdog *d, const struct worker *workers, unsigned count,
		    uint64_t now_ns);

/* Until the next step: a time for poll(), -1 for none. */
int watchdog_wait_ms(const struct watchdog *d, uint64_t now_ns);

/* A step, when it is due. */
void watchdog_step(struct watchdog *d, const struct worker *workers, unsigned count,
		   uint64_t now_ns);

#endif
