/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of a group: their clocks, cohorts, and who may go on. Called by the other files of
 * this folder. It must not know how rounds are decided or reduced.
 */
#include <errno.h>
#include "groups.h"

static struct object_id roster_id(const struct groups *gs, const struct group *g, uint64_t number)
{
	struct object_id id = {{0}};
	uint32_t index = pool_index(&gs->pool, g);

	memcpy(id.bytes, &number, sizeof(number));
	memcpy(id.bytes + sizeof(number), &index, sizeof(index));
	return id;
}

struct group_member *roster_find(struct groups *gs, const struct group *g, uint64_t number)
{
	struct object_id id = roster_id(gs, g, number);
	struct idmap_node *found = idmap_find(&gs->by_member, &id);

	return found ? idmap_item(found, struct group_member, by_number) : NULL;
}

/* ---- cohorts and slack ------------------------------------------------------------------------
 */

int roster_cohort(struct group *g, const char *name)
{
	uint32_t row;

	name = group_policy_cohort(&g->policy, name);
	row = group_policy_match(&g->policy, name);
	if (row == POLICY_NO_ROW)
		return -ENOENT;
	for (uint32_t i = 0; i < g->cohorts; i++)
		if (strcmp(g->cohort[i].name, name) == 0)
			return (int)i;
	if (g->cohorts == GROUP_COHORTS_MAX)
		return -ENOSPC;
	g->cohort[g->cohorts] = (struct group_cohort){.row = row};
	memcpy(g->cohort[g->cohorts].name, name, strlen(name) + 1);
	g->cohort[g->cohorts].open_row = group_policy_match(&g->open.policy, name);
	if (g->cohort[g->cohorts].open_row == POLICY_NO_ROW) /* a policy after the open round's */
		g->cohort[g->cohorts].open_row = 0;
	g->cohorts++;
	return (int)g->cohorts - 1;
}

/* How far ahead of cohort k a member of cohort i may be before it pushes for that clock. */
static uint32_t roster_limit(const struct group *g, uint32_t i, uint32_t k, uint64_t clock)
{
	uint32_t now = g->slack[i][k], before = g->before[i][k];

	return clock < g->from && before > now ? before : now;
}

/* The newest round that may hold a contribution of a clock that all have reached just now. */
static uint64_t roster_mark(const struct group *g)
{
	return g->open.count > 0 ? g->open.number : g->open.number - 1;
}

/* Rebuilds the window of the cohort from its slowest member on. */
static void roster_track(struct group *g, uint32_t i)
{
	struct group_cohort *k = &g->cohort[i];
	uint64_t low = UINT64_MAX;

	list_each(l, after, &g->members)
	{
		const struct group_member *m = list_item(l, struct group_member, of_group);

		if (m->cohort == i && m->clock < low)
			low = m->clock;
	}
	clocks_init(&k->clocks, low == UINT64_MAX ? g->top : low, roster_mark(g));
	list_each(l, after, &g->members)
	{
		const struct group_member *m = list_item(l, struct group_member, of_group);

		if (m->cohort == i)
			clocks_add(&k->clocks, m->clock);
	}
	k->tracked = true;
	g->moved = true;
}

/* Whether some cohort is bound to the slowest of cohort k. */
static bool roster_bound(const struct group *g, uint32_t k)
{
	for (uint32_t i = 0; i < g->cohorts; i++)
		if (g->slack[i][k] != POLICY_UNLIMITED)
			return true;
	return false;
}

