/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Divides the missing chunks of a fetch among its feeds: one range each, in proportion to their
 * rates. Divides again when a feed has brought its range, joins or fails. All feeds are asked for
 * the last few chunks. Called by fetch.c and monitor.c.
 */
#include "state.h"

enum { DIVIDE_TAIL_CHUNKS = 32, DIVIDE_TAIL_PER_SECOND = 500 /* or what comes in 2 ms */ };

const uint64_t *ranges_map(struct control *c, const struct fetch *f)
{
	const struct stage *s = objects_at(c, f->slot)->stage;
	uint32_t range = s ? s->bitmap : f->bitmap;

	return range ? (const uint64_t *)(const void *)scratch_at(c, range) : NULL;
}

uint32_t ranges_chunks(const struct fetch *f)
{
	return (uint32_t)chunk_count(f->size, f->chunk_bytes);
}

struct feed *ranges_feed_free(struct fetch *f)
{
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (f->feed[i].state == FEED_FREE)
			return &f->feed[i];
	return NULL;
}

struct feed *ranges_feed_of(struct fetch *f, const struct node *holder)
{
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (f->feed[i].holder == holder)
			return &f->feed[i];
	return NULL;
}

uint32_t ranges_feeds(const struct fetch *f)
{
	uint32_t count = 0;

	for (int i = 0; i < FETCH_FEEDS; i++)
		count += f->feed[i].state != FEED_FREE;
	return count;
}

/* Whether a feed gets no range: it is silent, and another one may bring chunks. */
static bool ranges_passes(const struct fetch *f, const struct feed *d)
{
	bool others = false;

	for (int i = 0; i < FETCH_FEEDS; i++)
		others |= f->feed[i].state != FEED_FREE && !f->feed[i].silent;
	return d->state == FEED_FREE || (d->silent && others);
}

/* The order of feeds: those with a range first, in the order of their ranges, so that they can keep
 * their streams. */
static bool ranges_before(const struct feed *a, const struct feed *b)
{
	if ((a->missing == 0) != (b->missing == 0))
		return b->missing == 0;
	return a->first < b->first;
}

static uint32_t ranges_order(struct fetch *f, struct feed *order[FETCH_FEEDS])
{
	uint32_t count = 0;

	for (int i = 0; i < FETCH_FEEDS; i++) {
		struct feed *d = &f->feed[i];
		uint32_t at = count;

		if (ranges_passes(f, d))
			continue;
		for (; at > 0 && ranges_before(d, order[at - 1]); at--)
			order[at] = order[at - 1];
		order[at] = d;
		count++;
	}
	return count;
}

/* The weights of the feeds. A feed without a measured rate counts as the fastest. */
static void ranges_weights(struct feed *const *order, uint32_t count, uint64_t *weight)
{
	uint64_t most = 1;

	for (uint32_t i = 0; i < count; i++)
		if (order[i]->rate > most)
			most = order[i]->rate;
	for (uint32_t i = 0; i < count; i++) {
		bool fresh = order[i]->state != FEED_STREAM || order[i]->fresh;

		weight[i] = fresh ? most : order[i]->rate > most / 64 ? order[i]->rate : most / 64;
		weight[i] += weight[i] == 0;
	}
}

void ranges_divide(struct control *c, struct fetch *f)
{
	const uint64_t *map = ranges_map(c, f);
	uint32_t chunks = ranges_chunks(f), at = 0, count, missing, tail;
	struct feed *order[FETCH_FEEDS];
	uint64_t weight[FETCH_FEEDS], sum = 0;

	count = ranges_order(f, order);
	missing = map ? chunks_missing(map, 0, chunks) : chunks;
	ranges_weights(order, count, weight);
	tail = DIVIDE_TAIL_CHUNKS + (uint32_t)(f->rate / DIVIDE_TAIL_PER_SECOND / f->chunk_bytes);
	for (uint32_t i = 0; i < count; i++)
		sum += weight[i];
	for (uint32_t i = 0; i < count; i++) {
		uint64_t share = (uint64_t)((double)missing * (double)weight[i] / (double)sum);
		bool all = i + 1 == count || !map;
		uint32_t end = all ? chunks : bitmap_after(map, at, chunks, (uint32_t)share);

		if (missing <= tail)
			upstream_assign(c, order[i], 0, chunks);
		else
			upstream_assign(c, order[i], at, end);
		at = end;
	}
}
