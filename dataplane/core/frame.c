/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"
#include "ack.h"
#include "congestion.h"
#include "handshake.h"
#include "in_edge.h"
#include "loss.h"
#include "msg.h"
#include "out_edge.h"
#include "sent.h"

/*
 * The body of a PAYLOAD packet. One row per frame type: its least length, whether it asks for an
 * acknowledgement, and its handler. A handler gets a frame whose fixed part is there, and says how
 * long the whole frame is; FRAME_BAD ends the packet.
 */

enum { FRAME_BAD = 0 };

struct frame_walk {
	struct engine *e;
	struct conn *c;
	bool refused; /* a frame could not be taken now: the peer must send the packet again */
	bool closed;  /* the connection is gone */
};

typedef uint32_t frame_handler(struct frame_walk *w, const uint8_t *frame, uint32_t left);

static uint32_t frame_data(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	uint16_t length = wire_get16(frame + DATA_AT_LENGTH);

	if (length > left - DATA_BYTES)
		return FRAME_BAD;
	if (frame[FRAME_AT_FLAGS] & FRAME_FLAG_ASK)
		w->c->rx.ack_now = true;
	w->refused |= in_edge_take(w->e, w->c, frame, frame + DATA_BYTES, length) != VERDICT_TAKEN;
	return DATA_BYTES + (uint32_t)length;
}

static uint32_t frame_ack(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	uint32_t length = ACK_AT_BITMAP + 8u * frame[ACK_AT_WORDS];
	uint64_t before = w->e->config.cycles != NULL ? w->e->config.cycles() : 0;

	if (length > left)
		return FRAME_BAD;
	w->refused |= !sent_ack(w->e, w->c, frame);
	if (w->e->config.cycles != NULL)
		w->e->stages.ack += w->e->config.cycles() - before;
	return length;
}

static uint32_t frame_grant(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	(void)left;
	if (frame[GRANT_AT_SENDERS] != 0)
		w->c->cc.senders = frame[GRANT_AT_SENDERS];
	w->refused |= out_edge_granted(w->e, w->c, wire_get32(frame + GRANT_AT_STREAM),
				       wire_get32(frame + GRANT_AT_CHUNKS)) != VERDICT_TAKEN;
	return GRANT_BYTES;
}

static uint32_t frame_msg(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	uint16_t length = wire_get16(frame + MSG_AT_LENGTH);

	if (length > left - MSG_FRAME_BYTES)
		return FRAME_BAD;
	if (frame[FRAME_AT_FLAGS] & FRAME_FLAG_ASK)
		w->c->rx.ack_now = true;
	w->refused |= msg_take(w->e, w->c, frame, length) != VERDICT_TAKEN;
	return MSG_FRAME_BYTES + (uint32_t)length;
}

static uint32_t frame_ping(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	(void)frame;
	(void)left;
	w->c->rx.ack_now = true; /* its sender waits for nothing else */
	return PING_BYTES;
}

static uint32_t frame_reset_stream(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	(void)left;
	out_edge_reset(w->e, w->c, wire_get32(frame + RESET_STREAM_AT_STREAM));
	return RESET_STREAM_BYTES;
}

static uint32_t frame_close(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	(void)frame;
	(void)left;
	conn_close(w->e, w->c, REASON_PEER_CLOSED);
	w->closed = true;
	return CLOSE_BYTES;
}

static uint32_t frame_ecn(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	uint32_t marks = wire_get32(frame + ECN_AT_COUNT) - w->c->tx.ce_seen;

	(void)left;
	if (marks < UINT32_MAX / 2) { /* else an older count, arriving late */
		w->c->tx.ce_seen += marks;
		congestion_marked(w->c, marks);
	}
	return ECN_BYTES;
}

static const struct {
	uint8_t least_bytes;
	bool eliciting;
	frame_handler *handle;
} frame_table[] = {
	[FRAME_DATA] = {DATA_BYTES, true, frame_data},
	[FRAME_ACK] = {ACK_AT_BITMAP, false, frame_ack},
	[FRAME_GRANT] = {GRANT_BYTES, true, frame_grant},
	[FRAME_MSG] = {MSG_FRAME_BYTES, true, frame_msg},
	[FRAME_PING] = {PING_BYTES, true, frame_ping},
	[FRAME_RESET_STREAM] = {RESET_STREAM_BYTES, true, frame_reset_stream},
	[FRAME_CLOSE] = {CLOSE_BYTES, false, frame_close},
	[FRAME_ECN] = {ECN_BYTES, false, frame_ecn},
};

/* Walks the frames. Returns whether the packet may be acknowledged. */
static bool frame_walk(struct frame_walk *w, const uint8_t *p, uint32_t left, bool *eliciting)
{
	for (uint32_t count = 1; left > 0 && p[0] != FRAME_PADDING; count++) {
		uint8_t type = p[0];
		uint32_t length = FRAME_BAD;

		if (count <= FRAMES_MAX && type < sizeof(frame_table) / sizeof(frame_table[0]) &&
		    left >= frame_table[type].least_bytes) {
			*eliciting |= frame_table[type].eliciting;
			length = frame_table[type].handle(w, p, left);
		}
		if (w->closed)
			return false;
		if (length == FRAME_BAD) {
			w->e->count->drop_frame++;
			return false;
		}
		p += length;
		left -= length;
	}
	return !w->refused;
}

