/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints of the dataplane in one thread, over net_ring: objects and sums from one to the
 * other, timed by stage. dataplane.c calls it. Knows no kernel device.
 */
#include "dataplane_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include "io/net/ether.h"

enum { SENDER, RECEIVER, ENDS, QUEUE_PACKETS = 1024, OBJECTS_MAX = 4096 };

struct pair {
	struct end end[ENDS];
	struct worker worker[ENDS];
	struct port port[ENDS];
	struct object object; /* its handle changes */
	struct object second; /* the other place of PAIR_FAN and PAIR_FORWARD */
	uint64_t
		source_offset; /* of a sum, at the receiver: what is added; else the second place */
	uint64_t store_bytes, patience_ns;
	uint16_t generation;
	enum pair_work work;
};

static void pair_address(struct port *p, unsigned i)
{
	uint8_t ip[4] = {10, 0, 0, (uint8_t)(i + 1)};
	ether_map_v4(p->addr.ip, ip);
	p->addr.port = UDP_PORT_DEFAULT;
	memcpy(p->mac, (uint8_t[6]){2, 0, 0, 0, 0, (uint8_t)(i + 1)}, 6);
}

/* End i receives on queue i and sends on the other: the rings of the device loop each back. */
static bool pair_port(struct port *p, unsigned i, uint16_t device, uint16_t mtu)
{
	char name[32];
	snprintf(name, sizeof(name), "bench%u_%u", mtu, i);
	pair_address(p, i);
	p->mtu = mtu;
	p->queues = ENDS;
	p->workers = 1;
	p->neighbours = aligned_alloc(64, sizeof(*p->neighbours));
	struct rte_mempool *pool =
		pool_create(name, false, mtu, QUEUE_PACKETS, QUEUE_PACKETS, 1, SOCKET_ID_ANY);
	if (!p->neighbours || !pool)
		return false;
	memset(p->neighbours, 0, sizeof(*p->neighbours));
	neighbour_init(p->neighbours, false);
	for (unsigned q = 0; q < ENDS; q++)
		p->queue[q] = (struct port_queue){
			.device = device, .queue = (uint16_t)q, .rx_fd = -1, .pool = pool};
	return true;
}

static bool pair_end(struct pair *p, unsigned i)
{
	struct end *e = &p->end[i];
	const struct port *port = &p->port[i];
	uint8_t *store = end_memory(p->store_bytes);
	if (!store || !end_open(e, port, &p->worker[i], 0, i + 1, store, p->store_bytes))
		return false;
	e->worker->rail[0].in[0] = &port->queue[i];
	e->worker->rail[0].out = &port->queue[1 - i];
	return true;
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
					   p->port[q].queue[q].pool) != 0 ||
		    rte_eth_tx_queue_setup(device, q, QUEUE_PACKETS, 0, NULL) != 0)
			return false;
	return rte_eth_dev_start(device) == 0;
}

static void pair_turn(struct pair *p)
{
	end_turn(&p->end[SENDER]);
	end_turn(&p->end[RECEIVER]);
}

