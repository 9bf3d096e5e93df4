/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C (Castagnoli, RFC 3720 B.4) of bytes, with and without a copy of them. wire.c calls it for
 * packets. The state is what the instruction CRC32 works on: begins as all ones, and its complement
 * is the CRC. Pure functions, callable from any core; ranges may have any alignment and length.
 */
#ifndef SARISSA_DATAPLANE_CORE_KERNEL_CRC_H
#define SARISSA_DATAPLANE_CORE_KERNEL_CRC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

uint32_t crc_bytes(uint32_t state, const uint8_t *from, uint32_t bytes);
/* Like crc_bytes(), and copies the bytes, in one pass where the processor has VPCLMULQDQ: the sums
 * then cost nothing but what waiting for the memory has left. The ranges do not overlap. */
uint32_t crc_copy(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes);

/*
 * A CRC is linear. The state behind some bytes is the state before them, carried over their number,
 * plus (xor) the state that they give when it begins with 0: so bytes that go into several packets
 * are summed once. Whether this processor carries at a small price; the rest is for those that do.
 */
bool crc_carries(void);
/* The factor that crc_carry() needs for so many bytes, at least 8. Costs as much as the CRC of 1
 * KiB. Not 0.
 */
uint32_t crc_carry_by(uint32_t bytes);
uint32_t crc_carry(uint32_t state, uint32_t by);

/* The state before and behind a payload. */
struct crc_span {
	uint32_t before, behind;
};

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
