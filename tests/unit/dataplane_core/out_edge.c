/* SPDX-License-Identifier: BSD-3-Clause */
/* Which chunk leaves next: against a plain search; credit, grants, resets, refusals. */
#include "fixtures/core_test.h"

enum { CHUNKS = 330, STREAMS = 2048 };

struct naive {
	struct rig *r;
	struct peer peer;
	struct buffer *b;
	struct out_edge *o;
	bool ready[CHUNKS], sent[CHUNKS];
	uint32_t first, end, sent_count, credit;
};

/* A buffer that fills in any order, and one OUT edge over part of it; some chunks not wanted. */
static void naive_begin(struct naive *n, struct rig *r, uint64_t *seed)
{
	struct record buffer = record_buffer(0, (uint64_t)CHUNKS * RIG_CHUNK);
	uint64_t *unwanted = rig_bitmap(r, RIG_BUFFERS);

	memset(n, 0, sizeof(*n));
	n->r = r;
	n->peer = rig_connect(r, 1);
	n->first = (uint32_t)draw_below(seed, CHUNKS);
	n->end = n->first + 1 + (uint32_t)draw_below(seed, CHUNKS - n->first);
	for (uint32_t k = 0; k < CHUNKS; k++) {
		n->sent[k] = draw_below(seed, 4) == 0;
		unwanted[k / 64] |= (uint64_t)n->sent[k] << (k % 64);
	}
	rig_command(r, &buffer);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &n->peer, n->first, n->end - n->first);
	rig_command(r, &out);
	n->b = buffer_find(r->e, buffer.buffer.buffer);
	n->o = out_edge_find(r->e, out.edge.edge);
	n->credit = (uint32_t)numbers_min(UNSCHEDULED_CHUNKS, n->end - n->first);
	assert_int_equal(n->o->credit, n->credit);
	uint32_t total = 0;
	for (uint32_t k = n->first; k < n->end; k++)
		total += !n->sent[k];
	assert_int_equal(n->o->total, total);
}

static uint32_t naive_next(const struct naive *n)
{
	if (n->sent_count >= n->credit)
		return CHUNK_NONE;
	for (uint32_t k = n->first; k < n->end; k++)
		if (n->ready[k] && !n->sent[k])
			return k;
	return CHUNK_NONE;
}

static void naive_step(struct naive *n, uint64_t *seed)
{
	uint32_t chunk = (uint32_t)draw_below(seed, CHUNKS);

	switch (draw_below(seed, 8)) {
	case 0: /* a late or an early grant */
		chunk = (uint32_t)draw_below(seed, n->end - n->first + 1);
		assert_int_equal(out_edge_granted(n->r->e, n->peer.c, 0x70000, chunk),
				 VERDICT_TAKEN);
		n->credit = (uint32_t)numbers_max(n->credit, chunk);
		break;
	case 1:
	case 2:
	case 3:
		if (!n->ready[chunk])
			buffer_ready(n->r->e, n->b, chunk);
		n->ready[chunk] = true;
		break;
	default:
		chunk = out_edge_next(n->r->e, n->o);
		assert_int_equal(chunk, naive_next(n));
		if (chunk == CHUNK_NONE) {
			assert_true(list_empty(&n->o->active));
			break;
		}
		out_edge_sent(n->o, chunk);
		n->sent[chunk] = true;
		n->sent_count++;
	}
	if (naive_next(n) != CHUNK_NONE) /* edges with something to send are asked */
		assert_false(list_empty(&n->o->active));
}

static void next_is_the_lowest_ready_unsent_chunk(void **state)
{
	uint64_t seed = 2024;

	(void)state;
	for (uint32_t round = 0; round < 60; round++) {
		struct naive n;

		naive_begin(&n, rig_new(NULL), &seed);
		for (uint32_t step = 0; step < 3 * CHUNKS; step++)
			naive_step(&n, &seed);
		rig_free(n.r);
	}
}

struct flow {
	struct rig *r;
	struct peer peer;
	struct out_edge *o;
};

static void flow_begin(struct flow *f, struct rig *r, uint32_t first, uint32_t chunks)
{
	struct record source =
		record_source(0, (uint64_t)CHUNKS * RIG_CHUNK, (uint64_t)CHUNKS * RIG_CHUNK);

	f->r = r;
	f->peer = rig_connect(r, 1);
	rig_command(r, &source);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &f->peer, first, chunks);
	rig_command(r, &out);
	f->o = out_edge_find(r->e, out.edge.edge);
	f->peer.c->cc.cwnd_bytes = 1 << 20;
}

