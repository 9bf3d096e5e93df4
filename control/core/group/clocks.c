/* SPDX-License-Identifier: BSD-3-Clause */
#include "clocks.h"

#include <assert.h>
#include <string.h>

void clocks_init(struct clocks *c, uint64_t base, uint64_t mark)
{
	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i < GROUP_RING; i++)
		c->mark[i] = mark;
	c->base = base;
	c->end = base + GROUP_RING;
}

static void clocks_count(struct clocks *c, uint64_t clock)
{
	assert(clock >= c->base);
	if (clock < c->end)
		c->ring[clock % GROUP_RING]++;
	else
		c->ahead++;
	c->members++;
}

static void clocks_uncount(struct clocks *c, uint64_t clock)
{
	assert(c->members > 0 && clock >= c->base);
	if (clock < c->end) {
		assert(c->ring[clock % GROUP_RING] > 0);
		c->ring[clock % GROUP_RING]--;
	} else {
		assert(c->ahead > 0);
		c->ahead--;
	}
	c->members--;
}

/* Moves the window to the minimum. */
static void clocks_advance(struct clocks *c, uint64_t mark)
{
	while (c->members > c->ahead && c->ring[c->base % GROUP_RING] == 0) {
		c->base++;
		c->mark[c->base % GROUP_RING] = mark;
	}
	if (c->ahead == 0)
		c->end = c->base + GROUP_RING;
}

bool clocks_add(struct clocks *c, uint64_t clock)
{
	if (clock < c->base)
		return false;
	clocks_count(c, clock);
	return true;
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

bool clocks_spent(const struct clocks *c)
{
	return c->members > 0 && c->members == c->ahead;
}

bool clocks_reached(const struct clocks *c, uint64_t v)
{
	return c->members == 0 || v <= c->base;
}

uint64_t clocks_mark(const struct clocks *c, uint64_t v)
{
	return v <= c->base && c->base - v < GROUP_RING ? c->mark[v % GROUP_RING] : 0;
}

uint64_t clocks_min(const struct clocks *c)
{
	return c->base;
}

bool clocks_valid(const struct clocks *c)
{
	uint64_t sum = c->ahead;

	for (uint32_t i = 0; i < GROUP_RING; i++)
		sum += c->ring[i];
	return sum == c->members && c->end >= c->base && c->end - c->base <= GROUP_RING &&
	       (c->ahead > 0 || c->end - c->base == GROUP_RING) &&
	       (c->members == c->ahead || c->ring[c->base % GROUP_RING] > 0);
}
