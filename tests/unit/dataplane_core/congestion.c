/* SPDX-License-Identifier: BSD-3-Clause */
/* The window and the pace: bounds that hold whatever a peer claims, and the direction of change. */
#include "fixtures/core_test.h"

enum { RTT_NS = 100000 };

static struct conn *flow(struct rig *r)
{
	struct peer peer = rig_connect(r, 1);

	peer.c->loss.srtt_ns = peer.c->loss.min_rtt_ns = peer.c->loss.latest_rtt_ns = RTT_NS;
	peer.c->loss.rttvar_ns = 0;
	peer.c->loss.min_one_way_stamp_ns = 0; /* only round trips are known */
	congestion_init(r->e, peer.c);
	return peer.c;
}

/* One round trip of full windows with this delay and this share (of 8) of marks and losses. */
static void round_trip(struct rig *r, struct conn *c, uint64_t delay_ns, uint32_t marks,
		       uint32_t losses)
{
	uint32_t packets = (uint32_t)(c->cc.cwnd_bytes / r->config.mtu);
	uint64_t end = c->cc.round_end_pn;

	c->loss.latest_rtt_ns = RTT_NS + delay_ns;
	c->tx.next_pn += packets;
	for (uint32_t k = 0; k < packets; k++) {
		if (k % 8 < losses) {
			congestion_lost(c);
			continue;
		}
		if (k % 8 < losses + marks)
			congestion_marked(c, 1);
		c->cc.cwnd_limited = true;
		congestion_acked(r->e, c, r->config.mtu, 1, k + 1 == packets ? end : 0);
	}
	congestion_acked(r->e, c, 0, 0, c->cc.round_end_pn);
	r->e->now_ns = r->now_ns += RTT_NS;
}

static void round_trips(struct rig *r, struct conn *c, uint32_t count, uint64_t delay_ns,
			uint32_t marks, uint32_t losses)
{
	for (uint32_t k = 0; k < count; k++)
		round_trip(r, c, delay_ns, marks, losses);
}

static void check_bounds(const struct rig *r, const struct conn *c)
{
	assert_true(c->cc.cwnd_bytes >= 2 * (uint64_t)r->config.mtu);
	assert_true(c->cc.cwnd_bytes <= (uint64_t)c->window_pkts * r->config.mtu);
	assert_in_range(c->cc.delay_target_ns, 1, r->config.delay_target_ns);
	assert_true(c->cc.ce_alpha <= 1024);
}

static void an_empty_path_fills(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);

	round_trips(r, c, 20, 0, 0, 0);
	assert_int_equal(c->cc.cwnd_bytes, (uint64_t)c->window_pkts * r->config.mtu);
	check_bounds(r, c);
}

static void a_long_queue_shrinks_the_window(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);

	round_trips(r, c, 20, 0, 0, 0);
	uint64_t full = c->cc.cwnd_bytes;
	for (uint32_t k = 0; k < 40; k++) {
		uint64_t before = c->cc.cwnd_bytes;
		round_trip(r, c, 4 * r->config.delay_target_ns, 0, 0);
		assert_true(c->cc.cwnd_bytes <= before);
		check_bounds(r, c);
	}
	assert_true(c->cc.cwnd_bytes < full / 4);
	assert_false(c->cc.slow_start);
	round_trips(r, c, 300, 0, 0, 0);
	assert_int_equal(c->cc.cwnd_bytes, full); /* and comes back */
}

/* The queue that a window of few packets aims at has room for some of them, where each takes long.
 */
static void a_small_window_aims_at_some_packets(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);
	const uint64_t window = 8 * (uint64_t)r->config.mtu;

	c->cc.slow_start = false;
	for (uint32_t slow = 0; slow < 2; slow++) {
		c->cc.cwnd_bytes = window;
		c->loss.srtt_ns = slow ? 40 * RTT_NS : RTT_NS;
		c->cc.round_blind = false;
		round_trip(r, c, r->config.delay_target_ns * 19 / 10, 0, 0);
		assert_true(slow ? c->cc.cwnd_bytes > window : c->cc.cwnd_bytes < window);
		check_bounds(r, c);
	}
}

