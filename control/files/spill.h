/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The folder of --spill: objects that the core puts into files and takes back (core/store/spill.h).
 * Reads and writes are io_uring's, with O_DIRECT, between the store's memory and the file: the loop
 * only computes checksums. One thread. A file holds a header (spill_file.h) and the bytes.
 */
#ifndef SARISSA_CONTROL_FILES_SPILL_H
#define SARISSA_CONTROL_FILES_SPILL_H

#include <liburing.h>
#include <uv.h>
#include "core/control.h"
#include "spill_file.h"

enum { SPILL_OPS = 8 }; /* as many as the core has under way at a time */

struct host;

struct spill_op {
	struct spill *all;
	bool used, read;
	bool stale; /* of a store that is gone: the core must not hear of it */
	struct control_spill file;
	struct spill_header *header; /* SPILL_BLOCK bytes, aligned */
	struct spill_sum *sum;
	uint64_t offset; /* in the store */
	uint64_t done;	 /* bytes of the object */
	uint32_t piece;	 /* bytes that are under way; 0: the header is */
	int fd;
};

struct spill {
	struct host *host;
	const char *path; /* NULL: no --spill */
	bool logged;	  /* the operator, that no file can be made */
	int folder;
	int event;
	struct io_uring ring;
	uv_poll_t poll;
	struct spill_op op[SPILL_OPS];
};

/* Opens the folder, which no other node may use. Returns 0, or 1 and one line said why. */
int spill_open(struct spill *s, struct host *host, const char *path);
/* The store is another one: what is under way is of no use. */
void spill_forget(struct spill *s);
/* Removes the files that the core knows nothing of. */
void spill_sweep(struct spill *s);

/* For struct control_ops; arg: the host. */
int spill_op_write(void *arg, const struct control_spill *file, uint64_t offset);
int spill_op_read(void *arg, const struct control_spill *file, uint64_t offset);
void spill_op_remove(void *arg, const struct control_spill *file);
int spill_op_find(void *arg, const struct control_spill *file);

#endif
