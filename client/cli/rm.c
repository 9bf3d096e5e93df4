/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa rm: goes on after an error; the exit status is that of the first one. */
#include <stdio.h>
#include "cli.h"
#include "json.h"
#include "text.h"

static void rm_report(const char *name)
{
	struct json j;
	char id[TEXT_BYTES];
	json_begin(&j, stdout);
	json_string(&j, "name", name);
	json_string(&j, "id", text_id(id, cli_id(name).bytes));
	json_bool(&j, "removed", true);
	json_end(&j);
}

int rm_run(const struct cli_args *args)
{
	sar *s;
	int first = cli_open(args, &s);
	if (first != CLI_DONE)
		return first;
	for (int i = 0; i < args->count; i++) {
		int r = sar_delete(s, cli_id(args->names[i]));
		int status = r == 0 ? CLI_DONE : cli_fail_detail(r, args->names[i]);
		if (r == 0 && args->json)
			rm_report(args->names[i]);
		if (first == CLI_DONE)
			first = status;
	}
	sar_close(s);
	int flushed = cli_flush();
	return first != CLI_DONE ? first : flushed;
}
