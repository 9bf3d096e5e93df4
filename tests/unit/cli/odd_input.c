/* SPDX-License-Identifier: BSD-3-Clause */
/* The command with names and options that look like something else, and files that may not grow. */
#include <errno.h>
#include "fixtures/client_shell.h"

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
		"PATH=$(dirname $CLI):$PATH bash -c '. \"$COMPLETION\"; COMP_WORDS=(sarissa %s); "
		"COMP_CWORD=%d; _sarissa; echo \"${COMPREPLY[@]}\"'";
	if (!getenv("COMPLETION") || shell("bash -c :") != 0)
		SKIP("no bash here, or COMPLETION does not name the file to test");
	assert_int_equal(shell(complete, "to", 1), 0);
	assert_string_equal(output, "top topology\n");
	assert_int_equal(shell(complete, "top --interval 5 --", 4), 0);
	assert_string_equal(output, "--json --socket --help --version --interval --once\n");
	assert_int_equal(shell(complete, "top --interval \"\"", 3), 0);
	assert_string_equal(output, "\n");
	assert_int_equal(shell(complete, "reduce --op a", 3), 0);
	assert_string_equal(output, "avg\n");
	assert_int_equal(shell(complete, "plan --op a", 3), 0);
	assert_string_equal(output, "allreduce\n");
	assert_int_equal(shell(complete, "topology f", 2), 0);
	assert_string_equal(output, "flat: fattree:\n");
	assert_int_equal(shell("touch the-file"), 0);
	assert_int_equal(shell(complete, "put x the-", 3), 0);
	assert_string_equal(output, "the-file\n");
	assert_int_equal(shell(complete, "get x out the-", 4), 0);
	assert_string_equal(output, "\n");
	assert_int_equal(shell(complete, "nothing the-", 2), 0);
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
	assert_string_equal(output, "sarissa: ls: unknown option -q: see 'sarissa ls --help'\n");
	assert_int_equal(shell("$CLI ls --json=1"), 2);
	assert_string_equal(output,
			    "sarissa: ls: unknown option --json=1: see 'sarissa ls --help'\n");
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

/* What follows a closed stream must not be written to, or read from, what we open. */
static void closed_streams(void **state)
{
	assert_int_equal(
		shell("head -c 100000 /dev/urandom > in; $CLI put x in; : > no; $CLI put 0 no"), 0);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "x" : "0";
		assert_int_equal(shell("$CLI get %s - >&-", name), 1);
		assert_string_equal(output, "sarissa: standard output is closed: open it, or name "
					    "a file\n");
		assert_int_equal(shell("$CLI get %s /dev/stdout >&-", name), 1);
		assert_string_equal(output, "sarissa: /dev/stdout is closed: open it, or name a "
					    "file\n");
		assert_int_equal(shell("$CLI get %s /dev/stderr 2>&-", name), 1);
	}
	assert_int_equal(shell("$CLI put y - <&-"), 1);
	assert_string_equal(output, "sarissa: standard input is closed: open it, or name a file\n");
	assert_int_equal(shell("$CLI put y /dev/stdin <&-"), 1);
	assert_int_equal(shell("$CLI get y - --timeout 0"), 4);
	assert_int_equal(shell("$CLI ls >&-"), 1);
	assert_string_equal(output,
			    "sarissa: cannot write to standard output: Bad file descriptor\n");
	/* the text of the error goes nowhere, least of all into the object */
	assert_int_equal(shell("$CLI get nothing out --timeout 0 0<&- >&- 2>&-"), 4);
	assert_int_equal(shell("$CLI get x out 0<&- >&- 2>&- && cmp in out"), 0);
	assert_int_equal(shell("$CLI put z in 0<&- >&- 2>&- && $CLI get z - | cmp in -"), 0);
	assert_int_equal(shell("$CLI rm z 0<&- >&- 2>&- && $CLI get z - --timeout 0"), 4);
	assert_int_not_equal(shell("$CLI topology check /dev/stdin <&-"), 0);
}

