/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policy `auto`: the rows 'fast: ssp 2, slow: asp', and who is of which. All begin as fast. A
 * member is slow while its gap, the time from the answer to a pull to the next push, is above 1.5
 * times a percentile of all members' gaps. While a pull waits, members that are overdue become slow
 * too, so that nobody waits for the whole of a slow step. Called by the policy's events; it must
 * not know rounds.
 */
#include "groups.h"

enum {
	AUTO_PERCENT = 50, /* without an argument */
	AUTO_SLACK = 2,
	AUTO_SLOW_PUSHES = 2, /* with large gaps, in a row, before a member moves */
};

static int auto_rows(struct group_policy_text *t, struct group_policy *p)
{
	p->percent = AUTO_PERCENT;
	p->rows = 2;
	p->row[0] = (struct group_policy_row){"fast", &policies_ssp, .slack = AUTO_SLACK};
	p->row[1] = (struct group_policy_row){"slow", &policies_asp, .slack = POLICY_UNLIMITED};
	return t->bytes ? policy_number(t, 1, 99,
					"auto takes a percentile of 1 to 99, and stands alone",
					&p->percent)
			: 0;
}

static const char *auto_cohort(const char *name)
{
	return strcmp(name, "slow") == 0 ? "slow" : "fast";
}

static void auto_show(const struct group_policy *p, struct text *t)
{
	text_add(t, "auto: a member is slow while its gaps are above 1.5 times the ");
	text_add_number(t, p->percent);
	text_add(t, "th percentile\n");
}

/* The percentile of all gaps, by stochastic approximation: a step up or down with each gap (Robbins
 * and Monro, 1951). */
static void auto_percentile(struct group *g, uint64_t gap_ns)
{
	uint64_t q = g->percentile_ns, step = q / 10;

	if (q == 0)
		g->percentile_ns = gap_ns;
	else if (gap_ns > q)
		g->percentile_ns = q + step * g->policy.percent / 100;
	else
		g->percentile_ns = q - step * (100 - g->policy.percent) / 100;
	if (g->percentile_ns == 0)
		g->percentile_ns = 1;
}

static void auto_pushed(struct groups *gs, struct group *g, struct group_member *m)
{
	uint64_t gap_ns = gs->now_ns - m->answered_ns;

	if (m->answered_ns == 0)
		return;
	m->gap_ns = m->gap_ns ? (3 * m->gap_ns + gap_ns) / 4 : gap_ns;
	auto_percentile(g, gap_ns);
	m->slow = m->gap_ns * 2 > g->percentile_ns * 3 ? m->slow + 1 : 0;
	if (m->slow >= AUTO_SLOW_PUSHES)
		roster_change(gs, g, m, "slow");
}

static void auto_answered(struct groups *gs, struct group *g, struct group_member *m)
{
	if (strcmp(g->cohort[m->cohort].name, "slow") == 0 && m->gap_ns * 5 < g->percentile_ns * 6)
		roster_change(gs, g, m, "fast");
}

/* Twice per gap. */
static void auto_waits(struct groups *gs, struct group *g)
{
	if (g->percentile_ns > 0 && g->look_ns == UINT64_MAX)
		g->look_ns = gs->now_ns + g->percentile_ns / 2 + 1;
}

static void auto_look(struct groups *gs, struct group *g)
{
	if (list_empty(&g->waits))
		return;
	list_each(l, after, &g->members)
	{
		struct group_member *m = list_item(l, struct group_member, of_group);
		uint64_t begin_ns = m->answered_ns ? m->answered_ns : m->since_ns;

		if (m->request == 0 && !m->in_job &&
		    (gs->now_ns - begin_ns) * 2 > g->percentile_ns * 3)
			roster_change(gs, g, m, "slow");
	}
	auto_waits(gs, g);
}

const struct policy_ops policies_auto = {.word = "auto",
					 .rows = auto_rows,
					 .cohort = auto_cohort,
					 .show = auto_show,
					 .pushed = auto_pushed,
					 .answered = auto_answered,
					 .waits = auto_waits,
					 .look = auto_look};
