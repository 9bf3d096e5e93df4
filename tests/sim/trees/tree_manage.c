/* SPDX-License-Identifier: BSD-3-Clause */
/* A control for the tree, of the smallest kind, and the trouble it makes. */
#include "tree.h"

#include <string.h>

enum { TREE_TOKEN_BUFFER = 1, TREE_TOKEN_IN, TREE_TOKEN_OUT };

#define FAIL(t, ...) world_violation(&(t)->world, __VA_ARGS__)

static uint64_t tree_token(uint32_t kind, uint32_t index)
{
	return (uint64_t)kind << 56 | index;
}

static uint32_t tree_handle(uint32_t index, uint16_t *generation)
{
	*generation = handle_next_generation(*generation);
	return handle_make((uint16_t)index, *generation);
}

static struct node *tree_node_of(struct tree *t, const struct tree_buffer *b)
{
	return &t->world.nodes[b->node];
}

/* ---- records ------------------------------------------------------------------------------ */

static void tree_open_buffer(struct tree *t, struct tree_buffer *b)
{
	struct record r = {.op = COMMAND_BUFFER,
			   .epoch = 1,
			   .token = tree_token(TREE_TOKEN_BUFFER, (uint32_t)(b - t->buffer))};
	b->handle = tree_handle(b->index, &b->generation);
	b->live = true;
	b->done = false;
	r.buffer.buffer = b->handle;
	r.buffer.table_slot = TABLE_SLOT_NONE;
	r.buffer.store_offset = b->offset;
	r.buffer.size = b->size;
	r.buffer.bitmap_offset = b->bitmap;
	r.buffer.ready_bytes = b->ready_bytes;
	r.buffer.chunk_bytes = (uint16_t)t->chunk_bytes;
	r.buffer.need = 1;
	if (b->kind == TREE_COUNTED) {
		r.buffer.need = b->need;
		r.buffer.reduce_op = t->op;
		r.buffer.dtype = t->dtype;
		r.buffer.scale = b->scale;
	}
	node_command(tree_node_of(t, b), &r);
}

static void tree_drop_buffer(struct tree *t, struct tree_buffer *b)
{
	struct record r = {.op = COMMAND_DROP_BUFFER, .epoch = 1};
	r.progress.buffer = b->handle;
	b->dropping = true;
	for (uint32_t k = 0; k < t->edges; k++) /* all edges on it end with it */
		if (&t->buffer[t->edge[k].from] == b || &t->buffer[t->edge[k].to] == b)
			t->edge[k].restart = true;
	node_command(tree_node_of(t, b), &r);
}

static void tree_drop_end(struct tree *t, struct tree_edge *e, bool out)
{
	struct tree_end *end = out ? &e->out : &e->in;
	struct record r = {.op = COMMAND_DROP_EDGE,
			   .flags = out ? RECORD_FLAG_OUT : RECORD_FLAG_IN,
			   .epoch = 1};
	r.edge.edge = end->handle;
	end->state = TREE_DROPPING;
	node_command(tree_node_of(t, &t->buffer[out ? e->from : e->to]), &r);
}

static void tree_open_in(struct tree *t, struct tree_edge *e, uint32_t conn)
{
	struct record r = {.op = e->sent ? COMMAND_IN : COMMAND_LOCAL,
			   .epoch = 1,
			   .token = tree_token(TREE_TOKEN_IN, (uint32_t)(e - t->edge))};
	e->in.handle = tree_handle(e->in.index, &e->in.generation);
	e->in.state = TREE_OPEN;
	e->in.failed = e->given = false;
	r.edge.edge = e->in.handle;
	r.edge.buffer = t->buffer[e->to].handle;
	if (e->sent)
		r.edge.conn = conn;
	else
		r.local.source = t->buffer[e->from].handle;
	r.edge.first_chunk = e->to_first;
	r.edge.chunks = e->chunks;
	r.edge.peer_first = e->from_first;
	r.edge.bitmap_offset = e->taken;
	node_command(tree_node_of(t, &t->buffer[e->to]), &r);
}

/* What has been taken there need not be sent again; sometimes it is all the same. */
static void tree_skip(struct tree *t, struct tree_edge *e)
{
	const struct tree_buffer *a = &t->buffer[e->from], *b = &t->buffer[e->to];
	uint64_t *sent = (uint64_t *)(void *)(tree_node_of(t, a)->store.base + e->sent);
	const uint64_t *taken = tree_map(t, b->node, e->taken ? e->taken : b->bitmap);
	bool all = prng_chance(&t->prng, 300000);
	memset(sent, 0, chunk_bitmap_bytes(chunk_count(a->size, t->chunk_bytes)));
	for (uint32_t k = 0; k < e->chunks && !all; k++) {
		uint32_t from = e->from_first + k, to = e->to_first + k;
		if (taken[to / 64] >> to % 64 & 1)
			sent[from / 64] |= UINT64_C(1) << from % 64;
	}
}

