/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clocks of a cohort's members: how many members stand at each clock value, in a ring of
 * counters. Minimum, staleness and "has everybody reached clock v" cost O(1), whatever the number
 * of members; the memory is constant. Called by the group room. It must not know members or rounds.
 *
 * Invariants (clocks_valid):
 *   1. members = behind + the sum of ring[].
 *   2. Members with clock < base are in behind; all others have base <= clock < base + GROUP_RING,
 *      and are counted in ring[clock % GROUP_RING].
 *   3. While behind > 0 the minimum is below base, and base does not move. Otherwise base is the
 *      minimum (or, without members, where it was last).
 *   4. mark[v % GROUP_RING] is what was given to the call that moved the minimum to v or beyond,
 *      for base - GROUP_RING < v <= base.
 * A move by one moves the minimum by at most one; no call takes more than GROUP_RING steps.
 * Source: SSP, Ho et al., NIPS 2013; a ring of S + 2 counters suffices for slack S.
 */
#ifndef SARISSA_CONTROL_CORE_GROUP_CLOCKS_H
#define SARISSA_CONTROL_CORE_GROUP_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include "internal/group.h"

struct clocks {
	uint64_t base;
	uint64_t mark[GROUP_RING];
	uint32_t ring[GROUP_RING];
	uint32_t behind;
	uint32_t members;
};

/* No members; the window begins at base. */
void clocks_init(struct clocks *c, uint64_t base);
/* Whether the window has room for a member at that clock. */
bool clocks_fits(const struct clocks *c, uint64_t clock);
/* A member more, at a clock that fits; one less; one that goes from a clock to another that fits.
 * mark: kept for the values that the minimum passes. */
void clocks_add(struct clocks *c, uint64_t clock);
void clocks_remove(struct clocks *c, uint64_t clock, uint64_t mark);
void clocks_move(struct clocks *c, uint64_t from, uint64_t to, uint64_t mark);
/* Whether all members have reached clock v: true without members. */
bool clocks_reached(const struct clocks *c, uint64_t v);
/* The mark of the call by which all had reached v; 0: longer ago than the ring knows. */
uint64_t clocks_mark(const struct clocks *c, uint64_t v);
/* The smallest clock; base - 1 (or 0) when some are behind the window. */
uint64_t clocks_min(const struct clocks *c);
bool clocks_valid(const struct clocks *c);

#endif
