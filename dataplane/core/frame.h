/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What arrives: whose packet it is, whether it is fresh, and each of its frames to whom it
 * concerns. A CHUNK or ACK packet needs its connection before its CRC can be looked at, so that
 * engine.c asks for that first.
 */
#ifndef SARISSA_DATAPLANE_CORE_FRAME_H
#define SARISSA_DATAPLANE_CORE_FRAME_H

#include "engine.h"

struct conn;
struct engine;

/* What became of a frame. Only VERDICT_TAKEN lets the packet be acknowledged. */
enum verdict {
	VERDICT_TAKEN,
	VERDICT_REFUSED, /* counted by whoever refused; the packet stays unacknowledged */
};

/* The body of a PAYLOAD packet. */
void frame_packet(struct engine *e, const struct packet_in *p);
/* Whose CHUNK or ACK packet it is; NULL: nobody's, counted. */
struct conn *frame_chunk_conn(struct engine *e, const struct packet_in *p);
void frame_chunk(struct engine *e, struct conn *c, const struct packet_in *p, uint64_t pn);
struct conn *frame_addr_conn(struct engine *e, const struct packet_in *p);
void frame_short(struct engine *e, struct conn *c, const struct packet_in *p, uint64_t pn,
		 uint64_t largest);

#endif
