/* SPDX-License-Identifier: BSD-3-Clause */
#include "../table.h"
#include "control_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "../check.h"

static void *world_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct net_addr world_addr(uint32_t node, uint32_t worker)
{
	struct net_addr a = {.port = (uint16_t)(UDP_PORT_DEFAULT + worker)};

	a.ip[10] = a.ip[11] = 0xff;
	a.ip[12] = 10;
	a.ip[15] = (uint8_t)(node + 1);
	return a;
}

/* ---- the core's ways out ------------------------------------------------------------------- */

static bool world_ops_send(void *arg, uint32_t conn, const struct message *m)
{
	struct world_node *n = arg;

	return n->engine[0] && mailbox_send(&n->mailbox, conn, m);
}

static bool world_ops_reply(void *arg, uint32_t session, const struct session_reply *r,
			    const void *tail, uint32_t tail_bytes)
{
	struct world_node *n = arg;
	struct world_reply *out = &n->replies[n->replies_count];

	CHECK(n->replies_count < WORLD_REPLIES_MAX);
	n->replies_count++;
	*out = (struct world_reply){.session = session, .reply = *r, .tail_bytes = tail_bytes};
	if (tail_bytes == sizeof(out->object))
		memcpy(&out->object, tail, tail_bytes);
	if (tail_bytes == sizeof(out->node))
		memcpy(&out->node, tail, tail_bytes);
	if (tail_bytes == sizeof(out->sources))
		memcpy(&out->sources, tail, tail_bytes);
	if (n->slow > 1)
		n->slow--;
	return n->slow != 1;
}

static void world_ops_log(void *arg, enum control_log_level level, const char *text)
{
	const struct world_node *n = arg;

	if (getenv("WORLD_LOG"))
		fprintf(stderr, "%8.3f ms node %u: %s\n", (double)n->world->now_ns / 1e6, n->number,
			text);
}

static bool world_ops_old_clients(void *arg)
{
	const struct world_node *n = arg;

	return n->world->old_clients;
}

static int world_ops_spill_write(void *arg, const struct control_spill *file, uint64_t offset)
{
	struct world_node *n = arg;

	return disk_write(&n->disk, file, offset);
}

static int world_ops_spill_read(void *arg, const struct control_spill *file, uint64_t offset)
{
	struct world_node *n = arg;

	return disk_read(&n->disk, file, offset);
}

static void world_ops_spill_remove(void *arg, const struct control_spill *file)
{
	struct world_node *n = arg;

	disk_remove(&n->disk, file);
}

static int world_ops_spill_find(void *arg, const struct control_spill *file)
{
	const struct world_node *n = arg;

	return disk_find(&n->disk, file);
}

static bool world_ops_lives(void *arg, uint32_t process, uint64_t birth)
{
	const struct world_node *n = arg;

	return n->world->clients_live;
}

static int world_ops_memory(void *arg, uint32_t slot, uint64_t bytes, bool brought)
{
	struct world_node *n = arg;
	struct world *w = n->world;
	struct world_memory *m = brought ? n->brought : &w->memory[w->memories];

	CHECK(n->staged[slot] == NULL && slot < WORLD_TABLE_SLOTS);
	if (n->staging_error)
		return n->staging_error;
	if (!brought) {
		CHECK(w->memories++ < WORLD_MEMORIES);
		*m = (struct world_memory){world_memory(bytes + 1), bytes};
	} else if (m == NULL || m->size != bytes) {
		return -EINVAL;
	}
	n->staged[slot] = m;
	return 0;
}

static int world_ops_memory_read(void *arg, uint32_t slot, uint64_t at, void *to, uint64_t bytes)
{
	const struct world_node *n = arg;
	const struct world_memory *m = n->staged[slot];

	CHECK(m && at <= m->size && bytes <= m->size - at);
	if (n->staging_error)
		return n->staging_error;
	memcpy(to, m->bytes + at, bytes);
	return 0;
}

static void world_ops_memory_drop(void *arg, uint32_t slot)
{
	struct world_node *n = arg;

	CHECK(n->staged[slot]);
	n->staged[slot] = NULL;
}

/* ---- processes ------------------------------------------------------------------------------ */

