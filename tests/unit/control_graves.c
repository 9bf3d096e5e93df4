/* SPDX-License-Identifier: BSD-3-Clause */
/* What was deleted stays deleted, what was put again is told from it, and late news does no harm.
 */
#include "control_shard.h"

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

static void bury(struct fixture *f, uint8_t id, uint64_t generation)
{
	const struct message_bury b = {id_of(id), generation, 0, MESSAGE_NODE_NONE};

	directory_take_bury(&f->d, &b);
}

static void what_was_deleted_elsewhere_stays_away(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), 0);
	bury(f, 1, 6); /* of the one before */
	assert_int_equal(f->removed_count, 0);
	bury(f, 1, 7); /* its holder was faster than the tombstone */
	assert_int_equal(f->removed_count, 1);
	assert_int_equal(f->d.entries.used, 0);
	bury(f, 1, 7);
	bury(f, 1, 5); /* late: takes nothing back */
	assert_int_equal(f->removed_count, 1);
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(f->out[0].m.reply.generation, 7);
	assert_int_equal(have(f, 1, 1, 6, BIG, MESSAGE_COPY_CREATING, true), -ESTALE);
	assert_int_equal(have(f, 1, 1, 8, BIG, MESSAGE_COPY_CREATING, true), 0);
	bury(f, 1, 7);
	assert_int_equal(f->d.entries.used, 1);
}

/* Ids need not be hashes: those of a counter have their graves spread all the same. */
static void counted_ids_do_not_share_a_grave(void **state)
{
	struct fixture *f = *state;
	struct message_bury b = {.generation = 7, .node = MESSAGE_NODE_NONE};
	uint32_t known = 0;

	for (uint8_t i = 0; i < 12; i++) {
		b.id.bytes[0] = i;
		directory_take_bury(&f->d, &b);
	}
	for (uint8_t i = 0; i < 12; i++) {
		b.id.bytes[0] = i;
		known += directory_tombstone(&f->d, &b.id) != NULL;
	}
	assert_true(known >= 8); /* of 16, 4 in a place */
}

/* An earlier control has left them; not all of what lies there need be its. */
static void those_left_by_another_control_count(void **state)
{
	enum { LEFT = 16 };
	struct object_grave left[LEFT] = {0}, begun[LEFT] = {0};
	struct fixture *f = *state;
	uint32_t sound;

	directory_keep_graves(&f->d, left, LEFT);
	bury(f, 1, 7);
	for (sound = 0; left[sound].generation == 0; sound++) {
	}
	memcpy(begun, left, sizeof(begun));
	for (uint32_t i = 0; i < LEFT; i++) /* elsewhere, and of nobody's making */
		if (i / 4 != sound / 4)
			begun[i] = left[sound];
	begun[sound ^ 1] = (struct object_grave){id_of(1), UINT64_MAX, 0, 0, 0};
	begun[sound ^ 2] = (struct object_grave){id_of(1), 9, 0, NODES, 0};
	memset(f->d.tombstones, 0, sizeof(struct tombstone) * LEFT);
	directory_keep_graves(&f->d, begun, LEFT);
	for (uint32_t i = 0; i < LEFT; i++) {
		assert_int_equal(f->d.tombstones[i].generation, i == sound ? 7 : 0);
		assert_int_equal(begun[i].generation, i == sound ? 7 : 0);
	}
	assert_int_equal(have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	directory_keep_graves(&f->d, left, 0);
	bury(f, 1, 8);
	assert_int_equal(left[sound].generation, 7);
}

static void tombstones_are_bounded_and_one_per_id(void **state)
{
	struct fixture *f = *state;

	for (uint64_t g = 1; g <= 100; g++)
		bury(f, 1, g);
	assert_int_equal(have(f, 0, 1, 100, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	for (uint8_t id = 2; id < 200; id++) {
		bury(f, id, 1);
		assert_int_equal(have(f, 0, id, 1, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	}
}

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
		TEST(counted_ids_do_not_share_a_grave),
		TEST(those_left_by_another_control_count),
		TEST(tombstones_are_bounded_and_one_per_id),
		TEST(a_late_drop_leaves_another_generation),
		TEST(absent_is_the_copy_that_was_booked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
