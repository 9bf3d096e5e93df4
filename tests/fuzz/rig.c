/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>

const char *invariants_check(struct engine *e);

enum { RIG_STORE_BYTES = 256 << 10, RIG_MSG_SLOTS = 8, RIG_BURST = 16, RIG_SEED = 77 };

#define RIG_FAIL(...) (fprintf(stderr, "rig: " __VA_ARGS__), fputc('\n', stderr), abort())

/* ---- input -------------------------------------------------------------------------------- */

uint8_t rig_byte(struct rig_input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->data++;
}

uint16_t rig_u16(struct rig_input *in)
{
	uint16_t low = rig_byte(in);
	return (uint16_t)(low | rig_byte(in) << 8);
}

uint32_t rig_u32(struct rig_input *in)
{
	uint32_t low = rig_u16(in);
	return low | (uint32_t)rig_u16(in) << 16;
}

uint64_t rig_u64(struct rig_input *in)
{
	uint64_t low = rig_u32(in);
	return low | (uint64_t)rig_u32(in) << 32;
}

/* ---- two sides ---------------------------------------------------------------------------- */

static struct net_addr rig_addr(uint8_t n)
{
	return (struct net_addr){.ip = {[10] = 0xff, 0xff, 10, 0, 0, n}, .port = UDP_PORT_DEFAULT};
}

static void side_open(struct rig *r, struct rig_side *s, uint8_t n)
{
	struct engine_config *c = &s->config;
	engine_config_default(c);
	c->incarnation = 1000u + n;
	c->addr = rig_addr(n);
	memset(c->key, n, sizeof(c->key));
	c->conns_max = 4;
	c->window_pkts = 64;
	c->buffers_max = 8;
	c->edges_max = 8;
	c->msgs_max = 16;
	c->block_bytes = 8192;
	s->store = memory_map(RIG_STORE_BYTES);
	memory_poison(s->store.base, s->store.bytes);
	s->table = memory_map(object_table_bytes(16));
	struct object_table *t = (struct object_table *)s->table.base;
	t->slots = 16;
	s->msg_tx = memory_map(RIG_MSG_SLOTS * MSG_SLOT_BYTES);
	s->msg_rx = memory_map(RIG_MSG_SLOTS * MSG_SLOT_BYTES);
	c->store = s->store.base;
	c->store_bytes = s->store.bytes;
	c->table = t;
	c->msg_tx = s->msg_tx.base;
	c->msg_tx_bytes = s->msg_tx.bytes;
	c->msg_rx = s->msg_rx.base;
	c->msg_rx_slots = RIG_MSG_SLOTS;
	c->counters = &s->counters;
	s->engine_memory = memory_map(engine_bytes(c));
	s->engine = engine_init(s->engine_memory.base, c, r->now_ns);
}

static struct memory *side_area(struct rig_side *s, unsigned i)
{
	struct memory *areas[] = {&s->engine_memory, &s->store, &s->table};
	return i < 3 ? areas[i] : NULL;
}

static void side_keep(struct rig_side *s)
{
	struct memory *m;
	for (unsigned i = 0; (m = side_area(s, i)); i++) {
		s->kept[i] = malloc(m->bytes);
		memcpy(s->kept[i], m->base, m->bytes);
	}
	s->kept_counters = s->counters;
}

static void side_restore(struct rig_side *s)
{
	struct memory *m;
	for (unsigned i = 0; (m = side_area(s, i)); i++)
		memcpy(m->base, s->kept[i], m->bytes);
	s->counters = s->kept_counters;
}

static struct rig_side *rig_other(struct rig *r, const struct rig_side *s)
{
	return s == &r->victim ? &r->peer : &r->victim;
}

/* ---- packets and events ------------------------------------------------------------------- */

static void side_receive(struct rig *r, struct rig_side *to, const uint8_t *bytes, uint16_t length,
			 const struct net_addr *from, uint8_t ecn)
{
	uint8_t *copy = malloc(length ? length : 1);
	struct packet_in in = {.data = copy, .length = length, .ecn = ecn, .from = *from};
	memcpy(copy, bytes, length);
	engine_receive(to->engine, &in, r->now_ns);
	free(copy);
}

void rig_receive(struct rig *r, const uint8_t *bytes, uint16_t length, const struct net_addr *from,
		 uint8_t ecn)
{
	side_receive(r, &r->victim, bytes, length, from, ecn);
}

static bool rig_inside(const struct memory *m, const uint8_t *p, size_t bytes)
{
	return p >= m->base && bytes <= m->bytes && (size_t)(p - m->base) <= m->bytes - bytes;
}

static void rig_remember(struct rig *r, const uint8_t *bytes, uint16_t length)
{
	struct rig_packet *p = &r->last[r->last_count++ % 16];
	memcpy(p->bytes, bytes, length);
	p->length = length;
	if (wire_is_short(bytes))
		r->peer.next_pn++;
	else if ((bytes[WIRE_AT_VERSION_TYPE] & 15) == WIRE_PAYLOAD)
		r->peer.next_pn = wire_get64(bytes + WIRE_AT_PN) + 1;
}

