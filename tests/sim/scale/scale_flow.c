/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers, edges and chunks of the modelled dataplanes. While anything flows, a step runs every
 * step_ns: what has arrived is marked in its bitmap; then each stream may send what its holder has,
 * its window allows and its share of both links carries.
 */
#include "scale.h"

#include <assert.h>
#include <stdlib.h>

enum {
	FLOW_FIRST_PKTS = 16,	 /* the window begins so, and doubles every round trip */
	FLOW_WINDOW_PKTS = 2048, /* up to so much */
	FLOW_BLOCK_BYTES = 1024 * 1024,
};
#define FLOW_NONE UINT32_MAX

static void flow_step(void *context, uint64_t argument);

static bool bit(const uint64_t *map, uint32_t i)
{
	return map[i / 64] >> (i % 64) & 1;
}

static struct scale_buffer *flow_buffer(struct scale_node *n, uint32_t handle)
{
	struct scale_buffer *b = &n->buffers[handle_index(handle) % n->s->config.stages_max];
	return handle && b->handle == handle ? b : NULL;
}

static struct scale_flow *flow_out(struct scale_node *n, uint32_t handle)
{
	struct scale_flow *f = n->outs[handle_index(handle) % n->s->config.edges_max];
	return f && f->handle == handle ? f : NULL;
}

/* ---- which streams are active ------------------------------------------------------------- */

static void flow_activate(struct scale *s, struct scale_flow *f)
{
	if (s->active_count == s->active_room) {
		s->active_room = s->active_room ? 2 * s->active_room : 256;
		s->active = realloc(s->active, s->active_room * sizeof(struct scale_flow *));
		assert(s->active);
	}
	f->active = s->active_count;
	s->active[s->active_count++] = f;
	if (!s->stepping)
		events_add(&s->events, scale_now(s), flow_step, s, 0);
	s->stepping = true;
}

static void flow_deactivate(struct scale *s, struct scale_flow *f)
{
	if (f->active == FLOW_NONE)
		return;
	s->active[f->active] = s->active[--s->active_count];
	s->active[f->active]->active = f->active;
	f->active = FLOW_NONE;
}

static void flow_free(struct scale_node *n, struct scale_flow *f)
{
	struct scale_buffer *b = flow_buffer(n, f->buffer);
	struct scale_flow **at = b ? &b->flows : NULL;
	while (at && *at != f)
		at = &(*at)->of_buffer;
	if (at)
		*at = f->of_buffer;
	flow_deactivate(n->s, f);
	n->outs[handle_index(f->handle) % n->s->config.edges_max] = NULL;
	free(f->runs);
	free(f);
}

/* ---- records ------------------------------------------------------------------------------ */

static void flow_edge_event(struct scale_node *n, uint8_t op, uint8_t flags, uint16_t reason,
			    const struct scale_in *e)
{
	struct record r = {.op = op, .flags = flags, .reason = reason};
	r.edge.edge = e->handle;
	r.edge.buffer = e->buffer;
	r.edge.conn = e->conn;
	scale_event(n, &r);
}

static void flow_out_event(struct scale_flow *f, struct scale_node *n, uint8_t op, uint16_t reason)
{
	const struct scale_in e = {f->handle, f->buffer, f->conn};
	flow_edge_event(n, op, RECORD_FLAG_OUT, reason, &e);
}

static void flow_fail(struct scale_node *n, struct scale_flow *f, uint16_t reason)
{
	if (f->failed)
		return;
	f->failed = true;
	flow_deactivate(n->s, f);
	flow_out_event(f, n, EVENT_EDGE_FAILED, reason);
}

static void flow_refuse(struct scale_node *n, const struct record *r, uint32_t id, uint16_t reason)
{
	struct record e = {.op = EVENT_REFUSED, .reason = reason};
	e.refused.id = id;
	e.refused.refused_op = r->op;
	scale_event(n, &e);
}

static void flow_written(struct scale_buffer *b, uint64_t bytes)
{
	b->ready = b->high = bytes == b->size ? b->chunks : (uint32_t)(bytes / b->chunk_bytes);
}

static void flow_take_buffer(struct scale_node *n, const struct record *r)
{
	struct scale_buffer *b = &n->buffers[handle_index(r->buffer.buffer)];
	*b = (struct scale_buffer){.handle = r->buffer.buffer,
				   .table_slot = r->buffer.table_slot,
				   .size = r->buffer.size,
				   .chunk_bytes = r->buffer.chunk_bytes};
	b->chunks = (uint32_t)chunk_count(b->size, b->chunk_bytes);
	if (r->buffer.bitmap_offset) {
		b->bitmap = (uint64_t *)(void *)(n->store + r->buffer.bitmap_offset);
		for (uint32_t i = 0; i < b->chunks; i++)
			if (bit(b->bitmap, i)) {
				b->ready++;
				b->high = i + 1;
			}
	} else {
		flow_written(b, r->buffer.ready_bytes);
	}
}

