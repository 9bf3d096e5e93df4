/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator's random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), one instance per
 * purpose, so that a replay draws the same whatever else is switched on.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_PRNG_H
#define SARISSA_TESTS_SIM_MODEL_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t state;
};

static inline uint64_t prng_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t prng_next(struct prng *p)
{
	p->state += 0x9e3779b97f4a7c15ull;
	return prng_mix(p->state);
}

/* Uniform in [0, bound); 0 when bound is 0. */
static inline uint64_t prng_below(struct prng *p, uint64_t bound)
{
	return bound ? (uint64_t)((unsigned __int128)prng_next(p) * bound >> 64) : 0;
}

/* Uniform in [low, high]. */
static inline uint64_t prng_between(struct prng *p, uint64_t low, uint64_t high)
{
	return low + prng_below(p, high - low + 1);
}

/* True with a probability in parts per million. Draws nothing when that is 0. */
static inline bool prng_chance(struct prng *p, uint32_t ppm)
{
	return ppm && prng_below(p, 1000000) < ppm;
}

/* An independent stream for another purpose. */
static inline struct prng prng_fork(uint64_t seed, uint64_t purpose)
{
	return (struct prng){prng_mix(seed ^ prng_mix(purpose + 1))};
}

#endif
