/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replays runs of tests/model/slack.pml, from standard input, against the pure part of the group
 * room: each push must be taken or refused as there, each pull must end at once, and the rounds and
 * clocks must be the same after each step. tests/model/replay.sh makes the runs.
 */
#include <stdio.h>
#include "fixtures/control_test.h"
#include "core/group/groups.h"
#include "internal/reduce.h"

static const char *const replay_policy[] = {"asp", "ssp 1", "bsp", "k-of-n 2"};

static struct replay {
	struct groups groups;
	void *memory;
	char task; /* 'm', 'd', 'p': of a put; 'r': a reduce; 0: none */
	struct group *group;
	uint64_t asked, answered;
	int32_t status;
} replay;

static void replay_answer(void *arg, uint32_t node, uint64_t request, int32_t status,
			  const char *text, const struct group_answer *answer)
{
	replay.answered = request;
	replay.status = status;
}

static bool replay_put(void *arg, struct group *g, const char *name, const char *bytes,
		       uint32_t length)
{
	const char *kind = strchr(name + strlen(GROUP_PREFIX), '/');

	assert_int_equal(replay.task, 0);
	replay.task = kind ? kind[1] : 'm';
	replay.group = g;
	return true;
}

static bool replay_reduce(void *arg, struct group *g, const char *target,
			  const struct object_id *sources, uint32_t count, bool resume)
{
	assert_int_equal(replay.task, 0);
	replay.task = 'r';
	return true;
}

static bool replay_read(void *arg, struct group *g, const char *name)
{
	return false;
}

static void replay_nothing(void *arg, struct group *g)
{
	replay.task = 0;
}

static void replay_cancel(void *arg, struct group *g, const char *target)
{
}

static void replay_remove(void *arg, const char *name)
{
}

static bool replay_exists(void *arg, const struct object_id *id)
{
	return false;
}

static bool replay_alive(void *arg, uint32_t node)
{
	return true;
}

static const struct groups_ops replay_ops = {.answer = replay_answer,
					     .put = replay_put,
					     .read = replay_read,
					     .list = replay_read,
					     .reduce = replay_reduce,
					     .cancel = replay_cancel,
					     .abandon = replay_nothing,
					     .remove = replay_remove,
					     .exists = replay_exists,
					     .alive = replay_alive};

/* Puts end at once; a reduce ends when the run says so. */
static void replay_puts(void)
{
	while (replay.task && replay.task != 'r') {
		replay.task = 0;
		groups_put(&replay.groups, replay.group, 0, "");
	}
}

/* The status of the answer, which must come at once. */
static int32_t replay_ask(uint32_t step, uint64_t member, uint64_t clock, const char *policy)
{
	struct group_request r = {.step = step,
				  .name = "g",
				  .member = member,
				  .clock = clock,
				  .op = REDUCE_SUM,
				  .dtype = REDUCE_F32,
				  .count = 10,
				  .members = step == GROUP_CREATE ? 2 : 0};

	strcpy(r.policy, policy);
	assert_true(groups_request(&replay.groups, 0, ++replay.asked, &r));
	replay_puts();
	assert_int_equal(replay.answered, replay.asked);
	return replay.status;
}

static void replay_begin(unsigned policy)
{
	const struct groups_limits limits = {1, 4, 64};
	struct arena a = {.memory = NULL};
	struct groups scratch;

	free(replay.memory);
	groups_carve(&scratch, &a, &limits);
	memset(&replay, 0, sizeof(replay));
	replay.memory = aligned_alloc(64, (a.bytes + 63) / 64 * 64);
	memset(replay.memory, 0, a.bytes);
	a = (struct arena){.memory = replay.memory};
	groups_carve(&replay.groups, &a, &limits);
	groups_init(&replay.groups, &replay_ops, 0);
	replay.groups.now_ns = 1;
	assert_int_equal(replay_ask(GROUP_CREATE, 0, 0, replay_policy[policy]), 0);
	for (uint64_t m = 1; m <= 2; m++)
		assert_int_equal(replay_ask(GROUP_JOIN, m, 0, ""), 0);
}

static void replay_compare(const char *line)
{
	const struct group *g = replay.group;
	char here[128];

	snprintf(here, sizeof(here), "is open %llu published %llu clocks %llu %llu version %llu\n",
		 (unsigned long long)g->open.number, (unsigned long long)g->published,
		 (unsigned long long)roster_find(&replay.groups, g, 1)->clock,
		 (unsigned long long)roster_find(&replay.groups, g, 2)->clock,
		 (unsigned long long)g->version);
	assert_string_equal(here, line);
}

static void replay_line(const char *line)
{
	unsigned a, b, refused;

	if (sscanf(line, "begin %u", &a) == 1) {
		replay_begin(a);
	} else if (sscanf(line, "push %u %u %u", &a, &b, &refused) == 3) {
		assert_int_equal(replay_ask(GROUP_PUSH, a + 1, b, ""), refused ? -EAGAIN : 0);
	} else if (sscanf(line, "pull %u", &a) == 1) {
		assert_int_equal(replay_ask(GROUP_PULL, a + 1, 0, ""), 0);
	} else if (sscanf(line, "swap %u", &a) == 1) {
		assert_int_equal(replay_ask(GROUP_POLICY, 0, 0, replay_policy[a]), 0);
	} else if (strcmp(line, "end\n") == 0) {
		assert_int_equal(replay.task, 'r');
		replay.task = 0;
		groups_reduced(&replay.groups, replay.group, 0, "");
		replay_puts();
	} else {
		replay_compare(line);
	}
}

static void runs_of_the_model_are_runs_of_the_code(void **state)
{
	char line[128];
	unsigned lines = 0, runs = 0, refused = 0;

	while (fgets(line, sizeof(line), stdin)) {
		replay_line(line);
		lines++;
		runs += strncmp(line, "begin", 5) == 0;
		refused += strncmp(line, "push", 4) == 0 && line[strlen(line) - 2] == '1';
	}
	printf("%u runs, %u lines, %u pushes refused\n", runs, lines, refused);
	assert_true(runs > 0 && lines > 10 * runs && refused > runs / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_of_the_model_are_runs_of_the_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
