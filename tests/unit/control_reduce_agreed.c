/* SPDX-License-Identifier: BSD-3-Clause */
/* Which result a lent reduce has (reduce_lend.c): the one who asked has made it, and the
 * directory's node agrees to it or to another one. */
#include "control_lend.h"

/* The sources of what is told. */
static uint64_t told(struct world *w, uint32_t node, uint32_t seq, int *status)
{
	uint64_t set = 0;
	struct world_reply *a;

	*status = -EBUSY;
	while ((a = world_wait(w, node, seq, LONG)) != NULL) {
		for (uint32_t k = 0; k < a->sources.count; k++)
			for (uint32_t i = 0; i < SOURCES; i++)
				set |= (uint64_t)object_id_equal(&ids[i], &a->sources.source[k])
				       << i;
		if (a->reply.flags & SESSION_FLAG_MORE)
			continue;
		*status = a->reply.status;
		return set;
	}
	return 0;
}

static uint32_t ask(struct world *w, uint32_t node)
{
	struct session_request r = world_request(SESSION_REDUCED, target);

	r.timeout_ns = LONG;
	return world_send(w, node, 0, &r);
}

/* The one who asks builds the target, and waits for the last source of it. */
static struct world *built_here(struct session_request *source)
{
	struct world *w = lending(0);

	assert_int_equal(world_put(w, CALLER, 0, "a0", SIZE, 1), 0);
	put_source(w, 1);
	put_source(w, 2);
	*source = begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(at(w, KEEPER)->state, REDUCE_LENT);
	assert_int_equal(at(w, CALLER)->seat[at(w, CALLER)->root].host, CALLER);
	return w;
}

/* Its control stands still and is taken for dead; its dataplane goes on. */
static void who_asked_wakes_with_all_of_it(void **state)
{
	struct session_request source;
	struct world *w = built_here(&source);
	uint32_t others, owns;
	const uint8_t *bytes;
	uint64_t set, size;
	int status;

	put_source(w, 4);
	others = ask(w, 0);
	owns = ask(w, CALLER);
	world_run(w, 10 * WORLD_MS);
	w->stalled[CALLER] = true;
	end_source(w, source);
	world_run(w, 1500 * WORLD_MS);
	set = told(w, 0, others, &status);
	assert_int_equal(status, 0);
	assert_int_equal(set, 0x1e); /* without what is out of reach */
	w->stalled[CALLER] = false;
	assert_int_equal(told(w, CALLER, owns, &status), set);
	assert_int_equal(status, 0);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(world_fetch(w, i, 0, target, LONG, &bytes, &size), 0);
		assert_true(world_sums(bytes, SIZE, set));
	}
	nothing_is_left(w);
}

/* Whatever of what it then says still arrives; and whoever keeps the target next. */
static void the_keeper_dies_when_it_has_agreed(void **state)
{
	const uint32_t nexts[] = {0, SLOW, CALLER};

	for (uint32_t n = 0; n < 3; n++)
		for (uint64_t later_ns = 0; later_ns < 6 * WORLD_MS; later_ns += WORLD_MS / 2) {
			struct world *w = half_way(SOURCES, nexts[n], -1);
			uint32_t host;

			assert_true(world_until(w, is_decided, &host, LONG));
			world_run(w, later_ns);
			world_kill_node(w, KEEPER);
			is_the_sum(w, CALLER);
			nothing_is_left(w);
		}
}

/* Nor does the one who asked hear of it: the next one keeps what is there, which is that. */
static void the_keeper_dies_before_it_says_so(void **state)
{
	const uint32_t nexts[] = {0, SLOW};

	for (uint32_t n = 0; n < 2; n++) {
		struct world *w = half_way(SOURCES, nexts[n], -1);
		uint32_t host;

		assert_true(world_until(w, is_decided, &host, LONG));
		assert_int_not_equal(host, CALLER);
		w->cut[CALLER] = true;
		world_run(w, 2 * WORLD_MS);
		world_kill_node(w, KEEPER);
		world_run(w, 500 * WORLD_MS);
		w->cut[CALLER] = false;
		assert_false(is_agreed(w, NULL));
		is_the_sum(w, CALLER);
		nothing_is_left(w);
	}
}

/* Before it has: the next one is asked. */
static void the_keeper_dies_when_it_is_asked(void **state)
{
	const uint32_t nexts[] = {0, SLOW, CALLER};

	for (uint32_t n = 0; n < 3; n++) {
		struct session_request source;
		uint64_t generation;
		uint32_t host;
		struct world *w = flowing(nexts[n], &source, &generation, &host);

		world_kill_node(w, KEEPER);
		end_source(w, source);
		world_run(w, 300 * WORLD_MS);
		assert_int_equal(at(w, CALLER)->state, REDUCE_COMMITTING);
		assert_false(is_agreed(w, NULL));
		is_the_sum(w, CALLER);
		assert_int_equal(known(w, nexts[n]), generation);
		nothing_is_left(w);
	}
}

/* What was put on the other side of a cut is there when it asks, and it has not heard of that. */
static void another_one_is_there(void **state)
{
	enum { APART = 4 };
	struct session_request source;
	struct world *w = built_here(&source);
	uint64_t generation = known(w, KEEPER);
	uint32_t seq;
	int status;

	w->cut[APART] = true;
	world_run(w, 4 * WORLD_SECOND);
	assert_int_equal(world_put(w, APART, 0, target, SIZE, 9), 0);
	seq = ask(w, CALLER);
	world_run(w, 10 * WORLD_MS);
	w->stalled[CALLER] = true;
	w->cut[APART] = false;
	end_source(w, source);
	world_run(w, 300 * WORLD_MS);
	assert_true(known(w, KEEPER) > generation);
	assert_int_equal(at(w, KEEPER)->state, REDUCE_LENT);
	w->stalled[CALLER] = false;
	told(w, CALLER, seq, &status);
	assert_int_equal(status, -EEXIST);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_get(w, i, 0, target, SIZE, 9, LONG), 0);
	nothing_is_left(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asked_wakes_with_all_of_it),
		cmocka_unit_test(the_keeper_dies_when_it_has_agreed),
		cmocka_unit_test(the_keeper_dies_before_it_says_so),
		cmocka_unit_test(the_keeper_dies_when_it_is_asked),
		cmocka_unit_test(another_one_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
