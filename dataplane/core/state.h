/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What all state of an engine is counted with. The parts have a header each; struct engine, which
 * holds them all, is in engine_state.h, struct conn in conn.h.
 */
#ifndef SARISSA_DATAPLANE_CORE_STATE_H
#define SARISSA_DATAPLANE_CORE_STATE_H

#include <stdint.h>

#define NEVER UINT64_MAX /* a time that does not come */

static inline uint64_t state_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t state_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
