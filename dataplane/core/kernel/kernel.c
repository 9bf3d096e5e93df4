/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_table.h"

#include <assert.h>
#include <stdatomic.h>

#ifdef __x86_64__
#include <cpuid.h>

static const struct kernel_table *const tables[KERNEL_LEVEL_END] = {
	[KERNEL_C] = &kernel_table_c,
	[KERNEL_AVX2] = &kernel_table_avx2,
	[KERNEL_AVX512] = &kernel_table_avx512,
	[KERNEL_AVX512_VNNI] = &kernel_table_avx512vnni,
};

/* Not every compiler's __builtin_cpu_supports() knows it. */
static bool kernel_has_f16c(void)
{
	uint32_t a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static enum kernel_level kernel_level_probe(void)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !kernel_has_f16c())
		return KERNEL_C;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
	    !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
		return KERNEL_AVX2;
	return __builtin_cpu_supports("avx512vnni") ? KERNEL_AVX512_VNNI : KERNEL_AVX512;
}

/* Asked once: CPUID leaves a virtual machine, for microseconds. */
enum kernel_level kernel_level_best(void)
{
	static _Atomic int known; /* level + 1; every thread finds the same */
	int level = atomic_load_explicit(&known, memory_order_relaxed) - 1;

	if (level < 0) {
		level = (int)kernel_level_probe();
		atomic_store_explicit(&known, level + 1, memory_order_relaxed);
	}
	return (enum kernel_level)level;
}
#else
static const struct kernel_table *const tables[KERNEL_LEVEL_END] = {[KERNEL_C] = &kernel_table_c};

enum kernel_level kernel_level_best(void)
{
	return KERNEL_C;
}
#endif

const char *kernel_level_name(enum kernel_level level)
{
	static const char *const names[KERNEL_LEVEL_END] = {"c", "avx2", "avx512", "avx512vnni"};
	return names[level];
}

static const struct kernel_table *kernel_table_of(enum kernel_level level)
{
	assert(level <= kernel_level_best());
	return tables[level];
}

/* The operation that runs on the way. */
static uint32_t kernel_op(uint32_t op)
{
	return op == REDUCE_AVG ? REDUCE_SUM : op;
}

kernel_fn *kernel_find(enum kernel_level level, uint32_t op, uint32_t dtype)
{
	if (!reduce_op_valid(op) || !reduce_dtype_valid(dtype))
		return NULL;
	return kernel_table_of(level)->pass[kernel_op(op)][dtype];
}

kernel_many_fn *kernel_find_many(enum kernel_level level, uint32_t op, uint32_t dtype)
{
	if (!reduce_op_valid(op) || !reduce_dtype_valid(dtype))
		return NULL;
	return kernel_table_of(level)->many[kernel_op(op)][dtype];
}

kernel_scale_fn *kernel_find_scale(enum kernel_level level, uint32_t dtype)
{
	return reduce_dtype_valid(dtype) ? kernel_table_of(level)->scale[dtype] : NULL;
}
