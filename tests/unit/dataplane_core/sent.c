/* SPDX-License-Identifier: BSD-3-Clause */
/* What left, and what became of it: acknowledgements true, late, repeated and invented. */
#include "fixtures/core_test.h"

enum { CHUNKS = 700, RIG_WINDOW = 64, RIG_RING = 2 * RIG_WINDOW };

struct flow {
	struct rig *r;
	struct peer peer;
	struct conn *c;
	struct out_edge *o;
};

static void flow_begin(struct flow *f, struct rig *r, uint32_t chunks)
{
	struct record source =
		record_source(0, (uint64_t)chunks * RIG_CHUNK, (uint64_t)chunks * RIG_CHUNK);

	f->r = r;
	f->peer = rig_connect(r, 1);
	f->c = f->peer.c;
	rig_command(r, &source);
	struct record out = record_edge(COMMAND_OUT, 0, 0, &f->peer, 0, chunks);
	rig_command(r, &out);
	f->o = out_edge_find(r->e, out.edge.edge);
	assert_non_null(f->o);
	f->o->credit = chunks; /* neither credit nor congestion shall be in the way */
	f->c->cc.cwnd_bytes = 1 << 20;
}

/* The rings and the counts of a connection say the same. */
static void flow_check(const struct flow *f)
{
	const struct conn *c = f->c;
	uint64_t bytes = 0;
	uint32_t packets = 0;

	assert_true(c->tx.next_pn - c->tx.oldest_pn <= RIG_RING);
	for (uint64_t slot = 0; slot < RIG_RING; slot++) {
		bool out = c->tx.outstanding[slot / 64] >> (slot % 64) & 1;
		bool late = c->tx.late[slot / 64] >> (slot % 64) & 1;

		assert_int_equal(out, c->tx.sent[slot].state == SENT_OUTSTANDING);
		assert_false(out && late);
		packets += out;
		bytes += out ? c->tx.sent[slot].bytes : 0;
	}
	assert_int_equal(c->tx.inflight_pkts, packets);
	assert_int_equal(c->tx.inflight_bytes, bytes);
	for (uint64_t pn = c->tx.oldest_pn; pn < c->tx.next_pn; pn++)
		packets -= sent_outstanding(f->r->e, c, pn);
	assert_int_equal(packets, 0); /* none is older than the oldest */
	assert_true(f->o->acked_count <= f->o->total);
}

/* The number of the next packet that leaves with a chunk, or UINT64_MAX. */
static uint64_t flow_take(struct flow *f, uint32_t *chunk)
{
	struct packet p;

	while (rig_take(f->r, &p)) {
		const uint8_t *data = packet_frame(&p, FRAME_DATA);

		if (!data)
			continue; /* a ping */
		*chunk = wire_get32(data + DATA_AT_CHUNK);
		return p.pn;
	}
	return UINT64_MAX;
}

static void an_ack_counts_once(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 3);
	uint64_t pn = flow_take(&f, &chunk);
	for (int k = 0; k < 3; k++) {
		peer_ack(f.r, &f.peer, pn);
		assert_int_equal(f.o->acked_count, 1);
		flow_check(&f);
	}
	rig_drops(f.r, NULL);
}

/* [P7.3] */
static void late_before_the_resend(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 1);
	uint64_t pn = flow_take(&f, &chunk);
	uint32_t lost = f.c->cc.sample_lost;
	sent_lose(f.r->e, f.c, pn);
	assert_int_equal(f.c->tx.lost_count, 1);
	assert_int_equal(f.c->cc.sample_lost, lost + 1); /* the congestion control hears of it */
	peer_ack(f.r, &f.peer, pn);
	assert_int_equal(f.o->acked_count, 1);
	assert_int_equal(f.r->counters.lost_spurious, 1);
	rig_expect(f.r, EVENT_OUT_DONE);
	assert_int_equal(flow_take(&f, &chunk), UINT64_MAX);
	assert_int_equal(f.c->tx.lost_count, 0);
	flow_check(&f);
}

