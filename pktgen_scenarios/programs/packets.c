/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends the packets of a scenario to a node through a network device, or writes them to a pcap
 * file for another generator. Prints one JSON object: {"mode", "sent", "seconds", "pps"}, and of
 * packets that were seen {"seen", "full", "senders"}: how many, how many of them with payload, from
 * how many.
 *
 *   sizes      right headers and zeros, frames of --bytes
 *   garbage    random bytes, any length, from random addresses
 *   hello      first packets of a handshake, right in every byte, from random addresses
 *   cookie     the same with a made-up cookie
 *   header     right checksum, but a random version, type or flag
 *   oversize   IP and UDP lengths that lie, fragments, frames of --bytes (more than 1,472)
 *   truncated  real packets of the connection, seen on this port, cut at a random place
 *   resealed   the same with length fields and checksum made right again
 *   replay     real packets, whole, again and again
 *   mixed      all of these but the first, in any order
 *   data       valid DATA of --peers senders to the receiver beside this program: chunks of --bytes
 */
#include "packets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 32, FILE_FRAMES = 65536, FULL = 256 /* bytes: acknowledgements have fewer */ };

static const char *const mode_names[MODES] = {
	"sizes",     "garbage",	 "hello",  "cookie", "header", "oversize",
	"truncated", "resealed", "replay", "mixed",  "data",
};

static volatile sig_atomic_t stopped; /* SIGTERM ends a run early; it is reported as ever */

static void stop(int signal_number)
{
	stopped = 1;
}

void die(const char *what)
{
	fprintf(stderr, "packets: %s: %s\n", what, strerror(errno));
	exit(1);
}

double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
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
		fprintf(stderr, "packets: no packet to the node passed: start a transfer first\n");
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

