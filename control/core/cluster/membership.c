/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <xxhash.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"
#include "gossip.h"
#include "join.h"
#include "settle.h"

void membership_carve(struct members *m, struct arena *a, const struct control_config *config)
{
	m->live = arena_carve(a, sizeof(*m->live) * config->nodes);
	m->before = arena_carve(a, sizeof(*m->before) * config->nodes);
}

bool membership_live(const struct node *n)
{
	return n->member >= MEMBER_ALIVE && n->member <= MEMBER_RESTING;
}

bool membership_minority(const struct control *c)
{
	uint32_t live = 0, dead = 0;

	for (uint32_t i = 0; i < c->config.nodes; i++) {
		live += membership_live(&c->cluster->peers.nodes[i]);
		dead += c->cluster->peers.nodes[i].member == MEMBER_DEAD;
	}
	return dead > 0 && live <= dead;
}

uint64_t membership_down_ms(void *arg, uint32_t node)
{
	struct control *c = arg;
	const struct node *n = peers_node(c, node);

	return n && n->member == MEMBER_DEAD ? (c->now_ns - n->dead_ns) / 1000000 + 1 : 0;
}

bool membership_joined(const struct control *c)
{
	return !join_is_guest(c, c->cluster->self);
}

bool membership_known(const struct node *n)
{
	return n->member > MEMBER_ALIVE || (n->member == MEMBER_ALIVE && n->member_incarnation > 0);
}

uint64_t membership_epoch(const struct control *c, const struct node *n)
{
	return n->epoch + c->cluster->members.epoch;
}

void membership_describe(const struct node *n, struct message_member *out)
{
	*out = (struct message_member){.node = n->number,
				       .state = n->member,
				       .incarnation = n->member_incarnation,
				       .addr = n->addr,
				       .rails = n->rails};
}

static uint64_t membership_mark(const struct node *n)
{
	uint64_t words[3] = {n->number, n->member, n->member_incarnation};

	return membership_known(n) ? XXH3_64bits(words, sizeof(words)) : 0;
}

void membership_record(struct control *c, struct node *n, uint64_t incarnation,
		       enum member_state state)
{
	bool counts = !join_is_guest(c, n);

	assert(incarnation >= n->member_incarnation);
	c->cluster->members.digest ^= counts ? membership_mark(n) : 0;
	c->cluster->members.view ^= counts ? settle_mark(n) : 0;
	n->member = (uint8_t)state;
	n->member_incarnation = incarnation;
	c->cluster->members.digest ^= counts ? membership_mark(n) : 0;
	c->cluster->members.view ^= counts ? settle_mark(n) : 0;
}

uint64_t membership_digest(const struct control *c)
{
	return c->cluster->members.digest;
}

/* ---- the view: who lives ----------------------------------------------------------------- */

static void membership_seen(struct control *c, bool settled)
{
	struct members *m = &c->cluster->members;

	for (uint32_t i = 0; settled && i < c->config.nodes; i++)
		c->cluster->peers.nodes[i].seen = false;
	for (uint32_t i = 0; i < m->live_count; i++)
		c->cluster->peers.nodes[m->live[i]].seen = true;
	m->seen |= settled;
}

/* Makes the view of the live members. Returns whether it has changed. */
static bool membership_view(struct control *c)
{
	struct members *m = &c->cluster->members;
	uint32_t *live = m->before, count = 0;
	bool settled = m->settled;

	/* a change before the last one has settled: all ids count as moved */
	uint32_t before_count = settled ? m->live_count : 0;

	for (uint32_t i = 0; i < c->config.nodes; i++)
		count += membership_live(&c->cluster->peers.nodes[i]);
	if (count == m->live_count) {
		uint32_t same = 0;

		while (same < count && membership_live(&c->cluster->peers.nodes[m->live[same]]))
			same++;
		if (same == count)
			return false;
	}
	membership_seen(c, settled);
	count = 0;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = &c->cluster->peers.nodes[i];

		if (!membership_live(n))
			continue;
		n->position = count;
		live[count++] = i;
	}
	m->before = m->live;
	m->before_count = before_count;
	m->live = live;
	assert(count <= c->config.nodes);
	m->live_count = count;
	memset(m->owner, 0, sizeof(m->owner));
	m->changed_ns = c->now_ns;
	settle_begin(c);
	return true;
}

