/* SPDX-License-Identifier: BSD-3-Clause */
/* Every kernel of every level against the arithmetic of kernel_reference.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "kernel/kernel.h"
#include "fixtures/kernel_reference.h"

enum { GUARD_BYTES = 64, GUARD = 0xa5, BYTES_MAX = 4096 };

static uint64_t seed = 1;

static uint64_t draw(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) ^ (seed << 17);
}

/* Ends exactly where its allocation ends, so that a sanitizer sees a read beyond. */
struct range {
	uint8_t *block, *at;
};

static struct range range_new(uint32_t bytes, uint32_t misalignment)
{
	struct range r;
	r.block = malloc(GUARD_BYTES + misalignment + bytes);
	assert_non_null(r.block);
	memset(r.block, GUARD, GUARD_BYTES + misalignment);
	r.at = r.block + GUARD_BYTES + misalignment;
	return r;
}

/* Frees it, after a look at the bytes before it; those after it are the sanitizer's. */
static void range_free(struct range *r)
{
	for (const uint8_t *p = r->block; p < r->at; p++)
		assert_int_equal(*p, GUARD);
	free(r->block);
}

/* A third any bits (all kinds of NaN, subnormals), a third edges, a third numbers near 1. */
static uint64_t draw_element(uint32_t dtype)
{
	uint64_t kind = draw() % 3;
	if (kind == 0)
		return draw() ^ draw() << 32;
	return kind == 1 ? reference_edge(dtype, (uint32_t)draw())
			 : reference_encode(dtype, (double)((int64_t)(draw() % 513) - 256) / 64);
}

static void range_fill(struct range *r, uint32_t dtype, uint32_t bytes)
{
	uint32_t size = reduce_dtype_bytes(dtype);
	for (uint32_t i = 0; i < bytes; i += size) {
		uint64_t bits = draw_element(dtype);
		memcpy(r->at + i, &bits, size);
	}
}

static uint64_t element(const uint8_t *at, uint32_t dtype)
{
	uint64_t bits = 0;
	memcpy(&bits, at, reduce_dtype_bytes(dtype));
	return bits;
}

static void expect(uint32_t dtype, uint64_t got, uint64_t want, const char *what)
{
	if (reference_same(dtype, got, want))
		return;
	fail_msg("%s %s: got %#llx, expected %#llx", reduce_dtype_name(dtype), what,
		 (unsigned long long)got, (unsigned long long)want);
}

struct kernel_case {
	enum kernel_level level;
	uint32_t op, dtype;
};

typedef void case_fn(const struct kernel_case *c);

static void for_all(case_fn *run)
{
	for (enum kernel_level level = KERNEL_C; level <= kernel_level_best(); level++)
		for (uint32_t op = 1; op < REDUCE_OP_END; op++)
			for (uint32_t dtype = 1; dtype < REDUCE_DTYPE_END; dtype++)
				run(&(struct kernel_case){level, op, dtype});
}

enum place { SEPARATE, TO_IS_A, TO_IS_PAYLOAD, PLACES };

static void check_pass(const struct kernel_case *c, uint32_t bytes, enum place place)
{
	uint32_t size = reduce_dtype_bytes(c->dtype);
	struct range a = range_new(bytes, draw() % 64), b = range_new(bytes, draw() % 64);
	struct range separate = range_new(bytes, draw() % 64);
	uint8_t *to = place == TO_IS_A ? a.at : place == TO_IS_PAYLOAD ? b.at : separate.at;
	uint8_t was[2][BYTES_MAX];
	range_fill(&a, c->dtype, bytes);
	range_fill(&b, c->dtype, bytes);
	memcpy(was[0], a.at, bytes);
	memcpy(was[1], b.at, bytes);
	kernel_find(c->level, c->op, c->dtype)(to, a.at, b.at, bytes);
	for (uint32_t i = 0; i < bytes; i += size) {
		uint64_t x[2] = {element(was[0] + i, c->dtype), element(was[1] + i, c->dtype)};
		expect(c->dtype, element(to + i, c->dtype), reference_fold(c->op, c->dtype, x, 2),
		       reduce_op_name(c->op));
	}
	assert_true(to == a.at || memcmp(a.at, was[0], bytes) == 0);
	assert_true(to == b.at || memcmp(b.at, was[1], bytes) == 0);
	range_free(&a);
	range_free(&b);
	range_free(&separate);
}

