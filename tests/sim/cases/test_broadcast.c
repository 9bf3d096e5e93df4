/* SPDX-License-Identifier: BSD-3-Clause */
/* One object to all other nodes at once, whole nodes in virtual time: how near to the bound of the
 * links, and how many copies leave the source. */
#include "full/cast.h"
#include "full/peek.h"

enum { ROUNDS = 12, WARM = 4 };

struct expect {
	uint32_t nodes;
	uint64_t size;
	double ratio, copies; /* at most: time to S/B, copies sent by the source */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Medians, after some rounds in which the nodes have learnt how fast their links are. */
static void cast_measure(const struct expect *e, uint64_t mbit)
{
	static struct cast c;
	double ratio[ROUNDS], copies[ROUNDS];
	char what[64];

	cast_open(&c, e->nodes, e->size, mbit, 0);
	for (int k = 0; k < WARM + ROUNDS; k++) {
		uint8_t id = (uint8_t)(k + 1);

		cast_put(&c, id);
		uint64_t sent = cast_sent(&c), ns = cast_get(&c, id);
		if (k >= WARM) {
			ratio[k - WARM] = (double)ns / (double)testkit_bound_ns(e->size, mbit);
			copies[k - WARM] = (double)(cast_sent(&c) - sent) / (double)e->size;
		}
		cast_remove(&c, id);
	}
	qsort(ratio, ROUNDS, sizeof(*ratio), by_value);
	qsort(copies, ROUNDS, sizeof(*copies), by_value);
	snprintf(what, sizeof(what), "%llu KiB to %u, ratio", (unsigned long long)e->size >> 10,
		 e->nodes - 1);
	testkit_at_most(what, ratio[ROUNDS / 2], e->ratio);
	testkit_at_most("copies from the source", copies[ROUNDS / 2], e->copies);
	cast_close(&c);
}

static void broadcasts_are_near_their_bound(void **state)
{
	static const struct expect at_200[] = {
		{8, 1 << 20, 1.15, 1.1},   {16, 1 << 20, 1.3, 1.1}, {8, 256 << 10, 1.3, 1.1},
		{16, 256 << 10, 1.6, 1.1}, {8, 64 << 10, 2.0, 1.1}, {16, 64 << 10, 2.6, 2.1},
		{16, 16 << 10, 5, 4.1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(at_200) / sizeof(at_200[0]); i++)
		cast_measure(&at_200[i], 200);
}

/* ---- racks ----------------------------------------------------------------------------------- */

enum { RACK = 2, RACKS = 4 };

/* Bytes that enter each rack. */
static enum network_verdict count_entering(void *context, const struct network_packet *p)
{
	uint64_t *entering = context;

	if (p->from / RACK != p->to / RACK)
		entering[p->to / RACK] += p->length;
	return NETWORK_PASS;
}

/* Where racks have narrow links to each other a copy enters each of them once. */
static void copies_enter_a_rack_once(void **state)
{
	for (unsigned known = 0; known < 2; known++) {
		static struct cast c;
		struct control_config config;
		uint64_t entering[RACKS] = {0};
		double most = 0, sum = 0;

		full_config(&config);
		config.network = known ? peek_racks(RACK, RACKS) : NULL;
		cast_open_as(&c, RACK * RACKS, 1 << 20, 200, 0, &config);
		for (uint8_t id = 1; id <= 4; id++) {
			cast_put(&c, id);
			c.w.net.rule = count_entering;
			c.w.net.rule_context = entering;
			cast_get(&c, id);
			c.w.net.rule = NULL;
			cast_remove(&c, id);
		}
		for (uint32_t r = 0; r < RACKS; r++) {
			double copies = (double)entering[r] / 4 / (double)c.size;

			sum += copies;
			most = copies > most ? copies : most;
		}
		print_message("racks %sknown: %.2f copies enter all, at most %.2f one of them\n",
			      known ? "" : "not ", sum, most);
		if (known)
			testkit_at_most("copies into a rack", most, 1.15);
		else
			assert_true(sum > (RACKS - 1) * 1.3);
		cast_close(&c);
	}
}

/* Loses the next packet from node 0 to node 1, once. */
static enum network_verdict lose_one(void *context, const struct network_packet *p)
{
	bool *left = context;

	if (!*left || p->from != 0 || p->to != 1)
		return NETWORK_PASS;
	*left = false;
	return NETWORK_DROP;
}

/* Node 2 is sent to node 1, which hears later than node 2 that it will have the object: the request
 * is kept until then, not refused and repeated. */
static void a_request_that_comes_early_waits(void **state)
{
	static struct cast c;
	bool lose = true;
	uint64_t heard;

	(void)state;
	cast_open(&c, 3, 256 << 10, 200, 1);
	cast_put(&c, 1);
	c.w.net.rule = lose_one;
	c.w.net.rule_context = &lose;
	heard = control_counters(c.g.full[2].core)->messages_in;
	cast_get(&c, 1);
	world_run(&c.w, 10 * WORLD_MS);
	heard = control_counters(c.g.full[2].core)->messages_in - heard;
	assert_false(lose);
	testkit_at_most("answers to GET, STREAM, HAVE, HAVE", heard, 4);
	assert_int_equal(c.w.nodes[0].counters.tx_chunk_bytes, c.size); /* a chain it was */
	cast_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broadcasts_are_near_their_bound),
		cmocka_unit_test(copies_enter_a_rack_once),
		cmocka_unit_test(a_request_that_comes_early_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
