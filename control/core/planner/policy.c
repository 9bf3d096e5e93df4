/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a reduce is planned, and with whom: policy.h. The coordinator asks when a contribution was
 * answered and when the time comes that was named; it must not know clocks or planners.
 */
#include "policy.h"

/* That time after the opening; UINT64_MAX: never. */
static uint64_t policy_after(const struct policy_view *v, uint64_t ns)
{
	return ns < UINT64_MAX - v->opened_ns ? v->opened_ns + ns : UINT64_MAX;
}

enum policy_turn policy_turn(const struct policy_args *a, const struct policy_view *v,
			     uint64_t *retry_ns)
{
	uint64_t end_ns = policy_after(v, a->wait_ns);

	*retry_ns = UINT64_MAX;
	if (a->least == 0)
		return v->answered == v->total && v->sized ? POLICY_PLAN : POLICY_WAIT;
	if (v->sized && v->present >= v->needed)
		return POLICY_PLAN;
	if (v->now_ns >= end_ns && v->present < a->least)
		return POLICY_WAIT;
	if (v->answered < v->total && a->settle_ns > a->wait_ns)
		end_ns = policy_after(v, a->settle_ns);
	if (v->now_ns >= end_ns)
		return POLICY_FREEZE;
	*retry_ns = end_ns;
	return POLICY_WAIT;
}

bool policy_replaces(const struct policy_view *v)
{
	return v->needed < v->total && v->speculative < v->total - v->needed;
}
