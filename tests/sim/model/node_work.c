/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node can be told to do: connections, buffers, edges. */
#include <assert.h>
#include <stdlib.h>

#include "node.h"
#include "world.h"

uint64_t node_token(const struct node *n, enum node_token kind, uint32_t index)
{
	return (uint64_t)kind << 56 | (uint64_t)(n->life & 0xffff) << 32 | index;
}

/* ---- handles ------------------------------------------------------------------------------ */

typedef bool (*free_fn)(const struct node *n, uint32_t owner);

static bool node_buffer_free(const struct node *n, uint32_t owner)
{
	return !n->buffers[owner].live;
}

static bool node_edge_free(const struct node *n, uint32_t owner)
{
	return n->edges[owner].state == EDGE_DROPPED;
}

static bool node_ids_room(const struct node_ids *ids, free_fn is_free, const struct node *n)
{
	for (uint32_t i = 0; i < ids->count; i++)
		if (!ids->owner[i] || is_free(n, ids->owner[i] - 1))
			return true;
	return false;
}

bool node_has_room(const struct node *n)
{
	return node_ids_room(&n->buffer_ids, node_buffer_free, n) &&
	       node_ids_room(&n->in_ids, node_edge_free, n) &&
	       node_ids_room(&n->out_ids, node_edge_free, n);
}

/* The next index in turn that nobody holds, under its next generation. */
static uint32_t node_take(struct node_ids *ids, uint32_t owner, free_fn is_free,
			  const struct node *n)
{
	for (uint32_t k = 0; k < ids->count; k++) {
		uint32_t i = ids->next;
		ids->next = (ids->next + 1) % ids->count;
		if (ids->owner[i] && !is_free(n, ids->owner[i] - 1))
			continue;
		ids->owner[i] = owner + 1;
		ids->generation[i] = handle_next_generation(ids->generation[i]);
		return handle_make((uint16_t)i, ids->generation[i]);
	}
	assert(!"the test holds more buffers or edges than there are");
	return 0;
}

/* ---- connections -------------------------------------------------------------------------- */

uint32_t node_conn_to(const struct node *n, uint32_t peer)
{
	for (uint32_t i = n->conns_count; n->alive && i-- > 0;)
		if (n->conns[i].peer == peer && !n->conns[i].down_ns)
			return n->conns[i].handle;
	return 0;
}

struct node_conn *node_conn_find(struct node *n, uint32_t handle)
{
	for (uint32_t i = n->conns_count; i-- > 0;)
		if (n->conns[i].handle == handle && !n->conns[i].down_ns)
			return &n->conns[i];
	return NULL;
}

void node_connect(struct node *n, uint32_t peer)
{
	struct record r = {.op = COMMAND_PEER_OPEN, .token = node_token(n, TOKEN_PEER, peer)};
	r.peer.addr = network_addr(&n->world->net, peer);
	node_command(n, &r);
}

void node_disconnect(struct node *n, uint32_t peer)
{
	struct record r = {.op = COMMAND_PEER_CLOSE, .token = node_token(n, TOKEN_PEER, peer)};
	r.peer.conn = node_conn_to(n, peer);
	node_command(n, &r);
}

/* ---- buffers ------------------------------------------------------------------------------ */

static uint64_t node_store_take(struct node *n, uint64_t bytes)
{
	uint64_t at = n->store_used;
	n->store_used = (at + bytes + NODE_REDZONE_BYTES + 63) & ~63ull;
	assert(n->store_used <= n->store.bytes && "the test needs a larger store");
	n->extents = node_grow(n->extents, n->extents_count, &n->extents_room, sizeof(*n->extents));
	n->extents[n->extents_count++] = (struct node_extent){at, bytes};
	return at;
}

bool node_has_store(const struct node *n, uint64_t bytes)
{
	/* the bitmaps of its edges take some too, and never come back */
	return n->store_used + bytes + bytes / 8 + (256 << 10) <= n->store.bytes;
}

static void node_table_set(struct node *n, const struct node_buffer *b)
{
	struct object_table *t = (struct object_table *)n->table.base;
	struct object_slot *s = &t->slot[b->table_slot];
	s->state = b->kind == BUFFER_SOURCE ? OBJECT_CREATING : OBJECT_FETCHING;
	s->offset = b->store_offset;
	s->size = b->size;
	s->chunk_bytes = b->chunk_bytes;
	atomic_store(&s->watermark, b->kind == BUFFER_SOURCE ? b->ready_bytes : 0);
}

