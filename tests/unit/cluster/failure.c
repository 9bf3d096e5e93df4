/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes and nodes that die in the middle, and come back or not. */
#include <stdio.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

#define STORE (UINT64_C(16) << 20)
#define SIZE  6000000

static struct world *make(uint32_t nodes)
{
	struct world *w = world_new(nodes, 1, STORE, false);

	for (uint32_t i = 0; i < nodes; i++)
		assert_int_equal(world_open(w, i), 0);
	return w;
}

struct half {
	uint32_t node, slot;
	uint64_t bytes;
};

static bool arrived(struct world *w, void *arg)
{
	const struct half *h = arg;

	return w->node[h->node].table->slot[h->slot].watermark >= h->bytes;
}

/* A get whose bytes have come half way; returns the seq of a wait for all of it. */
static uint32_t half_way(struct world *w, uint32_t node, const char *name)
{
	struct session_request r = world_request(SESSION_GET, name);
	struct half h = {.node = node, .bytes = SIZE / 2};
	struct world_reply *got;

	r.pin = 0;
	got = world_call(w, node, 0, &r, 5 * WORLD_SECOND);
	assert_non_null(got);
	assert_int_equal(got->reply.status, 0);
	h.slot = got->reply.slot;
	r = world_wait_for(&got->reply);
	world_send(w, node, 0, &r);
	assert_true(world_until(w, arrived, &h, 5 * WORLD_SECOND));
	assert_null(world_reply_to(w, node, r.seq));
	return r.seq;
}

static void expect_whole(struct world *w, uint32_t node, uint32_t seq, const char *name)
{
	struct world_reply *r = world_wait(w, node, seq, 30 * WORLD_SECOND);

	assert_non_null(r);
	assert_int_equal(r->reply.status, 0);
	assert_int_equal(world_get(w, node, 0, name, SIZE, 7, -1), 0);
}

/* ---- the dataplane -------------------------------------------------------------------------- */

static void holder_dataplane_restarts(void **state)
{
	struct world *w = make(2);
	uint64_t resent;
	uint32_t seq;

	assert_int_equal(world_put(w, 0, 0, "x", SIZE, 7), 0);
	seq = half_way(w, 1, "x");
	world_kill_engine(w, 0);
	world_run(w, WORLD_SECOND);
	resent = w->node[0].counters[0].tx_chunk_bytes;
	world_start_engine(w, 0);
	expect_whole(w, 1, seq, "x");
	resent = w->node[0].counters[0].tx_chunk_bytes - resent;
	assert_true(resent < SIZE * 6 / 10); /* what had arrived stayed */
	world_free(w);
}

static void receiver_dataplane_restarts(void **state)
{
	struct world *w = make(2);
	uint32_t seq;

	assert_int_equal(world_put(w, 0, 0, "x", SIZE, 7), 0);
	seq = half_way(w, 1, "x");
	world_kill_engine(w, 1);
	world_run(w, 5 * WORLD_SECOND);
	assert_null(world_reply_to(w, 1, seq));
	world_start_engine(w, 1);
	expect_whole(w, 1, seq, "x");
	world_free(w);
}

/* ---- control --------------------------------------------------------------------------------- */

static void holder_control_restarts(void **state)
{
	struct world *w = make(2);
	uint32_t seq;

	assert_int_equal(world_put(w, 0, 0, "x", SIZE, 7), 0);
	seq = half_way(w, 1, "x");
	world_kill_control(w, 0);
	world_run(w, 100 * WORLD_MS);
	world_start_control(w, 0); /* which was the directory, too */
	expect_whole(w, 1, seq, "x");
	assert_int_equal(world_open(w, 0), 0);
	assert_int_equal(world_put(w, 0, 0, "x", 10, 1), -EEXIST);
	world_free(w);
}

