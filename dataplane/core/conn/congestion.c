/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "congestion.h"
#include "ack.h"
#include "loss.h"

/*
 * One decision per round trip, from the smallest queueing delay seen in it (the largest is mostly
 * our hosts' own scheduling), from the share of ECN marks, and from the share of losses. The delay
 * that we aim at is learned: it begins at the configured one, and where packets are lost from a
 * standing queue, a buffer is smaller than that, so it halves; from its floor on, losses are faults
 * of the path and do not slow us down. The window that was cut last is remembered: up to there it
 * grows quickly, beyond slowly. The round after a cut still shows the window before it and decides
 * nothing.
 *
 * Acknowledgements come in heaps, above all where they wait behind data, and each heap opens the
 * window by as much at once. Two nodes that send to and fro would so make each other's queue long
 * and empty in turn. So what a path that is full has lately taken bounds the pace as well.
 *
 * Why each constant is there, and what its half and its double do: docs/study/tried.md.
 */

enum {
	/* Packets: what a port's buffer takes at once from a stranger. */
	CONGESTION_FIRST_PKTS = 16,
	/* Packets: one alone would wait for the delayed acknowledgement each time. */
	CONGESTION_LEAST_PKTS = 2,
	/* Round trips without a cut, then the path may have become wider. */
	CONGESTION_CALM_ROUNDS = 32,
	/* Packets over which the share of losses is taken: fewer say nothing of 4 %. */
	CONGESTION_LOSS_SAMPLE = 256,
	/* Of 1024: 4 %; a smaller share is taken for faults of the path. */
	CONGESTION_LOSS_OVERFLOW = 41,
	/* Of 1024, of the share of the delay that is in excess (Swift's beta): 0.6, and 0.4 where
	 * few send, whose queue may be longer. */
	CONGESTION_CUT = 614,
	CONGESTION_CUT_FEW = 410,
	/* Of 1024: 0.3, the most that one round trip, a single observation, may cost. */
	CONGESTION_CUT_MAX = 307,
	/* Packets: what a queue varies by when windows grow and are cut by whole packets. */
	CONGESTION_SPARE_PKTS = 8,
	/* Times CONGESTION_SPARE_PKTS where few send: hosts wake late, and there is room. */
	CONGESTION_FEW = 5,
	/* Streams of a connection that count as flows: more would make the target of all too long.
	 */
	CONGESTION_STREAMS_MAX = 4,
	/* Round trips over which a rate is taken, at least. */
	CONGESTION_RATE_ROUNDS = 2,
	/* Packets ahead of the pace where one takes longer than CONGESTION_BURST_NS; on a full path
	 * fewer, else two nodes make each other's queue long and empty in turn. */
	CONGESTION_BURST_PKTS = 16,
	CONGESTION_BURST_PKTS_FULL = 4,
	/* Part of a round trip that is saved up for a burst at most: a short window must not stand
	   still. */
	CONGESTION_SAVE_PART = 4,
	/* Bytes of an Ethernet header, which rate_bps counts. */
	CONGESTION_LINK_BYTES = 14,
};

static uint64_t congestion_first(const struct engine *e)
{
	return (uint64_t)CONGESTION_FIRST_PKTS * e->config.mtu;
}

void congestion_init(struct engine *e, struct conn *c)
{
	c->cc.cwnd_bytes = congestion_first(e);
	c->cc.slow_start = true;
	c->cc.cwnd_full_bytes = UINT64_MAX;
	c->cc.round_delay_ns = NEVER;
	c->cc.delay_target_ns = e->config.delay_target_ns;
}

static uint64_t congestion_least(const struct engine *e)
{
	return (uint64_t)CONGESTION_LEAST_PKTS * e->config.mtu;
}

/* Pace at 5/4 of the window per round trip, 2 in slow start, 15/14 of what a full path takes; a
 * half whatever the receiver's clock says. */
static void congestion_pace(struct engine *e, struct conn *c)
{
	uint64_t most = (uint64_t)c->window_pkts * e->config.mtu;

	c->cc.cwnd_bytes = numbers_min(numbers_max(c->cc.cwnd_bytes, congestion_least(e)), most);
	assert(c->cc.cwnd_bytes > 0);
	uint64_t per_kib = c->loss.srtt_ns * 1024 / c->cc.cwnd_bytes;
	uint64_t full = numbers_min(c->cc.rate.ns_per_kib * 14 / 15, 2 * per_kib);
	c->cc.pace_ns_per_kib = c->cc.slow_start ? per_kib / 2 : numbers_max(per_kib * 4 / 5, full);
}

