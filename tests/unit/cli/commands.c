/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command `sarissa`, run as a user would, against a node in a thread of this test. Takes the
 * command's path as its argument; PYTHON in the
 * environment runs Python's tests, PYTHON_TEST names them.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include "fixtures/client_shell.h"
#include "internal/control_counters.h"
#include "internal/counters.h"
#include "internal/group.h"
#include "internal/peer_counters.h"
#include "internal/plan_file.h"

static void files_there_and_back(void **state)
{
	static const int sizes[] = {0, 1, 63, 65535, 65536, 65537, 1048576, 1048583};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(shell("head -c %d /dev/urandom > in", sizes[i]), 0);
		assert_int_equal(shell("$CLI put file%zu in", i), 0);
		assert_string_equal(output, "");
		assert_int_equal(shell("$CLI get file%zu out && cmp in out", i), 0);
		assert_int_equal(shell("cat in | $CLI put pipe%zu -", i), 0);
		assert_int_equal(shell("$CLI get pipe%zu - | cmp in -", i), 0);
		assert_int_equal(shell("$CLI put redirect%zu - < in", i), 0);
		assert_int_equal(shell("$CLI get redirect%zu - > out; cmp in out", i), 0);
		assert_int_equal(shell("$CLI rm file%zu pipe%zu redirect%zu", i, i, i), 0);
	}
	assert_false(left_over());
}

static void put_twice(void **state)
{
	assert_int_equal(shell("head -c 3000000 /dev/urandom > in; $CLI put x in"), 0);
	assert_int_equal(shell("$CLI put x in && cat in | $CLI put x -"), 0);
	assert_string_equal(output, "");
	assert_int_equal(shell("echo more >> in; $CLI put x in"), 1);
	assert_string_equal(output, "sarissa: x: exists already with 3000000 bytes, this one has "
				    "3000005: use another name, or remove that one first\n");
	assert_int_equal(shell("head -c 3000000 /dev/urandom | $CLI put x -"), 1);
	assert_string_equal(output, "sarissa: x: exists already with other bytes: use another "
				    "name, or remove that one first\n");
	assert_int_equal(shell("head -c 10 in > part; { head -c 4 > part.skip; $CLI put tail -; } "
			       "< part; $CLI get tail - | cmp - part -i 0:4"),
			 0);
}

static void file_keeps_its_mode_and_link(void **state)
{
	shell("echo new > in; $CLI put x in; umask 027; $CLI get x fresh; stat -c %%a fresh");
	assert_string_equal(output, "640\n");
	shell("echo old > target; chmod 604 target; ln -s target link; $CLI get x link;"
	      "stat -c '%%a %%F' target link; cat target");
	assert_string_equal(output, "604 regular file\n777 symbolic link\nnew\n");
	assert_int_equal(shell("$CLI get x /dev/null"), 0);
	assert_int_equal(shell("printf 0123456789 > in; $CLI put digits in && "
			       "$CLI get digits part --range 3:4 && printf 3456 | cmp - part"),
			 0);
	assert_int_equal(shell("$CLI get digits part --range 8:3"), 1);
}

static void wrong_usage_is_2(void **state)
{
	static const char *const lines[] = {
		"",
		"frobnicate",
		"put",
		"put x",
		"put x y z",
		"get x",
		"get x - --timeout",
		"get x - --timeout soon",
		"get x - --timeout -1",
		"get x - --range",
		"get x - --range 5",
		"get x - --range 5:",
		"get x - --range -1:5",
		"get x - --range 5:5x",
		"get x - --range 5:99999999999999999999",
		"put x - --timeout 1",
		"ls --frobnicate",
		"ls x y",
		"rm",
		"prefetch",
		"prefetch x one",
		"prefetch '' 1",
		"stat",
		"put '' -",
		"status x",
		"reduce",
		"reduce x",
		"reduce x a --op",
		"reduce x a --op mean",
		"reduce x a --dtype f8",
		"reduce x a --num 0",
		"reduce x a --num two",
		"reduce x a --num -1",
		"reduce x a --min 1",
		"reduce x a --deadline soon",
		"reduce x a --deadline 1 --min 0",
		"ls --deadline 1",
		"reduce x a --timeout soon",
		"reduce x ''",
		"get x - --wait",
		"ls --op sum",
		"peers --over",
		"peers --over soon",
		"ls --over 1",
		"top x",
		"top --interval",
		"top --interval 0",
		"top --interval -1",
		"top --interval soon",
		"top --interval nan",
		"top --interval 1e6",
		"ls --once",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		assert_int_equal(shell("$CLI %s < /dev/null", lines[i]), 2);
		assert_int_equal(strncmp(output, "sarissa: ", 9), 0);
		assert_ptr_equal(strchr(output, '\n'), output + strlen(output) - 1);
	}
}

