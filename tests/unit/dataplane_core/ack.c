/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets arrived: the window of bits against a set of numbers, and what the ACKs say. */
#include "fixtures/core_test.h"

enum { SPAN = 1 << 26, WORDS = 4 /* of the ring: 4 * window_pkts bits */ };

struct model {
	uint64_t base; /* of the numbers in have */
	uint64_t largest;
	bool any;
	uint8_t *have;
};

static enum ack_verdict model_look(const struct model *m, uint64_t pn)
{
	if (pn > (m->any ? m->largest : 0) && pn - (m->any ? m->largest : 0) > 1 << 20)
		return ACK_FUTURE;
	if (m->any && pn <= m->largest && m->largest / 64 - pn / 64 >= WORDS)
		return ACK_OLD;
	return m->have[pn - m->base] ? ACK_DUPLICATE : ACK_NEW;
}

static void model_mark(struct model *m, uint64_t pn)
{
	m->have[pn - m->base] = 1;
	if (!m->any || pn > m->largest)
		m->largest = pn;
	m->any = true;
}

static uint64_t model_draw(const struct model *m, uint64_t *seed)
{
	uint64_t far = draw_below(seed, 1000), pn = m->any ? m->largest : m->base;

	if (far < 5)
		pn += draw_below(seed, 1 << 12);
	else if (far == 5)
		pn += (1 << 20) - 1 + draw_below(seed, 3);
	else if (far < 400)
		pn += draw_below(seed, 5);
	else if (far < 500)
		pn += draw_below(seed, 300);
	else
		pn -= numbers_min(draw_below(seed, 64 * (WORDS + 1)), pn - m->base);
	return pn;
}

/* The next ACK must say what the set holds, reaching back as far as is promised. */
static void model_check_ack(struct rig *r, struct conn *c, const struct model *m)
{
	uint8_t f[ACK_AT_BITMAP + 8 * ACK_WORDS_MAX + ECN_BYTES];
	uint16_t length;

	if (c->rx.ack_pending == 0)
		c->rx.ack_pending = 1;
	length = ack_write(r->e, c, f, sizeof(f));
	assert_int_equal(f[0], FRAME_ACK);
	assert_in_range(f[ACK_AT_WORDS], 1, WORDS);
	assert_int_equal(length, ACK_AT_BITMAP + 8 * f[ACK_AT_WORDS]);
	assert_int_equal(wire_get64(f + ACK_AT_LARGEST), m->largest);
	uint64_t first = (m->largest / 64 + 1 - f[ACK_AT_WORDS]) * 64;
	for (uint64_t pn = first; pn <= (m->largest | 63); pn++) {
		uint64_t word = wire_get64(f + ACK_AT_BITMAP + (pn - first) / 64 * 8);
		bool want = pn >= m->base && pn <= m->largest && m->have[pn - m->base];
		assert_int_equal(word >> (pn % 64) & 1, want);
	}
	assert_int_equal(c->rx.ack_pending, 0);
}

static void window_against_a_set(uint64_t base)
{
	struct rig *r = rig_new(NULL);
	struct peer peer = rig_connect(r, 1);
	struct model m = {.base = base, .have = calloc(1, SPAN)};
	uint64_t seed = base + 3;
	uint32_t seen[4] = {0};

	peer.c->rx.any = base != 0; /* as if everything before had been seen long ago */
	peer.c->rx.largest = m.largest = base;
	m.any = base != 0;
	memset(peer.c->rx.bitmap, 0, r->e->rx_window / 8);
	for (uint32_t k = 0; k < 4; k++)
		peer.c->rx.ack_history[k] = base;
	if (m.any) {
		ack_mark(r->e, peer.c, base, true);
		model_mark(&m, base);
	}
	for (uint32_t step = 0; step < 100000 && m.largest - base < SPAN - (2 << 20); step++) {
		uint64_t pn = model_draw(&m, &seed);
		enum ack_verdict want = model_look(&m, pn);

		assert_int_equal(ack_look(r->e, peer.c, pn), want);
		seen[want]++;
		if (want == ACK_NEW) {
			ack_mark(r->e, peer.c, pn, draw_below(&seed, 2));
			model_mark(&m, pn);
		}
		if (m.any && draw_below(&seed, 16) == 0)
			model_check_ack(r, peer.c, &m);
	}
	for (uint32_t k = 0; k < 4; k++)
		assert_true(seen[k] > 0);
	free(m.have);
	rig_free(r);
}

