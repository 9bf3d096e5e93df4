/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces with a deadline: what is there then is the result, if it is enough. Whole
 * nodes (control_reduces.h: five sources, of nodes 0 to 4). */
#include <errno.h>
#include "fixtures/control_reduces.h"

enum { LEAST = 2, EVERY = (1 << SOURCES) - 1 };

#define AT_NS (2 * WORLD_SECOND)

static const uint64_t sizes[] = {0, 1024, SIZE}; /* added up by the directory; streamed */

static struct world *begin(uint32_t sources, uint64_t size, uint32_t op, uint32_t flags,
			   int64_t timeout_ns)
{
	const struct session_reduction by_then = {.op = op,
						  .dtype = REDUCE_U32,
						  .count = SOURCES,
						  .min = LEAST,
						  .deadline_ns = AT_NS};
	struct world *w = reducing(0);

	for (uint32_t i = 0; i < sources; i++) {
		char name[8];

		snprintf(name, sizeof(name), "a%u", i);
		assert_int_equal(world_put(w, i, 0, name, size, i + 1), 0);
	}
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, by_then, flags, timeout_ns), 0);
	return w;
}

/* It has ended at every node that lives with the sources of that set, and is their sum. */
static void ended_with(struct world *w, uint64_t size, uint64_t set)
{
	const uint8_t *bytes;
	uint64_t got;

	for (uint32_t i = 0; i < NODES; i++) {
		int status;

		if (!w->node[i].core)
			continue;
		assert_int_equal(told(w, i, ask(w, i), &status), set);
		assert_int_equal(status, 0);
		assert_int_equal(world_fetch(w, i, 0, target, LONG, &bytes, &got), 0);
		assert_int_equal(got, size);
		assert_true(world_sums(bytes, size, set));
	}
}

static void goes_on(struct world *w)
{
	assert_int_equal(world_reduced(w, CALLER, 0, target, 0, NULL), -ETIMEDOUT);
}

/* No sooner and not much later than at T, and with what was there, not with what came later. */
static void what_is_there_then_is_the_result(void **state)
{
	for (uint32_t k = 0; k < 6; k++) {
		uint64_t size = sizes[k % 3], begun_ns;
		uint32_t flags = k >= 3 ? SESSION_FLAG_ALLREDUCE : 0;
		struct world *w = begin(3, size, REDUCE_SUM, flags, -1);
		int status;

		begun_ns = w->now_ns;
		world_run(w, AT_NS - 100 * WORLD_MS);
		goes_on(w);
		assert_int_equal(told(w, CALLER, ask(w, CALLER), &status), 7);
		assert_in_range(w->now_ns - begun_ns, AT_NS - 10 * WORLD_MS, AT_NS + SOON_NS);
		assert_int_equal(world_put(w, 3, 0, "a3", size, 4), 0);
		ended_with(w, size, 7);
		nothing_is_left(w);
	}
}

static void all_that_come_before_end_the_wait(void **state)
{
	for (uint32_t k = 0; k < 3; k++) {
		uint64_t size = sizes[k];
		struct world *w = begin(SOURCES, size, REDUCE_SUM, 0, -1);
		uint64_t begun_ns = w->now_ns;
		int status;

		assert_int_equal(told(w, CALLER, ask(w, CALLER), &status), EVERY);
		assert_in_range(w->now_ns - begun_ns, 0, AT_NS / 2);
		ended_with(w, size, EVERY);
		nothing_is_left(w);
	}
}

static void fewer_are_waited_for(void **state)
{
	for (uint32_t k = 0; k < 3; k++) {
		uint64_t size = sizes[k], begun_ns;
		struct world *w = begin(LEAST - 1, size, REDUCE_SUM, 0, -1);
		int status;

		world_run(w, AT_NS + WORLD_SECOND);
		goes_on(w);
		assert_int_equal(world_put(w, 3, 0, "a3", size, 4), 0);
		begun_ns = w->now_ns;
		assert_int_equal(told(w, CALLER, ask(w, CALLER), &status), 9);
		assert_in_range(w->now_ns - begun_ns, 0, SOON_NS);
		ended_with(w, size, 9);
		nothing_is_left(w);
	}
}

/* Until its own time is over; the words name what misses, and how many must be there. */
static void the_time_ends_that(void **state)
{
	for (uint32_t k = 0; k < 3; k++) {
		struct world *w =
			begin(LEAST - 1, sizes[k], REDUCE_SUM, 0, (int64_t)(AT_NS + WORLD_SECOND));
		struct world_reply *a = world_wait(w, CALLER, ask(w, CALLER), LONG);

		assert_non_null(a);
		assert_int_equal(a->reply.status, -ETIMEDOUT);
		assert_non_null(strstr(a->reply.text, " and 3 more never came within 3 s, and 2 of "
						      "5 must be there: put them"));
		nothing_is_left(w);
	}
}

/* The average is that of those that are in it. */
static void an_average_counts_those_that_are_in_it(void **state)
{
	for (uint32_t k = 1; k < 3; k++) {
		struct world *w = begin(3, sizes[k], REDUCE_AVG, 0, -1);
		uint32_t sum = 0, one, got;
		const uint8_t *bytes;
		uint64_t size;

		for (uint32_t i = 0; i < 3; i++) {
			uint8_t word[sizeof(one)];

			world_fill(word, sizeof(word), i + 1);
			memcpy(&one, word, sizeof(one));
			sum += one;
		}
		assert_int_equal(world_fetch(w, 0, 0, target, LONG, &bytes, &size), 0);
		memcpy(&got, bytes, sizeof(got));
		assert_int_equal(got, sum / 3);
		nothing_is_left(w);
	}
}

