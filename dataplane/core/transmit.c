/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "transmit.h"
#include "core/conn/ack.h"
#include "core/kernel/chunk_crc.h"
#include "core/conn/congestion.h"
#include "core/conn/handshake.h"
#include "core/plan/in_edge.h"
#include "core/plan/msg.h"
#include "core/plan/out_edge.h"
#include "core/plan/part.h"
#include "core/conn/path.h"
#include "core/conn/path_mtu.h"
#include "core/conn/sent.h"

/*
 * One packet carries at most one item that must arrive (a chunk, a message fragment, a grant, ...)
 * and, where room is left, an acknowledgement. Items are chosen in a fixed order: what is small and
 * unblocks others first, then what was lost, then new messages, then new chunks, the edges of a
 * connection in turn.
 */

enum {
	/* Packets: a sender whose window is used up asks for an acknowledgement after so many at
	 * the latest, as many as the receiver would acknowledge by itself (ACK_EVERY). */
	TRANSMIT_ASK_EVERY = 24,
	/* Beside parts of a chunk there is room for an acknowledgement of 128 packets. */
	TRANSMIT_PART_ACK_BYTES = ACK_AT_BITMAP + 2 * 8,
};
_Static_assert(ENGINE_OVERHEAD_V6 + WIRE_BODY + PART_FRAME_BYTES + PART_BYTES +
			       TRANSMIT_PART_ACK_BYTES <=
		       MTU_BASE,
	       "one part fits every path");

struct draft {
	uint8_t kind; /* enum sent_kind */
	uint32_t a, b;
	uint16_t frame_bytes; /* of the frame header, written at frame */
	uint16_t payload_bytes;
	uint16_t pad_to; /* UDP payload */
	bool resend;	 /* it was lost before */
	const uint8_t *payload;
	struct buffer *buffer; /* of a chunk */
	uint8_t frame[MSG_FRAME_BYTES];
};

static bool transmit_grant(struct engine *e, struct conn *c, struct draft *d)
{
	struct list *grants = &c->main->grants;
	if (list_empty(grants) || c->impaired)
		return false;
	struct in_edge *i = list_entry(grants->next, struct in_edge, due);
	list_remove(&i->due);
	d->kind = SENT_GRANT;
	d->a = i->handle;
	d->frame_bytes = GRANT_BYTES;
	d->frame[0] = FRAME_GRANT;
	d->frame[GRANT_AT_SENDERS] = (uint8_t)in_edge_senders(e);
	path_each(p, c) p->rx.peer_senders = d->frame[GRANT_AT_SENDERS];
	wire_put32(d->frame + GRANT_AT_STREAM, i->handle);
	wire_put32(d->frame + GRANT_AT_CHUNKS, in_edge_grant(e, i));
	e->count->tx_grants++;
	return true;
}

static bool transmit_reset(struct conn *c, struct draft *d)
{
	if (c->resets_count == 0)
		return false;
	d->kind = SENT_RESET;
	d->a = c->resets[--c->resets_count];
	d->frame_bytes = RESET_STREAM_BYTES;
	d->frame[0] = FRAME_RESET_STREAM;
	wire_put32(d->frame + RESET_STREAM_AT_STREAM, d->a);
	return true;
}

static bool transmit_ping(struct conn *c, struct draft *d)
{
	if (!c->ping_due)
		return false;
	c->ping_due = false;
	d->kind = SENT_PING;
	d->pad_to = WIRE_BODY + RESET_BYTES; /* as long as the answer of a peer that forgot us */
	d->frame_bytes = PING_BYTES;
	d->frame[0] = FRAME_PING;
	return true;
}

static bool transmit_probe(struct engine *e, struct conn *c, struct draft *d)
{
	uint16_t bytes = e->now_ns < c->pmtu.next_ns ? 0 : path_mtu_next(e, c);

	if (bytes == 0)
		return false;
	d->kind = SENT_PROBE;
	d->a = c->pmtu.trial;
	d->b = bytes;
	d->pad_to = (uint16_t)(bytes - conn_overhead(c));
	d->frame_bytes = PING_BYTES;
	d->frame[0] = FRAME_PING;
	return true;
}

