/* SPDX-License-Identifier: BSD-3-Clause */
/* Round trips, the reorder window, tail probes: against the rules that they follow. */
#include "fixtures/core_test.h"

enum { RTT_NS = 1000000 };

/* So many packets, one each us. They carry grants of an edge that has gone: nothing comes again. */
static uint64_t send_packets(struct rig *r, struct conn *c, uint32_t count)
{
	uint64_t first = c->tx.next_pn;

	for (uint32_t k = 0; k < count; k++) {
		r->e->now_ns = r->now_ns += 1000;
		sent_record(r->e, c, SENT_GRANT, 0, 0, 100);
	}
	return first;
}

static struct peer steady(struct rig *r)
{
	struct peer peer = rig_connect(r, 1);

	peer.c->loss.srtt_ns = peer.c->loss.min_rtt_ns = peer.c->loss.latest_rtt_ns = RTT_NS;
	peer.c->loss.min_rtt_stamp_ns = r->now_ns;
	peer.c->loss.rttvar_ns = 0;
	return peer;
}

/* [P7] */
static void round_trips_follow_rfc_6298(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct conn *c = peer.c;

	c->loss.srtt_ns = c->loss.min_rtt_ns = 0;
	loss_rtt(r->e, c, 800);
	assert_int_equal(c->loss.srtt_ns, 800);
	assert_int_equal(c->loss.rttvar_ns, 400);
	loss_rtt(r->e, c, 1600);
	assert_int_equal(c->loss.rttvar_ns, (3 * 400 + 800) / 4);
	assert_int_equal(c->loss.srtt_ns, 900);
	assert_int_equal(c->loss.min_rtt_ns, 800);
	loss_rtt(r->e, c, 100);
	assert_int_equal(c->loss.rttvar_ns, (3 * 500 + 800) / 4);
	assert_int_equal(c->loss.srtt_ns, (7 * 900 + 100) / 8);
	assert_int_equal(c->loss.min_rtt_ns, 100);
	r->e->now_ns += UINT64_C(60000000001); /* the path may have become longer */
	loss_rtt(r->e, c, 5000);
	assert_int_equal(c->loss.min_rtt_ns, 5000);
}

static void acknowledge(struct rig *r, struct peer *peer, uint64_t pn, uint64_t after_ns)
{
	uint64_t sent_ns = sent_slot(r->e, peer->c, pn)->time_ns;

	r->now_ns = numbers_max(r->now_ns, sent_ns + after_ns);
	peer_ack(r, peer, pn);
}

/* Neither side's pause is taken for the way; what is so long again a round trip later is. */
static void a_pause_is_no_round_trip(void **state)
{
	struct rig *r = *state;
	struct peer peer = steady(r);
	struct conn *c = peer.c;
	uint64_t pn = send_packets(r, c, 3);

	acknowledge(r, &peer, pn, 300 * RTT_NS);
	acknowledge(r, &peer, pn + 1, 300 * RTT_NS);
	assert_int_equal(c->loss.srtt_ns, RTT_NS);
	assert_int_equal(c->loss.latest_rtt_ns, RTT_NS);
	pn = send_packets(r, c, 1);
	acknowledge(r, &peer, pn, RTT_NS);
	assert_int_equal(c->loss.srtt_ns, RTT_NS);
	pn = send_packets(r, c, 1); /* another pause */
	acknowledge(r, &peer, pn, 300 * RTT_NS);
	assert_int_equal(c->loss.srtt_ns, RTT_NS);
	pn = send_packets(r, c, 2); /* the way is so long now */
	acknowledge(r, &peer, pn, 300 * RTT_NS);
	assert_int_equal(c->loss.srtt_ns, (7 * RTT_NS + 300 * RTT_NS) / 8);
	acknowledge(r, &peer, pn + 1, 300 * RTT_NS);
	assert_true(c->loss.srtt_ns > 70 * RTT_NS);
}

