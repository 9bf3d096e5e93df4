/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that somebody has put under the names of a group: whatever they say, the group goes on.
 */
#include "world.h"

#define FAR UINT64_C(1000000000000)

static void forge(struct world *w, const char *kind, uint64_t number, uint32_t attempt,
		  const char *bytes)
{
	struct world_name *n;
	struct text name;

	w->forged = true;
	group_name(&name, "g", kind, number, attempt);
	world_give(w, name.bytes);
	n = world_find(w, name.bytes);
	n->length = (uint32_t)strlen(bytes);
	assert_true(n->length <= sizeof(n->bytes));
	memcpy(n->bytes, bytes, n->length);
}

/* A policy, a decision: its bytes can never be read. */
static void forge_ghost(struct world *w, const char *kind, uint64_t number, uint32_t attempt)
{
	struct text name;

	group_name(&name, "g", kind, number, attempt);
	world_ghost(w, name.bytes);
}

/* Members make rounds. */
static struct group *works(struct world *w)
{
	struct group *g = world_group(w);

	while (g->result < 3 || g->task != GROUP_TASK_NONE)
		world_run(w, WORLD_MS);
	return g;
}

/* Each of the members makes ten rounds more, before so much time has passed. */
static void goes_on(struct world *w, uint64_t ns)
{
	uint64_t pushed = world_pushed(w);

	for (uint64_t i = 0; i < ns / WORLD_MS; i++) {
		world_run(w, WORLD_MS);
		if (world_pushed(w) > pushed + 10)
			return;
	}
	world_show(w);
	fail_msg("the group has stopped");
}

/* ---- policies ---------------------------------------------------------------------------------
 */

static void policies_that_say_nothing_are_passed_over(void **state)
{
	for (uint32_t how = 0; how < 3; how++) {
		struct world *w = world_new(1 + how, 2, "bsp", 0);
		struct group *g;

		works(w);
		world_policy(w, "ssp 3");
		if (how == 0)
			forge_ghost(w, "p", FAR, 0);
		else
			forge(w, "p", how == 1 ? FAR : 3, 0, "bsp, nonsense");
		world_kill_owner(w);
		goes_on(w, 20000 * WORLD_MS);
		g = world_group(w);
		assert_string_equal(g->policy_text, "ssp 3");
		assert_int_equal(g->policy.row[0].slack, 3);
		assert_int_equal(g->version, 2);
		world_free(w);
	}
}

/* An owner does not try for ever: then the policy of the creation is in force, and can be changed.
 */
static void after_some_policies_that_of_the_creation_counts(void **state)
{
	struct world *w = world_new(4, 2, "bsp", 0);
	struct group *g;

	works(w);
	world_policy(w, "ssp 3");
	for (uint64_t i = 0; i < GROUP_POLICIES; i++)
		forge(w, "p", FAR + i, 0, i % 2 ? "" : "ssp");
	world_kill_owner(w);
	goes_on(w, 20000 * WORLD_MS);
	g = world_group(w);
	assert_string_equal(g->policy_text, "bsp");
	assert_int_equal(g->version, 1);
	world_policy(w, "asp");
	assert_string_equal(world_group(w)->policy_text, "asp");
	goes_on(w, 20000 * WORLD_MS);
	world_free(w);
}

/* ---- the group itself -------------------------------------------------------------------------
 */

static void an_object_that_is_no_group_is_told(void **state)
{
	static const uint32_t steps[] = {GROUP_OPEN, GROUP_JOIN, GROUP_CREATE, GROUP_REMOVE};

	for (uint32_t i = 0; i < 4; i++) {
		struct world *w = world_new(3, 0, "bsp", 0);
		struct group_request r = {.step = steps[i], .name = "g", .member = 77};
		struct world_name *n = world_find(w, ".group/g");
		char text[128];

		strcpy(n->bytes, "sarissa group 1, or so");
		world_kill_owner(w);
		assert_int_equal(world_ask(w, &r, NULL, text),
				 steps[i] == GROUP_CREATE ? -EEXIST : -EINVAL);
		assert_non_null(strstr(text, "is no group"));
		n->there = false; /* deleted, as the words say */
		r.step = GROUP_OPEN;
		assert_int_equal(world_ask(w, &r, NULL, text), -ENOENT);
		world_free(w);
	}
}

/* ---- names ------------------------------------------------------------------------------------
 */

