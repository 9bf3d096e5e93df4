/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving side of packet numbers: which packets have arrived, when that is acknowledged, and
 * the frames that do it. frame.c marks what has arrived, transmit.c writes what is due.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_ACK_H
#define SARISSA_DATAPLANE_CORE_CONN_ACK_H

#include "conn.h"
#include "core/wire/wire_field.h"

enum {
	/* Packets: few enough for a sender with a window of 64 to go on, while one more is on its
	   way. */
	ACK_EVERY = 24,
	/* Times ack_delay_ns that a chunk waits: a sender of chunk after chunk asks when it waits.
	 */
	ACK_CHUNK_DELAYS = 2,
	/* Connections that send here; above that a chunk waits one ack_delay_ns as all else:
	 * windows of two packets would run into their probes (34 % sent again with 100 senders,
	 * instead of 13). */
	ACK_LATER_SENDERS = 8,
	/* Connections that send here; up to that windows are long, and a chunk waits this many
	 * times ack_delay_ns. */
	ACK_FEW_SENDERS = 4,
	ACK_FEW_DELAYS = 4,
};

enum ack_verdict { ACK_NEW, ACK_DUPLICATE, ACK_OLD, ACK_FUTURE };
/* The number nearest to the largest one seen that ends in these bits. */
static inline uint64_t ack_number(const struct conn *c, uint16_t low)
{
	return c->rx.largest + (uint64_t)(int16_t)(low - (uint16_t)c->rx.largest);
}
enum ack_verdict ack_look(const struct engine *e, const struct conn *c, uint64_t pn);
/* The acknowledgement that a packet asks for: none, soon, or later, together with those of more
 * chunks. A sender of many chunks asks for one when it waits for it. */
enum ack_wish { ACK_NOT, ACK_SOON, ACK_LATER };
void ack_mark(struct engine *e, struct conn *c, uint64_t pn, enum ack_wish wish);
/* How long a chunk's waits at a node to which so many send, and whose sender was told so or not. */
uint64_t ack_chunk_wait_ns(const struct engine *e, uint32_t senders, bool shared);
bool ack_due(const struct engine *e, const struct conn *c);
/* The length of the ACK frame that is next. */
uint16_t ack_bytes(const struct engine *e, const struct conn *c);
/* Writes an ACK frame (and an ECN frame) of at most room bytes; returns its length or 0. */
uint16_t ack_write(struct engine *e, struct conn *c, uint8_t *to, uint16_t room);

/* Does the short form say all that is to be said now? False also when that is nothing. */
bool ack_short(const struct conn *c);
/* Writes it then: SHORT_BYTES. */
void ack_write_short(struct engine *e, struct conn *c, uint8_t *to);

#endif
