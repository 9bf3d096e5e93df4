/* SPDX-License-Identifier: BSD-3-Clause */
#include "crc.h"

#include <stdbool.h>
#include <string.h>
#include <isa-l/crc.h>

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
