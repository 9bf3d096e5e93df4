/* SPDX-License-Identifier: BSD-3-Clause */
/* One object from several holders: who brings what, and what becomes of it when one is slow. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"

#define STORE (UINT64_C(32) << 20)
#define SIZE  UINT64_C(20000000)

static uint32_t workers; /* of every node */

static uint64_t sent_by(const struct world *w, uint32_t node)
{
	const struct counters *of = w->node[node].counters;

	return of[0].tx_chunk_bytes + of[1].tx_chunk_bytes;
}

static uint64_t duplicates(const struct world *w, uint32_t node)
{
	const struct counters *of = w->node[node].counters;

	return of[0].rx_chunk_duplicates + of[1].rx_chunk_duplicates;
}

/* Nodes first and first + 1 hold all of "big"; a window's worth per round trip is less than a link
 * carries. Node 0 has the directory. */
static struct world *two_holders(uint32_t nodes, uint32_t first)
{
	struct world *w = world_new(nodes, workers, STORE, false);

	w->delay_ns = 2 * WORLD_MS;
	for (uint32_t i = 0; i < nodes; i++)
		assert_int_equal(world_open(w, i), 0);
	assert_int_equal(world_put(w, first, 0, "big", SIZE, 5), 0);
	assert_int_equal(world_get(w, first + 1, 0, "big", SIZE, 5, -1), 0);
	world_unpin(w, first + 1, 0);
	return w;
}

static uint32_t begin(struct world *w, uint32_t node)
{
	struct session_request r = world_request(SESSION_GET, "big");
	struct world_reply *got = world_call(w, node, 0, &r, WORLD_SECOND);

	assert_non_null(got);
	assert_int_equal(got->reply.status, 0);
	r = world_wait_for(&got->reply);
	return world_send(w, node, 0, &r);
}

static void expect_all(struct world *w, uint32_t node)
{
	assert_int_equal(world_get(w, node, 0, "big", SIZE, 5, -1), 0);
	world_unpin(w, node, 0);
}

static void two_idle_holders_share_the_work(void **state)
{
	struct world *w = two_holders(3, 0);
	uint64_t first = sent_by(w, 0), second = sent_by(w, 1);
	uint32_t seq = begin(w, 2);

	assert_non_null(world_wait(w, 2, seq, 10 * WORLD_SECOND));
	expect_all(w, 2);
	first = sent_by(w, 0) - first;
	second = sent_by(w, 1) - second;
	assert_true(first > SIZE / 4);
	assert_true(second > SIZE / 16); /* how much depends on how fast the first of them begins */
	assert_true(first + second < SIZE / 10 * 11); /* little twice */
	world_free(w);
}

static void one_of_two_dies(void **state)
{
	struct world *w = two_holders(3, 0);
	uint64_t before = w->now_ns;
	uint32_t seq = begin(w, 2);

	world_run(w, 100 * WORLD_MS);
	assert_null(world_reply_to(w, 2, seq));
	assert_true(sent_by(w, 1) > 0);
	w->cut[1] = true;
	assert_non_null(world_wait(w, 2, seq, 10 * WORLD_SECOND));
	expect_all(w, 2);
	assert_true(w->now_ns - before < WORLD_SECOND); /* nobody waited for its time-out */
	assert_true(duplicates(w, 2) < SIZE / 1408 / 10);
	world_free(w);
}

/* The only holder in use falls silent: another is asked long before that one is given up. */
static void a_silent_holder_is_hedged(void **state)
{
	struct world *w = two_holders(4, 1);
	uint64_t before = w->now_ns, sent = sent_by(w, 2);
	uint32_t seq = begin(w, 3);

	world_run(w, 30 * WORLD_MS); /* before a second one is tried */
	assert_null(world_reply_to(w, 3, seq));
	w->cut[sent_by(w, 2) > sent ? 2 : 1] = true;
	assert_non_null(world_wait(w, 3, seq, 10 * WORLD_SECOND));
	assert_true(w->now_ns - before < WORLD_SECOND);
	expect_all(w, 3);
	assert_int_equal(control_counters(w->node[3].core)->hedges, 1);
	world_free(w);
}

