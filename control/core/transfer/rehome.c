/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Back into the tree. One who goes round a slow or silent holder may take a stream more than its
 * new holder is to feed. All whom that one feeds are slow from then on, though the trouble may have
 * lasted a moment. So whoever took such a stream, or is slow for long, asks the directory now and
 * then: does somebody feed me who feeds too many, and whose stream would do instead? Another of its
 * holders, or one with a free slot. It lets go of the others, if the new one has about as much as
 * itself; if that is far behind, it is the one that should move, and it asks as well.
 */
#include <errno.h>
#include "room.h"

#define HOME_PAUSE_NS UINT64_C(100000000) /* doubles with each question of a fetch */
#define HOME_AHEAD_NS UINT64_C(500000000) /* what may be waited for at the new place */

enum { HOME_SLOW = 8 /* looks in a row */, HOME_TRIES = 5 };

void fetch_home_begin(struct fetch *f)
{
	f->short_of = 0;
	f->homes = 0;
	f->home_ns = 0;
}

static void home_later(struct control *c, struct fetch *f)
{
	f->home_ns = c->now_ns + (HOME_PAUSE_NS << f->homes);
	f->homes += f->homes < HOME_TRIES;
}

void fetch_strays(struct control *c, struct feed *d)
{
	d->stray = true;
	if (d->fetch->home_ns < c->now_ns)
		home_later(c, d->fetch);
}

static void home_is_here(struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS; i++)
		f->feed[i].stray = false;
}

static bool home_got(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	struct node *holder = fetch_offered(c, answer);
	struct feed *d = holder ? fetch_feed_of(f, holder) : NULL;
	bool fed = d != NULL;

	f->homing = NULL;
	if (answer && answer->got.what == MESSAGE_GOT_FAILED && answer->got.status == -EALREADY)
		home_is_here(f);
	if (holder == NULL)
		return false;
	if (!fed && answer->got.generation == f->generation)
		d = fetch_feed_free(f);
	if (d == NULL) {
		fetch_leave(c, f, holder);
		return false;
	}
	d->home = true;
	if (fed)
		feed_query(c, d);
	else
		fetch_take(c, f, d, holder);
	return false;
}

static void home_ask(struct control *c, struct fetch *f)
{
	f->homing = fetch_question(c, f, MESSAGE_GET_HOME, MESSAGE_NODE_NONE, c->config.call_ns,
				   home_got);
	home_later(c, f);
}

/* It answers: the others go, or it does. */
static void home_settle(struct control *c, struct fetch *f, struct feed *home)
{
	uint64_t bytes = (uint64_t)home->behind * f->chunk_bytes,
		 rate = c->transfer->fetches.best + 1;

	home->home = false;
	if ((double)bytes * 1e9 / (double)rate > (double)HOME_AHEAD_NS) {
		if (home->fresh)
			fetch_let_go(c, f, home);
		return;
	}
	c->counters.homes++;
	f->help_ns = c->now_ns + HOME_PAUSE_NS + HOME_AHEAD_NS;
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (&f->feed[i] != home && f->feed[i].state != FEED_FREE)
			fetch_let_go(c, f, &f->feed[i]);
}

void fetch_home(struct control *c, struct fetch *f)
{
	bool stray = false;

	for (int i = 0; i < FETCH_FEEDS; i++) {
		struct feed *d = &f->feed[i];

		if (d->home && d->state == FEED_STREAM && d->call == NULL) {
			home_settle(c, f, d);
			return;
		}
		if (d->home)
			return;
		stray |= d->stray;
	}
	if (f->homing || f->more || f->missing == 0 || f->piece_left || f->rate_one != 0 ||
	    c->now_ns < f->home_ns)
		return;
	if (stray || f->short_of >= HOME_SLOW)
		home_ask(c, f);
}
