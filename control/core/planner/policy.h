/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policies: when a reduce is planned, with how many contributions, and what becomes of those that
 * come beyond them. Pure functions of a view that the coordinator fills; a policy sends nothing and
 * sets no timer. It decides before a plan is made: a graph's needed contributions are bound for
 * good, as the participants count to them.
 *
 * Times are nanoseconds of the coordinator's clock, as they stand in the view.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_POLICY_H
#define SARISSA_CONTROL_CORE_PLANNER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* The client's choice; 0 where a policy does not look at it. */
struct policy_args {
	uint64_t wait_ns;   /* deadline: T, since the reduce was opened */
	uint32_t least;	    /* deadline: M; 0 counts as 1, more than needed as that */
	uint64_t settle_ns; /* deadline: so long after the opening locations are waited for that
			       are not answered, though T has passed */
};

struct policy_view {
	uint64_t now_ns, opened_ns;
	uint64_t until_ns;    /* the end of the reduce's time; UINT64_MAX: none */
	uint32_t total;	      /* contributions that were named */
	uint32_t answered;    /* of them, those whose location was answered once, found or not */
	uint32_t present;     /* found, at nodes that are in reach */
	uint32_t placed;      /* in slots */
	uint32_t needed;      /* K; once a policy has frozen it, what was present then */
	uint32_t speculative; /* repairs so far that did not wait for a silent node */
	bool sized;	      /* one was found, and has told the size of all */
	uint64_t oldest;      /* of a series of reduces: rounds before this one are closed */
};

enum policy_turn {
	POLICY_WAIT,   /* ask again at *retry_ns, or when something was answered */
	POLICY_PLAN,   /* plan for the needed contributions; those that miss come later */
	POLICY_FREEZE, /* plan for those that are present; they are the needed ones from now on */
	POLICY_EXPIRE, /* the time is over */
};

enum policy_arrival {
	POLICY_PLACE,	/* it takes a slot, or is in the plan that is about to be made */
	POLICY_RESERVE, /* it takes a slot when another contribution is lost */
	POLICY_LATE,	/* it belongs to a round that is closed */
};

struct policy {
	const char *name;
	/* Asked until the reduce is planned. retry_ns: UINT64_MAX, only when something is answered.
	 */
	enum policy_turn (*turn)(const struct policy_args *a, const struct policy_view *v,
				 uint64_t *retry_ns);
	/* Of a contribution of that round that was found. */
	enum policy_arrival (*arrival)(const struct policy_args *a, const struct policy_view *v,
				       uint64_t round);
	/* Whether a reserve replaces a contribution whose node is silent, and may live. Bounded, or
	 * work would be thrown away without end on a busy network. */
	bool (*replaces)(const struct policy_args *a, const struct policy_view *v);
};

/* The first K that are found; all, if K is their number. It plans when all have answered once. */
extern const struct policy policy_first_k;
/* Contributions that are there at T, at least M; all K before that. Later ones are a reserve. A T
 * that has passed when the reduce is opened counts from the moment that all locations are answered.
 */
extern const struct policy policy_deadline;
extern const struct policy *const policy_table[]; /* all of them, then NULL */

#endif
