/* SPDX-License-Identifier: BSD-3-Clause */
#include "ether.h"

#include <arpa/inet.h>

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	TYPE_IPV6 = 0x86dd,
	TYPE_VLAN = 0x8100,
	VLAN_MASK = 0x0fff,
	PROTO_ICMP = 1,
	PROTO_UDP = 17,
	PROTO_ICMP6 = 58,
	ICMP_REPLY = 0,
	ICMP_REQUEST = 8,
	ICMP6_REQUEST = 128,
	ICMP6_REPLY = 129,
	ICMP6_SOLICIT = 135,
	ICMP6_ADVERTISE = 136,
	OPTION_SOURCE_MAC = 1,
	OPTION_TARGET_MAC = 2,
	ND_FIXED = 24, /* ICMPv6 header, flags, target */
	ND_WITH_MAC = ND_FIXED + 8,
	ICMP_MIN = 8,
	ARP_BODY = 28,
	HOP_LIMIT = 64,
	ND_HOP_LIMIT = 255,
};

static uint16_t ether_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void ether_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Ones' complement sum of big-endian words (RFC 1071), taken in host order: the sum of swapped
 * words is the swapped sum. */
static uint64_t ether_sum_add(uint64_t sum, const uint8_t *data, size_t length)
{
	uint32_t word;
	for (; length >= 4; data += 4, length -= 4) {
		memcpy(&word, data, 4);
		sum += word;
	}
	word = 0;
	if (length > 0) /* data may be NULL when there is none */
		memcpy(&word, data, length);
	return sum + word;
}

static uint16_t ether_sum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static uint64_t ether_sum_pseudo6(const uint8_t *from, const uint8_t *to, uint32_t length,
				  uint8_t proto)
{
	uint32_t tail[2] = {htonl(length), htonl(proto)};
	uint64_t sum = ether_sum_add(ether_sum_add(0, from, 16), to, 16);
	return ether_sum_add(sum, (const uint8_t *)tail, sizeof(tail));
}

/* Port and padding in one store (see ether_map_v4). Little-endian, as all machines we run on. */
static void ether_set_port(struct net_addr *a, uint16_t port)
{
	uint64_t whole = port;
	memcpy((uint8_t *)a + sizeof(a->ip), &whole, sizeof(whole));
}

static void ether_parse_udp(const uint8_t *udp, size_t length, struct ether_frame *out)
{
	if (length < ETHER_UDP_HEADER || ether_get16(udp + 4) < ETHER_UDP_HEADER ||
	    ether_get16(udp + 4) > length)
		return;
	out->kind = ETHER_UDP;
	ether_set_port(&out->from, ether_get16(udp));
	ether_set_port(&out->to, ether_get16(udp + 2));
	out->payload = udp + ETHER_UDP_HEADER;
	out->payload_length = (uint16_t)(ether_get16(udp + 4) - ETHER_UDP_HEADER);
}

/* summed: somebody else has found the header's checksum right. */
static void ether_parse_ipv4(const uint8_t *ip, size_t length, bool summed, struct ether_frame *out)
{
	if (length < ETHER_IPV4 || ip[0] >> 4 != 4)
		return;
	size_t header = (ip[0] & 15) * 4u, total = ether_get16(ip + 2);
	if (header < ETHER_IPV4 || total < header || total > length ||
	    (!summed && ether_sum_fold(ether_sum_add(0, ip, header)) != 0xffff) ||
	    (ether_get16(ip + 6) & 0x3fff))
		return;
	ether_map_v4(out->from.ip, ip + 12);
	ether_map_v4(out->to.ip, ip + 16);
	out->ecn = ip[1] & 3;
	const uint8_t *body = ip + header;
	size_t body_length = total - header;
	if (ip[9] == PROTO_UDP) {
		ether_parse_udp(body, body_length, out);
		return;
	}
	out->kind = ETHER_OTHER;
	/* echo replies are made in place, so only the plain header is served */
	if (ip[9] == PROTO_ICMP && header == ETHER_IPV4 && body_length >= ICMP_MIN &&
	    body[0] == ICMP_REQUEST && body[1] == 0) {
		bool whole = ether_sum_fold(ether_sum_add(0, body, body_length)) == 0xffff;
		out->kind = whole ? ETHER_ECHO_REQUEST4 : ETHER_BAD;
	}
}

