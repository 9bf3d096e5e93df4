/* SPDX-License-Identifier: BSD-3-Clause */
#include "patience.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "cli/cli.h"
#include "text.h"

static const uint64_t patience_first_ns = 5000000000, patience_repeat_ns = 30000000000,
		      patience_most_ns = 300000000000;

static void patience_say(const struct patience *p, const char *words, uint64_t waited_ns)
{
	flockfile(stderr);
	fprintf(stderr, "%ssarissa: ", isatty(STDERR_FILENO) ? "\r\033[K" : "");
	if (p->name) {
		text_safe(stderr, p->name);
		fputs(": ", stderr);
	}
	fprintf(stderr, "waiting for %llu s: ", (unsigned long long)(waited_ns / 1000000000));
	text_safe(stderr, words);
	fputs(p->limited ? "\n" : " (--timeout S limits the wait)\n", stderr);
	funlockfile(stderr);
}

/* Under lock: until then, or until it ends or something has moved. */
static bool patience_sleep(struct patience *p, uint64_t until_ns)
{
	struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};
	return pthread_cond_timedwait(&p->wake, &p->lock, &until) == ETIMEDOUT;
}

static void *patience_run(void *arg)
{
	struct patience *p = arg;
	sar_id id = p->name ? cli_id(p->name) : (sar_id){{0}};
	char words[SAR_DETAIL_MAX];
	pthread_mutex_lock(&p->lock);
	uint64_t since = p->moved_ns, next = patience_first_ns, step = patience_repeat_ns;
	while (!p->ended) {
		if (since != p->moved_ns) {
			since = p->moved_ns;
			next = patience_first_ns;
			step = patience_repeat_ns;
		}
		if (!patience_sleep(p, since + next) || p->ended || since != p->moved_ns)
			continue;
		pthread_mutex_unlock(&p->lock);
		int r = sar_waits_for(p->s, p->name ? &id : NULL, words, sizeof(words));
		pthread_mutex_lock(&p->lock);
		if (!p->ended && since == p->moved_ns && (p->name || r == -ENOTCONN) && *words)
			patience_say(p, words, cli_now_ns() - since);
		next += step;
		step = step * 2 < patience_most_ns ? step * 2 : patience_most_ns;
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

void patience_begin(struct patience *p, sar *s, const char *name, bool limited)
{
	pthread_condattr_t attributes;
	sigset_t all, before;
	*p = (struct patience){.s = s, .name = name, .limited = limited, .moved_ns = cli_now_ns()};
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attributes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	p->started = pthread_create(&p->thread, NULL, patience_run, p) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void patience_moved(struct patience *p)
{
	if (!p->started)
		return;
	pthread_mutex_lock(&p->lock);
	p->moved_ns = cli_now_ns();
	pthread_mutex_unlock(&p->lock); /* it looks when its time is over */
}

void patience_end(struct patience *p)
{
	if (!p->started)
		return;
	pthread_mutex_lock(&p->lock);
	p->ended = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	p->started = false;
}
