/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "internal/ipc.h"
#include "msg.h"
#include "core/conn/conn.h"
#include "event.h"
#include "core/conn/path.h"

_Static_assert(MSG_FRAGMENTS_MAX *MSG_FRAGMENT_BYTES >= MSG_BYTES_MAX, "one bit per fragment");
_Static_assert(MSG_FRAGMENTS_MAX <= 64, "one word of bits per message");

static uint64_t msg_all(uint32_t fragments)
{
	return fragments == 64 ? UINT64_MAX : (UINT64_C(1) << fragments) - 1;
}

static uint16_t msg_fragments(uint32_t total)
{
	return (uint16_t)((total + MSG_FRAGMENT_BYTES - 1) / MSG_FRAGMENT_BYTES);
}

enum reason msg_send(struct engine *e, const struct record *r)
{
	struct conn *c = conn_named(e, r->msg.conn);

	if (!c || c->state != CONN_UP)
		return REASON_BAD_CONN;
	if (r->msg.length == 0 || r->msg.length > MSG_BYTES_MAX ||
	    r->msg.length > e->config.msg_tx_bytes ||
	    r->msg.offset > e->config.msg_tx_bytes - r->msg.length)
		return REASON_BAD_MESSAGE;
	if (list_empty(&e->free_msgs))
		return REASON_FULL;

	struct msg_out *m = list_entry(e->free_msgs.next, struct msg_out, link);
	list_remove(&m->link);
	m->data = e->config.msg_tx + r->msg.offset;
	m->offset = r->msg.offset;
	m->token = r->token;
	m->acked = 0;
	m->length = r->msg.length;
	m->id = c->msg.next_id++;
	m->fragments = msg_fragments(m->length);
	m->next_fragment = 0;
	assert(m->fragments >= 1 && m->fragments <= MSG_FRAGMENTS_MAX);
	list_append(&c->msg.out, &m->link);
	conn_wake(e, path_carrier(c));
	return REASON_NONE;
}

struct msg_out *msg_next(struct conn *c, uint16_t *fragment)
{
	if (list_empty(&c->msg.out))
		return NULL;
	uint32_t oldest = list_entry(c->msg.out.next, struct msg_out, link)->id;
	list_each(l, &c->msg.out)
	{
		struct msg_out *m = list_entry(l, struct msg_out, link);
		if (m->id - oldest >= MSG_WINDOW)
			return NULL;
		if (m->next_fragment < m->fragments) {
			*fragment = m->next_fragment;
			return m;
		}
	}
	return NULL;
}

struct msg_out *msg_find(struct conn *c, uint32_t id)
{
	list_each(l, &c->msg.out)
	{
		struct msg_out *m = list_entry(l, struct msg_out, link);
		if (m->id == id)
			return m;
	}
	return NULL;
}

static void msg_finish(struct engine *e, struct conn *c, struct msg_out *m, enum reason why)
{
	struct record *r = event_push(e, EVENT_MSG_SENT);
	r->reason = (uint16_t)why;
	r->token = m->token;
	r->msg.conn = c->handle;
	r->msg.length = m->length;
	r->msg.offset = m->offset;
	assert(!list_empty(&m->link));
	list_remove(&m->link);
	list_append(&e->free_msgs, &m->link);
}

void msg_acked(struct engine *e, struct conn *c, uint32_t id, uint32_t fragment)
{
	struct msg_out *m = msg_find(c, id);

	if (!m)
		return;
	assert(fragment < m->next_fragment && m->next_fragment <= m->fragments);
	m->acked |= UINT64_C(1) << fragment;
	if (m->acked != msg_all(m->fragments))
		return;
	e->count->tx_msgs++;
	msg_finish(e, c, m, REASON_NONE);
	conn_wake(e, path_carrier(c)); /* the window may have opened */
}

static uint32_t msg_slot_take(struct engine *e)
{
	return e->slots.free_count == 0 ? SLOT_NONE : e->slots.free[--e->slots.free_count];
}

