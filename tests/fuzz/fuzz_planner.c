/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests for plans: an input is {flags, size, chunk, late contributions, caller, the link that
 * stands for all, then groups of {node, count, link}}; at its end perhaps a network. Whatever each
 * planner builds from it must be right in the eyes of the verifier, within the bytes that were
 * asked for, the same at the second time, and a repair of it must come to an end. Then the plan is
 * changed in places that follow from the input. Each such plan is run with counts in place of sums:
 * one that the verifier lets pass must give each contribution to each output exactly once.
 */
#include <stdlib.h>
#include <string.h>
#include "core/planner/closure.h"
#include "core/planner/planner.h"
#include "core/planner/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_BYTES = 4 << 20, GROUPS_MAX = 300, NODES = 64, CHANGES = 12 };

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
		limits->flat_slots_max = limits->segments_max = GRAPH_SLOTS_MAX;
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

/* ---- networks -------------------------------------------------------------------------------- */

enum { NETWORK_TRAILER = 7, NETWORK_MARK = 0xa5 };

/* From the end of the input: levels, members, kinds, rates, and a mark. With it there is one group
 * for each place, from some node on; now and then too few. */
static bool take_network(const uint8_t *data, size_t size, struct planner_request *q,
			 struct network *w)
{
	const uint8_t *t = data + size - NETWORK_TRAILER;
	uint32_t rail = 0;

	if (size < NETWORK_TRAILER || t[NETWORK_TRAILER - 1] != NETWORK_MARK)
		return false;
	*w = (struct network){.levels = 1 + t[0] % 5, .places = 1};
	for (uint32_t l = 0; l < w->levels; l++) {
		uint32_t members = 2 + (t[1] >> (l % 4 * 2)) % 4;
		bool ring = t[2] >> l & 1;

		if (w->places * members > GROUPS_MAX - 1)
			members = 2;
		w->places *= members;
		w->level[l] = (struct network_level){members, ring, (uint8_t)rail,
						     UINT64_C(1) << t[3] % 40,
						     UINT64_C(1) << (t[4] + l) % 44};
		rail += t[2] >> (l + 3) & 1 ? ring : 1u + ring;
	}
	if (w->places > GROUPS_MAX) {
		w->levels = 1;
		w->places = w->level[0].members;
	}
	q->groups = q->present = q->needed = 0;
	for (uint32_t i = 0; i < w->places - (t[5] == 255); i++)
		group[q->groups++] = (struct planner_group){(i + t[5]) % w->places, 1, q->all, 0};
	q->present = q->needed = q->groups;
	q->everyone |= t[5] & 1;
	q->network = w;
	return true;
}

/* ---- what a plan does ------------------------------------------------------------------------ */

/* Everything that a run looks at lies inside the graph's arrays, or the plan is not run. */
static bool run_reads(const struct graph *g)
{
	for (uint32_t v = 0; v < g->vertices; v++)
		if (g->vertex[v].ins > 0 &&
		    (g->vertex[v].in > g->edges || g->vertex[v].ins > g->edges - g->vertex[v].in))
			return false;
	for (uint32_t e = 0; e < g->edges; e++)
		if (g->edge[e].vertex >= g->vertices)
			return false;
	return true;
}

/* How often each slot's contributions are in what the root of a segment builds. False: a vertex
 * is met a second time, in a circle or by two ways. */
static bool run_count(const struct graph *g, uint32_t root, uint32_t *count, uint8_t *met)
{
	static uint32_t stack[MEMORY_BYTES / 16];
	uint32_t depth = 0;

	stack[depth++] = root;
	while (depth > 0) {
		uint32_t v = stack[--depth];

		if (met[v]++)
			return false;
		if (!graph_is_relay(g, v))
			count[graph_slot_of(g, v)]++;
		if (g->vertex[v].op == GRAPH_ALIAS && g->vertex[v].ins > 0)
			return false; /* it hands on its own contribution only */
		for (uint32_t k = 0; k < g->vertex[v].ins; k++) {
			uint32_t from = g->edge[g->vertex[v].in + k].vertex;

			if (g->vertex[from].out != v || depth == sizeof(stack) / sizeof(*stack))
				return false;
			stack[depth++] = from;
		}
	}
	return true;
}

/* Whether each reader gets the segment over its feeders, in however many rounds. */
static bool run_feeds(const struct graph *g, uint32_t segment)
{
	static bool has[GRAPH_SLOTS_MAX];
	const uint16_t *feeder = &g->feeder[segment * g->slots];
	uint32_t got = 1, before = 0;

	if (graph_is_relay(g, g->segment[segment].root))
		return false;
	memset(has, 0, sizeof(has));
	has[graph_slot_of(g, g->segment[segment].root)] = true;
	while (got > before) {
		before = got;
		for (uint32_t i = 0; i < g->slots; i++)
			if (!has[i] && feeder[i] < g->slots && has[feeder[i]]) {
				has[i] = true;
				got++;
			}
	}
	return got == g->slots;
}

