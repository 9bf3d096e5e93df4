/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include "core_test.h"

static uint64_t rig_bitmaps_offset(void)
{
	return (uint64_t)RIG_BUFFERS * RIG_BUFFER_BYTES;
}

static void rig_defaults(struct rig *r)
{
	struct engine_config *f = &r->config;

	engine_config_default(f);
	f->incarnation = 1000;
	f->addr = (struct net_addr){.ip = {[10] = 0xff, 0xff, 10, 0, 0, 200}, .port = 7400};
	memset(f->key, 0x5a, sizeof(f->key));
	f->conns_max = 8;
	f->window_pkts = 64;
	f->buffers_max = RIG_BUFFERS;
	f->edges_max = 32;
	f->msgs_max = 64;
	f->block_bytes = 65536;
	f->store_bytes = rig_bitmaps_offset() + (uint64_t)RIG_BITMAPS * RIG_BITMAP_BYTES;
	f->msg_tx_bytes = RIG_TX_BYTES;
	f->msg_rx_slots = RIG_RX_SLOTS;
	f->counters = &r->counters;
}

struct rig *rig_new(void (*tweak)(struct engine_config *f))
{
	struct rig *r = calloc(1, sizeof(*r));
	struct engine_config *f = &r->config;

	rig_defaults(r);
	f->store = aligned_alloc(4096, f->store_bytes);
	memset(f->store, 0, f->store_bytes);
	f->table = calloc(1, object_table_bytes(RIG_SLOTS));
	f->table->slots = RIG_SLOTS;
	f->msg_tx = calloc(1, RIG_TX_BYTES);
	f->msg_rx = calloc(RIG_RX_SLOTS, MSG_SLOT_BYTES);
	if (tweak != NULL)
		tweak(f);
	r->bytes = engine_bytes(f);
	assert_int_not_equal(r->bytes, 0);
	r->memory = aligned_alloc(64, r->bytes);
	memset(r->memory, 0, r->bytes);
	r->frozen = malloc(r->bytes);
	r->now_ns = UINT64_C(5000000000);
	r->e = engine_init(r->memory, f, r->now_ns);
	assert_non_null(r->e);
	return r;
}

void rig_free(struct rig *r)
{
	free(r->config.store);
	free(r->config.table);
	free(r->config.msg_tx);
	free(r->config.msg_rx);
	free(r->memory);
	free(r->frozen);
	free(r);
}

int rig_setup(void **state)
{
	*state = rig_new(NULL);
	return 0;
}

int rig_teardown(void **state)
{
	rig_free(*state);
	return 0;
}

void rig_receive(struct rig *r, const struct packet *p, const struct net_addr *from)
{
	uint8_t *exact = malloc(p->length + 1); /* so that a sanitizer sees reads beyond the end */
	struct packet_in in = {
		.data = exact, .length = (uint16_t)p->length, .ecn = p->ecn, .from = *from};

	memcpy(exact, p->bytes, p->length);
	exact = realloc(exact, p->length > 0 ? p->length : 1);
	in.data = exact;
	engine_receive(r->e, &in, r->now_ns);
	free(exact);
}

/* Its integrity, and its number: a CHUNK or ACK packet does not say all of it. */
static void rig_check(struct rig *r, struct packet *p)
{
	if (!wire_is_short(p->bytes)) {
		p->pn = wire_get64(p->bytes + WIRE_AT_PN);
		assert_int_equal(wire_crc(p->bytes, p->length, NULL, 0),
				 wire_get32(p->bytes + WIRE_AT_CRC));
		return;
	}
	const struct conn *c = conn_by_addr(r->e, &p->to);
	assert_non_null(c);
	p->pn = c->tx.next_pn - 1;
	uint32_t state = wire_crc_conn(r->config.incarnation, c->handle, c->incarnation, c->remote);
	state = wire_crc_number(state, p->pn);
	if (packet_frame(p, FRAME_ACK) != NULL)
		state = wire_crc_number(state, c->rx.largest);
	assert_int_equal(wire_crc_chunk(state, p->bytes, p->length, NULL, 0),
			 wire_get32(p->bytes + CHUNK_AT_CRC));
}

bool rig_take(struct rig *r, struct packet *p)
{
	struct packet_out out = {.head = p->bytes, .head_room = ENGINE_HEAD_MAX};

	/* as a shell would: whatever the last packet left there */
	memset(p->bytes, 0xee, sizeof(p->bytes));
	out.head_length = out.payload_length = 0xee;
	out.payload = p->bytes;
	out.ecn = 0xee;
	if (engine_transmit(r->e, &out, 1, r->now_ns) == 0)
		return false;
	assert_in_range(out.head_length, CHUNK_BODY, ENGINE_HEAD_MAX);
	assert_true(out.head_length + out.payload_length <= r->config.mtu - ENGINE_OVERHEAD_V4);
	packet_out_seal(&out);
	if (out.payload_length > 0)
		memcpy(p->bytes + out.head_length, out.payload, out.payload_length);
	p->length = (uint32_t)out.head_length + out.payload_length;
	p->ecn = out.ecn;
	p->to = out.to;
	rig_check(r, p);
	return true;
}

