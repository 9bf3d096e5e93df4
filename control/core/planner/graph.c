/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory, the building steps and the names of a plan graph. Planners call the steps in order:
 * begin, cut, join for each edge, settle; graph.h has the shape.
 */
#include "graph.h"
#include <assert.h>
#include <xxhash.h>
#include "segment.h"

_Static_assert(GRAPH_SLOTS_MAX *GRAPH_SEGMENTS_MAX + GRAPH_RELAYS_MAX < 1 << 24,
	       "a vertex's number has 24 bits in an edge");
_Static_assert(GRAPH_SLOTS_MAX <= UINT16_MAX, "a feeder has 16 bits");

static bool graph_size_holds(struct graph_size size)
{
	return size.slots > 0 && size.slots <= GRAPH_SLOTS_MAX && size.segments > 0 &&
	       size.segments <= GRAPH_SEGMENTS_MAX && size.relays <= GRAPH_RELAYS_MAX;
}

size_t graph_bytes(struct graph_size size)
{
	size_t owned = (size_t)size.slots * size.segments, vertices = owned + size.relays;

	if (!graph_size_holds(size))
		return 0;
	return size.slots * sizeof(struct graph_slot) +
	       size.segments * sizeof(struct graph_segment) +
	       vertices * sizeof(struct graph_vertex) + vertices * sizeof(struct graph_edge) +
	       size.relays * sizeof(struct graph_relay) +
	       (size.feeders ? owned * sizeof(uint16_t) : 0);
}

/* The arrays lie in the order of their alignment, the feeders last. */
static void graph_lay_out(struct graph *g, struct graph_size size, void *memory)
{
	g->slot = memory;
	g->segment = (void *)(g->slot + size.slots);
	g->vertex = (void *)(g->segment + size.segments);
	g->edge = (void *)(g->vertex + g->vertices);
	g->relay = (void *)(g->edge + g->vertices);
	g->feeder = size.feeders ? (void *)(g->relay + size.relays) : NULL;
}

bool graph_begin(struct graph *g, struct graph_size size, void *memory, size_t bytes)
{
	if (!graph_size_holds(size) || bytes < graph_bytes(size))
		return false;
	memset(memory, 0, graph_bytes(size));
	*g = (struct graph){.slots = size.slots,
			    .segments = size.segments,
			    .relays = size.relays,
			    .vertices = size.slots * size.segments + size.relays};
	graph_lay_out(g, size, memory);
	for (uint32_t i = 0; i < g->slots; i++)
		g->slot[i] = (struct graph_slot){GRAPH_NODE_NONE, GRAPH_NODE_NONE, 1, 0};
	for (uint32_t v = 0; v < g->vertices; v++)
		g->vertex[v].out = GRAPH_NONE;
	for (uint32_t i = 0; i < g->relays; i++)
		g->relay[i].host = GRAPH_NODE_NONE;
	return true;
}

void graph_cut(struct graph *g, uint64_t size, uint32_t chunk_bytes)
{
	uint32_t chunks = (uint32_t)segment_chunks(size, chunk_bytes);

	g->size = size;
	g->chunk_bytes = chunk_bytes;
	for (uint32_t j = 0; j < g->segments; j++)
		segment_range(chunks, g->segments, j, &g->segment[j].first, &g->segment[j].count);
}

void graph_join(struct graph *g, uint32_t from, uint32_t to)
{
	graph_join_rail(g, from, to, 0);
}

void graph_join_rail(struct graph *g, uint32_t from, uint32_t to, uint32_t rail)
{
	struct graph_vertex *v = &g->vertex[to];

	assert(g->edges < g->vertices && g->vertex[from].out == GRAPH_NONE);
	assert(rail < GRAPH_RAILS_MAX);
	if (v->ins == 0)
		v->in = g->edges;
	assert(v->in + v->ins == g->edges);
	g->edge[g->edges++] =
		(struct graph_edge){.vertex = from, .rail = rail & (GRAPH_RAILS_MAX - 1)};
	v->ins++;
	g->vertex[from].out = to;
}

void graph_settle(struct graph *g)
{
	g->out = g->segments == 1 ? GRAPH_OUT_ROOT : GRAPH_OUT_GATHER;
	for (uint32_t v = 0; v < g->vertices; v++) {
		struct graph_vertex *p = &g->vertex[v];
		bool root = p->out == GRAPH_NONE;

		if (root)
			g->segment[graph_segment_of(g, v)].root = v;
		p->op = root || p->ins > 0 || graph_wants(g, v) > 1 ? GRAPH_SUM : GRAPH_ALIAS;
		p->target = root && g->out == GRAPH_OUT_ROOT;
	}
}

void graph_name(const struct object_id *target, uint64_t number, uint32_t vertex,
		struct object_id *out)
{
	const struct {
		struct object_id target;
		uint64_t number, vertex;
	} key = {*target, number, vertex};
	XXH128_canonical_t name;

	XXH128_canonicalFromHash(&name, XXH3_128bits(&key, sizeof(key)));
	memcpy(out->bytes, name.digest, sizeof(out->bytes));
}