/* Neighbour messages come from the link itself: hop limit 255 (RFC 4861, 7.1). */
static void ether_parse_neighbour(const uint8_t *ip, const uint8_t *icmp, size_t length,
				  struct ether_frame *out)
{
	bool solicit = icmp[0] == ICMP6_SOLICIT;
	if (length < ND_FIXED || ip[7] != ND_HOP_LIMIT || icmp[1] != 0) {
		out->kind = ETHER_BAD;
		return;
	}
	for (size_t at = ND_FIXED; at + 8 <= length; at += icmp[at + 1] * 8u) {
		if (icmp[at + 1] == 0 || at + icmp[at + 1] * 8u > length) {
			out->kind = ETHER_BAD;
			return;
		}
		if (icmp[at] == (solicit ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC)) {
			memcpy(out->from_mac, icmp + at + 2, ETHER_MAC);
			out->has_mac = true;
		}
	}
	memcpy(solicit ? out->to.ip : out->from.ip, icmp + 8, 16);
	out->kind = solicit ? ETHER_ND_SOLICIT : ETHER_ND_ADVERTISE;
}

static void ether_parse_icmp6(const uint8_t *ip, const uint8_t *icmp, size_t length,
			      struct ether_frame *out)
{
	out->kind = ETHER_OTHER;
	if (length < ICMP_MIN)
		return;
	bool neighbour = icmp[0] == ICMP6_SOLICIT || icmp[0] == ICMP6_ADVERTISE;
	if (!neighbour && icmp[0] != ICMP6_REQUEST)
		return;
	uint64_t sum = ether_sum_pseudo6(ip + 8, ip + 24, (uint32_t)length, PROTO_ICMP6);
	if (ether_sum_fold(ether_sum_add(sum, icmp, length)) != 0xffff)
		out->kind = ETHER_BAD;
	else if (neighbour)
		ether_parse_neighbour(ip, icmp, length, out);
	else
		out->kind = ETHER_ECHO_REQUEST6;
}

static void ether_parse_ipv6(const uint8_t *ip, size_t length, struct ether_frame *out)
{
	if (length < ETHER_IPV6 || ip[0] >> 4 != 6)
		return;
	size_t body_length = ether_get16(ip + 4);
	if (body_length > length - ETHER_IPV6)
		return;
	memcpy(out->from.ip, ip + 8, 16);
	memcpy(out->to.ip, ip + 24, 16);
	out->ecn = ip[1] >> 4 & 3;
	if (ip[6] == PROTO_UDP)
		ether_parse_udp(ip + ETHER_IPV6, body_length, out);
	else if (ip[6] == PROTO_ICMP6)
		ether_parse_icmp6(ip, ip + ETHER_IPV6, body_length, out);
	else
		out->kind = ETHER_OTHER;
}

static void ether_parse_arp(const uint8_t *arp, size_t length, struct ether_frame *out)
{
	static const uint8_t ethernet_ipv4[6] = {0, 1, 8, 0, 6, 4};
	if (length < ARP_BODY || memcmp(arp, ethernet_ipv4, sizeof(ethernet_ipv4)) != 0)
		return;
	uint16_t op = ether_get16(arp + 6);
	memcpy(out->from_mac, arp + 8, ETHER_MAC);
	out->has_mac = true;
	ether_map_v4(out->from.ip, arp + 14);
	ether_map_v4(out->to.ip, arp + 24);
	out->kind = op == 1 ? ETHER_ARP_REQUEST : op == 2 ? ETHER_ARP_REPLY : ETHER_OTHER;
}

static void ether_parse_any(const uint8_t *data, size_t length, bool summed,
			    struct ether_frame *out)
{
	out->kind = ETHER_BAD;
	out->has_mac = false;
	out->ecn = 0;
	if (length < ETHER_HEADER)
		return;
	const uint8_t *body = data + ETHER_HEADER;
	length -= ETHER_HEADER;
	switch (ether_get16(data + 12)) {
	case TYPE_IPV4:
		ether_parse_ipv4(body, length, summed, out);
		break;
	case TYPE_IPV6:
		ether_parse_ipv6(body, length, out);
		break;
	case TYPE_ARP:
		ether_parse_arp(body, length, out);
		break;
	default:
		out->kind = ETHER_OTHER;
	}
}

