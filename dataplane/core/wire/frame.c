/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame.h"
#include "core/conn/congestion.h"
#include "core/plan/in_edge.h"
#include "core/plan/msg.h"
#include "core/plan/out_edge.h"
#include "core/plan/part.h"
#include "core/conn/path.h"
#include "core/conn/sent.h"

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
	w->refused |=
		in_edge_take(w->e, w->c, frame, frame + DATA_BYTES, length, NULL) != VERDICT_TAKEN;
	return DATA_BYTES + (uint32_t)length;
}

static uint32_t frame_part(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	uint16_t length = wire_get16(frame + DATA_AT_LENGTH);

	if (length > left - PART_FRAME_BYTES)
		return FRAME_BAD;
	if (frame[FRAME_AT_FLAGS] & FRAME_FLAG_ASK)
		w->c->rx.ack_now = true;
	w->refused |= part_take(w->e, w->c, frame, length) != VERDICT_TAKEN;
	return PART_FRAME_BYTES + (uint32_t)length;
}

static uint32_t frame_ack(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	uint32_t length = ACK_AT_BITMAP + 8u * frame[ACK_AT_WORDS];
	uint64_t before = w->e->config.cycles ? w->e->config.cycles() : 0;

	if (length > left)
		return FRAME_BAD;
	w->refused |= !sent_ack(w->e, w->c, frame);
	if (w->e->config.cycles)
		w->e->stages.ack += w->e->config.cycles() - before;
	return length;
}

static uint32_t frame_grant(struct frame_walk *w, const uint8_t *frame, uint32_t left)
{
	(void)left;
	if (frame[GRANT_AT_SENDERS] != 0)
		path_each(p, w->c) congestion_shared(w->e, p, frame[GRANT_AT_SENDERS]);
	w->refused |= out_edge_granted(w->e, w->c->main, wire_get32(frame + GRANT_AT_STREAM),
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
	w->refused |= msg_take(w->e, w->c->main, frame, length) != VERDICT_TAKEN;
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
	out_edge_reset(w->e, w->c->main, wire_get32(frame + RESET_STREAM_AT_STREAM));
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
	[FRAME_PART] = {PART_FRAME_BYTES, true, frame_part},
};

/* The next frame: its length, or FRAME_BAD. */
static uint32_t frame_next(struct frame_walk *w, const uint8_t *frame, uint32_t left,
			   bool *eliciting)
{
	uint8_t type = frame[0];

	if (type >= sizeof(frame_table) / sizeof(frame_table[0]) ||
	    left < frame_table[type].least_bytes)
		return FRAME_BAD;
	*eliciting |= frame_table[type].eliciting;
	return frame_table[type].handle(w, frame, left);
}

enum frames frame_walk(struct engine *e, struct conn *c, const uint8_t *body, uint32_t left,
		       bool *eliciting)
{
	struct frame_walk w = {.e = e, .c = c};

	for (uint32_t count = 1; left > 0 && body[0] != FRAME_PADDING; count++) {
		uint32_t length =
			count <= FRAMES_MAX ? frame_next(&w, body, left, eliciting) : FRAME_BAD;

		if (w.closed)
			return FRAMES_CLOSED;
		if (length == FRAME_BAD) {
			e->count->drop_frame++;
			return FRAMES_REFUSED;
		}
		body += length;
		left -= length;
	}
	return w.refused ? FRAMES_REFUSED : FRAMES_TAKEN;
}
