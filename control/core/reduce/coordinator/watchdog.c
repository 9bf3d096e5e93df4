/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silent roots. Any other vertex has a reader, which reports its silence
 * (reduce/participant/input.c). A root has none before the commit. So COMBINE is repeated to one
 * root per round while all slots are filled; a COMBINE that is unanswered a round later counts as
 * silence. Starts with the plan (reduce_watch), and runs until the reduce ends.
 */
#include "state.h"

enum { WATCH_ROOTS = 4 /* are told at a time */ };

static bool watchdog_filled(const struct reduce *r)
{
	for (uint32_t i = 0; i < r->plan.graph.slots; i++)
		if (r->plan.run.slot[i].has < r->plan.graph.slot[i].wants)
			return false;
	return r->plan.graph.slots > 0;
}

static void watchdog_root(struct control *c, struct reduce *r, struct reduce_vertex *p, bool tell)
{
	if (!reduce_is(p, RUN_STARTED) || reduce_is(p, RUN_DONE))
		return;
	if (p->watched && p->call) {
		reduce_silent(c, r, reduce_number(p));
		return;
	}
	if (!p->call) {
		if (!tell)
			return;
		r->plan.run.vertex[reduce_number(p)] |= RUN_DIRTY;
		reduce_tell_all(c, r);
	}
	p->watched = true;
}

static void watchdog_roots(struct control *c, struct reduce *r)
{
	uint32_t turns = (r->plan.graph.segments + WATCH_ROOTS - 1) / WATCH_ROOTS;

	r->watch_turn = (r->watch_turn + 1) % turns;
	for (uint32_t j = 0; j < r->plan.graph.segments; j++)
		watchdog_root(c, r, reduce_root(r, j), j % turns == r->watch_turn);
}

static void watchdog_fire(struct control *c, struct timer *t)
{
	struct reduce *r = list_item(t, struct reduce, watch);

	reduce_watch(c, r);
	if (r->state >= REDUCE_COMMITTING) {
		if (r->plan.held) /* receivers that had to wait */
			reduce_tell_all(c, r);
		reduce_commit_look(c, r);
		return;
	}
	if (watchdog_filled(r))
		watchdog_roots(c, r);
	if (r->plan.held) /* nothing of its own was open that would send the rest */
		reduce_tell_all(c, r);
	reduce_feed_return(c, r);
}

void reduce_watch(struct control *c, struct reduce *r)
{
	timers_set(&c->timers, &r->watch, c->now_ns + WATCH_NS, watchdog_fire);
}
