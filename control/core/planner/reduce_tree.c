/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce_tree.h"
#include <stdbool.h>

/* A subtree: the positions [first, first + count). */
struct reduce_span {
	uint32_t first, count;
};

static bool reduce_tree_is(uint32_t n, uint32_t d)
{
	return n > 0 && n <= REDUCE_TREE_MAX && d > 0;
}

static uint32_t reduce_tree_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* How many children the root of so many positions has. */
static uint32_t reduce_tree_width(uint32_t count, uint32_t d)
{
	return reduce_tree_min(d, count - 1);
}

/* The size of the first, the largest, of them; 0 when there is none. */
static uint32_t reduce_tree_largest(uint32_t count, uint32_t d)
{
	uint32_t width = reduce_tree_width(count, d);

	return width ? (count - 2) / width + 1 : 0;
}

static uint32_t reduce_tree_top(struct reduce_span s, uint32_t d)
{
	return s.first + reduce_tree_largest(s.count, d);
}

/* The j-th child's subtree; the root's own position lies between the first two. */
static struct reduce_span reduce_tree_part(struct reduce_span s, uint32_t d, uint32_t j)
{
	uint32_t width = reduce_tree_width(s.count, d);
	uint32_t small = (s.count - 1) / width, larger = (s.count - 1) % width;

	return (struct reduce_span){
		.first = s.first + j * small + reduce_tree_min(j, larger) + (j > 0),
		.count = small + (j < larger),
	};
}

/* Which child's subtree holds position i, which is not the root's. */
static uint32_t reduce_tree_side(struct reduce_span s, uint32_t d, uint32_t i)
{
	uint32_t width = reduce_tree_width(s.count, d);
	uint32_t small = (s.count - 1) / width, larger = (s.count - 1) % width;
	uint32_t at = i - s.first - (i > reduce_tree_top(s, d));

	if (at < larger * (small + 1))
		return at / (small + 1);
	return larger + (at - larger * (small + 1)) / small;
}

/* A position: the subtree of which it is the root, its parent, the hops to the tree's root. */
struct reduce_place {
	struct reduce_span span;
	uint32_t parent, depth;
};

static struct reduce_place reduce_tree_find(uint32_t n, uint32_t d, uint32_t i)
{
	struct reduce_place p = {{0, n}, REDUCE_TREE_NONE, 0};

	if (d == 1 && i + 1 < n) /* no walk down a chain */
		return (struct reduce_place){{0, i + 1}, i + 1, n - 1 - i};
	for (; reduce_tree_top(p.span, d) != i; p.depth++) {
		p.parent = reduce_tree_top(p.span, d);
		p.span = reduce_tree_part(p.span, d, reduce_tree_side(p.span, d, i));
	}
	return p;
}

uint32_t reduce_tree_root(uint32_t n, uint32_t d)
{
	return reduce_tree_is(n, d) ? reduce_tree_top((struct reduce_span){0, n}, d)
				    : REDUCE_TREE_NONE;
}

uint32_t reduce_tree_parent(uint32_t n, uint32_t d, uint32_t i)
{
	if (!reduce_tree_is(n, d) || i >= n)
		return REDUCE_TREE_NONE;
	return reduce_tree_find(n, d, i).parent;
}

uint32_t reduce_tree_children(uint32_t n, uint32_t d, uint32_t i, uint32_t *out, uint32_t max)
{
	struct reduce_span s;
	uint32_t width;

	if (!reduce_tree_is(n, d) || i >= n)
		return 0;
	s = reduce_tree_find(n, d, i).span;
	width = reduce_tree_width(s.count, d);
	for (uint32_t j = 0; j < width && j < max; j++)
		out[j] = reduce_tree_top(reduce_tree_part(s, d, j), d);
	return width;
}

uint32_t reduce_tree_depth(uint32_t n, uint32_t d)
{
	uint32_t depth = 0;

	if (!reduce_tree_is(n, d))
		return 0;
	for (; n > 1; n = reduce_tree_largest(n, d))
		depth++;
	return depth;
}

