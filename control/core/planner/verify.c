/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verifier: whether each contribution of a plan graph reaches each output exactly once, and
 * whether the graph keeps to its limits. Tests, debug builds and the fuzzer run it on every plan.
 * Each check relies on those before it, so their order matters.
 */
#include "graph.h"
#include "segment.h"

/* ---- counts and ranges ---------------------------------------------------------------------- */

static const char *verify_counts(const struct graph *g, const struct graph_limits *limits)
{
	if (g->slots == 0 || g->slots > GRAPH_SLOTS_MAX || g->segments == 0 ||
	    g->segments > GRAPH_SEGMENTS_MAX || g->relays > GRAPH_RELAYS_MAX)
		return "no such number of slots, segments or relays";
	if (g->vertices != g->slots * g->segments + g->relays)
		return "a slot has not one vertex per segment";
	if (g->edges != g->vertices - g->segments)
		return "not every vertex but the roots has one edge out";
	if (g->out != GRAPH_OUT_ROOT && g->out != GRAPH_OUT_GATHER)
		return "no such output";
	if (g->out == GRAPH_OUT_ROOT && (g->segments > 1 || g->feeder || g->eager || g->values))
		return "a target that its root builds has one segment, no readers and no values";
	if (g->out == GRAPH_OUT_GATHER && g->slots > limits->gather_slots_max)
		return "more slots than readers can be fed from";
	if (g->out == GRAPH_OUT_GATHER && graph_output_parts(g) > limits->parts_max)
		return "a reader has too many parts";
	return NULL;
}

/* The segments tile the target, each with a root of its own. */
static const char *verify_segments(const struct graph *g)
{
	uint64_t chunks = segment_chunks(g->size, g->chunk_bytes), next = 0;

	if (g->chunk_bytes == 0 || chunks > UINT32_MAX)
		return "no such size";
	for (uint32_t j = 0; j < g->segments; j++) {
		const struct graph_segment *s = &g->segment[j];

		if (s->first != next || (s->count == 0 && g->segments > 1))
			return "the segments do not tile the target";
		next += s->count;
		if (s->root >= g->vertices)
			return "a segment's root is no vertex";
	}
	if (next != chunks)
		return "the segments do not tile the target";
	for (uint32_t i = 0; i < g->relays; i++)
		if (g->relay[i].segment >= g->segments || g->relay[i].host == GRAPH_NODE_NONE)
			return "a relay has no segment, or no host";
	for (uint32_t j = 0; j < g->segments; j++)
		if (graph_segment_of(g, g->segment[j].root) != j)
			return "a segment's root is another segment's vertex";
	return NULL;
}

static const char *verify_slots(const struct graph *g, const struct graph_limits *limits)
{
	uint64_t wants = 0;

	for (uint32_t i = 0; i < g->slots; i++) {
		const struct graph_slot *s = &g->slot[i];

		if (s->wants == 0 || s->wants > limits->group_max)
			return "a slot wants no contribution, or too many";
		if (s->booked != (s->host == GRAPH_NODE_NONE ? 0 : s->wants))
			return "a slot is booked for a node without contributions there";
		if (s->wants > 1 && s->host == GRAPH_NODE_NONE)
			return "a slot of several contributions is not one node's";
		wants += s->wants;
	}
	return wants == g->needed ? NULL : "the slots do not take the needed contributions";
}

/* ---- edges ---------------------------------------------------------------------------------- */

/* Whether a vertex's edges are the inverse of their vertices' out, none twice. */
static bool verify_inverse(const struct graph *g, uint32_t v)
{
	const struct graph_vertex *p = &g->vertex[v];

	for (uint32_t k = 0; k < p->ins; k++) {
		uint32_t from = g->edge[p->in + k].vertex;

		if (from >= g->vertices || g->vertex[from].out != v)
			return false;
		for (uint32_t i = 0; i < k; i++)
			if (g->edge[p->in + i].vertex == from)
				return false;
	}
	return true;
}

static const char *verify_edges(const struct graph *g, const struct graph_limits *limits)
{
	uint64_t ins = 0;

	for (uint32_t v = 0; v < g->vertices; v++) {
		const struct graph_vertex *p = &g->vertex[v];

		if (p->out == GRAPH_NONE) {
			if (g->segment[graph_segment_of(g, v)].root != v)
				return "a vertex gives to nobody and is no root";
		} else if (p->out >= g->vertices ||
			   graph_segment_of(g, p->out) != graph_segment_of(g, v)) {
			return "an edge leads out of its segment";
		} else if (g->segment[graph_segment_of(g, v)].root == v) {
			return "a root gives to another vertex";
		}
		if (p->ins > limits->fan_in_max || graph_wants(g, v) + p->ins > limits->parts_max)
			return "a vertex takes too many parts";
		if (p->ins > 0 && (p->in > g->edges || p->ins > g->edges - p->in))
			return "a vertex's edges are not in the graph";
		ins += p->ins;
	}
	if (ins != g->edges)
		return "an edge leads to no vertex, or to two";
	for (uint32_t v = 0; v < g->vertices; v++)
		if (!verify_inverse(g, v))
			return "an edge is not the inverse of its vertex's out";
	return NULL;
}

