/* SPDX-License-Identifier: BSD-3-Clause */
#include "accumulate.h"

#include <math.h>
#include <string.h>
#include "internal/reduce.h"

#define INTEGERS(type, wide)                                                                   \
	static void accumulate_##type(uint32_t op, type *to, const type *from, uint64_t count) \
	{                                                                                      \
		for (uint64_t i = 0; i < count; i++)                                           \
			to[i] = op == REDUCE_SUM    ? (type)((wide)to[i] + (wide)from[i])      \
				: op == REDUCE_PROD ? (type)((wide)to[i] * (wide)from[i])      \
				: op == REDUCE_MIN  ? (from[i] < to[i] ? from[i] : to[i])      \
						    : (from[i] > to[i] ? from[i] : to[i]);      \
	}
INTEGERS(int8_t, uint32_t)
INTEGERS(int16_t, uint32_t)
INTEGERS(int32_t, uint32_t)
INTEGERS(int64_t, uint64_t)
INTEGERS(uint8_t, uint32_t)
INTEGERS(uint16_t, uint32_t)
INTEGERS(uint32_t, uint32_t)
INTEGERS(uint64_t, uint64_t)

/* minimum and maximum of IEEE 754-2019: a NaN makes NaN, -0 < +0. */
#define FLOATS(type)                                                                           \
	static type of_##type(uint32_t op, type a, type b)                                     \
	{                                                                                      \
		if (op == REDUCE_SUM)                                                          \
			return a + b;                                                          \
		if (op == REDUCE_PROD)                                                         \
			return a * b;                                                          \
		if (isnan(a) || isnan(b))                                                      \
			return a + b;                                                          \
		if (a == b)                                                                    \
			return (op == REDUCE_MIN) == (signbit(a) != 0) ? a : b;                \
		return (op == REDUCE_MIN) == (a < b) ? a : b;                                  \
	}                                                                                      \
	static void accumulate_##type(uint32_t op, type *to, const type *from, uint64_t count) \
	{                                                                                      \
		for (uint64_t i = 0; i < count; i++)                                           \
			to[i] = of_##type(op, to[i], from[i]);                                 \
	}
FLOATS(float)
FLOATS(double)

static float read_bf16(uint16_t v)
{
	uint32_t bits = (uint32_t)v << 16;
	float f;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* To nearest even. */
static uint16_t write_bf16(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof(bits));
	if (isnan(f))
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float read_f16(uint16_t v)
{
	int exponent = v >> 10 & 31, fraction = v & 1023;
	float f = exponent == 31  ? (fraction ? NAN : INFINITY)
		  : exponent == 0 ? ldexpf((float)fraction, -24)
				  : ldexpf((float)(fraction | 1024), exponent - 25);
	return v & 0x8000 ? -f : f;
}

static uint16_t write_f16(float f)
{
	uint16_t sign = signbit(f) ? 0x8000 : 0;
	int exponent;
	if (isnan(f))
		return sign | 0x7e00;
	f = fabsf(f);
	if (f >= 65520)
		return sign | 0x7c00;
	frexpf(f, &exponent);
	if (f == 0 || exponent < -13) /* subnormal; 2^-14 itself comes out right, too */
		return sign | (uint16_t)rintf(ldexpf(f, 24));
	/* 1024 to 2048: the latter carries into the exponent */
	return (uint16_t)(sign | (((exponent + 14) << 10) +
				  ((int)rintf(ldexpf(f, 11 - exponent)) - 1024)));
}

#define HALVES(type)                                                                     \
	static void accumulate_##type(uint32_t op, uint16_t *to, const uint16_t *from,   \
				      uint64_t count)                                    \
	{                                                                                \
		for (uint64_t i = 0; i < count; i++)                                     \
			to[i] = write_##type(                                            \
				of_float(op, read_##type(to[i]), read_##type(from[i]))); \
	}
HALVES(bf16)
HALVES(f16)

void accumulate(uint32_t op, uint32_t dtype, void *to, const void *from, uint64_t count)
{
	if (op < REDUCE_SUM || op > REDUCE_MAX)
		return;
#define CASE(number, type)                              \
	case number:                                    \
		accumulate_##type(op, to, from, count); \
		break
	switch (dtype) {
		CASE(REDUCE_F16, f16);
		CASE(REDUCE_BF16, bf16);
		CASE(REDUCE_F32, float);
		CASE(REDUCE_F64, double);
		CASE(REDUCE_I8, int8_t);
		CASE(REDUCE_I16, int16_t);
		CASE(REDUCE_I32, int32_t);
		CASE(REDUCE_I64, int64_t);
		CASE(REDUCE_U8, uint8_t);
		CASE(REDUCE_U16, uint16_t);
		CASE(REDUCE_U32, uint32_t);
		CASE(REDUCE_U64, uint64_t);
	default:
		break;
	}
}
