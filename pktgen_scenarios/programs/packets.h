/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generator of the traffic scenarios: what it sends, whatever carries it away. Frames are made
 * here and nowhere else; a port or a pcap file takes them.
 */
#ifndef SARISSA_PKTGEN_SCENARIOS_PROGRAMS_PACKETS_H
#define SARISSA_PKTGEN_SCENARIOS_PROGRAMS_PACKETS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

enum {
	FRAME_MAX = 4096,
	SEEN_MAX = 4096, /* real packets to choose from */
	PEERS_MAX = 256,
	HEADERS = sizeof(struct ether_header) + sizeof(struct iphdr) + sizeof(struct udphdr),
	PAYLOAD_MAX = 1472,
};

enum mode {
	SIZES,
	GARBAGE,
	HELLO,
	COOKIE,
	HEADER,
	OVERSIZE,
	TRUNCATED, /* from here on: made of packets that pass the port */
	RESEALED,
	REPLAY,
	MIXED, /* any of those above, frame by frame */
	DATA,  /* of connections of its own */
	MODES
};

struct options {
	const char *device, *file;
	enum mode mode;
	uint8_t mac[6];
	struct in_addr ip, source;
	uint16_t port, bytes;
	uint32_t peers, chunks, burst, pause_ms;
	uint64_t count;
	double pps, seconds;
};

struct frame {
	uint32_t bytes;
	uint8_t data[FRAME_MAX];
};

/* One sender of valid DATA. */
struct peer {
	int fd; /* carries the handshake; swallows what the node answers later */
	bool up, granted;
	uint16_t check;
	uint32_t known; /* wire_crc_conn() */
	uint32_t conn;	/* what the node calls the connection */
	uint64_t number;
	uint32_t chunk;
};

struct flood {
	struct options options;
	int fd;
	uint64_t random;
	uint64_t made;
	struct frame *seen;
	unsigned seen_count;
	struct peer peers[PEERS_MAX];
};

/* Ends the program with what is wrong and errno. */
void die(const char *what);
double now_s(void);

/* The next frame of the scenario. */
void frame_make(struct flood *f, struct frame *frame);
/* Ethernet, IP and UDP in front of payload_bytes that stand at data + HEADERS already. */
void frame_headers(struct flood *f, struct frame *frame, unsigned payload_bytes,
		   struct in_addr source, uint16_t source_port);
/* Writes the checksum of a packet that is complete otherwise. */
void frame_seal(uint8_t *payload, uint32_t bytes);

/* Waits until the node has opened a connection to each of the peers (UDP ports of the source
 * address, from SENDER_PORT on) and granted it all its chunks. */
void peers_open(struct flood *f);
void peers_data(struct flood *f, struct frame *frame);

#endif
