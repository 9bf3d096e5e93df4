/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "out_edge.h"
#include "core/conn/conn.h"
#include "event.h"
#include "part.h"
#include "core/conn/path.h"

struct out_edge *out_edge_find(struct engine *e, uint32_t handle)
{
	uint16_t index = handle_index(handle);

	if (handle == 0 || index >= e->config.edges_max || e->out_edges[index].handle != handle)
		return NULL;
	return &e->out_edges[index];
}

static void out_edge_activate(struct engine *e, struct out_edge *o)
{
	if (!o->conn)
		return;
	list_want(&o->conn->active, &o->active);
	path_wake(e, o->conn);
}

void out_edge_ready(struct engine *e, struct out_edge *o, uint32_t chunk)
{
	if (chunk < o->cursor)
		o->cursor = chunk < o->first ? o->first : chunk;
	out_edge_activate(e, o);
}

uint32_t out_edge_next(const struct engine *e, struct out_edge *o)
{
	const struct buffer *b = o->buffer;
	uint32_t limit = o->end < b->ready_high ? o->end : b->ready_high;
	uint32_t chunk = o->cursor;

	if (o->sent_count >= o->credit) {
		if (chunk < limit && o->since_ns == 0)
			o->since_ns = e->now_ns;
		limit = 0;
	}
	while (chunk < limit) {
		uint32_t word = chunk / 64;
		uint64_t bits = buffer_ready_word(b, word) & ~buffer_map_word(o->sent, word);

		bits &= UINT64_MAX << (chunk % 64);
		if (bits != 0) {
			chunk = word * 64 + (uint32_t)__builtin_ctzll(bits);
			break;
		}
		chunk = (word + 1) * 64;
	}
	if (chunk >= limit) {
		if (limit != 0 && o->cursor < limit)
			o->cursor = limit;
		list_remove(&o->active);
		return CHUNK_NONE;
	}
	o->cursor = chunk;
	return chunk;
}

void out_edge_sent(struct out_edge *o, uint32_t chunk)
{
	assert(chunk >= o->first && chunk < o->end && o->conn);
	o->sent[chunk / 64] |= UINT64_C(1) << (chunk % 64);
	o->sent_count++;
	o->cursor = chunk + 1;
}

static struct record *out_edge_event(struct engine *e, const struct out_edge *o, enum event_op op)
{
	struct record *r = event_push(e, op);

	r->flags = RECORD_FLAG_OUT;
	r->epoch = o->epoch;
	r->token = o->token;
	r->edge.edge = o->handle;
	r->edge.buffer = o->buffer->handle;
	r->edge.conn = o->conn ? o->conn->handle : 0;
	r->edge.stream = o->stream;
	return r;
}

static void out_edge_done(struct engine *e, struct out_edge *o)
{
	out_edge_event(e, o, EVENT_OUT_DONE)->edge.chunks = o->acked_count;
}

void out_edge_acked(struct engine *e, uint32_t handle)
{
	struct out_edge *o = out_edge_find(e, handle);

	if (!o || !o->conn)
		return;
	if (++o->acked_count == o->total)
		out_edge_done(e, o);
}

void out_edge_part(struct out_edge *o, uint32_t chunk)
{
	assert(o->parts_left == 0 && chunk >= o->first && chunk < o->end);
	o->part_chunk = chunk;
	o->parts_left = (uint8_t)part_count(buffer_chunk_length(o->buffer, chunk));
	o->part_chunks++;
	o->parts_open += o->parts_left;
}

/* Each part is under way in one packet at a time, so that they may be counted: when none is open,
 * all chunks that went in parts are there. */
void out_edge_parts_acked(struct engine *e, uint32_t handle, uint32_t parts)
{
	struct out_edge *o = out_edge_find(e, handle);

	if (!o || !o->conn)
		return;
	assert(parts > 0 && o->parts_open >= parts);
	o->parts_open -= parts;
	if (o->parts_open > 0)
		return;
	assert(o->parts_left == 0 && o->part_chunks > 0);
	o->acked_count += o->part_chunks;
	o->part_chunks = 0;
	if (o->acked_count == o->total)
		out_edge_done(e, o);
}

void out_edge_unsent(struct engine *e, struct out_edge *o, uint32_t chunk)
{
	o->sent[chunk / 64] &= ~(UINT64_C(1) << (chunk % 64));
	o->sent_count--;
	out_edge_ready(e, o, chunk);
}

/* The receiver chooses the number: a secret factor keeps it from filling one bucket. */
static struct list *out_edge_bucket(struct engine *e, const struct conn *c, uint32_t stream)
{
	uint64_t word = (uint64_t)c->index << 32 | stream;

	return &e->by_stream[(word * e->stream_factor) >> 32 & e->stream_mask];
}

