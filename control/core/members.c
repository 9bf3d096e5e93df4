/* SPDX-License-Identifier: BSD-3-Clause */
#include <xxhash.h>
#include "state.h"

void members_carve(struct members *m, struct arena *a, const struct control_config *config)
{
	m->live = arena_carve(a, sizeof(*m->live) * config->nodes);
	m->before = arena_carve(a, sizeof(*m->before) * config->nodes);
}

bool members_live(const struct node *n)
{
	return n->member == MEMBER_ALIVE || n->member == MEMBER_SUSPECT;
}

bool members_joined(const struct control *c)
{
	return !join_is_guest(c, c->self);
}

bool members_known(const struct node *n)
{
	return n->member > MEMBER_ALIVE || (n->member == MEMBER_ALIVE && n->member_incarnation > 0);
}

uint64_t members_life(const struct control *c, const struct node *n)
{
	return n->life + c->members.life;
}

void members_describe(const struct node *n, struct message_member *out)
{
	*out = (struct message_member){.node = n->number,
				       .state = n->member,
				       .incarnation = n->member_incarnation,
				       .addr = n->addr};
}

static uint64_t members_mark(const struct node *n)
{
	uint64_t words[3] = {n->number, n->member, n->member_incarnation};

	return members_known(n) ? XXH3_64bits(words, sizeof(words)) : 0;
}

void members_record(struct control *c, struct node *n, uint64_t incarnation,
		    enum member_state state)
{
	bool counts = !join_is_guest(c, n);

	c->members.digest ^= counts ? members_mark(n) : 0;
	n->member = (uint8_t)state;
	n->member_incarnation = incarnation;
	c->members.digest ^= counts ? members_mark(n) : 0;
}

uint64_t members_digest(const struct control *c)
{
	return c->members.digest;
}

/* ---- the view: who lives ----------------------------------------------------------------- */

/* Returns whether it is another than before. */
static bool members_view(struct control *c)
{
	struct members *m = &c->members;
	uint32_t *live = m->before, count = 0;
	bool settled = c->now_ns >= m->changed_ns + c->config.settle_ns;

	/* what came during an unfinished change counts as moved altogether */
	uint32_t before_count = settled ? m->live_count : 0;

	for (uint32_t i = 0; i < c->config.nodes; i++)
		count += members_live(&c->peers.nodes[i]);
	if (count == m->live_count) {
		uint32_t same = 0;

		while (same < count && members_live(&c->peers.nodes[m->live[same]]))
			same++;
		if (same == count)
			return false;
	}
	count = 0;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = &c->peers.nodes[i];

		if (!members_live(n))
			continue;
		n->position = count;
		live[count++] = i;
	}
	m->before = m->live;
	m->before_count = before_count;
	m->live = live;
	m->live_count = count;
	memset(m->owner, 0, sizeof(m->owner));
	m->changed_ns = c->now_ns;
	return true;
}

void members_pump(struct control *c)
{
	if (c->members.changed) {
		c->members.changed = false;
		if (members_view(c))
			gossip_connect(c);
		reshard(c);
		graves_sweep(c);
	}
	if (!list_empty(&c->members.news))
		gossip_flood(c);
}

/* ---- one report --------------------------------------------------------------------------- */

static void members_suspicion_fire(struct control *c, struct timer *t);

static void members_gone(struct control *c, struct node *n)
{
	n->probed_ns = 0;
	if (n->state == NODE_UP)
		control_node_down(c, n);
	if (n->member == MEMBER_DEAD) {
		peers_sever(c, n); /* it may think that it still waits here: it must ask again */
		directory_node_dead(&c->directory, n->number, true);
		fetch_node_dead(c, n);
	}
	if (n->member != MEMBER_LEFT)
		return;
	timers_cancel(&c->timers, &n->forget);
	directory_node_forget(&c->directory, n->number);
}

/* Whether it lived when the view was made. */
static bool members_viewed(const struct control *c, const struct node *n)
{
	return n->position < c->members.live_count && c->members.live[n->position] == n->number;
}

static void members_set(struct control *c, struct node *n, uint64_t incarnation,
			enum member_state state)
{
	bool was = members_live(n), rose = incarnation > n->member_incarnation;
	struct members *m = &c->members;

	members_record(c, n, incarnation, state);
	if (rose) {
		n->life++;
		if (n != c->self && !join_is_guest(c, n))
			directory_node_doubt(&c->directory, n->number);
	}
	if (rose && !members_live(n) && incarnation > 1)
		m->life++; /* a life that we never saw: its part of the directory was in between */
	if (was && !members_live(n) && !members_viewed(c, n))
		m->life++; /* others may have acted on a life that we did not */
	if (!was && members_live(n) && !join_is_guest(c, n))
		directory_node_dead(&c->directory, n->number, false);
	timers_cancel(&c->timers, &n->suspicion);
	if (state == MEMBER_SUSPECT)
		timers_set(&c->timers, &n->suspicion, c->now_ns + c->config.suspect_ns,
			   members_suspicion_fire);
	if (was && !members_live(n))
		members_gone(c, n);
	m->changed |= rose || was != members_live(n);
	if (!list_linked(&n->news))
		list_append(&m->news, &n->news);
}

