/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Coordinates of a network: network.h. Planners and the reader of topology files call it; it must
 * not know what the coordinates are used for.
 */
#include "network.h"
#include <stddef.h>

const char *network_wrong(const struct network *w)
{
	uint64_t places = 1;

	if (w->levels > NETWORK_LEVELS_MAX)
		return "more levels than a network may have";
	for (uint32_t l = 0; l < w->levels; l++) {
		if (w->level[l].members < 2 || w->level[l].members > NETWORK_NODES_MAX)
			return "a level has fewer than two members, or too many";
		places *= w->level[l].members;
		if (places > NETWORK_NODES_MAX)
			return "more places than a network may have";
	}
	if (w->levels > 0 && places != w->places)
		return "the places are not the product of the levels' members";
	for (uint32_t i = 0; w->place && i < w->nodes; i++)
		if (w->place[i] != NETWORK_NONE && w->place[i] >= w->places)
			return "a node stands at no place";
	return NULL;
}

static uint32_t network_weight(const struct network *w, uint32_t level)
{
	uint32_t weight = 1;

	for (uint32_t l = 0; l < level; l++)
		weight *= w->level[l].members;
	return weight;
}

uint32_t network_coordinate(const struct network *w, uint32_t place, uint32_t level)
{
	return place / network_weight(w, level) % w->level[level].members;
}

uint32_t network_moved(const struct network *w, uint32_t place, uint32_t level, uint32_t coordinate)
{
	uint32_t weight = network_weight(w, level);

	return place - place / weight % w->level[level].members * weight + coordinate * weight;
}

uint32_t network_rail_towards(const struct network *w, uint32_t from, uint32_t to, uint32_t level)
{
	uint32_t members = w->level[level].members;
	uint32_t steps =
		(network_coordinate(w, to, level) + members - network_coordinate(w, from, level)) %
		members;

	return w->level[level].rail + (w->level[level].ring && 2 * steps > members);
}

uint32_t network_rails(const struct network *w)
{
	uint32_t rails = 1;

	for (uint32_t l = 0; l < w->levels; l++) {
		uint32_t end = w->level[l].rail + (w->level[l].ring ? 2u : 1u);

		rails = end > rails ? end : rails;
	}
	return rails;
}

uint32_t network_place(const struct network *w, uint32_t node)
{
	if (w->place)
		return node < w->nodes ? w->place[node] : NETWORK_NONE;
	return node < w->places ? node : NETWORK_NONE;
}

/* Along a ring the shorter way; else one hop. */
static uint32_t network_steps(const struct network_level *level, uint32_t a, uint32_t b)
{
	uint32_t steps = (b + level->members - a) % level->members;

	if (!level->ring)
		return 1;
	return steps < level->members - steps ? steps : level->members - steps;
}

uint32_t network_distance(const struct network *w, uint32_t from, uint32_t to)
{
	uint32_t p = network_place(w, from), q = network_place(w, to);
	uint32_t sum = 0, far = 0, tier = 0;

	if (p == NETWORK_NONE || q == NETWORK_NONE)
		return NETWORK_NONE;
	if (w->rack)
		return from == to ? 0 : w->rack[from] == w->rack[to] ? 1 : 2;
	for (uint32_t l = 0; l < w->levels; l++) {
		const struct network_level *level = &w->level[l];
		uint32_t a = network_coordinate(w, p, l), b = network_coordinate(w, q, l);

		if (l > 0 && (level->ring || level->rail != level[-1].rail)) {
			sum += far; /* not a tier above the level before */
			far = tier = 0;
		}
		if (a != b)
			far = tier + network_steps(level, a, b);
		tier++;
	}
	return sum + far;
}

uint32_t network_nearer(const struct network *w, uint32_t distance)
{
	uint32_t most = w->rack ? 2 : w->levels;

	return w->narrow && distance < most ? most - distance : 0;
}