void membership_pump(struct control *c)
{
	if (c->cluster->members.changed) {
		c->cluster->members.changed = false;
		if (membership_view(c))
			gossip_connect(c);
		settle_look(c);
		wiring_view_changed(c);
	}
	if (!list_empty(&c->cluster->members.news))
		gossip_flood(c);
}

/* ---- one report --------------------------------------------------------------------------- */

static void membership_suspicion_fire(struct control *c, struct timer *t);

static void membership_gone(struct control *c, struct node *n)
{
	assert(!membership_live(n));
	n->probed_ns = 0;
	if (n->state == NODE_UP)
		wiring_node_down(c, n);
	rpc_gone(c, n);
	wiring_node_ended(c, n);
	if (n->member == MEMBER_DEAD) {
		peers_sever(c, n); /* its open requests here end: it must send them again */
		c->cluster->dead_ns = n->dead_ns = c->now_ns;
		n->died = true;
		wiring_node_dead(c, n);
	}
	wiring_node_gone(c, n);
}

/* Whether the node was alive when the view was made. */
static bool membership_viewed(const struct control *c, const struct node *n)
{
	return n->position < c->cluster->members.live_count &&
	       c->cluster->members.live[n->position] == n->number;
}

/* Logs what operators look for: deaths, departures and returns. */
static void membership_say(struct control *c, const struct node *n, bool was,
			   enum member_state before)
{
	bool live = membership_live(n);
	struct text t = {.length = 0};

	if (n == c->cluster->self || before == MEMBER_NONE ||
	    (was == live && n->member != MEMBER_RESTING))
		return;
	text_add(&t, "node ");
	text_add_number(&t, n->number);
	text_add(&t, n->member == MEMBER_RESTING ? " restarts its control"
		     : live			 ? " is back"
		     : n->member == MEMBER_LEFT	 ? " has left"
						 : " is taken for dead: nobody reaches it");
	env_log(c, live || n->member == MEMBER_LEFT ? CONTROL_LOG_INFO : CONTROL_LOG_WARNING, &t);
}

static void membership_set(struct control *c, struct node *n, uint64_t incarnation,
			   enum member_state state)
{
	enum member_state before = n->member;
	bool was = membership_live(n), rose = incarnation > n->member_incarnation;
	bool known = membership_known(n), returned = rose && known && n != c->cluster->self;
	struct members *m = &c->cluster->members;

	membership_record(c, n, incarnation, state);
	membership_say(c, n, was, before);
	if (before != MEMBER_DEAD && state == MEMBER_DEAD) {
		n->dead_ns = c->now_ns;
		wiring_node_away(c, n, !known);
	}
	c->counters.members_died += was && state == MEMBER_DEAD;
	n->died |= returned; /* it has refuted a suspicion, or has restarted */
	if (rose) {
		n->epoch++;
		wiring_node_reborn(c, n);
	}
	if (rose && !membership_live(n))
		m->epoch++; /* an incarnation that began and ended unseen: it owned ids in between
			     */
	if (was && !membership_live(n) && !membership_viewed(c, n))
		m->epoch++; /* other members may have given it ids, this node did not */
	if (!was && membership_live(n) && !join_is_guest(c, n)) {
		wiring_node_back(c, n);
		peers_back(c, n);
	}
	timers_cancel(&c->timers, &n->suspicion);
	n->missed = false;
	if (state == MEMBER_SUSPECT || state == MEMBER_RESTING)
		timers_set(&c->timers, &n->suspicion,
			   c->now_ns + (state == MEMBER_SUSPECT ? c->config.suspect_ns
								: c->config.rest_ns),
			   membership_suspicion_fire);
	if (was && !membership_live(n))
		membership_gone(c, n);
	m->changed |= rose || was != membership_live(n);
	if (rose && n == c->cluster->self) { /* all ids may have had other owners since */
		m->before_count = 0;
		settle_begin(c);
	}
	if (!list_linked(&n->news))
		list_append(&m->news, &n->news);
}

