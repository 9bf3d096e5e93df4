/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that connects to another control while queues have operations that wait for one: what
 * it takes may take seconds, and sar_poll never waits. It begins when the connection is lost, and
 * ends when there is another one, when there will be none, or with the last queue.
 */
#include <errno.h>
#include <stdio.h>
#include "queue/deadline.h"
#include "api/error.h"
#include "interrupt.h"
#include "queue/queue.h"
#include "rejoin.h"
#include "thread.h"

#define JOINER_TURN_NS 1000000000 /* then it sees whether anybody still wants it */
#define JOINER_REST_NS 100000000  /* after one that has failed for good, until the next */

static bool joiner_wanted(struct sar *s)
{
	pthread_mutex_lock(&s->queues_lock);
	bool wanted = s->queues && !atomic_load(&s->joiner.stop);
	pthread_mutex_unlock(&s->queues_lock);
	return wanted;
}

/* The connection is being closed: what is under way is of no use. */
static bool joiner_stopped(void *arg)
{
	return atomic_load(&((struct joiner *)arg)->stop);
}

static void *joiner_run(void *arg)
{
	struct sar *s = arg;
	struct interrupt stops = {.asked = joiner_stopped, .arg = &s->joiner};
	interrupt_set(&stops);
	struct joiner *j = &s->joiner;
	int r;
	do
		r = rejoin(s, 0, deadline_after(JOINER_TURN_NS));
	while (r == -ENOTCONN && joiner_wanted(s));
	pthread_mutex_lock(&s->queues_lock);
	j->running = false;
	j->error = r == -ENOTCONN ? 0 : r;
	j->ended_ns = deadline_now();
	snprintf(j->words, sizeof(j->words), "%s", r < 0 ? sar_error_detail() : "");
	for (struct sar_queue *q = s->queues; q; q = q->next)
		queue_signal(q); /* within: who joins this thread holds the lock */
	pthread_mutex_unlock(&s->queues_lock);
	return NULL;
}

/* Under queues_lock. */
static int joiner_start(struct sar *s)
{
	struct joiner *j = &s->joiner;
	if (j->started)
		pthread_join(j->thread, NULL); /* has ended, or is just about to */
	int r = thread_begin(&j->thread, joiner_run, s);
	j->started = j->running = r == 0; /* under the lock, as its end is */
	return r;
}

void joiner_want(struct sar *s)
{
	int r = 0;
	pthread_mutex_lock(&s->queues_lock);
	if (!s->joiner.running)
		r = joiner_start(s);
	pthread_mutex_unlock(&s->queues_lock);
	if (r < 0)
		rejoin_nudge(s); /* rather late than never */
}

int joiner_error(struct sar *s, char words[SAR_DETAIL_MAX])
{
	struct joiner *j = &s->joiner;
	int r = 0;
	pthread_mutex_lock(&s->queues_lock);
	if (!j->running && j->error != 0 && deadline_now() - j->ended_ns < JOINER_REST_NS) {
		r = j->error;
		memcpy(words, j->words, sizeof(j->words));
	}
	pthread_mutex_unlock(&s->queues_lock);
	return r;
}

void joiner_stop(struct sar *s)
{
	atomic_store(&s->joiner.stop, true);
	if (s->joiner.started)
		pthread_join(s->joiner.thread, NULL);
	s->joiner.started = false;
}
