/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends hostile packets to a node at a given rate, from the switch's port of that node, so that
 * nothing on the way shapes them. Prints one JSON object: {"sent", "seconds", "pps"}.
 *
 *   garbage    random bytes, any length, from random addresses
 *   hello      first packets of a handshake, right in every byte, from random addresses
 *   cookie     the same with a made-up cookie
 *   header     right checksum, but a random version, type or flag
 *   truncated  real packets of the connection, seen on this port, cut at a random place
 *   resealed   the same with length fields and checksum made right again
 *   replay     real packets, whole, again and again
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "dataplane/core/wire.h"

enum {
	BATCH = 32,
	FRAME_MAX = 2048,
	SEEN_MAX = 4096, /* real packets to choose from */
	HEADERS = sizeof(struct ether_header) + sizeof(struct iphdr) + sizeof(struct udphdr),
	PAYLOAD_MAX = 1472,
};

enum mode { GARBAGE, HELLO, COOKIE, HEADER, TRUNCATED, RESEALED, REPLAY, MODES };

static const char *const mode_names[MODES] = {"garbage",   "hello",    "cookie", "header",
					      "truncated", "resealed", "replay"};

struct options {
	const char *device;
	enum mode mode;
	uint8_t mac[6];
	struct in_addr ip;
	uint16_t port;
	double pps, seconds;
};

struct frame {
	uint32_t bytes;
	uint8_t data[FRAME_MAX];
};

struct flood {
	struct options options;
	int fd;
	uint64_t random;
	struct frame *seen;
	unsigned seen_count;
	struct frame batch[BATCH];
};

static void die(const char *what)
{
	fprintf(stderr, "flood: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* splitmix64: G. Steele, D. Lea, C. Flood, OOPSLA 2014. */
static uint64_t next_random(struct flood *f)
{
	uint64_t z = f->random += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint16_t ip_checksum(const void *data, unsigned bytes)
{
	const uint8_t *p = data;
	uint32_t sum = 0;
	for (unsigned i = 0; i + 1 < bytes; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Headers in front of payload_bytes that stand at data + HEADERS already. */
static void put_headers(struct flood *f, struct frame *frame, unsigned payload_bytes,
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
	ip.check = ip_checksum(&ip, sizeof(ip));
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
	/* somewhere in 10.77/16, so that an answer has a way out */
	struct in_addr source = {htonl(0x0a4d0000u | (uint32_t)(random & 0xffff))};
	put_headers(f, frame, payload_bytes, source, (uint16_t)(random >> 16 | 1024));
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
		wire_header(payload, (enum wire_type)(1 + payload[3] % 5), payload[4],
			    wire_get32(payload + 5), wire_get64(payload + 9));
	put_random_headers(f, frame, bytes);
}

static void seal(uint8_t *payload, uint32_t bytes)
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
	seal(payload, WIRE_HELLO_MIN);
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
	seal(payload, WIRE_HELLO_MIN);
	put_random_headers(f, frame, WIRE_HELLO_MIN);
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
		seal(frame->data + HEADERS, bytes);
	put_headers(f, frame, bytes, (struct in_addr){ip.saddr}, ntohs(udp.source));
}

static void make(struct flood *f, struct frame *frame)
{
	switch (f->options.mode) {
	case GARBAGE:
		make_garbage(f, frame);
		break;
	case HELLO:
	case COOKIE:
		make_hello(f, frame, f->options.mode == COOKIE);
		break;
	case HEADER:
		make_header(f, frame);
		break;
	case TRUNCATED:
	case RESEALED:
		make_cut(f, frame, f->options.mode == RESEALED);
		break;
	default:
		*frame = f->seen[next_random(f) % f->seen_count];
	}
}

static bool is_real(const struct flood *f, const struct frame *frame)
{
	struct iphdr ip;
	struct udphdr udp;
	if (frame->bytes <= HEADERS)
		return false;
	memcpy(&ip, frame->data + sizeof(struct ether_header), sizeof(ip));
	memcpy(&udp, frame->data + sizeof(struct ether_header) + sizeof(ip), sizeof(udp));
	return ip.version == 4 && ip.ihl == 5 && ip.protocol == IPPROTO_UDP &&
	       ip.daddr == f->options.ip.s_addr && udp.dest == htons(f->options.port);
}

/* Packets towards the node that pass this port within half a second. */
static void watch(struct flood *f)
{
	struct timeval wait = {.tv_usec = 100000};
	f->seen = calloc(SEEN_MAX, sizeof(*f->seen));
	if (!f->seen || setsockopt(f->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)))
		die("cannot watch");
	double until = now_s() + 5, enough = 0;
	while (now_s() < until && f->seen_count < SEEN_MAX && (!enough || now_s() < enough)) {
		struct frame *frame = &f->seen[f->seen_count];
		ssize_t got = recv(f->fd, frame->data, FRAME_MAX, 0);
		frame->bytes = got > 0 ? (uint32_t)got : 0;
		if (!is_real(f, frame))
			continue;
		f->seen_count++;
		if (!enough)
			enough = now_s() + 0.5;
	}
	if (f->seen_count == 0) {
		fprintf(stderr, "flood: no packet to the node passed: start a transfer first\n");
		exit(1);
	}
}

static void open_device(struct flood *f)
{
	int on = 1;
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_protocol = htons(ETH_P_ALL),
				      .sll_ifindex = (int)if_nametoindex(f->options.device)};
	f->fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	if (f->fd < 0 || address.sll_ifindex == 0 ||
	    bind(f->fd, (struct sockaddr *)&address, sizeof(address)))
		die(f->options.device);
	if (setsockopt(f->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)))
		die("cannot bypass the queue");
}

/* A socket that only sends: what passes the port must not pile up in it. */
static void stop_watching(struct flood *f)
{
	close(f->fd);
	open_device(f);
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
				      .sll_ifindex = (int)if_nametoindex(f->options.device)};
	if (bind(f->fd, (struct sockaddr *)&address, sizeof(address)))
		die("cannot stop receiving");
}

