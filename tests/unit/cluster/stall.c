/* SPDX-License-Identifier: BSD-3-Clause */
/* When a stream that does not flow is asked about, and when its sender is taken to be silent. */
#include "fixtures/control_test.h"
#include "core/cluster/stall.h"

#define MS    UINT64_C(1000000)
#define START (1000 * MS)

/* Looks as often as the watch wants to; returns the verdict that is not one of the first two. */
static enum watch_verdict look_until(struct watches *ws, struct watch *w, uint64_t *now_ns)
{
	enum watch_verdict v = WATCH_WAITS;

	for (int i = 0; i < 100 && v <= WATCH_WAITS; i++) {
		*now_ns += stall_delay(ws, w, *now_ns);
		v = stall_look(ws, w, w->missing, *now_ns);
	}
	return v;
}

/* [G6.1] */
static void a_quiet_one_is_asked_and_found_silent(void **state)
{
	struct watches ws = {0};
	uint64_t now = START;
	struct watch w;

	stall_begin(&w, 100, now);
	assert_int_equal(stall_look(&ws, &w, 99, now), WATCH_FLOWS);
	assert_int_equal(look_until(&ws, &w, &now), WATCH_ASK);
	assert_int_equal(now - START, WATCH_QUIET_NS);
	stall_asked(&w, now);
	assert_int_equal(look_until(&ws, &w, &now), WATCH_SILENT);
	assert_int_equal(now - START, WATCH_QUIET_NS + WATCH_SILENT_MIN_NS);
	assert_int_equal(stall_look(&ws, &w, 99, now + MS), WATCH_SILENT);
	assert_int_equal(stall_look(&ws, &w, 98, now + 2 * MS), WATCH_FLOWS);
	assert_false(w.silent);
}

static void what_flows_is_left_in_peace(void **state)
{
	struct watches ws = {0};
	uint64_t now = START;
	struct watch w;

	stall_begin(&w, 1000, now);
	for (uint32_t missing = 999; missing > 0; missing--) {
		uint64_t delay = stall_delay(&ws, &w, now);

		assert_int_equal(delay, WATCH_QUIET_NS);
		now += delay;
		assert_int_equal(stall_look(&ws, &w, missing, now), WATCH_FLOWS);
	}
}

/* One that answers has nothing to send: it is asked seldom, and more and more so. */
static void one_that_answers_is_asked_again_later(void **state)
{
	uint64_t now = START, asked[10];
	struct watches ws = {0};
	struct watch w;

	stall_begin(&w, 100, now);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(look_until(&ws, &w, &now), WATCH_ASK);
		asked[i] = now;
		stall_asked(&w, now);
		now += MS;
		stall_answered(&w, true, now);
	}
	assert_in_range(asked[1] - asked[0], 40 * MS, 60 * MS);
	for (int i = 2; i < 10; i++)
		assert_in_range(asked[i] - asked[i - 1], asked[i - 1] - asked[i - 2], 2000 * MS);
	assert_true(asked[9] - asked[8] > 700 * MS);
}

static uint64_t silent_after(struct watches *ws)
{
	uint64_t now = START;
	struct watch w;

	stall_begin(&w, 100, now);
	stall_asked(&w, now);
	assert_int_equal(look_until(ws, &w, &now), WATCH_SILENT);
	return now - START;
}

static void slow_answers_raise_the_threshold_for_a_while(void **state)
{
	struct watches ws = {0};

	stall_saw_answer(&ws, MS);
	assert_int_equal(silent_after(&ws), WATCH_SILENT_MIN_NS);
	stall_saw_answer(&ws, 30 * MS);
	assert_int_equal(silent_after(&ws), 120 * MS);
	stall_saw_answer(&ws, 5000 * MS);
	assert_int_equal(silent_after(&ws), WATCH_SILENT_MAX_NS);
	for (int i = 0; i < 40; i++)
		stall_saw_answer(&ws, MS);
	assert_int_equal(silent_after(&ws), WATCH_SILENT_MIN_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quiet_one_is_asked_and_found_silent),
		cmocka_unit_test(what_flows_is_left_in_peace),
		cmocka_unit_test(one_that_answers_is_asked_again_later),
		cmocka_unit_test(slow_answers_raise_the_threshold_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
