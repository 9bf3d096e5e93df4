/* SPDX-License-Identifier: BSD-3-Clause */
/* sarissa get: writes the object out while it arrives. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "cli/cli.h"
#include "cli/support/output.h"
#include "cli/support/patience.h"
#include "cli/support/progress.h"
#include "transfer.h"

enum { GET_RETRY = -1 };

struct get {
	const char *name;
	sar *s;
	uint64_t until_ns; /* UINT64_MAX: no limit */
	bool waits;	   /* --timeout is not 0 */
	bool begun;	   /* the progress line */
	struct output output;
	struct progress progress;
	struct patience patience;
};

/* The rest of --timeout: not 0 unless that is, because 0 asks for what is there now. */
static int64_t get_left(const struct get *g)
{
	if (g->until_ns == UINT64_MAX)
		return SAR_FOREVER;
	uint64_t now_ns = cli_now_ns();
	return g->until_ns > now_ns ? (int64_t)(g->until_ns - now_ns) : g->waits;
}

/* Waits for one more block, or for all bytes where a part of them would be in the way. With a
 * progress line the wait is cut, so that the line shows a stall. */
static int get_more(struct get *g, sar_buffer *b)
{
	const int64_t slice_ns = 500000000;
	uint64_t upto = g->output.in_place ? b->size : b->ready + TRANSFER_BLOCK_BYTES;
	for (;;) {
		int64_t left = get_left(g);
		bool cut = g->progress.on && left > slice_ns;
		int r = sar_wait(g->s, b, upto, cut ? slice_ns : left);
		if (r != -ETIMEDOUT || !cut)
			return r;
		progress_show(&g->progress, b->ready, b->size);
	}
}

/* Another generation takes the object's place: what was written is of no use. GET_RETRY, or an exit
 * status. */
static int get_take_back(struct get *g, uint64_t written)
{
	if (output_rewind(&g->output, written) == CLI_DONE)
		return GET_RETRY;
	return cli_fail(-ERESTART,
			"%s: another generation takes its place, but %llu bytes of this one are "
			"in %s already: get it again",
			g->name, (unsigned long long)written, g->output.name);
}

/* An exit status, or GET_RETRY. */
static int get_copy(struct get *g, sar_buffer *b)
{
	uint64_t written = 0;
	for (;;) {
		bool early = g->output.in_place && b->ready < b->size;
		uint64_t bytes = early ? 0 : b->ready - written;
		if (bytes > TRANSFER_BLOCK_BYTES)
			bytes = TRANSFER_BLOCK_BYTES;
		int status = output_write(&g->output, (uint8_t *)b->data + written, bytes);
		if (status != CLI_DONE)
			return status;
		written += bytes;
		patience_moved(&g->patience);
		progress_show(&g->progress, written, b->size);
		if (written == b->size)
			return CLI_DONE;
		int r = early || written == b->ready ? get_more(g, b) : 0;
		if (r == -ERESTART)
			return get_take_back(g, written);
		if (r < 0)
			return cli_fail_detail(r, g->name);
	}
}

static int get_object(struct get *g, uint64_t *size)
{
	sar_buffer b;
	int r = sar_get_begin(g->s, cli_id(g->name), get_left(g), &b);
	if (r < 0)
		return cli_fail_detail(r, g->name);
	*size = b.size;
	if (g->begun)
		progress_restart(&g->progress, b.ready);
	else
		progress_begin(&g->progress, "get", g->name, b.ready);
	g->begun = true;
	int status = output_reserve(&g->output, b.size);
	if (status == CLI_DONE)
		status = get_copy(g, &b);
	if (status != GET_RETRY)
		progress_end(&g->progress, status == CLI_DONE ? b.size : 0);
	sar_release(g->s, &b);
	return status;
}

/* Reads OFFSET:BYTES. NULL: the whole object. */
static int get_range_read(const char *text, sar_range *out)
{
	char *end = "";
	errno = 0;
	*out = (sar_range){0};
	if (!text)
		return CLI_DONE;
	if (isdigit(*text))
		out->offset = strtoull(text, &end, 10);
	if (*end == ':' && isdigit(end[1])) {
		out->bytes = strtoull(end + 1, &end, 10);
		if (*end == '\0' && errno == 0)
			return CLI_DONE;
	}
	return cli_wrong("get",
			 "--range %s: name the first byte and the number of bytes, such as 0:1024",
			 text);
}

/* One call, because its bytes are of one generation. */
static int get_range(struct get *g, const sar_range *wanted)
{
	sar_range range = *wanted;
	range.where = malloc(range.bytes + 1);
	if (!range.where)
		return cli_fail(-ENOMEM, "no memory for %llu bytes: get them in parts",
				(unsigned long long)range.bytes);
	int r = sar_get_ranges(g->s, cli_id(g->name), &range, 1, get_left(g));
	int status = r < 0 ? cli_fail_detail(r, g->name)
			   : output_write(&g->output, range.where, range.bytes);
	free(range.where);
	return status;
}

int get_run(const struct cli_args *args)
{
	sar_range range;
	struct get g = {.name = args->names[0], .until_ns = UINT64_MAX};
	uint64_t started_ns = cli_now_ns(), size = 0;
	g.waits = args->timeout_ns > 0;
	if (args->timeout_ns != SAR_FOREVER)
		g.until_ns = started_ns + (uint64_t)args->timeout_ns;
	int status = cli_check_name(g.name);
	if (status == CLI_DONE)
		status = get_range_read(args->range, &range);
	if (status == CLI_DONE)
		status = cli_open(args, &g.s);
	if (status != CLI_DONE)
		return status;
	status = output_open(&g.output, args->names[1]);
	if (status == CLI_DONE) {
		patience_begin(&g.patience, g.s, g.name, args->timeout_ns != SAR_FOREVER);
		size = range.bytes;
		do
			status = args->range ? get_range(&g, &range) : get_object(&g, &size);
		while (status == GET_RETRY);
		patience_end(&g.patience);
	}
	bool done = status == CLI_DONE;
	int closed = output_close(&g.output, done);
	sar_close(g.s);
	if (!done || closed != CLI_DONE)
		return done ? closed : status;
	if (args->json) /* beside the object itself when that goes to standard output */
		transfer_report(g.output.is_stdout ? stderr : stdout, g.name, size, started_ns);
	return args->json ? cli_flush() : CLI_DONE;
}
