/* SPDX-License-Identifier: BSD-3-Clause */
/* What was deleted stays deleted, what was put again is told from it, and late news does no harm.
 */
#include "fixtures/control_shard.h"

/* Two parts of the cluster that did not see each other have put it. */
static void of_two_puts_the_newer_stays(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 1, 1, 9, BIG / 2, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(f->removed_count, 1);
	assert_int_equal(f->removed[0].node, 0);
	assert_int_equal(f->removed[0].generation, 7);
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(have(f, 2, 1, 8, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(get_first(f, 3, 1)->got.generation, 9);
}

static void add_tombstone(struct fixture *f, uint8_t id, uint64_t generation)
{
	const struct message_tombstone b = {
		.id = id_of(id), .generation = generation, .node = MESSAGE_NODE_NONE};

	directory_take_tombstone(&f->d, &b);
}

/* Another node has it, and has heard of that many deletes since. */
static void hand_over(struct fixture *f, uint8_t id, uint64_t generation, uint32_t since)
{
	const struct message_tombstone b = {.id = id_of(id),
					    .generation = generation,
					    .node = MESSAGE_NODE_NONE,
					    .age = 1 + since};

	directory_take_tombstone(&f->d, &b);
}

static bool remembers(const struct fixture *f, uint8_t id)
{
	const struct object_id of = id_of(id);

	return directory_tombstone(&f->d, &of) != NULL;
}

static void what_was_deleted_elsewhere_stays_away(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	add_tombstone(f, 1, 6); /* of the one before */
	assert_int_equal(f->removed_count, 0);
	add_tombstone(f, 1, 7); /* its holder was faster than the tombstone */
	assert_int_equal(f->removed_count, 1);
	assert_int_equal(f->d.entries.used, 0);
	add_tombstone(f, 1, 7);
	add_tombstone(f, 1, 5); /* late: takes nothing back */
	assert_int_equal(f->removed_count, 1);
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->out[0].m.reply.generation, 7);
	assert_int_equal(have(f, 1, 1, 6, BIG, MESSAGE_COPY_CREATING, true), -ESTALE);
	assert_int_equal(have(f, 1, 1, 8, BIG, MESSAGE_COPY_CREATING, true), 0);
	add_tombstone(f, 1, 7);
	assert_int_equal(f->d.entries.used, 1);
}

enum { REMEMBERED = 16 };

/* Whatever their ids are: those of a counter, too. */
static void only_the_oldest_is_forgotten(void **state)
{
	struct fixture *f = *state;

	for (uint8_t i = 1; i <= REMEMBERED; i++)
		add_tombstone(f, i, 7);
	add_tombstone(f, 1, 8); /* the latest of all now */
	for (uint8_t i = 1; i <= REMEMBERED; i++)
		assert_int_equal(have(f, 0, i, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	add_tombstone(f, 100, 7);
	for (uint8_t i = 1; i <= REMEMBERED; i++)
		assert_int_equal(remembers(f, i), i != 2);
}

/* More deletes than are remembered. */
static void add_many_tombstones(struct fixture *f, uint64_t generation)
{
	for (uint8_t i = 0; i <= REMEMBERED; i++)
		add_tombstone(f, (uint8_t)(100 + i), generation);
}

/* The holder of 50 is out of reach while 50 is deleted. */
static void old_deletes_displace_no_later_one(void **state)
{
	struct message m = {.kind = MESSAGE_DELETE, .object = {.id = id_of(50)}};
	struct fixture *f = *state;

	for (uint8_t i = 1; i <= REMEMBERED; i++)
		add_tombstone(f, i, 7);
	assert_int_equal(have(f, 0, 50, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 1, 51, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	directory_node_down(&f->d, 0);
	assert_null(send(f, 2, &m));
	for (uint8_t i = 0; i <= REMEMBERED; i++)
		hand_over(f, (uint8_t)(100 + i), 9, REMEMBERED + i);
	for (uint8_t i = 2; i <= REMEMBERED; i++)
		assert_true(remembers(f, i));
	directory_node_up(&f->d, 0, 100);
	assert_int_equal(have(f, 0, 50, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->d.horizon, 9);
	hand_over(f, 51, 7, REMEMBERED); /* ends the object, although it is not remembered long */
	assert_int_equal(have(f, 1, 51, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
}

static void what_is_handed_over_is_forgotten_in_its_turn(void **state)
{
	struct fixture *f = *state;

	for (uint8_t i = 1; i <= REMEMBERED; i++)
		add_tombstone(f, i, 7);
	hand_over(f, 60, 7, 6); /* as old as the seventh of the latest: displaces 1 */
	for (uint8_t i = 0; i < 8; i++) {
		assert_true(remembers(f, 60));
		add_tombstone(f, (uint8_t)(100 + i), 7);
	}
	add_tombstone(f, 108, 7);
	add_tombstone(f, 109, 7);
	assert_false(remembers(f, 60));
	assert_true(remembers(f, 11));
	hand_over(f, 11, 8, 40); /* renewed, and no older for that */
	add_tombstone(f, 110, 7);
	assert_false(remembers(f, 11));
	assert_true(remembers(f, 12));
}

static void down(struct fixture *f, uint32_t node)
{
	directory_node_down(&f->d, node);
}

/* Returns whether it need not tell what it holds. */
static bool up(struct fixture *f, uint32_t node)
{
	return directory_node_up(&f->d, node, 100 + node);
}

static void told(struct fixture *f, uint32_t node)
{
	struct message m = {.kind = MESSAGE_ANNOUNCED, .announced.epoch = 1};

	assert_int_equal(send(f, node, &m)->reply.status, 0);
}

static void a_node_that_was_away_brings_nothing_deleted_back(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	down(f, 1);
	add_tombstone(f, 1, 7);
	add_many_tombstones(f, 8);
	assert_false(up(f, 1)); /* it is to tell all */
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->beyond, 1);
	assert_int_equal(have(f, 1, 1, 5, BIG, MESSAGE_COPY_CREATING, true), 0); /* put again */
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->beyond, 2);
}

/* It may not have heard of a delete that was under way when it went. */
static void a_delete_under_way_counts_for_who_goes_away(void **state)
{
	struct message m = {.kind = MESSAGE_DELETE, .object = {.id = id_of(1)}};
	struct fixture *f = *state;

	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_null(send(f, 2, &m));
	down(f, 1);
	for (uint8_t i = 0; i < REMEMBERED; i++)
		add_tombstone(f, (uint8_t)(100 + i), 8);
	assert_false(remembers(f, 1));
	assert_false(up(f, 1));
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->beyond, 1);
}

/* It is back in time, but many deletes come before it has announced its objects. */
static void a_node_that_announces_late_brings_nothing_deleted_back(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 1, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	down(f, 1);
	add_tombstone(f, 1, 7);
	assert_false(up(f, 1));
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->beyond, 0);
	add_many_tombstones(f, 8);
	assert_false(remembers(f, 1));
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->beyond, 1);
	assert_int_equal(have(f, 1, 2, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0); /* it is known */
	told(f, 1);
	assert_int_equal(have(f, 1, 3, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
}

/* Nobody deleted what they hold. */
static void who_was_not_away_for_so_long_loses_nothing(void **state)
{
	struct fixture *f = *state;

	add_many_tombstones(f, 9);
	down(f, 2);
	add_many_tombstones(f, 9);
	assert_false(up(f, 2));
	told(f, 2); /* in step again */
	for (uint8_t i = 1; i < 9; i++) {
		add_tombstone(f, (uint8_t)(20 + i), 9);
		assert_int_equal(have(f, 0, i, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
		assert_int_equal(have(f, 2, i, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	}
	directory_node_known(&f->d, 2);
	down(f, 2);
	for (uint8_t i = 0; i < REMEMBERED - 1; i++)
		add_tombstone(f, (uint8_t)(40 + i), 9);
	up(f, 2); /* nothing of meanwhile is forgotten, not for what is older either */
	for (uint8_t i = 0; i < REMEMBERED; i++)
		hand_over(f, (uint8_t)(100 + i), 9, REMEMBERED + i);
	assert_int_equal(have(f, 2, 9, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	told(f, 2);
	add_many_tombstones(f, 9);
	assert_int_equal(have(f, 2, 10, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(f->beyond, 0);
}

static void who_was_away_keeps_what_is_newer_or_known(void **state)
{
	struct fixture *f = *state;

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	down(f, 1);
	add_many_tombstones(f, 9);
	add_many_tombstones(f, 9);
	up(f, 1);
	assert_int_equal(have(f, 1, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 1, 2, 10, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 1, 3, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	told(f, 1);
	assert_int_equal(have(f, 1, 3, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
}

/* A holder that has not told yet is known by nobody: a delete cannot wait for its copy. */
static void while_holders_tell_no_delete_of_theirs_is_forgotten(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_DELETE};

	add_many_tombstones(f, 7);
	directory_unsettled(&f->d);
	f->unsettled = true;
	for (uint8_t i = 1; i <= REMEMBERED; i++)
		add_tombstone(f, i, 7);
	assert_int_equal(have(f, 0, 50, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	m.object = (struct message_object){.id = id_of(50)};
	assert_int_equal(send(f, 2, &m)->reply.status, -EAGAIN);
	assert_int_equal(f->removed_count, 0);
	f->unsettled = false;
	assert_null(send(f, 2, &m)); /* until its holder has given it up */
	assert_int_equal(f->removed_count, 1);
}

/* An earlier control has left them; not all of what lies there need be its. */
static void those_left_by_another_control_count(void **state)
{
	struct object_tombstone left[REMEMBERED] = {0}, before;
	_Atomic uint64_t horizon = 6;
	struct fixture *f = *state;
	void *other;

	directory_keep_tombstones(&f->d, left, REMEMBERED, &horizon);
	add_tombstone(f, 1, 7);
	assert_int_equal(left[0].generation, 7);
	left[1] = (struct object_tombstone){id_of(1), 9, 0, 0, 0}; /* twice */
	left[2] = (struct object_tombstone){id_of(2), UINT64_MAX, 0, 0, 0};
	left[3] = (struct object_tombstone){id_of(3), 9, 0, NODES, 0};
	setup(&other);
	f = other;
	directory_keep_tombstones(&f->d, left, REMEMBERED, &horizon);
	for (uint32_t i = 0; i < REMEMBERED; i++) {
		assert_int_equal(f->d.tombstones[i].generation, i == 0 ? 7 : 0);
		assert_int_equal(left[i].generation, i == 0 ? 7 : 0);
	}
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	down(f, 1);
	directory_node_away(&f->d, 2, true); /* dead as long as we know */
	f->d.nodes[2].up = false;
	up(f, 1);
	up(f, 2);
	assert_int_equal(have(f, 1, 4, 6, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	assert_int_equal(have(f, 2, 5, 6, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	add_many_tombstones(f, 8);
	assert_int_equal(horizon, 8);
	before = left[0];
	directory_keep_tombstones(&f->d, left, 0, NULL);
	add_tombstone(f, 1, 9);
	add_many_tombstones(f, 10);
	assert_memory_equal(&before, &left[0], sizeof(before));
	assert_int_equal(horizon, 8);
	teardown(&other);
}

/* Their order, too: the memory of the oldest is used again first. */
static void another_control_forgets_the_oldest_first(void **state)
{
	struct object_tombstone left[REMEMBERED] = {0};
	_Atomic uint64_t horizon = 0;
	struct fixture *f = *state;
	void *other;

	directory_keep_tombstones(&f->d, left, REMEMBERED, &horizon);
	for (uint8_t i = 1; i <= REMEMBERED + 3; i++)
		add_tombstone(f, i, 7);
	hand_over(f, 60, 7, 14); /* displaces 4 */
	setup(&other);
	f = other;
	directory_keep_tombstones(&f->d, left, REMEMBERED, &horizon);
	for (uint8_t i = 0; i < 3; i++)
		add_tombstone(f, (uint8_t)(100 + i), 7);
	for (uint8_t i = 7; i <= REMEMBERED + 3; i++)
		assert_true(remembers(f, i));
	assert_false(remembers(f, 5));
	assert_false(remembers(f, 6));
	assert_false(remembers(f, 60));
	teardown(&other);
}

/* The numbers that are left are halves, which begin again. */
static void the_oldest_is_known_after_many_deletes(void **state)
{
	struct object_tombstone left[REMEMBERED] = {0};
	_Atomic uint64_t horizon = 0;
	struct fixture *f = *state;
	uint64_t made;
	void *other;

	directory_keep_tombstones(&f->d, left, REMEMBERED, &horizon);
	f->d.tombstones_made = (UINT64_C(1) << 33) - REMEMBERED / 2;
	for (uint8_t i = 1; i <= REMEMBERED + 3; i++)
		add_tombstone(f, i, 7);
	setup(&other);
	f = other;
	made = f->d.tombstones_made;
	directory_keep_tombstones(&f->d, left, REMEMBERED, &horizon);
	for (uint8_t i = 0; i < 3; i++)
		add_tombstone(f, (uint8_t)(100 + i), 7);
	for (uint8_t i = 4; i <= REMEMBERED + 3; i++)
		assert_int_equal(remembers(f, i), i > 6);
	assert_true(f->d.forgotten > made); /* nodes that are away count as behind */
	teardown(&other);
}

static void tombstones_are_bounded_and_one_per_id(void **state)
{
	struct fixture *f = *state;

	for (uint64_t g = 1; g <= 100; g++)
		add_tombstone(f, 1, g);
	assert_int_equal(have(f, 0, 1, 100, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	for (uint8_t id = 2; id < 200; id++) {
		add_tombstone(f, id, 1);
		assert_int_equal(have(f, 0, id, 1, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	}
}

/* [G4.3] */
static void a_late_drop_leaves_another_generation(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_DROP};

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	m.object = (struct message_object){.id = id_of(1), .generation = 6};
	assert_int_equal(send(f, 0, &m)->reply.status, 0);
	assert_int_equal(get_first(f, 1, 1)->got.holder, 0);
	m.object.generation = 0; /* it holds nothing, whatever it was */
	assert_int_equal(send(f, 0, &m)->reply.status, 0);
	assert_int_equal(get_first(f, 2, 1)->got.what, MESSAGE_GOT_WAIT); /* 1 has only a part */
}

/* A receiver says that the holder has no such copy; meanwhile it got another one. */
static void absent_is_the_copy_that_was_booked(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_DROP};

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get_first(f, 1, 1)->got.holder, 0);
	m.object = (struct message_object){.id = id_of(1), .generation = 7};
	send(f, 0, &m);
	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(get(f, 1, 1, 7, 0, MESSAGE_GET_ABSENT)->got.what, MESSAGE_GOT_WAIT);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_two_puts_the_newer_stays),
		TEST(what_was_deleted_elsewhere_stays_away),
		TEST(only_the_oldest_is_forgotten),
		TEST(old_deletes_displace_no_later_one),
		TEST(what_is_handed_over_is_forgotten_in_its_turn),
		TEST(a_node_that_was_away_brings_nothing_deleted_back),
		TEST(a_delete_under_way_counts_for_who_goes_away),
		TEST(a_node_that_announces_late_brings_nothing_deleted_back),
		TEST(who_was_not_away_for_so_long_loses_nothing),
		TEST(who_was_away_keeps_what_is_newer_or_known),
		TEST(while_holders_tell_no_delete_of_theirs_is_forgotten),
		TEST(those_left_by_another_control_count),
		TEST(another_control_forgets_the_oldest_first),
		TEST(the_oldest_is_known_after_many_deletes),
		TEST(tombstones_are_bounded_and_one_per_id),
		TEST(a_late_drop_leaves_another_generation),
		TEST(absent_is_the_copy_that_was_booked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
