/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces that are coordinated by the node that has asked for them (reduce/coordinator/delegate.c).
 */
#include "fixtures/control_delegation.h"

static void the_requester_coordinates(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);

	its_id_is_taken(w);
	is_the_sum(w, 0); /* another one who waits for it is told as well */
	is_the_sum(w, CALLER);
	assert_int_equal(at(w, OWNER)->state, REDUCE_ENDED);
	is_the_sum(w, 1); /* and a reader that comes when it has ended */
	nothing_is_left(w);
}

static void the_owner_dies(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);
	uint64_t died_ns = w->now_ns;

	world_kill_node(w, OWNER);
	assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), NEEDED);
	assert_in_range(w->now_ns - died_ns, 0, CERTAIN_NS);
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

/* The last chunk is withheld until the next owner agrees, and so does a reader that comes after the
 * death. */
static void others_get_it_when_the_owner_dies(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);
	struct session_request r = world_request(SESSION_GET, target);
	const uint8_t *bytes;
	uint64_t died_ns, size;

	r.timeout_ns = LONG;
	assert_int_equal(world_call(w, 1, 0, &r, SOON_NS)->reply.status, 0);
	died_ns = w->now_ns;
	world_kill_node(w, OWNER);
	world_send(w, 2, 0, &r);
	assert_int_equal(world_fetch(w, 1, 0, target, LONG, &bytes, &size), 0);
	assert_int_equal(world_fetch(w, 2, 0, target, LONG, &bytes, &size), 0);
	assert_in_range(w->now_ns - died_ns, 0, CERTAIN_NS);
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

/* The next owner keeps the target, and the builders go on; also when it hears from a builder before
 * it hears from the requester. */
static void the_owner_dies_early(void **state)
{
	for (int late = 0; late < 2; late++) {
		struct session_request source, r;
		uint64_t generation;
		uint32_t host, seq;
		struct world *w = flowing(0, &source, &generation, &host);

		its_id_is_taken(w);
		world_kill_node(w, OWNER);
		if (late) {
			world_run(w, 500 * WORLD_MS);
			w->cut[CALLER] = true;
			world_run(w, 500 * WORLD_MS);
			w->cut[CALLER] = false;
		}
		world_run(w, 2 * WORLD_SECOND);
		assert_int_equal(at(w, 0)->state, REDUCE_DELEGATED);
		assert_int_equal(known(w, 0), generation);
		its_id_is_taken(w);
		r = world_request(SESSION_GET, target);
		r.timeout_ns = LONG;
		seq = world_send(w, 1, 0, &r);
		end_source(w, source);
		assert_int_equal(world_wait(w, 1, seq, 20 * WORLD_SECOND)->reply.status, 0);
		is_the_sum(w, CALLER);
		assert_int_equal(known(w, 0), generation);
		nothing_is_left(w);
	}
}

/* The requester is the next owner: the builders go on as well, and losses are repaired. */
static void the_requester_keeps_it_then(void **state)
{
	for (int root_dies = 0; root_dies < 2; root_dies++) {
		struct session_request source;
		uint64_t generation;
		uint32_t host;
		struct world *w = flowing(CALLER, &source, &generation, &host);

		world_kill_node(w, OWNER);
		world_run(w, 2 * WORLD_SECOND);
		assert_false(at(w, CALLER)->delegated.is_delegate);
		assert_int_equal(known(w, CALLER), generation);
		its_id_is_taken(w);
		if (root_dies) {
			world_kill_node(w, host);
			put_source(w, NEEDED);
		}
		if (!root_dies || host != SLOW)
			end_source(w, source);
		is_the_sum(w, CALLER);
		assert_int_equal(known(w, CALLER) == generation, !root_dies);
		nothing_is_left(w);
	}
}

/* It refutes the suspicion: the delegation stays. */
static void the_requester_is_only_suspected(void **state)
{
	struct session_request source;
	uint64_t generation, number, incarnation;
	uint32_t host;
	struct world *w = flowing(0, &source, &generation, &host);
	const struct node *n = &w->node[OWNER].core->cluster->peers.nodes[CALLER];

	number = at(w, OWNER)->want.number;
	incarnation = n->member_incarnation;
	w->cut[CALLER] = true;
	world_run(w, 700 * WORLD_MS);
	w->cut[CALLER] = false;
	world_run(w, 5 * WORLD_SECOND);
	assert_true(n->member_incarnation > incarnation);
	assert_int_equal(at(w, OWNER)->state, REDUCE_DELEGATED);
	assert_int_equal(at(w, OWNER)->want.number, number);
	end_source(w, source);
	is_the_sum(w, CALLER);
	assert_int_equal(known(w, OWNER), generation);
	nothing_is_left(w);
}

/* As when it has kept the target itself for a moment. */
static void the_requester_coordinates_no_more(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);

	reduce_drop(w->node[CALLER].core, at(w, CALLER));
	assert_null(at(w, CALLER));
	world_run(w, 1500 * WORLD_MS); /* it asks how it ends once in a second */
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

static void the_requester_dies(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);

	world_kill_node(w, CALLER);
	is_the_sum(w, 0);
	nothing_is_left(w);
}

