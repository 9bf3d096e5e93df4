/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the segments of a target reach its readers: a star, where each root feeds all of them, or a
 * grid, where they pass segments on. Positions are counted from a segment's root, so one table of
 * positions, turned, serves all segments, and each node sends and takes p - 1 segments whatever the
 * table is. docs/developer/reduce.md compares the tables; docs/study/tried.md has those that lost.
 */
#include "planner.h"

bool distribution_grids(const struct planner_request *q, uint32_t segments)
{
	return segments >= q->limits->grid_slots;
}

uint32_t distribution_width(uint32_t slots)
{
	uint32_t width = 1;

	while (width * width < slots)
		width++;
	return width;
}

/* The first of a row has a segment from the first of the row before, the others each from the one
 * before them: so a node feeds two others, and none is further away than a column and a row. */
uint32_t distribution_feeder(uint32_t width, uint32_t position)
{
	return position % width ? position - 1 : position - width;
}

void distribution_fill(struct graph *g)
{
	uint32_t width = distribution_width(g->slots);

	for (uint32_t j = 0; g->feeder && j < g->segments; j++) {
		uint32_t root = graph_slot_of(g, g->segment[j].root);

		for (uint32_t i = 0; i < g->slots; i++) {
			uint32_t position = (i + g->slots - root) % g->slots, from = 0;

			if (position > 0)
				from = distribution_feeder(width, position);
			g->feeder[j * g->slots + i] = (uint16_t)((root + from) % g->slots);
		}
	}
}

uint32_t distribution_from(const struct graph *g, uint32_t segment, uint32_t slot,
			   const uint64_t *there)
{
	uint32_t root = graph_slot_of(g, g->segment[segment].root);

	if (!g->feeder)
		return GRAPH_NONE;
	while (slot != root) {
		slot = g->feeder[segment * g->slots + slot];
		if (slot != root && there[slot / 64] >> slot % 64 & 1)
			return slot;
	}
	return GRAPH_NONE;
}