static void transmit_msg(struct draft *d, const struct msg_out *m, uint32_t fragment)
{
	d->kind = SENT_MSG;
	d->a = m->id;
	d->b = fragment;
	d->payload = m->data + (size_t)fragment * MSG_FRAGMENT_BYTES;
	d->payload_bytes = (uint16_t)msg_fragment_length(m->length, fragment);
	d->frame_bytes = MSG_FRAME_BYTES;
	d->frame[0] = FRAME_MSG;
	wire_put16(d->frame + MSG_AT_LENGTH, d->payload_bytes);
	wire_put32(d->frame + MSG_AT_ID, m->id);
	wire_put16(d->frame + MSG_AT_FRAGMENT, (uint16_t)fragment);
	wire_put32(d->frame + MSG_AT_TOTAL, m->length);
}

static void transmit_chunk(struct draft *d, const struct out_edge *o, uint32_t chunk)
{
	d->kind = SENT_CHUNK;
	d->a = o->handle;
	d->b = chunk;
	d->buffer = o->buffer;
	d->payload = o->buffer->data + (uint64_t)chunk * o->buffer->chunk_bytes;
	d->payload_bytes = (uint16_t)buffer_chunk_length(o->buffer, chunk);
	d->frame_bytes = DATA_BYTES;
	d->frame[0] = FRAME_DATA;
	wire_put16(d->frame + DATA_AT_LENGTH, d->payload_bytes);
	wire_put32(d->frame + DATA_AT_STREAM, o->stream);
	wire_put32(d->frame + DATA_AT_CHUNK, chunk);
}

static void transmit_parts(struct draft *d, const struct out_edge *o, uint32_t chunk,
			   struct sent_parts p)
{
	uint32_t at = p.first * (uint32_t)PART_BYTES, bytes = p.count * (uint32_t)PART_BYTES;
	uint32_t left = buffer_chunk_length(o->buffer, chunk) - at;

	transmit_chunk(d, o, chunk);
	d->kind = sent_part(p);
	d->payload += at;
	d->payload_bytes = (uint16_t)(bytes < left ? bytes : left);
	d->frame_bytes = PART_FRAME_BYTES;
	d->frame[0] = FRAME_PART;
	wire_put16(d->frame + DATA_AT_LENGTH, d->payload_bytes);
	wire_put16(d->frame + PART_AT_OFFSET, (uint16_t)at);
}

/* Does the path carry this chunk at once? */
static bool transmit_fits(const struct conn *c, const struct out_edge *o, uint32_t chunk)
{
	return WIRE_BODY + DATA_BYTES + buffer_chunk_length(o->buffer, chunk) <= conn_room(c);
}

/* If not, the first search for what it carries may be about to find that it does. */
static bool transmit_waits(const struct conn *c)
{
	return c->pmtu.searching && !c->pmtu.narrow;
}

/* How many parts of a chunk go in one packet, of so many. */
static uint8_t transmit_parts_fit(const struct conn *c, uint8_t parts)
{
	uint32_t room =
		conn_room(c) - (uint32_t)(WIRE_BODY + PART_FRAME_BYTES + TRANSMIT_PART_ACK_BYTES);

	return (uint8_t)numbers_min(room / PART_BYTES, parts);
}

/* Parts that were lost. Those that do not fit together any more leave one after the other; false:
 * there is no room for several items now. */
static bool transmit_parts_again(struct engine *e, struct conn *c, struct conn *from,
				 struct draft *d, struct lost_item *item)
{
	const struct out_edge *o = out_edge_find(e, item->a);
	struct sent_parts p = sent_parts(item->kind), rest = p;

