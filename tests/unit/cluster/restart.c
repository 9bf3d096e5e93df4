/* SPDX-License-Identifier: BSD-3-Clause */
/* A control that ends by a signal and is started again: its node keeps what is there. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

#define STORE (UINT64_C(16) << 20)
#define SIZE  UINT64_C(100000)

enum { ASKS, RESTARTS, CACHES, NODES, NAMES = 12 };

static const char *name_of(uint32_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "object-%u", i);
	return name;
}

/* All nodes keep a part of the directory; RESTARTS has put the objects, and CACHES has copies. Then
 * the control of RESTARTS says that it restarts, and is gone. */
static struct world *resting(void)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	w->config.rest_ns = 10 * WORLD_SECOND;
	world_keep_all(w);
	for (uint32_t i = 0; i < NAMES; i++) {
		assert_int_equal(world_put(w, RESTARTS, 0, name_of(i), SIZE, i + 1), 0);
		assert_int_equal(world_get(w, CACHES, 0, name_of(i), SIZE, i + 1, WORLD_SECOND), 0);
		world_unpin(w, CACHES, 0);
	}
	world_run(w, WORLD_SECOND);
	control_rest(w->node[RESTARTS].core, w->now_ns);
	world_run(w, WORLD_SECOND / 20);
	world_kill_control(w, RESTARTS);
	return w;
}

static uint32_t live(struct world *w, uint32_t node)
{
	return w->node[node].core->cluster->members.live_count;
}

static void what_it_has_put_stays(void **state)
{
	struct world *w = resting();
	struct session_request get = world_request(SESSION_GET, name_of(0));
	uint32_t seq;

	get.timeout_ns = (int64_t)(20 * WORLD_SECOND);
	seq = world_send(w, ASKS, 0, &get);
	world_run(w, 6 * WORLD_SECOND);
	assert_int_equal(live(w, ASKS), NODES);
	for (uint32_t i = 1; i < NAMES; i++)
		assert_int_not_equal(world_put_whole(w, ASKS, 0, name_of(i), SIZE, 99), 0);
	assert_int_equal(control_counters(w->node[CACHES].core)->appointed, 0);
	world_start_control(w, RESTARTS);
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(world_open(w, RESTARTS), 0);
	assert_int_equal(live(w, ASKS), NODES);
	assert_non_null(world_wait(w, ASKS, seq, 10 * WORLD_SECOND));
	for (uint32_t i = 0; i < NAMES; i++)
		for (uint32_t node = 0; node < NODES; node++)
			assert_int_equal(
				world_get(w, node, 0, name_of(i), SIZE, i + 1, 10 * WORLD_SECOND),
				0);
	assert_int_equal(control_counters(w->node[CACHES].core)->appointed, 0);
	world_unpin(w, ASKS, 0);
	world_free(w);
}

static void a_control_that_does_not_come_back_is_dead(void **state)
{
	struct world *w = resting();

	world_run(w, 12 * WORLD_SECOND);
	assert_int_equal(live(w, ASKS), NODES - 1);
	assert_int_equal(live(w, CACHES), NODES - 1);
	for (uint32_t i = 0; i < NAMES; i++)
		assert_int_equal(world_get(w, ASKS, 0, name_of(i), SIZE, i + 1, 10 * WORLD_SECOND),
				 0);
	world_start_control(w, RESTARTS);
	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(live(w, ASKS), NODES);
	world_free(w);
}

/* A node that leaves for good says so: no other waits for it. */
static void one_that_leaves_is_gone_at_once(void **state)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	world_keep_all(w);
	control_leave(w->node[RESTARTS].core, w->now_ns);
	world_run(w, WORLD_SECOND / 20);
	world_kill_control(w, RESTARTS);
	assert_int_equal(live(w, ASKS), NODES - 1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_has_put_stays),
		cmocka_unit_test(a_control_that_does_not_come_back_is_dead),
		cmocka_unit_test(one_that_leaves_is_gone_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
