/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers and times, as all state of an engine counts with them. Any file of the dataplane's core
 * may include this; it must not know any part of that state.
 */
#ifndef SARISSA_DATAPLANE_CORE_NUMBERS_H
#define SARISSA_DATAPLANE_CORE_NUMBERS_H

#include <stdint.h>

#define NEVER UINT64_MAX /* a time that does not come */

static inline uint64_t numbers_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t numbers_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
