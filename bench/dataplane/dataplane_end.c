/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane_end.h"
#include "internal/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rte_cycles.h>

enum { EVENTS = 32, PASSES_MAX = 4096 };

static _Thread_local bool accounting;

/* The engines have the clock for good; reading it is what costs. */
static uint64_t cycles(void)
{
	return accounting ? rte_rdtsc() : 0;
}

void *end_memory(uint64_t bytes)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return NULL;
	madvise(m, bytes, MADV_HUGEPAGE);
	return m;
}

bool end_open(struct end *e, const struct port *port, struct worker *workers, unsigned index,
	      uint64_t incarnation, uint8_t *store, uint64_t store_bytes)
{
	struct engine_config *c = &e->config;
	e->worker = &workers[index];
	*e->worker = (struct worker){.index = index,
				     .workers = port->workers,
				     .all = workers,
				     .rails = 1,
				     .rail[0] = {.port = port,
						 .in = {&port->queue[index]},
						 .ins = 1,
						 .out = &port->queue[index]},
				     .resolver_fd = -1,
				     .counters = &e->counters,
				     .session = &e->session};
	engine_config_default(c);
	c->incarnation = incarnation;
	c->addr = port->addr;
	c->addr.port = (uint16_t)(c->addr.port + index);
	c->mtu = port->mtu;
	c->store = store;
	c->store_bytes = store_bytes;
	c->counters = &e->counters;
	c->cycles = cycles;
	c->key[0] = (uint8_t)incarnation;
	size_t bytes = engine_bytes(c);
	void *memory = bytes ? end_memory(bytes) : NULL;
	if (!memory)
		return false;
	e->session.engine = engine_init(memory, c, worker_now_ns());
	e->session.store = store;
	e->session.store_bytes = store_bytes;
	rte_mbuf_ext_refcnt_set(&e->worker->pinned, 1);
	return e->session.engine != NULL;
}