/* The delay that a peer claims is taken off, never below nothing. */
static void a_claimed_delay_is_bounded(void **state)
{
	struct rig *r = *state;
	const uint16_t claims[] = {0, 10, 25, 26, UINT16_MAX};
	const uint64_t want[] = {100000, 60000, 100000, 100000, 100000};

	for (uint32_t k = 0; k < 5; k++) {
		struct peer peer = rig_connect(r, k + 1);
		uint64_t pn = send_packets(r, peer.c, 1), word = UINT64_C(1) << (pn % 64);
		struct packet p;

		peer.c->loss.srtt_ns = 0;
		r->now_ns += 100000;
		peer_begin(r, &peer, &p);
		forge_ack(&p, pn, 1, &word);
		wire_put16(p.bytes + WIRE_BODY + ACK_AT_DELAY, claims[k]);
		peer_send(r, &peer, &p);
		assert_int_equal(peer.c->loss.latest_rtt_ns, want[k]);
	}
}

/* The queue of the way there alone, whatever the difference of the clocks, and when they wrap. */
static void queues_are_told_by_the_clock_of_the_peer(void **state)
{
	static const uint32_t clocks[] = {0, 12345, 0x7fffff00, 0x80000000, 0xffffff00};
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct conn *c = peer.c;

	for (uint32_t k = 0; k < sizeof(clocks) / sizeof(clocks[0]); k++) {
		uint64_t sent_ns = UINT64_C(7777777000), us = sent_ns / 1000;

		c->loss.min_one_way_stamp_ns = c->loss.min_rtt_ns = 0;
		loss_rtt(r->e, c, 1000000);
		loss_rtt(r->e, c, 5000000);
		assert_int_equal(loss_queue_ns(c), 4000000); /* only round trips are known */
		loss_one_way(r->e, c, (uint32_t)(clocks[k] + us), sent_ns);
		assert_int_equal(loss_queue_ns(c), 0);
		for (uint32_t queue = 0; queue < 6000; queue += 500) {
			loss_one_way(r->e, c, (uint32_t)(clocks[k] + us + queue), sent_ns);
			assert_int_equal(loss_queue_ns(c), numbers_min(1000 * queue, 4000000));
		}
		loss_one_way(r->e, c, (uint32_t)(clocks[k] + us - 100), sent_ns);
		assert_int_equal(loss_queue_ns(c), 0); /* a new least */
		loss_one_way(r->e, c, (uint32_t)(clocks[k] + us), sent_ns);
		assert_int_equal(loss_queue_ns(c), 100000);
		r->e->now_ns += UINT64_C(60000000001); /* the clocks have drifted apart */
		loss_one_way(r->e, c, (uint32_t)(clocks[k] + us + 3000), sent_ns);
		assert_int_equal(loss_queue_ns(c), 0);
	}
}

/* One acknowledgement: now_ns by our clock, the peer's is off by drift_us. */
static void both_ways(struct rig *r, struct conn *c, uint64_t there_us, uint64_t back_us,
		      int64_t drift_us)
{
	uint64_t arrival_us = r->e->now_ns / 1000 + there_us + (uint64_t)drift_us;

	loss_rtt(r->e, c, 1000000 + (there_us + back_us) * 1000);
	loss_one_way(r->e, c, (uint32_t)arrival_us, r->e->now_ns);
	loss_drift(r->e, c);
}

/* A queue of 2 ms that stands for a minute, seen by clocks that run slow or fast. */
static void drifting_clocks_hide_no_queue(void **state)
{
	static const int32_t ppm[] = {-100, -50, -20, 0, 20, 100};
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct conn *c = peer.c;

	for (uint32_t k = 0; k < sizeof(ppm) / sizeof(ppm[0]); k++) {
		uint64_t begin_ns = r->e->now_ns;
		c->loss.min_one_way_stamp_ns = c->loss.min_rtt_ns = 0;
		for (int64_t ms = 0; ms < 59000; ms += 7) {
			uint64_t queue_us = ms == 0 ? 0 : 2000;
			r->e->now_ns = begin_ns + (uint64_t)ms * 1000000;
			both_ways(r, c, queue_us, 0, ms * ppm[k] / 1000);
			assert_in_range(loss_queue_ns(c), queue_us * 950, queue_us * 1000);
		}
	}
}

/* What waits on the way back is told from it, as long as it is gone now and then. */
static void a_queue_on_the_way_back_is_another(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct conn *c = peer.c;

	c->loss.min_one_way_stamp_ns = c->loss.min_rtt_ns = 0;
	for (uint64_t ms = 0; ms < 50000; ms += 7) {
		both_ways(r, c, 0, ms / 7 % 100 == 0 ? 0 : 2000, 0);
		assert_in_range(loss_queue_ns(c), 0, 100000);
		r->e->now_ns += 7000000;
	}
}

