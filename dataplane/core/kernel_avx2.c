/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for AVX2 and F16C. */
#include <immintrin.h>

#define VEC_BYTES 32
#include "kernel_vec.h"

#define INT_MIN_MAX(type, suffix)                                        \
	VEC_INLINE vec min_##type(vec a, vec b)                          \
	{                                                                \
		return (vec)_mm256_min_##suffix((__m256i)a, (__m256i)b); \
	}                                                                \
	VEC_INLINE vec max_##type(vec a, vec b)                          \
	{                                                                \
		return (vec)_mm256_max_##suffix((__m256i)a, (__m256i)b); \
	}
INT_MIN_MAX(i8, epi8)
INT_MIN_MAX(i16, epi16)
INT_MIN_MAX(i32, epi32)
INT_MIN_MAX(u8, epu8)
INT_MIN_MAX(u16, epu16)
INT_MIN_MAX(u32, epu32)
VEC_MIN_MAX_BY_SELECT(i64)
VEC_MIN_MAX_BY_SELECT(u64)

/*
 * minimum and maximum of IEEE 754-2019. The instructions give their second operand for a NaN and
 * for two zeros: both orders, or-ed to find -0, and-ed to find +0; a NaN makes all ones.
 */
#define FLOAT_MIN_MAX(type, suffix, native)                                                \
	VEC_INLINE vec min_##type(vec a, vec b)                                            \
	{                                                                                  \
		native x = (native)a, y = (native)b;                                       \
		return (vec)_mm256_min_##suffix(x, y) | (vec)_mm256_min_##suffix(y, x) |   \
		       (vec)_mm256_cmp_##suffix(x, y, _CMP_UNORD_Q);                       \
	}                                                                                  \
	VEC_INLINE vec max_##type(vec a, vec b)                                            \
	{                                                                                  \
		native x = (native)a, y = (native)b;                                       \
		return ((vec)_mm256_max_##suffix(x, y) & (vec)_mm256_max_##suffix(y, x)) | \
		       (vec)_mm256_cmp_##suffix(x, y, _CMP_UNORD_Q);                       \
	}
FLOAT_MIN_MAX(f32, ps, __m256)
FLOAT_MIN_MAX(f64, pd, __m256d)

VEC_INLINE vec f16_widen_lo(vec v)
{
	return (vec)_mm256_cvtph_ps(_mm256_castsi256_si128((__m256i)v));
}

VEC_INLINE vec f16_widen_hi(vec v)
{
	return (vec)_mm256_cvtph_ps(_mm256_extracti128_si256((__m256i)v, 1));
}

VEC_INLINE vec f16_pack(vec lo, vec hi)
{
	__m128i low = _mm256_cvtps_ph((__m256)lo, _MM_FROUND_TO_NEAREST_INT);
	__m128i high = _mm256_cvtps_ph((__m256)hi, _MM_FROUND_TO_NEAREST_INT);
	return (vec)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

#define KERNEL_TABLE kernel_table_avx2
#include "kernel_body.h"