void ether_parse(const uint8_t *data, size_t length, struct ether_frame *out)
{
	ether_parse_any(data, length, false, out);
}

void ether_parse_summed(const uint8_t *data, size_t length, struct ether_frame *out)
{
	ether_parse_any(data, length, true, out);
}

void ether_tag(uint8_t *to, uint16_t vlan)
{
	memmove(to, to + ETHER_TAG, 2 * ETHER_MAC);
	ether_put16(to + 2 * ETHER_MAC, TYPE_VLAN);
	ether_put16(to + 2 * ETHER_MAC + 2, vlan);
}

bool ether_untag(uint8_t *data, size_t length, uint16_t vlan)
{
	if (length < ETHER_HEADER + ETHER_TAG || ether_get16(data + 2 * ETHER_MAC) != TYPE_VLAN ||
	    (ether_get16(data + 2 * ETHER_MAC + 2) & VLAN_MASK) != vlan)
		return false;
	memmove(data + ETHER_TAG, data, 2 * ETHER_MAC);
	return true;
}

static void ether_write_ethernet(uint8_t *eth, const uint8_t *to, const uint8_t *from,
				 uint16_t type)
{
	memcpy(eth, to, ETHER_MAC);
	memcpy(eth + 6, from, ETHER_MAC);
	ether_put16(eth + 12, type);
}

static void ether_write_udp(uint8_t *udp, const struct net_addr *from, const struct net_addr *to,
			    uint16_t payload_length, uint16_t checksum_be)
{
	ether_put16(udp, from->port);
	ether_put16(udp + 2, to->port);
	ether_put16(udp + 4, (uint16_t)(payload_length + ETHER_UDP_HEADER));
	memcpy(udp + 6, &checksum_be, 2);
}

void ether_stamp_v4(struct ether_stamp *s, const struct ether_route *route,
		    const struct net_addr *from, const struct net_addr *to)
{
	uint8_t *ip = s->bytes + ETHER_HEADER;
	ether_write_ethernet(s->bytes, route->next_mac, route->our_mac, TYPE_IPV4);
	memset(ip, 0, ETHER_IPV4); /* atomic datagrams: the id means nothing (RFC 6864) */
	ip[0] = 0x45;
	ether_put16(ip + 6, 0x4000); /* DF */
	ip[8] = HOP_LIMIT;
	ip[9] = PROTO_UDP;
	memcpy(ip + 12, from->ip + 12, 4);
	memcpy(ip + 16, to->ip + 12, 4);
	ether_write_udp(ip + ETHER_IPV4, from, to, 0, 0);
	s->sum = ether_sum_fold(ether_sum_add(0, ip, ETHER_IPV4));
}

void ether_put_v4(const struct ether_stamp *s, uint8_t *payload, uint16_t payload_length,
		  uint8_t ecn)
{
	uint8_t *udp = payload - ETHER_UDP_HEADER, *ip = udp - ETHER_IPV4;
	uint16_t udp_be = htons((uint16_t)(payload_length + ETHER_UDP_HEADER));
	uint16_t ip_be = htons((uint16_t)(payload_length + ETHER_UDP_HEADER + ETHER_IPV4));
	uint16_t tos_be = htons(ecn); /* the word of version, length and ecn, less the former */
	uint16_t checksum = (uint16_t)~ether_sum_fold((uint64_t)s->sum + ip_be + tos_be);
	memcpy(ip - ETHER_HEADER, s->bytes, ETHER_HEADERS_V4);
	ip[1] = ecn;
	memcpy(ip + 2, &ip_be, 2);
	memcpy(ip + 10, &checksum, 2);
	memcpy(udp + 4, &udp_be, 2);
}

