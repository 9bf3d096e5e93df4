/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "ack.h"
#include "core/plan/in_edge.h"

/*
 * The receiving side of packet numbers: a ring of bits in words of 64, aligned to packet numbers,
 * so that an ACK frame is a copy of words. The ring covers the word of the largest number and the
 * rx_window / 64 - 1 words before it.
 */

static uint32_t ack_words(const struct engine *e)
{
	return e->rx_window / 64;
}

static uint64_t *ack_word(const struct engine *e, const struct conn *c, uint64_t word)
{
	return &c->rx.bitmap[word & (ack_words(e) - 1)];
}

/* [P6.1] */
enum ack_verdict ack_look(const struct engine *e, const struct conn *c, uint64_t pn)
{
	if (!c->rx.any)
		return pn > ACK_JUMP_MAX ? ACK_FUTURE : ACK_NEW;
	if (pn > c->rx.largest)
		return pn - c->rx.largest > ACK_JUMP_MAX ? ACK_FUTURE : ACK_NEW;
	if (c->rx.largest / 64 - pn / 64 >= ack_words(e))
		return ACK_OLD;
	return *ack_word(e, c, pn / 64) >> (pn % 64) & 1 ? ACK_DUPLICATE : ACK_NEW;
}

static void ack_advance(struct engine *e, struct conn *c, uint64_t pn)
{
	uint64_t from = c->rx.any ? c->rx.largest / 64 + 1 : 0;
	uint64_t to = pn / 64;

	assert(!c->rx.any || pn > c->rx.largest);
	if (to >= from && to - from >= ack_words(e))
		from = to - ack_words(e) + 1;
	for (uint64_t w = from; w <= to; w++)
		*ack_word(e, c, w) = 0;
	if (!c->rx.any)
		for (uint32_t k = 0; k < 4; k++)
			c->rx.ack_history[k] = pn;
	c->rx.any = true;
	c->rx.largest = pn;
	c->rx.largest_ns = e->now_ns;
}

/* A late one: the next acknowledgements reach back to it, or it would look lost. */
static void ack_reach(struct conn *c, uint64_t pn)
{
	for (uint32_t k = 0; k < 4; k++)
		c->rx.ack_history[k] = numbers_min(c->rx.ack_history[k], pn);
}

uint64_t ack_chunk_wait_ns(const struct engine *e, uint32_t senders, bool shared)
{
	uint32_t delays = shared && senders <= ACK_FEW_SENDERS ? ACK_FEW_DELAYS : ACK_CHUNK_DELAYS;

	return e->config.ack_delay_ns * (senders <= ACK_LATER_SENDERS ? delays : 1);
}

/* Its sender may know of more who send than there are now: it expects an answer by that. */
static uint64_t ack_wait_until(const struct engine *e, const struct conn *c, enum ack_wish wish)
{
	uint32_t senders = (uint32_t)numbers_max(in_edge_senders(e), c->rx.peer_senders);

	if (wish != ACK_LATER)
		return e->now_ns + e->config.ack_delay_ns;
	return e->now_ns + ack_chunk_wait_ns(e, senders, c->rx.peer_senders > 0);
}

void ack_mark(struct engine *e, struct conn *c, uint64_t pn, enum ack_wish wish)
{
	bool gap = c->rx.any && pn != c->rx.largest + 1;

	if (!c->rx.any || pn > c->rx.largest)
		ack_advance(e, c, pn);
	else
		ack_reach(c, pn);
	*ack_word(e, c, pn / 64) |= UINT64_C(1) << (pn % 64);
	if (wish == ACK_NOT)
		return;
	if (c->rx.ack_pending++ == 0)
		c->rx.ack_deadline_ns = ack_wait_until(e, c, wish);
	else if (wish == ACK_SOON)
		c->rx.ack_deadline_ns =
			numbers_min(c->rx.ack_deadline_ns, ack_wait_until(e, c, wish));
	if (gap)
		c->rx.ack_now = true;
}

