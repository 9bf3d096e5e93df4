/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reduce kernels as control calls them for small values: include/internal/reduce_kernel.h
 * declares these functions. Linked into control; the dataplane calls kernel.h directly.
 */
#include "internal/reduce_kernel.h"
#include "kernel.h"

void reduce_combine(uint32_t op, uint32_t dtype, void *acc, const void *value, uint32_t bytes)
{
	kernel_find(kernel_level_best(), op, dtype)(acc, acc, value, bytes);
}

void reduce_scale(uint32_t dtype, void *acc, uint32_t n, uint32_t bytes)
{
	kernel_find_scale(kernel_level_best(), dtype)(acc, n, bytes);
}
