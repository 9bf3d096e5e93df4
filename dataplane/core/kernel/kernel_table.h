/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of one level. For kernel*.c alone: others ask kernel_find(). */
#ifndef SARISSA_DATAPLANE_CORE_KERNEL_KERNEL_TABLE_H
#define SARISSA_DATAPLANE_CORE_KERNEL_KERNEL_TABLE_H

#include "kernel.h"

struct kernel_table {
	kernel_fn *pass[REDUCE_OP_END][REDUCE_DTYPE_END];
	kernel_many_fn *many[REDUCE_OP_END][REDUCE_DTYPE_END];
	kernel_scale_fn *scale[REDUCE_DTYPE_END];
};

extern const struct kernel_table kernel_table_c, kernel_table_avx2, kernel_table_avx512,
	kernel_table_avx512vnni;

#endif
