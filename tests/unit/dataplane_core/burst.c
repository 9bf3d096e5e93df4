/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts: where the shell says that it sends many packets at the price of one, a connection saves
 * up for them, at the same pace, and nothing but chunks waits for that. */
#include "fixtures/core_test.h"

enum {
	CHUNKS = 400,
	WINDOW = 512,
	STEP_NS = 20000,
	PACKET_NS = 58000, /* of a chunk at 200 Mbit/s, about: pace_ns_per_kib below */
	BURST_NS = 1000000,
	RTT_NS = 80000000,
};

static void wide(struct engine_config *f)
{
	f->window_pkts = WINDOW;
}

static void bursting(struct engine_config *f)
{
	wide(f);
	f->burst_bytes[0] = 65000;
	f->burst_ns[0] = BURST_NS;
}

/* A connection that has many chunks to send, and whose pace is all that bounds it. */
static struct conn *stream(struct rig *r, struct peer *peer)
{
	struct record source = record_source(0, CHUNKS * RIG_CHUNK, CHUNKS * RIG_CHUNK), out;
	struct packet p;

	*peer = rig_connect(r, 1);
	struct conn *c = peer->c;
	source.buffer.chunk_bytes = RIG_CHUNK;
	out = record_edge(COMMAND_OUT, 0, 0, peer, 0, CHUNKS);
	rig_command(r, &source);
	rig_command(r, &out);
	peer_begin(r, peer, &p);
	forge_grant(&p, record_handle(0), CHUNKS);
	peer_send(r, peer, &p);
	c->loss.srtt_ns = c->loss.min_rtt_ns = c->loss.latest_rtt_ns = RTT_NS;
	c->window_pkts = WINDOW;
	c->cc.cwnd_bytes = WINDOW * (uint64_t)r->config.mtu;
	c->cc.pace_ns_per_kib = 41000;
	c->cc.pace_ns = r->now_ns;
	return c;
}

static uint32_t step(struct rig *r)
{
	r->now_ns += STEP_NS;
	if (r->now_ns >= engine_next_timeout(r->e))
		engine_tick(r->e, r->now_ns);
	return rig_drain(r);
}

/* How many packets left in this time, and in how many bursts. */
static uint32_t run(struct rig *r, uint64_t ns, uint32_t *bursts)
{
	uint32_t packets = 0;

	*bursts = 0;
	for (uint64_t at = 0; at < ns; at += STEP_NS) {
		uint32_t n = step(r);
		packets += n;
		*bursts += n > 0;
	}
	return packets;
}

static void chunks_leave_in_bursts_at_the_same_pace(void **state)
{
	struct rig *r[2] = {rig_new(wide), rig_new(bursting)};
	uint32_t packets[2], bursts[2];
	struct peer peer;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		stream(r[k], &peer);
		run(r[k], 2 * BURST_NS, &bursts[k]); /* what may leave at once has left */
		packets[k] = run(r[k], 10 * BURST_NS, &bursts[k]);
		assert_in_range(packets[k], 9 * BURST_NS / PACKET_NS, 11 * BURST_NS / PACKET_NS);
		rig_free(r[k]);
	}
	assert_true(packets[0] < 2 * bursts[0]);
	assert_in_range(bursts[1], 9, 11);
}

static void a_message_does_not_wait_for_a_burst(void **state)
{
	struct rig *r = *state = rig_new(bursting);
	struct peer peer;
	struct packet p;
	uint32_t bursts;

	stream(r, &peer);
	run(r, 2 * BURST_NS, &bursts);
	while (step(r) == 0) {
	}
	struct record msg = record_msg(&peer, 0, 100);
	rig_command(r, &msg);
	for (uint64_t waited = 0; waited < 2 * PACKET_NS; waited += STEP_NS) {
		r->now_ns += STEP_NS;
		engine_tick(r->e, r->now_ns);
		if (rig_take(r, &p)) {
			assert_non_null(packet_frame(&p, FRAME_MSG));
			rig_free(r);
			return;
		}
	}
	fail_msg("the message waits");
}

/* A short round trip is not spent with saving. */
static void a_short_window_does_not_wait(void **state)
{
	struct rig *r = rig_new(bursting);
	struct peer peer;
	uint32_t bursts;

	(void)state;
	stream(r, &peer)->loss.srtt_ns = 4 * PACKET_NS;
	run(r, 2 * BURST_NS, &bursts);
	run(r, 10 * BURST_NS, &bursts);
	assert_true(bursts >= 10 * BURST_NS / (4 * PACKET_NS));
	rig_free(r);
}

/* The turn of a connection is a whole burst, so that its packets come out side by side. */
static void a_turn_is_a_burst(void **state)
{
	struct rig *r = rig_new(bursting);
	static uint8_t heads[64][2048];
	struct packet_out out[64];
	struct peer peer;

	(void)state;
	struct conn *c = stream(r, &peer);
	c->cc.pace_ns_per_kib = 0;
	for (unsigned k = 0; k < 64; k++)
		out[k] = (struct packet_out){.head = heads[k], .head_room = 1472};
	r->now_ns += BURST_NS;
	assert_int_equal(engine_transmit(r->e, out, 64, r->now_ns), 64);
	assert_int_equal(out[1].head_length, out[40].head_length);
	assert_int_equal(out[40].payload_length, RIG_CHUNK);
	rig_free(r);
}

static void a_burst_is_bounded(void **state)
{
	struct engine_config f = ((struct rig *)*state)->config;

	f.burst_bytes[7] = 65536;
	assert_int_not_equal(engine_bytes(&f), 0);
	f.burst_bytes[7]++;
	assert_int_equal(engine_bytes(&f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunks_leave_in_bursts_at_the_same_pace),
		cmocka_unit_test(a_message_does_not_wait_for_a_burst),
		cmocka_unit_test(a_short_window_does_not_wait),
		cmocka_unit_test(a_turn_is_a_burst),
		test_rig(a_burst_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
