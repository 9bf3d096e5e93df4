/* SPDX-License-Identifier: BSD-3-Clause */
#include "crc.h"

#include <string.h>
#include <isa-l/crc.h>
#ifdef __x86_64__
#include <wmmintrin.h>
#endif

/* ISA-L's CRC for AVX-512 leaves the upper halves of the vector registers in use. On Intel's
 * processors since Ice Lake the next SSE instruction, ours or the compiler's, then waits for some
 * hundred cycles. */
static inline void crc_end(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::: "memory");
#endif
}

/* ISA-L's iSCSI CRC takes a non-const pointer but only reads. */
uint32_t crc_bytes(uint32_t state, const uint8_t *from, uint32_t bytes)
{
	state = crc32_iscsi((unsigned char *)(uintptr_t)from, (int)bytes, state);
	crc_end();
	return state;
}

static inline bool crc_has_avx512(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512bw");
#else
	return false;
#endif
}

uint32_t crc_copy(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
#ifdef __x86_64__
	if (crc_has_avx512())
		return crc_copy_avx512(state, to, from, bytes);
#endif
	memcpy(to, from, bytes);
	return crc_bytes(state, from, bytes);
}

/* A polynomial's highest power is its lowest bit, as everywhere in this CRC: x^0 is the top bit. */
#define CRC_POLYNOMIAL UINT32_C(0x82f63b78)
#define CRC_ONE	       UINT32_C(0x80000000)

static uint32_t crc_by_x(uint32_t a)
{
	return a & 1 ? a >> 1 ^ CRC_POLYNOMIAL : a >> 1;
}

static uint32_t crc_product(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (uint32_t bit = CRC_ONE; bit != 0; bit >>= 1) {
		product ^= a & bit ? b : 0;
		b = crc_by_x(b);
	}
	return product;
}

uint32_t crc_carry_by(uint32_t bytes)
{
	uint32_t power = crc_by_x(CRC_ONE), result = CRC_ONE;

	/* crc_carry() itself multiplies by x^33 */
	for (uint32_t n = 8 * bytes - 33; n != 0; n >>= 1) {
		if (n & 1)
			result = crc_product(result, power);
		power = crc_product(power, power);
	}
	return result;
}

#ifdef __x86_64__
bool crc_carries(void)
{
	return __builtin_cpu_supports("pclmul");
}

/* The product of two reversed polynomials of 32 bits lies one bit too low in 64; the instruction
 * multiplies it by x^32 and takes the remainder. */
__attribute__((target("pclmul,sse4.2"))) uint32_t crc_carry(uint32_t state, uint32_t by)
{
	__m128i product =
		_mm_clmulepi64_si128(_mm_cvtsi32_si128((int)state), _mm_cvtsi32_si128((int)by), 0);

	return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}
#else
bool crc_carries(void)
{
	return false;
}

uint32_t crc_carry(uint32_t state, uint32_t by)
{
	for (uint32_t k = 0; k < 33; k++)
		by = crc_by_x(by);
	return crc_product(state, by);
}
#endif
