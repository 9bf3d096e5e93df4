/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom a delete waits for at the shard owner, and what a repeated one does. */
#include "fixtures/control_shard.h"

static struct message delete_of(uint8_t id)
{
	struct message m = {.kind = MESSAGE_DELETE};

	m.object.id = id_of(id);
	return m;
}

static void it_waits_until_others_have_its_tombstone(void **state)
{
	struct fixture *f = *state;
	struct message m = delete_of(1);

	f->replicas = 1;
	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_null(send(f, 3, &m));
	directory_removed(&f->d, f->removed[0].removal);
	assert_int_equal(f->out_count, 0);
	assert_int_equal(f->tombstone.generation, 7);
	directory_removed(&f->d, f->burial);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(f->out[0].m.reply.status, 0);
}

/* [G1.5] */
static void it_waits_for_the_holders_that_live(void **state)
{
	struct fixture *f = *state;
	struct message m = delete_of(1);

	for (uint32_t i = 0; i < 3; i++)
		have(f, i, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	directory_node_down(&f->d, 2);
	directory_node_dead(&f->d, 2, true);
	assert_null(send(f, 3, &m));
	assert_int_equal(f->removed_count, 3);
	directory_message(&f->d, 3, &m); /* impatient */
	assert_int_equal(f->out_count, 0);
	for (uint32_t i = 0; i < 3; i++)
		if (f->removed[i].node == 2)
			assert_null(f->removed[i].removal);
		else
			directory_removed(&f->d, f->removed[i].removal);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(f->out[0].m.reply.status, 0);
	directory_message(&f->d, 3, &m); /* the answer was lost */
	assert_int_equal(f->out[1].m.reply.status, 0);
	assert_int_equal(send(f, 4, &m)->reply.status, -ENOENT);
	/* the one that was away cannot bring it back, a new put can */
	assert_int_equal(have(f, 2, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false), -ESTALE);
	assert_int_equal(have(f, 2, 1, 9, BIG, MESSAGE_COPY_CREATING, true), 0);
}

/* A member without a connection may only be slow: its tasks still read its copy. */
static void it_waits_for_a_silent_member_and_says_so(void **state)
{
	struct fixture *f = *state;
	struct message m = delete_of(1);

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	directory_node_down(&f->d, 0);
	assert_null(send(f, 3, &m));
	assert_non_null(f->removed[0].removal);
	directory_message(&f->d, 3, &m);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(f->out[0].m.reply.status, -EAGAIN);
	assert_string_equal(f->out[0].m.reply.text,
			    "node 0 has a copy and does not answer: the delete goes on");
	directory_node_up(&f->d, 0, 100);
	directory_message(&f->d, 3, &m); /* it is about to answer */
	assert_int_equal(f->out_count, 1);
	directory_removed(&f->d, f->removed[0].removal);
	assert_int_equal(f->out_count, 2);
	assert_int_equal(f->out[1].m.reply.status, 0);
}

static void a_repeated_one_leaves_a_newer_put(void **state)
{
	struct fixture *f = *state;
	struct message m = delete_of(1);

	have(f, 0, 1, 7, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_null(send(f, 3, &m));
	directory_removed(&f->d, f->removed[0].removal); /* and that answer is lost */
	assert_int_equal(f->out_count, 1);
	assert_int_equal(say_have(f, 1,
				  (struct message_have){.id = id_of(1),
							.generation = 9,
							.size = BIG,
							.state = MESSAGE_COPY_COMPLETE,
							.upstream = MESSAGE_NODE_NONE,
							.create = 1}),
			 0);
	f->out_count = f->removed_count = 0;
	m.request = f->request - 1;
	directory_message(&f->d, 3, &m);
	assert_int_equal(f->removed_count, 0);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(f->out[0].m.reply.status, 0);
	assert_int_equal(f->out[0].m.reply.generation, 7);
	assert_int_equal(get_first(f, 4, 1)->got.holder, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_waits_until_others_have_its_tombstone),
		TEST(it_waits_for_the_holders_that_live),
		TEST(it_waits_for_a_silent_member_and_says_so),
		TEST(a_repeated_one_leaves_a_newer_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
