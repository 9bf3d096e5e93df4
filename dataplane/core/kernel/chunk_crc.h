/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CRC32C of the payload of chunks, remembered from when a chunk came in or was sent first, so
 * that who sends it on, or to several, does not read it again. in_edge.c and transmit.c give chunks
 * a place, wire.c seals packets with what it holds. The table has a fixed size: what another chunk
 * has displaced is summed again. It knows nothing of packets and connections.
 */
#ifndef SARISSA_DATAPLANE_CORE_KERNEL_CHUNK_CRC_H
#define SARISSA_DATAPLANE_CORE_KERNEL_CHUNK_CRC_H

#include "core/plan/buffer.h"
#include "crc.h"
#include "core/engine_state.h"

enum {
	CHUNK_CRCS = 1 << 16,	/* of an engine: 92 MB in chunks of 1,408 bytes */
	CHUNK_CRC_BYTES = 1024, /* of the smallest chunks: a sum of less costs as much */
};

struct chunk_crc {
	uint32_t buffer; /* number of the buffer that the chunk is of; 0: none */
	uint32_t chunk;
	uint32_t crc; /* of its bytes, begun with 0 */
};

/* All chunks but a shorter one at the end have a place: their length is known in advance. */
static inline struct chunk_crc *chunk_crc_place(struct engine *e, struct buffer *b, uint32_t chunk,
						uint32_t bytes)
{
	if (bytes != b->chunk_bytes || bytes < CHUNK_CRC_BYTES || !e->carries)
		return NULL;
	if (b->carry == 0)
		b->carry = crc_carry_by(bytes);
	return &e->crcs[(chunk + b->number * 0x9e3779b1u) % CHUNK_CRCS];
}

/* The chunk has come, intact: from the state of the packet's CRC before and behind its bytes. */
static inline void chunk_crc_came(struct engine *e, struct buffer *b, uint32_t chunk,
				  uint32_t bytes, const struct crc_span *span)
{
	struct chunk_crc *place;

	if (list_empty(&b->out_edges)) /* as far as is known, nobody else will want it */
		return;
	place = chunk_crc_place(e, b, chunk, bytes);
	if (place)
		*place = (struct chunk_crc){b->number, chunk,
					    span->behind ^ crc_carry(span->before, b->carry)};
}

/* For the packet that the chunk leaves in, where no place is set yet. again: it was lost before;
 * perhaps what is remembered was wrong. */
static inline void chunk_crc_leaves(struct engine *e, struct buffer *b, uint32_t chunk,
				    uint32_t bytes, bool again, struct packet_crc *out)
{
	struct chunk_crc *place;

	if (b->out_edges.next == b->out_edges.prev && list_empty(&b->in_edges))
		return; /* it leaves once */
	place = chunk_crc_place(e, b, chunk, bytes);
	*out = (struct packet_crc){place, b->number, chunk, b->carry};
	if (place && again && place->buffer == b->number && place->chunk == chunk)
		place->buffer = 0;
}

static inline bool chunk_crc_known(const struct packet_crc *p)
{
	return p->place && p->place->buffer == p->buffer && p->place->chunk == p->chunk;
}

#endif
