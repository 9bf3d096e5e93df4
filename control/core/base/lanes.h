/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a large object is cut into lanes, one per worker. Every node cuts by itself, for its own
 * workers; where two nodes cut differently a stream carries what one lane of each has in common.
 *
 * A lane begins at a multiple of 512 chunks: no two workers write one cache line of the bitmap.
 */
#ifndef SARISSA_CONTROL_CORE_BASE_LANES_H
#define SARISSA_CONTROL_CORE_BASE_LANES_H

#include "internal/ids.h"

enum {
	LANES_MAX = 8,
	LANE_BYTES_MIN = 8 << 20,
	LANE_GRAIN_CHUNKS = 512,
};

/* The number of lanes on a node with so many workers; at least 1. */
uint32_t lane_count(uint64_t size, uint32_t workers);
/* The first chunk of a lane; that of lane number `lanes` is the end. */
uint32_t lane_first(uint32_t chunks, uint32_t lanes, uint32_t lane);
/* The lane that a chunk belongs to. */
uint32_t lane_of(uint32_t chunks, uint32_t lanes, uint32_t chunk);
/* The worker of a lane. An object that is not cut is lane 0. */
unsigned lane_worker(const struct object_id *id, uint32_t workers, uint32_t lane);
/* Changes an id so that its worker is that of a lane of another object. */
void lane_settle(struct object_id *id, const struct object_id *other, uint32_t lane);

#endif
