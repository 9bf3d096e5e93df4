/* SPDX-License-Identifier: BSD-3-Clause */
/* A small object that was put is on two machines: no single death takes it. */
#include <stdio.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "internal/reduce.h"

#define STORE (UINT64_C(16) << 20)

enum { NODES = 5, OBJECTS = 30 };

typedef int put_of(struct world *w, uint32_t node, uint32_t session, const char *name,
		   uint64_t size, uint64_t seed);

static struct world *world_of(uint32_t nodes)
{
	struct world *w = world_new(nodes, 1, STORE, true);

	world_keep_all(w);
	return w;
}

static const char *name_of(uint32_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "small-%u", i);
	return name;
}

static void put_all(struct world *w, put_of *put, uint64_t size)
{
	for (uint32_t i = 0; i < OBJECTS; i++)
		assert_int_equal(put(w, i % NODES, 0, name_of(i), size, i), 0);
}

/* Returns how many are lost. */
static uint32_t lost(struct world *w, uint64_t size)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < OBJECTS; i++) {
		uint32_t at = i % NODES;

		while (!w->node[at].core)
			at = (at + 1) % NODES;
		count += world_get(w, at, 0, name_of(i), size, i, 5 * (int64_t)WORLD_SECOND) != 0;
		world_unpin(w, at, 0);
	}
	return count;
}

static void each_dies(put_of *put, uint64_t size)
{
	for (uint32_t dead = 0; dead < NODES; dead++) {
		struct world *w = world_of(NODES);

		put_all(w, put, size);
		world_kill_node(w, dead);
		assert_int_equal(lost(w, size), 0);
		world_free(w);
	}
}

/* [G1.4] */
static void a_put_survives_any_death(void **state)
{
	each_dies(world_put_whole, 1000);
	each_dies(world_put_whole, 0);
}

static void a_seal_survives_any_death(void **state)
{
	each_dies(world_put, 1000);
	each_dies(world_put, 65536);
}

/* The last one put has been answered just now: nothing of it is still on its way. [G8.6] */
static void an_answered_put_survives_at_once(void **state)
{
	for (uint32_t i = 0; i < 2 * NODES; i++) {
		struct world *w = world_of(NODES);
		put_of *put = i % 2 ? world_put : world_put_whole;

		for (uint32_t k = 0; k <= i; k++)
			assert_int_equal(put(w, i % NODES, 0, name_of(k), 3000, k), 0);
		world_kill_node(w, i % NODES);
		for (uint32_t k = 0; k <= i; k++)
			assert_int_equal(world_get(w, (i + 1) % NODES, 0, name_of(k), 3000, k,
						   5 * (int64_t)WORLD_SECOND),
					 0);
		world_free(w);
	}
}

/* One after the other, with the time in between to make the copies again. */
static void one_death_after_the_other(void **state)
{
	struct world *w = world_of(NODES);

	put_all(w, world_put_whole, 1000);
	for (uint32_t dead = 0; dead + 1 < NODES; dead++) {
		world_kill_node(w, dead);
		world_run(w, 5 * WORLD_SECOND);
	}
	assert_int_equal(lost(w, 1000), 0);
	world_free(w);
}

/* A dataplane that begins again without its store is no death, but the copies there are gone. */
static void a_lost_store_is_made_good(void **state)
{
	for (uint32_t bare = 0; bare < NODES; bare++) {
		for (uint32_t dead = 0; dead < NODES; dead++) {
			struct world *w = world_of(NODES);

			put_all(w, world_put_whole, 1000);
			world_replace_store(w, bare);
			assert_int_equal(world_open(w, bare), 0);
			world_run(w, 5 * WORLD_SECOND);
			world_kill_node(w, dead);
			assert_int_equal(lost(w, 1000), 0);
			world_free(w);
		}
	}
}

/* The sum of two small objects gets its second copy when the reduce has ended. */
static void a_sum_survives_any_death(void **state)
{
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = 2, .count = 2};
	const struct object_id ids[2] = {world_id("s0"), world_id("s1")};
	const uint8_t *bytes;
	uint64_t size;

	for (uint32_t dead = 0; dead < NODES; dead++) {
		struct world *w = world_of(NODES);
		uint32_t at = (dead + 1) % NODES;

		assert_int_equal(world_put_whole(w, 0, 0, "s0", 1000, 1), 0);
		assert_int_equal(world_put_whole(w, 1, 0, "s1", 1000, 2), 0);
		for (uint32_t i = 0; i < OBJECTS; i++) {
			assert_int_equal(world_reduce(w, i % NODES, 0, name_of(i), ids, how, 0, -1),
					 0);
			assert_int_equal(world_reduced(w, i % NODES, 0, name_of(i),
						       5 * (int64_t)WORLD_SECOND, NULL),
					 2);
		}
		world_run(w, 3 * WORLD_SECOND);
		world_kill_node(w, dead);
		for (uint32_t i = 0; i < OBJECTS; i++) {
			assert_int_equal(world_fetch(w, at, 0, name_of(i),
						     5 * (int64_t)WORLD_SECOND, &bytes, &size),
					 0);
			world_unpin(w, at, 0);
		}
		world_free(w);
	}
}

