/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the shape of a run: the tree, the sources of each node, where everything lies. */
#include "tree.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const uint64_t *tree_map(const struct tree *t, uint32_t node, uint64_t offset)
{
	return (const uint64_t *)(const void *)(t->world.nodes[node].store.base + offset);
}

/* A piece of a node's store with poison around it; zeroed when it is a map. */
static uint64_t tree_take(struct tree *t, uint32_t node, uint64_t bytes, bool map)
{
	uint64_t at = (t->store_used[node] + TREE_GUARD_BYTES + 63) & ~63ull;
	t->store_used[node] = at + bytes;
	assert(t->store_used[node] + TREE_GUARD_BYTES <= t->world.nodes[node].store.bytes);
	if (map)
		memset(t->world.nodes[node].store.base + at, 0, bytes);
	return at;
}

static uint32_t tree_count(const struct tree *t, const struct tree_buffer *b)
{
	return (uint32_t)chunk_count(b->size, t->chunk_bytes);
}

static uint32_t tree_buffer(struct tree *t, uint32_t node, enum tree_kind kind, uint64_t size)
{
	struct tree_buffer *b = &t->buffer[t->buffers];
	*b = (struct tree_buffer){.kind = kind, .node = node, .index = t->buffers, .size = size};
	uint32_t chunks = tree_count(t, b);
	b->offset = tree_take(t, node, size, false);
	if (kind != TREE_PRODUCED)
		b->bitmap = tree_take(t, node,
				      kind == TREE_COUNTED ? chunk_counted_bytes(chunks)
							   : chunk_bitmap_bytes(chunks),
				      true);
	b->content = calloc(1, size);
	assert(b->content);
	return t->buffers++;
}

static void tree_edge(struct tree *t, uint32_t from, uint32_t to, uint32_t from_first,
		      uint32_t chunks)
{
	struct tree_buffer *a = &t->buffer[from], *b = &t->buffer[to];
	struct tree_edge *e = &t->edge[t->edges];
	*e = (struct tree_edge){.from = from, .to = to, .from_first = from_first, .chunks = chunks};
	e->in.index = e->out.index = t->edges++;
	if (b->kind == TREE_COUNTED)
		e->taken = tree_take(t, b->node, chunk_bitmap_bytes(tree_count(t, b)), true);
	if (a->node != b->node)
		e->sent = tree_take(t, a->node, chunk_bitmap_bytes(tree_count(t, a)), true);
}

/* A source of a node. Its first chunks may be none of the reduce's business. */
static uint32_t tree_source(struct tree *t, uint32_t node)
{
	uint64_t size = t->lead_bytes + t->size;
	bool fetched = t->nodes > 1 && prng_chance(&t->prng, 250000);
	uint32_t at = node;
	if (fetched)
		at = (uint32_t)((node + prng_between(&t->prng, 1, t->nodes - 1)) % t->nodes);
	uint32_t origin = tree_buffer(t, at, TREE_PRODUCED, size);
	struct tree_buffer *o = &t->buffer[origin];
	tree_draw(t, o->content, size);
	if (prng_chance(&t->prng, 400000))
		o->ready_bytes = size;
	memcpy(t->world.nodes[at].store.base + o->offset, o->content, o->ready_bytes);
	if (!fetched)
		return origin;
	uint32_t copy = tree_buffer(t, node, TREE_FETCHED, size);
	memcpy(t->buffer[copy].content, o->content, size);
	tree_edge(t, origin, copy, 0, tree_count(t, o));
	return copy;
}

static void tree_join(struct tree *t, uint32_t to, uint32_t from, bool *first)
{
	struct tree_buffer *b = &t->buffer[to], *a = &t->buffer[from];
	uint32_t lead = a->kind == TREE_COUNTED ? 0 : t->lead_chunks;
	const uint8_t *content = a->content + (uint64_t)lead * t->chunk_bytes;
	if (*first)
		memcpy(b->content, content, t->size);
	else
		tree_expect(t, b->content, content);
	*first = false;
	b->need++;
	tree_edge(t, from, to, lead, t->chunks);
}

/* The node's own part: what it hands on is returned. The children's are there already. */
static uint32_t tree_node(struct tree *t, uint32_t node, const uint32_t *child, uint32_t children)
{
	uint32_t own = (uint32_t)prng_below(&t->prng, TREE_LOCALS_MAX + 1);
	own = prng_chance(&t->prng, 500000) ? 1 : own;
	if (own == 0 && children == 0)
		own = 1;
	if (own == 1 && children == 0 && node != 0)
		return tree_source(t, node);
	uint32_t to = tree_buffer(t, node, TREE_COUNTED, t->size);
	bool first = true;
	for (uint32_t k = 0; k < children; k++)
		tree_join(t, to, child[k], &first);
	for (uint32_t k = 0; k < own; k++)
		tree_join(t, to, tree_source(t, node), &first);
	if (node == 0 && t->scale > 1) {
		t->buffer[to].scale = t->scale;
		tree_expect_scale(t, t->buffer[to].content, t->scale);
	}
	return to;
}

void tree_build(struct tree *t)
{
	uint32_t top[TREE_NODES_MAX] = {0};
	for (uint32_t node = t->nodes; node-- > 0;) {
		uint32_t child[TREE_NODES_MAX], children = 0;
		for (uint32_t k = node * t->fan + 1; k <= node * t->fan + t->fan && k < t->nodes;
		     k++)
			child[children++] = top[k];
		top[node] = tree_node(t, node, child, children);
	}
	t->root = top[0];
}
