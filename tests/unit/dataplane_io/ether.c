/* SPDX-License-Identifier: BSD-3-Clause */
/* Ethernet, IP and UDP headers: what we write is read back, and nothing malformed is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "io/net/ether.h"

static const struct ether_route route = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
static const struct net_addr a4 = {.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 1, 2, 3},
				   .port = 7400};
static const struct net_addr b4 = {.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 1, 2, 4},
				   .port = 7401};
static const struct net_addr a6 = {.ip = {0xfd, 0x77, [15] = 1}, .port = 7400};
static const struct net_addr b6 = {.ip = {0xfd, 0x77, [15] = 2}, .port = 7401};

struct packet {
	uint8_t bytes[2048];
	size_t length;
	uint8_t *ip, *udp, *payload;
};

static struct packet *make(bool v4, uint16_t payload_length)
{
	static struct packet p;
	unsigned headers = v4 ? ETHER_HEADERS_V4 : ETHER_HEADERS_V6;
	memset(&p, 0xee, sizeof(p));
	p.ip = p.bytes + ETHER_HEADER;
	p.payload = p.bytes + headers;
	p.udp = p.payload - ETHER_UDP_HEADER;
	p.length = headers + payload_length;
	for (unsigned i = 0; i < payload_length; i++)
		p.payload[i] = (uint8_t)(i * 7);
	if (v4) {
		struct ether_stamp stamp;
		ether_stamp_v4(&stamp, &route, &a4, &b4);
		ether_put_v4(&stamp, p.payload, payload_length, 2);
	} else {
		ether_write_v6(p.payload, payload_length, &route, &a6, &b6, 2,
			       ether_udp6_checksum(&a6, &b6, p.payload, payload_length, NULL, 0));
	}
	return &p;
}

static enum ether_kind kind_of(const uint8_t *bytes, size_t length)
{
	/* a copy of exactly that length, so that sanitizers see a read beyond it */
	struct ether_frame f;
	uint8_t *copy = malloc(length + !length);
	assert_non_null(copy);
	memcpy(copy, bytes, length);
	ether_parse(copy, length, &f);
	free(copy);
	return f.kind;
}

static void a_tag_goes_on_and_off(void **state)
{
	uint8_t room[ETHER_TAG + 64], frame[64];
	for (unsigned i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)(i + 1);
	memcpy(room + ETHER_TAG, frame, sizeof(frame));
	ether_tag(room, 4094);
	static const uint8_t tag[ETHER_TAG] = {0x81, 0x00, 0x0f, 0xfe};
	assert_memory_equal(room, frame, 12);
	assert_memory_equal(room + 12, tag, ETHER_TAG);
	assert_int_equal(kind_of(room, sizeof(room)), ETHER_OTHER);
	assert_false(ether_untag(room, sizeof(room), 4093));
	assert_false(ether_untag(room, ETHER_HEADER + ETHER_TAG - 1, 4094));
	assert_false(ether_untag(frame, sizeof(frame), 4094));
	room[14] |= 0xf0; /* priority 7, drop eligible */
	assert_true(ether_untag(room, sizeof(room), 4094));
	assert_memory_equal(room + ETHER_TAG, frame, sizeof(frame));
}

static void a_sum_that_a_card_has_checked_is_not_checked_again(void **state)
{
	struct ether_frame f;
	struct packet *p = make(true, 100);
	p->ip[10] ^= 1;
	ether_parse(p->bytes, p->length, &f);
	assert_int_equal(f.kind, ETHER_BAD);
	ether_parse_summed(p->bytes, p->length, &f);
	assert_int_equal(f.kind, ETHER_UDP);
	p->ip[3]++; /* all else is */
	p->ip[2]++;
	ether_parse_summed(p->bytes, p->length, &f);
	assert_int_equal(f.kind, ETHER_BAD);
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static uint16_t sum(const uint8_t *p, size_t n, uint32_t s)
{
	for (size_t i = 0; i < n; i++)
		s += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

static void repair_ip(struct packet *p)
{
	put16(p->ip + 10, 0);
	put16(p->ip + 10, (uint16_t)~sum(p->ip, (p->ip[0] & 15) * 4u, 0));
}

static void test_round_trip(void **state)
{
	for (int v4 = 0; v4 < 2; v4++)
		for (uint16_t n = 0; n < 1453; n += 121) {
			struct packet *p = make(v4, n);
			struct ether_frame f;
			ether_parse(p->bytes, p->length + 5, &f); /* padded by the link */
			assert_int_equal(f.kind, ETHER_UDP);
			assert_int_equal(f.payload_length, n);
			assert_ptr_equal(f.payload, p->payload);
			assert_int_equal(f.ecn, 2);
			assert_true(net_addr_equal(&f.from, v4 ? &a4 : &a6));
			assert_true(net_addr_equal(&f.to, v4 ? &b4 : &b6));
		}
}

static void test_headers_are_right(void **state)
{
	struct packet *p = make(true, 100);
	static const uint8_t want[] = {0x45, 2, 0, 128, 0, 0, 0x40, 0, 64, 17};
	assert_memory_equal(p->ip, want, sizeof(want));
	assert_int_equal(sum(p->ip, 20, 0), 0xffff);
	assert_int_equal(p->udp[6] << 8 | p->udp[7], 0);
	assert_memory_equal(p->bytes, route.next_mac, 6);
	assert_memory_equal(p->bytes + 6, route.our_mac, 6);
	p = make(false, 101);
	assert_int_equal(p->ip[7], 64);
	/* pseudo-header: addresses, length, protocol */
	assert_int_equal(sum(p->udp, 109, sum(p->ip + 8, 32, 109 + 17)), 0xffff);
}

static void test_checksum_in_two_parts(void **state)
{
	uint8_t data[200];
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + 5);
	uint16_t whole = ether_udp6_checksum(&a6, &b6, data, 200, NULL, 0);
	for (uint16_t cut = 0; cut <= 200; cut++)
		assert_int_equal(
			ether_udp6_checksum(&a6, &b6, data, cut, data + cut, (uint16_t)(200 - cut)),
			whole);
}

static void test_every_truncation(void **state)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct packet *p = make(v4, 64);
		for (size_t n = 0; n < p->length; n++)
			assert_int_equal(kind_of(p->bytes, n), ETHER_BAD);
	}
}

