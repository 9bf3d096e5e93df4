/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The networks of places.h. Nodes relay for each other: a packet between two that share no link
 * passes a node per level, as in BCube and tori. A flat network and tiers of switches need no
 * relays, so the model network does without this file there.
 */
#include "places.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/planner/planner.h"

static void places_level(struct network *w, uint32_t members, bool ring)
{
	struct network_level *l = &w->level[w->levels++];

	*l = (struct network_level){.members = members,
				    .ring = ring,
				    .rail = (uint8_t)(ring ? 2 * (w->levels - 1) : w->levels - 1)};
	w->places *= members;
}

static bool places_shape(struct network *w, const char *shape)
{
	uint32_t members, more;
	int read = 0;

	if (sscanf(shape, "bcube:%u,%u%n", &members, &more, &read) == 2 && !shape[read]) {
		for (uint32_t l = 0; l <= more && w->levels < NETWORK_LEVELS_MAX; l++)
			places_level(w, members, false);
		return w->levels == more + 1;
	}
	if (sscanf(shape, "flat:%u%n", &members, &read) == 1 && !shape[read]) {
		places_level(w, members, false);
		return true;
	}
	if (strncmp(shape, "torus:", 6) != 0)
		return false;
	shape += 5;
	while ((*shape == ':' || *shape == 'x') && w->levels < NETWORK_LEVELS_MAX &&
	       sscanf(shape + 1, "%u%n", &members, &read) == 1) {
		places_level(w, members, true);
		shape += 1 + read;
	}
	return *shape == 0;
}

bool places_parse(const char *shape, uint64_t rate_bps, uint64_t latency_ns, struct places *out)
{
	static struct network w;

	w = (struct network){.places = 1};
	if (!places_shape(&w, shape) || network_wrong(&w))
		return false;
	for (uint32_t l = 0; l < w.levels; l++) {
		w.level[l].bytes_per_s = rate_bps / 8;
		w.level[l].latency_ns = latency_ns;
	}
	*out = (struct places){&w, w.places, network_rails(&w)};
	return true;
}

struct network_hop places_hop(const void *network, uint32_t at, uint32_t to)
{
	const struct network *w = network;

	for (uint32_t l = 0; l < w->levels; l++) {
		uint32_t a = network_coordinate(w, at, l), b = network_coordinate(w, to, l);
		uint32_t members = w->level[l].members, rail = w->level[l].rail, other = rail;

		if (a == b)
			continue;
		if (w->level[l].ring) {
			rail = network_rail_towards(w, at, to, l);
			b = (a + (rail == w->level[l].rail ? 1 : members - 1)) % members;
			other = rail == w->level[l].rail ? rail + 1 : rail - 1;
		}
		return (struct network_hop){network_moved(w, at, l, b), rail, other};
	}
	return (struct network_hop){to, 0, 0};
}

const struct planner *places_planner(const char *name)
{
	return planner_named(name);
}
