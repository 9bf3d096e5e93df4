/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One file of the folder of --spill: its name, its header, its checksum. Nothing in a file is
 * trusted.
 */
#ifndef SARISSA_CONTROL_FILES_SPILL_FILE_H
#define SARISSA_CONTROL_FILES_SPILL_FILE_H

#include <stdbool.h>
#include "core/control.h"

#define SPILL_MAGIC 0x314c495053524153ull /* "SARSPIL1" */

enum {
	SPILL_BLOCK = 4096,    /* header, and what lengths and offsets are multiples of */
	SPILL_PIECE = 4 << 20, /* bytes of one read or write */
	SPILL_NAME = 32 + 1 + 16 + 6 + 1,
};

struct spill_header { /* the first block; the bytes follow, up to whole blocks */
	uint64_t magic;
	struct object_id id;
	uint64_t generation, size, incarnation;
	uint64_t bytes_sum;  /* XXH3-64 of the object's bytes */
	uint64_t header_sum; /* of all before */
};

/* A checksum that is being made. */
struct spill_sum;
struct spill_sum *spill_file_sum_new(void);
void spill_file_sum_begin(struct spill_sum *s);
void spill_file_sum_add(struct spill_sum *s, const void *bytes, uint64_t count);
uint64_t spill_file_sum_end(const struct spill_sum *s);

/* "ID-GENERATION.spill", in hexadecimal. */
void spill_file_name(const struct control_spill *file, char out[SPILL_NAME]);
/* False: it is the name of something else. */
bool spill_file_parse_name(const char *name, struct object_id *id, uint64_t *generation);

void spill_file_header_make(struct spill_header *h, const struct control_spill *file, uint64_t sum);
/* Whether it is the header of that file. */
bool spill_file_header_is(const struct spill_header *h, const struct control_spill *file);
/* Of the whole file. */
uint64_t spill_file_bytes(const struct control_spill *file);

#endif
