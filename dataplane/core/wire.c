/* SPDX-License-Identifier: BSD-3-Clause */
#include <isa-l/crc.h>
#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif
#include "wire.h"
#include "engine.h"

/* Two words: calling the library, made for long data, costs several times as much. */
static uint32_t wire_crc_header(const uint8_t *head)
{
#ifdef __SSE4_2__
	uint64_t crc = _mm_crc32_u64(UINT32_MAX, wire_get64(head));
	return (uint32_t)_mm_crc32_u64(crc, wire_get64(head + 8));
#else
	return crc32_iscsi((unsigned char *)(uintptr_t)head, WIRE_HEADER_BYTES, UINT32_MAX);
#endif
}

uint32_t wire_crc(const uint8_t *head, uint32_t head_length, const uint8_t *payload,
		  uint32_t payload_length)
{
	uint32_t crc = wire_crc_header(head);

	/* ISA-L's iSCSI CRC takes a non-const pointer but only reads. */
	if (payload == head + head_length) { /* in one piece: one call less */
		head_length += payload_length;
		payload_length = 0;
	}
	if (head_length > WIRE_BODY)
		crc = crc32_iscsi((unsigned char *)(uintptr_t)head + WIRE_BODY,
				  (int)(head_length - WIRE_BODY), crc);
	if (payload_length > 0)
		crc = crc32_iscsi((unsigned char *)(uintptr_t)payload, (int)payload_length, crc);
	return ~crc;
}

uint16_t wire_check(uint64_t from_incarnation, uint64_t to_incarnation)
{
	/* Fibonacci multipliers spread neighbouring boot times over the 16 bits that are kept. */
	uint64_t mixed = from_incarnation * 0x9e3779b97f4a7c15ull;
	mixed ^= to_incarnation * 0xc2b2ae3d27d4eb4full;
	mixed ^= mixed >> 32;
	mixed *= 0x9e3779b97f4a7c15ull;
	return (uint16_t)(mixed >> 48);
}

void wire_header(uint8_t *p, enum wire_type type, uint16_t check, uint32_t conn, uint64_t pn)
{
	p[WIRE_AT_VERSION_TYPE] = (uint8_t)(WIRE_VERSION << 4 | type);
	p[WIRE_AT_FLAGS] = 0;
	wire_put16(p + WIRE_AT_CHECK, check);
	wire_put32(p + WIRE_AT_CONN, conn);
	wire_put64(p + WIRE_AT_PN, pn);
	wire_put32(p + WIRE_AT_CRC, 0);
}

void packet_seal(uint8_t *head, uint16_t head_length, const uint8_t *payload,
		 uint16_t payload_length)
{
	wire_put32(head + WIRE_AT_CRC, wire_crc(head, head_length, payload, payload_length));
}