/* With the assumed values in place of those that are missing. */
static struct reduce_link reduce_tree_known(struct reduce_link link)
{
	if (link.latency_ns == 0)
		link.latency_ns = REDUCE_TREE_LATENCY_NS;
	if (link.bytes_per_s == 0)
		link.bytes_per_s = REDUCE_TREE_BYTES_PER_S;
	return link;
}

/* What a tree's time is made of, in nanoseconds: one hop; a chunk on a link. */
struct reduce_pace {
	uint32_t d;
	double latency, chunk;
};

/* When the roots of trees of so many positions, and of one less, have their first chunk. */
struct reduce_pair {
	double whole, less;
};

/*
 * When a root of count positions has so much, unit ns on its link, from each of its children, whose
 * subtrees are of part positions and of one less. The latter are there first and use the link while
 * the others are still waited for.
 */
static double reduce_tree_join(const struct reduce_pace *p, uint32_t count, uint32_t part,
			       struct reduce_pair below, double unit)
{
	uint32_t width = reduce_tree_width(count, p->d);
	uint32_t larger = count - 1 - width * (part - 1), smaller = width - larger;
	double ns = smaller ? below.less + smaller * unit : 0;

	if (width == 0)
		return 0;
	if (larger && ns < below.whole)
		ns = below.whole;
	return ns + p->latency + larger * unit;
}

/* Two sizes are enough: the parts of count positions and of one less differ by one at most. */
static struct reduce_pair reduce_tree_first(const struct reduce_pace *p, uint32_t count)
{
	uint32_t part = reduce_tree_largest(count, p->d);
	struct reduce_pair below;

	if (count <= 1)
		return (struct reduce_pair){0, 0};
	if (p->d == 1) /* no walk down a chain; otherwise ten calls at most */
		return (struct reduce_pair){(count - 1) * (p->latency + p->chunk),
					    (count - 2) * (p->latency + p->chunk)};
	below = reduce_tree_first(p, part);
	return (struct reduce_pair){reduce_tree_join(p, count, part, below, p->chunk),
				    reduce_tree_join(p, count - 1, part, below, p->chunk)};
}

uint64_t reduce_tree_time(uint32_t n, uint32_t d, uint64_t size_bytes, uint64_t chunk_bytes,
			  struct reduce_link link)
{
	uint64_t chunk = chunk_bytes && chunk_bytes < size_bytes ? chunk_bytes : size_bytes;
	struct reduce_pace pace = {.d = d};
	double byte_ns, ns;
	uint32_t part;

	if (!reduce_tree_is(n, d))
		return UINT64_MAX;
	link = reduce_tree_known(link);
	byte_ns = 1e9 / (double)link.bytes_per_s;
	pace.latency = (double)link.latency_ns;
	pace.chunk = (double)chunk * byte_ns;
	part = reduce_tree_largest(n, d);
	/* no node is wider than the root: when the first chunks are there, its link sets the pace
	 */
	ns = reduce_tree_join(&pace, n, part, reduce_tree_first(&pace, part),
			      (double)size_bytes * byte_ns);
	if (n > 1)
		ns += (double)link.start_ns;
	return ns < 0x1p63 ? (uint64_t)ns : UINT64_MAX - 1;
}

