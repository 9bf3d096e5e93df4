/* SPDX-License-Identifier: BSD-3-Clause */
#include "crash.h"

#include <assert.h>
#include <setjmp.h>
#include <stddef.h>

#define SARISSA_CRASH_POINTS
#include "internal/crash_point.h"

static uint32_t *crash_left; /* of the process that runs; NULL: it lives */
static jmp_buf crash_out;

void crash_point(void)
{
	if (crash_left && --*crash_left == 0)
		longjmp(crash_out, 1);
}

bool crash_run(uint32_t *left, void (*run)(void *arg), void *arg)
{
	assert(!crash_left);
	if (*left == 0) {
		run(arg);
		return true;
	}
	crash_left = left;
	if (setjmp(crash_out) != 0) {
		crash_left = NULL;
		return false;
	}
	run(arg);
	crash_left = NULL;
	return true;
}
