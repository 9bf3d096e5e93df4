/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many short times of one thing, and the CPU time that this process spent on them. Printed as one
 * JSON object: {"ns": [...], "cpu_ns"}.
 */
#ifndef SARISSA_BENCH_SAMPLES_H
#define SARISSA_BENCH_SAMPLES_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { SAMPLES_MAX = 100000 };

struct samples {
	int64_t ns[SAMPLES_MAX];
	unsigned count;
	int64_t cpu_ns;
};

static inline int64_t samples_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static inline void samples_begin(struct samples *s)
{
	s->count = 0;
	s->cpu_ns = samples_cpu_ns();
}

static inline void samples_print(const struct samples *s)
{
	printf("{\"cpu_ns\": %lld, \"ns\": [", (long long)(samples_cpu_ns() - s->cpu_ns));
	for (unsigned i = 0; i < s->count; i++)
		printf("%s%lld", i ? ", " : "", (long long)s->ns[i]);
	printf("]}\n");
}

#endif
