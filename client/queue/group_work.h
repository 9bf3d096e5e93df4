/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member's part in a round that a switch makes, and what the next pull reports of it. The thread
 * of a call that pulls takes part, or one that works for a pull of a queue (queue/group.c). Each
 * such pull has its own: parts wait for those of other members, which may be in the same queue.
 */
#ifndef SARISSA_CLIENT_QUEUE_GROUP_WORK_H
#define SARISSA_CLIENT_QUEUE_GROUP_WORK_H

#include <pthread.h>
#include "api/group.h"

/* How a part has ended. flags: GROUP_SWITCHED, GROUP_UNSWITCHED; 0: there was none. */
struct group_report {
	uint32_t flags, attempt, error;
	uint64_t round;
};

/* The pull that tells it. */
struct group_request group_of_pull(const sar_member *m, const struct group_report *report);
struct group_report group_take_part(sar_member *m, const struct group_job *job);

struct group_work {
	pthread_t thread;
	bool begun;
	_Atomic bool stop; /* it is to end soon */
	sar_member *m;	   /* until the end */
	struct group_job job;
	struct group_report report; /* at the end */
	void (*ended)(void *arg);   /* in its thread */
	void *arg;
};

/* Takes part in w->job in a thread. Its end is w->ended, before this returns if there can be no
 * thread. */
void group_work_begin(struct group_work *w);
/* Waits for the thread, if there is one: it must have ended, or have been stopped. */
void group_work_join(struct group_work *w);

#endif