static void rig_packet_out(struct rig *r, struct rig_side *from, const struct packet_out *o,
			   bool deliver)
{
	struct rig_side *to = rig_other(r, from);
	uint8_t bytes[RIG_PACKET_MAX];
	uint32_t length = (uint32_t)o->head_length + o->payload_length;
	if (o->head_length < CHUNK_BODY || o->head_length > o->head_room || length > sizeof(bytes))
		RIG_FAIL("a packet of %u + %u bytes", o->head_length, o->payload_length);
	if (o->payload_length && !rig_inside(&from->store, o->payload, o->payload_length) &&
	    !rig_inside(&from->msg_tx, o->payload, o->payload_length))
		RIG_FAIL("payload outside the store and the messages");
	packet_out_seal(o);
	memcpy(bytes, o->head, o->head_length);
	if (o->payload_length)
		memcpy(bytes + o->head_length, o->payload, o->payload_length);
	if (from == &r->peer)
		rig_remember(r, bytes, (uint16_t)length);
	if (deliver && net_addr_equal(&o->to, &to->config.addr))
		side_receive(r, to, bytes, (uint16_t)length, &from->config.addr, o->ecn);
}

void rig_transmit(struct rig *r, struct rig_side *from, bool deliver)
{
	static uint8_t heads[RIG_BURST][RIG_PACKET_MAX];
	struct packet_out out[RIG_BURST];
	unsigned got, total = 0;
	do {
		for (unsigned i = 0; i < RIG_BURST; i++)
			out[i] = (struct packet_out){.head = heads[i], .head_room = RIG_PACKET_MAX};
		got = engine_transmit(from->engine, out, RIG_BURST, r->now_ns);
		for (unsigned i = 0; i < got; i++)
			rig_packet_out(r, from, &out[i], deliver);
		total += got;
	} while (got == RIG_BURST && total < 4096);
	if (total >= 4096)
		RIG_FAIL("packets without end");
}

void rig_events(struct rig *r, struct rig_side *side, bool free_messages)
{
	struct record events[RIG_BURST];
	unsigned got;
	while ((got = engine_events(side->engine, events, RIG_BURST)) > 0) {
		for (unsigned i = 0; i < got; i++) {
			if (events[i].op == EVENT_NONE || events[i].op >= EVENT_OPS)
				RIG_FAIL("event %u", events[i].op);
			if (events[i].op == EVENT_PEER_UP)
				side->conn = events[i].peer.conn;
			if (events[i].op != EVENT_MSG)
				continue;
			if (events[i].msg.offset + events[i].msg.length > side->msg_rx.bytes)
				RIG_FAIL("a message outside its area");
			struct record done = {.op = COMMAND_MSG_FREE};
			done.msg = events[i].msg;
			if (free_messages)
				engine_command(side->engine, &done, r->now_ns);
		}
	}
}

static void side_tick(struct rig *r, struct rig_side *s)
{
	if (r->now_ns >= engine_next_timeout(s->engine))
		engine_tick(s->engine, r->now_ns);
}

void rig_advance(struct rig *r, uint64_t ns)
{
	r->now_ns += ns;
	side_tick(r, &r->victim);
	side_tick(r, &r->peer);
}

/* ---- the set-up --------------------------------------------------------------------------- */

static void rig_turns(struct rig *r, unsigned count)
{
	while (count--) {
		rig_transmit(r, &r->victim, true);
		rig_transmit(r, &r->peer, true);
		rig_events(r, &r->victim, true);
		rig_events(r, &r->peer, true);
		rig_advance(r, 50000);
	}
}

static void side_buffer(struct rig *r, struct rig_side *s, uint32_t buffer, uint64_t offset,
			uint64_t bitmap, uint32_t chunks, uint64_t ready)
{
	struct record c = {.op = COMMAND_BUFFER, .epoch = 1};
	c.buffer.buffer = buffer;
	c.buffer.table_slot = bitmap ? 1 : TABLE_SLOT_NONE;
	c.buffer.store_offset = offset;
	c.buffer.size = (uint64_t)chunks * RIG_CHUNK;
	c.buffer.bitmap_offset = bitmap;
	c.buffer.ready_bytes = ready;
	c.buffer.chunk_bytes = RIG_CHUNK;
	c.buffer.need = 1;
	if (bitmap)
		memset(s->store.base + bitmap, 0, chunk_bitmap_bytes(chunks));
	else
		memory_fill(s->store.base + offset, RIG_SEED, 0, ready);
	engine_command(s->engine, &c, r->now_ns);
}

static void side_edge(struct rig *r, struct rig_side *s, uint8_t op, uint32_t edge, uint32_t buffer,
		      uint32_t stream, uint64_t bitmap, uint32_t chunks)
{
	struct record c = {.op = op, .epoch = 1};
	c.edge.edge = edge;
	c.edge.buffer = buffer;
	c.edge.conn = s->conn;
	c.edge.stream = stream;
	c.edge.chunks = chunks;
	c.edge.bitmap_offset = bitmap;
	if (bitmap)
		memset(s->store.base + bitmap, 0, chunk_bitmap_bytes(chunks));
	engine_command(s->engine, &c, r->now_ns);
}