	p.count = transmit_parts_fit(c, p.count);
	rest.first = (uint8_t)(rest.first + p.count);
	rest.count = (uint8_t)(rest.count - p.count);
	if (rest.count > 0 && !sent_may_split(e, c))
		return false;
	transmit_parts(d, o, item->b, p);
	if (rest.count > 0) {
		item->kind = sent_part(rest);
		sent_defer_rest(e, from, item);
	}
	return true;
}

/* From the queue of the path itself, or of another that is impaired. */
static bool transmit_resend(struct engine *e, struct conn *c, struct conn *from, struct draft *d)
{
	struct lost_item item;
	uint32_t turns = from->tx.lost_count;

	while (sent_resend(e, from, &item)) {
		if (item.kind == SENT_MSG) {
			transmit_msg(d, msg_find(c->main, item.a), item.b);
			return true;
		}
		if (sent_is_part(item.kind)) {
			if (transmit_parts_again(e, c, from, d, &item))
				return true;
			if (c->tx.inflight_pkts > 0 || turns-- == 0) {
				sent_defer(e, from, &item);
				return false;
			}
			/* nothing is under way that could make room: what needs none goes first */
			sent_defer_last(e, from, &item);
			continue;
		}
		struct out_edge *o = out_edge_find(e, item.a);
		if (transmit_fits(c, o, item.b)) {
			transmit_chunk(d, o, item.b);
			e->count->tx_chunk_resends++;
			return true;
		}
		if (transmit_waits(c)) {
			sent_defer(e, from, &item);
			return false;
		}
		out_edge_unsent(e, o, item.b); /* leaves in parts, as new ones do */
	}
	return false;
}

static bool transmit_new_msg(struct conn *c, struct draft *d)
{
	uint16_t fragment;
	struct msg_out *m = path_carrier(c) == c ? msg_next(c->main, &fragment) : NULL;

	if (!m)
		return false;
	m->next_fragment++;
	transmit_msg(d, m, fragment);
	return true;
}

/* The next parts of the chunk that the edge sends so; only behind its last part have others their
 * turn, as the receiver has room for few such chunks. A packet with several parts may be lost and
 * have to leave again as several: there are so few of them that all find room. */
static void transmit_next_parts(struct conn *c, struct out_edge *o, struct draft *d)
{
	bool few = c->tx.inflight_pkts + c->tx.lost_count < c->window_pkts / 8u;
	uint32_t parts = part_count(buffer_chunk_length(o->buffer, o->part_chunk));
	struct sent_parts p = {.first = (uint8_t)(parts - o->parts_left)};

	p.count = few ? transmit_parts_fit(c, o->parts_left) : 1;
	o->parts_left = (uint8_t)(o->parts_left - p.count);
	transmit_parts(d, o, o->part_chunk, p);
}

/* Its turn comes again behind the others. */
static void transmit_turn(struct list *active, struct out_edge *o)
{
	if (o->parts_left > 0)
		return;
	list_remove(&o->active);
	if (o->sent_count < o->total)
		list_append(active, &o->active);
}

static bool transmit_new_chunk(struct engine *e, struct conn *c, struct draft *d)
{
	struct list *active = &c->main->active;

	while (!list_empty(active)) {
		struct out_edge *o = list_entry(active->next, struct out_edge, active);
		uint32_t chunk = o->parts_left > 0 ? o->part_chunk : out_edge_next(e, o);

		if (chunk == CHUNK_NONE)
			continue; /* it has left the list */
		if (o->parts_left == 0) {
			bool fits = transmit_fits(c, o, chunk);
			if (!fits && transmit_waits(c))
				return false;
			out_edge_sent(o, chunk);
			if (!fits)
				out_edge_part(o, chunk);
		}
		if (o->parts_left > 0)
			transmit_next_parts(c, o, d);
		else
			transmit_chunk(d, o, chunk);
		transmit_turn(active, o);
		return true;
	}
	return false;
}

