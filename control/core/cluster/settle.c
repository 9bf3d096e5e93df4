/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a shard owner knows all objects of its ids. A change of the live members gives ids to new
 * owners. Holders announce their objects to them, and end with ANNOUNCED, which names their view of
 * the members (store/resync.c). The owner is settled when every live member has sent ANNOUNCED for
 * the owner's own view. A member that dies changes the view.
 *
 *   unsettled   --ANNOUNCED of every live member, of this view-->  settled
 *   unsettled   --settle_max_ns-->                             settled, and counted (settles_cut)
 *   either      --the live members change-->                   unsettled
 *   either      --a new incarnation of this node-->            unsettled, for all ids
 *
 * This node takes a new incarnation after another node suspected it or took it for dead, and after
 * it had no connection at all: its ids may have had other owners, which let objects be created. A
 * view is a digest of the live members and their incarnations. Incarnations only rise, so no view
 * comes twice, and an ANNOUNCED of one view is never taken for another.
 */
#include <xxhash.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"
#include "settle.h"

uint64_t settle_mark(const struct node *n)
{
	uint64_t words[3] = {n->number, membership_live(n), n->member_incarnation};

	return n->member_incarnation || n->member > MEMBER_ALIVE
		       ? XXH3_64bits_withSeed(words, sizeof(words), 1)
		       : 0;
}

static void settle_end(struct control *c)
{
	c->cluster->members.settled = true;
	timers_cancel(&c->timers, &c->cluster->members.settle);
}

/* Whether no member sends ANNOUNCED with a view: a node alone, or configured owners. */
static bool settle_by_time(const struct control *c)
{
	return c->config.shards > 0 || c->cluster->members.live_count < 2 || !membership_joined(c);
}

static void settle_say(struct control *c)
{
	struct text t = {.length = 0};
	uint32_t missing = MESSAGE_NODE_NONE;

	for (uint32_t i = 0; i < c->cluster->members.live_count && missing == MESSAGE_NODE_NONE;
	     i++)
		if (!peers_node(c, c->cluster->members.live[i])->heard)
			missing = c->cluster->members.live[i];
	text_add(&t, "node ");
	text_add_number(&t, missing);
	text_add(&t, c->cluster->members.unheard > 1 ? " and others have" : " has");
	text_add(&t, " not told in time all that it holds: an id of those may be taken again");
	env_log(c, CONTROL_LOG_WARNING, &t);
}

static void settle_fire(struct control *c, struct timer *t)
{
	if (!settle_by_time(c)) {
		c->counters.settles_cut++;
		settle_say(c);
	}
	c->cluster->members.settled = true;
}

/* Counts the members that have sent ANNOUNCED for this view. [G1.9] */
void settle_look(struct control *c)
{
	struct members *m = &c->cluster->members;

	for (uint32_t i = 0; i < m->live_count && !m->settled; i++)
		settle_heard(c, peers_node(c, m->live[i]), 0);
}

/* [G3.3] */
void settle_begin(struct control *c)
{
	struct members *m = &c->cluster->members;

	for (uint32_t i = 0; i < c->config.nodes; i++)
		c->cluster->peers.nodes[i].heard = false;
	m->settled = false;
	wiring_unsettled(c);
	m->unheard = m->live_count;
	timers_set(&c->timers, &m->settle,
		   c->now_ns + (settle_by_time(c) ? c->config.settle_ns : c->config.settle_max_ns),
		   settle_fire);
}

void settle_heard(struct control *c, struct node *n, uint64_t view)
{
	struct members *m = &c->cluster->members;

	if (view)
		n->heard_view = view;
	if (m->settled || m->changed || n->heard || n->heard_view != m->view ||
	    !membership_live(n) || settle_by_time(c))
		return;
	n->heard = true;
	m->unheard--;
	if (m->unheard == 0)
		settle_end(c);
}
