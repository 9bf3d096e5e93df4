/* SPDX-License-Identifier: BSD-3-Clause */
#include "clocks.h"

#include <assert.h>
#include <string.h>

void clocks_init(struct clocks *c, uint64_t base)
{
	memset(c, 0, sizeof(*c));
	c->base = base;
}

bool clocks_fits(const struct clocks *c, uint64_t clock)
{
	return clock < c->base || clock - c->base < GROUP_RING ||
	       (c->members == 0 && clock >= c->base);
}

static void clocks_count(struct clocks *c, uint64_t clock)
{
	assert(clocks_fits(c, clock));
	if (clock < c->base)
		c->behind++;
	else
		c->ring[clock % GROUP_RING]++;
	c->members++;
}

static void clocks_uncount(struct clocks *c, uint64_t clock)
{
	assert(c->members > 0);
	if (clock < c->base) {
		assert(c->behind > 0);
		c->behind--;
	} else {
		assert(clock - c->base < GROUP_RING && c->ring[clock % GROUP_RING] > 0);
		c->ring[clock % GROUP_RING]--;
	}
	c->members--;
}

/* Moves the window to the minimum. */
static void clocks_advance(struct clocks *c, uint64_t mark)
{
	while (c->members > 0 && c->behind == 0 && c->ring[c->base % GROUP_RING] == 0) {
		c->base++;
		c->mark[c->base % GROUP_RING] = mark;
	}
}

void clocks_add(struct clocks *c, uint64_t clock)
{
	if (c->members == 0 && clock > c->base)
		c->base = clock; /* nobody was waited for */
	clocks_count(c, clock);
}

void clocks_remove(struct clocks *c, uint64_t clock, uint64_t mark)
{
	clocks_uncount(c, clock);
	clocks_advance(c, mark);
}

void clocks_move(struct clocks *c, uint64_t from, uint64_t to, uint64_t mark)
{
	clocks_count(c, to);
	clocks_uncount(c, from);
	clocks_advance(c, mark);
}

bool clocks_reached(const struct clocks *c, uint64_t v)
{
	return c->members == 0 || (c->behind == 0 && v <= c->base);
}

uint64_t clocks_mark(const struct clocks *c, uint64_t v)
{
	return v <= c->base && c->base - v < GROUP_RING ? c->mark[v % GROUP_RING] : 0;
}

uint64_t clocks_min(const struct clocks *c)
{
	return c->behind && c->base > 0 ? c->base - 1 : c->base;
}

bool clocks_valid(const struct clocks *c)
{
	uint64_t sum = c->behind;

	for (uint32_t i = 0; i < GROUP_RING; i++)
		sum += c->ring[i];
	return sum == c->members &&
	       (c->members == 0 || c->behind > 0 || c->ring[c->base % GROUP_RING] > 0);
}
