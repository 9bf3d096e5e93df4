/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in the place of control beside a dataplane, and has it receive one object from each of
 * some senders (`packets --mode data`, `senders`). --tell says to each with a message that its
 * stream stands: `senders` waits for that. Prints two JSON objects: what it asks for,
 * {"chunk_bytes", "chunks", "peers"}, and at the end {"taken", "wrong"}: objects that came whole,
 * and chunks with other bytes than were sent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../control/shell/attach.h"
#include "content.h"
#include "internal/program/arguments.h"
#include "internal/ring.h"

enum { PEERS_MAX = 256, BURST = 64 };

struct receiver {
	struct attach attach;
	const char *rundir;
	struct net_addr from;
	uint32_t peers, chunks, done;
	uint16_t chunk_bytes;
	double patience_s;
	bool tell;
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "receiver: %s: %s\n", what, strerror(error));
	exit(1);
}

static void command(struct receiver *r, const struct record *record)
{
	struct ipc_header *ipc = r->attach.ipc;
	if (ring_push(&r->attach.commands[0], record, 1) != 1)
		fail("the dataplane takes no commands", EAGAIN);
	ring_wake(&ipc->worker[0].sleeping, r->attach.worker_wake[0]);
}

static void open_peer(struct receiver *r, uint64_t sender)
{
	struct record record = {.op = COMMAND_PEER_OPEN, .token = sender, .peer.addr = r->from};
	record.peer.addr.port = (uint16_t)(r->from.port + sender);
	command(r, &record);
}

/* The store: bitmaps of all senders, then their objects. Nothing lies at 0, which means none. */
static uint64_t bitmap_bytes(const struct receiver *r)
{
	return (chunk_bitmap_bytes(r->chunks) + 63) / 64 * 64;
}

static uint64_t object_offset(const struct receiver *r, uint64_t sender)
{
	uint64_t bytes = (uint64_t)r->chunks * r->chunk_bytes;
	return 64 + r->peers * bitmap_bytes(r) + sender * bytes;
}

static void ask(struct receiver *r, uint64_t sender, uint32_t conn)
{
	uint32_t id = content_stream((uint32_t)sender);
	struct record buffer = {.op = COMMAND_BUFFER, .epoch = 1, .token = sender};
	buffer.buffer.buffer = id;
	buffer.buffer.table_slot = TABLE_SLOT_NONE;
	buffer.buffer.store_offset = object_offset(r, sender);
	buffer.buffer.size = (uint64_t)r->chunks * r->chunk_bytes;
	buffer.buffer.bitmap_offset = 64 + sender * bitmap_bytes(r);
	buffer.buffer.chunk_bytes = r->chunk_bytes;
	buffer.buffer.need = 1;
	struct record in = {.op = COMMAND_IN, .epoch = 1, .token = sender};
	in.edge.edge = in.edge.buffer = id;
	in.edge.conn = conn;
	in.edge.chunks = r->chunks;
	command(r, &buffer);
	command(r, &in);
}

/* A chunk that comes before its stream exists makes the sender restart; chunks that were granted
 * before are not granted again. */
static void tell(struct receiver *r, uint64_t sender, uint32_t conn)
{
	struct record go = {.op = COMMAND_MSG_SEND, .token = sender};
	go.msg = (typeof(go.msg)){.conn = conn, .length = 1, .offset = sender * MSG_SLOT_BYTES};
	command(r, &go);
}

static void event(struct receiver *r, const struct record *e)
{
	switch (e->op) {
	case EVENT_PEER_UP:
		ask(r, e->token, e->peer.conn);
		if (r->tell)
			tell(r, e->token, e->peer.conn);
		break;
	case EVENT_PEER_DOWN: /* not there yet */
		open_peer(r, e->token);
		break;
	case EVENT_BUFFER_DONE:
		r->done++;
		break;
	case EVENT_REFUSED:
		fail(reason_name(e->reason), EINVAL);
	}
}

