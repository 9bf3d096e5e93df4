/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The regular networks that have a name: flat:N, bcube:N,K, torus:AxBxC, fattree:K. From the name
 * to its levels, and to a topology file that a user can edit. Plain values; no I/O but shape_write.
 */
#ifndef SARISSA_CONTROL_TOPOLOGY_SHAPE_H
#define SARISSA_CONTROL_TOPOLOGY_SHAPE_H

#include <stdio.h>
#include "core/planner/network.h"

enum shape_kind { SHAPE_NONE, SHAPE_FLAT, SHAPE_BCUBE, SHAPE_TORUS, SHAPE_FATTREE };

struct shape {
	enum shape_kind kind;
	uint32_t levels, members[NETWORK_LEVELS_MAX]; /* level 0 first */
	uint32_t places;
};

/* NULL, or what is wrong with the name: a constant text that says which names there are. */
const char *shape_parse(const char *name, struct shape *out);
/* Ports of a node. */
uint32_t shape_rails(const struct shape *s);
/* The first rail of a level, and whether the level is a ring. */
uint32_t shape_rail(const struct shape *s, uint32_t level);
bool shape_ring(const struct shape *s);
/* Writes the topology file of that shape; rate and latency are words such as 100M and 20us. */
void shape_write(const char *name, const struct shape *s, const char *rate, const char *latency,
		 FILE *out);

#endif
