/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa: objects of a cluster from the command line. */
#include "cli.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/support/help.h"
#include "internal/arguments.h"
#include "internal/reduce.h"
#include "internal/standard_fds.h"

static const int64_t main_interval_least_ns = 10000000, main_interval_most_ns = 86400000000000;

static int main_help_run(const struct cli_args *args);

static const struct cli_command main_commands[] = {
	{"put", "NAME FILE|- [OPTIONS]", "store a file, or standard input, as the object NAME",
	 CLI_OPTION_PUT, 2, 2, put_run},
	{"get", "NAME FILE|- [--timeout S]", "write the object NAME to a file or standard output",
	 CLI_OPTION_TIMEOUT, 2, 2, get_run},
	{"reduce", "TARGET SOURCE... [OPTIONS]",
	 "combine objects, element by element, into a new one",
	 CLI_OPTION_TIMEOUT | CLI_OPTION_REDUCE, 2, 1 + SAR_SOURCES_MAX, reduce_run},
	{"rm", "NAME...|--prefix P", "remove objects from the whole cluster", CLI_OPTION_PREFIX, 0,
	 -1, rm_run},
	{"ls", "[PREFIX]", "list the objects of the cluster, or those whose names begin so", 0, 0,
	 1, ls_run},
	{"watch", "[PREFIX]", "say when objects appear, are complete or go away", 0, 0, 1,
	 watch_run},
	{"stat", "NAME", "show what is known of an object, and who holds it", 0, 1, 1, stat_run},
	{"status", "[--counters]", "show the nodes, and the counters of this one",
	 CLI_OPTION_COUNTERS, 0, 0, status_run},
	{"peers", "[--over S]",
	 "show the connections to other nodes, how fast and how good they are", CLI_OPTION_OVER, 0,
	 0, peers_run},
	{"top", "[--interval S] [--once]",
	 "show again and again what this node and the groups do meanwhile", CLI_OPTION_TOP, 0, 0,
	 top_run},
	{"doctor", "", "check this machine and its node, and say what to do", 0, 0, 0, doctor_run},
	{"leave", "", "let this node leave its cluster for good; a restart needs none", 0, 0, 0,
	 status_leave_run},
	{"local", "up N|exec I|env I|kill I|start I|status|down",
	 "a cluster of nodes on this machine, without root", CLI_OPTION_OWN, 0, -1, local_run},
	{"group", "create NAME|ls|show NAME|rm NAME",
	 "synchronisation groups: make, list, show and remove them", CLI_OPTION_OWN, 0, -1,
	 group_run},
	{"policy", "show TEXT|set GROUP TEXT",
	 "what a policy of groups says; change that of one that runs", CLI_OPTION_OWN, 0, -1,
	 group_policy_run},
	{"plan", "[--op OP] [--size SIZE] [OPTIONS]|--last",
	 "which plan an operation gets over a network, and why", CLI_OPTION_OWN, 0, -1, plan_run},
	{"topology", "SHAPE|check FILE|show FILE|probe FILE",
	 "the topology file of a regular network; checks one, or measures its links",
	 CLI_OPTION_OWN, 0, -1, plan_topology_run},
	{"help", "[TOPIC]", "show the manual of a command, of a function or of a daemon", 0, 0, 1,
	 main_help_run},
};
enum { MAIN_COMMANDS = sizeof(main_commands) / sizeof(main_commands[0]) };

static const struct option main_options[] = {
	{"json", no_argument, NULL, 'j'},	   {"help", no_argument, NULL, 'h'},
	{"socket", required_argument, NULL, 's'},  {"version", no_argument, NULL, 'V'},
	{"timeout", required_argument, NULL, 't'}, {"counters", no_argument, NULL, 'c'},
	{"over", required_argument, NULL, 'O'},	   {"interval", required_argument, NULL, 'i'},
	{"once", no_argument, NULL, '1'},	   {"op", required_argument, NULL, 'o'},
	{"dtype", required_argument, NULL, 'd'},   {"shape", required_argument, NULL, 'H'},
	{"num", required_argument, NULL, 'n'},	   {"deadline", required_argument, NULL, 'D'},
	{"min", required_argument, NULL, 'm'},	   {"spread", no_argument, NULL, 'S'},
	{"wait", no_argument, NULL, 'w'},	   {"switch", required_argument, NULL, 'W'},
	{"member", required_argument, NULL, 'M'},  {"ttl", required_argument, NULL, 'T'},
	{"lease", required_argument, NULL, 'l'},   {"lease-ttl", required_argument, NULL, 'L'},
	{"prefix", required_argument, NULL, 'p'},  {NULL, 0, NULL, 0},
};

