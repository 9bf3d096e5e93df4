/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An object that is read while it is written. The writer publishes each piece of its standard
 * input, and readers on any nodes write it to theirs as it comes.
 *
 *     cc stream.c -o stream $(pkg-config --cflags --libs sarissa)
 *     ./stream read NAME > copy &
 *     ./stream write NAME BYTES < file
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sarissa/sarissa.h>

enum { PIECE = 1 << 16 };

static int failed(const char *what)
{
	fprintf(stderr, "stream: %s: %s\n", what, sar_error_detail());
	return 1;
}

static int stream_write(sar *s, const char *name, uint64_t size)
{
	sar_buffer b;
	if (sar_create(s, sar_id_of(name, strlen(name)), name, size, &b) < 0)
		return failed("create");
	while (b.ready < size) {
		size_t want = size - b.ready < PIECE ? (size_t)(size - b.ready) : PIECE;
		size_t got = fread((char *)b.data + b.ready, 1, want, stdin);
		if (got == 0) {
			fprintf(stderr, "stream: the input has ended too early\n");
			sar_abort(s, &b);
			return 1;
		}
		if (sar_publish(s, &b, b.ready + got) < 0)
			return failed("publish");
	}
	return sar_seal(s, &b) < 0 ? failed("seal") : 0;
}

/* The bytes before b.ready do not change any more. */
static int stream_read(sar *s, const char *name)
{
	sar_buffer b;
	uint64_t done = 0;
	if (sar_get_begin(s, sar_id_of(name, strlen(name)), SAR_FOREVER, &b) < 0)
		return failed("get");
	while (done < b.size) {
		if (sar_wait(s, &b, done + 1, SAR_FOREVER) < 0)
			return failed("wait"); /* the writer has given up, or has died */
		fwrite((const char *)b.data + done, 1, (size_t)(b.ready - done), stdout);
		fflush(stdout);
		done = b.ready;
	}
	sar_release(s, &b);
	return 0;
}

int main(int argc, char **argv)
{
	sar *s;
	int reads = argc == 3 && strcmp(argv[1], "read") == 0;
	if (!reads && (argc != 4 || strcmp(argv[1], "write") != 0)) {
		fprintf(stderr, "usage: stream read NAME | stream write NAME BYTES\n");
		return 2;
	}
	if (sar_open(NULL, &s) < 0)
		return failed("open");
	int status = reads ? stream_read(s, argv[2])
			   : stream_write(s, argv[2], strtoull(argv[3], NULL, 10));
	sar_close(s); /* what has failed is given up */
	return status;
}
