/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost model of reduces and broadcasts: cost.h has the formulas. Planners and width.c
 * call it; it must not know how links are measured. Estimates are doubles until the end, so that
 * sizes and rates of any magnitude have one.
 */
#include "cost.h"
#include "tree.h"

#define COST_NS_MAX 1e18

struct topology_link cost_known(struct topology_link link)
{
	if (link.latency_ns == 0)
		link.latency_ns = COST_LATENCY_NS;
	if (link.bytes_per_s == 0)
		link.bytes_per_s = COST_BYTES_PER_S;
	return link;
}

static uint64_t cost_chunk(struct cost_object o)
{
	return o.chunk_bytes && o.chunk_bytes < o.size_bytes ? o.chunk_bytes : o.size_bytes;
}

static double cost_byte_ns(struct topology_link link)
{
	return 1e9 / (double)link.bytes_per_s;
}

static uint64_t cost_number(double ns)
{
	return ns < 0x1p63 ? (uint64_t)ns : UINT64_MAX - 1;
}

uint64_t cost_whole(double ns)
{
	return cost_number(ns);
}

/* ---- a tree of links that are alike --------------------------------------------------------- */

/* The parts of a tree's time, in nanoseconds: one hop; a chunk, and all of it, on a link. */
struct cost_pace {
	uint32_t d;
	double latency, chunk, size, start;
};

/* When the roots of trees of so many positions, and of one less, have their first chunk. */
struct cost_pair {
	double whole, less;
};

/*
 * When a root of count positions has so much, unit ns on its link, from each of its children, whose
 * subtrees are of part positions and of one less. The latter are there first and use the link while
 * the others are still waited for.
 */
static double cost_join(const struct cost_pace *p, uint32_t count, uint32_t part,
			struct cost_pair below, double unit)
{
	uint32_t width = tree_width(count, p->d);
	uint32_t larger = count - 1 - width * (part - 1), smaller = width - larger;
	double ns = smaller ? below.less + smaller * unit : 0;

	if (width == 0)
		return 0;
	if (larger && ns < below.whole)
		ns = below.whole;
	return ns + p->latency + larger * unit;
}

/* Two sizes are enough: the parts of count positions and of one less differ by one at most. */
static struct cost_pair cost_first(const struct cost_pace *p, uint32_t count)
{
	uint32_t part = tree_largest(count, p->d);
	struct cost_pair below;

	if (count <= 1)
		return (struct cost_pair){0, 0};
	if (p->d == 1) /* no walk down a chain; otherwise ten calls at most */
		return (struct cost_pair){(count - 1) * (p->latency + p->chunk),
					  (count - 2) * (p->latency + p->chunk)};
	below = cost_first(p, part);
	return (struct cost_pair){cost_join(p, count, part, below, p->chunk),
				  cost_join(p, count - 1, part, below, p->chunk)};
}

/* The part of all trees: a degree makes the rest of it. */
static struct cost_pace cost_pace(struct cost_object o, struct topology_link link)
{
	struct cost_pace p = {.size = (double)o.size_bytes};

	link = cost_known(link);
	p.latency = (double)link.latency_ns;
	p.chunk = (double)cost_chunk(o) * cost_byte_ns(link);
	p.size *= cost_byte_ns(link);
	p.start = (double)link.start_ns;
	return p;
}

static uint64_t cost_paced(const struct cost_pace *p, uint32_t n)
{
	uint32_t part = tree_largest(n, p->d);
	/* no node is wider than the root: from its first chunks on its link sets the pace */
	double ns = cost_join(p, n, part, cost_first(p, part), p->size);

	return cost_number(n > 1 ? ns + p->start : ns);
}

uint64_t cost_tree_ns(uint32_t n, uint32_t d, struct cost_object o, struct topology_link link)
{
	struct cost_pace pace = cost_pace(o, link);

	pace.d = d;
	return cost_paced(&pace, n);
}

