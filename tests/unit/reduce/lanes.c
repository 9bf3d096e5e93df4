/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over all workers of their nodes: each adds up its own part, nobody reads the last chunk
 * before the set is chosen, and what fails, in one worker or in all, is mended. */
#include <errno.h>
#include <stdio.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

#define STORE (UINT64_C(160) << 20)
#define SIZE  ((UINT64_C(16) << 20) + 1000)

enum { SOURCES_MAX = 6, WAIT_S = 30 };

static struct object_id ids[SOURCES_MAX];
static uint32_t seq[WORLD_NODES_MAX];

static struct world *make(uint32_t nodes, uint32_t sources, uint64_t size)
{
	struct world *w = world_new(nodes, 2, STORE, true);

	w->delay_ns = WORLD_MS;
	for (uint32_t i = 0; i < nodes; i++)
		assert_int_equal(world_open(w, i), 0);
	for (uint32_t i = 0; i < sources; i++) {
		char name[8];

		snprintf(name, sizeof(name), "s%u", i);
		ids[i] = world_id(name);
		assert_int_equal(world_put(w, i % nodes, 0, name, size, i + 1), 0);
	}
	return w;
}

/* Node 0 asks for a sum of so many of the sources, and all nodes for the sum. */
static void begin(struct world *w, uint32_t num, uint32_t count, uint32_t flags)
{
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = num, .count = count};

	for (uint32_t i = 0; i < w->nodes; i++) {
		struct session_request r = world_request(SESSION_GET, "sum");

		seq[i] = world_send(w, i, 0, &r);
	}
	assert_int_equal(world_reduce(w, 0, 0, "sum", ids, how, flags, -1), 0);
}

/* Which sources are in it, as node 0 is told; 0: none, for that reason. */
static uint64_t ended(struct world *w, uint32_t count, int *status)
{
	struct object_id used[SOURCES_MAX];
	uint64_t set = 0;

	*status = world_reduced(w, 0, 0, "sum", WAIT_S * (int64_t)WORLD_SECOND, used);
	for (int k = 0; k < *status; k++)
		for (uint32_t i = 0; i < count; i++)
			set |= (uint64_t)object_id_equal(&used[k], &ids[i]) << i;
	return set;
}

static void expect_sum(struct world *w, uint32_t node, uint32_t session, uint64_t size,
		       uint64_t set)
{
	const uint8_t *bytes;
	int status = -ERESTART;
	uint64_t got;

	for (int tries = 0; tries < 8 && (status == -ERESTART || status == -ESTALE); tries++)
		status = world_fetch(w, node, session, "sum", WAIT_S * (int64_t)WORLD_SECOND,
				     &bytes, &got);
	assert_int_equal(status, 0);
	assert_int_equal(got, size);
	assert_true(world_sums(bytes, size, set));
}

/* All have the sum of num sources, all of the same. */
static uint64_t expect_end(struct world *w, uint32_t num, uint32_t count, uint64_t size)
{
	int status;
	uint64_t set = ended(w, count, &status);

	assert_int_equal(status, num);
	for (uint32_t i = 0; i < w->nodes; i++)
		if (w->node[i].core) /* else it is dead */
			expect_sum(w, i, 0, size, set);
	return set;
}

static uint64_t came(const struct world *w, uint32_t node, uint32_t worker)
{
	return w->node[node].counters[worker].rx_chunk_bytes;
}

static void half_each(const struct world *w, uint32_t node)
{
	uint64_t all = came(w, node, 0) + came(w, node, 1);

	assert_in_range(came(w, node, 1), all / 5 * 2, all / 5 * 3);
}

static void both_workers_add_up(void **state)
{
	for (uint32_t loss = 0; loss <= 20; loss += 20) {
		struct world *w = make(4, 4, SIZE);

		w->prng = 4711;
		w->loss_permille = loss;
		begin(w, 4, 4, 0);
		expect_end(w, 4, 4, SIZE);
		for (uint32_t i = 0; i < 4; i++)
			half_each(w, i);
		world_end(w);
	}
}

/* Along a chain from two workers to one, and on to two. */
static void nodes_may_have_other_workers(void **state)
{
	for (uint32_t flags = 0; flags <= SESSION_FLAG_ALLREDUCE; flags += SESSION_FLAG_ALLREDUCE) {
		struct world *w = make(4, 4, SIZE);

		world_change_workers(w, 1, 1);
		world_change_workers(w, 3, 1);
		begin(w, 4, 4, flags);
		expect_end(w, 4, 4, SIZE);
		world_end(w);
	}
}

/* An allreduce whose own stripes are large enough for all workers, of parts of larger sources; and
 * one of many small ones, which are put together by all workers. */
static void stripes_of_stripes(void **state)
{
	static const struct {
		uint32_t nodes, sources;
		uint64_t size;
	} k[] = {{2, 2, 2 * SIZE}, {2, 4, 2 * SIZE}, {4, 4, SIZE}};

	for (size_t i = 0; i < sizeof(k) / sizeof(k[0]); i++) {
		struct world *w = make(k[i].nodes, k[i].sources, k[i].size);

		begin(w, k[i].sources, k[i].sources, SESSION_FLAG_ALLREDUCE);
		expect_end(w, k[i].sources, k[i].sources, k[i].size);
		for (uint32_t n = 0; n < k[i].nodes; n++)
			for (uint32_t v = 0; v < 2; v++)
				assert_true(came(w, n, v) > k[i].size / 5);
		world_end(w);
	}
}

static bool is_built(struct world *w, void *arg)
{
	struct object_id id = world_id("sum");

	for (uint32_t i = 0; i < w->nodes; i++) {
		struct control *c = w->node[i].core;
		struct idmap_node *at = idmap_find(&c->participant->participants.by_id, &id);

		if (at && idmap_item(at, struct participant, by_id)->done) {
			*(uint32_t *)arg = i;
			return true;
		}
	}
	return false;
}

