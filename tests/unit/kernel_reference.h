/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernels must compute, element by element and from the definitions of the formats: no
 * vectors, no tricks with bits, nothing shared with the code under test. An element is its bits.
 * The tests' and the benchmark's.
 */
#ifndef SARISSA_TESTS_KERNEL_REFERENCE_H
#define SARISSA_TESTS_KERNEL_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/* x[0] op x[1] op ... from the left; 16-bit floats are rounded once, at the end. */
uint64_t reference_fold(uint32_t op, uint32_t dtype, const uint64_t *x, uint32_t count);
uint64_t reference_scale(uint32_t dtype, uint64_t x, uint32_t n);

/* Equal bits of the type, or both NaN. */
bool reference_same(uint32_t dtype, uint64_t a, uint64_t b);

/* The nearest value of the type; an integer type takes the value's whole part, wrapped. */
uint64_t reference_encode(uint32_t dtype, double value);
/* The value of a float. */
double reference_decode(uint32_t dtype, uint64_t bits);

/* One of the type's zeros, extremes, infinities, subnormals, NaNs and their neighbours. */
uint64_t reference_edge(uint32_t dtype, uint32_t index);

#endif