static struct out_edge *out_edge_by_stream(struct engine *e, const struct conn *c, uint32_t stream)
{
	list_each(l, out_edge_bucket(e, c, stream))
	{
		struct out_edge *o = list_entry(l, struct out_edge, by_stream);
		if (o->stream == stream && o->conn == c)
			return o;
	}
	return NULL;
}

enum verdict out_edge_granted(struct engine *e, struct conn *c, uint32_t stream, uint32_t chunks)
{
	struct out_edge *o = out_edge_by_stream(e, c, stream);

	if (!o) /* ended here, or not begun: the receiver grants again as chunks arrive */
		return VERDICT_TAKEN;
	if (chunks > o->end - o->first) {
		e->count->drop_grant_overflow++;
		return VERDICT_REFUSED;
	}
	if (chunks > o->credit) { /* an older grant may arrive late: it says nothing new */
		o->credit = chunks;
		if (o->since_ns != 0) {
			e->count->wait_credit_ns += e->now_ns - o->since_ns;
			c->tally.wait_credit_ns += e->now_ns - o->since_ns;
		}
		o->since_ns = 0;
		out_edge_activate(e, o);
	}
	return VERDICT_TAKEN;
}

void out_edge_reset(struct engine *e, struct conn *c, uint32_t stream)
{
	struct out_edge *o = out_edge_by_stream(e, c, stream);

	if (o && o->acked_count < o->total)
		out_edge_fail(e, o, REASON_STREAM_RESET);
}

void out_edge_fail(struct engine *e, struct out_edge *o, enum reason why)
{
	if (!o->conn)
		return;
	if (o->acked_count < o->total)
		out_edge_event(e, o, EVENT_EDGE_FAILED)->reason = (uint16_t)why;
	list_remove(&o->active);
	list_remove(&o->on_conn);
	list_remove(&o->by_stream);
	o->conn = NULL;
}

static enum reason out_edge_check(struct engine *e, const struct record *r)
{
	uint16_t index = handle_index(r->edge.edge);
	const struct buffer *b = buffer_find(e, r->edge.buffer);
	const struct conn *c = conn_named(e, r->edge.conn);

	if (handle_generation(r->edge.edge) == 0 || index >= e->config.edges_max || !b)
		return REASON_BAD_ID;
	if (e->out_edges[index].handle != 0)
		return REASON_BUSY_ID;
	if (r->epoch < b->epoch)
		return REASON_STALE_EPOCH;
	if (!c || c->state != CONN_UP)
		return REASON_BAD_CONN;
	if (!buffer_has_range(b, r->edge.first_chunk, r->edge.chunks) ||
	    r->edge.bitmap_offset == 0 ||
	    !buffer_map_fits(e, r->edge.bitmap_offset, chunk_bitmap_bytes(b->chunks)))
		return REASON_BAD_RANGE;
	return REASON_NONE;
}

enum reason out_edge_open(struct engine *e, const struct record *r)
{
	enum reason bad = out_edge_check(e, r);
	if (bad != REASON_NONE)
		return bad;

	struct out_edge *o = &e->out_edges[handle_index(r->edge.edge)];
	memset(o, 0, sizeof(*o));
	o->handle = r->edge.edge;
	o->epoch = r->epoch;
	o->token = r->token;
	o->buffer = buffer_find(e, r->edge.buffer);
	o->conn = conn_find(e, r->edge.conn);
	o->sent = (uint64_t *)(void *)(e->config.store + r->edge.bitmap_offset);
	o->stream = r->edge.stream;
	o->first = o->cursor = r->edge.first_chunk;
	o->end = r->edge.first_chunk + r->edge.chunks;
	o->total = chunks_missing(o->sent, o->first, o->end);
	o->credit =
		(uint32_t)numbers_min(wire_unscheduled(o->buffer->chunk_bytes), o->end - o->first);
	assert(o->conn && o->credit >= 1 && o->credit <= o->end - o->first);
	list_append(&o->buffer->out_edges, &o->on_buffer);
	list_append(&o->conn->out_edges, &o->on_conn);
	list_append(out_edge_bucket(e, o->conn, o->stream), &o->by_stream);
	list_init(&o->active);
	if (o->total == 0)
		out_edge_done(e, o);
	else
		out_edge_activate(e, o);
	return REASON_NONE;
}

void out_edge_close(struct out_edge *o)
{
	assert(o->handle != 0);
	list_remove(&o->active);
	list_remove(&o->on_buffer);
	if (o->conn) {
		list_remove(&o->on_conn);
		list_remove(&o->by_stream);
	}
	o->handle = 0;
}

enum reason out_edge_drop(struct engine *e, const struct record *r)
{
	struct out_edge *o = out_edge_find(e, r->edge.edge);

	if (!o)
		return REASON_BAD_ID;
	if (r->epoch < o->epoch)
		return REASON_STALE_EPOCH;
	out_edge_event(e, o, EVENT_DROPPED);
	out_edge_close(o);
	return REASON_NONE;
}
