/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What control needs of the reduce kernels, for small values that it adds up itself. Pure; any
 * thread. The dataplane uses the kernels directly (dataplane/core/kernel/kernel.h has their rules).
 */
#ifndef SARISSA_INCLUDE_INTERNAL_REDUCE_KERNEL_H
#define SARISSA_INCLUDE_INTERNAL_REDUCE_KERNEL_H

#include <stdint.h>

/* acc = acc op value. op and dtype are valid, bytes a multiple of the element's. */
void reduce_combine(uint32_t op, uint32_t dtype, void *acc, const void *value, uint32_t bytes);
/* acc = acc / n, n > 0: the end of an average. */
void reduce_scale(uint32_t dtype, void *acc, uint32_t n, uint32_t bytes);

#endif
