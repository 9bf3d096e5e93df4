/* SPDX-License-Identifier: BSD-3-Clause */
/* What the directory answers to who makes an object from others (where they are, or values), and to
 * who is patient. */
#include "fixtures/control_shard.h"
#include "internal/reduce.h"

/* A LOCATE of node 5. */
static const struct message_got *locate(struct fixture *f, uint8_t id, uint32_t value_max)
{
	struct message m = {.kind = MESSAGE_GET};

	m.get = (struct message_get){.id = id_of(id),
				     .failed = MESSAGE_NODE_NONE,
				     .why = MESSAGE_GET_LOCATE,
				     .value_max = value_max};
	return &send(f, 5, &m)->got;
}

static void who_locates_says_which_values_it_wants(void **state)
{
	struct fixture *f = *state;
	const struct message_got *got;

	have_value(f, 0, 1, 65536);
	got = locate(f, 1, 65536);
	assert_int_equal(got->what, MESSAGE_GOT_VALUE);
	assert_int_equal(got->value_bytes, 65536);
	got = locate(f, 1, 65535);
	assert_int_equal(got->what, MESSAGE_GOT_HOLDER);
	assert_int_equal(got->holder, 0);
	assert_int_equal(got->value_bytes, 0);
	/* nobody else has it any more: then it comes, however large */
	directory_node_down(&f->d, 0);
	got = locate(f, 1, 0);
	assert_int_equal(got->what, MESSAGE_GOT_VALUE);
	assert_int_equal(got->holder, MESSAGE_NODE_NONE);
}

/* Node 5 asks for objects 1 to 3 at once. */
static struct message_got locate_three(struct fixture *f, uint32_t value_max, uint32_t dtype)
{
	const struct object_id others[] = {id_of(2), id_of(3)};
	struct message m = {.kind = MESSAGE_GET};

	m.get = (struct message_get){.id = id_of(1),
				     .failed = MESSAGE_NODE_NONE,
				     .why = MESSAGE_GET_LOCATE,
				     .value_max = value_max,
				     .op = REDUCE_SUM,
				     .dtype = dtype,
				     .others_count = 2,
				     .others = others};
	return send(f, 5, &m)->got;
}

static void values_of_one_owner_come_as_their_sum(void **state)
{
	struct fixture *f = *state;
	struct message_got got;

	assert_int_equal(locate_three(f, 1024, REDUCE_U8).what, MESSAGE_GOT_UNKNOWN);
	have_value(f, 0, 1, 1001);
	got = locate_three(f, 1024, REDUCE_U8); /* the others are not there: it alone */
	assert_int_equal(got.what, MESSAGE_GOT_VALUE);
	assert_int_equal(got.others, 0);
	assert_int_equal(got.value[1000], 5);
	have_value(f, 1, 2, 1001);
	have_value(f, 2, 3, 1001);
	got = locate_three(f, 1024, REDUCE_U8);
	assert_int_equal(got.what, MESSAGE_GOT_VALUE);
	assert_int_equal(got.value_bytes, 1001);
	assert_int_equal(got.others, 2);
	for (uint32_t i = 0; i < 1001; i++)
		assert_int_equal(got.value[i], 15);
	/* what is no array of such elements, or larger than what is wanted, is not added up */
	got = locate_three(f, 1024, REDUCE_U32);
	assert_int_equal(got.what, MESSAGE_GOT_VALUE);
	assert_int_equal(got.others, 0);
	got = locate_three(f, 1000, REDUCE_U8);
	assert_int_equal(got.what, MESSAGE_GOT_HOLDER);
	assert_int_equal(got.others, 0);
}

static void values_of_two_sizes_are_not_added_up(void **state)
{
	struct fixture *f = *state;

	have_value(f, 0, 1, 1024);
	have_value(f, 1, 2, 1024);
	have_value(f, 2, 3, 1020);
	assert_int_equal(locate_three(f, 1024, REDUCE_U32).others, 0);
}

/* One that is being written is waited for when its value will do; a larger one can be streamed. */
static void a_located_value_comes_when_it_is_complete(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(locate(f, 1, 1024)->what, MESSAGE_GOT_UNKNOWN);
	assert_int_equal(have(f, 0, 1, 7, 1024, MESSAGE_COPY_CREATING, true), 0);
	assert_int_equal(f->out_count, 1); /* the answer to 0 */
	assert_int_equal(locate(f, 1, 1023)->what, MESSAGE_GOT_HOLDER);
	have_value(f, 0, 1, 1024);
	assert_int_equal(f->out_count, 2);
	assert_int_equal(f->out[1].m.got.what, MESSAGE_GOT_VALUE);
	/* a value that the directory could not keep is streamed */
	assert_int_equal(have(f, 0, 2, 7, 1024, MESSAGE_COPY_COMPLETE, true), 0);
	assert_int_equal(locate(f, 2, 1024)->what, MESSAGE_GOT_HOLDER);
}

/* An answer that cannot be sent tells nobody that he waits: he asks again, or has gone. */
static void who_is_not_told_does_not_wait(void **state)
{
	struct fixture *f = *state;

	f->blocked = true;
	locate(f, 1, 1024);
	get_first(f, 4, 1);
	assert_int_equal(f->d.entries.used, 0);
	f->blocked = false;
	locate(f, 1, 1024);
	assert_int_equal(f->d.entries.used, 1);
}

static const struct message *get_patiently(struct fixture *f, uint32_t node, uint8_t id)
{
	struct message m = {.kind = MESSAGE_GET};

	m.get = (struct message_get){.id = id_of(id), .failed = MESSAGE_NODE_NONE, .deferrable = 1};
	return send(f, node, &m);
}

/* The value comes alone, with the word that it was waited for; else the word comes later, once. */
static void deferrable_requests_are_answered_later(void **state)
{
	struct fixture *f = *state;

	assert_null(get_patiently(f, 1, 3));
	have_value(f, 0, 3, 64);
	assert_int_equal(f->out_count, 2); /* the answer to HAVE, too */
	for (uint32_t i = 0; i < f->out_count; i++)
		if (f->out[i].node == 1)
			assert_int_equal(f->out[i].m.got.waited, 1);
	assert_int_equal(get_patiently(f, 2, 3)->got.waited, 0);
	assert_null(get_patiently(f, 1, 4));
	assert_null(get_patiently(f, 2, 4));
	assert_null(get_patiently(f, 1, 4)); /* repeated */
	f->out_count = 0;
	directory_notify_deferred(
		&f->d); /* the second time, for all that one knows who has just come */
	assert_int_equal(f->out_count, 0);
	directory_notify_deferred(&f->d);
	assert_int_equal(f->out_count, 2);
	for (uint32_t i = 0; i < f->out_count; i++)
		assert_int_equal(f->out[i].m.got.what, MESSAGE_GOT_UNKNOWN);
	directory_notify_deferred(&f->d);
	assert_int_equal(f->out_count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_locates_says_which_values_it_wants),
		TEST(values_of_one_owner_come_as_their_sum),
		TEST(values_of_two_sizes_are_not_added_up),
		TEST(a_located_value_comes_when_it_is_complete),
		TEST(who_is_not_told_does_not_wait),
		TEST(deferrable_requests_are_answered_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
