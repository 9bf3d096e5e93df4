/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A frame from the link: one byte that says which checksums are made right first, then the frame.
 * What ether_parse says must hold, and what a node answers must parse as that answer.
 */
#include "io/net/ether.h"
#include "input.h"

/* What a card has summed up is read as ever, and at least as much of it is good. */
static void check_summed(const uint8_t *frame, size_t length, const struct ether_frame *f)
{
	struct ether_frame summed;

	ether_parse_summed(frame, length, &summed);
	INPUT_MUST(f->kind == ETHER_BAD || summed.kind == f->kind);
}

/* A tag comes off as it went on; one of another VLAN stays, and so does what is no tag. */
static void check_tag(const uint8_t *frame, size_t length, uint8_t vlan)
{
	uint8_t *tagged = malloc(ETHER_TAG + length);

	if (!tagged)
		return;
	memcpy(tagged + ETHER_TAG, frame, length);
	if (length >= ETHER_HEADER) {
		ether_tag(tagged, vlan);
		INPUT_MUST(!ether_untag(tagged, ETHER_TAG + length, vlan + 1));
		INPUT_MUST(ether_untag(tagged, ETHER_TAG + length, vlan));
	}
	INPUT_MUST(memcmp(tagged + ETHER_TAG, frame, length) == 0);
	ether_untag(tagged + ETHER_TAG, length, vlan);
	free(tagged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEND_IP = 1, MEND_BODY = 2 };

static const uint8_t our_mac[ETHER_MAC] = {2, 0, 0, 0, 0, 1};

static uint32_t sum_words(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum += (uint32_t)bytes[i] << (i % 2 ? 0 : 8);
	return sum;
}

static void sum_store(uint8_t *at, uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	at[0] = (uint8_t)(~sum >> 8);
	at[1] = (uint8_t)~sum;
}

static void mend_v4(uint8_t *ip, size_t length, uint8_t what)
{
	if (length < ETHER_IPV4)
		return;
	size_t header = (ip[0] & 15) * 4u, total = (size_t)(ip[2] << 8 | ip[3]);

	if (header < ETHER_IPV4 || header > length)
		return;
	if (what & MEND_IP) {
		ip[10] = ip[11] = 0;
		sum_store(ip + 10, sum_words(ip, header));
	}
	if (!(what & MEND_BODY) || ip[9] != 1 || total > length || total < header + 8)
		return;
	ip[header + 2] = ip[header + 3] = 0;
	sum_store(ip + header + 2, sum_words(ip + header, total - header));
}

static void mend_v6(uint8_t *ip, size_t length, uint8_t what)
{
	size_t body = length < ETHER_IPV6 ? 0 : (size_t)(ip[4] << 8 | ip[5]);

	if (!(what & MEND_BODY) || body < 8 || body > length - ETHER_IPV6 || ip[6] != 58)
		return;
	ip[ETHER_IPV6 + 2] = ip[ETHER_IPV6 + 3] = 0;
	sum_store(ip + ETHER_IPV6 + 2,
		  sum_words(ip + 8, 32) + (uint32_t)body + 58 + sum_words(ip + ETHER_IPV6, body));
}

static void mend(uint8_t *frame, size_t length, uint8_t what)
{
	if (length <= ETHER_HEADER)
		return;
	if (frame[12] == 8 && frame[13] == 0)
		mend_v4(frame + ETHER_HEADER, length - ETHER_HEADER, what);
	if (frame[12] == 0x86 && frame[13] == 0xdd)
		mend_v6(frame + ETHER_HEADER, length - ETHER_HEADER, what);
}

/* A frame of ours with the same payload says the same. */
static void check_udp(const uint8_t *frame, size_t length, const struct ether_frame *f)
{
	static uint8_t room[ETHER_HEADERS_V6 + UINT16_MAX];
	struct ether_route route = {{0}, {0}};
	uint8_t *payload = room + ETHER_HEADERS_V6;
	uint16_t bytes = f->payload_length;
	bool v4 = net_addr_is_v4(&f->from) && net_addr_is_v4(&f->to);
	size_t headers = v4 ? ETHER_HEADERS_V4 : ETHER_HEADERS_V6;
	struct ether_frame back;

	INPUT_MUST(f->payload >= frame && f->payload + bytes <= frame + length);
	memcpy(payload, f->payload, bytes);
	if (bytes > ETHER_FRAME_MAX - headers)
		return; /* more than we ever send */
	if (v4) {
		struct ether_stamp stamp;
		ether_stamp_v4(&stamp, &route, &f->from, &f->to);
		ether_put_v4(&stamp, payload, bytes, f->ecn);
	} else {
		ether_write_v6(payload, bytes, &route, &f->from, &f->to, f->ecn,
			       ether_udp6_checksum(&f->from, &f->to, payload, bytes / 3,
						   payload + bytes / 3, bytes - bytes / 3));
	}
	ether_parse(payload - headers, headers + bytes, &back);
	INPUT_MUST(back.kind == ETHER_UDP && back.payload == payload);
	INPUT_MUST(back.payload_length == bytes && back.ecn == f->ecn);
	INPUT_MUST(net_addr_equal(&back.from, &f->from) && net_addr_equal(&back.to, &f->to));
}

/* The same order as in rx.c: the answer is written where the question lay, or beside it. */
static void check_answer(const struct ether_frame *f)
{
	uint8_t out[ETHER_NEIGHBOUR_BYTES];
	struct ether_frame back;
	uint16_t bytes = ether_write_advertise(out, our_mac, f, f->from_mac);
	bool arp = f->kind == ETHER_ARP_REQUEST;

	INPUT_MUST(bytes == (arp ? ETHER_ARP_BYTES : ETHER_NEIGHBOUR_BYTES));
	ether_parse(out, bytes, &back);
	INPUT_MUST(back.kind == (arp ? ETHER_ARP_REPLY : ETHER_ND_ADVERTISE) && back.has_mac);
	INPUT_MUST(memcmp(back.from_mac, our_mac, ETHER_MAC) == 0);
	INPUT_MUST(memcmp(back.from.ip, f->to.ip, sizeof(f->to.ip)) == 0);
}

static void check_echo(uint8_t *frame, size_t length, const struct ether_frame *f)
{
	struct ether_frame request = *f, back;

	ether_make_echo_reply(frame, our_mac, &request);
	ether_parse(frame, length, &back);
	INPUT_MUST(back.kind == ETHER_OTHER);
	INPUT_MUST(memcmp(back.from.ip, f->to.ip, sizeof(f->to.ip)) == 0);
	INPUT_MUST(memcmp(back.to.ip, f->from.ip, sizeof(f->to.ip)) == 0);
	uint8_t *icmp = frame + ETHER_HEADER +
			(request.kind == ETHER_ECHO_REQUEST4 ? ETHER_IPV4 : ETHER_IPV6);
	uint8_t told[2] = {icmp[2], icmp[3]};
	mend(frame, length, MEND_BODY);
	/* 0 and 0xffff are the same number in one's complement */
	INPUT_MUST(memcmp(told, icmp + 2, 2) == 0 || (told[0] == told[1] && icmp[2] == icmp[3]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t what = input_byte(&in);
	size_t length = in.left;
	uint8_t *frame = malloc(length + !length); /* of just this size */
	struct ether_frame f;

	if (!frame)
		return 0;
	memset(&f, 0x55, sizeof(f));
	input_copy(&in, frame, length);
	mend(frame, length, what);
	ether_parse(frame, length, &f);
	check_summed(frame, length, &f);
	check_tag(frame, length, what);
	if (f.kind == ETHER_UDP)
		check_udp(frame, length, &f);
	else if (f.kind == ETHER_ARP_REQUEST || f.kind == ETHER_ND_SOLICIT)
		check_answer(&f);
	else if (f.kind == ETHER_ECHO_REQUEST4 || f.kind == ETHER_ECHO_REQUEST6)
		check_echo(frame, length, &f);
	free(frame);
	return 0;
}
