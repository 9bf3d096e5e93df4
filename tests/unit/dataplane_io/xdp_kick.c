/* SPDX-License-Identifier: BSD-3-Clause */
/* An empty send() to a socket that takes nothing ends; every other one is the C library's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned calls;

ssize_t __real_sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to,
		      socklen_t length);
ssize_t __wrap_sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to,
		      socklen_t length);
ssize_t __wrap_sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to,
		      socklen_t length)
{
	calls++;
	return __real_sendto(fd, data, bytes, flags, to, length);
}

static void full(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
	while (send(pair[0], "x", 1, 0) == 1)
		continue;
	assert_int_equal(errno, EAGAIN);
	calls = 0;
}

/* DPDK's kick_tx, to a card that stands still: it must come back. */
static void a_port_that_stands_still_lets_its_worker_go(void **state)
{
	int pair[2];

	full(pair);
	while (send(pair[0], NULL, 0, MSG_DONTWAIT) < 0)
		assert_true(errno == EAGAIN && calls < 1000);
	assert_in_range(calls, 2, 64);
	close(pair[0]);
	close(pair[1]);
}

static void other_errors_and_other_sends_are_told(void **state)
{
	int pair[2];

	full(pair);
	assert_int_equal(send(pair[0], "x", 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(calls, 1);
	close(pair[1]);
	assert_int_equal(send(pair[0], NULL, 0, MSG_DONTWAIT), -1);
	assert_int_not_equal(errno, EAGAIN);
	close(pair[0]);
	assert_int_equal(send(-1, NULL, 0, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_that_stands_still_lets_its_worker_go),
		cmocka_unit_test(other_errors_and_other_sends_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