static void node_announce(struct node *n, uint32_t index)
{
	struct node_buffer *b = &n->buffers[index];
	struct record r = {.op = COMMAND_BUFFER,
			   .epoch = b->epoch,
			   .token = node_token(n, TOKEN_BUFFER, index)};
	b->handle = node_take(&n->buffer_ids, index, node_buffer_free, n);
	b->live = true;
	b->done = b->dropping = b->dropped = false;
	r.buffer.buffer = b->handle;
	r.buffer.table_slot = b->table_slot;
	r.buffer.store_offset = b->store_offset;
	r.buffer.size = b->size;
	r.buffer.bitmap_offset = b->bitmap_offset;
	r.buffer.ready_bytes = b->ready_bytes;
	r.buffer.chunk_bytes = (uint16_t)b->chunk_bytes;
	r.buffer.need = 1;
	node_command(n, &r);
}

static uint32_t node_buffer_new(struct node *n, enum buffer_kind kind, uint64_t size,
				uint32_t chunk_bytes, uint64_t seed, uint64_t ready_bytes)
{
	n->buffers = node_grow(n->buffers, n->buffers_count, &n->buffers_room, sizeof(*n->buffers));
	uint32_t index = n->buffers_count++;
	struct node_buffer *b = &n->buffers[index];
	*b = (struct node_buffer){.kind = kind,
				  .size = size,
				  .seed = seed,
				  .chunk_bytes = chunk_bytes,
				  .epoch = 1,
				  .ready_bytes = ready_bytes};
	b->store_offset = node_store_take(n, size);
	b->table_slot = TABLE_SLOT_NONE;
	if (index < n->options.table_slots && index % 4 != 3) {
		b->table_slot = index;
		node_table_set(n, b);
	}
	if (kind == BUFFER_SINK) {
		uint64_t bytes = chunk_bitmap_bytes(chunk_count(size, chunk_bytes));
		b->bitmap_offset = node_store_take(n, bytes);
		memset(n->store.base + b->bitmap_offset, 0, bytes);
	} else {
		memory_fill(n->store.base + b->store_offset, seed, 0, ready_bytes);
	}
	node_announce(n, index);
	return index;
}

uint32_t node_source(struct node *n, uint64_t size, uint32_t chunk_bytes, uint64_t seed,
		     uint64_t ready_bytes)
{
	return node_buffer_new(n, BUFFER_SOURCE, size, chunk_bytes, seed, ready_bytes);
}

uint32_t node_sink(struct node *n, uint64_t size, uint32_t chunk_bytes, uint64_t seed)
{
	return node_buffer_new(n, BUFFER_SINK, size, chunk_bytes, seed, 0);
}

void node_adopt(struct node *n, uint32_t buffer)
{
	struct node_buffer *b = &n->buffers[buffer];
	assert(!b->live && !b->dropped);
	if (b->kind == BUFFER_SINK)
		b->ready_bytes = 0;
	if (b->table_slot != TABLE_SLOT_NONE)
		node_table_set(n, b);
	node_announce(n, buffer);
}

void node_forget(struct node *n)
{
	assert(!n->alive);
	for (uint32_t i = 0; i < n->buffers_count; i++) {
		struct node_buffer *b = &n->buffers[i];
		if (b->dropped)
			continue;
		b->dropped = true;
		memory_poison(n->store.base + b->store_offset, b->size);
		if (b->kind == BUFFER_SINK)
			memory_poison(n->store.base + b->bitmap_offset,
				      chunk_bitmap_bytes(chunk_count(b->size, b->chunk_bytes)));
	}
}

void node_advance(struct node *n, uint32_t buffer, uint64_t ready_bytes)
{
	struct node_buffer *b = &n->buffers[buffer];
	struct record r = {.op = COMMAND_ADVANCE,
			   .epoch = b->epoch,
			   .token = node_token(n, TOKEN_BUFFER, buffer)};
	assert(b->kind == BUFFER_SOURCE && ready_bytes >= b->ready_bytes);
	memory_fill(n->store.base + b->store_offset, b->seed, b->ready_bytes, ready_bytes);
	b->ready_bytes = ready_bytes;
	r.progress.buffer = b->handle;
	r.progress.ready_bytes = ready_bytes;
	node_command(n, &r);
}

