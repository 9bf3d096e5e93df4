/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that arrive, one function per packet type. Each finds the connection, has the packet
 * checked, takes what it carries and marks its number. Types CHUNK and ACK have the connection
 * first, as their CRC covers what only both ends know of it. The frames of a PAYLOAD packet are
 * frame.c's, packets outside of connections handshake.c's. docs/developer/architecture.md, 3, has
 * the path of a chunk.
 */
#include "core/conn/ack.h"
#include "core/wire/frame.h"
#include "core/conn/handshake.h"
#include "core/plan/in_edge.h"
#include "core/conn/loss.h"
#include "core/conn/path.h"
#include "core/conn/sent.h"

static uint64_t receive_cycles(const struct engine *e)
{
	return e->config.cycles ? e->config.cycles() : 0;
}

/* Of a packet's cycles those that have a stage of their own. */
static uint64_t receive_inner(const struct engine *e)
{
	return e->stages.check + e->stages.copy + e->stages.ack;
}

/* Is it what was sent? before: when the check began. */
static bool receive_intact(struct engine *e, uint32_t crc, const uint8_t *field, uint64_t before)
{
	if (e->config.cycles)
		e->stages.check += e->config.cycles() - before;
	if (crc == wire_get32(field))
		return true;
	e->count->drop_checksum++;
	return false;
}

/* A packet that is not fresh is not acknowledged again: a number is never sent twice, so it is a
 * copy that the path made, and two ends that answered copies of answers would never fall silent.
 * [P13] */
static bool receive_fresh(struct engine *e, const struct conn *c, uint64_t pn)
{
	switch (ack_look(e, c, pn)) {
	case ACK_NEW:
		return true;
	case ACK_DUPLICATE:
		e->count->drop_duplicate++;
		return false;
	case ACK_OLD:
		e->count->drop_old++;
		return false;
	case ACK_FUTURE:
		e->count->drop_future++;
		return false;
	}
	return false;
}

static enum loss_silence receive_heard(struct engine *e, struct conn *c, const struct packet_in *p)
{
	enum loss_silence ended = loss_heard(e, c);

	c->main->silent = false;
	c->tally.rx_pkts++;
	c->tally.rx_bytes += p->length;
	if (p->ecn == ENGINE_ECN_CE) {
		e->count->rx_ecn_ce++;
		c->rx.ce++;
		c->rx.ecn_changed = true;
	}
	if (c->main->paths > 0 && e->unanswered > 0)
		path_heard(e, c);
	return ended;
}

/* All that is in the packet has been looked at. */
static void receive_end(struct engine *e, struct conn *c, enum loss_silence ended)
{
	if (ended != SILENCE_OF_NOBODY)
		loss_silence_ended(e, c, ended);
	conn_wake(e, c);
}

/* Of a packet whose header names no connection: the sender's. NULL: there is none, counted. */
static struct conn *receive_sender(struct engine *e, const struct packet_in *p)
{
	struct conn *c = conn_by_addr(e, &p->from);

	if (!c) {
		e->count->drop_unknown_conn++;
		return NULL;
	}
	if (c->state != CONN_UP) {
		e->count->drop_state++;
		return NULL;
	}
	return c;
}

/* The stream tells the connection. One that has ended here, or is another peer's, is what a
 * connection with the sender may still hear of; without one nobody can check the packet. [P2.6] */
static struct conn *receive_stream_conn(struct engine *e, const struct packet_in *p)
{
	const struct in_edge *i = in_edge_find(e, wire_get32(p->data + CHUNK_AT_STREAM));
	struct conn *c = i ? i->conn : NULL, *path;

	if (c && net_addr_equal(&c->addr, &p->from))
		return c;
	path = c && c->paths > 0 ? path_to(c, &p->from) : NULL;
	if (path && path->state == CONN_UP)
		return path;
	if (c && !conn_by_addr(e, &p->from)) {
		e->count->drop_address++;
		return NULL;
	}
	return receive_sender(e, p);
}

