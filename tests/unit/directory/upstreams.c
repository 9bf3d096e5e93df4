/* SPDX-License-Identifier: BSD-3-Clause */
/* Who goes round a holder, and finds back into the tree: what the directory says to that. */
#include <errno.h>
#include "fixtures/control_shard.h"

static const struct message_got *reparent(struct fixture *f, uint32_t node)
{
	return &get(f, node, 1, 7, MESSAGE_NODE_NONE, MESSAGE_GET_REPARENT)->got;
}

static void expect_nobody(struct fixture *f, uint32_t node, int32_t status)
{
	const struct message_got *got = reparent(f, node);

	assert_int_equal(got->what, MESSAGE_GOT_FAILED);
	assert_int_equal(got->status, status);
}

static void leave(struct fixture *f, uint32_t node, uint32_t holder)
{
	struct message m = {.kind = MESSAGE_DROP};

	m.object = (struct message_object){.id = id_of(1), .generation = 7, .upstream = holder + 1};
	send(f, node, &m);
}

/* 0, which has all, feeds 1, 1 feeds 2, 2 feeds 3; 2 has gone round 1. */
static void detour(struct fixture *f)
{
	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(get_first(f, i, 1)->got.holder, i - 1);
	for (uint32_t i = 0; i < 5; i++)
		expect_nobody(f, i, -EALREADY);
	assert_int_equal(get(f, 2, 1, 7, 1, MESSAGE_GET_HEDGE)->got.holder, 0);
}

static void the_holder_of_before_will_do(void **state)
{
	struct fixture *f = *state;

	detour(f);
	assert_int_equal(reparent(f, 2)->holder, 1);
	assert_int_equal(reparent(f, 2)->holder, 1);
	expect_nobody(f, 1, -EAGAIN); /* all others are behind it */
	expect_nobody(f, 3, -EALREADY);
	leave(f, 2, 0);
	expect_nobody(f, 2, -EALREADY);
	expect_nobody(f, 1, -EALREADY);
	assert_int_equal(get_first(f, 4, 1)->got.holder, 3); /* each feeds one */
}

static void whoever_asks_first_moves(void **state)
{
	struct fixture *f = *state;

	detour(f);
	leave(f, 2, 1); /* 0 feeds 1 and 2, 2 feeds 3 */
	assert_int_equal(reparent(f, 1)->holder, 3);
	expect_nobody(f, 2, -EAGAIN); /* 1 is behind it now */
	leave(f, 1, 0);
	expect_nobody(f, 2, -EALREADY);
	assert_int_equal(get_first(f, 4, 1)->got.holder, 1);
}

static void a_dead_node_is_no_parent(void **state)
{
	struct fixture *f = *state;

	detour(f);
	directory_node_down(&f->d, 1);
	get(f, 3, 1, 7, 2, MESSAGE_GET_HEDGE); /* now 0 feeds 2 and 3 */
	expect_nobody(f, 2, -EAGAIN);
	assert_int_equal(reparent(f, 3)->holder, 2);
}

/* 0 -> 1 -> 2 -> 3, and 2 falls silent: 3 takes its place behind 1 rather than have 0 feed two. */
static void a_hedge_takes_the_place_of_the_silent(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	for (uint32_t node = 1; node <= 3; node++)
		assert_int_equal(get_first(f, node, 1)->got.holder, node - 1);
	assert_int_equal(get(f, 3, 1, 7, 2, MESSAGE_GET_HEDGE)->got.holder, 1);
	assert_int_equal(f->suspects, 1);
	/* with 1 in use again, only 0 is left, though it feeds one already */
	assert_int_equal(get(f, 2, 1, 7, 1, MESSAGE_GET_HEDGE)->got.holder, 0);
}

static void the_silent_are_handed_out_last(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	directory_node_silent(&f->d, 0, true);
	directory_node_silent(&f->d, 1, true);
	directory_node_silent(&f->d, 1, false); /* it has answered */
	assert_int_equal(get_first(f, 2, 1)->got.holder, 1);
	assert_int_equal(get_first(f, 3, 1)->got.holder, 2); /* a part, but of one who lives */
	directory_node_silent(&f->d, 2, true);
	directory_node_silent(&f->d, 3, true);
	assert_int_equal(get_first(f, 4, 1)->got.holder, 0); /* better than nobody */
}

static void a_second_holder_is_booked_once(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_GET};

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	get_first(f, 1, 1);
	have(f, 5, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	m.get = (struct message_get){.id = id_of(1),
				     .generation = 7,
				     .failed = MESSAGE_NODE_NONE,
				     .why = MESSAGE_GET_MORE};
	assert_int_equal(send(f, 1, &m)->got.holder, 5);
	f->out_count = 0;
	directory_message(&f->d, 1, &m); /* the answer got lost */
	assert_int_equal(f->out_count, 1);
	assert_int_equal(sent_to(f, 1), 5);
}

/* As slots go, a chain: 0 feeds 1, 1 feeds 2, and so on. */
static void a_stand_in_has_room(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	for (uint32_t i = 1; i < 5; i++)
		get_first(f, i, 1);
	/* who has all of it feeds one more than it has slots, others as many as they have */
	assert_int_equal(get(f, 4, 1, 7, NODES - 1, MESSAGE_GET_HEDGE)->got.holder, 0);
	assert_int_not_equal(get(f, 3, 1, 7, NODES - 1, MESSAGE_GET_HEDGE)->got.what,
			     MESSAGE_GOT_HOLDER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_hedge_takes_the_place_of_the_silent),
		TEST(a_second_holder_is_booked_once),
		TEST(a_stand_in_has_room),
		TEST(the_silent_are_handed_out_last),
		TEST(the_holder_of_before_will_do),
		TEST(whoever_asks_first_moves),
		TEST(a_dead_node_is_no_parent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
