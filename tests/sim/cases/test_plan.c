/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan executor over the wire: producers that go on writing, resumed and partial edges, drops
 * in the middle, handles used again, and messages in order.
 */
#include "model/testkit.h"

#define RTT_NS	  (100 * WORLD_US)
#define MIB	  (1ull << 20)
#define WITHIN_NS (60 * WORLD_S)

static void open_pair(struct world *w, uint32_t count, const struct network_faults *faults,
		      uint64_t seed)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	world_init(w, count, &link, &o, seed, false);
	for (uint32_t i = 1; i < count; i++)
		assert_true(world_connect(w, 0, i, WITHIN_NS) != UINT64_MAX);
	world_run(w, 5 * WORLD_MS);
	if (faults)
		network_faults_all(&w->net, faults);
}

static void close_pair(struct world *w)
{
	testkit_clean(w);
	world_free(w);
}

static const struct network_faults bad_path = {.loss_ppm = 100000,
					       .duplicate_ppm = 50000,
					       .reorder_ppm = 50000,
					       .corrupt_ppm = 10000,
					       .reorder_ns = 300000,
					       .jitter_ns = 20000};

static void sizes_around_every_edge(void **state)
{
	static const uint64_t sizes[] = {1,	63,    64,    65,	 1407,
					 1408,	1409,  2816,  64 * 1408, 64 * 1408 + 1,
					 65535, 65536, 65537, MIB + 7,	 3 * MIB - 1};
	struct world w;
	(void)state;
	open_pair(&w, 2, NULL, TESTKIT_SEED);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct transfer t = testkit_begin(&w, 0, 1, sizes[i], TESTKIT_CHUNK, i + 1);
		if (world_buffer_done(&w, 1, t.sink, WITHIN_NS) == UINT64_MAX)
			fail_msg("%llu bytes: not complete", (unsigned long long)sizes[i]);
		assert_true(world_edge_ended(&w, 0, t.out, WITHIN_NS) != UINT64_MAX);
		assert_int_equal(w.nodes[0].edges[t.out].state, EDGE_DONE);
	}
	close_pair(&w);
}

static void chunk_sizes_of_every_kind(void **state)
{
	struct world w;
	(void)state;
	open_pair(&w, 2, &bad_path, TESTKIT_SEED);
	for (uint32_t chunk = 64; chunk <= TESTKIT_CHUNK; chunk += 192) {
		struct transfer t = testkit_begin(&w, 0, 1, 100001, chunk, chunk);
		if (world_buffer_done(&w, 1, t.sink, WITHIN_NS) == UINT64_MAX)
			fail_msg("chunks of %u bytes: not complete", chunk);
	}
	close_pair(&w);
}

/* ---- producers ---------------------------------------------------------------------------- */

static void producer_is_followed(void **state)
{
	struct world w;
	uint64_t bytes = 2 * MIB - 100, at = 0;
	struct prng p = prng_fork(TESTKIT_SEED, 1);
	(void)state;
	open_pair(&w, 2, &bad_path, TESTKIT_SEED);
	uint32_t source = node_source(&w.nodes[0], bytes, TESTKIT_CHUNK, 5, 0);
	uint32_t sink = node_sink(&w.nodes[1], bytes, TESTKIT_CHUNK, 5);
	uint32_t out = world_edge(&w, 0, source, 1, sink);
	while (at < bytes) {
		at += 1 + prng_below(&p, 40000);
		at = at < bytes ? at : bytes;
		node_advance(&w.nodes[0], source, at);
		world_run(&w, prng_below(&p, 2 * WORLD_MS));
		assert_true(at == bytes || !w.nodes[1].buffers[sink].done);
		/* never a byte that the producer has not written */
		assert_true(w.nodes[1].counters.rx_chunk_bytes <= at);
	}
	assert_true(world_buffer_done(&w, 1, sink, WITHIN_NS) != UINT64_MAX);
	assert_true(world_edge_ended(&w, 0, out, WITHIN_NS) != UINT64_MAX);
	close_pair(&w);
}

