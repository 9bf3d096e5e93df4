/* SPDX-License-Identifier: BSD-3-Clause */
/* What a member combines by itself has the bits of the dataplane's kernels, NaNs apart. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "switch/accumulate.h"
#include "internal/reduce.h"
#include "kernel/kernel.h"

enum { BYTES = 1 << 16 };

static uint64_t seed = 88172645463325252u;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Every exponent comes up, and zeros of both signs, infinities and NaNs. */
static void fill(uint8_t *to)
{
	for (uint32_t i = 0; i < BYTES; i += 8) {
		uint64_t v = draw();
		switch (draw() % 8) {
		case 0:
			v &= 0x8000800080008000u;
			break;
		case 1:
			v &= 0xff80ff80ff80ff80u;
			break;
		case 2:
			v |= 0x7c007c007f807c00u;
			break;
		default:
			break;
		}
		memcpy(to + i, &v, 8);
	}
}

static bool is_nan(uint32_t dtype, const uint8_t *at)
{
	uint16_t half;
	float f;
	double d;
	switch (dtype) {
	case REDUCE_F16:
		memcpy(&half, at, 2);
		return (half & 0x7fff) > 0x7c00;
	case REDUCE_BF16:
		memcpy(&half, at, 2);
		return (half & 0x7fff) > 0x7f80;
	case REDUCE_F32:
		memcpy(&f, at, 4);
		return f != f;
	case REDUCE_F64:
		memcpy(&d, at, 8);
		return d != d;
	default:
		return false;
	}
}

static void same(uint32_t op, uint32_t dtype)
{
	static _Alignas(64) uint8_t a[BYTES], b[BYTES], want[BYTES];
	uint32_t size = reduce_dtype_bytes(dtype);
	fill(a);
	fill(b);
	kernel_find(KERNEL_C, op, dtype)(want, a, b, BYTES);
	accumulate(op, dtype, a, b, BYTES / size);
	for (uint32_t i = 0; i < BYTES; i += size) {
		if (is_nan(dtype, a + i) && is_nan(dtype, want + i))
			continue;
		if (memcmp(a + i, want + i, size) != 0)
			fail_msg("%s of %s: element %u differs", reduce_op_name(op),
				 reduce_dtype_name(dtype), i / size);
	}
}

static void every_operation_has_the_bits_of_its_kernel(void **state)
{
	for (uint32_t op = REDUCE_SUM; op <= REDUCE_MAX; op++)
		for (uint32_t dtype = REDUCE_F16; dtype < REDUCE_DTYPE_END; dtype++)
			for (int times = 0; times < 4; times++)
				same(op, dtype);
}

static void what_is_unknown_changes_nothing(void **state)
{
	uint32_t a = 5, b = 6;
	accumulate(REDUCE_AVG, REDUCE_U32, &a, &b, 1);
	accumulate(REDUCE_SUM, REDUCE_DTYPE_END, &a, &b, 1);
	assert_int_equal(a, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_has_the_bits_of_its_kernel),
		cmocka_unit_test(what_is_unknown_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
