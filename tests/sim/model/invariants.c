/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's own books, read through state.h: what is counted in two places must agree. Slow,
 * for tests and fuzzers only.
 */
#include "node.h"
#include "plan/in_edge.h"
#include "plan/msg.h"
#include "plan/out_edge.h"
#include "conn/sent.h"

static uint32_t list_length(const struct list *head)
{
	uint32_t n = 0;
	for (const struct list *l = head->next; l != head; l = l->next)
		n++;
	return n;
}

static const char *invariants_sent(const struct engine *e, const struct conn *c)
{
	uint32_t pkts = 0;
	uint64_t bytes = 0;
	if (c->tx.oldest_pn > c->tx.next_pn || c->tx.next_pn - c->tx.oldest_pn > e->sent_slots)
		return "packet numbers outstanding beyond the ring";
	for (uint32_t w = 0; w < (e->sent_slots + 63) / 64; w++) {
		for (uint64_t bits = c->tx.outstanding[w]; bits; bits &= bits - 1) {
			const struct sent *sent =
				&c->tx.sent[w * 64 + (uint32_t)__builtin_ctzll(bits)];
			pkts++;
			bytes += sent->bytes;
			if (sent->state != SENT_OUTSTANDING)
				return "an outstanding packet in another state";
		}
	}
	if (pkts != c->tx.inflight_pkts || bytes != c->tx.inflight_bytes)
		return "packets in flight do not add up";
	if (c->tx.lost_count > e->sent_slots)
		return "more lost packets than slots";
	if (c->tx.any_acked && c->tx.largest_acked >= c->tx.next_pn)
		return "an acknowledged packet that was never sent";
	return NULL;
}

static const char *invariants_conn(struct engine *e, struct conn *c)
{
	const char *bad = invariants_sent(e, c);
	if (bad)
		return bad;
	list_each(l, &c->out_edges)
	{
		struct out_edge *o = list_entry(l, struct out_edge, on_conn);
		if (!o->handle || o->conn != c)
			return "a foreign OUT edge on a connection";
	}
	list_each(l, &c->in_edges)
	{
		struct in_edge *i = list_entry(l, struct in_edge, on_origin);
		if (!i->handle || i->conn != c)
			return "a foreign IN edge on a connection";
	}
	list_each(l, &c->msg.out)
	{
		struct msg_out *m = list_entry(l, struct msg_out, link);
		if (m->id - c->msg.next_id < UINT32_MAX / 2)
			return "a message of the future";
	}
	return NULL;
}

static const char *invariants_out(const struct out_edge *o)
{
	if (o->acked_count > o->sent_count || o->acked_count > o->total || o->sent_count > o->total)
		return "an OUT edge with more acknowledged than sent, or sent than asked";
	if (o->part_chunks > o->sent_count - o->acked_count || o->parts_left > o->parts_open ||
	    (o->part_chunks > 0) != (o->parts_open > 0))
		return "parts of chunks that do not add up";
	if (o->credit > o->end - o->first || o->end > o->buffer->chunks)
		return "an OUT edge with credit beyond its end";
	if (!o->buffer->handle)
		return "an OUT edge on a buffer that is not there";
	return NULL;
}

static const char *invariants_in(const struct engine *e, const struct in_edge *i)
{
	uint32_t chunks = i->end - i->first;
	if (i->received > chunks || i->granted > chunks || i->taken > i->granted)
		return "an IN edge with counts beyond its end";
	if (!i->buffer->handle || i->end > i->buffer->chunks)
		return "an IN edge on a buffer that is not there";
	if (!i->conn && !i->source)
		return NULL;
	uint32_t missing = 0;
	for (uint32_t k = i->first; k < i->end; k++)
		missing += !in_edge_gave(i, k);
	if (missing != i->missing || i->active != (i->conn && missing > 0))
		return "an IN or LOCAL edge whose bitmap and count differ";
	(void)e;
	return NULL;
}

static const char *invariants_buffer(const struct buffer *b)
{
	uint32_t count = 0;
	if (b->ready_low > b->chunks || b->ready_high > b->chunks || b->ready_count > b->chunks)
		return "a buffer readier than it is long";
	if (!b->bitmap)
		return NULL;
	for (uint32_t w = 0; w < (b->chunks + 63) / 64; w++)
		count += (uint32_t)__builtin_popcountll(b->bitmap[w]);
	return count == b->ready_count ? NULL : "a buffer's bitmap and count differ";
}

static const char *invariants_slots(const struct engine *e)
{
	uint32_t at_control = 0, partial = 0, msgs = 0;
	for (uint32_t i = 0; i < (e->config.msg_rx_slots + 63) / 64; i++)
		at_control += (uint32_t)__builtin_popcountll(e->slots.at_control[i]);
	for (uint32_t k = 0; k < e->config.conns_max; k++) {
		const struct conn *c = &e->conns[k];
		if (c->state == CONN_FREE)
			continue;
		msgs += list_length(&c->msg.out);
		for (uint32_t m = 0; m < MSG_WINDOW; m++)
			partial += c->msg.in[m].slot != UINT32_MAX;
	}
	if (e->slots.free_count + at_control + partial != e->config.msg_rx_slots)
		return "receive slots are lost or doubled";
	if (list_length(&e->free_msgs) + msgs != e->config.msgs_max)
		return "message entries are lost or doubled";
	return NULL;
}

const char *invariants_check(struct engine *e)
{
	const char *bad = NULL;
	uint32_t used = 0, active = 0, senders = 0, unanswered = 0;
	for (uint32_t k = 0; k < e->config.conns_max && !bad; k++) {
		if (e->conns[k].state == CONN_FREE)
			continue;
		used++;
		unanswered += e->conns[k].loss.pto_count > 0;
		senders += e->conns[k].in_active > 0;
		bad = invariants_conn(e, &e->conns[k]);
	}
	for (uint32_t k = 0; k < e->config.edges_max && !bad; k++) {
		if (e->out_edges[k].handle)
			bad = invariants_out(&e->out_edges[k]);
		if (e->in_edges[k].handle && !bad) {
			bad = invariants_in(e, &e->in_edges[k]);
			active += e->in_edges[k].active;
		}
	}
	for (uint32_t k = 0; k < e->config.buffers_max && !bad; k++)
		if (e->buffers[k].handle)
			bad = invariants_buffer(&e->buffers[k]);
	if (!bad && used != e->conns_used)
		bad = "connections in use do not add up";
	if (!bad && unanswered != e->unanswered)
		bad = "connections with unanswered probes do not add up";
	if (!bad && active != e->in_active)
		bad = "IN edges that expect chunks do not add up";
	if (!bad && senders != e->in_senders)
		bad = "connections with such edges do not add up";
	return bad ? bad : invariants_slots(e);
}

const char *invariants_check_idle(struct engine *e)
{
	if (e->in_active)
		return "IN edges still expect chunks";
	if (e->slots.free_count != e->config.msg_rx_slots)
		return "receive slots are not all back";
	if (list_length(&e->free_msgs) != e->config.msgs_max)
		return "messages are not all back";
	for (uint32_t k = 0; k < e->config.edges_max; k++)
		if (e->out_edges[k].handle || e->in_edges[k].handle)
			return "an edge is still there";
	for (uint32_t k = 0; k < e->config.buffers_max; k++)
		if (e->buffers[k].handle)
			return "a buffer is still there";
	return invariants_check(e);
}
