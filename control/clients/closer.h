/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes descriptors whose close may block, in threads of its own: descriptors that clients have
 * sent, sockets that may carry such, and large memory. A lingering socket is cut short. A file on a
 * file system that its owner runs may block without a limit: it is *doubtful*.
 *
 * One thread closes only descriptors that are not doubtful. For doubtful ones there is one thread,
 * and one more whenever all of them have been at one descriptor for a second, up to CLOSERS_MAX.
 * Called by the loop's thread, which must not use a descriptor afterwards. The queue has at most
 * two descriptors per client and one per staging buffer: clients.c looks at closer_behind before it
 * accepts a client.
 */
#ifndef SARISSA_CONTROL_CLIENTS_CLOSER_H
#define SARISSA_CONTROL_CLIENTS_CLOSER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { CLOSERS_MAX = 8 };

struct closing;
struct report;

struct closer_queue {
	struct closing *first, **last;
};

struct closer_thread {
	struct closer *all;
	uv_thread_t thread;
	uint64_t since_ns; /* at one thing; 0: idle */
	bool reported;	   /* that it is so for long */
};

struct closer {
	struct report *report;
	uv_async_t done; /* sent to the loop each time that one is closed */
	uv_timer_t look; /* at how long it takes */
	bool reported;	 /* the operator, that it takes long */
	uv_mutex_t lock; /* of what follows */
	uv_cond_t given;
	struct closer_queue queue[2]; /* by whether they are doubtful */
	struct closer_thread thread[CLOSERS_MAX];
	uint32_t threads;
	uint32_t waiting;  /* with those that are being closed */
	uint32_t doubtful; /* of them */
};

/* Returns 0, or 1 when there is no thread to be had. */
int closer_start(struct closer *c, uv_loop_t *loop, struct report *report, uv_async_cb done,
		 void *arg);
void closer_take(struct closer *c, int fd, bool doubtful);
/* Whether so many wait that more must not come. */
bool closer_behind(struct closer *c);
/* Whether there is somebody for one more that is doubtful. */
bool closer_ready(struct closer *c);

#endif
