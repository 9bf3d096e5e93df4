/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(t, ...) world_violation(&(t)->world, __VA_ARGS__)

enum { TREE_STEP_US = 100, TREE_CALM_STEPS = 4000, TREE_STEPS_MAX = 200000 };

static void tree_numbers(struct tree *t)
{
	static const uint8_t dtypes[] = {REDUCE_F32, REDUCE_F64, REDUCE_I8, REDUCE_I16,
					 REDUCE_I32, REDUCE_I64, REDUCE_U8, REDUCE_U16,
					 REDUCE_U32, REDUCE_U64};
	struct prng *p = &t->prng;
	t->nodes = (uint32_t)prng_between(p, 1, TREE_NODES_MAX);
	uint32_t fans[] = {1, 2, TREE_NODES_MAX};
	t->fan = fans[prng_below(p, 3)];
	t->chunk_bytes = prng_chance(p, 500000) ? 1408 : 64 * (uint32_t)prng_between(p, 1, 22);
	t->op = (uint8_t)prng_between(p, REDUCE_SUM, REDUCE_AVG);
	t->dtype = dtypes[prng_below(p, sizeof(dtypes))];
	if (t->op == REDUCE_AVG && t->dtype >= REDUCE_I8 && t->dtype <= REDUCE_I64)
		t->dtype += REDUCE_U8 - REDUCE_I8;
	t->scale = t->op == REDUCE_AVG ? (uint16_t)prng_between(p, 1, 40) : 0;
	uint64_t chunks = prng_between(p, 1, prng_chance(p, 300000) ? 10 : 120);
	t->size = (chunks - 1) * t->chunk_bytes + 8 * prng_between(p, 1, t->chunk_bytes / 8);
	t->chunks = (uint32_t)chunks;
	t->lead_chunks = prng_chance(p, 300000) ? (uint32_t)prng_between(p, 1, 40) : 0;
	t->lead_bytes = (uint64_t)t->lead_chunks * t->chunk_bytes;
	t->trouble_ppm = prng_chance(p, 400000) ? 0 : (uint32_t)prng_between(p, 1000, 60000);
	t->v6 = prng_chance(p, 300000);
}

static void tree_world(struct tree *t)
{
	struct prng *p = &t->prng;
	struct network_link link = {.rate_bps = prng_between(p, 50, 4000) * 1000000,
				    .delay_ns = prng_between(p, 5, 500) * 1000,
				    .buffer_bytes = prng_between(p, 64, 1024) << 10};
	struct network_faults faults = {.reorder_ns = 300000, .jitter_ns = prng_below(p, 30000)};
	struct node_options o = world_options();
	o.store_bytes = 8 << 20;
	o.config.buffers_max = TREE_BUFFERS_MAX;
	o.config.block_bytes = prng_between(p, 1, 256) << 10;
	o.config.credit_bytes = prng_between(p, 16, 2048) << 10;
	o.turn_ns = prng_chance(p, 500000) ? 0 : prng_between(p, 1000, 200000);
	if (prng_chance(p, 700000)) {
		faults.loss_ppm = (uint32_t)prng_below(p, 100000);
		faults.duplicate_ppm = (uint32_t)prng_below(p, 100000);
		faults.reorder_ppm = (uint32_t)prng_below(p, 100000);
		faults.corrupt_ppm = (uint32_t)prng_below(p, 10000);
	}
	world_init(&t->world, t->nodes, &link, &o, t->seed, t->v6);
	network_faults_all(&t->world.net, &faults);
	for (uint32_t k = 0; k < t->nodes; k++) {
		t->world.nodes[k].control = tree_event;
		t->world.nodes[k].context = t;
	}
}

/* Chunks that came in over streams, by the engines' own counters, against what there was to come:
 * a lost, doubled or repeated one is in neither. */
static void tree_judge_counts(struct tree *t)
{
	uint64_t want[TREE_NODES_MAX] = {0};
	for (uint32_t k = 0; k < t->edges; k++)
		if (t->edge[k].sent)
			want[t->buffer[t->edge[k].to].node] += t->edge[k].chunks;
	for (uint32_t k = 0; k < t->nodes; k++)
		if (t->world.nodes[k].counters.rx_chunks != want[k])
			FAIL(t, "node %u has taken %llu chunks, not %llu", k,
			     (unsigned long long)t->world.nodes[k].counters.rx_chunks,
			     (unsigned long long)want[k]);
}

