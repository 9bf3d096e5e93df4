/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rounds of a group: contributions, the close, the decision, the reduce, the result, and pulls.
 * groups.h has the table of a round's states. Called by the other files of this folder, with
 * requests of members and ends of tasks. It must not know messages, nodes' connections or the
 * policy's word: it asks the rows of the policy.
 */
#include <errno.h>
#include "groups.h"

/* ---- the open round ---------------------------------------------------------------------------
 */

static void rounds_empty(struct group_round *r)
{
	list_init(&r->contributions);
	r->count = 0;
	r->top = 0;
}

void rounds_open(struct group *g, uint64_t number)
{
	g->open.number = number;
	g->open.version = g->version;
	g->open.policy = g->policy;
	rounds_empty(&g->open);
	g->open.attempt = number == g->spoilt.number ? g->spoilt.attempt + 1 : 0;
	g->open.due_ns = UINT64_MAX;
	for (uint32_t i = 0; i < g->cohorts; i++) {
		g->cohort[i].present = 0;
		g->cohort[i].low = 0;
		g->cohort[i].open_row = g->cohort[i].row;
	}
}

static uint64_t rounds_deadline(const struct group_policy *p)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < p->rows; i++)
		if (p->row[i].deadline_ns && p->row[i].deadline_ns < least)
			least = p->row[i].deadline_ns;
	return least;
}

static void rounds_add(struct group_round *r, struct group_contribution *one)
{
	list_append(&r->contributions, &one->link);
	r->count++;
	if (one->clock > r->top)
		r->top = one->clock;
}

static void rounds_drop(struct groups *gs, struct group_round *r, struct group_contribution *one)
{
	list_remove(&one->link);
	r->count--;
	pool_give(&gs->contributions, one);
}

void rounds_free(struct groups *gs, struct group_round *r)
{
	list_each(l, after, &r->contributions)
	{
		rounds_drop(gs, r, list_item(l, struct group_contribution, link));
	}
}

static struct group_contribution *rounds_take(struct groups *gs, struct group *g);

bool rounds_contribute(struct groups *gs, struct group *g, struct group_member *m, uint64_t clock)
{
	struct group_cohort *k = &g->cohort[m->cohort];
	struct group_contribution *one =
		g->open.count < GROUP_MEMBERS_MAX ? rounds_take(gs, g) : NULL;
	uint64_t deadline = rounds_deadline(&g->open.policy);

	if (!one)
		return false;
	one->member = m->number;
	one->clock = clock;
	one->node = m->node;
	if (g->open.count == 0 && deadline != UINT64_MAX)
		g->open.due_ns = gs->now_ns + deadline;
	rounds_add(&g->open, one);
	if (m->in_round != g->open.number)
		k->present++;
	m->in_round = m->need = g->open.number;
	if (k->low == 0 || clock < k->low)
		k->low = clock;
	m->residual = m->resumed = false;
	if (clock <= g->top && g->open.policy.row[k->open_row].quorum > 0) {
		m->late++;
		g->late++;
	}
	roster_move(g, m, clock, g->open.number);
	return true;
}

void rounds_low(struct groups *gs, struct group *g)
{
	for (uint32_t i = 0; i < g->cohorts; i++)
		g->cohort[i].low = 0;
	list_each(l, after, &g->open.contributions)
	{
		const struct group_contribution *one =
			list_item(l, struct group_contribution, link);
		const struct group_member *m = roster_find(gs, g, one->member);
		struct group_cohort *k = m ? &g->cohort[m->cohort] : NULL;

		if (k && (k->low == 0 || one->clock < k->low))
			k->low = one->clock;
	}
}

static void rounds_delete(struct groups *gs, const struct group *g,
			  const struct group_contribution *one)
{
	struct text name;

	group_contribution_name(&name, g->name, one->clock, one->member);
	gs->ops->remove(gs->ops->arg, name.bytes);
}

void rounds_clear(struct groups *gs, struct group *g, struct group_round *r)
{
	list_each(l, after, &r->contributions)
	{
		rounds_delete(gs, g, list_item(l, struct group_contribution, link));
	}
	rounds_free(gs, r);
}

/* A place for one more contribution: those that stay for a lost result give way. */
static struct group_contribution *rounds_take(struct groups *gs, struct group *g)
{
	struct group_contribution *one = pool_take(&gs->contributions);

	if (!one && g->newest.count > 0) {
		rounds_clear(gs, g, &g->newest);
		one = pool_take(&gs->contributions);
	}
	return one;
}

