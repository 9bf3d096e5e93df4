/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of one level, for every operation and type, and their table KERNEL_TABLE. Included
 * once by each level after kernel_vec.h and its own min_t, max_t, sum_wide and conversions of
 * 16-bit floats: f16_load, f16_store, bf16_load, bf16_store.
 */
#include <assert.h>

#include "kernel_table.h"

/* The operand of one turn of a loop: two vectors as they are, or one of 16-bit floats widened. */
struct pair {
	vec lo, hi;
};

typedef struct pair pair_load_fn(const uint8_t *from);
typedef void pair_store_fn(uint8_t *to, struct pair p);
typedef vec vec_op_fn(vec a, vec b);

VEC_INLINE struct pair load_plain(const uint8_t *from)
{
	return (struct pair){vec_load(from), vec_load(from + VEC_BYTES)};
}

VEC_INLINE void store_plain(uint8_t *to, struct pair p)
{
	vec_store(to, p.lo);
	vec_store(to + VEC_BYTES, p.hi);
}

VEC_INLINE struct pair load_f16(const uint8_t *from)
{
	struct pair p;
	f16_load(from, &p.lo, &p.hi);
	return p;
}

VEC_INLINE void store_f16(uint8_t *to, struct pair p)
{
	f16_store(to, p.lo, p.hi);
}

VEC_INLINE struct pair load_bf16(const uint8_t *from)
{
	struct pair p;
	bf16_load(from, &p.lo, &p.hi);
	return p;
}

VEC_INLINE void store_bf16(uint8_t *to, struct pair p)
{
	bf16_store(to, p.lo, p.hi);
}

/*
 * Minimum and maximum of 16-bit floats need no conversion: with the other bits of negative ones
 * turned round, they are ordered like integers, -0 before +0. What is beyond infinity is NaN and
 * makes all bits ones, which is one.
 */
VEC_INLINE vec half_order(vec v)
{
	return (vec)((vec_i16)v ^ ((vec_i16)v >> 15 & 0x7fff));
}

VEC_INLINE vec half_nan(vec a, vec b, vec infinite)
{
	vec_i16 magnitude = (vec_i16){0} + 0x7fff;
	return VEC_LESS(i16, infinite, max_i16(a & (vec)magnitude, b & (vec)magnitude));
}

#define HALF_MIN_MAX(type, infinite)                                            \
	VEC_INLINE vec min_##type(vec a, vec b)                                 \
	{                                                                       \
		vec nan = half_nan(a, b, (vec)((vec_i16){0} + (infinite)));     \
		return half_order(min_i16(half_order(a), half_order(b))) | nan; \
	}                                                                       \
	VEC_INLINE vec max_##type(vec a, vec b)                                 \
	{                                                                       \
		vec nan = half_nan(a, b, (vec)((vec_i16){0} + (infinite)));     \
		return half_order(max_i16(half_order(a), half_order(b))) | nan; \
	}
HALF_MIN_MAX(f16, 0x7c00)
HALF_MIN_MAX(bf16, 0x7f80)

VEC_INLINE struct pair pair_apply(struct pair a, struct pair b, vec_op_fn *op)
{
	return (struct pair){op(a.lo, b.lo), op(a.hi, b.hi)};
}

/*
 * The end of the ranges, shorter than a turn, goes through a buffer. The turn's result is a
 * function of its elements one by one, so what stands behind them does not matter.
 */
struct rest {
	uint8_t bytes[2 * VEC_BYTES];
};

VEC_INLINE struct pair rest_load(const void *from, uint32_t bytes, pair_load_fn *load)
{
	struct rest r = {{0}};
	memcpy(r.bytes, from, bytes);
	return load(r.bytes);
}

VEC_INLINE void rest_store(void *to, uint32_t bytes, struct pair p, pair_store_fn *store)
{
	struct rest r;
	store(r.bytes, p);
	memcpy(to, r.bytes, bytes);
}

VEC_INLINE void body_pass(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t bytes,
			  uint32_t turn, pair_load_fn *load, pair_store_fn *store, vec_op_fn *op,
			  kernel_fn *rest)
{
	uint32_t i = 0;
	for (; bytes - i >= turn; i += turn)
		store(to + i, pair_apply(load(a + i), load(b + i), op));
	if (i < bytes)
		rest(to + i, a + i, b + i, bytes - i);
}

