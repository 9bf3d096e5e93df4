/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contributions to a chunk, of a payload and of all LOCAL edges that have theirs, in as few passes
 * over memory as there can be. A chunk is marked torn while its bytes are not one number of whole
 * contributions: what a killed process leaves behind is found when it is opened.
 */
#ifndef SARISSA_DATAPLANE_CORE_PLAN_COMBINE_H
#define SARISSA_DATAPLANE_CORE_PLAN_COMBINE_H

#include "buffer.h"

struct engine;
struct in_edge;

enum { COUNT_TORN = 255 /* not ready and this: no count, as that is below need */ };
/* May anything still be added to this chunk? */
static inline bool combine_open(const struct buffer *b, uint32_t chunk)
{
	return !buffer_has(b, chunk) && (!b->counts || b->counts[chunk] < b->need);
}
/* Takes the payload (of edge i, not given before; may be NULL) and what LOCAL edges have. Returns
 * the contributions taken. A LOCAL edge that is alone is left to wait for a payload to be added to
 * in the same pass, if there is one to come. */
uint32_t combine_chunk(struct engine *e, struct buffer *b, uint32_t chunk, struct in_edge *i,
		       const uint8_t *payload);

/* Begins to fetch what combine_chunk() will touch, beside a payload. Of each range no more than
 * this: beyond it the processor's own prefetchers have caught on, and we would be in their way. */
enum { COMBINE_PREFETCH_BYTES = 1536 };

/* Is a chunk that arrives written past the caches? Its place is then not fetched to be overwritten,
 * which saves a third of the traffic of memory, and who reads it next has to wait for memory. So
 * only of large chunks and of objects that no cache would keep (docs/study/tried.md, The hot loop),
 * and where no edge of this node reads them. */
enum { COMBINE_PAST_CHUNK = 4096, COMBINE_PAST_SIZE = 32 << 20 };
bool combine_past_caches(const struct buffer *b);
void combine_prefetch(const struct buffer *b, uint32_t chunk);

#endif
