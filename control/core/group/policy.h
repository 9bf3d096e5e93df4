/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policies of synchronisation: a text, and the table that it is compiled to. Called by the files of
 * this folder. The parser and the table are pure: they must not know groups or members.
 *
 *   policy  = row { "," row } | one that stands alone
 *   row     = [ COHORT ":" ] rule { option }
 *   rule    = a word of internal/policies.h, and its argument
 *   option  = "deadline" TIME | "late" ( "carry" | "refuse" )     of rules that wait for a quorum
 *
 * A row without a cohort is for all members that no other row names. A policy that stands alone
 * makes its rows itself, and says which member is of which.
 *
 * A policy is a struct policy_ops (policies.c, auto.c) and a row in internal/policies.h. All other
 * files ask a row for its columns and its quorum, and never which policy it is of.
 */
#ifndef SARISSA_CONTROL_CORE_GROUP_POLICY_H
#define SARISSA_CONTROL_CORE_GROUP_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/text.h"
#include "internal/group.h"
#include "internal/policies.h"

#define POLICY_UNLIMITED UINT32_MAX /* slack */
#define POLICY_ALL	 UINT32_MAX /* quorum: all live members of the row */
#define POLICY_NO_ROW	 UINT32_MAX

#define POLICY_DEADLINE_MAX_NS (UINT64_C(86400) * 1000000000)

struct groups;
struct group;
struct group_member;
struct group_policy;
struct group_policy_text;
struct policy_ops;

struct group_policy_row {
	char cohort[GROUP_COHORT_MAX + 1]; /* empty: all others */
	const struct policy_ops *rule;
	uint32_t slack;
	uint32_t quorum;      /* the number of it; 0: there is none */
	uint64_t deadline_ns; /* of a round, after its first contribution; 0: none */
	bool refuse;	      /* a late contribution is refused, not carried */
};

struct group_policy {
	const struct policy_ops *alone; /* that made the rows; NULL: they are as written */
	uint32_t percent;		/* its argument */
	uint32_t rows;
	struct group_policy_row row[GROUP_COHORTS_MAX];
};

struct policy_ops {
	const char *word;
	struct group_policy_row row; /* as far as the word says */
	/* Reads the argument into the row: 0, or -EINVAL of policy_wrong. NULL: it has none. */
	int (*argument)(struct group_policy_text *t, struct group_policy_row *row);
	/* How many contributions close a round of so many members; more than these count as all.
	 * NULL: any contribution does. */
	uint32_t (*quorum)(const struct group_policy_row *row, uint32_t members);
	const char *unit; /* of its number in the table */

	/* ---- of those that stand alone; else NULL ---- */
	int (*rows)(struct group_policy_text *t, struct group_policy *p);
	/* The cohort of one who joins with that name. */
	const char *(*cohort)(const char *name);
	/* Adds to the table, which lacks that, how members get into the rows. */
	void (*show)(const struct group_policy *p, struct text *t);
	/* A member has pushed, its pull is answered: it may change its cohort (roster_change). */
	void (*pushed)(struct groups *gs, struct group *g, struct group_member *m);
	void (*answered)(struct groups *gs, struct group *g, struct group_member *m);
	/* A pull begins to wait; group.look_ns, which that may set, has come. */
	void (*waits)(struct groups *gs, struct group *g);
	void (*look)(struct groups *gs, struct group *g);
};

#define POLICY_DECLARED(identifier, word, argument, says) \
	extern const struct policy_ops policies_##identifier;
POLICIES(POLICY_DECLARED)
extern const struct policy_ops *const policies_table[]; /* all of them, then NULL */

struct group_policy_error {
	uint32_t position; /* in the text, from 0 */
	char text[160];	   /* what is wrong there, and what to write */
};

/* 0, or -EINVAL and what is wrong; then out is not set. */
int group_policy_parse(const char *text, struct group_policy *out,
		       struct group_policy_error *error);
/* The row of a cohort, or POLICY_NO_ROW. */
uint32_t group_policy_match(const struct group_policy *p, const char *cohort);
/* The cohort of one who joins with that name. */
const char *group_policy_cohort(const struct group_policy *p, const char *name);
/* Whether the rounds of the row close clock by clock, when everybody is there: bsp. */
static inline bool group_policy_lockstep(const struct group_policy_row *row)
{
	return row->quorum == POLICY_ALL && row->slack == 0;
}

/* How many contributions of so many members close a round. */
uint32_t group_policy_quorum(const struct group_policy_row *row, uint32_t members);
/* How many clocks a member of row a may be ahead of the slowest of row b. */
uint32_t group_policy_slack(const struct group_policy *p, uint32_t a, uint32_t b);
/* The quorum of a row that so many members never have; 0: there is no such row. */
uint32_t group_policy_excess(const struct group_policy *p, uint32_t members);
/* Writes it as a table, zero-terminated; what does not fit is cut off. */
void group_policy_show(const struct group_policy *p, char *out, size_t room);

/* ---- for policies: the words of a text --------------------------------------------------------
 */

struct group_policy_text {
	const char *all;
	uint32_t at;	/* of the present word */
	uint32_t bytes; /* of it; 0: the end */
	struct group_policy_error *error;
};

/* -EINVAL, and "position 4, 'foo': why". */
int policy_wrong(struct group_policy_text *t, const char *why);
/* Takes a number from min to max: 0, or -EINVAL and why. */
int policy_number(struct group_policy_text *t, uint64_t min, uint64_t max, const char *why,
		  uint32_t *out);

#endif