/* [P7.1] */
static void only_older_packets_are_lost_and_only_in_time(void **state)
{
	struct rig *r = *state;
	struct peer peer = steady(r);
	struct conn *c = peer.c;
	uint64_t first = send_packets(r, c, 10), sent_ns = r->now_ns - 9000;

	r->now_ns += RTT_NS - 9000 + 4000; /* when the answer to the fifth can be here */
	peer_ack(r, &peer, first + 4);
	assert_int_equal(r->counters.lost_pkts, 0);
	uint64_t due = c->loss.deadline_ns;
	assert_true(due > sent_ns + RTT_NS && due <= sent_ns + 2 * RTT_NS);
	r->e->now_ns = due - 1;
	loss_detect(r->e, c);
	assert_int_equal(r->counters.lost_pkts, 0);
	r->e->now_ns = due + 1000000000; /* as late as it may be: what was sent later stays */
	loss_detect(r->e, c);
	assert_int_equal(r->counters.lost_pkts, 4);
	assert_int_equal(c->tx.inflight_pkts, 5);
	assert_int_equal(c->tx.oldest_pn, first + 5);
	assert_int_equal(c->loss.deadline_ns, NEVER);
}

/* The timer of the engine does the same, without any further packet. */
static void the_deadline_fires(void **state)
{
	struct rig *r = *state;
	struct peer peer = steady(r);
	uint64_t first = send_packets(r, peer.c, 2);

	r->now_ns += RTT_NS;
	peer_ack(r, &peer, first + 1);
	assert_int_not_equal(peer.c->loss.deadline_ns, NEVER);
	rig_drain(r); /* arms */
	r->now_ns = engine_next_timeout(r->e);
	assert_true(r->now_ns >= peer.c->loss.deadline_ns);
	assert_true(r->now_ns < peer.c->loss.deadline_ns + 2 * WHEEL_SLOT_NS);
	engine_tick(r->e, r->now_ns);
	assert_int_equal(r->counters.lost_pkts, 1);
}

static void the_reorder_window_widens_and_shrinks(void **state)
{
	struct rig *r = *state;
	struct peer peer = steady(r);
	struct conn *c = peer.c;
	uint64_t last = 0;

	for (uint32_t k = 0; k < 10; k++) {
		uint64_t first = send_packets(r, c, 2);

		c->loss.srtt_ns = c->loss.min_rtt_ns = c->loss.latest_rtt_ns = RTT_NS;
		r->now_ns += RTT_NS;
		peer_ack(r, &peer, first + 1);
		assert_int_not_equal(c->loss.deadline_ns, NEVER);
		uint64_t window = c->loss.deadline_ns - r->now_ns;
		assert_true(window >= last && window <= RTT_NS + 2000);
		last = window;
		r->e->now_ns = r->now_ns = c->loss.deadline_ns;
		loss_detect(r->e, c);
		peer_ack(r, &peer, first); /* it was only late */
		assert_int_equal(r->counters.lost_spurious, k + 1);
	}
	assert_true(last > RTT_NS / 2);
	assert_int_equal(c->loss.reorder_shift, 6);
	for (uint32_t k = 0; k < 6 * 16; k++) {
		assert_int_equal(c->loss.reorder_shift, 6 - k / 16);
		loss_round(c);
	}
	assert_int_equal(c->loss.reorder_shift, 0);
	loss_round(c);
	assert_int_equal(c->loss.reorder_shift, 0);
}

/* Nothing comes back: probes at growing distances, never farther apart than the bound. [P7.2] */
static void probes_back_off(void **state)
{
	struct rig *r = *state;
	struct peer peer = steady(r);
	struct conn *c = peer.c;
	uint64_t last = 0;

	send_packets(r, c, 30);
	for (uint32_t k = 0; k < 12; k++) {
		uint64_t at = loss_probe_ns(r->e, c), wait = at - r->now_ns;

		assert_true(wait >= last && wait <= 200000000);
		assert_true(wait >= RTT_NS);
		last = wait;
		r->e->now_ns = r->now_ns = at;
		loss_probe(r->e, c);
		assert_int_equal(r->counters.tail_probes, k + 1);
		assert_true(c->loss.probes_due > 0);
		assert_int_equal(c->ping_due, k > 0); /* small: passes where chunks do not */
		if (k > 0)
			assert_int_equal(c->cc.cwnd_bytes, 2 * (uint64_t)r->config.mtu);
		c->ping_due = false;
	}
	assert_int_equal(last, 200000000);
	peer_ack(r, &peer, c->tx.next_pn - 1);
	assert_int_equal(c->loss.pto_count, 0);
	assert_int_equal(c->loss.probes_due, 0);
	assert_int_equal(c->loss.waiting_since_ns, 0);
}

