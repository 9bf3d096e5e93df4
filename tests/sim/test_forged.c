/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forged packets, each with a valid checksum unless that is the point: every cause of a drop
 * counts on its own counter, exactly once, and nothing else changes.
 */
#include "forge.h"
#include "testkit.h"

#define RTT_NS	  (100 * WORLD_US)
#define WITHIN_NS (60 * WORLD_S)

enum { PEER = 0, VICTIM = 1, STRANGER = 2, ABSENT = 3, NODES = 4 };

struct stage {
	struct world w;
	uint64_t last_pn;      /* newest packet PEER -> VICTIM */
	struct forge captured; /* its bytes */
	uint32_t sink, in;     /* an IN edge of the victim, nothing sent yet */
	uint32_t source, out;  /* an OUT edge of the victim, waiting for its producer */
	uint32_t peer_in;      /* where that one goes */
	uint32_t stale;	       /* a stream of an earlier generation */
};

static enum network_verdict stage_tap(void *context, const struct network_packet *p)
{
	struct stage *s = context;
	if (p->from == PEER && p->to == VICTIM &&
	    (p->data[WIRE_AT_VERSION_TYPE] & 15) == WIRE_PAYLOAD) {
		uint64_t pn = wire_get64(p->data + WIRE_AT_PN);
		if (pn >= s->last_pn) {
			s->last_pn = pn;
			s->captured.length = p->length;
			memcpy(s->captured.bytes, p->data, p->length);
		}
	}
	return NETWORK_PASS;
}

static struct node *victim(struct stage *s)
{
	return &s->w.nodes[VICTIM];
}

/* Connected, quiet, with one idle edge in each direction. */
static void stage_open(struct stage *s, const struct node_options *o)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	memset(s, 0, sizeof(*s));
	world_init(&s->w, NODES, &link, o, TESTKIT_SEED, false);
	s->w.net.rule = stage_tap;
	s->w.net.rule_context = s;
	node_kill(&s->w.nodes[ABSENT]);
	assert_true(world_connect(&s->w, PEER, VICTIM, WITHIN_NS) != UINT64_MAX);
	struct transfer old = testkit_begin(&s->w, PEER, VICTIM, 10000, TESTKIT_CHUNK, 1);
	assert_true(world_buffer_done(&s->w, VICTIM, old.sink, WITHIN_NS) != UINT64_MAX);
	s->stale = handle_make(0, 1);
	node_drop_buffer(victim(s), old.sink);
	world_run(&s->w, WORLD_MS);
	victim(s)->in_ids.next = 0; /* the same index, second generation */
	s->sink = node_sink(victim(s), 100 * TESTKIT_CHUNK, TESTKIT_CHUNK, 2);
	s->in = node_in(victim(s), s->sink, PEER, 0, 90);
	s->source = node_source(victim(s), 100 * TESTKIT_CHUNK, TESTKIT_CHUNK, 3, 0);
	uint32_t far = node_sink(&s->w.nodes[PEER], 100 * TESTKIT_CHUNK, TESTKIT_CHUNK, 3);
	s->peer_in = node_in(&s->w.nodes[PEER], far, VICTIM, 0, 0);
	s->out = node_out(victim(s), s->source, PEER, s->w.nodes[PEER].edges[s->peer_in].handle, 0,
			  0);
	world_run(&s->w, 5 * WORLD_MS);
}

