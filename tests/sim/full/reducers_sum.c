/* SPDX-License-Identifier: BSD-3-Clause */
/* Which sources are in a result: they are added up here once more. */
#include "reducers.h"

#include <stdlib.h>

uint64_t reducers_seed(const struct reducer_job *j, uint32_t source, uint64_t generation)
{
	return prng_mix(generation ^ prng_mix(j->number * 64 + source + 1));
}

struct sum {
	const struct reducer_job *j;
	const uint8_t *bytes;
	uint32_t words, first;		   /* of bytes; the first of them */
	uint32_t used;			   /* must be these; 0: any num of them */
	uint64_t chosen[REDUCERS_SOURCES]; /* seeds; 0: not in it */
	uint32_t *total;
};

static uint32_t sum_word(uint64_t seed)
{
	uint32_t word;
	memory_fill((uint8_t *)&word, seed, 0, sizeof(word));
	return word;
}

static bool sum_holds(struct sum *s)
{
	uint32_t *one = s->total + s->words;
	memset(s->total, 0, 4 * (size_t)s->words);
	for (uint32_t i = 0; i < s->j->count; i++) {
		if (!s->chosen[i])
			continue;
		memory_fill((uint8_t *)one, s->chosen[i], 0, 4 * (size_t)s->words);
		for (uint32_t w = 0; w < s->words; w++)
			s->total[w] += one[w];
	}
	return memcmp(s->total, s->bytes, 4 * (size_t)s->words) == 0;
}

/* Tries every choice of sources, and of what each once was, by the first word. */
static bool sum_try(struct sum *s, uint32_t source, uint32_t left, uint32_t rest)
{
	const struct reducer_source *from = &s->j->source[source];
	if (left == 0 && s->used >> source == 0)
		return rest == 0 && sum_holds(s);
	if (source == s->j->count)
		return false;
	for (uint32_t v = 0; left && v < from->versions; v++) {
		if (s->used && !(s->used >> source & 1))
			break;
		s->chosen[source] = reducers_seed(s->j, source, from->version[v].generation);
		if (sum_try(s, source + 1, left - 1, rest - sum_word(s->chosen[source])))
			return true;
	}
	s->chosen[source] = 0;
	if (s->used >> source & 1)
		return false;
	return sum_try(s, source + 1, left, rest);
}

static bool sum_check(const struct reducer_job *j, const uint8_t *bytes, uint64_t upto,
		      uint32_t used)
{
	struct sum s = {.j = j, .bytes = bytes, .words = (uint32_t)(upto / 4), .used = used};
	bool good = false;
	if (s.words == 0)
		return true;
	memcpy(&s.first, bytes, sizeof(s.first));
	s.total = malloc(8 * (size_t)s.words);
	for (uint32_t num = j->num; s.total && !good && reducers_enough(j, num); num--)
		good = (!used || num == (uint32_t)__builtin_popcount(used)) &&
		       sum_try(&s, 0, num, s.first);
	free(s.total);
	return good;
}

static struct reducer_result *result_find(struct reducers *c, struct reducer_job *j,
					  uint64_t generation)
{
	for (uint32_t i = 0; i < j->results; i++)
		if (j->result[i].generation == generation)
			return &j->result[i];
	if (j->results == REDUCERS_RESULTS)
		return NULL;
	j->result[j->results] =
		(struct reducer_result){.generation = generation, .bytes = calloc(1, j->size + 8)};
	return &j->result[j->results++];
}

void reducers_saw(struct reducers *c, struct reducer_job *j, uint32_t node, uint64_t generation,
		  const uint8_t *bytes, uint64_t upto, uint32_t used)
{
	struct reducer_result *r = result_find(c, j, generation);
	uint64_t common;
	if (!r)
		return;
	common = upto < r->seen ? upto : r->seen;
	if (memcmp(r->bytes, bytes, common) != 0) {
		world_violation(c->g->w, "job %u: node %u sees other bytes of generation %llx",
				j->number, node, (unsigned long long)generation);
		return;
	}
	if (upto > r->seen) {
		memcpy(r->bytes + r->seen, bytes + r->seen, upto - r->seen);
		r->seen = upto;
	} else if (r->judged && !used) {
		return;
	}
	r->judged = r->seen == j->size;
	if (!sum_check(j, r->bytes, r->seen, used))
		world_violation(c->g->w,
				"job %u: node %u has %llu of %u bytes of generation %llx that are "
				"no sum of %u of its %u sources (told: %x)",
				j->number, node, (unsigned long long)upto, j->size,
				(unsigned long long)generation, j->num, j->count, used);
}
