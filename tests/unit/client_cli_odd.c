/* SPDX-License-Identifier: BSD-3-Clause */
/* The command with names and options that look like something else, and files that may not grow. */
#include <errno.h>
#include "client_shell.h"

/* Completion on a tabulator key must not run what others have called their objects. */
static void completion_runs_no_name(void **state)
{
	static const char complete[] =
		"PATH=$(dirname $CLI):$PATH bash -c '. \"$COMPLETION\"; COMP_WORDS=(sarissa get %s);"
		" COMP_CWORD=2; _sarissa; printf \"<%%s>\" \"${COMPREPLY[@]}\"'";
	if (!getenv("COMPLETION") || shell("bash -c :") != 0)
		SKIP("no bash here, or COMPLETION does not name the file to test");
	assert_int_equal(shell("for n in '$(touch ran)' '`touch ran`' 'plain name' '*'; do "
			       "echo x | $CLI put \"$n\" -; done"),
			 0);
	assert_int_equal(shell(complete, "\"plain\\\\ n\""), 0);
	assert_string_equal(output, "<plain\\ name>");
	assert_int_equal(shell(complete, "\"\""), 0);
	assert_non_null(strstr(output, "<plain\\ name>"));
	assert_non_null(strstr(output, "<\\*>"));
	assert_non_null(strstr(output, "touch"));
	/* behind a quote, as it is to stand there */
	assert_int_equal(shell(complete, "\\\""), 0);
	assert_non_null(strstr(output, "<plain name>"));
	assert_non_null(strstr(output, "<\\$(touch ran)>"));
	assert_non_null(strstr(output, "<\\`touch ran\\`>"));
	assert_int_equal(shell(complete, "\"$(printf \"\\\\047\")\""), 0);
	assert_non_null(strstr(output, "<plain name>"));
	assert_non_null(strstr(output, "<$(touch ran)>"));
	assert_int_equal(shell("test ! -e ran"), 0);
}

static void completion_knows_commands_and_options(void **state)
{
	static const char complete[] =
		"bash -c '. \"$COMPLETION\"; COMP_WORDS=(sarissa %s); COMP_CWORD=%d; _sarissa; "
		"echo \"${COMPREPLY[@]}\"'";
	if (!getenv("COMPLETION") || shell("bash -c :") != 0)
		SKIP("no bash here, or COMPLETION does not name the file to test");
	assert_int_equal(shell(complete, "to", 1), 0);
	assert_string_equal(output, "top\n");
	assert_int_equal(shell(complete, "top --interval 5 --", 4), 0);
	assert_string_equal(output, "--json --help --socket --interval --once\n");
	assert_int_equal(shell(complete, "top --interval \"\"", 3), 0);
	assert_string_equal(output, "\n");
}

static void only_a_whole_id_is_one(void **state)
{
	assert_int_equal(shell("echo x | $CLI put id:mine - && $CLI get id:mine -"), 0);
	assert_string_equal(output, "x\n");
	assert_int_equal(shell("$CLI reduce id:sum a b && $CLI ls"), 0);
	assert_non_null(strstr(output, "  id:mine\n"));
	assert_non_null(strstr(output, "  id:sum\n"));
	assert_int_equal(shell("$CLI rm id:mine id:sum"), 0);
	assert_int_equal(shell("echo x | $CLI put id:0123456789abcdef0123456789ABCDEF - && "
			       "$CLI ls"),
			 0);
	assert_non_null(strstr(output, "  id:0123456789abcdef0123456789abcdef\n"));
}

enum { DELETED_AT_ONCE = 3 };

/* Answers no delete before all of them have come, and then the last one first. */
static bool deletes_together(struct fake *f, int conn, const struct session_request *request)
{
	static struct session_request asked[DELETED_AT_ONCE];
	static unsigned count;

	if (request->op != SESSION_DELETE)
		return false;
	asked[count++] = *request;
	if (count == DELETED_AT_ONCE)
		for (; count > 0; count--) {
			struct session_reply reply =
				fake_reply(&asked[count - 1], count == 2 ? -EPERM : 0);
			fake_send(f, conn, &reply, sizeof(reply), NULL, 0);
		}
	return true;
}

static void deletes_do_not_wait_for_each_other(void **state)
{
	struct client *c = *state;

	c->fake.hook = deletes_together;
	assert_int_equal(shell("timeout 20 $CLI rm first second third --json"), 1);
	assert_non_null(strstr(output, "{\"name\": \"first\", "));
	assert_null(strstr(output, "{\"name\": \"second\", "));
	assert_non_null(strstr(output, "sarissa: second: "));
	assert_non_null(strstr(output, "{\"name\": \"third\", "));
}

static void wrong_options_are_named(void **state)
{
	assert_int_equal(shell("$CLI -xy"), 2);
	assert_string_equal(output, "sarissa: unknown option -xy: see 'sarissa --help'\n");
	assert_int_equal(shell("$CLI ls --json -q -x"), 2);
	assert_string_equal(output, "sarissa: unknown option -q: see 'sarissa --help'\n");
	assert_int_equal(shell("$CLI ls --json=1"), 2);
	assert_string_equal(output, "sarissa: unknown option --json=1: see 'sarissa --help'\n");
	assert_int_equal(shell("$CLI reduce x a --timeout 0"), 2);
	assert_string_equal(output,
			    "sarissa: --timeout 0 leaves a reduce no time: give it some, or "
			    "no --timeout\n");
}

static void a_file_that_may_not_grow(void **state)
{
	assert_int_equal(shell("head -c 3000000 /dev/zero | $CLI put x -"), 0);
	assert_int_equal(shell("(ulimit -f 1000; exec $CLI get x out)"), 1);
	assert_string_equal(output, "sarissa: cannot write to out: File too large\n");
	assert_false(left_over());
	assert_int_equal(shell("test ! -e out"), 0);
}

int main(int argc, char **argv)
{
	if (!shell_takes_command(argc, argv))
		return 2;
	const struct CMUnitTest tests[] = {
		test_cli(completion_runs_no_name), test_cli(completion_knows_commands_and_options),
		test_cli(only_a_whole_id_is_one),  test_cli(deletes_do_not_wait_for_each_other),
		test_cli(wrong_options_are_named), test_cli(a_file_that_may_not_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
