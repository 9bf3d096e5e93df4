/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link measurements, for the planners of broadcasts and reduces. A transfer only shows the slower
 * of its two links. The slow link is the one whose peer has shown a higher rate. Called by fetches,
 * participants and calls.
 */
#include "linkstats.h"
#include "core/control.h"

enum {
	/* A link counts as slow if it is so many times slower than the others. Less may be due to
	 * the load of the nodes at that time. */
	LINK_WORSE = 4,
	LINK_FAR = 3, /* a hop counts for the common figure as at most so many usual ones */
	/* A transfer that takes fewer request times than this at the usual rate is no measure of
	 * the rate: requests and pauses dominate it. */
	LINK_STARTS = 16,
	LINK_SURE = 3,	 /* slow transfers in a row until a node's link is believed to be slow */
	LINK_FORGET = 8, /* slow transfers until the high rates that both ends have shown fade */
	LINK_DOUBTS =
		1024, /* slow transfers in a row that a slow node explains, until they count */
};

void linkstats_carve(struct linkstats *s, struct arena *a, const struct control_config *config)
{
	s->nodes = arena_carve(a, sizeof(*s->nodes) * config->nodes);
}

void linkstats_init(struct linkstats *s, uint32_t nodes)
{
	s->nodes_count = nodes;
	s->all = fanout_prior();
}

static bool linkstats_slow(const struct linkstats *s, uint64_t bytes_per_s)
{
	return bytes_per_s < s->all.bytes_per_s / LINK_WORSE;
}

/* Whether the node's own link is known to be slow: then its transfers say nothing of other links.
 */
static bool linkstats_blamed(const struct linkstats *s, const struct link_node *n)
{
	return n && n->low == LINK_SURE && linkstats_slow(s, n->link.bytes_per_s);
}

static struct link_node *linkstats_way(struct linkstats *s, uint32_t node)
{
	return node < s->nodes_count ? &s->nodes[node] : NULL;
}

void linkstats_saw_start(struct linkstats *s, uint32_t node, uint64_t ns)
{
	struct link_node *n = linkstats_way(s, node);

	if (ns < s->all.start_ns || !linkstats_blamed(s, n))
		fanout_saw_start(&s->all, ns);
	if (!n)
		return;
	fanout_saw_start(&n->link, ns);
	n->starts += n->starts < LINK_SURE;
}

void linkstats_saw_hop(struct linkstats *s, uint32_t node, uint64_t ns)
{
	struct link_node *n = linkstats_way(s, node);
	uint64_t most = LINK_FAR * s->all.hop_ns;

	/* a distant node must not raise the common figure much, nor a near one keep it low for ever
	 */
	fanout_saw_hop(&s->all, s->all.hop_seen && ns > most ? most : ns);
	if (n)
		fanout_saw_hop(&n->link, ns);
}

/* Sets the node's count of slow transfers, and s->low, the number of nodes believed to be slow. */
static void linkstats_lower(struct linkstats *s, struct link_node *n, uint64_t low)
{
	s->low += (low == LINK_SURE) - (n->low == LINK_SURE);
	n->low = low;
}

/* Whether a node that is known to be slow may explain this low rate. */
static bool linkstats_explained(const struct linkstats *s, const struct link_node *a,
				const struct link_node *b, uint64_t rate)
{
	if (s->low == 0 || !linkstats_slow(s, rate))
		return false;
	if (a && b)
		return linkstats_blamed(s, a) || linkstats_blamed(s, b);
	for (uint32_t i = 0; i < s->nodes_count; i++)
		if (linkstats_blamed(s, &s->nodes[i]) && rate <= 2 * s->nodes[i].link.bytes_per_s)
			return true;
	return false;
}

/* Whether to ignore a slow transfer that a slow node explains. Not for ever: the high rate against
 * which all others look slow may have been an error. So fast transfers must come now and then. */
static bool linkstats_doubted(struct linkstats *s, bool slow, bool explained)
{
	if (!slow)
		s->doubts = 0;
	if (!explained || s->doubts == LINK_DOUBTS)
		return false;
	s->doubts++;
	return true;
}

static void linkstats_shown(struct linkstats *s, struct link_node *n, uint64_t rate)
{
	if (!n)
		return;
	if (rate > n->shown) /* nodes report rates: bounded by the common one */
		n->shown = rate < s->all.bytes_per_s ? rate : s->all.bytes_per_s;
	if (!linkstats_slow(s, rate)) {
		n->link.rate_seen = false;
		linkstats_lower(s, n, 0);
	}
}

static void linkstats_blame(struct linkstats *s, struct link_node *a, struct link_node *b,
			    uint64_t rate)
{
	bool a_can = !linkstats_slow(s, a->shown), b_can = !linkstats_slow(s, b->shown);

	if (a_can && b_can) {
		a->shown -= (a->shown - rate) / LINK_FORGET;
		b->shown -= (b->shown - rate) / LINK_FORGET;
	} else if (a_can || b_can) {
		struct link_node *n = a_can ? b : a;

		fanout_saw_rate(&n->link, rate);
		linkstats_lower(s, n, n->low + (n->low < LINK_SURE));
	}
}

void linkstats_saw_rate(struct linkstats *s, uint32_t node, uint32_t other, uint64_t bytes_per_s,
			uint64_t bytes)
{
	struct link_node *a = linkstats_way(s, node), *b = linkstats_way(s, other);
	double usual_ns;

	if (!linkstats_doubted(s, linkstats_slow(s, bytes_per_s),
			       linkstats_explained(s, a, b, bytes_per_s)))
		fanout_saw_rate(&s->all, bytes_per_s);
	linkstats_shown(s, a, bytes_per_s);
	linkstats_shown(s, b, bytes_per_s);
	usual_ns = (double)bytes * 1e9 / (double)s->all.bytes_per_s;
	if (a && b && linkstats_slow(s, bytes_per_s) &&
	    usual_ns >= (double)LINK_STARTS * (double)s->all.start_ns)
		linkstats_blame(s, a, b, bytes_per_s);
}

void linkstats_saw_least(struct linkstats *s, uint32_t node, uint64_t bytes_per_s)
{
	if (!linkstats_slow(s, bytes_per_s))
		linkstats_shown(s, linkstats_way(s, node), bytes_per_s);
}

void linkstats_forget(struct linkstats *s, uint32_t node)
{
	struct link_node *n = linkstats_way(s, node);

	if (!n)
		return;
	n->link = (struct fanout_link){.start_ns = 0};
	linkstats_lower(s, n, 0);
	n->shown = n->starts = 0;
}

/* A single slow start does not show that a node is far: its machine may have been busy. */
struct fanout_link linkstats_of(const struct linkstats *s, uint32_t node)
{
	const struct link_node *n = node < s->nodes_count ? &s->nodes[node] : NULL;
	struct fanout_link link = s->all;

	if (n && n->starts == LINK_SURE && n->link.start_ns / LINK_WORSE > link.start_ns) {
		/* without a measured hop: half of the extra time of a request and its answer */
		link.hop_ns = n->link.hop_seen
				      ? n->link.hop_ns
				      : link.hop_ns + (n->link.start_ns - link.start_ns) / 2;
		link.start_ns = n->link.start_ns;
	}
	if (linkstats_blamed(s, n))
		link.bytes_per_s = n->link.bytes_per_s;
	return link;
}
