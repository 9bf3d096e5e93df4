/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must restart when something is lost: closure.h has the rule. The coordinator calls it for
 * each loss before a commit; it must not know how losses are noticed, nor send anything. It visits
 * vertices and contributions in rising order, so the order of what it vacates is always the same.
 */
#include "closure.h"

static bool closure_reaches(const struct closure *k, uint32_t node)
{
	return node < k->nodes && k->reachable[node / 64] >> node % 64 & 1;
}

static uint32_t closure_host(const struct closure *k, uint32_t v)
{
	const struct graph *g = k->graph;

	return graph_is_relay(g, v) ? g->relay[v - g->slots * g->segments].host
				    : k->run->slot[graph_slot_of(g, v)].host;
}

/* Whether there is something of the vertex that may be out of reach. */
static bool closure_there(const struct closure *k, uint32_t v)
{
	const struct graph *g = k->graph;

	return graph_is_relay(g, v) || k->run->slot[graph_slot_of(g, v)].has > 0;
}

static void closure_restart_slot(struct closure *k, uint32_t slot)
{
	for (uint32_t j = 0; j < k->graph->segments; j++)
		k->run->vertex[graph_vertex_of(k->graph, j, slot)] |= RUN_RESTART;
}

void closure_vacate(struct closure *k, uint32_t contribution, bool avoid)
{
	struct run_contribution *s = &k->contribution[contribution];

	if (s->slot != GRAPH_NONE) {
		struct run_slot *slot = &k->run->slot[s->slot];

		if (--slot->has == 0)
			slot->host = GRAPH_NODE_NONE;
		closure_restart_slot(k, s->slot);
	}
	s->slot = GRAPH_NONE;
	s->known = s->absorbed = false;
	k->vacated[k->vacated_count++] = (struct closure_vacated){contribution, avoid};
}

void closure_vacate_node(struct closure *k, uint32_t slot, uint32_t node)
{
	for (uint32_t i = 0; i < k->contributions; i++)
		if (k->contribution[i].slot == slot && k->contribution[i].node == node)
			closure_vacate(k, i, true);
}

/* Whether those who take from a slot have all of it. */
static bool closure_delivered(const struct closure *k, uint32_t slot)
{
	for (uint32_t j = 0; j < k->graph->segments; j++)
		if (!(k->run->vertex[graph_vertex_of(k->graph, j, slot)] & RUN_DELIVERED))
			return false;
	return true;
}

bool closure_node_lost(struct closure *k, uint32_t node)
{
	bool lost = false;

	for (uint32_t i = 0; i < k->contributions; i++) {
		const struct run_contribution *s = &k->contribution[i];

		if (!s->known || s->node != node)
			continue;
		/* in its vertex's object, or, of a leaf, in the next one's; and that is elsewhere
		 */
		if (s->slot != GRAPH_NONE && (closure_delivered(k, s->slot) ||
					      (s->absorbed && k->run->slot[s->slot].host != node)))
			continue;
		lost |= s->slot != GRAPH_NONE;
		closure_vacate(k, i, false);
	}
	for (uint32_t v = 0; v < k->graph->vertices; v++) {
		uint8_t *state = &k->run->vertex[v];

		if (closure_host(k, v) != node || !(*state & RUN_STARTED))
			continue;
		if (*state & RUN_DELIVERED) {
			*state |= RUN_GONE;
			continue;
		}
		*state |= RUN_RESTART;
		lost = true;
	}
	return lost;
}

/* ---- the fixpoint --------------------------------------------------------------------------- */

/* A vertex that restarts wants its own contributions again. */
static bool closure_own(struct closure *k, uint32_t v)
{
	bool changed = false;

	for (uint32_t i = 0; i < k->contributions && !graph_is_relay(k->graph, v); i++) {
		struct run_contribution *s = &k->contribution[i];

		if (s->slot != graph_slot_of(k->graph, v))
			continue;
		s->absorbed = false;
		if (closure_reaches(k, s->node))
			continue;
		closure_vacate(k, i, false);
		changed = true;
	}
	return changed;
}

/* And what other vertices give. Returns whether that concerns others. */
static bool closure_ins(struct closure *k, uint32_t v)
{
	const struct graph_vertex *p = &k->graph->vertex[v];
	bool changed = false;

	for (uint32_t e = p->in; e < p->in + p->ins; e++) {
		uint32_t from = k->graph->edge[e].vertex, host = closure_host(k, from);
		uint8_t *state = &k->run->vertex[from];

		*state &= (uint8_t)~RUN_DELIVERED;
		if (*state & RUN_RESTART)
			continue;
		if (*state & RUN_GONE) {
			*state |= RUN_RESTART;
			changed = true;
			continue;
		}
		if (!closure_there(k, from) || closure_reaches(k, host))
			continue;
		if (!graph_is_relay(k->graph, from))
			closure_vacate_node(k, graph_slot_of(k->graph, from), host);
		*state |= RUN_RESTART;
		changed = true;
	}
	return changed;
}

static bool closure_out(struct closure *k, uint32_t v)
{
	uint32_t out = k->graph->vertex[v].out;
	uint8_t *state = out == GRAPH_NONE ? NULL : &k->run->vertex[out];

	if (!state || (*state & (RUN_STARTED | RUN_RESTART)) != RUN_STARTED)
		return false;
	*state |= RUN_RESTART;
	return true;
}

/* A slot stays where it is as long as one of its contributions is there: its vertices of other
 * segments may go on. */
static void closure_move(struct closure *k, uint32_t slot)
{
	uint32_t first = GRAPH_NODE_NONE;

	for (uint32_t i = 0; i < k->contributions; i++) {
		if (k->contribution[i].slot != slot)
			continue;
		if (k->contribution[i].node == k->run->slot[slot].host)
			return;
		if (first == GRAPH_NODE_NONE)
			first = k->contribution[i].node;
	}
	k->run->slot[slot].host = first;
}

/* The slot moves with the first of its vertices that restarts: others find it there. */
static bool closure_settle(struct closure *k)
{
	const struct graph *g = k->graph;
	bool root = false;

	for (uint32_t v = 0; v < g->vertices; v++) {
		uint8_t *state = &k->run->vertex[v];

		if (!(*state & RUN_RESTART))
			continue;
		*state = RUN_RESTART | (*state & RUN_DIRTY);
		root |= g->vertex[v].out == GRAPH_NONE;
		if (!graph_is_relay(g, v))
			closure_move(k, graph_slot_of(g, v));
	}
	return root;
}

bool closure_run(struct closure *k)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t v = 0; v < k->graph->vertices; v++) {
			if (!(k->run->vertex[v] & RUN_RESTART))
				continue;
			changed |= closure_own(k, v);
			changed |= closure_ins(k, v);
			changed |= closure_out(k, v);
		}
	}
	return closure_settle(k);
}