static void flow_take_out(struct scale_node *n, const struct record *r)
{
	struct scale_buffer *b = flow_buffer(n, r->edge.buffer);
	const struct scale_conn *c = scale_conn_find(n, r->edge.conn);
	struct scale_flow *f;
	if (!b || !c || !c->up) {
		flow_refuse(n, r, r->edge.edge, b ? REASON_BAD_CONN : REASON_BAD_ID);
		return;
	}
	f = calloc(1, sizeof(*f));
	assert(f);
	f->node = n->index;
	f->handle = r->edge.edge;
	f->buffer = r->edge.buffer;
	f->conn = r->edge.conn;
	f->stream = r->edge.stream;
	f->peer = c->peer;
	f->first = f->cursor = r->edge.first_chunk;
	f->end = f->cursor + r->edge.chunks;
	f->sent = (uint64_t *)(void *)(n->store + r->edge.bitmap_offset);
	f->window_bytes = FLOW_FIRST_PKTS * n->s->o.mtu;
	for (uint32_t i = f->cursor; i < f->end; i++)
		f->left += !bit(f->sent, i);
	assert(!n->outs[handle_index(f->handle)]);
	n->outs[handle_index(f->handle)] = f;
	f->of_buffer = b->flows;
	b->flows = f;
	flow_activate(n->s, f);
}

static void flow_take_in(struct scale_node *n, const struct record *r)
{
	const struct scale_conn *c = scale_conn_find(n, r->edge.conn);
	if (!c || !c->up || !flow_buffer(n, r->edge.buffer)) {
		flow_refuse(n, r, r->edge.edge, c ? REASON_BAD_ID : REASON_BAD_CONN);
		return;
	}
	n->ins[handle_index(r->edge.edge)] =
		(struct scale_in){r->edge.edge, r->edge.buffer, r->edge.conn};
}

static void flow_drop_edge(struct scale_node *n, const struct record *r)
{
	struct scale_in e = {r->edge.edge, r->edge.buffer, r->edge.conn};
	if (r->flags & RECORD_FLAG_OUT) {
		struct scale_flow *f = flow_out(n, r->edge.edge);
		if (f)
			flow_free(n, f);
	} else if (n->ins[handle_index(e.handle)].handle == e.handle) {
		n->ins[handle_index(e.handle)].handle = 0;
	}
	flow_edge_event(n, EVENT_DROPPED, r->flags, 0, &e);
}

static void flow_drop_buffer(struct scale_node *n, const struct record *r)
{
	struct record e = {.op = EVENT_DROPPED, .flags = RECORD_FLAG_BUFFER};
	struct scale_buffer *b = flow_buffer(n, r->progress.buffer);
	for (uint32_t i = 0; b && i < n->s->config.edges_max; i++) {
		if (n->outs[i] && n->outs[i]->buffer == b->handle)
			flow_free(n, n->outs[i]);
		if (n->ins[i].buffer == b->handle)
			n->ins[i].handle = 0;
	}
	if (b)
		b->handle = 0;
	e.progress.buffer = r->progress.buffer;
	scale_event(n, &e);
}

static void flow_advance(struct scale_node *n, const struct record *r)
{
	struct scale_buffer *b = flow_buffer(n, r->progress.buffer);
	if (b && !b->bitmap)
		flow_written(b, r->progress.ready_bytes);
}

void scale_flow_command(struct scale_node *n, const struct record *r)
{
	switch (r->op) {
	case COMMAND_BUFFER:
		flow_take_buffer(n, r);
		break;
	case COMMAND_IN:
		flow_take_in(n, r);
		break;
	case COMMAND_OUT:
		flow_take_out(n, r);
		break;
	case COMMAND_ADVANCE:
		flow_advance(n, r);
		break;
	case COMMAND_DROP_EDGE:
		flow_drop_edge(n, r);
		break;
	case COMMAND_DROP_BUFFER:
		flow_drop_buffer(n, r);
		break;
	default:
		assert(!"a record that no control sends");
	}
}

void scale_flow_lost(struct scale_node *n, uint32_t conn, uint16_t reason)
{
	for (uint32_t i = 0; i < n->s->config.edges_max; i++) {
		if (n->outs[i] && n->outs[i]->conn == conn)
			flow_fail(n, n->outs[i], reason);
		if (n->ins[i].handle && n->ins[i].conn == conn)
			flow_edge_event(n, EVENT_EDGE_FAILED, RECORD_FLAG_IN, reason, &n->ins[i]);
	}
}

