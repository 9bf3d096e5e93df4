/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world: virtual time, a network and its nodes, and the list of what went wrong. Tests build
 * one, let things happen, run it for some virtual time and look at the violations.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_WORLD_H
#define SARISSA_TESTS_SIM_MODEL_WORLD_H

#include "node.h"

#define WORLD_START_NS 1000000000ull /* a clock that never was zero */
#define WORLD_US       1000ull
#define WORLD_MS       1000000ull
#define WORLD_S	       1000000000ull

struct world {
	struct events events;
	struct network net;
	struct node *nodes; /* the first worker of each, then the second of each, ... */
	uint32_t count;
	uint32_t engines; /* all workers of all nodes */
	uint64_t seed;
	uint64_t clock_seed; /* whole nodes (full.h) each have a clock of their own; 0: one for all
			      */
	uint64_t violations;
	char first[512]; /* the first violation */
	bool print_violations;
};

/* count nodes with the same options on links of the same kind. Those with several workers
 * (o->config.workers) are whole nodes (full.h). */
void world_init(struct world *w, uint32_t count, const struct network_link *link,
		const struct node_options *o, uint64_t seed, bool v6);
/* Checks every node, then frees everything. */
void world_free(struct world *w);

/* Small tables, 16 MiB of store, 16 message slots, chunks for MTU 1500. */
struct node_options world_options(void);

uint64_t world_now(const struct world *w);
void world_run(struct world *w, uint64_t for_ns);

/* Runs until done(context) or for at most for_ns. Returns the time it took, UINT64_MAX when it
 * was not done. */
uint64_t world_until(struct world *w, uint64_t for_ns, bool (*done)(void *context), void *context);

/* Runs until a is connected to b, and b to a. */
uint64_t world_connect(struct world *w, uint32_t a, uint32_t b, uint64_t for_ns);

/* An edge from a buffer of one node to a buffer of another; returns the OUT edge's index. */
uint32_t world_edge(struct world *w, uint32_t from, uint32_t from_buffer, uint32_t to,
		    uint32_t to_buffer);

/* Runs until this buffer has been reported complete. */
uint64_t world_buffer_done(struct world *w, uint32_t node, uint32_t buffer, uint64_t for_ns);
/* ... until this edge has ended in some way. */
uint64_t world_edge_ended(struct world *w, uint32_t node, uint32_t edge, uint64_t for_ns);

/* Puts a violation on record. */
void world_violation(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
