/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closes what may take long to close, in threads of its own: what clients have sent, the sockets
 * in whose queues such may lie, and much memory. The last close of a socket that lingers takes as
 * long as its owner has set; here it is cut short. That of a file on a file system that its owner
 * runs takes as long as he likes, and nothing helps: it is *doubtful*.
 *
 * One thread closes what is not doubtful and nothing else, so whoever holds up the others does not
 * hold it up. For the doubtful there is one more; and another whenever all of them have been at
 * one for a second, up to CLOSERS_MAX in all.
 *
 * The loop's thread gives; what it has given is gone for it. Waiting are at most two descriptors
 * for each client and one for each object that is created apart: whoever takes new clients in looks
 * at closer_behind first.
 */
#ifndef SARISSA_CONTROL_CLOSER_H
#define SARISSA_CONTROL_CLOSER_H

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
	uv_async_t done; /* in the giver's loop, each time that one is closed */
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