static void help_is_there(void **state)
{
	assert_int_equal(
		shell("for c in put get reduce rm ls stat status peers top doctor; do $CLI $c --help || "
		      "exit; done; $CLI --help; $CLI --version"),
		0);
	assert_non_null(strstr(output, "--timeout S"));
}

static void not_there_is_4_and_no_node_6(void **state)
{
	assert_int_equal(shell("$CLI get nothing out --timeout 0"), 4);
	assert_string_equal(output, "sarissa: nothing: no such object\n");
	assert_int_equal(shell("test -e out"), 1);
	assert_int_equal(shell("$CLI stat nothing"), 4);
	assert_int_equal(shell("$CLI rm nothing"), 4);
	assert_int_equal(shell("$CLI --socket /nonexistent/x ls"), 6);
	assert_int_equal(shell("$CLI ls --socket /nonexistent/x"), 6);
	assert_int_equal(shell("SARISSA_SOCKET=/nonexistent/x $CLI put a /dev/null"), 6);
	assert_int_equal(shell("$CLI --socket /nonexistent/x top"), 6);
	static const char *const commands[] = {"put a /dev/null",
					       "get a -",
					       "get a - --timeout 0",
					       "reduce a b",
					       "reduce a b --wait",
					       "rm a",
					       "rm --prefix a",
					       "ls",
					       "watch",
					       "stat a",
					       "status",
					       "status --counters",
					       "peers",
					       "top",
					       "top --once",
					       "doctor",
					       "group ls",
					       "group show a",
					       "group rm a",
					       "group create a --count 1",
					       "policy set a bsp",
					       "plan --last",
					       "local status",
					       "local exec 0 -- true",
					       "local env 0",
					       "local kill 0",
					       "local start 0",
					       "local down"};
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		/* nothing there, and the socket of one that was killed */
		assert_int_equal(shell("XDG_RUNTIME_DIR=$PWD SARISSA_SOCKET=/nonexistent/x $CLI %s",
				       commands[i]),
				 6);
		assert_int_equal(shell("test -S dead || python3 -c 'import socket; "
				       "socket.socket(1, 5).bind(\"dead\")'; "
				       "XDG_RUNTIME_DIR=$PWD SARISSA_SOCKET=$PWD/dead $CLI %s",
				       commands[i]),
				 6);
	}
	shell("rm -rf sarissa");
	assert_int_equal(shell("rm -f counters; $CLI top"), 6);
	assert_non_null(
		strstr(output, "counters: No such file or directory: start sarissa-dataplane"));
	assert_int_equal(shell("rm -f peers; $CLI peers"), 6);
	assert_non_null(
		strstr(output, "peers: No such file or directory: start sarissa-dataplane"));
	assert_int_equal(shell("echo x > peers; $CLI peers --json; s=$?; rm peers; exit $s"), 1);
	assert_non_null(strstr(output, "peers is of another version"));
	assert_false(left_over());
}

static void late_is_3(void **state)
{
	assert_int_equal(shell("$CLI get nothing out --timeout 0.05"), 3);
	assert_int_equal(shell("$CLI get nothing out --timeout 0.000000001"), 3);
	assert_int_equal(shell("test -e out"), 1);
	assert_false(left_over());
}

static void errors_are_1(void **state)
{
	shell("echo x > in; $CLI put x in");
	assert_int_equal(shell("echo y | $CLI put x -"), 1);
	assert_int_equal(shell("$CLI put y /nonexistent"), 1);
	assert_int_equal(shell("$CLI put y /"), 1);
	assert_int_equal(shell("$CLI get x /nonexistent/out"), 1);
	assert_int_equal(shell("$CLI get x /"), 1);
	assert_int_equal(shell("$CLI get x /dev/full"), 1);
	assert_int_equal(shell("$CLI ls > /dev/full"), 1);
	assert_int_equal(shell("head -c %d /dev/zero | $CLI put big -", FAKE_STORE_BYTES + 1), 1);
	assert_non_null(strstr(output, "holds more than the node's store"));
	assert_int_equal(shell("truncate -s %d in; $CLI put big in", FAKE_STORE_BYTES), 1);
	assert_string_equal(output, "sarissa: big: the store is full: remove something\n");
	assert_int_equal(shell("head -c 500000 /dev/urandom | $CLI put wide -; "
			       "ulimit -f 100; trap '' XFSZ; $CLI get wide out"),
			 1);
	assert_int_equal(shell("test -e out"), 1);
	assert_int_equal(shell("mkfifo f; head -c 1 f > /dev/null & "
			       "$CLI get wide f"),
			 1);
	assert_non_null(strstr(output, "the reader of f has gone"));
	assert_false(left_over());
}

