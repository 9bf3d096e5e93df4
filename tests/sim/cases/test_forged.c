/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forged packets, each with a valid checksum: every cause of a drop counts on its own counter,
 * exactly once, and nothing else changes.
 */
#include "model/stage.h"

/* ---- the causes --------------------------------------------------------------------------- */

struct cause {
	const char *name;
	void (*make)(struct stage *s, struct forge *f);
	uint32_t from;
	size_t counter;
};

static void make_short(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	f->length = WIRE_BODY - 1;
}

static void make_empty(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	f->length = 0;
}

static void make_short_hello(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_HELLO, 0);
	f->length = WIRE_HELLO_MIN - 1;
}

static void make_short_cookie(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_COOKIE, node_conn_to(victim(s), PEER));
	f->length = WIRE_BODY + HELLO_BYTES - 1;
}

static void make_short_reset(struct stage *s, struct forge *f)
{
	forge_header(f, WIRE_RESET, 0, 0, 0);
	forge_add(f, RESET_BYTES - 1);
}

static void make_version(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	f->bytes[WIRE_AT_VERSION_TYPE] = (WIRE_VERSION + 1) << 4 | WIRE_PAYLOAD;
}

static void make_version_hello(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_HELLO, 0);
	f->bytes[WIRE_AT_VERSION_TYPE] = (WIRE_VERSION + 1) << 4 | WIRE_HELLO;
}

static void make_type(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	f->bytes[WIRE_AT_VERSION_TYPE] = WIRE_VERSION << 4 | 15;
}

static void make_type_zero(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	f->bytes[WIRE_AT_VERSION_TYPE] = WIRE_VERSION << 4;
}

static void make_flags(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	f->bytes[WIRE_AT_FLAGS] = WIRE_FLAG_SECURE;
}

static void make_unknown_conn(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	wire_put32(f->bytes + WIRE_AT_CONN, node_conn_to(victim(s), PEER) ^ 0x10000);
	forge_add(f, 0);
}

static void make_conn_beyond_table(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	wire_put32(f->bytes + WIRE_AT_CONN, UINT32_MAX);
}

static void make_address(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, 0, TESTKIT_CHUNK);
}

static void make_incarnation(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, 0, TESTKIT_CHUNK);
	wire_put16(f->bytes + WIRE_AT_CHECK, stage_check(s) ^ 1);
}

static void make_duplicate(struct stage *s, struct forge *f)
{
	*f = s->captured;
}

static void make_future(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, 0, TESTKIT_CHUNK);
	wire_put64(f->bytes + WIRE_AT_PN, UINT64_MAX - 1);
}

static void make_unknown_frame(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	*forge_add(f, 4) = 200;
}

static void make_half_frame(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	*forge_add(f, GRANT_BYTES - 1) = FRAME_GRANT;
}

static void make_data_beyond_packet(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, 0, TESTKIT_CHUNK);
	f->length--;
}

static void make_message_beyond_packet(struct stage *s, struct forge *f)
{
	stage_message(s, f, 0, 0, 100, 100);
	f->length--;
}

static void make_ack_beyond_packet(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, ACK_AT_BITMAP + 8);
	frame[0] = FRAME_ACK;
	frame[ACK_AT_WORDS] = 16;
}

static void make_unknown_stream(struct stage *s, struct forge *f)
{
	stage_data(s, f, handle_make(77, 1), 0, TESTKIT_CHUNK);
}

static void make_stream_beyond_table(struct stage *s, struct forge *f)
{
	stage_data(s, f, UINT32_MAX, 0, TESTKIT_CHUNK);
}

static void make_stale_stream(struct stage *s, struct forge *f)
{
	stage_data(s, f, s->stale, 0, TESTKIT_CHUNK);
}

static void make_chunk_range(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, 90, TESTKIT_CHUNK);
}

static void make_chunk_huge(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, UINT32_MAX, TESTKIT_CHUNK);
}

static void make_chunk_size(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, 0, TESTKIT_CHUNK - 64);
}

static void make_chunk_empty(struct stage *s, struct forge *f)
{
	stage_data(s, f, victim(s)->edges[s->in].handle, 0, 0);
}

static void stage_part(struct stage *s, struct forge *f, uint32_t chunk, uint32_t offset,
		       uint32_t bytes)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, PART_FRAME_BYTES + bytes);
	frame[0] = FRAME_PART;
	wire_put16(frame + DATA_AT_LENGTH, (uint16_t)bytes);
	wire_put32(frame + DATA_AT_STREAM, victim(s)->edges[s->in].handle);
	wire_put32(frame + DATA_AT_CHUNK, chunk);
	wire_put16(frame + PART_AT_OFFSET, (uint16_t)offset);
}

static void make_part_range(struct stage *s, struct forge *f)
{
	stage_part(s, f, 90, 0, PART_BYTES);
}

