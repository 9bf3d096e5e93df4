/* SPDX-License-Identifier: BSD-3-Clause */
/* A second holder that a fetch cannot begin with, as all edges are in use: it goes on with the one
 * that it has, and what was noted of the other does not stick to its place. */
#include "control_test.h"
#include "control_world.h"
#include "core/state.h"

enum { SOURCE, OTHER, RECEIVER, NODES };

#define STORE (UINT64_C(16) << 20)
#define SIZE  UINT64_C(1500000)

static struct fetch *fetching(struct world *w)
{
	struct list *first = list_first(&w->node[RECEIVER].core->fetches.active);

	return first ? list_item(first, struct fetch, active) : NULL;
}

static bool is_fed(struct world *w, void *arg)
{
	struct fetch *f = fetching(w);

	return f && f->state == FETCH_FED && f->feed[0].state == FEED_STREAM && f->missing > 0;
}

/* One is half-way from SOURCE, which keeps the directory; OTHER has all of it as well. */
static struct world *begin(uint32_t *seq)
{
	struct world *w = world_new(NODES, 1, STORE, false);
	struct session_request r = world_request(SESSION_GET, "object");
	struct world_reply *got;

	world_kill_control(w, RECEIVER);
	w->config.edges_max = 1;
	world_start_control(w, RECEIVER);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_open(w, i), 0);
	world_run(w, WORLD_SECOND);
	w->delay_ns = 2 * WORLD_MS;
	assert_int_equal(world_put(w, SOURCE, 0, "object", SIZE, 7), 0);
	assert_int_equal(world_get(w, OTHER, 0, "object", SIZE, 7, -1), 0);
	r.pin = 0;
	got = world_call(w, RECEIVER, 0, &r, WORLD_SECOND);
	assert_non_null(got);
	r = world_wait_for(&got->reply);
	*seq = world_send(w, RECEIVER, 0, &r);
	assert_true(world_until(w, is_fed, NULL, WORLD_SECOND));
	return w;
}

static void expect_no_marks(struct world *w)
{
	struct fetch *f = fetching(w);

	assert_non_null(f);
	assert_int_equal(fetch_feeds(f), 1);
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (f->feed[i].state == FEED_FREE)
			assert_false(f->feed[i].home || f->feed[i].stray || f->feed[i].stands_in);
}

static void end(struct world *w, uint32_t seq)
{
	struct world_reply *r = world_wait(w, RECEIVER, seq, 10 * WORLD_SECOND);

	assert_non_null(r);
	assert_int_equal(r->reply.status, 0);
	world_free(w);
}

static bool asks_for_home(struct world *w, void *arg)
{
	struct fetch *f = fetching(w);

	assert_non_null(f);
	w->node[RECEIVER].core->fetches.best = UINT64_C(1) << 60; /* as if it were slow, */
	f->short_of = UINT16_MAX;				  /* and for long */
	f->help_ns = UINT64_MAX;
	return f->homing != NULL;
}

/* Its place in the tree cannot be taken: later it asks again. */
static void no_room_for_a_home(void **state)
{
	struct message m = {.kind = MESSAGE_GOT};
	uint32_t seq;
	struct world *w = begin(&seq);
	struct control *c = w->node[RECEIVER].core;
	struct fetch *f = fetching(w);

	assert_true(world_until(w, asks_for_home, NULL, WORLD_SECOND));
	m.request = f->homing->message.request;
	m.got.id = f->by_id.id;
	m.got.generation = f->generation;
	m.got.what = MESSAGE_GOT_HOLDER;
	m.got.holder = OTHER;
	control_message(c, peers_node(c, SOURCE)->main->conn, &m, w->now_ns);
	assert_null(f->homing);
	expect_no_marks(w);
	assert_true(world_until(w, asks_for_home, NULL, WORLD_SECOND));
	end(w, seq);
}

static bool has_hedged(struct world *w, void *arg)
{
	return control_counters(w->node[RECEIVER].core)->hedges > 0;
}

/* SOURCE falls silent, and the directory with it: OTHER cannot stand in. */
static void no_room_for_a_stand_in(void **state)
{
	uint32_t seq;
	struct world *w = begin(&seq);

	w->cut[SOURCE] = true;
	assert_true(world_until(w, has_hedged, NULL, WORLD_SECOND));
	world_run(w, 50 * WORLD_MS);
	expect_no_marks(w);
	w->cut[SOURCE] = false;
	end(w, seq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_room_for_a_home),
		cmocka_unit_test(no_room_for_a_stand_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
