/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa watch: a line for each object that appears, is complete, or goes away. */
#include <stdio.h>
#include "cli/cli.h"
#include "cli/support/json.h"
#include "cli/support/patience.h"
#include "cli/support/text.h"

static const char *const watch_events[] = {"event", "appeared", "complete", "gone", "missed"};

static const char *watch_event(uint32_t event)
{
	return watch_events[event < sizeof(watch_events) / sizeof(*watch_events) ? event : 0];
}

static void watch_json(sar_queue *q, const sar_completion *c)
{
	char id[TEXT_BYTES];
	struct json j;
	json_begin(&j, stdout);
	json_string(&j, "event", watch_event(c->event));
	if (c->event != SAR_EVENT_MISSED) {
		json_string(&j, "name", sar_completion_detail(q, c));
		json_string(&j, "id", text_id(id, c->id.bytes));
		json_unsigned(&j, "size", c->value);
	}
	json_end(&j);
}

static void watch_line(sar_queue *q, const sar_completion *c)
{
	const char *name = sar_completion_detail(q, c);
	char size[TEXT_BYTES], id[TEXT_BYTES];
	if (c->event == SAR_EVENT_MISSED) {
		printf("%-8s  some events are missing: see sarissa ls\n", watch_event(c->event));
		return;
	}
	printf("%-8s  %10s  ", watch_event(c->event), text_size(size, c->value));
	if (*name)
		text_safe(stdout, name);
	else
		printf("id:%s", text_id(id, c->id.bytes));
	putchar('\n');
}

/* Until the watch ends, or nobody reads any more. */
static int watch_follow(const struct cli_args *args, sar_queue *q, struct patience *patience)
{
	sar_completion c;
	for (;;) {
		int r = sar_poll_wait(q, &c, 1, 1, SAR_FOREVER);
		patience_moved(patience);
		if (r < 0)
			return cli_fail_detail(r, NULL);
		if (r == 0)
			continue;
		if (!(c.flags & SAR_MORE))
			return cli_fail(c.result, "%s", sar_completion_detail(q, &c));
		if (args->json)
			watch_json(q, &c);
		else
			watch_line(q, &c);
		r = cli_flush();
		if (r != CLI_DONE)
			return r;
	}
}

int watch_run(const struct cli_args *args)
{
	sar *s;
	sar_queue *q;
	struct patience patience;
	int status = cli_open(args, &s);
	if (status != CLI_DONE)
		return status;
	int r = sar_queue_open(s, 1, &q);
	if (r == 0) {
		r = sar_submit_watch(q, args->count ? args->names[0] : NULL, 0);
		patience_begin(&patience, s, NULL, true);
		status = r < 0 ? cli_fail_detail(r, NULL) : watch_follow(args, q, &patience);
		patience_end(&patience);
		sar_queue_close(q);
	} else {
		status = cli_fail_detail(r, NULL);
	}
	sar_close(s);
	return status;
}