/* Takes what leaves, acknowledges it; how many chunks. */
static uint32_t flow_run(struct flow *f)
{
	uint32_t n = 0;
	struct packet p;

	while (rig_take(f->r, &p)) {
		n += packet_frame(&p, FRAME_DATA) != NULL;
		peer_ack(f->r, &f->peer, p.pn);
	}
	return n;
}

static void flow_grant(struct flow *f, uint32_t stream, uint32_t chunks)
{
	struct packet p;

	peer_begin(f->r, &f->peer, &p);
	forge_grant(&p, stream, chunks);
	peer_send(f->r, &f->peer, &p);
}

static void credit_is_never_exceeded(void **state)
{
	struct flow f;

	flow_begin(&f, *state, 10, 300);
	assert_int_equal(flow_run(&f), UNSCHEDULED_CHUNKS);
	flow_grant(&f, 0x70000, 100);
	assert_int_equal(flow_run(&f), 100 - UNSCHEDULED_CHUNKS);
	flow_grant(&f, 0x70000, 40);  /* an older one, late */
	flow_grant(&f, 0x70001, 300); /* another stream */
	flow_grant(&f, 0, 300);
	assert_int_equal(flow_run(&f), 0);
	rig_drops(f.r, NULL);
	flow_grant(&f, 0x70000, 301);
	rig_drops(f.r, "drop_grant_overflow", 1, NULL);
	flow_grant(&f, 0x70000, UINT32_MAX);
	rig_drops(f.r, "drop_grant_overflow", 1, NULL);
	assert_int_equal(flow_run(&f), 0);
	assert_int_equal(f.o->credit, 100);
	flow_grant(&f, 0x70000, 300);
	assert_int_equal(flow_run(&f), 200);
	assert_int_equal(rig_expect(f.r, EVENT_OUT_DONE).edge.chunks, 300);
	rig_silent(f.r);
}

/* Only while there is something that it could send. */
static void a_wait_for_credit_is_counted(void **state)
{
	const uint64_t wait_ns = 7000000;
	struct flow f;

	flow_begin(&f, *state, 0, 100);
	const uint64_t *counted = &f.r->counters.wait_credit_ns;
	assert_int_equal(flow_run(&f), UNSCHEDULED_CHUNKS);
	for (int twice = 0; twice < 2; twice++) {
		rig_pass(f.r, wait_ns / 2);
		flow_run(&f);
	}
	assert_int_equal(*counted, 0);
	flow_grant(&f, 0x70000, 100);
	uint64_t first = *counted;
	assert_in_range(first, wait_ns - 1000000, wait_ns + 1000000);
	assert_int_equal(flow_run(&f), 100 - UNSCHEDULED_CHUNKS);
	rig_pass(f.r, wait_ns);
	flow_grant(&f, 0x70000, 100);
	assert_int_equal(*counted, first);
}

static void a_wait_for_the_path_is_counted(void **state)
{
	const uint64_t wait_ns = 2000000;
	struct flow f;
	struct packet p;
	uint64_t last = 0;

	flow_begin(&f, *state, 0, 20);
	const uint64_t *counted = &f.r->counters.wait_path_ns;
	f.peer.c->cc.cwnd_bytes = 4 * f.r->config.mtu;
	while (rig_take(f.r, &p))
		last = wire_get64(p.bytes + WIRE_AT_PN);
	assert_int_equal(*counted, 0);
	rig_pass(f.r, wait_ns);
	peer_ack(f.r, &f.peer, last);
	flow_run(&f);
	assert_in_range(*counted, wait_ns, 10 * wait_ns);
	uint64_t first = *counted;
	rig_pass(f.r, wait_ns); /* all is sent */
	assert_true(f.o->sent_count == 20 && *counted == first);
}

/* Sending a lost chunk again costs no credit. */
static void a_loss_costs_no_credit(void **state)
{
	struct flow f;
	struct packet p;
	uint32_t n = 0;

	flow_begin(&f, *state, 0, 100);
	while (rig_take(f.r, &p))
		n++;
	for (uint64_t pn = f.peer.c->tx.oldest_pn; pn < f.peer.c->tx.next_pn; pn++)
		if (sent_outstanding(f.r->e, f.peer.c, pn))
			sent_lose(f.r->e, f.peer.c, pn);
	f.peer.c->cc.cwnd_bytes = 1 << 20;
	assert_int_equal(flow_run(&f), UNSCHEDULED_CHUNKS);
	assert_int_equal(f.o->acked_count, UNSCHEDULED_CHUNKS);
	assert_int_equal(f.r->counters.tx_chunk_resends, UNSCHEDULED_CHUNKS);
}

