/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethernet frames of each kind of traffic: right ones, shortened ones, rubbish, from many senders.
 * packets.c calls it and sends them. Knows the wire format from dataplane/core/wire/wire.h.
 */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "dataplane/core/wire/wire_field.h"
#include "packets.h"

/* splitmix64: G. Steele, D. Lea, C. Flood, OOPSLA 2014. */
static uint64_t next_random(struct flood *f)
{
	uint64_t z = f->random += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static void put_ip_checksum(uint8_t *ip)
{
	const unsigned at = offsetof(struct iphdr, check);
	uint32_t sum = 0;
	ip[at] = ip[at + 1] = 0;
	for (unsigned i = 0; i < sizeof(struct iphdr); i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	ip[at] = (uint8_t)(~sum >> 8);
	ip[at + 1] = (uint8_t)~sum;
}

void frame_headers(struct flood *f, struct frame *frame, unsigned payload_bytes,
		   struct in_addr source, uint16_t source_port)
{
	struct ether_header ethernet = {.ether_type = htons(ETHERTYPE_IP)};
	memcpy(ethernet.ether_dhost, f->options.mac, 6);
	memcpy(ethernet.ether_shost, "\x02\x66\x00\x00\x00\x01", 6);
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = htons((uint16_t)(sizeof(ip) + sizeof(struct udphdr) + payload_bytes)),
		.frag_off = htons(IP_DF),
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = source.s_addr,
		.daddr = f->options.ip.s_addr};
	put_ip_checksum((uint8_t *)&ip);
	struct udphdr udp = {.source = htons(source_port),
			     .dest = htons(f->options.port),
			     .len = htons((uint16_t)(sizeof(udp) + payload_bytes))};
	memcpy(frame->data, &ethernet, sizeof(ethernet));
	memcpy(frame->data + sizeof(ethernet), &ip, sizeof(ip));
	memcpy(frame->data + sizeof(ethernet) + sizeof(ip), &udp, sizeof(udp));
	frame->bytes = HEADERS + payload_bytes;
}

static void put_random_headers(struct flood *f, struct frame *frame, unsigned payload_bytes)
{
	uint64_t random = next_random(f);
	/* somewhere in the /16 of the sender's address, so that an answer has a way out */
	struct in_addr source = {htonl((ntohl(f->options.source.s_addr) & 0xffff0000u) |
				       (uint32_t)(random & 0xffff))};
	frame_headers(f, frame, payload_bytes, source, (uint16_t)(random >> 16 | 1024));
}

/* The right headers, and zeros up to the size that is asked for: refused at the first look. */
static void make_sizes(struct flood *f, struct frame *frame)
{
	unsigned bytes = f->options.bytes - HEADERS;
	memset(frame->data + HEADERS, 0, bytes);
	put_random_headers(f, frame, bytes);
}

static void make_garbage(struct flood *f, struct frame *frame)
{
	unsigned bytes = (unsigned)(next_random(f) % PAYLOAD_MAX);
	uint8_t *payload = frame->data + HEADERS;
	for (unsigned i = 0; i < bytes; i += 8) {
		uint64_t random = next_random(f);
		memcpy(payload + i, &random, 8);
	}
	/* half of them get past the first look */
	if (bytes >= WIRE_BODY && (payload[2] & 1))
		wire_header(payload, (enum wire_type)(1 + payload[3] % WIRE_RESET), payload[4],
			    wire_get32(payload + 5), wire_get64(payload + 9));
	put_random_headers(f, frame, bytes);
}

void frame_seal(uint8_t *payload, uint32_t bytes)
{
	memset(payload + WIRE_AT_CRC, 0, WIRE_CRC_BYTES);
	wire_put32(payload + WIRE_AT_CRC, wire_crc(payload, bytes, NULL, 0));
}

static void make_hello(struct flood *f, struct frame *frame, bool with_cookie)
{
	uint8_t *payload = frame->data + HEADERS, *body = payload + WIRE_BODY;
	memset(payload, 0, WIRE_HELLO_MIN);
	wire_header(payload, WIRE_HELLO, 0, 0, next_random(f) % 1000);
	wire_put32(body + HELLO_AT_CONN, (uint32_t)next_random(f) | 0x10000);
	wire_put16(body + HELLO_AT_MTU, 1500);
	wire_put16(body + HELLO_AT_WORKERS, 1);
	wire_put64(body + HELLO_AT_INCARNATION, next_random(f) | 1);
	wire_put32(body + HELLO_AT_WINDOW, 1024);
	if (with_cookie) {
		wire_put64(body + HELLO_AT_TIME, next_random(f));
		wire_put64(body + HELLO_AT_COOKIE, next_random(f));
		wire_put64(body + HELLO_AT_COOKIE + 8, next_random(f));
	}
	frame_seal(payload, WIRE_HELLO_MIN);
	put_random_headers(f, frame, WIRE_HELLO_MIN);
}

static void make_header(struct flood *f, struct frame *frame)
{
	uint64_t random = next_random(f);
	uint8_t *payload = frame->data + HEADERS;
	uint8_t version_type[3] = {(uint8_t)random, WIRE_VERSION << 4 | (random & 15),
				   WIRE_VERSION << 4 | WIRE_PAYLOAD};
	memset(payload, 0, WIRE_HELLO_MIN);
	wire_header(payload, WIRE_HELLO, (uint16_t)random, (uint32_t)random, random);
	payload[WIRE_AT_VERSION_TYPE] = version_type[random % 3];
	payload[WIRE_AT_FLAGS] = random % 3 == 2 ? (uint8_t)(random >> 8 | 2) : 0;
	frame_seal(payload, WIRE_HELLO_MIN);
	put_random_headers(f, frame, WIRE_HELLO_MIN);
}

/* Lengths that lie: in the IP header, in the UDP header, a fragment; or more bytes than the MTU. */
static void make_oversize(struct flood *f, struct frame *frame)
{
	uint8_t *ip = frame->data + sizeof(struct ether_header), *udp = ip + sizeof(struct iphdr);
	uint64_t random = next_random(f);
	uint16_t lie = htons((uint16_t)(1500 + (random >> 8) % 60000));
	make_hello(f, frame, false);
	switch (random % 4) {
	case 0:
		memcpy(ip + offsetof(struct iphdr, tot_len), &lie, sizeof(lie));
		break;
	case 1:
		memcpy(udp + offsetof(struct udphdr, len), &lie, sizeof(lie));
		return;
	case 2:
		ip[offsetof(struct iphdr, frag_off)] = IP_MF >> 8;
		break;
	default:
		memset(frame->data + frame->bytes, 0, f->options.bytes - frame->bytes);
		put_random_headers(f, frame, f->options.bytes - HEADERS);
		return;
	}
	put_ip_checksum(ip);
}

/* A real packet, cut; its addresses stay, so that it belongs to a connection. */
static void make_cut(struct flood *f, struct frame *frame, bool resealed)
{
	const struct frame *real = &f->seen[next_random(f) % f->seen_count];
	struct iphdr ip;
	struct udphdr udp;
	memcpy(&ip, real->data + sizeof(struct ether_header), sizeof(ip));
	memcpy(&udp, real->data + sizeof(struct ether_header) + sizeof(ip), sizeof(udp));
	unsigned bytes = (unsigned)(next_random(f) % (real->bytes - HEADERS));
	memcpy(frame->data + HEADERS, real->data + HEADERS, bytes);
	if (resealed && bytes >= WIRE_BODY)
		frame_seal(frame->data + HEADERS, bytes);
	frame_headers(f, frame, bytes, (struct in_addr){ip.saddr}, ntohs(udp.source));
}

static void make(struct flood *f, enum mode mode, struct frame *frame)
{
	switch (mode) {
	case SIZES:
		make_sizes(f, frame);
		break;
	case GARBAGE:
		make_garbage(f, frame);
		break;
	case HELLO:
	case COOKIE:
		make_hello(f, frame, mode == COOKIE);
		break;
	case HEADER:
		make_header(f, frame);
		break;
	case OVERSIZE:
		make_oversize(f, frame);
		break;
	case TRUNCATED:
	case RESEALED:
		make_cut(f, frame, mode == RESEALED);
		break;
	case MIXED:
		make(f, (enum mode)(GARBAGE + next_random(f) % (MIXED - GARBAGE)), frame);
		break;
	case DATA:
		peers_data(f, frame);
		break;
	default:
		*frame = f->seen[next_random(f) % f->seen_count];
	}
}

void frame_make(struct flood *f, struct frame *frame)
{
	make(f, f->options.mode, frame);
	f->made++;
}
