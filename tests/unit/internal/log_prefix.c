/* SPDX-License-Identifier: BSD-3-Clause */
/* What lines of the daemons' logs begin with: a time, but not in the journal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "internal/program/log_prefix.h"

static int ends[2];

static int open_pipe(void **state)
{
	return pipe(ends);
}

static int close_pipe(void **state)
{
	unsetenv("JOURNAL_STREAM");
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static void set_stream(unsigned long long device, unsigned long long inode)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu:%llu", device, inode);
	setenv("JOURNAL_STREAM", text, 1);
}

/* The time of the prefix, which is "2026-11-23T21:27:36.123Z x"; -1: another form. */
static time_t time_of(const char *prefix)
{
	struct tm utc = {0};
	const char *rest = strptime(prefix, "%Y-%m-%dT%H:%M:%S", &utc);
	unsigned ms;
	int end = 0;

	if (!rest || sscanf(rest, ".%3uZ x%n", &ms, &end) != 1 || end != 7 || rest[end])
		return -1;
	return timegm(&utc);
}

static void a_line_has_its_time(void **state)
{
	char prefix[LOG_PREFIX_BYTES];
	time_t before = time(NULL);

	unsetenv("JOURNAL_STREAM");
	setenv("TZ", "Asia/Kathmandu", 1); /* UTC all the same */
	log_prefix(prefix, "x", 2, ends[1]);
	assert_in_range(time_of(prefix), before, time(NULL));
}

static void the_journal_has_times_of_its_own(void **state)
{
	char prefix[LOG_PREFIX_BYTES];
	struct stat st;

	assert_int_equal(fstat(ends[1], &st), 0);
	set_stream(st.st_dev, st.st_ino);
	log_prefix(prefix, "x", 2, ends[1]);
	assert_string_equal(prefix, "<6>x");
}

static void a_line_has_its_level(void **state)
{
	static const char *const journal[] = {"<3>x", "<4>x", "<6>x", "<7>x"};
	static const char *const words[] = {" x: error", " x: warning", " x", " x: debug"};
	char prefix[LOG_PREFIX_BYTES];
	struct stat st;

	assert_int_equal(fstat(ends[1], &st), 0);
	for (unsigned level = 0; level < 4; level++) {
		unsetenv("JOURNAL_STREAM");
		log_prefix(prefix, "x", level, ends[1]);
		assert_string_equal(strchr(prefix, ' '), words[level]);
		set_stream(st.st_dev, st.st_ino);
		log_prefix(prefix, "x", level, ends[1]);
		assert_string_equal(prefix, journal[level]);
	}
}

/* As of a process that a service has started with its output in a file; or rubbish. */
static void another_stream_is_no_journal(void **state)
{
	static const char *const rubbish[] = {"", ":", "12", "12:", "x:y", "-1:-1"};
	char prefix[LOG_PREFIX_BYTES];
	struct stat st;

	assert_int_equal(fstat(ends[1], &st), 0);
	set_stream(st.st_dev, st.st_ino + 1);
	log_prefix(prefix, "x", 2, ends[1]);
	assert_int_not_equal(time_of(prefix), -1);
	set_stream(st.st_dev + 1, st.st_ino);
	log_prefix(prefix, "x", 2, ends[1]);
	assert_int_not_equal(time_of(prefix), -1);
	set_stream(st.st_dev, st.st_ino);
	log_prefix(prefix, "x", 2, -1);
	assert_int_not_equal(time_of(prefix), -1);
	for (unsigned i = 0; i < sizeof(rubbish) / sizeof(rubbish[0]); i++) {
		setenv("JOURNAL_STREAM", rubbish[i], 1);
		log_prefix(prefix, "x", 2, ends[1]);
		assert_int_not_equal(time_of(prefix), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_has_its_time, open_pipe, close_pipe),
		cmocka_unit_test_setup_teardown(a_line_has_its_level, open_pipe, close_pipe),
		cmocka_unit_test_setup_teardown(the_journal_has_times_of_its_own, open_pipe,
						close_pipe),
		cmocka_unit_test_setup_teardown(another_stream_is_no_journal, open_pipe,
						close_pipe),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