void node_drop_buffer(struct node *n, uint32_t buffer)
{
	struct node_buffer *b = &n->buffers[buffer];
	struct record r = {.op = COMMAND_DROP_BUFFER,
			   .epoch = b->epoch,
			   .token = node_token(n, TOKEN_BUFFER, buffer)};
	b->dropping = true;
	r.progress.buffer = b->handle;
	node_command(n, &r);
}

/* ---- edges -------------------------------------------------------------------------------- */

static uint32_t node_edge_new(struct node *n, uint8_t direction, uint32_t buffer, uint32_t peer,
			      uint32_t first, uint32_t chunks)
{
	struct node_buffer *b = &n->buffers[buffer];
	n->edges = node_grow(n->edges, n->edges_count, &n->edges_room, sizeof(*n->edges));
	uint32_t index = n->edges_count++;
	n->edges[index] = (struct node_edge){
		.handle = node_take(direction == RECORD_FLAG_IN ? &n->in_ids : &n->out_ids, index,
				    node_edge_free, n),
		.buffer = buffer,
		.peer = peer,
		.conn = node_conn_to(n, peer),
		.first = first,
		.chunks = chunks ? chunks : (uint32_t)chunk_count(b->size, b->chunk_bytes) - first,
		.direction = direction};
	return index;
}

static void node_edge_command(struct node *n, uint32_t index)
{
	struct node_edge *e = &n->edges[index];
	struct node_buffer *b = &n->buffers[e->buffer];
	struct record r = {.op = e->direction == RECORD_FLAG_IN ? COMMAND_IN : COMMAND_OUT,
			   .epoch = b->epoch,
			   .token = node_token(n, TOKEN_EDGE, index)};
	r.edge.edge = e->handle;
	r.edge.buffer = b->handle;
	r.edge.conn = e->conn;
	r.edge.stream = e->stream;
	r.edge.first_chunk = r.edge.peer_first = e->first;
	r.edge.chunks = e->chunks;
	r.edge.bitmap_offset = e->bitmap_offset;
	node_command(n, &r);
}

uint32_t node_in(struct node *n, uint32_t buffer, uint32_t peer, uint32_t first, uint32_t chunks)
{
	uint32_t index = node_edge_new(n, RECORD_FLAG_IN, buffer, peer, first, chunks);
	node_edge_command(n, index);
	return index;
}

static uint32_t node_out_new(struct node *n, uint32_t buffer, uint32_t peer, uint32_t stream,
			     uint32_t first, uint32_t chunks, const uint64_t *sent)
{
	uint32_t index = node_edge_new(n, RECORD_FLAG_OUT, buffer, peer, first, chunks);
	struct node_buffer *b = &n->buffers[buffer];
	uint64_t bytes = chunk_bitmap_bytes(chunk_count(b->size, b->chunk_bytes));
	uint64_t at = node_store_take(n, bytes);
	if (sent)
		memcpy(n->store.base + at, sent, bytes);
	else
		memset(n->store.base + at, 0, bytes);
	n->edges[index].stream = stream;
	n->edges[index].bitmap_offset = at;
	node_edge_command(n, index);
	return index;
}

uint32_t node_out(struct node *n, uint32_t buffer, uint32_t peer, uint32_t stream, uint32_t first,
		  uint32_t chunks)
{
	return node_out_new(n, buffer, peer, stream, first, chunks, NULL);
}

uint32_t node_out_resumed(struct node *n, uint32_t buffer, uint32_t peer, uint32_t stream,
			  const uint64_t *sent)
{
	return node_out_new(n, buffer, peer, stream, 0, 0, sent);
}

void node_drop_edge(struct node *n, uint32_t edge)
{
	struct node_edge *e = &n->edges[edge];
	struct record r = {.op = COMMAND_DROP_EDGE,
			   .flags = e->direction,
			   .epoch = n->buffers[e->buffer].epoch,
			   .token = node_token(n, TOKEN_EDGE, edge)};
	e->state = EDGE_DROPPING;
	r.edge.edge = e->handle;
	r.edge.buffer = n->buffers[e->buffer].handle;
	r.edge.conn = e->conn;
	node_command(n, &r);
}
