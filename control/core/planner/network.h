/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network between the nodes, as planners need it: a grid of places with one coordinate per
 * level, such as BCube, a torus, or racks. The reader of topology files fills it in; planners read
 * it. Pure values; it must not know files, members or ports.
 *
 * A level is a dimension of the grid. The nodes that differ only in their coordinate of level l are
 * a group of that level: they share a switch, or a ring of direct links. A node's ports are its
 * rails. Levels may share one (the tiers of a fat tree), or have one each (BCube), or two, one per
 * direction of a ring (torus).
 *
 * BCube(n, k) of Guo et al. (SIGCOMM 2009) has k + 1 levels of n; HiPS (Geng et al., NetAI 2018)
 * synchronises along its levels.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_NETWORK_H
#define SARISSA_CONTROL_CORE_PLANNER_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

enum { NETWORK_LEVELS_MAX = 8, NETWORK_NODES_MAX = 1024 };

#define NETWORK_NONE UINT32_MAX

struct network_level {
	uint32_t members;     /* of a group, 2 or more */
	bool ring;	      /* direct links to the two neighbours; false: a switch */
	uint8_t rail;	      /* the port of this level; of a ring the one to the next member, and
				 that to the member before has the next number */
	uint64_t latency_ns;  /* one way; 0: not known */
	uint64_t bytes_per_s; /* of a node's link on this level, each way; 0: not known */
};

struct network {
	uint32_t levels; /* 0: nothing is known */
	uint32_t places; /* the product of all members */
	struct network_level level[NETWORK_LEVELS_MAX];
	/* [node]: its place, or NETWORK_NONE; so many nodes. NULL: node i is at place i. */
	const uint32_t *place;
	uint32_t nodes;
	/* [node]: its rack, where nodes share one and have no coordinates; so many nodes. NULL: the
	 * levels say how far apart nodes are. */
	const uint32_t *rack;
	/* Nodes have a dataplane of several ports, and some link leads to a port of another number:
	 * no plan along the levels, as port i sends to port i of others only. */
	bool crossed;
	bool narrow; /* links between racks carry half of what the nodes below can send, or less */
};

/* NULL; or what is wrong with the network, a constant text. */
const char *network_wrong(const struct network *w);

/* A place is the number whose digits are the coordinates, level 0 the lowest. */
uint32_t network_coordinate(const struct network *w, uint32_t place, uint32_t level);
/* The place with another coordinate on that level. */
uint32_t network_moved(const struct network *w, uint32_t place, uint32_t level,
		       uint32_t coordinate);
/* The rail on which a place reaches another coordinate of a level: of a ring, the shorter way. */
uint32_t network_rail_towards(const struct network *w, uint32_t from, uint32_t to, uint32_t level);
/* The rails of a node. */
uint32_t network_rails(const struct network *w);
/* The place of a node; NETWORK_NONE: it has none. */
uint32_t network_place(const struct network *w, uint32_t node);
/* How far apart two nodes are, as a number to compare: 0, they are the same; 1, they share a switch
 * or a link. Tiers of switches count up to the highest that is crossed, other levels their hops.
 * NETWORK_NONE: one of them has no place. */
uint32_t network_distance(const struct network *w, uint32_t from, uint32_t to);
/* How many more streams than others a copy may feed to a node so far away: where links between
 * racks are narrow the nearer ones have a place of their own, so that no second copy enters. */
uint32_t network_nearer(const struct network *w, uint32_t distance);

#endif
