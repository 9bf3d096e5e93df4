/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policies of synchronisation: a text, and the table that it is compiled to. Called by the module
 * group. Pure functions; they must not know groups or members.
 *
 *   policy  = row { "," row } | "auto" [ PERCENT ]
 *   row     = [ COHORT ":" ] rule { option }
 *   rule    = "bsp" | "ssp" SLACK | "asp" | "k-of-n" K
 *   option  = "deadline" TIME | "late" ( "carry" | "refuse" )     of bsp and k-of-n
 *
 * A row without a cohort is for all members that no other row names.
 *
 *   rule      slack      quorum          meaning
 *   bsp       0          all             everybody waits for everybody's contribution of the clock
 *   ssp S     S          none            nobody is more than S clocks ahead of the slowest
 *   asp       unlimited  none            nobody waits for others
 *   k-of-n K  unlimited  K               the K fastest make a round; the others' are late
 *   auto P    fast: ssp 2, slow: asp; a member is slow while the times from the answer to its pull
 *             to its push, or the one that runs, are above 1.5 times the P-th percentile of all
 */
#ifndef SARISSA_CONTROL_CORE_GROUP_POLICY_H
#define SARISSA_CONTROL_CORE_GROUP_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "internal/group.h"

#define POLICY_UNLIMITED UINT32_MAX /* slack */
#define POLICY_ALL	 UINT32_MAX /* quorum: all live members of the row */
#define POLICY_NO_ROW	 UINT32_MAX

#define POLICY_DEADLINE_MAX_NS (UINT64_C(86400) * 1000000000)

enum policy_rule { POLICY_BSP, POLICY_SSP, POLICY_ASP, POLICY_K_OF_N };

struct group_policy_row {
	char cohort[GROUP_COHORT_MAX + 1]; /* empty: all others */
	uint32_t rule;			   /* enum policy_rule */
	uint32_t slack;
	uint32_t quorum;
	uint64_t deadline_ns; /* of a round, after its first contribution; 0: none */
	bool refuse;	      /* a late contribution is refused, not carried */
};

struct group_policy {
	uint32_t rows;
	uint32_t percent; /* of auto; 0: not auto */
	struct group_policy_row row[GROUP_COHORTS_MAX];
};

struct group_policy_error {
	uint32_t position; /* in the text, from 0 */
	char text[160];	   /* what is wrong there, and what to write */
};

/* 0, or -EINVAL and what is wrong; then out is not set. */
int group_policy_parse(const char *text, struct group_policy *out,
		       struct group_policy_error *error);
/* The row of a cohort, or POLICY_NO_ROW. */
uint32_t group_policy_match(const struct group_policy *p, const char *cohort);
/* How many clocks a member of row a may be ahead of the slowest of row b. */
uint32_t group_policy_slack(const struct group_policy *p, uint32_t a, uint32_t b);
/* The largest K of its rows; 0: none. */
uint32_t group_policy_largest(const struct group_policy *p);
/* Writes it as a table, zero-terminated; what does not fit is cut off. */
void group_policy_show(const struct group_policy *p, char *out, size_t room);

#endif
