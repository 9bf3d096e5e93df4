/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C (Castagnoli, RFC 3720 B.4) of bytes, with and without a copy of them. wire.c calls it for
 * packets. The state is what the instruction CRC32 works on: begins as all ones, and its complement
 * is the CRC. Pure functions, callable from any core; ranges may have any alignment and length.
 */
#ifndef SARISSA_DATAPLANE_CORE_CRC_H
#define SARISSA_DATAPLANE_CORE_CRC_H

#include <stdint.h>

/* For some words: calling the library, made for long data, costs several times as much. */
uint32_t crc_word(uint32_t state, const uint8_t *eight);
uint32_t crc_half(uint32_t state, const uint8_t *four);

uint32_t crc_bytes(uint32_t state, const uint8_t *from, uint32_t bytes);
/* The same, and copies them, in one pass where the processor has VPCLMULQDQ: the sums then cost
 * nothing but what waiting for the memory has left. The ranges do not overlap. */
uint32_t crc_copy(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes);

#ifdef __x86_64__
uint32_t crc_copy_avx512(uint32_t state, uint8_t *to, const uint8_t *from, uint32_t bytes);
#endif

#endif