/* Type CHUNK without a short ack. */
static void receive_chunk(struct engine *e, const struct packet_in *p)
{
	struct conn *c = receive_stream_conn(e, p);

	if (!c)
		return;
	uint64_t pn = ack_number(c, wire_get16(p->data + CHUNK_AT_PN));
	uint64_t before = receive_cycles(e);
	struct crc_span span =
		wire_crc_span(wire_crc_number(c->crc_rx, pn), p->data, CHUNK_BODY, p->length);
	if (!receive_intact(e, ~span.behind, p->data + CHUNK_AT_CRC, before))
		return;
	if (p->data[WIRE_AT_FLAGS] != 0) {
		e->count->drop_flags++;
		return;
	}
	if (!receive_fresh(e, c, pn))
		return;
	enum loss_silence ended = receive_heard(e, c, p);
	uint16_t length = (uint16_t)(p->length - CHUNK_BODY);
	if (in_edge_take(e, c, p->data, p->data + CHUNK_BODY, length, &span) == VERDICT_TAKEN)
		ack_mark(e, c, pn, ACK_LATER);
	receive_end(e, c, ended);
}

/* Checks a packet with a short ack at brief; gives its number and the largest that it names. */
static bool receive_short(struct engine *e, struct conn *c, const struct packet_in *p,
			  const uint8_t *brief, uint64_t *pn, uint64_t *largest,
			  struct crc_span *span)
{
	*pn = ack_number(c, wire_get16(p->data + CHUNK_AT_PN));
	*largest = sent_number(c, wire_get16(brief + SHORT_AT_LARGEST));
	uint64_t before = receive_cycles(e);
	uint32_t state = wire_crc_number(wire_crc_number(c->crc_rx, *pn), *largest);
	uint16_t head_length = wire_is_chunk(p->data) ? CHUNK_BODY + SHORT_BYTES : WIRE_ACK_BYTES;

	*span = wire_crc_span(state, p->data, head_length, p->length);
	return receive_intact(e, ~span->behind, p->data + CHUNK_AT_CRC, before);
}

static bool receive_acked(struct engine *e, struct conn *c, uint64_t largest, const uint8_t *brief,
			  const uint8_t *bitmap)
{
	uint64_t before = receive_cycles(e);
	bool taken = sent_ack_short(e, c, largest, brief, bitmap);

	if (e->config.cycles)
		e->stages.ack += e->config.cycles() - before;
	return taken;
}

/* Type CHUNK with a short ack. */
static void receive_chunk_acked(struct engine *e, const struct packet_in *p)
{
	const uint8_t *brief = p->data + CHUNK_BODY, *payload = brief + SHORT_BYTES;
	struct conn *c;
	struct crc_span span;
	uint64_t pn, largest;

	if (p->length < CHUNK_BODY + SHORT_BYTES) {
		e->count->drop_truncated++;
		return;
	}
	c = receive_stream_conn(e, p);
	if (!c || !receive_short(e, c, p, brief, &pn, &largest, &span))
		return;
	if (p->data[WIRE_AT_FLAGS] != CHUNK_FLAG_ACK) {
		e->count->drop_flags++;
		return;
	}
	if (!receive_fresh(e, c, pn))
		return;
	enum loss_silence ended = receive_heard(e, c, p);
	uint16_t length = (uint16_t)(p->length - CHUNK_BODY - SHORT_BYTES);
	bool take = receive_acked(e, c, largest, brief, brief + SHORT_AT_BITMAP);
	take &= in_edge_take(e, c, p->data, payload, length, &span) == VERDICT_TAKEN;
	if (take)
		ack_mark(e, c, pn, ACK_LATER);
	receive_end(e, c, ended);
}

/* Type ACK. */
static void receive_ack(struct engine *e, const struct packet_in *p)
{
	const uint8_t *brief = p->data + WIRE_ACK_AT_SHORT;
	struct conn *c;
	struct crc_span span;
	uint64_t pn, largest;

	if (p->length < WIRE_ACK_BYTES) {
		e->count->drop_truncated++;
		return;
	}
	c = receive_sender(e, p);
	if (!c || !receive_short(e, c, p, brief, &pn, &largest, &span))
		return;
	if (p->data[WIRE_AT_FLAGS] != 0) {
		e->count->drop_flags++;
		return;
	}
	if (p->length != WIRE_ACK_BYTES) {
		e->count->drop_frame++;
		return;
	}
	if (!receive_fresh(e, c, pn))
		return;
	enum loss_silence ended = receive_heard(e, c, p);
	if (receive_acked(e, c, largest, brief, p->data + WIRE_ACK_AT_BITMAP))
		ack_mark(e, c, pn, ACK_NOT);
	receive_end(e, c, ended);
}

