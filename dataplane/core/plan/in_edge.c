/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "in_edge.h"
#include "core/kernel/chunk_crc.h"
#include "combine.h"
#include "core/conn/congestion.h"
#include "core/conn/conn.h"
#include "event.h"
#include "part.h"
#include "core/conn/path.h"

struct in_edge *in_edge_find(struct engine *e, uint32_t handle)
{
	uint16_t index = handle_index(handle);

	if (handle == 0 || index >= e->config.edges_max || e->in_edges[index].handle != handle)
		return NULL;
	return &e->in_edges[index];
}

/* An equal share of the node's credit, in chunks: what one stream may have under way. */
static uint32_t in_edge_window(const struct engine *e, const struct in_edge *i)
{
	uint64_t share = e->config.credit_bytes / (e->in_active == 0 ? 1 : e->in_active);
	uint64_t chunks = share / i->buffer->chunk_bytes;

	return (uint32_t)numbers_min(numbers_max(chunks, 4), i->end - i->first);
}

static uint32_t in_edge_target(const struct engine *e, const struct in_edge *i)
{
	uint64_t target = (uint64_t)i->received + in_edge_window(e, i);

	return (uint32_t)numbers_min(target, i->end - i->first);
}

uint32_t in_edge_grant(struct engine *e, struct in_edge *i)
{
	uint32_t target = in_edge_target(e, i);

	if (i->received == 0) /* the sender may not know the stream: more would be missed */
		target = (uint32_t)numbers_min(target, wire_unscheduled(i->buffer->chunk_bytes));
	if (target > i->granted)
		i->granted = target;
	return i->granted;
}

/* By how much a grant is to raise the credit. Of a large window a quarter is worth a packet; half
 * of it would be missed where the window is little more than what is on the way. */
static uint32_t in_edge_step(const struct engine *e, const struct in_edge *i)
{
	uint32_t window = in_edge_window(e, i);
	uint64_t later = numbers_min(window / GRANTS_LATER, GRANT_CHUNKS);

	if (in_edge_senders(e) > GRANT_LATER_SENDERS)
		later = 0;
	return (uint32_t)numbers_max(window / GRANTS, later);
}

static void in_edge_tell(struct engine *e, struct in_edge *i)
{
	list_want(&i->conn->grants, &i->due);
	conn_wake(e, path_carrier(i->conn));
}

static void in_edge_credit(struct engine *e, struct in_edge *i)
{
	uint32_t target = in_edge_target(e, i);

	if (target <= i->granted)
		return;
	if (target - i->granted >= in_edge_step(e, i) || target == i->end - i->first)
		in_edge_tell(e, i);
}

/* A frame for a stream that is not there: the peer is told, once the list has room. */
static enum verdict in_edge_unknown(struct engine *e, struct conn *c, uint32_t stream)
{
	uint16_t index = handle_index(stream);

	if (index < e->config.edges_max && e->in_edges[index].handle != 0 &&
	    e->in_edges[index].handle != stream)
		e->count->drop_stale_stream++;
	else
		e->count->drop_unknown_stream++;
	for (uint16_t k = 0; k < c->resets_count; k++)
		if (c->resets[k] == stream)
			return VERDICT_TAKEN;
	if (c->resets_count == RESETS_MAX)
		return VERDICT_REFUSED;
	c->resets[c->resets_count++] = stream;
	conn_wake(e, c);
	return VERDICT_TAKEN;
}

void in_edge_prefetch(const struct engine *e, const uint8_t *head)
{
	uint32_t stream = wire_get32(head + DATA_AT_STREAM);
	uint32_t chunk = wire_get32(head + DATA_AT_CHUNK);
	uint16_t index = handle_index(stream);

	if (stream == 0 || index >= e->config.edges_max || e->in_edges[index].handle != stream)
		return; /* a free place has handle 0 and no buffer */
	const struct in_edge *i = &e->in_edges[index];
	const struct buffer *b = i->buffer;
	chunk = chunk - i->origin_first + i->first;
	if (chunk < b->chunks)
		combine_prefetch(b, chunk);
}

/* The chunk has been given before, or its place needs no more. */
static enum verdict in_edge_duplicate(struct engine *e, struct in_edge *i, uint32_t chunk)
{
	e->count->rx_chunk_duplicates++;
	i->received += i->received < i->end - i->first;
	if (!in_edge_gave(i, chunk)) {
		i->took[chunk / 64] |= UINT64_C(1) << (chunk % 64);
		in_edge_given(e, i);
	}
	in_edge_credit(e, i);
	return VERDICT_TAKEN;
}

