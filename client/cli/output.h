/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where get writes: standard output, a device or pipe, or a file. A file appears under its name
 * only when it is whole: until then the bytes are in a temporary file beside it, which is removed
 * on error, SIGINT, SIGTERM and SIGHUP. One output per process.
 */
#ifndef SARISSA_CLI_OUTPUT_H
#define SARISSA_CLI_OUTPUT_H

#include <stdint.h>

struct output {
	const char *name; /* for messages */
	char *target;	  /* where the temporary file goes in the end; NULL without one */
	int fd;
};

/* Opens path, "-" meaning standard output. An exit status; has said why. */
int output_open(struct output *o, const char *path);
/* Asks the file system for room. An exit status; has said why. */
int output_reserve(struct output *o, uint64_t bytes);
int output_write(struct output *o, const void *bytes, uint64_t count);
/* Takes all back that was written. CLI_FAILED, silently, where that cannot be done. */
int output_rewind(struct output *o, uint64_t written);
/* Makes the file appear, or takes it away when keep is false. */
int output_close(struct output *o, int keep);

#endif
