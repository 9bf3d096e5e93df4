/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clocks of a cohort's members: how many members stand at each clock value, in a ring of
 * counters. Minimum, staleness and "has everybody reached clock v" cost O(1), whatever the number
 * of members; the memory is constant. Called by the module group. It must not know members or
 * rounds.
 *
 * Invariants (clocks_valid):
 *   1. members = ahead + the sum of ring[].
 *   2. All clocks are at least base. Those below end are counted in ring[clock % GROUP_RING], the
 *      others in ahead; base <= end <= base + GROUP_RING, and equal to that while ahead is 0.
 *   3. base is the minimum, unless the window is spent: then all members are ahead, and it must be
 *      rebuilt.
 *   4. mark[v % GROUP_RING] is what was given to the call that moved the minimum to v or beyond,
 *      for base - GROUP_RING < v <= base.
 * Members who may be S clocks apart stay in a ring of S + 2 counters (SSP, Ho et al., NIPS 2013),
 * so none is ahead. Only a change of policy finds members further apart; then the window is
 * rebuilt once in GROUP_RING clocks. A move by one moves the minimum by at most one; no call takes
 * more than GROUP_RING steps.
 */
#ifndef SARISSA_CONTROL_CORE_GROUP_CLOCKS_H
#define SARISSA_CONTROL_CORE_GROUP_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "internal/group.h"

struct clocks {
	uint64_t base, end;
	uint64_t mark[GROUP_RING];
	uint32_t ring[GROUP_RING];
	uint32_t ahead;
	uint32_t members;
};

/* No members; the window begins at base. mark: of all values up to base. */
void clocks_init(struct clocks *c, uint64_t base, uint64_t mark);
/* A member more. False: it is below the window, which must be rebuilt from its clock on. The
 * window of the first member must begin at its clock. */
bool clocks_add(struct clocks *c, uint64_t clock);
/* One less; one that goes from a clock to a later one. mark: kept for the values that the minimum
 * passes. */
void clocks_remove(struct clocks *c, uint64_t clock, uint64_t mark);
void clocks_move(struct clocks *c, uint64_t from, uint64_t to, uint64_t mark);
/* Whether all members are beyond the window: it must be rebuilt. */
bool clocks_spent(const struct clocks *c);
/* Whether all members have reached clock v: true without members. */
bool clocks_reached(const struct clocks *c, uint64_t v);
/* The mark of the call by which all had reached v; 0: longer ago than the ring knows. */
uint64_t clocks_mark(const struct clocks *c, uint64_t v);
/* The smallest clock; without members, where it was last. */
uint64_t clocks_min(const struct clocks *c);
bool clocks_valid(const struct clocks *c);

#endif