static void late_after_the_resend(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 1);
	uint64_t first = flow_take(&f, &chunk);
	sent_lose(f.r->e, f.c, first);
	uint64_t second = flow_take(&f, &chunk);
	assert_true(second > first && second != UINT64_MAX);
	peer_ack(f.r, &f.peer, first);
	assert_int_equal(f.o->acked_count, 0);
	peer_ack(f.r, &f.peer, first);
	assert_int_equal(f.r->counters.lost_spurious, 1);
	peer_ack(f.r, &f.peer, second);
	peer_ack(f.r, &f.peer, second);
	assert_int_equal(f.o->acked_count, 1);
	rig_expect(f.r, EVENT_OUT_DONE);
	rig_silent(f.r);
	flow_check(&f);
}

/* The next connection in the same place starts with clean rings. */
static void late_for_the_next_connection(void **state)
{
	struct flow f;
	uint32_t chunk;
	struct packet p;

	flow_begin(&f, *state, 20);
	for (int k = 0; k < 20; k++)
		sent_lose(f.r->e, f.c, flow_take(&f, &chunk));
	peer_begin(f.r, &f.peer, &p);
	forge_frame(&p, FRAME_CLOSE, CLOSE_BYTES);
	peer_send(f.r, &f.peer, &p);
	rig_expect(f.r, EVENT_EDGE_FAILED);
	rig_expect(f.r, EVENT_PEER_DOWN);
	f.r->now_ns += 1000000;
	struct peer next = rig_connect(f.r, 1);
	assert_ptr_equal(next.c, f.c);
	while (next.c->tx.next_pn < 30)
		sent_record(f.r->e, next.c, SENT_NOTHING, 0, 0, 60);
	for (uint64_t pn = 0; pn < next.c->tx.next_pn; pn++)
		peer_ack(f.r, &next, pn);
	assert_int_equal(f.r->counters.lost_spurious, 0);
	assert_int_equal(next.c->tx.lost_count, 0);
	assert_int_equal(next.c->tx.inflight_pkts, 0);
}

/* The slot of the lost packet serves another packet while its chunk still waits. */
static void late_after_the_slot_was_reused(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 1);
	uint64_t pn = flow_take(&f, &chunk);
	sent_lose(f.r->e, f.c, pn);
	while (f.c->tx.next_pn <= pn + RIG_RING)
		sent_record(f.r->e, f.c, SENT_NOTHING, 0, 0, 60);
	peer_ack(f.r, &f.peer, pn);
	assert_int_equal(f.o->acked_count, 0);
	pn = flow_take(&f, &chunk);
	assert_int_not_equal(pn, UINT64_MAX);
	peer_ack(f.r, &f.peer, pn);
	assert_int_equal(f.o->acked_count, 1);
	flow_check(&f);
}

/* The same, acknowledged before: the chunk must not leave, nor count, once more. */
static void late_and_then_the_slot_was_reused(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 2);
	uint64_t pn = flow_take(&f, &chunk), other = flow_take(&f, &chunk);
	sent_lose(f.r->e, f.c, pn);
	peer_ack(f.r, &f.peer, pn);
	assert_int_equal(f.o->acked_count, 1);
	while (f.c->tx.next_pn < pn + RIG_RING + 1)
		sent_record(f.r->e, f.c, SENT_NOTHING, 0, 0, 60);
	assert_int_equal(flow_take(&f, &chunk), UINT64_MAX);
	peer_ack(f.r, &f.peer, other);
	assert_int_equal(f.o->acked_count, 2);
	rig_expect(f.r, EVENT_OUT_DONE);
	flow_check(&f);
}

static void send_raw_ack(struct flow *f, uint64_t largest, uint32_t words, uint64_t fill)
{
	uint64_t bitmap[64];
	struct packet p;

	for (uint32_t k = 0; k < 64; k++)
		bitmap[k] = fill;
	peer_begin(f->r, &f->peer, &p);
	forge_ack(&p, largest, words, bitmap);
	peer_send(f->r, &f->peer, &p);
}

