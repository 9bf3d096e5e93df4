/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a reduce is planned, and with how many contributions: the first K, or those that are there
 * at a deadline. Pure functions of a view that the coordinator fills; they send nothing and set no
 * timer. They decide before a plan is made: a graph's needed contributions are bound for good, as
 * the participants count to them.
 *
 * Times are nanoseconds of the coordinator's clock, as they stand in the view.
 */
#ifndef SARISSA_CONTROL_CORE_PLANNER_POLICY_H
#define SARISSA_CONTROL_CORE_PLANNER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* The client's choice. */
struct policy_args {
	uint64_t wait_ns;   /* deadline: T, since the reduce was opened */
	uint32_t least;	    /* deadline: M, more than needed counts as that; 0: no deadline */
	uint64_t settle_ns; /* deadline: so long after the opening locations are waited for that
			       are not answered, though T has passed */
};

struct policy_view {
	uint64_t now_ns, opened_ns;
	uint32_t total;	      /* contributions that were named */
	uint32_t answered;    /* of them, those whose location was answered once, found or not */
	uint32_t present;     /* found, at nodes that are in reach; looked at with a deadline */
	uint32_t needed;      /* K; once frozen, what was present then */
	uint32_t speculative; /* repairs so far that did not wait for a silent node */
	bool sized;	      /* one was found, and has told the size of all */
};

enum policy_turn {
	POLICY_WAIT,   /* ask again at *retry_ns, or when something was answered */
	POLICY_PLAN,   /* plan for the needed contributions; those that miss come later */
	POLICY_FREEZE, /* plan for those that are present; they are the needed ones from now on */
};

/* Asked until the reduce is planned. The first K that are found, or all, if K is their number: it
 * plans when all have answered once. With a deadline: all K, or at T those that are there, at least
 * M. Later ones are a reserve. A T that has passed when the reduce is opened counts from the moment
 * that all locations are answered. *retry_ns UINT64_MAX: only when something is answered. */
enum policy_turn policy_turn(const struct policy_args *a, const struct policy_view *v,
			     uint64_t *retry_ns);
/* Whether a reserve replaces a contribution whose node is silent, and may live. As often as there
 * was a reserve in the beginning, or work would be thrown away without end on a busy network. */
bool policy_replaces(const struct policy_view *v);

#endif
