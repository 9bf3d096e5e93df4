/* SPDX-License-Identifier: BSD-3-Clause */
/* How a worker without work sleeps where the driver says that it interrupts. No device is there:
 * a descriptor stands for its interrupts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <rte_log.h>
#include "io/observe/log.h"
#include "io/node/worker.h"

enum { SLEEPS = 1000, TURNS = 100 };

/* log.c takes DPDK's lines, and needs all of it */
void log_warning(const char *format, ...)
{
	assert_non_null(format);
}

struct rig {
	struct worker w;
	struct port port;
	struct counters counters;
};

static int begin(void **state)
{
	struct rig *r = aligned_alloc(64, (sizeof(*r) + 63) / 64 * 64);

	rte_log_set_global_level(RTE_LOG_ALERT); /* no such device */
	*r = (struct rig){.port = {.rx_interrupt = true}};
	r->port.queue[0].rx_fd = eventfd(0, EFD_NONBLOCK);
	r->w = (struct worker){.rails = 1,
			       .rail[0] = {.port = &r->port,
					   .out = &r->port.queue[0],
					   .in = {&r->port.queue[0]},
					   .ins = 1},
			       .workers = 1,
			       .counters = &r->counters,
			       .event_count = 1, /* which control does not take: naps of 1 ms */
			       .wake_fd = eventfd(0, EFD_NONBLOCK)};
	*state = r;
	return r->w.wake_fd < 0 || r->port.queue[0].rx_fd < 0;
}

static int end(void **state)
{
	struct rig *r = *state;

	close(r->port.queue[0].rx_fd);
	close(r->w.wake_fd);
	free(r);
	return 0;
}

/* Turns without work until it has slept once more; then packets are there. */
static void sleep_once(struct rig *r, unsigned packets)
{
	uint64_t sleeps = r->counters.io_sleeps;

	for (int turn = 0; turn < TURNS && r->counters.io_sleeps == sleeps; turn++)
		idle_wait(&r->w, 1000000000u);
	assert_int_equal(r->counters.io_sleeps, sleeps + 1);
	if (r->w.overslept)
		idle_found(&r->w, packets);
	assert_false(r->w.overslept);
}

static unsigned sleeps_until_deaf(struct rig *r, unsigned packets, unsigned silent)
{
	unsigned n = 0;

	for (; n < SLEEPS && !r->w.deaf; n++) {
		if (n % silent == 0)
			eventfd_write(r->port.queue[0].rx_fd, 1);
		sleep_once(r, packets);
		eventfd_t count;
		eventfd_read(r->port.queue[0].rx_fd, &count);
	}
	return n;
}

static void who_hears_nothing_naps(void **state)
{
	struct rig *r = *state;

	assert_in_range(sleeps_until_deaf(r, 1, SLEEPS), 32, 40);
	uint64_t sleeps = r->counters.io_sleeps;
	r->w.event_count = 0; /* nothing is due, ever */
	for (int turn = 0; turn < TURNS; turn++)
		idle_wait(&r->w, 1000000000u);
	assert_int_equal(r->counters.io_sleeps, sleeps + TURNS);
	assert_false(r->w.armed);
}

static void who_hears_little_naps(void **state)
{
	assert_in_range(sleeps_until_deaf(*state, 1, 3), 90, 110);
}

static void who_is_woken_or_misses_nothing_is_not_deaf(void **state)
{
	assert_int_equal(sleeps_until_deaf(*state, 1, 1), SLEEPS);
	assert_int_equal(sleeps_until_deaf(*state, 0, SLEEPS), SLEEPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_hears_nothing_naps, begin, end),
		cmocka_unit_test_setup_teardown(who_hears_little_naps, begin, end),
		cmocka_unit_test_setup_teardown(who_is_woken_or_misses_nothing_is_not_deaf, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
