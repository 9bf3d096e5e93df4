/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour table: bounded questions, bounded places, ageing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "io/net/neighbour.h"

#define SECOND 1000000000ull

static struct neighbour_table table;
static const uint8_t mac1[6] = {2, 0, 0, 0, 0, 1}, mac2[6] = {2, 0, 0, 0, 0, 2};

static void fresh(bool ageing)
{
	memset(&table, 0, sizeof(table));
	neighbour_init(&table, ageing);
}

static const uint8_t *ip(uint32_t host)
{
	static uint8_t out[16] = {[10] = 255, [11] = 255};
	memcpy(out + 12, &host, 4);
	return out;
}

static void test_ask_learn_know(void **state)
{
	uint8_t mac[6] = {0};
	fresh(true);
	assert_int_equal(neighbour_find(&table, ip(1), SECOND, mac), NEIGHBOUR_ASK);
	assert_int_equal(neighbour_find(&table, ip(1), SECOND, mac), 0);
	neighbour_learn(&table, ip(1), mac1, false, SECOND);
	assert_int_equal(neighbour_find(&table, ip(1), SECOND, mac), NEIGHBOUR_KNOWN);
	assert_memory_equal(mac, mac1, 6);
	neighbour_learn(&table, ip(1), mac2, false, SECOND); /* it moved */
	assert_int_equal(neighbour_find(&table, ip(1), SECOND, mac), NEIGHBOUR_KNOWN);
	assert_memory_equal(mac, mac2, 6);
}

static void test_answers_nobody_asked_for(void **state)
{
	uint8_t mac[6];
	fresh(true);
	neighbour_learn(&table, ip(1), mac1, false, SECOND);
	assert_int_equal(neighbour_find(&table, ip(1), SECOND, mac), NEIGHBOUR_ASK);
	neighbour_learn(&table, ip(2), mac1, true, SECOND);
	assert_int_equal(neighbour_find(&table, ip(2), SECOND, mac), NEIGHBOUR_KNOWN);
}

/* A silent neighbour is asked at 0, 20, 60, 140, ... ms, in the end once a second. */
static void test_questions_are_bounded(void **state)
{
	uint8_t mac[6];
	unsigned asked = 0, last_second = 0;
	fresh(true);
	for (uint64_t now = SECOND; now < 11 * SECOND; now += 1000000) {
		bool ask = neighbour_find(&table, ip(1), now, mac) & NEIGHBOUR_ASK;
		asked += ask;
		last_second += ask && now >= 10 * SECOND;
	}
	assert_in_range(asked, 8, 18);
	assert_in_range(last_second, 1, 1);
}

static unsigned wanted(uint64_t now)
{
	uint8_t at[16];
	unsigned count = 0;
	for (uint32_t i = 0; i < NEIGHBOURS; i++)
		count += neighbour_at(&table, i, now, at) == NEIGHBOUR_WANTED &&
			 memcmp(at, ip(1), 16) == 0;
	return count;
}

/* Packets that leave at any distance, a resolver that comes late: each question is seen once. */
static void test_each_question_is_seen(void **state)
{
	uint8_t mac[6];
	fresh(false);
	for (uint64_t now = SECOND, gap = 70000000; now < 30 * SECOND; now += gap) {
		bool ask = neighbour_find(&table, ip(1), now, mac) & NEIGHBOUR_ASK;
		assert_int_equal(wanted(now + SECOND), ask);
		for (uint32_t i = 0; i < NEIGHBOURS; i++)
			neighbour_take(&table, i);
		assert_int_equal(wanted(now + SECOND), 0);
		gap = now < 2 * SECOND ? gap : 350000000;
	}
	neighbour_learn(&table, ip(1), mac1, false, 30 * SECOND);
	assert_int_equal(wanted(30 * SECOND), 0);
}

static void test_ageing(void **state)
{
	uint8_t mac[6];
	fresh(true);
	neighbour_learn(&table, ip(1), mac1, true, SECOND);
	uint64_t later = SECOND + NEIGHBOUR_FRESH_NS + 1;
	assert_int_equal(neighbour_find(&table, ip(1), later, mac),
			 NEIGHBOUR_KNOWN | NEIGHBOUR_ASK);
	neighbour_learn(&table, ip(1), mac1, false, later);
	assert_int_equal(neighbour_find(&table, ip(1), later, mac), NEIGHBOUR_KNOWN);
	later += NEIGHBOUR_STALE_NS + 1; /* nobody confirmed it */
	neighbour_find(&table, ip(1), later, mac);
	assert_false(neighbour_find(&table, ip(1), later, mac) & NEIGHBOUR_KNOWN);
}

static void test_kernel_entries_do_not_age(void **state)
{
	uint8_t mac[6];
	fresh(false);
	neighbour_learn(&table, ip(1), mac1, true, SECOND);
	assert_int_equal(neighbour_find(&table, ip(1), 1000 * SECOND, mac), NEIGHBOUR_KNOWN);
	neighbour_forget(&table, ip(1));
	assert_int_equal(neighbour_find(&table, ip(1), 1000 * SECOND, mac), NEIGHBOUR_ASK);
	assert_int_equal(wanted(1000 * SECOND), 1);
}

/* A flood of strangers never pushes out who is in use, nor keeps the place of one who is to be. */
static void test_flood(void **state)
{
	uint8_t mac[6];
	uint64_t now = SECOND;
	fresh(true);
	for (uint32_t peer = 1; peer <= 64; peer++) {
		neighbour_learn(&table, ip(peer), mac1, true, now);
		neighbour_find(&table, ip(peer), now, mac);
	}
	for (uint32_t stranger = 0; stranger < 100000; stranger++)
		neighbour_learn(&table, ip(0x10000 + stranger), mac2, true, now);
	for (uint32_t peer = 1; peer <= 64; peer++) {
		assert_int_equal(neighbour_find(&table, ip(peer), now, mac), NEIGHBOUR_KNOWN);
		assert_memory_equal(mac, mac1, 6);
	}
	for (uint32_t peer = 501; peer <= 564; peer++)
		assert_int_equal(neighbour_find(&table, ip(peer), now, mac), NEIGHBOUR_ASK);
	now += NEIGHBOUR_KEEP_NS + SECOND;
	for (uint32_t peer = 1001; peer <= 1064; peer++)
		neighbour_learn(&table, ip(peer), mac1, true, now);
	for (uint32_t peer = 1001; peer <= 1064; peer++)
		assert_int_equal(neighbour_find(&table, ip(peer), now, mac), NEIGHBOUR_KNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ask_learn_know),
		cmocka_unit_test(test_answers_nobody_asked_for),
		cmocka_unit_test(test_questions_are_bounded),
		cmocka_unit_test(test_each_question_is_seen),
		cmocka_unit_test(test_ageing),
		cmocka_unit_test(test_kernel_entries_do_not_age),
		cmocka_unit_test(test_flood),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
