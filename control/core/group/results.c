/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the results of a group are there, and what follows when they are not. A round that an
 * earlier owner may have published is looked for before it is reduced again. The newest result is
 * made again from its contributions, or the newest older one that lives takes its place. Called by
 * rounds.c, load.c and groups.c. It must not know the directory: a look is an operation of
 * groups_ops.
 */
#include <errno.h>
#include "groups.h"

enum {
	RESULTS_COUNTS = 10, /* doublings of that pause */
	RESULTS_SAFE = 2,    /* complete copies */
};

static void results_name(const struct group *g, const struct group_kept *k, struct text *name)
{
	group_name(name, g->name, "r", k->number, k->attempt);
}

static bool results_look(struct groups *gs, struct group *g, uint32_t what,
			 const struct group_kept *k)
{
	struct text name;

	results_name(g, k, &name);
	if (!gs->ops->look(gs->ops->arg, g, name.bytes))
		return false;
	g->looking = what;
	g->look_at = *k;
	return true;
}

void results_ask(struct groups *gs, struct group *g)
{
	g->retry_ns = UINT64_MAX;
	if (g->looking == GROUP_LOOK_NONE && !results_look(gs, g, g->look_next, &g->want))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

static void results_want(struct groups *gs, struct group *g, uint32_t what, struct group_kept k)
{
	g->task = GROUP_TASK_LOOK;
	g->look_next = what;
	g->want = k;
	results_ask(gs, g); /* or when the look that is out has ended */
}

/* ---- the closing round ------------------------------------------------------------------------
 */

static bool results_closing(const struct group *g)
{
	return g->closing.count > 0;
}

void results_resume(struct groups *gs, struct group *g)
{
	results_want(gs, g, GROUP_LOOK_MADE,
		     (struct group_kept){g->closing.number, g->closing.attempt});
}

void results_base(struct groups *gs, struct group *g)
{
	results_want(gs, g, GROUP_LOOK_BASE, g->closing.base);
}

/* The total before the closing round is there, or no round is closing. */
static void results_go_on(struct groups *gs, struct group *g)
{
	g->doubt = false;
	g->missing = 0;
	g->task = GROUP_TASK_NONE;
	g->moved = true;
	if (!results_closing(g))
		return;
	if (g->closing.spent)
		rounds_next_attempt(gs, g);
	else
		rounds_reduce(gs, g);
}

static void results_made(struct groups *gs, struct group *g, uint32_t copies)
{
	struct group_round *r = &g->closing;

	if (copies > 0) {
		r->attempt = g->look_at.attempt;
		rounds_end(gs, g, true);
		return;
	}
	r->attempt %= GROUP_BY_SWITCH; /* what a switch had made is lost: the hosts make it */
	if (rounds_dead(gs, r))
		r->spent = true;
	if (r->base.number)
		results_base(gs, g);
	else if (r->spent)
		rounds_next_attempt(gs, g);
	else
		rounds_make(gs, g);
}

/* ---- a result that is lost --------------------------------------------------------------------
 */

void results_gone(const struct group *g, struct text *t)
{
	bool one = g->gone_first == g->gone_last;

	text_add(t, one ? "round " : "rounds ");
	text_add_number(t, g->gone_first);
	if (!one)
		text_add(t, " to ");
	if (!one)
		text_add_number(t, g->gone_last);
	text_add(t, " of group ");
	text_add(t, g->name);
	text_add(t, one ? " is" : " are");
	text_add(t, " lost with the nodes that had the results");
	if (g->flags & GROUP_TOTAL && g->gone_first > 1) {
		text_add(t, "; the total goes on from round ");
		text_add_number(t, g->gone_first - 1);
	} else if (g->flags & GROUP_TOTAL) {
		text_add(t, "; the total begins again");
	}
	text_add(t, ": pull again");
}

void results_compare(struct group *g, struct group_member *m)
{
	const struct group_kept *k = rounds_kept(g, m->seen);
	bool other = k ? k->attempt != m->seen_attempt : m->seen && m->seen == g->failed;

	if (m->bereft || m->seen <= m->reported || !other)
		return;
	m->bereft = true;
	g->gone_first = g->gone_last = m->seen;
}

/* The newest result is that one now; 0: there is none. */
static void results_settle(struct groups *gs, struct group *g, struct group_kept k)
{
	struct text t = {.length = 0};

	g->gone_first = k.number + 1;
	g->gone_last = g->missing;
	g->result = k.number;
	rounds_clear(gs, g, &g->newest);
	list_each(l, after, &g->members)
	{
		struct group_member *m = list_item(l, struct group_member, of_group);

		m->bereft |= g->flags & GROUP_TOTAL || m->seen < g->missing;
	}
	results_gone(g, &t);
	gs->ops->log(gs->ops->arg, t.bytes);
	if (results_closing(g) && g->flags & GROUP_TOTAL) {
		g->closing.base = k;
		g->closing.spent = g->closing.resumed = true;
	}
	results_go_on(gs, g);
}

/* Looks for the next older one; those that were looked for are forgotten. */
static void results_fall_back(struct groups *gs, struct group *g)
{
	struct group_kept best = {0};

	for (uint32_t i = 0; i < 2 * GROUP_KEEP; i++)
		if (g->kept[i].number > best.number && g->kept[i].number < g->missing)
			best = g->kept[i];
	if (best.number)
		results_want(gs, g, GROUP_LOOK_FALL_BACK, best);
	else
		results_settle(gs, g, best);
}

static void results_forget(struct group *g, uint64_t number)
{
	if (rounds_kept(g, number))
		g->kept[number % (2 * GROUP_KEEP)] = (struct group_kept){0};
}

static void results_lost(struct groups *gs, struct group *g, uint64_t number)
{
	struct group_round *r = &g->newest;

	g->missing = number;
	if (r->number != number || r->count == 0 || rounds_dead(gs, r)) {
		results_forget(g, number);
		results_fall_back(gs, g);
	} else if (r->base.number) {
		results_want(gs, g, GROUP_LOOK_EARLIER, r->base);
	} else {
		results_mend(gs, g);
	}
}

void results_mend(struct groups *gs, struct group *g)
{
	uint32_t count = rounds_sources(gs, g, &g->newest);
	struct group_kept k = {g->newest.number, g->newest.attempt};
	struct text name;

	g->task = GROUP_TASK_MEND;
	g->retry_ns = UINT64_MAX;
	results_name(g, &k, &name);
	if (!gs->ops->reduce(gs->ops->arg, g, name.bytes, gs->sources, count, true))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

void results_mended(struct groups *gs, struct group *g, int32_t status)
{
	if (status == -EAGAIN) {
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
		return;
	}
	if (status == 0 || status == -EEXIST) { /* it is back */
		g->safe_ns = gs->now_ns + RESULTS_PAUSE_NS;
		results_go_on(gs, g);
	} else {
		results_forget(g, g->newest.number);
		results_fall_back(gs, g);
	}
	rounds_turn(gs, g);
}

/* ---- copies -----------------------------------------------------------------------------------
 */

void results_published(struct groups *gs, struct group *g)
{
	g->safe_pause_ns = RESULTS_PAUSE_NS;
	if (g->safe_ns == UINT64_MAX)
		g->safe_ns = gs->now_ns + g->safe_pause_ns;
}

/* Nobody has the newest result. What waits for it is given up, unless it can still come. */
static void results_missing(struct groups *gs, struct group *g)
{
	bool adds = g->closing.base.number == g->result && results_closing(g);

	g->doubt = true;
	if (g->task == GROUP_TASK_REDUCE && adds) {
		if (g->retry_ns == UINT64_MAX)
			groups_abandon(gs, g); /* it goes on by itself */
		g->retry_ns = UINT64_MAX;
	} else if (g->task != GROUP_TASK_NONE) {
		g->safe_ns = gs->now_ns + RESULTS_PAUSE_NS;
		return;
	}
	results_lost(gs, g, g->result);
}

static void results_counted(struct groups *gs, struct group *g, uint32_t copies)
{
	uint64_t number = g->look_at.number;

	if (copies >= RESULTS_SAFE) {
		if (number > g->safe)
			g->safe = number;
		if (g->newest.number <= number)
			rounds_clear(gs, g, &g->newest);
		if (number == g->result)
			g->doubt = false;
		else
			results_published(gs, g);
	} else if (number != g->result) {
		results_published(gs, g);
	} else if (copies > 0) {
		g->doubt = false;
		g->safe_pause_ns *= 2;
		if (g->safe_pause_ns < RESULTS_PAUSE_NS << RESULTS_COUNTS)
			g->safe_ns = gs->now_ns + g->safe_pause_ns;
	} else if (g->missing == 0) {
		results_missing(gs, g);
	}
}

void results_tick(struct groups *gs, struct group *g)
{
	const struct group_kept *k = rounds_kept(g, g->result);

	if (gs->now_ns < g->safe_ns || g->phase != GROUP_PHASE_LIVE)
		return;
	g->safe_ns = UINT64_MAX;
	if (!k)
		return;
	if (g->looking != GROUP_LOOK_NONE || g->task == GROUP_TASK_LOOK)
		g->safe_ns = gs->now_ns + RESULTS_PAUSE_NS; /* one look at a time */
	else if (!results_look(gs, g, GROUP_LOOK_COPIES, k))
		g->safe_ns = gs->now_ns + GROUP_RETRY_NS;
}

void results_node_lost(struct groups *gs, struct group *g, uint32_t node)
{
	struct text name;
	bool lost = false;

	list_each(l, after, &g->newest.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		if (one->node != node)
			continue;
		one->node = GROUP_NODE_DEAD;
		lost = true;
	}
	if (!rounds_kept(g, g->result))
		return;
	g->doubt = true;
	g->safe_pause_ns = RESULTS_PAUSE_NS;
	g->safe_ns = gs->now_ns;
	if (!lost || g->task != GROUP_TASK_MEND || g->retry_ns != UINT64_MAX)
		return;
	group_name(&name, g->name, "r", g->newest.number, g->newest.attempt);
	gs->ops->cancel(gs->ops->arg, g, name.bytes);
}

/* ---- the ends of looks ------------------------------------------------------------------------
 */

static void results_answer(struct groups *gs, struct group *g, uint32_t what, uint32_t copies)
{
	switch (what) {
	case GROUP_LOOK_COPIES:
		results_counted(gs, g, copies);
		break;
	case GROUP_LOOK_MADE:
		results_made(gs, g, copies);
		break;
	case GROUP_LOOK_BASE:
		if (copies > 0)
			results_go_on(gs, g);
		else
			results_lost(gs, g, g->closing.base.number);
		break;
	case GROUP_LOOK_EARLIER:
		if (copies > 0) {
			results_mend(gs, g);
			break;
		}
		results_forget(g, g->newest.base.number);
		results_forget(g, g->newest.number);
		results_fall_back(gs, g);
		break;
	default:
		if (copies > 0) {
			results_settle(gs, g, g->look_at);
			break;
		}
		results_forget(g, g->look_at.number);
		results_fall_back(gs, g);
		break;
	}
}

void results_looked(struct groups *gs, struct group *g, int32_t status, uint32_t copies)
{
	uint32_t what = g->looking;

	g->looking = GROUP_LOOK_NONE;
	if (g->phase != GROUP_PHASE_LIVE || what == GROUP_LOOK_NONE)
		return;
	if (what != GROUP_LOOK_COPIES && g->task != GROUP_TASK_LOOK)
		return;
	if (status == 0)
		results_answer(gs, g, what, copies);
	else if (what == GROUP_LOOK_COPIES)
		g->safe_ns = gs->now_ns + GROUP_RETRY_NS;
	else
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
	if (g->task == GROUP_TASK_LOOK && g->looking == GROUP_LOOK_NONE &&
	    g->retry_ns == UINT64_MAX)
		results_ask(gs, g);
	rounds_turn(gs, g);
}