static void members_suspicion_fire(struct control *c, struct timer *t)
{
	struct node *n = list_item(t, struct node, suspicion);

	if (!c->attached) /* it is we who cannot reach anybody */
		timers_set(&c->timers, t, c->now_ns + c->config.suspect_ns, members_suspicion_fire);
	else if (n->member == MEMBER_SUSPECT)
		members_leave(c, n, n->member_incarnation, MEMBER_DEAD);
	else if (n->member == MEMBER_ALIVE && n->state != NODE_UP)
		members_suspect(c, n);
}

void members_lost(struct control *c, struct node *n)
{
	if (n->member == MEMBER_ALIVE && n->suspicion.position == 0 && n != c->self)
		timers_set(&c->timers, &n->suspicion, c->now_ns + c->config.probe_ns,
			   members_suspicion_fire);
}

/* ---- the source of news ------------------------------------------------------------------- */

void members_join(struct control *c, struct node *n, const struct net_addr *addr,
		  uint64_t incarnation)
{
	if (incarnation < n->member_incarnation ||
	    (incarnation == n->member_incarnation && n->member != MEMBER_NONE))
		return;
	if (addr)
		n->addr = *addr;
	members_set(c, n, incarnation, MEMBER_ALIVE);
}

void members_suspect(struct control *c, struct node *n)
{
	if (n->member == MEMBER_ALIVE && n != c->self)
		members_set(c, n, n->member_incarnation, MEMBER_SUSPECT);
}

void members_leave(struct control *c, struct node *n, uint64_t incarnation, enum member_state state)
{
	if (incarnation > n->member_incarnation ||
	    (incarnation == n->member_incarnation && state > n->member))
		members_set(c, n, incarnation, state);
}

/* ---- what others say ---------------------------------------------------------------------- */

static void members_fence(struct control *c, const struct message_member *m)
{
	struct text t = {.length = 0};

	if (c->members.fenced)
		return;
	c->members.fenced = true;
	text_add(&t, "number ");
	text_add_number(&t, m->node);
	text_add(&t, " belongs to ");
	text_add_addr(&t, &m->addr);
	text_add(&t, " now: start this node with --node auto, or with a free number");
	control_log(c, CONTROL_LOG_ERROR, &t);
}

/* Somebody thinks that we are not what we are: a higher incarnation outdoes that. */
static void members_refute(struct control *c, const struct message_member *m)
{
	struct node *self = c->self;
	bool better = m->incarnation == self->member_incarnation && m->state == MEMBER_ALIVE;

	if (m->incarnation < self->member_incarnation || better || c->members.left)
		return;
	if (c->members.dynamic && !net_addr_equal(&m->addr, &self->addr)) {
		if (m->state <= MEMBER_SUSPECT)
			members_fence(c, m);
		return;
	}
	c->counters.members_refuted++;
	members_set(c, self, m->incarnation + 1, MEMBER_ALIVE);
	peers_hello_all(c);
}

void members_take(struct control *c, const struct message_member *m)
{
	struct node *n = peers_node(c, m->node);

	if (n == NULL || (!c->members.dynamic && !net_addr_equal(&m->addr, &n->addr))) {
		c->counters.members_strange++;
		return;
	}
	if (n == c->self) {
		members_refute(c, m);
		return;
	}
	if (m->incarnation < n->member_incarnation ||
	    (m->incarnation == n->member_incarnation && m->state <= n->member))
		return;
	if (c->members.dynamic && !net_addr_equal(&m->addr, &n->addr))
		peers_readdress(c, n, &m->addr);
	members_set(c, n, m->incarnation, (enum member_state)m->state);
}

bool members_hello(struct control *c, struct node *n, const struct message_hello *h)
{
	if (h->incarnation > n->member_incarnation) {
		members_join(c, n, NULL, h->incarnation);
		return true;
	}
	if (h->incarnation == n->member_incarnation && n->member == MEMBER_ALIVE)
		return true;
	gossip_entry(c, n, n); /* it says a higher one, when it lives */
	if (h->incarnation == n->member_incarnation && n->member == MEMBER_SUSPECT)
		return true;
	c->counters.members_stale++;
	return false;
}

void members_init(struct control *c)
{
	struct members *m = &c->members;

	list_init(&m->news);
	m->dynamic = c->config.seeds_count > 0;
	m->seeds_count = c->config.seeds_count;
	if (m->dynamic)
		memcpy(m->seeds, c->config.seeds, sizeof(m->seeds[0]) * m->seeds_count);
	for (uint32_t i = 0; i < c->config.nodes && !m->dynamic; i++)
		c->peers.nodes[i].member = MEMBER_ALIVE; /* presumed */
	members_record(c, c->self, c->config.incarnation ? c->config.incarnation : 1, MEMBER_ALIVE);
	m->changed_ns = c->now_ns;
	m->life = c->self->member_incarnation;
	members_view(c);
	m->before_count = 0;
}