static void case_pass(const struct kernel_case *c)
{
	uint32_t size = reduce_dtype_bytes(c->dtype);
	for (uint32_t bytes = 0; bytes <= 3 * 128 + size; bytes += size)
		check_pass(c, bytes, (bytes / size) % PLACES);
	for (enum place place = 0; place < PLACES; place++) {
		check_pass(c, size, place);
		check_pass(c, 1408, place);
		check_pass(c, BYTES_MAX - size, place);
	}
}

static void test_pass(void **state)
{
	for_all(case_pass);
}

static void check_many(const struct kernel_case *c, uint32_t count, uint32_t bytes)
{
	uint32_t size = reduce_dtype_bytes(c->dtype), target = (uint32_t)draw() % (count + 1);
	struct range x[KERNEL_SOURCES_MAX], separate = range_new(bytes, draw() % 64);
	static uint8_t was[KERNEL_SOURCES_MAX][BYTES_MAX];
	const void *from[KERNEL_SOURCES_MAX];
	for (uint32_t k = 0; k < count; k++) {
		x[k] = range_new(bytes, draw() % 64);
		range_fill(&x[k], c->dtype, bytes);
		memcpy(was[k], x[k].at, bytes);
		from[k] = x[k].at;
	}
	uint8_t *to = target < count ? x[target].at : separate.at;
	kernel_find_many(c->level, c->op, c->dtype)(to, from, count, bytes);
	for (uint32_t i = 0; i < bytes; i += size) {
		uint64_t e[KERNEL_SOURCES_MAX];
		for (uint32_t k = 0; k < count; k++)
			e[k] = element(was[k] + i, c->dtype);
		expect(c->dtype, element(to + i, c->dtype),
		       reference_fold(c->op, c->dtype, e, count), "of many");
	}
	for (uint32_t k = 0; k < count; k++) {
		assert_true(k == target || memcmp(x[k].at, was[k], bytes) == 0);
		range_free(&x[k]);
	}
	range_free(&separate);
}

static void case_many(const struct kernel_case *c)
{
	uint32_t size = reduce_dtype_bytes(c->dtype);
	for (uint32_t count = 1; count <= KERNEL_SOURCES_MAX; count++) {
		check_many(c, count, 0);
		check_many(c, count, size);
		check_many(c, count, 128 + count * size);
		check_many(c, count, 1408 - size);
	}
}

static void test_many(void **state)
{
	for_all(case_many);
}

static void case_scale(const struct kernel_case *c)
{
	static const uint32_t by[] = {1,   2,	3,   7,	    10,	      16,
				      100, 255, 256, 65537, 1u << 31, UINT32_MAX};
	uint32_t size = reduce_dtype_bytes(c->dtype);
	for (uint32_t j = 0; j < sizeof(by) / sizeof(*by); j++) {
		for (uint32_t bytes = 0; bytes <= 320; bytes += size) {
			struct range x = range_new(bytes, draw() % 64);
			uint8_t was[320];
			range_fill(&x, c->dtype, bytes);
			memcpy(was, x.at, bytes);
			kernel_find_scale(c->level, c->dtype)(x.at, by[j], bytes);
			for (uint32_t i = 0; i < bytes; i += size)
				expect(c->dtype, element(x.at + i, c->dtype),
				       reference_scale(c->dtype, element(was + i, c->dtype), by[j]),
				       "scaled");
			range_free(&x);
		}
	}
}

static void test_scale(void **state)
{
	for (enum kernel_level level = KERNEL_C; level <= kernel_level_best(); level++)
		for (uint32_t dtype = 1; dtype < REDUCE_DTYPE_END; dtype++)
			case_scale(&(struct kernel_case){level, REDUCE_AVG, dtype});
}

/* All 2^16 of a type, with partners that carry every result into each other's neighbourhood. */
static void case_all_halves(const struct kernel_case *c)
{
	static uint16_t a[65536], b[65536], to[65536];
	if (reduce_dtype_bytes(c->dtype) != 2)
		return;
	for (uint32_t round = 0; round < 8; round++) {
		uint32_t fixed = (uint32_t)draw_element(c->dtype), step = 2 * (uint32_t)draw() + 1;
		for (uint32_t i = 0; i < 65536; i++) {
			a[i] = (uint16_t)i;
			b[i] = (uint16_t)(round < 2 ? fixed : fixed + i * step);
		}
		kernel_find(c->level, c->op, c->dtype)(to, a, b, sizeof(to));
		for (uint32_t i = 0; i < 65536; i++)
			expect(c->dtype, to[i],
			       reference_fold(c->op, c->dtype, (uint64_t[]){a[i], b[i]}, 2),
			       reduce_op_name(c->op));
	}
}

