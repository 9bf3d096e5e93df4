/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce_stripe.h"

void reduce_stripe(uint32_t chunks, uint32_t p, uint32_t j, uint32_t *first, uint32_t *count)
{
	uint32_t larger;

	*first = *count = 0;
	if (j >= p)
		return;
	larger = chunks % p;
	*first = j * (chunks / p) + (j < larger ? j : larger);
	*count = chunks / p + (j < larger);
}

uint64_t reduce_stripe_bytes(uint64_t size_bytes, uint32_t chunk_bytes, uint32_t p, uint32_t j)
{
	uint64_t begin, end, chunks;
	uint32_t first, count;

	if (size_bytes == 0 || chunk_bytes == 0)
		return 0;
	chunks = (size_bytes - 1) / chunk_bytes + 1;
	if (chunks > UINT32_MAX)
		return 0;
	reduce_stripe((uint32_t)chunks, p, j, &first, &count);
	if (count == 0)
		return 0;
	begin = (uint64_t)first * chunk_bytes;
	end = begin + (uint64_t)count * chunk_bytes;
	return (end < size_bytes ? end : size_bytes) - begin;
}

uint32_t reduce_stripe_order(uint32_t p, uint32_t j, uint32_t k)
{
	if (j >= p || k >= p)
		return REDUCE_STRIPE_NONE;
	return (uint32_t)(((uint64_t)j + 1 + k) % p);
}
