/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of all commands, their help and their completion. main.c reads a command line by
 * these rows; a command gets its options in struct cli_args and knows nothing of them here.
 */
#include "table.h"

#include <ctype.h>
#include "cli.h"
#include "cli/support/text.h"
#include "internal/object_table.h"
#include "internal/policies.h"
#include "internal/reduce.h"
#include "local/local.h"

#define ARGS struct cli_args

static const struct option_row table_common[] = {
	{"json", NULL, "one JSON object per line: sizes in bytes, times in ns",
	 OPTION_FLAG(ARGS, json)},
	{"socket", "PATH", "the node's socket; or SARISSA_SOCKET, or /run/sarissa/control.sock",
	 OPTION_TEXT(ARGS, socket)},
	{"help", NULL, "this text, or the command's own", OPTION_STOP},
	{"version", NULL, "the version of command and library", OPTION_STOP},
};

/* The first row of a name that is of the command or of none holds for it. */
static const struct option_row table_rows[] = {
	{"timeout", "S", "the reduce ends without a result after S seconds; without: no limit",
	 OPTION_SECONDS(ARGS, timeout_ns, 0, OPTION_NS_MAX), .of = "reduce"},
	{"timeout", "S",
	 "wait at most S seconds for the object to exist and to arrive; 0: only when it exists "
	 "already; without: no limit",
	 OPTION_SECONDS(ARGS, timeout_ns, 0, OPTION_NS_MAX)},
	{"ttl", "S", "the object is deleted after S seconds; without: when somebody does",
	 OPTION_SECONDS(ARGS, ttl_ns, 1, OPTION_NS_MAX)},
	{"lease", "NAME", "the lease NAME of this user on this node holds it",
	 OPTION_TEXT(ARGS, lease)},
	{"lease-ttl", "S", "the lease ends S seconds after its last session; without: 3600",
	 OPTION_SECONDS(ARGS, lease_ttl_ns, 0, OPTION_NS_MAX)},
	{"shape", "N,...", "with --dtype: its lengths; without: one dimension",
	 OPTION_TEXT(ARGS, shape)},
	{"range", "OFFSET:BYTES", "BYTES bytes from byte OFFSET on, without the rest of the object",
	 OPTION_TEXT(ARGS, range)},
	{"prefix", "P", "all objects whose names begin with P", OPTION_TEXT(ARGS, prefix)},
	{"op", "OP", "sum, prod, min, max or avg; without: sum",
	 OPTION_CHOICE(ARGS, group.op, SAR_SUM, REDUCE_OP_WORDS), .of = "group"},
	PLAN_OPTIONS(ARGS, plan.),
	{"op", "OP", "sum, prod, min, max or avg; without: sum",
	 OPTION_CHOICE(ARGS, reduction.op, SAR_SUM, REDUCE_OP_WORDS)},
	{"dtype", "TYPE", "the bytes are an array: of f16, bf16, f32, f64, i8 to i64 or u8 to u64",
	 OPTION_CHOICE(ARGS, reduction.dtype, SAR_F16, REDUCE_DTYPE_WORDS), .of = "put"},
	{"dtype", "TYPE", "of the elements; without: f32",
	 OPTION_CHOICE(ARGS, group.dtype, SAR_F16, REDUCE_DTYPE_WORDS), .of = "group"},
	{"dtype", "TYPE",
	 "f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32 or u64; without: that of the "
	 "arrays, f32 for bytes",
	 OPTION_CHOICE(ARGS, reduction.dtype, SAR_F16, REDUCE_DTYPE_WORDS)},
	{"num", "K", "the first K sources to arrive suffice; without: all",
	 OPTION_NUMBER(ARGS, reduction.num, 1, UINT32_MAX, 1)},
	{"deadline", "S",
	 "after S seconds the sources that are there suffice; before the timeout, and not with "
	 "--num",
	 OPTION_SECONDS(ARGS, deadline_ns, 0, OPTION_NS_MAX)},
	{"min", "M", "with --deadline: if there are at least M; without: 1",
	 OPTION_NUMBER(ARGS, reduction.min, 1, UINT32_MAX, 1)},
	{"spread", NULL, "every node with a source will get the result as well",
	 OPTION_BITS(ARGS, reduction.flags, SAR_REDUCE_SPREAD)},
	{"wait", NULL, "until the result is there, and say what is in it", OPTION_FLAG(ARGS, wait)},
	{"switch", "IP[,IP]", "switches that make the rounds; the nodes make what they do not",
	 OPTION_TEXT(ARGS, group.switches), .of = "group"},
	{"switch", "IP", "the switch there makes it; each member calls, and waits",
	 OPTION_TEXT(ARGS, switch_address)},
	{"member", "I", "with --switch: this is the member of source I, from 0",
	 OPTION_NUMBER(ARGS, member, 0, 63, 1)},
	{"counters", NULL, "also what the dataplane counted, running or not",
	 OPTION_FLAG(ARGS, counters)},
	{"over", "S",
	 "what happens within the next S seconds; without: since each connection began",
	 OPTION_SECONDS(ARGS, over_ns, 0, OPTION_NS_MAX)},
	{"interval", "S", "every S seconds; without: 2",
	 OPTION_SECONDS(ARGS, interval_ns, 10000000, 86400000000000)},
	{"once", NULL, "ends after the first interval; without: on Ctrl-C",
	 OPTION_FLAG(ARGS, once)},
	{"count", "N", "elements of a contribution",
	 OPTION_NUMBER(ARGS, group.count, 1, INT64_MAX, 1)},
	{"policy", "TEXT", "who waits for whom; without: bsp", OPTION_TEXT(ARGS, group.policy)},
	{"members", "M", "rounds begin when M have joined; without: with the first",
	 OPTION_NUMBER(ARGS, group.members, 0, SAR_GROUP_MEMBERS, 1)},
	{"total", NULL, "the result of each round adds the one before",
	 OPTION_BITS(ARGS, group.flags, SAR_GROUP_TOTAL)},
	{"name", "NAME", "of several clusters side by side; without: main",
	 OPTION_TEXT(ARGS, local.name)},
	{"store", "MIB", "of each node's store; without: 256; memory is taken when it is used",
	 OPTION_NUMBER(ARGS, local.store_mib, 8, 1 << 22, 1)},
	{"objects", "N", "that each store holds at most; without: 65536",
	 OPTION_NUMBER(ARGS, local.objects, OBJECT_TABLE_SLOTS_MIN, OBJECT_TABLE_SLOTS_MAX, 1)},
	{"workers", "W", "packet threads of each node; without: 1",
	 OPTION_NUMBER(ARGS, local.workers, 1, LOCAL_WORKERS_MAX, 1)},
	{"rails", "R", "ports of each node: 127.0.0.I, 127.0.1.I ...; without: 1",
	 OPTION_NUMBER(ARGS, local.rails, 1, LOCAL_RAILS_MAX, 1)},
	{"last", NULL, "what was predicted and measured of the last plan; needs a node",
	 OPTION_FLAG(ARGS, last)},
};

