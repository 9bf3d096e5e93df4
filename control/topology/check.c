/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of a topology that need the whole of it: links between nodes that both ends name, rails
 * that lead nowhere, parts that cannot reach each other, coordinates that the cables contradict.
 * Then the levels for the planners.
 */
#include <stdio.h>
#include <string.h>
#include "file.h"

#define CHECK_FAIL(at, format, ...) \
	(snprintf(error, TOPOLOGY_WHY_BYTES, "%u: " format, (at)->line, __VA_ARGS__), false)

static uint32_t check_find_node(const struct topology *t, uint32_t number)
{
	uint32_t i = 0;

	while (i < t->nodes && t->node[i].number != number)
		i++;
	return i;
}

/* Numbers of nodes at the other ends of direct links become indices. */
static bool check_neighbours(struct topology *t, char *error)
{
	for (uint32_t i = 0; i < t->nodes; i++)
		for (uint32_t k = 0; k < t->node[i].rails; k++) {
			struct topology_rail *rail = &t->node[i].rail[k];
			uint32_t number = rail->to;

			if (!rail->to_node)
				continue;
			rail->to = check_find_node(t, number);
			if (rail->to == t->nodes)
				return CHECK_FAIL(&t->node[i],
						  "node %u has a rail to node %u, which is unknown",
						  t->node[i].number, number);
			if (rail->to == i)
				return CHECK_FAIL(&t->node[i], "node %u has a rail to itself",
						  number);
		}
	return true;
}

static uint32_t check_rails_between(const struct topology *t, uint32_t i, bool to_node, uint32_t to)
{
	uint32_t count = 0;

	for (uint32_t k = 0; k < t->node[i].rails; k++)
		count += t->node[i].rail[k].to_node == to_node && t->node[i].rail[k].to == to;
	return count;
}

/* A direct link has a rail at both ends. */
static bool check_both_ends(const struct topology *t, char *error)
{
	for (uint32_t i = 0; i < t->nodes; i++)
		for (uint32_t k = 0; k < t->node[i].rails; k++) {
			const struct topology_rail *rail = &t->node[i].rail[k];

			if (!rail->to_node && check_rails_between(t, i, false, rail->to) > 1)
				return CHECK_FAIL(&t->node[i],
						  "the link from node %u to switch '%s' is named "
						  "twice",
						  t->node[i].number, t->switch_[rail->to].name);
			if (rail->to_node && check_rails_between(t, i, true, rail->to) !=
						     check_rails_between(t, rail->to, true, i))
				return CHECK_FAIL(&t->node[i],
						  "nodes %u and %u do not name the same links "
						  "between them",
						  t->node[i].number, t->node[rail->to].number);
		}
	return true;
}

/* ---- reach ----------------------------------------------------------------------------------- */

struct check_union {
	uint32_t above[NETWORK_NODES_MAX + TOPOLOGY_SWITCHES_MAX];
};

static uint32_t check_top(struct check_union *u, uint32_t i)
{
	while (u->above[i] != i)
		i = u->above[i] = u->above[u->above[i]];
	return i;
}

/* Nodes first, then switches. */
static bool check_connected(const struct topology *t, char *error)
{
	struct check_union u;

	for (uint32_t i = 0; i < t->nodes + t->switches; i++)
		u.above[i] = i;
	for (uint32_t i = 0; i < t->nodes; i++)
		for (uint32_t k = 0; k < t->node[i].rails; k++) {
			const struct topology_rail *rail = &t->node[i].rail[k];

			u.above[check_top(&u, i)] =
				check_top(&u, rail->to_node ? rail->to : t->nodes + rail->to);
		}
	for (uint32_t i = 0; i < t->trunks; i++)
		u.above[check_top(&u, t->nodes + t->trunk[i].a)] =
			check_top(&u, t->nodes + t->trunk[i].b);
	for (uint32_t i = 1; i < t->nodes; i++)
		if (check_top(&u, i) != check_top(&u, 0))
			return CHECK_FAIL(&t->node[i],
					  "the topology is not connected: no way from node %u to "
					  "node %u",
					  t->node[0].number, t->node[i].number);
	return true;
}

/* ---- levels ---------------------------------------------------------------------------------- */

static uint32_t check_at(const struct topology *t, uint32_t place)
{
	uint32_t i = 0;

	while (i < t->nodes && t->node[i].place != place)
		i++;
	return i;
}

/* Whether the cable of a rail goes where the coordinates of a level say. */
static bool check_rail(const struct topology *t, uint32_t i, uint32_t level, char *error)
{
	const struct network *w = &t->network;
	const struct topology_node *n = &t->node[i];
	uint32_t members = w->level[level].members, rail = w->level[level].rail;
	uint32_t at = network_coordinate(w, n->place, level);
	uint32_t next = check_at(t, network_moved(w, n->place, level, (at + 1) % members));
	const struct topology_node *o = &t->node[next];

	if (w->level[level].ring) {
		if (n->rail[rail].to_node && n->rail[rail].to == next &&
		    o->rail[rail + 1].to_node && o->rail[rail + 1].to == i)
			return true;
		return CHECK_FAIL(n,
				  "rail %u of node %u does not lead to node %u, its neighbour on "
				  "axis %u",
				  rail, n->number, o->number, level);
	}
	if (t->shape.kind != SHAPE_FATTREE && (n->rail[rail].to_node || o->rail[rail].to_node ||
					       n->rail[rail].to != o->rail[rail].to))
		return CHECK_FAIL(n,
				  "rail %u of nodes %u and %u, one group of level %u, leads to "
				  "different switches",
				  rail, n->number, o->number, level);
	return true;
}

