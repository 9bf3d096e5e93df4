/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "peer.h"

static uint64_t peer_missing(const struct conn *c)
{
	uint64_t expected = c->rx.any ? c->rx.largest + 1 : 0;

	return expected - numbers_min(expected, c->tally.rx_pkts);
}

/* How long what is for it has waited for the path until now. */
static uint64_t peer_waited_ns(const struct conn *c, uint64_t now_ns)
{
	return c->tally.wait_path_ns + (c->cc.held_ns != 0 ? now_ns - c->cc.held_ns : 0);
}

/* The rate of bytes that have left and are not under way any more, since the last sample; 0: none
 * is due. limited: all that time there was more to send than the path took. */
static uint64_t peer_rate(struct conn *c, uint64_t now_ns, bool *limited)
{
	uint64_t through = c->tally.tx_bytes - numbers_min(c->tally.tx_bytes, c->tx.inflight_bytes);
	uint64_t took_ns = now_ns - c->report.sample_ns, before = c->report.sample_bytes;
	uint64_t waited_ns = peer_waited_ns(c, now_ns);
	bool first = c->report.sample_ns == 0;

	if (!first && took_ns < PEER_TELL_NS)
		return 0;
	*limited = c->cc.rate.ns_per_kib > 0 &&
		   waited_ns - c->report.sample_waited_ns >= took_ns / 8 * 7;
	c->report.sample_ns = now_ns;
	c->report.sample_bytes = through;
	c->report.sample_waited_ns = waited_ns;
	return first || through < before ? 0 : (through - before) * 1000000 / (took_ns / 1000);
}

/* The path's is the highest of late: it may have been shared with others. A time in which it had
 * pauses says nothing of what it takes. */
static void peer_rates(struct conn *c, uint64_t now_ns)
{
	bool limited = false, old = now_ns - c->report.path_stamp_ns > PEER_PATH_LIFETIME_NS;
	uint64_t rate = peer_rate(c, now_ns, &limited);

	c->report.best_bytes_per_s = numbers_max(c->report.best_bytes_per_s, rate);
	if (!limited || (rate < c->report.path_bytes_per_s && !old))
		return;
	c->report.path_bytes_per_s = rate;
	c->report.path_stamp_ns = now_ns;
}

void peer_tell(struct engine *e, struct conn *c)
{
	assert(e->config.peers && c->index < e->config.conns_max);
	peer_rates(c, e->now_ns);
	c->report.tell_ns = e->now_ns + PEER_TELL_NS;
	c->report.reported_bytes = c->tally.tx_bytes + c->tally.rx_bytes;

	struct peer_block *b = &e->config.peers[c->index];
	sequence_write(&b->sequence);
	b->conn = c->handle;
	b->addr = c->addr;
	b->values.counters = c->tally;
	b->values.counters.wait_path_ns = peer_waited_ns(c, e->now_ns);
	b->values.gauges = (struct peer_gauges){
		.up = c->state == CONN_UP,
		.written_ns = e->now_ns,
		.age_ns = e->now_ns - c->opened_ns,
		.silent_ns = e->now_ns - c->last_rx_ns,
		.tx_pkts = c->tx.next_pn,
		.missing_pkts = peer_missing(c),
		.waiting_ns =
			c->loss.waiting_since_ns != 0 ? e->now_ns - c->loss.waiting_since_ns : 0,
		.rtt_ns = c->loss.srtt_ns,
		.rtt_least_ns = c->loss.min_rtt_ns,
		.window_bytes = c->cc.cwnd_bytes,
		.best_bytes_per_s = c->report.best_bytes_per_s,
		.path_bytes_per_s = c->report.path_bytes_per_s,
		.mtu = c->mtu,
		.rail = c->rail,
		.path_of = c->main != c ? c->main->handle : 0,
		.impaired = c->impaired,
	};
	sequence_written(&b->sequence);
}

void peer_forget(const struct engine *e, const struct conn *c)
{
	if (!e->config.peers)
		return;
	peer_block_clear(&e->config.peers[c->index]);
}
