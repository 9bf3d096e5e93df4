/* SPDX-License-Identifier: BSD-3-Clause */
/* The judge: every event must fit the node's ledger, every byte of the store its owner. */
#include "node.h"
#include "world.h"

#define VIOLATION(n, ...) world_violation((n)->world, __VA_ARGS__)

/* ---- events about connections ------------------------------------------------------------- */

static void node_peer_up(struct node *n, const struct record *ev)
{
	uint32_t peer = network_endpoint_of(&n->world->net, &ev->peer.addr);
	if (peer == UINT32_MAX || !ev->peer.conn) {
		VIOLATION(n, "node %u: PEER_UP for nobody", n->index);
		return;
	}
	n->open_answers += ev->token != 0;
	if (node_conn_find(n, ev->peer.conn)) {
		/* the answer to PEER_OPEN where a connection was up already */
		if (!ev->token)
			VIOLATION(n, "node %u: PEER_UP twice for one connection", n->index);
		return;
	}
	n->conns = node_grow(n->conns, n->conns_count, &n->conns_room, sizeof(*n->conns));
	n->conns[n->conns_count++] = (struct node_conn){.handle = ev->peer.conn,
							.peer = peer,
							.mtu = ev->peer.mtu,
							.peer_incarnation = ev->peer.incarnation,
							.up_ns = world_now(n->world)};
	uint32_t life = (uint32_t)((ev->peer.incarnation - 0x5afe000000000001ull) >> 32);
	if (life > n->world->nodes[peer].life ||
	    (uint32_t)(ev->peer.incarnation - 0x5afe000000000001ull) != peer)
		VIOLATION(n, "node %u: PEER_UP with an incarnation that never was", n->index);
}

static void node_peer_down(struct node *n, const struct record *ev)
{
	struct node_conn *c = node_conn_find(n, ev->peer.conn);
	n->open_answers += ev->token != 0;
	if (!c)
		return; /* an attempt that failed */
	c->down_ns = world_now(n->world);
	c->reason = ev->reason;
	if (ev->reason == REASON_NONE)
		VIOLATION(n, "node %u: PEER_DOWN without a reason", n->index);
}

/* ---- events about buffers ----------------------------------------------------------------- */

static struct node_buffer *node_buffer_of(struct node *n, const struct record *ev, uint32_t handle)
{
	uint32_t index = (uint32_t)ev->token;
	if (ev->token != node_token(n, TOKEN_BUFFER, index) || index >= n->buffers_count ||
	    n->buffers[index].handle != handle || !n->buffers[index].live) {
		VIOLATION(n, "node %u: event %u for no live buffer (token %llx)", n->index, ev->op,
			  (unsigned long long)ev->token);
		return NULL;
	}
	return &n->buffers[index];
}

static void node_table_check(struct node *n, const struct node_buffer *b)
{
	const struct object_table *t = (const struct object_table *)n->table.base;
	if (b->table_slot == TABLE_SLOT_NONE || b->kind != BUFFER_SINK)
		return;
	uint64_t mark = atomic_load(&t->slot[b->table_slot].watermark);
	if (mark < b->ready_bytes || mark > b->size)
		VIOLATION(n, "node %u: watermark %llu, ready %llu of %llu", n->index,
			  (unsigned long long)mark, (unsigned long long)b->ready_bytes,
			  (unsigned long long)b->size);
	else if (memory_check(n->store.base + b->store_offset, b->seed, b->ready_bytes, mark) !=
		 mark)
		VIOLATION(n, "node %u: wrong bytes below the watermark", n->index);
}

