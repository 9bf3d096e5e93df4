/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "loss.h"
#include "ack.h"
#include "congestion.h"
#include "core/plan/out_edge.h"
#include "path.h"
#include "sent.h"

#define LOSS_REORDER_SHIFT  6  /* doublings of the reorder window; a round trip is the most */
#define LOSS_REORDER_ROUNDS 16 /* without a spurious loss halve it again (RFC 8985, 6.2) */
#define LOSS_PAUSE	    4  /* times what is usual */
#define LOSS_QUEUES	    4  /* times the shortest round trip: most of it is queues */
#define LOSS_DRIFT_IDLE	    3  /* times that without a sample: no queue stood meanwhile */

bool loss_is_pause(struct conn *c, uint64_t pn, uint64_t sample_ns)
{
	uint64_t usual = c->loss.srtt_ns + numbers_max(4 * c->loss.rttvar_ns, LOSS_PROBE_MIN_NS);

	if (c->loss.srtt_ns == 0 || sample_ns <= LOSS_PAUSE * usual) {
		c->loss.rtt_doubted = false;
		return false;
	}
	if (!c->loss.rtt_doubted)
		c->loss.rtt_from_pn = c->tx.next_pn;
	c->loss.rtt_doubted = true;
	return pn < c->loss.rtt_from_pn;
}

/* [P7] */
void loss_rtt(struct engine *e, struct conn *c, uint64_t sample_ns)
{
	c->loss.latest_rtt_ns = sample_ns;
	if (c->loss.min_rtt_ns == 0 || sample_ns < c->loss.min_rtt_ns ||
	    e->now_ns - c->loss.min_rtt_stamp_ns > LOSS_MIN_RTT_LIFETIME_NS) {
		c->loss.min_rtt_ns = sample_ns;
		c->loss.min_rtt_stamp_ns = e->now_ns;
	}
	if (c->loss.srtt_ns == 0) { /* RFC 6298, 2.2 and 2.3 */
		c->loss.srtt_ns = sample_ns;
		c->loss.rttvar_ns = sample_ns / 2;
		return;
	}
	uint64_t off = c->loss.srtt_ns > sample_ns ? c->loss.srtt_ns - sample_ns
						   : sample_ns - c->loss.srtt_ns;
	c->loss.rttvar_ns = (3 * c->loss.rttvar_ns + off) / 4;
	c->loss.srtt_ns = (7 * c->loss.srtt_ns + sample_ns) / 8;
}

void loss_one_way(struct engine *e, struct conn *c, uint32_t arrival_us, uint64_t sent_ns)
{
	uint32_t sample = arrival_us - (uint32_t)(sent_ns / 1000);

	if (c->loss.min_one_way_stamp_ns == 0) {
		c->loss.drift_tick = (uint32_t)(e->now_ns / LOSS_DRIFT_NS);
		c->loss.drift_us = 0;
	}
	c->loss.latest_arrival_us = arrival_us;
	c->loss.latest_one_way_us = sample;
	if (c->loss.min_one_way_stamp_ns == 0 || (int32_t)(sample - c->loss.min_one_way_us) < 0 ||
	    e->now_ns - c->loss.min_one_way_stamp_ns > LOSS_MIN_RTT_LIFETIME_NS) {
		c->loss.min_one_way_us = sample;
		c->loss.min_one_way_stamp_ns = e->now_ns;
	}
}

/*
 * A clock of the receiver that runs slow makes each sample smaller than the one before, so that a
 * standing queue is soon hidden below the least of them. So the least is believed less and less: by
 * what clocks may drift, but no further than the round trip says, which needs one clock only. Where
 * that shows no queue, and after a pause, all is believed again.
 */
void loss_drift(const struct engine *e, struct conn *c)
{
	uint64_t both =
		c->loss.latest_rtt_ns - numbers_min(c->loss.latest_rtt_ns, c->loss.min_rtt_ns);
	int32_t above_us = (int32_t)(c->loss.latest_one_way_us - c->loss.min_one_way_us);
	int64_t room_us = (int64_t)(both / 1000) - above_us;
	uint32_t tick = (uint32_t)(e->now_ns / LOSS_DRIFT_NS);
	uint32_t passed = tick - c->loss.drift_tick;
	uint64_t drift_us = passed < LOSS_DRIFT_IDLE ? (uint64_t)c->loss.drift_us + passed : 0;

	c->loss.drift_tick = tick;
	c->loss.drift_us = room_us > 0 ? (uint32_t)numbers_min(drift_us, (uint64_t)room_us) : 0;
}

