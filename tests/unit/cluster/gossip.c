/* SPDX-License-Identifier: BSD-3-Clause */
/* Is it there? What happens when a node is silent, before anybody takes it for dead. */
#include "fixtures/control_peers.h"

static void silent(struct fixture *f, uint32_t n)
{
	struct record r = {.op = EVENT_PEER_SILENT};

	r.peer.conn = conn_of(n);
	control_event(f->core, 0, &r, f->now_ns);
}

static uint32_t steps(const struct fixture *f, enum message_members_step step, uint32_t about)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->sent_count; i++)
		count += f->sent[i].m.kind == MESSAGE_MEMBERS &&
			 f->sent[i].m.members.step == step &&
			 (about == MESSAGE_NODE_NONE || f->sent[i].first.node == about);
	return count;
}

static void say(struct fixture *f, uint32_t from, enum message_members_step step, uint32_t about)
{
	const struct message_member member = {
		.node = about, .state = MEMBER_ALIVE, .incarnation = 100, .addr = addr_of(about)};
	struct message m = {.kind = MESSAGE_MEMBERS};

	m.members.step = step;
	m.members.count = about != MESSAGE_NODE_NONE;
	m.members.members = &member;
	m.members.digest = membership_digest(f->core);
	control_message(f->core, conn_of(from), &m, f->now_ns);
}

static struct fixture *silence(void)
{
	struct fixture *f = begin(false);

	for (uint32_t n = 1; n < NODES; n++)
		meet(f, n);
	f->sent_count = 0;
	silent(f, 1);
	silent(f, 1); /* nothing new */
	return f;
}

static void others_are_asked_before_a_suspicion(void **state)
{
	struct fixture *f = silence();
	const struct control_config *config = &f->core->config;

	assert_int_equal(steps(f, MESSAGE_MEMBERS_ASK, 1), 3);
	assert_int_equal(steps(f, MESSAGE_MEMBERS_PROBE, MESSAGE_NODE_NONE), 1);
	run(f, config->confirm_ns - 1);
	assert_int_equal(state_of(f, 1), MEMBER_ALIVE);
	run(f, 1);
	assert_int_equal(state_of(f, 1), MEMBER_SUSPECT);
	run(f, config->suspect_ns);
	assert_int_equal(state_of(f, 1), MEMBER_DEAD);
	assert_int_equal(control_counters(f->core)->members_died, 1);
	assert_true(config->watch_ns + config->confirm_ns + config->suspect_ns < SECOND);
	end(f);
}

static void who_is_heard_of_is_not_suspect(void **state)
{
	struct fixture *f = silence();

	say(f, 2, MESSAGE_MEMBERS_HEARD, 1);
	run(f, SECOND / 2);
	assert_int_equal(state_of(f, 1), MEMBER_ALIVE);
	silent(f, 1);
	say(f, 1, MESSAGE_MEMBERS_ANSWER, MESSAGE_NODE_NONE); /* it answers itself */
	run(f, SECOND / 2);
	assert_int_equal(state_of(f, 1), MEMBER_ALIVE);
	assert_int_equal(control_counters(f->core)->members_missed, 2);
	end(f);
}

/* A core that did not run while the time went by has not read what came. */
static void who_comes_late_does_not_judge(void **state)
{
	struct fixture *f = silence();
	const struct control_counters *counters = control_counters(f->core);

	assert_int_equal(counters->ticks_late, 0);
	run(f, SECOND);
	assert_int_equal(counters->ticks_late, 1);
	assert_int_equal(state_of(f, 1), MEMBER_ALIVE);
	say(f, 2, MESSAGE_MEMBERS_HEARD, 1);
	run(f, SECOND / 2);
	assert_int_equal(state_of(f, 1), MEMBER_ALIVE);
	end(f);
}

