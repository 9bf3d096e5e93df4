/* SPDX-License-Identifier: BSD-3-Clause */
#include "internal/ipc.h"
#include "core/kernel/chunk_crc.h"
#include "core/wire/cookie.h"
#include "core/conn/handshake.h"
#include "core/plan/in_edge.h"
#include "core/plan/local_edge.h"
#include "core/plan/msg.h"
#include "core/plan/out_edge.h"
#include "core/conn/path_mtu.h"
#include "core/conn/sent.h"
#include "transmit.h"
#include "wheel.h"

enum {
	ENGINE_QUANTUM = 8, /* packets of one connection before the next has its turn */
	ENGINE_BURST_MAX = 65536,
};

static uint32_t engine_pow2(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p <<= 1;
	return (uint32_t)p;
}

/* Each thing has at most so many events in the ring at a time. */
static uint32_t engine_events_reserved(const struct engine_config *f)
{
	return 4 * f->buffers_max + 7 * f->edges_max + f->msgs_max + 16u * f->conns_max +
	       f->msg_rx_slots;
}

/* And so many more for records that are refused and peers that come and go. */
static uint32_t engine_events_size(const struct engine_config *f)
{
	return engine_pow2((uint64_t)engine_events_reserved(f) + 1024);
}

static bool engine_config_valid(const struct engine_config *f)
{
	bool window_pow2 = (f->window_pkts & (f->window_pkts - 1)) == 0, bursts = true;

	for (unsigned k = 0; k < RAILS_MAX; k++)
		bursts &= f->burst_bytes[k] <= ENGINE_BURST_MAX;

	return f->incarnation != 0 && f->mtu >= MTU_BASE && f->mtu <= ENGINE_HEAD_MAX &&
	       f->workers >= 1 && f->rails >= 1 && f->rails <= RAILS_MAX && f->conns_max >= 1 &&
	       f->conns_max <= ENGINE_CONNS_MAX && window_pow2 &&
	       f->window_pkts >= ENGINE_WINDOW_MIN && f->window_pkts <= ENGINE_WINDOW_MAX &&
	       f->buffers_max >= 1 && f->buffers_max <= BUFFERS_MAX && f->edges_max >= 1 &&
	       f->edges_max <= EDGES_MAX && f->msgs_max <= 65536 && f->msg_rx_slots <= 65536 &&
	       f->delay_target_ns > 0 && f->idle_timeout_ns > 0 && f->handshakes_per_s > 0 &&
	       f->handshakes_per_s <= 1000000000 && f->credit_bytes > 0 && f->block_bytes > 0 &&
	       bursts && f->store && f->counters && (f->msg_tx || f->msg_tx_bytes == 0) &&
	       (f->msg_rx || f->msg_rx_slots == 0);
}

/* Hands out aligned pieces of the caller's memory; with base NULL it only counts. */
struct carver {
	uint8_t *base;
	size_t used;
};

static void *engine_carve(struct carver *v, size_t bytes)
{
	void *at = v->base ? v->base + v->used : NULL;

	v->used += (bytes + 63) & ~(size_t)63;
	return at;
}

static void engine_carve_conn(struct engine *e, struct carver *v, uint32_t index)
{
	struct conn c = {.index = (uint16_t)index};
	size_t slots = e->sent_slots;

	c.rx.bitmap = engine_carve(v, e->rx_window / 8);
	c.tx.sent = engine_carve(v, slots * sizeof(struct sent));
	c.tx.outstanding = engine_carve(v, slots / 8);
	c.tx.late = engine_carve(v, slots / 8);
	c.tx.lost = engine_carve(v, slots * sizeof(struct lost_item));
	c.msg.in = engine_carve(v, MSG_WINDOW * sizeof(struct msg_in));
	if (v->base)
		e->conns[index] = c;
}