/*
 * From the way there alone: acknowledgements may wait in a queue that is not ours, where the peer
 * receives from others, and a slower sender would not make it shorter. The round trip bounds what a
 * clock that runs faster than ours can feign.
 */
uint64_t loss_queue_ns(const struct conn *c)
{
	uint64_t both =
		c->loss.latest_rtt_ns - numbers_min(c->loss.latest_rtt_ns, c->loss.min_rtt_ns);
	uint64_t there = UINT64_C(1000) *
			 (c->loss.latest_one_way_us - c->loss.min_one_way_us + c->loss.drift_us);

	return c->loss.min_one_way_stamp_ns == 0 ? both : numbers_min(both, there);
}

void loss_base_halve(const struct engine *e, struct conn *c)
{
	uint64_t half_ns = c->loss.min_rtt_ns / 2;
	uint64_t stamp_ns = e->now_ns - LOSS_MIN_RTT_LIFETIME_NS + LOSS_HALVED_LIFETIME_NS;

	c->loss.min_rtt_ns -= half_ns;
	c->loss.min_rtt_stamp_ns = stamp_ns;
	if (c->loss.min_one_way_stamp_ns == 0)
		return;
	c->loss.min_one_way_us -= (uint32_t)(half_ns / 1000);
	c->loss.min_one_way_stamp_ns = stamp_ns == 0 ? 1 : stamp_ns;
}

/* A quarter of the shortest round trip, doubled at every spurious loss, up to a whole one. */
static uint64_t loss_reorder_ns(const struct conn *c)
{
	uint64_t window = numbers_max(c->loss.min_rtt_ns / 4, LOSS_REORDER_MIN_NS)
			  << c->loss.reorder_shift;

	return numbers_min(window, numbers_max(c->loss.srtt_ns, LOSS_REORDER_MIN_NS));
}

void loss_spurious(struct conn *c)
{
	c->loss.reorder_rounds = 0;
	if (c->loss.reorder_shift < LOSS_REORDER_SHIFT)
		c->loss.reorder_shift++;
}

/* The window shrinks again. */
void loss_round(struct conn *c)
{
	if (c->loss.reorder_shift == 0 || ++c->loss.reorder_rounds < LOSS_REORDER_ROUNDS)
		return;
	assert(c->loss.reorder_shift <= LOSS_REORDER_SHIFT);
	c->loss.reorder_rounds = 0;
	c->loss.reorder_shift--;
}

/* [P7.1] */
void loss_detect(struct engine *e, struct conn *c)
{
	uint64_t window = loss_reorder_ns(c);
	uint64_t pn = c->tx.oldest_pn;

	c->loss.deadline_ns = NEVER;
	if (!c->tx.any_acked)
		return;
	for (; pn < c->tx.largest_acked; pn++) {
		uint64_t slot = pn & (e->sent_slots - 1);
		uint64_t bits = c->tx.outstanding[slot / 64] >> (slot % 64);

		if (bits == 0) { /* skip to the next word */
			pn |= 63;
			continue;
		}
		pn += (uint64_t)__builtin_ctzll(bits);
		if (pn >= c->tx.largest_acked)
			break;
		const struct sent *s = sent_slot(e, c, pn);
		if (s->time_ns > c->loss.rack_time_ns)
			break; /* sent later than anything that has arrived */
		uint64_t due =
			s->time_ns + numbers_max(c->loss.latest_rtt_ns, c->loss.srtt_ns) + window;
		if (due > e->now_ns) { /* packets leave in order: the rest is due later still */
			c->loss.deadline_ns = due;
			break;
		}
		sent_lose(e, c, pn);
	}
}

