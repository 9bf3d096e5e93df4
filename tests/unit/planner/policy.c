/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies of reduces: the first K are planned when the coordinator does, whose functions are
 * included with their effects replaced; deadline takes what is there at T, at least M. */
#define reduce_plan   oracle_plan
#define reduce_fill   oracle_fill
#define reduce_accept oracle_accept
#include "fixtures/control_test.h"
#include "core/reduce/coordinator/contributions.c"
#include "core/planner/policy.h"

enum { SOURCES = 12, RUNS = 20000 };

#define MS UINT64_C(1000000)

static uint32_t planned, filled;

void oracle_plan(struct control *c, struct reduce *r)
{
	r->state = REDUCE_RUNNING;
	if (!r->from.sized)
		return;
	r->plan.graph.vertices = 1;
	planned++;
}

void oracle_fill(struct control *c, struct reduce *r)
{
	filled++;
}

void oracle_accept(struct control *c, struct reduce *r)
{
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
	return (uint32_t)((*state >> 33) % below);
}

static void answered(struct control *c, struct reduce *r, struct reduce_source *s, bool found,
		     struct policy_view *v)
{
	const struct message_got got = {.size = 4096, .chunk_bytes = 1408, .holder = 3};
	bool first = s->state == SOURCE_ASKED;

	v->answered += first;
	if (found) {
		v->present++;
		assert_true(reduce_takes(c, r, s, &got));
		reduce_known(c, s, &got);
	} else if (first) {
		s->state = SOURCE_ABSENT;
		reduce_answered(c, r, true);
	}
}

/* Sources are found, or are not there and found later, in any order. */
static void the_first_k_are_planned_when_the_coordinator_does(void **state)
{
	static struct control c;

	for (uint64_t run = 1; run <= RUNS; run++) {
		uint64_t seed = run * 7919, retry_ns;
		struct reduce_source source[SOURCES] = {{.state = SOURCE_ASKED}};
		struct reduce r = {.from.source = source,
				   .want = {.dtype = REDUCE_F32, .asked_dtype = REDUCE_F32},
				   .state = REDUCE_LOCATING};
		struct policy_view v = {0};

		planned = 0;
		r.from.count = r.from.unanswered = v.total = 1 + draw(&seed, SOURCES);
		v.needed = r.want.num = 1 + draw(&seed, r.from.count);
		for (uint32_t i = 0; i < r.from.count; i++)
			source[i] = (struct reduce_source){.reduce = &r, .state = SOURCE_ASKED};
		for (uint32_t k = 0; k < 3 * SOURCES && !planned; k++) {
			struct reduce_source *s = &source[draw(&seed, r.from.count)];

			if (s->state != SOURCE_KNOWN)
				answered(&c, &r, s, draw(&seed, 2), &v);
			v.sized = r.from.sized;
			assert_int_equal(policy_turn(&r.rule.args, &v, &retry_ns) == POLICY_PLAN,
					 planned);
			assert_true(retry_ns == UINT64_MAX);
		}
	}
}

static void beyond_k_there_is_a_reserve(void **state)
{
	struct policy_view v = {.total = 5, .needed = 3};

	for (v.speculative = 0; v.speculative < 4; v.speculative++)
		assert_int_equal(policy_replaces(&v), v.speculative < 2);
	v.needed = 5;
	v.speculative = 0;
	assert_false(policy_replaces(&v));
}

static enum policy_turn at(uint64_t ms, uint32_t present, uint32_t least, uint64_t *retry_ns)
{
	const struct policy_args args = {.wait_ns = 100 * MS, .least = least};
	const struct policy_view v = {.now_ns = (1000 + ms) * MS,
				      .opened_ns = 1000 * MS,
				      .sized = true,
				      .total = 8,
				      .answered = present,
				      .present = present,
				      .needed = 6};

	return policy_turn(&args, &v, retry_ns);
}

static void what_is_there_at_t_is_enough(void **state)
{
	uint64_t retry_ns;

	assert_int_equal(at(0, 0, 2, &retry_ns), POLICY_WAIT);
	assert_true(retry_ns == 1100 * MS);
	assert_int_equal(at(99, 5, 2, &retry_ns), POLICY_WAIT);
	assert_int_equal(at(100, 5, 2, &retry_ns), POLICY_FREEZE);
	assert_int_equal(at(100, 2, 2, &retry_ns), POLICY_FREEZE);
	assert_int_equal(at(100, 1, 1, &retry_ns), POLICY_FREEZE);
	assert_int_equal(at(100, 0, 1, &retry_ns), POLICY_WAIT);
}

