/* SPDX-License-Identifier: BSD-3-Clause */
/* A chunk that was received, or sent once, is not read again for its checksum; and each packet has
 * the right one all the same. */
#include "fixtures/core_test.h"
#include "kernel/chunk_crc.h"

enum { CHUNKS = 30 };

static uint8_t heads[64][ENGINE_HEAD_MAX];

static unsigned transmit(struct rig *r, struct packet_out *out, unsigned count)
{
	for (unsigned k = 0; k < count; k++)
		out[k] = (struct packet_out){.head = heads[k], .head_room = ENGINE_HEAD_MAX};
	return engine_transmit(r->e, out, count, r->now_ns);
}

static bool is_chunk(const struct packet_out *out)
{
	return out->payload_length == RIG_CHUNK;
}

/* The checksum of a packet that is sealed must be that of these bytes. */
static void check_sealed(const struct packet_out *out, const uint8_t *open, const uint8_t *payload)
{
	uint8_t want[ENGINE_HEAD_MAX];

	memcpy(want, open, out->head_length);
	packet_seal(want, out->head_length, payload, out->payload_length);
	assert_memory_equal(out->head, want, out->head_length);
}

/* Seals a packet, with a copy of the payload or without. */
static void seal(const struct packet_out *out, bool copy)
{
	uint8_t open[ENGINE_HEAD_MAX];

	memcpy(open, out->head, out->head_length);
	if (copy)
		packet_out_seal_copy(out);
	else
		packet_out_seal(out);
	check_sealed(out, open, out->payload);
	if (copy)
		assert_memory_equal(out->head + out->head_length, out->payload,
				    out->payload_length);
}

static void fill(uint8_t *data, uint64_t bytes, uint64_t seed)
{
	for (uint64_t k = 0; k < bytes; k++)
		data[k] = (uint8_t)draw(&seed);
}

static struct record open_out(struct rig *r, uint32_t index, uint32_t buffer,
			      const struct peer *peer)
{
	struct record out = record_edge(COMMAND_OUT, index, buffer, peer, 0, CHUNKS);

	rig_command(r, &out);
	peer->c->cc.cwnd_bytes = 1 << 20;
	return out;
}

static void open_source(struct rig *r, uint32_t index)
{
	struct record source = record_source(index, CHUNKS * RIG_CHUNK, CHUNKS * RIG_CHUNK);

	source.buffer.chunk_bytes = RIG_CHUNK;
	fill(rig_data(r, index), CHUNKS * RIG_CHUNK, index + 1);
	rig_command(r, &source);
}

/* The bursts hold chunks of both receivers; what the first is being sent the second finds known. */
static void two_receivers_cost_one_reading(void **state)
{
	struct rig *r = *state;
	struct peer a = rig_connect(r, 1), b = rig_connect(r, 2);
	struct packet_out out[64];
	unsigned sent[CHUNKS] = {0}, n;

	open_source(r, 0);
	open_out(r, 0, 0, &a);
	open_out(r, 1, 0, &b);
	while ((n = transmit(r, out, 64)) > 0) {
		for (unsigned k = 0; k < n; k++) {
			if (is_chunk(&out[k])) {
				uint64_t at = (uint64_t)(out[k].payload - rig_data(r, 0));
				assert_int_equal(packet_out_known(&out[k]),
						 sent[at / RIG_CHUNK]++ > 0);
			}
			seal(&out[k], k % 2 == 0);
		}
	}
	for (unsigned k = 0; k < CHUNKS; k++)
		assert_int_equal(sent[k], 2);
}

/* A receiver that passes chunks on; what lies in the store is changed to see whether it is read. */
static void what_came_is_passed_on_unread(void **state)
{
	struct rig *r = *state;
	struct peer a = rig_connect(r, 1), b = rig_connect(r, 2);
	uint8_t whole[RIG_CHUNK], open[ENGINE_HEAD_MAX];
	struct packet_out out;
	struct packet p;

	rig_sink(r, &a, CHUNKS);
	open_out(r, 1, 0, &b);
	for (uint32_t chunk = 0; chunk < 4; chunk++) {
		if (chunk % 2 == 0)
			peer_chunk(r, &a, &p, record_handle(0), chunk, RIG_CHUNK, 7);
		else
			peer_chunk_ack(r, &a, &p, record_handle(0), chunk, RIG_CHUNK,
				       a.c->tx.next_pn - 1, UINT64_C(1) << 63);
		fill(p.bytes + p.length - RIG_CHUNK, RIG_CHUNK, chunk);
		memcpy(whole, p.bytes + p.length - RIG_CHUNK, RIG_CHUNK);
		peer_send(r, &a, &p);
		rig_drops(r, NULL);
		do
			assert_int_equal(transmit(r, &out, 1), 1);
		while (!is_chunk(&out));
		rig_data(r, 0)[chunk * RIG_CHUNK + 5] ^= 1;
		assert_true(packet_out_known(&out));
		memcpy(open, out.head, out.head_length);
		packet_out_seal(&out);
		check_sealed(&out, open, whole);
	}
}

