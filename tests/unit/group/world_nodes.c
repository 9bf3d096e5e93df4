/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of the world of a group: they die, are cut off, and come back. */
#include "world.h"

/* Another node owns the group, when it hears of the death. */
static void world_move_owner(struct world *w)
{
	do
		w->home = world_random(w, WORLD_NODES);
	while (!world_works(w, w->home) || w->node[w->home].known);
	world_kill_owner(w);
	w->absent = false;
}

void world_taken_for_dead(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];

	if (n->known || world_works(w, node))
		return;
	n->known = true;
	for (uint32_t k = 0; n->dead && k < w->names; k++) {
		w->name[k].copies &= ~(1u << node);
		w->name[k].there &= w->name[k].sure || w->name[k].copies;
	}
	for (uint32_t i = 0; i < w->clients; i++)
		if (w->client[i].node == node) /* it joins again, if it is back */
			world_judge_died(w, i);
	w->groups->now_ns = w->now_ns;
	if (w->home == node)
		world_move_owner(w);
	else if (!w->absent)
		groups_node_lost(w->groups, node);
}

static void world_silent(struct world *w, uint32_t node)
{
	struct world_event *e = world_add(w, WORLD_DEAD, (50 + world_random(w, 900)) * WORLD_MS);

	e->node = node;
	if (w->home == node)
		w->absent = true;
}

void world_notice(struct world *w)
{
	for (uint32_t i = 0; i < WORLD_NODES; i++)
		world_taken_for_dead(w, i);
}

/* Whether another node stays that can own the group. */
static bool world_spare(const struct world *w, uint32_t node)
{
	for (uint32_t i = 0; i < WORLD_NODES; i++)
		if (i != node && world_works(w, i) && !w->node[i].known)
			return true;
	return false;
}

void world_kill_node(struct world *w, uint32_t node)
{
	if (w->node[node].dead || !world_spare(w, node))
		return;
	w->node[node].dead = true;
	w->node[node].cut = false;
	for (uint32_t k = 0; k < w->clients; k++)
		if (w->client[k].node == node && w->client[k].state != CLIENT_DEAD) {
			w->client[k].state = CLIENT_DEAD;
			w->client[k].deaths++;
			w->client[k].request = 0;
			world_judge_died(w, k);
			world_forget(w, k);
		}
	world_silent(w, node);
}

void world_cut_node(struct world *w, uint32_t node)
{
	if (!world_works(w, node) || !world_spare(w, node))
		return;
	w->node[node].cut = true;
	world_silent(w, node);
}

void world_node_back(struct world *w, uint32_t node)
{
	/* a node that was restarted says so; one that was cut off for a moment has missed nothing
	 */
	if (w->node[node].dead)
		world_taken_for_dead(w, node);
	w->node[node] = (struct world_node){0};
	if (w->home == node)
		w->absent = false;
}
