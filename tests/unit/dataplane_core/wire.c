/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of a packet: the checksum against published values, the layout of the header. */
#include "fixtures/core_test.h"
#include "kernel/crc.h"

/* RFC 3720, B.4: 32 bytes each. The first 16 are the header, the rest the body. */
static void published_checksums(void **state)
{
	static const uint32_t want[] = {0x8a9136aa, 0x62a8ab43, 0x46dd794e, 0x113fdb5c};
	uint8_t p[WIRE_BODY + 16];

	(void)state;
	for (uint32_t k = 0; k < 4; k++) {
		for (uint32_t i = 0; i < 32; i++) {
			uint8_t *at = p + (i < 16 ? i : i + WIRE_CRC_BYTES);
			*at = (uint8_t)(k == 0 ? 0 : k == 1 ? 0xff : k == 2 ? i : 31 - i);
		}
		memset(p + WIRE_AT_CRC, (int)k, WIRE_CRC_BYTES); /* takes no part */
		assert_int_equal(wire_crc(p, sizeof(p), NULL, 0), want[k]);
	}
}

static void parts_sum_as_one(void **state)
{
	uint8_t whole[300], other[300];
	uint64_t seed = 1;

	(void)state;
	for (uint32_t k = 0; k < sizeof(whole); k++)
		whole[k] = (uint8_t)draw(&seed);
	for (uint32_t length = WIRE_BODY; length < sizeof(whole); length += 7) {
		uint32_t want = wire_crc(whole, length, NULL, 0);

		for (uint32_t cut = WIRE_BODY; cut <= length; cut++) {
			memcpy(other, whole + cut, length - cut);
			assert_int_equal(wire_crc(whole, cut, other, length - cut), want);
			assert_int_equal(wire_crc(whole, cut, whole + cut, length - cut), want);
		}
		packet_seal(whole, (uint16_t)WIRE_BODY, whole + WIRE_BODY,
			    (uint16_t)(length - WIRE_BODY));
		assert_int_equal(wire_get32(whole + WIRE_AT_CRC), want);
	}
}

/* Whatever lengths and addresses: nothing but the range is written. */
static void a_copy_has_the_same_sum(void **state)
{
	static uint8_t from[9100], to[9100];
	uint64_t seed = 1;

	(void)state;
	for (uint32_t k = 0; k < sizeof(from); k++)
		from[k] = (uint8_t)draw(&seed);
	for (uint32_t length = 0; length <= 9000; length += length < 1500 ? 1 : 211) {
		uint32_t a = (uint32_t)draw(&seed) % 70, b = (uint32_t)draw(&seed) % 70;
		uint32_t begin = (uint32_t)draw(&seed);

		memset(to, 0xee, sizeof(to));
		assert_int_equal(crc_copy(begin, to + b, from + a, length),
				 crc_bytes(begin, from + a, length));
		assert_memory_equal(to + b, from + a, length);
		assert_true(to[b + length] == 0xee && (b == 0 || to[b - 1] == 0xee));
	}
}

static void a_packet_is_sealed_and_copied_at_once(void **state)
{
	static const uint16_t heads[] = {CHUNK_BODY, CHUNK_BODY + SHORT_BYTES, 100};
	uint8_t whole[1600], copied[1600], payload[1408];
	uint64_t seed = 1;

	(void)state;
	for (uint32_t k = 0; k < sizeof(payload); k++)
		payload[k] = (uint8_t)draw(&seed);
	for (size_t k = 0; k < sizeof(heads) / sizeof(heads[0]); k++) {
		for (uint32_t i = 0; i < heads[k]; i++)
			whole[i] = (uint8_t)draw(&seed);
		if (heads[k] < 100)
			wire_chunk(whole, 7, 8, 9, 10);
		else
			wire_header(whole, WIRE_PAYLOAD, 7, 8, 9);
		memcpy(copied, whole, heads[k]);
		memcpy(whole + heads[k], payload, sizeof(payload));
		packet_seal(whole, heads[k], whole + heads[k], sizeof(payload));
		struct packet_out out = {.head = copied,
					 .head_length = heads[k],
					 .payload = payload,
					 .payload_length = sizeof(payload)};
		packet_out_seal_copy(&out);
		assert_memory_equal(copied, whole, heads[k] + sizeof(payload));
	}
}

static void a_header_is_laid_out_as_documented(void **state)
{
	static const uint8_t want[] = {0x44, 0,	   0x34, 0x12, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77,
				       0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0,	 0,    0,    0};
	uint8_t p[WIRE_BODY + 1];

	(void)state;
	memset(p, 0xee, sizeof(p));
	wire_header(p, WIRE_PAYLOAD, 0x1234, 0x11223344, 0x1122334455667788);
	assert_memory_equal(p, want, sizeof(want));
	assert_int_equal(p[WIRE_BODY], 0xee);
}