void scale_flow_die(struct scale_node *n)
{
	for (uint32_t i = 0; i < n->s->config.edges_max; i++)
		if (n->outs[i])
			flow_free(n, n->outs[i]);
}

/* ---- what arrives ------------------------------------------------------------------------- */

static void flow_progress(struct scale_node *n, struct scale_buffer *b)
{
	struct record r = {.op = EVENT_PROGRESS};
	uint64_t bytes;
	while (b->contiguous < b->chunks && bit(b->bitmap, b->contiguous)) {
		if (b->contiguous % 64 == 0 && b->bitmap[b->contiguous / 64] == UINT64_MAX)
			b->contiguous += 63;
		b->contiguous++;
	}
	bytes = (uint64_t)b->contiguous * b->chunk_bytes;
	bytes = bytes > b->size || b->contiguous >= b->chunks ? b->size : bytes;
	atomic_store_explicit(&n->table->slot[b->table_slot].watermark, bytes,
			      memory_order_release);
	r.progress.buffer = b->handle;
	r.progress.ready_bytes = bytes;
	if (b->ready == b->chunks) {
		r.op = EVENT_BUFFER_DONE;
		scale_event(n, &r);
	} else if (bytes / FLOW_BLOCK_BYTES > b->reported) {
		b->reported = (uint32_t)(bytes / FLOW_BLOCK_BYTES);
		scale_event(n, &r);
	}
}

static void flow_deliver(struct scale *s, struct scale_flow *f, const struct scale_run *run)
{
	struct scale_node *n = &s->nodes[f->peer], *from = &s->nodes[f->node];
	const struct scale_in *in = &n->ins[handle_index(f->stream) % s->config.edges_max];
	struct scale_buffer *b = in->handle == f->stream ? flow_buffer(n, in->buffer) : NULL;
	bool done;
	if (n->dead) /* nothing is acknowledged: the window stays full */
		return;
	f->flying -= run->count;
	if (!b) {
		flow_fail(from, f, REASON_STREAM_RESET);
		return;
	}
	if (n->first_ns == 0) {
		n->first_ns = scale_now(s);
		n->depth = from->depth + 1;
	}
	done = b->ready == b->chunks;
	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		b->ready += !bit(b->bitmap, i);
		b->bitmap[i / 64] |= UINT64_C(1) << (i % 64);
	}
	b->high = run->first + run->count > b->high ? run->first + run->count : b->high;
	for (struct scale_flow *o = b->flows; o; o = o->of_buffer)
		if (run->first < o->cursor)
			o->cursor = run->first > o->first ? run->first : o->first;
	if (!done)
		flow_progress(n, b);
}

static void flow_finished(struct scale *s, struct scale_flow *f)
{
	flow_deactivate(s, f);
	flow_out_event(f, &s->nodes[f->node], EVENT_OUT_DONE, 0);
}

static void flow_arrivals(struct scale *s, struct scale_flow *f)
{
	uint64_t now = scale_now(s);
	while (f->runs_count && f->runs[f->runs_head].at_ns <= now && f->active != FLOW_NONE) {
		struct scale_run run = f->runs[f->runs_head];
		f->runs_head = (f->runs_head + 1) % f->runs_room;
		f->runs_count--;
		flow_deliver(s, f, &run);
	}
	if (f->left == 0 && f->flying == 0 && f->active != FLOW_NONE)
		flow_finished(s, f);
}

/* ---- what leaves -------------------------------------------------------------------------- */

/* Chunks from the cursor on that can leave; moves the cursor to the first. */
static uint32_t flow_sendable(struct scale *s, struct scale_flow *f, uint32_t most)
{
	const struct scale_buffer *b = flow_buffer(&s->nodes[f->node], f->buffer);
	uint32_t count = 0, end = f->end;
	if (!b || f->left == 0)
		return 0;
	end = b->high < end ? b->high : end;
	while (f->cursor < end) {
		uint64_t bits = ~f->sent[f->cursor / 64];
		if (b->bitmap)
			bits &= b->bitmap[f->cursor / 64];
		bits &= UINT64_MAX << (f->cursor % 64);
		if (bits) {
			f->cursor = f->cursor / 64 * 64 + (uint32_t)__builtin_ctzll(bits);
			break;
		}
		f->cursor = (f->cursor / 64 + 1) * 64;
	}
	while (count < most && f->cursor + count < end && !bit(f->sent, f->cursor + count) &&
	       (!b->bitmap || bit(b->bitmap, f->cursor + count)))
		count++;
	return count;
}