static void a_reset_fails_the_edge_once(void **state)
{
	struct flow f;
	struct packet p;

	flow_begin(&f, *state, 0, 100);
	flow_run(&f);
	for (int k = 0; k < 3; k++) {
		peer_begin(f.r, &f.peer, &p);
		forge_reset_stream(&p, 0x70000);
		forge_reset_stream(&p, 0x70001);
		peer_send(f.r, &f.peer, &p);
	}
	struct record event = rig_expect(f.r, EVENT_EDGE_FAILED);
	assert_int_equal(event.reason, REASON_STREAM_RESET);
	assert_int_equal(event.flags, RECORD_FLAG_OUT);
	assert_int_equal(event.token, 200);
	rig_silent(f.r);
	flow_grant(&f, 0x70000, 100);
	assert_int_equal(flow_run(&f), 0);
	struct record drop = record_drop(RECORD_FLAG_OUT, record_handle(0));
	rig_command(f.r, &drop); /* a failed edge can be dropped, and its place used again */
	event = rig_expect(f.r, EVENT_DROPPED);
	assert_int_equal(event.flags, RECORD_FLAG_OUT);
	assert_int_equal(event.edge.edge, record_handle(0));
	assert_int_equal(event.edge.buffer, record_handle(0));
	assert_int_equal(event.token, 200);
	rig_drops(f.r, NULL);
}

static void a_reset_after_the_end_says_nothing(void **state)
{
	struct flow f;
	struct packet p;

	flow_begin(&f, *state, 0, 10);
	flow_run(&f);
	rig_expect(f.r, EVENT_OUT_DONE);
	peer_begin(f.r, &f.peer, &p);
	forge_reset_stream(&p, 0x70000);
	peer_send(f.r, &f.peer, &p);
	rig_silent(f.r);
	peer_begin(f.r, &f.peer, &p); /* nor does the end of the connection */
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	peer_send(f.r, &f.peer, &p);
	rig_expect(f.r, EVENT_PEER_DOWN);
	rig_silent(f.r);
}

static void nothing_to_send_is_done_at_once(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record source = record_source(0, (uint64_t)CHUNKS * RIG_CHUNK, 0);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &peer, 3, 200);

	memset(rig_bitmap(r, RIG_BUFFERS), 0xff, RIG_BITMAP_BYTES);
	rig_command(r, &source);
	rig_command(r, &out);
	assert_int_equal(rig_expect(r, EVENT_OUT_DONE).edge.edge, out.edge.edge);
	assert_int_equal(rig_drain(r), 0);
}

/* The place of an edge is used again while chunks of the former are on their way. */
static void acknowledgements_of_the_former_owner_do_not_count(void **state)
{
	struct flow f;
	struct packet p;
	uint64_t pn[UNSCHEDULED_CHUNKS];
	uint32_t n = 0;

	flow_begin(&f, *state, 0, UNSCHEDULED_CHUNKS);
	while (n < UNSCHEDULED_CHUNKS && rig_take(f.r, &p))
		if (packet_frame(&p, FRAME_DATA))
			pn[n++] = p.pn;
	assert_int_equal(n, UNSCHEDULED_CHUNKS);
	struct record drop = record_drop(RECORD_FLAG_OUT, record_handle(0));
	rig_command(f.r, &drop);
	rig_expect(f.r, EVENT_DROPPED);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &f.peer, 0, 1);
	out.edge.edge = handle_make(0, 8);
	out.edge.bitmap_offset += RIG_BITMAP_BYTES;
	rig_command(f.r, &out);
	while (n > 0)
		peer_ack(f.r, &f.peer, pn[--n]);
	assert_int_equal(f.o->acked_count, 0);
	rig_silent(f.r);
	assert_int_equal(flow_run(&f), 1);
	rig_expect(f.r, EVENT_OUT_DONE);
}