/* A source that was there and is lost before T is not in it. */
static void what_is_lost_before_is_not_in_it(void **state)
{
	struct world *w = begin(3, SIZE, REDUCE_SUM, 0, -1);

	world_run(w, 200 * WORLD_MS);
	world_kill_node(w, 1);
	ended_with(w, SIZE, 5);
	nothing_is_left(w);
}

/* The next coordinator counts to the same T, and has no more patience after it. */
static void the_coordinator_dies_before(void **state)
{
	for (uint32_t k = 0; k < 3; k++) {
		uint64_t size = sizes[k], begun_ns;
		struct world *w = begin(3, size, REDUCE_SUM, 0, -1);
		int status;

		begun_ns = w->now_ns;
		world_run(w, 200 * WORLD_MS);
		world_kill_node(w, OWNER);
		assert_int_equal(told(w, CALLER, ask(w, CALLER), &status), 7);
		assert_in_range(w->now_ns - begun_ns, AT_NS - 10 * WORLD_MS, AT_NS + CERTAIN_NS);
		ended_with(w, size, 7);
		nothing_is_left(w);
	}
}

/* The owner keeps to the same T. */
static void the_requester_dies_before(void **state)
{
	struct world *w = begin(3, SIZE, REDUCE_SUM, 0, -1);
	uint64_t begun_ns = w->now_ns;
	int status;

	world_run(w, 200 * WORLD_MS);
	world_kill_node(w, CALLER);
	assert_int_equal(told(w, 0, ask(w, 0), &status), 7);
	assert_in_range(w->now_ns - begun_ns, AT_NS - 10 * WORLD_MS, AT_NS + CERTAIN_NS);
	ended_with(w, SIZE, 7);
	nothing_is_left(w);
}

/* The requester's control restarts: its client repeats the request with what is left of T, and no
 * node counts from the start again. */
static void the_control_of_the_requester_restarts(void **state)
{
	for (uint32_t k = 0; k < 3; k++) {
		uint64_t size = sizes[k], begun_ns;
		struct world *w = begin(3, size, REDUCE_SUM, 0, -1);
		struct session_reduction rest = {
			.op = REDUCE_SUM, .dtype = REDUCE_U32, .count = SOURCES, .min = LEAST};
		int status;

		begun_ns = w->now_ns;
		world_run(w, SOON_NS);
		forget(w);
		rest.deadline_ns = (int64_t)(begun_ns + AT_NS - w->now_ns);
		assert_int_equal(
			world_reduce(w, CALLER, 0, target, ids, rest, SESSION_FLAG_RETRY, -1), 0);
		assert_int_equal(told(w, CALLER, ask(w, CALLER), &status), 7);
		assert_in_range(w->now_ns - begun_ns, AT_NS - 10 * WORLD_MS, AT_NS + CERTAIN_NS);
		ended_with(w, size, 7);
		nothing_is_left(w);
	}
}

/* It is decided, and one that was needed is lost: what came later takes its place. */
static void what_came_later_is_a_reserve(void **state)
{
	struct world *w = reducing(0);
	const struct session_reduction by_then = {.op = REDUCE_SUM,
						  .dtype = REDUCE_U32,
						  .count = SOURCES,
						  .min = LEAST,
						  .deadline_ns = AT_NS};
	for (uint32_t i = 0; i < SLOW; i++)
		put_source(w, i);
	begin_source(w); /* the result stands still until this one is written */
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, by_then, 0, -1), 0);
	world_run(w, AT_NS + SOON_NS);
	goes_on(w);
	assert_int_equal(at(w, OWNER)->want.num, 4);
	put_source(w, 4);
	world_run(w, SOON_NS);
	world_kill_node(w, SLOW);
	ended_with(w, SIZE, EVERY & ~(1 << SLOW));
	nothing_is_left(w);
}

/* As far as it is, before T and after it. */
static void how_far_it_is(void **state)
{
	struct world *w = begin(LEAST - 1, SIZE, REDUCE_SUM, 0, -1);
	struct session_request r = world_request(SESSION_REDUCED, target);
	struct world_reply *a;

	r.flags = SESSION_FLAG_PROGRESS;
	r.timeout_ns = 0;
	for (int passed = 0; passed < 2; passed++) {
		uint32_t seq = world_send(w, 0, 0, &r);

		do {
			a = world_wait(w, 0, seq, WORLD_SECOND);
			assert_non_null(a);
		} while (a->reply.flags & SESSION_FLAG_MORE);
		assert_non_null(strstr(a->reply.text, "1 of 5 sources are there, missing "));
		assert_non_null(
			strstr(a->reply.text, passed ? ", 2 suffice; " : ", 2 suffice in 2 s; "));
		world_run(w, AT_NS);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_then_is_the_result),
		cmocka_unit_test(all_that_come_before_end_the_wait),
		cmocka_unit_test(fewer_are_waited_for),
		cmocka_unit_test(the_time_ends_that),
		cmocka_unit_test(an_average_counts_those_that_are_in_it),
		cmocka_unit_test(what_is_lost_before_is_not_in_it),
		cmocka_unit_test(the_coordinator_dies_before),
		cmocka_unit_test(the_requester_dies_before),
		cmocka_unit_test(the_control_of_the_requester_restarts),
		cmocka_unit_test(what_came_later_is_a_reserve),
		cmocka_unit_test(how_far_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
