/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stripes of an allreduce: one chain streaming into another would send the whole object twice
 * through every link, so the object is cut into p stripes of whole chunks, p the number of sources,
 * and stripe j goes along the chain rotated so that it ends at the node that was the j-th to
 * arrive. From there it goes to the p - 1 other nodes along a grid that is the same for all
 * stripes but turned, so that it begins at the root. Every node sends and takes 2(p-1)/p * S in
 * all, the bound of an allreduce (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for
 * clusters of workstations", JPDC 2009). docs/reduce.md says more.
 *
 * Plain arithmetic, no state; any thread may call. Nodes are named by arrival index, 0..p-1. With p
 * of 0, or a stripe, position or node >= p, there is nothing: no chunks, no bytes,
 * REDUCE_STRIPE_NONE. An object has at most UINT32_MAX chunks; a larger one has no bytes here.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_REDUCE_STRIPE_H
#define SARISSA_CONTROL_CORE_PLANNER_REDUCE_STRIPE_H

#include <stdint.h>
#include "internal/ids.h"
#include "reduce_tree.h"

#define REDUCE_STRIPE_NONE UINT32_MAX

/* Stripe j of p: its first chunk and how many. Counts differ by one at most; 0 when p > chunks. */
void reduce_stripe(uint32_t chunks, uint32_t p, uint32_t j, uint32_t *first, uint32_t *count);
/* The bytes of stripe j: the object's last chunk may be short. */
uint64_t reduce_stripe_bytes(uint64_t size_bytes, uint32_t chunk_bytes, uint32_t p, uint32_t j);
/* The arrival index of the node at position k of stripe j's chain; its root is at k = p - 1. */
uint32_t reduce_stripe_order(uint32_t p, uint32_t j, uint32_t k);
/*
 * The largest size, of most bytes at most, at which p objects are added up at one node, that gets
 * copies of them and gives the sum to the p - 1 others, no later than by stripes exchanged as
 * values: (copies + p - 1) S/B against setup_ns + 2 L + 2 (p-1)/p S/B. Objects of fewer than p
 * chunks have no such stripes; all others are exchanged where the link was not measured, since that
 * loses little on a fast one.
 */
uint64_t reduce_stripe_value_max(uint32_t p, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
				 uint64_t setup_ns, struct reduce_link link);
/*
 * The grid along which p stripes leave their roots has rows of so many places, counted from the
 * root: the first of a row has the stripe from the first of the row before, the others each from
 * the one before it. So a node feeds two others, whatever p is, and none is further away than along
 * a column and a row.
 */
uint32_t reduce_stripe_row(uint32_t p);
/* Which place feeds a place that is not the root's, 0. */
uint32_t reduce_stripe_feeder(uint32_t row, uint32_t place);
/* The id of what the cell of that number builds for a reduce (by its target and number). */
void reduce_cell_name(const struct object_id *target, uint64_t number, uint64_t cell,
		      struct object_id *out);
/* Of what stripe j's root of p builds. */
void reduce_stripe_name(const struct object_id *target, uint64_t number, uint32_t p, uint32_t j,
			struct object_id *out);

#endif