/* A round trip may be longer than that bound: then it is waited for, each time, and not for long
 * more. */
static void no_probe_comes_before_an_answer_can(void **state)
{
	const uint64_t rtt_ns = 700000000;
	struct rig *r = *state;
	struct peer peer = steady(r);
	struct conn *c = peer.c;

	c->loss.srtt_ns = c->loss.min_rtt_ns = c->loss.latest_rtt_ns = rtt_ns;
	send_packets(r, c, 30);
	for (uint32_t k = 0; k < 4; k++) {
		uint64_t at = loss_probe_ns(r->e, c), wait = at - r->now_ns;

		assert_true(wait > rtt_ns && wait <= 2 * rtt_ns);
		r->e->now_ns = r->now_ns = at;
		loss_probe(r->e, c);
	}
}

static void ping(struct rig *r, struct peer *peer)
{
	struct packet p;

	peer_begin(r, peer, &p);
	forge_frame(&p, FRAME_PING, PING_BYTES);
	peer_send(r, peer, &p);
}

/* Something is under way that nobody answers, and the pauses between probes have grown. */
static void fall_silent(struct rig *r, struct peer *peer)
{
	send_packets(r, peer->c, 3);
	while (peer->c->loss.pto_count < 5)
		loss_probe(r->e, peer->c);
}

/* A stream from this peer. */
static void expect_of(struct rig *r, const struct peer *peer, uint32_t index)
{
	struct record buffer = record_buffer(index, UINT64_C(20) * RIG_CHUNK);
	struct record in = record_edge(COMMAND_IN, index, index, peer, 0, 20);

	rig_command(r, &buffer);
	rig_command(r, &in);
}

/* The first that is heard after a cut has all ask that wait, and those who send to us hear of us;
 * what is heard while others are is no sign that their silence ends. */
static void when_a_silence_ends_all_ask(void **state)
{
	struct rig *r = *state;
	struct peer one = steady(r), other = rig_connect(r, 2), sender = rig_connect(r, 3);
	struct peer asked = rig_connect(r, 4);

	rig_sink(r, &sender, 20);
	expect_of(r, &asked, 1);
	send_packets(r, asked.c, 1);
	fall_silent(r, &one);
	fall_silent(r, &other);
	assert_int_equal(r->e->unanswered, 2);
	r->now_ns += 40000000;
	ping(r, &other);
	assert_int_equal(r->e->unanswered, 2);
	assert_int_equal(one.c->loss.pto_count, 1);
	assert_int_equal(other.c->loss.pto_count, 1);
	assert_int_equal(one.c->tx.last_elicit_ns, r->now_ns);
	assert_true(sender.c->ping_due);
	assert_false(asked.c->ping_due); /* answers anyway */
	rig_drain(r);

	fall_silent(r, &one);
	r->now_ns += 9000000;
	ping(r, &other);
	r->now_ns += 9000000;
	ping(r, &sender);
	assert_int_equal(one.c->loss.pto_count, 5);
	assert_false(sender.c->ping_due);
	ping(r, &one); /* itself */
	assert_int_equal(one.c->loss.pto_count, 1);
	rig_drain(r);
	peer_ack(r, &one, one.c->tx.oldest_pn);
	assert_int_equal(one.c->loss.pto_count, 0);
	assert_int_equal(r->e->unanswered,
			 (other.c->loss.pto_count > 0) + (sender.c->loss.pto_count > 0));
}

/* As a path whose rail is out for hours: 200 ms between two probes, 2^16 of them in 3.6 hours. */
static void probes_beyond_what_is_counted_leave_one_unanswered(void **state)
{
	struct rig *r = *state;
	struct peer one = steady(r);

	send_packets(r, one.c, 1);
	for (unsigned k = 0; k < UINT16_MAX + 5u; k++) {
		r->now_ns += 200000000;
		r->e->now_ns = r->now_ns;
		loss_probe(r->e, one.c);
		assert_true(one.c->loss.pto_count > 0);
	}
	assert_int_equal(r->e->unanswered, 1);
	assert_int_equal(one.c->loss.pto_count, UINT16_MAX);
	loss_answered(r->e, one.c);
	assert_int_equal(r->e->unanswered, 0);
}