void rounds_forget(struct groups *gs, struct group *g, const struct group_member *m, bool remove)
{
	list_each(l, after, &g->open.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		if (one->member != m->number)
			continue;
		if (remove)
			rounds_delete(gs, g, one);
		rounds_drop(gs, &g->open, one);
	}
	if (g->open.count == 0)
		g->open.due_ns = UINT64_MAX;
	rounds_low(gs, g);
}

/* ---- the close --------------------------------------------------------------------------------
 */

/* bsp: whether all members of the row have reached the smallest clock that it has in the round.
 * After a change of policy others may be ahead of it: they need not contribute to the round. */
static bool rounds_reached(const struct group *g, uint32_t row)
{
	uint64_t low = UINT64_MAX;
	uint32_t live = 0;

	for (uint32_t i = 0; i < g->cohorts; i++) {
		if (g->cohort[i].open_row != row)
			continue;
		live += g->cohort[i].live;
		if (g->cohort[i].low > 0 && g->cohort[i].low < low)
			low = g->cohort[i].low;
	}
	if (live == 0 || low == UINT64_MAX)
		return live == 0;
	for (uint32_t i = 0; i < g->cohorts; i++) {
		const struct group_cohort *k = &g->cohort[i];

		if (k->open_row == row && k->live > 0 && !clocks_reached(&k->clocks, low))
			return false;
	}
	return true;
}

/* Whether the row has its quorum in the open round. */
static bool rounds_row(const struct group *g, uint32_t row)
{
	const struct group_policy_row *r = &g->open.policy.row[row];
	uint32_t live = 0, present = 0;

	if (group_policy_lockstep(r))
		return rounds_reached(g, row);
	for (uint32_t i = 0; i < g->cohorts; i++) {
		if (g->cohort[i].open_row != row)
			continue;
		live += g->cohort[i].live;
		present += g->cohort[i].present;
	}
	return present >= live || present >= group_policy_quorum(r, live);
}

/* Whether each row of the policy that opened the round has its quorum in it. */
static bool rounds_quorum(const struct group *g)
{
	for (uint32_t row = 0; row < g->open.policy.rows; row++)
		if (!rounds_row(g, row))
			return false;
	return true;
}

bool rounds_unbound(const struct group *g, uint64_t number)
{
	const struct group_policy *p = &g->open.policy;

	for (uint32_t row = 0; number >= g->open.number && row < p->rows; row++)
		if (p->row[row].quorum > 0)
			return g->open.count == 0 || !rounds_quorum(g);
	return false;
}

static bool rounds_may_close(const struct groups *gs, const struct group *g)
{
	return g->started && g->task == GROUP_TASK_NONE && g->open.count > 0 &&
	       (gs->now_ns >= g->open.due_ns || rounds_quorum(g));
}

static void rounds_decide(struct groups *gs, struct group *g)
{
	struct group_round *r = &g->closing;
	uint64_t top = r->top > g->top ? r->top : g->top;
	struct text name;
	uint32_t bytes;

	g->task = GROUP_TASK_DECIDE;
	g->retry_ns = UINT64_MAX;
	list_each(l, after, &r->contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		one->staleness = top - one->clock;
	}
	bytes = group_decision_write(g, gs->blob, sizeof(gs->blob));
	group_name(&name, g->name, "d", r->number, r->attempt);
	if (!gs->ops->put(gs->ops->arg, g, name.bytes, gs->blob, bytes))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

const struct group_kept *rounds_kept(const struct group *g, uint64_t number)
{
	const struct group_kept *k = &g->kept[number % (2 * GROUP_KEEP)];

	return number && k->number == number ? k : NULL;
}

static void rounds_close(struct groups *gs, struct group *g)
{
	const struct group_kept *base = g->flags & GROUP_TOTAL ? rounds_kept(g, g->result) : NULL;

	struct list rest; /* of members that had two: no reduce has room for them */

	g->closing = g->open;
	rounds_empty(&g->closing);
	list_init(&rest);
	list_each(l, after, &g->open.contributions)
	{
		list_remove(l);
		if (g->closing.count < GROUP_MEMBERS_MAX)
			rounds_add(&g->closing, list_item(l, struct group_contribution, link));
		else
			list_append(&rest, l);
	}
	g->closing.base = base ? *base : (struct group_kept){0};
	g->closing.resumed = g->closing.spent = g->closing.begun = false;
	rounds_open(g, g->open.number + 1);
	list_each(l, after, &rest)
	{
		list_remove(l);
		rounds_add(&g->open, list_item(l, struct group_contribution, link));
	}
	roster_bind(g, false);
	rounds_decide(gs, g);
}

/* ---- the reduce -------------------------------------------------------------------------------
 */

void rounds_fix(struct groups *gs, struct group *g)
{
	list_each(l, after, &g->closing.contributions)
	{
		const struct group_contribution *one =
			list_item(l, struct group_contribution, link);
		struct group_member *m = roster_find(gs, g, one->member);

		if (m && one->clock > m->decided && one->clock <= m->clock)
			m->decided = one->clock;
	}
	if (g->closing.top > g->top)
		g->top = g->closing.top;
}

/* Contributions whose nodes are dead leave the closing round. Returns whether there were any. */
static bool rounds_drop_lost(struct groups *gs, struct group *g)
{
	uint32_t before = g->closing.count;

	list_each(l, after, &g->closing.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		if (one->node != GROUP_NODE_DEAD)
			continue;
		rounds_delete(gs, g, one); /* a copy may be left somewhere */
		rounds_drop(gs, &g->closing, one);
	}
	return g->closing.count < before;
}

/* The sources were not found in time: those of members that are not there any more are given up. */
static void rounds_doubt(struct groups *gs, struct group *g)
{
	list_each(l, after, &g->closing.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);
		const struct group_member *m = roster_find(gs, g, one->member);

		if (!m || m->provisional)
			one->node = GROUP_NODE_DEAD;
	}
}