static void make_part_between(struct stage *s, struct forge *f)
{
	stage_part(s, f, 0, 64, PART_BYTES);
}

static void make_part_beyond(struct stage *s, struct forge *f)
{
	stage_part(s, f, 0, 56 * PART_BYTES, 64);
}

static void make_part_too_long(struct stage *s, struct forge *f)
{
	stage_part(s, f, 0, PART_BYTES, PART_BYTES);
}

static void stage_ack(struct stage *s, struct forge *f, uint64_t largest, uint64_t bits,
		      uint32_t words)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, ACK_AT_BITMAP + 8 * words);
	frame[0] = FRAME_ACK;
	frame[ACK_AT_WORDS] = (uint8_t)words;
	wire_put64(frame + ACK_AT_LARGEST, largest);
	for (uint32_t i = 0; i < words; i++)
		wire_put64(frame + ACK_AT_BITMAP + 8 * i, bits);
}

static void make_ack_unsent(struct stage *s, struct forge *f)
{
	stage_ack(s, f, 1000000, UINT64_MAX, 1);
}

static void make_ack_huge(struct stage *s, struct forge *f)
{
	stage_ack(s, f, UINT64_MAX, UINT64_MAX, 16);
}

static void make_ack_one_beyond(struct stage *s, struct forge *f)
{
	stage_ack(s, f, 0, UINT64_MAX, 1); /* the largest was sent, a bit above was not */
}

static void make_ack_below_zero(struct stage *s, struct forge *f)
{
	stage_ack(s, f, 0, 0, 2);
}

static void make_grant_overflow(struct stage *s, struct forge *f)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, GRANT_BYTES);
	frame[0] = FRAME_GRANT;
	wire_put32(frame + GRANT_AT_STREAM, s->w.nodes[PEER].edges[s->peer_in].handle);
	wire_put32(frame + GRANT_AT_CHUNKS, 101);
}

static void make_msg_future(struct stage *s, struct forge *f)
{
	stage_message(s, f, 32, 0, 100, 100);
}

static void make_msg_too_long(struct stage *s, struct forge *f)
{
	stage_message(s, f, 0, 0, MSG_BYTES_MAX + 1, MSG_FRAGMENT_BYTES);
}

static void make_msg_fragment_beyond(struct stage *s, struct forge *f)
{
	stage_message(s, f, 0, 1, 100, 100);
}

static void make_msg_fragment_length(struct stage *s, struct forge *f)
{
	stage_message(s, f, 0, 0, 2000, 100);
}

static void make_msg_empty(struct stage *s, struct forge *f)
{
	stage_message(s, f, 0, 0, 0, 0);
}

static void make_cookie_of_the_future(struct stage *s, struct forge *f)
{
	stage_bad_cookie(s, f);
	wire_put64(f->bytes + WIRE_BODY + HELLO_AT_TIME, UINT64_MAX);
}

static void make_hello_reserved(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_HELLO, 0);
	f->bytes[WIRE_BODY + HELLO_AT_PATH] = 1;
}

static void make_hello_small_mtu(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_HELLO, 0);
	wire_put16(f->bytes + WIRE_BODY + HELLO_AT_MTU, 100);
}

static void make_cookie_nobody(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_COOKIE, 0x00050005);
}

static void make_cookie_up(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_COOKIE, node_conn_to(victim(s), PEER));
	wire_put64(f->bytes + WIRE_BODY + HELLO_AT_INCARNATION, victim(s)->config.incarnation);
}

static void make_accept_up(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_ACCEPT, node_conn_to(victim(s), PEER));
	uint8_t *body = f->bytes + WIRE_BODY;
	wire_put64(body + HELLO_AT_PEER, victim(s)->config.incarnation);
	wire_put16(f->bytes + WIRE_AT_CHECK,
		   wire_check(0x1234567890, victim(s)->config.incarnation));
}

static void make_accept_wrong_life(struct stage *s, struct forge *f)
{
	make_accept_up(s, f);
	wire_put64(f->bytes + WIRE_BODY + HELLO_AT_PEER, 42);
}

static void make_accept_address(struct stage *s, struct forge *f)
{
	make_accept_up(s, f);
}

static void make_reset(struct stage *s, struct forge *f)
{
	(void)s;
	forge_header(f, WIRE_RESET, 0, 0, 0);
	wire_put32(forge_add(f, RESET_BYTES) + RESET_AT_CONN, 0x00010001);
}

static void make_reset_unsent(struct stage *s, struct forge *f)
{
	forge_header(f, WIRE_RESET, 0, 0, 0);
	uint8_t *body = forge_add(f, RESET_BYTES);
	wire_put32(body + RESET_AT_CONN, node_conn_to(&s->w.nodes[PEER], VICTIM));
	wire_put16(body + RESET_AT_CHECK,
		   wire_check_conn(victim(s)->config.incarnation, node_conn_to(victim(s), PEER),
				   s->w.nodes[PEER].config.incarnation));
	wire_put64(body + RESET_AT_PN, 1000000);
}

