/* SPDX-License-Identifier: BSD-3-Clause */
#include "../table.h"
#include "control_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "../check.h"

static struct rig rig;
static void *rig_core;
static size_t rig_core_bytes;
static uint8_t rig_scratch[CODEC_SCRATCH_BYTES] __attribute__((aligned(64)));

/* What the core says can be said. */
static bool rig_send(void *arg, uint32_t conn, const struct message *m)
{
	static uint8_t bytes[MSG_BYTES_MAX];
	struct message back;
	struct rig *r = arg;
	size_t length = codec_encode(m, rig_scratch, bytes, sizeof(bytes));
	uint8_t *arena = malloc(CODEC_ARENA_BYTES);

	CHECK(length > 0 && arena);
	CHECK(codec_decode(bytes, length, arena, &back) == 0);
	CHECK(back.kind == m->kind && back.request == m->request);
	free(arena);
	r->sent[r->sent_count++ % 16] = m->request;
	return true;
}

static bool rig_reply(void *arg, uint32_t session, const struct session_reply *reply,
		      const void *tail, uint32_t tail_bytes)
{
	struct rig *r = arg;

	CHECK(session < RIG_SESSIONS && r->open[session]);
	CHECK(reply->magic == SESSION_MAGIC && reply->status <= 0);
	CHECK(tail_bytes == 0 || tail_bytes == sizeof(struct session_object) ||
	      tail_bytes == sizeof(struct session_node) ||
	      tail_bytes == sizeof(struct session_sources) ||
	      tail_bytes == sizeof(struct group_answer));
	CHECK(memchr(reply->text, 0, sizeof(reply->text)));
	r->last = *reply;
	return true;
}

static void rig_config(struct control_config *config)
{
	static struct net_addr addrs[RIG_NODES];
	static const uint32_t shards[2] = {0, 1};

	for (unsigned i = 0; i < RIG_NODES; i++) {
		addrs[i] = (struct net_addr){.port = UDP_PORT_DEFAULT};
		addrs[i].ip[15] = (uint8_t)(i + 1);
	}
	control_config_default(config);
	config->nodes = RIG_NODES;
	config->addrs = addrs;
	config->shards = 2;
	config->shard_nodes = shards;
	config->seed = 1;
	config->table_slots = RIG_TABLE_SLOTS;
	config->sessions_max = RIG_SESSIONS;
	config->creations_max = 4;
	config->creations_user_max = 3;
	config->waits_max = config->calls_max = config->fetches_max = config->serves_max = 8;
	config->loopback_max = 8;
	config->links_max = config->conns_max = 8;
	config->stages_max = config->edges_max = 8;
	config->entries_max = config->copies_max = config->waiters_max = 12;
	config->tombstones = 8;
	config->requesters_max = config->reduces_max = config->participants_max = 6;
	config->reduce_sources_max = 24;
	config->parts_max = 16;
	config->reduce_value_bytes = 1 << 17;
	config->inline_bytes = 1 << 17;
}

static void rig_table(struct rig *r)
{
	struct object_table *t = r->table;

	memset(t, 0, table_bytes(RIG_TABLE_SLOTS));
	table_begin(t, RIG_TABLE_SLOTS, RIG_STORE_BYTES, 5);
}

static void rig_attach(struct rig *r)
{
	struct control_attach a = {
		.store = r->store, .table = r->table, .private = table_private(r->table)};

	a.reply.workers = 1;
	a.reply.store_bytes = RIG_STORE_BYTES;
	a.reply.incarnation = 9;
	a.reply.mtu = 1500;
	a.reply.chunk_bytes = 1408;
	CHECK(control_attach(r->core, &a, r->now_ns) == 0);
}

uint32_t rig_conn(uint32_t node)
{
	return handle_make((uint16_t)node, 1);
}

