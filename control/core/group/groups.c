/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of groups, answers, and the ends of tasks. Requests: requests.c. */
#include <errno.h>
#include "groups.h"

void groups_carve(struct groups *gs, struct arena *a, const struct groups_limits *limits)
{
	pool_carve(&gs->pool, a, sizeof(struct group), limits->groups);
	pool_carve(&gs->members, a, sizeof(struct group_member), limits->members);
	pool_carve(&gs->contributions, a, sizeof(struct group_contribution), limits->contributions);
	idmap_carve(&gs->by_id, a, limits->groups);
	idmap_carve(&gs->by_member, a, limits->members);
}

void groups_init(struct groups *gs, const struct groups_ops *ops, uint32_t node)
{
	gs->ops = ops;
	gs->node = node;
}

/* ---- answers ----------------------------------------------------------------------------------
 */

void groups_fill(struct groups *gs, const struct group *g, const struct group_member *m)
{
	struct group_answer *a = &gs->answer;

	memset(a, 0, sizeof(*a));
	a->flags = g->flags;
	a->op = g->op;
	a->dtype = g->dtype;
	a->count = g->count;
	a->round = g->result;
	a->version = g->version;
	a->rounds = g->rounds;
	a->counted = g->counted;
	a->late = g->late;
	a->refused = g->refused;
	a->lost = g->lost;
	a->gone_first = g->gone_first;
	a->gone_last = g->gone_last;
	a->top = g->top;
	a->waiting_ns = g->waiting_ns;
	a->switched = g->switched;
	a->fallen = g->fallen;
	a->switches = g->switches;
	for (uint32_t i = 0; i < g->switches; i++)
		a->switch_ip[i] = g->at_switch[i].ip;
	memcpy(a->histogram, g->histogram, sizeof(a->histogram));
	a->members = g->start;
	a->live = g->live;
	a->owner = gs->node;
	if (rounds_kept(g, g->result))
		a->attempt = rounds_kept(g, g->result)->attempt;
	memcpy(a->policy, g->policy_text, sizeof(a->policy));
	if (!m)
		return;
	a->clock = m->clock;
	a->done = m->done;
	a->joined = m->joined;
}

void groups_tell(struct groups *gs, const struct group_waiter *w, int32_t status, const char *text,
		 const struct group *g)
{
	if (w->request == 0)
		return;
	if (g)
		groups_fill(gs, g, NULL);
	gs->ops->answer(gs->ops->arg, w->node, w->request, status, text, g ? &gs->answer : NULL);
}

void groups_refuse(struct groups *gs, const struct group_waiter *w, int32_t status,
		   const char *text)
{
	gs->ops->answer(gs->ops->arg, w->node, w->request, status, text, NULL);
}

void groups_answer(struct groups *gs, const struct group_waiter *w, const struct group *g,
		   const struct group_member *m)
{
	groups_fill(gs, g, m);
	gs->ops->answer(gs->ops->arg, w->node, w->request, 0, "", &gs->answer);
}

/* ---- the table --------------------------------------------------------------------------------
 */

struct group *groups_find(const struct groups *gs, const char *name)
{
	struct object_id id;
	struct text t;
	struct idmap_node *found;

	group_name(&t, name, NULL, 0, 0);
	id = group_id(t.bytes);
	found = idmap_find(&gs->by_id, &id);
	return found ? idmap_item(found, struct group, by_id) : NULL;
}

void groups_abandon(struct groups *gs, struct group *g)
{
	gs->ops->abandon(gs->ops->arg, g);
	g->looking = GROUP_LOOK_NONE;
}

