/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gossip: spreads reports about members, and detects dead ones. The live members form a ring by
 * number. Each is connected with the nodes 1, 2, 4, 8, ... positions away: about 2 log2 N
 * connections, and news crosses the cluster in log2 N hops. A node passes news on once. Once a
 * second it probes one of the nodes it watches; a probe also compares the tables.
 *
 * The dataplane watches the two neighbours in the ring, and reports silence. A node that misses
 * another, by such a report, an unanswered probe or a lost connection, asks three others to probe
 * it, and makes it suspect if none of them hears from it. A wrong suspicion costs a refutation, and
 * a new announcement of all objects to the refuting node.
 */
#include "core/base/env.h"
#include "state.h"
#include "gossip.h"
#include "join.h"

/* News right after other news waits for so long, and is passed on together with what follows: when
 * a whole cluster starts, each node is news to each. */

enum { GOSSIP_HELPERS = 3 };

static bool gossip_power(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

bool gossip_watches(const struct control *c, const struct node *n)
{
	uint32_t count = c->cluster->members.live_count, up;

	if (n == c->cluster->self || !membership_live(n) || !membership_live(c->cluster->self) ||
	    join_is_guest(c, n) || !membership_joined(c) || n->position >= count)
		return false;
	up = (n->position + count - c->cluster->self->position) % count;
	return gossip_power(up) || gossip_power(count - up);
}

bool gossip_is_next(const struct control *c, const struct node *n)
{
	uint32_t count = c->cluster->members.live_count, up;

	if (!gossip_watches(c, n))
		return false;
	up = (n->position + count - c->cluster->self->position) % count;
	return up == 1 || up == count - 1;
}

/* Visits each watched node once. */
static void gossip_each(struct control *c, void (*visit)(struct control *c, struct node *n))
{
	uint32_t count = c->cluster->members.live_count;

	if (!membership_joined(c) || !membership_live(c->cluster->self))
		return;
	for (uint32_t step = 1; step < count; step *= 2) {
		uint32_t up = (c->cluster->self->position + step) % count;
		uint32_t down = (c->cluster->self->position + count - step) % count;

		visit(c, peers_node(c, c->cluster->members.live[up]));
		/* if count - step is a power of two, another step reaches that node upwards */
		if (!gossip_power(count - step))
			visit(c, peers_node(c, c->cluster->members.live[down]));
	}
}

static void gossip_link(struct control *c, struct node *n)
{
	peers_link(c, n, 0, 0);
}

void gossip_connect(struct control *c)
{
	if (!c->attached)
		return;
	gossip_each(c, gossip_link);
	peers_watch(c);
}

/* ---- messages ----------------------------------------------------------------------------- */

static bool gossip_reaches(struct control *c, const struct node *n)
{
	struct conn *conn;

	if (n == c->cluster->self || !n->main || n->main->state != LINK_UP)
		return false;
	conn = peers_conn(c, 0, n->main->conn);
	return conn && conn->hello;
}

static void gossip_send(struct control *c, struct node *n, enum message_members_step step,
			uint32_t count)
{
	struct message m = {.kind = MESSAGE_MEMBERS};

	if (n == c->cluster->self || !n->main || n->main->state != LINK_UP)
		return;
	m.members.digest = membership_digest(c);
	m.members.step = step;
	m.members.count = count;
	m.members.members = c->cluster->members.page;
	peers_send(c, n, &m);
}

void gossip_entry(struct control *c, struct node *to, const struct node *about)
{
	membership_describe(about, &c->cluster->members.page[0]);
	gossip_send(c, to, MESSAGE_MEMBERS_NEWS, 1);
}

void gossip_taken(struct control *c, struct node *to, const struct node *about,
		  uint64_t incarnation)
{
	membership_describe(about, &c->cluster->members.page[0]);
	if (c->cluster->members.page[0].incarnation <= incarnation)
		c->cluster->members.page[0].incarnation = incarnation + 1;
	gossip_send(c, to, MESSAGE_MEMBERS_NEWS, 1);
}

void gossip_table(struct control *c, struct node *n)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < c->config.nodes; i++) {
		if (membership_known(peers_node(c, i)))
			membership_describe(peers_node(c, i), &c->cluster->members.page[count++]);
		if (count < MESSAGE_MEMBERS_MAX && (i + 1 < c->config.nodes || count == 0))
			continue;
		gossip_send(c, n, MESSAGE_MEMBERS_TABLE, count);
		count = 0;
	}
}