/* An object from one side to the other, of which some is on its way when the set-up ends. */
static void rig_stream(struct rig *r, struct rig_side *from, struct rig_side *to, uint32_t chunks,
		       uint64_t sink_at, uint64_t source_at)
{
	uint64_t bytes = (uint64_t)chunks * RIG_CHUNK;
	uint32_t sink = handle_make(0, 1), source = handle_make(1, 1), edge = handle_make(2, 1);
	side_buffer(r, to, sink, sink_at, sink_at + bytes + 64, chunks, 0);
	side_buffer(r, from, source, source_at, 0, chunks, bytes - bytes / 4);
	side_edge(r, to, COMMAND_IN, edge, sink, 0, 0, chunks);
	side_edge(r, from, COMMAND_OUT, edge, source, edge, source_at + bytes + 64, chunks);
}

static void side_message(struct rig *r, struct rig_side *s, uint32_t slot, uint32_t length)
{
	struct record c = {.op = COMMAND_MSG_SEND};
	c.msg.conn = s->conn;
	c.msg.length = length;
	c.msg.offset = (uint64_t)slot * MSG_SLOT_BYTES;
	engine_command(s->engine, &c, r->now_ns);
}

static void rig_build(struct rig *r)
{
	struct record open = {.op = COMMAND_PEER_OPEN};
	r->now_ns = 1000000000;
	side_open(r, &r->victim, 1);
	side_open(r, &r->peer, 2);
	open.peer.addr = r->victim.config.addr;
	engine_command(r->peer.engine, &open, r->now_ns);
	rig_turns(r, 20);
	if (!r->victim.conn || !r->peer.conn)
		RIG_FAIL("not connected");
	r->sink = handle_make(0, 1);
	r->source = handle_make(1, 1);
	r->in = r->out = handle_make(2, 1);
	r->sink_offset = 4096;
	r->sink_bitmap = r->sink_offset + RIG_SINK_CHUNKS * RIG_CHUNK + 64;
	r->source_offset = 128 << 10;
	rig_stream(r, &r->peer, &r->victim, RIG_SINK_CHUNKS, r->sink_offset, 128 << 10);
	rig_stream(r, &r->victim, &r->peer, RIG_SOURCE_CHUNKS, 4096, r->source_offset);
	side_message(r, &r->peer, 0, 3000);
	rig_turns(r, 5);
	side_message(r, &r->victim, 1, 5000);
	side_message(r, &r->peer, 1, 20000);
	rig_transmit(r, &r->victim, false);
	rig_transmit(r, &r->peer, false);
	r->kept_ns = r->now_ns;
	side_keep(&r->victim);
	side_keep(&r->peer);
}

struct rig *rig_get(void)
{
	static struct rig r;
	static uint64_t pn;
	if (!r.victim.engine) {
		rig_build(&r);
		pn = r.peer.next_pn;
	}
	r.peer.next_pn = pn;
	return &r;
}

void rig_restore(struct rig *r)
{
	r->now_ns = r->kept_ns;
	side_restore(&r->victim);
	side_restore(&r->peer);
}

/* ---- judgement ---------------------------------------------------------------------------- */

static void rig_judge_poison(const struct rig *r, uint64_t from, uint64_t to)
{
	const uint8_t *p = r->victim.store.base;
	size_t bad = memory_check_poison(p + from, to - from);
	if (bad != to - from)
		RIG_FAIL("store byte %zu was written", (size_t)(from + bad));
}

/* Only whole chunks that are marked may have been written. */
static void rig_judge_store(const struct rig *r)
{
	const uint8_t *p = r->victim.store.base;
	const uint64_t *marks = (const uint64_t *)(p + r->sink_bitmap);
	uint64_t marks_end = r->sink_bitmap + chunk_bitmap_bytes(RIG_SINK_CHUNKS);
	uint64_t source_bytes = (uint64_t)RIG_SOURCE_CHUNKS * RIG_CHUNK;
	uint64_t ready = source_bytes - source_bytes / 4;
	rig_judge_poison(r, 0, r->sink_offset);
	for (uint32_t c = 0; c < RIG_SINK_CHUNKS; c++)
		if (!(marks[c / 64] >> c % 64 & 1))
			rig_judge_poison(r, r->sink_offset + (uint64_t)c * RIG_CHUNK,
					 r->sink_offset + ((uint64_t)c + 1) * RIG_CHUNK);
	rig_judge_poison(r, r->sink_offset + RIG_SINK_CHUNKS * RIG_CHUNK, r->sink_bitmap);
	rig_judge_poison(r, marks_end, r->source_offset);
	if (memory_check(p + r->source_offset, RIG_SEED, 0, ready) != ready)
		RIG_FAIL("a source was written");
	rig_judge_poison(r, r->source_offset + ready, r->source_offset + source_bytes + 64);
}

void rig_judge(struct rig *r, bool own_books)
{
	if (!own_books)
		return;
	const char *bad = invariants_check(r->victim.engine);
	if (bad)
		RIG_FAIL("%s", bad);
	rig_judge_store(r);
}
