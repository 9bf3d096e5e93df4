/* SPDX-License-Identifier: BSD-3-Clause */
/* What the world of a group judges: results that clients get, decisions, staleness, contributions.
 */
#include "world.h"

/* ---- what is judged ---------------------------------------------------------------------------
 */

/* What a result adds to is in its decision. */
void world_judge_made(struct world *w, const char *name)
{
	const struct world_name *n;
	struct group_decision d;
	struct group_kept of, decided;
	struct text t;
	char kind;

	if (w->forged)
		return;
	assert_true(group_name_parse("g", name, &kind, &of.number, &of.attempt) && kind == 'r');
	decided = (struct group_kept){of.number, of.attempt % GROUP_BY_SWITCH};
	group_name(&t, "g", "d", decided.number, decided.attempt);
	n = world_find(w, t.bytes);
	assert_true(n && n->there && w->totals < 2 * WORLD_ROUNDS);
	assert_true(group_decision_read(n->bytes, n->length, decided, &d));
	w->total[w->totals++] = (struct world_total){of, d.base};
}

static struct group_kept world_base(const struct world *w, const struct group_kept *k)
{
	for (uint32_t i = w->totals; i-- > 0;)
		if (w->total[i].of.number == k->number && w->total[i].of.attempt == k->attempt)
			return w->total[i].base;
	fail_msg("nobody has made round %llu.%u", (unsigned long long)k->number, k->attempt);
	return (struct group_kept){0};
}

/* A round's result is one object. A total has all rounds that clients have got, but for those that
 * were named as lost. */
void world_judge_got(struct world *w, uint32_t client, const struct group_kept *k)
{
	struct world_published *p = &w->published[k->number % WORLD_ROUNDS];
	struct group_kept at = *k, base;

	if (w->forged)
		return;
	/* the only object of a switch's round may be lost: a member hears that with its next pull
	 */
	if (p->number == k->number && p->got && p->attempt < GROUP_BY_SWITCH)
		assert_int_equal(p->attempt, k->attempt);
	else
		w->results++;
	*p = (struct world_published){k->number, k->attempt,
				      (p->number == k->number ? p->got : 0) | 1u << client,
				      p->gone};
	while (at.number) {
		base = world_base(w, &at);
		if (base.number == 0 && w->rounds_only)
			return;
		for (uint64_t n = base.number; n < at.number; n++) {
			const struct world_published *of = &w->published[n % WORLD_ROUNDS];

			/* one copy of a switch's is an object: others hear with their next pull
			 * that it is lost */
			uint32_t whose = of->attempt >= GROUP_BY_SWITCH ? 1u << client : UINT32_MAX;

			if (n == 0 || of->number != n || !(of->got & whose) || of->gone)
				continue;
			if (n != base.number || of->attempt != base.attempt)
				fail_msg("round %llu, which a client has got, is not in that of "
					 "%llu, on %llu.%u",
					 (unsigned long long)n, (unsigned long long)k->number,
					 (unsigned long long)base.number, base.attempt);
		}
		at = base;
	}
}

void world_judge_died(struct world *w, uint32_t client)
{
	for (uint32_t i = 0; i < WORLD_ROUNDS; i++)
		w->published[i].got &= ~(1u << client);
}

void world_judge_gone(struct world *w, const struct group *g)
{
	for (uint64_t n = g->gone_first; !w->forged && n && n <= g->gone_last; n++) {
		w->published[n % WORLD_ROUNDS].gone = true;
		w->published[n % WORLD_ROUNDS].number = n;
	}
}

static const struct world_counted *world_in(const struct world *w, uint64_t member, uint64_t clock)
{
	uint32_t at = (uint32_t)((member * 31 + clock) * 2654435761u % WORLD_COUNTED);

	while (w->counted[at].member &&
	       !(w->counted[at].member == member && w->counted[at].clock == clock))
		at = (at + 1) % WORLD_COUNTED;
	return w->counted[at].member ? &w->counted[at] : NULL;
}