/* All that has come; sleeps a little when there was nothing. */
static void events(struct receiver *r)
{
	struct record burst[BURST];
	unsigned n = ring_pop(&r->attach.events[0], burst, BURST);
	for (unsigned i = 0; i < n; i++)
		event(r, &burst[i]);
	if (n == 0)
		payload_sleep_until(payload_now_ns() + 1000000);
}

static uint32_t wrong_chunks(const struct receiver *r)
{
	uint8_t expected[CHUNK_BYTES_MAX];
	uint32_t wrong = 0;
	for (uint32_t sender = 0; sender < r->peers; sender++) {
		const uint8_t *object = r->attach.store + object_offset(r, sender);
		for (uint32_t chunk = 0; chunk < r->chunks; chunk++) {
			content_fill(expected, r->chunk_bytes, sender, chunk);
			wrong += memcmp(object + (uint64_t)chunk * r->chunk_bytes, expected,
					r->chunk_bytes) != 0;
		}
	}
	return wrong;
}

static void attach(struct receiver *r)
{
	int error;
	attach_init(&r->attach);
	if ((error = attach_begin(&r->attach, r->rundir)) != 0)
		fail(r->rundir, -error);
	while ((error = attach_finish(&r->attach)) == 0)
		payload_sleep_until(payload_now_ns() + 1000000);
	if (error < 0)
		fail("the dataplane does not let us in", -error);
	r->chunk_bytes = r->attach.reply.chunk_bytes;
	if (object_offset(r, r->peers) > r->attach.store_bytes)
		fail("the store is too small for --peers objects of --chunks", ENOSPC);
}

static void receive(struct receiver *r)
{
	int64_t until = payload_now_ns() + (int64_t)(r->patience_s * 1e9);
	attach(r);
	printf("{\"chunk_bytes\": %u, \"chunks\": %u, \"peers\": %u}\n", r->chunk_bytes, r->chunks,
	       r->peers);
	fflush(stdout);
	for (uint32_t sender = 0; sender < r->peers; sender++)
		open_peer(r, sender);
	while (r->done < r->peers && payload_now_ns() < until)
		events(r);
	printf("{\"taken\": %u, \"wrong\": %u}\n", r->done, wrong_chunks(r));
	attach_end(&r->attach);
}

static void usage(void)
{
	fprintf(stderr, "usage: receiver --rundir DIR --from IP [--peers N] [--chunks N] "
			"[--seconds S] [--tell]\n");
	exit(2);
}

static bool parse(int argc, char **argv, struct receiver *r)
{
	static const struct option known[] = {{"rundir", 1, NULL, 'd'},	 {"from", 1, NULL, 'f'},
					      {"peers", 1, NULL, 'n'},	 {"chunks", 1, NULL, 'k'},
					      {"seconds", 1, NULL, 's'}, {"tell", 0, NULL, 't'},
					      {NULL, 0, NULL, 0}};
	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (c) {
		case 'd':
			r->rundir = optarg;
			break;
		case 'f':
			r->from = (struct net_addr){.ip = {[10] = 0xff, [11] = 0xff},
						    .port = SENDER_PORT};
			if (inet_pton(AF_INET, optarg, r->from.ip + 12) != 1)
				return false;
			break;
		case 'n':
			r->peers = (uint32_t)argument_need("--peers", optarg, 1, PEERS_MAX);
			break;
		case 'k':
			r->chunks = (uint32_t)argument_need("--chunks", optarg, 1, UINT32_MAX);
			break;
		case 't':
			r->tell = true;
			break;
		case 's':
			r->patience_s = argument_need_real("--seconds", optarg, 1e6);
			break;
		default:
			return false;
		}
	}
	return r->rundir && r->from.port && r->patience_s > 0 && optind == argc;
}

int main(int argc, char **argv)
{
	static struct receiver r = {.peers = 1, .chunks = 16384, .patience_s = 20};
	if (!parse(argc, argv, &r))
		usage();
	receive(&r);
	return r.done == r.peers ? 0 : 1;
}
