/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With the thread sanitizer: pthread_mutex_clocklock, which it does not know. It would not see the
 * C library's lock, and report the unlock as wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#if defined(__SANITIZE_THREAD__)
#define FAKE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAKE_THREAD_SANITIZER 1
#endif
#endif
#ifdef FAKE_THREAD_SANITIZER
int pthread_mutex_clocklock(pthread_mutex_t *lock, clockid_t clock, const struct timespec *until);

int pthread_mutex_clocklock(pthread_mutex_t *lock, clockid_t clock, const struct timespec *until)
{
	struct timespec now;
	int r;
	while ((r = pthread_mutex_trylock(lock)) == EBUSY) {
		clock_gettime(clock, &now);
		if (now.tv_sec > until->tv_sec ||
		    (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
			return ETIMEDOUT;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return r;
}
#endif
