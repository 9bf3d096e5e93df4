/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many true senders in one program, for `receiver`: each is an engine of the dataplane (credit,
 * congestion, loss and pacing as on a node) behind a UDP socket of the kernel. Each sends its
 * object to the peer that connects, once a message says that the stream exists. Prints the senders'
 * counters at the end, as a JSON object.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "content.h"
#include "dataplane/core/engine.h"
#include "internal/program/arguments.h"
#include "internal/ipc.h"

enum {
	PEERS_MAX = 256,
	BURST = 16,
	PACKET_MAX = 2048,
	MTU = 1500,
	TABLES = 16,
	SLOTS = 2, /* for messages */
	SECOND = 1000000000
};

struct sender {
	struct engine *engine;
	struct engine_config config;
	struct counters counters;
	struct record out; /* the edge, once somebody has said that it may begin */
	int fd;
	bool more; /* it had more to send than a turn takes */
	bool done;
};

struct senders {
	struct sender sender[PEERS_MAX];
	struct pollfd polls[PEERS_MAX];
	struct in_addr source;
	uint32_t count, chunks, done;
	uint16_t chunk_bytes;
	uint64_t untaken; /* packets that the kernel did not take: the engine sends them again */
	uint32_t failed;  /* streams that ended before they were done */
	double patience_s;
};

static void fail(const char *what)
{
	fprintf(stderr, "senders: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void *memory(uint64_t bytes)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		fail("no memory for so many senders");
	return m;
}

/* ---- one sender ------------------------------------------------------------------------------ */

static void sender_bind(struct senders *s, uint32_t i)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_port = htons((uint16_t)(SENDER_PORT + i)),
				   .sin_addr = s->source};
	s->sender[i].fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->sender[i].fd < 0 ||
	    bind(s->sender[i].fd, (struct sockaddr *)&here, sizeof(here)) != 0)
		fail("cannot use the address of --source");
	s->polls[i] = (struct pollfd){.fd = s->sender[i].fd, .events = POLLIN};
}

static void sender_buffer(struct senders *s, struct sender *p, uint64_t now_ns)
{
	uint64_t bytes = (uint64_t)s->chunks * s->chunk_bytes;
	struct record buffer = {.op = COMMAND_BUFFER, .epoch = 1};
	buffer.buffer.buffer = handle_make(0, 1);
	buffer.buffer.table_slot = TABLE_SLOT_NONE;
	buffer.buffer.size = buffer.buffer.ready_bytes = bytes;
	buffer.buffer.chunk_bytes = s->chunk_bytes;
	buffer.buffer.need = 1;
	engine_command(p->engine, &buffer, now_ns);
	p->out = (struct record){.op = COMMAND_OUT, .epoch = 1};
	p->out.edge.edge = p->out.edge.buffer = handle_make(0, 1);
	p->out.edge.stream = content_stream((uint32_t)(p - s->sender));
	p->out.edge.chunks = s->chunks;
	p->out.edge.bitmap_offset = bytes;
}

/* The store of a sender: its object, then the bitmap of what it has sent. */
static void sender_open(struct senders *s, uint32_t i, uint64_t now_ns)
{
	struct sender *p = &s->sender[i];
	struct engine_config *c = &p->config;
	uint64_t bytes = (uint64_t)s->chunks * s->chunk_bytes;
	engine_config_default(c);
	c->incarnation = now_ns + i;
	c->addr = (struct net_addr){.ip = {[10] = 0xff, [11] = 0xff},
				    .port = (uint16_t)(SENDER_PORT + i)};
	memcpy(c->addr.ip + 12, &s->source, sizeof(s->source));
	c->key[0] = (uint8_t)i;
	c->mtu = MTU;
	c->conns_max = TABLES;
	c->buffers_max = c->edges_max = TABLES;
	c->store_bytes = bytes + chunk_bitmap_bytes(s->chunks);
	c->store = memory(c->store_bytes);
	c->msg_rx_slots = SLOTS;
	c->msg_rx = memory((uint64_t)SLOTS * MSG_SLOT_BYTES);
	c->counters = &p->counters;
	for (uint32_t chunk = 0; chunk < s->chunks; chunk++)
		content_fill(c->store + (uint64_t)chunk * s->chunk_bytes, s->chunk_bytes, i, chunk);
	p->engine = engine_init(memory(engine_bytes(c)), c, now_ns);
	if (!p->engine) {
		errno = EINVAL;
		fail("the engine does not take its limits");
	}
	sender_buffer(s, p, now_ns);
	sender_bind(s, i);
}

static void sender_serve(struct senders *s, struct sender *p, uint64_t now_ns)
{
	memset(p->config.store + p->out.edge.bitmap_offset, 0, chunk_bitmap_bytes(s->chunks));
	engine_command(p->engine, &p->out, now_ns);
}

/* The receiver's end of the stream stands. */
static void sender_told(struct senders *s, struct sender *p, const struct record *e,
			uint64_t now_ns)
{
	struct record seen = {.op = COMMAND_MSG_FREE, .msg = e->msg};
	engine_command(p->engine, &seen, now_ns);
	p->out.edge.conn = e->msg.conn;
	sender_serve(s, p, now_ns);
}

/* Until it is told again. */
static void sender_failed(struct senders *s, struct sender *p, uint64_t now_ns)
{
	s->failed++;
	struct record drop = {.op = COMMAND_DROP_EDGE, .flags = RECORD_FLAG_OUT, .epoch = 1};
	drop.edge.edge = p->out.edge.edge;
	engine_command(p->engine, &drop, now_ns);
	p->out.edge.edge =
		handle_make(0, handle_next_generation(handle_generation(p->out.edge.edge)));
}