static void membership_suspicion_fire(struct control *c, struct timer *t)
{
	struct node *n = list_item(t, struct node, suspicion);

	/* This node cannot reach anybody, or has not run: the suspect's answer may wait here. */
	if (!c->attached || c->now_ns - t->at_ns > MEMBERS_LATE_NS)
		timers_set(&c->timers, t, c->now_ns + c->config.suspect_ns,
			   membership_suspicion_fire);
	else if (n->member == MEMBER_SUSPECT || n->member == MEMBER_RESTING)
		membership_leave(c, n, n->member_incarnation, MEMBER_DEAD);
	else if (n->missed)
		membership_suspect(c, n);
	else if (n->state != NODE_UP)
		gossip_miss(c, n);
}

void membership_doubt(struct control *c, struct node *n)
{
	timers_set(&c->timers, &n->suspicion, c->now_ns + c->config.confirm_ns,
		   membership_suspicion_fire);
}

void membership_trust(struct control *c, struct node *n)
{
	n->missed = false;
	timers_cancel(&c->timers, &n->suspicion);
}

void membership_lost(struct control *c, struct node *n)
{
	if (n->member == MEMBER_ALIVE && n->suspicion.position == 0 && n != c->cluster->self)
		timers_set(&c->timers, &n->suspicion, c->now_ns + c->config.probe_ns,
			   membership_suspicion_fire);
}

void membership_cut_off(struct control *c)
{
	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (&c->cluster->peers.nodes[i] != c->cluster->self &&
		    c->cluster->peers.nodes[i].state == NODE_UP)
			return;
	c->cluster->members.cut_off = true;
}

void membership_reached(struct control *c)
{
	bool owns =
		c->config.shards == 0 && membership_joined(c) && membership_live(c->cluster->self);

	if (c->cluster->members.cut_off && owns) {
		membership_set(c, c->cluster->self, c->cluster->self->member_incarnation + 1,
			       MEMBER_ALIVE);
		handshake_hello_all(
			c); /* on present connections the last HELLO may have been refused */
	}
	c->cluster->members.cut_off = false;
}

/* ---- the source of news ------------------------------------------------------------------- */

void membership_join(struct control *c, struct node *n, const struct net_addr *addr,
		     uint64_t incarnation)
{
	if (incarnation < n->member_incarnation ||
	    (incarnation == n->member_incarnation && n->member != MEMBER_NONE))
		return;
	if (addr)
		n->addr = *addr;
	membership_set(c, n, incarnation, MEMBER_ALIVE);
}

void membership_suspect(struct control *c, struct node *n)
{
	if (n->member == MEMBER_ALIVE && n != c->cluster->self)
		membership_set(c, n, n->member_incarnation, MEMBER_SUSPECT);
}

void membership_leave(struct control *c, struct node *n, uint64_t incarnation,
		      enum member_state state)
{
	if (incarnation > n->member_incarnation ||
	    (incarnation == n->member_incarnation && state > n->member))
		membership_set(c, n, incarnation, state);
}

void membership_say_end(struct control *c, enum member_state state)
{
	c->cluster->members.left = true;
	if (!membership_joined(c))
		return;
	membership_record(c, c->cluster->self, c->cluster->self->member_incarnation, state);
	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (peers_node(c, i)->state == NODE_UP)
			gossip_entry(c, peers_node(c, i), c->cluster->self);
}