static void make_short_chunk(struct stage *s, struct forge *f)
{
	stage_chunk(s, f, victim(s)->edges[s->in].handle, 0, 0);
	f->length = CHUNK_BODY - 1;
}

static void make_chunk_of_a_stream(struct stage *s, struct forge *f)
{
	stage_chunk(s, f, victim(s)->edges[s->in].handle, 0, TESTKIT_CHUNK);
}

static void make_chunk_of_no_stream(struct stage *s, struct forge *f)
{
	stage_chunk(s, f, handle_make(77, 1), 0, TESTKIT_CHUNK);
}

static void make_chunk_of_a_stale_stream(struct stage *s, struct forge *f)
{
	stage_chunk(s, f, s->stale, 0, TESTKIT_CHUNK);
}

static void make_chunk_of_another_life(struct stage *s, struct forge *f)
{
	make_chunk_of_a_stream(s, f);
	f->known ^= 1;
}

static void make_chunk_of_another_number(struct stage *s, struct forge *f)
{
	make_chunk_of_a_stream(s, f);
	f->number += 1 << 16;
}

static void make_chunk_of_nothing(struct stage *s, struct forge *f)
{
	stage_chunk(s, f, victim(s)->edges[s->in].handle, 0, 0);
}

static void make_chunk_beyond(struct stage *s, struct forge *f)
{
	stage_chunk(s, f, victim(s)->edges[s->in].handle, 90, TESTKIT_CHUNK);
}

static void make_chunk_secure(struct stage *s, struct forge *f)
{
	make_chunk_of_a_stream(s, f);
	f->bytes[WIRE_AT_FLAGS] = WIRE_FLAG_SECURE;
}

