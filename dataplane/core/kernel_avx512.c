/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for AVX-512: F, BW, VL and DQ. */
#include <immintrin.h>

#define VEC_BYTES 64
#include "kernel_vec.h"

VEC_MIN_MAX_NATIVE(i8, _mm512, epi8, __m512i)
VEC_MIN_MAX_NATIVE(i16, _mm512, epi16, __m512i)
VEC_MIN_MAX_NATIVE(i32, _mm512, epi32, __m512i)
VEC_MIN_MAX_NATIVE(i64, _mm512, epi64, __m512i)
VEC_MIN_MAX_NATIVE(u8, _mm512, epu8, __m512i)
VEC_MIN_MAX_NATIVE(u16, _mm512, epu16, __m512i)
VEC_MIN_MAX_NATIVE(u32, _mm512, epu32, __m512i)
VEC_MIN_MAX_NATIVE(u64, _mm512, epu64, __m512i)

/*
 * minimum and maximum of IEEE 754-2019: vrange orders zeros by their sign (as its immediate says:
 * 4 or 5, the sign of the comparison's result) and prefers numbers to NaN, which the mask mends.
 */
#define FLOAT_MIN_MAX(type, suffix, native)                                                      \
	VEC_INLINE vec nan_or_##type(vec a, vec b, native r)                                     \
	{                                                                                        \
		native nan = (native)VEC_NAN;                                                    \
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

VEC_INLINE void f16_load(const uint8_t *from, vec *lo, vec *hi)
{
	*lo = (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
	*hi = (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + VEC_BYTES / 2)));
}

VEC_INLINE void f16_store(uint8_t *to, vec lo, vec hi)
{
	_mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph((__m512)lo, _MM_FROUND_TO_NEAREST_INT));
	_mm256_storeu_si256((__m256i *)(to + VEC_BYTES / 2),
			    _mm512_cvtps_ph((__m512)hi, _MM_FROUND_TO_NEAREST_INT));
}

#define KERNEL_TABLE kernel_table_avx512
#include "kernel_body.h"