uint32_t rig_drain(struct rig *r)
{
	struct packet p;
	uint32_t n = 0;

	while (rig_take(r, &p))
		assert_true(++n < 100000);
	return n;
}

void rig_pass(struct rig *r, uint64_t ns)
{
	uint64_t end = r->now_ns + ns;

	for (;;) {
		uint64_t next = engine_next_timeout(r->e);
		if (next > end)
			break;
		if (next > r->now_ns)
			r->now_ns = next;
		engine_tick(r->e, r->now_ns);
		rig_drain(r);
	}
	r->now_ns = end;
	engine_tick(r->e, r->now_ns);
}

void rig_command(struct rig *r, const struct record *command)
{
	assert_true(engine_command(r->e, command, r->now_ns));
}

bool rig_event(struct rig *r, struct record *event)
{
	return engine_events(r->e, event, 1) == 1;
}

struct record rig_expect(struct rig *r, enum event_op op)
{
	struct record event;

	if (!rig_event(r, &event))
		fail_msg("no event where %d was expected", (int)op);
	assert_int_equal(event.op, op);
	return event;
}

void rig_silent(struct rig *r)
{
	struct record event;

	if (rig_event(r, &event))
		fail_msg("event %d (%s) where none was expected", event.op,
			 reason_name(event.reason));
}

void rig_refuse(struct rig *r, const struct record *command, enum reason why)
{
	uint64_t refused = r->counters.records_refused;
	struct record event;

	rig_silent(r);
	rig_freeze(r);
	rig_command(r, command);
	assert_int_equal(r->counters.records_refused, refused + 1);
	assert_true(rig_event(r, &event));
	assert_string_equal(reason_name(event.reason), reason_name(why));
	assert_int_equal(event.token, command->token);
	assert_int_equal(event.epoch, command->epoch);
	rig_silent(r);
	rig_same(r);
}

void rig_freeze(struct rig *r)
{
	memcpy(r->frozen, r->memory, r->bytes);
}

void rig_same(struct rig *r)
{
	struct engine *old = (struct engine *)(void *)r->frozen;
	size_t ring = ((size_t)r->e->events.mask + 1) * sizeof(struct record);
	size_t at = (size_t)((uint8_t *)r->e->events.ring - r->memory);

	/* events that were pushed and read since say nothing about the state */
	assert_int_equal(r->e->events.head, r->e->events.tail);
	old->events.head = r->e->events.head;
	old->events.tail = r->e->events.tail;
	old->now_ns = r->e->now_ns;
	memcpy(r->frozen + at, r->memory + at, ring);
	for (size_t k = 0; k < r->bytes; k++)
		if (r->frozen[k] != r->memory[k])
			fail_msg("byte %zu of %zu of the engine has changed", k, r->bytes);
}

static bool counter_listed(const char *name, uint64_t moved, va_list list, const char *first,
			   int first_by)
{
	const char *want = first;
	int by = first_by;

	while (want != NULL) {
		if (strcmp(want, name) == 0) {
			if (moved != (uint64_t)by)
				fail_msg("%s moved by %llu, not %d", name,
					 (unsigned long long)moved, by);
			return true;
		}
		want = va_arg(list, const char *);
		by = want != NULL ? va_arg(list, int) : 0;
	}
	return false;
}

void rig_drops(struct rig *r, const char *name, ...)
{
	const uint64_t *now = (const uint64_t *)&r->counters, *old = (const uint64_t *)&r->before;
	int by = 0;

	for (uint32_t k = 0; k < COUNTERS_COUNT; k++) {
		const char *each = counters_info()[k].name;
		va_list list;

		if (strncmp(each, "drop_", 5) != 0)
			continue;
		va_start(list, name);
		if (name != NULL)
			by = va_arg(list, int);
		if (!counter_listed(each, now[k] - old[k], list, name, by) && now[k] != old[k])
			fail_msg("%s moved by %llu", each, (unsigned long long)(now[k] - old[k]));
		va_end(list);
	}
	r->before = r->counters;
}
void rig_sees_flips(struct rig *r, struct packet *p, const struct net_addr *from)
{
	rig_freeze(r);
	for (uint32_t bit = 0; bit < 8 * p->length; bit++) {
		p->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		rig_receive(r, p, from);
		p->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	rig_drops(r, "drop_checksum", 8 * p->length, NULL);
	rig_same(r);
}