static void receiver_control_restarts(void **state)
{
	struct world *w = make(2);
	struct control_usage u;

	assert_int_equal(world_put(w, 0, 0, "x", SIZE, 7), 0);
	assert_int_equal(world_put(w, 1, 0, "y", SIZE, 8), 0);
	half_way(w, 1, "x");
	world_kill_control(w, 1);
	world_run(w, 100 * WORLD_MS);
	world_start_control(w, 1);
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.objects, 1); /* y; what was arriving is gone */
	assert_int_equal(world_open(w, 1), 0);
	assert_int_equal(world_get(w, 1, 0, "x", SIZE, 7, 20 * (int64_t)WORLD_SECOND), 0);
	assert_int_equal(world_get(w, 0, 0, "y", SIZE, 8, 20 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

/* Without an answer nothing is said of the object. */
static void directory_does_not_answer(void **state)
{
	struct session_request r = world_request(SESSION_GET, "x");
	struct world *w = make(2);
	struct world_reply *a;

	r.timeout_ns = 0;
	w->cut[0] = true;
	a = world_call(w, 1, 0, &r, SESSION_DIRECTORY_NS + WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ETIMEDOUT);
	assert_non_null(strstr(a->reply.text, "the directory does not answer"));
	world_free(w);
}

/* Nor without a dataplane of its own, and it is not the directory that is to be looked at. */
static void own_dataplane_does_not_run(void **state)
{
	struct session_request r = world_request(SESSION_GET, "x");
	struct world *w = make(2);
	struct world_reply *a;

	world_kill_engine(w, 1);
	for (int i = 0; i < 2; i++) {
		r.timeout_ns = i * (int64_t)WORLD_MS;
		a = world_call(w, 1, 0, &r, SESSION_DIRECTORY_NS + WORLD_SECOND);
		assert_non_null(a);
		assert_int_equal(a->reply.status, -ETIMEDOUT);
		assert_non_null(strstr(a->reply.text, "dataplane does not run"));
	}
	world_free(w);
}

/* The directory's node loses its control: all others tell the new one what they hold. */
static void directory_is_rebuilt(void **state)
{
	struct session_request r = world_request(SESSION_STAT, "b");
	struct world *w = make(3);
	struct world_reply *a;

	assert_int_equal(world_put(w, 1, 0, "b", 100000, 1), 0);
	assert_int_equal(world_put(w, 2, 0, "c", 100, 2), 0);
	assert_int_equal(world_get(w, 2, 0, "b", 100000, 1, -1), 0);
	world_kill_control(w, 0);
	world_run(w, WORLD_SECOND);
	world_start_control(w, 0);
	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(world_open(w, 0), 0);
	a = world_call(w, 1, 0, &r, 5 * WORLD_SECOND);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(a->object.copies, 2);
	assert_int_equal(world_get(w, 0, 0, "b", 100000, 1, -1), 0);
	assert_int_equal(world_get(w, 0, 0, "c", 100, 2, 0), 0);
	world_free(w);
}

/* ---- nodes ------------------------------------------------------------------------------------
 */

/* [G1.7] */
static void another_holder_takes_over(void **state)
{
	struct world *w = make(4);
	uint32_t seq;

	assert_int_equal(world_put(w, 1, 0, "x", SIZE, 7), 0);
	assert_int_equal(world_get(w, 2, 0, "x", SIZE, 7, -1), 0);
	seq = half_way(w, 3, "x"); /* from 1, or from 2 */
	if (w->node[1].counters[0].tx_chunk_bytes > SIZE * 5 / 4)
		w->cut[1] = true;
	else
		w->cut[2] = true;
	expect_whole(w, 3, seq, "x");
	world_free(w);
}

/* 0 -> 1 -> 2: the one in the middle vanishes. */
static void a_link_of_the_chain_breaks(void **state)
{
	struct world *w = make(3);
	uint32_t seq1, seq2;

	w->delay_ns = 500000;
	assert_int_equal(world_put(w, 0, 0, "x", SIZE, 7), 0);
	seq1 = half_way(w, 1, "x");
	seq2 = half_way(w, 2, "x");
	w->cut[1] = true;
	expect_whole(w, 2, seq2, "x");
	w->cut[1] = false; /* the cable is plugged in again */
	expect_whole(w, 1, seq1, "x");
	world_free(w);
}

static void a_lost_object_can_be_put_again(void **state)
{
	struct world *w = make(3);
	struct session_request r = world_request(SESSION_GET, "x");
	uint32_t seq;

	assert_int_equal(world_put(w, 1, 0, "x", 200000, 1), 0);
	world_kill_control(w, 1);
	world_kill_engine(w, 1);
	/* nobody has noticed yet: it gets a place, but no bytes; when its death is known it is an
	 * object like one that nobody has put */
	assert_int_equal(world_get(w, 2, 0, "x", 200000, 1, 8 * (int64_t)WORLD_SECOND), -ERESTART);
	assert_int_equal(world_get(w, 2, 0, "x", 200000, 1, 8 * (int64_t)WORLD_SECOND), -ETIMEDOUT);
	world_unpin(w, 2, 0);
	assert_int_equal(world_put(w, 0, 0, "x", 300000, 2), 0);
	world_run(w, WORLD_SECOND);
	seq = world_send(w, 2, 0, &r);
	assert_non_null(world_wait(w, 2, seq, 20 * WORLD_SECOND));
	assert_int_equal(world_get(w, 2, 0, "x", 300000, 2, -1), 0);
	/* the node comes back with its old copy, which does not count any more */
	world_start_engine(w, 1);
	world_start_control(w, 1);
	world_run(w, 5 * WORLD_SECOND);
	assert_int_equal(world_open(w, 1), 0);
	assert_int_equal(world_get(w, 1, 0, "x", 300000, 2, 20 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

static void a_store_is_lost(void **state)
{
	struct world *w = make(3);

	assert_int_equal(world_put(w, 1, 0, "x", SIZE, 7), 0);
	assert_int_equal(world_get(w, 2, 0, "x", SIZE, 7, -1), 0);
	world_kill_node(w, 1);
	world_run(w, WORLD_SECOND);
	world_start_engine(w, 1);
	world_start_control(w, 1);
	assert_int_equal(world_open(w, 1), 0);
	assert_int_equal(world_get(w, 1, 0, "x", SIZE, 7, 30 * (int64_t)WORLD_SECOND), 0);
	assert_int_equal(world_get(w, 0, 0, "x", SIZE, 7, 30 * (int64_t)WORLD_SECOND), 0);
	world_free(w);
}

/* Its control lives, with a transfer under way and one of its own that is not announced yet. */
static void another_store_under_a_living_control(void **state)
{
	struct world *w = make(2);
	struct control_usage u;

	assert_int_equal(world_put(w, 0, 0, "x", SIZE, 7), 0);
	half_way(w, 1, "x");
	w->cut[1] = true;
	world_run(w, 5 * WORLD_SECOND);
	world_replace_store(w, 1);
	w->cut[1] = false;
	control_usage(w->node[1].core, &u);
	assert_int_equal(u.objects, 0);
	assert_int_equal(u.fetches, 0);
	assert_int_equal(world_open(w, 1), 0);
	assert_int_equal(world_get(w, 1, 0, "x", SIZE, 7, 30 * (int64_t)WORLD_SECOND), 0);
	world_replace_store(w, 1);
	assert_int_equal(world_open(w, 1), 0);
	assert_int_equal(world_put(w, 1, 0, "y", SIZE, 8), 0);
	world_replace_store(w, 1); /* y was announced a moment ago */
	world_run(w, 5 * WORLD_SECOND);
	assert_int_equal(world_get(w, 0, 0, "y", SIZE, 8, WORLD_SECOND), -ETIMEDOUT);
	assert_int_equal(world_open(w, 1), 0);
	assert_int_equal(world_put(w, 1, 0, "y", SIZE, 9), 0);
	assert_int_equal(world_get(w, 0, 0, "y", SIZE, 9, -1), 0);
	world_free(w);
}

/* [G1.1] */
static void nobody_answers(void **state)
{
	struct world *w = make(2);
	struct session_request r = world_request(SESSION_LIST, NULL);
	struct world_reply *a;

	w->cut[0] = true;
	assert_int_equal(world_put(w, 1, 0, "x", 10, 1), -ETIMEDOUT);
	assert_int_equal(world_get(w, 1, 0, "x", 10, 1, WORLD_SECOND), -ETIMEDOUT);
	assert_int_equal(world_get(w, 1, 0, "x", 10, 1, 0), -ETIMEDOUT);
	a = world_call(w, 1, 0, &r, 20 * WORLD_SECOND);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(a->object.flags, SESSION_OBJECT_MISSING);
	assert_int_equal(a->object.holder[0].node, 0);
	w->cut[0] = false;
	assert_int_equal(world_put(w, 1, 0, "x", 10, 1), 0);
	assert_int_equal(world_get(w, 0, 0, "x", 10, 1, -1), 0);
	world_free(w);
}

/* A node that was away while its object was deleted does not bring it back. */
static void deleted_while_away(void **state)
{
	struct world *w = make(2);
	struct session_request r = world_request(SESSION_DELETE, "x");

	assert_int_equal(world_put(w, 1, 0, "x", 200000, 1), 0);
	w->cut[1] = true;
	world_run(w, 5 * WORLD_SECOND);
	assert_int_equal(world_call(w, 0, 0, &r, 10 * WORLD_SECOND)->reply.status, 0);
	world_run(w, 20 * WORLD_SECOND); /* long enough to be forgotten */
	w->cut[1] = false;
	world_run(w, 10 * WORLD_SECOND);
	assert_int_equal(world_get(w, 0, 0, "x", 0, 0, 0), -ENOENT);
	assert_int_equal(world_get(w, 1, 0, "x", 0, 0, 0), -ENOENT);
	world_free(w);
}

/* A name whose part of the directory is kept by one node, as another sees it, and would be by a
 * third next. */
static const char *owned_by(struct world *w, uint32_t asked, uint32_t owner, uint32_t next)
{
	static char name[16];
	static uint32_t k;

	for (;;) {
		struct object_id id;
		struct node *owners[2];

		snprintf(name, sizeof(name), "k%u", k++);
		id = world_id(name);
		ownership_replicas(w->node[asked].core, &id, owners);
		if (owners[0]->number == owner && owners[1]->number == next)
			return name;
	}
}

/* By others of the configuration as it is now. */
static void replace_controls(struct world *w, uint32_t nodes)
{
	for (uint32_t i = 0; i < nodes; i++)
		world_kill_control(w, i);
	for (uint32_t i = 0; i < nodes; i++)
		world_start_control(w, i);
}

static bool remembered(struct world *w, uint32_t node, const char *name)
{
	struct object_id id = world_id(name);

	return directory_tombstone(&w->node[node].core->directory->shard, &id) != NULL;
}

static uint32_t put_and_delete(struct world *w, uint32_t node, const char *name)
{
	struct session_request r = world_request(SESSION_DELETE, name);

	assert_int_equal(world_put(w, node, 0, name, OBJECT_INLINE_MAX + 1, 1), 0);
	return world_send(w, node, 0, &r);
}

/* Who is next for many ids has died, unnoticed: another one stands in for it, and it hears of all
 * when it is back. */
static void deletes_are_told_past_a_dead_node(void **state)
{
	struct world *w = world_new(4, 1, STORE, true);
	char names[40][16];
	uint32_t seq[40];

	w->config.tombstones = 4096;
	replace_controls(w, 4);
	world_run(w, WORLD_SECOND);
	assert_int_equal(world_open(w, 0), 0);
	world_kill_control(w, 1);
	for (uint32_t i = 0; i < 40; i++) {
		strcpy(names[i], owned_by(w, 0, 0, i == 0 ? 2 : 1));
		seq[i] = put_and_delete(w, 0, names[i]);
	}
	assert_int_equal(world_wait(w, 0, seq[0], 100 * WORLD_MS)->reply.status, 0);
	assert_true(remembered(w, 2, names[0]));
	assert_null(world_reply_to(w, 0, seq[1]));
	for (uint32_t i = 1; i < 40; i++) {
		assert_int_equal(world_wait(w, 0, seq[i], 300 * WORLD_MS)->reply.status, 0);
		assert_true(remembered(w, 2, names[i]) || remembered(w, 3, names[i]));
	}
	world_start_control(w, 1);
	world_run(w, 5 * WORLD_SECOND);
	for (uint32_t i = 1; i < 40; i++)
		assert_true(remembered(w, 1, names[i]));
	world_free(w);
}

/* The controls of both that remember it are killed while a copy is out of their reach. */
static void a_delete_outlives_the_controls_that_know_of_it(void **state)
{
	struct world *w = world_new(3, 1, STORE, true);
	struct session_request r;
	const char *name;

	world_keep_all(w);
	name = owned_by(w, 0, 0, 1);
	assert_int_equal(world_put(w, 0, 0, name, 200000, 1), 0);
	assert_int_equal(world_get(w, 2, 0, name, 200000, 1, -1), 0);
	w->cut[2] = true;
	world_run(w, 2 * WORLD_SECOND);
	r = world_request(SESSION_DELETE, name);
	assert_int_equal(world_call(w, 0, 0, &r, WORLD_SECOND)->reply.status, 0);
	replace_controls(w, 2);
	assert_true(remembered(w, 0, name) && remembered(w, 1, name));
	world_run(w, WORLD_SECOND);
	w->cut[2] = false;
	world_run(w, 5 * WORLD_SECOND);
	assert_int_equal(world_get(w, 2, 0, name, 0, 0, 0), -ENOENT);
	world_free(w);
}

/* A returning owner answers nothing of its ids until all members have announced their objects; then
 * requests that came meanwhile are answered soon, not after as long again. */
static void a_owner_that_is_back_is_asked_soon(void **state)
{
	struct world *w = world_new(3, 1, STORE, true);
	uint32_t seq[20];
	uint64_t back_ns;

	w->config.shards = 0;
	replace_controls(w, 3);
	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(world_open(w, 0), 0);
	world_kill_control(w, 1);
	world_run(w, 250 * WORLD_MS);
	back_ns = w->now_ns;
	world_start_control(w, 1);
	for (uint32_t i = 0; i < 20; i++) {
		struct session_request r = world_request(SESSION_CREATE, owned_by(w, 0, 1, 2));

		r.size = 1000;
		world_run(w, 10 * WORLD_MS);
		seq[i] = world_send(w, 0, 0, &r);
	}
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(world_wait(w, 0, seq[i], 3 * WORLD_SECOND)->reply.status, 0);
		assert_in_range(w->now_ns - back_ns, 0, w->config.settle_ns + 200 * WORLD_MS);
	}
	world_free(w);
}

/* No call is free when a holder is to give its copy up: it does so when it is asked what it has. */
static void a_full_table_keeps_no_copies(void **state)
{
	static struct call *taken[256];
	struct world *w = world_new(2, 1, STORE, false);
	const struct object_id id = world_id("deleted");
	struct control *c = w->node[0].core;
	struct message m = {.kind = MESSAGE_TOMBSTONE,
			    .tombstone = {.id = id, .node = MESSAGE_NODE_NONE}};
	struct pool *pool = &c->cluster->calls.pool;
	uint32_t count = 0;

	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_open(w, i), 0);
	assert_int_equal(world_put(w, 1, 0, "deleted", 100000, 1), 0);
	assert_int_equal(world_get(w, 0, 0, "deleted", 100000, 1, -1), 0);
	world_unpin(w, 0, 0);
	world_run(w, WORLD_SECOND);
	m.tombstone.generation = directory_find(&c->directory->shard, &id)->generation;
	assert_in_range(pool->capacity - pool->used, 1, sizeof(taken) / sizeof(*taken));
	while (pool->used < pool->capacity)
		taken[count++] = pool_take(pool);
	control_message(c, peers_node(c, 1)->main->conn, &m, w->now_ns);
	world_run(w, WORLD_SECOND);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_not_equal(slots_find(w->node[i].core, &id), TABLE_SLOT_NONE);
	while (count > 0)
		pool_give(pool, taken[--count]);
	world_run(w, WORLD_SECOND);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(slots_find(w->node[i].core, &id), TABLE_SLOT_NONE);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holder_dataplane_restarts),
		cmocka_unit_test(receiver_dataplane_restarts),
		cmocka_unit_test(holder_control_restarts),
		cmocka_unit_test(receiver_control_restarts),
		cmocka_unit_test(directory_does_not_answer),
		cmocka_unit_test(own_dataplane_does_not_run),
		cmocka_unit_test(directory_is_rebuilt),
		cmocka_unit_test(another_holder_takes_over),
		cmocka_unit_test(a_link_of_the_chain_breaks),
		cmocka_unit_test(a_lost_object_can_be_put_again),
		cmocka_unit_test(a_store_is_lost),
		cmocka_unit_test(another_store_under_a_living_control),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(deleted_while_away),
		cmocka_unit_test(deletes_are_told_past_a_dead_node),
		cmocka_unit_test(a_full_table_keeps_no_copies),
		cmocka_unit_test(a_delete_outlives_the_controls_that_know_of_it),
		cmocka_unit_test(a_owner_that_is_back_is_asked_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