/* Should the store have changed under us, or the table, the second try is right. */
static void what_was_lost_is_read_again(void **state)
{
	struct rig *r = *state;
	struct peer a = rig_connect(r, 1), b = rig_connect(r, 2);
	struct packet_out out;

	open_source(r, 0);
	open_out(r, 0, 0, &a);
	open_out(r, 1, 0, &b);
	assert_int_equal(transmit(r, &out, 1), 1);
	assert_true(net_addr_equal(&out.to, &a.addr));
	seal(&out, false);
	assert_true(packet_out_known(&out));
	rig_data(r, 0)[9] ^= 1;
	sent_lose(r->e, a.c, a.c->tx.next_pn - 1);
	do
		assert_int_equal(transmit(r, &out, 1), 1);
	while (!out.resend);
	assert_ptr_equal(out.payload, rig_data(r, 0));
	assert_false(packet_out_known(&out));
	seal(&out, false);
}

/* Two buffers whose chunks have the same places: whatever is remembered is of one of them. */
static void chunks_displace_each_other(void **state)
{
	struct rig *r = *state;
	struct peer a = rig_connect(r, 1), b = rig_connect(r, 2);
	struct packet_out out[64];
	unsigned n, all = 0, fresh = 0;

	open_source(r, 0);
	r->e->buffer_number += CHUNK_CRCS - 1;
	open_source(r, 1);
	for (uint32_t k = 0; k < 4; k++)
		open_out(r, k, k / 2, k % 2 == 0 ? &a : &b);
	while ((n = transmit(r, out, 64)) > 0)
		for (unsigned k = 0; k < n; k++) {
			all += is_chunk(&out[k]);
			fresh += is_chunk(&out[k]) && !packet_out_known(&out[k]);
			seal(&out[k], k % 2 == 0);
		}
	assert_int_equal(all, 4 * CHUNKS);
	assert_true(fresh > 2 * CHUNKS); /* as many as there would be with places of their own */
}

/* A later buffer of the same handle is not taken for the former. */
static void a_buffer_is_not_its_successor(void **state)
{
	struct rig *r = *state;
	struct peer a = rig_connect(r, 1), b = rig_connect(r, 2);
	struct record drop = record_drop(RECORD_FLAG_BUFFER, record_handle(0));
	struct packet_out out;

	for (unsigned k = 0; k < 2; k++) {
		open_source(r, 0);
		for (uint32_t edge = 0; edge < 2; edge++) {
			memset(rig_bitmap(r, RIG_BUFFERS + edge), 0, 8);
			open_out(r, edge, 0, edge == 0 ? &a : &b);
		}
		rig_data(r, 0)[7] = (uint8_t)k;
		assert_int_equal(transmit(r, &out, 1), 1);
		assert_true(is_chunk(&out) && out.crc.place && !packet_out_known(&out));
		seal(&out, false);
		rig_command(r, &drop);
		rig_expect(r, EVENT_DROPPED);
	}
}

/* What comes is a part of the sum: the sum's checksum is another. */
static void a_contribution_is_not_the_sum(void **state)
{
	struct rig *r = *state;
	struct peer a = rig_connect(r, 1), b = rig_connect(r, 2);
	struct record sum = record_buffer(0, CHUNKS * RIG_CHUNK);
	struct packet_out out;
	struct packet p;

	sum.buffer.reduce_op = REDUCE_SUM;
	sum.buffer.dtype = REDUCE_U8;
	sum.buffer.need = 2;
	rig_command(r, &sum);
	for (uint32_t k = 0; k < 2; k++) {
		struct record in = record_edge(COMMAND_IN, k, 0, k == 0 ? &a : &b, 0, CHUNKS);
		in.edge.bitmap_offset =
			(uint64_t)((uint8_t *)rig_bitmap(r, RIG_BUFFERS + 8 + k) - r->config.store);
		rig_command(r, &in);
	}
	open_out(r, 0, 0, &b);
	for (uint32_t k = 0; k < 2; k++) {
		peer_chunk(r, k == 0 ? &a : &b, &p, record_handle(k), 0, RIG_CHUNK, 7);
		peer_send(r, k == 0 ? &a : &b, &p);
	}
	rig_drops(r, NULL);
	do
		assert_int_equal(transmit(r, &out, 1), 1);
	while (!is_chunk(&out));
	assert_int_equal(out.payload[0], 14);
	assert_false(packet_out_known(&out));
	seal(&out, false);
}

static void sums_of_parts_are_carried_on(void **state)
{
	static uint8_t bytes[9000];
	uint64_t seed = 3;

	(void)state;
	fill(bytes, sizeof(bytes), 1);
	for (uint32_t length = 8; length <= sizeof(bytes); length += length < 300 ? 1 : 97) {
		uint32_t before = (uint32_t)draw(&seed), by = crc_carry_by(length);

		assert_int_not_equal(by, 0);
		assert_int_equal(crc_bytes(before, bytes, length),
				 crc_carry(before, by) ^ crc_bytes(0, bytes, length));
	}
}

int main(void)
{
	const struct CMUnitTest carried[] = {
		test_rig(two_receivers_cost_one_reading),
		test_rig(what_came_is_passed_on_unread),
		test_rig(what_was_lost_is_read_again),
		test_rig(chunks_displace_each_other),
		test_rig(a_buffer_is_not_its_successor),
		test_rig(a_contribution_is_not_the_sum),
		cmocka_unit_test(sums_of_parts_are_carried_on),
	};
	if (crc_carries())
		return cmocka_run_group_tests(carried, NULL, NULL);
	print_message("this processor has no PCLMULQDQ: nothing is remembered\n");
	return 77;
}