void rounds_next_attempt(struct groups *gs, struct group *g)
{
	struct group_round *r = &g->closing;
	struct text name;

	if (r->resumed) { /* what an earlier owner has begun, and nobody has got */
		group_name(&name, g->name, "r", r->number, r->attempt);
		gs->ops->remove(gs->ops->arg, name.bytes);
	}
	rounds_drop_lost(gs, g);
	r->resumed = r->spent = r->begun = false;
	r->attempt++;
	if (r->number == g->spoilt.number && r->attempt == g->spoilt.attempt)
		r->attempt++; /* its decision exists, and nobody can read it */
	if (r->count == 0 || r->attempt >= GROUP_ATTEMPTS)
		rounds_end(gs, g, false);
	else
		rounds_decide(gs, g);
}

bool rounds_dead(struct groups *gs, struct group_round *r)
{
	bool dead = false;

	list_each(l, after, &r->contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		if (one->node != GROUP_NODE_DEAD && !gs->ops->alive(gs->ops->arg, one->node))
			one->node = GROUP_NODE_DEAD;
		dead |= one->node == GROUP_NODE_DEAD;
	}
	return dead;
}

uint32_t rounds_sources(struct groups *gs, const struct group *g, const struct group_round *r)
{
	struct text name;
	uint32_t count = 0;

	if (r->base.number) {
		group_name(&name, g->name, "r", r->base.number, r->base.attempt);
		gs->sources[count++] = group_id(name.bytes);
	}
	list_each(l, after, &r->contributions)
	{
		const struct group_contribution *one =
			list_item(l, struct group_contribution, link);

		group_contribution_name(&name, g->name, one->clock, one->member);
		gs->sources[count++] = group_id(name.bytes);
	}
	return count;
}