static void tree_open_out(struct tree *t, struct tree_edge *e, uint32_t conn)
{
	struct record r = {.op = COMMAND_OUT,
			   .epoch = 1,
			   .token = tree_token(TREE_TOKEN_OUT, (uint32_t)(e - t->edge))};
	tree_skip(t, e);
	e->out.handle = tree_handle(e->out.index, &e->out.generation);
	e->out.state = TREE_OPEN;
	e->out.failed = false;
	r.edge.edge = e->out.handle;
	r.edge.buffer = t->buffer[e->from].handle;
	r.edge.conn = conn;
	r.edge.stream = e->in.handle;
	r.edge.first_chunk = e->from_first;
	r.edge.chunks = e->chunks;
	r.edge.bitmap_offset = e->sent;
	node_command(tree_node_of(t, &t->buffer[e->from]), &r);
}

/* ---- events ------------------------------------------------------------------------------- */

static void tree_edge_event(struct tree *t, const struct record *ev, bool out)
{
	struct tree_edge *e = &t->edge[(uint32_t)ev->token];
	struct tree_end *end = out ? &e->out : &e->in;
	if (ev->edge.edge != end->handle)
		FAIL(t, "event %u of an edge of another life", ev->op);
	if (ev->op == EVENT_DROPPED) {
		if (end->state != TREE_DROPPING)
			FAIL(t, "an edge is DROPPED unasked");
		end->state = TREE_ABSENT;
	} else if (ev->op == EVENT_EDGE_FAILED) {
		if (!out && e->given)
			FAIL(t, "an edge fails after its end");
		end->failed = e->restart = true;
	} else if (ev->op == EVENT_IN_DONE) {
		if (out || e->given || end->failed)
			FAIL(t, "IN_DONE twice, or of the wrong edge");
		e->given = true;
	} else if (ev->op != EVENT_OUT_DONE || !out) {
		FAIL(t, "event %u about an edge", ev->op);
	}
}

static void tree_buffer_dropped(struct tree *t, struct tree_buffer *b)
{
	b->live = b->dropping = false;
	for (uint32_t k = 0; k < t->edges; k++) {
		struct tree_edge *e = &t->edge[k];
		if (&t->buffer[e->to] == b)
			e->in.state = TREE_ABSENT;
		if (&t->buffer[e->from] == b && e->sent)
			e->out.state = TREE_ABSENT;
	}
}

static void tree_buffer_event(struct tree *t, const struct record *ev)
{
	struct tree_buffer *b = &t->buffer[(uint32_t)ev->token];
	if (ev->progress.buffer != b->handle || !b->live)
		FAIL(t, "event %u of a buffer of another life", ev->op);
	if (ev->op == EVENT_DROPPED) {
		tree_buffer_dropped(t, b);
	} else if (ev->op == EVENT_BUFFER_DONE) {
		if (b->done)
			FAIL(t, "BUFFER_DONE twice");
		b->done = true;
	}
	uint64_t ready = ev->progress.ready_bytes;
	const uint8_t *have = tree_node_of(t, b)->store.base + b->offset;
	if (b->kind == TREE_COUNTED && ev->op != EVENT_DROPPED &&
	    tree_compare(t, have, b->content, ready) != ready)
		FAIL(t, "wrong bytes in what is said to be ready");
}

void tree_event(struct node *n, const struct record *ev)
{
	struct tree *t = n->context;
	if (ev->op == EVENT_PEER_UP || ev->op == EVENT_PEER_DOWN) {
		node_event(n, ev);
		return;
	}
	if (ev->op == EVENT_REFUSED) {
		bool conn = ev->reason == REASON_BAD_CONN; /* it has just gone */
		if (conn && ev->token >> 56 != TREE_TOKEN_BUFFER) {
			struct tree_edge *e = &t->edge[(uint32_t)ev->token];
			bool out = ev->token >> 56 == TREE_TOKEN_OUT;
			(out ? &e->out : &e->in)->state = TREE_ABSENT;
			e->restart = true;
			return;
		}
		FAIL(t, "command %u is refused: %s", ev->refused.refused_op,
		     reason_name(ev->reason));
		return;
	}
	switch (ev->token >> 56) {
	case TREE_TOKEN_BUFFER:
		tree_buffer_event(t, ev);
		break;
	case TREE_TOKEN_IN:
	case TREE_TOKEN_OUT:
		tree_edge_event(t, ev, ev->token >> 56 == TREE_TOKEN_OUT);
		break;
	default:
		FAIL(t, "event %u with a token of nobody's", ev->op);
	}
}

