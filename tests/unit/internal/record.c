/* SPDX-License-Identifier: BSD-3-Clause */
/* Which records a ring may carry: all values of op, flags and reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include "internal/record.h"

static bool is_edge_event(uint32_t op)
{
	return op == EVENT_OUT_DONE || op == EVENT_IN_DONE || op == EVENT_EDGE_FAILED ||
	       op == EVENT_DROPPED;
}

static void every_op_flag_and_reason(void **state)
{
	(void)state;
	for (uint32_t op = 0; op < 256; op++) {
		for (uint32_t flags = 0; flags < 256; flags++) {
			for (uint32_t reason = 0; reason < 2 * REASON_COUNT; reason++) {
				struct record r = {.op = (uint8_t)op,
						   .flags = (uint8_t)flags,
						   .reason = (uint16_t)reason};
				bool kind = flags == RECORD_FLAG_IN || flags == RECORD_FLAG_OUT ||
					    (flags == RECORD_FLAG_BUFFER && op == EVENT_DROPPED);

				assert_int_equal(command_valid(&r),
						 op >= COMMAND_PEER_OPEN &&
							 op <= COMMAND_PEER_WATCH && reason == 0);
				assert_int_equal(event_valid(&r),
						 op >= EVENT_PEER_UP && op <= EVENT_PEER_SILENT &&
							 reason < REASON_COUNT &&
							 (!is_edge_event(op) || kind));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_op_flag_and_reason)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
