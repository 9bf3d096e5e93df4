/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"
#include "gossip.h"
#include "join.h"

static void peers_watch_link(struct control *c, struct link *l);

void peers_carve(struct peers *p, struct arena *a, const struct control_config *config)
{
	p->nodes = arena_carve(a, sizeof(*p->nodes) * (config->nodes + MEMBERS_GUESTS));
	p->conns = arena_carve(a, sizeof(*p->conns) * config->conns_max * WORKERS_MAX);
	pool_carve(&p->links, a, sizeof(struct link), config->links_max);
}

void peers_init(struct control *c)
{
	for (uint32_t i = 0; i < c->config.nodes + MEMBERS_GUESTS; i++) {
		struct node *n = &c->cluster->peers.nodes[i];

		n->number = i;
		if (c->config.seeds_count == 0 && i < c->config.nodes)
			n->addr = c->config.addrs[i];
		n->workers = 1;
		list_init(&n->links);
		list_init(&n->calls);
	}
	/* without a number this node is a guest in its own table */
	c->cluster->self =
		&c->cluster->peers.nodes[c->config.node < c->config.nodes ? c->config.node
									  : c->config.nodes];
}

struct node *peers_node(struct control *c, uint32_t number)
{
	return number < c->config.nodes ? &c->cluster->peers.nodes[number] : NULL;
}

static struct conn *peers_conn_at(struct control *c, unsigned worker, uint32_t handle)
{
	if (worker >= WORKERS_MAX || handle_index(handle) >= c->config.conns_max)
		return NULL;
	return &c->cluster->peers.conns[worker * c->config.conns_max + handle_index(handle)];
}

struct conn *peers_conn(struct control *c, unsigned worker, uint32_t handle)
{
	struct conn *conn = peers_conn_at(c, worker, handle);

	return conn && handle != 0 && conn->handle == handle ? conn : NULL;
}

/* ---- links ------------------------------------------------------------------------------- */

/* Rails that both of us have. */
static uint32_t peers_rails(const struct control *c, const struct node *n)
{
	uint32_t ours = c->cluster->self->rails.count, theirs = n->rails.count;

	return 1 + (ours < theirs ? ours : theirs);
}

static struct net_addr peers_rail_addr(const struct node *n, uint32_t rail, unsigned worker)
{
	struct net_addr addr = rail == 0 ? n->addr : message_rail(&n->rails, rail);

	addr.port = (uint16_t)(addr.port + worker);
	return addr;
}

void peers_own_rails(struct control *c)
{
	struct message_rails *rails = &c->cluster->self->rails;

	rails->count = 0;
	for (uint32_t k = 1; k < c->dataplane.rails && k < RAILS_MAX; k++)
		message_add_rail(rails, &c->dataplane.rail[k].addr);
}

/* No packet goes from an IPv4 address to an IPv6 one. */
static bool peers_rail_fits(const struct control *c, const struct node *n, uint32_t rail)
{
	struct net_addr theirs = peers_rail_addr(n, rail, 0);

	return rail == 0 ||
	       net_addr_is_v4(&theirs) == net_addr_is_v4(&c->dataplane.rail[rail].addr);
}

static void peers_say_unlike(struct control *c, struct node *n, uint32_t rail)
{
	struct text t = {.length = 0};

	if (n->unlike >> rail & 1)
		return;
	n->unlike |= (uint8_t)(1u << rail);
	text_add(&t, "node ");
	text_add_number(&t, n->number);
	text_add(&t, ": rail ");
	text_add_number(&t, rail);
	text_add(&t, " is not used, its addresses here and there are of IPv4 and IPv6: give both "
		     "nodes' --port addresses of one family");
	env_log(c, CONTROL_LOG_WARNING, &t);
}

void peers_open_rails(struct control *c, struct conn *conn)
{
	const struct link *l = conn->link;
	uint32_t rails = peers_rails(c, l->node);

	conn->asked |= (uint8_t)(1u << conn->rail);
	for (uint32_t k = 0; k < rails; k++) {
		struct record r = {.op = COMMAND_PEER_OPEN, .flags = (uint8_t)k};

		if (conn->asked >> k & 1)
			continue;
		conn->asked |= (uint8_t)(1u << k);
		if (!peers_rail_fits(c, l->node, k)) {
			peers_say_unlike(c, l->node, k);
			continue;
		}
		r.peer.addr = peers_rail_addr(l->node, k, l->peer_worker);
		r.peer.of = conn->handle;
		commands_push(c, l->worker, &r);
	}
}

