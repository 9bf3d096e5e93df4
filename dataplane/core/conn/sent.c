/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "sent.h"
#include "congestion.h"
#include "core/plan/in_edge.h"
#include "loss.h"
#include "core/plan/msg.h"
#include "core/plan/out_edge.h"
#include "path.h"
#include "path_mtu.h"

/*
 * The sending side of packet numbers. An item (a chunk on an edge, a fragment of a message) is at
 * any time in exactly one place: outstanding in the ring, or waiting in the lost queue. That is
 * why acknowledgements may simply be counted.
 *
 * A packet that was declared lost keeps its slot for a while (bitmap late): if it is acknowledged
 * after all before its item has left again, the item counts as delivered and is struck from the
 * queue; if after, only the reorder window learns from it.
 */

static void sent_set(uint64_t *bits, uint64_t slot)
{
	bits[slot / 64] |= UINT64_C(1) << (slot % 64);
}

static void sent_clear(uint64_t *bits, uint64_t slot)
{
	bits[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

bool sent_room(const struct engine *e, const struct conn *c)
{
	return c->tx.next_pn - c->tx.oldest_pn < e->sent_slots;
}

/* [P6.6] */
bool sent_window(const struct engine *e, const struct conn *c)
{
	return c->tx.inflight_pkts + c->tx.lost_count < c->window_pkts;
}

/* The oldest is outstanding at any time, or there is none: oldest_pn == next_pn. */
static void sent_advance_oldest(const struct engine *e, struct conn *c)
{
	while (c->tx.oldest_pn < c->tx.next_pn && !sent_outstanding(e, c, c->tx.oldest_pn)) {
		uint64_t slot = c->tx.oldest_pn & (e->sent_slots - 1);
		if (slot % 64 == 0 && c->tx.outstanding[slot / 64] == 0 &&
		    c->tx.oldest_pn + 64 <= c->tx.next_pn)
			c->tx.oldest_pn += 64;
		else
			c->tx.oldest_pn++;
	}
}

uint64_t sent_record(struct engine *e, struct conn *c, uint8_t kind, uint32_t a, uint32_t b,
		     uint16_t bytes)
{
	uint64_t pn = c->tx.next_pn;
	uint64_t slot = pn & (e->sent_slots - 1);
	struct sent *s = &c->tx.sent[slot];

	if (!sent_room(e, c)) /* only packets without an item get here */
		sent_lose(e, c, c->tx.oldest_pn);
	c->tx.next_pn++;
	sent_clear(c->tx.late, slot);
	s->pn_low = (uint32_t)pn;
	s->kind = kind;
	if (kind == SENT_NOTHING) {
		s->state = SENT_FREE;
		if (c->tx.oldest_pn == pn)
			c->tx.oldest_pn++;
		return pn;
	}
	s->time_ns = e->now_ns;
	s->a = a;
	s->b = b;
	s->bytes = bytes;
	s->state = SENT_OUTSTANDING;
	sent_set(c->tx.outstanding, slot);
	c->tx.inflight_pkts++;
	c->tx.inflight_bytes += bytes;
	c->tx.last_elicit_ns = e->now_ns;
	return pn;
}

static void sent_deliver(struct engine *e, struct conn *c, const struct sent *s)
{
	switch (s->kind) {
	case SENT_CHUNK:
		out_edge_acked(e, s->a);
		break;
	case SENT_MSG:
		msg_acked(e, c->main, s->a, s->b);
		break;
	case SENT_PROBE:
		path_mtu_acked(e, c, s->a, s->b);
		break;
	default:
		if (sent_is_part(s->kind))
			out_edge_parts_acked(e, s->a, sent_parts(s->kind).count);
		break;
	}
}

static void sent_queue(struct engine *e, struct conn *c, struct sent *s)
{
	assert(c->tx.lost_count < e->sent_slots);
	s->state = SENT_LOST;
	s->lost_at = (c->tx.lost_head + c->tx.lost_count++) & (e->sent_slots - 1);
	c->tx.lost[s->lost_at] = (struct lost_item){s->a, s->b, s->pn_low, s->kind};
}

static void sent_release(struct conn *c, struct sent *s, uint64_t slot)
{
	assert(s->state == SENT_OUTSTANDING);
	sent_clear(c->tx.outstanding, slot);
	c->tx.inflight_pkts--;
	c->tx.inflight_bytes -= s->bytes;
}

void sent_lose(struct engine *e, struct conn *c, uint64_t pn)
{
	uint64_t slot = pn & (e->sent_slots - 1);
	struct sent *s = &c->tx.sent[slot];
	struct in_edge *i;

	assert(pn >= c->tx.oldest_pn && pn < c->tx.next_pn && sent_outstanding(e, c, pn));
	sent_release(c, s, slot);
	if (pn == c->tx.oldest_pn)
		sent_advance_oldest(e, c);
	sent_set(c->tx.late, slot);
	s->state = SENT_RESENT;
	e->count->lost_pkts++;
	if (s->kind != SENT_PROBE)
		path_mtu_vanished(e, c, s);
	switch (s->kind) {
	case SENT_CHUNK:
	case SENT_MSG:
		sent_queue(e, c, s);
		break;
	case SENT_GRANT:
		i = in_edge_find(e, s->a);
		if (i && i->conn == c->main) {
			list_want(&i->conn->grants, &i->due);
			conn_wake(e, path_carrier(c));
		}
		break;
	case SENT_RESET:
		if (c->resets_count < RESETS_MAX)
			c->resets[c->resets_count++] = s->a;
		break;
	case SENT_PROBE:
		path_mtu_lost(e, c, s->a, s->b);
		return; /* says nothing about congestion (RFC 8899, 3) */
	default:
		if (sent_is_part(s->kind))
			sent_queue(e, c, s);
		else
			c->ping_due = true;
		break;
	}
	c->tally.lost_pkts++;
	congestion_lost(c);
	conn_wake(e, c);
}

/* Is the item of a lost packet still to be delivered? */
static bool sent_wanted(struct engine *e, struct conn *c, const struct lost_item *item)
{
	struct sent *s = &c->tx.sent[item->pn_low & (e->sent_slots - 1)];

	if (item->kind == SENT_NOTHING) /* acknowledged after all */
		return false;
	if (s->pn_low == item->pn_low && s->state == SENT_LOST)
		s->state = SENT_RESENT;
	if (item->kind == SENT_MSG)
		return msg_find(c->main, item->a) != NULL;
	struct out_edge *o = out_edge_find(e, item->a);
	return o && o->conn == c->main;
}

bool sent_resend(struct engine *e, struct conn *c, struct lost_item *item)
{
	while (c->tx.lost_count > 0) {
		*item = c->tx.lost[c->tx.lost_head];
		c->tx.lost_head = (c->tx.lost_head + 1) & (e->sent_slots - 1);
		c->tx.lost_count--;
		if (sent_wanted(e, c, item))
			return true;
	}
	return false;
}

bool sent_may_split(const struct engine *e, const struct conn *c)
{
	return c->tx.inflight_pkts + c->tx.lost_count + 1 < e->sent_slots;
}

static void sent_put_back(struct engine *e, struct conn *c, const struct lost_item *item)
{
	assert(c->tx.lost_count < e->sent_slots);
	c->tx.lost_head = (c->tx.lost_head - 1) & (e->sent_slots - 1);
	c->tx.lost[c->tx.lost_head] = *item;
	c->tx.lost_count++;
}

void sent_defer_rest(struct engine *e, struct conn *c, const struct lost_item *rest)
{
	struct sent *s = &c->tx.sent[rest->pn_low & (e->sent_slots - 1)];

	sent_put_back(e, c, rest);
	if (s->pn_low == rest->pn_low)
		s->state = SENT_ACKED; /* should it come after all, it speaks of no item */
}

/* Its packet may still be acknowledged, and knows where it waits. */
static void sent_waits_at(struct engine *e, struct conn *c, const struct lost_item *item,
			  uint32_t at)
{
	struct sent *s = &c->tx.sent[item->pn_low & (e->sent_slots - 1)];

	if (s->pn_low == item->pn_low && s->state == SENT_RESENT) {
		s->state = SENT_LOST;
		s->lost_at = at;
	}
}

void sent_defer(struct engine *e, struct conn *c, const struct lost_item *item)
{
	sent_put_back(e, c, item);
	sent_waits_at(e, c, item, c->tx.lost_head);
}

void sent_defer_last(struct engine *e, struct conn *c, const struct lost_item *item)
{
	assert(c->tx.lost_count < e->sent_slots);
	uint32_t at = (c->tx.lost_head + c->tx.lost_count++) & (e->sent_slots - 1);

	c->tx.lost[at] = *item;
	sent_waits_at(e, c, item, at);
}

/* The news of one ACK frame. */
struct sent_news {
	uint64_t bytes;
	uint32_t packets;
	uint32_t bytes_max; /* of one packet, late ones as well: for the path MTU */
	uint64_t newest_time_ns;
	bool largest_is_new;
	bool first_rtt; /* a late one has told the first round trip */
	uint64_t largest_time_ns;
};

/* [P7.3] */
static void sent_ack_word(struct engine *e, struct conn *c, uint64_t base, uint64_t bits,
			  uint64_t largest, struct sent_news *news)
{
	uint64_t word = (base & (e->sent_slots - 1)) / 64;
	uint64_t fresh = bits & c->tx.outstanding[word];
	uint64_t late = bits & c->tx.late[word];

	while (fresh != 0) {
		uint64_t slot = word * 64 + (uint64_t)__builtin_ctzll(fresh);
		struct sent *s = &c->tx.sent[slot];

		fresh &= fresh - 1;
		sent_release(c, s, slot);
		s->state = SENT_ACKED;
		news->bytes += s->bytes;
		news->packets++;
		news->bytes_max = (uint32_t)numbers_max(news->bytes_max, s->bytes);
		if (s->time_ns > news->newest_time_ns)
			news->newest_time_ns = s->time_ns;
		if (base + slot % 64 == largest) {
			news->largest_is_new = true;
			news->largest_time_ns = s->time_ns;
		}
		sent_deliver(e, c, s);
	}
	while (late != 0) {
		uint64_t slot = word * 64 + (uint64_t)__builtin_ctzll(late);
		struct sent *s = &c->tx.sent[slot];

		late &= late - 1;
		sent_clear(c->tx.late, slot);
		e->count->lost_spurious++;
		c->tally.lost_spurious++;
		loss_spurious(c);
		if (c->loss.srtt_ns == 0 && s->kind > SENT_MSG &&
		    s->kind < SENT_PART) { /* its time is still there */
			loss_rtt(e, c, e->now_ns - s->time_ns);
			news->first_rtt = true;
		}
		news->bytes_max = (uint32_t)numbers_max(news->bytes_max, s->bytes);
		if (s->state == SENT_LOST) {
			assert(c->tx.lost[s->lost_at].pn_low == s->pn_low);
			s->state = SENT_ACKED;
			c->tx.lost[s->lost_at].kind = SENT_NOTHING;
			sent_deliver(e, c, s);
		}
	}
}

/* Every acknowledged number must have been sent. */
static bool sent_ack_honest(const struct conn *c, const uint8_t *frame, uint64_t base,
			    uint64_t largest, uint32_t words)
{
	if (largest >= c->tx.next_pn)
		return false;
	uint64_t last = wire_get64(frame + ACK_AT_BITMAP + 8 * (words - 1));
	uint64_t above = base + 64 * (uint64_t)words; /* first number beyond the bitmap */
	if (above <= c->tx.next_pn)
		return true;
	return (last & (UINT64_MAX << (c->tx.next_pn % 64))) == 0;
}

bool sent_ack_short(struct engine *e, struct conn *c, uint64_t largest, const uint8_t *brief,
		    const uint8_t *bitmap)
{
	uint8_t frame[ACK_AT_BITMAP + 16] = {FRAME_ACK};
	uint64_t bits = wire_get64(bitmap), above = 63 - largest % 64;
	uint64_t low = above > 0 ? bits << (64 - above) : 0;
	uint8_t *at = frame + ACK_AT_BITMAP;

	/* no number lies below 0: words that say so are too many */
	frame[ACK_AT_WORDS] = low != 0 ? 2 : 1;
	memcpy(frame + ACK_AT_DELAY, brief + SHORT_AT_DELAY, 2);
	memcpy(frame + ACK_AT_ARRIVAL, brief + SHORT_AT_ARRIVAL, 4);
	wire_put64(frame + ACK_AT_LARGEST, largest);
	if (low != 0) {
		wire_put64(at, low);
		at += 8;
	}
	wire_put64(at, bits >> above);
	return sent_ack(e, c, frame);
}

static void sent_answered(struct engine *e, struct conn *c)
{
	loss_answered(e, c);
	c->loss.probes_due = 0;
	c->loss.waiting_since_ns = 0;
}

/* [P6.4] */
bool sent_ack(struct engine *e, struct conn *c, const uint8_t *frame)
{
	uint32_t words = frame[ACK_AT_WORDS];
	uint64_t largest = wire_get64(frame + ACK_AT_LARGEST);
	uint64_t top = largest / 64;
	struct sent_news news = {0};

	if (words == 0 || words > ACK_WORDS_MAX || words > top + 1 ||
	    !sent_ack_honest(c, frame, (top - words + 1) * 64, largest, words)) {
		e->count->drop_ack_unsent++;
		return false;
	}
	uint64_t kept = c->tx.next_pn > e->sent_slots ? c->tx.next_pn - e->sent_slots : 0;
	for (uint32_t k = 0; k < words; k++) {
		uint64_t base = (top - words + 1 + k) * 64;
		uint64_t bits = wire_get64(frame + ACK_AT_BITMAP + 8 * k);

		if (base + 64 <= kept) /* those slots speak of later packets now */
			continue;
		if (base < kept)
			bits &= UINT64_MAX << (kept - base);
		sent_ack_word(e, c, base, bits, largest, &news);
	}
	path_mtu_passed(e, c, news.bytes_max + conn_overhead(c));
	if (news.packets > 0 || news.first_rtt) /* before that all answers may be late ones */
		sent_answered(e, c);
	if (news.packets == 0)
		return true;
	if (!c->tx.any_acked || largest > c->tx.largest_acked)
		c->tx.largest_acked = largest;
	c->tx.any_acked = true;
	c->loss.rack_time_ns = numbers_max(c->loss.rack_time_ns, news.newest_time_ns);
	if (news.largest_is_new) {
		uint64_t delay = (uint64_t)wire_get16(frame + ACK_AT_DELAY) * ACK_DELAY_UNIT_NS;
		uint64_t took = e->now_ns - news.largest_time_ns;
		uint64_t sample = took > delay ? took - delay : took;

		bool pause = loss_is_pause(c, largest, sample);
		if (!pause)
			loss_rtt(e, c, sample);
		loss_one_way(e, c, wire_get32(frame + ACK_AT_ARRIVAL), news.largest_time_ns);
		if (!pause)
			loss_drift(e, c);
	}
	sent_advance_oldest(e, c);
	assert(c->tx.largest_acked < c->tx.next_pn && c->tx.oldest_pn <= c->tx.next_pn);
	congestion_acked(e, c, news.bytes, news.packets, largest);
	loss_detect(e, c);
	conn_wake(e, c);
	return true;
}
