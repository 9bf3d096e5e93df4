/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rounding costs: sums of 16 standard normals per element, in a chain (each node adds its
 * own), in a binary tree, and in one pass over all sources. Beside a sum of the same rounded inputs
 * in a wider type.
 */
#include "kernels.h"

#include <math.h>
#include <stdio.h>

#include "fixtures/kernel_reference.h"

enum { SOURCES = 16, ELEMENTS = 1 << 14 };

static double uniform(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*seed >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller. */
static double normal(uint64_t *seed)
{
	double radius = sqrt(-2 * log(uniform(seed)));
	return radius * cos(2 * 3.14159265358979323846 * uniform(seed));
}

static double element(uint32_t dtype, const uint8_t *from)
{
	uint64_t bits = 0;
	memcpy(&bits, from, reduce_dtype_bytes(dtype));
	return reference_decode(dtype, bits);
}

static uint8_t x[SOURCES][ELEMENTS * REDUCE_ELEMENT_BYTES_MAX];
static uint8_t result[SOURCES][ELEMENTS * REDUCE_ELEMENT_BYTES_MAX];

static void sum_chain(enum kernel_level level, uint32_t dtype, uint32_t bytes)
{
	memcpy(result[0], x[0], bytes);
	for (uint32_t k = 1; k < SOURCES; k++)
		kernel_find(level, REDUCE_SUM, dtype)(result[0], result[0], x[k], bytes);
}

static void sum_tree(enum kernel_level level, uint32_t dtype, uint32_t bytes)
{
	memcpy(result, x, sizeof(x));
	for (uint32_t half = SOURCES / 2; half > 0; half /= 2)
		for (uint32_t k = 0; k < half; k++)
			kernel_find(level, REDUCE_SUM, dtype)(result[k], result[2 * k],
							      result[2 * k + 1], bytes);
}

static void sum_many(enum kernel_level level, uint32_t dtype, uint32_t bytes)
{
	const void *from[SOURCES];
	for (uint32_t k = 0; k < SOURCES; k++)
		from[k] = x[k];
	kernel_find_many(level, REDUCE_SUM, dtype)(result[0], from, SOURCES, bytes);
}

struct error {
	double rms, max; /* in parts of the sum of the magnitudes */
};

static struct error error_measure(uint32_t dtype)
{
	uint32_t size = reduce_dtype_bytes(dtype);
	struct error e = {0, 0};
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		long double sum = 0, magnitudes = 0;
		for (uint32_t k = 0; k < SOURCES; k++) {
			double v = element(dtype, x[k] + i * size);
			sum += v;
			magnitudes += fabs(v);
		}
		double off =
			(double)(fabsl(element(dtype, result[0] + i * size) - sum) / magnitudes);
		e.rms += off * off / ELEMENTS;
		e.max = off > e.max ? off : e.max;
	}
	e.rms = sqrt(e.rms);
	return e;
}

static void error_of(enum kernel_level level, uint32_t dtype, bool json)
{
	static const struct {
		const char *name;
		void (*sum)(enum kernel_level level, uint32_t dtype, uint32_t bytes);
	} ways[] = {{"chain", sum_chain}, {"tree", sum_tree}, {"many", sum_many}};
	uint32_t size = reduce_dtype_bytes(dtype);
	uint64_t seed = 1;
	for (uint32_t k = 0; k < SOURCES; k++)
		for (uint32_t i = 0; i < ELEMENTS; i++) {
			uint64_t bits = reference_encode(dtype, normal(&seed));
			memcpy(x[k] + i * size, &bits, size);
		}
	if (!json)
		printf("%-6s", reduce_dtype_name(dtype));
	for (uint32_t w = 0; w < 3; w++) {
		ways[w].sum(level, dtype, ELEMENTS * size);
		struct error e = error_measure(dtype);
		if (json)
			printf("{\"op\":\"kernel_error\",\"dtype\":\"%s\",\"way\":\"%s\","
			       "\"sources\":%d,\"rms\":%.3e,\"max\":%.3e}\n",
			       reduce_dtype_name(dtype), ways[w].name, SOURCES, e.rms, e.max);
		else
			printf("  %-5s %.1e %.1e", ways[w].name, e.rms, e.max);
	}
	if (!json)
		printf("\n");
}

void error_report(enum kernel_level level, bool json)
{
	if (!json)
		printf("\nError of the sum of %d normals (rms, largest), in parts of the sum of "
		       "their magnitudes\n",
		       SOURCES);
	for (uint32_t dtype = REDUCE_F16; dtype <= REDUCE_F64; dtype++)
		error_of(level, dtype, json);
}