static void every_record_that_does_not_hold_is_refused(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct record source = record_source(0, (uint64_t)CHUNKS * RIG_CHUNK, 0), bad;
	struct record good = record_edge(COMMAND_OUT, 0, 0, &peer, 0, CHUNKS);

	rig_command(r, &source);
	rig_command(r, &good);
	good = record_edge(COMMAND_OUT, 1, 0, &peer, 0, CHUNKS);
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = 0);
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = 5);
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = handle_make(32, 1));
	REFUSE_RECORD(REASON_BUSY_ID, bad.edge.edge = record_handle(0));
	REFUSE_RECORD(REASON_BUSY_ID, bad.edge.edge = handle_make(0, 1));
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.buffer = 0);
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.buffer = record_handle(1));
	REFUSE_RECORD(REASON_STALE_EPOCH, bad.epoch = 0);
	REFUSE_RECORD(REASON_BAD_CONN, bad.edge.conn = 0);
	REFUSE_RECORD(REASON_BAD_CONN, bad.edge.conn = peer.conn + 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.chunks = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.chunks = CHUNKS + 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.chunks = UINT32_MAX);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.first_chunk = 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.first_chunk = CHUNKS);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.first_chunk = UINT32_MAX, bad.edge.chunks = 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset = 0);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset += 1);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset = r->config.store_bytes - 40);
	REFUSE_RECORD(REASON_BAD_RANGE, bad.edge.bitmap_offset = UINT64_MAX - 7);
	good = record_drop(RECORD_FLAG_OUT, record_handle(0));
	REFUSE_RECORD(REASON_BAD_ID, bad.edge.edge = record_handle(1));
	REFUSE_RECORD(REASON_STALE_EPOCH, bad.epoch = 0);
	bad = record_edge(COMMAND_OUT, 1, 0, &peer, 0, CHUNKS); /* the last fit for a bitmap */
	bad.edge.bitmap_offset = r->config.store_bytes - chunk_bitmap_bytes(CHUNKS);
	rig_command(r, &bad);
	rig_silent(r);
}

static void many_edges(struct engine_config *f)
{
	f->edges_max = STREAMS;
}

static uint32_t bucket_length(const struct list *head)
{
	uint32_t n = 0;

	for (const struct list *l = head->next; l != head; l = l->next)
		n++;
	return n;
}

/* A peer names its streams so that they would meet in one bucket: a GRANT of any of them, and of
 * one that is not there, costs a few steps, not a walk over all. */
static void streams_are_found_by_number(void **state)
{
	struct rig *r = rig_new(many_edges);
	struct peer peer = rig_connect(r, 1);
	struct record buffer = record_buffer(0, (uint64_t)CHUNKS * RIG_CHUNK);
	struct packet p;
	uint32_t listed = 0;

	rig_command(r, &buffer);
	for (uint32_t k = 0; k < STREAMS; k++) {
		struct record out = record_edge(COMMAND_OUT, 0, 0, &peer, 0, CHUNKS);

		out.edge.edge = record_handle(k);
		out.edge.stream = (k + 1) * STREAMS;
		rig_command(r, &out);
	}
	for (uint32_t k = 0; k <= r->e->stream_mask; k++) {
		uint32_t length = bucket_length(&r->e->by_stream[k]);

		assert_true(length < 16);
		listed += length;
	}
	assert_int_equal(listed, STREAMS);
	for (uint32_t k = 0; k < STREAMS; k += 7) {
		peer_begin(r, &peer, &p);
		forge_grant(&p, (k + 1) * STREAMS, CHUNKS - k % 8);
		forge_grant(&p, (k + 1) * STREAMS + 1, CHUNKS);
		peer_send(r, &peer, &p);
		assert_int_equal(out_edge_find(r->e, record_handle(k))->credit, CHUNKS - k % 8);
	}
	rig_drops(r, NULL);
	struct record drop = record_drop(RECORD_FLAG_OUT, record_handle(3));
	rig_command(r, &drop);
	conn_close(r->e, conn_find(r->e, peer.conn), REASON_CLOSED);
	for (uint32_t k = 0; k <= r->e->stream_mask; k++)
		assert_int_equal(bucket_length(&r->e->by_stream[k]), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next_is_the_lowest_ready_unsent_chunk),
		test_rig(credit_is_never_exceeded),
		test_rig(a_wait_for_credit_is_counted),
		test_rig(a_wait_for_the_path_is_counted),
		test_rig(a_loss_costs_no_credit),
		test_rig(a_reset_fails_the_edge_once),
		test_rig(a_reset_after_the_end_says_nothing),
		test_rig(nothing_to_send_is_done_at_once),
		test_rig(acknowledgements_of_the_former_owner_do_not_count),
		test_rig(every_record_that_does_not_hold_is_refused),
		cmocka_unit_test(streams_are_found_by_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