/* ---- what others say ---------------------------------------------------------------------- */

/* [G9.2] */
static void membership_fence(struct control *c, const struct message_member *m)
{
	struct text t = {.length = 0};

	if (c->cluster->members.fenced)
		return;
	c->cluster->members.fenced = true;
	text_add(&t, "number ");
	text_add_number(&t, m->node);
	text_add(&t, " belongs to ");
	text_add_addr(&t, &m->addr);
	text_add(&t, " now: start this node with --node auto, or with a free number");
	env_log(c, CONTROL_LOG_ERROR, &t);
}

/* A report of this node that is wrong: refutes it with a higher incarnation. */
static void membership_refute(struct control *c, const struct message_member *m)
{
	struct node *self = c->cluster->self;
	bool better = m->incarnation == self->member_incarnation && m->state == MEMBER_ALIVE;

	if (m->incarnation < self->member_incarnation || better || c->cluster->members.left)
		return;
	if (c->cluster->members.dynamic && !net_addr_equal(&m->addr, &self->addr)) {
		if (m->state <= MEMBER_SUSPECT)
			membership_fence(c, m);
		return;
	}
	c->counters.members_refuted++;
	self->died |= m->state == MEMBER_DEAD;
	membership_set(c, self, m->incarnation + 1, MEMBER_ALIVE);
	handshake_hello_all(c);
}

/* A report that a node is dead makes it suspect here, if it lives here: so it has time to refute.
 * Members that saw it die have reported the suspicion before. A node that returns from a partition
 * takes all others for dead. */
static enum member_state membership_believe(const struct node *n, const struct message_member *m)
{
	return m->state == MEMBER_DEAD && membership_live(n) ? MEMBER_SUSPECT
							     : (enum member_state)m->state;
}

void membership_take(struct control *c, const struct message_member *m)
{
	struct node *n = peers_node(c, m->node);
	enum member_state state;

	if (!n || (!c->cluster->members.dynamic && !net_addr_equal(&m->addr, &n->addr))) {
		c->counters.members_strange++;
		return;
	}
	if (n == c->cluster->self) {
		membership_refute(c, m);
		return;
	}
	state = membership_believe(n, m);
	if (m->incarnation < n->member_incarnation ||
	    (m->incarnation == n->member_incarnation && state <= n->member))
		return;
	if (c->cluster->members.dynamic && !net_addr_equal(&m->addr, &n->addr))
		peers_readdress(c, n, &m->addr);
	n->rails = m->rails;
	membership_set(c, n, m->incarnation, state);
}

bool membership_hello(struct control *c, struct node *n, const struct message_hello *h)
{
	if (h->incarnation > n->member_incarnation) {
		membership_join(c, n, NULL, h->incarnation);
		return true;
	}
	if (h->incarnation == n->member_incarnation && n->member == MEMBER_ALIVE)
		return true;
	gossip_entry(c, n, n); /* if it lives, it refutes that with a higher incarnation */
	if (h->incarnation == n->member_incarnation && n->member == MEMBER_SUSPECT)
		return true;
	c->counters.members_stale++;
	return false;
}

void membership_init(struct control *c)
{
	struct members *m = &c->cluster->members;

	list_init(&m->news);
	m->dynamic = c->config.seeds_count > 0;
	m->seeds_count = c->config.seeds_count;
	if (m->dynamic)
		memcpy(m->seeds, c->config.seeds, sizeof(m->seeds[0]) * m->seeds_count);
	for (uint32_t i = 0; i < c->config.nodes && !m->dynamic; i++)
		c->cluster->peers.nodes[i].member = MEMBER_ALIVE; /* presumed */
	membership_record(c, c->cluster->self, c->config.incarnation ? c->config.incarnation : 1,
			  MEMBER_ALIVE);
	m->changed_ns = c->now_ns;
	m->epoch = c->cluster->self->member_incarnation;
	membership_view(c);
	m->before_count = 0;
}