void roster_bind(struct group *g, bool swap)
{
	uint32_t slack[GROUP_COHORTS_MAX][GROUP_COHORTS_MAX];

	for (uint32_t i = 0; i < g->cohorts; i++) {
		g->cohort[i].row = group_policy_match(&g->policy, g->cohort[i].name);
		if (g->cohort[i].row == POLICY_NO_ROW) /* nobody is in it any more */
			g->cohort[i].row = 0;
	}
	for (uint32_t i = 0; i < g->cohorts; i++)
		for (uint32_t k = 0; k < g->cohorts; k++)
			slack[i][k] =
				group_policy_slack(&g->policy, g->cohort[i].row, g->cohort[k].row);
	if (swap) {
		for (uint32_t i = 0; i < g->cohorts; i++)
			for (uint32_t k = 0; k < g->cohorts; k++)
				g->before[i][k] = roster_limit(g, i, k, g->pushed);
		g->from = g->pushed + 1;
	}
	memcpy(g->slack, slack, sizeof(slack));
	for (uint32_t k = 0; k < g->cohorts; k++) {
		bool bound = roster_bound(g, k);

		/* the open round ends by the policy that opened it */
		bound |= group_policy_lockstep(&g->open.policy.row[g->cohort[k].open_row]);

		if (bound && !g->cohort[k].tracked)
			roster_track(g, k);
		g->cohort[k].tracked = bound;
	}
	g->moved = true;
}

/* Whether the open round is of an earlier policy, and may have to wait for this member. */
static bool roster_owes(const struct group *g, const struct group_member *m)
{
	return g->open.version != g->version && g->open.count > 0 &&
	       m->in_round != g->open.number && rounds_unbound(g, g->open.number);
}

/* How far ahead of cohort k the member may be before it pushes for the clock. A round ends under
 * the policy that opened it: what that has allowed holds for the members that have to end it. */
static uint32_t roster_slack(const struct group *g, const struct group_member *m, uint32_t k,
			     uint64_t clock)
{
	uint32_t slack = roster_limit(g, m->cohort, k, clock), open;

	if (slack == POLICY_UNLIMITED || !roster_owes(g, m))
		return slack;
	open = group_policy_slack(&g->open.policy, g->cohort[m->cohort].open_row,
				  g->cohort[k].open_row);
	return open > slack ? open : slack;
}

static bool roster_gate(const struct group *g, const struct group_member *m, uint64_t clock,
			bool results)
{
	for (uint32_t k = 0; k < g->cohorts; k++) {
		const struct group_cohort *other = &g->cohort[k];
		uint32_t slack = roster_slack(g, m, k, clock + 1);
		uint64_t mark, v;

		if (slack == POLICY_UNLIMITED || other->live == 0 || clock <= slack)
			continue;
		v = clock - slack;
		if (other->tracked && !clocks_reached(&other->clocks, v))
			return false;
		mark = clocks_mark(&other->clocks, v);
		if (g->open.count == 0 && mark >= g->open.number)
			mark = g->open.number - 1; /* who had contributed has died */
		if (other->tracked && other->row == g->cohort[m->cohort].row &&
		    mark > (results ? g->published : g->open.number - 1) &&
		    !rounds_unbound(g, mark))
			return false;
	}
	return true;
}

bool roster_may_go(const struct group *g, const struct group_member *m, uint64_t clock)
{
	return roster_gate(g, m, clock, true);
}

bool roster_may_push(const struct group *g, const struct group_member *m)
{
	return roster_gate(g, m, m->clock, false);
}

uint64_t roster_clock(const struct group *g, uint32_t cohort)
{
	uint64_t low = UINT64_MAX;

	if (!g->started)
		return 0;
	for (uint32_t k = 0; k < g->cohorts; k++) {
		const struct group_cohort *other = &g->cohort[k];

		if (!other->tracked || other->live == 0 || g->slack[cohort][k] == POLICY_UNLIMITED)
			continue;
		if (clocks_min(&other->clocks) < low)
			low = clocks_min(&other->clocks);
		if (other->low > 0 && other->low - 1 < low &&
		    group_policy_lockstep(&g->open.policy.row[other->open_row]))
			low = other->low - 1; /* it takes part in the open round */
	}
	return low == UINT64_MAX ? g->top : low;
}

/* ---- members ----------------------------------------------------------------------------------
 */

