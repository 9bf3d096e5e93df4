/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations that the files of bench/kernels share. */
#ifndef SARISSA_BENCH_KERNELS_KERNELS_H
#define SARISSA_BENCH_KERNELS_KERNELS_H

#include "kernel/kernel.h"

/* A plain loop acc = acc + payload over binary32 with the level's intrinsics: the bound. */
kernel_fn *bound_of(enum kernel_level level);
/* The bound of a 16-bit float, with the conversions to binary32 and back; NULL where there is none:
 * other types need none, and plain C has no instructions for them. */
kernel_fn *bound_converting(enum kernel_level level, uint32_t dtype);

/* The error of sums of 16 random normals, against binary64 (of f64: long double). */
void error_report(enum kernel_level level, bool json);

#endif