static void rig_up(struct rig *r, uint32_t node)
{
	struct record up = {.op = EVENT_PEER_UP};

	up.peer.addr.port = UDP_PORT_DEFAULT;
	up.peer.addr.ip[15] = (uint8_t)(node + 1);
	up.peer.incarnation = 100 + node;
	up.peer.conn = rig_conn(node);
	up.peer.mtu = 1500;
	up.peer.workers = 1;
	control_event(r->core, 0, &up, r->now_ns);
}

void rig_hello(struct rig *r, uint32_t node)
{
	struct message m = {.kind = MESSAGE_HELLO};

	m.hello.node = node;
	m.hello.version = MESSAGE_VERSION;
	m.hello.workers = 1;
	m.hello.store_incarnation = 100 + node;
	m.hello.incarnation = 200 + node;
	m.hello.assigned = MESSAGE_NODE_NONE;
	control_message(r->core, rig_conn(node), &m, r->now_ns);
}

void rig_say(struct rig *r, uint32_t node, const struct message *m)
{
	static uint8_t bytes[MSG_BYTES_MAX], arena[CODEC_ARENA_BYTES] __attribute__((aligned(64)));
	struct message back;
	size_t length = codec_encode(m, rig_scratch, bytes, sizeof(bytes));

	if (length > 0 && codec_decode(bytes, length, arena, &back) == 0)
		control_message(r->core, rig_conn(node), &back, r->now_ns);
}

static bool rig_old_clients(void *arg)
{
	const struct rig *r = arg;

	return r->old_clients;
}

/* Some cannot be had, and some were not brought. */
static int rig_memory(void *arg, uint32_t slot, uint64_t bytes, bool brought)
{
	struct rig *r = arg;

	CHECK(slot < RIG_TABLE_SLOTS && !r->memory[slot] && bytes <= RIG_STORE_BYTES);
	if (slot % 4 == 3 || (brought && bytes % 2))
		return -ENOMEM;
	r->memory[slot] = true;
	return 0;
}

static int rig_memory_read(void *arg, uint32_t slot, uint64_t at, void *to, uint64_t bytes)
{
	const struct rig *r = arg;
	uint64_t offset = (uint64_t)((uint8_t *)to - r->store);

	CHECK(slot < RIG_TABLE_SLOTS && r->memory[slot]);
	CHECK(offset < RIG_STORE_BYTES && bytes <= RIG_STORE_BYTES - offset);
	memset(to, (int)at, bytes);
	return bytes % 16 == 15 ? -EIO : 0;
}

static void rig_memory_drop(void *arg, uint32_t slot)
{
	struct rig *r = arg;

	CHECK(slot < RIG_TABLE_SLOTS && r->memory[slot]);
	r->memory[slot] = false;
}

static void rig_start(struct rig *r)
{
	const struct control_ops ops = {r,
					rig_send,
					rig_reply,
					NULL,
					rig_old_clients,
					rig_memory,
					rig_memory_read,
					rig_memory_drop,
					NULL,
					NULL,
					NULL,
					NULL,
					NULL};
	struct control_config config;

	rig_config(&config);
	CHECK(madvise(rig_core, rig_core_bytes, MADV_DONTNEED) == 0);
	r->core = control_init(rig_core, &config, &ops, r->now_ns);
	CHECK(r->core);
	rig_attach(r);
	rig_turn(r, 0);
	for (uint32_t node = 1; node < RIG_NODES; node++) {
		rig_up(r, node);
		rig_hello(r, node);
	}
}

void rig_restart(struct rig *r)
{
	for (uint32_t s = 0; s < RIG_SESSIONS; s++) {
		r->left[s] |= r->open[s];
		r->old_clients |= r->open[s];
		r->open[s] = false;
	}
	memset(r->memory, 0, sizeof(r->memory));
	rig_start(r);
}

struct rig *rig_begin(void)
{
	struct control_config config;
	struct rig *r = &rig;
	void *store = rig.store, *table = rig.table;

