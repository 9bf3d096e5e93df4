/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HELLO, the first message of a connection: who the node is. Messages before it are dropped. Called
 * by dispatch.c and peers.c.
 */
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"
#include "gossip.h"
#include "join.h"
#include "loopback.h"

static bool handshake_say(struct control *c, uint32_t conn, unsigned announce, uint32_t assigned)
{
	struct message m = {.kind = MESSAGE_HELLO, .losses = c->cluster->losses};

	m.hello.node = membership_joined(c) ? c->cluster->self->number : MESSAGE_NODE_NONE;
	m.hello.assigned = assigned;
	m.hello.incarnation = c->cluster->self->member_incarnation;
	m.hello.digest = membership_digest(c);
	m.hello.version = MESSAGE_VERSION;
	m.hello.workers = c->workers;
	m.hello.rails = c->cluster->self->rails;
	m.hello.announce = announce;
	m.hello.store_incarnation = c->cluster->self->store_incarnation;
	c->counters.messages_out++;
	if (c->ops.send(c->ops.arg, conn, &m))
		return true;
	c->counters.messages_lost++;
	return false;
}

/* Sends the HELLOs that are owed; retries soon when no message slot is free. (Closing the
 * connection would not help: the next one would have as many messages to send.) Requests leave
 * after the first HELLO, as the peer drops those before it. */
void handshake_greet(struct control *c, struct conn *conn)
{
	for (; conn->owed; conn->owed &= conn->owed - 1)
		if (!handshake_say(c, conn->handle, (unsigned)__builtin_ctz(conn->owed),
				   MESSAGE_NODE_NONE)) {
			peers_greet_later(c, conn->link);
			return;
		}
	if (conn->greeted)
		return;
	conn->greeted = true;
	rpc_resend(c, conn->link->node);
}

void handshake_greeting(struct control *c, uint32_t handle, enum message_announce announce)
{
	struct conn *conn = peers_conn(c, 0, handle);

	conn->owed |= 1u << announce;
	handshake_greet(c, conn);
}

void peers_give(struct control *c, uint32_t conn, uint32_t number)
{
	if (!handshake_say(c, conn, MESSAGE_ANNOUNCE_NONE, number))
		peers_close_conn(c, 0, conn); /* it asks again */
}

void handshake_hello_all(struct control *c)
{
	for (uint32_t i = 0; i < c->cluster->peers.links.fresh; i++) {
		const struct link *l = pool_at(&c->cluster->peers.links, i);

		if (l->node && l == l->node->main && l->state == LINK_UP)
			handshake_greeting(c, l->conn, MESSAGE_ANNOUNCE_NONE);
	}
}

void handshake_joined(struct control *c)
{
	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (&c->cluster->peers.nodes[i] != c->cluster->self &&
		    c->cluster->peers.nodes[i].state == NODE_UP)
			wiring_node_up(c, &c->cluster->peers.nodes[i]);
	wiring_node_up(c, c->cluster->self);
	wiring_node_known(c, c->cluster->self);
	handshake_hello_all(c);
	gossip_connect(c);
}

void handshake_refuse(struct control *c, struct conn *conn, const struct message_hello *hello,
		      const char *why)
{
	const struct node *n = conn->link->node;
	struct text t = {.length = 0};

	c->counters.hello_refused++;
	text_add(&t, "closed the connection with ");
	text_add_addr(&t, &n->addr);
	text_add(&t, ": it says node ");
	text_add_number(&t, hello->node);
	text_add(&t, " of protocol ");
	text_add_number(&t, hello->version);
	text_add(&t, ": ");
	text_add(&t, why);
	env_log(c, CONTROL_LOG_WARNING, &t);
	peers_close_conn(c, 0, conn->handle);
}

/* Handles the announcement state in a HELLO, and asks for an announcement if the shard here does
 * not know the node's objects. */
