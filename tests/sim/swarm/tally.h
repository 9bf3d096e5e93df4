/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often each check of the swarm had something to judge. A check that never has anything to
 * judge cannot fail: the swarm prints the table with --tally, and --fired makes it fail when a
 * check of the chosen scenarios never fired. A check calls tally() only where its outcome depends
 * on the product and not on the draw alone.
 */
#ifndef SARISSA_TESTS_SIM_SWARM_TALLY_H
#define SARISSA_TESTS_SIM_SWARM_TALLY_H

#include <stdbool.h>
#include <stdint.h>

enum tally_check {
	TALLY_BYTES,	       /* a reader's bytes, by generation */
	TALLY_REMEMBERED,      /* an answered delete, while no node was out of reach */
	TALLY_TOMBSTONES,      /* in the end: a delete that is remembered */
	TALLY_STALE_DELETED,   /* a read after an answered delete of an older generation */
	TALLY_STALE_REPLACED,  /* a read after an answered put of a newer generation */
	TALLY_REPLACED,	       /* a put where an older generation had no delete */
	TALLY_REFUSED,	       /* a put that was refused while a holder lived */
	TALLY_STATUS_CALM,     /* an error while nothing was wrong in the cluster */
	TALLY_MISSING_CALM,    /* "no such object" while nothing was wrong */
	TALLY_EXISTS_CALM,     /* "exists already" while nothing was wrong */
	TALLY_HELD,	       /* in the end: a complete copy in some store, read at a node */
	TALLY_KEPT,	       /* in the end: an object that was put and not deleted */
	TALLY_KEPT_ELSEWHERE,  /* the same, and the store of its creator was lost */
	TALLY_REDUCES_CALM,    /* an error of a reduce while nothing was wrong */
	TALLY_CRASH_CONTROL,   /* control died between two writes to shared memory */
	TALLY_CRASH_ADOPTION,  /* the same, of one that took over what another had left */
	TALLY_CRASH_DATAPLANE, /* a dataplane died between two writes to shared memory */
	TALLY_CHECKS,
};

extern uint64_t tally_counts[TALLY_CHECKS];

static inline void tally(enum tally_check check)
{
	tally_counts[check]++;
}

void tally_print(void);
/* Says on stderr which checks of these scenarios never fired; returns their number. */
uint32_t tally_missing(bool objects, bool reduces, bool inside);

#endif
