/* SPDX-License-Identifier: BSD-3-Clause */
/* Eviction leaves one copy of every object: the one that was put, or who takes its place. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

#define STORE (UINT64_C(16) << 20)
#define SIZE  UINT64_C(6000000) /* two of them fit */

/* Node 0 has the directory; "a" was put on node 1 and is on 2 and 3 as well, "x" fills the rest. */
static struct world *three_copies(void)
{
	struct world *w = world_new(5, 1, STORE, false);

	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(world_open(w, i), 0);
	assert_int_equal(world_put(w, 1, 0, "a", SIZE, 1), 0);
	for (uint32_t i = 2; i < 4; i++) {
		assert_int_equal(world_get(w, i, 0, "a", SIZE, 1, -1), 0);
		world_unpin(w, i, 0);
	}
	assert_int_equal(world_put(w, 2, 0, "x2", SIZE, 2), 0);
	assert_int_equal(world_put(w, 3, 0, "x3", SIZE, 3), 0);
	world_run(w, 100 * WORLD_MS);
	return w;
}

/* Nodes 2 and 3 need the room of their copy at the same moment. Returns how many got it. */
static int both_want_room(struct world *w)
{
	struct session_request r = world_request(SESSION_CREATE, "y2");
	uint32_t seq[2];
	int got = 0;

	r.size = SIZE;
	r.pin = 40;
	seq[0] = world_send(w, 2, 0, &r);
	r = world_request(SESSION_CREATE, "y3");
	r.size = SIZE;
	r.pin = 40;
	seq[1] = world_send(w, 3, 0, &r);
	for (uint32_t i = 0; i < 2; i++) {
		struct world_reply *a = world_wait(w, 2 + i, seq[i], 5 * WORLD_SECOND);

		assert_non_null(a);
		assert_true(a->reply.status == 0 || a->reply.status == -ENOSPC);
		got += a->reply.status == 0;
	}
	return got;
}

static uint32_t appointed(const struct world *w)
{
	return (uint32_t)(control_counters(w->node[2].core)->appointed +
			  control_counters(w->node[3].core)->appointed);
}

static void copies_go_while_the_first_one_lives(void **state)
{
	struct world *w = three_copies();

	assert_int_equal(both_want_room(w), 2);
	assert_int_equal(world_get(w, 4, 0, "a", SIZE, 1, 5 * (int64_t)WORLD_SECOND), 0);
	assert_int_equal(appointed(w), 0);
	world_free(w);
}