static void node_progress(struct node *n, const struct record *ev)
{
	struct node_buffer *b = node_buffer_of(n, ev, ev->progress.buffer);
	if (!b)
		return;
	uint64_t ready = ev->op == EVENT_BUFFER_DONE ? b->size : ev->progress.ready_bytes;
	if (b->kind == BUFFER_SOURCE && ready > b->ready_bytes) {
		VIOLATION(n, "node %u: a source is ready beyond its producer", n->index);
		return;
	}
	if (b->kind == BUFFER_SINK &&
	    (ready < b->ready_bytes || ready > b->size || b->done || b->dropped)) {
		VIOLATION(n, "node %u: event %u at %llu after %llu of %llu%s", n->index, ev->op,
			  (unsigned long long)ready, (unsigned long long)b->ready_bytes,
			  (unsigned long long)b->size, b->done ? " and done" : "");
		return;
	}
	if (b->kind == BUFFER_SINK) {
		const uint8_t *p = n->store.base + b->store_offset;
		uint64_t bad = memory_check(p, b->seed, b->ready_bytes, ready);
		if (bad != ready)
			VIOLATION(n, "node %u: wrong byte %llu of a ready range", n->index,
				  (unsigned long long)bad);
		b->ready_bytes = ready;
		node_table_check(n, b);
	}
	if (ev->op == EVENT_BUFFER_DONE) {
		b->done = true;
		n->done_ns = world_now(n->world);
	}
}

/* ---- events about edges ------------------------------------------------------------------- */

static struct node_edge *node_edge_of(struct node *n, const struct record *ev)
{
	uint32_t index = (uint32_t)ev->token;
	if (ev->token != node_token(n, TOKEN_EDGE, index) || index >= n->edges_count ||
	    n->edges[index].handle != ev->edge.edge) {
		VIOLATION(n, "node %u: event %u for no edge (token %llx)", n->index, ev->op,
			  (unsigned long long)ev->token);
		return NULL;
	}
	return &n->edges[index];
}

static void node_edge_event(struct node *n, const struct record *ev)
{
	struct node_edge *e = node_edge_of(n, ev);
	if (!e)
		return;
	bool out = e->direction == RECORD_FLAG_OUT;
	if (ev->op == EVENT_EDGE_FAILED && ev->flags != e->direction)
		VIOLATION(n, "node %u: EDGE_FAILED of the other direction", n->index);
	if (ev->op == EVENT_EDGE_FAILED && ev->reason == REASON_NONE)
		VIOLATION(n, "node %u: EDGE_FAILED without a reason", n->index);
	if (e->state == EDGE_DROPPING)
		return; /* on its way before the drop was taken */
	if (e->given)
		VIOLATION(n, "node %u: event %u of an edge that is done", n->index, ev->op);
	if (ev->op == EVENT_IN_DONE) {
		if (out || e->state != EDGE_OPEN)
			VIOLATION(n, "node %u: IN_DONE in state %u", n->index, e->state);
		e->given = true;
		return;
	}
	if (e->state != EDGE_OPEN || (ev->op == EVENT_OUT_DONE && !out))
		VIOLATION(n, "node %u: edge event %u in state %u", n->index, ev->op, e->state);
	e->state = ev->op == EVENT_OUT_DONE ? EDGE_DONE : EDGE_FAILED;
	e->reason = ev->reason;
	e->ended_ns = world_now(n->world);
}

static void node_buffer_dropped(struct node *n, const struct record *ev)
{
	struct node_buffer *b = node_buffer_of(n, ev, ev->progress.buffer);
	if (!b)
		return;
	uint32_t index = (uint32_t)(b - n->buffers);
	if (!b->dropping)
		VIOLATION(n, "node %u: DROPPED unasked", n->index);
	for (uint32_t i = 0; i < n->edges_count; i++)
		if (n->edges[i].buffer == index && n->edges[i].state != EDGE_FAILED)
			n->edges[i].state = EDGE_DROPPED;
	b->live = b->dropping = false;
	b->dropped = true;
	memory_poison(n->store.base + b->store_offset, b->size);
	if (b->kind == BUFFER_SINK)
		memory_poison(n->store.base + b->bitmap_offset,
			      chunk_bitmap_bytes(chunk_count(b->size, b->chunk_bytes)));
}

static void node_dropped(struct node *n, const struct record *ev)
{
	if (ev->flags & RECORD_FLAG_BUFFER) {
		node_buffer_dropped(n, ev);
		return;
	}
	struct node_edge *e = node_edge_of(n, ev);
	if (!e)
		return;
	if (e->state != EDGE_DROPPING || ev->flags != e->direction)
		VIOLATION(n, "node %u: edge DROPPED unasked", n->index);
	e->state = EDGE_DROPPED;
	e->ended_ns = world_now(n->world);
}