static void end_event(struct end *e, const struct record *r)
{
	switch (r->op) {
	case EVENT_PEER_UP:
		e->conn = r->peer.conn;
		break;
	case EVENT_BUFFER_DONE:
		e->buffers_done++;
		break;
	case EVENT_OUT_DONE:
		e->outs_done++;
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

unsigned end_turn(struct end *e)
{
	struct record events[EVENTS];
	uint64_t now_ns = worker_now_ns();
	unsigned work = rx_burst(e->worker, &e->worker->rail[0], now_ns);
	if (now_ns >= engine_next_timeout(e->session.engine))
		engine_tick(e->session.engine, now_ns);
	work += tx_burst(e->worker, &e->worker->rail[0], now_ns);
	unsigned n = engine_events(e->session.engine, events, EVENTS);
	for (unsigned i = 0; i < n; i++)
		end_event(e, &events[i]);
	return work + n;
}

void end_command(struct end *e, struct record r)
{
	engine_command(e->session.engine, &r, worker_now_ns());
}

void end_connect(struct end *e, const struct net_addr *addr)
{
	struct record r = {.op = COMMAND_PEER_OPEN};
	r.peer.addr = *addr;
	end_command(e, r);
}

static struct record end_buffer(const struct object *o)
{
	struct record b = {.op = COMMAND_BUFFER};
	b.buffer.buffer = o->handle;
	b.buffer.table_slot = TABLE_SLOT_NONE;
	b.buffer.store_offset = o->store_offset;
	b.buffer.size = o->bytes;
	b.buffer.chunk_bytes = o->chunk_bytes;
	b.buffer.need = 1;
	return b;
}

static struct record end_edge(const struct end *e, const struct object *o, enum command_op op)
{
	struct record r = {.op = (uint8_t)op};
	r.edge.edge = r.edge.buffer = o->handle;
	r.edge.chunks = (uint32_t)chunk_count(o->bytes, o->chunk_bytes);
	r.edge.conn = e->conn;
	return r;
}

void end_send(struct end *e, const struct object *o)
{
	struct record b = end_buffer(o), out = end_edge(e, o, COMMAND_OUT);
	memset(e->config.store + o->bitmap_offset, 0, chunk_bitmap_bytes(out.edge.chunks));
	b.buffer.ready_bytes = o->bytes;
	out.edge.stream = o->handle;
	out.edge.bitmap_offset = o->bitmap_offset;
	end_command(e, b);
	end_command(e, out);
}

void end_send_on(struct end *e, const struct object *o, const struct object *as)
{
	struct record out = end_edge(e, as, COMMAND_OUT);
	memset(e->config.store + as->bitmap_offset, 0, chunk_bitmap_bytes(out.edge.chunks));
	out.edge.buffer = o->handle;
	out.edge.stream = as->handle;
	out.edge.bitmap_offset = as->bitmap_offset;
	end_command(e, out);
}

void end_take(struct end *e, const struct object *o)
{
	struct record b = end_buffer(o), in = end_edge(e, o, COMMAND_IN);
	memset(e->config.store + o->bitmap_offset, 0, chunk_counted_bytes(in.edge.chunks));
	b.buffer.bitmap_offset = o->bitmap_offset;
	if (o->taken_offset) {
		b.buffer.reduce_op = REDUCE_SUM;
		b.buffer.dtype = REDUCE_F32;
		b.buffer.need = 2;
		in.edge.bitmap_offset = o->taken_offset;
	}
	end_command(e, b);
	end_command(e, in);
}

void end_drop(struct end *e, uint32_t handle)
{
	struct record r = {.op = COMMAND_DROP_BUFFER};
	r.progress.buffer = handle;
	end_command(e, r);
}

void end_account(struct end *e, bool on)
{
	e->worker->stages = on ? e->stages : NULL;
	accounting = on;
}

void end_stages(const struct end *e, struct stage_cycles *sum)
{
	const struct engine_stages *s = engine_stages(e->session.engine);
	const uint64_t *io = e->stages;
	uint64_t engine_in = s->check + s->receive + s->copy + s->ack;
	sum->check += s->check;
	sum->receive += s->receive;
	sum->copy_in += s->copy;
	sum->ack += s->ack;
	sum->transmit += s->transmit;
	sum->copy_out += io[IO_COPY];
	sum->seal += io[IO_SEAL];
	sum->driver += io[IO_RX_DRIVER] + io[IO_TX_DRIVER];
	sum->ahead += io[IO_AHEAD];
	sum->headers += io[IO_RX] + io[IO_TX] - io[IO_RX_DRIVER] - io[IO_TX_DRIVER] - io[IO_COPY] -
			io[IO_SEAL] - io[IO_AHEAD] - engine_in - s->transmit;
}

void stages_add(struct stage_cycles *sum, const struct stage_cycles *now,
		const struct stage_cycles *was)
{
	uint64_t *s = (uint64_t *)sum;
	const uint64_t *n = (const uint64_t *)now, *w = (const uint64_t *)was;
	for (unsigned i = 0; i < sizeof(*sum) / sizeof(*s); i++)
		s[i] += n[i] - w[i];
}

void stages_print(const struct stage_cycles *s, uint64_t packets)
{
	const struct {
		const char *name;
		uint64_t cycles;
	} rows[] = {{"protocol", s->receive + s->ack + s->transmit},
		    {"receive", s->receive},
		    {"ack", s->ack},
		    {"transmit", s->transmit},
		    {"check", s->check},
		    {"seal", s->seal},
		    {"copy_in", s->copy_in},
		    {"copy_out", s->copy_out},
		    {"headers", s->headers},
		    {"ahead", s->ahead},
		    {"driver", s->driver}};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		printf("%s\"%s\":%.1f", i > 0 ? "," : "", rows[i].name,
		       (double)rows[i].cycles / (double)packets);
}

static uint32_t filled_word(uint64_t i, uint32_t seed)
{
	return 0x3f800000 | ((uint32_t)(i + seed) * 0x9e3779b9u >> 9);
}

void end_fill(uint8_t *store, uint64_t bytes, uint32_t seed)
{
	uint32_t *word = (uint32_t *)(void *)store;
	for (uint64_t i = 0; i < bytes / 4; i++)
		word[i] = filled_word(i, seed);
}

bool end_filled(const uint8_t *store, uint64_t bytes, uint32_t seed)
{
	const uint32_t *word = (const uint32_t *)(const void *)store;
	for (uint64_t i = 0; i < bytes / 4; i++)
		if (word[i] != filled_word(i, seed))
			return false;
	return true;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

double end_memcpy(uint8_t *to, const uint8_t *from, uint64_t bytes, uint16_t chunk_bytes,
		  double seconds)
{
	static uint64_t ns[PASSES_MAX];
	uint64_t end_ns = worker_now_ns() + (uint64_t)(seconds * 1e9);
	unsigned count = 0;
	do {
		uint64_t start_ns = worker_now_ns();
		for (uint64_t at = 0; at + chunk_bytes <= bytes; at += chunk_bytes)
			memcpy(to + at, from + at, chunk_bytes);
		ns[count++] = worker_now_ns() - start_ns;
	} while (worker_now_ns() < end_ns && count < PASSES_MAX);
	qsort(ns, count, sizeof(*ns), by_value);
	return (double)(bytes / chunk_bytes * chunk_bytes) / ((double)ns[count / 2] * 1e-9);
}
