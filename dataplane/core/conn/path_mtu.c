/* SPDX-License-Identifier: BSD-3-Clause */
#include "path_mtu.h"
#include "peer.h"
#include "sent.h"
#include "core/numbers.h"

/*
 * Silence says nothing about sizes: hosts that are busy, queues that are full and peers that are
 * gone are silent, too. So a size is tested by trials. Each sends a *probe* of that size and right
 * behind it a *witness* of MTU_BASE. The probe is missed when the witness is acknowledged and the
 * probe is not; all else says nothing. A size fails when it was missed several times in a row, over
 * a time in which a queue that takes small packets rather than large ones drains. Any packet of
 * that size that is acknowledged, however late, overturns the verdict.
 *
 * state      | begins when                           | tests                  | ends in
 * searching  | the connection is up; a size failed   | target, then bisection | settled
 * settled    | nothing is left to test               | nothing                | searching, doubt
 * doubt      | packets that used to pass vanish      | the least of them      | settled; searching
 * from |                                       |                        | MTU_BASE when it fails
 */

enum {
	PATH_MTU_MISSES = 8, /* one in 65,536 at random losses of a half */
	/* In doubt: behind a queue that stays full large packets are lost rather than small ones.
	 */
	PATH_MTU_MISSES_DOUBT = 12,
	/* Where a size is tried again that has failed: a wrong verdict changes nothing. */
	PATH_MTU_MISSES_AGAIN = 3,
	PATH_MTU_ROUNDS = 2, /* in which large packets vanish and none passes: doubt */
	PATH_MTU_STEP = 16,  /* bisect no finer */
};

/* conn_pmtu.out */
enum { PROBE_OUT = 1, WITNESS_DUE = 2, WITNESS_OUT = 4, WITNESS_SEEN = 8 };

/* Tests this size from now on; what is out speaks of another. */
static void path_mtu_test(struct engine *e, struct conn *c, uint32_t bytes)
{
	c->pmtu.probe = (uint16_t)bytes;
	c->pmtu.misses = c->pmtu.trials = 0;
	c->pmtu.out = 0;
	c->pmtu.trial++;
	c->pmtu.next_ns = e->now_ns;
	conn_wake(e, c);
}

static void path_mtu_settle(struct engine *e, struct conn *c)
{
	uint64_t pause_ns = PATH_MTU_RAISE_NS << c->pmtu.raises;

	c->pmtu.searching = c->pmtu.testing = false;
	c->pmtu.out = 0;
	c->pmtu.trial++;
	c->pmtu.next_ns = NEVER;
	if (c->mtu < c->pmtu.target) {
		c->pmtu.next_ns = e->now_ns + pause_ns;
		c->pmtu.raises += pause_ns < PATH_MTU_RAISE_MAX_NS;
	}
	conn_wake(e, c); /* chunks that waited for the answer go on */
}

static void path_mtu_bisect(struct engine *e, struct conn *c)
{
	if (c->pmtu.high < c->mtu + PATH_MTU_STEP)
		path_mtu_settle(e, c);
	else
		path_mtu_test(e, c, (c->mtu + c->pmtu.high + 1u) / 2);
}

void path_mtu_start(struct engine *e, struct conn *c)
{
	c->pmtu.target = (uint16_t)numbers_min(e->config.mtu, c->peer_mtu);
	if (c->mtu > c->pmtu.target)
		c->mtu = c->pmtu.target;
	if (c->mtu == c->pmtu.target) {
		c->pmtu.narrow = false;
		path_mtu_settle(e, c);
		return;
	}
	c->pmtu.high = (uint16_t)(c->pmtu.target + 1); /* the first size that may fail */
	c->pmtu.searching = c->pmtu.testing = true;
	path_mtu_test(e, c, c->pmtu.target);
}

uint16_t path_mtu_next(struct engine *e, struct conn *c)
{
	if (c->pmtu.out & WITNESS_DUE) {
		c->pmtu.out ^= WITNESS_DUE | WITNESS_OUT;
		c->pmtu.next_ns = NEVER;
		return MTU_BASE;
	}
	if (!c->pmtu.testing)
		path_mtu_start(e, c);
	if (!c->pmtu.testing)
		return 0;
	c->pmtu.trial++;
	if (c->pmtu.trials == 0) { /* mostly passes: something small tells whether anything does */
		c->pmtu.out = PROBE_OUT;
		c->pmtu.next_ns = NEVER;
		c->ping_due = true;
	} else {
		c->pmtu.out = PROBE_OUT | WITNESS_DUE; /* at once */
	}
	return c->pmtu.probe;
}