void node_event(struct node *n, const struct record *ev)
{
	switch (ev->op) {
	case EVENT_PEER_UP:
		node_peer_up(n, ev);
		break;
	case EVENT_PEER_DOWN:
		node_peer_down(n, ev);
		break;
	case EVENT_MSG:
	case EVENT_MSG_SENT:
		node_message_event(n, ev);
		break;
	case EVENT_PROGRESS:
	case EVENT_BUFFER_DONE:
		node_progress(n, ev);
		break;
	case EVENT_IN_DONE:
	case EVENT_OUT_DONE:
	case EVENT_EDGE_FAILED:
		node_edge_event(n, ev);
		break;
	case EVENT_DROPPED:
		node_dropped(n, ev);
		break;
	case EVENT_REFUSED:
		n->refused++;
		n->refused_reason = ev->reason;
		if (!n->expect_refused)
			VIOLATION(n, "node %u: command %u refused: %s", n->index,
				  ev->refused.refused_op, reason_name(ev->reason));
		break;
	default:
		VIOLATION(n, "node %u: unknown event %u", n->index, ev->op);
	}
	if (n->on_event)
		n->on_event(n, ev);
}

/* ---- memory ------------------------------------------------------------------------------- */

static bool node_bit(const struct node *n, const struct node_buffer *b, uint64_t chunk)
{
	const uint64_t *words = (const uint64_t *)(n->store.base + b->bitmap_offset);
	return words[chunk / 64] >> chunk % 64 & 1;
}

/* A chunk that is marked holds its content; one that is not has never been touched. */
static void node_check_sink(struct node *n, const struct node_buffer *b)
{
	const uint8_t *p = n->store.base + b->store_offset;
	uint64_t chunks = chunk_count(b->size, b->chunk_bytes);
	for (uint64_t c = 0; c < chunks; c++) {
		uint64_t from = c * b->chunk_bytes, to = from + b->chunk_bytes;
		to = to < b->size ? to : b->size;
		if (node_bit(n, b, c) ? memory_check(p, b->seed, from, to) != to
				      : memory_check_poison(p + from, to - from) != to - from) {
			VIOLATION(n, "node %u: chunk %llu is %s", n->index, (unsigned long long)c,
				  node_bit(n, b, c) ? "marked and wrong" : "unmarked and touched");
			return;
		}
	}
	for (uint64_t c = chunks; c % 64; c++)
		if (node_bit(n, b, c))
			VIOLATION(n, "node %u: bitmap marks a chunk beyond the end", n->index);
}

static void node_check_buffer(struct node *n, const struct node_buffer *b)
{
	const uint8_t *p = n->store.base + b->store_offset;
	if (b->dropped) {
		if (memory_check_poison(p, b->size) != b->size)
			VIOLATION(n, "node %u: a dropped buffer was written", n->index);
	} else if (b->kind == BUFFER_SINK) {
		node_check_sink(n, b);
		node_table_check(n, b);
	} else if (memory_check(p, b->seed, 0, b->ready_bytes) != b->ready_bytes ||
		   memory_check_poison(p + b->ready_bytes, b->size - b->ready_bytes) !=
			   b->size - b->ready_bytes) {
		VIOLATION(n, "node %u: a source was written", n->index);
	}
}

void node_check(struct node *n)
{
	uint64_t at = 0;
	if (n->control)
		return; /* the store is not ours to judge */
	for (uint32_t i = 0; i <= n->extents_count; i++) {
		uint64_t to = i < n->extents_count ? n->extents[i].offset : n->store.bytes;
		if (memory_check_poison(n->store.base + at, to - at) != to - at)
			VIOLATION(n, "node %u: a byte outside every buffer was written", n->index);
		at = i < n->extents_count ? to + n->extents[i].bytes : to;
	}
	for (uint32_t i = 0; i < n->buffers_count; i++)
		node_check_buffer(n, &n->buffers[i]);
	for (uint32_t i = 0; i < n->edges_count && n->alive; i++) {
		const struct node_edge *e = &n->edges[i];
		if (e->state == EDGE_OPEN && e->conn && !node_conn_find(n, e->conn) &&
		    n->buffers[e->buffer].live && !n->buffers[e->buffer].done)
			VIOLATION(n, "node %u: edge %u open on a dead connection", n->index, i);
	}
}
