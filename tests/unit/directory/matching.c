/* SPDX-License-Identifier: BSD-3-Clause */
/* When the directory lets an id be created again: not while a member has the object. */
#include "fixtures/control_shard.h"

static int create(struct fixture *f, uint32_t node, uint64_t generation)
{
	return have(f, node, 1, generation, BIG, MESSAGE_COPY_CREATING, true);
}

/* As long as a member has it nobody takes its place, whether that member answers or not. The first
 * steps are the shortest trail of tests/model/directory.pml with CREATE_BY_CONNECTION: node 3 puts
 * and cannot be reached, node 2 creates. */
static void a_link_loss_frees_no_id(void **state)
{
	struct fixture *f = *state;

	have(f, 3, 1, 5, BIG, MESSAGE_COPY_COMPLETE, false);
	assert_int_equal(create(f, 2, 6), -EEXIST);
	directory_node_down(&f->d, 3);
	assert_int_equal(create(f, 2, 6), -EAGAIN);
	assert_non_null(strstr(f->out[0].m.reply.text, "node 3 holds it and does not answer"));
	/* nor does what was begun out of sight of it, as long as nobody has all of that */
	assert_int_equal(have(f, 4, 1, 6, BIG, MESSAGE_COPY_CREATING, false), -ESTALE);
	assert_int_equal(f->removed_count, 0);
	directory_node_forget(&f->d, 3, false); /* for long */
	assert_int_equal(create(f, 2, 6), -EAGAIN);
	directory_node_up(&f->d, 3, 103); /* with what it had */
	assert_int_equal(create(f, 2, 6), -EEXIST);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 3);
	directory_node_down(&f->d, 3);
	assert_int_equal(create(f, 4, 6), -EAGAIN);
	directory_node_dead(&f->d, 3, true);
	assert_int_equal(create(f, 4, 6), 0);
}

/* Who waits since before the death is told, once it is certain that nobody else has the object. */
static void who_waits_hears_of_the_loss(void **state)
{
	struct fixture *f = *state;
	const struct object_id id = id_of(1);
	struct entry *e;

	have(f, 3, 1, 5, BIG, MESSAGE_COPY_COMPLETE, false);
	directory_node_down(&f->d, 3);
	assert_int_equal(get_first(f, 2, 1)->got.what, MESSAGE_GOT_WAIT);
	assert_int_equal(f->out[0].m.got.lost, 0);
	e = directory_find(&f->d, &id);
	directory_node_dead(&f->d, 3, true);
	f->out_count = 0;
	f->unsettled = true;
	directory_tell_lost(&f->d, e);
	assert_int_equal(f->out_count, 0);
	f->unsettled = false;
	directory_tell_lost(&f->d, e);
	assert_int_equal(f->out_count, 1);
	assert_int_equal(f->out[0].node, 2);
	assert_int_equal(f->out[0].m.got.what, MESSAGE_GOT_WAIT);
	assert_int_equal(f->out[0].m.got.lost, 3 + 1);
	have(f, 4, 1, 5, BIG, MESSAGE_COPY_COMPLETE, false); /* another one has it after all */
	assert_int_equal(get_first(f, 5, 1)->got.what, MESSAGE_GOT_HOLDER);
	assert_int_equal(f->out[0].m.got.lost, 0);
}

/* What is being created stands as well; who holds only parts does not hold the id. [G3.2] */
static void who_creates_keeps_the_id_while_it_is_a_member(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(create(f, 3, 5), 0);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 3);
	directory_node_down(&f->d, 3);
	assert_int_equal(create(f, 4, 6), -EAGAIN);
	directory_node_forget(&f->d, 3, true); /* it has left */
	assert_int_equal(create(f, 4, 6), 0);
}

/* Its copies went with its store. */
static void another_store_frees_the_id(void **state)
{
	struct fixture *f = *state;

	have(f, 3, 1, 5, BIG, MESSAGE_COPY_COMPLETE, false);
	directory_node_down(&f->d, 3);
	assert_int_equal(create(f, 2, 6), -EAGAIN);
	directory_node_up(&f->d, 3, 1003);
	assert_int_equal(create(f, 2, 6), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_hears_of_the_loss),
		TEST(a_link_loss_frees_no_id),
		TEST(who_creates_keeps_the_id_while_it_is_a_member),
		TEST(another_store_frees_the_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
