/* SPDX-License-Identifier: BSD-3-Clause */
#include "fanout.h"

#define FANOUT_SECOND	UINT64_C(1000000000)
#define FANOUT_NS_MAX	1e18
#define FANOUT_RATE_MIN UINT64_C(10000)
#define FANOUT_RATE_MAX UINT64_C(1000000000000)

enum { FANOUT_FORGET = 32 }; /* measurements until a better one of before is forgotten by 63 % */

struct fanout_link fanout_prior(void)
{
	return (struct fanout_link){.start_ns = 100000, .hop_ns = 20000, .bytes_per_s = 1250000000};
}

static void fanout_least(uint64_t *least, bool *seen, uint64_t ns)
{
	if (ns > FANOUT_SECOND)
		ns = FANOUT_SECOND;
	*least = ns < *least || !*seen ? ns : *least + (ns - *least) / FANOUT_FORGET;
	*seen = true;
}

void fanout_saw_start(struct fanout_link *l, uint64_t ns)
{
	fanout_least(&l->start_ns, &l->start_seen, ns);
	/* handshakes are rare and may all have met a busy machine */
	if (l->hop_ns > l->start_ns / 2)
		l->hop_ns = l->start_ns / 2;
}

void fanout_saw_hop(struct fanout_link *l, uint64_t ns)
{
	fanout_least(&l->hop_ns, &l->hop_seen, ns);
}

void fanout_saw_rate(struct fanout_link *l, uint64_t bytes_per_s)
{
	uint64_t rate = bytes_per_s < FANOUT_RATE_MIN	? FANOUT_RATE_MIN
			: bytes_per_s > FANOUT_RATE_MAX ? FANOUT_RATE_MAX
							: bytes_per_s;

	l->bytes_per_s = rate > l->bytes_per_s || !l->rate_seen
				 ? rate
				 : l->bytes_per_s - (l->bytes_per_s - rate) / FANOUT_FORGET;
	l->rate_seen = true;
}

uint64_t fanout_rate(const struct fanout_link *l, uint64_t bytes, uint64_t taken_ns)
{
	uint64_t ns = l->start_ns < taken_ns / 2 ? taken_ns - l->start_ns : taken_ns / 2;

	if (bytes < FANOUT_RATE_BYTES || ns == 0)
		return 0;
	return (uint64_t)((double)bytes * (double)FANOUT_SECOND / (double)ns);
}

/* Never so much that a sum of some does not fit. */
static uint64_t fanout_ns(const struct fanout_link *l, uint64_t bytes, uint64_t copies)
{
	double ns = (double)bytes * (double)copies / (double)l->bytes_per_s * 1e9;

	return ns < FANOUT_NS_MAX ? (uint64_t)ns : (uint64_t)FANOUT_NS_MAX;
}

/* Levels of a tree of d children each that n receivers fill, the root's children first. */
static uint32_t fanout_levels(uint32_t n, uint32_t d)
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

uint64_t fanout_tree_ns(const struct fanout_link *l, uint32_t n, uint32_t d, uint64_t bytes,
			uint32_t chunk_bytes)
{
	uint32_t width = d < n ? d : n, levels = fanout_levels(n, width);
	uint64_t chunk = chunk_bytes < bytes ? chunk_bytes : bytes;

	return l->start_ns + fanout_ns(l, bytes, width) +
	       (levels - 1) * fanout_ns(l, chunk, width) + levels * l->hop_ns;
}

uint64_t fanout_star_ns(const struct fanout_link *l, uint32_t n, uint64_t bytes)
{
	return fanout_ns(l, bytes, n) + l->hop_ns;
}

uint32_t fanout_choose(const struct fanout_link *l, uint32_t n, uint64_t bytes,
		       uint32_t chunk_bytes)
{
	uint64_t best_ns = UINT64_MAX;
	uint32_t best = 1;

	for (uint32_t d = 1; d <= FANOUT_MAX && d <= n; d++) {
		uint64_t ns = fanout_tree_ns(l, n, d, bytes, chunk_bytes);

		if (ns < best_ns) {
			best_ns = ns;
			best = d;
		}
	}
	return best;
}

bool fanout_inline(const struct fanout_link *l, uint32_t n, uint64_t bytes, uint32_t chunk_bytes)
{
	uint32_t d = fanout_choose(l, n, bytes, chunk_bytes);

	return fanout_star_ns(l, n, bytes) <= fanout_tree_ns(l, n, d, bytes, chunk_bytes);
}
