/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that takes only a part of a burst: a ring device with room for 16 packets. The engine is a
 * real one, with more to send to each of its peers. */
#include <stdio.h>
#include <unistd.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include "io/observe/capture.h"
#include "fixtures/core_test.h"
#include "io/net/ether.h"
#include "io/observe/log.h"
#include "io/node/worker.h"

enum {
	ROOM = 16,
	PEERS = 4,
	CHUNKS = 30, /* to each of them, without credit of theirs */
	DESCRIPTORS = 1024,
	PCAPNG_PACKET = 6,
	STUCK_NS = 20000000,
};

/* log.c takes DPDK's lines, and needs all of it */
void log_error(const char *format, ...)
{
	fail_msg("%s", format);
}

void log_info(const char *format, ...)
{
	assert_non_null(format);
}

struct wire {
	struct rig *r;
	struct worker w;
	struct port port;
	struct session session;
	struct peer peer[PEERS];
};

static struct rte_mempool *pool;

static void offer(struct wire *x, uint32_t n, const struct peer *peer)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct record source =
		record_source(n, (uint64_t)CHUNKS * RIG_CHUNK, (uint64_t)CHUNKS * RIG_CHUNK);
	struct record out = record_edge(COMMAND_OUT, n, n, peer, 0, CHUNKS);

	source.buffer.chunk_bytes = RIG_CHUNK;
	rig_command(x->r, &source);
	rig_command(x->r, &out);
	peer->c->cc.cwnd_bytes = 1 << 20;
	neighbour_learn(x->port.neighbours, peer->addr.ip, mac, true, x->r->now_ns);
}

static unsigned drain(unsigned most, struct rte_mbuf **out)
{
	unsigned n = 0;
	struct rte_mbuf *m;

	for (; n < most && rte_eth_rx_burst(0, 0, &m, 1) == 1; n++) {
		if (out)
			out[n] = m;
		rte_pktmbuf_free(m);
	}
	return n;
}

/* Others' packets, but for so much room. */
static void fill(unsigned room)
{
	struct rte_mbuf *m;

	do {
		m = rte_pktmbuf_alloc(pool);
		assert_non_null(m);
	} while (rte_eth_tx_burst(0, 0, &m, 1) == 1);
	rte_pktmbuf_free(m);
	assert_int_equal(drain(room, NULL), room);
}

static int begin(void **state)
{
	struct wire *x = aligned_alloc(64, (sizeof(*x) + 63) / 64 * 64);
	struct peer *peer = x->peer;

	*x = (struct wire){.r = rig_new(NULL)};
	static const struct port_type device = {.name = "device"};
	x->port = (struct port){
		.type = &device, .mtu = 1500, .queues = 1, .workers = 1, .addr = x->r->config.addr};
	x->port.neighbours = aligned_alloc(64, sizeof(*x->port.neighbours));
	memset(x->port.neighbours, 0, sizeof(*x->port.neighbours));
	neighbour_init(x->port.neighbours, false);
	x->port.queue[0].pool = pool;
	for (uint32_t n = 0; n < PEERS; n++)
		peer[n] = rig_connect(x->r, n + 1);
	for (uint32_t n = 0; n < PEERS; n++)
		offer(x, n, &peer[n]);
	x->session.engine = x->r->e;
	x->w = (struct worker){.rails = 1,
			       .rail[0] = {.port = &x->port, .out = &x->port.queue[0]},
			       .workers = 1,
			       .session = &x->session,
			       .resolver_fd = -1,
			       .counters = &x->r->counters};
	x->r->counters.tx_pkts = 0;
	fill(ROOM);
	*state = x;
	return 0;
}

static int end(void **state)
{
	struct wire *x = *state;

	tx_drop_held(&x->w, &x->w.rail[0]);
	rte_pktmbuf_free_bulk(x->w.rail[0].head, x->w.rail[0].heads);
	drain(DESCRIPTORS, NULL);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
	free(x->port.neighbours);
	rig_free(x->r);
	free(x);
	return 0;
}

static unsigned burst(struct wire *x, uint64_t after_ns)
{
	return tx_burst(&x->w, &x->w.rail[0], x->r->now_ns + after_ns);
}

static void check_held(const struct wire *x, uint64_t made, unsigned held)
{
	assert_int_equal(x->r->counters.tx_pkts, made);
	assert_int_equal(x->w.rail[0].held_count, held);
}

