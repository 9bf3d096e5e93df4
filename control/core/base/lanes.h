/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a large object is cut into stripes, one per worker. Every node cuts by itself, for its own
 * workers; where two nodes cut differently a stream carries what one stripe of each has in common.
 *
 * A stripe begins at a multiple of 512 chunks: no two workers write one cache line of the bitmap.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_LANES_H
#define SARISSA_CONTROL_CORE_BASE_LANES_H

#include "internal/ids.h"

enum {
	STRIPES_MAX = 8,
	STRIPE_BYTES_MIN = 8 << 20,
	STRIPE_GRAIN_CHUNKS = 512,
};

/* On a node with so many workers; at least 1. */
uint32_t stripe_count(uint64_t size, uint32_t workers);
/* The chunk at which it begins; that of stripe number `stripes` is the end. */
uint32_t stripe_first(uint32_t chunks, uint32_t stripes, uint32_t stripe);
/* The one that a chunk belongs to. */
uint32_t stripe_of(uint32_t chunks, uint32_t stripes, uint32_t chunk);
/* Whose it is, of a node's workers. Stripe 0 also is all of an object that is not cut. */
unsigned stripe_worker(const struct object_id *id, uint32_t workers, uint32_t stripe);
/* Makes of an id one that is at home where that stripe of another object is. */
void stripe_settle(struct object_id *id, const struct object_id *other, uint32_t stripe);

#endif