/* Whether each contribution is in each byte of the target once, at all who get it. */
static bool run_right(const struct graph *g)
{
	static uint32_t count[GRAPH_SLOTS_MAX];
	static uint8_t met[MEMORY_BYTES / 16];
	uint64_t chunks = 0;

	if (g->vertices > sizeof(met) || !run_reads(g))
		return false;
	memset(met, 0, g->vertices);
	for (uint32_t j = 0; j < g->segments; j++) {
		if (g->segment[j].first != chunks || g->segment[j].root >= g->vertices)
			return false;
		chunks += g->segment[j].count;
		memset(count, 0, sizeof(count));
		if (!run_count(g, g->segment[j].root, count, met) ||
		    (g->feeder && !run_feeds(g, j)))
			return false;
		for (uint32_t i = 0; i < g->slots; i++)
			if (count[i] != 1)
				return false;
	}
	return chunks == segment_chunks(g->size, g->chunk_bytes);
}

/* ---- plans that are changed ------------------------------------------------------------------ */

static uint32_t drawn(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
	return (uint32_t)(*state >> 33);
}

static void change(struct graph *g, uint64_t *state)
{
	uint32_t v = drawn(state) % g->vertices, to = drawn(state) % (g->vertices + 2);
	uint32_t e = g->edges ? drawn(state) % g->edges : 0, j = drawn(state) % g->segments;
	uint32_t i = drawn(state) % g->slots;

	switch (drawn(state) % 11) {
	case 0:
		g->vertex[v].out = to == g->vertices ? GRAPH_NONE : to;
		break;
	case 1:
		g->vertex[v].ins = (uint16_t)(g->vertex[v].ins + drawn(state) % 5 - 2);
		break;
	case 2:
		g->vertex[v].in = drawn(state) % (g->edges + 2);
		break;
	case 3:
		if (g->edges)
			g->edge[e].vertex = to & 0xffffff;
		break;
	case 4:
		g->segment[j].root = to;
		break;
	case 5:
		g->segment[j].count += drawn(state) % 3 - 1;
		break;
	case 6:
		g->vertex[v].op ^= 1;
		break;
	case 7:
		g->vertex[v].target ^= 1;
		break;
	case 8:
		if (g->feeder)
			g->feeder[j * g->slots + i] = (uint16_t)(drawn(state) % (g->slots + 2));
		break;
	case 9:
		g->slot[i].wants = (uint16_t)(drawn(state) % 3);
		break;
	default: /* two vertices change places at those who take from them */
		if (g->edges) {
			struct graph_edge other = g->edge[e];
			uint32_t f = drawn(state) % g->edges, up = g->vertex[other.vertex].out;

			g->edge[e] = g->edge[f];
			g->vertex[other.vertex].out = g->vertex[g->edge[f].vertex].out;
			g->vertex[g->edge[f].vertex].out = up;
			g->edge[f] = other;
		}
	}
}

/* Whatever the verifier lets pass is right; the graph is as before in the end. */
static void change_all(struct graph *g, const struct graph_limits *limits, size_t bytes,
		       uint64_t seed)
{
	static uint8_t before[MEMORY_BYTES / 256];

	if (bytes > sizeof(before)) /* so that large plans do not take all the time */
		return;
	memcpy(before, g->slot, bytes);
	for (uint32_t k = 0; k < CHANGES; k++) {
		for (uint32_t n = 1 + drawn(&seed) % 2; n > 0; n--)
			change(g, &seed);
		if (!verify_graph(g, limits) && !run_right(g))
			abort();
		memcpy(g->slot, before, bytes);
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

static void build(const struct planner_request *q, const struct planner_choice *c, uint64_t seed)
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
		    planner_build(q, c, memory[i], bytes, &g) ||
		    verify_graph(&g, &q->limits->graph))
			abort();
	}
	if (memcmp(memory[0], memory[1], bytes) || !run_right(&g))
		abort();
	if (g.slots <= NODES)
		repair(&g);
	change_all(&g, &q->limits->graph, bytes, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct planner_limits limits;
	struct planner_request q;
	struct planner_choice c;
	uint64_t seed = size;
	struct network w;

	for (size_t i = 0; i < size; i++)
		seed = seed * 31 + data[i];
	take_request(&in, &q, &limits);
	if (take_network(data, size, &q, &w) && network_wrong(&w))
		abort();
	if (planner_choose(&q, &c) == 0)
		build(&q, &c, seed);
	for (uint32_t i = 0; planner_table[i]; i++)
		if (planner_shape(&q, planner_table[i], &c) == 0)
			build(&q, &c, seed + i);
	return 0;
}
