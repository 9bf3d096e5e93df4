/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What becomes of the objects whose names begin with PREFIX, on all nodes, until COUNT of them are
 * complete. Those that exist already come first.
 *
 *     cc watch.c -o watch $(pkg-config --cflags --libs sarissa)
 *     ./watch PREFIX COUNT
 */
#include <stdio.h>
#include <stdlib.h>
#include <sarissa/sarissa.h>

static const char *const words[] = {
	[SAR_EVENT_APPEARED] = "appeared",
	[SAR_EVENT_COMPLETE] = "complete",
	[SAR_EVENT_GONE] = "gone",
	[SAR_EVENT_MISSED] = "events are missing: list the objects",
};

static int failed(const char *what)
{
	fprintf(stderr, "watch: %s\n", what);
	return 1;
}

static int watch(sar_queue *q, const char *prefix, int count)
{
	if (sar_submit_watch(q, prefix, 0) < 0)
		return failed(sar_error_detail());
	while (count > 0) {
		sar_completion c;
		if (sar_poll_wait(q, &c, 1, 1, SAR_FOREVER) != 1)
			return failed(sar_error_detail());
		if (!(c.flags & SAR_MORE))
			return failed(sar_completion_detail(q, &c));
		printf("%s %s\n", words[c.event], sar_completion_detail(q, &c));
		fflush(stdout);
		count -= c.event == SAR_EVENT_COMPLETE;
	}
	return 0;
}

int main(int argc, char **argv)
{
	sar *s;
	sar_queue *q;
	if (argc != 3) {
		fprintf(stderr, "usage: watch PREFIX COUNT\n");
		return 2;
	}
	if (sar_open(NULL, &s) < 0 || sar_queue_open(s, 1, &q) < 0)
		return failed(sar_error_detail());
	int status = watch(q, argv[1], atoi(argv[2]));
	sar_queue_close(q);
	sar_close(s);
	return status;
}
