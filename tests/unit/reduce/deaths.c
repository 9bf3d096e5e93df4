/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces whose owner or requester dies or forgets, whose result is lost, or whose target is taken.
 */
#include "fixtures/control_reduces.h"

/* Whichever node owns the target next. */
static void the_owner_dies(void **state)
{
	const uint32_t nexts[] = {0, SLOW, CALLER};

	for (uint32_t n = 0; n < 3; n++) {
		struct world *w = half_way(SOURCES, nexts[n], -1);
		uint64_t died_ns = w->now_ns;

		world_kill_node(w, OWNER);
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), NEEDED);
		assert_in_range(w->now_ns - died_ns, 0, CERTAIN_NS);
		is_the_sum(w, CALLER);
		nothing_is_left(w);
	}
}

/* It refutes the suspicion: the reduce goes on. */
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
	assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
	assert_int_equal(at(w, OWNER)->want.number, number);
	end_source(w, source);
	is_the_sum(w, CALLER);
	assert_int_equal(known(w, OWNER), generation);
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
	struct world *w = reducing(0);

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

/* Whichever of its messages still arrive, and whichever node owns the target next. */
static void the_owner_dies_when_it_is_agreed_to(void **state)
{
	const uint32_t nexts[] = {0, SLOW, CALLER};

	for (uint32_t n = 0; n < 3; n++)
		for (uint64_t later_ns = 0; later_ns < 6 * WORLD_MS; later_ns += WORLD_MS / 2) {
			struct world *w = half_way(SOURCES, nexts[n], -1);
			uint32_t host;

			assert_true(world_until(w, is_decided, &host, LONG));
			world_run(w, later_ns);
			world_kill_node(w, OWNER);
			is_the_sum(w, CALLER);
			world_run(w, 10 * WORLD_SECOND); /* for what was built for it */
			nothing_is_left(w);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_dies),
		cmocka_unit_test(the_requester_is_only_suspected),
		cmocka_unit_test(the_requester_dies),
		cmocka_unit_test(the_requester_dies_early),
		cmocka_unit_test(its_control_begins_again),
		cmocka_unit_test(its_control_begins_again_late),
		cmocka_unit_test(another_one_comes_back),
		cmocka_unit_test(the_result_is_lost),
		cmocka_unit_test(the_target_was_deleted_before),
		cmocka_unit_test(the_target_is_deleted),
		cmocka_unit_test(its_time_is_over),
		cmocka_unit_test(the_owner_dies_when_it_is_agreed_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
