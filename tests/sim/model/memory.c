/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prng.h"

enum { MEMORY_PAGE = 4096, MEMORY_BLOCK = 64 };

static void memory_none(size_t bytes)
{
	fprintf(stderr, "sim: no memory for an area of %zu bytes\n", bytes);
	exit(1);
}

/* A file of at least so many bytes of poison, which areas map as their own copies. */
static int memory_poison_file(size_t bytes)
{
	static int fd = -1;
	static size_t there;
	static uint8_t block[1 << 20];
	if (fd < 0) {
		fd = memfd_create("poison", MFD_CLOEXEC);
		memory_poison(block, sizeof(block));
	}
	for (; there < bytes; there += sizeof(block)) {
		if (pwrite(fd, block, sizeof(block), (off_t)there) != sizeof(block))
			memory_none(bytes);
	}
	return fd;
}

struct memory memory_map_poisoned(size_t bytes)
{
	struct memory m = memory_map(bytes);
	size_t inner = m.map_bytes - 2 * MEMORY_PAGE;
	if (inner > 0 && mmap((uint8_t *)m.map + MEMORY_PAGE, inner, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, memory_poison_file(inner),
			      0) == MAP_FAILED)
		memory_none(bytes);
	return m;
}

struct memory memory_map(size_t bytes)
{
	bytes = (bytes + 63) & ~(size_t)63;
	size_t inner = (bytes + MEMORY_PAGE - 1) & ~(size_t)(MEMORY_PAGE - 1);
	struct memory m = {.bytes = bytes, .map_bytes = inner + 2 * MEMORY_PAGE};
	m.map = mmap(NULL, m.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (m.map == MAP_FAILED ||
	    mprotect((uint8_t *)m.map + MEMORY_PAGE, inner, PROT_READ | PROT_WRITE))
		memory_none(bytes);
	m.base = (uint8_t *)m.map + MEMORY_PAGE + inner - bytes;
	return m;
}

void memory_unmap(struct memory *m)
{
	if (m->map)
		munmap(m->map, m->map_bytes);
	*m = (struct memory){0};
}

void memory_poison(uint8_t *p, size_t bytes)
{
	memset(p, MEMORY_POISON, bytes);
}

size_t memory_check_poison(const uint8_t *p, size_t bytes)
{
	if (!bytes || (p[0] == MEMORY_POISON && memcmp(p, p + 1, bytes - 1) == 0))
		return bytes;
	size_t i = 0;
	while (p[i] == MEMORY_POISON)
		i++;
	return i;
}

static inline uint64_t memory_word(uint64_t seed, size_t word)
{
	return prng_mix(seed + word * 0x9e3779b97f4a7c15ull);
}

void memory_fill(uint8_t *p, uint64_t seed, size_t from, size_t to)
{
	for (size_t at = from; at < to;) {
		uint64_t w = memory_word(seed, at / 8);
		size_t skip = at % 8, take = 8 - skip;
		if (take > to - at)
			take = to - at;
		memcpy(p + at, (uint8_t *)&w + skip, take);
		at += take;
	}
}

/* Whether a whole block is right: most of the time of large objects goes here. */
__attribute__((always_inline)) static inline bool memory_block_is(const uint8_t *p, uint64_t seed,
								  size_t word)
{
	uint64_t w[MEMORY_BLOCK], wrong = 0;
	memcpy(w, p, sizeof(w));
	for (size_t i = 0; i < MEMORY_BLOCK; i++)
		wrong |= w[i] ^ memory_word(seed, word + i);
	return wrong == 0;
}

#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target("avx512f,avx512dq"), optimize("O3"))) static bool
memory_block_avx512(const uint8_t *p, uint64_t seed, size_t word)
{
	return memory_block_is(p, seed, word);
}

static bool memory_block(const uint8_t *p, uint64_t seed, size_t word)
{
	return __builtin_cpu_supports("avx512dq") ? memory_block_avx512(p, seed, word)
						  : memory_block_is(p, seed, word);
}
#else
#define memory_block memory_block_is
#endif

/* From a whole word on: the end of those that are right. */
static size_t memory_check_words(const uint8_t *p, uint64_t seed, size_t from, size_t to)
{
	const size_t block = MEMORY_BLOCK * sizeof(uint64_t);
	uint64_t w;
	while (to - from >= block && memory_block(p + from, seed, from / 8))
		from += block;
	for (size_t at = from; at + sizeof(w) <= to; at += sizeof(w)) {
		memcpy(&w, p + at, sizeof(w));
		if (w != memory_word(seed, at / 8))
			return at;
	}
	return to - (to - from) % sizeof(w);
}

size_t memory_check(const uint8_t *p, uint64_t seed, size_t from, size_t to)
{
	for (size_t at = from; at < to;) {
		if (at % 8 == 0)
			at = memory_check_words(p, seed, at, to);
		uint64_t w = memory_word(seed, at / 8);
		size_t skip = at % 8, take = 8 - skip;
		if (take > to - at)
			take = to - at;
		for (size_t i = 0; memcmp(p + at, (uint8_t *)&w + skip, take) && i < take; i++)
			if (p[at + i] != ((uint8_t *)&w)[skip + i])
				return at + i;
		at += take;
	}
	return to;
}
