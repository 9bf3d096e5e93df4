/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport.h"

/*
 * One decision per round trip, from the smallest queueing delay seen in it (the largest is mostly
 * our hosts' own scheduling), from the share of ECN marks, and from the share of losses. Loss
 * alone says little on Ethernet: a few per cent without delay are faults of the path and do not
 * slow us down; many are a shallow buffer.
 */

enum {
	CONGESTION_FIRST_PKTS = 64,
	CONGESTION_LEAST_PKTS = 4,
};

void congestion_init(struct engine *e, struct conn *c)
{
	c->cwnd_bytes = (uint64_t)CONGESTION_FIRST_PKTS * e->config.mtu;
	c->slow_start = true;
	c->round_delay_ns = NEVER;
	c->round_end_pn = 0;
	c->pace_ns_per_kib = 0;
}

static uint64_t congestion_least(const struct engine *e)
{
	return (uint64_t)CONGESTION_LEAST_PKTS * e->config.mtu;
}

/* Pace at 5/4 of the window per round trip, 2 in slow start. */
static void congestion_pace(struct engine *e, struct conn *c)
{
	uint64_t most = (uint64_t)e->config.window_pkts * e->config.mtu;

	c->cwnd_bytes = state_min(state_max(c->cwnd_bytes, congestion_least(e)), most);
	uint64_t per_kib = c->srtt_ns * 1024 / c->cwnd_bytes;
	c->pace_ns_per_kib = c->slow_start ? per_kib / 2 : per_kib * 4 / 5;
}

static void congestion_cut(struct engine *e, struct conn *c, uint32_t keep_1024)
{
	c->cwnd_bytes = c->cwnd_bytes * keep_1024 / 1024;
	c->slow_start = false;
	c->last_cut_ns = e->now_ns;
}

/* How much of the window to keep after this round, in 1/1024; 1024 means grow. */
static uint32_t congestion_verdict(const struct engine *e, struct conn *c)
{
	uint64_t target = e->config.delay_target_ns;
	uint64_t delay = c->round_delay_ns;
	uint32_t packets = c->round_acked + c->round_lost;
	uint32_t lost = packets > 0 ? c->round_lost * 1024 / packets : 0;
	uint32_t keep = 1024;

	c->ce_alpha = (c->ce_alpha * 15 + (packets > 0 ? c->round_ce * 1024 / packets : 0)) / 16;
	if (c->round_ce > 0)
		keep = 1024 - c->ce_alpha / 2;
	if (delay != NEVER &&
	    delay > target) { /* Swift: in proportion to the excess, at most 30 % */
		uint64_t cut = (delay - target) * 819 / delay;
		keep = (uint32_t)state_min(keep, 1024 - state_min(cut, 307));
	}
	if (lost > 205 || (lost > 31 && delay != NEVER && delay > target / 4))
		keep = (uint32_t)state_min(keep, 1024 - state_min(lost, 307));
	return keep;
}

static void congestion_grow(struct engine *e, struct conn *c)
{
	uint64_t target = e->config.delay_target_ns;
	uint64_t delay = c->round_delay_ns == NEVER ? target / 2 : c->round_delay_ns;
	uint64_t room = delay >= target ? 0 : (target - delay) * 1024 / target;

	if (c->cwnd_limited) /* a window that was not used proves nothing */
		c->cwnd_bytes += 2 * (uint64_t)e->config.mtu + c->cwnd_bytes / 8 * room / 1024;
}

static void congestion_round(struct engine *e, struct conn *c)
{
	uint32_t keep = congestion_verdict(e, c);

	if (keep < 1024)
		congestion_cut(e, c, keep);
	else if (!c->slow_start)
		congestion_grow(e, c);
	c->round_acked = c->round_lost = c->round_ce = 0;
	c->round_delay_ns = NEVER;
	c->round_end_pn = c->next_pn;
	c->cwnd_limited = false;
}

void congestion_acked(struct engine *e, struct conn *c, uint64_t bytes, uint32_t packets,
		      uint64_t largest_pn, uint64_t rtt_ns)
{
	uint64_t delay = rtt_ns > c->min_rtt_ns ? rtt_ns - c->min_rtt_ns : 0;

	c->round_acked += packets;
	c->round_delay_ns = state_min(c->round_delay_ns, delay);
	if (c->slow_start && c->cwnd_limited)
		c->cwnd_bytes += bytes;
	if (largest_pn >= c->round_end_pn)
		congestion_round(e, c);
	congestion_pace(e, c);
}

void congestion_lost(struct conn *c)
{
	c->round_lost++;
}

void congestion_marked(struct conn *c, uint32_t marks)
{
	c->round_ce += marks;
}

void congestion_collapse(struct engine *e, struct conn *c)
{
	c->cwnd_bytes = congestion_least(e);
	c->slow_start = true; /* doubles again as soon as something comes through */
	c->cwnd_limited = true;
	c->round_end_pn = c->next_pn;
	congestion_pace(e, c);
}

/* What may be sent ahead of the pace: a host that sleeps wakes late. */
static uint64_t congestion_burst_ns(const struct conn *c, uint32_t bytes)
{
	return state_max(250000, 16 * c->pace_ns_per_kib * bytes / 1024);
}

bool congestion_allows(struct engine *e, struct conn *c, uint32_t bytes)
{
	if (c->probes_due > 0)
		return true;
	if (c->inflight_bytes + bytes > c->cwnd_bytes) {
		c->cwnd_limited = true;
		return false;
	}
	if (c->pace_ns > e->now_ns || e->pace_ns > e->now_ns) {
		c->pace_blocked = true;
		c->cwnd_limited = true;
		return false;
	}
	return true;
}

void congestion_sent(struct engine *e, struct conn *c, uint32_t bytes)
{
	uint64_t burst = congestion_burst_ns(c, bytes);
	uint64_t floor = e->now_ns > burst ? e->now_ns - burst : 0;

	c->pace_ns = state_max(c->pace_ns, floor) + c->pace_ns_per_kib * bytes / 1024;
	if (c->probes_due > 0)
		c->probes_due--;
	if (e->config.rate_bps == 0)
		return;
	uint64_t node_floor = e->now_ns > 250000 ? e->now_ns - 250000 : 0;
	uint64_t wire_bits = (uint64_t)(bytes + ENGINE_OVERHEAD_V4 + 14) * 8;
	e->pace_ns = state_max(e->pace_ns, node_floor) +
		     wire_bits * UINT64_C(1000000000) / e->config.rate_bps;
}
