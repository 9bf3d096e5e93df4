/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan graph of one reduce: which slots take contributions, into which segments the target is
 * cut, and which vertex adds what. A planner builds it, and nobody changes it afterwards; what has
 * happened so far stands beside it (closure.h). It must not know control, clocks or messages.
 *
 * Shape. A slot is a place for contributions, filled in the order of arrival. A segment is a run of
 * chunks of the target. Slot s gives to segment j by vertex j * slots + s; further vertices are
 * relays, which only add what others give. An edge leads from a vertex to the one that takes its
 * partial sum; the edges of a segment form an in-tree to the segment's root. So each contribution
 * is in every byte of the target exactly once, if verify.c finds nothing wrong.
 *
 * Both ends of an edge compute the names of partial sums from the vertex's number (graph_name), so
 * the numbering is part of the protocol.
 *
 * Units: sizes in bytes, ranges in chunks. The memory is the caller's: graph_begin lays the arrays
 * out in it, so a graph may be neither moved nor copied without that memory. Nothing here
 * allocates.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_GRAPH_H
#define SARISSA_CONTROL_CORE_PLANNER_GRAPH_H

#include <stddef.h>
#include "internal/ids.h"

enum {
	GRAPH_SLOTS_MAX = 1024,
	GRAPH_SEGMENTS_MAX = 254, /* a count of parts is a byte; one segment may come in two */
	GRAPH_RELAYS_MAX = 1024,
	GRAPH_RAILS_MAX = 256,
};

#define GRAPH_NONE	UINT32_MAX /* no vertex, no slot */
#define GRAPH_NODE_NONE UINT32_MAX

enum graph_op {
	GRAPH_SUM,   /* the vertex builds an object of its own */
	GRAPH_ALIAS, /* the slot's only contribution is handed on as it is */
};

enum graph_out {
	GRAPH_OUT_ROOT,	  /* one segment, whose root builds the target */
	GRAPH_OUT_GATHER, /* each reader puts the target together from the segments' roots */
};

struct graph_slot {
	uint32_t host;	 /* node that it is booked for, or GRAPH_NODE_NONE: the first that comes */
	uint32_t prefer; /* node whose contributions take this slot before any other; or NONE */
	uint16_t wants;	 /* contributions; more than one are all of one node, and booked */
	uint16_t booked; /* of them, there when it was planned */
};

struct graph_segment {
	uint32_t first, count; /* chunks of the target */
	uint32_t root;	       /* vertex */
};

struct graph_vertex {
	uint32_t out; /* vertex that takes it; GRAPH_NONE: the segment's root */
	uint32_t in;  /* edge[in .. in + ins): the vertices that it takes, in COMBINE's order */
	uint16_t ins;
	uint8_t op;	/* enum graph_op */
	uint8_t target; /* it builds the target itself, and withholds the last chunk until commit */
};

struct graph_edge {
	uint32_t vertex : 24;
	uint32_t rail : 8; /* port and network that carry it */
};

struct graph_relay { /* vertex slots * segments + i */
	uint32_t host, segment;
};

struct graph_size {
	uint32_t slots, segments, relays;
	bool feeders;
};

struct graph {
	uint64_t size;
	uint32_t chunk_bytes;
	uint32_t needed; /* contributions, K: bound for good */
	uint32_t slots, segments, relays;
	uint32_t vertices, edges;
	uint8_t out; /* enum graph_out */
	bool values; /* parts travel in messages */
	bool eager;  /* all hosts get the target without having asked */
	struct graph_slot *slot;
	struct graph_segment *segment;
	struct graph_vertex *vertex;
	struct graph_edge *edge;
	struct graph_relay *relay;
	/* GATHER, [segment * slots + slot]: the slot that passes the segment on to this one; of the
	 * root's slot itself. NULL: the roots feed all readers. */
	uint16_t *feeder;
	uint64_t estimate_ns;
	const char *planner;
};

/* The memory that a graph takes; 0: it exceeds what the representation allows. */
size_t graph_bytes(struct graph_size size);
/*
 * Lays an empty graph out in so many bytes of memory, aligned to 8: slots for anybody, one
 * contribution each; no edges. False: too few bytes, or no such graph.
 */
bool graph_begin(struct graph *g, struct graph_size size, void *memory, size_t bytes);
/* Cuts a target of so many bytes into the segments (segment.h). */
void graph_cut(struct graph *g, uint64_t size, uint32_t chunk_bytes);
/* Adds an edge: `to` takes what `from` gives, on rail 0. All edges to one vertex are added one
 * after the other. */
void graph_join(struct graph *g, uint32_t from, uint32_t to);
/* An edge on another rail, below GRAPH_RAILS_MAX. */
void graph_join_rail(struct graph *g, uint32_t from, uint32_t to, uint32_t rail);
/* When all edges are there: the roots of the segments and each vertex's op and target. */
void graph_settle(struct graph *g);

static inline uint32_t graph_vertex_of(const struct graph *g, uint32_t segment, uint32_t slot)
{
	return segment * g->slots + slot;
}

static inline bool graph_is_relay(const struct graph *g, uint32_t vertex)
{
	return vertex >= g->slots * g->segments;
}

/* GRAPH_NONE for a relay. */
static inline uint32_t graph_slot_of(const struct graph *g, uint32_t vertex)
{
	return graph_is_relay(g, vertex) ? GRAPH_NONE : vertex % g->slots;
}

static inline uint32_t graph_segment_of(const struct graph *g, uint32_t vertex)
{
	return graph_is_relay(g, vertex) ? g->relay[vertex - g->slots * g->segments].segment
					 : vertex / g->slots;
}

/* Contributions that a vertex takes itself. */
static inline uint32_t graph_wants(const struct graph *g, uint32_t vertex)
{
	return graph_is_relay(g, vertex) ? 0 : g->slot[vertex % g->slots].wants;
}

/* The parts from which a reader puts the target together: the last segment's last chunk comes from
 * its root, apart from the rest, where others pass segments on. */
static inline uint32_t graph_output_parts(const struct graph *g)
{
	return g->segments + (g->feeder != NULL);
}

/* The id of what a vertex builds for the reduce with that target and number. */
void graph_name(const struct object_id *target, uint64_t number, uint32_t vertex,
		struct object_id *out);

/* Limits of a graph (verify.c). */
struct graph_limits {
	uint32_t gather_slots_max; /* readers' states hold a bit per slot */
	uint32_t fan_in_max;	   /* edges to one vertex */
	uint32_t group_max;	   /* contributions of one slot */
	uint32_t parts_max;	   /* contributions and edges of one vertex; parts of the target */
	uint32_t value_bytes_max;  /* a value in a message */
};

/* NULL; or what is wrong with the graph, a constant text. Reads only what it has checked before, so
 * any content of the arrays may come. One pass, and a climb for each feeder. */
const char *verify_graph(const struct graph *g, const struct graph_limits *limits);
static inline bool graph_valid(const struct graph *g, const struct graph_limits *limits)
{
	return !verify_graph(g, limits);
}

#endif
