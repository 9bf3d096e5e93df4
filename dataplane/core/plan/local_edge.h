/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LOCAL edges: the chunks of one buffer that go into another of the same engine. What is ready when
 * a packet is combined is taken along with it (combine.c), all that comes late is swept between
 * turns.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_LOCAL_EDGE_H
#define SARISSA_DATAPLANE_CORE_PLAN_LOCAL_EDGE_H

#include "in_edge.h"

enum reason local_edge_open(struct engine *e, const struct record *r);
/* Chunks from..to - 1 of the source have become ready. */
void local_edge_wake(struct engine *e, struct in_edge *i, uint32_t from, uint32_t to);
/* Applies what has come late, for a bounded while; the rest waits for the next turn. */
void local_edge_sweep(struct engine *e);
/* Could it contribute this chunk of its buffer now? */
static inline bool local_edge_has(const struct in_edge *i, uint32_t chunk)
{
	return chunk >= i->first && chunk < i->end && i->source &&
	       !(i->took[chunk / 64] >> (chunk % 64) & 1) &&
	       buffer_has(i->source, i->origin_first + (chunk - i->first)) &&
	       !buffer_withholds(i->source, i->origin_first + (chunk - i->first));
}
static inline const uint8_t *local_edge_chunk(const struct in_edge *i, uint32_t chunk)
{
	return i->source->data +
	       (uint64_t)(i->origin_first + (chunk - i->first)) * i->source->chunk_bytes;
}

#endif
