/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the planners share: memory for one graph, draws from a seed, and a plan that
 * the verifier has looked at. */
#ifndef SARISSA_TESTS_UNIT_PLANNER_TEST_H
#define SARISSA_TESTS_UNIT_PLANNER_TEST_H

#include "control_test.h"
#include "core/planner/planner.h"

enum { PLANNER_MEMORY_BYTES = 8 << 20, PLANNER_CHUNK = 1408 };

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

/* That many groups of so many contributions each, and late ones; all links alike, everyone gets the
 * result, node 1 asks. */
static struct planner_group planner_asked_group[GRAPH_SLOTS_MAX];

static inline struct planner_request planner_asked(uint32_t groups, uint32_t each, uint32_t late,
						   uint64_t size)
{
	const struct topology_link link = {50000, 100000, 125000000};

	for (uint32_t i = 0; i < groups; i++)
		planner_asked_group[i] = (struct planner_group){i, each, link, 0};
	return (struct planner_request){.size = size,
					.chunk_bytes = PLANNER_CHUNK,
					.needed = groups * each + late,
					.group = planner_asked_group,
					.groups = groups,
					.present = groups * each,
					.caller = 1,
					.everyone = true,
					.rate_seen = true,
					.all = link,
					.limits = &planner_limits_usual};
}

#endif