/* Lays out everything behind the engine itself. Reads only e->config and the sizes from it. */
static void engine_layout(struct engine *e, struct carver *v)
{
	const struct engine_config *f = &e->config;

	e->sent_slots = 2 * (uint32_t)f->window_pkts;
	e->rx_window = 4 * (uint32_t)f->window_pkts;
	e->addr_mask = engine_pow2(f->conns_max) - 1;
	e->stream_mask = engine_pow2(f->edges_max) - 1;
	e->events.mask = engine_events_size(f) - 1;
	e->events.reserved = engine_events_reserved(f);
	e->conns = engine_carve(v, f->conns_max * sizeof(struct conn));
	e->buffers = engine_carve(v, f->buffers_max * sizeof(struct buffer));
	e->out_edges = engine_carve(v, f->edges_max * sizeof(struct out_edge));
	e->in_edges = engine_carve(v, f->edges_max * sizeof(struct in_edge));
	e->msgs = engine_carve(v, f->msgs_max * sizeof(struct msg_out));
	e->crcs = engine_carve(v, CHUNK_CRCS * sizeof(struct chunk_crc));
	e->by_addr = engine_carve(v, ((size_t)e->addr_mask + 1) * sizeof(struct list));
	e->by_stream = engine_carve(v, ((size_t)e->stream_mask + 1) * sizeof(struct list));
	e->slots.free = engine_carve(v, f->msg_rx_slots * sizeof(uint32_t));
	e->parts.bytes = engine_carve(v, (size_t)PART_SLOTS * PART_SLOT_BYTES);
	e->slots.at_control = engine_carve(v, (f->msg_rx_slots + 63) / 64 * 8);
	e->events.ring = engine_carve(v, ((size_t)e->events.mask + 1) * sizeof(struct record));
	for (uint32_t k = 0; k < f->conns_max; k++)
		engine_carve_conn(e, v, k);
}

/* [P14] */
size_t engine_bytes(const struct engine_config *config)
{
	struct engine sizes = {.config = *config};
	struct carver v = {NULL, 0};

	if (!engine_config_valid(config))
		return 0;
	engine_carve(&v, sizeof(struct engine));
	engine_layout(&sizes, &v);
	return v.used;
}

struct engine *engine_init(void *memory, const struct engine_config *config, uint64_t now_ns)
{
	struct carver v = {memory, 0};

	if (!engine_config_valid(config))
		return NULL;
	struct engine *e = engine_carve(&v, sizeof(*e));
	e->config = *config;
	e->count = config->counters;
	e->now_ns = now_ns;
	engine_layout(e, &v);
	for (uint32_t k = 0; k < RAILS_MAX; k++) {
		e->quantum[k] =
			(unsigned)numbers_max(ENGINE_QUANTUM, config->burst_bytes[k] / config->mtu);
		list_init(&e->ready[k]);
	}
	list_init(&e->free_msgs);
	list_init(&e->free_conns);
	list_init(&e->sweeps);
	e->kernels = kernel_level_best();
	e->carries = crc_carries();
	for (uint32_t k = 0; k <= e->addr_mask; k++)
		list_init(&e->by_addr[k]);
	for (uint32_t k = 0; k <= e->stream_mask; k++)
		list_init(&e->by_stream[k]);
	e->stream_factor = cookie_random(e, UINT64_MAX) | 1;
	for (uint32_t k = 0; k < config->msgs_max; k++)
		list_append(&e->free_msgs, &e->msgs[k].link);
	for (uint32_t k = 0; k < config->msg_rx_slots; k++)
		e->slots.free[e->slots.free_count++] = config->msg_rx_slots - 1 - k;
	for (uint32_t k = config->conns_max; k-- > 0;) {
		e->conns[k].generation = (uint16_t)(cookie_random(e, k) | 1);
		list_append(&e->free_conns, &e->conns[k].ready);
	}
	wheel_init(&e->wheel, now_ns);
	return e;
}

void engine_prefetch(const struct engine *e, const struct packet_in *p)
{
	if (p->length >= CHUNK_BODY && wire_is_chunk(p->data))
		in_edge_prefetch(e, p->data);
	else if (p->length >= WIRE_BODY + DATA_BYTES && p->data[WIRE_BODY] == FRAME_DATA)
		in_edge_prefetch(e, p->data + WIRE_BODY);
}

