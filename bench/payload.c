/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of objects and their digests for a program that is not in C (dask_work.py): the same
 * as those of every other measured system.
 */
#include "gradient.h"
#include "payload.h"

void payload_make(uint8_t *out, uint64_t bytes, uint32_t seed, int f32);
uint64_t payload_digest_of(const void *data, uint64_t bytes);

void payload_make(uint8_t *out, uint64_t bytes, uint32_t seed, int f32)
{
	if (f32)
		gradient_fill((float *)(void *)out, bytes / sizeof(float), seed);
	else
		payload_fill(out, bytes, seed);
}

uint64_t payload_digest_of(const void *data, uint64_t bytes)
{
	return payload_digest(data, bytes);
}