bool in_edge_has(const struct in_edge *i, uint32_t chunk)
{
	return in_edge_gave(i, chunk) || !combine_open(i->buffer, chunk);
}

/* [P9] */
enum verdict in_edge_take(struct engine *e, struct conn *c, const uint8_t *head,
			  const uint8_t *payload, uint16_t length, const struct crc_span *span)
{
	uint32_t stream = wire_get32(head + DATA_AT_STREAM);
	struct in_edge *i = in_edge_find(e, stream);

	if (!i || i->conn != c->main)
		return in_edge_unknown(e, c, stream);
	struct buffer *b = i->buffer;
	uint32_t place = wire_get32(head + DATA_AT_CHUNK) - i->origin_first;
	uint32_t chunk = i->first + place;
	if (place >= i->end - i->first) {
		e->count->drop_chunk_range++;
		return VERDICT_REFUSED;
	}
	if (length != buffer_chunk_length(b, chunk)) {
		e->count->drop_chunk_size++;
		return VERDICT_REFUSED;
	}
	if (in_edge_has(i, chunk))
		return in_edge_duplicate(e, i, chunk);
	if (i->taken >= i->granted) {
		e->count->drop_over_credit++;
		return VERDICT_REFUSED;
	}
	i->taken++;
	i->received += i->received < i->end - i->first;
	e->count->rx_chunks++;
	e->count->rx_chunk_bytes += length;
	combine_chunk(e, b, chunk, i, payload);
	if (!b->counts && span)
		chunk_crc_came(e, b, chunk, length, span);
	in_edge_credit(e, i);
	return VERDICT_TAKEN;
}

static void in_edge_idle(struct engine *e, struct in_edge *i)
{
	if (!i->active)
		return;
	assert(e->in_active > 0 && i->conn->in_active > 0 && e->in_senders > 0);
	i->active = false;
	e->in_active--;
	e->in_senders -= --i->conn->in_active == 0;
	e->in_announced = (uint32_t)numbers_min(e->in_announced, in_edge_senders(e));
}

static struct record *in_edge_event(struct engine *e, const struct in_edge *i, enum event_op op)
{
	struct record *r = event_push(e, op);

	r->flags = RECORD_FLAG_IN;
	r->epoch = i->epoch;
	r->token = i->token;
	r->edge.edge = i->handle;
	r->edge.buffer = i->buffer->handle;
	r->edge.conn = i->conn ? i->conn->handle : 0;
	return r;
}

static void in_edge_done(struct engine *e, struct in_edge *i)
{
	in_edge_idle(e, i);
	if (!i->tells)
		return;
	struct record *r = in_edge_event(e, i, EVENT_IN_DONE);
	r->edge.first_chunk = i->first;
	r->edge.chunks = i->end - i->first;
}

uint32_t in_edge_senders(const struct engine *e)
{
	return (uint32_t)numbers_min((uint64_t)e->in_senders * e->config.workers, UINT8_MAX);
}

/* A sender that knows a smaller number of senders would aim at more queue than the others until its
 * next grant. Not by a stream that its sender may not know yet, unless early. */
static void in_edge_tell_all(struct engine *e, bool early)
{
	uint32_t left = e->in_senders;

	for (struct conn *c = e->conns; left > 0 && c < e->conns + e->config.conns_max; c++) {
		if (c->in_active == 0)
			continue;
		left--;
		list_each(l, &c->in_edges)
		{
			struct in_edge *i = list_entry(l, struct in_edge, on_origin);
			if (!i->active || (i->received == 0 && !early))
				continue;
			in_edge_tell(e, i);
			break;
		}
	}
}

/* Did the number of senders rise above this one? */
static bool in_edge_crossed(const struct engine *e, uint32_t before, uint32_t senders)
{
	return before <= senders && in_edge_senders(e) > senders;
}

static void in_edge_expect(struct engine *e, struct in_edge *i)
{
	uint32_t before = in_edge_senders(e);

	assert(!i->active && e->in_active < e->config.edges_max);
	i->active = true;
	e->in_active++;
	e->in_senders += i->conn->in_active++ == 0;
	uint32_t now = in_edge_senders(e);
	/* and again when they are half as many more: those that began first knew of few */
	if (in_edge_crossed(e, before, CONGESTION_MANY_SENDERS) ||
	    (now > CONGESTION_MANY_SENDERS && now - e->in_announced > e->in_announced / 2)) {
		in_edge_tell_all(e, true);
		e->in_announced = now;
	} else if (before > 0 && in_edge_crossed(e, before, CONGESTION_FEW_SENDERS)) {
		in_edge_tell_all(e, false);
	}
	if (now > CONGESTION_MANY_SENDERS)
		in_edge_tell(e, i);
}

