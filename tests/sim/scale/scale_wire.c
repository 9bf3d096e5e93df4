/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between the modelled nodes, and the messages on them. */
#include "scale.h"

#include <assert.h>
#include <stdlib.h>
#include "engine.h"
#include "rpc/codec.h"

#define WIRE_RETRY_NS	  (25 * SCALE_MS) /* of a HELLO; doubles */
#define WIRE_RETRY_MAX_NS (250 * SCALE_MS)

struct wire_message {
	struct scale_node *from, *to;
	uint32_t conn; /* the receiver's */
	uint32_t length;
	uint8_t bytes[];
};

static uint32_t wire_node_of(const struct scale *s, const struct net_addr *addr)
{
	uint32_t i = (uint32_t)addr->ip[13] << 16 | (uint32_t)addr->ip[14] << 8 | addr->ip[15];
	return i < s->o.nodes ? i : UINT32_MAX;
}

double scale_link_ns(const struct scale *s, uint64_t bytes)
{
	return (double)bytes * 8 / s->o.rate_gbit;
}

struct scale_conn *scale_conn_find(struct scale_node *n, uint32_t handle)
{
	struct scale_conn *c = &n->conns[handle_index(handle)];
	return handle && handle_index(handle) < n->s->config.conns_max && c->handle == handle
		       ? c
		       : NULL;
}

/* ---- coming and going --------------------------------------------------------------------- */

static struct scale_conn *wire_conn(struct scale_node *n, uint32_t peer)
{
	uint16_t index = n->conn_of[peer];
	struct scale_conn *c;
	if (index)
		return &n->conns[index - 1];
	if (n->conns_used == n->s->config.conns_max)
		return NULL;
	index = (uint16_t)n->conns_used++;
	c = &n->conns[index];
	*c = (struct scale_conn){.handle = handle_make(index, 1), .peer = peer};
	n->conn_of[peer] = (uint16_t)(index + 1);
	return c;
}

static void wire_tell(struct scale_node *n, struct scale_conn *c, uint8_t op, uint16_t reason)
{
	const struct scale_node *peer = &n->s->nodes[c->peer];
	struct record r = {.op = op, .reason = reason, .token = c->token};
	r.peer.addr = peer->addr;
	r.peer.conn = c->handle;
	r.peer.incarnation = 1;
	r.peer.mtu = n->s->o.mtu;
	r.peer.workers = 1;
	r.peer.rtt_us = (uint32_t)(2 * n->s->o.hop_ns / 1000);
	scale_event(n, &r);
}

static void wire_down(struct scale_node *n, struct scale_conn *c, uint16_t reason)
{
	uint16_t index = handle_index(c->handle);
	scale_flow_lost(n, c->handle, reason);
	wire_tell(n, c, EVENT_PEER_DOWN, reason);
	/* a connection to the same peer gets the same index, with another generation */
	*c = (struct scale_conn){
		.handle = handle_make(index, handle_next_generation(handle_generation(c->handle))),
		.peer = c->peer};
}

static void wire_up(struct scale_node *n, struct scale_conn *c)
{
	if (c->up)
		return;
	c->up = true;
	c->opening = false;
	c->tries = 0;
	wire_tell(n, c, EVENT_PEER_UP, 0);
	c->token = 0;
}

/* As cookie_budget(): so many newcomers a second, some at once. */
static bool wire_accepts(struct scale_node *n)
{
	uint64_t each_ns = SCALE_S / n->s->o.accepts_per_s, now = scale_now(n->s);
	uint64_t burst_ns = each_ns * n->s->o.accepts_burst;
	uint64_t floor_ns = now > burst_ns ? now - burst_ns : 0;
	if (n->accept_spent_ns < floor_ns)
		n->accept_spent_ns = floor_ns;
	if (n->accept_spent_ns + each_ns > now)
		return false;
	n->accept_spent_ns += each_ns;
	return true;
}

static uint64_t wire_pair(uint32_t from, uint32_t to)
{
	return (uint64_t)from << 32 | to;
}

static void wire_opened(void *context, uint64_t pair)
{
	struct scale *s = context;
	struct scale_node *n = &s->nodes[pair >> 32], *peer = &s->nodes[(uint32_t)pair];
	if (n->dead || peer->dead || !n->conn_of[peer->index] || !peer->conn_of[n->index])
		return;
	wire_up(n, wire_conn(n, peer->index));
}

static void wire_hello(void *context, uint64_t pair);

static void wire_resend(struct scale_node *n, struct scale_conn *c)
{
	uint64_t pause = WIRE_RETRY_NS << (c->tries < 6 ? c->tries : 6);
	c->tries++;
	pause = pause > WIRE_RETRY_MAX_NS ? WIRE_RETRY_MAX_NS : pause;
	events_add(&n->s->events, scale_now(n->s) + pause, wire_hello, n->s,
		   wire_pair(n->index, c->peer));
}

