/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A group that an earlier owner had: what was created, its last policy and its last decision are
 * read, and the round of that decision goes on. Members of it count until GROUP_GRACE_NS has passed
 * without a word of them. Also the removal of a group, which lists the same objects.
 */
#include <errno.h>
#include "groups.h"

void load_begin(struct groups *gs, struct group *g)
{
	struct text name;

	g->phase = GROUP_PHASE_META;
	g->retry_ns = UINT64_MAX;
	group_name(&name, g->name, NULL, 0, 0);
	if (!gs->ops->read(gs->ops->arg, g, name.bytes))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

static void load_list(struct groups *gs, struct group *g)
{
	struct text name;

	group_name(&name, g->name, NULL, 0, 0);
	text_add(&name, "/");
	g->retry_ns = UINT64_MAX;
	if (!gs->ops->list(gs->ops->arg, g, name.bytes))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

static void load_object(struct groups *gs, struct group *g, uint32_t phase)
{
	bool policy = phase == GROUP_PHASE_READ_POLICY;
	struct text name;

	g->phase = phase;
	g->retry_ns = UINT64_MAX;
	group_name(&name, g->name, policy ? "p" : "d", policy ? g->listed[0] : g->last.number,
		   policy ? 0 : g->last.attempt);
	if (!gs->ops->read(gs->ops->arg, g, name.bytes))
		g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

static void load_live(struct groups *gs, struct group *g)
{
	g->phase = GROUP_PHASE_LIVE;
	roster_bind(g, false);
	rounds_turn(gs, g);
}

/* ---- the last decision ------------------------------------------------------------------------
 */

static struct group_member *load_member(struct groups *gs, struct group *g,
					const struct group_decision_line *line)
{
	struct group_member *m = roster_find(gs, g, line->member);
	int error;

	if (!m)
		m = roster_add(gs, g, line->member, line->node, line->cohort, line->clock, &error);
	if (!m)
		return NULL;
	m->provisional = true;
	m->joined = 0;
	return m;
}

static void load_later(struct groups *gs, struct group *g)
{
	g->retry_ns = gs->now_ns + GROUP_RETRY_NS;
}

static void load_line(struct groups *gs, struct group *g, const struct group_decision_line *line)
{
	struct group_contribution *one;

	if (!line->contributes) {
		load_member(gs, g, line);
		return;
	}
	one = pool_take(&gs->contributions);
	if (!one)
		return; /* load_last sees that it is missing */
	one->member = line->member;
	one->clock = line->clock;
	one->staleness = line->staleness;
	one->node = line->node;
	list_append(&g->closing.contributions, &one->link);
	g->closing.count++;
}

/* Clocks of the members that are in the decision. */
static void load_clocks(struct groups *gs, struct group *g)
{
	list_each(l, after, &g->closing.contributions)
	{
		const struct group_contribution *one =
			list_item(l, struct group_contribution, link);
		struct group_member *m = roster_find(gs, g, one->member);

		if (m && one->clock > m->clock)
			roster_move(g, m, one->clock, g->last.number);
		if (m)
			m->need = m->in_round = g->last.number;
	}
}

/* Whether a switch had made the last round: perhaps members have that result. */
static bool load_switched(const struct group *g)
{
	const struct group_kept *k = rounds_kept(g, g->last.number);

	return k && k->attempt == (GROUP_BY_SWITCH | g->last.attempt);
}

/* Whether the round of the last decision, or of an attempt after it, has a result. */
static bool load_made(const struct group *g)
{
	const struct group_kept *k = rounds_kept(g, g->last.number);

	return k && k->attempt % GROUP_BY_SWITCH >= g->last.attempt;
}

/* The last decision cannot be read: its round has ended, with its result, or without one. The next
 * total adds to the newest result that is there. */
static void load_ended(struct groups *gs, struct group *g)
{
	rounds_free(gs, &g->closing);
	g->published = g->last.number;
	if (!load_made(g))
		g->failed = g->last.number;
	for (uint32_t i = 0; i < 2 * GROUP_KEEP; i++) {
		uint64_t n = g->kept[i].number;

		if (n > g->result && n <= g->last.number && n != g->failed)
			g->result = n;
	}
	load_live(gs, g);
}

static void load_last(struct groups *gs, struct group *g, const char *bytes, uint32_t length)
{
	struct group_decision d;

	g->closing.number = g->last.number;
	g->closing.attempt = g->last.attempt;
	g->closing.count = 0;
	list_init(&g->closing.contributions);
	rounds_open(g, g->last.number + 1);
	if (!group_decision_read(bytes, length, g->last, &d)) {
		load_ended(gs, g);
		return;
	}
	group_decision_lines(bytes, length, load_line, gs, g);
	if (g->closing.count < d.count) { /* no room for all of them: the sum would lack some */
		rounds_free(gs, &g->closing);
		load_later(gs, g);
		return;
	}
	g->closing.version = d.version;
	g->closing.base = d.base;
	g->closing.resumed = true;
	g->closing.top = d.top;
	g->top = d.top;
	g->started = true;
	g->published = g->last.number - 1;
	if (rounds_kept(g, d.base.number))
		g->result = d.base.number;
	for (uint64_t n = g->last.number; n > 0 && n + GROUP_KEEP > g->last.number; n--) {
		if (n == g->last.number || !rounds_kept(g, n))
			continue;
		g->result = n;
		break;
	}
	g->grace_ns = gs->now_ns + GROUP_GRACE_NS;
	load_clocks(gs, g);
	rounds_fix(gs, g);
	if (load_switched(g))
		g->closing.attempt |= GROUP_BY_SWITCH;
	g->phase = GROUP_PHASE_SIFT;
	load_list(gs, g);
}

/* The contributions of the last decision that nobody has are lost. Members on dead nodes are, too.
 * The round of that decision may have its result. */
static void load_sifted(struct groups *gs, struct group *g)
{
	list_each(l, after, &g->closing.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		if (!one->there)
			one->node = GROUP_NODE_DEAD;
	}
	list_each(m, next, &g->members)
	{
		struct group_member *one = list_item(m, struct group_member, of_group);

		if (!gs->ops->alive(gs->ops->arg, one->node))
			roster_drop(gs, g, one, true);
	}
	results_resume(gs, g);
	load_live(gs, g);
}

/* No decision is there: the members announce themselves, to the first round. */
static void load_first(struct groups *gs, struct group *g)
{
	rounds_open(g, 1);
	load_live(gs, g);
}

/*
 * The last decision cannot be read. If it has a result, its round has had its end, and its members
 * join again. If not, it died with an owner that did not know yet that it was there: nobody has
 * used it. The round is decided again, as another attempt, by what was decided before it. If that
 * is not known either, the round ends without a result: numbers of rounds are never used again.
 */
static void load_lost(struct groups *gs, struct group *g)
{
	struct text name;

	if (load_made(g) || (g->earlier.number == 0 && g->last.number > 1)) {
		load_last(gs, g, NULL, 0);
		return;
	}
	group_name(&name, g->name, "r", g->last.number, g->last.attempt);
	gs->ops->remove(gs->ops->arg, name.bytes);
	if (g->last.number != g->spoilt.number) /* else an earlier attempt of that round */
		g->spoilt = g->last;
	g->last = g->earlier;
	g->earlier = (struct group_kept){0};
	if (g->last.number == 0)
		load_first(gs, g);
	else
		load_object(gs, g, GROUP_PHASE_LAST);
}

/* ---- the ends of tasks ------------------------------------------------------------------------
 */

/* The newest policy that says something is in force: one that nobody can read was not in force yet.
 * If there is none, it is that of the creation. */
static void load_policy(struct groups *gs, struct group *g, const char *bytes, uint32_t length)
{
	char text[GROUP_POLICY_MAX + 1] = "";
	struct group_policy_error error;
	struct group_policy p;

	if (length <= GROUP_POLICY_MAX)
		memcpy(text, bytes, length);
	if (group_policy_parse(text, &p, &error) == 0) {
		g->policy = p;
		g->version = g->listed[0];
		memcpy(g->policy_text, text, sizeof(text));
	} else {
		memmove(g->listed, g->listed + 1, sizeof(g->listed) - sizeof(g->listed[0]));
		g->listed[GROUP_POLICIES - 1] = 0;
		if (g->listed[0]) {
			load_object(gs, g, GROUP_PHASE_READ_POLICY);
			return;
		}
	}
	if (g->last.number > 0)
		load_object(gs, g, GROUP_PHASE_LAST);
	else
		load_first(gs, g);
}

void load_read(struct groups *gs, struct group *g, int32_t status, const char *bytes,
	       uint32_t length)
{
	if (g->phase == GROUP_PHASE_META) {
		if (status == 0 && group_meta_read(g, bytes, length)) {
			g->phase = GROUP_PHASE_LIST;
			g->version = 1;
			load_list(gs, g);
		} else if (status == -ETIMEDOUT) {
			load_later(gs, g);
		} else if (status == 0) {
			g->phase = GROUP_PHASE_OTHER;
		} else {
			groups_free(gs, g); /* deleted: the next request is told so */
		}
	} else if ((status != 0 && status != -ENOENT && status != -ENODATA) ||
		   (status == -ENODATA && gs->now_ns < g->patience_ns)) {
		load_later(gs, g); /* its holders may come back */
	} else if (g->phase == GROUP_PHASE_READ_POLICY) {
		load_policy(gs, g, bytes, status ? GROUP_POLICY_MAX + 1 : length);
	} else if (status) {
		load_lost(gs, g);
	} else {
		load_last(gs, g, bytes, length);
	}
}

static bool load_newer(const struct group_kept *a, const struct group_kept *b)
{
	return a->number > b->number || (a->number == b->number && a->attempt > b->attempt);
}

static void load_version(struct group *g, uint64_t version)
{
	for (uint32_t i = 0; i < GROUP_POLICIES && version != g->listed[i]; i++) {
		uint64_t before = g->listed[i];

		if (version < before)
			continue;
		g->listed[i] = version;
		version = before;
	}
}

/* One that exists. */
static void load_decision(struct group *g, const struct group_kept *d)
{
	if (load_newer(d, &g->last)) {
		g->earlier = g->last;
		g->last = *d;
	} else if (load_newer(&g->last, d) && load_newer(d, &g->earlier)) {
		g->earlier = *d;
	}
}

/* Of one round the last attempt counts; of one attempt that of the hosts: they have made it because
 * the switch had failed. */
static bool load_result(const struct group_kept *k, uint64_t number, uint32_t attempt)
{
	uint32_t before = k->attempt % GROUP_BY_SWITCH, now = attempt % GROUP_BY_SWITCH;

	if (k->number != number)
		return k->number < number;
	return before != now ? before < now : attempt < k->attempt;
}

/* One of the last decision is there; one of an earlier decision is of no use. */
static void load_sift(struct groups *gs, struct group *g, const char *name, bool there)
{
	const struct group_member *m;
	uint64_t clock, member;

	if (!group_contribution_parse(g->name, name, &clock, &member))
		return;
	list_each(l, after, &g->closing.contributions)
	{
		struct group_contribution *one = list_item(l, struct group_contribution, link);

		if (one->member != member || one->clock != clock)
			continue;
		one->there |= there;
		return;
	}
	m = roster_find(gs, g, member);
	if (m && clock <= m->decided)
		gs->ops->remove(gs->ops->arg, name);
}

void load_listed(struct groups *gs, struct group *g, const char *name, bool there)
{
	uint64_t number;
	uint32_t attempt;
	char kind;

	if (g->phase == GROUP_PHASE_REMOVE) {
		gs->ops->remove(gs->ops->arg, name);
		return;
	}
	if (g->phase == GROUP_PHASE_SIFT) {
		load_sift(gs, g, name, there);
		return;
	}
	if (!group_name_parse(g->name, name, &kind, &number, &attempt) || number == 0)
		return;
	if (kind == 'p')
		load_version(g, number);
	if (kind == 'd')
		load_decision(g, &(struct group_kept){number, attempt});
	if (kind == 'r' && there &&
	    load_result(&g->kept[number % (2 * GROUP_KEEP)], number, attempt))
		g->kept[number % (2 * GROUP_KEEP)] = (struct group_kept){number, attempt};
	if ((kind == 'd' || kind == 'r') && (g->oldest == 0 || number < g->oldest))
		g->oldest = number;
}

void load_list_ended(struct groups *gs, struct group *g, int32_t status)
{
	struct text name;

	if (status != 0) {
		load_later(gs, g);
		return;
	}
	if (g->phase == GROUP_PHASE_SIFT) {
		load_sifted(gs, g);
		return;
	}
	g->patience_ns = gs->now_ns + GROUP_GRACE_NS;
	if (g->phase == GROUP_PHASE_REMOVE) {
		struct group_waiter w = g->remover;

		group_name(&name, g->name, NULL, 0, 0);
		gs->ops->remove(gs->ops->arg, name.bytes);
		groups_free(gs, g);
		groups_tell(gs, &w, 0, "", NULL);
	} else if (g->listed[0] > 0) {
		load_object(gs, g, GROUP_PHASE_READ_POLICY);
	} else if (g->last.number > 0) {
		load_object(gs, g, GROUP_PHASE_LAST);
	} else {
		load_first(gs, g);
	}
}

void load_retry(struct groups *gs, struct group *g)
{
	if (g->phase == GROUP_PHASE_META)
		load_begin(gs, g);
	else if (g->phase == GROUP_PHASE_LIST || g->phase == GROUP_PHASE_SIFT ||
		 g->phase == GROUP_PHASE_REMOVE)
		load_list(gs, g);
	else
		load_object(gs, g, g->phase);
}
