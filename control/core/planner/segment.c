/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The partition of a target into segments: segment.h has the rule. Planners call it, and so do
 * participants, which must come to the same ranges from the size and the number of segments alone.
 */
#include "segment.h"

uint64_t segment_chunks(uint64_t size_bytes, uint32_t chunk_bytes)
{
	return size_bytes && chunk_bytes ? (size_bytes - 1) / chunk_bytes + 1 : 0;
}

void segment_range(uint32_t chunks, uint32_t p, uint32_t j, uint32_t *first, uint32_t *count)
{
	uint32_t larger;

	*first = *count = 0;
	if (j >= p)
		return;
	larger = chunks % p;
	*first = j * (chunks / p) + (j < larger ? j : larger);
	*count = chunks / p + (j < larger);
}

uint64_t segment_bytes(uint64_t size_bytes, uint32_t chunk_bytes, uint32_t p, uint32_t j)
{
	uint64_t chunks = segment_chunks(size_bytes, chunk_bytes), begin, end;
	uint32_t first, count;

	if (chunks > UINT32_MAX)
		return 0;
	segment_range((uint32_t)chunks, p, j, &first, &count);
	if (count == 0)
		return 0;
	begin = (uint64_t)first * chunk_bytes;
	end = begin + (uint64_t)count * chunk_bytes;
	return (end < size_bytes ? end : size_bytes) - begin;
}