static void stage_close(struct stage *s)
{
	/* after all that the real thing still works */
	struct node_edge *in = &victim(s)->edges[s->in];
	uint32_t source = node_source(&s->w.nodes[PEER], 100 * TESTKIT_CHUNK, TESTKIT_CHUNK, 2,
				      100 * TESTKIT_CHUNK);
	uint32_t out = node_out(&s->w.nodes[PEER], source, VICTIM, in->handle, 0, 90);
	node_advance(victim(s), s->source, 100 * TESTKIT_CHUNK);
	assert_true(world_edge_ended(&s->w, PEER, out, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(s->w.nodes[PEER].edges[out].state, EDGE_DONE);
	assert_true(world_edge_ended(&s->w, VICTIM, s->out, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(victim(s)->edges[s->out].state, EDGE_DONE);
	testkit_clean(&s->w);
	world_free(&s->w);
}

static uint16_t stage_check(struct stage *s)
{
	return wire_check_conn(s->w.nodes[PEER].config.incarnation,
			       node_conn_to(&s->w.nodes[PEER], VICTIM),
			       victim(s)->config.incarnation);
}

/* The start of a packet that PEER could send next. */
static void stage_payload(struct stage *s, struct forge *f)
{
	forge_header(f, WIRE_PAYLOAD, stage_check(s), node_conn_to(victim(s), PEER),
		     s->last_pn + 1);
}

static void stage_data(struct stage *s, struct forge *f, uint32_t stream, uint32_t chunk,
		       uint32_t bytes)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, DATA_BYTES + bytes);
	frame[0] = FRAME_DATA;
	wire_put16(frame + DATA_AT_LENGTH, (uint16_t)bytes);
	wire_put32(frame + DATA_AT_STREAM, stream);
	wire_put32(frame + DATA_AT_CHUNK, chunk);
}

static void stage_message(struct stage *s, struct forge *f, uint32_t id, uint32_t fragment,
			  uint32_t total, uint32_t bytes)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, MSG_FRAME_BYTES + bytes);
	frame[0] = FRAME_MSG;
	wire_put16(frame + MSG_AT_LENGTH, (uint16_t)bytes);
	wire_put32(frame + MSG_AT_ID, id);
	wire_put16(frame + MSG_AT_FRAGMENT, (uint16_t)fragment);
	wire_put32(frame + MSG_AT_TOTAL, total);
}

static void stage_hello(struct stage *s, struct forge *f, uint32_t type, uint32_t to_conn)
{
	(void)s;
	forge_header(f, type, 0, to_conn, 0);
	uint8_t *body = forge_add(f, WIRE_HELLO_MIN - WIRE_BODY);
	wire_put32(body + HELLO_AT_CONN, 0x00010001);
	wire_put16(body + HELLO_AT_MTU, 1500);
	wire_put16(body + HELLO_AT_WORKERS, 1);
	wire_put64(body + HELLO_AT_INCARNATION, 0x1234567890);
	wire_put32(body + HELLO_AT_WINDOW, 1024);
}

/* ---- the causes --------------------------------------------------------------------------- */

#define EXPECT(name) (offsetof(struct counters, name) / sizeof(uint64_t))

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

static void make_cookie(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_HELLO, 0);
	memset(f->bytes + WIRE_BODY + HELLO_AT_COOKIE, 0x5a, WIRE_COOKIE_BYTES);
	wire_put64(f->bytes + WIRE_BODY + HELLO_AT_TIME, world_now(&s->w) - 1000);
}

static void make_cookie_of_the_future(struct stage *s, struct forge *f)
{
	make_cookie(s, f);
	wire_put64(f->bytes + WIRE_BODY + HELLO_AT_TIME, UINT64_MAX);
}

static void make_hello_reserved(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_HELLO, 0);
	f->bytes[WIRE_BODY + HELLO_AT_RESERVED] = 1;
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

static const struct cause causes[] = {
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
	{"wrong cookie", make_cookie, STRANGER, EXPECT(drop_cookie)},
	{"cookie of the future", make_cookie_of_the_future, STRANGER, EXPECT(drop_cookie)},
	{"RESET out of the blue", make_reset, STRANGER, EXPECT(drop_reset)},
	{"RESET for a packet never sent", make_reset_unsent, PEER, EXPECT(drop_reset)},
};

/* Counters that answers and timers may move. */
static bool counter_is_free(size_t i)
{
	return i == EXPECT(rx_pkts) || i == EXPECT(rx_bytes) || i == EXPECT(tx_pkts) ||
	       i == EXPECT(tx_bytes) || i == EXPECT(tx_acks) || i == EXPECT(cookies_sent);
}

static void expect_only(const char *name, const struct counters *before,
			const struct counters *after, size_t counter, uint64_t times)
{
	const uint64_t *a = (const uint64_t *)before, *b = (const uint64_t *)after;
	for (size_t i = 0; i < COUNTERS_COUNT; i++) {
		uint64_t want = i == counter ? times : 0;
		if (!counter_is_free(i) && b[i] - a[i] != want)
			fail_msg("%s: %s moved by %llu instead of %llu", name,
				 counters_info()[i].name, (unsigned long long)(b[i] - a[i]),
				 (unsigned long long)want);
	}
}

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
		if (f.length >= WIRE_BODY)
			forge_seal(&f);
		forge_send(&s.w, &f, causes[i].from, VICTIM);
		world_run(&s.w, 400 * WORLD_US);
		assert_int_equal(victim(&s)->counters.rx_pkts - before.rx_pkts, 1);
		expect_only(causes[i].name, &before, &victim(&s)->counters, causes[i].counter, 1);
		if (events_seen)
			fail_msg("%s: control hears of it", causes[i].name);
		assert_int_equal(engine_connections(victim(&s)->engine), 1);
		/* no more than one small answer to a stranger */
		assert_true(victim(&s)->counters.tx_bytes - before.tx_bytes <= f.length + 100u);
		stage_close(&s);
	}
}