static const struct cause causes[] = {
	{"CHUNK of 15 bytes", make_short_chunk, PEER, EXPECT(drop_truncated)},
	{"CHUNK, other source address", make_chunk_of_a_stream, STRANGER, EXPECT(drop_address)},
	{"CHUNK from nobody to nobody", make_chunk_of_no_stream, STRANGER,
	 EXPECT(drop_unknown_conn)},
	{"CHUNK, unknown stream", make_chunk_of_no_stream, PEER, EXPECT(drop_unknown_stream)},
	{"CHUNK, stale stream", make_chunk_of_a_stale_stream, PEER, EXPECT(drop_stale_stream)},
	{"CHUNK of another life", make_chunk_of_another_life, PEER, EXPECT(drop_checksum)},
	{"CHUNK of another number", make_chunk_of_another_number, PEER, EXPECT(drop_checksum)},
	{"CHUNK without payload", make_chunk_of_nothing, PEER, EXPECT(drop_chunk_size)},
	{"CHUNK beyond the edge", make_chunk_beyond, PEER, EXPECT(drop_chunk_range)},
	{"CHUNK, secure flag", make_chunk_secure, PEER, EXPECT(drop_flags)},
	{"19 bytes", make_short, PEER, EXPECT(drop_truncated)},
	{"no byte", make_empty, PEER, EXPECT(drop_truncated)},
	{"HELLO of 1199 bytes", make_short_hello, STRANGER, EXPECT(drop_truncated)},
	{"short COOKIE", make_short_cookie, PEER, EXPECT(drop_truncated)},
	{"short RESET", make_short_reset, PEER, EXPECT(drop_truncated)},
	{"other version", make_version, PEER, EXPECT(drop_version)},
	{"HELLO of another version", make_version_hello, STRANGER, EXPECT(drop_version)},
	{"type 15", make_type, PEER, EXPECT(drop_type)},
	{"type 0", make_type_zero, PEER, EXPECT(drop_type)},
	{"secure flag", make_flags, PEER, EXPECT(drop_flags)},
	{"HELLO, reserved field", make_hello_reserved, STRANGER, EXPECT(drop_flags)},
	{"HELLO, MTU 100", make_hello_small_mtu, STRANGER, EXPECT(drop_flags)},
	{"other generation of a connection", make_unknown_conn, PEER, EXPECT(drop_unknown_conn)},
	{"connection beyond the table", make_conn_beyond_table, PEER, EXPECT(drop_unknown_conn)},
	{"COOKIE for nobody", make_cookie_nobody, PEER, EXPECT(drop_unknown_conn)},
	{"other source address", make_address, STRANGER, EXPECT(drop_address)},
	{"ACCEPT, other source address", make_accept_address, STRANGER, EXPECT(drop_address)},
	{"wrong incarnation check", make_incarnation, PEER, EXPECT(drop_incarnation)},
	{"ACCEPT for another life", make_accept_wrong_life, PEER, EXPECT(drop_incarnation)},
	{"COOKIE when up", make_cookie_up, PEER, EXPECT(drop_state)},
	{"ACCEPT when up", make_accept_up, PEER, EXPECT(drop_state)},
	{"a packet again", make_duplicate, PEER, EXPECT(drop_duplicate)},
	{"packet number of the future", make_future, PEER, EXPECT(drop_future)},
	{"unknown frame", make_unknown_frame, PEER, EXPECT(drop_frame)},
	{"half a frame", make_half_frame, PEER, EXPECT(drop_frame)},
	{"DATA beyond the packet", make_data_beyond_packet, PEER, EXPECT(drop_frame)},
	{"MSG beyond the packet", make_message_beyond_packet, PEER, EXPECT(drop_frame)},
	{"ACK beyond the packet", make_ack_beyond_packet, PEER, EXPECT(drop_frame)},
	{"unknown stream", make_unknown_stream, PEER, EXPECT(drop_unknown_stream)},
	{"stream beyond the table", make_stream_beyond_table, PEER, EXPECT(drop_unknown_stream)},
	{"stream of another generation", make_stale_stream, PEER, EXPECT(drop_stale_stream)},
	{"chunk beyond the edge", make_chunk_range, PEER, EXPECT(drop_chunk_range)},
	{"chunk 2^32 - 1", make_chunk_huge, PEER, EXPECT(drop_chunk_range)},
	{"short chunk", make_chunk_size, PEER, EXPECT(drop_chunk_size)},
	{"part of a chunk beyond the edge", make_part_range, PEER, EXPECT(drop_chunk_range)},
	{"part that begins within another", make_part_between, PEER, EXPECT(drop_chunk_size)},
	{"part beyond its chunk", make_part_beyond, PEER, EXPECT(drop_chunk_size)},
	{"part that is too long", make_part_too_long, PEER, EXPECT(drop_chunk_size)},
	{"empty chunk", make_chunk_empty, PEER, EXPECT(drop_chunk_size)},
	{"ACK of packets never sent", make_ack_unsent, PEER, EXPECT(drop_ack_unsent)},
	{"ACK of packet 2^64 - 1", make_ack_huge, PEER, EXPECT(drop_ack_unsent)},
	{"ACK with a bit too many", make_ack_one_beyond, PEER, EXPECT(drop_ack_unsent)},
	{"ACK below packet 0", make_ack_below_zero, PEER, EXPECT(drop_ack_unsent)},
	{"GRANT beyond the stream", make_grant_overflow, PEER, EXPECT(drop_grant_overflow)},
	{"MSG beyond the window", make_msg_future, PEER, EXPECT(drop_msg_range)},
	{"MSG too long", make_msg_too_long, PEER, EXPECT(drop_msg_range)},
	{"MSG fragment beyond the end", make_msg_fragment_beyond, PEER, EXPECT(drop_msg_range)},
	{"MSG fragment of wrong length", make_msg_fragment_length, PEER, EXPECT(drop_msg_range)},
	{"MSG without bytes", make_msg_empty, PEER, EXPECT(drop_msg_range)},
	{"wrong cookie", stage_bad_cookie, STRANGER, EXPECT(drop_cookie)},
	{"cookie of the future", make_cookie_of_the_future, STRANGER, EXPECT(drop_cookie)},
	{"RESET out of the blue", make_reset, STRANGER, EXPECT(drop_reset)},
	{"RESET for a packet never sent", make_reset_unsent, PEER, EXPECT(drop_reset)},
};

static uint32_t events_seen;

static void count_event(struct node *n, const struct record *event)
{
	(void)n;
	(void)event;
	events_seen++;
}

static void each_cause_has_its_counter(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	(void)state;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct forge f;
		stage_open(&s, &o);
		struct counters before = victim(&s)->counters;
		victim(&s)->on_event = count_event;
		events_seen = 0;
		causes[i].make(&s, &f);
		if (f.length >= CHUNK_BODY)
			forge_seal(&f);
		forge_send(&s.w, &f, causes[i].from, VICTIM);
		world_run(&s.w, 400 * WORLD_US);
		assert_int_equal(victim(&s)->counters.rx_pkts - before.rx_pkts, 1);
		stage_expect_only(causes[i].name, &before, &victim(&s)->counters, causes[i].counter,
				  1);
		if (events_seen)
			fail_msg("%s: control hears of it", causes[i].name);
		assert_int_equal(engine_connections(victim(&s)->engine), 1);
		/* no more than one small answer to a stranger */
		assert_true(victim(&s)->counters.tx_bytes - before.tx_bytes <= f.length + 100u);
		stage_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cause_has_its_counter),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