static void roster_enter(struct group *g, struct group_member *m)
{
	struct group_cohort *k = &g->cohort[m->cohort];

	k->live++;
	if (m->in_round == g->open.number)
		k->present++;
	if (k->tracked && (k->clocks.members == 0 || !clocks_add(&k->clocks, m->clock)))
		roster_track(g, m->cohort);
}

static void roster_exit(struct group *g, struct group_member *m)
{
	struct group_cohort *k = &g->cohort[m->cohort];

	k->live--;
	if (m->in_round == g->open.number)
		k->present--;
	if (k->tracked)
		clocks_remove(&k->clocks, m->clock, roster_mark(g));
	if (k->tracked && clocks_spent(&k->clocks))
		g->spent = true; /* the member is still listed: at the next turn */
	g->moved = true;
}

struct group_member *roster_add(struct groups *gs, struct group *g, uint64_t number, uint32_t node,
				const char *cohort, uint64_t clock, int *error)
{
	int k = roster_cohort(g, cohort);
	struct group_member *m;
	struct object_id id;

	*error = k < 0 ? k : g->live < GROUP_MEMBERS_MAX ? 0 : -ENOSPC;
	if (*error)
		return NULL;
	roster_bind(g, false);
	m = pool_take(&gs->members);
	if (!m) {
		*error = -ENOSPC;
		return NULL;
	}
	m->group = g;
	m->number = number;
	m->node = node;
	m->cohort = (uint32_t)k;
	m->clock = clock == UINT64_MAX ? roster_clock(g, m->cohort) : clock;
	m->decided = m->done = m->clock;
	m->joined = g->open.number;
	m->since_ns = gs->now_ns;
	id = roster_id(gs, g, number);
	idmap_insert(&gs->by_member, &m->by_number, &id);
	list_append(&g->members, &m->of_group);
	g->live++;
	if (m->clock > g->pushed)
		g->pushed = m->clock;
	roster_enter(g, m);
	return m;
}

void roster_drop(struct groups *gs, struct group *g, struct group_member *m, bool lost)
{
	struct group_waiter w = {m->node, m->request};

	if (lost) {
		rounds_forget(gs, g, m, true);
		g->lost++;
	}
	switching_gone(g, m);
	roster_exit(g, m);
	g->live--;
	list_remove(&m->of_group);
	list_remove(&m->waits);
	idmap_remove(&gs->by_member, &m->by_number);
	pool_give(&gs->members, m);
	groups_tell(gs, &w, -ESTALE, "the member has left, or was taken for dead: join again",
		    NULL);
}

void roster_move(struct group *g, struct group_member *m, uint64_t clock, uint64_t round)
{
	struct group_cohort *k = &g->cohort[m->cohort];
	uint64_t base = k->clocks.base;

	if (k->tracked)
		clocks_move(&k->clocks, m->clock, clock, round);
	m->clock = clock;
	if (clock > g->pushed)
		g->pushed = clock;
	if (k->tracked && clocks_spent(&k->clocks))
		roster_track(g, m->cohort);
	if (k->tracked && k->clocks.base != base)
		g->moved = true;
}

void roster_refill(struct group *g)
{
	g->spent = false;
	for (uint32_t k = 0; k < g->cohorts; k++)
		if (g->cohort[k].tracked && clocks_spent(&g->cohort[k].clocks))
			roster_track(g, k);
}

void roster_change(struct groups *gs, struct group *g, struct group_member *m, const char *name)
{
	int k = roster_cohort(g, name);

	if (k < 0 || (uint32_t)k == m->cohort)
		return;
	roster_bind(g, false);
	roster_exit(g, m);
	m->cohort = (uint32_t)k;
	if (g->cohort[k].tracked && g->cohort[k].live > 0 &&
	    m->clock < clocks_min(&g->cohort[k].clocks))
		m->clock = clocks_min(&g->cohort[k].clocks); /* nobody is to wait for it */
	roster_enter(g, m);
	rounds_low(gs, g);
}