/* Where few send to one receiver it has room for more of them, and what is beyond is cut less; not
 * before the receiver has said so, and not where many do. */
static void few_aim_at_a_longer_queue(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);
	const uint64_t window = 16 * (uint64_t)r->config.mtu;
	const uint8_t senders[] = {0, 1, CONGESTION_FEW_SENDERS, CONGESTION_FEW_SENDERS + 1,
				   UINT8_MAX};
	uint64_t left[sizeof(senders)];

	c->cc.slow_start = false;
	for (uint32_t k = 0; k < 2 * sizeof(senders); k++) {
		bool few = senders[k / 2] > 0 && senders[k / 2] <= CONGESTION_FEW_SENDERS,
		     far = k % 2;
		c->cc.senders = senders[k / 2];
		c->cc.cwnd_bytes = window;
		c->loss.srtt_ns = 40 * RTT_NS;
		c->cc.round_blind = false;
		round_trip(r, c, r->config.delay_target_ns * (far ? 12 : 3), 0, 0);
		assert_true(few && !far ? c->cc.cwnd_bytes > window : c->cc.cwnd_bytes < window);
		left[k / 2] = c->cc.cwnd_bytes;
		check_bounds(r, c);
	}
	assert_true(left[1] > left[0] && left[2] == left[1]);
	assert_true(left[3] == left[0] && left[4] == left[0]);
}

/* A window that several streams use is measured by what one of them has of it; no more than four
 * count. */
static void streams_share_a_window(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);
	const uint64_t window = 32 * (uint64_t)r->config.mtu; /* four: 8 each */
	struct list ready[100];
	uint64_t left[101];

	c->cc.slow_start = false;
	for (uint32_t k = 0; k <= 100; k++) {
		c->cc.cwnd_bytes = window;
		c->cc.round_blind = false;
		c->cc.calm_rounds = 0;
		round_trip(r, c, r->config.delay_target_ns * 14 / 10, 0, 0);
		left[k] = c->cc.cwnd_bytes;
		check_bounds(r, c);
		if (k < 100)
			list_append(&c->active, &ready[k]);
	}
	list_init(&c->active);
	assert_true(left[0] < window && left[1] == left[0]);
	assert_true(left[4] > window && left[100] == left[4]);
}

/* Slow start ends when a queue begins to form, long before the target. */
static void slow_start_ends_at_the_first_queue(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);
	uint64_t first = c->cc.cwnd_bytes;

	round_trip(r, c, 0, 0, 0);
	assert_in_range(c->cc.cwnd_bytes, 2 * first - r->config.mtu, 2 * first);
	assert_true(c->cc.slow_start);
	round_trip(r, c, r->config.delay_target_ns / 2, 0, 0);
	assert_false(c->cc.slow_start);
	assert_true(c->cc.cwnd_bytes < 3 * first);
}

static void marks_shrink_the_window(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);

	round_trips(r, c, 20, 0, 0, 0);
	uint64_t full = c->cc.cwnd_bytes;
	round_trips(r, c, 60, 0, 8, 0);
	assert_true(c->cc.cwnd_bytes < full / 4);
	check_bounds(r, c);
}

/* A few losses without a queue are faults of the path. */
static void losses_without_a_queue_do_not(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);

	round_trips(r, c, 20, 0, 0, 0);
	uint64_t full = c->cc.cwnd_bytes;
	round_trips(r, c, 60, 0, 0, 1);
	assert_int_equal(c->cc.cwnd_bytes, full);
}

/* Who connects behind a full port takes the queue for the path. Where many send, losses tell; not
 * where few do, and not on a short path, whose losses are its own. */