/* Opens by the first rail, after a failure by the others in turn. */
static void peers_open(struct control *c, struct link *l)
{
	uint32_t rail = l->attempts % peers_rails(c, l->node);
	struct record r = {.op = COMMAND_PEER_OPEN};

	if (!peers_rail_fits(c, l->node, rail))
		rail = 0;
	r.flags = (uint8_t)rail;
	r.token = pool_index(&c->cluster->peers.links, l) + 1;
	r.peer.addr = peers_rail_addr(l->node, rail, l->peer_worker);
	l->state = LINK_OPENING;
	l->wanted = false;
	commands_push(c, l->worker, &r);
}

/* The link is wanted: opens it, unless the pause after a failure is not over. */
static void peers_want(struct control *c, struct link *l)
{
	l->wanted = true;
	if (l->state == LINK_CLOSED && l->timer.position == 0 && c->attached)
		peers_open(c, l);
}

static void peers_fire(struct control *c, struct timer *t)
{
	struct link *l = list_item(t, struct link, timer);

	if (l->state == LINK_UP)
		handshake_greet(c, peers_conn(c, l->worker, l->conn));
	else if (l->state == LINK_CLOSED && l->wanted && c->attached)
		peers_open(c, l);
}

void peers_greet_later(struct control *c, struct link *l)
{
	timers_set(&c->timers, &l->timer, c->now_ns + PEERS_GREET_NS, peers_fire);
}

static struct link *peers_link_find(const struct node *n, unsigned worker, unsigned peer_worker)
{
	list_each(i, after, &n->links)
	{
		struct link *l = list_item(i, struct link, of_node);

		if (l->worker == worker && l->peer_worker == peer_worker)
			return l;
	}
	return NULL;
}

static struct link *peers_link_make(struct control *c, struct node *n, unsigned worker,
				    unsigned peer_worker)
{
	struct link *l = peers_link_find(n, worker, peer_worker);

	if (l)
		return l;
	l = pool_take(&c->cluster->peers.links);
	if (!l)
		return NULL;
	l->node = n;
	l->worker = (uint16_t)worker;
	l->peer_worker = (uint16_t)peer_worker;
	list_append(&n->links, &l->of_node);
	if (worker == 0 && peer_worker == 0)
		n->main = l;
	return l;
}

struct link *peers_link(struct control *c, struct node *n, unsigned worker, unsigned peer_worker)
{
	struct link *l = peers_link_make(c, n, worker, peer_worker);

	if (l && l->state != LINK_UP)
		peers_want(c, l);
	return l;
}

/* A configured directory shard keeps connected to all nodes, and all to it: else a new shard would
 * not hear of what they hold. A lost member is tried until it
 * answers or is dead: the coordinator of a reduce counts only on nodes that it can reach. */
static bool peers_needs(struct control *c, const struct link *l)
{
	const struct node *n = l->node;

	if (l != n->main)
		return wiring_link_wanted(c, l);
	if (!list_empty(&n->calls) || wiring_link_wanted(c, l) || gossip_watches(c, n))
		return true;
	if (c->config.shards > 0 &&
	    (ownership_is_shard(c, c->cluster->self) || ownership_is_shard(c, n)))
		return true;
	return n->state == NODE_DOWN && membership_live(n);
}

static void peers_link_lost(struct control *c, struct link *l)
{
	bool was_up = l->state == LINK_UP;

	l->state = LINK_CLOSED;
	l->conn = 0;
	if (join_is_guest(c, l->node)) {
		join_forget(c, l->node);
		return;
	}
	if (l == l->node->main && l->node->state == NODE_UP) {
		wiring_node_down(c, l->node);
		peers_sever(c, l->node); /* ends what remains of earlier connections */
	}
	l->wanted |= peers_needs(c, l);
	if (l->attempts < 16)
		l->attempts++;
	timers_set(&c->timers, &l->timer, c->now_ns + env_backoff(c, l->attempts), peers_fire);
	if (l == l->node->main)
		membership_lost(c, l->node);
	if (l == l->node->main && was_up)
		membership_cut_off(c);
}

void peers_unlink(struct control *c, struct node *n)
{
	list_each(i, after, &n->links)
	{
		struct link *l = list_item(i, struct link, of_node);

		timers_cancel(&c->timers, &l->timer);
		list_remove(&l->of_node);
		l->node = NULL;
		l->state = LINK_CLOSED;
		pool_give(&c->cluster->peers.links, l);
	}
	n->main = NULL;
}

/* ---- connections ------------------------------------------------------------------------- */

/* How likely the node is to be at its address: most if it is alive, then if it asks for a number,
 * then if it may come back. 0: not at all. */
static unsigned peers_claim(const struct node *n)
{
	if (membership_live(n))
		return 3;
	return n->guest ? 2 : n->member != MEMBER_NONE;
}

