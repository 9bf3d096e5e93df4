/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa rm: goes on after an error; the exit status is that of the first one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli.h"
#include "json.h"
#include "text.h"

struct rm {
	sar *s;
	bool json;
	int first; /* exit status */
	sar_info *found;
	size_t count, room;
};

static void rm_report(const char *name, sar_id which)
{
	struct json j;
	char id[TEXT_BYTES];
	json_begin(&j, stdout);
	json_string(&j, "name", name);
	json_string(&j, "id", text_id(id, which.bytes));
	json_bool(&j, "removed", true);
	json_end(&j);
}

static void rm_one(struct rm *rm, const char *name, sar_id id, bool may_be_gone)
{
	int r = sar_delete(rm->s, id);
	int status = r == 0 || (r == -ENOENT && may_be_gone) ? CLI_DONE : cli_fail_detail(r, name);
	if (r == 0 && rm->json)
		rm_report(name, id);
	if (rm->first == CLI_DONE)
		rm->first = status;
}

static int rm_take(const sar_info *info, const sar_lease_info *lease, void *arg)
{
	struct rm *rm = arg;
	if (rm->count == rm->room) {
		size_t room = rm->room ? rm->room * 2 : 64;
		sar_info *grown = realloc(rm->found, room * sizeof(*grown));
		if (!grown)
			return 1;
		rm->found = grown;
		rm->room = room;
	}
	rm->found[rm->count++] = *info;
	return 0;
}

/* What is known is removed also when a part of the directory is missing. */
static void rm_prefix(struct rm *rm, const char *prefix)
{
	int r = sar_list_prefix(rm->s, prefix, rm_take, rm);
	if (r < 0)
		rm->first = cli_fail_detail(r, NULL);
	else if (r > 0)
		rm->first = cli_fail(-ENOMEM, "out of memory");
	for (size_t i = 0; r <= 0 && i < rm->count; i++)
		rm_one(rm, rm->found[i].name, rm->found[i].id, true);
	free(rm->found);
}

int rm_run(const struct cli_args *args)
{
	struct rm rm = {.json = args->json};
	if (args->prefix ? args->count > 0 || !*args->prefix : args->count == 0) {
		fprintf(stderr, "sarissa: rm takes names, or --prefix and a text that is not "
				"empty: sarissa rm NAME...|--prefix P\n");
		return CLI_USAGE;
	}
	rm.first = cli_open(args, &rm.s);
	if (rm.first != CLI_DONE)
		return rm.first;
	if (args->prefix)
		rm_prefix(&rm, args->prefix);
	for (int i = 0; i < args->count; i++)
		rm_one(&rm, args->names[i], cli_id(args->names[i]), false);
	sar_close(rm.s);
	int flushed = cli_flush();
	return rm.first != CLI_DONE ? rm.first : flushed;
}