static void shows_objects(void **state)
{
	shell("head -c 1536 /dev/zero | $CLI put zeros -; echo x | $CLI put 'a\"b\\c\xff\n' -");
	shell("echo anonymous | $CLI put id:00112233445566778899aabbccddeeff -; $CLI ls");
	assert_string_equal(output,
			    "      SIZE  HERE  COPIES  NAME\n"
			    "      10 B   yes       1  id:00112233445566778899aabbccddeeff\n"
			    "       2 B   yes       1  a\"b\\c\\xff\\x0a\n"
			    "   1.5 KiB   yes       1  zeros\n");
	shell("$CLI ls --json | grep -o '\"name\": .*\"size\": [0-9]*'");
	assert_string_equal(output, "\"name\": \"\", \"size\": 10\n"
				    "\"name\": \"a\\\"b\\\\c\\udcff\\u000a\", \"size\": 2\n"
				    "\"name\": \"zeros\", \"size\": 1536\n");
	assert_int_equal(shell("$CLI stat zeros"), 0);
	assert_non_null(strstr(output, "size        1.5 KiB (1536 bytes)\n"));
	assert_int_equal(shell("$CLI --json stat zeros"), 0);
	assert_non_null(strstr(output, "\"holders\": [{\"node\": 0, \"complete\": true, \"ready\": "
				       "1536, \"arrived\": 1536, \"upstream\": null, "
				       "\"upstreams\": [], \"sending\": 0, \"down_ns\": 0}]}\n"));
	assert_int_equal(shell("$CLI get id:00112233445566778899AABBCCDDEEFF -"), 0);
	assert_string_equal(output, "anonymous\n");
}

static void shows_the_tree(void **state)
{
	struct client *c = *state;
	shell("head -c 1536 /dev/zero > in; $CLI put zeros in");
	c->fake.tree = 100;
	assert_int_equal(shell("$CLI stat zeros | tail -n +8 | head -n 6"), 0);
	assert_string_equal(
		output, "PROGRESS       BYTES  SENDING  NODE, and below it those that it feeds\n"
			"complete     1.5 KiB        2  0\n"
			"      0%         2 B        2    1\n"
			"      0%         6 B        2      3\n"
			"      0%        14 B        2        7\n"
			"      1%        30 B        2          15\n");
	assert_int_equal(shell("$CLI stat zeros | tail -n +9 | grep -c ."), 0);
	assert_string_equal(output, "100\n");
	assert_int_equal(shell("$CLI stat zeros | grep also"), 0);
	assert_string_equal(output,
			    "     12%       198 B        2              99 (also fed by 1)\n");
	assert_int_equal(shell("$CLI --json stat zeros | grep -o '\"node\"' | wc -l"), 0);
	assert_string_equal(output, "100\n");
	assert_int_equal(shell("$CLI --json stat zeros | grep -o '{\"node\": 99.*'"), 0);
	assert_string_equal(output, "{\"node\": 99, \"complete\": false, \"ready\": 99, "
				    "\"arrived\": 198, \"upstream\": 49, \"upstreams\": [49, 1], "
				    "\"sending\": 2, \"down_ns\": 0}]}\n");
}

static void shows_with_whom_it_is_lost(void **state)
{
	struct client *c = *state;
	shell("head -c 1536 /dev/zero > in; $CLI put zeros in");
	c->fake.lost = true;
	assert_int_equal(shell("$CLI ls | tail -n 1"), 0);
	assert_string_equal(output,
			    "   1.5 KiB   yes       0  zeros (lost with node 1, down 13 s)\n");
	assert_int_equal(shell("$CLI stat zeros | tail -n 4"), 0);
	assert_string_equal(
		output, "copies      0 complete, 0 arriving, 1 lost with node 1, down 13 s\n\n"
			"PROGRESS       BYTES  SENDING  NODE, and below it those that it feeds\n"
			"    lost     1.5 KiB        0  1 (down 13 s)\n");
	assert_int_equal(shell("$CLI --json ls | grep -o '\"lost\".*'"), 0);
	assert_string_equal(output, "\"lost\": 1, \"lost_node\": 1, \"down_ns\": 13400000000}\n");
	assert_int_equal(shell("$CLI --json stat zeros | grep -o '\"sending\".*'"), 0);
	assert_string_equal(output, "\"sending\": 0, \"down_ns\": 13400000000}]}\n");
	c->fake.lost = false;
	assert_int_equal(shell("$CLI --json ls | grep -o '\"lost\".*'"), 0);
	assert_string_equal(output, "\"lost\": 0, \"lost_node\": null, \"down_ns\": null}\n");
}

