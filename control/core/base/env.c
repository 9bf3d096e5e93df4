/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <xxhash.h>
#include "env.h"
#include "modules.h"
#include "text.h"

/* A raised generation is drawn from so many. The first draw of a control keeps apart what it makes
 * from what an earlier one has made. Later draws are small: nodes that delete and put an id in turn
 * raise each other's generations at every turn, and must not outrun the clocks (a turn takes longer
 * than 256 generations, 262 us). */
enum { GENERATION_DRAWS_FIRST = 1 << 16, GENERATION_DRAWS = 1 << 8 };

uint64_t env_random(struct control *c)
{
	c->random++;
	return XXH3_64bits_withSeed(&c->random, sizeof(c->random), c->config.seed);
}

/* [G2.4] */
uint64_t env_generation_max(const struct control *c)
{
	uint64_t clock_ns = c->epoch_ns + c->now_ns;

	return clock_ns > MESSAGE_GENERATION_MAX - CLOCK_AHEAD_NS ? MESSAGE_GENERATION_MAX
								  : clock_ns + CLOCK_AHEAD_NS;
}

uint64_t env_generation(struct control *c)
{
	uint64_t clock = (c->epoch_ns + c->now_ns) / NODES_MAX * NODES_MAX;

	c->generation += NODES_MAX;
	if (c->generation < clock)
		c->generation = clock;
	assert(c->generation % NODES_MAX == 0);
	return c->generation | (c->config.node % NODES_MAX);
}

/* A number of generations, or 0 while the clock is ahead of that generation. An earlier control of
 * this node draws another number: the seed is never the same twice. [G2.3] */
static uint64_t env_generation_draw(struct control *c, uint64_t generation)
{
	uint32_t draws = c->generation_drawn ? GENERATION_DRAWS : GENERATION_DRAWS_FIRST;

	if (generation < (c->epoch_ns + c->now_ns) / NODES_MAX * NODES_MAX)
		return 0;
	c->generation_drawn = true;
	return XXH3_64bits_withSeed(&generation, sizeof(generation), c->config.seed) % draws;
}

/* [G2.2] */
void env_generation_after(struct control *c, uint64_t generation)
{
	uint64_t max = env_generation_max(c), draw;

	generation = generation / NODES_MAX * NODES_MAX;
	if (generation <= c->generation || generation > max)
		return;
	draw = env_generation_draw(c, generation) * NODES_MAX;
	c->generation = generation + (draw <= max - generation ? draw : 0);
}

uint64_t env_backoff(struct control *c, uint32_t attempts)
{
	uint64_t pause = c->config.backoff_min_ns;

	while (attempts-- > 1 && pause < c->config.backoff_max_ns)
		pause *= 2;
	if (pause > c->config.backoff_max_ns)
		pause = c->config.backoff_max_ns;
	return pause / 2 + env_random(c) % (pause / 2 + 1);
}

void env_log(struct control *c, enum control_log_level level, const struct text *t)
{
	if (c->ops.log)
		c->ops.log(c->ops.arg, level, t->bytes);
}