uint32_t cost_tree_degree(uint32_t n, struct cost_object o, struct topology_link link)
{
	struct cost_pace pace = cost_pace(o, link);
	uint64_t best_ns = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t d = 1; d == 1 || d < n; d++) {
		uint64_t ns;

		pace.d = d;
		ns = cost_paced(&pace, n);

		if (ns < best_ns) {
			best_ns = ns;
			best = d;
		}
	}
	return best;
}

/* ---- links that are worse ------------------------------------------------------------------- */

/* One of them in its place: what it adds to a hop over which it sends, or takes in; how much later
 * its streams begin; how long a byte of the sum takes through it, and how much longer than in
 * another place. */
struct cost_drag {
	struct tree_place place;
	uint32_t height;
	double sends, takes, begins, more_ns, byte_ns;
};

static double cost_more(uint64_t ns, uint64_t than)
{
	return ns > than ? (double)(ns - than) : 0;
}

static struct cost_drag cost_drag(uint32_t n, uint32_t d, uint64_t chunk, struct topology_link link,
				  const struct topology_slow *slow)
{
	struct topology_link own = cost_known(slow->link);
	struct cost_drag g = {.place = tree_find(n, d, slow->position)};
	uint32_t width = tree_width(g.place.span.count, d), copies = width > 1 ? width : 1;
	double later = cost_more(own.latency_ns, link.latency_ns);
	double longer = cost_byte_ns(own) - cost_byte_ns(link);

	if (longer < 0)
		longer = 0;
	g.height = tree_depth(g.place.span.count, d);
	g.sends = g.place.depth ? later + (double)chunk * longer : 0;
	g.takes = width ? later + width * (double)chunk * longer : 0;
	g.begins = cost_more(own.start_ns, link.start_ns);
	g.more_ns = copies * longer;
	g.byte_ns = g.more_ns + copies * 1e9 / (double)link.bytes_per_s;
	if (g.place.depth && longer > 0) /* the others take of the links above what they can get */
		g.byte_ns += (tree_width(n, d) - 1) * 1e9 / (double)link.bytes_per_s;
	return g;
}

/* Whether what a position sends passes it. */
static bool cost_passes(const struct cost_drag *g, uint32_t position)
{
	return position >= g->place.span.first &&
	       position < g->place.span.first + g->place.span.count;
}

uint64_t cost_tree_slow_ns(uint32_t n, uint32_t d, struct cost_object o, struct topology_link link,
			   const struct topology_slow *slow, uint32_t count)
{
	uint64_t chunk = cost_chunk(o), rest = o.size_bytes - chunk;
	uint64_t alike = cost_tree_ns(n, d, o, link);
	double most = (double)alike, hop;
	struct cost_drag g[TOPOLOGY_SLOW_MAX];

	if (alike >= UINT64_MAX - 1 || count == 0)
		return alike;
	link = cost_known(link);
	hop = (double)link.latency_ns + (double)chunk * 1e9 / (double)link.bytes_per_s;
	count = count < TOPOLOGY_SLOW_MAX ? count : TOPOLOGY_SLOW_MAX;
	for (uint32_t k = 0; k < count; k++)
		g[k] = cost_drag(n, d, chunk, link, &slow[k]);
	for (uint32_t k = 0; k < count; k++) {
		double ns = (g[k].place.depth + g[k].height) * hop, begins = 0, byte_ns = 0;

		for (uint32_t j = 0; j < count; j++) {
			if (!cost_passes(&g[j], slow[k].position))
				continue;
			ns += g[j].sends + g[j].takes;
			begins = g[j].begins > begins ? g[j].begins : begins;
			byte_ns = g[j].byte_ns > byte_ns ? g[j].byte_ns : byte_ns;
		}
		ns += (double)link.start_ns + (double)rest * byte_ns;
		if (g[k].place.depth == 0) /* all comes through it */
			ns = (double)alike + g[k].takes + (double)rest * g[k].more_ns;
		ns += begins;
		most = ns > most ? ns : most;
	}
	return cost_whole(most);
}

