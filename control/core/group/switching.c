/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds that a switch makes (docs/user/aggregation.md, Groups): the owner gives each member of a
 * decided round a part as the answer to its pull, and publishes the result when member 0 has put
 * it. In all other cases the hosts make the round, from the same contributions. Called by rounds.c
 * and requests.c. It must not know packets.
 */
#include <errno.h>
#include "internal/reduce.h"
#include "groups.h"

enum { SWITCHING_DOUBLINGS = 5 }; /* of these times, while no round there succeeds */

static bool switching_on(const struct group *g)
{
	return g->task == GROUP_TASK_GATHER || g->task == GROUP_TASK_SWITCH;
}

static struct group_member *switching_member(struct groups *gs, const struct group *g,
					     const struct list *l)
{
	return roster_find(gs, g, list_item(l, struct group_contribution, link)->member);
}

/* Whether the member of a closing round waits for its result: under ssp and asp it may not. */
static bool switching_waits(const struct group *g, const struct group_member *m)
{
	const struct group_policy *p = &g->closing.policy;
	uint32_t row = group_policy_match(p, g->cohort[m->cohort].name);

	return !m->provisional && row != POLICY_NO_ROW && p->row[row].quorum > 0;
}

/* Whether a switch can make the closing round: one contribution of each of some members that wait.
 */
static bool switching_fits(struct groups *gs, struct group *g)
{
	bool fits = g->switches > 0 && g->closing.count >= 2 &&
		    g->closing.count <= GROUP_SWITCH_MEMBERS && gs->now_ns >= g->switch_gather_ns;

	list_each(l, after, &g->closing.contributions)
	{
		struct group_member *m = fits ? switching_member(gs, g, l) : NULL;

		fits = m && switching_waits(g, m) && m->job_round != g->closing.number;
		if (m)
			m->job_round = g->closing.number;
	}
	list_each(l, after, &g->closing.contributions)
	{
		struct group_member *m = switching_member(gs, g, l);

		if (m)
			m->job_round = 0;
	}
	return fits;
}

bool switching_begin(struct groups *gs, struct group *g)
{
	if (!switching_fits(gs, g))
		return false;
	for (uint32_t i = 0; i < g->switches; i++) {
		g->switch_chosen = (uint32_t)((g->closing.number + i) % g->switches);
		if (g->at_switch[g->switch_chosen].rest_ns > gs->now_ns)
			continue;
		g->task = GROUP_TASK_GATHER;
		g->retry_ns = UINT64_MAX;
		g->switch_lost = false;
		g->switch_due_ns = gs->now_ns + SWITCHING_GATHER_NS;
		if (g->switch_key == 0) {
			g->switch_number = (uint32_t)gs->ops->random(gs->ops->arg);
			g->switch_key = gs->ops->random(gs->ops->arg) | 1;
		}
		return true;
	}
	return false;
}

/* ---- the end ----------------------------------------------------------------------------------
 */

static void switching_clear(struct groups *gs, struct group *g)
{
	g->switch_due_ns = UINT64_MAX;
	list_each(l, after, &g->closing.contributions)
	{
		struct group_member *m = switching_member(gs, g, l);

		if (m)
			m->in_job = false;
	}
}

static void switching_by_hosts(struct groups *gs, struct group *g)
{
	switching_clear(gs, g);
	rounds_reduce(gs, g);
}

/* error: an errno; 0: a member has gone, or has given up its part. */
static void switching_failed(struct groups *gs, struct group *g, uint32_t error)
{
	struct group_switch *at = &g->at_switch[g->switch_chosen];
	uint64_t rest = error == 0	      ? 0
			: error == ETIMEDOUT  ? SWITCHING_SLOW_NS
			: error == EOPNOTSUPP ? SWITCHING_ODD_NS
					      : SWITCHING_REST_NS;

	g->doubt = true; /* perhaps member 0 has not found the total */
	g->fallen++;
	gs->fallen++;
	at->rest_ns = gs->now_ns + (rest << at->failed);
	at->failed += rest > 0 && at->failed < SWITCHING_DOUBLINGS;
	switching_by_hosts(gs, g);
}

static void switching_done(struct groups *gs, struct group *g)
{
	switching_clear(gs, g);
	g->switched++;
	g->at_switch[g->switch_chosen].failed = 0;
	g->closing.attempt |= GROUP_BY_SWITCH;
	rounds_end(gs, g, true);
}

/* ---- the job ----------------------------------------------------------------------------------
 */

