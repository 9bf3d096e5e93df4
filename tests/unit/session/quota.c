/* SPDX-License-Identifier: BSD-3-Clause */
/* How much of a node a user may fill with objects. */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { HERE, THERE, NODES, OTHER_USER = 7 };

#define STORE (UINT64_C(4) << 20)
#define SIZE  UINT64_C(200000)
#define WHEN  (20 * WORLD_SECOND)

static struct world *two(void)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	w->config.quota_bytes = 3 * SIZE;
	w->config.quotas_count = 1;
	w->config.quotas[0] = (struct control_quota){OTHER_USER, SIZE};
	world_keep_all(w);
	return w;
}

static int put(struct world *w, uint32_t node, uint32_t session, const char *name)
{
	int r = world_put(w, node, session, name, SIZE, 1);

	world_unpin(w, node, session);
	return r;
}

static int whole(struct world *w, const char *name, uint64_t size)
{
	return world_put_whole(w, HERE, 0, name, size, 1);
}

static int delete (struct world *w, uint32_t node, const char *name)
{
	struct session_request r = world_request(SESSION_DELETE, name);

	return world_call(w, node, 0, &r, WHEN)->reply.status;
}

/* [G8.7] */
static void a_user_has_so_many_bytes(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_CREATE, "d");
	struct world_reply *a;

	assert_int_equal(put(w, HERE, 0, "a"), 0);
	assert_int_equal(put(w, HERE, 0, "b"), 0);
	assert_int_equal(whole(w, "c", 1000), 0);
	assert_int_equal(put(w, HERE, 0, "d"), -EDQUOT);
	assert_int_equal(w->node[HERE].core->counters.quota_refused, 1);
	r.size = SIZE;
	r.pin = 0;
	a = world_call(w, HERE, 0, &r, WHEN);
	assert_string_equal(a->reply.text, "user 0 has 404096 of 600000 bytes on this node, this "
					   "object has 200000: delete objects");
	assert_int_equal(put(w, THERE, 0, "d"), 0); /* another node's do not count here */
	assert_int_equal(world_get(w, HERE, 0, "d", SIZE, 1, WHEN), 0); /* nor do copies */
	assert_int_equal(delete (w, THERE, "a"), 0);
	assert_int_equal(put(w, HERE, 0, "e"), 0);
	assert_int_equal(whole(w, "f", 16000), 0);
	world_free(w);
}

/* They take places in the table, and pages of the store. */
static void small_objects_count_as_a_page(void **state)
{
	struct world *w = two();
	char name[8];

	w->node[HERE].core->config.quota_bytes = 10 * OWNED_LEAST;
	for (int i = 0; i < 11; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(whole(w, name, i % 2), i < 10 ? 0 : -EDQUOT);
	}
	assert_int_equal(delete (w, HERE, "3"), 0);
	assert_int_equal(whole(w, "again", OWNED_LEAST), 0);
	assert_int_equal(whole(w, "more", 0), -EDQUOT);
	world_free(w);
}

static void another_user_has_his_own(void **state)
{
	struct world *w = two();
	const struct control_client who = {.process = 5, .user = OTHER_USER};
	struct session_request r = world_request(SESSION_ATTACH, NULL);

	assert_int_equal(control_session_open(w->node[HERE].core, w->node[HERE].pins[1], w->now_ns),
			 1);
	assert_int_equal(control_session_client(w->node[HERE].core, 1, &who), 0);
	world_call(w, HERE, 1, &r, 0);
	assert_int_equal(put(w, HERE, 1, "a"), 0);
	assert_int_equal(put(w, HERE, 1, "b"), -EDQUOT);
	assert_int_equal(put(w, HERE, 0, "b"), 0);
	assert_int_equal(delete (w, HERE, "a"), 0);
	assert_int_equal(w->node[HERE].core->session->owners.pool.used, 1);
	assert_int_equal(put(w, HERE, 1, "c"), 0);
	world_free(w);
}

static void what_is_given_up_does_not_count(void **state)
{
	struct world *w = two();
	struct session_request r = world_request(SESSION_CREATE, "a");
	struct world_reply *a;

	r.size = 3 * SIZE;
	r.pin = 0;
	a = world_call(w, HERE, 0, &r, WHEN);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(put(w, HERE, 0, "b"), -EDQUOT); /* it counts from its creation on */
	r = world_request(SESSION_ABORT, NULL);
	r.slot = a->reply.slot;
	r.generation = a->reply.generation;
	assert_int_equal(world_call(w, HERE, 0, &r, WHEN)->reply.status, 0);
	assert_int_equal(put(w, HERE, 0, "b"), 0);
	world_free(w);
}

static void another_control_counts_the_same(void **state)
{
	struct world *w = two();

	assert_int_equal(put(w, HERE, 0, "a"), 0);
	assert_int_equal(put(w, HERE, 0, "b"), 0);
	assert_int_equal(put(w, THERE, 0, "copy"), 0);
	assert_int_equal(whole(w, "c", 1000), 0);
	assert_int_equal(world_get(w, HERE, 0, "copy", SIZE, 1, WHEN), 0);
	world_kill_control(w, HERE);
	world_start_control(w, HERE);
	world_run(w, 3 * WORLD_SECOND);
	world_open(w, HERE);
	assert_int_equal(put(w, HERE, 0, "d"), -EDQUOT);
	assert_int_equal(delete (w, HERE, "c"), 0);
	assert_int_equal(put(w, HERE, 0, "d"), 0);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_so_many_bytes),
		cmocka_unit_test(small_objects_count_as_a_page),
		cmocka_unit_test(another_user_has_his_own),
		cmocka_unit_test(what_is_given_up_does_not_count),
		cmocka_unit_test(another_control_counts_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