/*
 * The stream that goes on with another holder leaves out what has come already: the work is divided
 * again at the first gap. But when node 0 is through with its share before node 1, which is cut
 * off, is given up, it gets the end of what is missing, and all of it some ms later, as a new
 * stream that begins before the old one: what came in between, about 250 chunks of 14,205 for each
 * worker, comes twice.
 */
static void what_is_here_is_not_sent_again(void **state)
{
	struct world *w = two_holders(3, 0);
	uint64_t sent;
	uint32_t seq;

	w->loss_permille = 20; /* holes */
	seq = begin(w, 2);
	world_run(w, 60 * WORLD_MS);
	assert_null(world_reply_to(w, 2, seq));
	w->cut[1] = true;
	world_kill_engine(w, 2);
	world_start_engine(w, 2);
	w->loss_permille = 0;
	sent = sent_by(w, 0);
	assert_non_null(world_wait(w, 2, seq, 20 * WORLD_SECOND));
	expect_all(w, 2);
	assert_true(sent_by(w, 0) - sent < SIZE);
	assert_true(duplicates(w, 2) < 300 * workers);
	world_free(w);
}

/* What stat tells of the copy of a node, asked at another one. */
static struct session_holder holder(struct world *w, uint32_t at, uint32_t node)
{
	struct session_request r = world_request(SESSION_STAT, "big");
	struct world_reply *a = world_call(w, at, 0, &r, 5 * WORLD_SECOND);

	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	for (uint32_t i = 0; i < a->object.holders; i++)
		if (a->object.holder[i].node == node)
			return a->object.holder[i];
	fail_msg("node %u is no holder", node);
	return (struct session_holder){0};
}

static void stat_tells_progress_and_all_feeds(void **state)
{
	struct world *w = two_holders(4, 0);
	uint32_t seq = begin(w, 2);
	struct session_holder before, after;
	bool beyond = false; /* the first gap: there are two feeds */

	world_run(w, 100 * WORLD_MS / workers);
	before = holder(w, 3, 2);
	for (int i = 0; i < 4; i++) {
		world_run(w, 8 * WORLD_MS / workers);
		after = holder(w, 2, 2);
		beyond |= after.watermark < after.arrived;
	}
	assert_true(beyond);
	assert_null(world_reply_to(w, 2, seq));
	assert_false(before.complete);
	assert_true(before.arrived > 0 && before.arrived < after.arrived && after.arrived < SIZE);
	assert_true(after.watermark > 0 && after.watermark <= after.arrived);
	assert_int_equal(after.upstreams, 2);
	assert_int_equal(after.upstream[0] + after.upstream[1], 1); /* nodes 0 and 1 */
	assert_int_equal(holder(w, 3, 0).sending, 1);
	assert_non_null(world_wait(w, 2, seq, 10 * WORLD_SECOND));
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(holder(w, 3, 2).arrived, SIZE);
	assert_int_equal(holder(w, 3, 2).upstreams, 0);
	world_free(w);
}

/* A holder that does not answer delays stat for a moment only. */
static void stat_goes_round_a_silent_holder(void **state)
{
	struct world *w = two_holders(4, 0);
	uint64_t before;

	begin(w, 2);
	world_run(w, 100 * WORLD_MS);
	w->cut[2] = true;
	before = w->now_ns;
	assert_int_equal(holder(w, 3, 2).arrived, 0);
	assert_true(w->now_ns - before <= w->config.status_ns + 100 * WORLD_MS);
	world_free(w);
}

static int one_worker(void **state)
{
	workers = 1;
	return 0;
}

static int two_workers(void **state)
{
	workers = 2;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_idle_holders_share_the_work),
		cmocka_unit_test(one_of_two_dies),
		cmocka_unit_test(a_silent_holder_is_hedged),
		cmocka_unit_test(what_is_here_is_not_sent_again),
		cmocka_unit_test(stat_tells_progress_and_all_feeds),
		cmocka_unit_test(stat_goes_round_a_silent_holder),
	};

	return cmocka_run_group_tests_name("one worker", tests, one_worker, NULL) +
	       cmocka_run_group_tests_name("two workers", tests, two_workers, NULL);
}
