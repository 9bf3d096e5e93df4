/* SPDX-License-Identifier: BSD-3-Clause */
/* What DPDK's libraries say: critical lines always reach the operator, others only at level debug.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <rte_log.h>
#include "io/observe/log.h"

static int ends[2];
static char said[8192];

/* All that went to stderr since the last look. */
static const char *heard(void)
{
	ssize_t n = read(ends[0], said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	return said;
}

static int begin(void **state)
{
	if (pipe2(ends, O_NONBLOCK) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
		return -1;
	log_take_dpdk();
	return 0;
}

static void an_error_is_kept_and_not_shown(void **state)
{
	log_dpdk_forget();
	rte_log(RTE_LOG_ERR, RTE_LOGTYPE_EAL, "no such thing\n");
	assert_string_equal(heard(), "");
	assert_string_equal(log_dpdk_error(), "no such thing");
}

static void a_panic_reaches_the_log(void **state)
{
	rte_log(RTE_LOG_CRIT, RTE_LOGTYPE_EAL, "PANIC in %s():\n", "somewhere");
	assert_non_null(strstr(heard(), "sarissa-dataplane: error: DPDK: PANIC in somewhere(): "));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

static void many_are_cut_short(void **state)
{
	unsigned lines = 0;
	for (unsigned i = 0; i < 1000; i++) {
		rte_log(RTE_LOG_ALERT, RTE_LOGTYPE_EAL, "again\n");
		lines += strstr(heard(), "again") != NULL;
	}
	assert_in_range(lines, 1, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_is_kept_and_not_shown),
		cmocka_unit_test(a_panic_reaches_the_log),
		cmocka_unit_test(many_are_cut_short),
	};
	return cmocka_run_group_tests(tests, begin, NULL);
}