	rig_config(&config);
	if (!rig_core) {
		rig_core_bytes = control_bytes(&config);
		rig_core = mmap(NULL, rig_core_bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		store = aligned_alloc(4096, RIG_STORE_BYTES);
		table = aligned_alloc(64, (table_bytes(RIG_TABLE_SLOTS) + 63) / 64 * 64);
		CHECK(rig_core != MAP_FAILED && store && table);
	}
	memset(r, 0, sizeof(*r));
	r->store = store;
	r->table = table;
	r->now_ns = 1000000000;
	rig_table(r);
	rig_start(r);
	return r;
}

void rig_open(struct rig *r, uint32_t session)
{
	struct session_request attach = {
		.magic = SESSION_MAGIC, .op = SESSION_ATTACH, .version = SESSION_VERSION};
	int got;

	attach.pin = SESSION_PIN_NONE;
	if (r->open[session])
		return;
	if (!r->left[session])
		memset(r->pins[session], 0, sizeof(r->pins[session]));
	got = control_session_open(r->core, r->pins[session], r->now_ns);
	CHECK(got >= 0 && got < RIG_SESSIONS && !r->open[got]);
	r->open[got] = true;
	r->left[session] = false; /* its number may be another's: pins are only words */
	control_session_client(r->core, (uint32_t)got,
			       &(struct control_client){.process = 1 + session % 2,
							.user = session % 2,
							.staged = session % 3 == 1});
	control_session_request(r->core, (uint32_t)got, &attach, sizeof(attach), r->now_ns);
	CHECK(r->last.status == 0);
}

void rig_close(struct rig *r, uint32_t session)
{
	if (r->open[session])
		control_session_close(r->core, session, r->now_ns);
	r->open[session] = false;
}

/* As a worker would: what is dropped is gone at once. */
static void rig_obey(struct rig *r, const struct record *command)
{
	struct record event = {.op = EVENT_DROPPED, .token = command->token};

	event.epoch = command->epoch;
	if (command->op == COMMAND_DROP_BUFFER) {
		event.flags = RECORD_FLAG_BUFFER;
		event.progress.buffer = command->progress.buffer;
	} else if (command->op == COMMAND_DROP_EDGE) {
		event.flags = command->flags;
		event.edge.edge = command->edge.edge;
		event.edge.buffer = command->edge.buffer;
	} else {
		return;
	}
	control_event(r->core, 0, &event, r->now_ns);
}

void rig_turn(struct rig *r, uint64_t ns)
{
	struct record command;

	r->now_ns += ns;
	for (int i = 0; i < 64 && control_next_timeout(r->core) <= r->now_ns; i++)
		control_tick(r->core, r->now_ns);
	control_copy(r->core, r->now_ns);
	for (int i = 0; i < 1024 && control_commands(r->core, 0, &command, 1) == 1; i++)
		rig_obey(r, &command);
}

void rig_end(struct rig *r)
{
	struct control_usage u;

	for (uint32_t s = 0; s < RIG_SESSIONS; s++)
		rig_close(r, s);
	for (uint32_t i = 0; i < RIG_TABLE_SLOTS; i++)
		CHECK(!r->memory[i]);
	r->old_clients = false;
	for (int i = 0; i < 4; i++)
		rig_turn(r, 60000000000);
	control_detach(r->core, r->now_ns);
	for (int i = 0; i < 4; i++)
		rig_turn(r, 60000000000);
	control_usage(r->core, &u);
	CHECK(u.stages == 0 && u.edges == 0 && u.serves == 0 && u.waits == 0);
	CHECK(u.zombies == 0 && u.links_up == 0);
	CHECK(u.fetches != 0 || u.scratch_bytes == 0);
	CHECK(u.objects != 0 || u.store_bytes == 0);
}

uint64_t rig_take(struct rig_input *in, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes && in->left > 0; i++, in->left--)
		v |= (uint64_t)*in->bytes++ << (8 * i);
	return v;
}