/* Where many begin together, what a port's buffer takes at once from a stranger is theirs together:
 * else all but a part is lost. They grow in small steps, not twofold, until one is cut. */
void congestion_shared(struct engine *e, struct conn *c, uint8_t senders)
{
	uint64_t share = congestion_first(e) * CONGESTION_MANY_SENDERS;

	c->cc.senders = senders;
	if (senders <= CONGESTION_MANY_SENDERS || c->cc.cwnd_full_bytes != UINT64_MAX ||
	    c->tx.inflight_pkts > 0)
		return;
	c->cc.cwnd_bytes = numbers_min(c->cc.cwnd_bytes, share / senders);
	c->cc.slow_start = false;
	congestion_pace(e, c);
}

static void congestion_cut(struct conn *c, uint32_t keep_1024)
{
	assert(keep_1024 <= 1024);
	c->cc.cwnd_bytes = c->cc.cwnd_bytes * keep_1024 / 1024;
	c->cc.cwnd_full_bytes = c->cc.cwnd_bytes;
	c->cc.slow_start = false;
	c->cc.calm_rounds = 0;
	c->cc.round_blind = true;
}

/* A queue below this says nothing: the path's own wobble. */
static uint64_t congestion_floor_ns(const struct engine *e, const struct conn *c)
{
	uint64_t noise = numbers_max(c->loss.min_rtt_ns / 2, 2 * c->loss.rttvar_ns);

	return numbers_min(numbers_max(noise, CONGESTION_FLOOR_NS), e->config.delay_target_ns);
}

/*
 * A connection that starts while many send to this peer finds a full queue, and takes it for a part
 * of the path: it would see no queue, grow, and keep the port full. So where many send, and the
 * path seems longer than any queue that we aim at, losses without a queue show a queue that was
 * there from the start.
 */
static bool congestion_came_late(const struct engine *e, const struct conn *c)
{
	return c->cc.senders > CONGESTION_FEW_SENDERS &&
	       c->loss.min_rtt_ns > e->config.delay_target_ns;
}

/* The share of losses, of 1024, once there are packets enough to speak of one; who may have come
 * late need not see the rest of them, when so many are lost that it is an overflow anyway. */
static uint32_t congestion_loss_share(const struct engine *e, struct conn *c)
{
	uint32_t packets = c->cc.sample_acked + c->cc.sample_lost;
	uint32_t enough = CONGESTION_LOSS_SAMPLE * CONGESTION_LOSS_OVERFLOW / 1024;
	uint32_t share = 0;

	if (packets >= CONGESTION_LOSS_SAMPLE ||
	    (c->cc.sample_lost > enough && congestion_came_late(e, c))) {
		share = c->cc.sample_lost * 1024 / packets;
		c->cc.sample_acked = c->cc.sample_lost = 0;
	}
	return share;
}

/* The receiver says how many share its link. No buffer has been too small for the whole target. */
static bool congestion_few(const struct engine *e, const struct conn *c)
{
	return c->cc.senders > 0 && c->cc.senders <= CONGESTION_FEW_SENDERS &&
	       c->cc.delay_target_ns >= e->config.delay_target_ns;
}

/* Among how many streams the window is shared now. */
static uint32_t congestion_streams(const struct conn *c)
{
	uint32_t streams = 0;

	list_each(l, &c->main->active)
	{
		if (++streams == CONGESTION_STREAMS_MAX)
			break;
	}
	return streams > 0 ? streams : 1;
}

/*
 * Swift's flow scaling: a small window aims at a longer queue than a large one, about as one over
 * the root of the window, so that flows of one bottleneck approach each other. A flow is a stream
 * here: in an allreduce the partial sums of many stripes, which all others wait for, go to one
 * node, and one stripe's result to each of the rest. On a slow path it aims at twice as much more,
 * up to the time that some packets of its own take: a window grows and is cut by whole packets, and
 * a queue that is shorter than those steps runs empty in between. Where few send to one receiver
 * there is room for five times as much of that: hosts wake late.
 */