/* The base port of the node's rail at this address; 0: none is there. */
static uint16_t peers_port_at(const struct node *n, const struct net_addr *addr)
{
	for (uint32_t k = 0; k <= n->rails.count; k++) {
		struct net_addr base = peers_rail_addr(n, k, 0);

		if (memcmp(base.ip, addr->ip, sizeof(addr->ip)) == 0 && addr->port >= base.port &&
		    addr->port - base.port < WORKERS_MAX)
			return base.port;
	}
	return 0;
}

/* Which node has this address; its worker's number goes to *worker. */
static struct node *peers_by_addr(struct control *c, const struct net_addr *addr, unsigned *worker)
{
	struct node *found = NULL;
	uint16_t best = 0;

	for (uint32_t i = 0; i < c->config.nodes + MEMBERS_GUESTS; i++) {
		struct node *n = &c->cluster->peers.nodes[i];
		uint16_t port = peers_claim(n) == 0 ? 0 : peers_port_at(n, addr);

		if (port == 0)
			continue;
		if (found &&
		    (port < best || (port == best && peers_claim(n) <= peers_claim(found))))
			continue; /* several nodes at one address: the nearest base port */
		found = n;
		best = port;
		*worker = addr->port - port;
	}
	return found;
}

void peers_close_conn(struct control *c, unsigned worker, uint32_t handle)
{
	struct record r = {.op = COMMAND_PEER_CLOSE};

	r.peer.conn = handle;
	commands_push(c, worker, &r);
}

void peers_sever(struct control *c, const struct node *n)
{
	for (uint32_t i = 0; i < c->config.conns_max; i++) {
		struct conn *conn = &c->cluster->peers.conns[i];

		if (conn->handle == 0 || conn->link->node != n)
			continue;
		conn->hello = false;
		peers_close_conn(c, 0, conn->handle);
	}
}

void peers_readdress(struct control *c, struct node *n, const struct net_addr *addr)
{
	struct link *l = n->main;

	if (net_addr_equal(&n->addr, addr))
		return;
	n->addr = *addr;
	if (l && l->state == LINK_UP)
		peers_close_conn(c, 0, l->conn);
}

void peers_rebind(struct control *c, struct conn *conn, struct node *n)
{
	struct link *old = conn->link, *l = peers_link_make(c, n, 0, 0);

	if (!l || l == old)
		return;
	timers_cancel(&c->timers, &l->timer);
	l->state = LINK_UP;
	l->conn = conn->handle;
	l->attempts = 0;
	conn->link = l;
	l->watched = false;
	peers_watch_link(c, l);
	n->incarnation = conn->incarnation;
	timers_cancel(&c->timers, &old->timer);
	old->state = LINK_CLOSED;
	old->conn = 0;
	if (conn->owed)
		handshake_greet(c, conn);
	if (join_is_guest(c, old->node))
		join_forget(c, old->node);
}

static struct node *peers_newcomer(struct control *c, unsigned worker, const struct net_addr *addr)
{
	return c->cluster->members.dynamic && worker == 0 ? join_guest(c, addr) : NULL;
}

static void peers_watch_link(struct control *c, struct link *l)
{
	struct record r = {.op = COMMAND_PEER_WATCH};
	bool close = l->state == LINK_UP && c->config.watch_ns > 0 && gossip_is_next(c, l->node);

	if (l->state != LINK_UP || close == l->watched)
		return;
	l->watched = close;
	r.watch.conn = l->conn;
	r.watch.silence_ns = close ? c->config.watch_ns : 0;
	commands_push(c, l->worker, &r);
}

void peers_watch(struct control *c)
{
	for (uint32_t i = 0; i < c->cluster->peers.links.fresh; i++) {
		struct link *l = pool_at(&c->cluster->peers.links, i);

		if (l->node && l == l->node->main)
			peers_watch_link(c, l);
	}
}

/* Another path of a connection has come up, or gone. */
static void peers_path(struct control *c, unsigned worker, const struct record *r)
{
	struct conn *conn = peers_conn(c, worker, r->peer.of);
	uint8_t bit = (uint8_t)(1u << (r->flags % RAILS_MAX));

	if (!conn)
		return;
	if (r->op == EVENT_PEER_UP) {
		conn->asked |= bit;
		conn->paths |= bit;
	} else { /* or refused: the next HELLO asks again */
		conn->asked &= (uint8_t)~bit;
		conn->paths &= (uint8_t)~bit;
	}
}

