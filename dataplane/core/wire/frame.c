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
 * The body of a PAYLOAD packet. One row per frame type: what of it is always there, what may
 * follow, whether it asks for an acknowledgement, and its handler, which gets a whole frame.
 */

struct frame_walk {
	struct engine *e;
	struct conn *c;
	bool refused; /* a frame could not be taken now: the peer must send the packet again */
	bool closed;  /* the connection is gone */
};

typedef void frame_handler(struct frame_walk *w, const uint8_t *frame, uint32_t bytes);

static void frame_data(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	w->refused |= in_edge_take(w->e, w->c, frame, frame + DATA_BYTES,
				   (uint16_t)(bytes - DATA_BYTES), NULL) != VERDICT_TAKEN;
}

static void frame_part(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	w->refused |=
		part_take(w->e, w->c, frame, (uint16_t)(bytes - PART_FRAME_BYTES)) != VERDICT_TAKEN;
}

static void frame_ack(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	uint64_t before = w->e->config.cycles ? w->e->config.cycles() : 0;

	(void)bytes;
	w->refused |= !sent_ack(w->e, w->c, frame);
	if (w->e->config.cycles)
		w->e->stages.ack += w->e->config.cycles() - before;
}

static void frame_grant(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	(void)bytes;
	if (frame[GRANT_AT_SENDERS] != 0)
		path_each(p, w->c) congestion_shared(w->e, p, frame[GRANT_AT_SENDERS]);
	w->refused |= out_edge_granted(w->e, w->c->main, wire_get32(frame + GRANT_AT_STREAM),
				       wire_get32(frame + GRANT_AT_CHUNKS)) != VERDICT_TAKEN;
}

static void frame_msg(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	w->refused |= msg_take(w->e, w->c->main, frame, (uint16_t)(bytes - MSG_FRAME_BYTES)) !=
		      VERDICT_TAKEN;
}

static void frame_ping(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	(void)frame;
	(void)bytes;
	w->c->rx.ack_now = true; /* its sender waits for nothing else */
}

static void frame_reset_stream(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	(void)bytes;
	out_edge_reset(w->e, w->c->main, wire_get32(frame + RESET_STREAM_AT_STREAM));
}

static void frame_close(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	(void)frame;
	(void)bytes;
	conn_close(w->e, w->c, REASON_PEER_CLOSED);
	w->closed = true;
}

static void frame_ecn(struct frame_walk *w, const uint8_t *frame, uint32_t bytes)
{
	uint32_t marks = wire_get32(frame + ECN_AT_COUNT) - w->c->tx.ce_seen;

	(void)bytes;
	if (marks < UINT32_MAX / 2) { /* else an older count, arriving late */
		w->c->tx.ce_seen += marks;
		congestion_marked(w->c, marks);
	}
}

enum frame_tail {
	FRAME_WHOLE,
	FRAME_WORDS,   /* as many as byte ACK_AT_WORDS says */
	FRAME_PAYLOAD, /* as many bytes as at DATA_AT_LENGTH; flags may ask for an acknowledgement
			*/
};
_Static_assert((int)MSG_AT_LENGTH == (int)DATA_AT_LENGTH, "of all frames with a payload");

static const struct {
	uint8_t least_bytes; /* 0: no such frame */
	bool eliciting;
	uint8_t tail;
	frame_handler *handle;
} frame_table[] = {
	[FRAME_DATA] = {DATA_BYTES, true, FRAME_PAYLOAD, frame_data},
	[FRAME_ACK] = {ACK_AT_BITMAP, false, FRAME_WORDS, frame_ack},
	[FRAME_GRANT] = {GRANT_BYTES, true, FRAME_WHOLE, frame_grant},
	[FRAME_MSG] = {MSG_FRAME_BYTES, true, FRAME_PAYLOAD, frame_msg},
	[FRAME_PING] = {PING_BYTES, true, FRAME_WHOLE, frame_ping},
	[FRAME_RESET_STREAM] = {RESET_STREAM_BYTES, true, FRAME_WHOLE, frame_reset_stream},
	[FRAME_CLOSE] = {CLOSE_BYTES, false, FRAME_WHOLE, frame_close},
	[FRAME_ECN] = {ECN_BYTES, false, FRAME_WHOLE, frame_ecn},
	[FRAME_PART] = {PART_FRAME_BYTES, true, FRAME_PAYLOAD, frame_part},
};

/* [P3] */
uint32_t frame_valid(const uint8_t *frame, uint32_t left)
{
	uint8_t type = left > 0 ? frame[0] : FRAME_PADDING;

	if (type == FRAME_PADDING || type >= sizeof(frame_table) / sizeof(frame_table[0]) ||
	    left < frame_table[type].least_bytes)
		return 0;
	uint32_t bytes = frame_table[type].least_bytes;
	if (frame_table[type].tail == FRAME_PAYLOAD)
		bytes += wire_get16(frame + DATA_AT_LENGTH);
	else if (frame_table[type].tail == FRAME_WORDS)
		bytes += 8u * frame[ACK_AT_WORDS];
	return bytes <= left ? bytes : 0;
}

static void frame_take(struct frame_walk *w, const uint8_t *frame, uint32_t bytes, bool *eliciting)
{
	uint8_t type = frame[0];

	*eliciting |= frame_table[type].eliciting;
	if (frame_table[type].tail == FRAME_PAYLOAD && frame[FRAME_AT_FLAGS] & FRAME_FLAG_ASK)
		w->c->rx.ack_now = true;
	frame_table[type].handle(w, frame, bytes);
}

/* [P3] */
enum frames frame_walk(struct engine *e, struct conn *c, const uint8_t *body, uint32_t left,
		       bool *eliciting)
{
	struct frame_walk w = {.e = e, .c = c};

	for (uint32_t count = 1; left > 0 && body[0] != FRAME_PADDING; count++) {
		uint32_t bytes = count <= FRAMES_MAX ? frame_valid(body, left) : 0;

		if (bytes == 0) {
			e->count->drop_frame++;
			return FRAMES_REFUSED;
		}
		frame_take(&w, body, bytes, eliciting);
		if (w.closed)
			return FRAMES_CLOSED;
		body += bytes;
		left -= bytes;
	}
	return w.refused ? FRAMES_REFUSED : FRAMES_TAKEN;
}
