/* SPDX-License-Identifier: BSD-3-Clause */
/* What the numbers of a reduce ought to be: one element at a time, in the widest type. */
#include "tree.h"

#include <math.h>
#include <string.h>

uint32_t tree_element(const struct tree *t)
{
	return reduce_dtype_bytes(t->dtype);
}

static bool tree_is_float(const struct tree *t)
{
	return t->dtype == REDUCE_F32 || t->dtype == REDUCE_F64;
}

static bool tree_is_signed(const struct tree *t)
{
	return t->dtype >= REDUCE_I8 && t->dtype <= REDUCE_I64;
}

static double tree_float(const struct tree *t, const uint8_t *p)
{
	float f;
	double d;
	if (t->dtype == REDUCE_F64) {
		memcpy(&d, p, sizeof(d));
		return d;
	}
	memcpy(&f, p, sizeof(f));
	return f;
}

static void tree_put_float(const struct tree *t, uint8_t *p, double d)
{
	float f = (float)d;
	memcpy(p, t->dtype == REDUCE_F64 ? (void *)&d : (void *)&f, tree_element(t));
}

/* Sign-extended where the type has a sign. */
static uint64_t tree_integer(const struct tree *t, const uint8_t *p)
{
	uint32_t bits = 8 * tree_element(t);
	uint64_t v = 0;
	memcpy(&v, p, bits / 8);
	if (tree_is_signed(t) && bits < 64 && v >> (bits - 1))
		v |= UINT64_MAX << bits;
	return v;
}

void tree_draw(struct tree *t, uint8_t *content, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += tree_element(t)) {
		uint64_t v = prng_next(&t->prng);
		if (tree_is_float(t))
			tree_put_float(t, content + at, (double)(int64_t)v / 0x1p62);
		else
			memcpy(content + at, &v, tree_element(t));
	}
}

static double tree_of_floats(const struct tree *t, double a, double b)
{
	switch (t->op) {
	case REDUCE_PROD:
		return a * b;
	case REDUCE_MIN:
		return a < b ? a : b;
	case REDUCE_MAX:
		return a > b ? a : b;
	default:
		return a + b;
	}
}

static uint64_t tree_of_integers(const struct tree *t, uint64_t a, uint64_t b)
{
	bool less = tree_is_signed(t) ? (int64_t)a < (int64_t)b : a < b;
	switch (t->op) {
	case REDUCE_PROD:
		return a * b;
	case REDUCE_MIN:
		return less ? a : b;
	case REDUCE_MAX:
		return less ? b : a;
	default:
		return a + b;
	}
}

void tree_expect(const struct tree *t, uint8_t *into, const uint8_t *from)
{
	for (uint64_t at = 0; at < t->size; at += tree_element(t)) {
		if (tree_is_float(t)) {
			tree_put_float(t, into + at,
				       tree_of_floats(t, tree_float(t, into + at),
						      tree_float(t, from + at)));
			continue;
		}
		uint64_t v =
			tree_of_integers(t, tree_integer(t, into + at), tree_integer(t, from + at));
		memcpy(into + at, &v, tree_element(t));
	}
}

void tree_expect_scale(const struct tree *t, uint8_t *into, uint32_t by)
{
	for (uint64_t at = 0; at < t->size; at += tree_element(t)) {
		if (tree_is_float(t)) {
			tree_put_float(t, into + at, tree_float(t, into + at) / by);
			continue;
		}
		uint64_t v = tree_integer(t, into + at) / by; /* unsigned types only */
		memcpy(into + at, &v, tree_element(t));
	}
}

uint64_t tree_compare(const struct tree *t, const uint8_t *have, const uint8_t *want,
		      uint64_t bytes)
{
	/* each of some 30 steps, in either order, is off by half a unit of at most 2 * 30 */
	double bound = t->op == REDUCE_PROD ? 0x1p32 : 64;
	bound *= 64 * (t->dtype == REDUCE_F64 ? 0x1p-52 : 0x1p-23);
	for (uint64_t at = 0; at < bytes; at += tree_element(t)) {
		if (!tree_is_float(t)) {
			if (memcmp(have + at, want + at, tree_element(t)) != 0)
				return at;
			continue;
		}
		double w = tree_float(t, want + at), h = tree_float(t, have + at);
		double scale = t->op == REDUCE_PROD ? fabs(w) * 0x1p-32 : 1;
		if (!(fabs(h - w) <= bound * scale + 0x1p-120))
			return at;
	}
	return bytes;
}