/* A descriptor of the caller by a name is that descriptor, with its place in the file. */
static void descriptors_by_name(void **state)
{
	assert_int_equal(shell("printf body > in; $CLI put x in"), 0);
	static const char *const paths[] = {"/dev/stdout 1>>log", "/dev/fd/5 5>>log",
					    "/proc/self/fd/5 5>>log", "./link 5>>log"};
	assert_int_equal(shell("ln -s /dev/fd/5 link"), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(shell("printf head > log; $CLI get x %s", paths[i]), 0);
		assert_int_equal(shell("cat log; test -h link"), 0);
		assert_string_equal(output, "headbody");
	}
	assert_int_equal(shell("{ printf head >&5; $CLI get x /dev/fd/5; printf tail >&5; } 5> log;"
			       "cat log"),
			 0);
	assert_string_equal(output, "headbodytail");
	assert_int_equal(shell("$CLI get x /dev/fd/5 5< in"), 1);
	assert_string_equal(output, "sarissa: /dev/fd/5 is open for reading only: name a file\n");
	assert_int_equal(shell("for i in 3 4 5 6 7 8 9; do $CLI get x /dev/fd/$i && exit 9; done; "
			       "$CLI get x - "),
			 0);
	assert_non_null(strstr(output, "sarissa: /dev/fd/3 is closed: open it, or name a file\n"));
	assert_int_equal(shell("$CLI get x /dev/stdout --json 2> out; cat out"), 0);
	assert_int_equal(strncmp(output, "body{\"name\"", 11), 0);
	assert_int_equal(
		shell("{ head -c 1 > /dev/null; $CLI put y /dev/stdin; } < in; "
		      "{ dd bs=1 count=1 status=none of=no; $CLI put z /dev/fd/5 0<&-; } <in 5< in;"
		      "$CLI get z -"),
		0);
	assert_string_equal(output, "body");
	assert_int_equal(shell("mkfifo fifo; cat fifo > copy & $CLI get x fifo; wait; cat copy"),
			 0);
	assert_string_equal(output, "body");
	assert_int_equal(shell("exec 5> far; rm far; $CLI get x /proc/$$/fd/5; cat /proc/$$/fd/5"),
			 0);
	assert_string_equal(output, "body");
}

static void paths_of_each_kind(void **state)
{
	assert_int_equal(shell("printf body > in; $CLI put x in; mkdir models empty"), 0);
	assert_int_equal(shell("ln -s models/v1 current; ln -s current name; ln -s $PWD/models/v2 "
			       "models/link; ln -s nowhere/v1 astray; ln -s loop loop; "
			       "ln -s models to-folder"),
			 0);
	assert_int_equal(
		shell("$CLI get x name && $CLI get x models/link && cat models/v1 models/v2; "
		      "test -h name && test -h current && test -h models/link"),
		0);
	assert_string_equal(output, "bodybody");
	assert_int_equal(shell("$CLI get x astray; test ! -e nowhere && test -h astray"), 0);
	assert_string_equal(output, "sarissa: cannot write beside astray (No such file or "
				    "directory): name another folder\n");
	static const char *const refused[] = {
		"loop", "models",  "to-folder", "models/", "empty/",  "new/",
		"''",	"in/file", "/",		".",	   "no/file", "$(printf %0300d 1)"};
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_int_equal(shell("$CLI get x %s", refused[i]), 1);
		assert_int_equal(strncmp(output, "sarissa: ", 9), 0);
	}
	assert_int_equal(shell("test -z \"$(ls empty)\" && test ! -e new && cat in"), 0);
	assert_int_equal(shell("cd models; $CLI get x plain && cat plain"), 0);
	assert_int_equal(shell("printf 'a longer text' > long; ln long twin; $CLI get x long; cat "
			       "long twin"),
			 0);
	assert_string_equal(output, "bodya longer text");
	assert_false(left_over());
}

/* The rules of the file system hold for root as well here. */
#define MORTAL "setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all "

