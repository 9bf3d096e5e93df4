/* SPDX-License-Identifier: BSD-3-Clause */
#include "bridge.h"

#include <arpa/inet.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

enum { ARP_BYTES = 42, TTL = 1 };

/* Locally administered; the same on each switch, since its answers are by multicast. */
static const uint8_t switch_mac[6] = {0x02, 0x5a, 0x53, 0, 0, 1};

static uint64_t bridge_mac_number(const uint8_t *mac)
{
	uint64_t n = 0;
	memcpy(&n, mac, 6);
	return n;
}

static struct bridge_address *bridge_ways(struct bridge *b, uint64_t mac)
{
	uint32_t hash = (uint32_t)(mac * 0x9e3779b97f4a7c15ull >> 40);
	return &b->address[hash % (BRIDGE_ADDRESSES / BRIDGE_WAYS) * BRIDGE_WAYS];
}

static void bridge_learn(struct bridge *b, unsigned port, uint64_t mac)
{
	struct bridge_address *ways = bridge_ways(b, mac), *place = ways;
	for (unsigned i = 0; i < BRIDGE_WAYS; i++) {
		if (ways[i].mac == mac) {
			place = &ways[i];
			break;
		}
		if (ways[i].mac == 0 || (place->mac != 0 && ways[i].used < place->used))
			place = &ways[i];
	}
	*place = (struct bridge_address){.mac = mac, .port = (uint8_t)port, .used = ++b->turn};
}

unsigned bridge_forward(struct bridge *b, unsigned port, const uint8_t *frame)
{
	if (!(frame[6] & 1))
		bridge_learn(b, port, bridge_mac_number(frame + 6));
	if (frame[0] & 1)
		return BRIDGE_NO_PORT;
	uint64_t mac = bridge_mac_number(frame);
	struct bridge_address *ways = bridge_ways(b, mac);
	for (unsigned i = 0; i < BRIDGE_WAYS; i++)
		if (ways[i].mac == mac)
			return ways[i].port;
	return BRIDGE_NO_PORT;
}

const uint8_t *bridge_contribution(const uint8_t *frame, uint32_t frame_bytes, uint32_t *bytes,
				   uint32_t *address)
{
	struct iphdr ip;
	struct udphdr udp;
	if (frame_bytes < BRIDGE_FRAME_HEADERS || frame[12] != 0x08 || frame[13] != 0)
		return NULL;
	memcpy(&ip, frame + 14, sizeof(ip));
	memcpy(&udp, frame + 34, sizeof(udp));
	if (ip.version != 4 || ip.ihl != 5 || ip.protocol != IPPROTO_UDP ||
	    (ip.frag_off & htons(0x3fff)) || udp.dest != htons(AGGREGATE_PORT))
		return NULL;
	uint32_t total = ntohs(ip.tot_len), datagram = ntohs(udp.len);
	if (total > frame_bytes - 14 || datagram < sizeof(udp) || datagram > total - sizeof(ip))
		return NULL;
	*bytes = datagram - (uint32_t)sizeof(udp);
	*address = ip.daddr;
	return frame + BRIDGE_FRAME_HEADERS;
}

static uint32_t bridge_sum_words(const uint8_t *at, uint32_t bytes, uint32_t sum)
{
	uint64_t wide = sum;
	for (; bytes >= 4; at += 4, bytes -= 4) {
		uint32_t word;
		memcpy(&word, at, 4);
		wide += word;
	}
	if (bytes >= 2)
		wide += (uint32_t)at[0] | (uint32_t)at[1] << 8;
	if (bytes & 1)
		wide += at[bytes - 1];
	wide = (wide & 0xffffffff) + (wide >> 32);
	wide = (wide & 0xffffffff) + (wide >> 32);
	wide = (wide & 0xffff) + (wide >> 16);
	return (uint32_t)((wide & 0xffff) + (wide >> 16));
}

/* Where the UDP or TCP header of a whole IP packet is, its bytes with what follows, and the sum of
 * its pseudo-header; 0: there is none. */
