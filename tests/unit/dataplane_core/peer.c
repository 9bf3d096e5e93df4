/* SPDX-License-Identifier: BSD-3-Clause */
/* What others may read of a connection, and the places of the table of connections. */
#include "fixtures/core_test.h"
#include "conn/path_mtu.h"
#include "conn/peer.h"

enum { PLACES = 8, CHUNKS = 100 };

static struct peer_block blocks[PLACES];

static void told(struct engine_config *f)
{
	memset(blocks, 0, sizeof(blocks));
	f->peers = blocks;
	f->conns_max = PLACES;
}

static int told_setup(void **state)
{
	*state = rig_new(told);
	return 0;
}

#define test_told(name) cmocka_unit_test_setup_teardown(name, told_setup, rig_teardown)

/* The block of a peer as another process reads it. */
static struct peer_values told_of(const struct peer *peer)
{
	struct peer_block b;

	assert_true(peer_block_read(&blocks[handle_index(peer->conn)], &b));
	assert_int_equal(b.conn, peer->conn);
	assert_true(net_addr_equal(&b.addr, &peer->addr));
	return b.values;
}

static unsigned places_taken(void)
{
	struct peer_block b;
	unsigned n = 0;

	for (unsigned k = 0; k < PLACES; k++)
		n += peer_block_read(&blocks[k], &b);
	return n;
}

/* Of a connection that is quiet after its handshake: no bytes come that would make news due. */
static void what_the_path_carries_is_told_when_it_is_found(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	uint64_t probe = UINT64_MAX;
	struct packet out;

	peer.c->mtu = MTU_BASE;
	peer_tell(r->e, peer.c);
	path_mtu_start(r->e, peer.c);
	conn_wake(r->e, peer.c);
	while (rig_take(r, &out))
		if (out.length + ENGINE_OVERHEAD_V4 > MTU_BASE)
			probe = out.pn;
	assert_int_not_equal(probe, UINT64_MAX);
	assert_int_equal(told_of(&peer).gauges.mtu, MTU_BASE);
	r->now_ns += 1000000;
	peer_ack(r, &peer, probe);
	rig_drain(r);
	assert_int_equal(peer.c->mtu, r->config.mtu);
	assert_int_equal(told_of(&peer).gauges.mtu, r->config.mtu);
}

static void opening_up_and_gone(void **state)
{
	struct rig *r = *state;
	struct peer peer = peer_new(1);
	struct record open = {.op = COMMAND_PEER_OPEN, .peer = {.addr = peer.addr}};
	struct peer_block b;

	rig_command(r, &open);
	rig_drain(r);
	assert_int_equal(places_taken(), 1);
	assert_true(peer_block_read(&blocks[0], &b));
	assert_int_equal(b.values.gauges.up, 0);

	peer = rig_connect(r, 2);
	rig_drain(r);
	assert_int_equal(places_taken(), 2);
	struct peer_values v = told_of(&peer);
	assert_int_equal(v.gauges.up, 1);
	assert_int_equal(v.gauges.written_ns, r->now_ns);
	assert_int_equal(v.gauges.rtt_ns, peer.c->loss.srtt_ns);

	struct record close = {.op = COMMAND_PEER_CLOSE, .peer = {.conn = peer.conn}};
	rig_command(r, &close);
	rig_drain(r);
	assert_int_equal(places_taken(), 1);
}

static void what_passed_is_told_soon(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);
	struct packet p;

	rig_pass(r, 1000000000);
	uint64_t before = told_of(&peer).counters.rx_pkts;
	rig_sink(r, &peer, CHUNKS);
	for (uint32_t k = 0; k < CHUNKS; k++) {
		if (k == 7 || k == 8) /* two that were lost */
			peer.pn++;
		peer_chunk(r, &peer, &p, record_handle(0), k, RIG_CHUNK, 1);
		peer_send(r, &peer, &p);
		rig_drain(r);
	}
	rig_pass(r, 200000000);
	struct peer_values v = told_of(&peer);
	assert_int_equal(v.counters.rx_pkts, before + CHUNKS);
	assert_true(v.counters.rx_bytes > CHUNKS * RIG_CHUNK);
	assert_int_equal(v.gauges.missing_pkts, 2);
	assert_true(v.gauges.silent_ns >= 90000000 && v.gauges.silent_ns <= 200000000);
}

