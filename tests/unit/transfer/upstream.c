/* SPDX-License-Identifier: BSD-3-Clause */
/* A second holder: what it is to bring, when it is let go, and one that a fetch cannot begin with
 * as all edges are in use. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { SOURCE, OTHER, RECEIVER, NODES };

#define STORE (UINT64_C(16) << 20)
#define SIZE  UINT64_C(1500000)

static struct fetch *fetching(struct world *w)
{
	struct list *first = list_first(&w->node[RECEIVER].core->transfer->fetches.active);

	return first ? list_item(first, struct fetch, active) : NULL;
}

static bool is_fed(struct world *w, void *arg)
{
	struct fetch *f = fetching(w);

	return f && f->state == FETCH_FED && f->feed[0].state == FEED_STREAM && f->missing > 0;
}

/* One is half-way from SOURCE, which keeps the directory; OTHER has all of it as well. */
static struct world *begin_with(uint32_t edges, uint32_t *seq)
{
	struct world *w = world_new(NODES, 1, STORE, false);
	struct session_request r = world_request(SESSION_GET, "object");
	struct world_reply *got;

	world_kill_control(w, RECEIVER);
	w->config.edges_max = edges;
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

static struct world *begin(uint32_t *seq)
{
	return begin_with(1, seq);
}

static void expect_no_marks(struct world *w)
{
	struct fetch *f = fetching(w);

	assert_non_null(f);
	assert_int_equal(ranges_feeds(f), 1);
	for (int i = 0; i < FETCH_FEEDS; i++)
		if (f->feed[i].state == FEED_FREE)
			assert_false(f->feed[i].reparent || f->feed[i].surplus ||
				     f->feed[i].stands_in);
}

static void end(struct world *w, uint32_t seq)
{
	struct world_reply *r = world_wait(w, RECEIVER, seq, 10 * WORLD_SECOND);

	assert_non_null(r);
	assert_int_equal(r->reply.status, 0);
	world_free(w);
}

static bool asks_for_reparent(struct world *w, void *arg)
{
	struct fetch *f = fetching(w);

	assert_non_null(f);
	w->node[RECEIVER].core->transfer->fetches.best = UINT64_C(1)
							 << 60; /* as if it were slow, */
	f->short_of = UINT16_MAX;				/* and for long */
	f->help_ns = UINT64_MAX;
	return f->reparenting != NULL;
}

/* Its place in the tree cannot be taken: later it asks again. */
static void no_room_for_a_parent(void **state)
{
	struct message m = {.kind = MESSAGE_GOT};
	uint32_t seq;
	struct world *w = begin(&seq);
	struct control *c = w->node[RECEIVER].core;
	struct fetch *f = fetching(w);

	assert_true(world_until(w, asks_for_reparent, NULL, WORLD_SECOND));
	m.request = f->reparenting->message.request;
	m.got.id = f->by_id.id;
	m.got.generation = f->generation;
	m.got.what = MESSAGE_GOT_HOLDER;
	m.got.holder = OTHER;
	control_message(c, peers_node(c, SOURCE)->main->conn, &m, w->now_ns);
	assert_null(f->reparenting);
	expect_no_marks(w);
	assert_true(world_until(w, asks_for_reparent, NULL, WORLD_SECOND));
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
	assert_int_equal(control_counters(w->node[RECEIVER].core)->hedges, 2); /* once each */
	w->cut[SOURCE] = false;
	end(w, seq);
}

static bool both_bring(struct world *w, void *arg)
{
	struct fetch *f = fetching(w);

	assert_non_null(f);
	return f->feed[0].state == FEED_STREAM && f->feed[1].state == FEED_STREAM &&
	       !f->feed[1].fresh && f->rate > 0;
}

/* OTHER brings a part of it. */
static struct world *begin_both(uint32_t *seq)
{
	struct world *w = begin_with(64, seq);
	struct control *c = w->node[RECEIVER].core;
	struct fetch *f = fetching(w);

	monitor_take_got(c, f, &f->feed[1], peers_node(c, OTHER));
	assert_true(world_until(w, both_bring, NULL, WORLD_SECOND));
	return w;
}

static void what_one_was_to_bring_goes_to_the_other(void **state)
{
	uint32_t seq;
	struct world *w = begin_both(&seq);
	struct fetch *f = fetching(w);

	assert_int_equal(f->feed[1].end, ranges_chunks(f));
	assert_true(f->feed[0].end < ranges_chunks(f));
	upstream_failed(w->node[RECEIVER].core, &f->feed[1], MESSAGE_GET_UNREACHED);
	assert_int_equal(f->feed[0].end, ranges_chunks(f)); /* at once, not with the next look */
	end(w, seq);
}

static bool has_looked(struct world *w, void *arg)
{
	return fetching(w)->looked_ns != *(uint64_t *)arg;
}

static uint32_t feeds_after_a_look(struct world *w)
{
	uint64_t looked_ns = fetching(w)->looked_ns;

	assert_true(world_until(w, has_looked, &looked_ns, 50 * WORLD_MS));
	return ranges_feeds(fetching(w));
}

/* Who brings nothing for long while another does is not needed; of two that bring nothing either
 * may be the first to go on. */
static void the_idle_go_when_others_bring(void **state)
{
	for (int cut = 0; cut < 2; cut++) {
		uint32_t seq;
		struct world *w = begin_both(&seq);
		struct fetch *f = fetching(w);
		struct feed *d = &f->feed[1];

		w->cut[OTHER] = true;
		w->cut[SOURCE] = cut;
		world_run(w, 2 * w->delay_ns); /* what was under way has come */
		f->missing =
			chunks_missing(ranges_map(w->node[RECEIVER].core, f), 0, ranges_chunks(f));
		d->missing =
			chunks_missing(ranges_map(w->node[RECEIVER].core, f), d->first, d->end);
		d->idle = 9;
		d->moved_ns = w->now_ns - WORLD_SECOND;
		assert_int_equal(feeds_after_a_look(w), 1 + cut);
		assert_int_equal(control_counters(w->node[RECEIVER].core)->silences, 0);
		w->cut[OTHER] = w->cut[SOURCE] = false;
		end(w, seq);
	}
}

static bool reparent_is_settled(struct world *w, void *arg)
{
	struct fetch *f = fetching(w);

	assert_non_null(f);
	w->node[RECEIVER].core->transfer->fetches.best = 1;
	f->feed[1].behind = UINT32_MAX;
	f->feed[1].fresh = false;
	return !f->feed[1].reparent;
}

/* It is the one that should move, but what it brings is welcome. [G6.2] */
static void a_node_far_behind_is_no_parent(void **state)
{
	uint32_t seq;
	struct world *w = begin_with(64, &seq);
	struct control *c = w->node[RECEIVER].core;
	struct fetch *f = fetching(w);

	f->feed[1].reparent = true;
	monitor_take_got(c, f, &f->feed[1], peers_node(c, OTHER));
	assert_true(world_until(w, reparent_is_settled, NULL, WORLD_SECOND));
	assert_int_equal(ranges_feeds(f), 2);
	assert_int_equal(control_counters(c)->reparents, 0);
	end(w, seq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_was_to_bring_goes_to_the_other),
		cmocka_unit_test(the_idle_go_when_others_bring),
		cmocka_unit_test(a_node_far_behind_is_no_parent),
		cmocka_unit_test(no_room_for_a_parent),
		cmocka_unit_test(no_room_for_a_stand_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
