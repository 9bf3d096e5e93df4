/* SPDX-License-Identifier: BSD-3-Clause */
/* A node whose clock is far ahead: what it may not do, and that it loses nothing. */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { SIZE = 1000, AHEAD = 1, RIGHT = 2 };

#define STORE (UINT64_C(4) << 20)
#define WHEN  (20 * WORLD_SECOND)
#define HOUR  (3600 * WORLD_SECOND)

/* The directory is on node 0. */
static struct world *three(void)
{
	struct world *w = world_new(3, 1, STORE, false);

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_open(w, i), 0);
	world_run(w, WORLD_SECOND);
	return w;
}

static uint64_t refused(const struct world *w, uint32_t node)
{
	return control_counters(w->node[node].core)->generations_refused;
}

/* [G2.4] */
static void what_it_creates_is_refused(void **state)
{
	struct world *w = three();
	const struct world_reply *a;

	w->node[AHEAD].core->epoch_ns += 2 * HOUR;
	a = world_wait(w, AHEAD, world_put_send(w, AHEAD, 0, "x", SIZE, 1), WHEN);
	assert_int_equal(a->reply.status, -ERANGE);
	assert_non_null(strstr(a->reply.text, "the clock of node 1 is 7"));
	assert_non_null(strstr(a->reply.text, "ahead of that of node 0"));
	assert_int_equal(refused(w, 0), 1);
	assert_int_equal(world_put(w, RIGHT, 0, "x", SIZE, 2), 0);
	assert_int_equal(world_get(w, AHEAD, 0, "x", SIZE, 2, WHEN), 0);
	world_end(w);
}

static void an_hour_may_be(void **state)
{
	struct world *w = three();

	w->node[AHEAD].core->epoch_ns += HOUR - 10 * WORLD_SECOND;
	assert_int_equal(world_put(w, AHEAD, 0, "x", SIZE, 1), 0);
	assert_int_equal(refused(w, 0), 0);
	world_end(w);
}

/* It would keep its id for ever, and take all later generations with it. */
static void a_tombstone_from_the_future_is_refused(void **state)
{
	struct world *w = three();
	struct control *c = w->node[0].core;
	const struct object_id id = world_id("x");
	struct message m = {.kind = MESSAGE_TOMBSTONE,
			    .tombstone = {.id = id, .node = MESSAGE_NODE_NONE}};

	m.tombstone.generation = MESSAGE_GENERATION_MAX;
	control_message(c, peers_node(c, AHEAD)->main->conn, &m, w->now_ns);
	assert_null(directory_tombstone(&c->directory->shard, &id));
	assert_int_equal(refused(w, 0), 1);
	env_generation_after(c, MESSAGE_GENERATION_MAX);
	assert_true(env_generation(c) < env_generation_max(c));
	assert_int_equal(world_put(w, RIGHT, 0, "x", SIZE, 2), 0);
	world_end(w);
}

/* The owner of the id may not have heard of the delete yet. [G2.2] */
static void what_is_put_is_later_than_what_was_deleted(void **state)
{
	struct world *w = three();
	struct control *c = w->node[RIGHT].core;
	const struct message_tombstone b = {.id = world_id("x"),
					    .generation = env_generation(c) + 10 * WORLD_SECOND,
					    .node = MESSAGE_NODE_NONE};

	directory_take_tombstone(&c->directory->shard, &b);
	assert_int_equal(world_put(w, RIGHT, 0, "x", SIZE, 2), 0);
	assert_true(c->table->slot[slots_find(c, &b.id)].generation > b.generation);
	directory_take_tombstone(&w->node[0].core->directory->shard, &b); /* the news comes late */
	world_run(w, WORLD_SECOND);
	assert_int_equal(world_get(w, AHEAD, 0, "x", SIZE, 2, WHEN), 0);
	world_end(w);
}

static uint64_t put_after(struct world *w, const struct message_tombstone *b, uint64_t content)
{
	struct control *c = w->node[RIGHT].core;

	directory_take_tombstone(&c->directory->shard, b);
	assert_int_equal(world_put(w, RIGHT, 0, "x", 100000, content), 0);
	return c->table->slot[slots_find(c, &b->id)].generation;
}

/* A reader with a part of the first object would complete it with bytes of the second one.
 * [G2.3] */
static void a_node_that_lost_its_store_makes_no_generation_again(void **state)
{
	struct world *w = three();
	const struct message_tombstone b = {.id = world_id("x"),
					    .generation = env_generation(w->node[RIGHT].core) +
							  10 * WORLD_SECOND,
					    .node = MESSAGE_NODE_NONE};
	uint64_t first = put_after(w, &b, 1), second;

	world_kill_node(w, RIGHT);
	world_start_engine(w, RIGHT);
	world_start_control(w, RIGHT);
	assert_int_equal(world_open(w, RIGHT), 0);
	world_run(w, 2 * WORLD_SECOND);
	second = put_after(w, &b, 2);
	assert_true(first > b.generation && second > b.generation);
	assert_true(first < b.generation + WORLD_SECOND && second < b.generation + WORLD_SECOND);
	assert_int_not_equal(first, second);
	world_end(w);
}

/* Two nodes whose clocks are behind delete and put in turn: they outrun no clock. */
static void raised_generations_stay_near(void **state)
{
	struct world *w = three();
	struct control *c[] = {w->node[0].core, w->node[RIGHT].core};
	uint64_t begun = env_generation(c[0]) + 10 * WORLD_SECOND, last = begun;

	for (uint32_t i = 0; i < 1000; i++) {
		env_generation_after(c[i % 2], last);
		assert_true(env_generation(c[i % 2]) > last);
		last = c[i % 2]->generation;
	}
	assert_true(last - begun < WORLD_SECOND / 2);
	world_end(w);
}

/* Whose clock is set back, or was not set when it began, still learns of what there is. */
static void what_exists_is_let_in(void **state)
{
	struct world *w = three();

	for (uint32_t i = 0; i < 3; i++)
		w->node[i].core->epoch_ns += 2 * HOUR;
	assert_int_equal(world_put(w, RIGHT, 0, "x", 100000, 1), 0);
	world_kill_control(w, 0);
	world_start_control(w, 0);
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(world_get(w, AHEAD, 0, "x", 100000, 1, WHEN), 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_creates_is_refused),
		cmocka_unit_test(an_hour_may_be),
		cmocka_unit_test(a_tombstone_from_the_future_is_refused),
		cmocka_unit_test(what_is_put_is_later_than_what_was_deleted),
		cmocka_unit_test(a_node_that_lost_its_store_makes_no_generation_again),
		cmocka_unit_test(raised_generations_stay_near),
		cmocka_unit_test(what_exists_is_let_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