/* [P6.1] */
static void the_window_is_a_set(void **state)
{
	(void)state;
	window_against_a_set(0);
	window_against_a_set((UINT64_C(1) << 32) - 640);
	window_against_a_set((UINT64_C(1) << 63) - 6400);
	window_against_a_set(UINT64_C(0xfffffff000000000));
}

static void the_first_number_may_not_be_far(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct conn *c = peer.c;

	memset(c->rx.bitmap, 0, r->e->rx_window / 8);
	c->rx.any = false;
	assert_int_equal(ack_look(r->e, c, 0), ACK_NEW);
	assert_int_equal(ack_look(r->e, c, 1 << 20), ACK_NEW);
	assert_int_equal(ack_look(r->e, c, (1 << 20) + 1), ACK_FUTURE);
	assert_int_equal(ack_look(r->e, c, UINT64_MAX), ACK_FUTURE);
	ack_mark(r->e, c, 7, true);
	assert_int_equal(ack_look(r->e, c, 6), ACK_NEW);
	assert_int_equal(ack_look(r->e, c, UINT64_MAX), ACK_FUTURE);
}

/* However large its number is: nothing was before it. */
static void the_first_ack_reaches_back_to_the_first_packet(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint8_t f[ACK_AT_BITMAP + 8 * ACK_WORDS_MAX + ECN_BYTES];

	memset(peer.c->rx.ack_history, 0, sizeof(peer.c->rx.ack_history));
	peer.c->rx.any = false;
	ack_mark(r->e, peer.c, 3 * 64 + 5, true);
	for (uint32_t k = 1; k <= 4; k++) {
		peer.c->rx.ack_pending = 1;
		ack_write(r->e, peer.c, f, sizeof(f));
		assert_int_equal(f[ACK_AT_WORDS], 1);
	}
}

/* The worked example of the protocol's description, byte by byte. [P6.3] */
static void the_documented_example(void **state)
{
	static const uint8_t want[] = {0x02, 0x03, 0x19, 0x00, 0x81, 0,	   0,	 0,    0,    0,
				       0,    0,	   0x40, 0x4b, 0x4c, 0,	   0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff, 0xbf, 0xff, 0xff, 0xff, 0xef, 0xff,
				       0xff, 0xff, 0x03, 0,    0,    0,	   0,	 0,    0,    0};
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint8_t f[64];

	peer.c->rx.any = false;
	peer.c->rx.ack_sent = 0;
	memset(peer.c->rx.bitmap, 0, r->e->rx_window / 8);
	r->e->now_ns = 5000000000; /* 0x4c4b40 us */
	for (uint64_t pn = 0; pn < 130; pn++)
		if (pn != 70 && pn != 100)
			ack_mark(r->e, peer.c, pn, true);
	r->e->now_ns += 100000;
	assert_int_equal(ack_write(r->e, peer.c, f, sizeof(f)), sizeof(want));
	assert_memory_equal(f, want, sizeof(want));
	for (uint64_t pn = 130; pn < 154; pn++)
		ack_mark(r->e, peer.c, pn, true);
	assert_int_equal(ack_write(r->e, peer.c, f, sizeof(f)), sizeof(want));
	assert_int_equal(wire_get64(f + ACK_AT_LARGEST), 153);
}

static void send_pings(struct rig *r, struct peer *peer, uint32_t count, uint8_t type)
{
	struct packet p;

	for (uint32_t k = 0; k < count; k++) {
		peer_begin(r, peer, &p);
		if (type == FRAME_ECN)
			forge_ecn(&p, 0);
		else
			forge_grant(&p, 1, 1);
		peer_send(r, peer, &p);
	}
}

