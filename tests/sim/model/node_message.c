/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a node. Each says who sent it on which connection with which number, so that the
 * receiver can hold them to the order of their connection: no gap, no repeat, no other bytes.
 */
#include "node.h"
#include "world.h"

enum { MESSAGE_HEAD_BYTES = 16 };

struct message_head {
	uint32_t from, sequence, length, conn;
};
_Static_assert(sizeof(struct message_head) == MESSAGE_HEAD_BYTES, "the shortest message");

static uint64_t message_seed(const struct message_head *h)
{
	return prng_mix(((uint64_t)h->from << 32 | h->sequence) ^
			prng_mix((uint64_t)h->length << 32 | h->conn));
}

uint32_t node_message(struct node *n, uint32_t peer, uint32_t length)
{
	struct node_conn *c = node_conn_find(n, node_conn_to(n, peer));
	uint32_t slot = 0;
	while (slot < n->options.msg_slots && n->tx_slot_used[slot])
		slot++;
	if (!c || slot == n->options.msg_slots)
		return NODE_NONE;
	n->messages =
		node_grow(n->messages, n->messages_count, &n->messages_room, sizeof(*n->messages));
	uint32_t index = n->messages_count++;
	struct message_head h = {n->index, c->next_out++, length, c->handle};
	uint8_t *p = n->msg_tx.base + (uint64_t)slot * MSG_SLOT_BYTES;
	memory_fill(p, message_seed(&h), 0, length);
	memcpy(p, &h, sizeof(h));
	n->tx_slot_used[slot] = 1;
	n->messages[index] = (struct node_message){.conn = h.conn,
						   .sequence = h.sequence,
						   .length = length,
						   .slot = slot,
						   .peer = peer};
	struct record r = {.op = COMMAND_MSG_SEND, .token = node_token(n, TOKEN_MESSAGE, index)};
	r.msg.conn = h.conn;
	r.msg.length = length;
	r.msg.offset = (uint64_t)slot * MSG_SLOT_BYTES;
	node_command(n, &r);
	return index;
}

static void node_message_sent(struct node *n, const struct record *ev)
{
	uint32_t index = (uint32_t)ev->token;
	if (ev->token != node_token(n, TOKEN_MESSAGE, index) || index >= n->messages_count ||
	    n->messages[index].ended) {
		world_violation(n->world, "node %u: MSG_SENT for no message", n->index);
		return;
	}
	struct node_message *m = &n->messages[index];
	m->ended = true;
	m->acknowledged = ev->reason == REASON_NONE;
	n->tx_slot_used[m->slot] = 0;
	if (ev->msg.length != m->length || ev->msg.offset != (uint64_t)m->slot * MSG_SLOT_BYTES)
		world_violation(n->world, "node %u: MSG_SENT with another slot", n->index);
}

static void node_mark_delivered(struct node *n, const struct message_head *h)
{
	struct node *from = &n->world->nodes[h->from];
	for (uint32_t i = from->messages_count; i-- > 0;) {
		struct node_message *m = &from->messages[i];
		if (m->conn != h->conn || m->sequence != h->sequence || m->peer != n->index)
			continue;
		if (m->delivered)
			world_violation(n->world, "node %u: message %u twice", n->index, i);
		m->delivered = true;
		return;
	}
	world_violation(n->world, "node %u: a message that nobody sent", n->index);
}

static void node_message_arrived(struct node *n, const struct record *ev)
{
	struct node_conn *c = node_conn_find(n, ev->msg.conn);
	struct message_head h;
	if (!c || ev->msg.length < sizeof(h) || ev->msg.length > MSG_BYTES_MAX ||
	    ev->msg.offset % MSG_SLOT_BYTES || ev->msg.offset >= n->msg_rx.bytes) {
		world_violation(n->world, "node %u: malformed MSG event", n->index);
		return;
	}
	const uint8_t *p = n->msg_rx.base + ev->msg.offset;
	memcpy(&h, p, sizeof(h));
	if (h.length != ev->msg.length || h.from != c->peer || h.sequence != c->next_in)
		world_violation(n->world, "node %u: message %u of node %u instead of %u of node %u",
				n->index, h.sequence, h.from, c->next_in, c->peer);
	else if (memory_check(p, message_seed(&h), sizeof(h), h.length) != h.length)
		world_violation(n->world, "node %u: message with wrong bytes", n->index);
	else
		node_mark_delivered(n, &h);
	c->next_in++;
	n->msgs_delivered++;
	struct record r = {.op = COMMAND_MSG_FREE};
	r.msg = ev->msg;
	if (n->hold_messages && n->held_count < sizeof(n->held) / sizeof(n->held[0]))
		n->held[n->held_count++] = r;
	else
		node_command(n, &r);
}

void node_message_event(struct node *n, const struct record *ev)
{
	if (ev->op == EVENT_MSG)
		node_message_arrived(n, ev);
	else
		node_message_sent(n, ev);
}

void node_release(struct node *n)
{
	while (n->held_count)
		node_command(n, &n->held[--n->held_count]);
}