static void a_wrong_checksum_is_seen(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	struct forge f;
	(void)state;
	stage_open(&s, &o);
	struct counters before = victim(&s)->counters;
	stage_data(&s, &f, victim(&s)->edges[s.in].handle, 0, TESTKIT_CHUNK);
	forge_seal(&f);
	for (uint32_t i = 0; i < f.length; i++) {
		f.bytes[i] ^= (uint8_t)(1u << i % 8);
		forge_send(&s.w, &f, PEER, VICTIM);
		f.bytes[i] ^= (uint8_t)(1u << i % 8);
		world_run(&s.w, 100 * WORLD_US);
	}
	expect_only("checksum", &before, &victim(&s)->counters, EXPECT(drop_checksum), f.length);
	stage_close(&s);
}

static void every_truncation_is_refused(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	(void)state;
	stage_open(&s, &o);
	for (uint16_t length = 1; length < WIRE_BODY + DATA_BYTES + TESTKIT_CHUNK; length++) {
		struct forge f;
		struct counters before = victim(&s)->counters;
		if (length == WIRE_BODY)
			continue; /* no frame at all, and nothing wrong with it */
		stage_data(&s, &f, victim(&s)->edges[s.in].handle, 0, TESTKIT_CHUNK);
		f.length = length;
		if (length >= WIRE_BODY)
			forge_seal(&f);
		forge_send(&s.w, &f, PEER, VICTIM);
		world_run(&s.w, 100 * WORLD_US);
		expect_only("cut", &before, &victim(&s)->counters,
			    length < WIRE_BODY ? EXPECT(drop_truncated) : EXPECT(drop_frame), 1);
	}
	stage_close(&s);
}

static void old_packet_numbers_are_refused(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	struct forge old;
	(void)state;
	o.config.window_pkts = 64;
	stage_open(&s, &o);
	old = s.captured;
	uint32_t bytes = 2000 * TESTKIT_CHUNK;
	struct transfer t = testkit_begin(&s.w, PEER, VICTIM, bytes, TESTKIT_CHUNK, 9);
	assert_true(world_buffer_done(&s.w, VICTIM, t.sink, WITHIN_NS) != UINT64_MAX);
	world_run(&s.w, 10 * WORLD_MS);
	struct counters before = victim(&s)->counters;
	forge_send(&s.w, &old, PEER, VICTIM);
	world_run(&s.w, 400 * WORLD_US);
	expect_only("old", &before, &victim(&s)->counters, EXPECT(drop_old), 1);
	stage_close(&s);
}

static void chunks_beyond_the_credit_are_refused(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	struct forge f;
	uint32_t taken = 0;
	(void)state;
	o.config.credit_bytes = 4096; /* next to none beyond the unscheduled part */
	o.turn_ns = 3 * WORLD_MS;     /* all arrive before the next grant can leave */
	stage_open(&s, &o);
	struct counters before = victim(&s)->counters;
	for (uint32_t chunk = 0; chunk < 90; chunk++) {
		stage_data(&s, &f, victim(&s)->edges[s.in].handle, chunk, TESTKIT_CHUNK);
		memory_fill(f.bytes + WIRE_BODY + DATA_BYTES - (size_t)chunk * TESTKIT_CHUNK, 2,
			    (size_t)chunk * TESTKIT_CHUNK, ((size_t)chunk + 1) * TESTKIT_CHUNK);
		wire_put64(f.bytes + WIRE_AT_PN, s.last_pn + 1 + chunk);
		forge_seal(&f);
		forge_send(&s.w, &f, PEER, VICTIM);
	}
	world_run(&s.w, 10 * WORLD_MS);
	taken = (uint32_t)(victim(&s)->counters.rx_chunks - before.rx_chunks);
	printf("  taken %u of 90, refused %llu\n", taken,
	       (unsigned long long)(victim(&s)->counters.drop_over_credit -
				    before.drop_over_credit));
	assert_in_range(taken, 32, 64);
	assert_int_equal(victim(&s)->counters.drop_over_credit - before.drop_over_credit,
			 90 - taken);
	testkit_clean(&s.w);
	world_free(&s.w);
}