/* Edges that waited for the path wait no longer. */
static void transmit_waited(struct engine *e, struct conn *c)
{
	if (c->cc.held_ns == 0)
		return;
	e->count->wait_path_ns += e->now_ns - c->cc.held_ns;
	c->tally.wait_path_ns += e->now_ns - c->cc.held_ns;
	c->cc.held_ns = 0;
}

static bool transmit_allowed(struct engine *e, struct conn *c)
{
	uint16_t fragment;
	bool may_wait = e->config.burst_bytes[c->rail] > 0 && c->tx.lost_count == 0 &&
			!msg_next(c->main, &fragment);
	bool allowed = congestion_allows(e, c, e->config.mtu, may_wait);

	if (allowed)
		transmit_waited(e, c);
	else if (c->cc.held_ns == 0)
		c->cc.held_ns = e->now_ns;
	return allowed;
}

/* Can the receiver tell a short number? It has seen at least largest_acked, or nothing yet. */
static bool transmit_reaches(const struct conn *c)
{
	return c->tx.next_pn - c->tx.largest_acked < CHUNK_PN_REACH;
}

/* Does the acknowledgement that is due fit beside what comes next? Alone it takes twice as much;
 * a short one fits beside any chunk that does not ask. */
static bool transmit_beside(const struct engine *e, const struct conn *c)
{
	if (c->tx.lost_count > 0 || list_empty(&c->main->active))
		return false;
	if (ack_short(c) && transmit_reaches(c)) /* at most as long as beside parts */
		return true;
	const struct out_edge *o = list_entry(c->main->active.next, struct out_edge, active);
	uint32_t bytes = ack_bytes(e, c);
	return WIRE_BODY + DATA_BYTES + o->buffer->chunk_bytes + bytes <= conn_room(c) ||
	       (o->parts_left > 0 && bytes <= TRANSMIT_PART_ACK_BYTES);
}

/* Is there an item that this path could send? */
static bool transmit_has_items(struct conn *c)
{
	const struct conn *m = c->main;

	if (c->tx.lost_count > 0 || !list_empty(&m->active))
		return true;
	if (m->paths == 0)
		return !list_empty(&m->msg.out);
	return (!list_empty(&m->msg.out) && path_carrier(c) == c) || path_stranded(c);
}

/* With an acknowledgement due only items are chosen beside which it finds room. */
static bool transmit_choose(struct engine *e, struct conn *c, struct draft *d, bool ack_due_now)
{
	if (!sent_room(e, c))
		return false;
	if (transmit_reset(c, d) || transmit_grant(e, c, d) || transmit_ping(c, d) ||
	    transmit_probe(e, c, d))
		return true;
	if (ack_due_now && !transmit_beside(e, c))
		return false;
	if (c->impaired)
		return false;
	if (!transmit_has_items(c)) {
		if (c->loss.probes_due > 0 && c->tx.inflight_pkts == 0) {
			c->loss.probes_due = 0;
			c->ping_due = true;
			return transmit_ping(c, d);
		}
		c->cc.rate.starved = true;
		transmit_waited(e, c);
		return false;
	}
	if (!transmit_allowed(e, c))
		return false;
	struct conn *stranded = sent_window(e, c) ? path_stranded(c) : NULL; /* new to this one */
	d->resend = transmit_resend(e, c, c, d) || (stranded && transmit_resend(e, c, stranded, d));
	if (d->resend)
		return true;
	return sent_window(e, c) && (transmit_new_msg(c, d) || transmit_new_chunk(e, c, d));
}

/* A short message is often answered by another, which takes the acknowledgement along: nobody is in
 * a hurry for it while few messages are open. */
static bool transmit_may_wait(const struct conn *c, const struct draft *d)
{
	if (d->kind != SENT_MSG || wire_get32(d->frame + MSG_AT_TOTAL) != d->payload_bytes)
		return false;
	return d->a - list_entry(c->main->msg.out.next, struct msg_out, link)->id < MSG_WINDOW / 2;
}