static void what_finds_no_room_is_first_in_the_next(void **state)
{
	struct wire *x = *state;
	struct rte_mbuf *held[WORKER_BURST], *came[DESCRIPTORS];
	unsigned made = burst(x, 0), more;

	assert_int_equal(made, WORKER_BURST);
	check_held(x, made, WORKER_BURST - ROOM);
	assert_int_equal(x->r->counters.io_tx_full, WORKER_BURST - ROOM);
	memcpy(held, x->w.rail[0].held, sizeof(held));
	assert_int_equal(burst(x, 1), 0); /* nobody is asked for more */
	check_held(x, made, WORKER_BURST - ROOM);
	drain(3, NULL);
	assert_int_equal(burst(x, 2), 3);
	check_held(x, made, WORKER_BURST - ROOM - 3);
	drain(DESCRIPTORS, came);
	more = burst(x, 3);
	assert_in_range(more, WORKER_BURST - ROOM - 3 + 1, UINT_MAX);
	assert_int_equal(x->w.rail[0].held_count, 0);
	assert_int_equal(drain(DESCRIPTORS, came), more);
	assert_memory_equal(came, held + 3, (WORKER_BURST - ROOM - 3) * sizeof(*held));
	assert_int_equal(x->r->counters.tx_pkts, WORKER_BURST + more - (WORKER_BURST - ROOM - 3));
}

/* Data, and what the node says of itself. */
static void all_frames_have_the_tag(void **state)
{
	static const uint8_t tag[6] = {0x81, 0x00, 0x0f, 0xfe, 0x08, 0x00}; /* and IPv4 */
	struct wire *x = *state;
	struct rte_mbuf *came[DESCRIPTORS], *own;

	drain(DESCRIPTORS, NULL);
	x->port.vlan = 4094;
	unsigned made = burst(x, 0);
	assert_in_range(made, 1, DESCRIPTORS);
	assert_int_equal(drain(DESCRIPTORS, came), made);
	for (unsigned i = 0; i < made; i++)
		assert_memory_equal(rte_pktmbuf_mtod_offset(came[i], uint8_t *, 12), tag,
				    sizeof(tag));
	own = rte_pktmbuf_alloc(pool);
	own->data_len = 64;
	own->pkt_len = 64;
	memset(rte_pktmbuf_mtod(own, uint8_t *), 0x11, 64);
	tx_send_one(&x->w, &x->w.rail[0], own);
	assert_int_equal(drain(DESCRIPTORS, came), 1);
	assert_int_equal(came[0]->pkt_len, 64 + ETHER_TAG);
	assert_memory_equal(rte_pktmbuf_mtod_offset(came[0], uint8_t *, 12), tag, ETHER_TAG);
}

static void what_stays_too_long_is_lost(void **state)
{
	struct wire *x = *state;
	unsigned made = burst(x, 0), used;

	burst(x, STUCK_NS);
	check_held(x, made, WORKER_BURST - ROOM);
	drain(1, NULL);
	assert_int_equal(burst(x, STUCK_NS), 1); /* it goes on, from now */
	burst(x, 2 * STUCK_NS);
	check_held(x, made, WORKER_BURST - ROOM - 1);
	used = rte_mempool_in_use_count(pool);
	burst(x, 2 * STUCK_NS + 1);
	check_held(x, made + WORKER_BURST, WORKER_BURST); /* others wait in their place */
	assert_int_equal(rte_mempool_in_use_count(pool),
			 used + WORKER_BURST - (WORKER_BURST - ROOM - 1));
}

/* A card that never transmits a segment which lies across two pages; all else arrives, and is
 * acknowledged. How many it kept. */
static unsigned unlucky_card(struct wire *x)
{
	struct rte_mbuf *m;
	unsigned kept = 0;

	while (rte_eth_rx_burst(0, 0, &m, 1) == 1) {
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
		const uint8_t *head = frame + ETHER_HEADERS_V4, *to = frame + ETHER_HEADER + 16;
		bool ours = m->data_len > ETHER_HEADERS_V4, crosses = false;
		if (m->nb_segs == 2) {
			uintptr_t at = rte_pktmbuf_mtod(m->next, uintptr_t);
			crosses = at / 4096 != (at + m->next->data_len - 1) / 4096;
		}
		uint16_t pn =
			ours ? wire_get16(head + (wire_is_short(head) ? CHUNK_AT_PN : WIRE_AT_PN))
			     : 0;
		for (uint32_t n = 0; ours && !crosses && n < PEERS; n++)
			if (memcmp(to, x->peer[n].addr.ip + 12, 4) == 0)
				peer_ack(x->r, &x->peer[n], pn);
		kept += crosses;
		rte_pktmbuf_free(m);
	}
	return kept;
}