static void losses_show_a_queue_that_was_there_first(void **state)
{
	struct rig *r = *state;
	const uint8_t senders[] = {0, CONGESTION_FEW_SENDERS, CONGESTION_FEW_SENDERS + 1,
				   UINT8_MAX};
	const uint64_t base_ns[] = {r->config.delay_target_ns, 20 * r->config.delay_target_ns};
	struct conn *c = flow(r);

	for (uint32_t k = 0; k < 2 * sizeof(senders); k++) {
		uint64_t base = base_ns[k % 2], queue_ns = base - RTT_NS;
		bool late =
			senders[k / 2] > CONGESTION_FEW_SENDERS && base > r->config.delay_target_ns;

		congestion_init(r->e, c);
		c->cc.slow_start = false;
		c->loss.srtt_ns = c->loss.min_rtt_ns = base;
		c->cc.senders = senders[k / 2];
		c->cc.sample_acked = c->cc.sample_lost = 0;
		round_trips(r, c, 3, queue_ns, 0, 0);
		uint64_t before = c->cc.cwnd_bytes;
		round_trips(r, c, 1, queue_ns, 0, 2); /* too few to tell an overflow from a fault */
		assert_true(c->cc.cwnd_bytes > before && c->loss.min_rtt_ns == base);
		before = c->cc.cwnd_bytes;
		c->loss.min_one_way_us = c->loss.latest_one_way_us = k % 3; /* wraps */
		c->loss.min_one_way_stamp_ns = r->e->now_ns;
		round_trips(r, c, 12, queue_ns, 0, 2);
		assert_int_equal(c->loss.min_rtt_ns, late ? base / 2 : base);
		assert_int_equal(loss_queue_ns(c), late ? base / 2 : 0);
		assert_true(late ? c->cc.cwnd_bytes < before / 2 : c->cc.cwnd_bytes > before);
		check_bounds(r, c);
		r->e->now_ns = r->now_ns += 1001 * 1000000; /* it is as long after all */
		loss_rtt(r->e, c, base);
		loss_one_way(r->e, c, k % 3 + (uint32_t)(r->now_ns / 1000), r->now_ns);
		assert_true(c->loss.min_rtt_ns == base && c->loss.min_one_way_us == k % 3);
	}
}

static void a_window_that_is_not_used_does_not_grow(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);
	uint64_t before = c->cc.cwnd_bytes;

	for (uint32_t k = 0; k < 1000; k++) {
		c->tx.next_pn++;
		congestion_acked(r->e, c, 1000, 1, c->tx.next_pn);
	}
	assert_int_equal(c->cc.cwnd_bytes, before);
}

static void check_rest(struct rig *r, struct conn *c, bool opens)
{
	uint64_t before = c->cc.cwnd_bytes;

	congestion_allows(r->e, c, r->config.mtu, false);
	assert_int_equal(c->cc.cwnd_bytes, opens ? 16 * (uint64_t)r->config.mtu : before);
}

/* Not while something is on the way, or lost, and not for streams. */
static void a_rest_opens_the_window_for_messages(void **state)
{
	struct rig *r = *state;
	struct conn *c = flow(r);
	struct list stream;

	round_trips(r, c, 40, 4 * r->config.delay_target_ns, 0, 0);
	assert_true(c->cc.cwnd_bytes < 16 * (uint64_t)r->config.mtu);
	c->tx.last_elicit_ns = r->e->now_ns;
	check_rest(r, c, false);
	r->e->now_ns = r->now_ns += c->loss.srtt_ns;
	c->tx.inflight_pkts = 1;
	check_rest(r, c, false);
	c->tx.inflight_pkts = 0;
	c->tx.lost_count = 1;
	check_rest(r, c, false);
	c->tx.lost_count = 0;
	list_append(&c->active, &stream);
	check_rest(r, c, false);
	list_remove(&stream);
	check_rest(r, c, true);
}