/* Apart from body_pass, which so needs no stack: most ranges are whole turns. */
VEC_INLINE void body_rest(uint8_t *to, const uint8_t *a, const uint8_t *b, uint32_t bytes,
			  pair_load_fn *load, pair_store_fn *store, vec_op_fn *op)
{
	struct pair p = rest_load(a, bytes, load), q = rest_load(b, bytes, load);
	rest_store(to, bytes, pair_apply(p, q, op), store);
}

VEC_INLINE void body_many(uint8_t *to, const uint8_t *const *x, uint32_t count, uint32_t bytes,
			  uint32_t turn, pair_load_fn *load, pair_store_fn *store, vec_op_fn *op)
{
	uint32_t i = 0;
	assert(count >= 1 && count <= KERNEL_SOURCES_MAX);
	for (; bytes - i >= turn; i += turn) {
		struct pair acc = load(x[0] + i);
		for (uint32_t k = 1; k < count; k++)
			acc = pair_apply(acc, load(x[k] + i), op);
		store(to + i, acc);
	}
	if (i < bytes) {
		struct pair acc = rest_load(x[0] + i, bytes - i, load);
		for (uint32_t k = 1; k < count; k++)
			acc = pair_apply(acc, rest_load(x[k] + i, bytes - i, load), op);
		rest_store(to + i, bytes - i, acc, store);
	}
}

