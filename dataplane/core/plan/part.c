/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include "part.h"
#include "core/conn/conn.h"
#include "in_edge.h"

/*
 * A slot is taken by the first part of a chunk and free again when all of it has gone on. A part
 * that is acknowledged stays, so a slot is never taken away while its stream lives: where none is
 * free a part is refused, and comes again. A stream that ends gives its slots back.
 */

static struct part_slot *part_find(struct engine_parts *p, uint32_t stream, uint32_t chunk)
{
	for (uint64_t used = p->used; used != 0; used &= used - 1) {
		struct part_slot *s = &p->slot[__builtin_ctzll(used)];
		if (s->stream == stream && s->chunk == chunk)
			return s;
	}
	return NULL;
}

static void input_free(struct engine_parts *p, const struct part_slot *s)
{
	assert(p->used >> (s - p->slot) & 1);
	p->used &= ~(UINT64_C(1) << (s - p->slot));
}

void part_forget(struct engine *e, uint32_t stream)
{
	struct engine_parts *p = &e->parts;

	for (uint64_t used = p->used; used != 0; used &= used - 1) {
		struct part_slot *s = &p->slot[__builtin_ctzll(used)];
		if (s->stream == stream)
			input_free(p, s);
	}
}

/* For another chunk of this connection; NULL: it has enough, or there is none. */
static struct part_slot *part_new(struct engine *e, const struct conn *c)
{
	struct engine_parts *p = &e->parts;
	int kept = 0;

	for (uint64_t used = p->used; used != 0; used &= used - 1) {
		const struct in_edge *i = in_edge_find(e, p->slot[__builtin_ctzll(used)].stream);

		if (i && i->conn == c)
			kept = PART_SLOTS_KEPT;
	}
	if (PART_SLOTS - __builtin_popcountll(p->used) <= kept)
		return NULL;
	return &p->slot[__builtin_ctzll(~p->used)];
}

/* Whole parts of PART_BYTES, or as far as the end of the chunk; 0: neither. */
static uint32_t part_mask(uint32_t offset, uint32_t length, uint32_t chunk_bytes)
{
	if (offset % PART_BYTES != 0 || length == 0 || offset >= chunk_bytes ||
	    length > chunk_bytes - offset ||
	    (length % PART_BYTES != 0 && length != chunk_bytes - offset))
		return 0;
	return ((UINT32_C(1) << part_count(length)) - 1) << (offset / PART_BYTES);
}

/* Of the chunk that the frame speaks of: where its parts are; NULL: there is no room, counted. */
static struct part_slot *part_slot(struct engine *e, const struct conn *c, const uint8_t *frame)
{
	uint32_t stream = wire_get32(frame + DATA_AT_STREAM);
	uint32_t chunk = wire_get32(frame + DATA_AT_CHUNK);
	struct part_slot *s = part_find(&e->parts, stream, chunk);

	if (s)
		return s;
	s = part_new(e, c->main);
	if (!s) {
		e->count->drop_part_full++;
		return NULL;
	}
	assert((e->parts.used >> (s - e->parts.slot) & 1) == 0);
	*s = (struct part_slot){.stream = stream, .chunk = chunk};
	e->parts.used |= UINT64_C(1) << (s - e->parts.slot);
	return s;
}

/* The parts in mask have come: keeps them, and passes the chunk on when it is whole. */
static enum verdict part_keep(struct engine *e, struct conn *c, const uint8_t *frame,
			      uint16_t length, uint32_t mask, uint32_t chunk_bytes)
{
	struct engine_parts *p = &e->parts;
	struct part_slot *s = part_slot(e, c, frame);

	if (!s)
		return VERDICT_REFUSED;
	uint8_t *bytes = p->bytes + (size_t)(s - p->slot) * PART_SLOT_BYTES;
	memcpy(bytes + wire_get16(frame + PART_AT_OFFSET), frame + PART_FRAME_BYTES, length);
	assert(chunk_bytes <= PART_SLOT_BYTES);
	uint32_t got = s->got | mask;
	if (got == (UINT32_C(1) << part_count(chunk_bytes)) - 1) {
		if (in_edge_take(e, c, frame, bytes, (uint16_t)chunk_bytes, NULL) != VERDICT_TAKEN)
			return VERDICT_REFUSED; /* this part comes again */
		input_free(p, s);
	}
	s->got = (uint8_t)got;
	return VERDICT_TAKEN;
}

/* Parts of a chunk that is there already and that no slot waits for. One of them counts for all. */
static enum verdict part_again(struct engine *e, struct conn *c, const uint8_t *frame,
			       uint32_t mask, uint32_t chunk_bytes)
{
	if (mask >> (part_count(chunk_bytes) - 1) == 0)
		return VERDICT_TAKEN;
	return in_edge_take(e, c, frame, NULL, (uint16_t)chunk_bytes, NULL);
}

/* [P9.1] */
enum verdict part_take(struct engine *e, struct conn *c, const uint8_t *frame, uint16_t length)
{
	const struct in_edge *i = in_edge_find(e, wire_get32(frame + DATA_AT_STREAM));
	uint32_t place = i ? wire_get32(frame + DATA_AT_CHUNK) - i->origin_first : 0;

	if (!i || i->conn != c->main || place >= i->end - i->first) /* which counts it */
		return in_edge_take(e, c, frame, frame + PART_FRAME_BYTES, length, NULL);
	uint32_t chunk = i->first + place, chunk_bytes = buffer_chunk_length(i->buffer, chunk);
	uint32_t mask = part_mask(wire_get16(frame + PART_AT_OFFSET), length, chunk_bytes);
	if (mask == 0) {
		e->count->drop_chunk_size++;
		return VERDICT_REFUSED;
	}
	uint32_t named = wire_get32(frame + DATA_AT_CHUNK);
	bool again = in_edge_has(i, chunk) && !part_find(&e->parts, i->handle, named);
	enum verdict v = again ? part_again(e, c, frame, mask, chunk_bytes)
			       : part_keep(e, c, frame, length, mask, chunk_bytes);
	e->count->rx_parts += v == VERDICT_TAKEN;
	return v;
}