static void names_have_numbers_in_a_range(void **state)
{
	static const struct {
		const char *name;
		bool valid;
	} names[] = {
		{".group/g/d/4611686018427387903", true},
		{".group/g/d/4611686018427387904", false},
		{".group/g/r/18446744073709551617", false},
		{".group/g/p/99999999999999999999999", false},
		{".group/g/d/7.127", true},
		{".group/g/d/7.128", false},
		{".group/g/d/7.256", false},
		{".group/g/d/7.4294967295", false},
		{".group/g/d/7.4294967296", false},
		{".group/g/r/7.511", true},
		{".group/g/r/7.512", false},
	};
	uint64_t number, member;
	uint32_t attempt;
	char kind;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (group_name_parse("g", names[i].name, &kind, &number, &attempt) !=
		    names[i].valid)
			fail_msg("%s", names[i].name);
	assert_true(group_contribution_parse("g", ".group/g/4611686018427387903/00000000000000ff",
					     &number, &member));
	assert_false(group_contribution_parse("g", ".group/g/4611686018427387904/00000000000000ff",
					      &number, &member));
}

/* Nobody can read a decision, far from the group's or the next: its members join again. */
static void a_group_outlives_any_name(void **state)
{
	static const uint64_t numbers[] = {0, 1, FAR, GROUP_NUMBER_MAX, UINT64_MAX / 2};
	static const uint32_t attempts[] = {0, 1, 127, 255, UINT32_MAX - 1, UINT32_MAX};

	for (uint32_t how = 0; how < 2 * 5 * 6; how++) {
		uint64_t number = numbers[how / 2 % 5];
		uint32_t attempt = attempts[how / 10];
		struct world *w = world_new(5 + how, 3, how % 2 ? "bsp" : "k-of-n 2", 0);
		uint64_t open = works(w)->open.number;

		number += number < FAR ? open : 0;
		forge(w, how % 4 < 2 ? "d" : "r", number, attempt, "nothing");
		forge_ghost(w, "d", number, attempt);
		world_kill_owner(w);
		goes_on(w, 30000 * WORLD_MS);
		world_kill_owner(w);
		goes_on(w, 30000 * WORLD_MS);
		assert_true(world_group(w)->closing.attempt < 2 * GROUP_BY_SWITCH);
		world_free(w);
	}
}

/* ---- decisions --------------------------------------------------------------------------------
 */

/* What differs from a decision of round 9, attempt 1. */
struct forged {
	const char *head;
	const char *lines;
};

static const char head[] = "round 9 attempt 1 version 1 top 9 base 8 0 count 1";

static const struct forged bad[] = {
	{"round 8 attempt 1 version 1 top 9 base 7 0 count 1", NULL},
	{"round 9 attempt 0 version 1 top 9 base 8 0 count 1", NULL},
	{"round 9 attempt 4294967297 version 1 top 9 base 8 0 count 1", NULL},
	{"round 9 attempt 1 version 4611686018427387904 top 9 base 8 0 count 1", NULL},
	{"round 9 attempt 1 version 1 top 18446744073709551615 base 8 0 count 1", NULL},
	{"round 9 attempt 1 version 1 top 4611686018427387904 base 8 0 count 1", NULL},
	{"round 9 attempt 1 version 1 top 9 base 9 0 count 1", NULL},
	{"round 9 attempt 1 version 1 top 9 base 8 512 count 1", NULL},
	{"round 9 attempt 1 version 1 top 9 base 8 4294967296 count 1", NULL},
	{"round 9 attempt 1 version 1 top 9 base 8 0 count 0", NULL},
	{"round 9 attempt 1 version 1 top 9 base 8 0 count 2", NULL},
	{"round 9 attempt 1 version 1 top 9 base 8 0 count 4294967297", NULL},
	{head, ""},
	{head, "c 4d 9 0 1 -\nc 4d 8 0 1 -\n"},
	{head, "c 0 9 0 1 -\n"},
	{head, "c 4d 0 0 1 -\n"},
	{head, "c 4d 10 0 1 -\n"},
	{head, "c 4d 18446744073709551614 0 1 -\n"},
	{head, "c 4d 9 18446744073709551615 1 -\n"},
	{head, "c 4d 9 0 1024 -\n"},
	{head, "c 4d 9 0 4294967297 -\n"},
	{head, "c 4d 9 0 1 -\nm 4e 9223372036854775807 0 1 -\n"},
	{head, "c 4d 9 0 1 -\nm 4e 18446744073709551600 0 1 -\n"},
	{head, "c 4d 9 0 1 -\nm 4e 5 0 1 -\nx"},
	{head, "c 4d 9 0 1 12345678901234567890123456789012\n"},
};

static const struct forged good[] = {
	{head, NULL},
	{head, "c 4d 9 0 4294967295 -\n"},
	{head, "m 4e 4611686018427387903 0 1 slow\nc 4d 1 8 1023 -\n"},
	{"round 9 attempt 1 version 1 top 4611686018427387903 base 0 511 count 1", NULL},
};

static bool reads(const struct forged *f)
{
	struct group_decision d;
	char text[512];
	int length = snprintf(text, sizeof(text), "sarissa decision 1\n%s\n%s", f->head,
			      f->lines ? f->lines : "c 4d 9 0 1 -\n");

	return group_decision_read(text, (uint32_t)length, (struct group_kept){9, 1}, &d);
}