static void test_all_halves(void **state)
{
	for_all(case_all_halves);
}

/* Results written down by hand, so that the reference is not alone to say what is right. */
struct known {
	uint32_t op, dtype;
	uint64_t a, b, result;
};

static const struct known known[] = {
	{REDUCE_SUM, REDUCE_U8, 200, 100, 44},
	{REDUCE_SUM, REDUCE_I8, 0x7f, 1, 0x80},
	{REDUCE_PROD, REDUCE_I8, 0x80, 0xff, 0x80},
	{REDUCE_PROD, REDUCE_U16, 0xffff, 0xffff, 1},
	{REDUCE_SUM, REDUCE_I32, 0x7fffffff, 1, 0x80000000},
	{REDUCE_PROD, REDUCE_I32, 0x80000000, 0xffffffff, 0x80000000},
	{REDUCE_PROD, REDUCE_I64, UINT64_C(1) << 63, UINT64_MAX, UINT64_C(1) << 63},
	{REDUCE_PROD, REDUCE_U64, 0x123456789, 0x987654321, UINT64_C(0xd77d742cce1833a9)},
	{REDUCE_MIN, REDUCE_I8, 0xff, 1, 0xff},
	{REDUCE_MIN, REDUCE_U8, 0xff, 1, 1},
	{REDUCE_MAX, REDUCE_I64, UINT64_MAX, 0, 0},
	{REDUCE_MAX, REDUCE_U64, UINT64_MAX, 0, UINT64_MAX},
	{REDUCE_SUM, REDUCE_F16, 0x3c00, 0x4000, 0x4200},    /* 1 + 2 = 3 */
	{REDUCE_SUM, REDUCE_F16, 0x0001, 0x0001, 0x0002},    /* subnormal */
	{REDUCE_PROD, REDUCE_F16, 0x0001, 0x3800, 0x0000},   /* 2^-25 ties to even */
	{REDUCE_PROD, REDUCE_F16, 0x0003, 0x3800, 0x0002},   /* 1.5 x 2^-24 likewise */
	{REDUCE_SUM, REDUCE_F16, 0x7bff, 0x4b80, 0x7bff},    /* 65504 + 15: rounds down */
	{REDUCE_SUM, REDUCE_F16, 0x7bff, 0x4c00, 0x7c00},    /* 65504 + 16: infinity */
	{REDUCE_SUM, REDUCE_F16, 0x6800, 0x3c00, 0x6800},    /* 2048 + 1 ties to even */
	{REDUCE_SUM, REDUCE_F16, 0x7c00, 0xfc00, 0x7e00},    /* inf - inf */
	{REDUCE_MIN, REDUCE_F16, 0x0000, 0x8000, 0x8000},    /* +0, -0 */
	{REDUCE_MAX, REDUCE_F16, 0x8000, 0x7c01, 0x7e00},    /* a signalling NaN */
	{REDUCE_SUM, REDUCE_BF16, 0x3f80, 0x3b80, 0x3f80},   /* 1 + 2^-8 ties to even */
	{REDUCE_SUM, REDUCE_BF16, 0x3f81, 0x3b80, 0x3f82},   /* the other neighbour is even */
	{REDUCE_SUM, REDUCE_BF16, 0x7f7f, 0x7f7f, 0x7f80},   /* infinity */
	{REDUCE_SUM, REDUCE_BF16, 0x0001, 0x0001, 0x0002},   /* subnormal */
	{REDUCE_MAX, REDUCE_BF16, 0x7f80, 0xffc0, 0x7fc0},   /* inf, NaN */
	{REDUCE_SUM, REDUCE_F32, 0x00000001, 0x00000001, 2}, /* subnormal */
	{REDUCE_MIN, REDUCE_F32, 0x80000000, 0, 0x80000000}, /* -0 < +0 */
	{REDUCE_MIN, REDUCE_F32, 0, 0x80000000, 0x80000000},
	{REDUCE_MAX, REDUCE_F32, 0x80000000, 0, 0},
	{REDUCE_MAX, REDUCE_F32, 0, 0x80000000, 0},
	{REDUCE_MIN, REDUCE_F32, 0x7fc00000, 0xff800000, 0x7fc00000}, /* NaN, -inf */
	{REDUCE_MAX, REDUCE_F32, 0x7f800000, 0xffc00000, 0x7fc00000}, /* inf, NaN */
	{REDUCE_SUM, REDUCE_F64, UINT64_C(0x4340000000000000), UINT64_C(0x3ff0000000000000),
	 UINT64_C(0x4340000000000000)}, /* 2^53 + 1 ties to even */
	{REDUCE_MIN, REDUCE_F64, 0, UINT64_C(1) << 63, UINT64_C(1) << 63},
	{REDUCE_MAX, REDUCE_F64, UINT64_C(0x7ff8000000000000), 0, UINT64_C(0x7ff8000000000000)},
};

