/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfer.h"

#include "cli/support/json.h"
#include "cli/support/text.h"

void transfer_report(FILE *file, const char *name, uint64_t bytes, uint64_t started_ns)
{
	struct json j;
	char id[TEXT_BYTES];
	json_begin(&j, file);
	json_string(&j, "name", name);
	json_string(&j, "id", text_id(id, cli_id(name).bytes));
	json_unsigned(&j, "size", bytes);
	json_unsigned(&j, "duration_ns", cli_now_ns() - started_ns);
	json_end(&j);
}
