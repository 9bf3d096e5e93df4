/* SPDX-License-Identifier: BSD-3-Clause */
#include <xxhash.h>
#include "env.h"
#include "rooms.h"
#include "text.h"

#define CLOCK_AHEAD_NS (3600 * UINT64_C(1000000000))

uint64_t control_random(struct control *c)
{
	c->random++;
	return XXH3_64bits_withSeed(&c->random, sizeof(c->random), c->config.seed);
}

uint64_t control_generation_max(const struct control *c)
{
	uint64_t clock_ns = c->epoch_ns + c->now_ns;

	return clock_ns > MESSAGE_GENERATION_MAX - CLOCK_AHEAD_NS ? MESSAGE_GENERATION_MAX
								  : clock_ns + CLOCK_AHEAD_NS;
}

uint64_t control_generation(struct control *c)
{
	uint64_t clock = (c->epoch_ns + c->now_ns) / NODES_MAX * NODES_MAX;

	c->generation += NODES_MAX;
	if (c->generation < clock)
		c->generation = clock;
	return c->generation | (c->config.node % NODES_MAX);
}

void control_generation_after(struct control *c, uint64_t generation)
{
	generation = generation / NODES_MAX * NODES_MAX;
	if (generation > c->generation && generation <= control_generation_max(c))
		c->generation = generation;
}

uint64_t control_backoff(struct control *c, uint32_t attempts)
{
	uint64_t pause = c->config.backoff_min_ns;

	while (attempts-- > 1 && pause < c->config.backoff_max_ns)
		pause *= 2;
	if (pause > c->config.backoff_max_ns)
		pause = c->config.backoff_max_ns;
	return pause / 2 + control_random(c) % (pause / 2 + 1);
}

void control_log(struct control *c, enum control_log_level level, const struct text *t)
{
	if (c->ops.log)
		c->ops.log(c->ops.arg, level, t->bytes);
}