static void shows_nodes(void **state)
{
	char here[256];
	assert_int_equal(shell("$CLI status"), 0);
	assert_non_null(strstr(output, "store       0 B of 8.0 MiB used (0%), ordinary pages"));
	const char *down = strstr(output, "0  down"), *up = strstr(output, "1  up");
	assert_true(down && up && down < up); /* by number, though the local one answers first */
	assert_int_equal(shell("$CLI status --json"), 0);
	assert_non_null(strstr(output, "{\"node\": 0, \"self\": false, \"state\": \"down\""));
	assert_int_equal(shell("$CLI status --counters"), 6); /* no dataplane has written any */
	setenv("XDG_STATE_HOME", getcwd(here, sizeof(here)), 1);
	shell("$CLI doctor");
	assert_non_null(strstr(output, "ok    node          node 1 answers at "));
	assert_non_null(strstr(output, "fail  dataplane"));
	assert_int_equal(shell("$CLI doctor"), 1);
	assert_int_equal(shell("SARISSA_SOCKET=/nonexistent/x $CLI doctor --json"), 6);
	assert_non_null(strstr(output, "{\"check\": \"node\", \"level\": \"fail\""));
}

/* The counters that a dataplane of two workers left behind. */
static void write_counters(uint32_t per_worker, uint64_t more_pkts)
{
	struct counters_file header = {.magic = COUNTERS_FILE_MAGIC,
				       .workers = 2,
				       .counters = per_worker,
				       .stride = sizeof(struct counters) + 64,
				       .pid = 0x7fffffff};
	struct counters worker[2] = {{.rx_pkts = 1000 + more_pkts,
				      .io_loops = 7 * more_pkts,
				      .drop_checksum = 3,
				      .drop_duplicate = 1},
				     {.rx_pkts = 2000, .drop_duplicate = 2}};
	FILE *file = fopen("counters.new", "w");
	fwrite(&header, sizeof(header), 1, file);
	for (int w = 0; w < 2; w++) {
		fseek(file, (long)(sizeof(header) + (size_t)w * header.stride), SEEK_SET);
		fwrite(&worker[w], sizeof(worker[w]), 1, file);
	}
	fclose(file);
	assert_int_equal(rename("counters.new", "counters"), 0);
}

/* A control of another version, in all kinds of trouble. */
static void write_control(uint64_t store_full)
{
	struct counters_file header = {.magic = CONTROL_FILE_MAGIC,
				       .workers = 1,
				       .counters = CONTROL_VALUES_COUNT,
				       .stride = sizeof(struct control_block),
				       .pid = getpid(),
				       .started_ns = 1,
				       .version = "0.0.9"};
	struct control_block block = {.counters = {.store_full = store_full},
				      .gauges = {.members_alive = 2,
						 .members_suspect = 1,
						 .objects = 5,
						 .unacked = 3,
						 .creators = CONTROL_CREATORS_AUTO,
						 .creating = 7,
						 .creating_max = 1024,
						 .members_changed_ms = 60000,
						 .sessions = 250,
						 .sessions_max = 256,
						 .waits = 1,
						 .waits_max = 8192,
						 .store_bytes = 100 << 20,
						 .store_used = 99 << 20,
						 .store_evictable = 1 << 20}};
	FILE *file = fopen("control.counters", "w");
	fwrite(&header, sizeof(header), 1, file);
	fwrite(&block, sizeof(block), 1, file);
	fclose(file);
}

static void says_what_is_full_or_wrong(void **state)
{
	char here[256];
	setenv("XDG_STATE_HOME", getcwd(here, sizeof(here)), 1);
	write_control(2);
	shell("$CLI doctor");
	assert_non_null(
		strstr(output, "warn  control       is of version 0.0.9, this command of "));
	assert_non_null(strstr(output,
			       "warn  store         99.0 MiB of 100.0 MiB used by 5 objects, "
			       "1.0 MiB of that may be evicted"));
	assert_non_null(strstr(output, "warn  members       1 of 3 nodes are suspected"));
	assert_non_null(strstr(output, "warn  directory     has not confirmed 3 of 5 objects; the "
				       "members changed 60 s ago"));
	assert_non_null(strstr(output, "warn  tables        sessions: 250 of at most 256"));
	assert_null(strstr(output, "waiting requests"));
	assert_non_null(strstr(output,
			       "ok    creators      clients of other users write in private "
			       "staging buffers; 7 objects there now"));
	assert_non_null(
		strstr(output, "warn  control       2 requests found no room in the store\n"));
	shell("$CLI doctor");
	assert_non_null(strstr(output, "ok    control       2 requests found no room in the store, "
				       "none since the last look 0:0"));
	write_control(7);
	shell("$CLI doctor");
	assert_non_null(strstr(output, "warn  control       7 requests found no room in the store, "
				       "5 of them since the last look 0:0"));
	assert_int_equal(shell("echo x > control.counters; $CLI doctor"), 1);
	assert_non_null(strstr(output, "fail  control"));
	assert_non_null(strstr(output, "control.counters is of another version"));
	unlink("control.counters");
}