/* Two peers that answer everything, but late. */
struct late {
	struct rig *r;
	struct peer peer[2];
	uint64_t after_ns;
	struct {
		uint64_t at_ns, pn;
		uint32_t who;
	} way[64];
	uint32_t left, came;
};

static void late_run(struct late *l, uint64_t ns)
{
	const uint32_t most = sizeof(l->way) / sizeof(l->way[0]);
	struct rig *r = l->r;
	struct packet p;

	for (uint64_t end_ns = r->now_ns + ns; r->now_ns < end_ns; r->now_ns += 100000) {
		engine_tick(r->e, r->now_ns);
		for (; l->came < l->left && l->way[l->came % most].at_ns <= r->now_ns; l->came++)
			peer_ack(r, &l->peer[l->way[l->came % most].who],
				 l->way[l->came % most].pn);
		while (rig_take(r, &p)) {
			uint32_t who = net_addr_equal(&p.to, &l->peer[1].addr);

			if (who == 0 && !net_addr_equal(&p.to, &l->peer[0].addr))
				continue;
			assert_true(l->left - l->came < most);
			l->way[l->left % most].at_ns = r->now_ns + l->after_ns;
			l->way[l->left % most].pn = p.pn;
			l->way[l->left++ % most].who = who;
		}
	}
}

/* Where a round trip takes longer than what passes for silence, the answers to keep-alives of
 * streams that stand still are no reason to ask the others; a third that has gone is given up. */
static void late_answers_end_no_silence(void **state)
{
	enum { MS = 1000000, LATE = 12 * MS, KEEP_ALIVE = 8 * LATE, SECOND = 1000 * MS };
	const uint32_t in_a_second = 2 * (SECOND / KEEP_ALIVE + 1);
	struct rig *r = *state;
	struct late l = {.r = r, .peer = {rig_connect(r, 1), rig_connect(r, 2)}, .after_ns = LATE};
	uint32_t before;

	for (uint32_t k = 0; k < 2; k++) {
		l.peer[k].c->loss.srtt_ns = l.peer[k].c->loss.min_rtt_ns = LATE;
		expect_of(r, &l.peer[k], k);
	}
	late_run(&l, SECOND / 2);
	ping(r, &l.peer[0]);
	late_run(&l, KEEP_ALIVE / 2);
	ping(r, &l.peer[1]); /* the keep-alives take turns */
	before = l.left;
	late_run(&l, SECOND);
	assert_in_range(l.left - before, in_a_second / 2, in_a_second);

	struct peer gone = rig_connect(r, 3);
	gone.c->loss.srtt_ns = LATE;
	send_packets(r, gone.c, 1);
	late_run(&l, UINT64_C(5) * SECOND);
	assert_int_equal(gone.c->state, CONN_FREE);
	before = l.left;
	late_run(&l, SECOND);
	assert_in_range(l.left - before, in_a_second / 2, in_a_second);
}

static void nothing_under_way_needs_no_probe(void **state)
{
	struct rig *r = *state;
	struct peer peer = steady(r);

	assert_int_equal(loss_probe_ns(r->e, peer.c), NEVER);
	uint64_t pn = send_packets(r, peer.c, 1);
	assert_int_not_equal(loss_probe_ns(r->e, peer.c), NEVER);
	peer_ack(r, &peer, pn);
	assert_int_equal(loss_probe_ns(r->e, peer.c), NEVER);
	loss_probe(r->e, peer.c); /* called all the same: loses nothing */
	assert_int_equal(r->counters.lost_pkts, 0);
	assert_int_equal(peer.c->tx.inflight_pkts, 0);
}

