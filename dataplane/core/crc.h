/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C (Castagnoli, RFC 3720 B.4) of bytes, with and without a copy of them. wire.c calls it for
 * packets. The state is what the instruction CRC32 works on: begins as all ones, and its complement
 * is the CRC. Pure functions, callable from any core; ranges may have any alignment and length.
 */
#ifndef SARISSA_DATAPLANE_CORE_CRC_H
#define SARISSA_DATAPLANE_CORE_CRC_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

uint32_t crc_bytes(uint32_t state, const uint8_t *from, uint32_t bytes);
/* The same, and copies them, in one pass where the processor has VPCLMULQDQ: the sums then cost
 * nothing but what waiting for the memory has left. The ranges do not overlap. */
uint32_t crc_copy(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes);

/* For some words: calling the library, made for long data, costs several times as much. */
static inline uint32_t crc_word(uint32_t state, const uint8_t *eight)
{
#ifdef __SSE4_2__
	uint64_t word;

	memcpy(&word, eight, sizeof(word));
	return (uint32_t)_mm_crc32_u64(state, word);
#else
	return crc_bytes(state, eight, 8);
#endif
}

static inline uint32_t crc_half(uint32_t state, const uint8_t *four)
{
#ifdef __SSE4_2__
	uint32_t word;

	memcpy(&word, four, sizeof(word));
	return _mm_crc32_u32(state, word);
#else
	return crc_bytes(state, four, 4);
#endif
}

#ifdef __x86_64__
uint32_t crc_copy_avx512(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes);
#endif

#endif
