/* SPDX-License-Identifier: BSD-3-Clause */
/* What the links of those who take part can do, and what shape of a reduce follows from that. */
#include "core/planner/reduce_stripe.h"
#include "core/planner/reduce_tree.h"
#include "core/state.h"

/* One that stands for all. */
static struct reduce_link reduce_links_all(const struct control *c)
{
	const struct fanout_link *l = &c->directory.link;

	return (struct reduce_link){l->hop_ns, l->bytes_per_s, l->start_ns};
}

static struct reduce_link reduce_links_of(const struct control *c, uint32_t node)
{
	struct fanout_link l = directory_link(&c->directory, node);

	return (struct reduce_link){l.hop_ns, l.bytes_per_s, l.start_ns};
}

static bool reduce_links_worse(struct reduce_link a, struct reduce_link than)
{
	return a.latency_ns > than.latency_ns || a.bytes_per_s < than.bytes_per_s ||
	       a.start_ns > than.start_ns;
}

/* What an object takes over it. */
static double reduce_links_ns(const struct reduce *r, struct reduce_link link)
{
	return (double)(link.start_ns + link.latency_ns) +
	       (double)r->size * 1e9 / (double)link.bytes_per_s;
}

/* The best that some of them have: those who are not there yet are taken to have what all have. */
static struct reduce_link reduce_links_best(const struct control *c, const struct reduce *r,
					    const struct reduce_group *group, uint32_t groups)
{
	struct reduce_link best = reduce_links_all(c);

	if (groups < r->seats || groups == 0)
		return best;
	best = reduce_links_of(c, group[0].node);
	for (uint32_t g = 1; g < groups; g++) {
		struct reduce_link l = reduce_links_of(c, group[g].node);

		if (l.latency_ns < best.latency_ns)
			best.latency_ns = l.latency_ns;
		if (l.bytes_per_s > best.bytes_per_s)
			best.bytes_per_s = l.bytes_per_s;
		if (l.start_ns < best.start_ns)
			best.start_ns = l.start_ns;
	}
	return best;
}

/* Those that are worse than the best, in order; at most so many as are reckoned with, the worst of
 * them. slow[].position is the group. */
static uint32_t reduce_links_slow(const struct control *c, const struct reduce *r,
				  const struct reduce_group *group, uint32_t groups,
				  struct reduce_link best, struct reduce_slow *slow)
{
	uint32_t count = 0;

	for (uint32_t g = 0; g < groups; g++) {
		struct reduce_slow s = {g, reduce_links_of(c, group[g].node)};
		uint32_t least = 0;

		if (!reduce_links_worse(s.link, best))
			continue;
		if (count < REDUCE_SLOW_MAX) {
			slow[count++] = s;
			continue;
		}
		for (uint32_t k = 1; k < count; k++)
			if (reduce_links_ns(r, slow[k].link) < reduce_links_ns(r, slow[least].link))
				least = k;
		if (reduce_links_ns(r, s.link) > reduce_links_ns(r, slow[least].link))
			slow[least] = s;
	}
	return count;
}

/* Where the groups sit in a tree of that degree; position, if one of them has the root. */
static uint32_t reduce_links_seat(const struct reduce *r, uint32_t d, uint32_t top, uint32_t g)
{
	uint32_t root = reduce_tree_root(r->seats, d), seat = g - (top < g);

	if (top == REDUCE_NONE)
		return g;
	return g == top ? root : seat + (seat >= root);
}

static uint32_t reduce_links_degree(const struct reduce *r, uint32_t top, struct reduce_link best,
				    const struct reduce_slow *slow, uint32_t count)
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t chosen = 1;

	for (uint32_t d = 1; d == 1 || d < r->seats; d++) {
		struct reduce_slow at[REDUCE_SLOW_MAX];
		uint64_t ns;

		for (uint32_t k = 0; k < count; k++)
			at[k] = (struct reduce_slow){reduce_links_seat(r, d, top, slow[k].position),
						     slow[k].link};
		ns = reduce_tree_time_slow(r->seats, d, r->size, r->chunk_bytes, best, at, count);
		if (ns < best_ns) {
			best_ns = ns;
			chosen = d;
		}
	}
	return chosen < REDUCE_DEGREE_MAX ? chosen : REDUCE_DEGREE_MAX;
}

/* The one whose objects take longest goes first: position 0 has no children, whatever the tree. */
static void reduce_links_order(const struct control *c, const struct reduce *r,
			       struct reduce_group *group, uint32_t groups, struct reduce_link best)
{
	double most = reduce_links_ns(r, best);
	uint32_t worst = 0;

	for (uint32_t g = 0; g < groups; g++) {
		double ns = reduce_links_ns(r, reduce_links_of(c, group[g].node));

		if (ns <= most || group[g].node == r->top)
			continue;
		most = ns;
		worst = g;
	}
	if (worst > 0) {
		struct reduce_group first = group[worst];

		memmove(&group[1], &group[0], sizeof(*group) * worst);
		group[0] = first;
	}
}

