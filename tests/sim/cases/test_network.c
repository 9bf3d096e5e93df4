/* SPDX-License-Identifier: BSD-3-Clause */
/* The model network by itself: order, rate, buffer, marks, faults, masks, and that a seed replays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "model/network.h"

struct seen {
	struct network *n;
	uint64_t pkts, bytes, last_ns, disorder, marked, damaged, hash;
	uint64_t last_serial;
};

static void seen_deliver(void *context, struct network_packet *p)
{
	struct seen *s = context;
	uint64_t serial;
	memcpy(&serial, p->data, 8);
	s->pkts++;
	s->bytes += p->length;
	s->last_ns = s->n->events->now_ns;
	s->disorder += serial < s->last_serial;
	s->last_serial = serial;
	s->marked += p->ecn == 3;
	for (unsigned i = 8; i < p->length; i++)
		if (p->data[i] != (uint8_t)i) {
			s->damaged++;
			break;
		}
	s->hash = prng_mix(s->hash ^ serial ^ s->last_ns);
	network_discard(s->n, p);
}

struct bench {
	struct events events;
	struct network net;
	struct seen seen;
	uint64_t serial;
};

static void bench_init(struct bench *b, uint32_t count, const struct network_link *link,
		       uint64_t seed)
{
	memset(b, 0, sizeof(*b));
	events_init(&b->events, 0);
	network_init(&b->net, &b->events, count, link, seed, false);
	b->seen.n = &b->net;
	b->net.deliver = seen_deliver;
	b->net.deliver_context = &b->seen;
}

static void bench_send(struct bench *b, uint32_t from, uint32_t to, uint16_t length)
{
	struct network_packet *p = network_new(&b->net);
	struct net_addr addr = network_addr(&b->net, to);
	for (unsigned i = 0; i < length; i++)
		p->data[i] = (uint8_t)i;
	memcpy(p->data, &b->serial, 8);
	b->serial++;
	p->length = length;
	network_send(&b->net, p, from, &addr, 2);
}

static void bench_run(struct bench *b)
{
	while (events_step(&b->events, UINT64_MAX))
		;
}

static void bench_free(struct bench *b)
{
	assert_int_equal(b->net.in_flight, 0);
	network_free(&b->net);
	events_free(&b->events);
}

static void heap_check(void *context, uint64_t argument)
{
	uint64_t *last = context;
	assert_true(argument >= *last);
	*last = argument;
}

static void heap_orders_by_time_then_insertion(void **state)
{
	(void)state;
	struct events q;
	struct prng p = prng_fork(7, 0);
	uint64_t last = 0;
	events_init(&q, 0);
	for (int i = 0; i < 100000; i++) {
		uint64_t at = prng_below(&p, 1000);
		events_add(&q, at, heap_check, &last, at << 32 | q.sequence);
	}
	while (events_step(&q, UINT64_MAX))
		;
	assert_int_equal(q.ran, 100000);
	events_free(&q);
}

static void step_stops_at_its_bound(void **state)
{
	(void)state;
	struct events q;
	uint64_t last = 0;
	events_init(&q, 0);
	events_add(&q, 100, heap_check, &last, 1);
	assert_false(events_step(&q, 99));
	assert_int_equal(q.now_ns, 99);
	assert_true(events_step(&q, 100));
	assert_int_equal(q.now_ns, 100);
	events_free(&q);
}

static void packets_leave_at_the_rate(void **state)
{
	(void)state;
	struct bench b;
	struct network_link link = {.rate_bps = 1000000000, .delay_ns = 10000};
	bench_init(&b, 2, &link, 1);
	for (int i = 0; i < 1000; i++)
		bench_send(&b, 0, 1, 1458); /* 1,500 bytes of frame: 12 us */
	bench_run(&b);
	assert_int_equal(b.seen.pkts, 1000);
	assert_int_equal(b.seen.disorder, 0);
	/* 1000 on the first link, one more on the second, both halves of the delay twice */
	assert_int_equal(b.seen.last_ns, 1001 * 12000 + 10000);
	bench_free(&b);
}

