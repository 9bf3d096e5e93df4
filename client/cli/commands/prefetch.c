/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sarissa prefetch: brings complete copies of an object to nodes before anybody there asks for it.
 * The row in table.h names it; it knows nothing of how the copies travel.
 */
#include <errno.h>
#include <stdio.h>
#include "cli/cli.h"
#include "cli/support/json.h"
#include "cli/support/patience.h"
#include "cli/support/text.h"
#include "internal/program/arguments.h"

static void prefetch_json(const char *name, int nodes, uint64_t duration_ns)
{
	char id[TEXT_BYTES];
	struct json j;
	json_begin(&j, stdout);
	json_string(&j, "name", name);
	json_string(&j, "id", text_id(id, cli_id(name).bytes));
	if (nodes > 0)
		json_signed(&j, "nodes", nodes);
	else
		json_null(&j, "nodes"); /* all */
	json_unsigned(&j, "duration_ns", duration_ns);
	json_end(&j);
}

int prefetch_run(const struct cli_args *args)
{
	static uint32_t node[SAR_NODES_MAX];
	const char *name = args->names[0];
	struct patience patience;
	uint64_t number, started_ns = cli_now_ns();
	int status = cli_check_name(name), nodes = args->count - 1;
	sar *s;
	for (int i = 0; i < nodes; i++) {
		if (!argument_number(args->names[1 + i], 10, 0, SAR_NODES_MAX - 1, &number))
			return cli_wrong("prefetch", "'%s' is not the number of a node",
					 args->names[1 + i]);
		node[i] = (uint32_t)number;
	}
	if (status == CLI_DONE)
		status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	patience_begin(&patience, s, name, args->timeout_ns != SAR_FOREVER);
	int r = sar_broadcast(s, cli_id(name), node, (unsigned)nodes, args->timeout_ns);
	patience_end(&patience);
	if (r < 0)
		status = cli_fail_detail(r, name);
	else if (args->json)
		prefetch_json(name, nodes, cli_now_ns() - started_ns);
	return cli_close(s, status);
}