/* The HELLO with the cookie has reached the acceptor: three hops after the opener began. */
static void wire_hello(void *context, uint64_t pair)
{
	struct scale *s = context;
	struct scale_node *n = &s->nodes[pair >> 32], *peer = &s->nodes[(uint32_t)pair];
	struct scale_conn *c = wire_conn(n, peer->index), *other;
	if (n->dead || !c || c->up || !c->opening)
		return;
	if (peer->dead) {
		if (c->tries * WIRE_RETRY_NS > s->o.dead_ns)
			wire_down(n, c, REASON_PEER_TIMEOUT);
		else
			wire_resend(n, c);
		return;
	}
	other = wire_conn(peer, n->index);
	if (!other || (!other->up && !other->opening && !wire_accepts(peer))) {
		s->hellos_refused++;
		wire_resend(n, c);
		return;
	}
	wire_up(peer, other);
	events_add(&s->events, scale_now(s) + s->o.hop_ns, wire_opened, s, pair);
}

void scale_peer_open(struct scale_node *n, const struct record *r)
{
	uint32_t peer = wire_node_of(n->s, &r->peer.addr);
	struct scale_conn *c = peer == UINT32_MAX ? NULL : wire_conn(n, peer);
	if (!c) {
		struct record down = {
			.op = EVENT_PEER_DOWN, .token = r->token, .reason = REASON_FULL};
		scale_event(n, &down);
		return;
	}
	c->token = r->token;
	if (c->up) { /* there already */
		wire_tell(n, c, EVENT_PEER_UP, 0);
		return;
	}
	if (c->opening)
		return;
	c->opening = true;
	c->tries = 0;
	events_add(&n->s->events, scale_now(n->s) + 3 * n->s->o.hop_ns, wire_hello, n->s,
		   wire_pair(n->index, peer));
}

static void wire_closed(void *context, uint64_t pair)
{
	struct scale *s = context;
	struct scale_node *n = &s->nodes[pair >> 32];
	struct scale_conn *c = &n->conns[n->conn_of[(uint32_t)pair] - 1];
	if (!n->dead && c->up)
		wire_down(n, c, REASON_PEER_CLOSED);
}

void scale_peer_close(struct scale_node *n, uint32_t handle)
{
	struct scale_conn *c = scale_conn_find(n, handle);
	if (!c || !c->up)
		return;
	if (n->s->nodes[c->peer].conn_of[n->index])
		events_add(&n->s->events, scale_now(n->s) + n->s->o.hop_ns, wire_closed, n->s,
			   wire_pair(c->peer, n->index));
	wire_down(n, c, REASON_CLOSED);
}

static void wire_silent(void *context, uint64_t pair)
{
	struct scale *s = context;
	struct scale_node *n = &s->nodes[pair >> 32];
	struct scale_conn *c = &n->conns[n->conn_of[(uint32_t)pair] - 1];
	if (!n->dead && c->up)
		wire_down(n, c, REASON_PEER_TIMEOUT);
}

void scale_die(struct scale_node *n)
{
	struct scale *s = n->s;
	n->dead = true;
	scale_flow_die(n);
	for (uint32_t i = 0; i < n->conns_used; i++)
		if (n->conns[i].up)
			events_add(&s->events, scale_now(s) + s->o.dead_ns, wire_silent, s,
				   wire_pair(n->conns[i].peer, n->index));
}

/* ---- messages ----------------------------------------------------------------------------- */

static void wire_acked(void *context, uint64_t node)
{
	struct scale *s = context;
	s->nodes[node].slots_used--;
}

static void wire_arrived(void *context, uint64_t argument)
{
	struct wire_message *w = context;
	struct scale *s = w->to->s;
	(void)argument;
	events_add(&s->events, scale_now(s) + s->o.hop_ns, wire_acked, s, w->from->index);
	if (!w->to->dead && scale_conn_find(w->to, w->conn))
		scale_message(w->to, w->conn, w->bytes, w->length);
	free(w);
}

void scale_wire_close(struct scale *s)
{
	for (size_t i = 0; i < s->events.count; i++)
		if (s->events.heap[i].run == wire_arrived)
			free(s->events.heap[i].context);
}

bool scale_send(void *arg, uint32_t conn, const struct message *m)
{
	struct scale_node *n = arg;
	struct scale *s = n->s;
	struct scale_conn *c = scale_conn_find(n, conn);
	struct wire_message *w;
	struct scale_node *to;
	uint64_t now = scale_now(s), packets;
	size_t length;
	if (!c || !c->up || n->slots_used == MSG_SLOTS) {
		n->messages_refused++;
		return false;
	}
	length = codec_encode(m, s->scratch, s->packet, MSG_BYTES_MAX);
	assert(length);
	n->messages[m->kind]++;
	n->message_bytes[m->kind] += length;
	to = &s->nodes[c->peer];
	w = malloc(sizeof(*w) + length);
	assert(w && to->conn_of[n->index]);
	w->from = n;
	w->to = to;
	w->conn = to->conns[to->conn_of[n->index] - 1].handle;
	w->length = (uint32_t)length;
	memcpy(w->bytes, s->packet, length);
	packets = (length + s->chunk_bytes - 1) / s->chunk_bytes;
	n->link_free_ns = n->link_free_ns < now ? now : n->link_free_ns;
	n->link_free_ns += (uint64_t)scale_link_ns(s, length + 100 * packets);
	n->slots_used++;
	events_add(&s->events, n->link_free_ns + s->o.hop_ns, wire_arrived, w, 0);
	return true;
}
