/* SPDX-License-Identifier: BSD-3-Clause */
#include "closer.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "shell/log.h"
#include "shell/report.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define TICK_NS 1000000 /* a close that a signal interrupts ends within this time */
#define LONG_NS UINT64_C(1000000000)

enum { BEHIND = 64, LOOK_MS = 250 };

struct closing {
	struct closing *next;
	int fd;
	bool doubtful;
};

static void closer_ticked(int number)
{
	/* a system call that sleeps has ended */
}

/* SIG_BLOCK, SIG_UNBLOCK: whether ticks come to this thread. */
static void closer_ticks(int how)
{
	sigset_t ticks;

	sigemptyset(&ticks);
	sigaddset(&ticks, SIGALRM);
	pthread_sigmask(how, &ticks, NULL);
}

/* A timer whose signals this thread gets, and no other. Without one it is only slower. */
static bool closer_tick(timer_t *out)
{
	struct sigaction quiet = {.sa_handler = closer_ticked};
	struct sigevent us = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};

	us.sigev_notify_thread_id = gettid();
	return sigaction(SIGALRM, &quiet, NULL) == 0 &&
	       timer_create(CLOCK_MONOTONIC, &us, out) == 0;
}

/* Ticks end the close and no other call: one that ended timer_settime would leave the timer on. */
static void closer_close(int fd, const timer_t *tick)
{
	static const struct itimerspec on = {{0, TICK_NS}, {0, TICK_NS}}, off;

	if (!tick) {
		close(fd);
		return;
	}
	timer_settime(*tick, 0, &on, NULL);
	closer_ticks(SIG_UNBLOCK);
	close(fd);
	closer_ticks(SIG_BLOCK);
	timer_settime(*tick, 0, &off, NULL);
}

/* Under lock. NULL: there is none for this thread. */
static struct closing *closer_first(struct closer *c, const struct closer_thread *t)
{
	bool any = t != &c->thread[0];
	struct closer_queue *q = &c->queue[any && c->queue[true].first];
	struct closing *g = q->first;

	if (!g)
		return NULL;
	q->first = g->next;
	if (!q->first)
		q->last = &q->first;
	return g;
}

static struct closing *closer_next(struct closer_thread *t)
{
	struct closer *c = t->all;
	struct closing *g;

	uv_mutex_lock(&c->lock);
	while (!(g = closer_first(c, t)))
		uv_cond_wait(&c->given, &c->lock);
	t->since_ns = uv_hrtime();
	t->reported = false;
	uv_mutex_unlock(&c->lock);
	return g;
}

static void closer_run(void *arg)
{
	struct closer_thread *t = arg;
	struct closer *c = t->all;
	timer_t tick;
	bool ticks;

	closer_ticks(SIG_BLOCK);
	ticks = closer_tick(&tick);
	for (;;) {
		struct closing *g = closer_next(t);

		closer_close(g->fd, ticks ? &tick : NULL);
		uv_mutex_lock(&c->lock);
		c->waiting--;
		c->doubtful -= g->doubtful;
		t->since_ns = 0;
		uv_mutex_unlock(&c->lock);
		free(g);
		uv_async_send(&c->done);
	}
}

/* One thread more. 0, or 1: there is none to be had. */
static int closer_grow(struct closer *c)
{
	struct closer_thread *t = &c->thread[c->threads];

	if (c->threads == CLOSERS_MAX)
		return 1;
	*t = (struct closer_thread){.all = c};
	if (uv_thread_create(&t->thread, closer_run, t))
		return 1;
	c->threads++;
	return 0;
}

/* How many threads are at one thing for long, and how many of them for the first time that they are
 * seen so. */
static uint32_t closer_held(struct closer *c, uint32_t *newly)
{
	uint64_t now_ns = uv_hrtime();
	uint32_t held = 0;

	*newly = 0;
	for (uint32_t i = 0; i < c->threads; i++) {
		struct closer_thread *t = &c->thread[i];

		if (t->since_ns == 0 || now_ns - t->since_ns < LONG_NS)
			continue;
		held++;
		*newly += !t->reported;
		t->reported = true;
	}
	return held;
}

static void closer_look(uv_timer_t *timer)
{
	struct closer *c = timer->data;
	uint32_t held, newly;
	bool nothing;

	uv_mutex_lock(&c->lock);
	held = closer_held(c, &newly);
	nothing = c->waiting == 0;
	uv_mutex_unlock(&c->lock);
	c->report->closes_held = held;
	c->report->shell.closes_slow += newly;
	if (newly > 0 && !c->reported)
		log_warning("what a client has sent takes more than a second to close: see whether "
			    "it is on a file system of his own (FUSE); others are only counted");
	c->reported |= newly > 0;
	if (held + 1 >= c->threads)
		closer_grow(c); /* else they wait */
	if (nothing)
		uv_timer_stop(timer);
}

int closer_start(struct closer *c, uv_loop_t *loop, struct report *report, uv_async_cb done,
		 void *arg)
{
	*c = (struct closer){.report = report};
	for (unsigned i = 0; i < 2; i++)
		c->queue[i].last = &c->queue[i].first;
	if (uv_mutex_init(&c->lock) || uv_cond_init(&c->given) ||
	    uv_async_init(loop, &c->done, done) || uv_timer_init(loop, &c->look))
		return 1;
	c->done.data = arg;
	c->look.data = c;
	return closer_grow(c) || closer_grow(c);
}

/* The loop never closes what is doubtful: rather it stays open. */
static void closer_lose(struct closer *c)
{
	if (c->report->shell.closes_lost++ == 0)
		log_warning("no memory to close what a client has sent: it stays open until "
			    "control is started again; others are only counted");
}

void closer_take(struct closer *c, int fd, bool doubtful)
{
	struct closing *g = malloc(sizeof(*g));
	struct closer_queue *q = &c->queue[doubtful];

	if (!g) {
		if (doubtful)
			closer_lose(c);
		else
			closer_close(fd, NULL);
		uv_async_send(&c->done);
		return;
	}
	*g = (struct closing){.fd = fd, .doubtful = doubtful};
	uv_mutex_lock(&c->lock);
	*q->last = g;
	q->last = &g->next;
	c->waiting++;
	c->doubtful += doubtful;
	uv_cond_broadcast(&c->given);
	uv_mutex_unlock(&c->lock);
	if (!uv_is_active((uv_handle_t *)&c->look))
		uv_timer_start(&c->look, closer_look, LOOK_MS, LOOK_MS);
}

bool closer_behind(struct closer *c)
{
	bool behind;

	uv_mutex_lock(&c->lock);
	behind = c->waiting >= BEHIND;
	uv_mutex_unlock(&c->lock);
	return behind;
}

bool closer_ready(struct closer *c)
{
	bool ready;

	uv_mutex_lock(&c->lock);
	ready = c->waiting < BEHIND && c->doubtful < CLOSERS_MAX - 1;
	uv_mutex_unlock(&c->lock);
	return ready;
}
