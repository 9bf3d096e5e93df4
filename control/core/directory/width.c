/* SPDX-License-Identifier: BSD-3-Clause */
/* The width of an object's broadcast tree: how many receivers to expect, and the model's answer. */
#include "directory.h"
#include "core/planner/planner.h"

/* The expected number of receivers of an object: that of the last objects of about the same size.
 */
static uint32_t *directory_expected(struct directory *d, const struct entry *e)
{
	uint32_t class = 0;

	for (uint64_t size = e->size; size >= 4; size /= 4)
		class ++;
	return &d->expected[class];
}

/* Receivers at a time: the present ones, or the expected ones, if they are more. */
static uint32_t directory_receivers(struct directory *d, struct entry *e)
{
	uint32_t *expected = directory_expected(d, e), complete, had, rest;
	uint32_t count = e->arriving + e->waiters_count; /* on their way to a copy */

	complete = e->copies_count - e->arriving;
	if (count > e->burst)
		e->burst = count;
	if (count > *expected)
		*expected = count;
	had = complete > 1 ? complete - 1 : 0; /* one of them is the origin */
	rest = *expected > had ? *expected - had : 0;
	return count > rest ? count : rest;
}

static struct topology_link directory_planned(const struct directory *d)
{
	return (struct topology_link){d->links->all.hop_ns, d->links->all.start_ns,
				      d->links->all.bytes_per_s};
}

uint32_t directory_slots(struct directory *d, struct entry *e)
{
	return planner_width(directory_planned(d), directory_receivers(d, e), e->size,
			     e->chunk_bytes);
}

bool directory_inline(struct directory *d, struct entry *e, const struct waiter *w)
{
	if (!e->has_value)
		return false;
	/* A receiver that has lost its holder gets the value at once; so does this node itself. */
	if (e->size == 0 || w->failed != MESSAGE_NODE_NONE || w->node == d->self)
		return true;
	return planner_inline(directory_planned(d), directory_receivers(d, e), e->size,
			      e->chunk_bytes);
}

void directory_learn(struct directory *d, struct entry *e)
{
	uint32_t *expected = directory_expected(d, e);

	if (e->burst > 0 && e->burst < *expected)
		*expected -= (*expected - e->burst + 3) / 4;
	e->burst = 0;
}