static void files_that_cannot_be_replaced(void **state)
{
	if (shell("test $(id -u) != 0 || " MORTAL "true") != 0)
		SKIP("cannot give up the rights of root here");
	const char *mortal = shell("test $(id -u) != 0") == 0 ? "" : MORTAL;
	assert_int_equal(
		shell("printf body > in; $CLI put x in; mkdir d; echo a longer text > d/f; "
		      "chmod 555 d; echo old > kept; chmod 444 kept"),
		0);
	assert_int_equal(shell("%s$CLI get x kept", mortal), 1);
	assert_string_equal(output, "sarissa: cannot write to kept: Permission denied\n");
	assert_int_equal(shell("%s$CLI get x d/f; cat d/f", mortal), 0);
	assert_string_equal(output, "body");
	assert_int_equal(shell("%s$CLI get x d/new", mortal), 1);
	assert_int_equal(shell("chmod 755 d; cat kept; ls -A d"), 0);
	assert_string_equal(output, "old\nf\n");
	if (shell("unshare -m true") != 0 && shell("unshare -Urm true") != 0)
		SKIP("no mount namespaces here");
	assert_int_equal(
		shell("echo a longer text > host; : > d/m; $(unshare -m true && echo unshare -m || "
		      "echo unshare -Urm) sh -c 'mount --bind host d/m && $CLI get x d/m' && "
		      "cat host; ls -A d"),
		0);
	assert_string_equal(output, "bodyf\nm\n");
}

/* A command that waits says for what, once nothing has happened for 5 s. */
static void waits_say_for_what(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("half");
	fake_fetching(&c->fake, &id, 100000, 50000);
	assert_int_equal(
		shell("$CLI get nothing out 2> 1.said & a=$!; "
		      "$CLI get half - --timeout 500 2> 2.said > part & b=$!; "
		      "for i in $(seq 3000); do test -s 1.said && test -s 2.said && break; "
		      "sleep 0.02; done; kill $a $b; wait $a $b 2>/dev/null; "
		      "cat 1.said 2.said | sed 's/for [5-9] s/for 5 s/'"), /* on a busy machine */
		0);
	assert_string_equal(output,
			    "sarissa: nothing: waiting for 5 s: nobody has put it (--timeout S "
			    "limits the wait)\n"
			    "sarissa: half: waiting for 5 s: 50000 of 100000 bytes have arrived "
			    "here, and nobody has more: who puts it has not ended\n");
	assert_int_equal(shell("$CLI get nothing out --timeout 1"), 3);
	assert_null(strstr(output, "waiting"));
}

/* Only what belongs to no process any more. */
static void files_of_killed_gets(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("slow");
	fake_fetching(&c->fake, &id, 100000, 50000);
	assert_int_equal(
		shell("printf body > in; $CLI put x in; mkdir d; $CLI get slow d/out & "
		      "for i in $(seq 3000); do ls -l /proc/$!/fd 2>/dev/null | grep -q '/d/#' && break; "
		      "sleep 0.02; done; kill -9 $!; wait $! 2>/dev/null; ls -A d"),
		0);
	assert_string_equal(output, "");
	assert_int_equal(shell("cd d; : > .sarissa-get-00000001; : > .sarissa-get-00000002; "
			       ": > .sarissa-other; mkfifo .sarissa-get-00000003; "
			       "exec 5>> .sarissa-get-00000002; flock 5; $CLI get x f; ls -A"),
			 0);
	assert_string_equal(output, ".sarissa-get-00000002\n.sarissa-get-00000003\n"
				    ".sarissa-other\nf\n");
}

int main(int argc, char **argv)
{
	if (!shell_takes_command(argc, argv))
		return 2;
	const struct CMUnitTest tests[] = {
		test_cli(completion_runs_no_name),
		test_cli(completion_knows_commands_and_options),
		test_cli(only_a_whole_id_is_one),
		test_cli(deletes_do_not_wait_for_each_other),
		test_cli(wrong_options_are_named),
		test_cli(a_file_that_may_not_grow),
		test_cli(closed_streams),
		test_cli(descriptors_by_name),
		test_cli(paths_of_each_kind),
		test_cli(files_of_killed_gets),
		test_cli(files_that_cannot_be_replaced),
		test_cli(waits_say_for_what),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