/* [P6.4] */
static void invented_acks_are_refused(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 40);
	while (flow_take(&f, &chunk) != UINT64_MAX)
		;
	uint64_t next = f.c->tx.next_pn;
	assert_in_range(next, 40, 63);
	const uint64_t largest[] = {next,
				    next + 1,
				    64,
				    1 << 20,
				    UINT64_C(1) << 63,
				    (UINT64_C(1) << 63) - 1,
				    UINT64_MAX - 63,
				    UINT64_MAX};
	for (size_t k = 0; k < sizeof(largest) / sizeof(largest[0]); k++) {
		send_raw_ack(&f, largest[k], 1, 1);
		rig_drops(f.r, "drop_ack_unsent", 1, NULL);
		assert_int_equal(f.o->acked_count, 0);
	}
	send_raw_ack(&f, next - 1, 1, UINT64_MAX); /* bits beyond what was sent */
	rig_drops(f.r, "drop_ack_unsent", 1, NULL);
	send_raw_ack(&f, next - 1, 1, UINT64_C(1) << next);
	rig_drops(f.r, "drop_ack_unsent", 1, NULL);
	send_raw_ack(&f, next - 1, 2, 1); /* more words than there are numbers */
	rig_drops(f.r, "drop_ack_unsent", 1, NULL);
	send_raw_ack(&f, next - 1, 0, 0);
	rig_drops(f.r, "drop_ack_unsent", 1, NULL);
	send_raw_ack(&f, next - 1, ACK_WORDS_MAX + 1, 0);
	rig_drops(f.r, "drop_ack_unsent", 1, NULL);
	assert_int_equal(f.o->acked_count, 0);
	assert_int_equal(f.c->tx.inflight_pkts, 40);
	send_raw_ack(&f, next - 1, 1, (UINT64_C(1) << next) - 1); /* exactly what was sent */
	rig_drops(f.r, NULL);
	assert_int_equal(f.o->acked_count, 40);
	flow_check(&f);
}

/* All that a window may hold is lost and nothing ever comes back: it still leaves again. */
static void a_lost_window_leaves_again(void **state)
{
	struct flow f;
	uint32_t chunk, again = 0;

	flow_begin(&f, *state, RIG_WINDOW);
	while (flow_take(&f, &chunk) != UINT64_MAX)
		;
	assert_int_equal(f.c->tx.inflight_pkts, RIG_WINDOW);
	for (uint64_t pn = f.c->tx.oldest_pn; pn < f.c->tx.next_pn; pn++)
		if (sent_outstanding(f.r->e, f.c, pn))
			sent_lose(f.r->e, f.c, pn);
	f.r->now_ns += 1000000;
	for (uint64_t pn; (pn = flow_take(&f, &chunk)) != UINT64_MAX; again++)
		peer_ack(f.r, &f.peer, pn);
	assert_int_equal(again, RIG_WINDOW);
	assert_int_equal(f.o->acked_count, RIG_WINDOW);
	flow_check(&f);
}

/* Only probe timeouts, no acknowledgement ever: every probe really sends something. */
static void probes_get_through_a_full_window(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, RIG_WINDOW);
	while (flow_take(&f, &chunk) != UINT64_MAX)
		;
	for (int k = 0; k < 5; k++) {
		uint64_t before = f.c->tx.next_pn;

		f.r->now_ns = loss_probe_ns(f.r->e, f.c);
		engine_tick(f.r->e, f.r->now_ns);
		rig_pass(f.r, 100000);
		assert_true(f.c->tx.next_pn > before);
		flow_check(&f);
	}
}

/* A packet is declared lost by the timer; then only acknowledgements leave, a whole ring of them.
 */