static void test_known(void **state)
{
	for (enum kernel_level level = KERNEL_C; level <= kernel_level_best(); level++) {
		for (uint32_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
			const struct known *k = &known[i];
			uint32_t size = reduce_dtype_bytes(k->dtype), bytes = 100 * size;
			uint8_t a[800], b[800];
			for (uint32_t at = 0; at < bytes; at += size) {
				memcpy(a + at, &k->a, size);
				memcpy(b + at, &k->b, size);
			}
			kernel_find(level, k->op, k->dtype)(a, a, b, bytes);
			for (uint32_t at = 0; at < bytes; at += size)
				expect(k->dtype, element(a + at, k->dtype), k->result,
				       kernel_level_name(level));
		}
	}
}

/* 2048 + 1 + 1: a pass per source rounds twice, a pass over all of them once. */
static void test_many_rounds_once(void **state)
{
	uint16_t x[3] = {0x6800, 0x3c00, 0x3c00}, to;
	const void *from[] = {&x[0], &x[1], &x[2]};
	for (enum kernel_level level = KERNEL_C; level <= kernel_level_best(); level++) {
		kernel_find_many(level, REDUCE_SUM, REDUCE_F16)(&to, from, 3, 2);
		assert_int_equal(to, 0x6801);
		kernel_find(level, REDUCE_SUM, REDUCE_F16)(&to, &x[0], &x[1], 2);
		kernel_find(level, REDUCE_SUM, REDUCE_F16)(&to, &to, &x[2], 2);
		assert_int_equal(to, 0x6800);
	}
}

static void test_scale_towards_zero(void **state)
{
	for (enum kernel_level level = KERNEL_C; level <= kernel_level_best(); level++) {
		int8_t small[3] = {-7, 7, -128};
		int64_t large[2] = {INT64_MIN, -1};
		kernel_find_scale(level, REDUCE_I8)(small, 2, sizeof(small));
		assert_int_equal(small[0], -3);
		assert_int_equal(small[1], 3);
		assert_int_equal(small[2], -64);
		kernel_find_scale(level, REDUCE_I64)(large, 2, sizeof(large));
		assert_true(large[0] == INT64_MIN / 2 && large[1] == 0);
	}
}

static void test_unknown(void **state)
{
	static const uint32_t bad[] = {0, REDUCE_DTYPE_END, 255, 256, UINT32_MAX};
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_null(kernel_find(KERNEL_C, bad[i], REDUCE_F32));
		assert_null(kernel_find(KERNEL_C, REDUCE_SUM, bad[i]));
		assert_null(kernel_find_many(KERNEL_C, bad[i], REDUCE_F32));
		assert_null(kernel_find_many(KERNEL_C, REDUCE_SUM, bad[i]));
		assert_null(kernel_find_scale(KERNEL_C, bad[i]));
		assert_null(reduce_op_name(bad[i]));
		assert_null(reduce_dtype_name(bad[i]));
		assert_int_equal(reduce_dtype_bytes(bad[i]), 0);
	}
	assert_null(kernel_find(KERNEL_C, REDUCE_OP_END, REDUCE_F32));
	assert_false(reduce_op_valid(REDUCE_OP_END));
}

static void test_names(void **state)
{
	static const char *const bad[] = {"", "SUM", "sum ", "su", "f31", "float"};
	for (uint32_t op = 1; op < REDUCE_OP_END; op++)
		assert_int_equal(reduce_op_find(reduce_op_name(op)), op);
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(reduce_op_find(bad[i]), 0);
	assert_int_equal(reduce_op_find(NULL), 0);
	assert_int_equal(reduce_op_find("avg"), REDUCE_AVG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pass),	cmocka_unit_test(test_many),
		cmocka_unit_test(test_scale),	cmocka_unit_test(test_all_halves),
		cmocka_unit_test(test_known),	cmocka_unit_test(test_many_rounds_once),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_scale_towards_zero),
		cmocka_unit_test(test_names),
	};
	print_message("levels up to %s\n", kernel_level_name(kernel_level_best()));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