/* [P6.2] */
static void an_ack_waits_for_company(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	send_pings(r, &peer, 1, FRAME_GRANT); /* the first of all: alone, it waits to the end */
	assert_false(rig_take(r, &p));
	r->now_ns += r->config.ack_delay_ns - 1;
	engine_tick(r->e, r->now_ns);
	assert_false(rig_take(r, &p));
	r->now_ns += 1 + WHEEL_SLOT_NS;
	engine_tick(r->e, r->now_ns);
	assert_true(rig_take(r, &p));
	assert_int_equal(r->counters.tx_acks, 1);
	send_pings(r, &peer, ACK_EVERY - 1, FRAME_GRANT);
	assert_false(rig_take(r, &p));
	send_pings(r, &peer, 1, FRAME_GRANT);
	assert_true(rig_take(r, &p));
	assert_non_null(packet_frame(&p, FRAME_ACK));
	assert_int_equal(r->counters.tx_acks, 2);
	assert_false(rig_take(r, &p));
	send_pings(r, &peer, 1, FRAME_GRANT);
	assert_false(rig_take(r, &p));
	assert_true(engine_next_timeout(r->e) <=
		    r->now_ns + r->config.ack_delay_ns + WHEEL_SLOT_NS);
	r->now_ns = engine_next_timeout(r->e);
	engine_tick(r->e, r->now_ns);
	assert_true(rig_take(r, &p));
	assert_non_null(packet_frame(&p, FRAME_ACK));
}

static void a_gap_or_a_ping_is_answered_at_once(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	peer.pn++;
	send_pings(r, &peer, 1, FRAME_GRANT);
	assert_int_equal(rig_drain(r), 1);
	send_pings(r, &peer, 1, FRAME_GRANT); /* in order again: there is time */
	assert_int_equal(rig_drain(r), 0);
	peer_begin(r, &peer, &p);
	forge_frame(&p, FRAME_PING, PING_BYTES);
	peer_send(r, &peer, &p);
	assert_int_equal(rig_drain(r), 1);
}

/* A sender that waits for nothing else says so in the frame. */
static void what_asks_at_once_is_answered_at_once(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	rig_sink(r, &peer, 10);
	for (uint32_t k = 0; k < 8; k++) {
		bool ask = k & 1;

		peer_begin(r, &peer, &p);
		if (k < 4)
			forge_data(&p, record_handle(0), k, RIG_CHUNK, 1);
		else
			forge_msg(&p, k - 4, 0, 10, 1);
		p.bytes[WIRE_BODY + FRAME_AT_FLAGS] = ask ? FRAME_FLAG_ASK : 0;
		peer_send(r, &peer, &p);
		assert_int_equal(rig_drain(r), ask);
	}
	rig_drops(r, NULL);
}

static void what_does_not_ask_is_not_answered(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	send_pings(r, &peer, 5 * ACK_EVERY, FRAME_ECN);
	assert_int_equal(rig_drain(r), 0);
	rig_pass(r, 10000000);
	assert_int_equal(r->counters.tx_acks, 0);
}

/* A path that makes a copy of every packet must not keep two idle ends talking. */
static void copies_are_not_answered(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	peer_begin(r, &peer, &p);
	forge_grant(&p, 1, 1);
	peer_send(r, &peer, &p);
	rig_pass(r, 2000000);
	uint64_t acks = r->counters.tx_acks;
	for (int k = 0; k < 10; k++)
		rig_receive(r, &p, &peer.addr);
	rig_drops(r, "drop_duplicate", 10, NULL);
	rig_pass(r, 10000000);
	assert_int_equal(r->counters.tx_acks, acks);

	peer.pn += r->e->rx_window + 64;
	send_pings(r, &peer, 1, FRAME_GRANT);
	rig_pass(r, 2000000);
	acks = r->counters.tx_acks;
	rig_receive(r, &p, &peer.addr);
	rig_drops(r, "drop_old", 1, NULL);
	wire_put64(p.bytes + WIRE_AT_PN, peer.pn + (1 << 20) + 1);
	peer_send(r, &peer, &p);
	rig_drops(r, "drop_future", 1, NULL);
	rig_pass(r, 10000000);
	assert_int_equal(r->counters.tx_acks, acks);
}

