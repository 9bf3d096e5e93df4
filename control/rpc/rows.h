/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fields of all messages as rows: where a field lies in the struct of protobuf-c, where in that
 * of message.h, and what is valid. pack.c and unpack.c walk the rows; check.c has the rules that
 * concern several fields. Only for this folder and its tests.
 */
#ifndef SARISSA_CONTROL_RPC_ROWS_H
#define SARISSA_CONTROL_RPC_ROWS_H

#include "codec.h"
#include "control.pb-c.h"

/* Memory for one message, 16-aligned. A message that asks for more is refused. */
struct rows_arena {
	uint8_t *memory;
	size_t used, bytes;
};

/* The field of protobuf-c, and what it is here. */
enum row_op {
	ROW_8, /* a number */
	ROW_16,
	ROW_32,
	ROW_64,
	ROW_DELTA_32, /* the difference to the item before: a number */
	ROW_DELTA_64,
	ROW_SIXTEEN, /* bytes: 16 */
	ROW_TEXT,    /* bytes: with a zero behind them, and none inside */
	ROW_META,    /* bytes: struct object_meta */
	ROW_RAILS,   /* bytes: struct message_rails */
	ROW_BYTES,   /* bytes: a pointer to items of `size` bytes, and their count */
	ROW_ARRAY,   /* repeated numbers: an array and its count, in items of `words` numbers */
	ROW_WHOLE,   /* the same: always all of it */
	ROW_PART,    /* message: a struct, which is there if its first field is not 0 */
	ROW_LINKED,  /* message: a pointer to a struct; NULL: none */
	ROW_LIST,    /* repeated messages: an array of structs and its count */
	ROW_PAGE,    /* repeated messages: a pointer to structs, and their count */
};

struct row {
	uint8_t op;	    /* enum row_op */
	uint8_t add;	    /* numbers: the wire has so much more, modulo their size */
	uint8_t words;	    /* ROW_ARRAY */
	uint16_t wire, n;   /* offsets in protobuf-c's struct: the field; its n_ */
	uint16_t at, count; /* offsets here: the field; its uint32_t count */
	uint16_t size;	    /* bytes: the field, one item, or one number of an array */
	uint32_t most;	    /* bytes of a text, or items */
	uint64_t low, span; /* numbers on the wire: low to low + span, modulo their size */
	const struct rows *of;
};

struct rows { /* of one struct */
	const ProtobufCMessageDescriptor *wire;
	const struct row *row;
	uint16_t count;
	uint16_t bytes; /* of the struct here */
};

struct rows_kind {
	uint32_t kind; /* enum message_kind; NONE: there is no such body */
	uint32_t at;   /* offset of its struct in struct message */
	const struct rows *rows;
	/* After the rows; NULL: nothing to do. */
	void (*pack)(const struct message *m, struct rows_arena *a, void *wire);
	bool (*check)(const void *wire, struct rows_arena *a, struct message *m);
};

enum { ROWS_CASES = RPC__ENVELOPE__BODY_GROUPED + 1 };

extern const struct rows_kind rows_kinds[ROWS_CASES]; /* by body_case */
extern const uint8_t rows_cases[MESSAGE_KINDS];	      /* kind -> body_case */
extern const char *const rows_names[MESSAGE_KINDS];
extern const struct rows rows_plan;

/* data: a rows_arena; NULL when it is used up. */
void *rows_alloc(void *data, size_t size);

/* false: the arena is used up. before: the item before, for ROW_DELTA. */
bool pack_rows(const struct rows *rows, const void *from, const void *before, struct rows_arena *a,
	       void *wire);
void pack_plan(const struct message *m, struct rows_arena *a, void *wire);
void pack_reduced(const struct message *m, struct rows_arena *a, void *wire);

/* out: zeroed. false: not valid. */
bool unpack_rows(const struct rows *rows, const void *wire, const void *before,
		 struct rows_arena *a, void *out);

#endif
