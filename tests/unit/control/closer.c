/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a descriptor when there is no memory to have it closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>
#include "clients/closer.h"
#include "shell/report.h"

static bool memory_out;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return memory_out ? NULL : __real_malloc(bytes);
}

static void done(uv_async_t *async)
{
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void what_may_never_end_is_lost_and_counted(void **state)
{
	static struct closer c; /* its threads have no end */
	static struct report r;
	static uv_loop_t loop;
	int kept[3], closed = open("/dev/null", O_RDONLY);

	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(closer_start(&c, &loop, &r, done, NULL), 0);
	for (int i = 0; i < 3; i++)
		kept[i] = open("/dev/null", O_RDONLY);
	memory_out = true;
	for (int i = 0; i < 3; i++)
		closer_take(&c, kept[i], true);
	closer_take(&c, closed, false);
	memory_out = false;
	for (int i = 0; i < 3; i++)
		assert_true(is_open(kept[i]));
	assert_false(is_open(closed));
	assert_int_equal(r.shell.closes_lost, 3);
	assert_false(closer_behind(&c));
	closer_take(&c, kept[0], true);
	for (int i = 0; i < 60000 && is_open(kept[0]); i++)
		usleep(1000);
	assert_false(is_open(kept[0]));
	assert_int_equal(r.shell.closes_lost, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_never_end_is_lost_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