/* The edge after the one from v into its out; GRAPH_NONE: that was the last. */
static uint32_t verify_next(const struct graph *g, uint32_t v)
{
	const struct graph_vertex *up = &g->vertex[g->vertex[v].out];
	uint32_t k = 0;

	while (g->edge[up->in + k].vertex != v)
		k++;
	return k + 1 < up->ins ? g->edge[up->in + k + 1].vertex : GRAPH_NONE;
}

/* Vertices from which the root is reached: a walk over a tree that has its edges both ways needs no
 * stack, and ends, as each vertex has one out and is met from there only. */
static uint32_t verify_reached(const struct graph *g, uint32_t root)
{
	uint32_t count = 1, v = root;

	for (;;) {
		if (g->vertex[v].ins > 0) {
			v = g->edge[g->vertex[v].in].vertex;
		} else {
			uint32_t next = GRAPH_NONE;

			while (v != root && (next = verify_next(g, v)) == GRAPH_NONE)
				v = g->vertex[v].out;
			if (v == root)
				return count;
			v = next;
		}
		count++;
	}
}

/* Each vertex reaches its segment's root, by one way: so no contribution is missing or twice. */
static const char *verify_trees(const struct graph *g)
{
	uint32_t count = 0;

	for (uint32_t j = 0; j < g->segments; j++)
		count += verify_reached(g, g->segment[j].root);
	return count == g->vertices ? NULL : "vertices take from each other in a circle";
}

/* ---- what vertices do ----------------------------------------------------------------------- */

static const char *verify_ops(const struct graph *g)
{
	for (uint32_t v = 0; v < g->vertices; v++) {
		const struct graph_vertex *p = &g->vertex[v];
		uint32_t parts = graph_wants(g, v) + p->ins;

		if (p->op != GRAPH_SUM && p->op != GRAPH_ALIAS)
			return "no such operation";
		if (parts == 0)
			return "a relay takes from nobody";
		if (p->op == GRAPH_ALIAS &&
		    (parts != 1 || p->ins > 0 || p->out == GRAPH_NONE || p->target))
			return "an alias is no root and has one contribution, nothing else";
		if (p->target != (g->out == GRAPH_OUT_ROOT && p->out == GRAPH_NONE))
			return "the target is built by its root alone, or by its readers";
	}
	return NULL;
}

static const char *verify_values(const struct graph *g, const struct graph_limits *limits)
{
	for (uint32_t j = 0; g->values && j < g->segments; j++)
		if ((uint64_t)g->segment[j].count * g->chunk_bytes > limits->value_bytes_max)
			return "a segment is too large for a message";
	for (uint32_t i = 0; (g->values || g->eager) && i < g->slots; i++)
		if (g->slot[i].host == GRAPH_NODE_NONE)
			return "values are exchanged by nodes that are known";
	return NULL;
}

/* Each slot climbs to the root: so where readers come and go no circle of those who wait for each
 * other can arise, as one that is passed over stands between others in one tree. */
static const char *verify_feeders(const struct graph *g)
{
	for (uint32_t j = 0; g->feeder && j < g->segments; j++) {
		const uint16_t *feeder = &g->feeder[j * g->slots];
		uint32_t root = graph_slot_of(g, g->segment[j].root);

		if (root == GRAPH_NONE || feeder[root] != root)
			return "a root that readers are fed from is no slot's, or is fed";
		for (uint32_t i = 0; i < g->slots; i++) {
			uint32_t at = i, steps = 0;

			while (at != root && at < g->slots && steps++ < g->slots)
				at = feeder[at];
			if (at != root)
				return "a slot's feeders do not lead to the root";
		}
	}
	return NULL;
}

const char *verify_graph(const struct graph *g, const struct graph_limits *limits)
{
	const char *wrong = verify_counts(g, limits);

	if (!wrong)
		wrong = verify_segments(g);
	if (!wrong)
		wrong = verify_slots(g, limits);
	if (!wrong)
		wrong = verify_edges(g, limits);
	if (!wrong)
		wrong = verify_trees(g);
	if (!wrong)
		wrong = verify_ops(g);
	if (!wrong)
		wrong = verify_values(g, limits);
	return wrong ? wrong : verify_feeders(g);
}