/* [P8] */
static void whatever_is_claimed_the_bounds_hold(void **state)
{
	static const uint64_t absurd[] = {0, 1, RTT_NS, UINT64_C(1) << 40, UINT64_C(1) << 50};
	struct rig *r = *state;
	struct conn *c = flow(r);
	uint64_t seed = 3;

	for (uint32_t k = 0; k < 50000; k++) {
		uint64_t rtt = draw_below(&seed, 10) == 0 ? absurd[draw_below(&seed, 5)]
							  : draw_below(&seed, 100 * RTT_NS);
		c->tx.next_pn += draw_below(&seed, 100);
		if (draw_below(&seed, 3) == 0)
			congestion_lost(c);
		if (draw_below(&seed, 3) == 0)
			congestion_marked(c, (uint32_t)draw(&seed) >> draw_below(&seed, 32));
		if (draw_below(&seed, 5) == 0)
			loss_rtt(r->e, c, rtt);
		if (draw_below(&seed, 5) == 0)
			loss_one_way(r->e, c, (uint32_t)draw(&seed) >> draw_below(&seed, 32),
				     r->now_ns);
		c->cc.cwnd_limited = draw_below(&seed, 2);
		congestion_acked(r->e, c, draw_below(&seed, 100000),
				 (uint32_t)draw_below(&seed, 100),
				 c->tx.next_pn - draw_below(&seed, 3));
		if (draw_below(&seed, 100) == 0)
			congestion_collapse(r->e, c);
		congestion_sent(r->e, c, (uint32_t)draw_below(&seed, 1500));
		r->e->now_ns = r->now_ns += draw_below(&seed, RTT_NS);
		check_bounds(r, c);
	}
}

/* The bytes of a FRAME_ECN count, and what wraps or comes late does not. */
static void marks_are_counted_modulo(void **state)
{
	static const struct {
		uint32_t count, seen;
	} steps[] = {{0, 0},
		     {5, 5},
		     {5, 5},
		     {3, 5},
		     {0x7fffff00, 0x7fffff00},
		     {0xfffffefe, 0xfffffefe},
		     {2, 2},
		     {0xffffffff, 2},
		     {0x80000002, 2}};
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	for (uint32_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		peer_begin(r, &peer, &p);
		forge_ecn(&p, steps[k].count);
		peer_send(r, &peer, &p);
		assert_int_equal(peer.c->tx.ce_seen, steps[k].seen);
		assert_int_equal(peer.c->cc.round_ce, steps[k].seen);
	}
	rig_drops(r, NULL);
}

static void at_100_mbit(struct engine_config *f)
{
	f->rate_bps[0] = 100000000;
}

/* However many connections: the node stays at its rate, with a little burst. */
static void the_rate_of_the_node_is_kept(void **state)
{
	struct rig *r = rig_new(at_100_mbit);
	struct peer peers[3] = {rig_connect(r, 1), rig_connect(r, 2), rig_connect(r, 3)};
	struct record source = record_source(0, 700 * RIG_CHUNK, 700 * RIG_CHUNK);
	uint64_t bytes = 0, begin = r->now_ns;
	struct packet p;

	(void)state;
	rig_command(r, &source);
	for (uint32_t k = 0; k < 3; k++) {
		struct record out = record_edge(COMMAND_OUT, k, 0, &peers[k], 0, 700);
		rig_command(r, &out);
		out_edge_find(r->e, out.edge.edge)->credit = 700;
	}
	while (r->now_ns < begin + 100000000) {
		while (rig_take(r, &p)) {
			bytes += p.length + 42;
			for (uint32_t k = 0; k < 3; k++)
				if (net_addr_equal(&p.to, &peers[k].addr))
					peer_ack(r, &peers[k], p.pn);
		}
		r->now_ns = numbers_max(r->now_ns + 1000, engine_next_timeout(r->e));
		engine_tick(r->e, r->now_ns);
	}
	double seconds = (double)(r->now_ns - begin) / 1e9;
	assert_true((double)bytes * 8 <= 100e6 * (seconds + 0.0005));
	assert_true((double)bytes * 8 >= 100e6 * seconds * 0.9);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(an_empty_path_fills),
		test_rig(a_long_queue_shrinks_the_window),
		test_rig(a_small_window_aims_at_some_packets),
		test_rig(few_aim_at_a_longer_queue),
		test_rig(streams_share_a_window),
		test_rig(slow_start_ends_at_the_first_queue),
		test_rig(marks_shrink_the_window),
		test_rig(losses_without_a_queue_do_not),
		test_rig(losses_show_a_queue_that_was_there_first),
		test_rig(a_window_that_is_not_used_does_not_grow),
		test_rig(a_rest_opens_the_window_for_messages),
		test_rig(whatever_is_claimed_the_bounds_hold),
		test_rig(marks_are_counted_modulo),
		cmocka_unit_test(the_rate_of_the_node_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