static void full_tables_refuse(void **state)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	struct world w;
	(void)state;
	o.config.conns_max = 4;
	world_init(&w, 8, &link, &o, TESTKIT_SEED, false);
	for (uint32_t i = 1; i < 5; i++)
		assert_true(world_connect(&w, i, 0, WITHIN_NS) != UINT64_MAX);
	assert_true(world_connect(&w, 5, 0, 200 * WORLD_MS) == UINT64_MAX);
	assert_true(w.nodes[0].counters.drop_conn_full > 0);
	assert_int_equal(engine_connections(w.nodes[0].engine), 4);
	struct transfer t = testkit_begin(&w, 1, 0, 100000, TESTKIT_CHUNK, 1);
	assert_true(world_buffer_done(&w, 0, t.sink, WITHIN_NS) != UINT64_MAX);
	/* one leaves, the next may come */
	node_disconnect(&w.nodes[1], 0);
	world_run(&w, 10 * WORLD_MS);
	assert_true(world_connect(&w, 6, 0, 5 * WORLD_S) != UINT64_MAX);
	testkit_clean(&w);
	world_free(&w);
}

/* 200,000 HELLOs per second from addresses that do not answer, while a transfer runs. */
static void a_flood_of_hellos_grows_nothing(void **state)
{
	static struct stage s;
	struct node_options o = world_options();
	(void)state;
	o.config.handshakes_per_s = 500;
	stage_open(&s, &o);
	struct counters before = victim(&s)->counters;
	struct transfer t = testkit_begin(&s.w, PEER, VICTIM, 4 << 20, TESTKIT_CHUNK, 9);
	uint64_t start = world_now(&s.w), sent = 0;
	while (world_now(&s.w) - start < 100 * WORLD_MS) {
		struct forge f;
		stage_hello(&s, &f, WIRE_HELLO, 0);
		wire_put32(f.bytes + WIRE_BODY + HELLO_AT_CONN, (uint32_t)sent + 1);
		if (sent % 3 == 1)
			make_cookie(&s, &f);
		forge_seal(&f);
		forge_send(&s.w, &f, STRANGER, VICTIM);
		sent++;
		world_run(&s.w, 12 * WORLD_US);
	}
	assert_true(world_buffer_done(&s.w, VICTIM, t.sink, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(engine_connections(victim(&s)->engine), 1);
	testkit_at_most("cookies per second to a flood",
			(double)(victim(&s)->counters.cookies_sent - before.cookies_sent) * 10,
			500 + 500);
	assert_true(victim(&s)->counters.drop_hello_rate > 0);
	assert_true(victim(&s)->counters.drop_cookie > 0);
	stage_close(&s);
}

/* Refused records alone must never crowd out what peers and edges have to say. */
static void refused_records_leave_room_for_events(void **state)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	struct world w;
	(void)state;
	world_init(&w, 2, &link, &o, TESTKIT_SEED, false);
	assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
	struct node *n = &w.nodes[1];
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t b = node_sink(n, 10000, TESTKIT_CHUNK, i);
		for (uint32_t k = 0; k < 2; k++)
			node_in(n, b, 0, 0, 0);
		world_run(&w, 10 * WORLD_US);
	}
	n->expect_refused = true;
	struct record bad = {.op = COMMAND_DROP_EDGE, .flags = RECORD_FLAG_IN};
	bad.edge.edge = handle_make(9, 9);
	uint32_t taken = 0;
	while (taken < 1000000 && engine_command(n->engine, &bad, world_now(&w)))
		taken++;
	assert_true(taken < 1000000);
	/* now the peer goes, and 120 edges fail, before control has read anything */
	node_disconnect(&w.nodes[0], 1);
	world_run(&w, 10 * WORLD_MS);
	assert_int_equal(engine_connections(n->engine), 0);
	assert_int_equal(n->refused, taken);
	for (uint32_t i = 0; i < n->edges_count; i++)
		assert_int_equal(n->edges[i].state, EDGE_FAILED);
	testkit_clean(&w);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cause_has_its_counter),
		cmocka_unit_test(a_wrong_checksum_is_seen),
		cmocka_unit_test(every_truncation_is_refused),
		cmocka_unit_test(old_packet_numbers_are_refused),
		cmocka_unit_test(chunks_beyond_the_credit_are_refused),
		cmocka_unit_test(full_tables_refuse),
		cmocka_unit_test(a_flood_of_hellos_grows_nothing),
		cmocka_unit_test(refused_records_leave_room_for_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