static void msg_slot_return(struct engine *e, uint32_t slot)
{
	assert(slot < e->config.msg_rx_slots && e->slots.free_count < e->config.msg_rx_slots);
	e->slots.free[e->slots.free_count++] = slot;
}

enum reason msg_free(struct engine *e, const struct record *r)
{
	uint64_t slot = r->msg.offset / MSG_SLOT_BYTES;

	if (r->msg.offset % MSG_SLOT_BYTES != 0 || slot >= e->config.msg_rx_slots)
		return REASON_BAD_MESSAGE;
	uint64_t bit = UINT64_C(1) << (slot % 64);
	if ((e->slots.at_control[slot / 64] & bit) == 0)
		return REASON_BAD_ID;
	e->slots.at_control[slot / 64] &= ~bit;
	msg_slot_return(e, (uint32_t)slot);
	return REASON_NONE;
}

/* Hands over every whole message that is next in order. */
static void msg_deliver(struct engine *e, struct conn *c)
{
	for (;;) {
		struct msg_in *m = &c->msg.in[c->msg.deliver_id % MSG_WINDOW];
		if (m->slot == SLOT_NONE || m->have != msg_all(msg_fragments(m->total)))
			return;
		assert(m->slot < e->config.msg_rx_slots);
		assert((e->slots.at_control[m->slot / 64] >> (m->slot % 64) & 1) == 0);
		struct record *r = event_push(e, EVENT_MSG);
		r->msg.conn = c->handle;
		r->msg.length = m->total;
		r->msg.offset = (uint64_t)m->slot * MSG_SLOT_BYTES;
		e->slots.at_control[m->slot / 64] |= UINT64_C(1) << (m->slot % 64);
		m->slot = SLOT_NONE;
		m->have = 0;
		c->msg.deliver_id++;
		e->count->rx_msgs++;
	}
}

/* [P10] */
enum verdict msg_take(struct engine *e, struct conn *c, const uint8_t *frame, uint16_t length)
{
	uint32_t id = wire_get32(frame + MSG_AT_ID);
	uint32_t fragment = wire_get16(frame + MSG_AT_FRAGMENT);
	uint32_t total = wire_get32(frame + MSG_AT_TOTAL);

	if ((int32_t)(id - c->msg.deliver_id) < 0)
		return VERDICT_TAKEN; /* a late copy of what control has already */
	if (id - c->msg.deliver_id >= MSG_WINDOW || total == 0 || total > MSG_BYTES_MAX ||
	    fragment >= msg_fragments(total) || length != msg_fragment_length(total, fragment)) {
		e->count->drop_msg_range++;
		return VERDICT_REFUSED;
	}
	struct msg_in *m = &c->msg.in[id % MSG_WINDOW];
	if (m->slot == SLOT_NONE) {
		/* The last slots are for the message that all others of this peer wait for. */
		bool last = e->slots.free_count <= numbers_max(1, e->config.msg_rx_slots / 8);
		m->slot = last && id != c->msg.deliver_id ? SLOT_NONE : msg_slot_take(e);
		if (m->slot == SLOT_NONE) {
			e->count->drop_msg_full++;
			return VERDICT_REFUSED;
		}
		m->total = total;
		m->have = 0;
	}
	if (m->total != total) {
		e->count->drop_msg_range++;
		return VERDICT_REFUSED;
	}
	uint8_t *to = e->config.msg_rx + (uint64_t)m->slot * MSG_SLOT_BYTES;
	memcpy(to + fragment * MSG_FRAGMENT_BYTES, frame + MSG_FRAME_BYTES, length);
	m->have |= UINT64_C(1) << fragment;
	msg_deliver(e, c);
	return VERDICT_TAKEN;
}

void msg_abandon(struct engine *e, struct conn *c, enum reason why)
{
	list_each(l, &c->msg.out) msg_finish(e, c, list_entry(l, struct msg_out, link), why);
	for (uint32_t k = 0; k < MSG_WINDOW; k++) {
		if (c->msg.in[k].slot != SLOT_NONE)
			msg_slot_return(e, c->msg.in[k].slot);
		c->msg.in[k].slot = SLOT_NONE;
		c->msg.in[k].have = 0;
	}
}