static const struct table_command table_commands[] = {
#define X(name, run, group, ...) {#name, run, TABLE_##group, __VA_ARGS__},
	TABLE_COMMANDS(X)
#undef X
};

enum { TABLE_COUNT = sizeof(table_commands) / sizeof(*table_commands) };

static const char *const table_titles[] = {[TABLE_OBJECTS] = "Objects",
					   [TABLE_REDUCES] = "Reduces",
					   [TABLE_GROUPS] = "Synchronisation groups",
					   [TABLE_CLUSTER] = "The cluster and its nodes",
					   [TABLE_PLANS] = "Plans, without a node"};

#define TABLE_POLICY(identifier, word, argument, says) "  " word argument ": " says "\n"

/* Words of a command's help beside its row. */
static const struct {
	const char *command, *text;
} table_more[] = {
	{"local",
	 "  up N         starts nodes 0 to N - 1 and waits until they serve; N is 1 to 64\n"
	 "  exec I       runs COMMAND as a task of node I; its exit status is COMMAND's\n"
	 "  env I        prints what makes a shell's programs tasks of node I:\n"
	 "               eval \"$(sarissa local env 0)\"\n"
	 "  kill I       kills both processes of node I at once, as a power cut would\n"
	 "  start I      starts node I again; what its store held is gone\n"
	 "  status       shows the nodes; exit status 1 when one of them does not run\n"
	 "  down         ends all nodes and removes their files\n\n"},
	{"group", "Members push contributions, and pull what they add up to.\n\n"},
	{"policy",
	 "  show  the table that a policy is compiled to; 'sarissa group show' has the one in force\n"
	 "  set   changes the policy of a group while it runs\n\n"
	 "A policy is one of these, for all members or per cohort ('fast: bsp, slow: ssp 4'):\n\n" POLICIES(
		 TABLE_POLICY) "\nOptions are 'deadline TIME', and 'late carry' or 'late refuse'. auto stands alone.\n\n"},
	{"topology",
	 "SHAPE is flat:N, bcube:N,K, torus:AxBxC or fattree:K. 'show' needs --json.\n\n"},
};