static unsigned engine_replies(struct engine *e, unsigned rail, struct packet_out *out,
			       unsigned count)
{
	unsigned n = 0;

	for (; n < count && e->replies[rail].count > 0; n++) {
		out[n].payload = NULL;
		out[n].payload_length = 0;
		out[n].ecn = ENGINE_ECN_NOT;
		out[n].crc.place = NULL;
		handshake_reply(e, rail, &out[n]);
	}
	return n;
}

static uint64_t engine_sent_bytes(const struct packet_out *out, unsigned count)
{
	uint64_t bytes = 0;

	for (unsigned k = 0; k < count; k++)
		bytes += out[k].head_length + (uint64_t)out[k].payload_length;
	return bytes;
}

unsigned engine_transmit_rail(struct engine *e, unsigned rail, struct packet_out *out,
			      unsigned count, uint64_t now_ns)
{
	uint64_t before = e->config.cycles ? e->config.cycles() : 0;

	e->now_ns = now_ns;
	unsigned n = engine_replies(e, rail, out, count), quantum = e->quantum[rail];
	struct list *ready = &e->ready[rail];

	e->count->tx_bytes += engine_sent_bytes(out, n);
	while (n < count && !list_empty(ready)) {
		struct conn *c = list_entry(ready->next, struct conn, ready);
		unsigned want = count - n < quantum ? count - n : quantum;
		unsigned got;

		list_remove(&c->ready);
		c->cc.pace_blocked = false;
		got = transmit_conn(e, c, out + n, want);
		uint64_t bytes = engine_sent_bytes(out + n, got);
		e->count->tx_bytes += bytes;
		n += got;
		if (c->state == CONN_FREE)
			continue;
		c->tally.tx_bytes += bytes;
		if (got == want && c->state == CONN_UP)
			conn_wake(e, c); /* behind the others */
		else
			conn_arm(e, c);
	}
	e->count->tx_pkts += n;
	if (e->config.cycles) {
		e->stages.transmit += e->config.cycles() - before;
		e->stages.packets_out += n;
	}
	return n;
}

void engine_tick(struct engine *e, uint64_t now_ns)
{
	e->now_ns = now_ns;
	wheel_run(e);
	local_edge_sweep(e);
}

uint64_t engine_next_timeout_without(const struct engine *e, uint32_t rails)
{
	bool now = !list_empty(&e->sweeps);

	for (unsigned k = 0; k < e->config.rails; k++)
		now |= (rails >> k & 1) == 0 &&
		       (!list_empty(&e->ready[k]) || e->replies[k].count > 0);
	return now ? e->now_ns : wheel_next_ns(&e->wheel);
}

uint64_t engine_next_timeout(const struct engine *e)
{
	return engine_next_timeout_without(e, 0);
}

unsigned engine_connections(const struct engine *e)
{
	return e->conns_used;
}

const struct engine_stages *engine_stages(const struct engine *e)
{
	return &e->stages;
}

uint16_t engine_chunk_bytes(uint16_t mtu, bool v4)
{
	uint32_t overhead = ENGINE_DATA_OVERHEAD + (v4 ? ENGINE_OVERHEAD_V4 : ENGINE_OVERHEAD_V6);
	uint32_t chunk = mtu > overhead ? (uint32_t)(mtu - overhead) / 64 * 64 : 0;

	return (uint16_t)numbers_min(chunk, CHUNK_BYTES_MAX);
}

void engine_config_default(struct engine_config *f)
{
	memset(f, 0, sizeof(*f));
	f->mtu = 1500;
	f->workers = 1;
	f->rails = 1;
	f->conns_max = 256;
	f->window_pkts = 2048;
	f->buffers_max = BUFFERS_MAX;
	f->edges_max = EDGES_MAX;
	f->msgs_max = MSG_SLOTS;
	f->credit_bytes = 2 * 1024 * 1024;
	f->delay_target_ns = TIMES_DELAY_TARGET_NS;
	f->ack_delay_ns = TIMES_ACK_DELAY_NS;
	f->idle_timeout_ns = TIMES_IDLE_NS;
	f->block_bytes = 1024 * 1024;
	f->handshakes_per_s = 1000;
}
