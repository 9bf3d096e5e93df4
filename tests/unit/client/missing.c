/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What users see when a part of the directory does not answer: the command, the C library and, with
 * PYTHON_TEST naming its test, Python. Takes the command's path as its argument.
 */
#include <errno.h>
#include "fixtures/client_shell.h"

static int count(const sar_info *info, void *arg)
{
	++*(int *)arg;
	return 0;
}

static int end_there(const sar_info *info, void *arg)
{
	return 7;
}

static void the_library_tells_which(void **state)
{
	struct client *c = *state;
	uint32_t node[4] = {0};
	int objects = 0;
	sar_info info;
	sar *s;

	assert_int_equal(sar_open(NULL, &s), 0);
	assert_int_equal(sar_put(s, sar_id_of("x", 1), "x", "xyz", 3), 0);
	assert_int_equal(sar_list(s, count, &objects), 0);
	assert_int_equal(objects, 1);
	c->fake.missing = 3;
	assert_int_equal(sar_list(s, count, &objects), -EHOSTUNREACH);
	assert_int_equal(objects, 2); /* what is known is listed all the same */
	assert_non_null(strstr(sar_error_detail(), "nodes 1, 2, 3 "));
	assert_int_equal(sar_error_nodes(node, 2), 3);
	assert_int_equal(node[1], 2);
	assert_int_equal(node[2], 0);
	assert_int_equal(sar_list(s, end_there, NULL), 7);
	assert_int_equal(sar_info_get(s, sar_id_of("x", 1), &info), 0);
	assert_int_equal(sar_info_get(s, sar_id_of("y", 1), &info), -EHOSTUNREACH);
	assert_int_equal(sar_error_nodes(node, 4), 3);
	assert_int_equal(node[2], 3);
	assert_int_equal(sar_delete(s, sar_id_of("z", 1)), -ENOENT); /* another failure */
	assert_int_equal(sar_error_nodes(node, 4), 0);
	c->fake.missing = 1024;
	assert_int_equal(sar_list(s, count, &objects), -EHOSTUNREACH);
	assert_non_null(strstr(sar_error_detail(), ", ... is out of reach"));
	assert_in_range(sar_error_nodes(node, 4), 4, 1024);
	sar_close(s);
}

static void the_command_says_it_and_exits_5(void **state)
{
	struct client *c = *state;

	assert_int_equal(shell("echo x > in; $CLI put x in && $CLI ls"), 0);
	c->fake.missing = 2;
	assert_int_equal(shell("$CLI ls 2> /dev/null"), 5);
	assert_non_null(strstr(output, "  x\n"));
	assert_int_equal(shell("$CLI ls > /dev/null"), 5);
	assert_string_equal(output, "sarissa: the list is not complete: the directory's part on "
				    "nodes 1, 2 is out of reach: see 'sarissa status'\n");
	assert_int_equal(shell("$CLI ls --json 2> /dev/null"), 5);
	assert_non_null(strstr(output, "\"name\": \"x\""));
	assert_non_null(strstr(output, "\n{\"partial\": true, \"missing\": [1, 2]}\n"));
	assert_int_equal(shell("$CLI stat x"), 0);
	assert_int_equal(shell("$CLI stat y"), 5);
	assert_non_null(strstr(output, "sarissa: y: a part of the directory does not answer"));
	assert_int_equal(shell("$CLI stat y --json 2> /dev/null"), 5);
	assert_non_null(strstr(output, "\"partial\": true, \"missing\": [1, 2]}\n"));
}

static void python_raises_partial_error(void **state)
{
	struct client *c = *state;

	c->fake.missing = 2;
	assert_int_equal(shell_python_test(), 0);
}

int main(int argc, char **argv)
{
	if (!shell_takes_command(argc, argv))
		return 2;
	const struct CMUnitTest tests[] = {
		test_cli(the_library_tells_which),
		test_cli(the_command_says_it_and_exits_5),
		test_cli(python_raises_partial_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
