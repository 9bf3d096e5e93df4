/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where get writes: a descriptor of the caller, a device or pipe, or a file. A file appears under
 * its name only when it is whole: until then the bytes are in a file without a name in its folder,
 * which ends with the process. A file that cannot be replaced (one that is mounted alone, or in a
 * folder that may not be written to) is written in place, once all bytes are there. One output per
 * process.
 */
#ifndef SARISSA_CLIENT_CLI_SUPPORT_OUTPUT_H
#define SARISSA_CLIENT_CLI_SUPPORT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

struct output {
	const char *name; /* for messages */
	char *target;	  /* the file that shall be there in the end; NULL: no file */
	bool in_place;	  /* fd is the target itself */
	bool replaces;	  /* the target exists */
	bool unnamed;	  /* fd has no name yet */
	bool is_stdout;
	unsigned mode; /* of the target */
	uint64_t written;
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
