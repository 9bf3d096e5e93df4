/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reduce over a tree of simulated nodes, without any control but this model of it: sources that
 * are there, that are being written, or that arrive from another node; counted buffers; local
 * edges; streams. While it runs, streams and local edges are dropped and set again, connections
 * are broken, buffers and sources are dropped and announced again, all with the bitmaps they had.
 *
 * tree_run() draws one such run from a seed and judges it: every byte of every buffer of the tree
 * beside an independent computation, every contribution counted once, no byte written elsewhere.
 */
#ifndef SARISSA_TESTS_SIM_TREES_TREE_H
#define SARISSA_TESTS_SIM_TREES_TREE_H

#include "internal/reduce.h"
#include "model/world.h"

enum {
	TREE_NODES_MAX = 9,
	TREE_LOCALS_MAX = 3,
	TREE_BUFFERS_MAX = TREE_NODES_MAX * (2 * TREE_LOCALS_MAX + 1),
	TREE_EDGES_MAX = TREE_NODES_MAX * (2 * TREE_LOCALS_MAX + 1),
	TREE_GUARD_BYTES = 64,
};

enum tree_kind {
	TREE_PRODUCED, /* by a local producer, as far as it has come */
	TREE_FETCHED,  /* a copy that arrives over a stream */
	TREE_COUNTED,
};

struct tree_buffer {
	enum tree_kind kind;
	uint32_t node, handle, index; /* index: the engine's place */
	uint16_t generation;
	bool live, dropping, done;
	uint8_t need;
	uint16_t scale;
	uint64_t offset, bitmap, size, ready_bytes;
	uint8_t *content; /* what a source holds; what a counted buffer is to hold */
};

enum tree_state { TREE_ABSENT, TREE_OPEN, TREE_DROPPING };

/* One end of an edge, as the engine there knows it. */
struct tree_end {
	uint32_t index, handle;
	uint16_t generation;
	enum tree_state state;
	bool failed;
};

/* From one buffer to another: a stream between nodes, or a LOCAL edge. */
struct tree_edge {
	uint32_t from, to; /* buffers */
	uint32_t from_first, to_first, chunks;
	uint64_t taken; /* in the store of `to`, 0 for a copy */
	uint64_t sent;	/* in the store of `from`; 0: LOCAL */
	struct tree_end in, out;
	bool given;   /* IN_DONE, in this life of the edge */
	bool restart; /* drop what is left of it, then open it again */
};

struct tree {
	struct world world;
	struct prng prng;
	uint64_t seed;
	uint32_t nodes, fan, chunk_bytes, chunks, lead_chunks;
	uint8_t op, dtype;
	uint16_t scale;
	uint64_t size, lead_bytes;
	struct tree_buffer buffer[TREE_BUFFERS_MAX];
	struct tree_edge edge[TREE_EDGES_MAX];
	uint32_t buffers, edges, root;
	uint32_t trouble_ppm, troubles;
	uint64_t store_used[TREE_NODES_MAX];
	bool v6, verbose;
};

/* One run. False, and why on stderr: something did not hold. */
bool tree_run(uint64_t seed, bool verbose);

/* ---- between the files of the tree -------------------------------------------------------- */
uint32_t tree_element(const struct tree *t);
/* Fills a source: any bytes for integers, numbers in (-2, 2) for floats. */
void tree_draw(struct tree *t, uint8_t *content, uint64_t bytes);
/* into op= from, for bytes of elements, by arithmetic of its own. */
void tree_expect(const struct tree *t, uint8_t *into, const uint8_t *from);
void tree_expect_scale(const struct tree *t, uint8_t *into, uint32_t by);
/* Is what a node computed the expected value (floats: nearly)? The first byte that is not; bytes
 * when all are. */
uint64_t tree_compare(const struct tree *t, const uint8_t *have, const uint8_t *want,
		      uint64_t bytes);
void tree_build(struct tree *t);
void tree_event(struct node *n, const struct record *event);
/* What control would do now: open what can be, restart what has broken, make trouble. */
void tree_manage(struct tree *t);
bool tree_done(const struct tree *t);
void tree_judge(struct tree *t);
const uint64_t *tree_map(const struct tree *t, uint32_t node, uint64_t offset);

#endif