uint32_t reduce_tree_degree(uint32_t n, uint64_t size_bytes, uint64_t chunk_bytes,
			    struct reduce_link link)
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t best = 0;

	for (uint32_t d = 1; d == 1 || d < n; d++) {
		uint64_t ns = reduce_tree_time(n, d, size_bytes, chunk_bytes, link);

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
struct reduce_drag {
	struct reduce_place place;
	uint32_t height;
	double sends, takes, begins, more_ns, byte_ns;
};

static double reduce_tree_more(uint64_t ns, uint64_t than)
{
	return ns > than ? (double)(ns - than) : 0;
}

static struct reduce_drag reduce_tree_drag(uint32_t n, uint32_t d, uint64_t chunk,
					   struct reduce_link link, const struct reduce_slow *slow)
{
	struct reduce_link own = reduce_tree_known(slow->link);
	struct reduce_drag g = {.place = reduce_tree_find(n, d, slow->position)};
	uint32_t width = reduce_tree_width(g.place.span.count, d);
	double later = reduce_tree_more(own.latency_ns, link.latency_ns);
	double longer = 1e9 / (double)own.bytes_per_s - 1e9 / (double)link.bytes_per_s;

	if (longer < 0)
		longer = 0;
	g.height = reduce_tree_depth(g.place.span.count, d);
	g.sends = g.place.depth ? later + (double)chunk * longer : 0;
	g.takes = width ? later + width * (double)chunk * longer : 0;
	g.begins = reduce_tree_more(own.start_ns, link.start_ns);
	g.more_ns = (width > 1 ? width : 1) * longer;
	g.byte_ns = g.more_ns + (width > 1 ? width : 1) * 1e9 / (double)link.bytes_per_s;
	if (g.place.depth && longer > 0) /* the others take of the links above what they can get */
		g.byte_ns += (reduce_tree_width(n, d) - 1) * 1e9 / (double)link.bytes_per_s;
	return g;
}

/* Whether what position i sends passes it. */
static bool reduce_tree_passes(const struct reduce_drag *g, uint32_t i)
{
	return i >= g->place.span.first && i < g->place.span.first + g->place.span.count;
}

uint64_t reduce_tree_time_slow(uint32_t n, uint32_t d, uint64_t size_bytes, uint64_t chunk_bytes,
			       struct reduce_link link, const struct reduce_slow *slow,
			       uint32_t count)
{
	uint64_t chunk = chunk_bytes && chunk_bytes < size_bytes ? chunk_bytes : size_bytes;
	uint64_t alike = reduce_tree_time(n, d, size_bytes, chunk_bytes, link);
	double most = (double)alike, hop;
	struct reduce_drag g[REDUCE_SLOW_MAX];

	if (alike >= UINT64_MAX - 1 || count == 0)
		return alike;
	link = reduce_tree_known(link);
	hop = (double)link.latency_ns + (double)chunk * 1e9 / (double)link.bytes_per_s;
	count = reduce_tree_min(count, REDUCE_SLOW_MAX);
	for (uint32_t k = 0; k < count; k++)
		g[k] = reduce_tree_drag(n, d, chunk, link, &slow[k]);
	for (uint32_t k = 0; k < count; k++) {
		double ns = (g[k].place.depth + g[k].height) * hop, begins = 0, byte_ns = 0;

		for (uint32_t j = 0; j < count; j++) {
			if (!reduce_tree_passes(&g[j], slow[k].position))
				continue;
			ns += g[j].sends + g[j].takes;
			begins = g[j].begins > begins ? g[j].begins : begins;
			byte_ns = g[j].byte_ns > byte_ns ? g[j].byte_ns : byte_ns;
		}
		ns += (double)link.start_ns + (double)(size_bytes - chunk) * byte_ns;
		if (g[k].place.depth == 0) /* all comes through it */
			ns = (double)alike + g[k].takes +
			     (double)(size_bytes - chunk) * g[k].more_ns;
		ns += begins;
		most = ns > most ? ns : most;
	}
	return most < 0x1p63 ? (uint64_t)most : UINT64_MAX - 1;
}

/* ---- values or a tree ----------------------------------------------------------------------- */

static bool reduce_tree_slower(uint32_t n, uint32_t copies, uint64_t size_bytes,
			       uint64_t chunk_bytes, uint64_t setup_ns, struct reduce_link link)
{
	uint32_t d = reduce_tree_degree(n, size_bytes, chunk_bytes, link);
	double values = (double)copies * (double)size_bytes * 1e9 /
			(double)reduce_tree_known(link).bytes_per_s;

	return values <=
	       (double)setup_ns + (double)reduce_tree_time(n, d, size_bytes, chunk_bytes, link);
}

/* The tree's estimate bends down as the size grows, that of the values does not: they meet once. */
uint64_t reduce_tree_value_max(uint32_t n, uint32_t copies, uint64_t most, uint64_t chunk_bytes,
			       uint64_t setup_ns, struct reduce_link link)
{
	uint64_t holds = 0, fails = most;

	if (reduce_tree_slower(n, copies, most, chunk_bytes, setup_ns, link))
		return most;
	while (fails - holds > 64) {
		uint64_t size = (holds + fails) / 2;

		if (reduce_tree_slower(n, copies, size, chunk_bytes, setup_ns, link))
			holds = size;
		else
			fails = size;
	}
	return holds;
}