static void silence_and_loss_are_told(void **state)
{
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	rig_pass(r, 100000000);
	assert_int_equal(told_of(&peer).gauges.waiting_ns, 0);
	rig_pass(r, 2500000000); /* keep-alives, which nobody answers */
	struct peer_values v = told_of(&peer);
	assert_true(v.gauges.waiting_ns > 300000000);
	assert_true(v.counters.lost_pkts > 0);
	assert_true(v.gauges.tx_pkts > v.counters.lost_pkts);
}

/* A tenth of a second on a path with a queue, for so long of it with more to send. */
static struct peer_gauges told_after(struct rig *r, const struct peer *peer, uint64_t bytes,
				     uint64_t waited_ms)
{
	peer->c->cc.rate.ns_per_kib = 1;
	peer->c->tally.tx_bytes += bytes;
	peer->c->tally.wait_path_ns += waited_ms * 1000000;
	r->e->now_ns = r->now_ns += 100000000;
	peer_tell(r->e, peer->c);
	return told_of(peer).gauges;
}

/* A burst that ends, or comes after a rest, is no measure of the path. */
static void a_path_is_known_when_it_was_the_limit(void **state)
{
	static const struct {
		uint64_t bytes, waited_ms, path_bytes_per_s;
	} spells[] = {{100000, 0, 0},	     {200000, 30, 0},	     {300000, 80, 0},
		      {250000, 95, 2500000}, {100000, 100, 2500000}, {900000, 20, 2500000},
		      {500000, 100, 5000000}};
	struct rig *r = *state;
	struct peer peer = rig_connect(r, 1);

	told_after(r, &peer, 0, 0);
	for (size_t k = 0; k < sizeof(spells) / sizeof(spells[0]); k++)
		assert_int_equal(
			told_after(r, &peer, spells[k].bytes, spells[k].waited_ms).path_bytes_per_s,
			spells[k].path_bytes_per_s);
	assert_int_equal(told_of(&peer).gauges.best_bytes_per_s, 9000000);
	for (uint32_t k = 0; k < 599; k++) /* until it is forgotten */
		told_after(r, &peer, 0, 0);
	assert_int_equal(told_after(r, &peer, 100000, 100).path_bytes_per_s, 5000000);
	peer.c->cc.held_ns = r->now_ns; /* it waits still */
	assert_int_equal(told_after(r, &peer, 100000, 0).path_bytes_per_s, 1000000);
}

/* All of them, and again when one has gone. */
static void places_are_given_back(void **state)
{
	struct rig *r = *state;
	struct peer peers[PLACES];

	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t k = 0; k < PLACES; k++)
			peers[k] = rig_connect(r, 1 + k);
		rig_drain(r);
		assert_int_equal(engine_connections(r->e), PLACES);
		assert_int_equal(places_taken(), PLACES);
		assert_null(conn_alloc(r->e, &(struct net_addr){.port = 1}));
		for (uint32_t k = 0; k < PLACES; k++)
			conn_close(r->e, peers[k].c, REASON_CLOSED);
		assert_int_equal(engine_connections(r->e), 0);
		assert_int_equal(places_taken(), 0);
		for (struct record event; rig_event(r, &event);)
			assert_int_equal(event.op, EVENT_PEER_DOWN);
	}
}

/* A worker that died while it wrote leaves a block that nobody waits for. */
static void torn_block_is_passed_over(void **state)
{
	struct peer_block b = {.sequence = 7, .conn = 1}, out;

	assert_false(peer_block_read(&b, &out));
	b.sequence = 8;
	assert_true(peer_block_read(&b, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_told(opening_up_and_gone),
		test_told(what_the_path_carries_is_told_when_it_is_found),
		test_told(what_passed_is_told_soon),
		test_told(silence_and_loss_are_told),
		test_told(a_path_is_known_when_it_was_the_limit),
		test_told(places_are_given_back),
		cmocka_unit_test(torn_block_is_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