static void a_ring_of_acknowledgements_after_a_loss(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 2);
	uint64_t first = flow_take(&f, &chunk);
	uint64_t second = flow_take(&f, &chunk);
	peer_ack(f.r, &f.peer, second);
	f.r->e->now_ns = f.r->now_ns += 50000000;
	loss_detect(f.r->e, f.c);
	assert_false(sent_outstanding(f.r->e, f.c, first));
	assert_int_equal(f.c->tx.lost_count, 1);
	for (uint32_t k = 0; k < 3 * RIG_RING; k++) {
		sent_record(f.r->e, f.c, SENT_NOTHING, 0, 0, 60);
		flow_check(&f);
	}
	assert_int_equal(f.c->tx.lost_count, 1);
	assert_int_equal(f.r->counters.lost_pkts, 1);
	uint64_t pn = flow_take(&f, &chunk);
	peer_ack(f.r, &f.peer, pn);
	assert_int_equal(f.o->acked_count, 2);
}

/* An old packet that nobody acknowledges must not stop the ring. [P6.6] */
static void the_ring_pushes_out_its_oldest(void **state)
{
	struct flow f;
	uint32_t chunk;

	flow_begin(&f, *state, 1);
	assert_int_not_equal(flow_take(&f, &chunk), UINT64_MAX);
	for (uint32_t k = 0; k < RIG_RING; k++)
		sent_record(f.r->e, f.c, SENT_NOTHING, 0, 0, 60);
	assert_int_equal(f.r->counters.lost_pkts, 1);
	assert_int_equal(f.c->tx.inflight_pkts, 0);
	flow_check(&f);
	assert_int_not_equal(flow_take(&f, &chunk), UINT64_MAX);
}

static void an_item_of_a_dropped_edge_is_forgotten(void **state)
{
	struct flow f;
	uint32_t chunk;
	struct record drop = record_drop(RECORD_FLAG_OUT, record_handle(0));

	flow_begin(&f, *state, 2);
	uint64_t first = flow_take(&f, &chunk), second = flow_take(&f, &chunk);
	sent_lose(f.r->e, f.c, first);
	rig_command(f.r, &drop);
	rig_expect(f.r, EVENT_DROPPED);
	peer_ack(f.r, &f.peer, second);
	assert_int_equal(flow_take(&f, &chunk), UINT64_MAX);
	assert_int_equal(f.c->tx.lost_count, 0);
	assert_int_equal(f.c->tx.inflight_pkts, 0);
	rig_silent(f.r);
}

/* A lost chunk that the path does not carry now waits; acknowledged meanwhile, it is done. */
static void late_while_the_path_is_searched(void **state)
{
	struct flow f;
	uint32_t chunk;

	for (uint32_t late = 0; late < 2; late++) {
		flow_begin(&f, late == 0 ? *state : rig_new(NULL), 2);
		uint64_t first = flow_take(&f, &chunk), second = flow_take(&f, &chunk);
		f.c->tx.lost_head = RIG_RING - 1; /* the queue wraps */
		sent_lose(f.r->e, f.c, first);
		f.c->mtu = MTU_BASE;
		path_mtu_start(f.r->e, f.c);
		assert_int_equal(flow_take(&f, &chunk), UINT64_MAX);
		assert_int_equal(f.c->tx.lost_count, 1);
		if (late)
			peer_ack(f.r, &f.peer, first);
		assert_int_equal(f.o->acked_count, late);
		f.c->mtu = 1500;
		conn_wake(f.r->e, f.c);
		first = flow_take(&f, &chunk);
		assert_int_equal(first == UINT64_MAX, late);
		if (!late)
			peer_ack(f.r, &f.peer, first);
		peer_ack(f.r, &f.peer, second);
		assert_int_equal(f.o->acked_count, 2);
		rig_expect(f.r, EVENT_OUT_DONE);
		flow_check(&f);
		if (late)
			rig_free(f.r);
	}
}

struct model {
	uint64_t pn[16384]; /* packets of chunks that have left */
	uint32_t chunk[16384];
	uint32_t count;
	bool said[CHUNKS]; /* some packet with it was acknowledged while its slot was still known */
	uint32_t said_count;
};

