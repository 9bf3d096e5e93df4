/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sequence lock, with the fences of Boehm (MSPC 2012): one writer, which never waits, and readers
 * that copy and look whether it wrote meanwhile. Odd while it writes; a writer that died there
 * leaves it odd, and the next one goes on from that.
 */
#ifndef SARISSA_INCLUDE_INTERNAL_SEQUENCE_H
#define SARISSA_INCLUDE_INTERNAL_SEQUENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "crash_point.h"

static inline void sequence_write(_Atomic uint32_t *sequence)
{
	uint32_t now = atomic_load_explicit(sequence, memory_order_relaxed);

	crash_point();
	atomic_store_explicit(sequence, now | 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	crash_point();
}

static inline void sequence_written(_Atomic uint32_t *sequence)
{
	uint32_t now = atomic_load_explicit(sequence, memory_order_relaxed);

	crash_point();
	atomic_store_explicit(sequence, (now | 1) + 1, memory_order_release);
}

/* Odd: there is nothing to copy now. */
static inline uint32_t sequence_read(const _Atomic uint32_t *sequence)
{
	return atomic_load_explicit(sequence, memory_order_acquire);
}

/* Whether what was copied since then is whole. */
static inline bool sequence_whole(const _Atomic uint32_t *sequence, uint32_t before)
{
	atomic_thread_fence(memory_order_acquire);
	return before % 2 == 0 && atomic_load_explicit(sequence, memory_order_relaxed) == before;
}

#endif
