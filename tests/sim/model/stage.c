/* SPDX-License-Identifier: BSD-3-Clause */
#include "stage.h"

/* The number near the last one that ends in these bits. */
static uint64_t stage_number(const struct stage *s, uint16_t low)
{
	return s->last_pn + (uint64_t)(int16_t)(low - (uint16_t)s->last_pn);
}

static enum network_verdict stage_tap(void *context, const struct network_packet *p)
{
	struct stage *s = context;
	bool brief = p->length >= CHUNK_BODY && wire_is_short(p->data);
	bool frames = p->length >= WIRE_BODY &&
		      p->data[WIRE_AT_VERSION_TYPE] == (WIRE_VERSION << 4 | WIRE_PAYLOAD);
	if (p->from == PEER && p->to == VICTIM && (brief || frames)) {
		uint64_t pn = brief ? stage_number(s, wire_get16(p->data + CHUNK_AT_PN))
				    : wire_get64(p->data + WIRE_AT_PN);
		if (pn < s->last_pn)
			return NETWORK_PASS;
		s->last_pn = pn;
		if (frames) {
			s->captured.length = p->length;
			memcpy(s->captured.bytes, p->data, p->length);
		}
	}
	return NETWORK_PASS;
}

struct node *victim(struct stage *s)
{
	return &s->w.nodes[VICTIM];
}

/* Connected, quiet, with one idle edge in each direction. */
void stage_open(struct stage *s, const struct node_options *o)
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

void stage_close(struct stage *s)
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

uint16_t stage_check(struct stage *s)
{
	return wire_check_conn(s->w.nodes[PEER].config.incarnation,
			       node_conn_to(&s->w.nodes[PEER], VICTIM),
			       victim(s)->config.incarnation);
}

/* The start of a packet that PEER could send next. */
void stage_payload(struct stage *s, struct forge *f)
{
	forge_header(f, WIRE_PAYLOAD, stage_check(s), node_conn_to(victim(s), PEER),
		     s->last_pn + 1);
}

void stage_data(struct stage *s, struct forge *f, uint32_t stream, uint32_t chunk, uint32_t bytes)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, DATA_BYTES + bytes);
	frame[0] = FRAME_DATA;
	wire_put16(frame + DATA_AT_LENGTH, (uint16_t)bytes);
	wire_put32(frame + DATA_AT_STREAM, stream);
	wire_put32(frame + DATA_AT_CHUNK, chunk);
}

void stage_chunk(struct stage *s, struct forge *f, uint32_t stream, uint32_t chunk, uint32_t bytes)
{
	memset(f, 0, sizeof(*f));
	f->known = wire_crc_conn(s->w.nodes[PEER].config.incarnation,
				 node_conn_to(&s->w.nodes[PEER], VICTIM),
				 victim(s)->config.incarnation, node_conn_to(victim(s), PEER));
	f->number = s->last_pn + 1;
	wire_chunk(f->bytes, f->number, stream, chunk, 0);
	f->length = CHUNK_BODY;
	forge_add(f, bytes);
}

void stage_message(struct stage *s, struct forge *f, uint32_t id, uint32_t fragment, uint32_t total,
		   uint32_t bytes)
{
	stage_payload(s, f);
	uint8_t *frame = forge_add(f, MSG_FRAME_BYTES + bytes);
	frame[0] = FRAME_MSG;
	wire_put16(frame + MSG_AT_LENGTH, (uint16_t)bytes);
	wire_put32(frame + MSG_AT_ID, id);
	wire_put16(frame + MSG_AT_FRAGMENT, (uint16_t)fragment);
	wire_put32(frame + MSG_AT_TOTAL, total);
}

void stage_hello(struct stage *s, struct forge *f, uint32_t type, uint32_t to_conn)
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

void stage_bad_cookie(struct stage *s, struct forge *f)
{
	stage_hello(s, f, WIRE_HELLO, 0);
	memset(f->bytes + WIRE_BODY + HELLO_AT_COOKIE, 0x5a, WIRE_COOKIE_BYTES);
	wire_put64(f->bytes + WIRE_BODY + HELLO_AT_TIME, world_now(&s->w) - 1000);
}

/* Counters that answers and timers may move. */
static bool counter_is_free(size_t i)
{
	return i == EXPECT(rx_pkts) || i == EXPECT(rx_bytes) || i == EXPECT(tx_pkts) ||
	       i == EXPECT(tx_bytes) || i == EXPECT(tx_acks) || i == EXPECT(cookies_sent);
}

void stage_expect_only(const char *name, const struct counters *before,
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
