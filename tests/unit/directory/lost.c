/* SPDX-License-Identifier: BSD-3-Clause */
/* Of an object whose only holder is dead it is told that it is lost, with which node, since when.
 */
#include <stdio.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"

#define STORE	(UINT64_C(16) << 20)
#define BIG	UINT64_C(200000)
#define SECONDS ((int64_t)WORLD_SECOND)

enum { NODES = 5, HOLDER = 1, NAMES = 8 };

static char ghost[16]; /* one whose shard owner lives */

static struct world_reply *stat_of(struct world *w, const char *name)
{
	struct session_request r = world_request(SESSION_STAT, name);
	struct world_reply *a = world_call(w, 2, 0, &r, 5 * WORLD_SECOND);

	assert_non_null(a);
	return a;
}

/* Several were put on node 1, which has died. */
static struct world *one_died(void (*kill)(struct world *w))
{
	struct world *w = world_new(NODES, 1, STORE, true);

	world_keep_all(w);
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(ghost, sizeof(ghost), "ghost-%u", i);
		assert_int_equal(world_put(w, HOLDER, 0, ghost, BIG, 7), 0);
	}
	world_run(w, 100 * WORLD_MS);
	kill(w);
	world_run(w, 2 * WORLD_SECOND);
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(ghost, sizeof(ghost), "ghost-%u", i);
		if (stat_of(w, ghost)->reply.status == 0)
			return w;
	}
	fail();
	return w;
}

static void kill_it(struct world *w)
{
	world_kill_node(w, HOLDER);
}

static void cut_it(struct world *w)
{
	w->cut[HOLDER] = true;
}

static void says_lost(const struct world_reply *a)
{
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ENODATA);
	assert_non_null(strstr(a->reply.text, "lost with node 1 (down for "));
	assert_non_null(strstr(a->reply.text, "put it again"));
}

static struct world_reply *get_of(struct world *w, const char *name, int64_t timeout_ns)
{
	struct session_request r = world_request(SESSION_GET, name);

	r.timeout_ns = timeout_ns;
	r.pin = 0;
	return world_call(w, 2, 0, &r, 60 * WORLD_SECOND);
}

static void it_is_shown_as_lost(void **state)
{
	struct world *w = one_died(kill_it);
	struct session_request r = world_request(SESSION_LIST, NULL);
	const struct world_reply *a = stat_of(w, ghost);
	uint32_t seq;

	assert_int_equal(a->object.copies, 0);
	assert_int_equal(a->object.lost, 1);
	assert_int_equal(a->object.lost_node, HOLDER);
	assert_in_range(a->object.down_ms, 500, 2500);
	assert_int_equal(a->object.holders, 1);
	assert_in_range(a->object.holder[0].down_ms, 500, 2500);
	seq = world_send(w, 2, 0, &r);
	a = world_wait(w, 2, seq, 5 * WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->object.copies, 0);
	assert_int_equal(a->object.lost, 1);
	world_free(w);
}

/* [G7.2] */
static void a_get_says_with_whom_it_is_lost(void **state)
{
	struct world *w = one_died(kill_it);
	uint64_t began = w->now_ns;

	says_lost(get_of(w, ghost, 0));
	assert_true(w->now_ns - began < 50 * WORLD_MS);
	began = w->now_ns;
	says_lost(get_of(w, ghost, SECONDS));
	assert_in_range(w->now_ns - began, WORLD_SECOND, WORLD_SECOND + 50 * WORLD_MS);
	world_free(w);
}

static void it_ends_after_a_while(void **state)
{
	struct world *w = one_died(kill_it);

	world_run(w, w->config.forget_ns);
	assert_int_equal(stat_of(w, ghost)->reply.status, -ENOENT);
	assert_int_equal(get_of(w, ghost, 0)->reply.status, -ENOENT);
	world_free(w);
}

static void it_can_be_put_again(void **state)
{
	struct world *w = one_died(kill_it);

	assert_int_equal(world_put(w, 3, 0, ghost, BIG, 8), 0);
	assert_int_equal(world_get(w, 2, 0, ghost, BIG, 8, 5 * SECONDS), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(stat_of(w, ghost)->object.lost, 0);
	world_free(w);
}

/* A get that has time waits for the node, which has only been away. */
static void it_comes_back_with_its_node(void **state)
{
	struct world *w = one_died(cut_it);
	struct session_request r = world_request(SESSION_GET, ghost);
	struct world_reply *a;
	uint32_t seq;

	r.timeout_ns = 30 * SECONDS;
	r.pin = 0;
	seq = world_send(w, 2, 0, &r);
	world_run(w, WORLD_SECOND);
	w->cut[HOLDER] = false;
	a = world_wait(w, 2, seq, 40 * WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(world_get(w, 2, 0, ghost, BIG, 7, 5 * SECONDS), 0);
	a = stat_of(w, ghost);
	assert_int_equal(a->object.lost, 0);
	assert_int_equal(a->object.copies, 2);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_shown_as_lost),
		cmocka_unit_test(a_get_says_with_whom_it_is_lost),
		cmocka_unit_test(it_ends_after_a_while),
		cmocka_unit_test(it_can_be_put_again),
		cmocka_unit_test(it_comes_back_with_its_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
