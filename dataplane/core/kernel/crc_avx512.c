/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C and a copy in one pass, for AVX-512 with VPCLMULQDQ; crc.c calls it where the processor
 * can. After V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction" (Intel, 2009): what was read is carried on by T bits, that is multiplied by x^T
 * modulo the polynomial, and added to what is read there. The instruction CRC32 does the rest.
 */
#include "crc.h"

#include <immintrin.h>
#include <string.h>

enum { VEC = 64, STRIDE = 4 * VEC };

/* x^(T + 32) and x^(T - 32) modulo the polynomial, with bits reversed: the factors of the lower and
 * the upper half of 16 bytes that are carried on by T bits. */
struct carry {
	uint64_t low, high;
};
static const struct carry carry_2048 = {0xdcb17aa4, 0xb9e02b86};
static const struct carry carry_1536 = {0xa87ab8a8, 0xab7aff2a};
static const struct carry carry_1024 = {0x6992cea2, 0xd3b6092};
static const struct carry carry_512 = {0x740eef02, 0x9e4addf8};
/* The quarters of 64 bytes, to the last of them. */
static const struct carry carry_quarters[4] = {
	{0x1c291d04, 0x1d82c63da}, {0x1384aa63a, 0xba4fc28e}, {0xf20c0dfe, 0x14cd00bd6}, {0, 0}};

static inline __m512i crc_everywhere(const struct carry *k)
{
	return _mm512_broadcast_i32x4(_mm_set_epi64x((int64_t)k->high, (int64_t)k->low));
}

/* The sum of x, carried on, and of what is there. */
static inline __m512i crc_carry_vectors(__m512i x, __m512i k, __m512i there)
{
	__m512i low = _mm512_clmulepi64_epi128(x, k, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(x, k, 0x11);

	return _mm512_ternarylogic_epi64(low, high, there, 0x96);
}

static inline __m512i crc_move(uint8_t *to, const uint8_t *from)
{
	__m512i x = _mm512_loadu_si512(from);

	_mm512_storeu_si512(to, x);
	return x;
}

static inline uint32_t crc_reduce(__m512i x)
{
	__m512i y =
		crc_carry_vectors(x, _mm512_loadu_si512(carry_quarters), _mm512_setzero_si512());
	__m128i last = _mm_xor_si128(_mm512_extracti32x4_epi32(x, 3), _mm512_castsi512_si128(y));

	last = _mm_xor_si128(last, _mm512_extracti32x4_epi32(y, 1));
	last = _mm_xor_si128(last, _mm512_extracti32x4_epi32(y, 2));
	uint64_t state = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(last));
	return (uint32_t)_mm_crc32_u64(state, (uint64_t)_mm_extract_epi64(last, 1));
}

/* Of at least STRIDE bytes as many as are whole vectors; fewer than VEC are left. */
static inline uint32_t crc_vectors(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	const __m512i far = crc_everywhere(&carry_2048), near = crc_everywhere(&carry_512);
	__m512i x[4];
	uint32_t at = STRIDE;

	for (uint32_t k = 0; k < 4; k++)
		x[k] = crc_move(to + k * VEC, from + k * VEC);
	x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)state)));
	for (; at + STRIDE <= bytes; at += STRIDE)
		for (uint32_t k = 0; k < 4; k++)
			x[k] = crc_carry_vectors(x[k], far,
						 crc_move(to + at + k * VEC, from + at + k * VEC));
	x[3] = crc_carry_vectors(x[0], crc_everywhere(&carry_1536), x[3]);
	x[3] = crc_carry_vectors(x[1], crc_everywhere(&carry_1024), x[3]);
	x[3] = crc_carry_vectors(x[2], near, x[3]);
	for (; at + VEC <= bytes; at += VEC)
		x[3] = crc_carry_vectors(x[3], near, crc_move(to + at, from + at));
	return crc_reduce(x[3]);
}

uint32_t crc_copy_avx512(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint32_t at =
		(uint32_t)(-(uintptr_t)to % VEC) & ~7u; /* stores that cross lines cost twice */

	if (bytes >= at + STRIDE) {
		memcpy(to, from, at);
		for (uint32_t k = 0; k < at; k += 8)
			state = crc_word(state, from + k);
		state = crc_vectors(state, to + at, from + at, bytes - at);
		at += (bytes - at) / VEC * VEC;
	} else {
		at = 0;
	}
	if (at < bytes)
		memcpy(to + at, from + at, bytes - at);
	for (; at + 8 <= bytes; at += 8)
		state = crc_word(state, from + at);
	for (; at < bytes; at++)
		state = _mm_crc32_u8(state, from[at]);
	return state;
}