static void ether_write_ipv6(uint8_t *ip, uint16_t length, uint8_t proto, uint8_t hops,
			     const uint8_t *from, const uint8_t *to, uint8_t ecn)
{
	ip[0] = 0x60;
	ip[1] = (uint8_t)(ecn << 4);
	ether_put16(ip + 2, 0);
	ether_put16(ip + 4, length);
	ip[6] = proto;
	ip[7] = hops;
	memcpy(ip + 8, from, 16);
	memcpy(ip + 24, to, 16);
}

void ether_write_v6(uint8_t *payload, uint16_t payload_length, const struct ether_route *route,
		    const struct net_addr *from, const struct net_addr *to, uint8_t ecn,
		    uint16_t udp_checksum_be)
{
	uint8_t *udp = payload - ETHER_UDP_HEADER, *ip = udp - ETHER_IPV6;
	ether_write_ethernet(ip - ETHER_HEADER, route->next_mac, route->our_mac, TYPE_IPV6);
	ether_write_ipv6(ip, (uint16_t)(payload_length + ETHER_UDP_HEADER), PROTO_UDP, HOP_LIMIT,
			 from->ip, to->ip, ecn);
	ether_write_udp(udp, from, to, payload_length, udp_checksum_be);
}

uint16_t ether_udp6_pseudo(const struct net_addr *from, const struct net_addr *to,
			   uint16_t payload_length)
{
	return ether_sum_fold(
		ether_sum_pseudo6(from->ip, to->ip, payload_length + ETHER_UDP_HEADER, PROTO_UDP));
}

uint16_t ether_udp6_checksum(const struct net_addr *from, const struct net_addr *to,
			     const uint8_t *a, uint16_t a_length, const uint8_t *b,
			     uint16_t b_length)
{
	uint16_t length = (uint16_t)(a_length + b_length);
	uint8_t header[ETHER_UDP_HEADER];
	ether_write_udp(header, from, to, length, 0);
	uint64_t sum = ether_udp6_pseudo(from, to, length);
	sum = ether_sum_add(ether_sum_add(sum, header, sizeof(header)), a, a_length);
	uint16_t tail = ether_sum_fold(ether_sum_add(0, b, b_length));
	if (a_length & 1) /* the second part starts in the middle of a word */
		tail = (uint16_t)(tail << 8 | tail >> 8);
	uint16_t checksum = (uint16_t)~ether_sum_fold(sum + tail);
	return checksum ? checksum : 0xffff;
}

static uint16_t ether_write_arp(uint8_t *out, uint16_t op, const uint8_t *eth_to,
				const uint8_t *our_mac, const uint8_t *our_ip, const uint8_t *mac,
				const uint8_t *ip)
{
	static const uint8_t ethernet_ipv4[6] = {0, 1, 8, 0, 6, 4};
	uint8_t *arp = out + ETHER_HEADER;
	ether_write_ethernet(out, eth_to, our_mac, TYPE_ARP);
	memcpy(arp, ethernet_ipv4, sizeof(ethernet_ipv4));
	ether_put16(arp + 6, op);
	memcpy(arp + 8, our_mac, ETHER_MAC);
	memcpy(arp + 14, our_ip + 12, 4);
	memcpy(arp + 18, mac, ETHER_MAC);
	memcpy(arp + 24, ip + 12, 4);
	return ETHER_ARP_BYTES;
}

static uint16_t ether_write_neighbour(uint8_t *out, uint8_t type, const uint8_t *eth_to,
				      const uint8_t *our_mac, const uint8_t *from,
				      const uint8_t *to, const uint8_t *target, uint8_t flags)
{
	uint8_t *ip = out + ETHER_HEADER, *icmp = ip + ETHER_IPV6;
	ether_write_ethernet(out, eth_to, our_mac, TYPE_IPV6);
	ether_write_ipv6(ip, ND_WITH_MAC, PROTO_ICMP6, ND_HOP_LIMIT, from, to, 0);
	memset(icmp, 0, ND_WITH_MAC);
	icmp[0] = type;
	icmp[4] = flags;
	memcpy(icmp + 8, target, 16);
	icmp[ND_FIXED] = type == ICMP6_SOLICIT ? OPTION_SOURCE_MAC : OPTION_TARGET_MAC;
	icmp[ND_FIXED + 1] = 1;
	memcpy(icmp + ND_FIXED + 2, our_mac, ETHER_MAC);
	uint64_t sum = ether_sum_pseudo6(from, to, ND_WITH_MAC, PROTO_ICMP6);
	uint16_t checksum = (uint16_t)~ether_sum_fold(ether_sum_add(sum, icmp, ND_WITH_MAC));
	memcpy(icmp + 2, &checksum, 2);
	return ETHER_NEIGHBOUR_BYTES;
}