static void one_who_asks_is_told(void **state)
{
	struct fixture *f = begin(false);

	for (uint32_t n = 1; n < NODES; n++)
		meet(f, n);
	f->sent_count = 0;
	say(f, 2, MESSAGE_MEMBERS_ASK, 1);
	say(f, 3, MESSAGE_MEMBERS_ASK, 1);
	say(f, 2, MESSAGE_MEMBERS_ASK, NODES); /* there is none */
	assert_int_equal(steps(f, MESSAGE_MEMBERS_PROBE, MESSAGE_NODE_NONE), 2);
	assert_int_equal(steps(f, MESSAGE_MEMBERS_HEARD, 1), 0);
	say(f, 1, MESSAGE_MEMBERS_ANSWER, MESSAGE_NODE_NONE);
	assert_int_equal(steps(f, MESSAGE_MEMBERS_HEARD, 1), 2);
	say(f, 1, MESSAGE_MEMBERS_ANSWER, MESSAGE_NODE_NONE);
	assert_int_equal(steps(f, MESSAGE_MEMBERS_HEARD, 1), 2);
	say(f, 2, MESSAGE_MEMBERS_ASK, 0); /* about ourselves */
	assert_int_equal(steps(f, MESSAGE_MEMBERS_HEARD, 0), 1);
	end(f);
}

/* The way up and the way down meet at the fourth place of eight. */
static void news_goes_once_to_each_that_is_watched(void **state)
{
	struct fixture *f = begin(false);
	uint32_t to[NODES] = {0};

	for (uint32_t n = 1; n < NODES; n++)
		meet(f, n);
	run(f, SECOND / 10);
	f->sent_count = 0;
	tell(f, 1, 3, MEMBER_ALIVE, 101);
	run(f, SECOND / 10);
	for (uint32_t n = 1; n < NODES; n++)
		for (uint32_t i = 0; i < f->sent_count; i++)
			to[n] += f->sent[i].conn == conn_of(n) &&
				 f->sent[i].m.kind == MESSAGE_MEMBERS;
	assert_memory_equal(to, ((uint32_t[NODES]){0, 1, 1, 0, 1, 0, 1, 1}), sizeof(to));
	assert_int_equal(steps(f, MESSAGE_MEMBERS_NEWS, 3), 5);
	end(f);
}

/* To one who sees other members: all that are known, in as many messages as that takes. */
static void a_table_may_take_several_messages(void **state)
{
	enum { MOST = MESSAGE_MEMBERS_MAX };
	static const uint32_t known[] = {MOST - 1, MOST, MOST + 1, 2 * MOST, 2 * MOST + 1};

	for (uint32_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		struct fixture *f = begin_of(false, NODES_MOST);
		struct message m = {.kind = MESSAGE_MEMBERS};
		uint32_t told = 0, messages = 0;

		meet(f, 1);
		for (uint32_t n = 2; n < known[k]; n++)
			tell(f, 1, n, MEMBER_ALIVE, 100);
		f->sent_count = 0;
		m.members.step = MESSAGE_MEMBERS_PROBE;
		m.members.digest = ~membership_digest(f->core);
		control_message(f->core, conn_of(1), &m, f->now_ns);
		for (uint32_t i = 0; i < f->sent_count; i++) {
			const struct message_members *t = &f->sent[i].m.members;

			if (f->sent[i].m.kind != MESSAGE_MEMBERS ||
			    t->step != MESSAGE_MEMBERS_TABLE)
				continue;
			assert_in_range(t->count, 1, MOST);
			assert_int_equal(f->sent[i].first.node, told);
			told += t->count;
			messages++;
		}
		assert_int_equal(told, known[k]);
		assert_int_equal(messages, (known[k] + MOST - 1) / MOST);
		end(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_are_asked_before_a_suspicion),
		cmocka_unit_test(who_is_heard_of_is_not_suspect),
		cmocka_unit_test(who_comes_late_does_not_judge),
		cmocka_unit_test(one_who_asks_is_told),
		cmocka_unit_test(news_goes_once_to_each_that_is_watched),
		cmocka_unit_test(a_table_may_take_several_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