uint64_t loss_probe_ns(const struct engine *e, const struct conn *c)
{
	uint64_t srtt = c->loss.srtt_ns != 0 ? c->loss.srtt_ns : LOSS_FIRST_RTT_NS;
	uint64_t wait = srtt + numbers_max(4 * c->loss.rttvar_ns, LOSS_PROBE_MIN_NS);

	if (c->tx.inflight_pkts == 0)
		return NEVER;
	wait += c->tx.last_later ? ack_chunk_wait_ns(e, c->cc.senders, c->cc.senders > 0)
				 : e->config.ack_delay_ns;
	wait <<= numbers_min(c->loss.pto_count, 8);
	return c->tx.last_elicit_ns + numbers_min(wait, numbers_max(LOSS_PROBE_MAX_NS, 2 * srtt));
}

/* Within a stream, where queues make most of a round trip, an acknowledgement waits in one far more
 * often than a packet is lost, and nobody waits for its end: it is asked for before anything is
 * sent again. */
static bool loss_may_wait(const struct conn *c)
{
	bool midway = false;

	if (c->loss.srtt_ns <= LOSS_QUEUES * c->loss.min_rtt_ns || !list_empty(&c->main->msg.out))
		return false;
	list_each(l, &c->main->out_edges)
	{
		const struct out_edge *o = list_entry(l, struct out_edge, on_conn);
		midway |= o->sent_count < o->total;
	}
	return midway;
}

/* [P7.2] */
void loss_probe(struct engine *e, struct conn *c)
{
	if (c->loss.waiting_since_ns == 0)
		c->loss.waiting_since_ns = e->now_ns;
	e->unanswered += c->loss.pto_count == 0;
	if (c->loss.pto_count < UINT16_MAX) /* a pulled rail is probed for hours */
		c->loss.pto_count++;
	c->tx.last_elicit_ns = e->now_ns; /* the next probe counts from here */
	assert(e->unanswered > 0 && e->unanswered <= e->conns_used);
	e->count->tail_probes++;
	if (c->loss.pto_count == 1 && loss_may_wait(c)) {
		c->ping_due = true;
	} else {
		c->loss.probes_due = 2;
		if (c->tx.inflight_pkts > 0)
			sent_lose(e, c, c->tx.oldest_pn);
	}
	if (c->loss.pto_count >= 2) {
		congestion_collapse(e, c);
		c->ping_due = true; /* passes where a path has become too narrow for chunks */
	}
	path_probed(e, c);
	conn_wake(e, c);
}

void loss_answered(struct engine *e, struct conn *c)
{
	assert(c->loss.pto_count == 0 || e->unanswered > 0);
	e->unanswered -= c->loss.pto_count > 0;
	c->loss.pto_count = 0;
	c->impaired = false;
}

/* Restarts the pauses between probes, now. */
static void loss_probe_repeat(struct engine *e, struct conn *c)
{
	bool impaired = c->impaired;

	loss_answered(e, c);
	c->impaired = impaired;
	loss_probe(e, c);
}

/*
 * A cable that was out, or a peer that stood still, is back: what was lost meanwhile need not wait
 * for the end of a pause that has grown with the silence. When nobody at all was heard it was our
 * own link: then all others who send to us wait in such a pause as well, and hear from us. A pause
 * that has not grown yet goes on: one that is gone is to be given up at the end of it.
 */
void loss_silence_ended(struct engine *e, struct conn *heard, enum loss_silence of)
{
	uint32_t left = e->conns_used;

	if (heard->loss.pto_count > 0)
		loss_probe_repeat(e, heard);
	if (of != SILENCE_OF_ALL || (e->unanswered == 0 && e->in_active == 0))
		return;
	for (struct conn *c = e->conns; left > 0; c++) {
		left -= c->state != CONN_FREE;
		if (c->state != CONN_UP || e->now_ns - c->last_rx_ns < LOSS_SILENCE_NS)
			continue;
		if (c->loss.pto_count > 1)
			loss_probe_repeat(e, c);
		else if (c->tx.inflight_pkts == 0 && !list_empty(&c->main->in_edges))
			c->ping_due = true;
		conn_wake(e, c);
	}
}