void rounds_make(struct groups *gs, struct group *g)
{
	uint32_t count = rounds_sources(gs, g, &g->closing);
	bool resume = g->closing.resumed || g->closing.begun;
	struct text name;

	g->task = GROUP_TASK_REDUCE;
	g->retry_ns = UINT64_MAX;
	group_name(&name, g->name, "r", g->closing.number, g->closing.attempt);
	g->closing.begun = true;
	if (!gs->ops->reduce(gs->ops->arg, g, name.bytes, gs->sources, count, resume))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

void rounds_reduce(struct groups *gs, struct group *g)
{
	if (rounds_dead(gs, &g->closing) && g->closing.resumed)
		results_resume(gs, g);
	else if (rounds_dead(gs, &g->closing))
		rounds_next_attempt(gs, g);
	else if (g->doubt && g->closing.base.number)
		results_base(gs, g);
	else
		rounds_make(gs, g);
}

/* ---- the end of a round -----------------------------------------------------------------------
 */

static uint32_t rounds_bucket(uint64_t staleness)
{
	if (staleness < 4)
		return (uint32_t)staleness;
	return staleness < 8 ? 4 : staleness < 16 ? 5 : staleness < 32 ? 6 : 7;
}

/* Deletes the objects of rounds that all members have passed, or that are too old. */
static void rounds_sweep(struct groups *gs, struct group *g)
{
	uint64_t limit = g->result;
	struct text name;

	list_each(l, after, &g->members)
	{
		const struct group_member *m = list_item(l, struct group_member, of_group);

		if (m->seen < limit)
			limit = m->seen;
	}
	if (limit == g->result && g->safe < limit) /* if that is lost, the one before counts */
		limit--;
	if (limit + GROUP_KEEP < g->result)
		limit = g->result - GROUP_KEEP;
	if (limit > GROUP_SWEEP_MAX && g->oldest < limit - GROUP_SWEEP_MAX)
		g->oldest = limit - GROUP_SWEEP_MAX; /* a member came with a later number */
	for (; g->oldest < limit; g->oldest++) {
		const struct group_kept *k = rounds_kept(g, g->oldest);

		uint32_t attempt = k ? k->attempt % GROUP_BY_SWITCH : 0;

		for (uint32_t i = 0; i < GROUP_ATTEMPTS && i <= attempt; i++) {
			group_name(&name, g->name, "d", g->oldest, i);
			gs->ops->remove(gs->ops->arg, name.bytes);
			if (g->switches == 0 || (k && k->attempt == (GROUP_BY_SWITCH | i)))
				continue;
			/* a member may have put it for nothing */
			group_name(&name, g->name, "r", g->oldest, GROUP_BY_SWITCH | i);
			gs->ops->remove(gs->ops->arg, name.bytes);
		}
		if (!k)
			continue;
		group_name(&name, g->name, "r", g->oldest, k->attempt);
		gs->ops->remove(gs->ops->arg, name.bytes);
	}
}

/* The contributions of the round stay until its result is safe; those of the one before go. */
static void rounds_stay(struct groups *gs, struct group *g)
{
	struct group_round *r = &g->closing;

	rounds_clear(gs, g, &g->newest);
	g->newest = *r;
	list_init(&g->newest.contributions);
	list_each(l, after, &r->contributions)
	{
		list_remove(l);
		list_append(&g->newest.contributions, l);
	}
	r->count = 0;
}

void rounds_end(struct groups *gs, struct group *g, bool result)
{
	struct group_round *r = &g->closing;

	list_each(l, after, &r->contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);
		struct group_member *m = roster_find(gs, g, one->member);

		if (m && one->clock > m->done)
			m->done = one->clock;
		if (m && result)
			m->counted++;
		else if (m)
			m->failed = r->number;
		if (result)
			g->histogram[rounds_bucket(one->staleness)]++;
		else
			rounds_delete(gs, g, one);
	}
	g->published = r->number;
	if (result) {
		g->result = r->number;
		g->kept[r->number % (2 * GROUP_KEEP)] = (struct group_kept){r->number, r->attempt};
		g->rounds++;
		gs->switched += r->attempt >= GROUP_BY_SWITCH;
		gs->hosted += r->attempt < GROUP_BY_SWITCH;
		g->counted += r->count;
		rounds_stay(gs, g);
	} else {
		g->failed = r->number;
		g->lost += r->count;
	}
	rounds_free(gs, r);
	g->task = GROUP_TASK_NONE;
	g->moved = true;
	if (result)
		results_published(gs, g);
	rounds_sweep(gs, g);
}

/* The reduce has no result. The next attempt must not lack the same again. */
static void rounds_failed(struct groups *gs, struct group *g)
{
	g->closing.spent = true;
	if (g->closing.resumed)
		results_resume(gs, g);
	else if (g->closing.base.number)
		results_base(gs, g);
	else
		rounds_next_attempt(gs, g);
}

void rounds_reduced(struct groups *gs, struct group *g, int32_t status, const char *text)
{
	if (status == 0)
		rounds_end(gs, g, true);
	else if (status == -EAGAIN) /* no room for it at the moment */
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
	else {
		if (status == -ETIMEDOUT)
			rounds_doubt(gs, g);
		rounds_failed(gs, g);
	}
	rounds_turn(gs, g);
}

