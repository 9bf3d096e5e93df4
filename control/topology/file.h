/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A topology file: the nodes of a cluster, their ports (rails), the switches and links between
 * them, and their coordinates. Read from YAML with libyaml and checked in full; the planners get
 * the levels of it as a struct network. docs/user/topology.md describes the format.
 *
 * Units: bytes per second, nanoseconds. One thread. Errors are one line with the place in the file.
 */
#ifndef SARISSA_CONTROL_TOPOLOGY_FILE_H
#define SARISSA_CONTROL_TOPOLOGY_FILE_H

#include <stddef.h>
#include "core/planner/network.h"
#include "shape.h"

enum {
	TOPOLOGY_FILE_BYTES_MAX = 4 << 20,
	TOPOLOGY_RAILS_MAX = 16, /* of a node */
	TOPOLOGY_SWITCHES_MAX = 4096,
	TOPOLOGY_LINKS_MAX = 16384,
	TOPOLOGY_NAME_MAX = 31, /* bytes, without the terminating zero */
	TOPOLOGY_ERROR_BYTES = 512,
	TOPOLOGY_WHY_BYTES = 256, /* without the place */
};

struct topology_rail {
	bool to_node; /* a direct link to the node `to`; false: to the switch `to` */
	uint32_t to;  /* index into nodes or switches */
	uint64_t bytes_per_s, latency_ns; /* each way; latency 0: not said */
	int numa;			  /* NUMA node of the card; -1: not said */
};

struct topology_node {
	uint32_t number; /* as in --node */
	uint32_t place;	 /* by its coordinates; NETWORK_NONE: it has none */
	uint32_t line;	 /* of the file */
	uint32_t rails;
	struct topology_rail rail[TOPOLOGY_RAILS_MAX];
	char domain[TOPOLOGY_NAME_MAX + 1]; /* failure domain; "": none */
};

struct topology_switch {
	char name[TOPOLOGY_NAME_MAX + 1];
};

struct topology_trunk { /* a link between two switches */
	uint32_t a, b;
	uint64_t bytes_per_s, latency_ns;
};

struct topology {
	struct shape shape; /* kind SHAPE_NONE: the file names none */
	uint32_t line;	    /* of the list of nodes */
	uint32_t nodes, switches, trunks;
	struct topology_node *node; /* in the order of the file */
	struct topology_switch *switch_;
	struct topology_trunk *trunk;
	struct network network; /* what the planners see; its arrays are the next two */
	uint32_t place[NETWORK_NODES_MAX], rack[NETWORK_NODES_MAX];
};

/* Reads and checks a file. NULL: error has one line, "PATH:LINE: what is wrong: what to do". The
 * caller frees with topology_free. */
struct topology *topology_read(const char *path, char error[TOPOLOGY_ERROR_BYTES]);
void topology_free(struct topology *t);

/* check.c: what can only be seen when all is read. False: error is "LINE: what is wrong". */
bool topology_complete(struct topology *t, char error[TOPOLOGY_WHY_BYTES]);

/* Whether a direct link joins rails of different numbers, which ports of one dataplane do not use:
 * rail i speaks with rail i. NULL: none does; else one line that says which. */
const char *topology_unlike(const struct topology *t, char out[TOPOLOGY_WHY_BYTES]);

/* The shape alone, without nodes of a file: node i at place i, all links alike. */
void topology_of_shape(const struct shape *s, uint64_t bytes_per_s, uint64_t latency_ns,
		       struct network *out);

#endif
