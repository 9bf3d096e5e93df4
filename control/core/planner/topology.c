/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which nodes have the best link, and which a worse one: topology.h. Planners call it with the
 * groups of a request, in the order in which they are to take slots; it must not know how links are
 * measured.
 */
#include "topology.h"
#include "network.h"
#include <stddef.h>

struct topology_link topology_best(struct topology_groups gs, bool complete,
				   struct topology_link all)
{
	struct topology_link best = all;

	if (!complete || gs.count == 0)
		return best;
	best = topology_group(gs, 0)->link;
	for (uint32_t i = 1; i < gs.count; i++) {
		struct topology_link l = topology_group(gs, i)->link;

		if (l.latency_ns < best.latency_ns)
			best.latency_ns = l.latency_ns;
		if (l.bytes_per_s > best.bytes_per_s)
			best.bytes_per_s = l.bytes_per_s;
		if (l.start_ns < best.start_ns)
			best.start_ns = l.start_ns;
	}
	return best;
}

struct topology_link topology_known(const struct network *w, struct topology_link measured)
{
	uint64_t latency_ns = UINT64_MAX, bytes_per_s = 0;

	for (uint32_t l = 0; w && l < w->levels; l++) {
		if (w->level[l].latency_ns < latency_ns)
			latency_ns = w->level[l].latency_ns;
		if (w->level[l].bytes_per_s > bytes_per_s)
			bytes_per_s = w->level[l].bytes_per_s;
	}
	if (bytes_per_s > 0)
		measured.bytes_per_s = bytes_per_s;
	if (latency_ns != UINT64_MAX && latency_ns > measured.latency_ns)
		measured.latency_ns = latency_ns;
	return measured;
}

/* The time of an object of so many bytes over a link. */
static double topology_ns(struct topology_link link, uint64_t size_bytes)
{
	return (double)(link.start_ns + link.latency_ns) +
	       (double)size_bytes * 1e9 / (double)link.bytes_per_s;
}

static bool topology_worse(struct topology_link a, struct topology_link than)
{
	return a.latency_ns > than.latency_ns || a.bytes_per_s < than.bytes_per_s ||
	       a.start_ns > than.start_ns;
}

uint32_t topology_slow(struct topology_groups gs, struct topology_link best, uint64_t size_bytes,
		       struct topology_slow slow[TOPOLOGY_SLOW_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < gs.count; i++) {
		struct topology_slow s = {i, topology_group(gs, i)->link};
		uint32_t least = 0;

		if (!topology_worse(s.link, best))
			continue;
		if (count < TOPOLOGY_SLOW_MAX) {
			slow[count++] = s;
			continue;
		}
		for (uint32_t k = 1; k < count; k++)
			if (topology_ns(slow[k].link, size_bytes) <
			    topology_ns(slow[least].link, size_bytes))
				least = k;
		if (topology_ns(s.link, size_bytes) > topology_ns(slow[least].link, size_bytes))
			slow[least] = s;
	}
	return count;
}

uint32_t topology_worst(struct topology_groups gs, struct topology_link best, uint64_t size_bytes,
			uint32_t but)
{
	double most = topology_ns(best, size_bytes);
	uint32_t worst = 0;

	for (uint32_t i = 0; i < gs.count; i++) {
		double ns = topology_ns(topology_group(gs, i)->link, size_bytes);

		if (ns <= most || topology_group(gs, i)->node == but)
			continue;
		most = ns;
		worst = i;
	}
	return worst;
}

const struct planner_group *topology_slowest(struct topology_groups gs, struct topology_link best)
{
	const struct planner_group *slowest = NULL;

	for (uint32_t i = 0; i < gs.count; i++) {
		const struct planner_group *g = topology_group(gs, i);

		if (g->link.bytes_per_s >= best.bytes_per_s)
			continue;
		if (slowest && slowest->node != g->node)
			return NULL;
		slowest = g;
	}
	return slowest;
}