void rounds_decided(struct groups *gs, struct group *g, int32_t status)
{
	struct text name;

	if (status == 0) {
		rounds_fix(gs, g);
		if (!switching_begin(gs, g))
			rounds_reduce(gs, g);
	} else if (status == -EEXIST) {
		if (g->task != GROUP_TASK_ADOPT)
			g->patience_ns = gs->now_ns + GROUP_GRACE_NS;
		g->task = GROUP_TASK_ADOPT;
		group_name(&name, g->name, "d", g->closing.number, g->closing.attempt);
		if (!gs->ops->read(gs->ops->arg, g, name.bytes))
			g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
	} else {
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
	}
	rounds_turn(gs, g);
}

/* A contribution of the adopted decision: from the closing or the open round, or unknown here. */
static void rounds_adopt_line(struct groups *gs, struct group *g,
			      const struct group_decision_line *line)
{
	struct group_contribution *one = NULL;

	if (!line->contributes)
		return;
	list_each(l, after, &g->open.contributions)
	{
		one = list_item(l, struct group_contribution, link);
		if (one->member == line->member && one->clock == line->clock)
			break;
		one = NULL;
	}
	if (one) {
		list_remove(&one->link);
		g->open.count--;
	} else {
		one = rounds_take(gs, g);
		if (!one)
			return; /* rounds_adopted sees that it is missing */
		one->member = line->member;
		one->clock = line->clock;
		one->node = line->node;
	}
	one->staleness = line->staleness;
	rounds_add(&g->closing, one);
}

void rounds_adopted(struct groups *gs, struct group *g, int32_t status, const char *bytes,
		    uint32_t length)
{
	struct group_kept of = {g->closing.number, g->closing.attempt};
	struct group_decision d;

	if (status == -ENOENT) { /* it has died with the owner that was about to make it */
		rounds_decide(gs, g);
		return;
	}
	if ((status == -ENODATA && gs->now_ns >= g->patience_ns) ||
	    (status == 0 && !group_decision_read(bytes, length, of, &d))) {
		/* its holders are dead: most likely the owner died that was making it; or no owner
		 * has written it */
		rounds_next_attempt(gs, g);
		rounds_turn(gs, g);
		return;
	}
	if (status != 0) { /* it was there just now: its holders are out of reach, or lost it */
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
		return;
	}
	/* what was to be decided goes back to the open round, then the decision takes its own */
	list_each(l, after, &g->closing.contributions)
	{
		list_remove(l);
		rounds_add(&g->open, list_item(l, struct group_contribution, link));
	}
	g->closing.count = 0;
	g->closing.top = 0;
	group_decision_lines(bytes, length, rounds_adopt_line, gs, g);
	list_each(l, after, &g->open.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);
		struct group_member *m = roster_find(gs, g, one->member);

		if (!m || m->in_round == g->open.number)
			continue;
		m->in_round = m->need = g->open.number;
		g->cohort[m->cohort].present++;
	}
	rounds_low(gs, g);
	if (g->open.count == 0)
		g->open.due_ns = UINT64_MAX;
	if (g->closing.count < d.count) { /* no room for all of them: the sum would lack some */
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
		return;
	}
	g->closing.version = d.version;
	g->closing.base = d.base;
	rounds_fix(gs, g);
	g->closing.resumed = true;
	results_resume(gs, g);
	rounds_turn(gs, g);
}

void rounds_node_lost(struct groups *gs, struct group *g, uint32_t node)
{
	struct text name;
	bool lost = false;

	list_each(l, after, &g->closing.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		if (one->node != node)
			continue;
		one->node = GROUP_NODE_DEAD;
		lost = true;
	}
	g->switch_lost |= lost;
	results_node_lost(gs, g, node);
	if (!lost || g->task != GROUP_TASK_REDUCE)
		return;
	if (g->closing.resumed) { /* its result may be there, and published */
		if (g->retry_ns == UINT64_MAX)
			groups_abandon(gs, g);
		results_resume(gs, g);
		return;
	}
	if (g->retry_ns != UINT64_MAX)
		return;
	group_name(&name, g->name, "r", g->closing.number, g->closing.attempt);
	gs->ops->cancel(gs->ops->arg, g, name.bytes);
}

/* ---- pulls ------------------------------------------------------------------------------------
 */

/* The round whose end the pull waits for; 0: none. */
static uint64_t rounds_need(const struct group *g, const struct group_member *m)
{
	const struct group_policy_row *row = &g->policy.row[g->cohort[m->cohort].row];

	if (m->residual)
		return 0;
	/* asp and ssp wait for no round that others have to close: these may wait for this member.
	 * So do they, whatever the policy is now, when an earlier one has opened the round. */
	return (row->quorum == 0 || g->open.version != g->version) && rounds_unbound(g, m->need)
		       ? 0
		       : m->need;
}