/* Other waiting nodes hear what is missing when its time is over. */
static void the_requester_dies_early(void **state)
{
	struct world *w = half_way(NEEDED - 1, 0, 5 * WORLD_SECOND);
	struct session_request r = world_request(SESSION_REDUCED, target);
	uint64_t asked_ns = w->now_ns;
	struct world_reply *a;

	its_id_is_taken(w);
	world_run(w, 2 * WORLD_SECOND);
	world_kill_node(w, CALLER);
	r.timeout_ns = LONG;
	a = world_call(w, 0, 0, &r, LONG);
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ETIMEDOUT);
	assert_non_null(strstr(a->reply.text, " never came within "));
	assert_in_range(w->now_ns - asked_ns, 4 * WORLD_SECOND, 6 * WORLD_SECOND);
	nothing_is_left(w);
}

/* Its client asks again. */
static void its_control_begins_again(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);

	forget(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, SESSION_FLAG_RETRY, -1), 0);
	is_the_sum(w, CALLER);
	world_run(w, 10 * WORLD_SECOND); /* for what was built for the first one */
	nothing_is_left(w);
}

/* Between the owner's agreement and the end: the owner knows the sources of the result. */
static void its_control_begins_again_late(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);
	uint64_t generation;

	assert_true(world_until(w, is_agreed, NULL, LONG));
	world_kill_control(w, CALLER);
	world_run(w, 250 * WORLD_MS);
	generation = known(w, OWNER);
	assert_true(generation != 0);
	world_start_control(w, CALLER);
	world_open(w, CALLER);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, SESSION_FLAG_RETRY, -1), 0);
	is_the_sum(w, CALLER);
	assert_int_equal(known(w, OWNER), generation);
	world_run(w, 10 * WORLD_SECOND);
	nothing_is_left(w);
}

/* The directory takes it for what the caller made; which would wait for its last source. */
static void another_one_comes_back(void **state)
{
	enum { CUT = 4 };
	struct world *w = half_way(SLOW, 0, -1);

	w->cut[CUT] = true;
	world_run(w, 4 * WORLD_SECOND);
	assert_int_equal(world_put(w, CUT, 0, target, SIZE, 9), 0);
	w->cut[CUT] = false;
	assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), -EEXIST);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_get(w, i, 0, target, SIZE, 9, LONG), 0);
	nothing_is_left(w);
}

/* Nobody has the last chunk of what was agreed on: it is lost, and so is no more in the way. */
static void the_result_is_lost(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);
	uint32_t host = NODES;
	uint64_t agreed_ns;

	assert_true(world_until(w, is_decided, &host, LONG));
	agreed_ns = w->now_ns;
	world_kill_node(w, host);
	assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), -ESTALE);
	assert_in_range(w->now_ns - agreed_ns, 0, 6 * WORLD_SECOND);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(world_put(w, OWNER, 0, target, SIZE, 9), 0);
	nothing_is_left(w);
}

/* By a node whose clock is ahead. */
static void the_target_was_deleted_before(void **state)
{
	struct session_request r;
	struct world *w = delegating(0);

	env_generation_after(w->node[0].core,
			     env_generation(w->node[0].core) + 1800 * WORLD_SECOND);
	assert_int_equal(world_put(w, 0, 0, target, SIZE, 9), 0);
	r = world_request(SESSION_DELETE, target);
	r.id = world_id(target);
	assert_int_equal(world_call(w, 0, 0, &r, 5 * WORLD_SECOND)->reply.status, 0);
	for (uint32_t i = 0; i < SOURCES; i++)
		put_source(w, i);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

static void the_target_is_deleted(void **state)
{
	struct session_request r = world_request(SESSION_DELETE, target);
	struct world *w = half_way(SOURCES, 0, -1);

	r.id = world_id(target);
	assert_int_equal(world_call(w, 1, 0, &r, 5 * WORLD_SECOND)->reply.status, 0);
	assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), -ECANCELED);
	nothing_is_left(w);
}

static void its_time_is_over(void **state)
{
	struct world *w = half_way(1, 0, WORLD_SECOND);

	assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), -ETIMEDOUT);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(world_put(w, 0, 0, target, SIZE, 9), 0); /* the id is free */
	nothing_is_left(w);
}

/* No call is free at the requester: the owner hears of the failure all the same. */
static void its_time_is_over_where_much_is_asked(void **state)
{
	struct world *w = delegating(0);
	struct call *calls;

	for (uint32_t i = 0; i < SLOW; i++)
		put_source(w, i);
	begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, WORLD_SECOND), 0);
	world_run(w, 900 * WORLD_MS);
	assert_int_equal(at(w, CALLER)->state, REDUCE_RUNNING);
	calls = starve(w, CALLER);
	world_run(w, 200 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_ENDED);
	assert_int_equal(at(w, OWNER)->status, -ETIMEDOUT);
	feed(w, CALLER, calls);
	world_run(w, 10 * WORLD_SECOND); /* for what was built for it */
	nothing_is_left(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_requester_coordinates),
		cmocka_unit_test(the_owner_dies),
		cmocka_unit_test(others_get_it_when_the_owner_dies),
		cmocka_unit_test(the_owner_dies_early),
		cmocka_unit_test(the_requester_keeps_it_then),
		cmocka_unit_test(the_requester_is_only_suspected),
		cmocka_unit_test(the_requester_coordinates_no_more),
		cmocka_unit_test(the_requester_dies),
		cmocka_unit_test(the_requester_dies_early),
		cmocka_unit_test(its_control_begins_again),
		cmocka_unit_test(its_control_begins_again_late),
		cmocka_unit_test(another_one_comes_back),
		cmocka_unit_test(the_result_is_lost),
		cmocka_unit_test(the_target_is_deleted),
		cmocka_unit_test(the_target_was_deleted_before),
		cmocka_unit_test(its_time_is_over),
		cmocka_unit_test(its_time_is_over_where_much_is_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