/*
 * A sender that has used up its window asks for an acknowledgement at once, a few times per
 * window; so the receiver needs no guess at how many packets make a window. So does a probe.
 */
static void transmit_ask(const struct engine *e, struct conn *c, struct draft *d)
{
	uint64_t after = c->tx.inflight_bytes + 2 * (uint64_t)e->config.mtu;
	uint64_t gap = c->cc.cwnd_bytes / e->config.mtu / (c->cc.slow_start ? 4 : 2);
	uint16_t fragment;
	bool last = c->tx.lost_count == 0 && list_empty(&c->main->active) &&
		    !msg_next(c->main, &fragment) && !transmit_may_wait(c, d);

	c->tx.since_ask++;
	if (!last && c->loss.probes_due == 0 &&
	    (after <= c->cc.cwnd_bytes || c->tx.since_ask < numbers_min(gap, TRANSMIT_ASK_EVERY)))
		return;
	d->frame[FRAME_AT_FLAGS] |= FRAME_FLAG_ASK;
	c->tx.since_ask = 0;
}

static void transmit_count(struct engine *e, const struct draft *d)
{
	if (d->kind != SENT_CHUNK && !sent_is_part(d->kind))
		return;
	e->count->tx_parts += d->kind != SENT_CHUNK;
	e->count->tx_chunks += d->kind == SENT_CHUNK || sent_parts(d->kind).first == 0;
	e->count->tx_chunk_bytes += d->payload_bytes;
}

/* A chunk, an acknowledgement or both go with the short header, unless the chunk asks. */
static bool transmit_short(const struct conn *c, const struct draft *d)
{
	return (d->kind == SENT_CHUNK || d->kind == SENT_NOTHING) &&
	       (d->frame[FRAME_AT_FLAGS] & FRAME_FLAG_ASK) == 0 && transmit_reaches(c);
}

static uint16_t transmit_head_chunk(struct engine *e, struct conn *c, const struct draft *d,
				    uint8_t *head)
{
	uint64_t pn =
		sent_record(e, c, d->kind, d->a, d->b, (uint16_t)(CHUNK_BODY + d->payload_bytes));

	c->tx.last_later = true;
	wire_chunk(head, pn, wire_get32(d->frame + DATA_AT_STREAM), d->b,
		   wire_crc_number(c->crc_tx, pn));
	return CHUNK_BODY;
}

/* Writes a head with a short ack, for which a chunk always has room, or that alone. [P2.7] */
static uint16_t transmit_head_ack(struct engine *e, struct conn *c, const struct draft *d,
				  uint8_t *head)
{
	uint16_t length = d->kind == SENT_CHUNK ? CHUNK_BODY + SHORT_BYTES : WIRE_ACK_BYTES;
	uint64_t pn = sent_record(e, c, d->kind, d->a, d->b, (uint16_t)(length + d->payload_bytes));
	uint32_t state = wire_crc_number(wire_crc_number(c->crc_tx, pn), c->rx.largest);
	uint8_t brief[SHORT_BYTES];

	ack_write_short(e, c, brief);
	if (d->kind != SENT_CHUNK) {
		wire_ack(head, pn, brief, state);
		return length;
	}
	c->tx.last_later = true;
	wire_chunk(head, pn, wire_get32(d->frame + DATA_AT_STREAM), d->b, state);
	head[WIRE_AT_FLAGS] = CHUNK_FLAG_ACK;
	memcpy(head + CHUNK_BODY, brief, SHORT_BYTES);
	return length;
}
_Static_assert(CHUNK_BODY + SHORT_BYTES == WIRE_BODY + DATA_BYTES, "what fits one fits the other");