/* One of the two is the pinned replica now: it stays when both nodes want room. */
static void one_pins(struct world *w)
{
	assert_int_equal(appointed(w), 1);
	assert_int_equal(both_want_room(w), 1);
	assert_int_equal(world_get(w, 4, 0, "a", SIZE, 1, 5 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

/* [G8.3] */
static void the_last_copy_stays(void **state)
{
	struct world *w = three_copies();

	world_kill_node(w, 1);
	world_run(w, 12 * WORLD_SECOND);
	one_pins(w);
}

/* From the moment that the loss is known to the holders, whatever the directory knows. */
static void nothing_goes_before_somebody_is_appointed(void **state)
{
	struct world *w = three_copies();

	world_kill_control(w, 0);
	world_kill_node(w, 1);
	world_run(w, 12 * WORLD_SECOND);
	assert_int_equal(appointed(w), 0);
	assert_int_equal(control_counters(w->node[2].core)->evictions, 0);
	world_start_control(w, 0);
	world_run(w, 12 * WORLD_SECOND);
	one_pins(w);
}

/* A new directory hears of the copies before it hears of the first one: nobody is appointed. */
static void a_new_directory_appoints_nobody(void **state)
{
	struct world *w = three_copies();

	w->cut[1] = true;
	world_run(w, 200 * WORLD_MS);
	world_kill_control(w, 0);
	world_run(w, 200 * WORLD_MS);
	world_start_control(w, 0);
	world_run(w, 200 * WORLD_MS);
	w->cut[1] = false;
	world_run(w, 10 * WORLD_SECOND);
	assert_int_equal(appointed(w), 0);
	assert_int_equal(both_want_room(w), 2);
	assert_int_equal(world_get(w, 4, 0, "a", SIZE, 1, 5 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

/* The one that was appointed is lost as well. */
static void the_next_one_is_appointed(void **state)
{
	struct world *w = three_copies();
	uint32_t first;

	world_kill_node(w, 1);
	world_run(w, 12 * WORLD_SECOND);
	first = control_counters(w->node[2].core)->appointed ? 2 : 3;
	world_kill_node(w, first);
	world_run(w, 12 * WORLD_SECOND);
	assert_int_equal(control_counters(w->node[5 - first].core)->appointed, 1);
	assert_int_equal(world_put(w, 5 - first, 0, "y", SIZE, 4), -ENOSPC);
	assert_int_equal(world_get(w, 4, 0, "a", SIZE, 1, 5 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

/* A new control finds in the table what stays, and asks for the rest. */
static void a_new_control_keeps_to_it(void **state)
{
	struct world *w = three_copies();

	world_kill_node(w, 1);
	world_run(w, 12 * WORLD_SECOND);
	for (uint32_t i = 2; i < 4; i++) {
		world_kill_control(w, i);
		world_start_control(w, i);
		assert_int_equal(world_open(w, i), 0);
	}
	world_run(w, 12 * WORLD_SECOND);
	assert_int_equal(appointed(w), 0); /* counted again: no other copy was */
	assert_int_equal(both_want_room(w), 1);
	assert_int_equal(world_get(w, 4, 0, "a", SIZE, 1, 5 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

/* "a" was put on node 1 and is cached on node 2. */
static struct world *put_and_cached(void)
{
	struct world *w = world_new(4, 1, STORE, false);

	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(world_open(w, i), 0);
	assert_int_equal(world_put(w, 1, 0, "a", SIZE, 1), 0);
	assert_int_equal(world_get(w, 2, 0, "a", SIZE, 1, -1), 0);
	world_unpin(w, 2, 0);
	return w;
}

/* The same, and "x" fills the rest of node 2. */
static struct world *two_copies(void)
{
	struct world *w = put_and_cached();

	assert_int_equal(world_put(w, 2, 0, "x", SIZE, 2), 0);
	world_run(w, 100 * WORLD_MS);
	return w;
}

/* Nobody knows of the death yet: not those who need the room of the other copy. */
static void a_death_that_nobody_knows_of_keeps_the_copy(void **state)
{
	const uint64_t after[] = {3 * WORLD_MS, 50 * WORLD_MS, 300 * WORLD_MS};

	for (uint32_t i = 0; i < 3; i++) {
		struct world *w = two_copies();
		uint64_t began;

		world_kill_node(w, 1);
		world_run(w, after[i]);
		began = w->now_ns;
		assert_int_equal(world_put(w, 2, 0, "y", SIZE, 3), -ENOSPC);
		assert_true(w->now_ns - began < 400 * WORLD_MS);
		began = w->now_ns;
		assert_int_equal(world_put(w, 2, 0, "z", SIZE, 4), -ENOSPC);
		assert_true(w->now_ns - began < 10 * WORLD_MS); /* it is not asked each time */
		assert_int_equal(control_counters(w->node[2].core)->evictions, 0);
		assert_int_equal(world_get(w, 3, 0, "a", SIZE, 1, 5 * (int64_t)WORLD_SECOND), 0);
		world_free(w);
	}
}

/* A get that needs the room keeps the copy as well, and says so. */
static void a_get_does_not_take_its_room_either(void **state)
{
	struct world *w = two_copies();

	assert_int_equal(world_put(w, 0, 0, "b", SIZE, 5), 0);
	world_kill_node(w, 1);
	world_run(w, 3 * WORLD_MS);
	assert_int_equal(world_get(w, 2, 0, "b", SIZE, 5, 5 * (int64_t)WORLD_SECOND), -ENOSPC);
	assert_int_equal(control_counters(w->node[2].core)->evictions, 0);
	assert_int_equal(world_get(w, 3, 0, "a", SIZE, 1, 5 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

/* While it lives, room is there after one question. */
static void an_answer_makes_room(void **state)
{
	struct world *w = two_copies();
	uint64_t began = w->now_ns;

	assert_int_equal(world_put(w, 0, 0, "b", SIZE, 5), 0);
	world_run(w, 100 * WORLD_MS);
	began = w->now_ns;
	assert_int_equal(world_put(w, 2, 0, "y", SIZE, 3), 0);
	assert_true(w->now_ns - began < 10 * WORLD_MS);
	assert_int_equal(control_counters(w->node[2].core)->evictions, 1);
	world_free(w);

	w = two_copies();
	assert_int_equal(world_put(w, 0, 0, "b", SIZE, 5), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(world_get(w, 2, 0, "b", SIZE, 5, 5 * (int64_t)WORLD_SECOND), 0);
	assert_int_equal(control_counters(w->node[2].core)->evictions, 1);
	world_free(w);
}

static bool holds_a(struct world *w, uint32_t node)
{
	struct object_id id = world_id("a");

	return slots_find(w->node[node].core, &id) != TABLE_SLOT_NONE;
}

/* The directory has room for these two copies, and no more. */
static void fill_directory(struct world *w)
{
	w->config.copies_max = 2;
	world_kill_control(w, 0);
	world_start_control(w, 0);
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(w->node[0].core->directory->shard.copies.used, 2);
}

static struct world *two_copies_noted(void)
{
	struct world *w = put_and_cached();

	fill_directory(w);
	return w;
}

/* A cached copy gives way in the directory as well, and its holder gives it up. */
static void a_full_directory_takes_what_is_put(void **state)
{
	struct world *w = two_copies_noted();

	assert_true(holds_a(w, 2));
	assert_int_equal(world_put(w, 3, 0, "b", SIZE, 2), 0);
	assert_false(holds_a(w, 2));
	assert_true(holds_a(w, 1));
	assert_int_equal(world_put(w, 2, 0, "c", SIZE, 3), -ENOSPC); /* none is left to give way */
	world_free(w);
}

static void a_full_directory_keeps_the_last_copy_too(void **state)
{
	struct world *w = two_copies_noted();

	world_kill_node(w, 1);
	world_run(w, 3 * WORLD_MS);
	assert_int_not_equal(world_put(w, 3, 0, "b", SIZE, 2), 0);
	assert_true(holds_a(w, 2));
	world_free(w);
}

/* The least recently used copy goes first. */
static void the_oldest_goes_first(void **state)
{
	struct world *w = world_new(2, 1, STORE, false);

	assert_int_equal(world_open(w, 0), 0);
	assert_int_equal(world_open(w, 1), 0);
	for (uint64_t i = 0; i < 2; i++) {
		const char *name = i ? "b" : "a";

		assert_int_equal(world_put(w, 0, 0, name, SIZE, i), 0);
		assert_int_equal(world_get(w, 1, 0, name, SIZE, i, -1), 0);
		world_unpin(w, 1, 0);
	}
	assert_int_equal(world_get(w, 1, 0, "a", SIZE, 0, -1), 0); /* used again */
	world_unpin(w, 1, 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(world_put(w, 1, 0, "c", SIZE, 2), 0);
	assert_int_equal(control_counters(w->node[1].core)->evictions, 1);
	assert_int_equal(world_get(w, 1, 0, "a", SIZE, 0, 0), 0);
	assert_int_equal(control_counters(w->node[1].core)->evictions, 1); /* it was here */
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_go_while_the_first_one_lives),
		cmocka_unit_test(the_last_copy_stays),
		cmocka_unit_test(nothing_goes_before_somebody_is_appointed),
		cmocka_unit_test(a_new_directory_appoints_nobody),
		cmocka_unit_test(the_next_one_is_appointed),
		cmocka_unit_test(a_new_control_keeps_to_it),
		cmocka_unit_test(a_death_that_nobody_knows_of_keeps_the_copy),
		cmocka_unit_test(a_get_does_not_take_its_room_either),
		cmocka_unit_test(an_answer_makes_room),
		cmocka_unit_test(a_full_directory_takes_what_is_put),
		cmocka_unit_test(a_full_directory_keeps_the_last_copy_too),
		cmocka_unit_test(the_oldest_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
