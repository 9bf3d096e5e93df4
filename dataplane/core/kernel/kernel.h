/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels: how the bytes of an arriving chunk go into a buffer. Pure functions without state,
 * callable from any core; docs/developer/kernels.md says what they compute.
 *
 * For all of them: bytes is a multiple of the element size and may be 0; every pointer may have
 * any alignment; `to` may be the same as any source, but no ranges overlap in part. Nothing
 * outside of the ranges is read or written. Packet bytes are only ever values: there are none
 * that a kernel rejects.
 */
#ifndef SARISSA_DATAPLANE_CORE_KERNEL_KERNEL_H
#define SARISSA_DATAPLANE_CORE_KERNEL_KERNEL_H

#include <stdint.h>
#include <string.h>

#include "internal/reduce.h"

enum { KERNEL_SOURCES_MAX = 16 };

/* to = a op payload, in this order. A copy ignores a. */
typedef void kernel_fn(void *to, const void *a, const void *payload, uint32_t bytes);

/* to = x[0] op x[1] op ... op x[count - 1], from the left; 1 <= count <= KERNEL_SOURCES_MAX. */
typedef void kernel_many_fn(void *to, const void *const *x, uint32_t count, uint32_t bytes);

/* to = to / n; n > 0. */
typedef void kernel_scale_fn(void *to, uint32_t n, uint32_t bytes);

static inline void kernel_copy(void *to, const void *a, const void *payload, uint32_t bytes)
{
	memcpy(to, payload, bytes);
}

/* Instruction sets, each holding the former. All give the same bits, but for a NaN's payload. */
enum kernel_level {
	KERNEL_C,
	KERNEL_AVX2,   /* and F16C */
	KERNEL_AVX512, /* F, BW, VL and DQ */
	KERNEL_AVX512_VNNI,
	KERNEL_LEVEL_END,
};

/* The best level that this processor and this operating system can run. */
enum kernel_level kernel_level_best(void);
const char *kernel_level_name(enum kernel_level level);

/*
 * The kernel of an operation and a type; NULL when either is unknown. REDUCE_AVG gives that of
 * REDUCE_SUM: kernel_find_scale() is the rest. The level is at most kernel_level_best().
 */
kernel_fn *kernel_find(enum kernel_level level, uint32_t op, uint32_t dtype);
kernel_many_fn *kernel_find_many(enum kernel_level level, uint32_t op, uint32_t dtype);
kernel_scale_fn *kernel_find_scale(enum kernel_level level, uint32_t dtype);

#endif