static void tree_judge_buffer(struct tree *t, const struct tree_buffer *b)
{
	const uint8_t *store = t->world.nodes[b->node].store.base;
	const uint8_t *have = store + b->offset;
	uint64_t chunks = chunk_count(b->size, t->chunk_bytes);
	if (b->kind != TREE_COUNTED) {
		if (memcmp(have, b->content, b->size) != 0)
			FAIL(t, "a source of node %u has changed", b->node);
		return;
	}
	uint64_t good = tree_compare(t, have, b->content, b->size);
	if (good != b->size)
		FAIL(t, "node %u: byte %llu of %llu is wrong (op %s of %s, %u contributions)",
		     b->node, (unsigned long long)good, (unsigned long long)b->size,
		     reduce_op_name(t->op), reduce_dtype_name(t->dtype), b->need);
	for (uint64_t k = 0; k < chunks; k++)
		if (store[b->bitmap + chunk_bitmap_bytes(chunks) + k] != b->need)
			FAIL(t, "node %u: chunk %llu has another count", b->node,
			     (unsigned long long)k);
}

/* All that lies between the pieces of a store is poison still. */
static void tree_judge_store(struct tree *t, uint32_t node)
{
	const struct memory *m = &t->world.nodes[node].store;
	uint8_t *copy = malloc(m->bytes);
	memcpy(copy, m->base, m->bytes);
	for (uint32_t k = 0; k < t->buffers; k++) {
		const struct tree_buffer *b = &t->buffer[k];
		uint64_t chunks = chunk_count(b->size, t->chunk_bytes);
		if (b->node != node)
			continue;
		memory_poison(copy + b->offset, b->size);
		if (b->bitmap)
			memory_poison(copy + b->bitmap, b->kind == TREE_COUNTED
								? chunk_counted_bytes(chunks)
								: chunk_bitmap_bytes(chunks));
	}
	for (uint32_t k = 0; k < t->edges; k++) {
		const struct tree_edge *e = &t->edge[k];
		const struct tree_buffer *a = &t->buffer[e->from], *b = &t->buffer[e->to];
		if (e->sent && a->node == node)
			memory_poison(copy + e->sent,
				      chunk_bitmap_bytes(chunk_count(a->size, t->chunk_bytes)));
		if (e->taken && b->node == node)
			memory_poison(copy + e->taken,
				      chunk_bitmap_bytes(chunk_count(b->size, t->chunk_bytes)));
	}
	if (memory_check_poison(copy, m->bytes) != m->bytes)
		FAIL(t, "node %u: a byte of nobody's was written", node);
	free(copy);
}

void tree_judge(struct tree *t)
{
	for (uint32_t k = 0; k < t->buffers; k++)
		tree_judge_buffer(t, &t->buffer[k]);
	for (uint32_t k = 0; k < t->nodes; k++)
		tree_judge_store(t, k);
	tree_judge_counts(t);
}

static void tree_books(struct tree *t)
{
	for (uint32_t k = 0; k < t->nodes; k++) {
		const char *bad = invariants_check(t->world.nodes[k].engine);
		if (bad)
			FAIL(t, "node %u: %s", k, bad);
	}
}

static void tree_steps(struct tree *t)
{
	uint32_t step = 0;
	for (; step < TREE_STEPS_MAX && !t->world.violations; step++) {
		if (step == TREE_CALM_STEPS)
			t->trouble_ppm = 0;
		tree_manage(t);
		world_run(&t->world, TREE_STEP_US * WORLD_US);
		if (step % 64 == 0)
			tree_books(t);
		if (tree_done(t))
			break;
	}
	if (!t->world.violations && !tree_done(t))
		FAIL(t, "it does not come to an end");
	tree_books(t);
}

bool tree_run(uint64_t seed, bool verbose)
{
	struct tree *t = calloc(1, sizeof(*t));
	t->seed = seed;
	t->verbose = verbose;
	t->prng = prng_fork(seed, 17);
	tree_numbers(t);
	tree_world(t);
	tree_build(t);
	tree_steps(t);
	if (!t->world.violations)
		tree_judge(t);
	if (verbose)
		printf("seed %llu: %u nodes, fan %u, %s of %s, %u chunks of %u, %u troubles, "
		       "%.1f ms\n",
		       (unsigned long long)seed, t->nodes, t->fan, reduce_op_name(t->op),
		       reduce_dtype_name(t->dtype), t->chunks, t->chunk_bytes, t->troubles,
		       (double)(world_now(&t->world) - WORLD_START_NS) / 1e6);
	bool good = t->world.violations == 0;
	world_free(&t->world);
	for (uint32_t k = 0; k < t->buffers; k++)
		free(t->buffer[k].content);
	free(t);
	return good;
}