static void sender_event(struct senders *s, struct sender *p, const struct record *e,
			 uint64_t now_ns)
{
	switch (e->op) {
	case EVENT_MSG:
		sender_told(s, p, e, now_ns);
		break;
	case EVENT_EDGE_FAILED:
		sender_failed(s, p, now_ns);
		break;
	case EVENT_OUT_DONE:
		s->done += !p->done;
		p->done = true;
		break;
	case EVENT_REFUSED:
		errno = EINVAL;
		fail(reason_name(e->reason));
	}
}

static void sender_receive(struct sender *p, uint64_t now_ns)
{
	uint8_t bytes[PACKET_MAX];
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	ssize_t got;
	for (int i = 0; i < BURST; i++) {
		got = recvfrom(p->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &length);
		if (got < 0)
			return;
		struct packet_in packet = {
			.data = bytes,
			.length = (uint16_t)got,
			.from = {.ip = {[10] = 0xff, [11] = 0xff}, .port = ntohs(from.sin_port)}};
		memcpy(packet.from.ip + 12, &from.sin_addr, sizeof(from.sin_addr));
		engine_receive(p->engine, &packet, now_ns);
	}
}

static void sender_transmit(struct senders *s, struct sender *p, uint64_t now_ns)
{
	uint8_t bytes[BURST][PACKET_MAX];
	struct packet_out out[BURST];
	for (int i = 0; i < BURST; i++)
		out[i] = (struct packet_out){.head = bytes[i], .head_room = PACKET_MAX};
	unsigned n = engine_transmit(p->engine, out, BURST, now_ns);
	for (unsigned i = 0; i < n; i++) {
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(out[i].to.port)};
		uint8_t *payload = bytes[i] + out[i].head_length;
		memcpy(&to.sin_addr, out[i].to.ip + 12, sizeof(to.sin_addr));
		memcpy(payload, out[i].payload, out[i].payload_length);
		packet_out_seal(&out[i]);
		s->untaken += sendto(p->fd, bytes[i], out[i].head_length + out[i].payload_length, 0,
				     (struct sockaddr *)&to, sizeof(to)) < 0;
	}
	p->more = n == BURST;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* When any of them has something to do by itself. */
static uint64_t senders_next(const struct senders *s)
{
	uint64_t next = UINT64_MAX, own;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct sender *p = &s->sender[i];
		own = p->more ? 0 : engine_next_timeout(p->engine);
		next = own < next ? own : next;
	}
	return next;
}

static void senders_wait(struct senders *s, uint64_t now_ns)
{
	uint64_t next = senders_next(s), wait = next > now_ns ? next - now_ns : 0;
	wait = wait < SECOND ? wait : SECOND - 1;
	struct timespec ts = {.tv_nsec = (long)wait};
	ppoll(s->polls, s->count, &ts, NULL);
}

static void senders_turn(struct senders *s, uint64_t now_ns)
{
	struct record events[BURST];
	for (uint32_t i = 0; i < s->count; i++) {
		struct sender *p = &s->sender[i];
		bool due = engine_next_timeout(p->engine) <= now_ns;
		if (!s->polls[i].revents && !due && !p->more)
			continue;
		if (s->polls[i].revents)
			sender_receive(p, now_ns);
		if (due)
			engine_tick(p->engine, now_ns);
		unsigned n = engine_events(p->engine, events, BURST);
		for (unsigned k = 0; k < n; k++)
			sender_event(s, p, &events[k], now_ns);
		sender_transmit(s, p, now_ns);
	}
}

static void senders_print(const struct senders *s, double seconds)
{
	struct counters all = {0};
	for (uint32_t i = 0; i < s->count; i++) {
		const struct counters *c = &s->sender[i].counters;
		all.tx_chunks += c->tx_chunks;
		all.tx_chunk_resends += c->tx_chunk_resends;
		all.lost_pkts += c->lost_pkts;
	}
	printf("{\"done\": %u, \"seconds\": %.3f, \"chunks\": %llu, \"resends\": %llu, \"lost\": %llu, "
	       "\"untaken\": %llu, \"failed\": %u}\n",
	       s->done, seconds, (unsigned long long)all.tx_chunks,
	       (unsigned long long)all.tx_chunk_resends, (unsigned long long)all.lost_pkts,
	       (unsigned long long)s->untaken, s->failed);
}

int main(int argc, char **argv)
{
	static struct senders s;
	if (argc != 6 || inet_pton(AF_INET, argv[1], &s.source) != 1) {
		fprintf(stderr, "usage: senders SOURCE_IP PEERS CHUNKS CHUNK_BYTES SECONDS\n");
		return 2;
	}
	s.count = (uint32_t)argument_need("PEERS", argv[2], 1, PEERS_MAX);
	s.chunks = (uint32_t)argument_need("CHUNKS", argv[3], 1, UINT32_MAX);
	s.chunk_bytes = (uint16_t)argument_need("CHUNK_BYTES", argv[4], 64, MTU);
	s.patience_s = argument_need_real("SECONDS", argv[5], 1e6);
	uint64_t begin_ns = (uint64_t)payload_now_ns(), now_ns = begin_ns;
	for (uint32_t i = 0; i < s.count; i++)
		sender_open(&s, i, begin_ns);
	while (s.done < s.count && (double)(now_ns - begin_ns) < s.patience_s * 1e9) {
		senders_wait(&s, now_ns);
		now_ns = (uint64_t)payload_now_ns();
		senders_turn(&s, now_ns);
	}
	senders_print(&s, (double)(now_ns - begin_ns) * 1e-9);
	return s.done == s.count ? 0 : 1;
}