/* ---- what control does -------------------------------------------------------------------- */

static void tree_manage_edge(struct tree *t, struct tree_edge *e)
{
	struct tree_buffer *a = &t->buffer[e->from], *b = &t->buffer[e->to];
	bool stream = e->sent != 0;
	if (e->restart) {
		if (e->in.state == TREE_OPEN && !b->dropping)
			tree_drop_end(t, e, false);
		if (e->out.state == TREE_OPEN && !a->dropping)
			tree_drop_end(t, e, true);
		if (e->in.state != TREE_ABSENT || e->out.state != TREE_ABSENT)
			return;
		e->restart = false;
	}
	if (!a->live || !b->live || a->dropping || b->dropping || e->in.state == TREE_DROPPING ||
	    e->out.state == TREE_DROPPING)
		return;
	if (!stream) {
		if (e->in.state == TREE_ABSENT)
			tree_open_in(t, e, 0);
		return;
	}
	uint32_t there = node_conn_to(&t->world.nodes[b->node], a->node);
	uint32_t here = node_conn_to(&t->world.nodes[a->node], b->node);
	if (!there || !here) {
		if (!here && prng_chance(&t->prng, 100000))
			node_connect(&t->world.nodes[a->node], b->node);
		return;
	}
	if (e->in.state == TREE_ABSENT && e->out.state == TREE_ABSENT) {
		tree_open_in(t, e, there);
		tree_open_out(t, e, here);
	}
}

static void tree_produce(struct tree *t, struct tree_buffer *b)
{
	struct record r = {.op = COMMAND_ADVANCE, .epoch = 1};
	if (b->ready_bytes == b->size || !prng_chance(&t->prng, 200000))
		return;
	uint64_t left = b->size - b->ready_bytes;
	uint64_t more = 1 + prng_below(&t->prng, prng_chance(&t->prng, 200000) ? left : 20000);
	more = more < left ? more : left;
	memcpy(tree_node_of(t, b)->store.base + b->offset + b->ready_bytes,
	       b->content + b->ready_bytes, more);
	b->ready_bytes += more;
	if (!b->live || b->dropping)
		return;
	r.progress.buffer = b->handle;
	r.progress.ready_bytes = b->ready_bytes;
	node_command(tree_node_of(t, b), &r);
}

static void tree_trouble(struct tree *t)
{
	if (!prng_chance(&t->prng, t->trouble_ppm))
		return;
	struct tree_edge *e = &t->edge[prng_below(&t->prng, t->edges)];
	struct tree_buffer *b = &t->buffer[prng_below(&t->prng, t->buffers)];
	uint32_t peer = (uint32_t)prng_below(&t->prng, t->nodes);
	t->troubles++;
	switch (prng_below(&t->prng, 4)) {
	case 0:
		if (b->live && !b->dropping)
			tree_drop_buffer(t, b);
		break;
	case 1:
		if (node_conn_to(&t->world.nodes[b->node], peer))
			node_disconnect(&t->world.nodes[b->node], peer);
		break;
	default:
		e->restart |= e->in.state == TREE_OPEN;
	}
}

void tree_manage(struct tree *t)
{
	for (uint32_t k = 0; k < t->buffers; k++) {
		struct tree_buffer *b = &t->buffer[k];
		if (b->kind == TREE_PRODUCED)
			tree_produce(t, b);
		if (!b->live && prng_chance(&t->prng, 400000))
			tree_open_buffer(t, b);
	}
	for (uint32_t k = 0; k < t->edges; k++)
		if (t->edge[k].restart || prng_chance(&t->prng, 400000))
			tree_manage_edge(t, &t->edge[k]);
	tree_trouble(t);
}

bool tree_done(const struct tree *t)
{
	for (uint32_t k = 0; k < t->buffers; k++)
		if (!t->buffer[k].live || t->buffer[k].dropping ||
		    (t->buffer[k].kind != TREE_PRODUCED && !t->buffer[k].done))
			return false;
	for (uint32_t k = 0; k < t->edges; k++) {
		const struct tree_edge *e = &t->edge[k];
		if (e->restart || e->in.state != TREE_OPEN)
			return false;
		if (e->taken && !e->given)
			return false;
	}
	return true;
}
