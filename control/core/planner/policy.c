/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a reduce is planned, and with whom: policy.h. The coordinator asks when a contribution was
 * answered and when the time comes that the policy has named; it must not know clocks or planners.
 */
#include "policy.h"
#include <stddef.h>

static bool policy_expired(const struct policy_view *v, uint64_t *retry_ns)
{
	*retry_ns = v->until_ns;
	return v->now_ns >= v->until_ns;
}

static enum policy_arrival policy_arrives(const struct policy_args *a, const struct policy_view *v,
					  uint64_t round)
{
	if (round < v->oldest)
		return POLICY_LATE;
	return v->placed < v->needed ? POLICY_PLACE : POLICY_RESERVE;
}

/* As often as there was a reserve in the beginning. */
static bool policy_replaces(const struct policy_args *a, const struct policy_view *v)
{
	return v->needed < v->total && v->speculative < v->total - v->needed;
}

static enum policy_turn policy_first_k_turn(const struct policy_args *a,
					    const struct policy_view *v, uint64_t *retry_ns)
{
	if (policy_expired(v, retry_ns))
		return POLICY_EXPIRE;
	return v->answered == v->total && v->sized ? POLICY_PLAN : POLICY_WAIT;
}

/* That time after the opening; UINT64_MAX: never. */
static uint64_t policy_after(const struct policy_view *v, uint64_t ns)
{
	return ns < UINT64_MAX - v->opened_ns ? v->opened_ns + ns : UINT64_MAX;
}

static enum policy_turn policy_deadline_turn(const struct policy_args *a,
					     const struct policy_view *v, uint64_t *retry_ns)
{
	uint32_t least = a->least ? a->least : 1;
	uint64_t end_ns = policy_after(v, a->wait_ns);

	if (policy_expired(v, retry_ns))
		return POLICY_EXPIRE;
	if (v->sized && v->present >= v->needed)
		return POLICY_PLAN;
	if (v->now_ns >= end_ns && v->present < least)
		return POLICY_WAIT;
	if (v->answered < v->total && a->settle_ns > a->wait_ns)
		end_ns = policy_after(v, a->settle_ns);
	if (v->now_ns >= end_ns)
		return POLICY_FREEZE;
	if (end_ns < *retry_ns)
		*retry_ns = end_ns;
	return POLICY_WAIT;
}

const struct policy policy_first_k = {"first_k", policy_first_k_turn, policy_arrives,
				      policy_replaces};
const struct policy policy_deadline = {"deadline", policy_deadline_turn, policy_arrives,
				       policy_replaces};

const struct policy *const policy_table[] = {&policy_first_k, &policy_deadline, NULL};
