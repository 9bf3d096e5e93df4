/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact loss masks: one packet, or one exact set of packets, is lost; the work completes with the
 * right bytes, later than without loss by no more than the budget that stands with the mask.
 */
#include "model/testkit.h"

#define RTT_NS		   (100 * WORLD_US)
#define RATE_MBIT	   1000u
#define CHUNKS		   256u
#define WITHIN_NS	   (2 * WORLD_S)
#define PROBE_NS	   (5200 * WORLD_US) /* until a tail probe, see transfer_survives_each_loss */
#define ACK_DELAY_NS	   (1000 * WORLD_US)
#define HANDSHAKE_TIMER_NS (100 * WORLD_MS) /* a lost handshake packet costs no more */

struct scene {
	struct world w;
	struct rules rules;
};

typedef void (*arrange_fn)(struct scene *s);

struct mask {
	const char *name;
	arrange_fn arrange;
	uint64_t budget_ns; /* beyond the time without loss */
};

static void scene_open(struct scene *s)
{
	struct network_link link = testkit_link(RATE_MBIT, RTT_NS);
	struct node_options o = world_options();
	memset(s, 0, sizeof(*s));
	world_init(&s->w, 2, &link, &o, TESTKIT_SEED, false);
	s->w.net.rule = rules_apply;
	s->w.net.rule_context = &s->rules;
}

static void scene_close(struct scene *s)
{
	testkit_clean(&s->w);
	world_free(&s->w);
}

static void scene_check_struck(const struct scene *s, const char *name)
{
	for (uint32_t i = 0; i < s->rules.count; i++)
		if (s->rules.rule[i].struck != s->rules.rule[i].strikes)
			fail_msg("%s: rule %u struck %llu of %llu times", name, i,
				 (unsigned long long)s->rules.rule[i].struck,
				 (unsigned long long)s->rules.rule[i].strikes);
}

/* ---- the handshake ------------------------------------------------------------------------ */

static void first_hello(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_HELLO, RULE_ANY);
}

static void cookie_reply(struct scene *s)
{
	rules_add(&s->rules, 1, WIRE_COOKIE, RULE_ANY);
}

static void second_hello(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_HELLO, RULE_ANY)->skip = 1;
}

static void accept_reply(struct scene *s)
{
	rules_add(&s->rules, 1, WIRE_ACCEPT, RULE_ANY);
}

static void every_first_of_the_handshake(struct scene *s)
{
	first_hello(s);
	cookie_reply(s);
	accept_reply(s);
}

static void handshake_twice(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_HELLO, RULE_ANY)->verdict = NETWORK_TWICE;
	struct rule *r = rules_add(&s->rules, 1, WIRE_COOKIE, RULE_ANY);
	r->verdict = NETWORK_TWICE;
	r = rules_add(&s->rules, 1, WIRE_ACCEPT, RULE_ANY);
	r->verdict = NETWORK_TWICE;
}

static void nothing(struct scene *s)
{
	(void)s;
}

static uint64_t handshake_run(const struct mask *m)
{
	struct scene s;
	scene_open(&s);
	m->arrange(&s);
	uint64_t t = world_connect(&s.w, 0, 1, WITHIN_NS);
	if (t == UINT64_MAX)
		fail_msg("%s: not connected", m->name);
	struct transfer tr = testkit_transfer(&s.w, 64 * TESTKIT_CHUNK, TESTKIT_CHUNK, WITHIN_NS);
	if (tr.done_ns == UINT64_MAX)
		fail_msg("%s: connected, but no transfer", m->name);
	scene_check_struck(&s, m->name);
	assert_int_equal(s.w.nodes[0].conns_count, 1);
	assert_int_equal(s.w.nodes[1].conns_count, 1);
	assert_int_equal(s.w.nodes[0].open_answers, 1);
	scene_close(&s);
	return t;
}

static void handshake_survives_each_loss(void **state)
{
	static const struct mask masks[] = {
		{"no loss", nothing, 4 * RTT_NS},
		{"every handshake packet twice", handshake_twice, 4 * RTT_NS},
		{"first HELLO", first_hello, HANDSHAKE_TIMER_NS},
		{"COOKIE", cookie_reply, HANDSHAKE_TIMER_NS},
		{"HELLO with the cookie", second_hello, HANDSHAKE_TIMER_NS},
		{"ACCEPT", accept_reply, HANDSHAKE_TIMER_NS},
		{"one of each", every_first_of_the_handshake, 4 * HANDSHAKE_TIMER_NS},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		testkit_at_most(masks[i].name, handshake_run(&masks[i]) / 1e3,
				masks[i].budget_ns / 1e3);
}

/* ---- one transfer ------------------------------------------------------------------------- */

static struct rule *lose_chunk(struct scene *s, uint32_t chunk)
{
	struct rule *r = rules_add(&s->rules, 0, WIRE_PAYLOAD, FRAME_DATA);
	r->chunk = chunk;
	return r;
}

static void first_chunk(struct scene *s)
{
	lose_chunk(s, 0);
}

static void middle_chunk(struct scene *s)
{
	lose_chunk(s, CHUNKS / 2);
}

static void last_chunk(struct scene *s)
{
	lose_chunk(s, CHUNKS - 1);
}

static void last_ten_chunks(struct scene *s)
{
	for (uint32_t i = 1; i <= 10; i++)
		lose_chunk(s, CHUNKS - i);
}

static void one_chunk_three_times(struct scene *s)
{
	lose_chunk(s, 50)->strikes = 3;
}

static void first_64_packets(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_PAYLOAD, FRAME_DATA)->strikes = 64;
}

