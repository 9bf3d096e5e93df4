/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for AVX-512: F, BW, VL and DQ; and, compiled again for it, with VNNI. */
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

/* An addition, in the multipliers: the conversions around it keep the adders busy (Zen 5: 10 %). */
VEC_INLINE vec sum_wide(vec a, vec b)
{
	return (vec)_mm512_fmadd_ps((__m512)a, _mm512_set1_ps(1), (__m512)b);
}

/* Eight bf16 of each 128-bit lane are four upper halves and four more. One load, whose register is
 * used twice: compilers would load twice, and most loads here touch two cache lines. */
VEC_INLINE void bf16_load(const uint8_t *from, vec *lo, vec *hi)
{
	__m512i v = _mm512_loadu_si512(from), zero = _mm512_setzero_si512();
	__asm__("" : "+v"(v));
	*lo = (vec)_mm512_unpacklo_epi16(zero, v);
	*hi = (vec)_mm512_unpackhi_epi16(zero, v);
}

/* Of the halves of two vectors the lower (0) or upper (1) ones, in the order that unpacking undoes.
 */
VEC_INLINE __m512i bf16_halves(vec lo, vec hi, short which)
{
	const vec_i16 order = {0,  2,  4,  6,  32, 34, 36, 38, 8,  10, 12, 14, 40, 42, 44, 46,
			       16, 18, 20, 22, 48, 50, 52, 54, 24, 26, 28, 30, 56, 58, 60, 62};
	return _mm512_permutex2var_epi16((__m512i)lo, (__m512i)(order + which), (__m512i)hi);
}

/*
 * To nearest even: 0x7fff and the last bit that stays are added to the lower half, whose carry
 * counts. It makes infinity of what is too large; NaN needs no care: its lower half is zero, as it
 * came from a bf16 or from the processor.
 */
#ifdef __AVX512VNNI__
/* x + 1 * 0x7fff + last bit * 1: a product of two pairs of 16-bit numbers, with the sum in one. */
VEC_INLINE vec bf16_round(vec x)
{
	__m512i bit = _mm512_set1_epi32(0x10000), one = _mm512_set1_epi32(1);
	__m512i last = _mm512_ternarylogic_epi32((__m512i)x, bit, one, 0xea); /* x & bit | one */
	return (vec)_mm512_dpwssd_epi32((__m512i)x, last, _mm512_set1_epi32(0x17fff));
}

VEC_INLINE void bf16_store(uint8_t *to, vec lo, vec hi)
{
	_mm512_storeu_si512(to, bf16_halves(bf16_round(lo), bf16_round(hi), 1));
}
#else
/* An average of 16-bit numbers adds with one bit more: its highest one is the carry. */
VEC_INLINE void bf16_store(uint8_t *to, vec lo, vec hi)
{
	__m512i upper = bf16_halves(lo, hi, 1), lower = bf16_halves(lo, hi, 0);
	__m512i one = _mm512_set1_epi16(1), most = _mm512_set1_epi16(0x7ffe);
	__m512i add = _mm512_ternarylogic_epi32(upper, one, most, 0xea); /* upper & one | most */
	__m512i carry = _mm512_srli_epi16(_mm512_avg_epu16(lower, add), 15);
	_mm512_storeu_si512(to, _mm512_add_epi16(upper, carry));
}
#endif

#ifdef __AVX512VNNI__
#define KERNEL_TABLE kernel_table_avx512vnni
#else
#define KERNEL_TABLE kernel_table_avx512
#endif
#include "kernel_body.h"
