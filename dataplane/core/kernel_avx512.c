/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for AVX-512: F, BW, VL and DQ. */
#include <immintrin.h>

#define VEC_BYTES 64
#include "kernel_vec.h"

#define INT_MIN_MAX(type, suffix)                                        \
	VEC_INLINE vec min_##type(vec a, vec b)                          \
	{                                                                \
		return (vec)_mm512_min_##suffix((__m512i)a, (__m512i)b); \
	}                                                                \
	VEC_INLINE vec max_##type(vec a, vec b)                          \
	{                                                                \
		return (vec)_mm512_max_##suffix((__m512i)a, (__m512i)b); \
	}
INT_MIN_MAX(i8, epi8)
INT_MIN_MAX(i16, epi16)
INT_MIN_MAX(i32, epi32)
INT_MIN_MAX(i64, epi64)
INT_MIN_MAX(u8, epu8)
INT_MIN_MAX(u16, epu16)
INT_MIN_MAX(u32, epu32)
INT_MIN_MAX(u64, epu64)

/*
 * minimum and maximum of IEEE 754-2019: vrange orders zeros by their sign (as its immediate says:
 * 4 or 5, the sign of the comparison's result) and prefers numbers to NaN, which the mask mends.
 */
#define FLOAT_MIN_MAX(type, suffix, native)                                                      \
	VEC_INLINE vec nan_or_##type(vec a, vec b, native r)                                     \
	{                                                                                        \
		native nan = (native)_mm512_set1_epi32(-1);                                      \
		return (vec)_mm512_mask_mov_##suffix(                                            \
			r, _mm512_cmp_##suffix##_mask((native)a, (native)b, _CMP_UNORD_Q), nan); \
	}                                                                                        \
	VEC_INLINE vec min_##type(vec a, vec b)                                                  \
	{                                                                                        \
		return nan_or_##type(a, b, _mm512_range_##suffix((native)a, (native)b, 4));      \
	}                                                                                        \
	VEC_INLINE vec max_##type(vec a, vec b)                                                  \
	{                                                                                        \
		return nan_or_##type(a, b, _mm512_range_##suffix((native)a, (native)b, 5));      \
	}
FLOAT_MIN_MAX(f32, ps, __m512)
FLOAT_MIN_MAX(f64, pd, __m512d)

VEC_INLINE vec f16_widen_lo(vec v)
{
	return (vec)_mm512_cvtph_ps(_mm512_castsi512_si256((__m512i)v));
}

VEC_INLINE vec f16_widen_hi(vec v)
{
	return (vec)_mm512_cvtph_ps(_mm512_extracti64x4_epi64((__m512i)v, 1));
}

VEC_INLINE vec f16_pack(vec lo, vec hi)
{
	__m256i low = _mm512_cvtps_ph((__m512)lo, _MM_FROUND_TO_NEAREST_INT);
	__m256i high = _mm512_cvtps_ph((__m512)hi, _MM_FROUND_TO_NEAREST_INT);
	return (vec)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

#define KERNEL_TABLE kernel_table_avx512
#include "kernel_body.h"