static void every_other_packet_of_100(struct scene *s)
{
	for (uint32_t i = 0; i < 8; i++) {
		struct rule *r = rules_add(&s->rules, 0, WIRE_PAYLOAD, FRAME_DATA);
		r->skip = 20 + 2 * i;
	}
}

static void three_acks(struct scene *s)
{
	rules_add(&s->rules, 1, WIRE_PAYLOAD, FRAME_ACK)->strikes = 3;
}

static void ten_acks_in_the_middle(struct scene *s)
{
	struct rule *r = rules_add(&s->rules, 1, WIRE_PAYLOAD, FRAME_ACK);
	r->skip = 2;
	r->strikes = 5;
}

static void first_grant(struct scene *s)
{
	rules_add(&s->rules, 1, WIRE_PAYLOAD, FRAME_GRANT);
}

static void first_three_grants(struct scene *s)
{
	rules_add(&s->rules, 1, WIRE_PAYLOAD, FRAME_GRANT)->strikes = 3;
}

static bool probed(void *context)
{
	const struct world *w = context;
	return w->nodes[0].counters.tail_probes > 0;
}

static void last_chunk_and_its_probe(struct scene *s)
{
	last_chunk(s);
	struct rule *r = rules_add(&s->rules, 0, WIRE_PAYLOAD, RULE_ANY);
	r->armed = probed;
	r->context = &s->w;
}

static void late_chunk(struct scene *s)
{
	s->w.net.late_ns = 10 * WORLD_US; /* less than the reorder window */
	lose_chunk(s, 100)->verdict = NETWORK_LATE;
}

static void very_late_chunk(struct scene *s)
{
	s->w.net.late_ns = 5 * RTT_NS; /* declared lost, then it comes after all */
	lose_chunk(s, 100)->verdict = NETWORK_LATE;
}

static void twice_each(struct scene *s)
{
	struct rule *r = rules_add(&s->rules, RULE_ANY, WIRE_PAYLOAD, RULE_ANY);
	r->verdict = NETWORK_TWICE;
	r->strikes = 20;
}

static uint64_t transfer_run(const struct mask *m, struct counters *tx)
{
	struct scene s;
	scene_open(&s);
	assert_true(world_connect(&s.w, 0, 1, WITHIN_NS) != UINT64_MAX);
	world_run(&s.w, 5 * WORLD_MS); /* the path MTU search is over */
	m->arrange(&s);
	struct transfer t =
		testkit_transfer(&s.w, CHUNKS * TESTKIT_CHUNK - 7, TESTKIT_CHUNK, WITHIN_NS);
	if (t.done_ns == UINT64_MAX)
		fail_msg("%s: not complete", m->name);
	assert_true(world_edge_ended(&s.w, 0, t.out, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(s.w.nodes[0].edges[t.out].state, EDGE_DONE);
	world_run(&s.w, 100 * WORLD_MS);
	scene_check_struck(&s, m->name);
	*tx = s.w.nodes[0].counters;
	scene_close(&s);
	return t.done_ns;
}

static void transfer_survives_each_loss(void **state)
{
	/* A probe leaves after a round trip, four deviations (at least 1 ms) and the
	 * acknowledgement's delay (0.5 ms) without news: 4.7 ms here, as the queue of the first
	 * window stretches the round trip to 1.5 ms. Each further probe waits twice as long. */
	static const struct mask masks[] = {
		{"first chunk", first_chunk, 3 * RTT_NS},
		{"middle chunk", middle_chunk, 3 * RTT_NS},
		{"last chunk", last_chunk, PROBE_NS},
		{"last ten chunks", last_ten_chunks, PROBE_NS + RTT_NS},
		{"last chunk and its probe", last_chunk_and_its_probe, 3 * PROBE_NS},
		{"one chunk three times", one_chunk_three_times, 3 * PROBE_NS},
		{"the first 64 packets", first_64_packets, 12 * PROBE_NS},
		{"eight single packets", every_other_packet_of_100, 10 * RTT_NS},
		{"three ACKs", three_acks, 2 * PROBE_NS},
		{"five ACKs in the middle", ten_acks_in_the_middle, 2 * PROBE_NS},
		{"first GRANT", first_grant, PROBE_NS},
		{"first three GRANTs", first_three_grants, 2 * PROBE_NS},
		{"a late chunk", late_chunk, RTT_NS},
		{"a very late chunk", very_late_chunk, 5 * RTT_NS},
		{"twenty packets twice", twice_each, 4 * RTT_NS},
	};
	static const struct mask none = {"no loss", nothing, 0};
	struct counters tx;
	(void)state;
	uint64_t ideal = transfer_run(&none, &tx);
	testkit_at_most("no loss", ideal / 1e3,
			testkit_bound_ns(CHUNKS * TESTKIT_CHUNK, RATE_MBIT) * 1.053 / 1e3 +
				3 * RTT_NS / 1e3); /* the first window is 16 packets */
	assert_int_equal(tx.tx_chunks, CHUNKS);
	assert_int_equal(tx.lost_pkts, 0);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		testkit_at_most(masks[i].name, transfer_run(&masks[i], &tx) / 1e3,
				(ideal + masks[i].budget_ns) / 1e3);
}

static void reordering_below_the_window_is_no_loss(void **state)
{
	static const struct mask m = {"late", late_chunk, 0};
	struct counters tx;
	(void)state;
	transfer_run(&m, &tx);
	assert_int_equal(tx.tx_chunk_resends, 0);
	assert_int_equal(tx.lost_pkts, 0);
}

static void a_spurious_loss_is_recognised(void **state)
{
	static const struct mask m = {"very late", very_late_chunk, 0};
	struct counters tx;
	(void)state;
	transfer_run(&m, &tx);
	assert_int_equal(tx.tx_chunk_resends, 1);
	assert_int_equal(tx.lost_spurious, 1);
}

/* ---- messages ----------------------------------------------------------------------------- */

static bool message_ended(void *context)
{
	const struct node *n = context;
	return n->messages[n->messages_count - 1].ended;
}

static void first_fragment(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_PAYLOAD, FRAME_MSG);
}

static void middle_fragment(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_PAYLOAD, FRAME_MSG)->skip = 8;
}

