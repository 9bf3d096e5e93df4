/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The width of a broadcast, and when the value itself is the answer. Broadcasts are driven by their
 * receivers: the directory asks here before each answer, and there is no graph.
 */
#include "cost.h"
#include "planner.h"

uint32_t planner_width(struct topology_link link, uint32_t receivers, uint64_t size,
		       uint32_t chunk_bytes)
{
	const struct cost_object o = {size, chunk_bytes};

	return cost_broadcast_degree(receivers, PLANNER_WIDTH_MAX, o, link);
}

bool planner_inline(struct topology_link link, uint32_t receivers, uint64_t size,
		    uint32_t chunk_bytes)
{
	const struct cost_object o = {size, chunk_bytes};
	uint32_t d = planner_width(link, receivers, size, chunk_bytes);

	return cost_answers_ns(receivers, size, link) <= cost_broadcast_ns(receivers, d, o, link);
}