/* Far out of order, yet inside what an ACK can say: it is said, in four ACKs. */
static void a_late_packet_is_reported(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint64_t late = peer.pn++;
	struct packet p;

	for (int k = 0; k < 8; k++) {
		send_pings(r, &peer, 1, FRAME_GRANT);
		peer.pn += 20;
		rig_drain(r);
	}
	uint64_t next = peer.pn;
	peer.pn = late;
	send_pings(r, &peer, 1, FRAME_GRANT);
	peer.pn = next;
	for (int k = 0; k < 4; k++) {
		assert_true(rig_take(r, &p));
		const uint8_t *f = packet_frame(&p, FRAME_ACK);
		uint64_t top = wire_get64(f + ACK_AT_LARGEST) / 64;
		uint64_t first = (top + 1 - f[ACK_AT_WORDS]) * 64;
		assert_true(first <= late);
		uint64_t word = wire_get64(f + ACK_AT_BITMAP + (late - first) / 64 * 8);
		assert_true(word >> (late % 64) & 1);
		peer.pn++;
		send_pings(r, &peer, 1, FRAME_GRANT);
	}
}

static void what_may_wait_longer_holds_up_nothing(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct conn *c = peer.c;
	uint64_t delay_ns = r->e->config.ack_delay_ns, now_ns = r->e->now_ns;

	for (uint8_t told = 0; told <= ACK_LATER_SENDERS + 1; told++) {
		uint32_t delays = told > 0 && told <= ACK_FEW_SENDERS ? ACK_FEW_DELAYS
				  : told <= ACK_LATER_SENDERS	      ? ACK_CHUNK_DELAYS
								      : 1;
		c->rx.ack_pending = 0;
		c->rx.peer_senders = told; /* who does not know that he is to wait sends again */
		ack_mark(r->e, c, c->rx.largest + 1, ACK_LATER);
		assert_int_equal(c->rx.ack_deadline_ns, now_ns + delays * delay_ns);
	}
	c->rx.peer_senders = 1;
	c->rx.ack_pending = 0;
	ack_mark(r->e, c, c->rx.largest + 1, ACK_LATER);
	ack_mark(r->e, c, c->rx.largest + 1, ACK_SOON);
	assert_int_equal(c->rx.ack_deadline_ns, now_ns + delay_ns);
	ack_mark(r->e, c, c->rx.largest + 1, ACK_LATER);
	assert_int_equal(c->rx.ack_deadline_ns, now_ns + delay_ns);
	for (uint32_t senders = ACK_FEW_SENDERS; senders <= ACK_LATER_SENDERS + 1; senders++) {
		uint32_t delays = senders == ACK_FEW_SENDERS ? ACK_FEW_DELAYS : ACK_CHUNK_DELAYS;
		c->rx.ack_pending = 0;
		r->e->in_senders = senders;
		ack_mark(r->e, c, c->rx.largest + 1, ACK_LATER);
		assert_int_equal(c->rx.ack_deadline_ns,
				 now_ns + (senders > ACK_LATER_SENDERS ? 1 : delays) * delay_ns);
	}
	r->e->in_senders = 0;
}

/* An ACK goes whole or not at all. */
static void an_ack_is_never_cut(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint8_t f[256];

	for (int k = 0; k < 3; k++) {
		send_pings(r, &peer, 1, FRAME_GRANT);
		peer.pn += 60;
	}
	uint16_t whole = ACK_AT_BITMAP + 8 * 2;
	assert_true(peer.c->rx.largest / 64 == 1);
	for (uint16_t room = 0; room < whole; room++)
		assert_int_equal(ack_write(r->e, peer.c, f, room), 0);
	peer.c->rx.ecn_changed = true;
	assert_int_equal(ack_write(r->e, peer.c, f, whole), whole);
	assert_true(peer.c->rx.ecn_changed);		      /* it waits for more room */
	assert_int_equal(ack_write(r->e, peer.c, f, 256), 0); /* nothing is pending any more */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_window_is_a_set),
		test_rig(the_first_number_may_not_be_far),
		test_rig(the_first_ack_reaches_back_to_the_first_packet),
		test_rig(the_documented_example),
		test_rig(an_ack_waits_for_company),
		test_rig(a_gap_or_a_ping_is_answered_at_once),
		test_rig(what_asks_at_once_is_answered_at_once),
		test_rig(what_does_not_ask_is_not_answered),
		test_rig(copies_are_not_answered),
		test_rig(a_late_packet_is_reported),
		test_rig(what_may_wait_longer_holds_up_nothing),
		test_rig(an_ack_is_never_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
