/* SPDX-License-Identifier: BSD-3-Clause */
/* Which copy the directory names as the pinned one, appoints, and lets give its pin back. */
#include "fixtures/control_shard.h"

enum { FIRST = 0, INTERIM = 1, CACHE = 2, ASKS = 1, PINS, LOST, NOTHING };

/* What a holder of object 1 hears: node + 1, or 0. */
static uint32_t named(struct fixture *f, uint32_t node, uint32_t says, bool appointed)
{
	struct message m = {.kind = MESSAGE_HAVE};
	const struct message *a;

	m.have = (struct message_have){.id = id_of(1),
				       .generation = 7,
				       .size = BIG,
				       .chunk_bytes = 1408,
				       .state = MESSAGE_COPY_COMPLETE,
				       .upstream = MESSAGE_NODE_NONE,
				       .pinned = says == PINS,
				       .appointed = appointed,
				       .pin_lost = says == LOST};
	a = send(f, node, &m);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	return a->reply.pinned;
}

static void announced(struct fixture *f, uint32_t node, uint64_t epoch)
{
	struct message m = {.kind = MESSAGE_ANNOUNCED, .announced.epoch = epoch};

	assert_non_null(send(f, node, &m));
}

/* FIRST is away, and INTERIM was appointed. */
static struct fixture *interim(void **state)
{
	struct fixture *f = *state;

	named(f, FIRST, PINS, false);
	assert_int_equal(named(f, INTERIM, NOTHING, false), FIRST + 1);
	assert_int_equal(named(f, CACHE, NOTHING, false), FIRST + 1);
	directory_node_down(&f->d, FIRST);
	assert_int_equal(named(f, INTERIM, LOST, false), INTERIM + 1);
	return f;
}

static void a_pin_goes_when_the_first_one_has_announced(void **state)
{
	struct fixture *f = interim(state);

	named(f, INTERIM, PINS, true);
	assert_int_equal(named(f, INTERIM, ASKS, true), INTERIM + 1);
	directory_node_up(&f->d, FIRST, 100 + FIRST);
	assert_int_equal(named(f, INTERIM, ASKS, true), INTERIM + 1);
	named(f, FIRST, PINS, false);
	announced(f, FIRST, 0);
	assert_int_equal(named(f, INTERIM, ASKS, true), FIRST + 1);
	assert_int_equal(named(f, INTERIM, ASKS, true), FIRST + 1); /* sent twice */
	directory_node_down(&f->d, FIRST);
	assert_int_equal(named(f, INTERIM, ASKS, true),
			 0); /* once more, and late: it pins no more */
	assert_int_equal(named(f, CACHE, LOST, false), CACHE + 1);
}

static void an_answer_that_was_lost_is_the_same_again(void **state)
{
	struct fixture *f = interim(state);

	assert_int_equal(named(f, CACHE, LOST, false), INTERIM + 1);
	directory_node_up(&f->d, FIRST, 100 + FIRST);
	named(f, FIRST, PINS, false);
	announced(f, FIRST, 0);
	assert_int_equal(named(f, INTERIM, LOST, false), INTERIM + 1);
}

static void of_two_interim_ones_both_go_and_the_first_stays(void **state)
{
	struct fixture *f = interim(state);

	directory_node_down(&f->d, INTERIM);
	assert_int_equal(named(f, CACHE, LOST, false), CACHE + 1);
	directory_node_up(&f->d, INTERIM, 100 + INTERIM);
	named(f, INTERIM, PINS, true);
	announced(f, INTERIM, 0);
	assert_int_equal(named(f, CACHE, ASKS, true),
			 CACHE + 1); /* that is an interim one as well */
	directory_node_up(&f->d, FIRST, 100 + FIRST);
	named(f, FIRST, PINS, false);
	announced(f, FIRST, 0);
	assert_int_equal(named(f, CACHE, ASKS, true), FIRST + 1);
	assert_int_equal(named(f, INTERIM, ASKS, true), FIRST + 1);
	assert_int_equal(named(f, CACHE, NOTHING, false), FIRST + 1);
}

/* It counts as pinned no more, but its holder may not know: others rely on it. */
static void a_full_directory_waits_until_the_holder_has_given_it_up(void **state)
{
	struct fixture *f = interim(state);

	directory_node_up(&f->d, FIRST, 100 + FIRST);
	named(f, FIRST, PINS, false);
	announced(f, FIRST, 0);
	for (uint32_t i = CACHE; i < NODES - 1; i++)
		named(f, i, PINS, false);
	have(f, NODES - 1, 2, 7, BIG, MESSAGE_COPY_CREATING, true);
	assert_int_equal(f->d.copies.used, NODES);
	assert_int_equal(named(f, INTERIM, ASKS, true), FIRST + 1);
	assert_int_equal(have(f, 3, 3, 7, BIG, MESSAGE_COPY_CREATING, true), -ENOSPC);
	named(f, INTERIM, NOTHING, false);
	assert_int_equal(have(f, 3, 3, 7, BIG, MESSAGE_COPY_CREATING, true), -EAGAIN);
	assert_int_equal(f->evicted.node, INTERIM);
}

/* The owner itself is the first one, and its value would be on no other machine. */
static void a_small_value_stays_on_two_machines(void **state)
{
	struct fixture *f = interim(state);
	struct entry *e = directory_find(&f->d, &(struct object_id){{1, 1, 1, 1, 1, 1, 2, 3}});

	f->d.self = FIRST;
	directory_node_up(&f->d, FIRST, 100 + FIRST);
	named(f, FIRST, PINS, false);
	announced(f, FIRST, 0);
	e->has_value = true;
	assert_int_equal(named(f, INTERIM, ASKS, true), INTERIM + 1);
	f->d.self = NODES - 1;
	e->keeping = true;
	assert_int_equal(named(f, INTERIM, ASKS, true), INTERIM + 1);
	e->keeping = false;
	assert_int_equal(named(f, INTERIM, ASKS, true), FIRST + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pin_goes_when_the_first_one_has_announced),
		TEST(an_answer_that_was_lost_is_the_same_again),
		TEST(of_two_interim_ones_both_go_and_the_first_stays),
		TEST(a_full_directory_waits_until_the_holder_has_given_it_up),
		TEST(a_small_value_stays_on_two_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