const struct table_command *table_find(const char *name)
{
	for (int i = 0; i < TABLE_COUNT; i++)
		if (strcmp(table_commands[i].name, name) == 0)
			return &table_commands[i];
	return NULL;
}

/* Letters to add, to drop or to change; too many for words that are longer than a command's. */
static int table_distance(const char *a, const char *b)
{
	if (!*a || !*b)
		return (int)(strlen(a) + strlen(b));
	if (*a == *b)
		return table_distance(a + 1, b + 1);
	if (a[1] && a[0] == b[1] && a[1] == b[0])
		return 1 + table_distance(a + 2, b + 2);
	int change = table_distance(a + 1, b + 1), drop = table_distance(a + 1, b);
	int add = table_distance(a, b + 1);
	change = change < drop ? change : drop;
	return 1 + (change < add ? change : add);
}

const char *table_like(const char *word)
{
	for (int far = 1; far <= 2; far++)
		for (int i = 0; i < TABLE_COUNT && strlen(word) < 12; i++)
			if (table_distance(word, table_commands[i].name) <= far &&
			    strlen(word) > (size_t)far)
				return table_commands[i].name;
	return NULL;
}

size_t table_options(const struct table_command *command, struct option_row out[OPTION_ROWS_MAX])
{
	size_t count = sizeof(table_common) / sizeof(*table_common);
	memcpy(out, table_common, sizeof(table_common));
	for (const char *left = command ? command->options : ""; *left; left += *left == ' ') {
		size_t n = strcspn(left, " ");
		const struct option_row *row = table_rows;
		while (strncmp(row->name, left, n) != 0 || row->name[n] ||
		       (row->of && strcmp(row->of, command->name) != 0))
			row++;
		out[count++] = *row;
		left += n;
	}
	return count;
}

void table_help(const struct table_command *command)
{
	struct option_row row[OPTION_ROWS_MAX];
	size_t rows = table_options(command, row);
	if (command) {
		printf("usage: sarissa %s%s%s\n\n%c%s.\n\n", command->name,
		       *command->usage ? " " : "", command->usage, toupper(*command->help),
		       command->help + 1);
		for (size_t i = 0; i < sizeof(table_more) / sizeof(*table_more); i++)
			if (strcmp(table_more[i].command, command->name) == 0)
				fputs(table_more[i].text, stdout);
		option_help(row + sizeof(table_common) / sizeof(*table_common),
			    rows - sizeof(table_common) / sizeof(*table_common));
		option_help(table_common, 2);
		return;
	}
	printf("usage: sarissa [--socket PATH] [--json] COMMAND ...\n\n"
	       "Objects in the memory of a cluster's nodes. 'sarissa COMMAND --help' has the words and\n"
	       "options of a command, sarissa(1) all of them.\n");
	for (unsigned group = 0; group < sizeof(table_titles) / sizeof(*table_titles); group++) {
		printf("\n%s:\n", table_titles[group]);
		for (int i = 0; i < TABLE_COUNT; i++)
			if (table_commands[i].group == group)
				printf("  %-9s %s\n", table_commands[i].name,
				       table_commands[i].help);
	}
	printf("\nEvery command takes:\n");
	option_help(row, rows);
	printf("\nA NAME that is \"id:\" and 32 hexadecimal digits stands for that object id.\n"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 timed out, 4 not found,\n"
	       "5 a part of the directory does not answer, 6 no node here.\n");
}

