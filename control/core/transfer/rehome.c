/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Re-parenting. A receiver that avoids a slow or silent holder may take a surplus feed: one stream
 * more than its new holder should send. All receivers of that holder are slow from then on, even if
 * the trouble has passed. So a receiver with a surplus feed, or one that is slow for long, asks the
 * owner now and then (GET_REPARENT) for a holder to move to. It moves if that holder has about as
 * many chunks as itself. If it is far behind, the holder itself should move, and asks as well.
 * Called by monitor.c.
 */
#include <errno.h>
#include "state.h"

enum { REPARENT_SLOW = 8 /* looks in a row */, REPARENT_TRIES = 5 };

void rehome_begin(struct fetch *f)
{
	f->short_of = 0;
	f->reparents = 0;
	f->reparent_ns = 0;
}

static void rehome_later(struct control *c, struct fetch *f)
{
	f->reparent_ns = c->now_ns + (REPARENT_PAUSE_NS << f->reparents);
	f->reparents += f->reparents < REPARENT_TRIES;
}

void rehome_surplus(struct control *c, struct feed *d)
{
	d->surplus = true;
	if (d->fetch->reparent_ns < c->now_ns)
		rehome_later(c, d->fetch);
}

static void rehome_needless(struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS; i++)
		f->feed[i].surplus = false;
}

static bool rehome_got(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct node *holder = monitor_holder_booked(c, answer);
	struct feed *d = holder ? ranges_feed_of(f, holder) : NULL;
	bool fed = d != NULL;

	f->reparenting = NULL;
	if (answer && answer->got.what == MESSAGE_GOT_FAILED && answer->got.status == -EALREADY)
		rehome_needless(f);
	if (!holder)
		return false;
	if (!fed && answer->got.generation == f->generation)
		d = ranges_feed_free(f);
	if (!d) {
		monitor_leave(c, f, holder);
		return false;
	}
	d->reparent = true;
	if (fed)
		upstream_query(c, d);
	else
		monitor_take_got(c, f, d, holder);
	return false;
}

static void rehome_ask(struct control *c, struct fetch *f)
{
	f->reparenting = fetch_question(c, f, MESSAGE_GET_REPARENT, MESSAGE_NODE_NONE,
					c->config.call_ns, rehome_got);
	rehome_later(c, f);
}

/* The new holder has answered: ends the other feeds, or this one. [G6.2] */
static void rehome_settle(struct control *c, struct fetch *f, struct feed *reparent)
{
	uint64_t bytes = (uint64_t)reparent->behind * f->chunk_bytes,
		 rate = c->transfer->fetches.best + 1;

	reparent->reparent = false;
	if ((double)bytes * 1e9 / (double)rate > (double)REPARENT_AHEAD_NS) {
		if (reparent->fresh)
			monitor_let_go(c, f, reparent);
		return;
	}
	c->counters.reparents++;
	f->help_ns = c->now_ns + REPARENT_PAUSE_NS + REPARENT_AHEAD_NS;
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (&f->feed[i] != reparent && f->feed[i].state != FEED_FREE)
			monitor_let_go(c, f, &f->feed[i]);
}

void rehome_fetch(struct control *c, struct fetch *f)
{
	bool surplus = false;

	for (int i = 0; i < FETCH_FEEDS; i++) {
		struct feed *d = &f->feed[i];

		if (d->reparent && d->state == FEED_STREAM && !d->call) {
			rehome_settle(c, f, d);
			return;
		}
		if (d->reparent)
			return;
		surplus |= d->surplus;
	}
	if (f->reparenting || f->more || f->missing == 0 || f->piece_left || f->rate_one != 0 ||
	    c->now_ns < f->reparent_ns)
		return;
	if (surplus || f->short_of >= REPARENT_SLOW)
		rehome_ask(c, f);
}
