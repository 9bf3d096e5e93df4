/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops that a kernel is held against: no tail, one type each, as short as intrinsics allow. */
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
	static kernel_fn *const bounds[] = {bound_c, bound_avx2, bound_avx512, bound_avx512};
	return bounds[level];
}

/* 16-bit floats: widened, added as binary32, rounded back to nearest even. `in` and `out` work on
 * half a vector in memory and a whole one in registers. */
#define BOUND_HALF(name, isa, bytes_step, in, add, out)                                       \
	__attribute__((target(isa))) static void name(void *to, const void *a, const void *b, \
						      uint32_t bytes)                         \
	{                                                                                     \
		uint8_t *t = to;                                                              \
		const uint8_t *x = a, *y = b;                                                 \
		for (uint32_t i = 0; i < bytes; i += bytes_step)                              \
			out(t + i, add(in(x + i), in(y + i)));                                \
	}
#define INLINE(isa) __attribute__((target(isa), always_inline)) static inline
#define ISA_AVX2    "avx2,f16c"
#define ISA_AVX512  "avx512f,avx512bw,avx512vl,f16c"

INLINE(ISA_AVX2) __m256 f16_in_avx2(const void *from)
{
	return _mm256_cvtph_ps(_mm_loadu_si128(from));
}

INLINE(ISA_AVX2) void f16_out_avx2(void *to, __m256 v)
{
	_mm_storeu_si128(to, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

INLINE(ISA_AVX2) __m256 bf16_in_avx2(const void *from)
{
	__m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128(from));
	return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
}

INLINE(ISA_AVX2) void bf16_out_avx2(void *to, __m256 v)
{
	__m256i f = _mm256_castps_si256(v);
	__m256i last = _mm256_and_si256(_mm256_srli_epi32(f, 16), _mm256_set1_epi32(1));
	__m256i sum = _mm256_add_epi32(_mm256_add_epi32(f, _mm256_set1_epi32(0x7fff)), last);
	__m256i upper = _mm256_srli_epi32(sum, 16);
	_mm_storeu_si128(to, _mm_packus_epi32(_mm256_castsi256_si128(upper),
					      _mm256_extracti128_si256(upper, 1)));
}

INLINE(ISA_AVX512) __m512 f16_in_avx512(const void *from)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256(from));
}

INLINE(ISA_AVX512) void f16_out_avx512(void *to, __m512 v)
{
	_mm256_storeu_si256(to, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

INLINE(ISA_AVX512) __m512 bf16_in_avx512(const void *from)
{
	__m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from));
	return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

INLINE(ISA_AVX512) void bf16_out_avx512(void *to, __m512 v)
{
	__m512i f = _mm512_castps_si512(v);
	__m512i last = _mm512_and_si512(_mm512_srli_epi32(f, 16), _mm512_set1_epi32(1));
	__m512i sum = _mm512_add_epi32(_mm512_add_epi32(f, _mm512_set1_epi32(0x7fff)), last);
	_mm256_storeu_si256(to, _mm512_cvtepi32_epi16(_mm512_srli_epi32(sum, 16)));
}

BOUND_HALF(f16_avx2, ISA_AVX2, 16, f16_in_avx2, _mm256_add_ps, f16_out_avx2)
BOUND_HALF(bf16_avx2, ISA_AVX2, 16, bf16_in_avx2, _mm256_add_ps, bf16_out_avx2)
BOUND_HALF(f16_avx512, ISA_AVX512, 32, f16_in_avx512, _mm512_add_ps, f16_out_avx512)
BOUND_HALF(bf16_avx512, ISA_AVX512, 32, bf16_in_avx512, _mm512_add_ps, bf16_out_avx512)

kernel_fn *bound_converting(enum kernel_level level, uint32_t dtype)
{
	if (level < KERNEL_AVX2)
		return NULL;
	if (dtype == REDUCE_F16)
		return level == KERNEL_AVX2 ? f16_avx2 : f16_avx512;
	if (dtype == REDUCE_BF16)
		return level == KERNEL_AVX2 ? bf16_avx2 : bf16_avx512;
	return NULL;
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

kernel_fn *bound_converting(enum kernel_level level, uint32_t dtype)
{
	return NULL;
}
#endif
