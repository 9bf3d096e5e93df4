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

/* The subtree of which i is the root, and i's parent. */
static struct reduce_span reduce_tree_find(uint32_t n, uint32_t d, uint32_t i, uint32_t *parent)
{
	struct reduce_span s = {0, n};

	*parent = REDUCE_TREE_NONE;
	if (d == 1 && i + 1 < n) { /* no walk down a chain */
		*parent = i + 1;
		return (struct reduce_span){0, i + 1};
	}
	while (reduce_tree_top(s, d) != i) {
		*parent = reduce_tree_top(s, d);
		s = reduce_tree_part(s, d, reduce_tree_side(s, d, i));
	}
	return s;
}

uint32_t reduce_tree_root(uint32_t n, uint32_t d)
{
	return reduce_tree_is(n, d) ? reduce_tree_top((struct reduce_span){0, n}, d)
				    : REDUCE_TREE_NONE;
}

uint32_t reduce_tree_parent(uint32_t n, uint32_t d, uint32_t i)
{
	uint32_t parent;

	if (!reduce_tree_is(n, d) || i >= n)
		return REDUCE_TREE_NONE;
	reduce_tree_find(n, d, i, &parent);
	return parent;
}

uint32_t reduce_tree_children(uint32_t n, uint32_t d, uint32_t i, uint32_t *out, uint32_t max)
{
	struct reduce_span s;
	uint32_t parent, width;

	if (!reduce_tree_is(n, d) || i >= n)
		return 0;
	s = reduce_tree_find(n, d, i, &parent);
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