/* Whose packet is it? NULL: nobody's, counted. */
static struct conn *frame_conn(struct engine *e, const struct packet_in *p)
{
	struct conn *c = conn_find(e, wire_get32(p->data + WIRE_AT_CONN));

	if (c == NULL) {
		handshake_unknown(e, p);
		return NULL;
	}
	if (!net_addr_equal(&c->addr, &p->from)) {
		e->count->drop_address++;
		return NULL;
	}
	if (c->state != CONN_UP) {
		e->count->drop_state++;
		return NULL;
	}
	if (wire_get16(p->data + WIRE_AT_CHECK) != c->check_rx) {
		e->count->drop_incarnation++;
		return NULL;
	}
	return c;
}

/* What is not fresh is not acknowledged again: a number is never sent twice, so it is a copy that
 * the path made, and two ends that answered copies of answers would never fall silent. */
static bool frame_fresh(struct engine *e, const struct conn *c, uint64_t pn)
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

static enum loss_silence frame_heard(struct engine *e, struct conn *c, const struct packet_in *p)
{
	enum loss_silence ended = loss_heard(e, c);

	c->silent = false;
	c->tally.rx_pkts++;
	c->tally.rx_bytes += p->length;
	if (p->ecn == ENGINE_ECN_CE) {
		e->count->rx_ecn_ce++;
		c->rx.ce++;
		c->rx.ecn_changed = true;
	}
	return ended;
}

void frame_packet(struct engine *e, const struct packet_in *p)
{
	struct conn *c = frame_conn(e, p);
	uint64_t pn = wire_get64(p->data + WIRE_AT_PN);
	bool eliciting = false;

	if (c == NULL || !frame_fresh(e, c, pn))
		return;
	enum loss_silence ended = frame_heard(e, c, p);
	struct frame_walk w = {.e = e, .c = c};
	bool take = frame_walk(&w, p->data + WIRE_BODY, p->length - WIRE_BODY, &eliciting);
	if (w.closed)
		return;
	if (take)
		ack_mark(e, c, pn, eliciting ? ACK_SOON : ACK_NOT);
	if (ended != SILENCE_OF_NOBODY)
		loss_silence_ended(e, c, ended);
	conn_wake(e, c);
}

struct conn *frame_addr_conn(struct engine *e, const struct packet_in *p)
{
	struct conn *c = conn_by_addr(e, &p->from);

	if (c == NULL) {
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
 * connection with the sender may still hear of; without one nobody can check the packet. */
struct conn *frame_chunk_conn(struct engine *e, const struct packet_in *p)
{
	const struct in_edge *i = in_edge_find(e, wire_get32(p->data + CHUNK_AT_STREAM));
	struct conn *c = i != NULL ? i->conn : NULL;

	if (c != NULL && net_addr_equal(&c->addr, &p->from))
		return c;
	if (c != NULL && conn_by_addr(e, &p->from) == NULL) {
		e->count->drop_address++;
		return NULL;
	}
	return frame_addr_conn(e, p);
}

void frame_chunk(struct engine *e, struct conn *c, const struct packet_in *p, uint64_t pn)
{
	uint16_t length = (uint16_t)(p->length - CHUNK_BODY);

	if (!frame_fresh(e, c, pn))
		return;
	enum loss_silence ended = frame_heard(e, c, p);
	if (in_edge_take(e, c, p->data, p->data + CHUNK_BODY, length) == VERDICT_TAKEN)
		ack_mark(e, c, pn, ACK_LATER);
	if (ended != SILENCE_OF_NOBODY)
		loss_silence_ended(e, c, ended);
	conn_wake(e, c);
}

static bool frame_ack_short(struct engine *e, struct conn *c, uint64_t largest,
			    const uint8_t *brief, const uint8_t *bitmap)
{
	uint64_t before = e->config.cycles != NULL ? e->config.cycles() : 0;
	bool taken = sent_ack_short(e, c, largest, brief, bitmap);

	if (e->config.cycles != NULL)
		e->stages.ack += e->config.cycles() - before;
	return taken;
}

void frame_short(struct engine *e, struct conn *c, const struct packet_in *p, uint64_t pn,
		 uint64_t largest)
{
	bool chunk = wire_is_chunk(p->data), take;

	if (!frame_fresh(e, c, pn))
		return;
	enum loss_silence ended = frame_heard(e, c, p);
	if (chunk) {
		const uint8_t *brief = p->data + CHUNK_BODY, *payload = brief + SHORT_BYTES;
		uint16_t length = (uint16_t)(p->length - CHUNK_BODY - SHORT_BYTES);

		take = frame_ack_short(e, c, largest, brief, brief + SHORT_AT_BITMAP);
		take &= in_edge_take(e, c, p->data, payload, length) == VERDICT_TAKEN;
	} else {
		take = frame_ack_short(e, c, largest, p->data + WIRE_ACK_AT_SHORT,
				       p->data + WIRE_ACK_AT_BITMAP);
	}
	if (take)
		ack_mark(e, c, pn, chunk ? ACK_LATER : ACK_NOT);
	if (ended != SILENCE_OF_NOBODY)
		loss_silence_ended(e, c, ended);
	conn_wake(e, c);
}
