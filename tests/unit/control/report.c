/* SPDX-License-Identifier: BSD-3-Clause */
/* How often control says that it was held up: once for each time, whatever shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "shell/report.h"

#define LONG_NS (2 * REPORT_TURN_LONG_NS)

static void each_time_counts_once(void **state)
{
	static const struct {
		uint64_t took_ns, ticks_late; /* of the turn */
		uint64_t held_up;	      /* until then */
	} turns[] = {
		{1, 0, 0},	 {1, 1, 1},	  /* it slept too long */
		{1, 1, 2},	 {LONG_NS, 0, 3}, /* a long turn, and in the next */
		{1, 1, 3},	 {1, 1, 4},	  /* what it kept waiting */
		{LONG_NS, 1, 5}, {LONG_NS, 1, 6}, {1, 1, 6}, {1, 0, 6},
	};
	struct report r = {.file = NULL};
	uint64_t late = 0, longs = 0;

	for (size_t k = 0; k < sizeof(turns) / sizeof(turns[0]); k++) {
		longs += turns[k].took_ns == LONG_NS;
		report_turn(&r, turns[k].took_ns, late += turns[k].ticks_late);
		assert_int_equal(r.held_up, turns[k].held_up);
		assert_int_equal(r.shell.turns_long, longs);
	}
	assert_int_equal(r.turn_ns, LONG_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_time_counts_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
