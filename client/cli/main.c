/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa: objects of a cluster from the command line. Finds the command in the table, reads its
 * options by the table's rows and calls it. It knows no command beside help.
 */
#include "cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/support/help.h"
#include "internal/object_table.h"
#include "internal/program/standard_fds.h"

/* Options before the command (NULL), or among its words. -1, or the exit status to end with. */
static int main_read(int argc, char **argv, const char *form, const struct table_command *command,
		     struct cli_args *args)
{
	struct option_row row[OPTION_ROWS_MAX];
	struct option_reader reader = {.row = row,
				       .rows = table_options(command, row),
				       .argc = argc,
				       .argv = argv,
				       .form = form};
	const struct option_row *stop;
	optind = 0; /* restarts getopt_long */
	stop = option_read(&reader, args);
	if (*reader.wrong)
		return cli_wrong(command ? command->name : NULL, "%s", reader.wrong);
	if (!stop)
		return -1;
	if (strcmp(stop->name, "help") == 0)
		table_help(command);
	else
		printf("sarissa %s\n", sar_version());
	return cli_flush();
}

/* Options stand anywhere; but behind `exec I` all is of the command that it runs. */
static int main_words(int argc, char **argv, const struct table_command *command,
		      struct cli_args *args)
{
	bool verbs = strchr(command->words, '|');
	int status = main_read(argc, argv, verbs ? "+:" : ":", command, args), first = optind;
	if (status < 0 && verbs && first < argc && strcmp(argv[first], "exec") == 0) {
		for (int word = 0; word < 2 && status < 0 && first + word < argc; word++) {
			status = main_read(argc - first - word, argv + first + word, "+:", command,
					   args);
			memmove(argv + first + optind - 1, argv + first,
				(size_t)(word + 1) * sizeof(*argv));
			first += optind - 1;
		}
	} else if (status < 0 && verbs) {
		status = main_read(argc, argv, ":", command, args);
		first = optind;
	}
	args->names = argv + first;
	args->count = argc - first;
	return status;
}

static int main_run(int argc, char **argv, const struct table_command *command,
		    struct cli_args *args)
{
	int status = main_words(argc, argv, command, args);
	if (status >= 0)
		return status;
	if (args->count < command->least || (command->most >= 0 && args->count > command->most)) {
		fprintf(stderr, "sarissa: %s takes other arguments: sarissa %s %s\n", command->name,
			command->name, command->usage);
		return CLI_USAGE;
	}
	return command->run(args);
}

int main_help_run(const struct cli_args *args)
{
	const struct table_command *command = args->count ? table_find(args->names[0]) : NULL;
	if (args->count > 0 && !command)
		return help_show(args->names[0]);
	table_help(command);
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
		.deadline_ns = -1,
		.lease_ttl_ns = 3600 * 1000000000ll,
		.group = {.op = SAR_SUM, .dtype = SAR_F32, .policy = "bsp"},
		.local = {"main", 256, OBJECT_TABLE_SLOTS_DEFAULT, 1, 1},
		.plan = PLAN_OPTIONS_DEFAULT,
	};
	standard_fds_hold();
	signal(SIGPIPE, SIG_IGN); /* a write that fails is answered where it happens */
	signal(SIGXFSZ, SIG_IGN);
	if (argc > 1 && strcmp(argv[1], "complete") == 0)
		return table_complete(argc - 2, argv + 2, args.socket);
	int status = main_read(argc, argv, "+:", NULL, &args);
	if (status >= 0)
		return status;
	if (optind >= argc)
		return cli_wrong(NULL, "no command");
	const struct table_command *command = table_find(argv[optind]);
	const char *like = table_like(argv[optind]);
	if (!command)
		return cli_wrong(NULL, "unknown command %s%s%s", argv[optind],
				 like ? ", did you mean " : "", like ? like : "");
	args.words = argv + optind;
	args.words_count = argc - optind;
	return main_run(argc - optind, argv + optind, command, &args);
}
