/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce_stripe.h"
#include <string.h>
#include <xxhash.h>

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

uint32_t reduce_stripe_row(uint32_t p)
{
	uint32_t row = 1;

	while (row * row < p)
		row++;
	return row;
}

uint32_t reduce_stripe_feeder(uint32_t row, uint32_t place)
{
	return place % row ? place - 1 : place - row;
}

void reduce_cell_name(const struct object_id *target, uint64_t number, uint64_t cell,
		      struct object_id *out)
{
	const struct {
		struct object_id target;
		uint64_t number, cell;
	} key = {*target, number, cell};
	XXH128_canonical_t name;

	XXH128_canonicalFromHash(&name, XXH3_128bits(&key, sizeof(key)));
	memcpy(out->bytes, name.digest, sizeof(out->bytes));
}

void reduce_stripe_name(const struct object_id *target, uint64_t number, uint32_t p, uint32_t j,
			struct object_id *out)
{
	reduce_cell_name(target, number, (uint64_t)j * p + j, out);
}

uint64_t reduce_stripe_value_max(uint32_t p, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
				 uint64_t setup_ns, struct reduce_link link)
{
	uint64_t least = (p - 1) * chunk_bytes; /* of p - 1 chunks */
	double passes, bytes;

	if (p < 2)
		return most;
	passes = copies + (p - 1) - 2.0 * (p - 1) / p;
	bytes = (double)(setup_ns + 2 * link.latency_ns) * (double)link.bytes_per_s / 1e9 / passes;
	if (bytes < (double)least)
		bytes = (double)least;
	return bytes < (double)most ? (uint64_t)bytes : most;
}
