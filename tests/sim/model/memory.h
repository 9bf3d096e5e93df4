/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for a simulated node: each area stands alone between pages that nobody may touch, its
 * end exactly at the second one. And the bytes by which writes are judged: an object's content is
 * a function of its seed, everything that belongs to nobody is poison.
 */
#ifndef SARISSA_TESTS_SIM_MODEL_MEMORY_H
#define SARISSA_TESTS_SIM_MODEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEMORY_POISON = 0xa5 };

struct memory {
	uint8_t *base; /* 64-aligned */
	size_t bytes;
	void *map;
	size_t map_bytes;
};

/* A zeroed area; bytes are rounded up to a multiple of 64. Ends the process when there is none. */
struct memory memory_map(size_t bytes);
/* The same, all of it poison. Only pages that are touched take time and memory. */
struct memory memory_map_poisoned(size_t bytes);
void memory_unmap(struct memory *m);

void memory_poison(uint8_t *p, size_t bytes);
/* Index of the first byte that is not poison; bytes when all are. */
size_t memory_check_poison(const uint8_t *p, size_t bytes);

/* Content bytes [from, to) of the object with this seed, at p + from. */
void memory_fill(uint8_t *p, uint64_t seed, size_t from, size_t to);
/* Index of the first byte in [from, to) that differs from the content; to when none does. */
size_t memory_check(const uint8_t *p, uint64_t seed, size_t from, size_t to);

#endif