static unsigned send_batch(struct flood *f)
{
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	memset(messages, 0, sizeof(messages));
	for (unsigned i = 0; i < BATCH; i++) {
		make(f, &f->batch[i]);
		parts[i] = (struct iovec){f->batch[i].data, f->batch[i].bytes};
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	int sent = sendmmsg(f->fd, messages, BATCH, 0);
	return sent > 0 ? (unsigned)sent : 0;
}

static void run(struct flood *f)
{
	double begin = now_s(), elapsed = 0;
	uint64_t sent = 0;
	while ((elapsed = now_s() - begin) < f->options.seconds) {
		if ((double)sent > elapsed * f->options.pps)
			usleep(50);
		else
			sent += send_batch(f);
	}
	printf("{\"mode\": \"%s\", \"sent\": %llu, \"seconds\": %.3f, \"pps\": %.0f}\n",
	       mode_names[f->options.mode], (unsigned long long)sent, elapsed,
	       (double)sent / elapsed);
}

static void usage(void)
{
	fprintf(stderr,
		"usage: flood --device DEV --mode garbage|hello|cookie|header|truncated|"
		"resealed|replay\n             --mac MAC --ip IP [--port P] [--pps N] [--seconds S]\n");
	exit(2);
}

static enum mode parse_mode(const char *text)
{
	for (int i = 0; i < MODES; i++)
		if (strcmp(text, mode_names[i]) == 0)
			return (enum mode)i;
	usage();
	return GARBAGE;
}

static void parse_option(struct options *o, int which)
{
	switch (which) {
	case 'd':
		o->device = optarg;
		break;
	case 'm':
		o->mode = parse_mode(optarg);
		break;
	case 'a':
		if (sscanf(optarg, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &o->mac[0], &o->mac[1],
			   &o->mac[2], &o->mac[3], &o->mac[4], &o->mac[5]) != 6)
			usage();
		break;
	case 'i':
		if (inet_pton(AF_INET, optarg, &o->ip) != 1)
			usage();
		break;
	case 'p':
		o->port = (uint16_t)atoi(optarg);
		break;
	case 'r':
		o->pps = atof(optarg);
		break;
	case 's':
		o->seconds = atof(optarg);
		break;
	default:
		usage();
	}
}

static struct options parse(int argc, char **argv)
{
	static const struct option known[] = {{"device", 1, NULL, 'd'},	 {"mode", 1, NULL, 'm'},
					      {"mac", 1, NULL, 'a'},	 {"ip", 1, NULL, 'i'},
					      {"port", 1, NULL, 'p'},	 {"pps", 1, NULL, 'r'},
					      {"seconds", 1, NULL, 's'}, {NULL, 0, NULL, 0}};
	struct options o = {.port = 7400, .pps = 200000, .seconds = 10};
	int which;
	while ((which = getopt_long(argc, argv, "", known, NULL)) != -1)
		parse_option(&o, which);
	if (!o.device || !o.ip.s_addr || optind != argc)
		usage();
	return o;
}

int main(int argc, char **argv)
{
	static struct flood flood;
	flood.options = parse(argc, argv);
	flood.random = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	open_device(&flood);
	if (flood.options.mode >= TRUNCATED)
		watch(&flood);
	stop_watching(&flood);
	run(&flood);
	return 0;
}