static bool rounds_ready(const struct group *g, const struct group_member *m)
{
	if (m->bereft || m->failed)
		return true;
	return rounds_need(g, m) <= g->published && (m->residual || roster_may_go(g, m, m->clock));
}

static void rounds_fail(struct groups *gs, struct group *g, struct group_member *m)
{
	struct text t = {.length = 0};
	struct group_waiter w = {m->node, m->request};

	if (m->bereft) {
		results_gone(g, &t);
		m->bereft = false;
		m->reported = g->gone_last;
		groups_tell(gs, &w, -ENODATA, t.bytes, NULL);
		return;
	}
	if (m->failed == 0)
		m->failed = m->need;
	text_add(&t, "round ");
	text_add_number(&t, m->failed);
	text_add(&t, " of group ");
	text_add(&t, g->name);
	text_add(&t, " has no result: its contributions are lost: pull again");
	m->need = m->need > m->failed ? m->need : 0;
	m->failed = 0;
	groups_tell(gs, &w, -ENODATA, t.bytes, NULL);
}

/* Ends the pull of a member. */
static void rounds_answer(struct groups *gs, struct group *g, struct group_member *m)
{
	const struct group_policy_row *row = &g->policy.row[g->cohort[m->cohort].row];
	uint64_t waited = gs->now_ns - m->since_ns;
	const struct group_kept *k = rounds_kept(g, g->result);

	list_remove(&m->waits);
	m->resumed = false;
	m->waiting_ns += waited;
	g->waiting_ns += waited;
	m->answered_ns = gs->now_ns;
	results_compare(g, m);
	if (m->bereft || m->failed ||
	    (m->need && m->need == g->failed && g->published == g->failed)) {
		rounds_fail(gs, g, m);
		m->request = 0;
		return;
	}
	m->seen = g->result;
	m->seen_attempt = k ? k->attempt : 0;
	if (g->policy.alone)
		g->policy.alone->answered(gs, g, m);
	/* else what it pushes next would be late, too */
	if (row->quorum > 0 && (row->slack == POLICY_UNLIMITED || m->residual) && m->clock < g->top)
		roster_move(g, m, g->top, g->open.number - 1);
	groups_fill(gs, g, m);
	gs->answer.attempt = k ? k->attempt : 0;
	gs->ops->answer(gs->ops->arg, m->node, m->request, 0, "", &gs->answer);
	m->request = 0;
}

static void rounds_pulls(struct groups *gs, struct group *g)
{
	while (g->moved && g->missing == 0) {
		g->moved = false;
		list_each(l, after, &g->waits)
		{
			struct group_member *m = list_item(l, struct group_member, waits);

			if (rounds_ready(g, m))
				rounds_answer(gs, g, m);
		}
	}
}

/* ---- a turn -----------------------------------------------------------------------------------
 */

/* Puts the policy that is wanted. */
static void rounds_swap(struct groups *gs, struct group *g)
{
	struct text name;

	g->task = GROUP_TASK_SWAP;
	g->retry_ns = UINT64_MAX;
	group_name(&name, g->name, "p", g->version + 1, 0);
	if (!gs->ops->put(gs->ops->arg, g, name.bytes, g->wanted_text,
			  (uint32_t)strlen(g->wanted_text)))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

void rounds_turn(struct groups *gs, struct group *g)
{
	if (g->phase != GROUP_PHASE_LIVE)
		return;
	if (g->spent)
		roster_refill(g);
	if (g->live >= g->start)
		g->started = true;
	switching_turn(gs, g);
	if (g->task == GROUP_TASK_NONE && g->swapper.request)
		rounds_swap(gs, g);
	if (rounds_may_close(gs, g))
		rounds_close(gs, g);
	rounds_pulls(gs, g);
}

void rounds_retry(struct groups *gs, struct group *g)
{
	if (g->task == GROUP_TASK_DECIDE)
		rounds_decide(gs, g);
	else if (g->task == GROUP_TASK_ADOPT)
		rounds_decided(gs, g, -EEXIST);
	else if (g->task == GROUP_TASK_REDUCE)
		rounds_reduce(gs, g);
	else if (g->task == GROUP_TASK_SWAP)
		rounds_swap(gs, g);
	else if (g->task == GROUP_TASK_LOOK)
		results_ask(gs, g);
	else if (g->task == GROUP_TASK_MEND)
		results_mend(gs, g);
}
