/* SPDX-License-Identifier: BSD-3-Clause */
/* Senders of valid DATA: a true handshake over UDP sockets, then chunks with fresh packet numbers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "content.h"
#include "dataplane/core/wire/wire_field.h"
#include "packets.h"

enum { PATIENCE_S = 20, WHOLE_EVERY = 64 /* packets */ };

#define TURN_S 0.2

/* Of this program's one life. Any will do: the node meets the address for the first time. */
static const uint64_t incarnation = 0x5ca1ab1e;

static uint32_t peers_conn(const struct flood *f, const struct peer *p)
{
	return handle_make((uint16_t)(p - f->peers), 1);
}

static void peers_bind(struct flood *f, struct peer *p)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)(SENDER_PORT + (p - f->peers))),
				   .sin_addr = f->options.source};
	struct sockaddr_in there = {.sin_family = AF_INET,
				    .sin_port = htons(f->options.port),
				    .sin_addr = f->options.ip};
	p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&here, sizeof(here)) ||
	    connect(p->fd, (struct sockaddr *)&there, sizeof(there)))
		die("cannot use the address of --source");
}

/* Asks for a cookie that nobody checks but us, then accepts. */
static void peers_answer(struct flood *f, struct peer *p, const uint8_t *hello, uint32_t bytes)
{
	uint8_t reply[FRAME_MAX] = {0}, *body = reply + WIRE_BODY;
	const uint8_t *said = hello + WIRE_BODY;
	uint64_t node = wire_get64(said + HELLO_AT_INCARNATION);
	uint32_t conn = wire_get32(said + HELLO_AT_CONN), length = WIRE_BODY + HELLO_BYTES;
	if (wire_get64(said + HELLO_AT_TIME) == 0) {
		wire_header(reply, WIRE_COOKIE, 0, conn, 0);
		wire_put64(body + HELLO_AT_INCARNATION, node);
		wire_put64(body + HELLO_AT_TIME, 1);
		body[HELLO_AT_COOKIE] = 1;
	} else {
		length = bytes;
		wire_header(reply, WIRE_ACCEPT, wire_check(incarnation, node), conn, 0);
		wire_put32(body + HELLO_AT_CONN, peers_conn(f, p));
		wire_put16(body + HELLO_AT_MTU, wire_get16(said + HELLO_AT_MTU));
		wire_put16(body + HELLO_AT_WORKERS, 1);
		wire_put64(body + HELLO_AT_INCARNATION, incarnation);
		wire_put64(body + HELLO_AT_PEER, node);
		wire_put32(body + HELLO_AT_WINDOW, 1024);
		p->conn = conn;
		p->check = wire_check_conn(incarnation, peers_conn(f, p), node);
		p->known = wire_crc_conn(incarnation, peers_conn(f, p), node, conn);
		p->up = true;
	}
	frame_seal(reply, length);
	send(p->fd, reply, length, 0);
}

/* With the whole packet number: what is lost meanwhile must not reach further than the short one.
 */
static uint32_t peers_frame(const struct flood *f, const struct peer *p, uint8_t *packet)
{
	uint32_t sender = (uint32_t)(p - f->peers), bytes = f->options.bytes;
	uint8_t *data = packet + WIRE_BODY;
	wire_header(packet, WIRE_PAYLOAD, p->check, p->conn, p->number);
	data[0] = FRAME_DATA;
	data[FRAME_AT_FLAGS] = 0;
	wire_put16(data + DATA_AT_LENGTH, (uint16_t)bytes);
	wire_put32(data + DATA_AT_STREAM, content_stream(sender));
	wire_put32(data + DATA_AT_CHUNK, p->chunk);
	content_fill(data + DATA_BYTES, bytes, sender, p->chunk);
	frame_seal(packet, WIRE_BODY + DATA_BYTES + bytes);
	return WIRE_BODY + DATA_BYTES + bytes;
}

