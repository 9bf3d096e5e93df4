/* SPDX-License-Identifier: BSD-3-Clause */
#include "watchdog.h"

#include <sys/eventfd.h>
#include "io/observe/log.h"

enum { STEPS = 3 };

static uint64_t watchdog_loops(const struct worker *w)
{
	return __atomic_load_n(&w->counters->io_loops, __ATOMIC_RELAXED);
}

/* Remembers how far each worker is, and makes all go round once more. */
static void watchdog_ask(struct watchdog *d, const struct worker *workers, unsigned count,
			 uint64_t now_ns)
{
	for (unsigned w = 0; w < count; w++) {
		d->loops[w] = watchdog_loops(&workers[w]);
		eventfd_write(workers[w].wake_fd, 1);
	}
	d->due_ns = now_ns + d->notify.watchdog_ns / STEPS;
}

void watchdog_start(struct watchdog *d, const struct worker *workers, unsigned count,
		    uint64_t now_ns)
{
	*d = (struct watchdog){.due_ns = UINT64_MAX};
	notify_open(&d->notify);
	notify_say(&d->notify, NOTIFY_READY);
	if (d->notify.watchdog_ns > 0)
		watchdog_ask(d, workers, count, now_ns);
}

int watchdog_wait_ms(const struct watchdog *d, uint64_t now_ns)
{
	if (d->due_ns == UINT64_MAX)
		return -1;
	return now_ns >= d->due_ns ? 0 : (int)((d->due_ns - now_ns) / 1000000u) + 1;
}

void watchdog_step(struct watchdog *d, const struct worker *workers, unsigned count,
		   uint64_t now_ns)
{
	bool turn = true;
	if (now_ns < d->due_ns)
		return;
	for (unsigned w = 0; w < count; w++) {
		bool turned = watchdog_loops(&workers[w]) != d->loops[w];
		if (!turned && !d->stuck)
			log_warning("worker %u does not turn: the service manager restarts this "
				    "process if that goes on",
				    w);
		turn &= turned;
	}
	d->stuck = !turn;
	if (turn)
		notify_say(&d->notify, NOTIFY_WATCHDOG);
	watchdog_ask(d, workers, count, now_ns);
}
