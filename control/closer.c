/* SPDX-License-Identifier: BSD-3-Clause */
#include "closer.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define TICK_NS 1000000 /* whatever a signal ends is over within that */

enum { BEHIND = 64 };

struct closing {
	struct closing *next;
	int fd[2];
};

static void closer_ticked(int number)
{
	/* a system call that sleeps has ended */
}

/* A timer whose signals this thread gets, and no other. Without one it is only slower. */
static bool closer_tick(timer_t *out)
{
	struct sigaction quiet = {.sa_handler = closer_ticked};
	struct sigevent us = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
	sigset_t ticks;

	sigemptyset(&ticks);
	sigaddset(&ticks, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &ticks, NULL);
	us.sigev_notify_thread_id = gettid();
	return sigaction(SIGALRM, &quiet, NULL) == 0 &&
	       timer_create(CLOCK_MONOTONIC, &us, out) == 0;
}

static void closer_close(const struct closing *g, const timer_t *tick)
{
	static const struct itimerspec on = {{0, TICK_NS}, {0, TICK_NS}}, off;

	if (tick)
		timer_settime(*tick, 0, &on, NULL);
	for (unsigned i = 0; i < 2; i++)
		if (g->fd[i] >= 0)
			close(g->fd[i]);
	if (tick)
		timer_settime(*tick, 0, &off, NULL);
}

static struct closing *closer_next(struct closer *c)
{
	struct closing *g;

	uv_mutex_lock(&c->lock);
	while (c->first == NULL)
		uv_cond_wait(&c->given, &c->lock);
	g = c->first;
	c->first = g->next;
	if (c->first == NULL)
		c->last = &c->first;
	uv_mutex_unlock(&c->lock);
	return g;
}

static void closer_run(void *arg)
{
	struct closer *c = arg;
	timer_t tick;
	bool ticks = closer_tick(&tick);

	for (;;) {
		struct closing *g = closer_next(c);

		closer_close(g, ticks ? &tick : NULL);
		free(g);
		uv_mutex_lock(&c->lock);
		c->waiting--;
		uv_mutex_unlock(&c->lock);
		uv_async_send(&c->done);
	}
}

int closer_start(struct closer *c, uv_loop_t *loop, uv_async_cb done, void *arg)
{
	*c = (struct closer){.last = &c->first};
	if (uv_mutex_init(&c->lock) || uv_cond_init(&c->given) ||
	    uv_async_init(loop, &c->done, done))
		return 1;
	c->done.data = arg;
	return uv_thread_create(&c->thread, closer_run, c) != 0;
}

void closer_take(struct closer *c, int fd, int then)
{
	struct closing *g = malloc(sizeof(*g)), now = {NULL, {fd, then}};

	if (g == NULL) {
		closer_close(&now, NULL);
		uv_async_send(&c->done);
		return;
	}
	*g = now;
	uv_mutex_lock(&c->lock);
	*c->last = g;
	c->last = &g->next;
	c->waiting++;
	uv_cond_signal(&c->given);
	uv_mutex_unlock(&c->lock);
}

bool closer_behind(struct closer *c)
{
	bool behind;

	uv_mutex_lock(&c->lock);
	behind = c->waiting >= BEHIND;
	uv_mutex_unlock(&c->lock);
	return behind;
}
