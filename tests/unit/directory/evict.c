/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of copies that is full: cached copies make way for what an object cannot do without. */
#include "fixtures/control_shard.h"

enum { PUTTER = 0, CACHE = 1, LAST = NODES - 1 };

static int have_pinned(struct fixture *f, uint32_t node, uint8_t id)
{
	return say_have(f, node,
			(struct message_have){.id = id_of(id),
					      .generation = 7,
					      .size = BIG,
					      .state = MESSAGE_COPY_COMPLETE,
					      .upstream = MESSAGE_NODE_NONE,
					      .pinned = 1});
}

/* Object 1 is on all nodes, put on PUTTER; there is no room for a copy of another one. */
static struct fixture *full(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have_pinned(f, PUTTER, 1), 0);
	for (uint32_t i = CACHE; i < NODES; i++)
		assert_int_equal(have(f, i, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(f->d.copies.used, NODES);
	return f;
}

static void left(struct fixture *f)
{
	f->d.evicting = false;
	directory_evicted(&f->d, &f->evicted.object, f->evicted.node);
}

/* [G8.5] */
static void a_cached_copy_makes_way_for_the_only_one(void **state)
{
	struct fixture *f = full(state);

	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), -EAGAIN);
	assert_int_equal(f->evicted.node, CACHE);
	assert_int_equal(f->evicted.pinned, PUTTER);
	assert_int_equal(f->d.copies.used, NODES); /* until that has given it up */
	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), -EAGAIN);
	left(f);
	assert_int_equal(f->d.copies.used, NODES - 1);
	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	/* one more copy of what is noted already is no reason */
	assert_int_equal(have(f, 3, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ENOSPC);
	assert_int_equal(get_first(f, 3, 2)->got.what, MESSAGE_GOT_FAILED);
}

static void a_put_finds_room(void **state)
{
	struct fixture *f = full(state);

	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_CREATING, true), -EAGAIN);
	left(f);
	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_CREATING, true), 0);
}

static void a_delete_reaches_a_copy_that_is_leaving(void **state)
{
	struct fixture *f = full(state);
	struct message m = {.kind = MESSAGE_DELETE};
	bool asked = false;

	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), -EAGAIN);
	m.object.id = id_of(1);
	assert_null(send(f, 5, &m));
	assert_int_equal(f->removed_count, NODES);
	for (uint32_t i = 0; i < NODES; i++)
		asked |= f->removed[i].node == f->evicted.node && f->removed[i].removal;
	assert_true(asked);
	left(f); /* of what is no more */
	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
}

/* The one with the pinned copy may be dead. */
static void no_copy_leaves_without_the_pinned_one(void **state)
{
	struct fixture *f = full(state);

	directory_node_down(&f->d, PUTTER);
	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ENOSPC);
	directory_node_up(&f->d, PUTTER, 100 + PUTTER);
	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), -EAGAIN);
	assert_true(directory_evicts(&f->d, &f->evicted.object, f->evicted.node));
	directory_node_down(&f->d, PUTTER);
	assert_false(directory_evicts(&f->d, &f->evicted.object, f->evicted.node));
}

/* Nor one that feeds another. */
static void a_copy_in_use_stays(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have_pinned(f, PUTTER, 1), 0);
	assert_int_equal(have(f, CACHE, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	for (uint8_t i = 2; i < NODES && f->d.copies.used < NODES - 2; i++)
		assert_int_equal(have_pinned(f, i, 3), 0);
	assert_int_equal(get_first(f, 40, 1)->got.what, MESSAGE_GOT_HOLDER);
	assert_int_equal(get_first(f, 41, 1)->got.what, MESSAGE_GOT_HOLDER);
	assert_int_equal(have(f, LAST, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_cached_copy_makes_way_for_the_only_one),
		TEST(a_put_finds_room),
		TEST(a_delete_reaches_a_copy_that_is_leaving),
		TEST(no_copy_leaves_without_the_pinned_one),
		TEST(a_copy_in_use_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
