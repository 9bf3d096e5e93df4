/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is decided without a graph. The directory asks for the width of a broadcast, which its
 * receivers drive, and whether the value itself is the answer. The coordinator of a reduce asks up
 * to which size it adds up the contributions itself.
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

/* The nodes of a graph are told what to build, and its result is committed: a request and an answer
 * each, so the setup is two starts. Values all pass the coordinator's own link. */
uint32_t planner_value_max(const struct planner_values *v)
{
	const struct graph_limits *limits = &v->limits->graph;
	struct topology_link link = v->all, known;
	uint64_t setup_ns = 2 * v->all.start_ns, most = limits->value_bytes_max;

	/* each hop counts with a start here: the smallest trees take more than the model says */
	link.latency_ns += link.start_ns;
	link.start_ns = 0;
	link.bytes_per_s = v->own_bytes_per_s;
	known = link;
	if (!v->rate_seen)
		known.bytes_per_s = 0;
	if (v->everyone && v->needed <= v->limits->segments_max)
		most = cost_exchange_max(v->needed, v->values, most, v->chunk_bytes, setup_ns,
					 known);
	return (uint32_t)cost_values_max(v->needed, v->values + 1, most, v->chunk_bytes, setup_ns,
					 link);
}