void reduce_links_shape(struct control *c, struct reduce *r, struct reduce_group *group,
			uint32_t groups)
{
	struct reduce_link best = reduce_links_best(c, r, group, groups);
	struct reduce_slow slow[REDUCE_SLOW_MAX];
	uint32_t count, top = REDUCE_NONE;

	if (r->stripes == 1)
		reduce_links_order(c, r, group, groups, best);
	for (uint32_t g = 0; g < groups && r->stripes == 1; g++)
		if (group[g].node == r->top && top == REDUCE_NONE)
			top = g;
	count = reduce_links_slow(c, r, group, groups, best, slow);
	r->degree = reduce_links_degree(r, top, best, slow, count);
}

/* What an object takes over the slow link in stripes, and along chains that touch it twice. */
static bool reduce_links_chain_pays(const struct reduce *r, struct reduce_link best,
				    struct reduce_link slow)
{
	double chunk = (double)r->chunk_bytes * 1e9, hops = 2.0 * (r->seats - 1);
	double whole = (double)r->size * 1e9 / (double)slow.bytes_per_s;

	return (double)best.start_ns + whole + 2 * chunk / (double)slow.bytes_per_s +
		       hops * ((double)best.latency_ns + chunk / (double)best.bytes_per_s) <
	       whole * 2 * (r->seats - 1) / r->seats;
}

/* The one node whose rate is lower than the others', or REDUCE_NONE. */
static uint32_t reduce_links_slowest(const struct control *c, struct reduce_link best,
				     const struct reduce_group *group, uint32_t groups)
{
	uint32_t node = REDUCE_NONE;

	for (uint32_t g = 0; g < groups; g++) {
		if (reduce_links_of(c, group[g].node).bytes_per_s >= best.bytes_per_s)
			continue;
		if (node != REDUCE_NONE && node != group[g].node)
			return REDUCE_NONE;
		node = group[g].node;
	}
	return node;
}

/*
 * Stripes have each link carry 2(p-1)/p of the object both ways. If one is so slow that all wait
 * for it, it need not carry more than one object: its node has the root of one chain, takes what
 * the others have made, and gives the sum to one of them.
 */
void reduce_links_top(const struct control *c, struct reduce *r, const struct reduce_group *group,
		      uint32_t groups)
{
	struct reduce_link best = reduce_links_best(c, r, group, groups);
	uint32_t slow = reduce_links_slowest(c, best, group, groups);

	r->top = r->caller;
	if (r->stripes == 1 || slow == REDUCE_NONE ||
	    !reduce_links_chain_pays(r, best, reduce_links_of(c, slow)))
		return;
	r->top = slow;
	r->stripes = 1;
	r->direct = false;
}

static struct topology_link reduce_links_planned(struct reduce_link link)
{
	return (struct topology_link){link.latency_ns, link.start_ns, link.bytes_per_s};
}

const struct planner_request *reduce_links_request(struct control *c, const struct reduce *r,
						   const struct reduce_group *group,
						   uint32_t groups, uint32_t grouped)
{
	struct reduces *rs = &c->reduces;

	rs->limits = planner_limits_usual;
	rs->limits.grid_slots = c->config.grid_seats;
	rs->limits.grid_late_slots = c->config.grid_late_seats;
	for (uint32_t g = 0; g < groups; g++)
		rs->groups[g] = (struct planner_group){
			.node = group[g].node,
			.count = group[g].count,
			.link = reduce_links_planned(reduce_links_of(c, group[g].node))};
	rs->asked = (struct planner_request){.size = r->size,
					     .chunk_bytes = r->chunk_bytes,
					     .needed = r->num,
					     .group = rs->groups,
					     .groups = groups,
					     .present = grouped,
					     .caller = r->caller,
					     .everyone = r->flags & MESSAGE_REDUCE_SPREAD,
					     .rate_seen = c->directory.link.rate_seen,
					     .all = reduce_links_planned(reduce_links_all(c)),
					     .limits = &rs->limits};
	return &rs->asked;
}

void reduce_links_show(struct control *c, const struct reduce *r)
{
	uint64_t ns = c->now_ns - r->planned_ns;

	if (r->planned_ns == 0 || ns == 0)
		return;
	for (uint32_t i = 0; i < r->seats; i++)
		directory_saw_least(&c->directory, r->seat[i].host,
				    (uint64_t)((double)r->size * 1e9 / (double)ns));
}

/* A tree's nodes are told what to build, and its result is agreed to (commit.c): a request
 * and an answer each. So it is where values are exchanged. They all come here. Against them each
 * hop counts with a start: the smallest trees take more than the model says. */
uint32_t reduce_value_max(const struct control *c, const struct reduce *r, uint32_t values)
{
	struct reduce_link link = reduce_links_all(c), known;
	uint32_t chunk_bytes = c->dataplane.chunk_bytes;
	uint64_t setup_ns = 2 * c->directory.link.start_ns;
	uint64_t most = OBJECT_INLINE_MAX;

	link.latency_ns += link.start_ns;
	link.start_ns = 0;
	link.bytes_per_s = reduce_links_of(c, c->self->number).bytes_per_s;
	known = link;
	if (!c->directory.link.rate_seen)
		known.bytes_per_s = 0;
	if (r->flags & MESSAGE_REDUCE_SPREAD && r->num <= REDUCE_STRIPES_MAX)
		most = reduce_stripe_value_max(r->num, values, most, chunk_bytes, setup_ns, known);
	return (uint32_t)reduce_tree_value_max(r->num, values + 1, most, chunk_bytes, setup_ns,
					       link);
}
