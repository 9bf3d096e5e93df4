/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks of groups in a whole node: what may change between a task and its end. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/reduce/requester/requester.h"
#include "core/state.h"
#include "internal/reduce.h"

#define STORE (UINT64_C(32) << 20)

static struct object_id ids[MESSAGE_SOURCES_MAX + 1];

/* A group whose policy is read next: any object of that name will do. */
static struct group *begin(struct world *w)
{
	struct groups *gs = &w->node[0].core->group->groups;
	struct group *g = groups_make(gs, "g");

	assert_non_null(g);
	g->phase = GROUP_PHASE_READ_POLICY;
	g->listed[0] = 1;
	g->op = REDUCE_SUM;
	g->dtype = REDUCE_F32;
	return g;
}

/* The object that a task reads in this node's store goes before the task ends. */
static void an_object_that_goes_is_not_read(void **state)
{
	for (uint32_t how = 0; how < 4; how++) {
		struct world *w = world_new(1, 1, STORE, true);
		struct control *c;
		struct object_slot *s;
		struct object_id id = world_id(".group/g/p/1");
		struct group *g;

		world_keep_all(w);
		assert_int_equal(world_put(w, 0, 0, ".group/g/p/1", 100, 1), 0);
		c = w->node[0].core;
		g = begin(w);
		assert_true(c->group->ops.read(c, g, ".group/g/p/1"));
		s = &c->table->slot[slots_find(c, &id)];
		if (how == 1)
			s->generation++;
		else if (how == 2)
			s->state = OBJECT_CREATING;
		else if (how == 3)
			s->size = GROUP_BLOB_BYTES + 1;
		world_run(w, WORLD_MS);
		assert_int_equal(g->phase, how == 0 ? GROUP_PHASE_LIVE : GROUP_PHASE_READ_POLICY);
		assert_int_equal(g->retry_ns == UINT64_MAX, how == 0);
		world_free(w);
	}
}

/* Somebody has put it without bytes, or with more than a text of a group has: it is read as one
 * that says nothing, here and on another node. */
static void an_object_of_another_size_says_nothing(void **state)
{
	static const uint64_t sizes[] = {0, GROUP_BLOB_BYTES + 1, 200000};

	for (uint32_t i = 0; i < 6; i++) {
		struct world *w = world_new(2, 1, STORE, true);
		struct control *c = w->node[0].core;
		struct group *g;

		world_keep_all(w);
		assert_int_equal(world_put(w, i % 2, 0, ".group/g/p/1", sizes[i / 2], 1), 0);
		g = begin(w);
		assert_true(c->group->ops.read(c, g, ".group/g/p/1"));
		world_run(w, 3000 * WORLD_MS);
		assert_int_equal(g->phase, GROUP_PHASE_LIVE);
		world_free(w);
	}
}

/* A result of another size is none: nothing can be added to it. */
static void a_result_of_another_size_is_not_there(void **state)
{
	static const uint64_t sizes[] = {40, 39, 0, 41};

	for (uint32_t i = 0; i < 4; i++) {
		struct world *w = world_new(1, 1, STORE, true);
		struct control *c;
		struct group *g;

		world_keep_all(w);
		assert_int_equal(world_put(w, 0, 0, ".group/g/r/1", sizes[i], 1), 0);
		c = w->node[0].core;
		g = begin(w);
		g->phase = GROUP_PHASE_LIVE;
		g->count = 10;
		g->looking = GROUP_LOOK_COPIES;
		g->look_at = g->kept[1] = (struct group_kept){1, 0};
		g->result = 1;
		g->doubt = true;
		assert_true(c->group->ops.look(c, g, ".group/g/r/1"));
		world_run(w, 5000 * WORLD_MS);
		assert_int_equal(g->result, sizes[i] == 40);
		assert_int_equal(g->doubt, false);
		world_free(w);
	}
}

/* The same of what is listed. */
static void a_result_of_another_size_is_not_listed(void **state)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct world *w = world_new(1, 1, STORE, true);
		struct control *c;
		struct group *g;

		world_keep_all(w);
		assert_int_equal(world_put(w, 0, 0, ".group/g/r/1", 40 + i, 1), 0);
		c = w->node[0].core;
		g = begin(w);
		g->phase = GROUP_PHASE_LIST;
		g->listed[0] = 0;
		g->count = 10;
		assert_true(c->group->ops.list(c, g, ".group/g/"));
		world_run(w, 5000 * WORLD_MS);
		assert_int_equal(g->phase, GROUP_PHASE_LIVE);
		assert_int_equal(rounds_kept(g, 1) != NULL, i == 0);
		world_free(w);
	}
}

static void a_reduce_has_no_more_sources_than_one_may_have(void **state)
{
	struct world *w = world_new(1, 1, STORE, true);
	struct control *c;
	struct group *g;

	world_keep_all(w);
	c = w->node[0].core;
	g = begin(w);
	for (uint32_t i = 0; i <= MESSAGE_SOURCES_MAX; i++)
		memcpy(ids[i].bytes, &i, sizeof(i));
	assert_false(c->group->ops.reduce(c, g, "r", ids, MESSAGE_SOURCES_MAX + 1, false));
	assert_true(c->group->ops.reduce(c, g, "r", ids, MESSAGE_SOURCES_MAX, false));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_that_goes_is_not_read),
		cmocka_unit_test(an_object_of_another_size_says_nothing),
		cmocka_unit_test(a_result_of_another_size_is_not_there),
		cmocka_unit_test(a_result_of_another_size_is_not_listed),
		cmocka_unit_test(a_reduce_has_no_more_sources_than_one_may_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