static void main_help(void)
{
	printf("usage: sarissa [--socket PATH] [--json] COMMAND ...\n\n"
	       "Objects in the memory of a cluster's nodes.\n\n");
	for (int i = 0; i < MAIN_COMMANDS; i++)
		printf("  %-6s %-26s %s\n", main_commands[i].name, main_commands[i].usage,
		       main_commands[i].help);
	printf("\nEvery command takes:\n"
	       "  --socket PATH  the node's socket; or SARISSA_SOCKET, or "
	       "/run/sarissa/control.sock\n"
	       "  --json         one JSON object per line: sizes in bytes, times in ns\n"
	       "  --help         this text, or the command's own\n"
	       "  --version      the version of command and library\n\n"
	       "A NAME that is \"id:\" and 32 hexadecimal digits stands for that object id.\n"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 timed out, 4 not found,\n"
	       "5 a part of the directory does not answer, 6 no node here.\n");
}

static void main_command_help(const struct cli_command *command)
{
	printf("usage: sarissa %s%s%s\n\n%c%s.\n\n", command->name, *command->usage ? " " : "",
	       command->usage, command->help[0] - 'a' + 'A', command->help + 1);
	if (command->options & CLI_OPTION_REDUCE)
		printf("  --op OP        sum, prod, min, max or avg; without: sum\n"
		       "  --dtype TYPE   f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32 or "
		       "u64;\n                 without: that of the arrays, f32 for bytes\n"
		       "  --num K        the first K sources to arrive suffice; without: all\n"
		       "  --deadline S   after S seconds the sources that are there suffice;\n"
		       "                 before the timeout, and not with --num\n"
		       "  --min M        with --deadline: if there are at least M; without: 1\n"
		       "  --spread       every node with a source will get the result as well\n"
		       "  --wait         until the result is there, and say what is in it\n"
		       "  --switch IP    the switch there makes it; each member calls, and waits\n"
		       "  --member I     with --switch: this is the member of source I, from 0\n"
		       "  --timeout S    the reduce ends without a result after S seconds; without: "
		       "no limit\n");
	else if (command->options & CLI_OPTION_TIMEOUT)
		printf("  --timeout S    wait at most S seconds for the object to exist and to "
		       "arrive;\n                 0: only when it exists already; without: no "
		       "limit\n");
	if (command->options & CLI_OPTION_PUT)
		printf("  --ttl S        the object is deleted after S seconds; without: when somebody "
		       "does\n"
		       "  --lease NAME   the lease NAME of this user on this node holds it\n"
		       "  --lease-ttl S  the lease ends S seconds after its last session; without: "
		       "3600\n"
		       "  --dtype TYPE   the bytes are an array: of f16, bf16, f32, f64, i8 to i64 or "
		       "u8 to u64\n"
		       "  --shape N,...  with --dtype: its lengths; without: one dimension\n");
	if (command->options & CLI_OPTION_PREFIX)
		printf("  --prefix P     all objects whose names begin with P\n");
	if (command->options & CLI_OPTION_COUNTERS)
		printf("  --counters     also what the dataplane counted, running or not\n");
	if (command->options & CLI_OPTION_OVER)
		printf("  --over S       what happens within the next S seconds; without: since each "
		       "connection began\n");
	if (command->options & CLI_OPTION_TOP)
		printf("  --interval S   every S seconds; without: 2\n"
		       "  --once         ends after the first interval; without: on Ctrl-C\n");
	printf("  --json         one JSON object per line: sizes in bytes, times in ns\n"
	       "  --socket PATH  the node's socket\n");
}

