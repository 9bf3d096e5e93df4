/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the planners share: memory for one graph, draws from a seed, and a plan that
 * the verifier has looked at. */
#ifndef SARISSA_TESTS_UNIT_PLANNER_TEST_H
#define SARISSA_TESTS_UNIT_PLANNER_TEST_H

#include "control_test.h"
#include "core/planner/planner.h"

enum { PLANNER_MEMORY_BYTES = 8 << 20 };

static uint8_t planner_memory[PLANNER_MEMORY_BYTES] __attribute__((aligned(64)));

static inline uint32_t planner_draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
	return (uint32_t)((*state >> 33) % below);
}

static inline void planner_built(const struct planner_request *q, const struct planner_choice *c,
				 struct graph *g)
{
	const char *wrong;

	assert_in_range(planner_bytes(c), 1, PLANNER_MEMORY_BYTES);
	/* what was there before makes no difference */
	memset(planner_memory, 0xa5, planner_bytes(c) + 64);
	assert_int_equal(planner_build(q, c, planner_memory, planner_bytes(c), g), 0);
	assert_int_equal(planner_memory[planner_bytes(c)], 0xa5);
	wrong = graph_wrong(g, &q->limits->graph);
	if (wrong)
		fail_msg("%s of %u slots, %u segments: %s", g->planner, g->slots, g->segments,
			 wrong);
}

#endif
