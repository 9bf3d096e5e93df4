/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies and their texts, the ring of clocks, and requests of groups that are refused. */
#include "world.h"
#include "internal/reduce.h"

/* ---- policies ---------------------------------------------------------------------------------
 */

static struct group_policy parsed(const char *text)
{
	struct group_policy_error error;
	struct group_policy p;

	if (group_policy_parse(text, &p, &error) != 0)
		fail_msg("'%s': %s", text, error.text);
	return p;
}

static void policies_are_compiled(void **state)
{
	struct group_policy p = parsed("bsp");

	assert_int_equal(p.rows, 1);
	assert_int_equal(p.row[0].slack, 0);
	assert_int_equal(p.row[0].quorum, POLICY_ALL);
	p = parsed("  ssp 4 ");
	assert_int_equal(p.row[0].slack, 4);
	assert_int_equal(p.row[0].quorum, 0);
	p = parsed("asp");
	assert_int_equal(p.row[0].slack, POLICY_UNLIMITED);
	p = parsed("k-of-n 6 deadline 50ms late refuse");
	assert_int_equal(p.row[0].quorum, 6);
	assert_int_equal(p.row[0].deadline_ns, 50000000);
	assert_true(p.row[0].refuse);
	assert_int_equal(group_policy_excess(&p, 5), 6);
	assert_int_equal(group_policy_excess(&p, 6), 0);
	p = parsed("share 75 late refuse");
	assert_int_equal(p.row[0].slack, POLICY_UNLIMITED);
	assert_int_equal(group_policy_quorum(&p.row[0], 4), 3);
	assert_int_equal(group_policy_quorum(&p.row[0], 5), 4);
	assert_int_equal(group_policy_quorum(&p.row[0], 1), 1);
	assert_int_equal(group_policy_excess(&p, 1), 0);
	p = parsed("bsp late carry deadline 2s");
	assert_int_equal(p.row[0].deadline_ns, 2000000000);
	assert_int_equal(p.row[0].slack, POLICY_UNLIMITED);
	p = parsed("fast: bsp, slow : ssp 4,k-of-n 2");
	assert_int_equal(p.rows, 3);
	assert_int_equal(group_policy_match(&p, "slow"), 1);
	assert_int_equal(group_policy_match(&p, "other"), 2);
	assert_int_equal(group_policy_slack(&p, 0, 0), 0);
	assert_int_equal(group_policy_slack(&p, 0, 1), 4);
	assert_int_equal(group_policy_slack(&p, 1, 2), POLICY_UNLIMITED);
	p = parsed("fast: bsp, slow: asp");
	assert_int_equal(group_policy_match(&p, ""), POLICY_NO_ROW);
	p = parsed("auto 75");
	assert_int_equal(p.percent, 75);
	assert_int_equal(group_policy_match(&p, "anything"), 0);
	assert_int_equal(group_policy_match(&p, "slow"), 1);
	p = parsed("auto: bsp"); /* a cohort of that name */
	assert_int_equal(p.percent, 0);
}

static void wrong_policies_name_the_position(void **state)
{
	static const struct {
		const char *text;
		uint32_t position;
		const char *words;
	} wrong[] = {
		{"", 0, "its end"},
		{"bps", 0, "'bps'"},
		{"bsp ssp 4", 4, "'ssp'"},
		{"ssp", 3, "slack"},
		{"ssp x", 4, "'x'"},
		{"ssp 63", 4, "62"},
		{"ssp 99999999999999999999", 4, "62"},
		{"k-of-n 0", 7, "1 to 1023"},
		{"share", 5, "percentage"},
		{"share 101", 6, "1 to 100"},
		{"k-of-n 4 deadline 5", 18, "50ms"},
		{"k-of-n 4 deadline 0s", 18, "50ms"},
		{"k-of-n 4 deadline 2d", 18, "50ms"},
		{"k-of-n 4 late", 13, "carry"},
		{"asp deadline 5ms", 4, "options"},
		{"fast: bsp, fast: asp", 11, "has a row already"},
		{"bsp, asp", 5, "no cohort already"},
		{"fast: bsp,", 10, "its end"},
		{"f/st: bsp", 0, "letters"},
		{"auto 100", 5, "1 to 99"},
		{"auto, bsp", 4, "alone"},
		{"a:bsp,b:bsp,c:bsp,d:bsp,e:bsp,f:bsp,g:bsp,h:bsp,i:bsp", 48, "8 rows"},
	};
	struct group_policy p;
	char longest[GROUP_POLICY_MAX + 2];
	struct group_policy_error error;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(group_policy_parse(wrong[i].text, &p, &error), -EINVAL);
		if (error.position != wrong[i].position || !strstr(error.text, wrong[i].words))
			fail_msg("'%s': at %u: %s", wrong[i].text, error.position, error.text);
	}
	memset(longest, ' ', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(group_policy_parse(longest, &p, &error), -EINVAL);
}