/* It stays deleted: neither the second copy nor the next owner brings it back. */
static void what_is_deleted_stays_away(void **state)
{
	struct session_request r;

	for (uint32_t dead = 0; dead < NODES; dead++) {
		struct world *w = world_of(NODES);

		put_all(w, world_put_whole, 1000);
		for (uint32_t i = 0; i < OBJECTS; i++) {
			r = world_request(SESSION_DELETE, name_of(i));
			assert_int_equal(
				world_call(w, i % NODES, 0, &r, 5 * WORLD_SECOND)->reply.status, 0);
			for (uint32_t n = 0; n < NODES; n++)
				assert_int_equal(world_get(w, n, 0, name_of(i), 1000, i, 0),
						 -ENOENT);
		}
		world_kill_node(w, dead);
		world_run(w, 3 * WORLD_SECOND);
		for (uint32_t i = 0; i < OBJECTS; i++)
			assert_int_equal(
				world_get(w, (dead + 1) % NODES, 0, name_of(i), 1000, i, 0),
				-ENOENT);
		for (uint32_t i = 0; i < OBJECTS; i++)
			assert_int_equal(world_put_whole(w, (dead + 1) % NODES, 0, name_of(i), 900,
							 i + 1000),
					 0);
		for (uint32_t i = 0; i < OBJECTS; i++)
			assert_int_equal(world_get(w, (dead + 2) % NODES, 0, name_of(i), 900,
						   i + 1000, 5 * (int64_t)WORLD_SECOND),
					 0);
		world_free(w);
	}
}

/* Who should hold the second copy is silent: a put waits a quarter of a second for it, no longer.
 */
static void a_silent_node_holds_nobody_up(void **state)
{
	struct world *w = world_of(NODES);
	uint64_t longest = 0;

	w->frozen[4] = true;
	for (uint32_t i = 0; i < OBJECTS; i++) {
		uint64_t began = w->now_ns;
		int r = world_put_whole(w, i % (NODES - 1), 0, name_of(i), 1000, i);

		assert_int_equal(r, 0); /* also once it is taken for dead */
		if (w->now_ns - began > longest)
			longest = w->now_ns - began;
		world_run(w, 300 * WORLD_MS);
	}
	assert_true(longest < 2 * WORLD_SECOND); /* the directory's node may be the silent one */
	world_kill_node(w, 4);
	assert_int_equal(lost(w, 1000), 0);
	world_free(w);
}

/* Alone nobody can hold it: a put does not wait. */
static void alone_a_put_does_not_wait(void **state)
{
	struct world *w = world_of(1);
	uint64_t began = w->now_ns;

	assert_int_equal(world_put_whole(w, 0, 0, "a", 1000, 1), 0);
	assert_int_equal(world_put(w, 0, 0, "b", 1000, 1), 0);
	assert_true(w->now_ns - began < 10 * WORLD_MS);
	world_free(w);
}

/* No request more can wait: what is sealed is sealed, and the writer is told so. */
static void a_seal_that_cannot_wait_is_answered(void **state)
{
	struct world *w = world_of(NODES);
	struct session_request r = world_request(SESSION_CREATE, "a");
	struct session_reply created;

	r.size = 1000;
	created = world_call(w, 0, 0, &r, WORLD_SECOND)->reply;
	assert_int_equal(created.status, 0);
	for (uint32_t i = 0; i < w->config.waits_max; i++) {
		r = world_request(SESSION_GET, "nobody puts it");
		r.timeout_ns = -1;
		world_send(w, 0, 0, &r);
	}
	r = world_request(SESSION_SEAL, "a");
	r.slot = created.slot;
	r.generation = created.generation;
	assert_int_equal(world_call(w, 0, 0, &r, WORLD_SECOND)->reply.status, 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_put_survives_any_death),
		cmocka_unit_test(a_seal_survives_any_death),
		cmocka_unit_test(an_answered_put_survives_at_once),
		cmocka_unit_test(one_death_after_the_other),
		cmocka_unit_test(a_lost_store_is_made_good),
		cmocka_unit_test(a_sum_survives_any_death),
		cmocka_unit_test(what_is_deleted_stays_away),
		cmocka_unit_test(a_silent_node_holds_nobody_up),
		cmocka_unit_test(alone_a_put_does_not_wait),
		cmocka_unit_test(a_seal_that_cannot_wait_is_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
