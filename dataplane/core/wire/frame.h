/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frames in the body of a PAYLOAD packet, each given to whom it concerns. Called by receive.c,
 * which knows whose packet it is and that it is whole and fresh.
 */
#ifndef SARISSA_DATAPLANE_CORE_WIRE_FRAME_H
#define SARISSA_DATAPLANE_CORE_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct engine;

/* The verdict on a frame, or on a chunk. Only VERDICT_TAKEN lets the packet be acknowledged. */
enum verdict {
	VERDICT_TAKEN,
	VERDICT_REFUSED, /* counted where it was refused; the packet stays unacknowledged */
};

/* The verdict on all frames of a packet. */
enum frames {
	FRAMES_TAKEN,
	FRAMES_REFUSED, /* one of them at least: the peer must send the packet again */
	FRAMES_CLOSED,	/* the connection is gone */
};

/* The bytes of the frame that begins here, all of which are among those that are left; 0: there is
 * no valid one, since the type is unknown, or PADDING, or a part of the frame is missing. */
uint32_t frame_valid(const uint8_t *frame, uint32_t left);

/* Adds to eliciting whether a frame asks for an acknowledgement. */
enum frames frame_walk(struct engine *e, struct conn *c, const uint8_t *body, uint32_t left,
		       bool *eliciting);

#endif