/* Answers the pull of a member with its part. */
static void switching_tell(struct groups *gs, struct group *g, const struct group_member *m,
			   const struct group_waiter *w)
{
	const struct group_round *r = &g->closing;
	struct group_job *job = &gs->answer.job;

	groups_fill(gs, g, m);
	gs->answer.round = 0; /* it has not got that result */
	gs->answer.attempt = 0;
	*job = (struct group_job){.round = r->number,
				  .clock = m->job_clock,
				  .key = g->switch_key,
				  .base = r->base.number,
				  .base_attempt = r->base.attempt,
				  .attempt = r->attempt,
				  .version = (uint32_t)(r->number * 16 + r->attempt % 16),
				  .group = g->switch_number,
				  .ip = g->at_switch[g->switch_chosen].ip,
				  .member = m->place,
				  .members = r->count};
	gs->ops->answer(gs->ops->arg, w->node, w->request, 0, "", &gs->answer);
}

/* The member that puts the result: the one that has the last one, if it takes part. */
static uint64_t switching_first(struct groups *gs, const struct group *g)
{
	const struct list *first = NULL;

	list_each(l, after, &g->closing.contributions)
	{
		if (!first || switching_member(gs, g, l)->number == g->switch_first)
			first = l;
	}
	return switching_member(gs, g, first)->number;
}

static void switching_start(struct groups *gs, struct group *g)
{
	uint64_t bytes = g->count * reduce_dtype_bytes(g->dtype);
	uint32_t place = 1;

	g->task = GROUP_TASK_SWITCH;
	bytes = bytes < UINT64_MAX / 4000 ? bytes : UINT64_MAX / 4000;
	g->switch_due_ns = gs->now_ns + SWITCHING_LIMIT_NS + bytes * 1000;
	g->switch_first = switching_first(gs, g);
	list_each(l, after, &g->closing.contributions)
	{
		struct group_member *m = switching_member(gs, g, l);
		struct group_waiter w = {m->node, m->request};

		m->in_job = m->resumed = true;
		m->job_request = m->request;
		m->job_clock = list_item(l, struct group_contribution, link)->clock;
		m->place = m->number == g->switch_first ? 0 : place++;
		m->request = 0;
		list_remove(&m->waits);
		switching_tell(gs, g, m, &w);
	}
}

static void switching_gather(struct groups *gs, struct group *g)
{
	bool all = true, able = !g->switch_lost;

	list_each(l, after, &g->closing.contributions)
	{
		const struct group_member *m = able ? switching_member(gs, g, l) : NULL;

		able = m && (m->request == 0 || m->switchable);
		all &= m && m->request != 0;
	}
	if (able && all) {
		switching_start(gs, g);
	} else if (!able || gs->now_ns >= g->switch_due_ns) {
		if (able) /* its members do not pull: do not wait for them each time */
			g->switch_gather_ns = gs->now_ns + SWITCHING_MISS_NS;
		switching_by_hosts(gs, g);
	}
}

void switching_turn(struct groups *gs, struct group *g)
{
	if (g->task == GROUP_TASK_GATHER)
		switching_gather(gs, g);
	else if (g->task == GROUP_TASK_SWITCH && g->switch_lost)
		switching_failed(gs, g, 0);
	else if (g->task == GROUP_TASK_SWITCH && gs->now_ns >= g->switch_due_ns)
		switching_failed(gs, g, EIO);
}

void switching_gone(struct group *g, const struct group_member *m)
{
	g->switch_lost |= switching_on(g) && m->in_job;
}

void switching_withdrawn(struct groups *gs, struct group *g, struct group_member *m,
			 uint64_t request)
{
	if (!m->in_job || g->task != GROUP_TASK_SWITCH || m->job_request != request)
		return;
	m->in_job = false;
	switching_failed(gs, g, ETIMEDOUT); /* it has not heard of its job */
}

bool switching_pull(struct groups *gs, struct group *g, struct group_member *m,
		    const struct group_waiter *w, const struct group_request *r)
{
	bool report = r->flags & (GROUP_SWITCHED | GROUP_UNSWITCHED);

	m->switchable = r->flags & GROUP_SWITCHABLE;
	if (!m->in_job || g->task != GROUP_TASK_SWITCH)
		return false;
	if (m->job_request == w->request) { /* the answer was lost */
		switching_tell(gs, g, m, w);
		return true;
	}
	m->in_job = false;
	if (!report || r->job != g->closing.number || r->job_attempt != g->closing.attempt)
		switching_failed(gs, g, ETIMEDOUT); /* it knows of no job */
	else if (r->flags & GROUP_UNSWITCHED)
		switching_failed(gs, g, r->job_error);
	else if (m->number == g->switch_first)
		switching_done(gs, g);
	return false;
}