static void write_plan(const struct plan_file *p)
{
	FILE *file = fopen("plan.last", "w");

	fwrite(p, sizeof(*p), 1, file);
	fclose(file);
}

/* What control wrote; a file of any other content is refused. */
static void shows_the_last_plan(void **state)
{
	struct plan_file p = {.magic = PLAN_FILE_MAGIC,
			      .node = 4,
			      .nodes = 9,
			      .levels = 3,
			      .everyone = 1,
			      .network = 1,
			      .size = 8 << 20,
			      .predicted_ns = 50000000,
			      .measured_ns = 60000000,
			      .level = {{1 << 20, 40000000, 50000000}, {1 << 20, 20000000, 0}},
			      .planner = "hips-ring"};

	assert_int_equal(shell("$CLI plan --last"), 4);
	assert_non_null(strstr(output, "no node that answers has coordinated a reduce"));
	write_plan(&p);
	assert_int_equal(shell("$CLI plan --last"), 0);
	assert_string_equal(
		output,
		"allreduce of 8.0 MiB by 9 nodes, planner hips-ring, coordinated by node 4\n"
		"                  bytes    predicted     measured\n"
		"all                         50.00 ms     60.00 ms   1.20 x\n"
		"level 0         1.0 MiB     40.00 ms     50.00 ms   1.25 x\n"
		"level 1         1.0 MiB     20.00 ms            -\n");
	assert_int_equal(shell("$CLI plan --last --json"), 0);
	assert_non_null(strstr(output, "\"planner\": \"hips-ring\""));
	assert_int_equal(shell("$CLI plan --last --why"), 2);
	p.levels = PLAN_FILE_LEVELS_MAX + 1;
	write_plan(&p);
	assert_int_equal(shell("$CLI plan --last"), 1);
	assert_non_null(strstr(output, "plan.last is of another version"));
	p.levels = 1;
	memset(p.planner, 'x', sizeof(p.planner));
	write_plan(&p);
	assert_int_equal(shell("$CLI plan --last"), 1);
	assert_int_equal(shell("echo x > plan.last; $CLI plan --last"), 1);
	unlink("plan.last");
}

/* One connection, of which nothing new is told any more. */
static void write_peers(void)
{
	struct counters_file header = {.magic = PEERS_FILE_MAGIC,
				       .workers = 1,
				       .counters = PEER_VALUES_COUNT,
				       .stride = sizeof(struct peer_block)};
	struct peer_block block = {.conn = 1,
				   .values = {.counters = {.tx_bytes = 300 << 20},
					      .gauges = {.up = 1,
							 .age_ns = 3000000000,
							 .written_ns = 7,
							 .rtt_ns = 123000,
							 .mtu = 1404}}};
	FILE *file = fopen("peers", "w");
	fwrite(&header, sizeof(header), 1, file);
	fwrite(&block, sizeof(block), 1, file);
	fclose(file);
}

static void shows_paths(void **state)
{
	write_peers();
	assert_int_equal(shell("$CLI peers"), 0);
	assert_non_null(strstr(output, "    300.0 MiB          0 B  "));
	assert_int_equal(shell("$CLI peers --over 0.01"), 0);
	assert_non_null(strstr(output, "            -            -  "));
	/* what a path carries now, not what control heard when it began */
	assert_int_equal(shell("$CLI status | grep down"), 0);
	assert_non_null(strstr(output, "   1404    123.0 us  "));
	assert_int_equal(shell("$CLI status --json | grep '\"node\": 0'"), 0);
	assert_non_null(strstr(output, "\"mtu\": 1404, \"rtt_ns\": 123000, "));
	unlink("peers");
	assert_int_equal(shell("$CLI status | grep down"), 0);
	assert_non_null(strstr(output, "   1500           -  "));
}

static void shows_counters(void **state)
{
	char here[256];
	setenv("XDG_STATE_HOME", getcwd(here, sizeof(here)), 1);
	write_control(2);
	write_counters(COUNTERS_COUNT, 0);
	assert_int_equal(shell("$CLI status --counters | grep store_"), 0);
	assert_non_null(strstr(output, "  2  store_full"));
	assert_int_equal(shell("$CLI status --counters --json | grep '\"control\": {'"), 0);
	assert_non_null(strstr(output, "\"sessions\": 250, \"sessions_max\": 256, "));
	unlink("control.counters");
	assert_int_equal(shell("$CLI status --counters"), 0);
	assert_non_null(
		strstr(output, "                3000  rx_pkts               packets given "));
	assert_null(strstr(output, "tx_pkts"));
	assert_int_equal(shell("$CLI status --counters --json | grep worker | tail -1"), 0);
	assert_non_null(strstr(output, "{\"worker\": 1, \"dataplane_pid\": 2147483647,"));
	assert_non_null(strstr(output, "\"rx_pkts\": 2000, "));
	shell("$CLI doctor | grep -A1 -e drops -e counters");
	assert_non_null(strstr(output, "was left by a dataplane that has ended"));
	assert_non_null(strstr(output, "warn  drops         drop_checksum 3:"));
	assert_non_null(strstr(output, "ok    drops         drop_duplicate 3:"));
	shell("$CLI doctor | grep -e drops");
	assert_non_null(strstr(output, "ok    drops         drop_checksum 3:"));
	assert_non_null(
		strstr(output, "CRC32C does not match (packets), none since the last look"));
	write_counters(COUNTERS_COUNT + 1, 0);
	assert_int_equal(shell("$CLI status --counters"), 1);
	assert_non_null(strstr(output, "is of another version"));
	shell("truncate -s 100 counters");
	assert_int_equal(shell("$CLI status --counters"), 1);
	assert_int_equal(shell("$CLI --socket ./none status --counters"), 6);
}