/* All K are there before T: nobody waits, though not all have answered. */
static void all_that_are_needed_end_the_wait(void **state)
{
	uint64_t retry_ns;

	assert_int_equal(at(1, 6, 2, &retry_ns), POLICY_PLAN);
	assert_int_equal(at(500, 6, 2, &retry_ns), POLICY_PLAN);
	assert_int_equal(at(500, 6, 100, &retry_ns), POLICY_PLAN); /* M beyond K is K */
}

/* Fewer than M at T: the next one that makes M plans; until then only the reduce's own time ends.
 */
static void fewer_than_m_are_waited_for(void **state)
{
	uint64_t retry_ns;

	assert_int_equal(at(100, 3, 4, &retry_ns), POLICY_WAIT);
	assert_true(retry_ns == UINT64_MAX);
	assert_int_equal(at(700, 4, 4, &retry_ns), POLICY_FREEZE);
}

/* T has passed, or comes before the locations are answered: those are waited for, but not longer
 * than the args say. */
static void what_is_not_answered_yet_is_waited_for(void **state)
{
	const struct policy_args args = {.wait_ns = 10 * MS, .least = 2, .settle_ns = 200 * MS};
	struct policy_view v = {.now_ns = 1010 * MS,
				.opened_ns = 1000 * MS,
				.sized = true,
				.total = 8,
				.answered = 7,
				.present = 5,
				.needed = 8};
	uint64_t retry_ns;

	assert_int_equal(policy_turn(&args, &v, &retry_ns), POLICY_WAIT);
	assert_true(retry_ns == 1200 * MS);
	v.answered = 8;
	assert_int_equal(policy_turn(&args, &v, &retry_ns), POLICY_FREEZE);
	v.answered = 7;
	v.now_ns = 1200 * MS;
	assert_int_equal(policy_turn(&args, &v, &retry_ns), POLICY_FREEZE);
	v.present = 1;
	assert_int_equal(policy_turn(&args, &v, &retry_ns), POLICY_WAIT);
	assert_true(retry_ns == UINT64_MAX);
}

static void a_wait_without_end_is_none(void **state)
{
	const struct policy_args args = {.wait_ns = UINT64_MAX, .least = 1};
	const struct policy_view v = {.now_ns = 5 * MS,
				      .opened_ns = 1,
				      .sized = true,
				      .total = 8,
				      .present = 5,
				      .needed = 6};
	uint64_t retry_ns = 0;

	assert_int_equal(policy_turn(&args, &v, &retry_ns), POLICY_WAIT);
	assert_true(retry_ns == UINT64_MAX);
}

/* Whatever is asked, and when: a time that is waited for is to come. */
static void nothing_waits_for_ever(void **state)
{
	uint64_t seed = 5, retry_ns;

	for (uint32_t run = 0; run < RUNS; run++) {
		const struct policy_args args = {draw(&seed, 300) * MS, draw(&seed, 9),
						 draw(&seed, 2) * draw(&seed, 600) * MS};
		struct policy_view v = {.opened_ns = draw(&seed, 100) * MS,
					.total = 1 + draw(&seed, 9)};

		v.now_ns = v.opened_ns + draw(&seed, 500) * MS;
		v.answered = draw(&seed, v.total + 1);
		v.present = draw(&seed, v.answered + 1);
		v.needed = 1 + draw(&seed, v.total);
		v.sized = v.present > 0 || draw(&seed, 2);
		if (policy_turn(&args, &v, &retry_ns) == POLICY_WAIT)
			assert_true(retry_ns > v.now_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_k_are_planned_when_the_coordinator_does),
		cmocka_unit_test(beyond_k_there_is_a_reserve),
		cmocka_unit_test(what_is_there_at_t_is_enough),
		cmocka_unit_test(all_that_are_needed_end_the_wait),
		cmocka_unit_test(fewer_than_m_are_waited_for),
		cmocka_unit_test(what_is_not_answered_yet_is_waited_for),
		cmocka_unit_test(a_wait_without_end_is_none),
		cmocka_unit_test(nothing_waits_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
