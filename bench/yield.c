/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into MPI's ranks: a library that has nothing to do calls sched_yield() and polls again.
 * With many ranks on few cores the pollers would take the time that the emulated network needs, and
 * the peer would look slower than it is. Here a yield is followed by a short sleep.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { YIELD_SLEEP_NS = 20000 };

int sched_yield(void)
{
	static _Thread_local int precise;
	const struct timespec pause = {0, YIELD_SLEEP_NS};

	if (!precise) {
		prctl(PR_SET_TIMERSLACK, 1); /* otherwise 50 us more */
		precise = 1;
	}
	syscall(SYS_sched_yield);
	nanosleep(&pause, NULL);
	return 0;
}