static uint64_t congestion_target_ns(const struct engine *e, const struct conn *c)
{
	uint32_t packets = (uint32_t)(c->cc.cwnd_bytes / e->config.mtu) / congestion_streams(c) | 1;
	uint32_t root = 1u << ((32 - __builtin_clz(packets)) / 2);
	uint64_t more = c->cc.delay_target_ns * 4 / (root + 4);
	uint64_t spare = CONGESTION_SPARE_PKTS * c->loss.srtt_ns * e->config.mtu / c->cc.cwnd_bytes;
	uint64_t times = congestion_few(e, c) ? CONGESTION_FEW : 1;

	return c->cc.delay_target_ns + numbers_max(more, times * numbers_min(2 * more, spare));
}

static uint32_t congestion_cut_share(const struct engine *e, const struct conn *c)
{
	return congestion_few(e, c) ? CONGESTION_CUT_FEW : CONGESTION_CUT;
}

/* By how much to cut the window after this round, of 1024; 0 means that it may grow. */
static uint32_t congestion_verdict(struct engine *e, struct conn *c)
{
	uint64_t delay = c->cc.round_delay_ns == NEVER ? 0 : c->cc.round_delay_ns;
	uint64_t floor = congestion_floor_ns(e, c);
	uint32_t lost = congestion_loss_share(e, c);
	uint32_t marked = c->cc.round_acked > 0 ? c->cc.round_ce * 1024 / c->cc.round_acked : 0;
	uint64_t cut = 0;

	c->cc.ce_alpha = (c->cc.ce_alpha * 15 + (uint32_t)numbers_min(marked, 1024)) / 16;
	if (c->cc.round_ce > 0)
		cut = c->cc.ce_alpha / 2;
	if (lost > CONGESTION_LOSS_OVERFLOW && congestion_came_late(e, c) &&
	    delay <= congestion_target_ns(e, c)) {
		loss_base_halve(e, c);
		cut = CONGESTION_CUT_MAX;
	} else if (lost > CONGESTION_LOSS_OVERFLOW && delay > floor) {
		c->cc.delay_target_ns = delay / 2;
	} else {
		c->cc.delay_target_ns +=
			c->cc.delay_target_ns / 512; /* doubles in 350 round trips */
	}
	c->cc.delay_target_ns =
		numbers_min(numbers_max(c->cc.delay_target_ns, floor), e->config.delay_target_ns);
	uint64_t target = congestion_target_ns(e, c);
	if (delay > target) /* Swift: in proportion to the excess */
		cut = numbers_max(cut, (delay - target) * congestion_cut_share(e, c) / delay);
	return (uint32_t)numbers_min(cut, CONGESTION_CUT_MAX);
}

/* By what a window grows in a round, at least. One that began among many, and was not cut yet, as
 * much less as there are more of them. */
static uint64_t congestion_step(const struct engine *e, const struct conn *c)
{
	uint64_t step = 2 * (uint64_t)e->config.mtu;

	if (c->cc.cwnd_full_bytes < UINT64_MAX || c->cc.senders <= CONGESTION_MANY_SENDERS)
		return step;
	return step * CONGESTION_MANY_SENDERS / c->cc.senders;
}

static void congestion_grow(struct engine *e, struct conn *c)
{
	uint64_t target = congestion_target_ns(e, c);
	uint64_t delay = c->cc.round_delay_ns == NEVER ? target / 2 : c->cc.round_delay_ns;
	uint64_t room = delay >= target ? 0 : (target - delay) * 1024 / target;
	bool known = c->cc.cwnd_bytes >= c->cc.cwnd_full_bytes &&
		     c->cc.calm_rounds < CONGESTION_CALM_ROUNDS;

	if (!c->cc.cwnd_limited) /* a window that was not used proves nothing */
		return;
	c->cc.cwnd_bytes += congestion_step(e, c);
	if (!known)
		c->cc.cwnd_bytes += c->cc.cwnd_bytes / 8 * room / 1024;
}

