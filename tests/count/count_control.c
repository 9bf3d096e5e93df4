/* SPDX-License-Identifier: BSD-3-Clause */
/* What control does for each object: a shard's answers, messages as bytes, the shape of trees. */
#include "fixtures/control_shard.h"
#include "core/planner/cost.h"
#include "core/planner/fanout.h"
#include "core/planner/planner.h"
#include "core/group/clocks.h"
#include "counts.h"
#include "fixtures/planner_test.h"
#include "rpc/codec.h"

enum { CODEC_CALLS = 100, SHAPE_NODES = 16, SHAPE_CHUNK = 1408, PLAN_BYTES_MAX = 8 << 20 };

/* One object goes from node to node, and each tells when it has all of it. */
void count_directory(void)
{
	struct fixture *f;

	setup((void **)&f);
	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	count_begin();
	for (uint32_t node = 1; node < NODES; node++) {
		assert_int_equal(get_first(f, node, 1)->got.what, MESSAGE_GOT_HOLDER);
		assert_int_equal(have(f, node, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	}
	count_end("directory", 2 * (NODES - 1), "directory_message");
	teardown((void **)&f);
}

static void count_message(struct message m)
{
	static _Alignas(16) uint8_t arena[CODEC_ARENA_BYTES], scratch[CODEC_SCRATCH_BYTES];
	uint8_t bytes[1024];
	struct message back;

	m.request = 1000;
	count_begin();
	for (unsigned k = 0; k < CODEC_CALLS; k++) {
		size_t length = codec_encode(&m, scratch, bytes, sizeof(bytes));
		assert_int_equal(codec_decode(bytes, length, arena, &back), 0);
	}
	count_end(m.kind == MESSAGE_HAVE ? "have" : "got", CODEC_CALLS,
		  "codec_encode codec_decode");
	assert_int_equal(back.kind, m.kind);
}

void count_codec(void)
{
	struct message have = {.kind = MESSAGE_HAVE}, got = {.kind = MESSAGE_GOT};

	have.have = (struct message_have){id_of(1),	7, BIG, SHAPE_CHUNK, MESSAGE_COPY_PARTIAL,
					  .upstream = 3};
	got.got = (struct message_got){id_of(1),	   7,	       BIG, SHAPE_CHUNK,
				       MESSAGE_GOT_HOLDER, .holder = 3};
	count_message(have);
	count_message(got);
}

/* A plan for 512 servers as the coordinator asks for it, and the largest one of routes that a graph
 * can be: each is chosen, built and verified. */
static void count_plan(const char *name, const struct planner *planner, uint32_t servers,
		       const struct network *w, const struct planner_limits *limits)
{
	static uint8_t memory[PLAN_BYTES_MAX] __attribute__((aligned(64)));
	struct planner_request q = planner_asked(servers, 1, 0, UINT64_C(548) << 20);
	struct planner_choice choice;
	struct graph g;

	q.network = w;
	q.limits = limits;
	count_begin();
	assert_int_equal(
		planner ? planner_shape(&q, planner, &choice) : planner_choose(&q, &choice), 0);
	assert_true(planner_bytes(&choice) <= sizeof(memory));
	assert_int_equal(planner_build(&q, &choice, memory, sizeof(memory), &g), 0);
	assert_null(verify_graph(&g, &limits->graph));
	count_end(name, 1,
		  planner ? "planner_build verify_graph"
			  : "planner_choose planner_build verify_graph");
}

void count_plans(void)
{
	struct network w = {.levels = 3, .places = 512}, half = {.levels = 3, .places = 252};
	struct planner_limits wide = planner_limits_usual;

	for (uint32_t l = 0; l < 3; l++) {
		w.level[l] = (struct network_level){8, false, (uint8_t)l, 20000, 1250000000};
		half.level[l] =
			(struct network_level){l ? 6 : 7, false, (uint8_t)l, 20000, 1250000000};
	}
	wide.flat_slots_max = GRAPH_SLOTS_MAX;
	wide.vertices_max = UINT32_MAX;
	wide.segments_max = GRAPH_SEGMENTS_MAX - 1;
	count_plan("plan-512", NULL, 512, &w, &planner_limits_usual);
	count_plan("plan-512-chains", &planner_chains, 512, &w, &wide);
	count_plan("plan-252-hips", &planner_hips_ring, 252, &half, &wide);
}

/* All members go a clock on; the cost of each does not grow with their number. */
static void count_clocks_of(const char *name, uint32_t members)
{
	uint64_t sum = 0;
	struct clocks c;

	clocks_init(&c, 0, 0);
	for (uint32_t i = 0; i < members; i++)
		assert_true(clocks_add(&c, 0));
	count_begin();
	for (uint32_t i = 0; i < members; i++) {
		clocks_move(&c, 0, 1, i);
		sum += clocks_min(&c) + clocks_reached(&c, 1);
	}
	count_end(name, members, "clocks_move clocks_min clocks_reached");
	assert_int_equal(sum, 2);
}

void count_clocks(void)
{
	count_clocks_of("clocks-100", 100);
	count_clocks_of("clocks-100000", 100000);
}

void count_shapes(void)
{
	const struct topology_link unknown = {0};
	const struct fanout_link prior = fanout_prior();
	const struct topology_link link = {prior.hop_ns, prior.start_ns, prior.bytes_per_s};
	uint32_t degree = 0, width = 0;

	count_begin();
	for (uint64_t bytes = 1 << 10; bytes <= 1 << 26; bytes <<= 1) {
		const struct cost_object o = {bytes, SHAPE_CHUNK};

		degree += cost_tree_degree(SHAPE_NODES, o, unknown);
		width += planner_width(link, SHAPE_NODES, bytes, SHAPE_CHUNK);
	}
	count_end("shapes", 17, "cost_tree_degree planner_width");
	assert_true(degree >= 17 && width >= 17);
}