/* Returns how many of them the device took; those after one that it refuses are lost. */
static unsigned send_batch(struct flood *f, unsigned count)
{
	static struct frame batch[BATCH];
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	memset(messages, 0, sizeof(messages));
	for (unsigned i = 0; i < count; i++) {
		frame_make(f, &batch[i]);
		parts[i] = (struct iovec){batch[i].data, batch[i].bytes};
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	int sent = sendmmsg(f->fd, messages, count, 0);
	if (sent < 0 && errno == EMSGSIZE)
		die("the device's MTU is smaller than --bytes");
	return sent > 0 ? (unsigned)sent : 0;
}

/* At an even pace of batches, or in bursts with pauses between them. */
static uint64_t run(struct flood *f)
{
	const struct options *o = &f->options;
	double begin = now_s(), elapsed = 0;
	uint64_t sent = 0, due = 0;
	while (!stopped && (elapsed = now_s() - begin) < o->seconds && f->made < o->count) {
		due = o->burst ? (uint64_t)(elapsed * 1e3 / o->pause_ms + 1) * o->burst
			       : (uint64_t)(elapsed * o->pps) + 1;
		due = due < o->count ? due : o->count;
		if (f->made >= due)
			usleep(50);
		else
			sent += send_batch(f, due - f->made < BATCH ? (unsigned)(due - f->made)
								    : BATCH);
	}
	return sent;
}

/* The classic pcap format, link type Ethernet, as libpcap's pcap-savefile(5) describes it. */
static uint64_t write_file(struct flood *f)
{
	const uint32_t header[6] = {0xa1b2c3d4, 4u << 16 | 2, 0, 0, 65535, 1};
	static struct frame frame;
	FILE *file = fopen(f->options.file, "w");
	if (!file || fwrite(header, sizeof(header), 1, file) != 1)
		die(f->options.file);
	uint64_t count = f->options.count < FILE_FRAMES ? f->options.count : FILE_FRAMES;
	for (uint64_t i = 0; i < count; i++) {
		frame_make(f, &frame);
		const uint32_t record[4] = {0, (uint32_t)i, frame.bytes, frame.bytes};
		if (fwrite(record, sizeof(record), 1, file) != 1 ||
		    fwrite(frame.data, frame.bytes, 1, file) != 1)
			die(f->options.file);
	}
	if (fclose(file))
		die(f->options.file);
	return count;
}

/* Whether the packets that passed are worth recording, the reader judges. */
static void print_seen(const struct flood *f)
{
	in_addr_t sender[64];
	uint32_t full = 0, senders = 0;
	for (uint32_t i = 0; i < f->seen_count; i++) {
		in_addr_t from;
		memcpy(&from,
		       f->seen[i].data + sizeof(struct ether_header) +
			       offsetof(struct iphdr, saddr),
		       sizeof(from));
		full += f->seen[i].bytes >= FULL;
		uint32_t k = 0;
		while (k < senders && sender[k] != from)
			k++;
		if (k == senders && senders < sizeof(sender) / sizeof(*sender))
			sender[senders++] = from;
	}
	printf(", \"seen\": %u, \"full\": %u, \"senders\": %u", (unsigned)f->seen_count, full,
	       senders);
}

static void usage(void)
{
	fprintf(stderr,
		"usage: packets --mode MODE --mac MAC --ip IP [--port P] [--source IP]\n"
		"               --device DEV [--pps N | --burst N --pause-ms T] [--seconds S]\n"
		"               | --write FILE.pcap [--device DEV]\n"
		"               [--count N] [--bytes N] [--peers N --chunks N]\n"
		"modes: sizes garbage hello cookie header oversize; with packets that pass DEV: truncated\n"
		"resealed replay mixed; with a receiver: data. --source: senders are in its /16.\n");
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

static double parse_number(double least, double most)
{
	char *end;
	double value = strtod(optarg, &end);
	if (*end || end == optarg || !(value >= least && value <= most))
		usage();
	return value;
}

static void parse_option(struct options *o, int which)
{
	switch (which) {
	case 'd':
		o->device = optarg;
		break;
	case 'w':
		o->file = optarg;
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
	case 'f':
		if (inet_pton(AF_INET, optarg, which == 'i' ? &o->ip : &o->source) != 1)
			usage();
		break;
	case 'p':
		o->port = (uint16_t)parse_number(1, 65535);
		break;
	case 'r':
		o->pps = parse_number(1, 1e9);
		break;
	case 's':
		o->seconds = parse_number(0, 1e9);
		break;
	case 'c':
		o->count = (uint64_t)parse_number(1, 1e15);
		break;
	case 'b':
		o->bytes = (uint16_t)parse_number(60, FRAME_MAX - HEADERS - 64);
		break;
	case 'u':
		o->burst = (uint32_t)parse_number(1, 1e6);
		break;
	case 't':
		o->pause_ms = (uint32_t)parse_number(1, 1e6);
		break;
	case 'n':
		o->peers = (uint32_t)parse_number(1, PEERS_MAX);
		break;
	case 'k':
		o->chunks = (uint32_t)parse_number(1, 1e9);
		break;
	default:
		usage();
	}
}

static struct options parse(int argc, char **argv)
{
	static const struct option known[] = {
		{"device", 1, NULL, 'd'}, {"write", 1, NULL, 'w'},  {"mode", 1, NULL, 'm'},
		{"mac", 1, NULL, 'a'},	  {"ip", 1, NULL, 'i'},	    {"source", 1, NULL, 'f'},
		{"port", 1, NULL, 'p'},	  {"pps", 1, NULL, 'r'},    {"seconds", 1, NULL, 's'},
		{"count", 1, NULL, 'c'},  {"bytes", 1, NULL, 'b'},  {"burst", 1, NULL, 'u'},
		{"peers", 1, NULL, 'n'},  {"chunks", 1, NULL, 'k'}, {"pause-ms", 1, NULL, 't'},
		{NULL, 0, NULL, 0}};
	struct options o = {.mode = MODES,
			    .port = 7400,
			    .pps = 200000,
			    .seconds = 10,
			    .count = UINT64_MAX,
			    .bytes = 1408,
			    .peers = 1,
			    .chunks = 1,
			    .pause_ms = 1000};
	int which;
	while ((which = getopt_long(argc, argv, "", known, NULL)) != -1)
		parse_option(&o, which);
	bool live = !o.file || o.mode >= TRUNCATED;
	bool large = o.mode == OVERSIZE || o.mode == MIXED;
	if (o.mode == MODES || !o.ip.s_addr || optind != argc || (live && !o.device) ||
	    (o.mode == DATA && (o.file || !o.source.s_addr)) || (large && o.bytes <= PAYLOAD_MAX))
		usage();
	if (!o.source.s_addr)
		o.source = o.ip;
	return o;
}

int main(int argc, char **argv)
{
	static struct flood flood;
	struct options *o = &flood.options;
	*o = parse(argc, argv);
	flood.random = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	signal(SIGTERM, stop);
	if (o->device)
		open_device(&flood);
	if (o->mode == DATA)
		peers_open(&flood);
	else if (o->mode >= TRUNCATED)
		watch(&flood);
	if (o->device)
		stop_watching(&flood);
	double begin = now_s();
	uint64_t sent = o->file ? write_file(&flood) : run(&flood);
	double elapsed = now_s() - begin;
	printf("{\"mode\": \"%s\", \"sent\": %llu, \"seconds\": %.3f, \"pps\": %.0f",
	       mode_names[o->mode], (unsigned long long)sent, elapsed, (double)sent / elapsed);
	if (flood.seen_count)
		print_seen(&flood);
	printf("}\n");
	return 0;
}