static void decisions_are_looked_at_in_full(void **state)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (reads(&bad[i]))
			fail_msg("%zu: %s, %s", i, bad[i].head, bad[i].lines);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!reads(&good[i]))
			fail_msg("%zu: %s, %s", i, good[i].head, good[i].lines);
}

/* The decision of a round in the name of its members, with such clocks. */
static void forge_decision(struct world *w, uint64_t number, uint64_t top, uint64_t clock,
			   uint32_t count)
{
	char text[1024];
	int used = snprintf(text, sizeof(text),
			    "sarissa decision 1\nround %llu attempt 0 version 1 top %llu base 0 0 "
			    "count %u\n",
			    (unsigned long long)number, (unsigned long long)top, count);

	for (uint32_t i = 0; i < w->clients; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, "%s %llx %llu 0 %u -\n",
				 i == 0 ? "c" : "m", (unsigned long long)w->client[i].join.member,
				 (unsigned long long)clock - i, w->client[i].node);
	forge(w, "d", number, 0, text);
}

static const uint64_t clocks[] = {
	1,
	FAR,
	GROUP_NUMBER_MAX,
	GROUP_NUMBER_MAX + 1,
	UINT64_MAX / 2,
	UINT64_MAX - 3,
	UINT64_MAX - 65,
	UINT64_MAX,
};

static const char *const policies[] = {"bsp", "ssp 2",		 "k-of-n 2",
				       "asp", "bsp late refuse", "k-of-n 2 late refuse"};

/* A new owner reads it as the last one. */
static void a_group_outlives_any_last_decision(void **state)
{
	for (uint32_t how = 0; how < 8 * 6 * 2; how++) {
		uint64_t clock = clocks[how % 8];
		struct world *w = world_new(100 + how, 3, policies[how / 8 % 6], 0);
		uint64_t open = works(w)->open.number;

		clock += clock == 1 ? w->client[0].join.clock + 2 : 0;
		world_kill_owner(w);
		forge_decision(w, open, clock, clock, 1 + how / 48);
		goes_on(w, 30000 * WORLD_MS);
		world_kill_owner(w);
		goes_on(w, 30000 * WORLD_MS);
		world_free(w);
	}
}

/* The owner finds it where it wants to put its own. */
static void an_owner_outlives_any_decision(void **state)
{
	for (uint32_t how = 0; how < 8 * 6 * 2; how++) {
		uint64_t clock = clocks[how % 8];
		struct world *w = world_new(200 + how, 3, policies[how / 8 % 6], 0);
		uint64_t open = works(w)->open.number;

		clock += clock == 1 ? w->client[0].join.clock + 2 : 0;
		forge_decision(w, open + 1, clock, clock, 1 + how / 48);
		goes_on(w, 60000 * WORLD_MS);
		world_free(w);
	}
}

/* ---- members ----------------------------------------------------------------------------------
 */

/* A member says that it comes from an owner whose rounds and clocks were far on, and leaves. What
 * the others ask for then is in the range of requests: the world looks at each. */
static void a_member_from_far_off_stops_nobody(void **state)
{
	for (uint32_t how = 0; how < 6 * 9; how++) {
		struct world *w = world_new(300 + how, 3, policies[how % 6], 0);
		struct group_request r = {.step = GROUP_JOIN,
					  .name = "g",
					  .member = 77,
					  .flags = GROUP_REJOIN,
					  .joined = GROUP_NUMBER_MAX,
					  .clock = how / 6 % 3 * GROUP_NUMBER_MAX,
					  .seen = how / 18 * GROUP_NUMBER_MAX,
					  .seen_attempt = 2 * GROUP_BY_SWITCH - 1,
					  .pending = UINT64_MAX};
		struct group *g = works(w);
		char text[128];

		w->forged = true;
		for (uint32_t i = 0; i < 10000 && (g->open.count || g->task); i++)
			world_run(w, 10000);
		assert_null(group_request_wrong(&r));
		groups_request(w->groups, 0, ++w->requests, &r);
		r.clock = 2 * GROUP_NUMBER_MAX;
		groups_request(w->groups, 0, ++w->requests, &r);
		r.step = GROUP_LEAVE;
		r.flags = GROUP_LOST;
		assert_int_equal(world_ask(w, &r, NULL, text), 0);
		goes_on(w, 60000 * WORLD_MS);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_that_say_nothing_are_passed_over),
		cmocka_unit_test(after_some_policies_that_of_the_creation_counts),
		cmocka_unit_test(an_object_that_is_no_group_is_told),
		cmocka_unit_test(names_have_numbers_in_a_range),
		cmocka_unit_test(decisions_are_looked_at_in_full),
		cmocka_unit_test(a_group_outlives_any_name),
		cmocka_unit_test(a_group_outlives_any_last_decision),
		cmocka_unit_test(an_owner_outlives_any_decision),
		cmocka_unit_test(a_member_from_far_off_stops_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
