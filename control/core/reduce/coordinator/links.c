/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links of participants, in the form that planners use, and what a finished reduce shows of
 * them. Called by binding.c, contributions.c and commit.c.
 */
#include "state.h"

static struct topology_link links_planned(struct fanout_link l)
{
	return (struct topology_link){l.hop_ns, l.start_ns, l.bytes_per_s};
}

struct topology_link reduce_links_all(const struct control *c)
{
	return links_planned(c->cluster->links.all);
}

struct topology_link reduce_links_of(const struct control *c, uint32_t node)
{
	return links_planned(linkstats_of(&c->cluster->links, node));
}

void reduce_links_show(struct control *c, const struct reduce *r)
{
	uint64_t ns = c->now_ns - r->plan.planned_ns;

	if (r->plan.planned_ns == 0 || ns == 0)
		return;
	for (uint32_t i = 0; i < r->plan.graph.slots; i++)
		linkstats_saw_least(&c->cluster->links, r->plan.run.slot[i].host,
				    (uint64_t)((double)r->from.size * 1e9 / (double)ns));
}

uint32_t reduce_value_max(const struct control *c, const struct reduce *r, uint32_t values)
{
	const struct planner_values v = {
		.all = reduce_links_all(c),
		.own_bytes_per_s = reduce_links_of(c, c->cluster->self->number).bytes_per_s,
		.needed = r->want.num,
		.chunk_bytes = c->dataplane.chunk_bytes,
		.values = values,
		.everyone = r->want.flags & MESSAGE_REDUCE_ALLREDUCE,
		.rate_seen = c->cluster->links.all.rate_seen,
		.limits = &c->coordinator->reduces.limits};

	return planner_value_max(&v);
}
