/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops that a kernel is held against: no tail, no types, as short as intrinsics allow. */
#include "kernels.h"

#ifdef __x86_64__
#include <immintrin.h>

#define BOUND(name, isa, bytes_step, load, add, store)                                        \
	__attribute__((target(isa))) static void name(void *to, const void *a, const void *b, \
						      uint32_t bytes)                         \
	{                                                                                     \
		float *t = to;                                                                \
		const float *x = a, *y = b;                                                   \
		for (uint32_t i = 0; i < bytes / 4; i += bytes_step / 4)                      \
			store(t + i, add(load(x + i), load(y + i)));                          \
	}
BOUND(bound_c, "sse2", 16, _mm_loadu_ps, _mm_add_ps, _mm_storeu_ps)
BOUND(bound_avx2, "avx2", 32, _mm256_loadu_ps, _mm256_add_ps, _mm256_storeu_ps)
BOUND(bound_avx512, "avx512f", 64, _mm512_loadu_ps, _mm512_add_ps, _mm512_storeu_ps)

kernel_fn *bound_of(enum kernel_level level)
{
	static kernel_fn *const bounds[] = {bound_c, bound_avx2, bound_avx512};
	return bounds[level];
}
#else
static void bound_c(void *to, const void *a, const void *b, uint32_t bytes)
{
	float *t = to;
	const float *x = a, *y = b;
	for (uint32_t i = 0; i < bytes / 4; i++)
		t[i] = x[i] + y[i];
}

kernel_fn *bound_of(enum kernel_level level)
{
	return bound_c;
}
#endif