static void producer_sleeps_longer_than_any_timeout(void **state)
{
	struct world w;
	(void)state;
	open_pair(&w, 2, NULL, TESTKIT_SEED);
	uint32_t source = node_source(&w.nodes[0], MIB, TESTKIT_CHUNK, 5, 0);
	uint32_t sink = node_sink(&w.nodes[1], MIB, TESTKIT_CHUNK, 5);
	world_edge(&w, 0, source, 1, sink);
	node_advance(&w.nodes[0], source, MIB / 2);
	world_run(&w, 10 * w.nodes[0].config.idle_timeout_ns);
	assert_int_equal(w.nodes[1].edges[0].state, EDGE_OPEN);
	/* what is ready has arrived while the producer sleeps */
	assert_int_equal(w.nodes[1].counters.rx_chunks, MIB / 2 / TESTKIT_CHUNK);
	node_advance(&w.nodes[0], source, MIB);
	assert_true(world_buffer_done(&w, 1, sink, WITHIN_NS) != UINT64_MAX);
	close_pair(&w);
}

static void the_new_chunk_leaves_at_once(void **state)
{
	struct world w;
	(void)state;
	open_pair(&w, 2, NULL, TESTKIT_SEED);
	uint32_t source = node_source(&w.nodes[0], 2 * TESTKIT_CHUNK, TESTKIT_CHUNK, 5, 0);
	uint32_t sink = node_sink(&w.nodes[1], 2 * TESTKIT_CHUNK, TESTKIT_CHUNK, 5);
	world_edge(&w, 0, source, 1, sink);
	node_advance(&w.nodes[0], source, TESTKIT_CHUNK);
	world_run(&w, 50 * WORLD_MS);
	node_advance(&w.nodes[0], source, 2 * TESTKIT_CHUNK);
	uint64_t took = world_buffer_done(&w, 1, sink, WITHIN_NS);
	testkit_at_most("last chunk after ADVANCE (us)", took / 1e3, 1.2 * RTT_NS / 1e3);
	close_pair(&w);
}

/* ---- resumed and partial edges ------------------------------------------------------------- */