/* Behind a long queue a stream that goes on asks once before it sends again. */
static void a_stream_behind_a_queue_asks_first(void **state)
{
	enum { CHUNK = 1024 };
	static const struct {
		uint32_t ready, round_trips;
		bool asks;
	} cases[] = {{10, 5, true}, {10, 4, false}, {20, 5, false}};

	for (uint32_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct rig *r = rig_new(NULL);
		struct peer peer = steady(r);
		struct record source = record_source(1, 20 * CHUNK, cases[k].ready * CHUNK);
		struct record out = record_edge(COMMAND_OUT, 1, 1, &peer, 0, 20);

		source.buffer.chunk_bytes = CHUNK;
		rig_command(r, &source);
		rig_command(r, &out);
		peer.c->cc.cwnd_bytes = 1 << 20;
		rig_drain(r);
		assert_int_equal(peer.c->tx.inflight_pkts, cases[k].ready);
		peer.c->loss.srtt_ns = cases[k].round_trips * RTT_NS;
		loss_probe(r->e, peer.c);
		assert_int_equal(peer.c->ping_due, cases[k].asks);
		assert_int_equal(r->counters.lost_pkts, !cases[k].asks);
		loss_probe(r->e, peer.c);
		assert_int_equal(r->counters.lost_pkts, 1 + !cases[k].asks);
		rig_free(r);
	}
}

/* Random sends, acknowledgements and times: never lost before its time, nor by something older. */
static void losses_against_the_rule(void **state)
{
	struct rig *r = *state;
	struct peer peer = steady(r);
	struct conn *c = peer.c;
	uint64_t seed = 61;

	for (uint32_t step = 0; step < 5000; step++) {
		if (sent_room(r->e, c) && c->tx.inflight_pkts < 60)
			send_packets(r, c, 1 + (uint32_t)draw_below(&seed, 3));
		r->e->now_ns = r->now_ns += draw_below(&seed, RTT_NS / 8);
		uint64_t pn = c->tx.oldest_pn + draw_below(&seed, 8);
		if (draw_below(&seed, 2) == 0 && pn < c->tx.next_pn)
			peer_ack(r, &peer, pn);
		loss_detect(r->e, c);
		uint64_t rtt = numbers_max(c->loss.latest_rtt_ns, c->loss.srtt_ns);
		for (pn = c->tx.oldest_pn; c->tx.any_acked && pn < c->tx.largest_acked; pn++) {
			const struct sent *s = sent_slot(r->e, c, pn);
			if (sent_outstanding(r->e, c, pn)) /* what is left is not due yet */
				assert_true(s->time_ns > c->loss.rack_time_ns ||
					    s->time_ns + 2 * rtt + 100000 > r->now_ns);
		}
		assert_true(c->loss.deadline_ns > r->now_ns);
	}
	assert_true(r->counters.lost_pkts > 100);
}

/* Answers that take longer than the probes wait are answers: they tell how long the way is, and
 * that nobody need be asked again. Else two ends would ask each other for ever. */
static void late_answers_are_answers(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	peer.c->loss.srtt_ns = 0;
	peer.c->ping_due = true;
	conn_wake(r->e, peer.c);
	assert_true(rig_take(r, &p));
	uint64_t sent_ns = r->now_ns;
	uint64_t pn = p.pn;
	rig_drain(r);
	for (uint32_t k = 0; k < 10 && sent_outstanding(r->e, peer.c, pn); k++) {
		rig_pass(r, 20000000);
		rig_drain(r);
	}
	assert_false(sent_outstanding(r->e, peer.c, pn));
	assert_true(peer.c->loss.pto_count > 0);
	peer_ack(r, &peer, pn);
	assert_int_equal(r->counters.lost_spurious, 1);
	assert_int_equal(peer.c->loss.srtt_ns, r->now_ns - sent_ns);
	assert_int_equal(peer.c->loss.pto_count, 0);
	assert_int_equal(r->e->unanswered, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(round_trips_follow_rfc_6298),
		test_rig(a_pause_is_no_round_trip),
		test_rig(a_claimed_delay_is_bounded),
		test_rig(queues_are_told_by_the_clock_of_the_peer),
		test_rig(drifting_clocks_hide_no_queue),
		test_rig(a_queue_on_the_way_back_is_another),
		test_rig(only_older_packets_are_lost_and_only_in_time),
		test_rig(the_deadline_fires),
		test_rig(the_reorder_window_widens_and_shrinks),
		test_rig(probes_back_off),
		test_rig(no_probe_comes_before_an_answer_can),
		test_rig(when_a_silence_ends_all_ask),
		test_rig(late_answers_end_no_silence),
		test_rig(nothing_under_way_needs_no_probe),
		test_rig(probes_beyond_what_is_counted_leave_one_unanswered),
		cmocka_unit_test(a_stream_behind_a_queue_asks_first),
		test_rig(losses_against_the_rule),
		test_rig(late_answers_are_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
