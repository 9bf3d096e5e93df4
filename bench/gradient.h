/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The f32 arrays that the measured reduces add up. Elements are small integers (-512 to 511) that
 * depend on their place and on a seed per source: sums of up to 16,384 sources are exact in any
 * order, and a source that is missing, or counted twice, changes nearly every element.
 */
#ifndef SARISSA_BENCH_GRADIENT_H
#define SARISSA_BENCH_GRADIENT_H

#include <stdint.h>

static inline int32_t gradient_at(uint64_t index, uint32_t seed)
{
	uint32_t x = (uint32_t)index * 0x9e3779b1u + seed * 0x85ebca6bu;

	x = (x ^ (x >> 15)) * 0x2c1b3c6du;
	x = (x ^ (x >> 13)) * 0x297a2d39u;
	return (int32_t)(x >> 22) - 512;
}

static inline void gradient_fill(float *out, uint64_t count, uint32_t seed)
{
	for (uint64_t i = 0; i < count; i++)
		out[i] = (float)gradient_at(i, seed);
}

#endif