static void full_buffer_drops_the_tail_and_marks_before(void **state)
{
	(void)state;
	struct bench b;
	struct network_link link = {.rate_bps = 1000000000,
				    .delay_ns = 10000,
				    .buffer_bytes = 150000,
				    .ecn_bytes = 75000};
	bench_init(&b, 2, &link, 1);
	for (int i = 0; i < 300; i++)
		bench_send(&b, 0, 1, 1458);
	bench_run(&b);
	assert_int_equal(b.seen.pkts, 100);
	assert_int_equal(b.net.endpoints[0].up.drops_full, 200);
	assert_int_equal(b.net.endpoints[0].up.backlog_max_bytes, 150000);
	assert_int_equal(b.seen.marked, 49);
	bench_free(&b);
}

static void incast_queues_at_the_receiver(void **state)
{
	(void)state;
	struct bench b;
	struct network_link link = {.rate_bps = 1000000000, .buffer_bytes = 1 << 20};
	bench_init(&b, 9, &link, 1);
	for (int i = 0; i < 100; i++)
		for (uint32_t from = 1; from < 9; from++)
			bench_send(&b, from, 0, 1458);
	bench_run(&b);
	assert_int_equal(b.seen.pkts + b.net.endpoints[0].down.drops_full, 800);
	/* 800 packets arrive within 100 packet times: when the last eight come 99 have left,
	 * and of the 701 others the buffer takes 699 */
	assert_in_range(b.net.endpoints[0].down.backlog_max_bytes, (1 << 20) - 1500, 1 << 20);
	assert_int_equal(b.seen.pkts, 798);
	bench_free(&b);
}

static void faults_strike_as_often_as_asked(void **state)
{
	(void)state;
	struct bench b;
	struct network_link link = {.rate_bps = 0, .delay_ns = 1000};
	struct network_faults f = {.loss_ppm = 200000,
				   .duplicate_ppm = 100000,
				   .reorder_ppm = 100000,
				   .corrupt_ppm = 20000,
				   .reorder_ns = 50000};
	bench_init(&b, 2, &link, 99);
	network_faults_all(&b.net, &f);
	for (int i = 0; i < 100000; i++) {
		b.events.now_ns += 100;
		bench_send(&b, 0, 1, 200);
		while (events_next_ns(&b.events) <= b.events.now_ns)
			events_step(&b.events, b.events.now_ns);
	}
	bench_run(&b);
	/* two directions of 10 % loss and 5 % duplication each */
	uint64_t expect = (uint64_t)(100000 * 0.9 * 1.05 * 0.9 * 1.05);
	assert_in_range(b.seen.pkts, expect * 98 / 100, expect * 102 / 100);
	assert_in_range(b.seen.damaged, expect * 2 / 100 * 85 / 100, expect * 2 / 100 * 115 / 100);
	assert_true(b.seen.disorder > expect / 20);
	bench_free(&b);
}

static uint64_t replay_hash(uint64_t seed)
{
	struct bench b;
	struct network_link link = {
		.rate_bps = 10000000000, .delay_ns = 1000, .buffer_bytes = 65536};
	struct network_faults f = {100000, 50000, 50000, 10000, 20000, 500};
	bench_init(&b, 5, &link, seed);
	network_faults_all(&b.net, &f);
	for (uint32_t i = 0; i < 20000; i++) {
		b.events.now_ns += 300;
		bench_send(&b, i % 5, (i * 7 + 1) % 5, (uint16_t)(64 + i % 1000));
		while (events_next_ns(&b.events) <= b.events.now_ns)
			events_step(&b.events, b.events.now_ns);
	}
	bench_run(&b);
	uint64_t hash = b.seen.hash;
	bench_free(&b);
	return hash;
}

static void a_seed_replays(void **state)
{
	(void)state;
	assert_int_equal(replay_hash(5), replay_hash(5));
	assert_int_not_equal(replay_hash(5), replay_hash(6));
}