static void test_bad_ipv4(void **state)
{
	static const struct {
		unsigned at, value;
		enum ether_kind kind;
	} rows[] = {
		{0, 0x35, ETHER_BAD}, {0, 0x44, ETHER_BAD}, /* version, header too short */
		{6, 0x20, ETHER_BAD}, {7, 0x01, ETHER_BAD}, /* more fragments, offset */
		{6, 0x00, ETHER_UDP},			    /* without DF */
		{9, 6, ETHER_OTHER},			    /* TCP */
		{3, 27, ETHER_BAD},   {3, 19, ETHER_BAD},   /* total shorter than UDP, than IP */
		{2, 1, ETHER_BAD},			    /* total longer than the frame */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct packet *p = make(true, 64);
		p->ip[rows[i].at] = (uint8_t)rows[i].value;
		repair_ip(p);
		assert_int_equal(kind_of(p->bytes, p->length), rows[i].kind);
	}
	struct packet *p = make(true, 64);
	p->ip[11] ^= 1;
	assert_int_equal(kind_of(p->bytes, p->length), ETHER_BAD); /* header checksum */
}

static void test_bad_udp(void **state)
{
	for (int v4 = 0; v4 < 2; v4++) {
		struct packet *p = make(v4, 64);
		put16(p->udp + 4, 73); /* one more than there is */
		assert_int_equal(kind_of(p->bytes, p->length), ETHER_BAD);
		put16(p->udp + 4, 7);
		assert_int_equal(kind_of(p->bytes, p->length), ETHER_BAD);
		put16(p->udp + 4, 8);
		assert_int_equal(kind_of(p->bytes, p->length), ETHER_UDP);
	}
}

static void test_bad_ipv6(void **state)
{
	struct packet *p = make(false, 64);
	p->ip[0] = 0x40;
	assert_int_equal(kind_of(p->bytes, p->length), ETHER_BAD);
	p = make(false, 64);
	put16(p->ip + 4, 73);
	assert_int_equal(kind_of(p->bytes, p->length), ETHER_BAD);
	p = make(false, 64);
	p->ip[6] = 44; /* fragment header */
	assert_int_equal(kind_of(p->bytes, p->length), ETHER_OTHER);
	put16(p->bytes + 12, 0x8100);
	assert_int_equal(kind_of(p->bytes, p->length), ETHER_OTHER);
}

/* The solicited-node multicast address of ip (RFC 4291, 2.7.1). */
static bool is_solicited_node(const uint8_t *group, const uint8_t *ip)
{
	static const uint8_t prefix[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};

	return memcmp(group, prefix, 13) == 0 && memcmp(group + 13, ip + 13, 3) == 0;
}