/* Two groups: "lost" has no owner that answers, and of "sgd" each question finds a round more. */
static bool group_hook(struct fake *f, int conn, const struct session_request *request)
{
	static uint64_t rounds = 10;
	struct group_request asked;
	struct {
		struct session_reply reply;
		struct group_answer answer;
	} packet = {0};
	if (request->op != SESSION_GROUP)
		return false;
	memcpy(&asked, f->tail, sizeof(asked));
	if (strcmp(asked.name, "sgd") != 0) {
		fake_status(f, conn, request, -ETIMEDOUT);
		return true;
	}
	packet.reply = fake_reply(request, 0);
	packet.reply.flags = SESSION_FLAG_MORE;
	packet.answer = (struct group_answer){
		.op = SAR_SUM,
		.dtype = SAR_F32,
		.count = 4,
		.live = 2,
		.top = 12,
		.rounds = ++rounds,
		.switched = 4,
		.late = 5,
		.refused = 6,
		.histogram = {20, 0, 0, 0, 2},
		.policy = "ssp 4",
		.page = 2,
		.member = {{.member = 1, .waiting_ns = 1500000}, {.member = 2, .waiting_ns = 90}}};
	fake_send(f, conn, &packet, sizeof(packet), NULL, 0);
	fake_status(f, conn, request, 0);
	return true;
}

static void top_shows_groups(void **state)
{
	struct client *c = *state;
	c->fake.hook = group_hook;
	write_counters(COUNTERS_COUNT, 0);
	assert_int_equal(shell("for g in lost sgd; do echo x | $CLI put .group/$g -; done"), 0);
	assert_int_equal(shell("$CLI top --once --interval 0.01"), 0);
	assert_int_equal(strncmp(output, "this node   1, over ", 20), 0);
	assert_non_null(strstr(output, "; 1 of 2 nodes are up\n"
				       "in                   0 B/s           0 packets/s\n"));
	assert_non_null(strstr(output, "of 8.0 MiB used (0%)\nobjects     "));
	assert_non_null(strstr(output, "\nsgd    ssp 4         2       12  "));
	assert_non_null(strstr(output, "        4        8      5        6  90 ns to 1.50 ms      "
				       "0:20 4-7:2\n"));
	assert_non_null(strstr(output, "\nlost   "));
	assert_null(strstr(output, "COUNTER")); /* none has changed */
	assert_int_equal(shell("$CLI --json top --once --interval 0.01"), 0);
	assert_non_null(strstr(output, "\"groups\": [{\"name\": \"lost\", \"error\": \""));
	assert_non_null(strstr(output, "\"waiting_ns\": 90, \"waits\": false}], "
				       "\"rounds_risen\": 1}], \"groups_left\": 0, "
				       "\"partial\": false}\n"));
	write_counters(COUNTERS_COUNT + 1, 0);
	assert_int_equal(shell("$CLI top"), 1);
	assert_non_null(strstr(output, "counters is of another version"));
}

/* sarissa top --json --interval 0.01; its output is *lines. */
static pid_t start_top(FILE **lines)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_DFL);
		dup2(ends[1], STDOUT_FILENO);
		execl(getenv("CLI"), "sarissa", "top", "--json", "--interval", "0.01", NULL);
		_exit(127);
	}
	close(ends[1]);
	*lines = fdopen(ends[0], "r");
	return pid;
}

/* Until the line that has the text. */
static void read_top(FILE *lines, const char *text)
{
	char line[8192];
	do
		assert_non_null(fgets(line, sizeof(line), lines));
	while (!strstr(line, text));
}