static void flow_fly(struct scale *s, struct scale_flow *f, uint32_t count)
{
	uint64_t at =
		scale_now(s) + s->o.hop_ns + s->o.forward_ns +
		(uint64_t)(2 * scale_link_ns(s, s->wire_bytes)); /* into the switch, and out */
	if (f->runs_count == f->runs_room) {
		uint32_t room = f->runs_room ? 2 * f->runs_room : 32;
		struct scale_run *runs = calloc(room, sizeof(*runs));
		assert(runs);
		for (uint32_t i = 0; i < f->runs_count; i++)
			runs[i] = f->runs[(f->runs_head + i) % f->runs_room];
		free(f->runs);
		f->runs = runs;
		f->runs_room = room;
		f->runs_head = 0;
	}
	f->runs[(f->runs_head + f->runs_count++) % f->runs_room] =
		(struct scale_run){at, f->cursor, count};
}

static void flow_send(struct scale *s, struct scale_flow *f, double bytes)
{
	struct scale_node *n = &s->nodes[f->node], *peer = &s->nodes[f->peer];
	uint32_t most = (uint32_t)(bytes / s->wire_bytes), count;
	double used;
	count = flow_sendable(s, f, most < f->want ? most : f->want);
	if (count == 0)
		return;
	flow_fly(s, f, count);
	for (uint32_t i = f->cursor; i < f->cursor + count; i++)
		f->sent[i / 64] |= UINT64_C(1) << (i % 64);
	f->cursor += count;
	f->left -= count;
	f->flying += count;
	f->want -= count;
	n->sent_bytes += (uint64_t)count * s->chunk_bytes;
	used = (double)count * s->wire_bytes;
	n->up_bytes -= used;
	peer->down_bytes -= used;
	f->budget_bytes -= used;
	if (f->window_bytes < (double)FLOW_WINDOW_PKTS * s->o.mtu)
		f->window_bytes += used;
}

static void flow_refill(const struct scale *s, double *bytes)
{
	double step = s->o.rate_gbit / 8 * (double)s->o.step_ns;
	*bytes += step;
	if (*bytes > step + s->wire_bytes)
		*bytes = step + s->wire_bytes;
}

static void flow_wants(struct scale *s, struct scale_flow *f)
{
	double rtt = 2.0 * (double)s->o.hop_ns + (double)s->o.forward_ns +
		     scale_link_ns(s, s->wire_bytes);
	double allowed = f->window_bytes / rtt * (double)s->o.step_ns;
	f->budget_bytes += allowed;
	if (f->budget_bytes > allowed + s->wire_bytes)
		f->budget_bytes = allowed + s->wire_bytes;
	f->want = (double)f->flying * s->wire_bytes < f->window_bytes
			  ? flow_sendable(s, f, (uint32_t)(f->budget_bytes / s->wire_bytes))
			  : 0;
	if (f->want == 0 || s->nodes[f->node].dead)
		return;
	s->nodes[f->node].up_flows++;
	s->nodes[f->peer].down_flows++;
}

static void flow_shares(struct scale *s)
{
	for (uint32_t i = 0; i < s->active_count; i++) {
		struct scale_flow *f = s->active[i];
		struct scale_node *n = &s->nodes[f->node], *peer = &s->nodes[f->peer];
		double up = n->up_bytes / (n->up_flows ? n->up_flows : 1);
		double down = peer->down_bytes / (peer->down_flows ? peer->down_flows : 1);
		if (f->want)
			flow_send(s, f, up < down ? up : down);
	}
	for (uint32_t i = 0; i < s->active_count; i++) { /* what others left */
		struct scale_flow *f = s->active[(i + s->rotation) % s->active_count];
		double up = s->nodes[f->node].up_bytes, down = s->nodes[f->peer].down_bytes;
		if (f->want)
			flow_send(s, f, up < down ? up : down);
	}
	s->rotation++;
}

static void flow_step(void *context, uint64_t argument)
{
	struct scale *s = context;
	(void)argument;
	for (uint32_t i = s->active_count; i-- > 0;)
		flow_arrivals(s, s->active[i]);
	for (uint32_t i = 0; i < s->active_count; i++)
		s->nodes[s->active[i]->node].up_flows = s->nodes[s->active[i]->peer].down_flows = 0;
	for (uint32_t i = 0; i < s->active_count; i++)
		flow_wants(s, s->active[i]);
	for (uint32_t i = 0; i < s->o.nodes; i++) {
		flow_refill(s, &s->nodes[i].up_bytes);
		flow_refill(s, &s->nodes[i].down_bytes);
	}
	flow_shares(s);
	s->stepping = s->active_count > 0;
	if (s->stepping)
		events_add(&s->events, scale_now(s) + s->o.step_ns, flow_step, s, 0);
}
