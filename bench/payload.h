/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the measured programs of every system share, so that they do the same outside of what is
 * measured: the bytes of an object, their digest, and the common clock. All nodes are on one
 * machine: CLOCK_MONOTONIC is the same for all of them.
 */
#ifndef SARISSA_BENCH_PAYLOAD_H
#define SARISSA_BENCH_PAYLOAD_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <xxhash.h>

/* Pseudo-random bytes that depend on the seed alone (splitmix64). */
static inline void payload_fill(uint8_t *out, uint64_t bytes, uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15ull;

	for (uint64_t at = 0; at < bytes; at += sizeof(uint64_t)) {
		uint64_t z = state += 0x9e3779b97f4a7c15ull;
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
		z ^= z >> 31;
		memcpy(out + at, &z, bytes - at < sizeof(z) ? bytes - at : sizeof(z));
	}
}

static inline uint64_t payload_digest(const void *data, uint64_t bytes)
{
	return XXH3_64bits(data, bytes);
}

static inline int64_t payload_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Sleeps that end when they were asked to end: the default slack of timers is 50 us. */
static inline void payload_precise_timers(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
}

static inline void payload_sleep_until(int64_t at_ns)
{
	const struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

#endif