static void top_follows_until_interrupted(void **state)
{
	FILE *lines;
	int status;
	write_counters(COUNTERS_COUNT, 0);
	pid_t pid = start_top(&lines);
	read_top(lines, "\"counters\": {}, ");
	write_counters(COUNTERS_COUNT, 500); /* loops are the processor's */
	read_top(lines, "\"counters\": {\"rx_pkts\": 500}, ");
	read_top(lines, "\"counters\": {}, ");
	kill(pid, SIGINT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fclose(lines);
}

static void json_of_transfers(void **state)
{
	assert_int_equal(shell("echo 12345 | $CLI put x - --json"), 0);
	assert_non_null(strstr(output, "\"size\": 6, \"duration_ns\": "));
	assert_int_equal(shell("$CLI get x out --json"), 0);
	assert_non_null(strstr(output, "{\"name\": \"x\", \"id\": \""));
	assert_int_equal(shell("$CLI get x - --json 2> /dev/null"), 0);
	assert_string_equal(output, "12345\n");
	assert_int_equal(shell("$CLI rm x --json"), 0);
	assert_non_null(strstr(output, "\"removed\": true}\n"));
}

static void reduces(void **state)
{
	struct client *c = *state;
	assert_int_equal(shell("$CLI reduce sum a b id:000102030405060708090a0b0c0d0e0f"), 0);
	assert_string_equal(output, "");
	assert_int_equal(c->fake.reduce.reduction.op, 1);
	assert_int_equal(c->fake.reduce.reduction.dtype, 0); /* none is there */
	assert_int_equal(c->fake.reduce.reduction.num, 0);
	assert_int_equal(c->fake.reduce.timeout_ns, -1);
	assert_int_equal(c->fake.reduce_source[2].bytes[15], 15);
	assert_int_equal(shell("$CLI reduce sum a b"), 1);
	assert_int_equal(strncmp(output, "sarissa: sum: ", 14), 0);
	assert_int_equal(shell("printf 1234 >four; $CLI put raw four"), 0);
	assert_int_equal(shell("$CLI reduce bytes none raw"), 0);
	assert_int_equal(c->fake.reduce.reduction.dtype, SAR_F32);
	assert_int_equal(
		shell("$CLI reduce most a b c --op max --dtype u16 --num 2 --spread --wait "
		      "--timeout 1.5"),
		0);
	assert_int_equal(c->fake.reduce.reduction.op, 4);
	assert_int_equal(c->fake.reduce.reduction.dtype, 10);
	assert_int_equal(c->fake.reduce.reduction.num, 2);
	assert_int_equal(c->fake.reduce.flags, SESSION_FLAG_ALLREDUCE);
	assert_in_range(c->fake.reduce.timeout_ns, 1, 1500000000);
	assert_non_null(strstr(output, "most: "));
	assert_non_null(strstr(output, "(1000 bytes) from 2 of 3 sources in "));
	assert_non_null(strstr(output, "\n  a\n  b\n"));
	assert_int_equal(shell("$CLI reduce j a b --json"), 0);
	assert_non_null(strstr(output, "\"op\": \"sum\", \"dtype\": null, \"sources\": 2, "
				       "\"done\": false, \"duration_ns\": "));
	assert_int_equal(shell("$CLI reduce k a b --json --wait"), 0);
	assert_non_null(strstr(output, "\"used\": [\"a\", \"b\"], \"size\": 1000, "));
	assert_int_equal(shell("$CLI reduce m a b c --deadline 1.5 --min 2"), 0);
	assert_int_equal(c->fake.reduce.reduction.min, 2);
	assert_in_range(c->fake.reduce.reduction.deadline_ns, 1, 1500000000);
	assert_int_equal(shell("$CLI reduce n a b c --deadline 0"), 0);
	assert_int_equal(c->fake.reduce.reduction.min, 1);
	assert_int_equal(shell("$CLI reduce o a b --deadline 2 --timeout 2"), 1);
	assert_non_null(strstr(output, "not before the timeout"));
	c->fake.reduce_goes_on = true;
	assert_int_equal(shell("$CLI reduce l a b --wait"), 3);
}

/* For shell(): until the condition holds, or for a minute. */
#define WAIT_UNTIL(condition) "for i in $(seq 3000); do " condition " && break; sleep 0.02; done; "

/* The size of the file without a name that process $pid writes in this folder. */
#define HIDDEN_SIZE                                                           \
	"$(for f in /proc/$pid/fd/*; do case $(readlink $f) in \"$PWD\"/#*) " \
	"stat -Lc %%s $f; esac; done)"

static void prefetch_brings_copies(void **state)
{
	struct client *c = *state;
	const uint32_t *node = (const uint32_t *)c->fake.broadcast;
	assert_int_equal(shell("echo x | $CLI put x - && $CLI prefetch x 3 12"), 0);
	assert_string_equal(output, "");
	assert_int_equal(node[0], 3);
	assert_int_equal(node[1], 12);
	assert_int_equal(shell("$CLI prefetch x --json"), 0);
	assert_non_null(strstr(output, "{\"name\": \"x\", \"id\": \""));
	assert_non_null(strstr(output, "\"nodes\": null, \"duration_ns\": "));
	assert_int_equal(shell("$CLI prefetch x 1 --json"), 0);
	assert_non_null(strstr(output, "\"nodes\": 1, "));
	assert_int_equal(shell("$CLI prefetch missing --timeout 0"), 3);
	assert_int_equal(shell("$CLI prefetch x 1024"), 2);
	assert_string_equal(output, "sarissa: prefetch: '1024' is not the number of a node: see "
				    "'sarissa prefetch --help'\n");
}

/* A get that is interrupted while bytes arrive leaves no file, whole or half. */
static void interrupted_get_leaves_nothing(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("slow");
	fake_fetching(&c->fake, &id, 100000, 50000);
	assert_int_equal(shell("$CLI get slow out & pid=$!; " WAIT_UNTIL(
				 "test 50000 = \"" HIDDEN_SIZE "\"") "kill -TERM $pid; wait $pid"),
			 128 + SIGTERM);
	assert_int_equal(shell("test -e out"), 1);
	assert_false(left_over());
}

/* Bytes are written as they come, and the file appears at the end. */
static void get_follows_a_growing_object(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("growing");
	uint32_t slot = fake_fetching(&c->fake, &id, 3000000, 0);
	assert_int_equal(shell("$CLI get growing out --timeout 100 & echo $! > pid"), 0);
	for (uint64_t ready = 100000; ready <= 3000000; ready += 100000) {
		usleep(2000);
		fake_advance(&c->fake, slot, ready);
	}
	assert_int_equal(shell(WAIT_UNTIL("test -e out") "stat -c %%s out"), 0);
	assert_string_equal(output, "3000000\n");
	FILE *file = fopen("out", "r");
	for (uint64_t i = 0; i < 3000000; i++)
		assert_int_equal(fgetc(file), fake_pattern(i));
	fclose(file);
}

/* An object that is replaced while it is written is written to the file again; bytes in a pipe
 * cannot be taken back. */
static void get_begins_again(void **state)
{
	struct client *c = *state;
	struct object_id id = test_object("sum");
	uint32_t slot = fake_fetching(&c->fake, &id, 3000000, 2000000);
	assert_int_equal(shell("{ $CLI get sum out --timeout 100 & echo $! > pid; wait $!; "
			       "echo $? > file.status; } & "
			       "({ $CLI get sum - --timeout 100 2> why; echo $? > pipe.status; } "
			       "| cat > pipe) & " WAIT_UNTIL(
				       "test \"$(stat -c %%s pipe)\" = 2000000 && "
				       "pid=$(cat pid) && test \"" HIDDEN_SIZE "\" = 2000000")),
			 0);
	fake_replace(&c->fake, slot);
	slot = fake_fetching(&c->fake, &id, 1500000, 700000);
	assert_int_equal(shell(WAIT_UNTIL("test -s pipe.status") "cat pipe.status why"), 0);
	assert_string_equal(output,
			    "1\nsarissa: sum: another generation takes its place, but 2000000 "
			    "bytes of this one are in standard output already: get it again\n");
	fake_advance(&c->fake, slot, 1500000);
	assert_int_equal(
		shell(WAIT_UNTIL("test -s file.status") "cat file.status; stat -c %%s out"), 0);
	assert_string_equal(output, "0\n1500000\n");
	FILE *file = fopen("out", "r");
	for (uint64_t i = 0; i < 1500000; i++)
		assert_int_equal(fgetc(file), fake_pattern(i));
	fclose(file);
	assert_false(left_over());
}

static void python_module(void **state)
{
	assert_int_equal(shell_python_test(), 0);
}

int main(int argc, char **argv)
{
	if (!shell_takes_command(argc, argv))
		return 2;
	const struct CMUnitTest tests[] = {
		test_cli(files_there_and_back),
		test_cli(put_twice),
		test_cli(file_keeps_its_mode_and_link),
		test_cli(wrong_usage_is_2),
		test_cli(help_is_there),
		test_cli(not_there_is_4_and_no_node_6),
		test_cli(late_is_3),
		test_cli(errors_are_1),
		test_cli(shows_objects),
		test_cli(shows_the_tree),
		test_cli(shows_with_whom_it_is_lost),
		test_cli(shows_nodes),
		test_cli(says_what_is_full_or_wrong),
		test_cli(shows_the_last_plan),
		test_cli(shows_paths),
		test_cli(shows_counters),
		test_cli(top_shows_groups),
		test_cli(top_follows_until_interrupted),
		test_cli(json_of_transfers),
		test_cli(reduces),
		test_cli(interrupted_get_leaves_nothing),
		test_cli(prefetch_brings_copies),
		test_cli(get_follows_a_growing_object),
		test_cli(get_begins_again),
		test_cli(python_module),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