void in_edge_begin(struct engine *e, struct in_edge *i)
{
	if (i->missing == 0) {
		in_edge_done(e, i);
	} else if (i->conn) {
		in_edge_expect(e, i);
	}
}

void in_edge_given(struct engine *e, struct in_edge *i)
{
	if (i->missing > 0 && --i->missing == 0)
		in_edge_done(e, i);
}

void in_edge_covered(struct engine *e, struct in_edge *i, uint32_t chunk)
{
	if (chunk >= i->first && chunk < i->end && (i->conn || i->source))
		in_edge_given(e, i);
}

void in_edge_fail(struct engine *e, struct in_edge *i, enum reason why)
{
	if (!i->conn && !i->source)
		return;
	if (i->missing > 0)
		in_edge_event(e, i, EVENT_EDGE_FAILED)->reason = (uint16_t)why;
	in_edge_idle(e, i);
	part_forget(e, i->handle);
	list_remove(&i->due);
	list_remove(&i->on_origin);
	i->conn = NULL;
	i->source = NULL;
}

enum reason in_edge_check_range(const struct engine *e, const struct buffer *b,
				const struct record *r)
{
	if (!b->bitmap || !buffer_has_range(b, r->edge.first_chunk, r->edge.chunks))
		return REASON_BAD_RANGE;
	bool fits = r->edge.bitmap_offset == 0 ? !b->counts
					       : buffer_map_fits(e, r->edge.bitmap_offset,
								 chunk_bitmap_bytes(b->chunks));
	return fits ? REASON_NONE : REASON_BAD_RANGE;
}

static enum reason in_edge_check(struct engine *e, const struct record *r)
{
	uint16_t index = handle_index(r->edge.edge);
	const struct buffer *b = buffer_find(e, r->edge.buffer);
	const struct conn *c = conn_named(e, r->edge.conn);

	if (handle_generation(r->edge.edge) == 0 || index >= e->config.edges_max || !b)
		return REASON_BAD_ID;
	if (e->in_edges[index].handle != 0)
		return REASON_BUSY_ID;
	if (r->epoch < b->epoch)
		return REASON_STALE_EPOCH;
	if (!c || c->state != CONN_UP)
		return REASON_BAD_CONN;
	return in_edge_check_range(e, b, r);
}

struct in_edge *in_edge_new(struct engine *e, const struct record *r, struct buffer *b)
{
	struct in_edge *i = &e->in_edges[handle_index(r->edge.edge)];

	memset(i, 0, sizeof(*i));
	i->handle = r->edge.edge;
	i->epoch = r->epoch;
	i->token = r->token;
	i->buffer = b;
	i->took = !b->counts ? b->bitmap
			     : (uint64_t *)(void *)(e->config.store + r->edge.bitmap_offset);
	i->first = i->cursor = r->edge.first_chunk;
	i->end = r->edge.first_chunk + r->edge.chunks;
	i->origin_first = r->edge.peer_first;
	assert(i->first < i->end && i->end <= b->chunks);
	i->missing = chunks_missing(i->took, i->first, i->end);
	list_init(&i->due);
	return i;
}

enum reason in_edge_open(struct engine *e, const struct record *r)
{
	enum reason bad = in_edge_check(e, r);
	if (bad != REASON_NONE)
		return bad;

	struct buffer *b = buffer_find(e, r->edge.buffer);
	struct in_edge *i = in_edge_new(e, r, b);
	i->conn = conn_find(e, r->edge.conn);
	i->granted = (uint32_t)numbers_min(wire_unscheduled(b->chunk_bytes), i->end - i->first);
	assert(i->conn && i->granted >= 1);
	i->tells = b->counts || i->end - i->first < b->chunks;
	list_append(&b->in_edges, &i->on_buffer);
	list_append(&i->conn->in_edges, &i->on_origin);
	in_edge_begin(e, i);
	path_wake(e, i->conn); /* its keep-alive is now a busy one */
	return REASON_NONE;
}

void in_edge_close(struct engine *e, struct in_edge *i)
{
	assert(i->handle != 0);
	in_edge_idle(e, i);
	part_forget(e, i->handle);
	list_remove(&i->due);
	list_remove(&i->on_buffer);
	list_remove(&i->on_origin);
	i->handle = 0;
}

enum reason in_edge_drop(struct engine *e, const struct record *r)
{
	struct in_edge *i = in_edge_find(e, r->edge.edge);

	if (!i)
		return REASON_BAD_ID;
	if (r->epoch < i->epoch)
		return REASON_STALE_EPOCH;
	in_edge_event(e, i, EVENT_DROPPED);
	in_edge_close(e, i);
	return REASON_NONE;
}
