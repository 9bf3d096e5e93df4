/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chunks that come in parts, as a path on the way carries less than a chunk: frame.c brings parts,
 * each is kept here, and a chunk that is whole goes to in_edge.c as if it had come at once. It
 * knows nothing of how parts are sent.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_PART_H
#define SARISSA_DATAPLANE_CORE_PLAN_PART_H

#include "internal/record.h"
#include "core/wire/frame.h"
#include "core/wire/wire_field.h"

struct conn;
struct engine;

enum {
	PART_SLOT_BYTES = CHUNK_BYTES_MAX,
};

struct part_slot {
	uint32_t stream, chunk; /* as on the wire */
	uint8_t got;		/* bit per part */
};

struct engine_parts {
	uint64_t used; /* bit per slot */
	struct part_slot slot[PART_SLOTS];
	uint8_t *bytes; /* PART_SLOT_BYTES of each */
};

/* Of a chunk of so many bytes. */
static inline uint32_t part_count(uint32_t chunk_bytes)
{
	return (chunk_bytes + PART_BYTES - 1) / PART_BYTES;
}

/* The stream brings no more: what there is of its chunks goes, before its handle is used again. */
void part_forget(struct engine *e, uint32_t stream);

/* Takes a PART frame with so many bytes of payload. */
enum verdict part_take(struct engine *e, struct conn *c, const uint8_t *frame, uint16_t length);

#endif
