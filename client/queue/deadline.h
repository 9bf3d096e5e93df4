/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Points in time on CLOCK_MONOTONIC, in ns. SAR_FOREVER stands for "never". Any thread.
 */
#ifndef SARISSA_CLIENT_QUEUE_DEADLINE_H
#define SARISSA_CLIENT_QUEUE_DEADLINE_H

#include <stdint.h>
#include <time.h>

#define DEADLINE_NEVER INT64_MAX

static inline int64_t deadline_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The time timeout_ns (>= 0) from now; never when that is beyond the end of time. */
static inline int64_t deadline_after(int64_t timeout_ns)
{
	int64_t now = deadline_now();
	return timeout_ns > DEADLINE_NEVER - now ? DEADLINE_NEVER : now + timeout_ns;
}

/* The time left: 0 when it has passed, DEADLINE_NEVER when there is no limit. */
static inline int64_t deadline_left(int64_t deadline_ns)
{
	if (deadline_ns == DEADLINE_NEVER)
		return DEADLINE_NEVER;
	int64_t left = deadline_ns - deadline_now();
	return left > 0 ? left : 0;
}

/* The time left of timeout_ns, for a request that waits: not 0 unless timeout_ns was, because 0
 * asks for what is there now. */
static inline int64_t deadline_left_of(int64_t deadline_ns, int64_t timeout_ns)
{
	int64_t left = deadline_left(deadline_ns);
	return left == 0 && timeout_ns > 0 ? 1 : left;
}

/* The time left of given_ns that began at began_ns; not negative. */
static inline int64_t deadline_rest(int64_t given_ns, int64_t began_ns)
{
	int64_t left = given_ns - (deadline_now() - began_ns);
	return left > 0 ? left : 0;
}

/* For poll(): rounded up, so that a wait does not end early; -1 without a limit. */
static inline int deadline_poll_ms(int64_t deadline_ns)
{
	int64_t left = deadline_left(deadline_ns);
	if (left == DEADLINE_NEVER)
		return -1;
	int64_t ms = left / 1000000 + (left % 1000000 != 0);
	return ms > 3600000 ? 3600000 : (int)ms;
}

#endif
