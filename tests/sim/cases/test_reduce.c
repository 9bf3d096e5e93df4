/* SPDX-License-Identifier: BSD-3-Clause */
/* Random reduces: test_reduce [FIRST_SEED [RUNS [-v]]]. Prints each seed that fails. */
#include <stdio.h>

#include "internal/program/arguments.h"
#include "trees/tree.h"

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? argument_need("FIRST_SEED", argv[1], 0, UINT64_MAX) : 1;
	uint64_t runs = argc > 2 ? argument_need("RUNS", argv[2], 1, UINT64_MAX) : 150;
	uint64_t failed = 0;
	for (uint64_t k = 0; k < runs; k++) {
		if (tree_run(seed + k, argc > 3))
			continue;
		failed++;
		fprintf(stderr, "replay with: %s %llu 1 -v\n", argv[0],
			(unsigned long long)(seed + k));
	}
	printf("reduce: %llu runs from seed %llu, %llu failed\n", (unsigned long long)runs,
	       (unsigned long long)seed, (unsigned long long)failed);
	return failed ? 1 : 0;
}