static void last_fragment(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_PAYLOAD, FRAME_MSG)->skip = 17;
}

static void all_fragments(struct scene *s)
{
	rules_add(&s->rules, 0, WIRE_PAYLOAD, FRAME_MSG)->strikes = 10;
}

static void message_acks(struct scene *s)
{
	rules_add(&s->rules, 1, WIRE_PAYLOAD, FRAME_ACK)->strikes = 2;
}

static uint64_t chunk_run(const struct mask *m)
{
	struct scene s;
	scene_open(&s);
	assert_true(world_connect(&s.w, 0, 1, WITHIN_NS) != UINT64_MAX);
	world_run(&s.w, 5 * WORLD_MS);
	m->arrange(&s);
	assert_int_not_equal(node_message(&s.w.nodes[0], 1, 20000), NODE_NONE);
	uint64_t t = world_until(&s.w, WITHIN_NS, message_ended, &s.w.nodes[0]);
	if (t == UINT64_MAX || !s.w.nodes[0].messages[0].acknowledged)
		fail_msg("%s: message not acknowledged", m->name);
	assert_int_equal(s.w.nodes[1].msgs_delivered, 1);
	scene_check_struck(&s, m->name);
	scene_close(&s);
	return t;
}

static void message_survives_each_loss(void **state)
{
	static const struct mask masks[] = {
		{"message, no loss", nothing, 0},
		{"first fragment", first_fragment, 5 * RTT_NS},
		{"middle fragment", middle_fragment, 5 * RTT_NS},
		{"last fragment", last_fragment, PROBE_NS},
		{"ten fragments", all_fragments, 2 * PROBE_NS},
		{"its ACKs", message_acks, 3 * PROBE_NS},
	};
	(void)state;
	uint64_t ideal = testkit_bound_ns(20000, RATE_MBIT) + ACK_DELAY_NS + 2 * RTT_NS;
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		testkit_at_most(masks[i].name, chunk_run(&masks[i]) / 1e3,
				(ideal + masks[i].budget_ns) / 1e3);
}

/* Longer than the pauses between probes of a silent peer may become. */
static void nothing_is_lost_on_a_long_way(void **state)
{
	struct network_link link = testkit_link(100, 600 * WORLD_MS);
	struct node_options o = world_options();
	uint64_t lost[2];
	struct world w;

	(void)state;
	world_init(&w, 2, &link, &o, TESTKIT_SEED, false);
	assert_true(world_connect(&w, 0, 1, 10 * WORLD_S));
	world_run(&w, 10 * WORLD_S); /* the HELLOs were repeated, and told no round trip */
	for (uint32_t i = 0; i < 2; i++)
		lost[i] = w.nodes[i].counters.lost_pkts;
	assert_true(testkit_transfer(&w, 100 * TESTKIT_CHUNK, TESTKIT_CHUNK, 20 * WORLD_S).done_ns <
		    20 * WORLD_S);
	world_run(&w, 10 * WORLD_S);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(w.nodes[i].counters.lost_pkts, lost[i]);
	testkit_clean(&w);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake_survives_each_loss),
		cmocka_unit_test(transfer_survives_each_loss),
		cmocka_unit_test(reordering_below_the_window_is_no_loss),
		cmocka_unit_test(a_spurious_loss_is_recognised),
		cmocka_unit_test(message_survives_each_loss),
		cmocka_unit_test(nothing_is_lost_on_a_long_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
