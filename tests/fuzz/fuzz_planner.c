/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests for plans: an input is {flags, size, chunk, late contributions, caller, the link that
 * stands for all, then groups of {node, count, link}}. Whatever each planner builds from it must be
 * right in the eyes of the verifier, within the bytes that were asked for, the same at the second
 * time, and a repair of it must come to an end.
 */
#include <stdlib.h>
#include <string.h>
#include "core/planner/closure.h"
#include "core/planner/planner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 4 << 20, GROUPS_MAX = 300, NODES = 64 };

static uint8_t memory[2][MEMORY_BYTES] __attribute__((aligned(64)));
static struct planner_group group[GROUPS_MAX];

struct input {
	const uint8_t *bytes;
	size_t left;
};

static uint64_t take(struct input *in, uint32_t bytes)
{
	uint64_t value = 0;

	for (; bytes > 0 && in->left > 0; bytes--, in->left--)
		value = value << 8 | *in->bytes++;
	return value;
}

/* Of any magnitude: six bits say how many of the others count. */
static uint64_t take_wide(struct input *in)
{
	uint64_t bits = take(in, 1) % 64, value = take(in, 8);

	return value & ((UINT64_C(2) << bits) - 1);
}

static struct topology_link take_link(struct input *in)
{
	struct topology_link l = {.latency_ns = take_wide(in)};

	l.start_ns = take_wide(in);
	l.bytes_per_s = take_wide(in);
	return l;
}

static void take_request(struct input *in, struct planner_request *q, struct planner_limits *limits)
{
	uint32_t flags = (uint32_t)take(in, 1);

	*limits = planner_limits_usual;
	if (flags & 1)
		limits->graph.gather_slots_max = limits->segments_max = GRAPH_SLOTS_MAX;
	*q = (struct planner_request){
		.everyone = flags & 2, .rate_seen = flags & 4, .group = group, .limits = limits};
	q->size = take_wide(in);
	q->chunk_bytes = flags & 8 ? (uint32_t)take(in, 2) : 1408;
	q->needed = (uint32_t)take(in, 1) * (flags & 16 ? 16 : 1);
	q->caller = flags & 32 ? GRAPH_NODE_NONE : (uint32_t)take(in, 1) % NODES;
	q->all = take_link(in);
	while (in->left > 0 && q->groups < GROUPS_MAX) {
		struct planner_group *g = &group[q->groups++];

		g->node = (uint32_t)take(in, 1) % NODES;
		g->count = flags & 64 ? (uint32_t)take(in, 1) : 1;
		g->link = flags & 128 ? take_link(in) : q->all;
		q->present += g->count;
		q->needed += g->count;
	}
}

/* One contribution for each that is booked; every third node is out of reach. */
static void repair(const struct graph *g)
{
	static struct run_slot slot[GRAPH_SLOTS_MAX];
	static uint8_t vertex[MEMORY_BYTES / 16];
	static struct run_contribution contribution[GRAPH_SLOTS_MAX];
	static struct closure_vacated vacated[GRAPH_SLOTS_MAX];
	const uint64_t reachable = 0x6db6db6db6db6db6;
	struct graph_run run = {slot, vertex};
	struct closure k = {.graph = g,
			    .run = &run,
			    .contribution = contribution,
			    .contributions = g->slots,
			    .reachable = &reachable,
			    .nodes = NODES,
			    .vacated = vacated};

	for (uint32_t i = 0; i < g->slots; i++) {
		bool there = g->slot[i].host != GRAPH_NODE_NONE;

		slot[i] = (struct run_slot){g->slot[i].host, there};
		contribution[i] = (struct run_contribution){g->slot[i].host, there ? i : GRAPH_NONE,
							    there, false};
	}
	for (uint32_t v = 0; v < g->vertices; v++)
		vertex[v] = g->vertex[v].op == GRAPH_SUM ? RUN_STARTED : 0;
	if (closure_node_lost(&k, 0))
		closure_run(&k);
	if (k.vacated_count > g->slots)
		abort();
}

static void build(const struct planner_request *q, const struct planner_choice *c)
{
	size_t bytes = planner_bytes(c);
	struct graph g;

	if (bytes == 0)
		abort();
	if (bytes > MEMORY_BYTES)
		return;
	for (uint32_t i = 0; i < 2; i++) {
		memset(memory[i], i ? 0xff : 0, bytes);
		if (planner_build(q, c, memory[i], bytes - 1, &g) == 0 ||
		    planner_build(q, c, memory[i], bytes, &g) || graph_wrong(&g, &q->limits->graph))
			abort();
	}
	if (memcmp(memory[0], memory[1], bytes))
		abort();
	if (g.slots <= NODES)
		repair(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct planner_limits limits;
	struct planner_request q;
	struct planner_choice c;

	take_request(&in, &q, &limits);
	if (planner_choose(&q, &c) == 0)
		build(&q, &c);
	for (uint32_t i = 0; planner_table[i]; i++)
		if (planner_shape(&q, planner_table[i], &c) == 0)
			build(&q, &c);
	return 0;
}