static int main_usage(const char *what, const char *which)
{
	fprintf(stderr, "sarissa: %s%s: see 'sarissa --help'\n", what, which);
	return CLI_USAGE;
}

/* Seconds with decimals into ns. -1, or the exit status to end with. */
static int main_seconds(const char *option, bool allowed, int64_t *out)
{
	char *end, what[64];
	double seconds = strtod(optarg, &end);
	bool good = end != optarg && *end == '\0' && seconds >= 0 && seconds <= 9e9;
	*out = good ? (int64_t)(seconds * 1e9 + 0.5) : 0;
	if (allowed && good)
		return -1;
	snprintf(what, sizeof(what), allowed ? "%s takes seconds, not " : "%s has no meaning here",
		 option);
	return main_usage(what, allowed ? optarg : "");
}

/* Reads an option that only reduce takes. */
static int main_reduce_option(int option, unsigned allowed, struct cli_args *args)
{
	sar_reduction *r = &args->reduction;
	uint64_t count;
	if (option == 'H' && !(allowed & CLI_OPTION_PUT))
		return main_usage("--shape means something to put only", "");
	if (!(allowed & CLI_OPTION_REDUCE) && !(allowed & CLI_OPTION_PUT && strchr("dH", option)))
		return main_usage("--op, --dtype, --num, --deadline, --min, --spread, --wait, "
				  "--switch, --member mean something to reduce only",
				  "");
	switch (option) {
	case 'o':
		r->op = reduce_op_find(optarg);
		return r->op ? -1 : main_usage("no such operation: ", optarg);
	case 'd':
		r->dtype = reduce_dtype_find(optarg);
		return r->dtype ? -1 : main_usage("no such type of elements: ", optarg);
	case 'H':
		args->shape = optarg;
		return -1;
	case 'n':
		if (!argument_number(optarg, 10, 1, UINT32_MAX, &count))
			return main_usage("--num takes a count, not ", optarg);
		r->num = (uint32_t)count;
		return -1;
	case 'D':
		args->deadline = true;
		return main_seconds("--deadline", true, &r->deadline_ns);
	case 'm':
		if (!argument_number(optarg, 10, 1, UINT32_MAX, &count))
			return main_usage("--min takes a count, not ", optarg);
		r->min = (uint32_t)count;
		return -1;
	case 'S':
		r->flags |= SAR_REDUCE_SPREAD;
		return -1;
	case 'w':
		args->wait = true;
		return -1;
	case 'W':
		args->switch_address = optarg;
		return -1;
	case 'M':
		if (!argument_number(optarg, 10, 0, 63, &count))
			return main_usage("--member takes 0 to 63, not ", optarg);
		args->member = (uint32_t)count;
		return -1;
	default:
		return CLI_USAGE;
	}
}

/* Reads an option of lifetimes. */
static int main_lifetime_option(int option, unsigned allowed, struct cli_args *args)
{
	int status;
	if (option == 'p' && !(allowed & CLI_OPTION_PREFIX))
		return main_usage("--prefix has no meaning here", "");
	if (option != 'p' && !(allowed & CLI_OPTION_PUT))
		return main_usage("--ttl, --lease, --lease-ttl mean something to put only", "");
	switch (option) {
	case 'T':
		status = main_seconds("--ttl", true, &args->ttl_ns);
		return status == -1 && args->ttl_ns == 0
			       ? main_usage("--ttl takes seconds above 0, not ", optarg)
			       : status;
	case 'L':
		return main_seconds("--lease-ttl", true, &args->lease_ttl_ns);
	case 'l':
		args->lease = optarg;
		return -1;
	default:
		args->prefix = optarg;
		return -1;
	}
}

/* Reads an option of top. */
static int main_top_option(int option, unsigned allowed, struct cli_args *args)
{
	if (!(allowed & CLI_OPTION_TOP))
		return main_usage("--interval, --once mean something to top only", "");
	if (option == '1') {
		args->once = true;
		return -1;
	}
	int status = main_seconds("--interval", true, &args->interval_ns);
	if (status >= 0 || (args->interval_ns >= main_interval_least_ns &&
			    args->interval_ns <= main_interval_most_ns))
		return status;
	return main_usage("--interval takes 0.01 to 86400 seconds, not ", optarg);
}