/* A asks for B; B's answer is what A learns from. */
static void neighbour_exchange(const struct net_addr *a, const struct net_addr *b, bool v4)
{
	uint8_t ask[128], answer[128];
	struct ether_frame q, r;
	uint16_t n = ether_write_solicit(ask, route.our_mac, a->ip, b->ip);
	ether_parse(ask, n, &q);
	assert_int_equal(q.kind, v4 ? ETHER_ARP_REQUEST : ETHER_ND_SOLICIT);
	assert_memory_equal(q.from.ip, a->ip, 16);
	assert_memory_equal(q.to.ip, b->ip, 16);
	assert_true(q.has_mac);
	assert_memory_equal(q.from_mac, route.our_mac, 6);
	assert_true(v4 || is_solicited_node(ask + ETHER_HEADER + 24, b->ip));
	n = ether_write_advertise(answer, route.next_mac, &q, q.from_mac);
	ether_parse(answer, n, &r);
	assert_int_equal(r.kind, v4 ? ETHER_ARP_REPLY : ETHER_ND_ADVERTISE);
	assert_memory_equal(r.from.ip, b->ip, 16);
	assert_true(r.has_mac);
	assert_memory_equal(r.from_mac, route.next_mac, 6);
	assert_memory_equal(answer, route.our_mac, 6);
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(kind_of(answer, cut), ETHER_BAD);
}

static void test_neighbours(void **state)
{
	neighbour_exchange(&a4, &b4, true);
	neighbour_exchange(&a6, &b6, false);
}

static void test_bad_neighbour(void **state)
{
	uint8_t ask[128], *icmp = ask + ETHER_HEADER + ETHER_IPV6;
	uint16_t n = ether_write_solicit(ask, route.our_mac, a6.ip, b6.ip);
	ask[ETHER_HEADER + 7] = 64; /* came through a router */
	assert_int_equal(kind_of(ask, n), ETHER_BAD);
	ether_write_solicit(ask, route.our_mac, a6.ip, b6.ip);
	icmp[12] ^= 1; /* checksum */
	assert_int_equal(kind_of(ask, n), ETHER_BAD);
	ether_write_solicit(ask, route.our_mac, a6.ip, b6.ip);
	icmp[25] = 0; /* an option of no length would loop; the checksum is put right */
	icmp[3] = (uint8_t)(icmp[3] + 1);
	assert_int_equal(kind_of(ask, n), ETHER_BAD);
	n = ether_write_solicit(ask, route.our_mac, a4.ip, b4.ip);
	ask[ETHER_HEADER + 4] = 8; /* not Ethernet addresses */
	assert_int_equal(kind_of(ask, n), ETHER_BAD);
}

static void test_echo4(void **state)
{
	struct packet *p = make(true, 33);
	struct ether_frame f;
	p->ip[9] = 1;
	memset(p->udp, 0, 8);
	p->udp[0] = 8;
	put16(p->udp + 2, (uint16_t)~sum(p->udp, 41, 0));
	repair_ip(p);
	ether_parse(p->bytes, p->length, &f);
	assert_int_equal(f.kind, ETHER_ECHO_REQUEST4);
	ether_make_echo_reply(p->bytes, route.next_mac, &f);
	assert_int_equal(p->udp[0], 0);
	assert_int_equal(sum(p->udp, 41, 0), 0xffff);
	assert_int_equal(sum(p->ip, 20, 0), 0xffff);
	assert_memory_equal(p->ip + 12, b4.ip + 12, 4);
	assert_memory_equal(p->ip + 16, a4.ip + 12, 4);
	assert_memory_equal(p->bytes, route.our_mac, 6);
}

static void test_echo6(void **state)
{
	struct packet *p = make(false, 33);
	struct ether_frame f;
	p->ip[6] = 58;
	memset(p->udp, 0, 8);
	p->udp[0] = 128;
	put16(p->udp + 2, (uint16_t)~sum(p->udp, 41, sum(p->ip + 8, 32, 41 + 58)));
	ether_parse(p->bytes, p->length, &f);
	assert_int_equal(f.kind, ETHER_ECHO_REQUEST6);
	ether_make_echo_reply(p->bytes, route.next_mac, &f);
	assert_int_equal(p->udp[0], 129);
	assert_int_equal(sum(p->udp, 41, sum(p->ip + 8, 32, 41 + 58)), 0xffff);
	assert_memory_equal(p->ip + 8, b6.ip, 16);
}

/* Random bytes behind plausible headers: parsing them must only ever return. */
static void test_noise(void **state)
{
	uint64_t x = 42;
	for (int round = 0; round < 200000; round++) {
		struct packet *p = make(round & 1, 64);
		size_t length = 0;
		for (int k = 0; k < 3; k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			p->bytes[12 + (x >> 33) % 60] = (uint8_t)(x >> 56);
			length = (x >> 20) % (p->length + 1);
		}
		if ((round & 3) == 1)
			repair_ip(p);
		kind_of(p->bytes, round & 8 ? p->length : length);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tag_goes_on_and_off),
		cmocka_unit_test(a_sum_that_a_card_has_checked_is_not_checked_again),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_headers_are_right),
		cmocka_unit_test(test_checksum_in_two_parts),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_bad_ipv4),
		cmocka_unit_test(test_bad_udp),
		cmocka_unit_test(test_bad_ipv6),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_bad_neighbour),
		cmocka_unit_test(test_echo4),
		cmocka_unit_test(test_echo6),
		cmocka_unit_test(test_noise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