void groups_free(struct groups *gs, struct group *g)
{
	groups_abandon(gs, g);
	list_each(l, after, &g->members)
	{
		roster_drop(gs, g, list_item(l, struct group_member, of_group), false);
	}
	groups_tell(gs, &g->creator, -ECANCELED, "the group was removed", NULL);
	groups_tell(gs, &g->swapper, -ECANCELED, "the group was removed", NULL);
	rounds_free(gs, &g->open);
	rounds_free(gs, &g->closing);
	rounds_free(gs, &g->newest);
	idmap_remove(&gs->by_id, &g->by_id);
	g->phase = GROUP_PHASE_FREE;
	pool_give(&gs->pool, g);
}

/* Makes room: a group without members that has not been used for longest can be loaded again. */
static bool groups_evict(struct groups *gs)
{
	struct group *oldest = NULL;

	for (uint32_t i = 0; i < gs->pool.fresh; i++) {
		struct group *g = pool_at(&gs->pool, i);

		if ((g->phase == GROUP_PHASE_LIVE || g->phase == GROUP_PHASE_OTHER) &&
		    g->live == 0 && g->open.count == 0 && g->task == GROUP_TASK_NONE &&
		    (!oldest || g->used_ns < oldest->used_ns))
			oldest = g;
	}
	if (oldest)
		groups_free(gs, oldest);
	return oldest != NULL;
}

struct group *groups_make(struct groups *gs, const char *name)
{
	struct group *g = pool_take(&gs->pool);
	struct object_id id;
	struct text t;

	if (!g && groups_evict(gs))
		g = pool_take(&gs->pool);
	if (!g)
		return NULL;
	group_name(&t, name, NULL, 0, 0);
	id = group_id(t.bytes);
	idmap_insert(&gs->by_id, &g->by_id, &id);
	memcpy(g->name, name, strnlen(name, GROUP_NAME_MAX));
	list_init(&g->members);
	list_init(&g->waits);
	list_init(&g->open.contributions);
	list_init(&g->closing.contributions);
	list_init(&g->newest.contributions);
	g->safe_ns = UINT64_MAX;
	g->grace_ns = g->retry_ns = g->look_ns = g->open.due_ns = g->switch_due_ns = UINT64_MAX;
	g->used_ns = gs->now_ns;
	return g;
}

void groups_keep(struct groups *gs, bool (*mine)(void *arg, const struct object_id *id), void *arg)
{
	for (uint32_t i = 0; i < gs->pool.fresh; i++) {
		struct group *g = pool_at(&gs->pool, i);

		if (g->phase == GROUP_PHASE_FREE || mine(arg, &g->by_id.id))
			continue;
		/* the members ask the next owner again: their requests move there by themselves */
		list_each(l, after, &g->members)
		{
			list_item(l, struct group_member, of_group)->request = 0;
		}
		g->creator.request = g->swapper.request = g->remover.request = 0;
		groups_free(gs, g);
	}
}

/* ---- events -----------------------------------------------------------------------------------
 */

void groups_put(struct groups *gs, struct group *g, int32_t status, const char *text)
{
	struct group_waiter w = g->creator;

	if (g->phase != GROUP_PHASE_CREATE) {
		if (g->task == GROUP_TASK_SWAP)
			groups_swapped(gs, g, status, text);
		else if (g->task == GROUP_TASK_DECIDE)
			rounds_decided(gs, g, status);
		return;
	}
	g->creator.request = 0;
	if (status == 0) {
		g->phase = GROUP_PHASE_LIVE;
		groups_tell(gs, &w, 0, "", g);
		return;
	}
	groups_free(gs, g);
	groups_tell(gs, &w, status,
		    status == -EEXIST ? "the group exists already: open it, or remove it" : text,
		    NULL);
}

void groups_read(struct groups *gs, struct group *g, int32_t status, const char *bytes,
		 uint32_t length)
{
	if (g->phase != GROUP_PHASE_LIVE)
		load_read(gs, g, status, bytes, length);
	else if (g->task == GROUP_TASK_ADOPT)
		rounds_adopted(gs, g, status, bytes, length);
}

void groups_listed(struct groups *gs, struct group *g, const char *name, bool there)
{
	load_listed(gs, g, name, there);
}