/* One option into args. -1, or the exit status to end with. */
static int main_option(int option, unsigned allowed, const struct cli_command *command,
		       struct cli_args *args)
{
	switch (option) {
	case 'j':
		args->json = true;
		return -1;
	case 's':
		args->socket = optarg;
		return -1;
	case 'h':
		if (command)
			main_command_help(command);
		else
			main_help();
		return cli_flush();
	case 'V':
		printf("sarissa %s\n", sar_version());
		return cli_flush();
	case 't':
		return main_seconds("--timeout", allowed & CLI_OPTION_TIMEOUT, &args->timeout_ns);
	case 'O':
		return main_seconds("--over", allowed & CLI_OPTION_OVER, &args->over_ns);
	case 'c':
		if (!(allowed & CLI_OPTION_COUNTERS))
			return main_usage("--counters has no meaning here", "");
		args->counters = true;
		return -1;
	case 'i':
	case '1':
		return main_top_option(option, allowed, args);
	case 'T':
	case 'L':
	case 'l':
	case 'p':
		return main_lifetime_option(option, allowed, args);
	default:
		return main_reduce_option(option, allowed, args);
	}
}

/* getopt's own words, in our form. */
static int main_bad_option(int argc, char **argv, int option)
{
	return main_usage(option == ':' ? "a value is missing after " : "unknown option ",
			  argument_refused(argc, argv));
}

/* Options before the command, or among its names. -1, or the exit status to end with. */
static int main_parse(int argc, char **argv, const char *form, const struct cli_command *command,
		      struct cli_args *args)
{
	int option;
	opterr = 0;
	while ((option = getopt_long(argc, argv, form, main_options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return main_bad_option(argc, argv, option);
		int status = main_option(option, command ? command->options : 0, command, args);
		if (status >= 0)
			return status;
	}
	return -1;
}

static const struct cli_command *main_find(const char *name)
{
	for (int i = 0; i < MAIN_COMMANDS; i++)
		if (strcmp(main_commands[i].name, name) == 0)
			return &main_commands[i];
	return NULL;
}

static int main_run(int argc, char **argv, const struct cli_command *command, struct cli_args *args)
{
	if (command->options & CLI_OPTION_OWN) {
		args->names = argv;
		args->count = argc;
		return command->run(args);
	}
	optind = 0; /* restarts getopt_long */
	int status = main_parse(argc, argv, ":", command, args);
	if (status >= 0)
		return status;
	args->names = argv + optind;
	args->count = argc - optind;
	if (args->count < command->least || (command->most >= 0 && args->count > command->most)) {
		fprintf(stderr, "sarissa: %s takes other arguments: sarissa %s %s\n", command->name,
			command->name, command->usage);
		return CLI_USAGE;
	}
	return command->run(args);
}

/* The page of sarissa(1) for the commands, which have none of their own. */
static int main_help_run(const struct cli_args *args)
{
	if (args->count > 0)
		return help_show(main_find(args->names[0]) ? "sarissa" : args->names[0]);
	main_help();
	return cli_flush();
}

int main(int argc, char **argv)
{
	const char *socket = getenv("SARISSA_SOCKET");
	struct cli_args args = {
		.socket = socket && *socket ? socket : "/run/sarissa/control.sock",
		.timeout_ns = SAR_FOREVER,
		.interval_ns = 2000000000,
		.reduction = {.op = SAR_SUM},
		.lease_ttl_ns = 3600 * 1000000000ll,
	};
	standard_fds_hold();
	signal(SIGPIPE, SIG_IGN); /* a write that fails is answered where it happens */
	signal(SIGXFSZ, SIG_IGN);
	int status = main_parse(argc, argv, "+:", NULL, &args);
	if (status >= 0)
		return status;
	if (optind >= argc)
		return main_usage("no command", "");
	const struct cli_command *command = main_find(argv[optind]);
	if (!command)
		return main_usage("unknown command ", argv[optind]);
	return main_run(argc - optind, argv + optind, command, &args);
}
