/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers for new nodes. Seed i of S seeds has number i, and assigns i + S, i + 2 S, ...: so two
 * seeds never assign the same number, even if they cannot see each other. A node that comes back
 * from the same address gets its old number. A node whose HELLO has no number yet is a guest.
 */
#include "core/base/env.h"
#include "state.h"
#include "gossip.h"
#include "join.h"

bool join_is_guest(const struct control *c, const struct node *n)
{
	return n >= &c->cluster->peers.nodes[c->config.nodes];
}

struct node *join_guest(struct control *c, const struct net_addr *addr)
{
	struct node *free = NULL;

	for (uint32_t i = 1; i < MEMBERS_GUESTS; i++) {
		struct node *g = &c->cluster->peers.nodes[c->config.nodes + i];

		if (g->guest && net_addr_equal(&g->addr, addr))
			return g;
		if (!g->guest && !free)
			free = g;
	}
	if (!free)
		return NULL;
	free->guest = true;
	free->reserved = 0;
	free->addr = *addr;
	free->workers = 1;
	return free;
}

void join_forget(struct control *c, struct node *guest)
{
	peers_unlink(c, guest);
	guest->guest = false;
	guest->state = NODE_UNKNOWN;
}

/* ---- giving ------------------------------------------------------------------------------- */

static uint32_t join_seed_index(const struct control *c, const struct net_addr *addr)
{
	uint32_t i = 0;

	while (i < c->cluster->members.seeds_count &&
	       !net_addr_equal(&c->cluster->members.seeds[i], addr))
		i++;
	return i;
}

/* A seed that has just started may not know yet which numbers are taken: it waits until it has had
 * the time to hear from those that live. */
static bool join_may_give(const struct control *c)
{
	return membership_joined(c) && !c->cluster->members.left && !c->cluster->members.fenced &&
	       join_seed_index(c, &c->cluster->self->addr) < c->cluster->members.seeds_count &&
	       c->now_ns >= c->cluster->members.begun_ns + c->config.join_ns;
}

static bool join_is_reserved(const struct control *c, uint32_t number)
{
	for (uint32_t i = 1; i < MEMBERS_GUESTS; i++)
		if (c->cluster->peers.nodes[c->config.nodes + i].guest &&
		    c->cluster->peers.nodes[c->config.nodes + i].reserved == number + 1)
			return true;
	return false;
}

static uint32_t join_number(struct control *c, const struct net_addr *addr)
{
	uint32_t step = c->cluster->members.seeds_count, dead = MESSAGE_NODE_NONE;

	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (peers_node(c, i)->member != MEMBER_NONE &&
		    net_addr_equal(&peers_node(c, i)->addr, addr))
			return i;
	for (uint32_t i = join_seed_index(c, &c->cluster->self->addr) + step; i < c->config.nodes;
	     i += step) {
		const struct node *n = peers_node(c, i);

		if (join_is_reserved(c, i))
			continue;
		if (n->member == MEMBER_NONE)
			return i;
		if (!membership_live(n) && dead == MESSAGE_NODE_NONE)
			dead = i;
	}
	return dead;
}

static void join_give(struct control *c, const struct conn *conn, struct node *from)
{
	uint32_t number = join_seed_index(c, &from->addr);

	if (from->guest && from->reserved)
		number = from->reserved - 1;
	else if (number >= c->cluster->members.seeds_count)
		number = join_may_give(c) ? join_number(c, &from->addr) : MESSAGE_NODE_NONE;
	if (number == MESSAGE_NODE_NONE || number == c->cluster->self->number)
		return; /* it asks again */
	if (from->guest)
		from->reserved = number + 1;
	peers_give(c, conn->handle, number);
}

/* Why a node cannot have that number, or NULL. */
static const char *join_refuses(struct control *c, const struct node *from, uint32_t number)
{
	const struct node *n = peers_node(c, number);

	if (!c->cluster->members.dynamic)
		return "the list of nodes has another number there";
	if (!n)
		return "there is no such number";
	if (n == c->cluster->self || (membership_live(n) && !net_addr_equal(&n->addr, &from->addr)))
		return "the number is another node's";
	if (!join_is_guest(c, from) && membership_live(from))
		return "it has another number";
	return NULL;
}

struct node *join_hello(struct control *c, struct conn *conn, const struct message_hello *h)
{
	struct node *from = conn->link->node, *n;
	const char *why;

	if (h->node == MESSAGE_NODE_NONE && c->cluster->members.dynamic) {
		join_give(c, conn, from);
		return NULL;
	}
	why = join_refuses(c, from, h->node);
	n = peers_node(c, h->node);
	if (why && c->cluster->members.dynamic && n &&
	    (n == c->cluster->self || membership_live(n)) &&
	    !net_addr_equal(&n->addr, &from->addr)) {
		gossip_taken(c, from, n, h->incarnation); /* the node logs that, and stops */
		conn->named = false;
		c->counters.hello_refused++;
		return NULL;
	}
	if (why) {
		handshake_refuse(c, conn, h, why);
		return NULL;
	}
	peers_readdress(c, n, &from->addr);
	peers_rebind(c, conn, n);
	return n;
}

/* ---- taking ------------------------------------------------------------------------------- */

void join_assigned(struct control *c, uint32_t number)
{
	struct node *guest = c->cluster->self, *self = peers_node(c, number);

	if (membership_joined(c) || !self || self->state == NODE_UP)
		return;
	self->addr = guest->addr;
	self->workers = guest->workers;
	self->rails = guest->rails;
	self->incarnation = guest->incarnation;
	self->store_incarnation = guest->store_incarnation;
	self->state = NODE_UP;
	c->cluster->self = self;
	c->config.node = number;
	if (self->member_incarnation >= guest->member_incarnation)
		guest->member_incarnation = self->member_incarnation + 1;
	membership_record(c, self, self->member_incarnation, MEMBER_NONE);
	membership_join(c, self, NULL, guest->member_incarnation);
	membership_pump(c);
	handshake_joined(c);
}

void join_attach(struct control *c)
{
	uint32_t seed;

	if (!c->cluster->members.dynamic)
		return;
	c->cluster->self->addr = c->dataplane.addr;
	seed = join_seed_index(c, &c->cluster->self->addr);
	if (!membership_joined(c) && seed < c->cluster->members.seeds_count)
		join_assigned(c, seed);
	join_tick(c);
}

static bool join_is_known(struct control *c, const struct net_addr *addr)
{
	if (net_addr_equal(addr, &c->cluster->self->addr))
		return true;
	for (uint32_t i = 0; i < c->cluster->members.live_count; i++)
		if (net_addr_equal(&peers_node(c, c->cluster->members.live[i])->addr, addr))
			return true;
	return false;
}

/* Without a number: asks each seed. With one: connects to a random seed that is no known member, as
 * it may be in another part of the cluster. */
void join_tick(struct control *c)
{
	uint32_t count = c->cluster->members.seeds_count, draw;

	if (!c->cluster->members.dynamic)
		return;
	draw = (uint32_t)(env_random(c) % count);
	for (uint32_t i = 0; i < count; i++) {
		const struct net_addr *addr = &c->cluster->members.seeds[i];
		struct node *g;

		if ((membership_joined(c) && i != draw) || join_is_known(c, addr))
			continue;
		g = join_guest(c, addr);
		if (g)
			peers_link(c, g, 0, 0);
	}
	if (!membership_joined(c))
		handshake_hello_all(c);
}