/* ---- completion ------------------------------------------------------------------------------ */

static int table_complete_name(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	if (*info->name) {
		putchar('n');
		text_safe(stdout, info->name);
		putchar('\n');
	}
	return 0;
}

/* Words with a separator between them. */
static void table_complete_words(const char *words, char separator)
{
	for (; *words; words++) {
		if (*words == separator)
			continue;
		putchar('w');
		for (; *words && *words != separator; words++)
			putchar(*words);
		putchar('\n');
		if (!*words)
			return;
	}
}

static void table_complete_commands(void)
{
	for (int i = 0; i < TABLE_COUNT; i++)
		printf("w%s\n", table_commands[i].name);
}

static void table_complete_names(const char *socket)
{
	sar *s;
	if (sar_open(socket, &s) < 0)
		return;
	sar_list_prefix(s, NULL, table_complete_name, NULL);
	sar_close(s);
}

static void table_complete_place(const struct table_command *command, int place, const char *socket)
{
	char kind[400];
	const char *at = command->words, *next;
	for (; place > 0 && (next = strchr(at, ' ')); place--)
		at = next + 1;
	snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(at, " "), at);
	if (place > 0 && !strstr(kind, "..."))
		return;
	if (strncmp(kind, "NAME", 4) == 0)
		table_complete_names(socket);
	else if (strcmp(kind, "FILE") == 0)
		puts("f");
	else if (strncmp(kind, "COMMAND", 7) == 0)
		table_complete_commands();
	if (strchr(kind, '|'))
		table_complete_words(kind + strspn(kind, "COMAND"), '|');
}

static void table_complete_value(const struct option_row *row)
{
	if (row->choices)
		table_complete_words(row->choices, ' ');
	else if (strcmp(row->argument, "FILE") == 0 || strcmp(row->argument, "PATH") == 0)
		puts("f");
}

/* The row of an option that a value follows, or NULL. */
static const struct option_row *table_valued(const struct option_row *row, size_t rows,
					     const char *word)
{
	for (size_t k = 0; k < rows && strncmp(word, "--", 2) == 0; k++)
		if (row[k].argument && strcmp(word + 2, row[k].name) == 0)
			return &row[k];
	return NULL;
}

int table_complete(int count, char **words, const char *socket)
{
	struct option_row row[OPTION_ROWS_MAX];
	const struct option_row *valued = NULL;
	const struct table_command *command = NULL;
	size_t rows = table_options(NULL, row);
	int place = -1; /* of the words behind the command */
	for (int i = 0; i + 1 < count; i++) {
		if (valued) {
			socket = strcmp(valued->name, "socket") == 0 ? words[i] : socket;
			valued = NULL;
		} else if (words[i][0] == '-') {
			valued = table_valued(row, rows, words[i]);
		} else if (place++ < 0) {
			command = table_find(words[i]);
			rows = table_options(command, row);
		}
	}
	if (valued)
		table_complete_value(valued);
	else if (count > 0 && words[count - 1][0] == '-')
		for (size_t k = 0; k < rows; k++)
			printf("w--%s\n", row[k].name);
	else if (command)
		table_complete_place(command, place, socket);
	else if (place < 0)
		table_complete_commands();
	return cli_flush();
}