/* Writes the head, as far as the payload; returns its length. */
static uint16_t transmit_head(struct engine *e, struct conn *c, const struct draft *d,
			      uint8_t *head, uint16_t room)
{
	bool brief = transmit_short(c, d);
	uint16_t acked = 0;

	if (c->rx.ack_pending > 0 && brief && ack_short(c))
		return transmit_head_ack(e, c, d, head);
	if (c->rx.ack_pending > 0)
		acked = ack_write(e, c, head + WIRE_BODY, room);
	if (brief && acked == 0 && d->kind == SENT_CHUNK)
		return transmit_head_chunk(e, c, d, head);
	uint16_t length = (uint16_t)(WIRE_BODY + acked);
	memcpy(head + length, d->frame, d->frame_bytes);
	length = (uint16_t)(length + d->frame_bytes);
	if (d->pad_to > length) {
		memset(head + length, 0, (size_t)(d->pad_to - length));
		length = d->pad_to;
	}
	c->tx.last_later &= d->kind == SENT_NOTHING;
	wire_header(head, WIRE_PAYLOAD, c->check_tx, c->remote,
		    sent_record(e, c, d->kind, d->a, d->b, (uint16_t)(length + d->payload_bytes)));
	return length;
}

static bool transmit_packet(struct engine *e, struct conn *c, struct packet_out *out)
{
	struct draft d;

	memset(&d, 0, offsetof(struct draft, frame) + sizeof(d.frame));
	bool due = ack_due(e, c);
	if (!transmit_choose(e, c, &d, due) && !due)
		return false;
	if (d.payload)
		transmit_ask(e, c, &d);
	uint16_t room = (uint16_t)(conn_room(c) - WIRE_BODY - d.frame_bytes - d.payload_bytes);
	if (d.kind == SENT_PROBE)
		room = (uint16_t)(d.pad_to - WIRE_BODY - d.frame_bytes);
	out->head_length = transmit_head(e, c, &d, out->head, room);
	assert(out->head_length <= out->head_room && (d.payload || d.payload_bytes == 0));
	out->payload = d.payload;
	out->payload_length = d.payload_bytes;
	out->ecn = d.kind != SENT_NOTHING ? ENGINE_ECN_ECT0 : ENGINE_ECN_NOT;
	out->resend = d.resend;
	if (d.kind == SENT_CHUNK)
		chunk_crc_leaves(e, d.buffer, d.b, d.payload_bytes, d.resend, &out->crc);
	out->to = c->addr;
	if (d.payload)
		congestion_sent(e, c, out->head_length + (uint32_t)d.payload_bytes);
	transmit_count(e, &d);
	return true;
}

static void transmit_close(struct engine *e, struct conn *c, struct packet_out *out)
{
	uint8_t *frame = out->head + WIRE_BODY;

	memset(frame, 0, CLOSE_BYTES);
	frame[0] = FRAME_CLOSE;
	wire_header(out->head, WIRE_PAYLOAD, c->check_tx, c->remote, c->tx.next_pn++);
	out->head_length = WIRE_BODY + CLOSE_BYTES;
	out->to = c->addr;
	conn_close(e, c, REASON_CLOSED);
}

static void transmit_clear(struct packet_out *out)
{
	out->head_length = out->payload_length = 0;
	out->payload = NULL;
	out->resend = false;
	out->crc.place = NULL;
	out->ecn = ENGINE_ECN_NOT;
}

unsigned transmit_conn(struct engine *e, struct conn *c, struct packet_out *out, unsigned count)
{
	unsigned n = 0;

	if (c->state == CONN_OPENING) {
		if (!c->hello.due)
			return 0;
		transmit_clear(&out[0]);
		handshake_write(e, c, &out[0]);
		out[0].to = c->addr;
		return 1;
	}
	for (; n < count; n++) {
		transmit_clear(&out[n]);
		if (c->close_due) {
			transmit_close(e, c, &out[n]);
			return n + 1;
		}
		if (!transmit_packet(e, c, &out[n]))
			break;
	}
	return n;
}
