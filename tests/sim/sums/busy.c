/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether busy hosts are ever taken for narrow paths: nodes that stream to each other through full
 * queues while each of them stands still at random, as beside busy loops. No path may be said to
 * carry less than it does. Half of the worlds have a path that really is narrower than the links.
 * With --loss the network loses 1 to 5 % of all packets instead, from before the first HELLO on.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "conn/conn.h"
#include "engine_state.h"
#include "model/world.h"

enum { NODES = 4, JOBS = 10, SEARCH_STEP = 16 };

#define BUSY_NS	 (600 * WORLD_MS)
#define CALM_NS	 (200 * WORLD_MS)
#define FIRST_NS (2500 * WORLD_MS) /* in which a narrow path is found */

struct busy {
	struct world w;
	struct prng draw;
	uint32_t width; /* IP bytes that the path carries */
	bool lossy;
	uint64_t freezes, ends;
};

static void busy_open(struct busy *b, uint64_t seed, bool lossy)
{
	static const uint16_t mtus[] = {1500, 3498, 9000};
	struct network_link link;
	struct node_options o = world_options();

	memset(b, 0, sizeof(*b));
	b->draw = prng_fork(seed, 0x62757379);
	b->lossy = lossy;
	o.config.mtu = mtus[prng_below(&b->draw, 3)];
	o.store_bytes = 64 << 20;
	o.turn_ns = prng_below(&b->draw, 2) * 50 * WORLD_US;
	b->width = o.config.mtu;
	if (prng_chance(&b->draw, 500000))
		b->width = 1280 + (uint32_t)prng_below(&b->draw, o.config.mtu - 1280u);
	link = (struct network_link){.rate_bps = (100 + prng_below(&b->draw, 900)) * 1000000,
				     .delay_ns = prng_between(&b->draw, 10, 500) * WORLD_US,
				     .buffer_bytes = prng_between(&b->draw, 32, 512) << 10,
				     .mtu = b->width};
	world_init(&b->w, NODES, &link, &o, seed, prng_chance(&b->draw, 300000));
}

/* Streams from anywhere to anywhere, most of them to node 0, whose queue is full. */
static void busy_work(struct busy *b)
{
	for (uint32_t k = 0; k < JOBS; k++) {
		uint32_t from = 1 + (uint32_t)prng_below(&b->draw, NODES - 1);
		uint32_t to = k % 3 == 0 ? (from + 1) % NODES : 0;
		uint64_t bytes = prng_between(&b->draw, 1, 6) << 20;
		uint32_t chunk = engine_chunk_bytes(b->w.nodes[0].config.mtu, !b->w.net.v6);
		uint32_t source, sink;

		if (!node_has_store(&b->w.nodes[from], bytes) ||
		    !node_has_store(&b->w.nodes[to], bytes))
			continue;
		source = node_source(&b->w.nodes[from], bytes, chunk, k, bytes);
		sink = node_sink(&b->w.nodes[to], bytes, chunk, k);
		world_edge(&b->w, from, source, to, sink);
	}
}

/* Each node stands still now and then, for up to 80 ms. */
static void busy_run(struct busy *b, uint64_t ns, bool calm)
{
	for (uint64_t end = world_now(&b->w) + ns; world_now(&b->w) < end;) {
		for (uint32_t k = 0; k < NODES && !calm; k++)
			if (!b->lossy && prng_chance(&b->draw, 30000)) {
				uint64_t for_ns = prng_between(&b->draw, 1, 80) * WORLD_MS;
				node_freeze(&b->w.nodes[k], world_now(&b->w) + for_ns);
				b->freezes++;
			}
		world_run(&b->w, WORLD_MS);
	}
}

/* Ends that take their path for narrower than it is. Early: the first search of a connection may
 * not have ended yet. */
static uint32_t busy_below(struct busy *b, bool early)
{
	uint32_t below = 0;

	for (uint32_t k = 0; k < NODES; k++) {
		const struct engine *e = b->w.nodes[k].engine;
		uint32_t least = b->width < e->config.mtu ? b->width - SEARCH_STEP + 1 : b->width;

		for (uint32_t i = 0; i < e->config.conns_max; i++) {
			const struct conn *c = &e->conns[i];
			if (c->state != CONN_UP)
				continue;
			b->ends++;
			below += c->mtu < least && !(early && c->pmtu.searching && !c->pmtu.narrow);
		}
	}
	return below;
}

/* How many verdicts were wrong. */
static uint32_t busy_seed(struct busy *b, uint64_t seed, bool lossy, uint64_t *ends)
{
	uint32_t wrong = 0;

	busy_open(b, seed, lossy);
	if (lossy) {
		struct network_faults f = {
			.loss_ppm = 2 * (uint32_t)prng_between(&b->draw, 10000, 50000)};
		network_faults_all(&b->w.net, &f);
	}
	for (uint32_t k = 1; k < NODES; k++)
		for (uint32_t i = 0; i < k; i++)
			world_connect(&b->w, i, k, WORLD_S);
	if (b->width < b->w.nodes[0].config.mtu)
		busy_run(b, FIRST_NS, true);
	busy_work(b);
	for (uint32_t k = 0; k < 6; k++) {
		busy_run(b, BUSY_NS / 6, false);
		wrong += busy_below(b, true);
	}
	busy_run(b, CALM_NS, true);
	wrong += busy_below(b, false);
	for (uint32_t k = 0; k < NODES; k++)
		wrong += (uint32_t)b->w.nodes[k].counters.path_narrowed;
	*ends = b->ends / 7;
	if (b->w.violations > 0) {
		fprintf(stderr, "busy: seed %llu: %s\n", (unsigned long long)seed, b->w.first);
		wrong++;
	}
	return wrong;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
						{"runs", required_argument, NULL, 'r'},
						{"loss", no_argument, NULL, 'l'},
						{0}};
	bool lossy = false;
	uint64_t seed = 1, runs = 1000, wrong = 0, ends = 0, freezes = 0;
	static struct busy b;

	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (o == '?') {
			fprintf(stderr, "usage: %s [--seed N] [--runs N] [--loss]\n", argv[0]);
			return 2;
		}
		lossy |= o == 'l';
		if (o != 'l')
			*(o == 's' ? &seed : &runs) = strtoull(optarg, NULL, 10);
	}
	for (uint64_t k = 0; k < runs; k++) {
		uint64_t here;
		uint32_t bad = busy_seed(&b, seed + k, lossy, &here);

		if (bad > 0)
			fprintf(stderr, "busy: seed %llu: %u wrong verdicts (MTU %u, carries %u)\n",
				(unsigned long long)(seed + k), bad, b.w.nodes[0].config.mtu,
				b.width);
		wrong += bad > 0;
		ends += here;
		freezes += b.freezes;
		world_free(&b.w);
	}
	printf("busy: %llu worlds, %llu ends of connections, %llu pauses: %llu worlds with a path "
	       "below its MTU\n",
	       (unsigned long long)runs, (unsigned long long)ends, (unsigned long long)freezes,
	       (unsigned long long)wrong);
	return wrong > 0;
}