static bool check_shape(struct topology *t, char *error)
{
	if (t->nodes != t->shape.places)
		return CHECK_FAIL(t, "the shape has %u nodes, the file %u", t->shape.places,
				  t->nodes);
	for (uint32_t i = 0; i < t->nodes; i++)
		if (t->node[i].rails != shape_rails(&t->shape))
			return CHECK_FAIL(&t->node[i], "node %u has %u rails, the shape %u",
					  t->node[i].number, t->node[i].rails,
					  shape_rails(&t->shape));
	for (uint32_t i = 0; i < t->nodes; i++)
		for (uint32_t l = 0; l < t->shape.levels; l++)
			if (!check_rail(t, i, l, error))
				return false;
	return true;
}

/* A level is as fast as its slowest rail, and as far as its furthest. */
static void check_measure(struct topology *t)
{
	for (uint32_t l = 0; l < t->network.levels; l++) {
		struct network_level *level = &t->network.level[l];

		for (uint32_t i = 0; i < t->nodes; i++)
			for (uint32_t k = 0; k < (level->ring ? 2u : 1u); k++) {
				const struct topology_rail *rail =
					&t->node[i].rail[level->rail + k];

				if (level->bytes_per_s == 0 ||
				    rail->bytes_per_s < level->bytes_per_s)
					level->bytes_per_s = rail->bytes_per_s;
				if (rail->latency_ns > level->latency_ns)
					level->latency_ns = rail->latency_ns;
			}
	}
}

/* Places that a node without coordinates shares with nodes that are near: a domain, or the switch
 * of its first rail. */
static uint32_t check_rack(const struct topology *t, uint32_t i)
{
	const struct topology_node *n = &t->node[i];
	uint32_t first = 0;

	if (n->domain[0] == '\0')
		return n->rail[0].to_node ? i : NETWORK_NODES_MAX + n->rail[0].to;
	while (strcmp(t->node[first].domain, n->domain) != 0)
		first++;
	return first;
}

/* Whether a switch of nodes has links to others of half the nodes' rate or less. */
static bool check_narrow(const struct topology *t)
{
	static const double share = 2;

	for (uint32_t s = 0; s < t->switches; s++) {
		double below = 0, above = 0;

		for (uint32_t i = 0; i < t->nodes; i++)
			for (uint32_t k = 0; k < t->node[i].rails; k++)
				if (!t->node[i].rail[k].to_node && t->node[i].rail[k].to == s)
					below += (double)t->node[i].rail[k].bytes_per_s;
		for (uint32_t i = 0; i < t->trunks; i++)
			if (t->trunk[i].a == s || t->trunk[i].b == s)
				above += (double)t->trunk[i].bytes_per_s;
		if (above > 0 && share * above <= below)
			return true;
	}
	return false;
}

void topology_of_shape(const struct shape *s, uint64_t bytes_per_s, uint64_t latency_ns,
		       struct network *out)
{
	*out = (struct network){.levels = s->levels, .places = s->places};
	for (uint32_t l = 0; l < s->levels; l++)
		out->level[l] = (struct network_level){.members = s->members[l],
						       .ring = shape_ring(s),
						       .rail = (uint8_t)shape_rail(s, l),
						       .latency_ns = latency_ns,
						       .bytes_per_s = bytes_per_s};
}

const char *topology_unlike(const struct topology *t, char out[TOPOLOGY_WHY_BYTES])
{
	for (uint32_t i = 0; i < t->nodes; i++)
		for (uint32_t k = 0; k < t->node[i].rails; k++) {
			const struct topology_rail *rail = &t->node[i].rail[k];
			const struct topology_node *o = &t->node[rail->to_node ? rail->to : i];

			if (!rail->to_node ||
			    (k < o->rails && o->rail[k].to_node && o->rail[k].to == i))
				continue;
			snprintf(
				out, TOPOLOGY_WHY_BYTES,
				"line %u: rail %u of node %u leads to node %u, whose rail %u does not "
				"lead back: give the dataplane one port, and the kernel routes",
				t->node[i].line, k, t->node[i].number, o->number, k);
			return out;
		}
	return NULL;
}

bool topology_complete(struct topology *t, char error[TOPOLOGY_WHY_BYTES])
{
	struct shape flat = {SHAPE_FLAT, 1, {t->nodes}, t->nodes};

	if (t->nodes < 2)
		return CHECK_FAIL(t, "a topology has at least two nodes, not %u", t->nodes);
	if (!check_neighbours(t, error) || !check_both_ends(t, error) || !check_connected(t, error))
		return false;
	topology_of_shape(t->shape.kind == SHAPE_NONE ? &flat : &t->shape, 0, 0, &t->network);
	if (t->shape.kind != SHAPE_NONE && !check_shape(t, error))
		return false;
	check_measure(t);
	for (uint32_t i = 0; i < NETWORK_NODES_MAX; i++)
		t->place[i] = NETWORK_NONE;
	for (uint32_t i = 0; i < t->nodes; i++) {
		uint32_t number = t->node[i].number;

		t->place[number] = t->shape.kind == SHAPE_NONE ? i : t->node[i].place;
		t->rack[number] = t->shape.kind == SHAPE_NONE ? check_rack(t, i) : 0;
	}
	t->network.narrow = check_narrow(t);
	t->network.place = t->place;
	t->network.rack = t->shape.kind == SHAPE_NONE ? t->rack : NULL;
	t->network.nodes = NETWORK_NODES_MAX;
	return true;
}
