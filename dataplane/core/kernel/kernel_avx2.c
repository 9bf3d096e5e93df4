/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for AVX2 and F16C. */
#include <immintrin.h>

#define VEC_BYTES 32
#include "kernel_vec.h"

#include "kernel_bf16.h"

VEC_MIN_MAX_NATIVE(i8, _mm256, epi8, __m256i)
VEC_MIN_MAX_NATIVE(i16, _mm256, epi16, __m256i)
VEC_MIN_MAX_NATIVE(i32, _mm256, epi32, __m256i)
VEC_MIN_MAX_NATIVE(u8, _mm256, epu8, __m256i)
VEC_MIN_MAX_NATIVE(u16, _mm256, epu16, __m256i)
VEC_MIN_MAX_NATIVE(u32, _mm256, epu32, __m256i)
VEC_MIN_MAX_BY_SELECT(i64)
VEC_MIN_MAX_BY_SELECT(u64)

/*
 * minimum and maximum of IEEE 754-2019. The instructions give their second operand for a NaN and
 * for two zeros: both orders, or-ed to find -0, and-ed to find +0; a NaN makes VEC_NAN.
 */
#define FLOAT_MIN_MAX(type, suffix, native)                                                \
	VEC_INLINE vec min_##type(vec a, vec b)                                            \
	{                                                                                  \
		native x = (native)a, y = (native)b;                                       \
		return (vec)_mm256_min_##suffix(x, y) | (vec)_mm256_min_##suffix(y, x) |   \
		       ((vec)_mm256_cmp_##suffix(x, y, _CMP_UNORD_Q) & VEC_NAN);           \
	}                                                                                  \
	VEC_INLINE vec max_##type(vec a, vec b)                                            \
	{                                                                                  \
		native x = (native)a, y = (native)b;                                       \
		return ((vec)_mm256_max_##suffix(x, y) & (vec)_mm256_max_##suffix(y, x)) | \
		       ((vec)_mm256_cmp_##suffix(x, y, _CMP_UNORD_Q) & VEC_NAN);           \
	}
FLOAT_MIN_MAX(f32, ps, __m256)
FLOAT_MIN_MAX(f64, pd, __m256d)

VEC_INLINE void f16_load(const uint8_t *from, vec *lo, vec *hi)
{
	*lo = (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
	*hi = (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + VEC_BYTES / 2)));
}

VEC_INLINE void f16_store(uint8_t *to, vec lo, vec hi)
{
	_mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph((__m256)lo, _MM_FROUND_TO_NEAREST_INT));
	_mm_storeu_si128((__m128i *)(to + VEC_BYTES / 2),
			 _mm256_cvtps_ph((__m256)hi, _MM_FROUND_TO_NEAREST_INT));
}

#define KERNEL_TABLE kernel_table_avx2
#include "kernel_body.h"