/* Whose PAYLOAD packet is it? NULL: nobody's, counted. */
static struct conn *receive_conn(struct engine *e, const struct packet_in *p)
{
	struct conn *c = conn_find(e, wire_get32(p->data + WIRE_AT_CONN));

	if (!c) {
		e->count->drop_unknown_conn++;
	} else if (!net_addr_equal(&c->addr, &p->from)) {
		e->count->drop_address++;
	} else if (c->state != CONN_UP) {
		e->count->drop_state++; /* our ACCEPT is late: no answer, the peer is right */
		return NULL;
	} else if (wire_get16(p->data + WIRE_AT_CHECK) != c->check_rx) {
		e->count->drop_incarnation++;
	} else {
		return c;
	}
	handshake_send_reset(e, p);
	return NULL;
}

/* Type PAYLOAD, which has been checked already. */
static void receive_payload(struct engine *e, const struct packet_in *p)
{
	struct conn *c = receive_conn(e, p);
	uint64_t pn = wire_get64(p->data + WIRE_AT_PN);
	bool eliciting = false;

	if (!c || !receive_fresh(e, c, pn))
		return;
	enum loss_silence ended = receive_heard(e, c, p);
	enum frames frames =
		frame_walk(e, c, p->data + WIRE_BODY, p->length - WIRE_BODY, &eliciting);
	if (frames == FRAMES_CLOSED)
		return;
	if (frames == FRAMES_TAKEN)
		ack_mark(e, c, pn, eliciting ? ACK_SOON : ACK_NOT);
	receive_end(e, c, ended);
}

/* All types with the full header. Their CRC and version are checked before anything is looked at.
 */
static void receive_long(struct engine *e, const struct packet_in *p)
{
	uint64_t before = receive_cycles(e);

	if (!receive_intact(e, wire_crc(p->data, p->length, NULL, 0), p->data + WIRE_AT_CRC,
			    before))
		return;
	if (p->data[WIRE_AT_VERSION_TYPE] >> 4 != WIRE_VERSION) {
		handshake_version(e, p);
		return;
	}
	if (p->data[WIRE_AT_FLAGS] != 0) {
		e->count->drop_flags++;
		return;
	}
	switch (p->data[WIRE_AT_VERSION_TYPE] & 15) {
	case WIRE_PAYLOAD:
		receive_payload(e, p);
		break;
	case WIRE_HELLO:
		handshake_hello(e, p);
		break;
	case WIRE_COOKIE:
		handshake_cookie(e, p);
		break;
	case WIRE_ACCEPT:
		handshake_accept(e, p);
		break;
	case WIRE_RESET:
		handshake_reset(e, p);
		break;
	default:
		e->count->drop_type++;
	}
}

/* Adds what this packet took to the stages, less what the stages within it have counted. */
static void receive_account(struct engine *e, uint64_t before, uint64_t inner)
{
	if (!e->config.cycles)
		return;
	uint64_t took = e->config.cycles() - before;

	inner = receive_inner(e) - inner;
	e->stages.receive += took > inner ? took - inner : 0;
	e->stages.packets_in++;
}

/* [P2] [P2.2] */
void engine_receive(struct engine *e, const struct packet_in *p, uint64_t now_ns)
{
	uint64_t inner = receive_inner(e), before = receive_cycles(e);

	e->now_ns = now_ns;
	e->count->rx_pkts++;
	e->count->rx_bytes += p->length;
	if (p->length >= CHUNK_BODY && wire_is_short(p->data)) {
		if (!wire_is_chunk(p->data))
			receive_ack(e, p);
		else if ((p->data[WIRE_AT_FLAGS] & CHUNK_FLAG_ACK) != 0)
			receive_chunk_acked(e, p);
		else
			receive_chunk(e, p);
	} else if (p->length >= WIRE_BODY) {
		receive_long(e, p);
	} else {
		e->count->drop_truncated++;
	}
	receive_account(e, before, inner);
}
