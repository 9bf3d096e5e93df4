/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of packet numbers: what left, and what became of it. transmit.c records each
 * packet, frame.c brings acknowledgements, loss.c declares losses; what is lost waits here to leave
 * again.
 */
#ifndef SARISSA_DATAPLANE_CORE_CONN_SENT_H
#define SARISSA_DATAPLANE_CORE_CONN_SENT_H

#include "conn.h"
#include "core/engine_state.h"

enum sent_kind {
	SENT_NOTHING, /* not ack-eliciting */
	SENT_CHUNK,   /* a: OUT edge handle, b: chunk */
	SENT_MSG,     /* a: message id, b: fragment */
	SENT_GRANT,   /* a: IN edge handle */
	SENT_RESET,   /* a: stream */
	SENT_PING,
	SENT_PROBE,	/* path MTU probe or witness; a: trial, b: IP bytes */
	SENT_PART = 64, /* and sent_part(): some parts of a chunk, else as SENT_CHUNK */
};

/* Which parts of its chunk a packet carries: so many, from the first on. */
struct sent_parts {
	uint8_t first, count;
};
static inline uint8_t sent_part(struct sent_parts p)
{
	return (uint8_t)(SENT_PART | p.first << 3 | (p.count - 1));
}
static inline bool sent_is_part(uint32_t kind)
{
	return kind >= SENT_PART;
}
static inline struct sent_parts sent_parts(uint32_t kind)
{
	return (struct sent_parts){kind >> 3 & 7, (uint8_t)((kind & 7) + 1)};
}
_Static_assert(PARTS_MAX <= 8, "three bits each");

enum sent_state {
	SENT_FREE,
	SENT_OUTSTANDING,
	SENT_LOST,   /* its item waits in the lost queue */
	SENT_RESENT, /* its item has left again in another packet, or is no longer wanted */
	SENT_ACKED,
};

struct sent {
	union {
		uint64_t time_ns;
		uint32_t lost_at; /* state SENT_LOST: where in the lost queue */
	};
	uint32_t a, b;
	uint32_t pn_low;
	uint16_t bytes; /* UDP payload */
	uint8_t kind;
	uint8_t state;
};
_Static_assert(sizeof(struct sent) == 24, "the sent ring is the largest part of a connection");

struct lost_item {
	uint32_t a, b;
	uint32_t pn_low;
	uint32_t kind; /* SENT_NOTHING: no longer wanted */
};

/* May another ack-eliciting packet leave, as far as packet numbers go? */
bool sent_room(const struct engine *e, const struct conn *c);
/* And one with a new item? One that leaves again has its place in the window already. */
bool sent_window(const struct engine *e, const struct conn *c);
uint64_t sent_record(struct engine *e, struct conn *c, uint8_t kind, uint32_t a, uint32_t b,
		     uint16_t bytes);
/* Takes an ACK frame; false (and counted) when it lies. */
bool sent_ack(struct engine *e, struct conn *c, const uint8_t *frame);
/* Takes a short ack, given in its two parts, of which the whole largest number is known. */
bool sent_ack_short(struct engine *e, struct conn *c, uint64_t largest, const uint8_t *brief,
		    const uint8_t *bitmap);
/* The last number sent that ends in these bits. */
static inline uint64_t sent_number(const struct conn *c, uint16_t low)
{
	return c->tx.next_pn - 1 - (uint16_t)(c->tx.next_pn - 1 - low);
}
/* Declares one outstanding packet lost: what it carried waits to leave again. */
void sent_lose(struct engine *e, struct conn *c, uint64_t pn);
/* The next item that waits to leave again and is still wanted; false when there is none. */
bool sent_resend(struct engine *e, struct conn *c, struct lost_item *item);
/* Puts an item back that could not leave after all. */
void sent_defer(struct engine *e, struct conn *c, const struct lost_item *item);
/* Puts the item behind all others. */
void sent_defer_last(struct engine *e, struct conn *c, const struct lost_item *item);
/* May a packet that is lost leave again as two? */
bool sent_may_split(const struct engine *e, const struct conn *c);
/* Puts back what is left of an item whose first parts have left. */
void sent_defer_rest(struct engine *e, struct conn *c, const struct lost_item *rest);
static inline struct sent *sent_slot(const struct engine *e, const struct conn *c, uint64_t pn)
{
	return &c->tx.sent[pn & (e->sent_slots - 1)];
}
static inline bool sent_outstanding(const struct engine *e, const struct conn *c, uint64_t pn)
{
	uint64_t slot = pn & (e->sent_slots - 1);
	return c->tx.outstanding[slot / 64] >> (slot % 64) & 1;
}

#endif
