/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work of known size on the pure cores, for callgrind to count its instructions: no clock, no
 * randomness, so the counts are the same on every run. test_counts.py runs it and judges.
 */
#ifndef SARISSA_TESTS_COUNT_COUNTS_H
#define SARISSA_TESTS_COUNT_COUNTS_H

#include <stdio.h>
#include <valgrind/callgrind.h>

static inline void count_begin(void)
{
	CALLGRIND_ZERO_STATS;
	CALLGRIND_TOGGLE_COLLECT;
}

/* The work since count_begin was so many units (packets, calls); functions: those to be told of,
 * with all that they call, separated by spaces. */
static inline void count_end(const char *work, unsigned units, const char *functions)
{
	CALLGRIND_TOGGLE_COLLECT;
	CALLGRIND_DUMP_STATS_AT(work);
	printf("%s %u %s\n", work, units, functions);
}

void count_transport(void);
void count_kernels(void);
void count_directory(void);
void count_codec(void);
void count_shapes(void);
void count_plans(void);
void count_clocks(void);

#endif