static void world_attach(struct world_node *n, bool adopted)
{
	struct world *w = n->world;
	struct control_attach a = {
		.store = n->store, .table = n->table, .private = table_private(n->table)};

	mailbox_init(&n->mailbox, n->mailbox_memory, w->arena, n->msg_tx, WORLD_MSG_SLOTS,
		     n->msg_rx, WORLD_MSG_SLOTS);
	a.reply.workers = n->workers;
	a.reply.adopted = adopted;
	a.reply.store_bytes = w->store_bytes;
	a.reply.incarnation = n->incarnation;
	a.reply.addr = world_addr(n->number, 0);
	a.reply.mtu = 1500;
	a.reply.chunk_bytes = engine_chunk_bytes(1500, true);
	CHECK(control_attach(n->core, &a, w->now_ns) == 0);
}

static void world_make_engines(struct world_node *n)
{
	struct world *w = n->world;
	struct engine_config config;

	n->incarnation++;
	for (uint32_t i = 0; i < n->workers; i++) {
		engine_config_default(&config);
		config.incarnation = n->incarnation;
		config.addr = world_addr(n->number, i);
		config.workers = (uint16_t)n->workers;
		config.conns_max = 32;
		config.window_pkts = 256;
		config.buffers_max = w->config.stages_max;
		config.edges_max = w->config.edges_max;
		config.msgs_max = WORLD_MSG_SLOTS;
		config.block_bytes = 64 * 1024;
		config.store = n->store;
		config.store_bytes = w->store_bytes;
		config.table = n->table;
		config.msg_tx = n->msg_tx;
		config.msg_tx_bytes = (uint64_t)WORLD_MSG_SLOTS * MSG_SLOT_BYTES;
		config.msg_rx = n->msg_rx;
		config.msg_rx_slots = i == 0 ? WORLD_MSG_SLOTS : 0;
		config.counters = &n->counters[i];
		n->engine_bytes = engine_bytes(&config);
		n->engine_memory[i] = world_memory(n->engine_bytes);
		n->engine[i] = engine_init(n->engine_memory[i], &config, w->now_ns);
		CHECK(n->engine[i]);
	}
}

static void world_drop_engines(struct world_node *n)
{
	for (uint32_t i = 0; i < n->workers; i++) {
		if (n->engine[i])
			munmap(n->engine_memory[i], n->engine_bytes);
		n->engine[i] = NULL;
	}
}

void world_kill_engine(struct world *w, uint32_t node)
{
	world_drop_engines(&w->node[node]);
	if (w->node[node].core)
		control_detach(w->node[node].core, w->now_ns);
}

void world_start_engine(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];

	world_make_engines(n);
	if (n->core)
		world_attach(n, true);
}

void world_change_workers(struct world *w, uint32_t node, uint32_t workers)
{
	world_kill_engine(w, node);
	w->node[node].workers = workers;
	world_start_engine(w, node);
}

void world_kill_control(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];

	disk_killed(&n->disk);
	munmap(n->core_memory, n->core_bytes);
	n->core = NULL;
	memset(n->pins, 0, sizeof(n->pins));
	memset(n->staged, 0, sizeof(n->staged));
}

void world_start_control(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];
	const struct control_ops ops = {n,
					world_ops_send,
					world_ops_reply,
					world_ops_log,
					world_ops_old_clients,
					world_ops_memory,
					world_ops_memory_read,
					world_ops_memory_drop,
					world_ops_spill_write,
					world_ops_spill_read,
					world_ops_spill_remove,
					world_ops_spill_find,
					world_ops_lives};
	struct net_addr addrs[WORLD_NODES_MAX];
	struct control_config config = w->config;

	for (uint32_t i = 0; i < w->nodes; i++)
		addrs[i] = world_addr(i, 0);
	config.node = node;
	config.addrs = addrs;
	config.leases = n->leases;
	config.shard_nodes = w->shard_nodes;
	config.incarnation = w->now_ns + ++w->lives; /* as a clock would give it */
	config.seed = ++w->prng * UINT64_C(0x9e3779b97f4a7c15);
	n->core_bytes = control_bytes(&config);
	n->core_memory = world_memory(n->core_bytes);
	n->core = control_init(n->core_memory, &config, &ops, w->now_ns);
	CHECK(n->core);
	if (n->engine[0]) { /* a dataplane resets for each control */
		world_drop_engines(n);
		world_make_engines(n);
		world_attach(n, false);
	}
}