static void model_ack(struct flow *f, struct model *m, uint64_t *seed)
{
	uint64_t words[ACK_WORDS_MAX] = {0};
	uint32_t from = m->count > 200 ? m->count - 200 : 0;
	uint64_t largest = m->pn[m->count - 1 - draw_below(seed, m->count > 20 ? 20 : m->count)];
	uint32_t count = (uint32_t)(1 + draw_below(seed, numbers_min(3, largest / 64 + 1)));
	uint64_t base = (largest / 64 + 1 - count) * 64;
	struct packet p;

	for (uint32_t k = from; k < m->count; k++) {
		if (m->pn[k] < base || m->pn[k] / 64 > largest / 64 || draw_below(seed, 3) == 0)
			continue;
		words[(m->pn[k] - base) / 64] |= UINT64_C(1) << (m->pn[k] % 64);
		if (f->c->tx.next_pn - m->pn[k] <= RIG_RING && !m->said[m->chunk[k]]) {
			m->said[m->chunk[k]] = true;
			m->said_count++;
		}
	}
	peer_begin(f->r, &f->peer, &p);
	forge_ack(&p, largest, count, words);
	peer_send(f->r, &f->peer, &p);
	rig_drops(f->r, NULL);
}

static void model_send(struct flow *f, struct model *m, uint64_t *seed)
{
	uint64_t pn;
	uint32_t chunk, n = (uint32_t)draw_below(seed, 40);

	while (n-- > 0 && (pn = flow_take(f, &chunk)) != UINT64_MAX) {
		assert_true(m->count < 16384);
		m->pn[m->count] = pn;
		m->chunk[m->count++] = chunk;
	}
}

/* Whatever is lost, late or repeated, the ring wraps many times: each chunk counts once. */
static void random_acknowledgements_count_each_chunk_once(void **state)
{
	struct flow f;
	struct model m = {0};
	struct record event;
	uint64_t seed = 0x5e17;

	flow_begin(&f, *state, CHUNKS);
	for (uint32_t step = 0; step < 20000 && f.o->acked_count < CHUNKS; step++) {
		f.r->now_ns += draw_below(&seed, 200000);
		engine_tick(f.r->e, f.r->now_ns);
		model_send(&f, &m, &seed);
		if (m.count > 0)
			model_ack(&f, &m, &seed);
		for (uint64_t k = draw_below(&seed, 8); k > 0 && f.c->tx.inflight_pkts > 0; k--) {
			uint64_t pn = f.c->tx.oldest_pn + draw_below(&seed, 64);
			if (pn < f.c->tx.next_pn && sent_outstanding(f.r->e, f.c, pn))
				sent_lose(f.r->e, f.c, pn);
		}
		if (draw_below(&seed, 4) == 0)
			for (uint64_t k = draw_below(&seed, 100); k > 0; k--)
				sent_record(f.r->e, f.c, SENT_NOTHING, 0, 0, 60);
		flow_check(&f);
		assert_true(f.o->acked_count <= m.said_count);
	}
	assert_int_equal(f.o->acked_count, CHUNKS);
	assert_true(f.c->tx.next_pn > 10 * RIG_RING);
	assert_true(f.r->counters.lost_spurious > 0);
	rig_expect(f.r, EVENT_OUT_DONE);
	assert_false(rig_event(f.r, &event));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_rig(an_ack_counts_once),
		test_rig(late_before_the_resend),
		test_rig(late_after_the_resend),
		test_rig(late_for_the_next_connection),
		test_rig(late_after_the_slot_was_reused),
		test_rig(late_and_then_the_slot_was_reused),
		test_rig(invented_acks_are_refused),
		test_rig(a_lost_window_leaves_again),
		test_rig(probes_get_through_a_full_window),
		test_rig(a_ring_of_acknowledgements_after_a_loss),
		test_rig(the_ring_pushes_out_its_oldest),
		test_rig(an_item_of_a_dropped_edge_is_forgotten),
		test_rig(late_while_the_path_is_searched),
		test_rig(random_acknowledgements_count_each_chunk_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
