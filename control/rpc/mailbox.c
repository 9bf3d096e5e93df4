/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>
#include "mailbox.h"

static size_t mailbox_round(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

/* At most one MSG_SEND per transmit slot and one MSG_FREE per receive slot are queued. */
static uint32_t mailbox_capacity(uint32_t tx_slots, uint32_t rx_slots)
{
	return tx_slots + rx_slots;
}

size_t mailbox_bytes(uint32_t tx_slots, uint32_t rx_slots)
{
	return mailbox_round(sizeof(struct record) * mailbox_capacity(tx_slots, rx_slots)) +
	       mailbox_round(sizeof(uint32_t) * tx_slots) + mailbox_round(tx_slots);
}

void mailbox_init(struct mailbox *b, void *memory, uint8_t *arena, uint8_t *tx, uint32_t tx_slots,
		  const uint8_t *rx, uint32_t rx_slots)
{
	uint8_t *at = memory;

	*b = (struct mailbox){.tx = tx,
			      .rx = rx,
			      .arena = arena,
			      .tx_slots = tx_slots,
			      .rx_slots = rx_slots,
			      .tx_free_count = tx_slots,
			      .capacity = mailbox_capacity(tx_slots, rx_slots)};
	b->ring = (struct record *)(void *)at;
	at += mailbox_round(sizeof(struct record) * b->capacity);
	b->tx_free = (uint32_t *)(void *)at;
	at += mailbox_round(sizeof(uint32_t) * tx_slots);
	b->tx_in_flight = at;
	memset(b->tx_in_flight, 0, tx_slots);
	for (uint32_t i = 0; i < tx_slots; i++)
		b->tx_free[i] = tx_slots - 1 - i;
}

static struct record *mailbox_push(struct mailbox *b, uint8_t op)
{
	struct record *r = &b->ring[(b->head + b->count) % b->capacity];

	assert(b->count < b->capacity);
	b->count++;
	*r = (struct record){.op = op};
	return r;
}

bool mailbox_send(struct mailbox *b, uint32_t conn, const struct message *m)
{
	struct record *r;
	uint32_t slot;
	size_t length;

	if (b->tx_free_count == 0)
		return false;
	slot = b->tx_free[b->tx_free_count - 1];
	length = codec_encode(m, b->arena + CODEC_ARENA_BYTES,
			      b->tx + (size_t)slot * MSG_SLOT_BYTES, MSG_BYTES_MAX);
	if (length == 0)
		return false;
	b->tx_free_count--;
	b->tx_in_flight[slot] = 1;
	r = mailbox_push(b, COMMAND_MSG_SEND);
	r->token = slot;
	r->msg.conn = conn;
	r->msg.length = (uint32_t)length;
	r->msg.offset = (uint64_t)slot * MSG_SLOT_BYTES;
	return true;
}

static void mailbox_sent(struct mailbox *b, uint64_t slot)
{
	if (slot >= b->tx_slots || !b->tx_in_flight[slot])
		return;
	b->tx_in_flight[slot] = 0;
	b->tx_free[b->tx_free_count++] = (uint32_t)slot;
}

bool mailbox_event(struct mailbox *b, const struct record *event, struct message *m)
{
	struct record *r;

	if (event->op == EVENT_MSG_SENT) {
		mailbox_sent(b, event->token);
		return false;
	}
	if (event->op != EVENT_MSG || event->msg.offset % MSG_SLOT_BYTES ||
	    event->msg.offset / MSG_SLOT_BYTES >= b->rx_slots ||
	    event->msg.length > MSG_SLOT_BYTES || b->count == b->capacity)
		return false;
	r = mailbox_push(b, COMMAND_MSG_FREE);
	r->msg = event->msg;
	if (codec_decode(b->rx + event->msg.offset, event->msg.length, b->arena, m) == 0)
		return true;
	b->bad++;
	return false;
}

unsigned mailbox_commands(struct mailbox *b, struct record *out, unsigned count)
{
	unsigned n = 0;

	while (n < count && b->count > 0) {
		out[n++] = b->ring[b->head];
		b->head = (b->head + 1) % b->capacity;
		b->count--;
	}
	return n;
}