uint16_t ether_write_solicit(uint8_t *out, const uint8_t *our_mac, const uint8_t *our_ip,
			     const uint8_t *ip)
{
	static const uint8_t everybody[ETHER_MAC] = {255, 255, 255, 255, 255, 255};
	static const uint8_t nobody[ETHER_MAC] = {0};
	struct net_addr a = {0};
	memcpy(a.ip, ip, 16);
	if (net_addr_is_v4(&a))
		return ether_write_arp(out, 1, everybody, our_mac, our_ip, nobody, ip);
	uint8_t group[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, ip[13], ip[14], ip[15]};
	uint8_t group_mac[ETHER_MAC] = {0x33, 0x33, 0xff, ip[13], ip[14], ip[15]};
	return ether_write_neighbour(out, ICMP6_SOLICIT, group_mac, our_mac, our_ip, group, ip, 0);
}

uint16_t ether_write_advertise(uint8_t *out, const uint8_t *our_mac,
			       const struct ether_frame *request, const uint8_t *requester_mac)
{
	enum { SOLICITED = 0x40, OVERRIDE = 0x20 };
	static const uint8_t unspecified[16] = {0};
	static const uint8_t all_nodes[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
	static const uint8_t all_nodes_mac[ETHER_MAC] = {0x33, 0x33, 0, 0, 0, 1};
	if (request->kind == ETHER_ARP_REQUEST)
		return ether_write_arp(out, 2, requester_mac, our_mac, request->to.ip,
				       requester_mac, request->from.ip);
	if (memcmp(request->from.ip, unspecified, 16) == 0)
		return ether_write_neighbour(out, ICMP6_ADVERTISE, all_nodes_mac, our_mac,
					     request->to.ip, all_nodes, request->to.ip, OVERRIDE);
	return ether_write_neighbour(out, ICMP6_ADVERTISE, requester_mac, our_mac, request->to.ip,
				     request->from.ip, request->to.ip, SOLICITED | OVERRIDE);
}

/* Swaps two ranges of n <= 16 bytes. */
static void ether_swap_bytes(uint8_t *a, uint8_t *b, size_t n)
{
	uint8_t t[16];
	memcpy(t, a, n);
	memcpy(a, b, n);
	memcpy(b, t, n);
}

void ether_make_echo_reply(uint8_t *data, const uint8_t *our_mac, const struct ether_frame *request)
{
	bool v4 = request->kind == ETHER_ECHO_REQUEST4;
	uint8_t *ip = data + ETHER_HEADER, *icmp = ip + (v4 ? ETHER_IPV4 : ETHER_IPV6);
	memcpy(data, data + 6, ETHER_MAC);
	memcpy(data + 6, our_mac, ETHER_MAC);
	if (v4) {
		/* swapping addresses keeps the header's sum; the TTL does not */
		ether_swap_bytes(ip + 12, ip + 16, 4);
		ip[8] = HOP_LIMIT;
		ether_put16(ip + 10, 0);
		uint16_t checksum = (uint16_t)~ether_sum_fold(ether_sum_add(0, ip, ETHER_IPV4));
		memcpy(ip + 10, &checksum, 2);
	} else {
		ether_swap_bytes(ip + 8, ip + 24, 16);
		ip[7] = HOP_LIMIT;
	}
	/* incremental update for the changed type (RFC 1624): ~(~C + ~m + m') */
	uint16_t old_word = ether_get16(icmp), old_sum = ether_get16(icmp + 2);
	icmp[0] = v4 ? ICMP_REPLY : ICMP6_REPLY;
	uint32_t sum = (uint16_t)~old_sum + (uint32_t)(uint16_t)~old_word + ether_get16(icmp);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ether_put16(icmp + 2, (uint16_t)~sum);
}
