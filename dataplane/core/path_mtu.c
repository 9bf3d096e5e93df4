/* SPDX-License-Identifier: BSD-3-Clause */
#include "path_mtu.h"
#include "sent.h"
#include "state.h"

/*
 * RFC 8899 without its raise of every size: first the largest that both links take, which mostly
 * passes, then by bisection between what passed and what did not.
 */

#define PATH_MTU_TRIES	  5  /* of one size: at 30 % loss one search in 400 misjudges it */
#define PATH_MTU_ROUNDS	  4  /* in which large packets are lost and small ones pass: no accident */
#define PATH_MTU_STEP	  16 /* bisect no finer */
#define PATH_MTU_RAISE_NS UINT64_C(30000000000) /* a fault, and mended; RFC 8899: 600 s */

static void path_mtu_settle(struct engine *e, struct conn *c)
{
	c->pmtu.searching = false;
	c->pmtu.next_ns = c->mtu < c->pmtu.target ? e->now_ns + PATH_MTU_RAISE_NS : NEVER;
	conn_wake(e, c); /* chunks that waited for the answer go on, or fail */
}

static void path_mtu_next(struct engine *e, struct conn *c)
{
	c->pmtu.tries = 0;
	c->pmtu.probe_out = false;
	if (c->pmtu.high - c->pmtu.low < PATH_MTU_STEP) {
		path_mtu_settle(e, c);
		return;
	}
	c->pmtu.probe = (uint16_t)((c->pmtu.low + c->pmtu.high + 1) / 2);
	conn_wake(e, c);
}

void path_mtu_start(struct engine *e, struct conn *c)
{
	c->pmtu.target = (uint16_t)state_min(e->config.mtu, c->peer_mtu);
	if (c->mtu > c->pmtu.target)
		c->mtu = c->pmtu.target;
	if (c->mtu == c->pmtu.target) {
		path_mtu_settle(e, c);
		return;
	}
	c->pmtu.low = c->mtu;
	c->pmtu.high = (uint16_t)(c->pmtu.target + 1); /* the first size that may fail */
	c->pmtu.probe = c->pmtu.target;
	c->pmtu.searching = true;
	c->pmtu.probe_out = false;
	c->pmtu.tries = 0;
	c->pmtu.next_ns = NEVER;
}

bool path_mtu_due(const struct conn *c, uint64_t now_ns)
{
	if (c->pmtu.searching)
		return !c->pmtu.probe_out;
	return now_ns >= c->pmtu.next_ns;
}

void path_mtu_acked(struct engine *e, struct conn *c, uint32_t bytes)
{
	if (bytes > c->mtu)
		c->mtu = (uint16_t)bytes;
	if (!c->pmtu.searching || bytes != c->pmtu.probe)
		return;
	c->pmtu.low = (uint16_t)bytes;
	path_mtu_next(e, c);
}

void path_mtu_lost(struct engine *e, struct conn *c, uint32_t bytes)
{
	if (!c->pmtu.searching || bytes != c->pmtu.probe)
		return;
	c->pmtu.probe_out = false;
	conn_wake(e, c);
	if (c->loss.pto_count > 0) /* nothing came back at all: that says nothing about sizes */
		return;
	if (++c->pmtu.tries < PATH_MTU_TRIES)
		return;
	c->pmtu.high = (uint16_t)bytes;
	path_mtu_next(e, c);
}

void path_mtu_passed(struct conn *c, bool large, bool small)
{
	if (large) {
		c->pmtu.lost_rounds = 0;
		c->pmtu.small_passes = false;
	} else if (small && c->pmtu.lost_rounds > 0) {
		c->pmtu.small_passes = true;
	}
}

void path_mtu_vanished(struct engine *e, struct conn *c, const struct sent *s)
{
	if (c->mtu <= MTU_BASE || !path_mtu_large(c, s->bytes) || s->time_ns < c->pmtu.round_ns)
		return;
	c->pmtu.round_ns = e->now_ns;
	if (c->pmtu.lost_rounds < UINT8_MAX)
		c->pmtu.lost_rounds++;
	if (c->pmtu.lost_rounds > 1)
		c->ping_due = true; /* does anything pass? */
	if (c->pmtu.lost_rounds < PATH_MTU_ROUNDS || !c->pmtu.small_passes)
		return;
	path_mtu_passed(c, true, false);
	c->mtu = MTU_BASE;
	path_mtu_start(e, c);
}