static void handshake_meet(struct control *c, const struct conn *conn, struct node *n,
			   const struct message_hello *h)
{
	if (h->announce == MESSAGE_ANNOUNCE_ASK) {
		n->epoch++;
		wiring_announce_asked(c, n);
		handshake_greeting(c, conn->handle, MESSAGE_ANNOUNCE_BEGUN);
	}
	if (h->announce == MESSAGE_ANNOUNCE_BEGUN && ownership_is_shard(c, c->cluster->self))
		wiring_node_known(c, n);
	if (!wiring_node_up(c, n) && h->announce == MESSAGE_ANNOUNCE_NONE)
		handshake_greeting(c, conn->handle, MESSAGE_ANNOUNCE_ASK);
}

/* Takes what a node says of its losses. Only its HELLO may take a number back: an older message can
 * come late. */
static void handshake_losses(struct control *c, struct node *n, uint64_t losses, bool hello)
{
	if (losses == n->losses || (!hello && losses < n->losses))
		return;
	n->losses = losses;
	wiring_losses(c, n);
}

static void handshake_take(struct control *c, struct conn *conn, const struct message *m)
{
	const struct message_hello *h = &m->hello;
	struct node *n = conn->link->node;
	bool late = conn->named && !conn->hello;

	if (h->version != MESSAGE_VERSION) {
		handshake_refuse(c, conn, h, "run programs of one version");
		return;
	}
	if (h->node != n->number)
		n = join_hello(c, conn, h);
	if (!n)
		return;
	conn->named = true;
	if (!membership_hello(c, n, h))
		return;
	conn->hello = true;
	gossip_heard(c, n);
	handshake_losses(c, n, m->losses, true);
	n->workers = h->workers;
	n->rails = h->rails;
	peers_open_rails(c, conn);
	if (n->store_incarnation && n->store_incarnation != h->store_incarnation)
		n->died = false; /* it has forgotten all */
	n->store_incarnation = h->store_incarnation;
	if (h->assigned != MESSAGE_NODE_NONE)
		join_assigned(c, h->assigned);
	handshake_meet(c, conn, n, h);
	if (late) /* an earlier HELLO was refused, with what it asked: let the node repeat it */
		handshake_greeting(c, conn->handle, MESSAGE_ANNOUNCE_NONE);
	if (h->digest != membership_digest(c))
		gossip_table(c, n);
}

struct node *handshake_message(struct control *c, uint32_t handle, const struct message *m)
{
	struct conn *conn = peers_conn(c, 0, handle);
	struct node *n;

	if (!conn) {
		c->counters.messages_unknown_conn++;
		peers_close_conn(c, 0,
				 handle); /* of an earlier control process: the peer reopens */
		return NULL;
	}
	if (m->kind == MESSAGE_HELLO) {
		handshake_take(c, conn, m);
		return NULL;
	}
	n = conn->link->node;
	if (conn->named && !membership_live(n) &&
	    c->now_ns - n->corrected_ns >= c->config.gossip_ns) {
		n->corrected_ns = c->now_ns;
		gossip_entry(c, n, n);
	}
	/* nodes that consider each other dead must be able to exchange MEMBERS */
	if (!conn->hello && !(conn->named && m->kind == MESSAGE_MEMBERS)) {
		c->counters.messages_before_hello++;
		return NULL;
	}
	gossip_heard(c, n);
	handshake_losses(c, n, m->losses, false);
	return n;
}

/* Sends a message with what this node says of its losses. Only a node that has some copies it. */
static bool peers_send_stamped(struct control *c, uint32_t handle, const struct message *m)
{
	struct message stamped;

	if (m->losses == c->cluster->losses)
		return c->ops.send(c->ops.arg, handle, m);
	stamped = *m;
	stamped.losses = c->cluster->losses;
	return c->ops.send(c->ops.arg, handle, &stamped);
}

bool peers_send(struct control *c, struct node *n, const struct message *m)
{
	const struct conn *conn;
	struct link *l;

	if (n == c->cluster->self)
		return loopback_push(c, m);
	l = peers_link(c, n, 0, 0);
	conn = l && l->state == LINK_UP ? peers_conn(c, 0, l->conn) : NULL;
	if (!conn || !conn->greeted)
		return false;
	c->counters.messages_out++;
	if (peers_send_stamped(c, l->conn, m))
		return true;
	c->counters.messages_lost++;
	return false;
}
