/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sum BYTES SEED...: the digest of the sum of the arrays of gradient.h with these seeds, added up
 * as integers: what every measured system must have got, found without any of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gradient.h"
#include "payload.h"

enum { BLOCK = 4096 };

static void sum_block(float *out, uint64_t first, uint64_t count, char **seeds, int seed_count)
{
	int32_t sum[BLOCK] = {0};

	for (int s = 0; s < seed_count; s++) {
		uint32_t seed = (uint32_t)strtoul(seeds[s], NULL, 10);
		for (uint64_t i = 0; i < count; i++)
			sum[i] += gradient_at(first + i, seed);
	}
	for (uint64_t i = 0; i < count; i++)
		out[i] = (float)sum[i];
}

int main(int argc, char **argv)
{
	static float block[BLOCK];
	XXH3_state_t *state = XXH3_createState();

	if (argc < 3 || state == NULL) {
		fprintf(stderr, "usage: sum BYTES SEED...\n");
		return 2;
	}
	uint64_t count = strtoull(argv[1], NULL, 10) / sizeof(float);
	XXH3_64bits_reset(state);
	for (uint64_t at = 0; at < count; at += BLOCK) {
		uint64_t now = count - at < BLOCK ? count - at : BLOCK;
		sum_block(block, at, now, argv + 2, argc - 2);
		XXH3_64bits_update(state, block, now * sizeof(float));
	}
	printf("%016llx\n", (unsigned long long)XXH3_64bits_digest(state));
	XXH3_freeState(state);
	return 0;
}
