/* SPDX-License-Identifier: BSD-3-Clause */
/* Of which node's link a slow copy tells, and that all of it is forgotten in the end. */
#include "fixtures/control_shard.h"

#define RATE UINT64_C(25000000)

enum { FROM = 0, SLOW = 1, OTHER = 2, TIMES = 8 };

/* All others have shown that they can do more. */
static void others_can(struct fixture *f)
{
	fanout_saw_start(&f->links.all, 300000);
	for (uint32_t i = 0; i < NODES; i++)
		linkstats_saw_rate(&f->links, i, MESSAGE_NODE_NONE, RATE, BIG);
	linkstats_forget(&f->links, SLOW);
}

static bool blamed(const struct fixture *f)
{
	return linkstats_of(&f->links, SLOW).bytes_per_s < f->links.all.bytes_per_s;
}

static void begins(struct fixture *f, uint8_t id)
{
	have(f, FROM, id, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, SLOW, id)->got.holder, FROM);
}

static void ends_slowly(struct fixture *f, uint8_t id)
{
	struct message m = {.kind = MESSAGE_DELETE};

	assert_int_equal(say_have(f, SLOW,
				  (struct message_have){.id = id_of(id),
							.generation = 7,
							.size = BIG,
							.state = MESSAGE_COPY_COMPLETE,
							.upstream = MESSAGE_NODE_NONE,
							.rate = RATE / 10}),
			 0);
	m.object.id = id_of(id); /* room for copies */
	send(f, FROM, &m);
	for (uint32_t i = 0; i < f->removed_count; i++)
		directory_removed(&f->d, f->removed[i].removal);
	f->removed_count = 0;
}

static void one_that_is_slow_alone_is_blamed(void **state)
{
	struct fixture *f = *state;

	others_can(f);
	for (uint8_t id = 1; id <= 3; id++) {
		assert_false(blamed(f));
		begins(f, id);
		get_first(f, OTHER, id); /* which it feeds itself */
		ends_slowly(f, id);
	}
	assert_true(blamed(f));
}

/* What it took includes the silence of the one before. */
static void one_that_was_left_is_not_blamed(void **state)
{
	struct fixture *f = *state;

	others_can(f);
	for (uint8_t id = 1; id <= TIMES; id++) {
		begins(f, id);
		have(f, OTHER, id, 7, BIG, MESSAGE_COPY_COMPLETE, false);
		assert_int_equal(get(f, SLOW, id, 7, FROM, MESSAGE_GET_UNREACHED)->got.holder,
				 OTHER);
		ends_slowly(f, id);
	}
	assert_false(blamed(f));
}

/* A rate that no link has: one that is slow against it explains all others. */
static void what_never_was_is_forgotten(void **state)
{
	struct fixture *f = *state;

	others_can(f);
	linkstats_saw_rate(&f->links, FROM, MESSAGE_NODE_NONE, 100 * RATE, BIG);
	for (int k = 0; k < 3; k++)
		linkstats_saw_rate(&f->links, SLOW, FROM, RATE, 1 << 30);
	assert_true(blamed(f));
	for (int k = 0; k < 1500; k++)
		linkstats_saw_rate(&f->links, (uint32_t)k % NODES, MESSAGE_NODE_NONE, RATE, BIG);
	assert_true(f->links.all.bytes_per_s < 2 * RATE);
	assert_false(blamed(f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_is_slow_alone_is_blamed, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_was_left_is_not_blamed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_never_was_is_forgotten, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
