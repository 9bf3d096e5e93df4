/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sum BYTES SEED...: the digest of the sum of the arrays of gradient.h with these seeds, added up
 * as integers: what every measured system must have got, found without any of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gradient.h"
#include "internal/program/arguments.h"
#include "payload.h"

enum { BLOCK = 4096 };

static void sum_block(float *out, uint64_t first, uint64_t count, const uint32_t *seeds,
		      int seed_count)
{
	int32_t sum[BLOCK] = {0};

	for (int s = 0; s < seed_count; s++) {
		for (uint64_t i = 0; i < count; i++)
			sum[i] += gradient_at(first + i, seeds[s]);
	}
	for (uint64_t i = 0; i < count; i++)
		out[i] = (float)sum[i];
}

int main(int argc, char **argv)
{
	static float block[BLOCK];
	XXH3_state_t *state = XXH3_createState();

	if (argc < 3 || !state) {
		fprintf(stderr, "usage: sum BYTES SEED...\n");
		return 2;
	}
	uint64_t count = argument_need("BYTES", argv[1], 0, INT64_MAX) / sizeof(float);
	int seed_count = argc - 2;
	uint32_t *seeds = calloc((size_t)seed_count, sizeof(*seeds));
	if (!seeds)
		return 1;
	for (int s = 0; s < seed_count; s++)
		seeds[s] = (uint32_t)argument_need("SEED", argv[2 + s], 0, UINT32_MAX);
	XXH3_64bits_reset(state);
	for (uint64_t at = 0; at < count; at += BLOCK) {
		uint64_t now = count - at < BLOCK ? count - at : BLOCK;
		sum_block(block, at, now, seeds, seed_count);
		XXH3_64bits_update(state, block, now * sizeof(float));
	}
	printf("%016llx\n", (unsigned long long)XXH3_64bits_digest(state));
	XXH3_freeState(state);
	free(seeds);
	return 0;
}
