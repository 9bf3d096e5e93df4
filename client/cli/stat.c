/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa stat: one object, and who holds it. */
#include <stdio.h>
#include "cli.h"
#include "json.h"
#include "text.h"

enum { STAT_HOLDERS = 64 };

static void stat_json_holder(struct json *j, const sar_holder *h)
{
	json_object(j, NULL);
	json_unsigned(j, "node", h->node);
	json_bool(j, "complete", h->complete);
	json_unsigned(j, "ready", h->ready);
	if (h->upstream < 0)
		json_null(j, "upstream");
	else
		json_signed(j, "upstream", h->upstream);
	json_unsigned(j, "sending", h->sending);
	json_close(j, '}');
}

static void stat_json(const sar_info *info, const sar_holder *holder, int holders)
{
	struct json j;
	char id[TEXT_BYTES];
	json_begin(&j, stdout);
	json_string(&j, "id", text_id(id, info->id.bytes));
	json_string(&j, "name", info->name);
	json_unsigned(&j, "size", info->size);
	json_unsigned(&j, "generation", info->generation);
	if (info->local_ready == UINT64_MAX)
		json_null(&j, "local_ready");
	else
		json_unsigned(&j, "local_ready", info->local_ready);
	json_unsigned(&j, "copies", info->copies);
	json_unsigned(&j, "partial", info->partial);
	json_bool(&j, "inline", info->is_inline);
	json_array(&j, "holders");
	for (int i = 0; i < holders; i++)
		stat_json_holder(&j, &holder[i]);
	json_close(&j, ']');
	json_end(&j);
}

static void stat_print(const sar_info *info, const sar_holder *holder, int holders)
{
	char text[TEXT_BYTES];
	printf("name        ");
	text_safe(stdout, *info->name ? info->name : "-");
	printf("\nid          %s\n", text_id(text, info->id.bytes));
	printf("size        %s (%llu bytes)\n", text_size(text, info->size),
	       (unsigned long long)info->size);
	printf("generation  %llu\n", (unsigned long long)info->generation);
	if (info->local_ready == UINT64_MAX)
		printf("here        no\n");
	else
		printf("here        %s\n", info->local_ready >= info->size
						   ? "yes"
						   : text_size(text, info->local_ready));
	printf("copies      %u complete, %u arriving%s\n", info->copies, info->partial,
	       info->is_inline ? ", and the value in the directory" : "");
	if (holders > 0)
		printf("\n%5s  %-9s  %10s  %9s  %7s\n", "NODE", "STATE", "READY", "FED BY",
		       "SENDING");
	for (int i = 0; i < holders; i++) {
		const sar_holder *h = &holder[i];
		char from[TEXT_BYTES] = "-";
		if (h->upstream >= 0)
			snprintf(from, sizeof(from), "node %d", h->upstream);
		printf("%5u  %-9s  %10s  %9s  %7u\n", h->node,
		       h->complete ? "complete" : "arriving", text_size(text, h->ready), from,
		       h->sending);
	}
}

int stat_run(const struct cli_args *args)
{
	sar *s;
	sar_info info;
	sar_holder holder[STAT_HOLDERS];
	sar_id id = cli_id(args->names[0]);
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	int r = sar_info_get(s, id, &info);
	int holders = r < 0 ? r : sar_holders(s, id, holder, STAT_HOLDERS);
	if (holders < 0)
		status = cli_fail_detail(holders, args->names[0]);
	sar_close(s);
	if (status != CLI_DONE)
		return status;
	if (holders > STAT_HOLDERS)
		holders = STAT_HOLDERS;
	(args->json ? stat_json : stat_print)(&info, holder, holders);
	return cli_flush();
}