static void world_make_table(struct world_node *n)
{
	struct object_table *t = n->table;

	memset(t, 0, table_bytes(WORLD_TABLE_SLOTS));
	table_begin(t, WORLD_TABLE_SLOTS, n->world->store_bytes, ++n->incarnation);
}

void world_lose_store(struct world *w, uint32_t node)
{
	world_make_table(&w->node[node]);
	memset(w->node[node].store, 0xdb, w->store_bytes);
}

void world_kill_node(struct world *w, uint32_t node)
{
	world_kill_control(w, node);
	world_kill_engine(w, node);
	world_lose_store(w, node);
	memset(w->node[node].leases, 0, sizeof(*w->node[node].leases));
}

void world_replace_store(struct world *w, uint32_t node)
{
	struct world_node *n = &w->node[node];

	world_kill_engine(w, node);
	for (uint32_t s = 0; s < WORLD_SESSIONS; s++)
		control_session_close(n->core, s, w->now_ns);
	world_lose_store(w, node);
	world_make_engines(n);
	world_attach(n, false);
}

static void world_config(struct world *w, bool all_shards)
{
	control_config_default(&w->config);
	w->config.nodes = w->nodes;
	w->config.shards = all_shards ? w->nodes : 1;
	for (uint32_t i = 0; i < w->nodes; i++)
		w->shard_nodes[i] = i;
	w->config.addrs = (const struct net_addr *)w; /* not looked at for the size */
	w->config.shard_nodes = w->shard_nodes;
	w->config.table_slots = WORLD_TABLE_SLOTS;
	w->config.sessions_max = WORLD_SESSIONS;
	w->config.sessions_user_max = WORLD_SESSIONS - 1;
	w->config.waits_max = 64;
	w->config.creations_max = 6;
	w->config.creations_user_max = 4;
	w->config.calls_max = 256;
	w->config.loopback_max = 32;
	w->config.links_max = 64;
	w->config.conns_max = 64;
	w->config.stages_max = 32;
	w->config.edges_max = 32;
	w->config.fetches_max = 16;
	w->config.serves_max = 16;
	w->config.entries_max = 512;
	w->config.copies_max = 512;
	w->config.waiters_max = 256;
	w->config.tombstones = 64;
	w->config.inline_bytes = 1 << 20;
	w->config.forget_ns = 5 * WORLD_SECOND;
}

struct world *world_new(uint32_t nodes, uint32_t workers, uint64_t store_bytes, bool all_shards)
{
	struct world *w = calloc(1, sizeof(*w));

	CHECK(w && nodes <= WORLD_NODES_MAX && workers <= WORLD_WORKERS_MAX);
	w->nodes = nodes;
	w->store_bytes = store_bytes;
	w->now_ns = WORLD_SECOND;
	w->delay_ns = 50000;
	w->packets = world_memory(sizeof(*w->packets) * WORLD_INFLIGHT);
	w->arena = world_memory(MAILBOX_ARENA_BYTES);
	world_config(w, all_shards);
	for (uint32_t i = 0; i < nodes; i++) {
		struct world_node *n = &w->node[i];

		n->world = w;
		n->number = i;
		n->workers = workers;
		n->incarnation = 1000;
		n->store = world_memory(store_bytes);
		madvise(n->store, store_bytes, MADV_HUGEPAGE); /* to be touched is quicker so */
		n->disk.store = n->store;
		n->leases = world_memory(sizeof(*n->leases));
		n->table = world_memory(table_bytes(WORLD_TABLE_SLOTS));
		n->msg_tx = world_memory((size_t)WORLD_MSG_SLOTS * MSG_SLOT_BYTES);
		n->msg_rx = world_memory((size_t)WORLD_MSG_SLOTS * MSG_SLOT_BYTES);
		n->mailbox_memory = world_memory(mailbox_bytes(WORLD_MSG_SLOTS, WORLD_MSG_SLOTS));
		n->replies = world_memory(sizeof(*n->replies) * WORLD_REPLIES_MAX);
		world_make_table(n);
		world_make_engines(n);
		world_start_control(w, i);
	}
	return w;
}

