/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records from control into an engine that is in the middle of its work, between packets of a
 * well-behaved peer. Records may contradict each other (ranges that overlap, handles used again),
 * as control's errors would; the engine must survive and write nowhere but into its areas.
 */
#include "internal/reduce.h"
#include "rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t offset(struct rig_input *in)
{
	switch (rig_byte(in) & 7) {
	case 0:
		return rig_u64(in);
	case 1:
		return UINT64_MAX - rig_byte(in);
	case 2:
		return (256u << 10) - rig_byte(in);
	default:
		return (uint64_t)rig_u16(in) * 8;
	}
}

static uint32_t handle(struct rig_input *in)
{
	uint8_t b = rig_byte(in);
	if (b == 255)
		return rig_u32(in);
	return handle_make(b & 7, (uint16_t)((b >> 3) & 3));
}

static uint32_t conn(struct rig_input *in, const struct rig *r)
{
	uint8_t b = rig_byte(in);
	return b < 240 ? r->victim.conn : b == 255 ? rig_u32(in) : r->victim.conn + b;
}

static uint32_t count(struct rig_input *in)
{
	uint8_t b = rig_byte(in);
	return b < 240 ? b : b < 250 ? UINT32_MAX - (b & 3) : rig_u32(in);
}

static void make_buffer(struct record *c, struct rig_input *in)
{
	c->buffer.buffer = handle(in);
	c->buffer.table_slot = rig_byte(in) & 1 ? TABLE_SLOT_NONE : count(in) & 31;
	c->buffer.store_offset = offset(in);
	c->buffer.size = offset(in) >> (rig_byte(in) & 7);
	c->buffer.bitmap_offset = rig_byte(in) & 3 ? offset(in) : 0;
	c->buffer.ready_bytes = rig_byte(in) & 1 ? c->buffer.size : offset(in);
	c->buffer.chunk_bytes =
		(uint16_t)(rig_byte(in) < 230 ? 64 * (rig_byte(in) & 31) : rig_u16(in));
	c->buffer.need = rig_byte(in) < 240 ? 1 : rig_byte(in);
	if (rig_byte(in) & 1) { /* counted */
		c->buffer.reduce_op = rig_byte(in) % (REDUCE_OP_END + 1);
		c->buffer.dtype = rig_byte(in) % (REDUCE_DTYPE_END + 1);
		c->buffer.scale = rig_byte(in) & 3;
		c->buffer.need = rig_byte(in) & 7;
		c->buffer.size &= ~UINT64_C(7);
	}
}

static void make_local(struct record *c, struct rig_input *in)
{
	c->local.edge = handle(in);
	c->local.buffer = handle(in);
	c->local.source = handle(in);
	c->local.first_chunk = rig_byte(in) & 1 ? 0 : count(in);
	c->local.chunks = count(in);
	c->local.peer_first = rig_byte(in) & 1 ? 0 : count(in);
	c->local.bitmap_offset = offset(in);
}

static void make_edge(struct record *c, struct rig_input *in, const struct rig *r)
{
	c->edge.edge = handle(in);
	c->edge.buffer = handle(in);
	c->edge.conn = conn(in, r);
	c->edge.stream = handle(in);
	c->edge.first_chunk = rig_byte(in) & 1 ? 0 : count(in);
	c->edge.chunks = count(in);
	c->edge.bitmap_offset = offset(in);
	c->edge.peer_first = rig_byte(in) & 3 ? c->edge.first_chunk : count(in);
	c->flags = rig_byte(in) & 3;
}

static void make_message(struct record *c, struct rig_input *in, const struct rig *r)
{
	c->msg.conn = conn(in, r);
	c->msg.length = rig_byte(in) < 200 ? rig_u16(in) : rig_u32(in);
	c->msg.offset =
		rig_byte(in) < 200 ? (uint64_t)(rig_byte(in) & 7) * MSG_SLOT_BYTES : offset(in);
}

static void make_raw(struct record *c, struct rig_input *in)
{
	uint8_t bytes[RECORD_BYTES];
	for (unsigned i = 0; i < RECORD_BYTES; i++)
		bytes[i] = rig_byte(in);
	memcpy(c, bytes, sizeof(*c));
}

static void record(struct rig *r, struct rig_input *in)
{
	uint8_t op = rig_byte(in) % (COMMAND_OPS + 2);
	struct record c = {.op = op, .epoch = 1 + (rig_byte(in) == 7), .token = rig_byte(in)};
	switch (op) {
	case COMMAND_PEER_OPEN:
		c.peer.addr = r->peer.config.addr;
		c.peer.addr.ip[15] = rig_byte(in) & 7;
		break;
	case COMMAND_PEER_CLOSE:
		c.peer.conn = rig_byte(in) < 250 ? rig_u32(in) : r->victim.conn;
		break;
	case COMMAND_PEER_WATCH:
		c.watch.conn = rig_byte(in) < 50 ? rig_u32(in) : r->victim.conn;
		c.watch.silence_ns = rig_u32(in);
		break;
	case COMMAND_MSG_SEND:
	case COMMAND_MSG_FREE:
		make_message(&c, in, r);
		break;
	case COMMAND_BUFFER:
		make_buffer(&c, in);
		break;
	case COMMAND_LOCAL:
		make_local(&c, in);
		break;
	case COMMAND_IN:
	case COMMAND_OUT:
	case COMMAND_DROP_EDGE:
		make_edge(&c, in, r);
		break;
	case COMMAND_ADVANCE:
	case COMMAND_FINISH:
	case COMMAND_DROP_BUFFER:
		c.progress.buffer = handle(in);
		c.progress.ready_bytes = offset(in);
		break;
	default:
		make_raw(&c, in);
	}
	engine_command(r->victim.engine, &c, r->now_ns);
}

static void exchange(struct rig *r, bool lose)
{
	rig_transmit(r, &r->victim, !lose);
	rig_transmit(r, &r->peer, !lose);
	rig_events(r, &r->peer, true);
	rig_advance(r, 60000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig_input in = {data, size};
	struct rig *r = rig_get();
	rig_restore(r);
	while (in.left) {
		uint8_t op = rig_byte(&in) & 15;
		if (op < 10)
			record(r, &in);
		else if (op == 10)
			rig_advance(r, (uint64_t)rig_u16(&in) << (rig_byte(&in) & 15));
		else if (op == 11)
			rig_events(r, &r->victim, rig_byte(&in) & 1);
		else
			exchange(r, op == 15);
	}
	for (unsigned k = 0; k < 4; k++)
		exchange(r, false);
	rig_events(r, &r->victim, true);
	rig_judge(r, false);
	return 0;
}
