/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which slot a contribution takes: binding.h has the order. The coordinator calls it when it has
 * planned and whenever a contribution is found; it must not know where contributions come from, nor
 * what a complete slot sets off.
 */
#include "binding.h"
#include <assert.h>

static bool binding_open(const struct graph *g, const struct graph_run *run, uint32_t slot)
{
	return run->slot[slot].has < g->slot[slot].wants;
}

uint32_t binding_booked(const struct graph *g, const struct graph_run *run, uint32_t node)
{
	for (uint32_t i = 0; i < g->slots; i++)
		if (run->slot[i].host == node && binding_open(g, run, i))
			return i;
	return GRAPH_NONE;
}

uint32_t binding_slot(const struct graph *g, const struct graph_run *run, uint32_t node)
{
	uint32_t first = GRAPH_NONE;

	for (uint32_t i = 0; i < g->slots; i++) {
		uint32_t host = run->slot[i].host;

		if (!binding_open(g, run, i))
			continue;
		if (g->slot[i].prefer == node && (host == GRAPH_NODE_NONE || host == node))
			return i;
		if (first == GRAPH_NONE)
			first = i;
	}
	return first;
}

bool binding_take(const struct graph *g, struct graph_run *run, uint32_t slot, uint32_t node)
{
	struct run_slot *s = &run->slot[slot];

	assert(binding_open(g, run, slot));
	if (s->host == GRAPH_NODE_NONE)
		s->host = node;
	return ++s->has == g->slot[slot].wants;
}
