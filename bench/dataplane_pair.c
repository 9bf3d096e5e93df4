/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane.h"
#include "internal/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include "io/ether.h"
#include "io/worker.h"

enum { SENDER, RECEIVER, ENDS, QUEUE_PACKETS = 1024, EVENTS = 32, OBJECTS_MAX = 4096 };

struct end {
	struct port port;
	struct worker worker;
	struct session session;
	struct engine_config config;
	struct counters counters;
	uint64_t stages[IO_STAGES];
	uint8_t *store;
	uint32_t conn;
	bool buffer_done, out_done;
	unsigned dropped;
};

struct pair {
	struct end end[ENDS];
	uint64_t object_bytes, store_bytes, bitmap_offset;
	uint64_t taken_offset, source_offset; /* of a reduce, at the receiver */
	uint64_t patience_ns;
	uint16_t chunk_bytes, generation;
	bool reduce;
};

static bool accounting;

/* The engines have the clock for good; reading it is what costs. */
static uint64_t cycles(void)
{
	return accounting ? rte_rdtsc() : 0;
}

void *pair_memory(uint64_t bytes)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	madvise(m, bytes, MADV_HUGEPAGE);
	return m;
}

static void end_address(struct end *e, unsigned i)
{
	uint8_t ip[4] = {10, 0, 0, (uint8_t)(i + 1)};
	ether_map_v4(e->port.addr.ip, ip);
	e->port.addr.port = UDP_PORT_DEFAULT;
	memcpy(e->port.mac, (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
}

/* End i receives on queue i and sends on the other: the rings of the device loop each back. */
static bool end_open(struct pair *p, unsigned i, uint16_t device, uint16_t mtu)
{
	struct end *e = &p->end[i];
	char name[32];
	snprintf(name, sizeof(name), "bench%u_%u", mtu, i);
	end_address(e, i);
	e->port.mtu = mtu;
	e->port.queues = ENDS;
	e->port.workers = 1;
	e->port.neighbours = aligned_alloc(64, sizeof(*e->port.neighbours));
	struct rte_mempool *pool = pool_create(name, PORT_RING, mtu, QUEUE_PACKETS, QUEUE_PACKETS);
	if (!e->port.neighbours || !pool)
		return false;
	memset(e->port.neighbours, 0, sizeof(*e->port.neighbours));
	neighbour_init(e->port.neighbours, false);
	for (unsigned q = 0; q < ENDS; q++)
		e->port.queue[q] = (struct port_queue){
			.device = device, .queue = (uint16_t)q, .rx_fd = -1, .pool = pool};
	e->worker = (struct worker){.workers = 1,
				    .port = &e->port,
				    .in = {&e->port.queue[i]},
				    .ins = 1,
				    .out = &e->port.queue[1 - i],
				    .resolver_fd = -1,
				    .counters = &e->counters,
				    .session = &e->session};
	return true;
}

static bool end_engine(struct pair *p, unsigned i)
{
	struct end *e = &p->end[i];
	struct engine_config *c = &e->config;
	e->store = pair_memory(p->store_bytes);
	engine_config_default(c);
	c->incarnation = i + 1;
	c->addr = e->port.addr;
	c->mtu = e->port.mtu;
	c->store = e->store;
	c->store_bytes = p->store_bytes;
	c->counters = &e->counters;
	c->cycles = cycles;
	c->key[0] = (uint8_t)i;
	size_t bytes = engine_bytes(c);
	void *memory = bytes ? pair_memory(bytes) : NULL;
	if (!e->store || !memory)
		return false;
	e->session.engine = engine_init(memory, c, worker_now_ns());
	return e->session.engine != NULL;
}

static uint16_t ring_open(uint16_t mtu)
{
	static uint16_t next;
	struct rte_eth_conf conf = {0};
	uint16_t id = next++;
	if (!rte_eth_dev_is_valid_port(id) || rte_eth_dev_configure(id, ENDS, ENDS, &conf) != 0)
		return RTE_MAX_ETHPORTS;
	return id;
}

static bool ring_start(struct pair *p, uint16_t device)
{
	for (uint16_t q = 0; q < ENDS; q++)
		if (rte_eth_rx_queue_setup(device, q, QUEUE_PACKETS, 0, NULL,
					   p->end[q].port.queue[q].pool) != 0 ||
		    rte_eth_tx_queue_setup(device, q, QUEUE_PACKETS, 0, NULL) != 0)
			return false;
	return rte_eth_dev_start(device) == 0;
}

static void end_event(struct end *e, const struct record *r)
{
	switch (r->op) {
	case EVENT_PEER_UP:
		e->conn = r->peer.conn;
		break;
	case EVENT_BUFFER_DONE:
		e->buffer_done = true;
		break;
	case EVENT_OUT_DONE:
		e->out_done = true;
		break;
	case EVENT_DROPPED:
		e->dropped += r->flags == RECORD_FLAG_BUFFER;
		break;
	case EVENT_PROGRESS:
	case EVENT_IN_DONE:
		break;
	default:
		fprintf(stderr, "bench: unexpected event %u: %s\n", r->op, reason_name(r->reason));
		exit(1);
	}
}

/* A turn of the worker loop, without the rings to a control process. */
static void end_turn(struct end *e)
{
	struct record events[EVENTS];
	uint64_t now_ns = worker_now_ns();
	rx_burst(&e->worker, now_ns);
	if (now_ns >= engine_next_timeout(e->session.engine))
		engine_tick(e->session.engine, now_ns);
	tx_burst(&e->worker, now_ns);
	unsigned n = engine_events(e->session.engine, events, EVENTS);
	for (unsigned i = 0; i < n; i++)
		end_event(e, &events[i]);
}

static void pair_turn(struct pair *p)
{
	end_turn(&p->end[SENDER]);
	end_turn(&p->end[RECEIVER]);
}

static void pair_command(struct pair *p, unsigned i, struct record r)
{
	engine_command(p->end[i].session.engine, &r, worker_now_ns());
}

/* Until the link carries whole chunks: the path MTU is found in the first milliseconds. */
static bool pair_connect(struct pair *p)
{
	struct record r = {.op = COMMAND_PEER_OPEN};
	struct end *a = &p->end[SENDER], *b = &p->end[RECEIVER];
	r.peer.addr = b->port.addr;
	neighbour_learn(a->port.neighbours, b->port.addr.ip, b->port.mac, true, worker_now_ns());
	neighbour_learn(b->port.neighbours, a->port.addr.ip, a->port.mac, true, worker_now_ns());
	pair_command(p, SENDER, r);
	uint64_t end_ns = worker_now_ns() + 1000000000u;
	while (worker_now_ns() < end_ns)
		if (a->conn && b->conn)
			break;
		else
			pair_turn(p);
	end_ns = worker_now_ns() + 50000000u;
	while (worker_now_ns() < end_ns)
		pair_turn(p);
	return a->conn && b->conn;
}

/* Numbers from 1 to 2 where they are taken for f32: additions of ordinary cost. */
static void pair_fill(uint8_t *store, uint64_t bytes, uint32_t seed)
{
	uint32_t *word = (uint32_t *)(void *)store;
	for (uint64_t i = 0; i < bytes / 4; i++)
		word[i] = 0x3f800000 | ((uint32_t)(i + seed) * 0x9e3779b9u >> 9);
}

struct pair *pair_open(uint16_t mtu, uint64_t object_bytes, double patience_s)
{
	struct pair *p = calloc(1, sizeof(*p));
	uint16_t device = ring_open(mtu);
	if (!p || device == RTE_MAX_ETHPORTS) {
		fprintf(stderr, "bench: no ring device: is DPDK's net_ring driver installed?\n");
		return NULL;
	}
	p->object_bytes = object_bytes;
	p->patience_ns = (uint64_t)(patience_s * 1e9);
	p->chunk_bytes = engine_chunk_bytes(mtu, true);
	uint64_t chunks = chunk_count(object_bytes, p->chunk_bytes);
	p->bitmap_offset = (object_bytes + 4095) / 4096 * 4096;
	p->taken_offset = p->bitmap_offset + chunk_counted_bytes(chunks);
	p->source_offset = (p->taken_offset + 2 * chunk_bitmap_bytes(chunks) + 4095) / 4096 * 4096;
	p->store_bytes = p->source_offset + object_bytes;
	bool ok = end_open(p, SENDER, device, mtu) && end_open(p, RECEIVER, device, mtu) &&
		  ring_start(p, device) && end_engine(p, SENDER) && end_engine(p, RECEIVER);
	if (!ok) {
		fprintf(stderr, "bench: not enough memory for two endpoints of MTU %u\n", mtu);
		return NULL;
	}
	pair_fill(p->end[SENDER].store, object_bytes, 1);
	pair_fill(p->end[RECEIVER].store + p->source_offset, object_bytes, 7);
	if (pair_connect(p))
		return p;
	fprintf(stderr, "bench: the two endpoints do not connect\n");
	return NULL;
}

/* What the receiver holds itself goes into the buffer too, in one pass with what arrives. */
static void pair_begin_reduce(struct pair *p, uint32_t handle, uint32_t chunks)
{
	struct record b = {.op = COMMAND_BUFFER}, local = {.op = COMMAND_LOCAL};
	b.buffer.buffer = local.local.source = handle_make(2, p->generation);
	b.buffer.table_slot = TABLE_SLOT_NONE;
	b.buffer.store_offset = p->source_offset;
	b.buffer.size = b.buffer.ready_bytes = p->object_bytes;
	b.buffer.chunk_bytes = p->chunk_bytes;
	b.buffer.need = 1;
	pair_command(p, RECEIVER, b);
	local.local.edge = handle_make(2, p->generation);
	local.local.buffer = handle;
	local.local.chunks = chunks;
	local.local.bitmap_offset = p->taken_offset + chunk_bitmap_bytes(chunks);
	pair_command(p, RECEIVER, local);
}

static void pair_begin_object(struct pair *p)
{
	struct record in = {.op = COMMAND_IN}, out = {.op = COMMAND_OUT};
	struct record b = {.op = COMMAND_BUFFER};
	uint64_t chunks = chunk_count(p->object_bytes, p->chunk_bytes);
	p->generation = handle_next_generation(p->generation);
	uint32_t handle = handle_make(1, p->generation);
	memset(p->end[SENDER].store + p->bitmap_offset, 0, chunk_bitmap_bytes(chunks));
	memset(p->end[RECEIVER].store + p->bitmap_offset, 0, p->source_offset - p->bitmap_offset);
	b.buffer.buffer = handle;
	b.buffer.table_slot = TABLE_SLOT_NONE;
	b.buffer.size = p->object_bytes;
	b.buffer.chunk_bytes = p->chunk_bytes;
	b.buffer.need = 1;
	b.buffer.bitmap_offset = p->bitmap_offset;
	if (p->reduce) {
		b.buffer.reduce_op = REDUCE_SUM;
		b.buffer.dtype = REDUCE_F32;
		b.buffer.need = 2;
		in.edge.bitmap_offset = p->taken_offset;
	}
	pair_command(p, RECEIVER, b);
	b.buffer.reduce_op = b.buffer.dtype = 0;
	b.buffer.need = 1;
	b.buffer.bitmap_offset = 0;
	b.buffer.ready_bytes = p->object_bytes;
	pair_command(p, SENDER, b);
	in.edge.edge = in.edge.buffer = out.edge.edge = out.edge.buffer = out.edge.stream = handle;
	in.edge.chunks = out.edge.chunks = (uint32_t)chunks;
	in.edge.conn = p->end[RECEIVER].conn;
	out.edge.conn = p->end[SENDER].conn;
	out.edge.bitmap_offset = p->bitmap_offset;
	if (p->reduce)
		pair_begin_reduce(p, handle, (uint32_t)chunks);
	pair_command(p, RECEIVER, in);
	pair_command(p, SENDER, out);
}

static bool pair_moved(const struct pair *p)
{
	return p->end[RECEIVER].buffer_done && p->end[SENDER].out_done;
}

static bool pair_dropped(const struct pair *p)
{
	return p->end[SENDER].dropped > 0 && p->end[RECEIVER].dropped > (p->reduce ? 1u : 0u);
}

/* Turns both ends until it is done; false, and says so, when that takes longer than it may. */
static bool pair_until(struct pair *p, bool (*done)(const struct pair *p), const char *what)
{
	uint64_t end_ns = worker_now_ns() + p->patience_ns;
	while (!done(p)) {
		if (worker_now_ns() > end_ns) {
			const struct counters *c = &p->end[RECEIVER].counters;
			fprintf(stderr,
				"bench: %s for %.3f s, %llu chunks (%llu bytes) so far: give a "
				"longer --patience, or report a stalled transfer\n",
				what, (double)p->patience_ns * 1e-9,
				(unsigned long long)c->rx_chunks,
				(unsigned long long)c->rx_chunk_bytes);
			return false;
		}
		pair_turn(p);
	}
	return true;
}

static bool pair_end_object(struct pair *p)
{
	struct record r = {.op = COMMAND_DROP_BUFFER};
	r.progress.buffer = handle_make(1, p->generation);
	for (unsigned i = 0; i < ENDS; i++) {
		p->end[i].dropped = 0;
		pair_command(p, i, r);
	}
	r.progress.buffer = handle_make(2, p->generation);
	if (p->reduce)
		pair_command(p, RECEIVER, r);
	if (!pair_until(p, pair_dropped, "a buffer is not given up"))
		return false;
	p->end[RECEIVER].buffer_done = p->end[SENDER].out_done = false;
	return true;
}

static void pair_sum_stages(const struct pair *p, struct pair_result *r)
{
	memset(&r->stage, 0, sizeof(r->stage));
	for (unsigned i = 0; i < ENDS; i++) {
		const struct engine_stages *s = engine_stages(p->end[i].session.engine);
		const uint64_t *io = p->end[i].stages;
		uint64_t engine_in = s->check + s->receive + s->copy + s->ack;
		r->stage.check += s->check;
		r->stage.receive += s->receive;
		r->stage.copy_in += s->copy;
		r->stage.ack += s->ack;
		r->stage.transmit += s->transmit;
		r->stage.copy_out += io[IO_COPY];
		r->stage.seal += io[IO_SEAL];
		r->stage.driver += io[IO_RX_DRIVER] + io[IO_TX_DRIVER];
		r->stage.headers += io[IO_RX] + io[IO_TX] - io[IO_RX_DRIVER] - io[IO_TX_DRIVER] -
				    io[IO_COPY] - io[IO_SEAL] - engine_in - s->transmit;
	}
}

/* One object; what it took is added up in result. */
static bool pair_move(struct pair *p, struct pair_result *result)
{
	struct pair_result before;
	pair_sum_stages(p, &before);
	uint64_t chunks = p->end[RECEIVER].counters.rx_chunks;
	uint64_t start_ns = worker_now_ns(), start = rte_rdtsc();
	pair_begin_object(p);
	if (!pair_until(p, pair_moved, "the object does not arrive") || !pair_end_object(p))
		return false;
	*result = (struct pair_result){.cycles = rte_rdtsc() - start,
				       .seconds = (double)(worker_now_ns() - start_ns) * 1e-9,
				       .bytes = p->object_bytes,
				       .chunk_bytes = p->chunk_bytes,
				       .packets = p->end[RECEIVER].counters.rx_chunks - chunks};
	pair_sum_stages(p, result);
	uint64_t *now = (uint64_t *)&result->stage, *was = (uint64_t *)&before.stage;
	for (unsigned i = 0; i < sizeof(result->stage) / sizeof(uint64_t); i++)
		now[i] = p->end[SENDER].worker.stages ? now[i] - was[i] : 0;
	return true;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static int by_cycles(const void *a, const void *b)
{
	const struct pair_result *x = a, *y = b;
	return x->cycles < y->cycles ? -1 : x->cycles > y->cycles;
}

static bool pair_right(const struct pair *p)
{
	const float *a = (const float *)(const void *)p->end[SENDER].store;
	const uint8_t *have = p->end[RECEIVER].store;
	const float *b = (const float *)(const void *)(have + p->source_offset);
	if (!p->reduce)
		return memcmp(a, have, p->object_bytes) == 0;
	for (uint64_t i = 0; i < p->object_bytes / 4; i++)
		if (((const float *)(const void *)have)[i] != a[i] + b[i])
			return false;
	return true;
}

/* The result is that of the object in the middle: a machine that does other things now and then
 * does not change it. */
bool pair_run(struct pair *p, double seconds, bool stages, bool reduce, struct pair_result *out)
{
	p->reduce = reduce;
	static struct pair_result all[OBJECTS_MAX];
	unsigned count = 0;
	for (unsigned i = 0; i < ENDS; i++)
		p->end[i].worker.stages = stages ? p->end[i].stages : NULL;
	accounting = stages;
	uint64_t end_ns = worker_now_ns() + (uint64_t)(seconds * 1e9);
	do
		if (!pair_move(p, &all[count++]))
			return false;
	while (worker_now_ns() < end_ns && count < OBJECTS_MAX);
	qsort(all, count, sizeof(*all), by_cycles);
	*out = all[count / 2];
	if (pair_right(p))
		return true;
	fprintf(stderr, "bench: the received bytes are wrong\n");
	return false;
}

/* Bytes per second of the pass in the middle. */
double pair_memcpy(struct pair *p, double seconds)
{
	static uint64_t ns[OBJECTS_MAX];
	unsigned count = 0;
	uint64_t end_ns = worker_now_ns() + (uint64_t)(seconds * 1e9);
	do {
		uint64_t start_ns = worker_now_ns();
		for (uint64_t at = 0; at + p->chunk_bytes <= p->object_bytes; at += p->chunk_bytes)
			memcpy(p->end[RECEIVER].store + at, p->end[SENDER].store + at,
			       p->chunk_bytes);
		ns[count++] = worker_now_ns() - start_ns;
	} while (worker_now_ns() < end_ns && count < OBJECTS_MAX);
	qsort(ns, count, sizeof(*ns), by_value);
	uint64_t bytes = p->object_bytes / p->chunk_bytes * p->chunk_bytes;
	return (double)bytes / ((double)ns[count / 2] * 1e-9);
}

void pair_close(struct pair *p)
{
	uint16_t device = p->end[SENDER].port.queue[0].device;
	rte_eth_dev_stop(device);
	rte_eth_dev_close(device);
	for (unsigned i = 0; i < ENDS; i++) {
		munmap(p->end[i].store, p->store_bytes);
		free(p->end[i].port.neighbours);
	}
	free(p);
}
