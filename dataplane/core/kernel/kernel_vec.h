/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A vector of VEC_BYTES bytes and what is the same in every instruction set: for each type t,
 * vec_t (its lanes), sum_t and prod_t. The level that includes this adds min_t, max_t and the
 * conversions of binary16, and then includes kernel_body.h. Vector extensions of gcc and clang;
 * signed and unsigned share the operations that wrap.
 */
#include <stdint.h>
#include <string.h>

#define VEC_INLINE static inline __attribute__((always_inline))

typedef uint8_t vec __attribute__((vector_size(VEC_BYTES)));
typedef uint8_t vec_unaligned __attribute__((vector_size(VEC_BYTES), aligned(1), may_alias));

typedef float vec_f32 __attribute__((vector_size(VEC_BYTES)));
typedef double vec_f64 __attribute__((vector_size(VEC_BYTES)));
typedef int8_t vec_i8 __attribute__((vector_size(VEC_BYTES)));
typedef int16_t vec_i16 __attribute__((vector_size(VEC_BYTES)));
typedef int32_t vec_i32 __attribute__((vector_size(VEC_BYTES)));
typedef int64_t vec_i64 __attribute__((vector_size(VEC_BYTES)));
typedef uint8_t vec_u8 __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t vec_u16 __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t vec_u32 __attribute__((vector_size(VEC_BYTES)));
typedef uint64_t vec_u64 __attribute__((vector_size(VEC_BYTES)));

VEC_INLINE vec vec_load(const uint8_t *from)
{
	return (vec) * (const vec_unaligned *)from;
}

VEC_INLINE void vec_store(uint8_t *to, vec v)
{
	*(vec_unaligned *)to = (vec_unaligned)v;
}

/* A NaN as minimum and maximum make it: quiet, and in a binary32 the lower half is zero. */
#define VEC_NAN ((vec)((vec_u32){0} + 0xffff0000))

/* Lanes of yes where mask is all ones, of no where it is all zeros. */
VEC_INLINE vec vec_select(vec mask, vec yes, vec no)
{
	return (mask & yes) | (~mask & no);
}

#define VEC_LESS(type, a, b) ((vec)((vec_##type)(a) < (vec_##type)(b)))

/* A product of two f16 that were widened. */
#define prod_wide prod_f32

#define VEC_ARITHMETIC(type)                                 \
	VEC_INLINE vec sum_##type(vec a, vec b)              \
	{                                                    \
		return (vec)((vec_##type)a + (vec_##type)b); \
	}                                                    \
	VEC_INLINE vec prod_##type(vec a, vec b)             \
	{                                                    \
		return (vec)((vec_##type)a * (vec_##type)b); \
	}
VEC_ARITHMETIC(f32)
VEC_ARITHMETIC(f64)
VEC_ARITHMETIC(u8)
VEC_ARITHMETIC(u16)
VEC_ARITHMETIC(u32)
VEC_ARITHMETIC(u64)

/* min_t and max_t of integers where the level has no instruction for them. */
#define VEC_MIN_MAX_BY_SELECT(type)                            \
	VEC_INLINE vec min_##type(vec a, vec b)                \
	{                                                      \
		return vec_select(VEC_LESS(type, a, b), a, b); \
	}                                                      \
	VEC_INLINE vec max_##type(vec a, vec b)                \
	{                                                      \
		return vec_select(VEC_LESS(type, a, b), b, a); \
	}

/* And where it has one. */
#define VEC_MIN_MAX_NATIVE(type, prefix, suffix, native)                 \
	VEC_INLINE vec min_##type(vec a, vec b)                          \
	{                                                                \
		return (vec)prefix##_min_##suffix((native)a, (native)b); \
	}                                                                \
	VEC_INLINE vec max_##type(vec a, vec b)                          \
	{                                                                \
		return (vec)prefix##_max_##suffix((native)a, (native)b); \
	}
