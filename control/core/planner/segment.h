/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a target is cut into p segments of whole chunks. The planners and the participants that push
 * their parts unasked compute it alike, so it is part of the protocol. Plain arithmetic, no state.
 *
 * Counts differ by one chunk at most, the larger segments first; with more segments than chunks the
 * last ones are empty. A segment >= p has no chunks; a target of more than UINT32_MAX chunks, or
 * with chunks of 0 bytes, has no bytes here.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_SEGMENT_H
#define SARISSA_CONTROL_CORE_PLANNER_SEGMENT_H

#include <stdint.h>

/* Chunks of a target: 0 of an empty one. */
uint64_t segment_chunks(uint64_t size_bytes, uint32_t chunk_bytes);
/* Segment j of p: its first chunk, and how many. */
void segment_range(uint32_t chunks, uint32_t p, uint32_t j, uint32_t *first, uint32_t *count);
/* The bytes of segment j: the target's last chunk may be short. */
uint64_t segment_bytes(uint64_t size_bytes, uint32_t chunk_bytes, uint32_t p, uint32_t j);

#endif
