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
#include "room.h"

#define REPARENT_PAUSE_NS UINT64_C(100000000) /* doubles with each GET_REPARENT of a fetch */
#define REPARENT_AHEAD_NS                                                      \
	UINT64_C(500000000) /* lag of the new holder that is worth waiting for \
			     */

enum { REPARENT_SLOW = 8 /* looks in a row */, REPARENT_TRIES = 5 };

void fetch_reparent_begin(struct fetch *f)
{
	f->short_of = 0;
	f->reparents = 0;
	f->reparent_ns = 0;
}

static void reparent_later(struct control *c, struct fetch *f)
{
	f->reparent_ns = c->now_ns + (REPARENT_PAUSE_NS << f->reparents);
	f->reparents += f->reparents < REPARENT_TRIES;
}

void fetch_surplus(struct control *c, struct feed *d)
{
	d->surplus = true;
	if (d->fetch->reparent_ns < c->now_ns)
		reparent_later(c, d->fetch);
}

static void reparent_needless(struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS; i++)
		f->feed[i].surplus = false;
}

static bool reparent_got(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct node *holder = fetch_holder_booked(c, answer);
	struct feed *d = holder ? fetch_feed_of(f, holder) : NULL;
	bool fed = d != NULL;

	f->reparenting = NULL;
	if (answer && answer->got.what == MESSAGE_GOT_FAILED && answer->got.status == -EALREADY)
		reparent_needless(f);
	if (holder == NULL)
		return false;
	if (!fed && answer->got.generation == f->generation)
		d = fetch_feed_free(f);
	if (d == NULL) {
		fetch_leave(c, f, holder);
		return false;
	}
	d->reparent = true;
	if (fed)
		feed_query(c, d);
	else
		fetch_take(c, f, d, holder);
	return false;
}

static void reparent_ask(struct control *c, struct fetch *f)
{
	f->reparenting = fetch_question(c, f, MESSAGE_GET_REPARENT, MESSAGE_NODE_NONE,
					c->config.call_ns, reparent_got);
	reparent_later(c, f);
}

/* The new holder has answered: ends the other feeds, or this one. */
static void reparent_settle(struct control *c, struct fetch *f, struct feed *reparent)
{
	uint64_t bytes = (uint64_t)reparent->behind * f->chunk_bytes,
		 rate = c->transfer->fetches.best + 1;

	reparent->reparent = false;
	if ((double)bytes * 1e9 / (double)rate > (double)REPARENT_AHEAD_NS) {
		if (reparent->fresh)
			fetch_let_go(c, f, reparent);
		return;
	}
	c->counters.reparents++;
	f->help_ns = c->now_ns + REPARENT_PAUSE_NS + REPARENT_AHEAD_NS;
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (&f->feed[i] != reparent && f->feed[i].state != FEED_FREE)
			fetch_let_go(c, f, &f->feed[i]);
}

void fetch_reparent(struct control *c, struct fetch *f)
{
	bool surplus = false;

	for (int i = 0; i < FETCH_FEEDS; i++) {
		struct feed *d = &f->feed[i];

		if (d->reparent && d->state == FEED_STREAM && d->call == NULL) {
			reparent_settle(c, f, d);
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
		reparent_ask(c, f);
}
