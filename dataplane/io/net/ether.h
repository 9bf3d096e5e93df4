/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet frames: reading and writing the headers around our UDP payload, and the few answers a
 * node owes its link when no kernel owns the address (ARP, neighbour discovery, echo).
 *
 * Pure functions over byte ranges; callable from any core. Nothing a peer sends is trusted: every
 * length is checked against the bytes that are really there. VLAN tags, IPv4 options beyond their
 * length and IPv6 extension headers are not looked into: such frames are ETHER_OTHER.
 */
#ifndef SARISSA_DATAPLANE_IO_NET_ETHER_H
#define SARISSA_DATAPLANE_IO_NET_ETHER_H

#include <stddef.h>
#include "internal/ids.h"

enum {
	ETHER_HEADER = 14,
	ETHER_IPV4 = 20,
	ETHER_IPV6 = 40,
	ETHER_UDP_HEADER = 8,
	ETHER_HEADERS_V4 = ETHER_HEADER + ETHER_IPV4 + ETHER_UDP_HEADER,
	ETHER_HEADERS_V6 = ETHER_HEADER + ETHER_IPV6 + ETHER_UDP_HEADER,
	ETHER_MAC = 6,
	ETHER_FRAME_MAX = 9000 + ETHER_HEADER,
	ETHER_TAG = 4, /* IEEE 802.1Q, between the addresses and the type */
	ETHER_VLAN_MAX = 4094,
	ETHER_ARP_BYTES = 42,
	ETHER_NEIGHBOUR_BYTES = 86, /* solicitation or advertisement with one option */
};

enum ether_kind {
	ETHER_BAD,	     /* a header contradicts the frame: malformed, checksum, fragment */
	ETHER_OTHER,	     /* well-formed as far as we look, and nothing we take part in */
	ETHER_UDP,	     /* addresses, ports, payload, ecn are set */
	ETHER_ARP_REQUEST,   /* from.ip, from_mac: the sender; to.ip: the address in question */
	ETHER_ARP_REPLY,     /* from.ip, from_mac: the answer */
	ETHER_ND_SOLICIT,    /* as ARP_REQUEST; has_mac tells whether from_mac is set */
	ETHER_ND_ADVERTISE,  /* as ARP_REPLY; from.ip is the target */
	ETHER_ECHO_REQUEST4, /* addresses are set */
	ETHER_ECHO_REQUEST6,
};

struct ether_frame {
	enum ether_kind kind;
	uint8_t ecn;
	bool has_mac;
	uint16_t payload_length; /* UDP bytes */
	const uint8_t *payload;
	struct net_addr from, to; /* ports are set for UDP only */
	uint8_t from_mac[ETHER_MAC];
};

/* Reads a frame of length bytes. Sets what the kind says; pointers lie inside data. */
void ether_parse(const uint8_t *data, size_t length, struct ether_frame *out);
/* Like ether_parse(), where a card has found the checksum of the IPv4 header right. */
void ether_parse_summed(const uint8_t *data, size_t length, struct ether_frame *out);

/* Makes a frame one of a VLAN: to has ETHER_TAG bytes of room before the frame. */
void ether_tag(uint8_t *to, uint16_t vlan);
/* Takes the tag of that VLAN off: the frame then begins ETHER_TAG bytes later. Returns false, and
 * changes nothing, when it has another one or none. Priority and drop eligibility are ignored. */
bool ether_untag(uint8_t *data, size_t length, uint16_t vlan);

struct ether_route {
	uint8_t our_mac[ETHER_MAC], next_mac[ETHER_MAC];
};

/* The Ethernet, IPv4 and UDP headers of all packets to one address, without lengths and ecn. DF is
 * set, TTL is 64, the UDP checksum 0 (RFC 768: none; our packets carry their own). */
struct ether_stamp {
	uint8_t bytes[ETHER_HEADERS_V4];
	uint16_t sum; /* of the IPv4 header, as its checksum field has it */
};
void ether_stamp_v4(struct ether_stamp *s, const struct ether_route *route,
		    const struct net_addr *from, const struct net_addr *to);

/* Writes them into the ETHER_HEADERS_V4 bytes before payload. */
void ether_put_v4(const struct ether_stamp *s, uint8_t *payload, uint16_t payload_length,
		  uint8_t ecn);

/* Writes Ethernet, IPv6 and UDP headers into the ETHER_HEADERS_V6 bytes before payload. The
 * checksum field gets what udp_checksum says. */
void ether_write_v6(uint8_t *payload, uint16_t payload_length, const struct ether_route *route,
		    const struct net_addr *from, const struct net_addr *to, uint8_t ecn,
		    uint16_t udp_checksum_be);

/* UDP checksum over IPv6 (RFC 8200, 8.1) of a datagram whose payload lies in two parts; never 0.
 * a_length may be odd. Network byte order. */
uint16_t ether_udp6_checksum(const struct net_addr *from, const struct net_addr *to,
			     const uint8_t *a, uint16_t a_length, const uint8_t *b,
			     uint16_t b_length);

/* Only the pseudo-header's part, as network cards want it for their checksum off-load. */
uint16_t ether_udp6_pseudo(const struct net_addr *from, const struct net_addr *to,
			   uint16_t payload_length);

/* Who-has: asks for ip in broadcast (ARP) or to the solicited-node group (RFC 4861). Writes
 * ETHER_ARP_BYTES or ETHER_NEIGHBOUR_BYTES bytes and returns how many. */
uint16_t ether_write_solicit(uint8_t *out, const uint8_t *our_mac, const uint8_t *our_ip,
			     const uint8_t *ip);

/* Answers a parsed ETHER_ARP_REQUEST or ETHER_ND_SOLICIT for our address; same sizes. A
 * solicitation from the unspecified address is answered to all nodes. */
uint16_t ether_write_advertise(uint8_t *out, const uint8_t *our_mac,
			       const struct ether_frame *request, const uint8_t *requester_mac);

/* Turns a parsed ETHER_ECHO_REQUEST4/6 into its reply, in place. */
void ether_make_echo_reply(uint8_t *data, const uint8_t *our_mac,
			   const struct ether_frame *request);

/* ::ffff:a.b.c.d, written in one piece: the addresses are read again at once, and a load that spans
 * several stores has to wait until they, and the payload copied before them, reach the cache. */
static inline void ether_map_v4(uint8_t *ip16, const void *ip4)
{
	typedef uint64_t pair __attribute__((vector_size(16)));
	uint32_t v4;
	memcpy(&v4, ip4, sizeof(v4));
	pair whole = {0, (uint64_t)v4 << 32 | 0xffff0000u};
	memcpy(ip16, &whole, sizeof(whole));
}

#endif