/* ---- values --------------------------------------------------------------------------------- */

static bool cost_values_hold(uint32_t n, uint32_t copies, struct cost_object o, uint64_t setup_ns,
			     struct topology_link link)
{
	uint32_t d = cost_tree_degree(n, o, link);
	double values =
		(double)copies * (double)o.size_bytes * 1e9 / (double)cost_known(link).bytes_per_s;

	return values <= (double)setup_ns + (double)cost_tree_ns(n, d, o, link);
}

/* The tree's estimate bends down as the size grows, that of the values does not: they meet once. */
uint64_t cost_values_max(uint32_t n, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
			 uint64_t setup_ns, struct topology_link link)
{
	struct cost_object o = {most, chunk_bytes};
	uint64_t holds = 0, fails = most;

	if (cost_values_hold(n, copies, o, setup_ns, link))
		return most;
	while (fails - holds > 64) {
		o.size_bytes = (holds + fails) / 2;
		if (cost_values_hold(n, copies, o, setup_ns, link))
			holds = o.size_bytes;
		else
			fails = o.size_bytes;
	}
	return holds;
}

uint64_t cost_exchange_max(uint32_t p, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
			   uint64_t setup_ns, struct topology_link link)
{
	uint64_t least = (p - 1) * chunk_bytes; /* of p - 1 chunks */
	double passes, bytes;

	if (p < 2)
		return most;
	passes = copies + (p - 1) - 2.0 * (p - 1) / p;
	bytes = (double)(setup_ns + 2 * link.latency_ns) * (double)link.bytes_per_s / 1e9 / passes;
	if (bytes < (double)least)
		bytes = (double)least;
	return bytes < (double)most ? (uint64_t)bytes : most;
}

/* ---- broadcasts ----------------------------------------------------------------------------- */

/* Never so much that a sum of some does not fit. */
static uint64_t cost_copies_ns(const struct topology_link *link, uint64_t bytes, uint64_t copies)
{
	double ns = (double)bytes * (double)copies / (double)link->bytes_per_s * 1e9;

	return ns < COST_NS_MAX ? (uint64_t)ns : (uint64_t)COST_NS_MAX;
}

/* Levels of a tree of d children each that n receivers fill, the root's children first. */
static uint32_t cost_levels(uint32_t n, uint32_t d)
{
	uint64_t level = d, below = 0;
	uint32_t k = 0;

	if (d == 1)
		return n;
	for (; below < n; k++) {
		below += level;
		level *= d;
	}
	return k;
}

static uint64_t cost_broadcast_tree(uint32_t n, uint32_t d, const struct cost_object *o,
				    const struct topology_link *link)
{
	uint32_t width = d < n ? d : n, levels = cost_levels(n, width);
	uint64_t chunk = o->chunk_bytes < o->size_bytes ? o->chunk_bytes : o->size_bytes;

	return link->start_ns + cost_copies_ns(link, o->size_bytes, width) +
	       (levels - 1) * cost_copies_ns(link, chunk, width) + levels * link->latency_ns;
}

uint64_t cost_broadcast_ns(uint32_t n, uint32_t d, struct cost_object o, struct topology_link link)
{
	return cost_broadcast_tree(n, d, &o, &link);
}

uint32_t cost_broadcast_degree(uint32_t n, uint32_t most, struct cost_object o,
			       struct topology_link link)
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t best = 1;

	for (uint32_t d = 1; d <= most && d <= n; d++) {
		uint64_t ns = cost_broadcast_tree(n, d, &o, &link);

		if (ns < best_ns) {
			best_ns = ns;
			best = d;
		}
	}
	return best;
}

uint64_t cost_answers_ns(uint32_t n, uint64_t size_bytes, struct topology_link link)
{
	return cost_copies_ns(&link, size_bytes, n) + link.latency_ns;
}