/* The rows of policies.h and the table of the core are in step, and an error has room for all. */
static void a_wrong_word_is_told_every_policy(void **state)
{
	static const char *const words[] = {
#define WORD(identifier, word, argument, says) word,
		POLICIES(WORD)};
	struct group_policy p;
	struct group_policy_error error;

	assert_int_equal(group_policy_parse("this-is-no-rule-at-all", &p, &error), -EINVAL);
	assert_true(strlen(error.text) < sizeof(error.text) - 1);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		assert_string_equal(policies_table[i]->word, words[i]);
		assert_non_null(strstr(error.text, words[i]));
	}
	assert_null(policies_table[sizeof(words) / sizeof(words[0])]);
}

static void a_policy_is_shown_as_a_table(void **state)
{
	struct group_policy p = parsed("fast: k-of-n 6 deadline 50ms late refuse, "
				       "most: share 80, slow: asp");
	char table[GROUP_TABLE_BYTES], small[20];

	group_policy_show(&p, table, sizeof(table));
	assert_string_equal(table, "cohort      rule     slack      quorum  deadline  late\n"
				   "fast        k-of-n   unlimited  6       50ms      refuse\n"
				   "most        share    unlimited  80%     none      carry\n"
				   "slow        asp      unlimited  any     none      carry\n");
	group_policy_show(&p, small, sizeof(small));
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

/* ---- clocks -----------------------------------------------------------------------------------
 */

enum { MANY = 100000 };

static void clocks_follow_the_minimum(void **state)
{
	uint64_t clock[64] = {0}, seed = 1;
	struct clocks c;

	clocks_init(&c, 0, 0);
	for (int i = 0; i < 64; i++)
		clocks_add(&c, 0);
	for (int step = 0; step < 100000; step++) {
		uint64_t low = UINT64_MAX, to;
		uint32_t i;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		i = seed >> 40 & 63;
		to = clock[i] + 1 + (seed >> 50) % 3;
		if (to >= clocks_min(&c) + GROUP_RING)
			continue;
		clocks_move(&c, clock[i], to, 7);
		clock[i] = to;
		for (int k = 0; k < 64; k++)
			low = clock[k] < low ? clock[k] : low;
		assert_int_equal(clocks_min(&c), low);
		assert_true(clocks_reached(&c, low) && !clocks_reached(&c, low + 1));
		assert_true(clocks_valid(&c));
	}
	assert_true(clocks_min(&c) > 1000);
}

/* Members further apart than the window: the minimum is right until it is spent. */
static void clocks_know_who_is_ahead(void **state)
{
	struct clocks c;

	clocks_init(&c, 100, 0);
	assert_true(clocks_add(&c, 100));
	assert_true(clocks_add(&c, 300));
	assert_false(clocks_add(&c, 99));
	assert_int_equal(c.ahead, 1);
	for (uint64_t v = 101; v < 164; v++) {
		clocks_move(&c, v - 1, v, v);
		assert_true(clocks_reached(&c, v) && !clocks_reached(&c, v + 1));
		assert_int_equal(clocks_mark(&c, v), v);
		assert_true(clocks_valid(&c) && !clocks_spent(&c));
	}
	clocks_move(&c, 163, 164, 9);
	assert_true(clocks_spent(&c) && clocks_valid(&c));
	clocks_init(&c, 164, 0);
	assert_true(clocks_add(&c, 164) && clocks_add(&c, 200));
	clocks_remove(&c, 164, 11);
	assert_int_equal(clocks_min(&c), 200);
	clocks_remove(&c, 200, 12);
	assert_true(clocks_reached(&c, 1000000)); /* nobody is waited for */
	clocks_init(&c, 500, 0);
	assert_true(clocks_add(&c, 500));
	assert_int_equal(clocks_min(&c), 500);
	assert_true(clocks_valid(&c));
}

/* 100,000 members go a clock on: the steps of one move do not grow with the members. The work is
 * counted in tests/count; here, that the state is right. */
static void clocks_hold_many(void **state)
{
	struct clocks c;

	clocks_init(&c, 0, 0);
	for (uint32_t i = 0; i < MANY; i++)
		clocks_add(&c, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(clocks_min(&c), 0);
		clocks_move(&c, 0, 1, 1);
	}
	assert_int_equal(clocks_min(&c), 1);
	assert_true(clocks_valid(&c));
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static struct group_request ask(uint32_t step)
{
	struct group_request r = {.step = step, .name = "g", .member = 77, .op = REDUCE_SUM};

	r.dtype = REDUCE_F32;
	r.count = 10;
	strcpy(r.policy, "bsp");
	return r;
}

static void refused(struct world *w, const struct group_request *r, int32_t status,
		    const char *words)
{
	char text[128];
	struct group_answer answer;
	int32_t got = world_ask(w, r, &answer, text);

	if (got != status || !strstr(text, words))
		fail_msg("step %u: %d, '%s', not %d, '%s'", r->step, got, text, status, words);
}

static void wrong_groups_are_refused(void **state)
{
	struct world *w = world_new(3, 0, "bsp", 0);
	struct group_request r = ask(GROUP_CREATE);

	refused(w, &r, -EEXIST, "exists already");
	strcpy(r.name, "other");
	r.count = 0;
	refused(w, &r, -EINVAL, "elements");
	r = ask(GROUP_CREATE);
	strcpy(r.name, "other");
	r.op = REDUCE_AVG;
	r.flags = GROUP_TOTAL;
	refused(w, &r, -EINVAL, "averages");
	r = ask(GROUP_CREATE);
	strcpy(r.name, "other");
	r.members = 4;
	strcpy(r.policy, "k-of-n 5");
	refused(w, &r, -EINVAL, "the group has 4 members");
	strcpy(r.policy, "k-of-n 5, foo");
	refused(w, &r, -EINVAL, "position 10");
	r = ask(GROUP_JOIN);
	strcpy(r.name, "none");
	refused(w, &r, -ENOENT, "no such group");
	r.step = GROUP_REMOVE;
	refused(w, &r, -ENOENT, "no such group");
	world_free(w);
}

static void wrong_contributions_are_refused(void **state)
{
	struct world *w = world_new(4, 0, "bsp", 0);
	struct group_request r = ask(GROUP_JOIN);
	struct group_answer answer;
	char text[128];

	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	r.member = 78;
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	r = ask(GROUP_PUSH);
	r.clock = 1;
	r.member = 5;
	refused(w, &r, -ESTALE, "no such member");
	r.member = 77;
	r.count = 11;
	refused(w, &r, -EINVAL, "11 elements of f32: the group has 10 of f32");
	r.count = 10;
	r.dtype = REDUCE_F64;
	refused(w, &r, -EINVAL, "of f64");
	r.dtype = REDUCE_F32;
	r.clock = 3;
	refused(w, &r, -EINVAL, "clock 3 is too far ahead: the next one of this member is 1");
	r.clock = 1;
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	groups_request(w->groups, 0, w->requests, &r); /* its answer was lost */
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(w->heard.request, w->requests);
	assert_int_equal(w->heard.status, 0);
	refused(w, &r, -EEXIST, "clock 1 is past");
	r.clock = 2;
	refused(w, &r, -EAGAIN, "pull first");
	r = ask(GROUP_POLICY);
	strcpy(r.policy, "k-of-n 3");
	refused(w, &r, -EINVAL, "the group has 2 members");
	strcpy(r.policy, "fast: bsp");
	refused(w, &r, -EINVAL, "no row for a cohort");
	world_free(w);
}

/* A member that runs ahead of one that does nothing, under a policy that was asp once. Each change,
 * also to the same policy, must leave the limit where it is. */
static void changes_at_one_clock_do_not_loosen(void **state)
{
	struct world *w = world_new(5, 0, "asp", 0);
	struct group_request r = ask(GROUP_JOIN), p = ask(GROUP_POLICY);
	struct group_answer answer;
	char text[128];
	uint64_t clock = 0;

	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	r.member = 78;
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	for (int i = 0; i < 20; i++) {
		r = ask(GROUP_PUSH);
		r.clock = clock + 1;
		world_contribution(w, 77, r.clock, 1);
		if (world_ask(w, &r, &answer, text) == 0)
			clock++;
		strcpy(p.policy, i < 5 ? "asp" : "ssp 2");
		world_ask(w, &p, &answer, text);
		world_run(w, 100 * WORLD_MS);
	}
	assert_int_equal(clock, 6); /* the first change to ssp came after six */
	strcpy(p.policy, "ssp 9");
	while (world_ask(w, &p, &answer, text) != 0)
		world_run(w, 100 * WORLD_MS);
	r.clock = clock + 1; /* looser: at once */
	world_contribution(w, 77, r.clock, 1);
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	world_free(w);
}

static void a_late_contribution_is_refused_or_carried(void **state)
{
	for (int carry = 0; carry < 2; carry++) {
		struct world *w = world_new(5, 0, carry ? "k-of-n 1" : "k-of-n 1 late refuse", 0);
		struct group_request r = ask(GROUP_JOIN);
		struct group_answer answer;
		char text[128];

		assert_int_equal(world_ask(w, &r, &answer, text), 0);
		r.member = 78;
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
		r = ask(GROUP_PUSH);
		r.clock = 1;
		world_contribution(w, 77, 1, 1);
		world_contribution(w, 78, 1, 1);
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
		assert_int_equal(answer.joined, 1); /* the round that it is in */
		world_run(w, 1000 * WORLD_MS);	    /* its round closes */
		r.member = 78;
		if (carry) {
			assert_int_equal(world_ask(w, &r, &answer, text), 0);
			assert_int_equal(answer.joined, 2);
		} else {
			refused(w, &r, -ETIME, "late");
		}
		r.step = GROUP_PULL;
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
		assert_int_equal(answer.round, carry ? 2 : 1);
		assert_int_equal(answer.clock, 1); /* it goes on with the others */
		r = ask(GROUP_INFO);
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
		assert_int_equal(answer.late, carry);
		assert_int_equal(answer.refused, !carry);
		assert_int_equal(answer.page, 2);
		world_free(w);
	}
}

/* A member far behind, under a policy that has no deadline and refuses what is late. */
static void a_refused_member_goes_on_with_the_others(void **state)
{
	struct world *w = world_new(5, 0, "k-of-n 1", 0);
	struct group_request r = ask(GROUP_JOIN);
	struct group_answer answer;
	char text[128];

	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	r.member = 78;
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	r = ask(GROUP_PUSH);
	for (r.clock = 1; r.clock <= 3; r.clock++) {
		world_contribution(w, 77, r.clock, 1);
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
		world_run(w, 1000 * WORLD_MS);
	}
	world_policy(w, "bsp late refuse");
	r.member = 78;
	r.clock = 1;
	refused(w, &r, -ETIME, "late");
	r.step = GROUP_PULL;
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	assert_int_equal(answer.clock, 3);
	r = ask(GROUP_PUSH);
	r.clock = 4;
	for (r.member = 78; r.member > 76; r.member--) {
		world_contribution(w, r.member, 4, 1);
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
	}
	world_free(w);
}

/* Half of two members is one, half of four are two. */
static void a_share_follows_the_number_of_members(void **state)
{
	struct world *w = world_new(5, 0, "share 50", 0);
	struct group_request join = ask(GROUP_JOIN), push = ask(GROUP_PUSH);
	struct group_answer answer;
	char text[128];

	for (; join.member < 79; join.member++)
		assert_int_equal(world_ask(w, &join, &answer, text), 0);
	push.clock = 1;
	world_contribution(w, 77, 1, 1);
	assert_int_equal(world_ask(w, &push, &answer, text), 0);
	world_run(w, 1000 * WORLD_MS);
	assert_int_equal(world_group(w)->result, 1);
	for (; join.member < 81; join.member++)
		assert_int_equal(world_ask(w, &join, &answer, text), 0);
	for (push.clock = 2; push.member < 79; push.member++, push.clock = 1) {
		assert_int_equal(world_group(w)->result, 1);
		world_contribution(w, push.member, push.clock, 1);
		assert_int_equal(world_ask(w, &push, &answer, text), 0);
		world_run(w, 1000 * WORLD_MS);
	}
	assert_int_equal(world_group(w)->result, 2);
	world_free(w);
}

/* auto: nobody waits for the whole of a slow step. */
static void an_overdue_member_is_slow(void **state)
{
	struct world *w = world_new(7, 3, "auto", 0);
	uint64_t slow, fast;

	for (uint32_t i = 0; i < w->clients; i++)
		w->client[i].pace_ns = 20 * WORLD_MS;
	world_run(w, 3000 * WORLD_MS);
	w->client[0].pace_ns = 9000 * WORLD_MS;
	world_run(w, 200 * WORLD_MS); /* its step of before has ended */
	slow = w->client[0].pushed;
	fast = w->client[2].pushed;
	world_run(w, 1000 * WORLD_MS);
	assert_int_equal(w->client[0].pushed, slow);
	assert_true(w->client[2].pushed > fast + 10);
	world_free(w);
}

static void a_removed_group_is_gone(void **state)
{
	struct world *w = world_new(6, 2, "bsp", 0);
	struct group_request r = ask(GROUP_REMOVE);
	struct group_answer answer;
	char text[128];

	world_run(w, 500 * WORLD_MS);
	for (uint32_t i = 0; i < w->clients; i++)
		w->client[i].state = CLIENT_DEAD;
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	r.step = GROUP_OPEN;
	refused(w, &r, -ENOENT, "no such group");
	for (uint32_t i = 0; i < w->names; i++)
		if (w->name[i].there)
			fail_msg("%s is left", w->name[i].name);
	world_free(w);
}

/* ---- what an earlier owner has left -----------------------------------------------------------
 */

/* Lets a group's clients make rounds, stops them, and kills the owner. Returns the last round: it
 * has a result. */
static uint64_t left(struct world *w)
{
	struct group *g = world_group(w);
	uint64_t last;

	while (g->result < 3 || g->result < g->published || g->task != GROUP_TASK_NONE)
		world_run(w, WORLD_MS);
	for (uint32_t i = 0; i < w->clients; i++)
		w->client[i].state = CLIENT_DEAD;
	last = g->result;
	world_kill_owner(w);
	return last;
}

static void left_name(struct text *name, const char *kind, uint64_t number, uint32_t attempt)
{
	group_name(name, "g", kind, number, attempt);
}

/* Results of attempts that were given up are left, in any order: the last attempt counts, and of
 * one attempt that of the hosts. */
static void the_last_attempt_is_the_result(void **state)
{
	static const uint32_t lists[][3] = {
		{256, 257, 257}, {257, 256, 257}, {0, 257, 257}, {257, 0, 257}, {257, 1, 1},
		{1, 257, 1},	 {256, 1, 1},	  {0, 256, 0},	 {256, 0, 0},
	};
	struct world *w = world_new(8, 0, "bsp", 0);
	struct group *g = groups_find(w->groups, "g");
	struct text name;

	for (uint64_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (uint32_t k = 0; k < 2; k++) {
			left_name(&name, "r", i + 1, lists[i][k]);
			groups_listed(w->groups, g, name.bytes, true);
		}
		assert_int_equal(rounds_kept(g, i + 1)->attempt, lists[i][2]);
	}
	world_free(w);
}

/* A member joins: the next owner reads what is left. */
static struct group *left_joined(struct world *w, struct group_answer *out)
{
	struct group_request r = ask(GROUP_JOIN);
	char text[128];

	assert_int_equal(world_ask(w, &r, out, text), 0);
	return world_group(w);
}

/* Nobody can read the last decision, and its result is there: the total goes on from it. */
static void a_total_outlives_its_decision(void **state)
{
	struct world *w = world_new(9, 2, "bsp", GROUP_TOTAL);
	uint64_t last = left(w);
	struct group_request leave = ask(GROUP_LEAVE);
	struct group_answer answer;
	struct group *g;
	struct text name;
	char text[128];

	left_name(&name, "d", last, 0);
	world_ghost(w, name.bytes);
	g = left_joined(w, &answer);
	assert_int_equal(answer.round, last);
	assert_int_equal(answer.joined, last + 1);
	for (uint32_t i = 0; i < w->clients; i++)
		world_start_client(w, i);
	assert_int_equal(world_ask(w, &leave, NULL, text), 0);
	world_run(w, 4000 * WORLD_MS);
	assert_true(g->result > last);
	assert_true(g->closing.base.number >= last);
	world_free(w);
}

/* The same of decisions whose owner died with them, more than one in a row: no round is opened
 * again, and the total is that of the round before. */
static void lost_decisions_open_no_round_again(void **state)
{
	struct world *w = world_new(10, 2, "bsp", GROUP_TOTAL);
	uint64_t last = left(w);
	struct group_answer answer;
	struct text name;

	for (uint32_t i = 0; i < 2; i++) {
		left_name(&name, "d", last + 1, i);
		world_ghost(w, name.bytes);
	}
	left_joined(w, &answer);
	assert_int_equal(answer.round, last);
	assert_int_equal(answer.joined, last + 2);
	world_free(w);
}

/* ---- results that nodes have lost --------------------------------------------------------------
 */

/* Three members on nodes 1 to 3. Everybody has the newest result; its contributions are gone. */
static struct group *delivered(struct world *w)
{
	struct group *g = world_group(w);
	uint32_t idle = 0;

	while (g->result < 3 || idle < w->clients || g->task != GROUP_TASK_NONE) {
		world_run(w, 100000);
		idle = 0;
		for (uint32_t i = 0; i < w->clients; i++)
			idle += w->client[i].state == CLIENT_WORKS &&
				w->client[i].get.number == g->result;
	}
	return g;
}

static struct group *goes_on(struct world *w, uint64_t round, uint64_t ns)
{
	struct group *g = NULL;

	for (uint64_t i = 0; i < ns / WORLD_MS; i++) {
		world_run(w, WORLD_MS);
		g = world_group(w);
		if (g && g->result > round)
			return g;
	}
	world_show(w);
	fail_msg("round %llu does not come", (unsigned long long)round + 1);
	return NULL;
}

/* The owner's node dies with its member: the next owner ends the round with the result that is
 * there, whatever contributions are left. */
static void an_owner_dies_with_its_member(void **state)
{
	for (uint64_t seed = 20; seed < 40; seed++) {
		struct world *w = world_new(seed, 3, seed % 2 ? "bsp" : "k-of-n 3", GROUP_TOTAL);
		struct group *g;
		uint64_t round;

		w->home = 1;
		w->groups->node = 1;
		g = delivered(w);
		round = g->result;
		if (seed % 4 < 2)
			while (g->newest.count > 0) /* they go when there are two copies */
				world_run(w, 100000);
		round = g->result;
		world_kill_node(w, 1);
		world_notice(w);
		g = goes_on(w, round, 2000 * WORLD_MS);
		assert_int_equal(g->gone_last, 0);
		assert_int_equal(g->live, 2);
		world_run(w, 2000 * WORLD_MS);
		world_free(w);
	}
}

/* The only copy of a total dies before anybody has got it: it is made again. */
static void a_lost_total_is_made_again(void **state)
{
	for (uint64_t seed = 50; seed < 70; seed++) {
		struct world *w = world_new(seed, 3, "bsp", GROUP_TOTAL);
		struct group *g = world_group(w);
		uint64_t round;
		struct text name;

		do {
			round = g->result;
			world_run(w, 20000);
		} while (g->result < 3 || g->result == round);
		round = g->result;
		left_name(&name, "r", round, rounds_kept(g, round)->attempt);
		world_find(w, name.bytes)->there = false;
		g = goes_on(w, round, 3000 * WORLD_MS);
		assert_int_equal(g->gone_last, 0);
		assert_int_equal(w->gone, 0);
		world_free(w);
	}
}

/* Contributions and copies of a total are lost: the newest older one counts, and each member hears
 * once what is lost. */
static void a_total_goes_back_to_what_is_left(void **state)
{
	struct world *w = world_new(71, 3, "bsp", GROUP_TOTAL);
	struct group *g = delivered(w);
	uint64_t round = g->result;
	struct group_request r = ask(GROUP_INFO);
	struct group_answer answer;
	struct text name;
	char text[128];

	for (uint64_t n = round; n + 1 >= round; n--) {
		left_name(&name, "r", n, rounds_kept(g, n) ? rounds_kept(g, n)->attempt : 0);
		if (world_find(w, name.bytes))
			world_find(w, name.bytes)->there = false;
		if (n == round) /* a node that held it is dead */
			rounds_clear(w->groups, g, &g->newest);
		else
			world_give(w, name.bytes);
	}
	g->safe_ns = w->now_ns;
	g = goes_on(w, round, 3000 * WORLD_MS);
	assert_int_equal(w->gone, 1);
	for (uint32_t i = 0; i < w->clients; i++)
		assert_int_equal(w->client[i].told, 1);
	assert_int_equal(world_ask(w, &r, &answer, text), 0);
	assert_int_equal(answer.gone_first, round);
	assert_int_equal(answer.gone_last, round);
	name.length = 0;
	results_gone(g, &name);
	assert_non_null(strstr(name.bytes, "the total goes on from round"));
	world_run(w, 2000 * WORLD_MS);
	world_free(w);
}

/* A reduce that an earlier owner has begun ends while the next one waits for it, and a source dies
 * then: its result, which may be published, stays. */
static void a_resumed_reduce_is_looked_at_before_it_ends(void **state)
{
	struct world *w = world_new(72, 3, "bsp", 0);
	struct group *g = world_group(w);
	struct text name;
	uint64_t round;

	while (g->result < 3 || g->task != GROUP_TASK_REDUCE || g->closing.count < 3)
		world_run(w, 100000);
	round = g->closing.number;
	left_name(&name, "r", round, 0);
	world_kill_owner(w);
	while (!(g = world_group(w)) || g->task != GROUP_TASK_REDUCE)
		world_run(w, 100000);
	assert_true(g->closing.resumed && g->closing.number == round);
	world_give(w, name.bytes); /* it is complete */
	world_judge_made(w, name.bytes);
	world_kill_node(w, 1);
	world_notice(w);
	goes_on(w, round, 2000 * WORLD_MS);
	assert_true(world_there(w, name.bytes));
	world_free(w);
}

/* A decision that exists and that nobody can read: the round is decided by the next attempt. */
static void a_round_does_not_wait_for_a_lost_decision(void **state)
{
	struct world *w = world_new(11, 2, "bsp", 0);
	struct group *g = world_group(w);
	uint64_t lost;
	struct text name;

	world_run(w, 500 * WORLD_MS);
	lost = g->open.number + 1;
	left_name(&name, "d", lost, 0);
	world_ghost(w, name.bytes);
	world_run(w, 20000 * WORLD_MS);
	assert_true(g->result > lost + 10);
	assert_int_equal(g->lost, 0);
	world_free(w);
}

/* The next attempt of a round is one whose decision has died with an owner: the one behind it. */
static void a_lost_attempt_is_passed_over(void **state)
{
	struct world *w = world_new(12, 3, "bsp", 0);
	struct group *g = world_group(w);
	uint64_t round;
	struct text name;

	while (g->result < 3 || g->task != GROUP_TASK_REDUCE || g->closing.count < 3)
		world_run(w, 100000);
	round = g->closing.number;
	world_kill_owner(w);
	left_name(&name, "r", round, 0);
	w->ops.remove(w, name.bytes);
	left_name(&name, "d", round, 1);
	world_ghost(w, name.bytes);
	group_contribution_name(&name, "g", w->client[2].join.clock, w->client[2].join.member);
	w->ops.remove(w, name.bytes);
	w->client[2].state = CLIENT_DEAD;
	world_run(w, 30000 * WORLD_MS);
	g = world_group(w);
	assert_non_null(g);
	assert_true(g->result > round + 10);
	world_free(w);
}

/* While a group is removed, nothing of its rounds is due: that of a switch, that with a deadline.
 */
static void a_removed_group_is_not_due(void **state)
{
	for (int open = 0; open < 2; open++) {
		struct world *w = world_new(13, 2, "bsp deadline 30s", WORLD_SWITCHES);
		struct group_request r = ask(GROUP_REMOVE);
		struct group *g = world_group(w);

		while (open ? g->open.count == 0 || g->task != GROUP_TASK_NONE
			    : g->switch_due_ns == UINT64_MAX)
			world_run(w, 100000);
		groups_request(w->groups, 0, ++w->requests, &r);
		assert_int_equal(g->phase, GROUP_PHASE_REMOVE);
		assert_int_equal(groups_next(w->groups), UINT64_MAX);
		world_free(w);
	}
}

/* The owner hears at once of a pull, or that the pull before is over. */
static void pulls(struct world *w, uint64_t member, uint32_t flags)
{
	struct group_request r = ask(GROUP_PULL);

	r.member = member;
	r.flags = flags;
	r.job = w->requests;
	groups_request(w->groups, 0, ++w->requests, &r);
}

/* A pull that has timed out at its node takes no part in a round at a switch: the owner waits for
 * the member's next pull. One that a job has just answered ends the job at once. */
static void a_pull_that_has_ended_takes_no_part(void **state)
{
	struct world *w = world_new(15, 0, "bsp", WORLD_SWITCHES);
	struct group_request r = ask(GROUP_JOIN);
	struct group *g = world_group(w);
	struct group_answer answer;
	char text[128];

	for (r.member = 77; r.member < 79; r.member++)
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
	r = ask(GROUP_PUSH);
	r.clock = 1;
	for (r.member = 77; r.member < 79; r.member++) {
		world_contribution(w, r.member, 1, 1);
		assert_int_equal(world_ask(w, &r, &answer, text), 0);
	}
	while (g->task != GROUP_TASK_GATHER)
		world_run(w, WORLD_MS);
	pulls(w, 77, GROUP_SWITCHABLE);
	pulls(w, 77, GROUP_WITHDRAWN);
	pulls(w, 78, GROUP_SWITCHABLE);
	assert_int_equal(g->task, GROUP_TASK_GATHER);
	pulls(w, 77, GROUP_SWITCHABLE);
	assert_int_equal(g->task, GROUP_TASK_SWITCH);
	pulls(w, 77, GROUP_WITHDRAWN);
	assert_int_equal(g->task, GROUP_TASK_REDUCE);
	world_run(w, 3000 * WORLD_MS);
	assert_int_equal(g->result, 1); /* by the hosts */
	assert_int_equal(g->fallen, 1);
	world_free(w);
}

/* A decision that somebody has put under the name of one: it has no more than a reduce takes. */
static void a_decision_has_no_more_than_the_members(void **state)
{
	static char text[GROUP_BLOB_BYTES];

	for (uint32_t more = 0; more < 2; more++) {
		struct group_decision d;
		int length = snprintf(text, sizeof(text),
				      "sarissa decision 1\nround 1 attempt 0 version 1 top 1 "
				      "base 0 0 count %u\n",
				      GROUP_MEMBERS_MAX + more);

		for (uint32_t i = 0; i < GROUP_MEMBERS_MAX + more; i++)
			length += snprintf(text + length, sizeof(text) - (size_t)length,
					   "c %x 1 0 0 -\n", i + 1);
		assert_in_range(length, 1, sizeof(text) - 1);
		assert_int_equal(
			group_decision_read(text, (uint32_t)length, (struct group_kept){1, 0}, &d),
			!more);
	}
}

static void a_group_has_no_more_bytes_than_can_be_counted(void **state)
{
	static struct group g;
	char text[256];

	for (uint32_t more = 0; more < 2; more++) {
		unsigned long long count = UINT64_MAX / REDUCE_ELEMENT_BYTES_MAX + more;
		int length = snprintf(text, sizeof(text),
				      "sarissa group 1\nop %d dtype %d count %llu flags 0 start 0\n"
				      "policy bsp\n",
				      REDUCE_SUM, REDUCE_F32, count);

		assert_int_equal(group_meta_read(&g, text, (uint32_t)length), !more);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_are_compiled),
		cmocka_unit_test(a_decision_has_no_more_than_the_members),
		cmocka_unit_test(a_group_has_no_more_bytes_than_can_be_counted),
		cmocka_unit_test(wrong_policies_name_the_position),
		cmocka_unit_test(a_wrong_word_is_told_every_policy),
		cmocka_unit_test(a_policy_is_shown_as_a_table),
		cmocka_unit_test(clocks_follow_the_minimum),
		cmocka_unit_test(clocks_know_who_is_ahead),
		cmocka_unit_test(clocks_hold_many),
		cmocka_unit_test(wrong_groups_are_refused),
		cmocka_unit_test(wrong_contributions_are_refused),
		cmocka_unit_test(changes_at_one_clock_do_not_loosen),
		cmocka_unit_test(a_late_contribution_is_refused_or_carried),
		cmocka_unit_test(a_refused_member_goes_on_with_the_others),
		cmocka_unit_test(a_share_follows_the_number_of_members),
		cmocka_unit_test(an_overdue_member_is_slow),
		cmocka_unit_test(a_removed_group_is_gone),
		cmocka_unit_test(the_last_attempt_is_the_result),
		cmocka_unit_test(a_total_outlives_its_decision),
		cmocka_unit_test(lost_decisions_open_no_round_again),
		cmocka_unit_test(an_owner_dies_with_its_member),
		cmocka_unit_test(a_lost_total_is_made_again),
		cmocka_unit_test(a_total_goes_back_to_what_is_left),
		cmocka_unit_test(a_resumed_reduce_is_looked_at_before_it_ends),
		cmocka_unit_test(a_round_does_not_wait_for_a_lost_decision),
		cmocka_unit_test(a_lost_attempt_is_passed_over),
		cmocka_unit_test(a_removed_group_is_not_due),
		cmocka_unit_test(a_pull_that_has_ended_takes_no_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
