/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `sarissa plan` and `sarissa topology`: this process becomes sarissa-plan, which has the planners
 * and reads topology files. It needs no node.
 */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "local.h"

/* Installed, it lies in PREFIX/libexec/sarissa or beside this command; in a build directory in a
 * folder of its own. */
static int plan_become(const struct cli_args *args)
{
	static const char *const places[] = {"", "/../libexec/sarissa", "/../../control/topology"};
	char **words = calloc((size_t)args->count + 2, sizeof(*words)), path[4200];
	static char name[] = "sarissa-plan";

	if (words == NULL)
		return cli_fail(-ENOMEM, "%s: out of memory", args->names[0]);
	words[0] = name;
	memcpy(words + 1, args->names, (size_t)args->count * sizeof(*words));
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s%s/%s", local_own_folder(), places[i], name);
		execv(path, words);
	}
	free(words);
	return cli_fail(-ENOENT,
			"%s: the program sarissa-plan is not installed: install Sarissa whole",
			args->names[0]);
}

int plan_run(const struct cli_args *args)
{
	return plan_become(args);
}

int topology_run(const struct cli_args *args)
{
	return plan_become(args);
}
