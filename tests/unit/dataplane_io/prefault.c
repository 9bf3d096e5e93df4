/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages are mapped ahead at the pace of a core that has nothing else to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include "io/node/prefault.h"

enum { STEPS = 4, ROOM = 16, TRIES = 1000, MS = 1000000 };

static unsigned maps, late_ms; /* calls of madvise; how long each waits for its core */

/* In the place of the C library's. */
int madvise(void *at, size_t bytes, int how)
{
	struct timespec pause = {.tv_nsec = late_ms * MS};

	maps++;
	if (late_ms)
		nanosleep(&pause, NULL);
	return (int)syscall(SYS_madvise, at, bytes, how);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

struct rig {
	struct prefault p;
	uint8_t *store;
};

static int begin(void **state)
{
	static struct rig r;
	ssize_t bytes = rte_ring_get_memsize_elem(sizeof(struct prefault_range), ROOM);

	r.p = (struct prefault){.wake_fd = eventfd(0, EFD_NONBLOCK)};
	r.p.wanted = aligned_alloc(RTE_CACHE_LINE_SIZE, (size_t)bytes); /* no DPDK is started */
	rte_ring_init(r.p.wanted, "prefault", ROOM, RING_F_SC_DEQ);
	r.store = mmap(NULL, STEPS * PREFAULT_STEP, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	prefault_store(&r.p, r.store, STEPS * PREFAULT_STEP);
	maps = late_ms = 0;
	*state = &r;
	return r.store == MAP_FAILED || r.p.wake_fd < 0;
}

static int end(void **state)
{
	struct rig *r = *state;

	munmap(r->store, STEPS * PREFAULT_STEP);
	free(r->p.mapped);
	free(r->p.wanted);
	return close(r->p.wake_fd);
}

static unsigned pages_there(const struct rig *r)
{
	unsigned char there[STEPS * PREFAULT_STEP / 4096];
	unsigned count = 0;

	assert_int_equal(mincore(r->store, STEPS * PREFAULT_STEP, there), 0);
	for (unsigned i = 0; i < sizeof(there); i++)
		count += there[i] & 1;
	return count;
}

static void what_is_wanted_is_mapped_once(void **state)
{
	struct rig *r = *state;
	eventfd_t woken;

	assert_int_equal(prefault_wait_ms(&r->p, now_ns()), -1);
	for (int again = 0; again < 2; again++) {
		prefault_want(&r->p, PREFAULT_STEP + 5, 2 * PREFAULT_STEP, true);
		assert_int_equal(eventfd_read(r->p.wake_fd, &woken), 0);
		do
			prefault_step(&r->p);
		while (r->p.more);
		assert_int_equal(prefault_wait_ms(&r->p, now_ns()), -1);
		assert_int_equal(maps, 3); /* the three that it touches */
		assert_int_equal(pages_there(r), 3 * PREFAULT_STEP / 4096);
	}
}

static void who_waits_for_a_core_leaves_it_to_others(void **state)
{
	struct rig *r = *state;

	late_ms = 20;
	prefault_want(&r->p, 0, STEPS * PREFAULT_STEP, true);
	prefault_step(&r->p); /* takes the range */
	for (unsigned step = 1; step <= STEPS; step++) {
		uint64_t begin_ns = now_ns();

		assert_int_equal(prefault_wait_ms(&r->p, begin_ns), 0);
		prefault_step(&r->p);
		assert_int_equal(maps, step);
		assert_true(r->p.rest_until_ns >= begin_ns + 4 * late_ms * MS);
		assert_int_equal(prefault_wait_ms(&r->p, r->p.rest_until_ns - 60 * MS), 61);
		assert_int_equal(prefault_wait_ms(&r->p, r->p.rest_until_ns), 0);
		r->p.rest_until_ns = 0; /* as if that were now */
	}
}

static void who_has_a_core_goes_on_at_once(void **state)
{
	struct rig *r = *state;
	unsigned rests = 0, tries = 0;

	do { /* something else may run here, too */
		prefault_store(&r->p, r->store, STEPS * PREFAULT_STEP);
		prefault_want(&r->p, 0, STEPS * PREFAULT_STEP, true);
		prefault_step(&r->p);
		prefault_step(&r->p);
		rests += r->p.rest_until_ns != 0;
	} while (++tries < TRIES && rests == tries);
	assert_true(rests < tries);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_wanted_is_mapped_once, begin, end),
		cmocka_unit_test_setup_teardown(who_waits_for_a_core_leaves_it_to_others, begin,
						end),
		cmocka_unit_test_setup_teardown(who_has_a_core_goes_on_at_once, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