void world_keep_all(struct world *w)
{
	for (uint32_t i = 0; i < w->nodes; i++)
		world_kill_control(w, i);
	w->config.shards = 0;
	for (uint32_t i = 0; i < w->nodes; i++)
		world_start_control(w, i);
	world_run(w, 3 * WORLD_SECOND);
	for (uint32_t i = 0; i < w->nodes; i++)
		CHECK(world_open(w, i) == 0);
}

void world_free(struct world *w)
{
	size_t area = (size_t)WORLD_MSG_SLOTS * MSG_SLOT_BYTES;

	for (uint32_t i = 0; i < w->nodes; i++) {
		struct world_node *n = &w->node[i];

		world_drop_engines(n);
		if (n->core)
			world_kill_control(w, i);
		munmap(n->store, w->store_bytes);
		munmap(n->table, table_bytes(WORLD_TABLE_SLOTS));
		disk_end(&n->disk);
		munmap(n->leases, sizeof(*n->leases));
		munmap(n->msg_tx, area);
		munmap(n->msg_rx, area);
		munmap(n->mailbox_memory, mailbox_bytes(WORLD_MSG_SLOTS, WORLD_MSG_SLOTS));
		munmap(n->replies, sizeof(*n->replies) * WORLD_REPLIES_MAX);
	}
	for (uint32_t i = 0; i < w->memories; i++)
		munmap(w->memory[i].bytes, w->memory[i].size + 1);
	munmap(w->packets, sizeof(*w->packets) * WORLD_INFLIGHT);
	munmap(w->arena, MAILBOX_ARENA_BYTES);
	free(w);
}

/* ---- one turn ------------------------------------------------------------------------------- */

static bool world_events(struct world_node *n, uint32_t worker)
{
	struct record burst[32];
	unsigned count = engine_events(n->engine[worker], burst, 32);
	uint64_t now_ns = n->world->now_ns;
	struct message m;

	for (unsigned i = 0; i < count && n->core; i++) {
		const struct record *r = &burst[i];

		if (getenv("WORLD_LOG") && (r->op == EVENT_PEER_UP || r->op == EVENT_PEER_DOWN))
			fprintf(stderr, "%8.3f ms node %u: peer %u %s (%s)\n", (double)now_ns / 1e6,
				n->number, r->peer.addr.ip[15] - 1u,
				r->op == EVENT_PEER_UP ? "up" : "down", reason_name(r->reason));
		if (r->op != EVENT_MSG && r->op != EVENT_MSG_SENT)
			control_event(n->core, worker, r, now_ns);
		else if (mailbox_event(&n->mailbox, r, &m))
			control_message(n->core, r->msg.conn, &m, now_ns);
	}
	return count > 0;
}

static bool world_commands(struct world_node *n, uint32_t worker)
{
	bool some = false;
	struct record r;

	while (n->core && (control_commands(n->core, worker, &r, 1) == 1 ||
			   (worker == 0 && mailbox_commands(&n->mailbox, &r, 1) == 1))) {
		if (getenv("WORLD_LOG") && r.op == COMMAND_PEER_OPEN)
			fprintf(stderr, "%8.3f ms node %u: open %u\n",
				(double)n->world->now_ns / 1e6, n->number, r.peer.addr.ip[15] - 1u);
		CHECK(engine_command(n->engine[worker], &r, n->world->now_ns));
		world_events(n, worker);
		some = true;
	}
	return some;
}

static uint64_t world_random(struct world *w)
{
	w->prng ^= w->prng << 13;
	w->prng ^= w->prng >> 7;
	w->prng ^= w->prng << 17;
	return w->prng;
}

static bool world_transmit(struct world_node *n, uint32_t worker)
{
	struct world *w = n->world;
	bool some = false;
	uint8_t head[1500];

	for (;;) {
		struct packet_out out = {.head = head, .head_room = sizeof(head)};
		struct world_packet *p;

		if (engine_transmit(n->engine[worker], &out, 1, w->now_ns) == 0)
			return some;
		some = true;
		packet_out_seal(&out);
		if (w->cut[n->number] || w->cut_worker[worker] ||
		    world_random(w) % 1000 < w->loss_permille || w->count == WORLD_INFLIGHT)
			continue;
		p = &w->packets[(w->head + w->count++) % WORLD_INFLIGHT];
		p->at_ns = w->now_ns + w->delay_ns;
		p->from = world_addr(n->number, worker);
		p->to = out.to;
		p->length = (uint16_t)(out.head_length + out.payload_length);
		CHECK(p->length <= sizeof(p->bytes));
		memcpy(p->bytes, out.head, out.head_length);
		if (out.payload_length)
			memcpy(p->bytes + out.head_length, out.payload, out.payload_length);
	}
}