static void gossip_pass_one(struct control *c, struct node *n)
{
	if (gossip_reaches(c, n))
		gossip_send(c, n, MESSAGE_MEMBERS_NEWS, c->cluster->members.page_count);
}

/* Sends the page of news to all watched nodes. */
static void gossip_pass(struct control *c, uint32_t count)
{
	c->cluster->members.page_count = count;
	gossip_each(c, gossip_pass_one);
	for (uint32_t i = 0; i < count;
	     i++) { /* suspects get the page, too, so that they can refute it */
		struct node *n = peers_node(c, c->cluster->members.page[i].node);

		if (n->member >= MEMBER_SUSPECT && gossip_reaches(c, n) && !gossip_watches(c, n))
			gossip_send(c, n, MESSAGE_MEMBERS_NEWS, count);
	}
}

static void gossip_flood_fire(struct control *c, struct timer *t)
{
	gossip_flood(c);
}

void gossip_flood(struct control *c)
{
	struct members *m = &c->cluster->members;
	struct list *l;
	uint32_t count = 0;

	if (m->flooded_ns != 0 && c->now_ns - m->flooded_ns < GOSSIP_GATHER_NS && !m->left) {
		if (m->flood.position == 0)
			timers_set(&c->timers, &m->flood, m->flooded_ns + GOSSIP_GATHER_NS,
				   gossip_flood_fire);
		return;
	}
	m->flooded_ns = c->now_ns;
	while ((l = list_first(&c->cluster->members.news))) {
		list_remove(l);
		membership_describe(list_item(l, struct node, news),
				    &c->cluster->members.page[count++]);
		if (count < MESSAGE_MEMBERS_MAX && !list_empty(&c->cluster->members.news))
			continue;
		gossip_pass(c, count);
		count = 0;
	}
}

void gossip_probe(struct control *c, struct node *n)
{
	if (c->now_ns - n->corrected_ns < c->config.gossip_ns / 4)
		return;
	n->corrected_ns = c->now_ns;
	gossip_send(c, n, MESSAGE_MEMBERS_PROBE, 0);
}

/* ---- is it there? ------------------------------------------------------------------------- */

/* Asks members that may reach it on another path: a few of those that we watch, from a random one
 * on. */
static void gossip_ask(struct control *c, const struct node *about)
{
	uint32_t count = c->cluster->members.live_count, asked = 0, steps = 0, draw;

	while ((uint64_t)1 << steps < count)
		steps++;
	draw = (uint32_t)env_random(c);
	for (uint32_t k = 0; k < 2 * steps && asked < GOSSIP_HELPERS; k++) {
		uint32_t s = (draw + k) % (2 * steps);
		uint32_t at = s < steps ? UINT32_C(1) << s : count - (UINT32_C(1) << (s - steps));
		struct node *n = peers_node(
			c, c->cluster->members.live[(c->cluster->self->position + at) % count]);

		if (n == about || !gossip_reaches(c, n))
			continue;
		membership_describe(about, &c->cluster->members.page[0]);
		gossip_send(c, n, MESSAGE_MEMBERS_ASK, 1);
		asked++;
	}
}

/* [G9.1] */
void gossip_miss(struct control *c, struct node *n)
{
	if (n == c->cluster->self || n->member != MEMBER_ALIVE || n->missed ||
	    !membership_joined(c))
		return;
	n->missed = true;
	c->counters.members_missed++;
	gossip_send(c, n, MESSAGE_MEMBERS_PROBE, 0);
	gossip_ask(c, n);
	membership_doubt(c, n);
}

void gossip_heard(struct control *c, struct node *n)
{
	n->probed_ns = 0;
	if (n->missed)
		membership_trust(c, n);
	for (int k = 0; k < 2; k++) {
		struct node *requester = n->asked_by[k] ? peers_node(c, n->asked_by[k] - 1) : NULL;

		n->asked_by[k] = 0;
		if (!requester || c->now_ns - n->asked_ns > c->config.gossip_ns)
			continue;
		membership_describe(n, &c->cluster->members.page[0]);
		gossip_send(c, requester, MESSAGE_MEMBERS_HEARD, 1);
	}
}

