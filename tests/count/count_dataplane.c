/* SPDX-License-Identifier: BSD-3-Clause */
/* Two engines and the packets between them, in bursts as the worker loop takes them. */
#include "fixtures/core_test.h"
#include "counts.h"

enum {
	BURST = 32,
	CHUNKS = RIG_BUFFER_BYTES / RIG_CHUNK,
	TAKEN = 2 * RIG_BUFFERS, /* bitmap of the edge into a sum; the next: of its LOCAL edge */
	TURN_NS = 20000,
	TURNS_MAX = 100000,
	KERNEL_CALLS = 100,
};

static const uint64_t object_bytes = (uint64_t)CHUNKS * RIG_CHUNK;

struct two {
	struct rig *from, *to;
	struct peer at_from, at_to; /* each end's name for the connection */
};

static void wide_window(struct engine_config *f)
{
	f->window_pkts = 2048;
}

static void other_end(struct engine_config *f)
{
	wide_window(f);
	f->addr.ip[15]++;
	f->incarnation++;
}

static void carry(struct rig *from, struct rig *to)
{
	static uint8_t room[BURST][ENGINE_HEAD_MAX];
	struct packet_out out[BURST];

	for (unsigned k = 0; k < BURST; k++)
		out[k] = (struct packet_out){.head = room[k], .head_room = ENGINE_HEAD_MAX};
	unsigned n = engine_transmit(from->e, out, BURST, from->now_ns);
	for (unsigned k = 0; k < n; k++) {
		uint8_t *payload = out[k].head + out[k].head_length;
		if (out[k].payload_length > 0)
			memcpy(payload, out[k].payload, out[k].payload_length);
		packet_out_seal(&out[k]);
		uint16_t length = (uint16_t)(out[k].head_length + out[k].payload_length);
		struct packet_in in = {.data = out[k].head,
				       .length = length,
				       .ecn = out[k].ecn,
				       .from = from->config.addr};
		engine_receive(to->e, &in, to->now_ns);
	}
}

static void end_turn(struct rig *r, struct rig *other)
{
	r->now_ns += TURN_NS;
	if (r->now_ns >= engine_next_timeout(r->e))
		engine_tick(r->e, r->now_ns);
	carry(r, other);
}

/* Until both ends have told of that; everything else that they tell is passed over. */
static void turns_until(struct two *t, enum event_op at_from, enum event_op at_to,
			struct record *told)
{
	struct rig *end[] = {t->from, t->to};
	enum event_op op[] = {at_from, at_to};
	bool done[2] = {false, false};

	for (unsigned turn = 0; !done[0] || !done[1]; turn++) {
		assert_true(turn < TURNS_MAX);
		for (unsigned i = 0; i < 2; i++) {
			struct record event;
			end_turn(end[i], end[1 - i]);
			while (rig_event(end[i], &event))
				if (event.op == op[i]) {
					told[i] = event;
					done[i] = true;
				}
		}
	}
}

static struct two two_open(void)
{
	struct two t = {.from = rig_new(wide_window), .to = rig_new(other_end)};
	struct record open = {.op = COMMAND_PEER_OPEN}, up[2];

	open.peer.addr = t.to->config.addr;
	rig_command(t.from, &open);
	turns_until(&t, EVENT_PEER_UP, EVENT_PEER_UP, up);
	t.at_from.conn = up[0].peer.conn;
	t.at_to.conn = up[1].peer.conn;
	for (unsigned turn = 0; turn < 100; turn++) { /* the path MTU is found */
		end_turn(t.from, t.to);
		end_turn(t.to, t.from);
	}
	return t;
}

static void two_close(struct two *t)
{
	rig_free(t->from);
	rig_free(t->to);
}

static uint64_t bitmap_offset(struct rig *r, uint32_t index)
{
	return (uint64_t)((uint8_t *)rig_bitmap(r, index) - r->config.store);
}

/* The receiver's buffer 0 holds what arrives, or that and its own buffer 1 added up. */
static void receiver_begin(struct two *t, bool sum)
{
	struct record b = record_buffer(0, object_bytes),
		      own = record_source(1, object_bytes, object_bytes);
	struct record in = record_edge(COMMAND_IN, 0, 0, &t->at_to, 0, CHUNKS);
	struct record local = {.op = COMMAND_LOCAL, .epoch = 1};

	if (sum) {
		b.buffer.need = 2;
		b.buffer.reduce_op = REDUCE_SUM;
		b.buffer.dtype = REDUCE_F32;
		in.edge.bitmap_offset = bitmap_offset(t->to, TAKEN);
		local.local.edge = local.local.source = record_handle(1);
		local.local.buffer = record_handle(0);
		local.local.chunks = CHUNKS;
		local.local.bitmap_offset = bitmap_offset(t->to, TAKEN + 1);
	}
	rig_command(t->to, &b);
	if (sum) {
		rig_command(t->to, &own);
		rig_command(t->to, &local);
	}
	rig_command(t->to, &in);
}

static void transfer(const char *work, bool sum)
{
	struct two t = two_open();
	struct record source = record_source(0, object_bytes, object_bytes), told[2];
	struct record out = record_edge(COMMAND_OUT, 0, 0, &t.at_from, 0, CHUNKS);

	out.edge.stream = record_handle(0);
	receiver_begin(&t, sum);
	rig_command(t.from, &source);
	rig_command(t.from, &out);
	count_begin();
	turns_until(&t, EVENT_OUT_DONE, EVENT_BUFFER_DONE, told);
	count_end(
		work, CHUNKS,
		"engine_transmit_rail engine_receive engine_tick packet_out_seal wire_crc_span in_edge_take "
		"ack_mark ack_write sent_ack sent_record");
	assert_int_equal(t.to->counters.rx_chunks, CHUNKS);
	assert_int_equal(t.from->counters.tx_chunk_resends, 0);
	two_close(&t);
}

void count_transport(void)
{
	transfer("copy", false);
	transfer("sum", true);
}

static __attribute__((noinline)) void kernel_run(kernel_fn *kernel)
{
	static _Alignas(64) uint8_t to[RIG_CHUNK], payload[RIG_CHUNK + 10];

	for (unsigned k = 0; k < KERNEL_CALLS; k++)
		kernel(to, to, payload + 10, RIG_CHUNK); /* as it lies in a packet */
}

void count_kernels(void)
{
	enum kernel_level best = kernel_level_best();
	char work[64];

	printf("level %s\n", kernel_level_name(best));
	for (uint32_t dtype = 1; dtype < REDUCE_DTYPE_END; dtype++) {
		snprintf(work, sizeof(work), "kernel-sum-%s", reduce_dtype_name(dtype));
		kernel_fn *kernel = kernel_find(best, REDUCE_SUM, dtype);
		count_begin();
		kernel_run(kernel);
		count_end(work, KERNEL_CALLS, "kernel_run");
	}
}