void world_judge_pushes(struct world *w)
{
	for (uint32_t i = 0; i < w->clients; i++) {
		const struct world_client *c = &w->client[i];
		const struct group_request *j = &c->join;

		if (c->state == CLIENT_DEAD || c->state == CLIENT_JOINS || c->told > 0)
			continue;
		for (uint64_t clock = 1; clock <= j->clock; clock++) {
			uint64_t by = j->clock - clock;

			if (c->acked[clock % WORLD_CLOCKS] != clock ||
			    (by < GROUP_PENDING_MAX && j->pending >> by & 1))
				continue;
			w->judged++;
			if (!world_in(w, j->member, clock))
				fail_msg("clock %llu of client %u %lx is in no round",
					 (unsigned long long)clock, i, j->member);
		}
	}
}

static uint64_t world_slack(const struct group_policy *p)
{
	return p->row[0].slack == POLICY_UNLIMITED ? UINT64_MAX : p->row[0].slack;
}

/* A tighter limit holds from the first clock on that nobody had pushed when it came, a looser one
 * at once: the member that pushed for clock top did so under the last policy that holds from there
 * on, or under a later one that was looser. And a round ends under the policy that opened it. */
static void world_judge_clock(struct world *w, const struct group *g, uint64_t top,
			      uint64_t staleness)
{
	uint64_t allowed = world_slack(&g->closing.policy);

	for (uint32_t i = w->limits; i-- > 0;) {
		if (w->limit[i].slack > allowed)
			allowed = w->limit[i].slack;
		if (w->limit[i].from <= top)
			break;
	}
	/* a round of an earlier policy may hold what both policies have let pass */
	if (w->limits == 0 || allowed == UINT64_MAX || g->closing.version != g->version)
		return;
	w->bounded++;
	w->stalest = staleness > w->stalest ? staleness : w->stalest;
	if (staleness > allowed)
		print_message("%llu clocks behind %llu, not %llu\n", (unsigned long long)staleness,
			      (unsigned long long)top, (unsigned long long)allowed);
	assert_true(staleness <= allowed);
}

void world_limit(struct world *w, const struct group *g)
{
	if (w->limits == 0)
		return;
	if (g->version != w->limit[w->limits - 1].version) {
		assert_true(w->limits < WORLD_LIMITS && g->policy.rows == 1);
		w->limit[w->limits++] =
			(struct world_limit){g->version, g->pushed + 1, world_slack(&g->policy)};
	}
	if (g->open.number == w->opened)
		return;
	/* who pushed for a round of an earlier policy did so under that */
	for (uint32_t i = w->limits; i-- > 0 && w->limit[i].version > w->open_version;)
		w->limit[i].from = g->pushed + 1;
}

void world_judge_staleness(struct world *w)
{
	w->limits = 1; /* before it: anything */
	w->limit[0] = (struct world_limit){0, 0, UINT64_MAX};
	world_limit(w, world_group(w));
}

/* A (member, clock) is in one published round at most; and rounds do not mix versions. */
static void world_judge_decision(struct groups *gs, struct group *g,
				 const struct group_decision_line *l)
{
	struct world *w = (struct world *)(void *)gs->ops->arg;
	struct world_counted *c = w->counted;
	uint32_t at;

	if (!l->contributes)
		return;
	at = (uint32_t)((l->member * 31 + l->clock) * 2654435761u % WORLD_COUNTED);
	while (c[at].member && !(c[at].member == l->member && c[at].clock == l->clock))
		at = (at + 1) % WORLD_COUNTED;
	if (c[at].member)
		assert_int_equal(c[at].round, g->closing.number);
	c[at] = (struct world_counted){l->member, l->clock, g->closing.number};
	world_judge_clock(w, g, l->clock + l->staleness, l->staleness);
}

void world_judge_published(struct world *w, const struct group *before, struct group *g)
{
	struct group_kept of = {before->closing.number, before->closing.attempt % GROUP_BY_SWITCH};
	struct group_decision d;
	struct text name;
	struct group as = *before;
	const struct world_name *n;

	if (w->forged || g->result == before->result ||
	    (before->task != GROUP_TASK_REDUCE && before->task != GROUP_TASK_SWITCH &&
	     before->task != GROUP_TASK_LOOK) ||
	    g->result != before->closing.number)
		return;
	group_name(&name, g->name, "d", of.number, of.attempt);
	n = world_find(w, name.bytes);
	assert_true(n && n->there);
	assert_true(group_decision_read(n->bytes, n->length, of, &d));
	group_decision_lines(n->bytes, n->length, world_judge_decision, w->groups, &as);
	assert_int_equal(d.version, before->closing.version);
	assert_int_equal(d.count, before->closing.count);
}