/* MEMBERS_ASK: the requester misses a member. Probes that member, and reports an answer. */
static void gossip_asked(struct control *c, struct node *requester, const struct message_member *m)
{
	struct node *n = peers_node(c, m->node);
	int k;

	if (!n || n == requester || !membership_live(n))
		return;
	n->asked_ns = c->now_ns;
	k = n->asked_by[0] != 0 && n->asked_by[0] != requester->number + 1;
	n->asked_by[k] = requester->number + 1;
	if (n == c->cluster->self) {
		gossip_heard(c, n);
		return;
	}
	peers_link(c, n, 0, 0); /* if there is none: its HELLO will do */
	gossip_send(c, n, MESSAGE_MEMBERS_PROBE, 0);
}

static void gossip_heard_by_another(struct control *c, const struct message_member *m)
{
	struct node *n = peers_node(c, m->node);

	if (n && n->missed)
		membership_trust(c, n);
}

void gossip_take(struct control *c, struct node *n, const struct message_members *m)
{
	bool differs, deaf = false;

	if (m->step == MESSAGE_MEMBERS_ASK || m->step == MESSAGE_MEMBERS_HEARD) {
		for (uint32_t i = 0; i < m->count && i < GOSSIP_HELPERS; i++)
			if (m->step == MESSAGE_MEMBERS_ASK)
				gossip_asked(c, n, &m->members[i]);
			else
				gossip_heard_by_another(c, &m->members[i]);
		return;
	}
	for (uint32_t i = 0; i < m->count; i++) {
		membership_take(c, &m->members[i]);
		deaf |= m->members[i].node == c->cluster->self->number &&
			m->members[i].state == MEMBER_DEAD;
	}
	if (deaf) /* it dropped all messages after our HELLO; one that refutes has just left */
		rpc_resend(c, n);
	differs = m->digest != membership_digest(c);
	if (m->step == MESSAGE_MEMBERS_PROBE)
		gossip_send(c, n, MESSAGE_MEMBERS_ANSWER, 0);
	if (m->step == MESSAGE_MEMBERS_PROBE || m->step == MESSAGE_MEMBERS_ANSWER)
		if (differs)
			gossip_table(c, n);
}

/* ---- once in a while ---------------------------------------------------------------------- */

static void gossip_overdue(struct control *c, struct node *n)
{
	if (n->probed_ns == 0 || c->now_ns - n->probed_ns < c->config.silence_ns)
		return;
	n->probed_ns = 0;
	gossip_miss(c, n);
}

/* Probes a random one of the watched nodes. */
static void gossip_probe_one(struct control *c)
{
	uint32_t count = c->cluster->members.live_count, steps = 0, draw;
	struct node *n;

	while ((uint64_t)1 << steps < count)
		steps++;
	if (steps == 0 || !membership_joined(c) || !membership_live(c->cluster->self))
		return;
	draw = (uint32_t)(env_random(c) % (2 * steps));
	draw = draw < steps ? (UINT32_C(1) << draw) : count - (UINT32_C(1) << (draw - steps));
	n = peers_node(c, c->cluster->members.live[(c->cluster->self->position + draw) % count]);
	if (!gossip_reaches(c, n))
		return;
	if (n->probed_ns == 0)
		n->probed_ns = c->now_ns;
	gossip_send(c, n, MESSAGE_MEMBERS_PROBE, 0);
}

/* Connects to a random dead member: so a partition is found to be over. */
static void gossip_try_dead(struct control *c)
{
	uint32_t dead = 0, draw;

	for (uint32_t i = 0; i < c->config.nodes; i++)
		dead += peers_node(c, i)->member == MEMBER_DEAD;
	if (dead == 0)
		return;
	draw = (uint32_t)(env_random(c) % dead);
	for (uint32_t i = 0; i < c->config.nodes; i++)
		if (peers_node(c, i)->member == MEMBER_DEAD && draw-- == 0)
			peers_link(c, peers_node(c, i), 0, 0);
}

static void gossip_fire(struct control *c, struct timer *t)
{
	uint64_t pause = c->config.gossip_ns;

	if (c->attached && !c->cluster->members.left) {
		gossip_each(c, gossip_overdue);
		gossip_probe_one(c);
		gossip_try_dead(c);
		join_tick(c);
	}
	timers_set(&c->timers, t, c->now_ns + pause / 2 + env_random(c) % pause, gossip_fire);
}

void gossip_start(struct control *c)
{
	if (c->config.nodes > 1 && c->cluster->members.tick.position == 0)
		timers_set(&c->timers, &c->cluster->members.tick,
			   c->now_ns + c->config.gossip_ns / 4, gossip_fire);
}