/* HyStart's delay rule (RFC 9406): leave slow start when the shortest delay begins to rise. */
static bool congestion_queue_forms(const struct conn *c)
{
	uint64_t rise = numbers_max(c->loss.min_rtt_ns / 2, CONGESTION_RISE_NS);

	return c->cc.round_delay_ns != NEVER &&
	       c->cc.round_delay_ns > numbers_min(rise, c->cc.delay_target_ns / 4);
}

/* The path carries in a round trip as many bytes as arrived in this one; the window is twice that.
 * The way back up to it is the quick one: the queue may have been another's. */
static void congestion_leave_slow_start(const struct engine *e, struct conn *c)
{
	uint64_t arrived = (uint64_t)c->cc.round_acked * e->config.mtu;
	uint64_t before = c->cc.cwnd_bytes;

	congestion_cut(c, 1024);
	c->cc.cwnd_bytes = numbers_min(before, numbers_max(before / 2, arrived));
	c->cc.cwnd_full_bytes = before;
}

static void congestion_decide(struct engine *e, struct conn *c)
{
	uint32_t cut = congestion_verdict(e, c);

	c->cc.calm_rounds++;
	if (cut == 0 && c->cc.slow_start && congestion_queue_forms(c))
		congestion_leave_slow_start(e, c);
	else if (cut > 0)
		congestion_cut(c, 1024 - cut);
	else if (!c->cc.slow_start)
		congestion_grow(e, c);
}

static void congestion_round(struct engine *e, struct conn *c)
{
	loss_round(c);
	if (c->cc.round_blind)
		c->cc.round_blind = false;
	else
		congestion_decide(e, c);
	c->cc.round_acked = c->cc.round_ce = 0;
	c->cc.round_delay_ns = NEVER;
	c->cc.round_end_pn = c->tx.next_pn;
	c->cc.cwnd_limited = false;
}

/* The highest of late, which counts for a 64th less each time. A path without a queue is not full,
 * and a sender that had nothing to send for a while has not seen how much it takes. */
static uint64_t congestion_rate_known(const struct conn *c, uint32_t took_us)
{
	const struct rate *r = &c->cc.rate;
	uint64_t known = r->ns_per_kib + r->ns_per_kib / 64;

	if (!r->open || r->bytes == 0 || r->queue_ns / r->samples < c->cc.delay_target_ns / 2)
		return 0;
	uint64_t now = (uint64_t)took_us * 1000 * 1024 / r->bytes;
	if (r->starved && now > known + known / 8)
		return 0;
	return known == 0 ? now : numbers_min(now, known);
}

/* The bytes that have arrived in a time of the receiver's clock: the way of the acknowledgements is
 * not in it.
 */
static void congestion_rate(struct conn *c, uint64_t bytes)
{
	struct rate *r = &c->cc.rate;
	uint32_t took_us = c->loss.latest_arrival_us - r->since_us;
	uint64_t rounds_us = CONGESTION_RATE_ROUNDS * c->loss.srtt_ns / 1000;

	r->bytes += bytes;
	r->samples++;
	r->queue_ns += loss_queue_ns(c);
	if (c->cc.slow_start || c->loss.min_one_way_stamp_ns == 0)
		r->open = false;
	else if (r->open && took_us < numbers_max(CONGESTION_RATE_US, rounds_us))
		return;
	*r = (struct rate){.ns_per_kib = congestion_rate_known(c, took_us),
			   .since_us = c->loss.latest_arrival_us,
			   .open = true};
}

/* [P8] */
void congestion_acked(struct engine *e, struct conn *c, uint64_t bytes, uint32_t packets,
		      uint64_t largest_pn)
{
	uint64_t delay = loss_queue_ns(c);

	congestion_rate(c, bytes);
	c->cc.round_acked += packets;
	c->cc.sample_acked += packets;
	c->cc.round_delay_ns = numbers_min(c->cc.round_delay_ns, delay);
	if (c->cc.slow_start && c->cc.cwnd_limited && delay <= c->cc.delay_target_ns)
		c->cc.cwnd_bytes += bytes;
	if (largest_pn >= c->cc.round_end_pn)
		congestion_round(e, c);
	congestion_pace(e, c);
}

void congestion_lost(struct conn *c)
{
	c->cc.sample_lost++;
}