void groups_list_ended(struct groups *gs, struct group *g, int32_t status)
{
	load_list_ended(gs, g, status);
}

void groups_reduced(struct groups *gs, struct group *g, int32_t status, const char *text)
{
	if (g->task == GROUP_TASK_REDUCE)
		rounds_reduced(gs, g, status, text);
	else if (g->task == GROUP_TASK_MEND)
		results_mended(gs, g, status);
}

void groups_looked(struct groups *gs, struct group *g, int32_t status, uint32_t copies)
{
	results_looked(gs, g, status, copies);
}

static void groups_node(struct groups *gs, struct group *g, uint32_t node, bool lost)
{
	list_each(l, after, &g->members)
	{
		struct group_member *m = list_item(l, struct group_member, of_group);

		if (m->node != node)
			continue;
		if (lost) {
			m->request = 0;			/* nobody is there to be told */
			rounds_forget(gs, g, m, false); /* it may come back with them */
			roster_drop(gs, g, m, true);
			continue;
		}
		m->provisional = true;
		list_remove(&m->waits);
		m->request = 0;
		g->grace_ns = gs->now_ns + GROUP_GRACE_NS;
	}
	if (lost)
		rounds_node_lost(gs, g, node);
	rounds_turn(gs, g);
}

static void groups_each_node(struct groups *gs, uint32_t node, bool lost)
{
	for (uint32_t i = 0; i < gs->pool.fresh; i++) {
		struct group *g = pool_at(&gs->pool, i);

		if (g->phase == GROUP_PHASE_LIVE)
			groups_node(gs, g, node, lost);
	}
}

void groups_node_lost(struct groups *gs, uint32_t node)
{
	groups_each_node(gs, node, true);
}

void groups_node_reborn(struct groups *gs, uint32_t node)
{
	groups_each_node(gs, node, false);
}

/* Members of an earlier owner that have not announced themselves are lost. */
static void groups_grace(struct groups *gs, struct group *g)
{
	g->grace_ns = UINT64_MAX;
	list_each(l, after, &g->members)
	{
		struct group_member *m = list_item(l, struct group_member, of_group);

		if (!m->provisional)
			continue;
		rounds_forget(gs, g, m, false);
		roster_drop(gs, g, m, true);
	}
}

void groups_tick(struct groups *gs)
{
	for (uint32_t i = 0; i < gs->pool.fresh; i++) {
		struct group *g = pool_at(&gs->pool, i);

		if (g->phase == GROUP_PHASE_FREE)
			continue;
		if (gs->now_ns >= g->grace_ns)
			groups_grace(gs, g);
		if (gs->now_ns >= g->retry_ns) {
			g->retry_ns = UINT64_MAX;
			if (g->phase == GROUP_PHASE_LIVE)
				rounds_retry(gs, g);
			else
				load_retry(gs, g);
		}
		if (gs->now_ns >= g->look_ns) {
			g->look_ns = UINT64_MAX;
			if (g->policy.alone && g->phase == GROUP_PHASE_LIVE)
				g->policy.alone->look(gs, g);
		}
		results_tick(gs, g);
		rounds_turn(gs, g);
	}
}

uint64_t groups_next(const struct groups *gs)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < gs->pool.fresh; i++) {
		const struct group *g = pool_at(&gs->pool, i);
		uint64_t due = g->grace_ns < g->retry_ns ? g->grace_ns : g->retry_ns;

		if (g->phase == GROUP_PHASE_FREE)
			continue;
		if (g->task == GROUP_TASK_NONE && g->started && g->open.due_ns < due)
			due = g->open.due_ns;
		if (g->look_ns < due)
			due = g->look_ns;
		if (g->phase == GROUP_PHASE_LIVE && g->safe_ns < due)
			due = g->safe_ns;
		if (g->switch_due_ns < due)
			due = g->switch_due_ns;
		if (due < next)
			next = due;
	}
	return next;
}