/* The examples of docs/developer/protocol-connections.md, 16. [P16] */
static void the_documented_packets(void **state)
{
	static const uint64_t a = 0x0011223344556677, b = 0x8899aabbccddeeff;
	static const uint8_t ping[] = {0x44, 0, 0x72, 0x0c, 3,	  0,	5,    0,    0x2a, 0, 0, 0,
				       0,    0, 0,    0,    0x24, 0x33, 0xc9, 0xbc, 5,	  0, 0, 0};
	static const uint8_t chunk[] = {0x46, 0, 0x2c, 0,    1,	   0,	 7,   0,   4,	0,
					0,    0, 0x97, 0xa0, 0xf5, 0xac, 'p', 'i', 'k', 'e'};
	uint8_t p[WIRE_BODY + 4];

	(void)state;
	wire_header(p, WIRE_PAYLOAD, wire_check_conn(a, 0x20001, b), 0x50003, 42);
	memcpy(p + WIRE_BODY, "\5\0\0", 4);
	packet_seal(p, sizeof(p), NULL, 0);
	assert_memory_equal(p, ping, sizeof(ping));
	uint32_t known = wire_crc_conn(a, 0x20001, b, 0x50003);
	assert_int_equal(known, 0x51d0e1c5);
	assert_int_equal(wire_crc_number(known, 0x1002c), 0x4fd53402);
	wire_chunk(p, 0x1002c, 0x70001, 4, wire_crc_number(known, 0x1002c));
	memcpy(p + CHUNK_BODY, "pike", 4);
	packet_seal(p, CHUNK_BODY, p + CHUNK_BODY, 4);
	assert_memory_equal(p, chunk, sizeof(chunk));
}

static void the_documented_short_acks(void **state)
{
	static const uint8_t brief[] = {0x63, 0, 0x19, 0, 0x40, 0x4b, 0x4c, 0,
					0,    0, 0,    0, 0,	0,    0,    0xf8};
	static const uint8_t chunk[] = {
		0x46, 2, 0x2d, 0,    1,	   0, 7, 0, 5, 0, 0, 0, 0x52, 0x08, 0x97, 0x37, 0x63, 0,
		0x19, 0, 0x40, 0x4b, 0x4c, 0, 0, 0, 0, 0, 0, 0, 0,    0xf8, 'p',  'i',	'k',  'e'};
	static const uint8_t alone[] = {0x47, 0,    0x2e, 0, 0x63, 0,	 0x19, 0,
					0x40, 0x4b, 0x4c, 0, 0xc9, 0x78, 0x70, 0xd3,
					0,    0,    0,	  0, 0,	   0,	 0,    0xf8};
	uint32_t known = wire_crc_conn(0x0011223344556677, 0x20001, 0x8899aabbccddeeff, 0x50003);
	uint8_t p[CHUNK_BODY + SHORT_BYTES + 4];

	(void)state;
	uint32_t crc = wire_crc_number(wire_crc_number(known, 0x1002d), 0x10063);
	assert_int_equal(crc, 0x9265e6b7);
	wire_chunk(p, 0x1002d, 0x70001, 5, crc);
	p[WIRE_AT_FLAGS] = CHUNK_FLAG_ACK;
	memcpy(p + CHUNK_BODY, brief, SHORT_BYTES);
	memcpy(p + CHUNK_BODY + SHORT_BYTES, "pike", 4);
	packet_seal(p, CHUNK_BODY + SHORT_BYTES, p + CHUNK_BODY + SHORT_BYTES, 4);
	assert_memory_equal(p, chunk, sizeof(chunk));
	crc = wire_crc_number(wire_crc_number(known, 0x1002e), 0x10063);
	assert_int_equal(crc, 0x819d8644);
	wire_ack(p, 0x1002e, brief, crc);
	packet_seal(p, WIRE_ACK_BYTES, NULL, 0);
	assert_memory_equal(p, alone, sizeof(alone));
}

static void numbers_are_little_endian_anywhere(void **state)
{
	(void)state;
	for (uint32_t at = 0; at < 9; at++) {
		uint8_t p[20] = {0};

		wire_put16(p + at, 0x0201);
		assert_int_equal(p[at], 1);
		assert_int_equal(wire_get16(p + at), 0x0201);
		wire_put32(p + at, 0x04030201);
		assert_int_equal(p[at + 3], 4);
		assert_int_equal(wire_get32(p + at), 0x04030201);
		wire_put64(p + at, 0x0807060504030201);
		assert_int_equal(p[at + 7], 8);
		assert_int_equal(wire_get64(p + at), 0x0807060504030201);
		assert_int_equal(p[at + 8], 0);
	}
}

/* Lives that follow each other closely have different checks, and direction matters. [P2.3] */
static void checks_distinguish_incarnations(void **state)
{
	uint32_t same = 0;

	(void)state;
	for (uint64_t k = 1; k < 2000; k++) {
		same += wire_check(1000, 5) == wire_check(1000 + k, 5);
		same += wire_check(1000, 5) == wire_check(1000, 5 + k);
		same += wire_check(1000 + k, 5) == wire_check(5, 1000 + k);
		same += wire_check_conn(1000, 0x30005, 5) ==
			wire_check_conn(1000, 0x30005 + (uint32_t)k * 0x10000, 5);
	}
	assert_true(same < 5); /* 8000 pairs of 16 bits */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_checksums),
		cmocka_unit_test(parts_sum_as_one),
		cmocka_unit_test(a_copy_has_the_same_sum),
		cmocka_unit_test(a_packet_is_sealed_and_copied_at_once),
		cmocka_unit_test(a_header_is_laid_out_as_documented),
		cmocka_unit_test(the_documented_packets),
		cmocka_unit_test(the_documented_short_acks),
		cmocka_unit_test(numbers_are_little_endian_anywhere),
		cmocka_unit_test(checks_distinguish_incarnations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
