/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_reference.h"

#include <math.h>
#include <string.h>

#include "internal/reduce.h"

struct format {
	int fraction_bits, exponent_bits;
};

static bool is_float(uint32_t dtype)
{
	return dtype <= REDUCE_F64;
}

static bool is_signed(uint32_t dtype)
{
	return dtype < REDUCE_U8;
}

static struct format format_of(uint32_t dtype)
{
	static const struct format formats[] = {[REDUCE_F16] = {10, 5},
						[REDUCE_BF16] = {7, 8},
						[REDUCE_F32] = {23, 8},
						[REDUCE_F64] = {52, 11}};
	return formats[dtype];
}

/* The element's bits and no others, signed integers extended to 64 bits. */
static uint64_t clip(uint32_t dtype, uint64_t bits)
{
	uint32_t unused = 64 - 8 * reduce_dtype_bytes(dtype);
	bits = bits << unused >> unused;
	if (!is_float(dtype) && is_signed(dtype) && bits >> (63 - unused) & 1)
		bits |= ~(UINT64_MAX >> unused);
	return bits;
}

double reference_decode(uint32_t dtype, uint64_t bits)
{
	bits = clip(dtype, bits);
	struct format f = format_of(dtype);
	uint64_t fraction = bits & ((UINT64_C(1) << f.fraction_bits) - 1);
	int top = (1 << f.exponent_bits) - 1, exponent = (int)(bits >> f.fraction_bits) & top;
	bool negative = bits >> (f.fraction_bits + f.exponent_bits) & 1;
	double v;
	if (exponent == top)
		v = fraction ? NAN : INFINITY;
	else if (exponent == 0)
		v = ldexp((double)fraction, 1 - top / 2 - f.fraction_bits);
	else
		v = ldexp((double)(fraction | UINT64_C(1) << f.fraction_bits),
			  exponent - top / 2 - f.fraction_bits);
	return negative ? -v : v;
}

uint64_t reference_encode(uint32_t dtype, double v)
{
	if (!is_float(dtype))
		return clip(dtype, (uint64_t)(int64_t)v);
	struct format f = format_of(dtype);
	uint64_t sign = (uint64_t)(signbit(v) != 0) << (f.fraction_bits + f.exponent_bits);
	int top = (1 << f.exponent_bits) - 1, least = 1 - top / 2;
	uint64_t infinite = (uint64_t)top << f.fraction_bits;
	if (isnan(v))
		return infinite | UINT64_C(1) << (f.fraction_bits - 1);
	if (isinf(v))
		return sign | infinite;
	if (v == 0)
		return sign;
	int exponent = ilogb(v) < least ? least : ilogb(v);
	/* in units of the last place, ties to even; a carry runs on into the exponent */
	uint64_t places = (uint64_t)nearbyint(ldexp(fabs(v), f.fraction_bits - exponent));
	uint64_t bits = ((uint64_t)(exponent - least) << f.fraction_bits) + places;
	return sign | (bits > infinite ? infinite : bits);
}

bool reference_same(uint32_t dtype, uint64_t a, uint64_t b)
{
	a = clip(dtype, a);
	b = clip(dtype, b);
	return a == b || (is_float(dtype) && isnan(reference_decode(dtype, a)) &&
			  isnan(reference_decode(dtype, b)));
}

/* IEEE 754-2019: minimum and maximum. */
static double least(double a, double b)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return signbit(a) ? a : b;
	return a < b ? a : b;
}

/* In the precision in which the type accumulates. */
static double combine_float(uint32_t op, uint32_t dtype, double a, double b)
{
	if (op == REDUCE_MIN)
		return least(a, b);
	if (op == REDUCE_MAX)
		return -least(-a, -b);
	if (dtype == REDUCE_F64)
		return op == REDUCE_PROD ? a * b : a + b;
	/* of two binary32 a sum or product in binary64, rounded again, is the one rounded once */
	return (float)(op == REDUCE_PROD ? a * b : a + b);
}

static uint64_t combine_int(uint32_t op, uint32_t dtype, uint64_t a, uint64_t b)
{
	bool less = is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;
	switch (op) {
	case REDUCE_PROD:
		return clip(dtype, a * b);
	case REDUCE_MIN:
		return less ? a : b;
	case REDUCE_MAX:
		return less ? b : a;
	default:
		return clip(dtype, a + b);
	}
}

uint64_t reference_fold(uint32_t op, uint32_t dtype, const uint64_t *x, uint32_t count)
{
	if (!is_float(dtype)) {
		uint64_t acc = clip(dtype, x[0]);
		for (uint32_t k = 1; k < count; k++)
			acc = combine_int(op, dtype, acc, clip(dtype, x[k]));
		return acc;
	}
	double acc = reference_decode(dtype, x[0]);
	for (uint32_t k = 1; k < count; k++)
		acc = combine_float(op, dtype, acc, reference_decode(dtype, x[k]));
	return reference_encode(dtype, acc);
}

uint64_t reference_scale(uint32_t dtype, uint64_t x, uint32_t n)
{
	x = clip(dtype, x);
	if (dtype == REDUCE_F64)
		return reference_encode(dtype, reference_decode(dtype, x) / n);
	if (is_float(dtype))
		return reference_encode(dtype, (float)reference_decode(dtype, x) / (float)n);
	return clip(dtype, is_signed(dtype) ? (uint64_t)((int64_t)x / (int64_t)n) : x / n);
}

uint64_t reference_edge(uint32_t dtype, uint32_t index)
{
	uint32_t width = 8 * reduce_dtype_bytes(dtype);
	uint64_t sign = UINT64_C(1) << (width - 1);
	uint64_t flip = index & 1 ? sign : 0;
	index >>= 1;
	if (!is_float(dtype)) {
		const uint64_t edges[] = {0, 1, sign - 1, sign - 2, sign / 2, 2, 3};
		return clip(dtype, edges[index % 7] ^ flip);
	}
	uint64_t unit = UINT64_C(1) << format_of(dtype).fraction_bits; /* of the exponent */
	uint64_t infinite = sign - unit;
	const uint64_t edges[] = {0,
				  1,
				  unit - 1,
				  unit,
				  unit + 1,
				  infinite - 1,
				  infinite,
				  infinite + 1,
				  infinite | unit / 2,
				  infinite - unit,
				  2 * unit,
				  2};
	return edges[index % 12] | flip;
}