static uint32_t peers_chunk(const struct flood *f, const struct peer *p, uint8_t *packet)
{
	uint32_t sender = (uint32_t)(p - f->peers), length = CHUNK_BODY + f->options.bytes;
	uint32_t state = wire_crc_number(p->known, p->number);
	wire_chunk(packet, p->number, content_stream(sender), p->chunk, 0);
	content_fill(packet + CHUNK_BODY, f->options.bytes, sender, p->chunk);
	wire_put32(packet + CHUNK_AT_CRC, wire_crc_chunk(state, packet, length, NULL, 0));
	return length;
}

/* The next chunk of a sender, which goes round its object for ever under new packet numbers. */
static uint32_t peers_packet(struct flood *f, struct peer *p, uint8_t *packet)
{
	uint32_t bytes = p->number % WHOLE_EVERY == 0 ? peers_frame(f, p, packet)
						      : peers_chunk(f, p, packet);
	p->number++;
	p->chunk = p->chunk + 1 == f->options.chunks ? 0 : p->chunk + 1;
	return bytes;
}

/* A GRANT, perhaps behind an acknowledgement. */
static bool peers_granted(const uint8_t *packet, ssize_t bytes)
{
	ssize_t at = WIRE_BODY;
	while (at + ACK_AT_BITMAP <= bytes && (packet[at] == FRAME_ACK || packet[at] == FRAME_ECN))
		at += packet[at] == FRAME_ECN ? ECN_BYTES
					      : ACK_AT_BITMAP + 8 * packet[at + ACK_AT_WORDS];
	return at + GRANT_BYTES <= bytes && packet[at] == FRAME_GRANT;
}

static void peers_hear(struct flood *f, struct peer *p)
{
	uint8_t packet[FRAME_MAX];
	ssize_t got = recv(p->fd, packet, sizeof(packet), 0);
	if (got < WIRE_BODY)
		return;
	uint8_t type = packet[WIRE_AT_VERSION_TYPE] & 15;
	if (type == WIRE_HELLO && got >= WIRE_HELLO_MIN)
		peers_answer(f, p, packet, (uint32_t)got);
	if (type == WIRE_PAYLOAD && peers_granted(packet, got))
		p->granted = true;
}

/* Hears them for a while. Returns how many have come as far as is asked. */
static uint32_t peers_turn(struct flood *f, bool granted)
{
	struct pollfd polls[PEERS_MAX];
	uint32_t count = f->options.peers, ready = 0;
	double until = now_s() + TURN_S, rest;
	for (uint32_t i = 0; i < count; i++)
		polls[i] = (struct pollfd){.fd = f->peers[i].fd, .events = POLLIN};
	while ((rest = until - now_s()) > 0) {
		poll(polls, count, (int)(rest * 1e3) + 1);
		for (uint32_t i = 0; i < count; i++)
			if (polls[i].revents)
				peers_hear(f, &f->peers[i]);
	}
	for (uint32_t i = 0; i < count; i++)
		ready += granted ? f->peers[i].granted : f->peers[i].up;
	return ready;
}

/* One chunk for each that has not been granted more: credit follows upon the first one. */
static void peers_begin(struct flood *f)
{
	uint8_t packet[FRAME_MAX];
	for (uint32_t i = 0; i < f->options.peers; i++) {
		struct peer *p = &f->peers[i];
		if (!p->granted)
			send(p->fd, packet, peers_packet(f, p, packet), 0);
	}
}

void peers_open(struct flood *f)
{
	uint32_t count = f->options.peers, ready = 0;
	double until = now_s() + PATIENCE_S;
	for (uint32_t i = 0; i < count; i++)
		peers_bind(f, &f->peers[i]);
	while (ready < count && now_s() < until)
		ready = peers_turn(f, false);
	peers_turn(f, false); /* the streams follow upon the connections */
	for (ready = 0; ready < count && now_s() < until; ready = peers_turn(f, true))
		peers_begin(f);
	if (ready < count) {
		fprintf(stderr, "packets: %u of %u senders may send: start the receiver\n", ready,
			count);
		exit(1);
	}
}

void peers_data(struct flood *f, struct frame *frame)
{
	uint32_t sender = (uint32_t)(f->made % f->options.peers);
	uint32_t bytes = peers_packet(f, &f->peers[sender], frame->data + HEADERS);
	frame_headers(f, frame, bytes, f->options.source, (uint16_t)(SENDER_PORT + sender));
}
