/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels for any processor that gcc or clang knows: short vectors, nothing but C. */
#define VEC_BYTES 16
#include "kernel_vec.h"

#include "kernel_bf16.h"

VEC_MIN_MAX_BY_SELECT(i8)
VEC_MIN_MAX_BY_SELECT(i16)
VEC_MIN_MAX_BY_SELECT(i32)
VEC_MIN_MAX_BY_SELECT(i64)
VEC_MIN_MAX_BY_SELECT(u8)
VEC_MIN_MAX_BY_SELECT(u16)
VEC_MIN_MAX_BY_SELECT(u32)
VEC_MIN_MAX_BY_SELECT(u64)

/*
 * minimum and maximum of IEEE 754-2019. Both orders of the comparison: they differ for zeros of
 * unlike sign, where or-ing finds -0 and and-ing +0. A NaN of either side makes VEC_NAN.
 */
#define FLOAT_MIN_MAX(type)                                                             \
	VEC_INLINE vec unordered_##type(vec a, vec b)                                   \
	{                                                                               \
		return ((vec)((vec_##type)a != (vec_##type)a) |                         \
			(vec)((vec_##type)b != (vec_##type)b)) &                        \
		       VEC_NAN;                                                         \
	}                                                                               \
	VEC_INLINE vec min_##type(vec a, vec b)                                         \
	{                                                                               \
		return vec_select(VEC_LESS(type, a, b), a, b) |                         \
		       vec_select(VEC_LESS(type, b, a), b, a) | unordered_##type(a, b); \
	}                                                                               \
	VEC_INLINE vec max_##type(vec a, vec b)                                         \
	{                                                                               \
		return (vec_select(VEC_LESS(type, a, b), b, a) &                        \
			vec_select(VEC_LESS(type, b, a), a, b)) |                       \
		       unordered_##type(a, b);                                          \
	}
FLOAT_MIN_MAX(f32)
FLOAT_MIN_MAX(f64)

VEC_INLINE vec_u32 splat_u32(uint32_t value)
{
	return (vec_u32){0} + value;
}

/*
 * binary16 in the lower half of each lane to binary32: the exponent's bias is 15 there and 127
 * here, so that a product with 2^112 of the shifted bits is exact, for subnormals too.
 */
VEC_INLINE vec f16_widen(vec_u32 h)
{
	vec_u32 magnitude = (h & 0x7fff) << 13;
	vec_u32 value = (vec_u32)((vec_f32)magnitude * 0x1p112f);
	vec special = ~VEC_LESS(u32, magnitude, splat_u32(0x7c00u << 13));
	return (vec)(value | ((vec_u32)special & 0x7f800000) | (h & 0x8000) << 16);
}

/* The other way, to nearest even; what rounds beyond 65504 is infinity. Upper halves zero. */
VEC_INLINE vec_u32 f16_narrow(vec v)
{
	vec_u32 sign = (vec_u32)v >> 16 & 0x8000;
	vec_u32 f = (vec_u32)v & 0x7fffffff;
	vec_u32 normal = (f - (112u << 23) + 0xfff + (f >> 13 & 1)) >> 13;
	/* below 2^-14: 0.5 has a subnormal's last place, so the addition rounds there */
	vec_u32 subnormal = (vec_u32)((vec_f32)f + 0.5f) - 0x3f000000;
	vec_u32 nan = (f >> 13 & 0x3ff) | 0x7e00;
	vec r = vec_select(VEC_LESS(u32, f, splat_u32(0x38800000)), (vec)subnormal, (vec)normal);
	r = vec_select(VEC_LESS(u32, f, splat_u32(0x47800000)), r, (vec)splat_u32(0x7c00));
	r = vec_select(VEC_LESS(u32, splat_u32(0x7f800000), f), (vec)nan, r);
	return (vec_u32)r | sign;
}

VEC_INLINE void f16_load(const uint8_t *from, vec *lo, vec *hi)
{
	vec_u32 v = (vec_u32)vec_load(from);
	*lo = f16_widen(v & 0xffff);
	*hi = f16_widen(v >> 16);
}

VEC_INLINE void f16_store(uint8_t *to, vec lo, vec hi)
{
	vec_store(to, (vec)(f16_narrow(lo) | f16_narrow(hi) << 16));
}

#define KERNEL_TABLE kernel_table_c
#include "kernel_body.h"
