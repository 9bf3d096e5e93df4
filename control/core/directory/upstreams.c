/* SPDX-License-Identifier: BSD-3-Clause */
/* Bookings between the copies of one object: which copy feeds which. They never form a circle. */
#include "directory.h"

static void directory_feed_cut(struct copy *copy, uint32_t i)
{
	copy->upstream[i].copy->sending--;
	copy->upstream[i] = copy->upstream[--copy->upstreams];
}

void directory_feed(struct copy *copy, struct copy *upstream)
{
	if (!upstream) {
		while (copy->upstreams > 0)
			directory_feed_cut(copy, 0);
		return;
	}
	for (uint32_t i = 0; i < copy->upstreams; i++)
		if (copy->upstream[i].copy == upstream)
			return;
	if (copy->upstreams == MESSAGE_UPSTREAMS_MAX)
		return;
	if (copy->upstreams == 0)
		copy->depth = upstream->state == MESSAGE_COPY_PARTIAL ? upstream->depth + 1 : 1;
	copy->alone =
		!copy->fed && upstream->sending == 0 && upstream->state == MESSAGE_COPY_COMPLETE;
	copy->fed = true;
	copy->upstream[copy->upstreams++] = (struct copy_upstream){upstream, 0};
	upstream->sending++;
}

void directory_feed_end(struct copy *copy, const struct copy *upstream)
{
	for (uint32_t i = copy->upstreams; i-- > 0;)
		if (copy->upstream[i].copy == upstream)
			directory_feed_cut(copy, i);
}

bool directory_fed_by(const struct copy *copy, const struct copy *upstream)
{
	for (uint32_t i = 0; i < copy->upstreams; i++)
		if (copy->upstream[i].copy == upstream)
			return true;
	return false;
}

/* Pushes the upstreams of a copy that were not visited yet. */
static struct copy *directory_visit(struct directory *d, const struct copy *a, struct copy *stack)
{
	for (uint32_t i = 0; i < a->upstreams; i++) {
		struct copy *up = a->upstream[i].copy;

		if (up->visit == d->visits)
			continue;
		up->visit = d->visits;
		up->visit_next = stack;
		stack = up;
	}
	return stack;
}

bool directory_depends(struct directory *d, struct copy *a, const struct copy *requester)
{
	struct copy *stack = a;

	if (!requester || requester->sending == 0)
		return a == requester;
	d->visits++;
	a->visit = d->visits;
	a->visit_next = NULL;
	while (stack) {
		struct copy *at = stack;

		if (at == requester)
			return true;
		stack = directory_visit(d, at, at->visit_next);
	}
	return false;
}