static void peers_up(struct control *c, unsigned worker, const struct record *r)
{
	struct conn *conn = r->peer.conn ? peers_conn_at(c, worker, r->peer.conn) : NULL;
	unsigned peer_worker = 0;
	struct node *n = peers_by_addr(c, &r->peer.addr, &peer_worker);
	struct text t = {.length = 0};
	struct link *l;

	if (conn && conn->handle == r->peer.conn && conn->link->state == LINK_UP &&
	    conn->link->conn == r->peer.conn)
		return; /* it was up when it was asked for, and its HELLO has come */
	if (!n)
		n = peers_newcomer(c, worker, &r->peer.addr);
	l = n && n != c->cluster->self ? peers_link_make(c, n, worker, peer_worker) : NULL;
	if (!conn || !l) {
		text_add(&t, "closed a connection from ");
		text_add_addr(&t, &r->peer.addr);
		text_add(&t, n ? ": the table of links is full" : ": no node of the list is there");
		env_log(c, CONTROL_LOG_WARNING, &t);
		peers_close_conn(c, worker, r->peer.conn);
		return;
	}
	*conn = (struct conn){.handle = r->peer.conn,
			      .link = l,
			      .incarnation = r->peer.incarnation,
			      .mtu = r->peer.mtu,
			      .rtt_us = r->peer.rtt_us,
			      .rail = r->flags % RAILS_MAX,
			      .paths = (uint8_t)(1u << (r->flags % RAILS_MAX))};
	if (r->peer.incarnation > n->incarnation)
		linkstats_forget(&c->cluster->links, n->number);
	if (r->peer.rtt_us > 0)
		linkstats_saw_hop(&c->cluster->links, n->number, UINT64_C(500) * r->peer.rtt_us);
	if (l == n->main)
		membership_reached(c);
	l->state = LINK_UP;
	l->conn = r->peer.conn;
	l->attempts = 0;
	timers_cancel(&c->timers, &l->timer);
	l->watched = false;
	if (l == n->main) {
		peers_watch_link(c, l);
		n->incarnation = r->peer.incarnation;
		handshake_greeting(c, l->conn, MESSAGE_ANNOUNCE_NONE);
	} else {
		peers_open_rails(c, conn);
		wiring_link_up(c, n);
	}
}

static void peers_down(struct control *c, unsigned worker, const struct record *r)
{
	struct conn *conn = peers_conn(c, worker, r->peer.conn);
	struct link *l = NULL;

	if (conn) {
		l = conn->link;
		conn->handle = 0;
		if (l->state == LINK_UP && l->conn == r->peer.conn)
			peers_link_lost(c, l);
		return;
	}
	if (r->token == 0 || r->token > c->cluster->peers.links.fresh)
		return;
	l = pool_at(&c->cluster->peers.links, (uint32_t)r->token - 1);
	if (l->state == LINK_OPENING && l->worker == worker)
		peers_link_lost(c, l);
}

static void peers_silent(struct control *c, unsigned worker, const struct record *r)
{
	const struct conn *conn = peers_conn(c, worker, r->peer.conn);

	if (conn && conn->link == conn->link->node->main)
		gossip_miss(c, conn->link->node);
}

void peers_event(struct control *c, unsigned worker, const struct record *r)
{
	if (r->peer.of != 0)
		peers_path(c, worker, r);
	else if (r->op == EVENT_PEER_UP)
		peers_up(c, worker, r);
	else if (r->op == EVENT_PEER_SILENT)
		peers_silent(c, worker, r);
	else
		peers_down(c, worker, r);
}

void peers_detach(struct control *c)
{
	memset(c->cluster->peers.conns, 0,
	       sizeof(*c->cluster->peers.conns) * c->config.conns_max * WORKERS_MAX);
	for (uint32_t i = 0; i < c->cluster->peers.links.fresh; i++) {
		struct link *l = pool_at(&c->cluster->peers.links, i);

		if (l->state != LINK_CLOSED)
			peers_link_lost(c, l);
	}
}

/* Opens now, without the rest of the pause. */
static void peers_open_now(struct control *c, struct link *l)
{
	if (l->state == LINK_UP)
		return;
	l->attempts = 0;
	timers_cancel(&c->timers, &l->timer);
	if (l->state == LINK_OPENING || l->wanted || peers_needs(c, l))
		peers_open(c, l);
}

void peers_back(struct control *c, struct node *n)
{
	if (!c->attached)
		return;
	list_each(i, after, &n->links) peers_open_now(c, list_item(i, struct link, of_node));
}

void peers_attach(struct control *c)
{
	join_attach(c);
	for (uint32_t i = 0; i < c->cluster->peers.links.fresh; i++) {
		struct link *l = pool_at(&c->cluster->peers.links, i);

		if (l->node)
			peers_open_now(c, l);
	}
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = peers_node(c, i);

		if (n != c->cluster->self && c->config.shards > 0 &&
		    (ownership_is_shard(c, c->cluster->self) || ownership_is_shard(c, n)))
			peers_link(c, n, 0, 0);
	}
	gossip_connect(c);
}
