/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of the ways to the nodes, for the planners of broadcasts and reduces. A transfer
 * shows no more than the slower one of its two links can: it is blamed if the other one is known to
 * do better.
 */
#include "core/directory/directory.h"

enum {
	/* What takes so much longer than it can, or is so much slower, is another link's; less may
	 * come of what the nodes did at that time. */
	LINK_WORSE = 4,
	LINK_FAR = 3, /* times what is usual: a hop that takes more counts as that */
	/* What would take fewer requests' time at the usual rate tells of these, and of pauses. */
	LINK_STARTS = 16,
	LINK_SURE = 3,	 /* slow transfers, and no better one, until it is believed */
	LINK_FORGET = 8, /* slow transfers among links that could do better, until they can not */
	LINK_DOUBTS = 1024, /* that are explained, and no better one, until they count after all */
};

static bool directory_slow(const struct directory *d, uint64_t bytes_per_s)
{
	return bytes_per_s < d->link.bytes_per_s / LINK_WORSE;
}

/* Whether it is known that no more can be had of it: that tells nothing of the others. */
static bool directory_blamed(const struct directory *d, const struct directory_node *n)
{
	return n && n->low == LINK_SURE && directory_slow(d, n->link.bytes_per_s);
}

static struct directory_node *directory_way(struct directory *d, uint32_t node)
{
	return node < d->nodes_count ? &d->nodes[node] : NULL;
}

void directory_saw_start(struct directory *d, uint32_t node, uint64_t ns)
{
	struct directory_node *n = directory_way(d, node);

	if (ns < d->link.start_ns || !directory_blamed(d, n))
		fanout_saw_start(&d->link, ns);
	if (n == NULL)
		return;
	fanout_saw_start(&n->link, ns);
	n->starts += n->starts < LINK_SURE;
}

void directory_saw_hop(struct directory *d, uint32_t node, uint64_t ns)
{
	struct directory_node *n = directory_way(d, node);
	uint64_t most = LINK_FAR * d->link.hop_ns;

	/* one that is far must not count for all, nor one that was near for ever */
	fanout_saw_hop(&d->link, d->link.hop_seen && ns > most ? most : ns);
	if (n)
		fanout_saw_hop(&n->link, ns);
}

/* So many times; d->low: nodes of which it is believed, mostly none. */
static void directory_lower(struct directory *d, struct directory_node *n, uint64_t low)
{
	d->low += (low == LINK_SURE) - (n->low == LINK_SURE);
	n->low = low;
}

/* Whether one of those that are slow may have been waited for. */
static bool directory_explained(const struct directory *d, const struct directory_node *a,
				const struct directory_node *b, uint64_t rate)
{
	if (d->low == 0 || !directory_slow(d, rate))
		return false;
	if (a && b)
		return directory_blamed(d, a) || directory_blamed(d, b);
	for (uint32_t i = 0; i < d->nodes_count; i++)
		if (directory_blamed(d, &d->nodes[i]) && rate <= 2 * d->nodes[i].link.bytes_per_s)
			return true;
	return false;
}

/* What is explained does not count as long as somebody shows now and then that more can be had:
 * the one rate that all others are slow against may never have been a link's. */
static bool directory_doubted(struct directory *d, bool slow, bool explained)
{
	if (!slow)
		d->doubts = 0;
	if (!explained || d->doubts == LINK_DOUBTS)
		return false;
	d->doubts++;
	return true;
}

static void directory_shown(struct directory *d, struct directory_node *n, uint64_t rate)
{
	if (n == NULL)
		return;
	if (rate > n->shown) /* which any node may say: no more than can be */
		n->shown = rate < d->link.bytes_per_s ? rate : d->link.bytes_per_s;
	if (!directory_slow(d, rate)) {
		n->link.rate_seen = false;
		directory_lower(d, n, 0);
	}
}

static void directory_blame(struct directory *d, struct directory_node *a, struct directory_node *b,
			    uint64_t rate)
{
	bool a_can = !directory_slow(d, a->shown), b_can = !directory_slow(d, b->shown);

	if (a_can && b_can) {
		a->shown -= (a->shown - rate) / LINK_FORGET;
		b->shown -= (b->shown - rate) / LINK_FORGET;
	} else if (a_can || b_can) {
		struct directory_node *n = a_can ? b : a;

		fanout_saw_rate(&n->link, rate);
		directory_lower(d, n, n->low + (n->low < LINK_SURE));
	}
}

void directory_saw_rate(struct directory *d, uint32_t node, uint32_t other, uint64_t bytes_per_s,
			uint64_t bytes)
{
	struct directory_node *a = directory_way(d, node), *b = directory_way(d, other);
	double usual_ns;

	if (!directory_doubted(d, directory_slow(d, bytes_per_s),
			       directory_explained(d, a, b, bytes_per_s)))
		fanout_saw_rate(&d->link, bytes_per_s);
	directory_shown(d, a, bytes_per_s);
	directory_shown(d, b, bytes_per_s);
	usual_ns = (double)bytes * 1e9 / (double)d->link.bytes_per_s;
	if (a && b && directory_slow(d, bytes_per_s) &&
	    usual_ns >= (double)LINK_STARTS * (double)d->link.start_ns)
		directory_blame(d, a, b, bytes_per_s);
}

void directory_saw_least(struct directory *d, uint32_t node, uint64_t bytes_per_s)
{
	if (!directory_slow(d, bytes_per_s))
		directory_shown(d, directory_way(d, node), bytes_per_s);
}

void directory_link_forget(struct directory *d, uint32_t node)
{
	struct directory_node *n = directory_way(d, node);

	if (n == NULL)
		return;
	n->link = (struct fanout_link){.start_ns = 0};
	directory_lower(d, n, 0);
	n->shown = n->starts = 0;
}

/* A handshake alone is no measure of how far it is: it may have met a busy machine. */
struct fanout_link directory_link(const struct directory *d, uint32_t node)
{
	const struct directory_node *n = node < d->nodes_count ? &d->nodes[node] : NULL;
	struct fanout_link link = d->link;

	if (n && n->starts == LINK_SURE && n->link.start_ns / LINK_WORSE > link.start_ns) {
		/* what a request and its answer take more; no handshake may have told */
		link.hop_ns = n->link.hop_seen
				      ? n->link.hop_ns
				      : link.hop_ns + (n->link.start_ns - link.start_ns) / 2;
		link.start_ns = n->link.start_ns;
	}
	if (directory_blamed(d, n))
		link.bytes_per_s = n->link.bytes_per_s;
	return link;
}