static bool world_is_of(const struct world *w, const struct net_addr *addr, uint32_t node)
{
	for (uint32_t k = 0; k < w->node[node].workers; k++) {
		struct net_addr a = world_addr(node, k);

		if (net_addr_equal(&a, addr))
			return true;
	}
	return false;
}

static bool world_staging(const struct world *w, const struct world_packet *p)
{
	for (int i = 0; i < 2 && w->separated[0] != w->separated[1]; i++)
		if (world_is_of(w, &p->from, w->separated[i]) &&
		    world_is_of(w, &p->to, w->separated[!i]))
			return true;
	return false;
}

static void world_deliver(struct world *w, const struct world_packet *p)
{
	if (world_staging(w, p))
		return;
	for (uint32_t i = 0; i < w->nodes; i++)
		for (uint32_t k = 0; k < w->node[i].workers; k++) {
			struct net_addr a = world_addr(i, k);
			struct packet_in in = {.data = p->bytes, .length = p->length};

			in.from = p->from;
			if (net_addr_equal(&a, &p->to) && w->node[i].engine[k] && !w->cut[i] &&
			    !w->frozen[i])
				engine_receive(w->node[i].engine[k], &in, w->now_ns);
		}
}

/* Everything that can happen now. */
static void world_settle(struct world *w)
{
	bool some = true;

	while (w->count > 0 && w->packets[w->head].at_ns <= w->now_ns) {
		world_deliver(w, &w->packets[w->head]);
		w->head = (w->head + 1) % WORLD_INFLIGHT;
		w->count--;
	}
	while (some) {
		some = false;
		for (uint32_t i = 0; i < w->nodes; i++) {
			struct world_node *n = &w->node[i];

			if (w->frozen[i])
				continue;
			if (n->core && !w->stalled[i] && control_next_timeout(n->core) <= w->now_ns)
				control_tick(n->core, w->now_ns);
			if (n->core && !w->stalled[i] && !w->hold_copies)
				some |= control_copy(n->core, w->now_ns);
			if (n->core && !w->stalled[i])
				some |= disk_step(&n->disk, n->core, w->now_ns);
			for (uint32_t k = 0; k < n->workers && n->engine[k]; k++) {
				if (engine_next_timeout(n->engine[k]) <= w->now_ns)
					engine_tick(n->engine[k], w->now_ns);
				some |= !w->stalled[i] && world_events(n, k);
				some |= !w->stalled[i] && world_commands(n, k);
				some |= world_transmit(n, k);
			}
		}
	}
}

static uint64_t world_next(const struct world *w)
{
	uint64_t next = w->count > 0 ? w->packets[w->head].at_ns : UINT64_MAX;

	for (uint32_t i = 0; i < w->nodes; i++) {
		const struct world_node *n = &w->node[i];
		uint64_t at =
			n->core && !w->stalled[i] ? control_next_timeout(n->core) : UINT64_MAX;

		if (w->frozen[i])
			continue;
		next = at < next ? at : next;
		for (uint32_t k = 0; k < n->workers && n->engine[k]; k++) {
			at = engine_next_timeout(n->engine[k]);
			next = at < next ? at : next;
		}
	}
	return next <= w->now_ns ? w->now_ns + 1000 : next;
}

bool world_until(struct world *w, bool (*done)(struct world *w, void *arg), void *arg,
		 uint64_t for_ns)
{
	uint64_t end = w->now_ns + for_ns;

	for (;;) {
		world_settle(w);
		if (done && done(w, arg))
			return true;
		if (world_next(w) > end)
			break;
		w->now_ns = world_next(w);
	}
	w->now_ns = end;
	return false;
}

void world_run(struct world *w, uint64_t for_ns)
{
	world_until(w, NULL, NULL, for_ns);
}