static uint64_t readable(const struct world *w, uint32_t node)
{
	struct object_id id = world_id("sum");
	uint32_t slot = slots_find(w->node[node].core, &id);

	return slot == TABLE_SLOT_NONE ? 0 : w->node[node].table->slot[slot].watermark;
}

/* Where all segments are complete, all but the last chunk can be read; nowhere can more, until the
 * requester has agreed. */
static void the_last_chunk_is_held(void **state)
{
	for (uint32_t flags = 0; flags <= SESSION_FLAG_ALLREDUCE; flags += SESSION_FLAG_ALLREDUCE) {
		struct world *w = make(4, 4, SIZE);
		uint64_t before_last;
		uint32_t at = 0;

		before_last = SIZE - SIZE % w->node[0].core->dataplane.chunk_bytes;
		begin(w, 4, 4, flags);
		assert_true(world_until(w, is_built, &at, WAIT_S * WORLD_SECOND));
		assert_int_equal(readable(w, at), before_last);
		for (uint32_t i = 0; i < 4; i++)
			w->cut[i] = true;
		world_run(w, 100 * WORLD_MS);
		for (uint32_t i = 0; i < 4; i++)
			assert_true(readable(w, i) <= before_last);
		world_heal(w);
		expect_end(w, 4, 4, SIZE);
		world_end(w);
	}
}

/* What the second workers send is lost: nobody has a sum of the rest, and it is whole later. */
static void one_worker_is_cut_off(void **state)
{
	struct world *w = make(3, 3, SIZE);

	begin(w, 3, 3, 0);
	world_run(w, 8 * WORLD_MS);
	w->cut_worker[1] = true;
	world_run(w, 8 * WORLD_SECOND);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(readable(w, i) < SIZE);
	w->cut_worker[1] = false;
	expect_end(w, 3, 3, SIZE);
	world_end(w);
}

/* A source that is still being written, and one that is being got at the node that adds it up. */
static void sources_may_be_growing(void **state)
{
	struct world *w = make(3, 2, SIZE);
	struct session_request r = world_request(SESSION_CREATE, "s2");
	struct world_reply *a;
	uint32_t fetched;

	ids[2] = world_id("s2");
	r.size = SIZE;
	a = world_call(w, 2, 0, &r, WORLD_SECOND);
	assert_int_equal(a->reply.status, 0);
	world_fill(w->node[2].store + a->reply.offset, SIZE, 3);
	begin(w, 3, 3, 0);
	r = world_request(SESSION_GET, "s0");
	fetched = world_send(w, 1, 0, &r);
	for (uint32_t i = 1; i <= 8; i++) {
		r = world_request(i < 8 ? SESSION_PUBLISH : SESSION_SEAL, NULL);
		r.slot = a->reply.slot;
		r.generation = a->reply.generation;
		r.watermark = i * (SIZE / 8);
		assert_int_equal(world_call(w, 2, 0, &r, WORLD_SECOND)->reply.status, 0);
		world_run(w, 4 * WORLD_MS);
	}
	assert_non_null(world_wait(w, 1, fetched, WORLD_SECOND));
	expect_end(w, 3, 3, SIZE);
	world_end(w);
}

/* A node dies in the middle, for good; a reserve takes its place. */
static void the_dead_are_replaced(void **state)
{
	uint32_t replaced = 0;

	for (uint32_t k = 0; k < 8; k++) {
		struct world *w = make(6, 6, SIZE);
		struct object_id target = world_id("sum");
		uint32_t victim = 1 + k % 4;
		uint64_t set;

		victim += ownership_shard(w->node[0].core, &target)->number == victim;
		begin(w, 5, 6, k % 2 ? SESSION_FLAG_ALLREDUCE : 0);
		world_run(w, (1 + k / 2 * 6) * WORLD_MS);
		world_kill_node(w, victim);
		set = expect_end(w, 5, 6, SIZE);
		replaced += !(set >> victim & 1);
		world_free(w);
	}
	assert_in_range(replaced, 3, 8);
}

/* Whatever happens on the way: an end, with one set for all who read it, or with the loss of the
 * only copy. */
static void storm(void **state)
{
	uint32_t made = 0, seeds = 20;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct world *w = make(4, 4, SIZE);
		uint64_t draw = seed * UINT64_C(0x9e3779b97f4a7c15), set;
		int status;

		w->prng = seed;
		w->old_clients = true;
		begin(w, 4, 4, seed % 2 ? SESSION_FLAG_ALLREDUCE : 0);
		for (uint32_t i = 0; i < 30; i++) {
			draw = draw * UINT64_C(6364136223846793005) + 1442695040888963407;
			world_run(w, draw >> 40 & 0x3fffff);
			world_trouble(w, 1, draw >> 32);
		}
		world_heal(w);
		set = ended(w, 4, &status);
		made += set == 15;
		if (set != 15)
			assert_int_equal(status, -ESTALE);
		for (uint32_t k = 0; k < 4 && set == 15; k++) {
			uint32_t session = world_open(w, k);

			expect_sum(w, k, session, SIZE, set);
			world_unpin(w, k, session);
		}
		world_end(w);
	}
	assert_in_range(made, seeds - seeds / 8, seeds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_workers_add_up),
		cmocka_unit_test(nodes_may_have_other_workers),
		cmocka_unit_test(stripes_of_stripes),
		cmocka_unit_test(the_last_chunk_is_held),
		cmocka_unit_test(one_worker_is_cut_off),
		cmocka_unit_test(sources_may_be_growing),
		cmocka_unit_test(the_dead_are_replaced),
		cmocka_unit_test(storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
