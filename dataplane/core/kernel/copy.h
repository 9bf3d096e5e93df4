/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy whose target is not read soon: written past the caches, where the processor can, so that
 * no line of the target is fetched to be overwritten. combine.c calls it for what arrives. Pure;
 * any alignment and length; the ranges do not overlap. The bytes are in memory on return: a plain
 * store after it is seen by other cores no earlier.
 */
#ifndef SARISSA_DATAPLANE_CORE_KERNEL_COPY_H
#define SARISSA_DATAPLANE_CORE_KERNEL_COPY_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static inline void copy_past_caches(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
#ifdef __SSE2__
	uint32_t at = (uint32_t)(-(uintptr_t)to % 64);

	if (at > bytes)
		at = bytes;
	memcpy(to, from, at);
	for (; at + 64 <= bytes; at += 64) {
		const __m128i *f = (const __m128i *)(const void *)(from + at);
		__m128i *t = (__m128i *)(void *)(to + at);
		__m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1);
		__m128i c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);

		_mm_stream_si128(t, a);
		_mm_stream_si128(t + 1, b);
		_mm_stream_si128(t + 2, c);
		_mm_stream_si128(t + 3, d);
	}
	memcpy(to + at, from + at, bytes - at);
	_mm_sfence(); /* such stores may become visible after later ones */
#else
	memcpy(to, from, bytes);
#endif
}

#endif