static uint32_t bridge_find_checksum(const uint8_t *frame, uint32_t frame_bytes, uint32_t *bytes,
				     uint8_t *protocol, uint32_t *pseudo)
{
	uint32_t at = 14 + 40, length;
	if (frame_bytes < 14 + 20)
		return 0;
	if (frame[12] == 0x08 && frame[13] == 0 && frame[14] >> 4 == 4) {
		at = 14 + (frame[14] & 15) * 4u;
		length = (uint32_t)frame[16] << 8 | frame[17];
		if ((frame[20] & 0x3f) || frame[21] || length + 14 > frame_bytes ||
		    at > length + 14)
			return 0;
		*bytes = length + 14 - at;
		*protocol = frame[23];
		*pseudo = bridge_sum_words(frame + 26, 8, 0);
	} else if (frame_bytes >= at && frame[12] == 0x86 && frame[13] == 0xdd) {
		*bytes = (uint32_t)frame[18] << 8 | frame[19];
		*protocol = frame[20];
		*pseudo = bridge_sum_words(frame + 22, 32, 0);
		if (*bytes > frame_bytes - at)
			return 0;
	} else {
		return 0;
	}
	uint8_t rest[4] = {0, *protocol, (uint8_t)(*bytes >> 8), (uint8_t)*bytes};
	*pseudo = bridge_sum_words(rest, 4, *pseudo);
	return at;
}

void bridge_fill_checksum(uint8_t *frame, uint32_t frame_bytes)
{
	uint32_t bytes = 0, pseudo = 0, at, offset;
	uint8_t protocol = 0;
	uint16_t has, sum;
	at = bridge_find_checksum(frame, frame_bytes, &bytes, &protocol, &pseudo);
	offset = protocol == IPPROTO_UDP ? 6 : 16;
	if (at == 0 || (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP) || bytes < offset + 2)
		return;
	memcpy(&has, frame + at + offset, 2);
	if (has != pseudo)
		return;
	/* over all, with the pseudo-header's sum where the checksum will be */
	sum = (uint16_t)~bridge_sum_words(frame + at, bytes, 0);
	if (sum == 0 && protocol == IPPROTO_UDP)
		sum = 0xffff;
	memcpy(frame + at + offset, &sum, 2);
}

static uint16_t bridge_ip_checksum(const struct iphdr *ip)
{
	uint16_t words[10];
	uint32_t sum = 0;
	memcpy(words, ip, sizeof(words));
	for (unsigned i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

void bridge_write_headers(uint8_t *frame, uint32_t payload_bytes, uint32_t group, uint32_t address)
{
	uint8_t to[4];
	aggregate_address(group, to);
	const uint8_t mac[6] = {0x01, 0, 0x5e, to[1] & 0x7f, to[2], to[3]};
	struct udphdr udp = {.source = htons(AGGREGATE_PORT),
			     .dest = htons(AGGREGATE_RESULT_PORT),
			     .len = htons((uint16_t)(sizeof(udp) + payload_bytes))};
	struct iphdr ip = {.version = 4,
			   .ihl = 5,
			   .ttl = TTL,
			   .protocol = IPPROTO_UDP,
			   .saddr = address,
			   .frag_off = htons(0x4000),
			   .tot_len = htons((uint16_t)(28 + payload_bytes))};
	memcpy(&ip.daddr, to, 4);
	ip.check = bridge_ip_checksum(&ip);
	memcpy(frame, mac, 6);
	memcpy(frame + 6, switch_mac, 6);
	frame[12] = 0x08, frame[13] = 0;
	memcpy(frame + 14, &ip, sizeof(ip));
	memcpy(frame + 34, &udp, sizeof(udp)); /* its checksum 0: our packets carry their own */
}

bool bridge_answer_arp(uint8_t *frame, uint32_t frame_bytes, const uint8_t address[4])
{
	static const uint8_t request[10] = {0x08, 0x06, 0, ARPHRD_ETHER, 0x08, 0,
					    6,	  4,	0, ARPOP_REQUEST};
	if (frame_bytes < ARP_BYTES || memcmp(frame + 12, request, sizeof(request)) != 0 ||
	    memcmp(frame + 38, address, 4) != 0)
		return false;
	frame[21] = ARPOP_REPLY;
	memcpy(frame, frame + 6, 6);
	memcpy(frame + 6, switch_mac, 6);
	memcpy(frame + 32, frame + 22, 10); /* the target: the requester */
	memcpy(frame + 22, switch_mac, 6);
	memcpy(frame + 28, address, 4);
	return true;
}