/* Until the link carries whole chunks: the path MTU is found in the first milliseconds. */
static bool pair_connect(struct pair *p)
{
	struct end *a = &p->end[SENDER], *b = &p->end[RECEIVER];
	for (unsigned i = 0; i < ENDS; i++)
		neighbour_learn(p->port[i].neighbours, p->port[1 - i].addr.ip, p->port[1 - i].mac,
				true, worker_now_ns());
	end_connect(a, &p->port[RECEIVER].addr);
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

struct pair *pair_open(uint16_t mtu, uint64_t object_bytes, double patience_s)
{
	struct pair *p = end_memory(sizeof(*p));
	uint16_t device = ring_open(mtu);
	if (!p || device == RTE_MAX_ETHPORTS) {
		fprintf(stderr, "bench: no ring device: is DPDK's net_ring driver installed?\n");
		return NULL;
	}
	struct object *o = &p->object;
	o->bytes = object_bytes;
	o->chunk_bytes = engine_chunk_bytes(mtu, true);
	p->patience_ns = (uint64_t)(patience_s * 1e9);
	uint64_t chunks = chunk_count(object_bytes, o->chunk_bytes);
	o->bitmap_offset = (object_bytes + 4095) / 4096 * 4096;
	uint64_t taken_offset = o->bitmap_offset + chunk_counted_bytes(chunks);
	p->source_offset = (taken_offset + 2 * chunk_bitmap_bytes(chunks) + 4095) / 4096 * 4096;
	p->store_bytes = p->source_offset + object_bytes + 2 * chunk_counted_bytes(chunks);
	p->second = *o;
	p->second.store_offset = p->source_offset;
	p->second.bitmap_offset = (p->source_offset + object_bytes + 7) / 8 * 8;
	bool ok = pair_port(&p->port[SENDER], SENDER, device, mtu) &&
		  pair_port(&p->port[RECEIVER], RECEIVER, device, mtu) && ring_start(p, device) &&
		  pair_end(p, SENDER) && pair_end(p, RECEIVER);
	if (!ok) {
		fprintf(stderr, "bench: not enough memory for two endpoints of MTU %u\n", mtu);
		return NULL;
	}
	end_fill(p->end[SENDER].config.store, object_bytes, 1);
	if (pair_connect(p))
		return p;
	fprintf(stderr, "bench: the two endpoints do not connect\n");
	return NULL;
}

/* The receiver's own contribution goes into the buffer too, in one pass with what arrives. */
static void pair_begin_local(struct pair *p)
{
	struct end *e = &p->end[RECEIVER];
	const struct object *o = &p->object;
	uint64_t chunks = chunk_count(o->bytes, o->chunk_bytes);
	struct record b = {.op = COMMAND_BUFFER}, local = {.op = COMMAND_LOCAL};
	b.buffer.buffer = local.local.source = handle_make(2, p->generation);
	b.buffer.table_slot = TABLE_SLOT_NONE;
	b.buffer.store_offset = p->source_offset;
	b.buffer.size = b.buffer.ready_bytes = o->bytes;
	b.buffer.chunk_bytes = o->chunk_bytes;
	b.buffer.need = 1;
	end_command(e, b);
	local.local.edge = handle_make(2, p->generation);
	local.local.buffer = o->handle;
	local.local.chunks = (uint32_t)chunks;
	local.local.bitmap_offset = o->taken_offset + chunk_bitmap_bytes(chunks);
	end_command(e, local);
}

/* Each node sends the object on from where it has it: the second OUT edge has its own bitmap. */
static void pair_send_second(struct pair *p, unsigned from)
{
	struct object o = p->second;
	o.bitmap_offset += chunk_counted_bytes(chunk_count(o.bytes, o.chunk_bytes));
	end_send_on(&p->end[from], &p->object, &o);
}

static void pair_begin_object(struct pair *p)
{
	struct object *o = &p->object;
	uint64_t chunks = chunk_count(o->bytes, o->chunk_bytes);
	bool sum = p->work == PAIR_SUM;
	p->generation = handle_next_generation(p->generation);
	o->handle = handle_make(1, p->generation);
	p->second.handle = handle_make(2, p->generation);
	o->taken_offset = sum ? o->bitmap_offset + chunk_counted_bytes(chunks) : 0;
	if (sum)
		memset(p->end[RECEIVER].config.store + o->taken_offset, 0,
		       2 * chunk_bitmap_bytes(chunks));
	if (p->work == PAIR_FAN)
		end_take(&p->end[RECEIVER], &p->second);
	if (p->work == PAIR_FORWARD)
		end_take(&p->end[SENDER], &p->second);
	end_take(&p->end[RECEIVER], o);
	if (sum)
		pair_begin_local(p);
	if (p->work == PAIR_FORWARD)
		pair_send_second(p, RECEIVER);
	end_send(&p->end[SENDER], o);
	if (p->work == PAIR_FAN)
		pair_send_second(p, SENDER);
}

/* Buffers that one end has, and those of them that are filled by the other; edges that it sends. */
static unsigned pair_buffers(const struct pair *p, unsigned end)
{
	static const unsigned buffers[][ENDS] = {[PAIR_COPY] = {1, 1},
						 [PAIR_SUM] = {1, 2},
						 [PAIR_FAN] = {1, 2},
						 [PAIR_FORWARD] = {2, 1}};
	return buffers[p->work][end];
}

static bool pair_moved(const struct pair *p)
{
	static const struct {
		unsigned done[ENDS], out[ENDS];
	} all[] = {[PAIR_COPY] = {{0, 1}, {1, 0}},
		   [PAIR_SUM] = {{0, 1}, {1, 0}},
		   [PAIR_FAN] = {{0, 2}, {2, 0}},
		   [PAIR_FORWARD] = {{1, 1}, {1, 1}}};
	for (unsigned i = 0; i < ENDS; i++)
		if (p->end[i].buffers_done < all[p->work].done[i] ||
		    p->end[i].outs_done < all[p->work].out[i])
			return false;
	return true;
}

static bool pair_dropped(const struct pair *p)
{
	return p->end[SENDER].dropped == pair_buffers(p, SENDER) &&
	       p->end[RECEIVER].dropped == pair_buffers(p, RECEIVER);
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
	for (unsigned i = 0; i < ENDS; i++) {
		p->end[i].dropped = 0;
		end_drop(&p->end[i], p->object.handle);
		if (pair_buffers(p, i) > 1)
			end_drop(&p->end[i], p->second.handle);
	}
	if (!pair_until(p, pair_dropped, "a buffer is not given up"))
		return false;
	for (unsigned i = 0; i < ENDS; i++)
		p->end[i].buffers_done = p->end[i].outs_done = 0;
	return true;
}

static struct stage_cycles pair_stages(const struct pair *p)
{
	struct stage_cycles both = {0};
	for (unsigned i = 0; i < ENDS; i++)
		end_stages(&p->end[i], &both);
	return both;
}

static uint64_t pair_chunks(const struct pair *p)
{
	return p->end[SENDER].counters.rx_chunks + p->end[RECEIVER].counters.rx_chunks;
}

static unsigned pair_copies(const struct pair *p)
{
	return p->work == PAIR_FAN || p->work == PAIR_FORWARD ? 2 : 1;
}

/* One object; what it took goes to result. */
static bool pair_move(struct pair *p, struct pair_result *result)
{
	struct stage_cycles before = pair_stages(p), after;
	uint64_t chunks = pair_chunks(p);
	uint64_t start_ns = worker_now_ns(), start = rte_rdtsc();
	pair_begin_object(p);
	if (!pair_until(p, pair_moved, "the object does not arrive") || !pair_end_object(p))
		return false;
	*result = (struct pair_result){.cycles = rte_rdtsc() - start,
				       .seconds = (double)(worker_now_ns() - start_ns) * 1e-9,
				       .bytes = pair_copies(p) * p->object.bytes,
				       .chunk_bytes = p->object.chunk_bytes,
				       .packets = pair_chunks(p) - chunks};
	after = pair_stages(p);
	stages_add(&result->stage, &after, &before);
	return true;
}

static int by_cycles(const void *a, const void *b)
{
	const struct pair_result *x = a, *y = b;
	return x->cycles < y->cycles ? -1 : x->cycles > y->cycles;
}

static bool pair_right(const struct pair *p)
{
	const float *a = (const float *)(const void *)p->end[SENDER].config.store;
	const uint8_t *have = p->end[RECEIVER].config.store;
	const float *b = (const float *)(const void *)(have + p->source_offset);
	const struct end *last = &p->end[p->work == PAIR_FORWARD ? SENDER : RECEIVER];
	if (p->work != PAIR_SUM)
		return memcmp(a, have, p->object.bytes) == 0 &&
		       (pair_copies(p) == 1 ||
			memcmp(a, last->config.store + p->second.store_offset, p->object.bytes) ==
				0);
	for (uint64_t i = 0; i < p->object.bytes / 4; i++)
		if (((const float *)(const void *)have)[i] != a[i] + b[i])
			return false;
	return true;
}

/* The result is that of the object in the middle: a machine that does other things now and then
 * does not change it. */
bool pair_run(struct pair *p, double seconds, bool stages, enum pair_work work,
	      struct pair_result *out)
{
	p->work = work;
	if (work == PAIR_SUM)
		end_fill(p->end[RECEIVER].config.store + p->source_offset, p->object.bytes, 7);
	static struct pair_result all[OBJECTS_MAX];
	unsigned count = 0;
	for (unsigned i = 0; i < ENDS; i++)
		end_account(&p->end[i], stages);
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

double pair_memcpy(struct pair *p, double seconds)
{
	return end_memcpy(p->end[RECEIVER].config.store, p->end[SENDER].config.store,
			  p->object.bytes, p->object.chunk_bytes, seconds);
}

void pair_close(struct pair *p)
{
	uint16_t device = p->port[SENDER].queue[0].device;
	rte_eth_dev_stop(device);
	rte_eth_dev_close(device);
	for (unsigned i = 0; i < ENDS; i++) {
		munmap(p->end[i].config.store, p->store_bytes);
		free(p->port[i].neighbours);
	}
	munmap(p, sizeof(*p));
}
