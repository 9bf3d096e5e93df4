/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values or a graph: up to which size the coordinator adds up the contributions itself. The nodes
 * of a graph are told what to build, and its result is committed: a request and an answer each, so
 * the setup is two starts. Values all pass the coordinator's own link.
 */
#include "cost.h"
#include "planner.h"

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
