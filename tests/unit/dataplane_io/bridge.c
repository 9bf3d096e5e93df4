/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the switch: learning, the frames that are for the aggregator, its answers, ARP. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>
#include "io/net/ether.h"
#include "switch/bridge.h"

static void make_frame(uint8_t *frame, uint8_t to, uint8_t from)
{
	memset(frame, 0, 60);
	frame[0] = frame[6] = 2;
	frame[5] = to;
	frame[11] = from;
	frame[12] = 0x86, frame[13] = 0xdd;
}

static void addresses_are_learnt_and_move(void **state)
{
	static struct bridge b;
	uint8_t frame[60];
	make_frame(frame, 2, 1);
	assert_int_equal(bridge_forward(&b, 5, frame), BRIDGE_NO_PORT);
	make_frame(frame, 1, 2);
	assert_int_equal(bridge_forward(&b, 6, frame), 5);
	make_frame(frame, 2, 1);
	assert_int_equal(bridge_forward(&b, 7, frame), 6);
	make_frame(frame, 1, 2);
	assert_int_equal(bridge_forward(&b, 6, frame), 7);
	frame[0] = 0xff; /* to all */
	assert_int_equal(bridge_forward(&b, 6, frame), BRIDGE_NO_PORT);
	frame[6] |= 1; /* nobody sends from a group address: it is not learnt */
	assert_int_equal(bridge_forward(&b, 9, frame), BRIDGE_NO_PORT);
	/* a full table forgets the address that was silent longest, and works on */
	for (unsigned i = 0; i < 5000; i++) {
		make_frame(frame, 1, 3);
		memcpy(frame + 7, &i, 4);
		bridge_forward(&b, i % 30, frame);
		memcpy(frame + 1, &i, 4);
		frame[5] = 3;
		assert_int_equal(bridge_forward(&b, i % 30, frame), i % 30);
	}
}

/* As a member's kernel sends it. */
static uint32_t make_contribution(uint8_t *frame, uint16_t payload_bytes)
{
	static const struct ether_route route = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	static const uint8_t ip4[2][4] = {{10, 77, 0, 1}, {10, 77, 255, 254}};
	struct net_addr from = {.port = 5000}, to = {.port = AGGREGATE_PORT};
	ether_map_v4(from.ip, ip4[0]);
	ether_map_v4(to.ip, ip4[1]);
	memset(frame + BRIDGE_FRAME_HEADERS, 7, payload_bytes);
	struct ether_stamp stamp;
	ether_stamp_v4(&stamp, &route, &from, &to);
	ether_put_v4(&stamp, frame + BRIDGE_FRAME_HEADERS, payload_bytes, 0);
	return BRIDGE_FRAME_HEADERS + payload_bytes;
}

static void contributions_are_recognised(void **state)
{
	uint8_t frame[1514], odd[1514];
	uint32_t bytes, address, length = make_contribution(frame, 100);
	assert_ptr_equal(bridge_contribution(frame, length, &bytes, &address),
			 frame + BRIDGE_FRAME_HEADERS);
	assert_int_equal(bytes, 100);
	assert_memory_equal(&address, ((uint8_t[]){10, 77, 255, 254}), 4);
	assert_non_null(bridge_contribution(frame, length + 6, &bytes, &address)); /* padded */
	assert_int_equal(bytes, 100);
	for (uint32_t cut = 0; cut < length; cut++)
		assert_null(bridge_contribution(frame, cut, &bytes, &address));
	/* not IPv4, options, a fragment, TCP, another port, lengths that contradict */
	static const struct {
		uint8_t at, value;
	} wrong[] = {{13, 6}, {14, 0x46}, {20, 0x20}, {23, 6},
		     {37, 0}, {17, 200},  {39, 200},  {39, 3}};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		memcpy(odd, frame, length);
		odd[wrong[i].at] = wrong[i].value;
		assert_null(bridge_contribution(odd, length, &bytes, &address));
	}
}

static void answers_are_frames_to_the_group(void **state)
{
	uint8_t frame[1514];
	struct ether_frame f;
	uint32_t address;
	memcpy(&address, (uint8_t[]){10, 77, 255, 254}, 4);
	bridge_write_headers(frame, 64, 0x12345678, address);
	ether_parse(frame, BRIDGE_FRAME_HEADERS + 64, &f);
	assert_int_equal(f.kind, ETHER_UDP);
	assert_int_equal(f.payload_length, 64);
	assert_int_equal(f.to.port, AGGREGATE_RESULT_PORT);
	assert_memory_equal(f.to.ip + 12, ((uint8_t[]){239, 83, 0x56, 0x78}), 4);
	assert_memory_equal(f.from.ip + 12, &address, 4);
	assert_memory_equal(frame, ((uint8_t[]){1, 0, 0x5e, 83, 0x56, 0x78}), 6);
}

/* As the kernel gives it to a veth: the sum of the pseudo-header alone. */
static void half_checksums_are_filled(void **state)
{
	uint8_t frame[200], before[200];
	uint32_t bytes, address;
	for (uint16_t payload = 0; payload < 70; payload++) {
		uint32_t length = make_contribution(frame, payload), sum = 0;
		for (unsigned i = 0; i < payload; i++)
			frame[BRIDGE_FRAME_HEADERS + i] = (uint8_t)(i * 37 + payload);
		for (unsigned i = 26; i < 34; i += 2)
			sum += (uint32_t)frame[i] << 8 | frame[i + 1];
		sum += 17u + 8u + payload;
		sum = (sum & 0xffff) + (sum >> 16);
		frame[40] = (uint8_t)(sum >> 8), frame[41] = (uint8_t)sum;
		bridge_fill_checksum(frame, length);
		for (unsigned i = 34; i < length; i += 2)
			sum += (uint32_t)frame[i] << 8 | (i + 1 < length ? frame[i + 1] : 0);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal(sum, 0xffff);
		memcpy(before, frame, length); /* a whole one stays as it is */
		bridge_fill_checksum(frame, length);
		assert_memory_equal(frame, before, length);
		assert_non_null(bridge_contribution(frame, length, &bytes, &address));
		for (uint32_t cut = 0; cut < length; cut++) /* nothing outside is touched */
			bridge_fill_checksum(frame, cut);
		assert_memory_equal(frame, before, length);
	}
}

static void arp_for_its_address_is_answered(void **state)
{
	static const uint8_t own[4] = {10, 77, 255, 254}, mac[6] = {2, 0, 0, 0, 0, 9};
	uint8_t frame[ETHER_NEIGHBOUR_BYTES], from[16], to[16];
	struct ether_frame f;
	ether_map_v4(from, (uint8_t[]){10, 77, 0, 1});
	ether_map_v4(to, own);
	uint16_t bytes = ether_write_solicit(frame, mac, from, to);
	assert_false(bridge_answer_arp(frame, bytes, (uint8_t[]){10, 77, 0, 2}));
	assert_false(bridge_answer_arp(frame, bytes - 1, own));
	assert_true(bridge_answer_arp(frame, bytes, own));
	ether_parse(frame, bytes, &f);
	assert_int_equal(f.kind, ETHER_ARP_REPLY);
	assert_memory_equal(f.from.ip, to, 16);
	assert_memory_equal(frame, mac, 6);
	assert_false(bridge_answer_arp(frame, bytes, own)); /* an answer is no question */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_learnt_and_move),
		cmocka_unit_test(contributions_are_recognised),
		cmocka_unit_test(answers_are_frames_to_the_group),
		cmocka_unit_test(half_checksums_are_filled),
		cmocka_unit_test(arp_for_its_address_is_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