void congestion_marked(struct conn *c, uint32_t marks)
{
	c->cc.round_ce += marks;
}

void congestion_collapse(struct engine *e, struct conn *c)
{
	c->cc.cwnd_bytes = congestion_least(e);
	c->cc.slow_start = true; /* doubles again as soon as something comes through */
	c->cc.cwnd_limited = true;
	c->cc.round_end_pn = c->tx.next_pn;
	congestion_pace(e, c);
}

/* How long a connection saves up for a burst. Short windows have no time for it. */
static uint64_t congestion_save_ns(const struct engine *e, const struct conn *c)
{
	uint64_t whole = c->cc.pace_ns_per_kib * e->config.burst_bytes[c->rail] / 1024;

	return numbers_min(numbers_min(whole, e->config.burst_ns[c->rail]),
			   c->loss.srtt_ns / CONGESTION_SAVE_PART);
}

/* Bytes that may be sent ahead of the pace: a host that sleeps wakes late, above all for a burst.
 */
static uint64_t congestion_burst_ns(const struct engine *e, const struct conn *c, uint32_t bytes)
{
	uint64_t packets =
		c->cc.rate.ns_per_kib > 0 ? CONGESTION_BURST_PKTS_FULL : CONGESTION_BURST_PKTS;
	uint64_t late =
		numbers_max(CONGESTION_BURST_NS, packets * c->cc.pace_ns_per_kib * bytes / 1024);

	if (e->config.burst_bytes[c->rail] == 0)
		return late;
	return numbers_max(late, e->config.burst_ns[c->rail]) + congestion_save_ns(e, c);
}

/*
 * What a window was cut for has passed when nothing was on the way for a round trip: messages find
 * that of a new connection. Else values that many send to one, now and then, would go two packets a
 * round trip for ever: none of them is enough to make a window grow. Streams that wait for credit
 * rest as well, and are to stay small.
 */
static void congestion_rested(struct engine *e, struct conn *c)
{
	if (c->tx.inflight_pkts > 0 || c->tx.lost_count > 0 || !list_empty(&c->main->active) ||
	    c->cc.cwnd_bytes >= congestion_first(e) ||
	    e->now_ns < c->tx.last_elicit_ns + c->loss.srtt_ns)
		return;
	c->cc.cwnd_bytes = congestion_first(e);
	congestion_pace(e, c);
}

bool congestion_allows(struct engine *e, struct conn *c, uint32_t bytes, bool may_wait)
{
	uint64_t from = c->cc.pace_ns;

	congestion_rested(e, c);
	if (c->loss.probes_due > 0)
		return true;
	if (c->tx.inflight_bytes + bytes > c->cc.cwnd_bytes) {
		c->cc.cwnd_limited = true;
		return false;
	}
	if (may_wait && c->cc.saving)
		from += congestion_save_ns(e, c);
	if (from > e->now_ns || e->pace_ns[c->rail] > e->now_ns) {
		c->cc.pace_blocked = true;
		c->cc.pace_from_ns = from;
		c->cc.saving = e->config.burst_bytes[c->rail] > 0;
		c->cc.cwnd_limited = true;
		return false;
	}
	c->cc.saving = false;
	return true;
}

void congestion_sent(struct engine *e, struct conn *c, uint32_t bytes)
{
	uint64_t burst = congestion_burst_ns(e, c, bytes);
	uint64_t floor = e->now_ns > burst ? e->now_ns - burst : 0;

	c->cc.pace_ns = numbers_max(c->cc.pace_ns, floor) + c->cc.pace_ns_per_kib * bytes / 1024;
	if (c->loss.probes_due > 0)
		c->loss.probes_due--;
	uint64_t rate_bps = e->config.rate_bps[c->rail];
	if (rate_bps == 0)
		return;
	uint64_t node_floor =
		e->now_ns > CONGESTION_NODE_BURST_NS ? e->now_ns - CONGESTION_NODE_BURST_NS : 0;
	uint64_t wire_bits = (uint64_t)(bytes + ENGINE_OVERHEAD_V4 + CONGESTION_LINK_BYTES) * 8;
	e->pace_ns[c->rail] = numbers_max(e->pace_ns[c->rail], node_floor) +
			      wire_bits * UINT64_C(1000000000) / rate_bps;
}