#define BODY(op, type, turn, how, lanes)                                                           \
	static __attribute__((noinline)) void rest_##op##_##type(void *to, const void *a,          \
								 const void *b, uint32_t bytes)    \
	{                                                                                          \
		body_rest(to, a, b, bytes, load_##how, store_##how, op##_##lanes);                 \
	}                                                                                          \
	static void pass_##op##_##type(void *to, const void *a, const void *b, uint32_t bytes)     \
	{                                                                                          \
		body_pass(to, a, b, bytes, turn, load_##how, store_##how, op##_##lanes,            \
			  rest_##op##_##type);                                                     \
	}                                                                                          \
	static void many_##op##_##type(void *to, const void *const *x, uint32_t n, uint32_t bytes) \
	{                                                                                          \
		if (n == 2)                                                                        \
			pass_##op##_##type(to, x[0], x[1], bytes);                                 \
		else                                                                               \
			body_many(to, (const uint8_t *const *)x, n, bytes, turn, load_##how,       \
				  store_##how, op##_##lanes);                                      \
	}
#define BODY_ARITHMETIC(type, turn, how, lanes) \
	BODY(sum, type, turn, how, lanes)       \
	BODY(prod, type, turn, how, lanes)
#define BODY_ORDER(type, turn, how, lanes) \
	BODY(min, type, turn, how, lanes)  \
	BODY(max, type, turn, how, lanes)
#define BODY_ALL(type, turn, how, lanes)        \
	BODY_ARITHMETIC(type, turn, how, lanes) \
	BODY_ORDER(type, turn, how, lanes)

BODY_ARITHMETIC(f16, VEC_BYTES, f16, wide)
BODY_ARITHMETIC(bf16, VEC_BYTES, bf16, f32)
BODY_ORDER(f16, 2 * VEC_BYTES, plain, f16)
BODY_ORDER(bf16, 2 * VEC_BYTES, plain, bf16)
BODY_ALL(f32, 2 * VEC_BYTES, plain, f32)
BODY_ALL(f64, 2 * VEC_BYTES, plain, f64)
BODY_ALL(u8, 2 * VEC_BYTES, plain, u8)
BODY_ALL(u16, 2 * VEC_BYTES, plain, u16)
BODY_ALL(u32, 2 * VEC_BYTES, plain, u32)
BODY_ALL(u64, 2 * VEC_BYTES, plain, u64)
BODY_ORDER(i8, 2 * VEC_BYTES, plain, i8)
BODY_ORDER(i16, 2 * VEC_BYTES, plain, i16)
BODY_ORDER(i32, 2 * VEC_BYTES, plain, i32)
BODY_ORDER(i64, 2 * VEC_BYTES, plain, i64)

VEC_INLINE vec quotient_f32(vec a, vec b)
{
	return (vec)((vec_f32)a / (vec_f32)b);
}

VEC_INLINE vec quotient_f64(vec a, vec b)
{
	return (vec)((vec_f64)a / (vec_f64)b);
}

VEC_INLINE void body_scale(uint8_t *to, vec n, uint32_t bytes, uint32_t turn, pair_load_fn *load,
			   pair_store_fn *store, vec_op_fn *op)
{
	struct pair by = {n, n};
	uint32_t i = 0;
	for (; bytes - i >= turn; i += turn)
		store(to + i, pair_apply(load(to + i), by, op));
	if (i < bytes)
		rest_store(to + i, bytes - i,
			   pair_apply(rest_load(to + i, bytes - i, load), by, op), store);
}

#define SCALE_FLOAT(type, turn, how, lanes, scalar)                                         \
	static void scale_##type(void *to, uint32_t n, uint32_t bytes)                      \
	{                                                                                   \
		vec by = (vec)((vec_##lanes){0} + (scalar)n);                               \
		assert(n > 0);                                                              \
		body_scale(to, by, bytes, turn, load_##how, store_##how, quotient_##lanes); \
	}
SCALE_FLOAT(f16, VEC_BYTES, f16, f32, float)
SCALE_FLOAT(bf16, VEC_BYTES, bf16, f32, float)
SCALE_FLOAT(f32, 2 * VEC_BYTES, plain, f32, float)
SCALE_FLOAT(f64, 2 * VEC_BYTES, plain, f64, double)

/*
 * Integers divide towards zero. Up to 32 bits in binary64: for |x| < 2^32 and n < 2^32 an inexact
 * x / n is at least 1 / n away from the next integer, far more than its rounding.
 */
#define SCALE_INT(type, wide)                                                    \
	static void scale_##type(void *to, uint32_t n, uint32_t bytes)           \
	{                                                                        \
		typedef type##_t __attribute__((aligned(1), may_alias)) element; \
		element *x = to;                                                 \
		wide by = (wide)n;                                               \
		assert(n > 0);                                                   \
		for (uint32_t i = 0; i < bytes / sizeof(*x); i++)                \
			x[i] = (type##_t)((wide)x[i] / by);                      \
	}
SCALE_INT(int8, double)
SCALE_INT(int16, double)
SCALE_INT(int32, double)
SCALE_INT(int64, int64_t)
SCALE_INT(uint8, double)
SCALE_INT(uint16, double)
SCALE_INT(uint32, double)
SCALE_INT(uint64, uint64_t)

/* clang-format off */
/* wraps: the type whose sums and products are the same bits */
#define ROWS(X) \
	X(F16, f16, f16) X(BF16, bf16, bf16) X(F32, f32, f32) X(F64, f64, f64) \
	X(I8, i8, u8) X(I16, i16, u16) X(I32, i32, u32) X(I64, i64, u64) \
	X(U8, u8, u8) X(U16, u16, u16) X(U32, u32, u32) X(U64, u64, u64)
#define PASS_SUM(TYPE, type, wraps)  [REDUCE_##TYPE] = pass_sum_##wraps,
#define PASS_PROD(TYPE, type, wraps) [REDUCE_##TYPE] = pass_prod_##wraps,
#define PASS_MIN(TYPE, type, wraps)  [REDUCE_##TYPE] = pass_min_##type,
#define PASS_MAX(TYPE, type, wraps)  [REDUCE_##TYPE] = pass_max_##type,
#define MANY_SUM(TYPE, type, wraps)  [REDUCE_##TYPE] = many_sum_##wraps,
#define MANY_PROD(TYPE, type, wraps) [REDUCE_##TYPE] = many_prod_##wraps,
#define MANY_MIN(TYPE, type, wraps)  [REDUCE_##TYPE] = many_min_##type,
#define MANY_MAX(TYPE, type, wraps)  [REDUCE_##TYPE] = many_max_##type,

const struct kernel_table KERNEL_TABLE = {
	.pass = {
		[REDUCE_SUM] = {ROWS(PASS_SUM)}, [REDUCE_PROD] = {ROWS(PASS_PROD)},
		[REDUCE_MIN] = {ROWS(PASS_MIN)}, [REDUCE_MAX] = {ROWS(PASS_MAX)},
	},
	.many = {
		[REDUCE_SUM] = {ROWS(MANY_SUM)}, [REDUCE_PROD] = {ROWS(MANY_PROD)},
		[REDUCE_MIN] = {ROWS(MANY_MIN)}, [REDUCE_MAX] = {ROWS(MANY_MAX)},
	},
	.scale = {
		[REDUCE_F16] = scale_f16, [REDUCE_BF16] = scale_bf16,
		[REDUCE_F32] = scale_f32, [REDUCE_F64] = scale_f64,
		[REDUCE_I8] = scale_int8, [REDUCE_I16] = scale_int16,
		[REDUCE_I32] = scale_int32, [REDUCE_I64] = scale_int64,
		[REDUCE_U8] = scale_uint8, [REDUCE_U16] = scale_uint16,
		[REDUCE_U32] = scale_uint32, [REDUCE_U64] = scale_uint64,
	},
};
/* clang-format on */