static enum network_verdict drop_third(void *context, const struct network_packet *p)
{
	(void)context;
	return p->from == 0 && p->nth == 3 ? NETWORK_DROP : NETWORK_PASS;
}

static void exact_mask_drops_one_packet(void **state)
{
	(void)state;
	struct bench b;
	struct network_link link = {.rate_bps = 1000000000};
	bench_init(&b, 3, &link, 1);
	b.net.rule = drop_third;
	for (int i = 0; i < 10; i++) {
		bench_send(&b, 0, 1, 100);
		bench_send(&b, 1, 0, 100);
	}
	bench_run(&b);
	assert_int_equal(b.seen.pkts, 19);
	assert_int_equal(b.net.drops_rule, 1);
	bench_free(&b);
}

static void cables_partitions_and_mtu_drop(void **state)
{
	(void)state;
	struct bench b;
	struct network_link link = {.rate_bps = 1000000000, .mtu = 1500};
	bench_init(&b, 4, &link, 1);
	b.net.endpoints[1].is_down = true;
	b.net.endpoints[3].side = 1;
	bench_send(&b, 0, 1, 100);
	bench_send(&b, 1, 0, 100);
	bench_send(&b, 0, 3, 100);
	bench_send(&b, 0, 2, 1472);
	bench_send(&b, 0, 2, 1473);
	bench_run(&b);
	assert_int_equal(b.seen.pkts, 1);
	assert_int_equal(b.net.endpoints[1].down.drops_down, 1);
	assert_int_equal(b.net.endpoints[1].up.drops_down, 1);
	assert_int_equal(b.net.drops_partition, 1);
	assert_int_equal(b.net.endpoints[0].up.drops_mtu, 1);
	bench_free(&b);
}

static void addresses_map_back(void **state)
{
	(void)state;
	struct events q;
	struct network_link link = {0};
	for (int v6 = 0; v6 < 2; v6++) {
		struct network n;
		events_init(&q, 0);
		network_init(&n, &q, 300, &link, 1, v6);
		for (uint32_t i = 0; i < 300; i++) {
			struct net_addr a = network_addr(&n, i);
			assert_int_equal(network_endpoint_of(&n, &a), i);
			assert_int_equal(net_addr_is_v4(&a), !v6);
			a.port++;
			assert_int_equal(network_endpoint_of(&n, &a), UINT32_MAX);
		}
		network_free(&n);
		events_free(&q);
	}
}

static void the_model_is_fast(void **state)
{
	(void)state;
	struct bench b;
	struct timespec t0, t1;
	struct network_link link = {.rate_bps = 100000000000, .delay_ns = 10000};
	bench_init(&b, 2, &link, 1);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (uint32_t i = 0; i < 1000000; i++) {
		struct network_packet *p = network_new(&b.net);
		struct net_addr addr = network_addr(&b.net, 1);
		memset(p->data, 0, 64);
		p->length = 64;
		network_send(&b.net, p, 0, &addr, 2);
		b.events.now_ns += 20;
		while (events_next_ns(&b.events) <= b.events.now_ns)
			events_step(&b.events, b.events.now_ns);
	}
	bench_run(&b);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	double s = (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec) / 1e9;
	printf("network model: %.2f million packets per second\n", 1 / s);
	assert_int_equal(b.seen.pkts, 1000000);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_orders_by_time_then_insertion),
		cmocka_unit_test(step_stops_at_its_bound),
		cmocka_unit_test(packets_leave_at_the_rate),
		cmocka_unit_test(full_buffer_drops_the_tail_and_marks_before),
		cmocka_unit_test(incast_queues_at_the_receiver),
		cmocka_unit_test(faults_strike_as_often_as_asked),
		cmocka_unit_test(a_seed_replays),
		cmocka_unit_test(exact_mask_drops_one_packet),
		cmocka_unit_test(cables_partitions_and_mtu_drop),
		cmocka_unit_test(addresses_map_back),
		cmocka_unit_test(the_model_is_fast),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