static void sent_bits_are_never_sent(void **state)
{
	struct world w;
	uint64_t sent[8] = {0};
	struct prng p = prng_fork(TESTKIT_SEED, 2);
	uint64_t chunks = 500, missing = 0;
	(void)state;
	open_pair(&w, 2, NULL, TESTKIT_SEED);
	for (uint64_t c = 0; c < chunks; c++)
		if (prng_chance(&p, 600000))
			sent[c / 64] |= 1ull << c % 64;
		else
			missing++;
	uint64_t bytes = chunks * TESTKIT_CHUNK;
	uint32_t source = node_source(&w.nodes[0], bytes, TESTKIT_CHUNK, 5, bytes);
	uint32_t sink = node_sink(&w.nodes[1], bytes, TESTKIT_CHUNK, 5);
	uint32_t in = node_in(&w.nodes[1], sink, 0, 0, 0);
	uint32_t out = node_out_resumed(&w.nodes[0], source, 1, w.nodes[1].edges[in].handle, sent);
	/* the edge is done although the buffer is not: the rest was never asked of it */
	assert_true(world_edge_ended(&w, 0, out, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(w.nodes[0].counters.tx_chunks, missing);
	assert_int_equal(w.nodes[1].counters.rx_chunks, missing);
	const uint64_t *have =
		(const uint64_t *)(w.nodes[1].store.base + w.nodes[1].buffers[sink].bitmap_offset);
	for (uint64_t c = 0; c < chunks; c++)
		assert_int_equal(have[c / 64] >> c % 64 & 1, !(sent[c / 64] >> c % 64 & 1));
	close_pair(&w);
}

static void all_bits_set_is_done_at_once(void **state)
{
	struct world w;
	uint64_t sent[2] = {UINT64_MAX, UINT64_MAX};
	(void)state;
	open_pair(&w, 2, NULL, TESTKIT_SEED);
	uint64_t bytes = 100 * TESTKIT_CHUNK;
	uint32_t source = node_source(&w.nodes[0], bytes, TESTKIT_CHUNK, 5, bytes);
	uint32_t sink = node_sink(&w.nodes[1], bytes, TESTKIT_CHUNK, 5);
	uint32_t in = node_in(&w.nodes[1], sink, 0, 0, 0);
	uint32_t out = node_out_resumed(&w.nodes[0], source, 1, w.nodes[1].edges[in].handle, sent);
	assert_true(world_edge_ended(&w, 0, out, WORLD_MS) != UINT64_MAX);
	assert_int_equal(w.nodes[0].edges[out].state, EDGE_DONE);
	assert_int_equal(w.nodes[0].counters.tx_chunks, 0);
	close_pair(&w);
}

/* Two senders, each with half of the chunks, into one buffer. */
static void two_edges_fill_one_buffer(void **state)
{
	struct world w;
	uint64_t bytes = 2 * MIB;
	uint32_t chunks = (uint32_t)chunk_count(bytes, TESTKIT_CHUNK), half = chunks / 3;
	(void)state;
	open_pair(&w, 3, &bad_path, TESTKIT_SEED);
	uint32_t sink = node_sink(&w.nodes[0], bytes, TESTKIT_CHUNK, 5);
	for (uint32_t i = 1; i < 3; i++) {
		uint32_t first = i == 1 ? 0 : half, count = i == 1 ? half : chunks - half;
		uint32_t source = node_source(&w.nodes[i], bytes, TESTKIT_CHUNK, 5, bytes);
		uint32_t in = node_in(&w.nodes[0], sink, i, first, count);
		node_out(&w.nodes[i], source, 0, w.nodes[0].edges[in].handle, first, count);
	}
	assert_true(world_buffer_done(&w, 0, sink, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(w.nodes[0].counters.rx_chunks, chunks);
	close_pair(&w);
}

/* Two senders with everything: the second copy of a chunk is a duplicate, not a second write. */
static void overlapping_edges_store_once(void **state)
{
	struct world w;
	uint64_t bytes = MIB;
	(void)state;
	open_pair(&w, 3, &bad_path, TESTKIT_SEED);
	uint32_t sink = node_sink(&w.nodes[0], bytes, TESTKIT_CHUNK, 5), out[3];
	for (uint32_t i = 1; i < 3; i++)
		out[i] = world_edge(&w, i, node_source(&w.nodes[i], bytes, TESTKIT_CHUNK, 5, bytes),
				    0, sink);
	assert_true(world_buffer_done(&w, 0, sink, WITHIN_NS) != UINT64_MAX);
	for (uint32_t i = 1; i < 3; i++) {
		assert_true(world_edge_ended(&w, i, out[i], WITHIN_NS) != UINT64_MAX);
		assert_int_equal(w.nodes[i].edges[out[i]].state, EDGE_DONE);
	}
	assert_int_equal(w.nodes[0].counters.rx_chunks, chunk_count(bytes, TESTKIT_CHUNK));
	close_pair(&w);
}

/* ---- drops -------------------------------------------------------------------------------- */

struct progress {
	struct world *w;
	uint64_t chunks;
};

static bool progressed(void *context)
{
	const struct progress *p = context;
	return p->w->nodes[1].counters.rx_chunks >= p->chunks;
}

/* A transfer of which so many chunks have come. */
static struct transfer part_way(struct world *w, uint64_t chunks)
{
	struct transfer t = testkit_begin(w, 0, 1, MIB, TESTKIT_CHUNK, 5);
	struct progress p = {w, chunks};
	assert_true(world_until(w, WITHIN_NS, progressed, &p) != UINT64_MAX);
	return t;
}

static bool sink_dropped(void *context)
{
	const struct world *w = context;
	return w->nodes[1].buffers[0].dropped;
}

static bool source_dropped(void *context)
{
	const struct world *w = context;
	return w->nodes[0].buffers[0].dropped;
}

static void dropped_sink_is_not_touched(void **state)
{
	(void)state;
	for (uint64_t at = 1; at < 700; at += 99) {
		struct world w;
		open_pair(&w, 2, &bad_path, TESTKIT_SEED + at);
		struct transfer t = part_way(&w, at);
		node_drop_buffer(&w.nodes[1], t.sink);
		assert_true(world_until(&w, WORLD_MS, sink_dropped, &w) != UINT64_MAX);
		/* the ledger has poisoned the memory; late packets must leave it so */
		assert_true(world_edge_ended(&w, 0, t.out, WITHIN_NS) != UINT64_MAX);
		assert_int_equal(w.nodes[0].edges[t.out].state, EDGE_FAILED);
		assert_int_equal(w.nodes[0].edges[t.out].reason, REASON_STREAM_RESET);
		world_run(&w, 100 * WORLD_MS);
		close_pair(&w);
	}
}

static void dropped_source_is_not_read(void **state)
{
	struct world w;
	(void)state;
	open_pair(&w, 2, &bad_path, TESTKIT_SEED);
	struct transfer t = part_way(&w, 200);
	node_drop_buffer(&w.nodes[0], t.source);
	assert_true(world_until(&w, WORLD_MS, source_dropped, &w) != UINT64_MAX);
	/* were poison sent, the receiver's check of its bytes would see it */
	world_run(&w, 200 * WORLD_MS);
	assert_false(w.nodes[1].buffers[t.sink].done);
	close_pair(&w);
}

static void dropped_edge_leaves_the_buffer(void **state)
{
	struct world w;
	(void)state;
	open_pair(&w, 2, &bad_path, TESTKIT_SEED);
	struct transfer t = part_way(&w, 200);
	node_drop_edge(&w.nodes[0], t.out);
	node_drop_edge(&w.nodes[1], 0);
	world_run(&w, 100 * WORLD_MS);
	assert_int_equal(w.nodes[0].edges[t.out].state, EDGE_DROPPED);
	assert_int_equal(w.nodes[1].edges[0].state, EDGE_DROPPED);
	uint64_t words[16] = {0};
	const struct node_buffer *b = &w.nodes[1].buffers[t.sink];
	memcpy(words, w.nodes[1].store.base + b->bitmap_offset,
	       chunk_bitmap_bytes(chunk_count(b->size, b->chunk_bytes)));
	uint64_t before = w.nodes[1].counters.rx_chunks;
	uint32_t in = node_in(&w.nodes[1], t.sink, 0, 0, 0);
	node_out_resumed(&w.nodes[0], t.source, 1, w.nodes[1].edges[in].handle, words);
	assert_true(world_buffer_done(&w, 1, t.sink, WITHIN_NS) != UINT64_MAX);
	assert_int_equal(w.nodes[1].counters.rx_chunks, chunk_count(MIB, TESTKIT_CHUNK));
	assert_true(before < w.nodes[1].counters.rx_chunks);
	close_pair(&w);
}

static void handles_are_used_again(void **state)
{
	struct network_link link = testkit_link(1000, RTT_NS);
	struct node_options o = world_options();
	struct world w;
	(void)state;
	o.config.buffers_max = 2;
	o.config.edges_max = 2;
	world_init(&w, 2, &link, &o, TESTKIT_SEED, false);
	assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
	network_faults_all(&w.net, &bad_path);
	for (uint32_t i = 0; i < 40; i++) {
		struct transfer t = testkit_begin(&w, 0, 1, 50000 + i, TESTKIT_CHUNK, i + 1);
		assert_true(world_buffer_done(&w, 1, t.sink, WITHIN_NS) != UINT64_MAX);
		if (i % 2) /* with the last ACK under way, or after it */
			assert_true(world_edge_ended(&w, 0, t.out, WITHIN_NS) != UINT64_MAX);
		node_drop_buffer(&w.nodes[0], t.source);
		node_drop_buffer(&w.nodes[1], t.sink);
		world_run(&w, i % 3 * RTT_NS);
	}
	close_pair(&w);
}

/* ---- messages ----------------------------------------------------------------------------- */

static bool all_messages_ended(void *context)
{
	const struct world *w = context;
	for (uint32_t i = 0; i < w->count; i++)
		for (uint32_t m = 0; m < w->nodes[i].messages_count; m++)
			if (!w->nodes[i].messages[m].ended)
				return false;
	return true;
}

static void messages_keep_their_order(void **state)
{
	struct world w;
	struct prng p = prng_fork(TESTKIT_SEED, 3);
	uint32_t sent = 0;
	(void)state;
	open_pair(&w, 3, &bad_path, TESTKIT_SEED);
	while (sent < 600) {
		uint32_t from = (uint32_t)prng_below(&p, 3);
		uint32_t to = from ? 0 : 1 + (uint32_t)prng_below(&p, 2);
		uint32_t length = prng_chance(&p, 100000) ? MSG_BYTES_MAX
							  : 16 + (uint32_t)prng_below(&p, 3000);
		if (node_message(&w.nodes[from], to, length) != NODE_NONE)
			sent++;
		world_run(&w, prng_below(&p, 300 * WORLD_US));
	}
	assert_true(world_until(&w, WITHIN_NS, all_messages_ended, &w) != UINT64_MAX);
	uint64_t got = 0;
	for (uint32_t i = 0; i < 3; i++)
		got += w.nodes[i].msgs_delivered;
	assert_int_equal(got, sent);
	close_pair(&w);
}

/* Control does not read: slots run out, nothing is lost, and all goes on when it reads again. */
static void held_messages_hold_the_sender(void **state)
{
	static const uint32_t slots[] = {16, 8, 4, 2, 1};
	(void)state;
	for (size_t k = 0; k < sizeof(slots) / sizeof(slots[0]); k++) {
		struct network_link link = testkit_link(1000, RTT_NS);
		struct node_options o = world_options();
		struct world w;
		uint32_t sent = 0;
		o.msg_rx_slots = slots[k];
		world_init(&w, 2, &link, &o, TESTKIT_SEED, false);
		assert_true(world_connect(&w, 0, 1, WITHIN_NS) != UINT64_MAX);
		network_faults_all(&w.net, &bad_path);
		w.nodes[1].hold_messages = true;
		for (uint32_t i = 0; i < 200; i++) {
			sent += node_message(&w.nodes[0], 1, 16 + 500 * (i % 9)) != NODE_NONE;
			world_run(&w, WORLD_MS);
		}
		assert_true(w.nodes[1].msgs_delivered <= slots[k]);
		assert_int_equal(engine_connections(w.nodes[0].engine), 1);
		w.nodes[1].hold_messages = false;
		node_release(&w.nodes[1]);
		if (world_until(&w, WITHIN_NS, all_messages_ended, &w) == UINT64_MAX)
			fail_msg("%u slots: messages wait for ever", slots[k]);
		assert_int_equal(w.nodes[1].msgs_delivered, sent);
		close_pair(&w);
	}
}

/* A message is not held up for long by the bulk transfer on the same connection. */
static void messages_pass_bulk_data(void **state)
{
	struct world w;
	uint64_t worst = 0;
	(void)state;
	open_pair(&w, 2, NULL, TESTKIT_SEED);
	testkit_begin(&w, 0, 1, 8 * MIB, TESTKIT_CHUNK, 5);
	world_run(&w, 20 * WORLD_MS); /* the congestion control has found its window */
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t before = w.nodes[1].msgs_delivered, start = world_now(&w);
		assert_int_not_equal(node_message(&w.nodes[0], 1, 200), NODE_NONE);
		while (w.nodes[1].msgs_delivered == before)
			world_run(&w, 5 * WORLD_US);
		worst = world_now(&w) - start > worst ? world_now(&w) - start : worst;
		world_run(&w, WORLD_MS);
	}
	testkit_at_most("message beside bulk data, worst (us)", worst / 1e3,
			1.75 * w.nodes[0].config.delay_target_ns / 1e3 + RTT_NS / 1e3);
	close_pair(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_around_every_edge),
		cmocka_unit_test(chunk_sizes_of_every_kind),
		cmocka_unit_test(producer_is_followed),
		cmocka_unit_test(producer_sleeps_longer_than_any_timeout),
		cmocka_unit_test(the_new_chunk_leaves_at_once),
		cmocka_unit_test(sent_bits_are_never_sent),
		cmocka_unit_test(all_bits_set_is_done_at_once),
		cmocka_unit_test(two_edges_fill_one_buffer),
		cmocka_unit_test(overlapping_edges_store_once),
		cmocka_unit_test(dropped_sink_is_not_touched),
		cmocka_unit_test(dropped_source_is_not_read),
		cmocka_unit_test(dropped_edge_leaves_the_buffer),
		cmocka_unit_test(handles_are_used_again),
		cmocka_unit_test(messages_keep_their_order),
		cmocka_unit_test(held_messages_hold_the_sender),
		cmocka_unit_test(messages_pass_bulk_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