/* [P6.2] */
bool ack_due(const struct engine *e, const struct conn *c)
{
	if (c->rx.ack_pending == 0)
		return false;
	return c->rx.ack_now || c->rx.ack_pending >= ACK_EVERY ||
	       e->now_ns >= c->rx.ack_deadline_ns;
}

static uint16_t ack_write_ecn(struct conn *c, uint8_t *to, uint16_t room)
{
	if (!c->rx.ecn_changed || room < ECN_BYTES)
		return 0;
	memset(to, 0, ECN_BYTES);
	to[0] = FRAME_ECN;
	wire_put32(to + ECN_AT_COUNT, c->rx.ce);
	c->rx.ecn_changed = false;
	return ECN_BYTES;
}

/* Everything since four acknowledgements ago, so that three in a row may be lost. */
static uint64_t ack_reaches(const struct engine *e, const struct conn *c)
{
	uint64_t top = c->rx.largest / 64;
	uint64_t floor = c->rx.ack_history[c->rx.ack_sent % 4] / 64;
	uint64_t words = top - (floor < top ? floor : top) + 1;

	words = numbers_min(words, numbers_min(ACK_WORDS_MAX, ack_words(e)));
	return numbers_min(words, top + 1);
}

uint16_t ack_bytes(const struct engine *e, const struct conn *c)
{
	return (uint16_t)(ACK_AT_BITMAP + 8 * ack_reaches(e, c));
}

/* The time is that of the largest. */
static void ack_write_time(const struct engine *e, const struct conn *c, uint8_t *delay,
			   uint8_t *arrival)
{
	uint64_t units = (e->now_ns - c->rx.largest_ns) / ACK_DELAY_UNIT_NS;

	wire_put16(delay, (uint16_t)numbers_min(units, UINT16_MAX));
	wire_put32(arrival, (uint32_t)(c->rx.largest_ns / 1000));
}

static void ack_written(struct engine *e, struct conn *c)
{
	assert(c->rx.any && c->rx.ack_pending > 0);
	c->rx.ack_history[c->rx.ack_sent++ % 4] = c->rx.largest;
	c->rx.ack_pending = 0;
	c->rx.ack_now = false;
	e->count->tx_acks++;
}

bool ack_short(const struct conn *c)
{
	return c->rx.ack_pending > 0 && !c->rx.ecn_changed &&
	       c->rx.largest - c->rx.ack_history[c->rx.ack_sent % 4] < 64;
}

/* [P6.5] */
void ack_write_short(struct engine *e, struct conn *c, uint8_t *to)
{
	uint64_t top = c->rx.largest / 64, above = 63 - c->rx.largest % 64;
	uint64_t bits = *ack_word(e, c, top) << above;

	if (above > 0 && top > 0)
		bits |= *ack_word(e, c, top - 1) >> (64 - above);
	wire_put16(to + SHORT_AT_LARGEST, (uint16_t)c->rx.largest);
	ack_write_time(e, c, to + SHORT_AT_DELAY, to + SHORT_AT_ARRIVAL);
	wire_put64(to + SHORT_AT_BITMAP, bits);
	ack_written(e, c);
}

/* [P6.3] */
uint16_t ack_write(struct engine *e, struct conn *c, uint8_t *to, uint16_t room)
{
	uint64_t top = c->rx.largest / 64;
	uint64_t words = ack_reaches(e, c);

	if (c->rx.ack_pending == 0 || ACK_AT_BITMAP + 8 * words > room)
		return 0; /* never a part of it: what is left out would look lost */
	to[0] = FRAME_ACK;
	to[ACK_AT_WORDS] = (uint8_t)words;
	wire_put64(to + ACK_AT_LARGEST, c->rx.largest);
	ack_write_time(e, c, to + ACK_AT_DELAY, to + ACK_AT_ARRIVAL);
	for (uint64_t k = 0; k < words; k++)
		wire_put64(to + ACK_AT_BITMAP + 8 * k, *ack_word(e, c, top - words + 1 + k));
	ack_written(e, c);
	uint16_t length = (uint16_t)(ACK_AT_BITMAP + 8 * words);
	return (uint16_t)(length + ack_write_ecn(c, to + length, (uint16_t)(room - length)));
}