static void free_nothing(void *address, void *opaque)
{
	fail_msg("the store is freed: %p %p", address, opaque);
}

static void what_a_card_never_transmits_is_copied(void **state)
{
	struct wire *x = *state;
	unsigned kept = 0, acked = 0;

	x->port.payload = PAYLOAD_CHAIN;
	x->w.pinned.free_cb = free_nothing;
	rte_mbuf_ext_refcnt_set(&x->w.pinned, 1);
	for (unsigned turn = 0; turn < 200 && acked < PEERS * CHUNKS; turn++) {
		burst(x, 0);
		kept += unlucky_card(x);
		x->r->now_ns += 1000000;
		engine_tick(x->r->e, x->r->now_ns);
		acked = 0;
		for (uint32_t n = 0; n < PEERS; n++)
			acked += out_edge_find(x->r->e, record_handle(n))->acked_count;
	}
	assert_int_equal(acked, PEERS * CHUNKS);
	assert_in_range(kept, PEERS * CHUNKS / 4, PEERS * CHUNKS / 2);
	assert_in_range(x->r->counters.io_tx_copied, kept, x->r->counters.tx_chunk_resends);
}

static unsigned packets_in(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint32_t block[2]; /* type, length */
	unsigned n = 0;

	assert_non_null(f);
	while (fread(block, sizeof(block), 1, f) == 1) {
		n += block[0] == PCAPNG_PACKET;
		assert_int_equal(fseek(f, (long)(block[1] - sizeof(block)), SEEK_CUR), 0);
	}
	fclose(f);
	return n;
}

/* The last: what it hooks in stays. */
static void a_capture_has_each_once(void **state)
{
	struct wire *x = *state;
	char path[] = "/tmp/sarissa-io-tx-XXXXXX";
	int fd = mkstemp(path);
	struct capture *c = capture_start(path, &x->port, 1);
	unsigned made;

	assert_true(fd >= 0);
	assert_non_null(c);
	made = burst(x, 0);
	for (uint64_t i = 1; i < 5; i++)
		assert_int_equal(burst(x, i), 0);
	capture_write(c);
	assert_int_equal(packets_in(path), made);
	drain(DESCRIPTORS, NULL);
	capture_stop(c);
	close(fd);
	unlink(path);
}

/* Caches are nobody else's: those of all other workers. */
static void others_leave_half_of_what_is_in_hand(void **state)
{
	enum { RINGS = 64 };

	for (unsigned workers = 1; workers <= WORKERS_MAX; workers++) {
		struct rte_mempool *mp = pool_create("io_tx_cache", false, 1500, RINGS, RINGS,
						     workers, SOCKET_ID_ANY);

		assert_non_null(mp);
		assert_in_range(mp->cache_size, 1, RTE_MEMPOOL_CACHE_MAX_SIZE);
		assert_true((workers - 1) * mp->cache_size * 3 / 2 <=
			    (mp->size - 2 * RINGS + 1) / 2);
		rte_mempool_free(mp);
	}
}

static int open_device(void **state)
{
	static char *eal[] = {
		"io_tx",    "--no-huge",      "--no-shconf",	   "-m",	 "64",
		"--no-pci", "--no-telemetry", "--log-level=alert", "--lcores=0", "--vdev=net_ring0",
		NULL};
	struct rte_eth_conf conf = {0};

	if (rte_eal_init(sizeof(eal) / sizeof(*eal) - 1, eal) < 0)
		return 1;
	pool = pool_create("io_tx", false, 1500, DESCRIPTORS, DESCRIPTORS, 1, SOCKET_ID_ANY);
	return !pool || rte_eth_dev_configure(0, 1, 1, &conf) ||
	       rte_eth_rx_queue_setup(0, 0, DESCRIPTORS, 0, NULL, pool) ||
	       rte_eth_tx_queue_setup(0, 0, DESCRIPTORS, 0, NULL) || rte_eth_dev_start(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_finds_no_room_is_first_in_the_next, begin,
						end),
		cmocka_unit_test_setup_teardown(all_frames_have_the_tag, begin, end),
		cmocka_unit_test_setup_teardown(what_stays_too_long_is_lost, begin, end),
		cmocka_unit_test_setup_teardown(what_a_card_never_transmits_is_copied, begin, end),
		cmocka_unit_test(others_leave_half_of_what_is_in_hand),
		cmocka_unit_test_setup_teardown(a_capture_has_each_once, begin, end),
	};

	return cmocka_run_group_tests(tests, open_device, NULL);
}