/* The size under test does not pass. */
static void path_mtu_fails(struct engine *e, struct conn *c)
{
	c->pmtu.high = c->pmtu.probe;
	c->pmtu.narrow = true;
	if (c->pmtu.searching) {
		path_mtu_bisect(e, c);
		return;
	}
	e->count->path_narrowed++;
	c->mtu = MTU_BASE;
	peer_tell_soon(e, c);
	c->pmtu.doubt = c->pmtu.lost_rounds = c->pmtu.raises = 0;
	c->pmtu.searching = true;
	path_mtu_bisect(e, c);
}

/* Both packets of a trial are accounted for, and the probe is not there. [P11] */
static void path_mtu_trial_ends(struct engine *e, struct conn *c)
{
	uint32_t enough = c->pmtu.raises > 1 ? PATH_MTU_MISSES_AGAIN : PATH_MTU_MISSES;
	uint64_t gap = c->pmtu.trials > 0 ? PATH_MTU_GAP_NS << (c->pmtu.trials - 1) : 0;

	if (!c->pmtu.searching)
		enough = PATH_MTU_MISSES_DOUBT;
	c->pmtu.misses += (c->pmtu.out & WITNESS_SEEN) != 0;
	c->pmtu.out = 0;
	if (c->pmtu.misses >= enough) {
		path_mtu_fails(e, c);
		return;
	}
	c->pmtu.trials += gap < PATH_MTU_GAP_MAX_NS;
	c->pmtu.next_ns = e->now_ns + gap;
	conn_wake(e, c);
}

void path_mtu_passes(struct engine *e, struct conn *c, uint32_t bytes)
{
	if (c->pmtu.doubt > 0 && bytes >= c->pmtu.doubt) {
		c->pmtu.doubt = c->pmtu.lost_rounds = 0;
		if (c->pmtu.testing && !c->pmtu.searching) {
			c->pmtu.searching = true; /* a search that the doubt has cut short */
			path_mtu_bisect(e, c);
		}
	}
	if (bytes <= c->mtu)
		return;
	c->mtu = (uint16_t)bytes;
	c->pmtu.raises = 0;
	peer_tell_soon(e, c); /* else a quiet connection shows MTU_BASE until it next has traffic */
	if (!c->pmtu.searching || bytes >= c->pmtu.high)
		path_mtu_start(e, c); /* what had failed passes */
	else if (bytes >= c->pmtu.probe)
		path_mtu_bisect(e, c);
}

void path_mtu_acked(struct engine *e, struct conn *c, uint32_t trial, uint32_t bytes)
{
	if (bytes > MTU_BASE) {
		path_mtu_passes(e, c, bytes);
	} else if (trial == c->pmtu.trial && (c->pmtu.out & WITNESS_OUT) != 0) {
		c->pmtu.out ^= WITNESS_OUT | WITNESS_SEEN;
		if ((c->pmtu.out & PROBE_OUT) == 0)
			path_mtu_trial_ends(e, c);
	}
}

void path_mtu_lost(struct engine *e, struct conn *c, uint32_t trial, uint32_t bytes)
{
	if (trial != c->pmtu.trial)
		return;
	c->pmtu.out &= (uint8_t) ~(bytes > MTU_BASE ? PROBE_OUT : WITNESS_OUT);
	if ((c->pmtu.out & (PROBE_OUT | WITNESS_DUE | WITNESS_OUT)) == 0)
		path_mtu_trial_ends(e, c);
}

void path_mtu_vanished(struct engine *e, struct conn *c, const struct sent *s)
{
	uint32_t bytes = s->bytes + conn_overhead(c);

	if (bytes <= MTU_BASE || bytes > c->mtu || s->time_ns < c->pmtu.round_ns)
		return;
	c->pmtu.round_ns = e->now_ns;
	if (c->pmtu.doubt == 0 || bytes < c->pmtu.doubt)
		c->pmtu.doubt = (uint16_t)bytes;
	c->pmtu.lost_rounds += c->pmtu.lost_rounds < PATH_MTU_ROUNDS;
	if (c->pmtu.lost_rounds < PATH_MTU_ROUNDS || (c->pmtu.testing && !c->pmtu.searching))
		return;
	c->pmtu.searching = false;
	c->pmtu.testing = true;
	path_mtu_test(e, c, c->pmtu.doubt);
}
