/* SPDX-License-Identifier: BSD-3-Clause */
/* What the directory believes of a node that could not take it back in time. */
#include "fixtures/control_shard.h"
#include "fixtures/control_world.h"

#define STORE (UINT64_C(4) << 20)
#define SIZE  UINT64_C(100000)

/* ---- one shard ----------------------------------------------------------------------------- */

static int have_in(struct fixture *f, uint32_t node, uint8_t id, uint32_t state, uint64_t life)
{
	struct message m = {.kind = MESSAGE_HAVE};

	m.have = (struct message_have){.id = id_of(id),
				       .generation = 7,
				       .size = BIG,
				       .chunk_bytes = 1408,
				       .state = state,
				       .upstream = MESSAGE_NODE_NONE,
				       .epoch = life};
	return send(f, node, &m)->reply.status;
}

static void told(struct fixture *f, uint32_t node, uint64_t life)
{
	struct message m = {.kind = MESSAGE_ANNOUNCED, .announced.epoch = life};
	const struct message *a = send(f, node, &m);

	assert_non_null(a);
	assert_int_equal(a->kind, MESSAGE_REPLY);
	assert_int_equal(a->reply.status, 0);
}

static uint32_t copies(struct fixture *f, uint8_t id)
{
	const struct object_id object = id_of(id);
	const struct entry *e = directory_find(&f->d, &object);

	return e ? e->copies_count : 0;
}

static void what_is_not_told_again_is_forgotten(void **state)
{
	struct fixture *f = *state;

	have_in(f, 1, 1, MESSAGE_COPY_COMPLETE, 10);
	have_in(f, 1, 2, MESSAGE_COPY_COMPLETE, 10);
	have_in(f, 2, 2, MESSAGE_COPY_COMPLETE, 3); /* of its own count */
	have_in(f, 1, 2, MESSAGE_COPY_COMPLETE, 11);
	have_in(f, 1, 3, MESSAGE_COPY_COMPLETE, 11);
	told(f, 1, 11);
	assert_int_equal(copies(f, 1), 0);
	assert_int_equal(copies(f, 2), 2);
	assert_int_equal(copies(f, 3), 1);
	told(f, 1, 10); /* late */
	told(f, 1, 11); /* repeated */
	assert_int_equal(copies(f, 3), 1);
}

/* One message overtakes another: an announcement of the later epoch stays. */
static void order_does_not_matter(void **state)
{
	struct fixture *f = *state;

	have_in(f, 1, 1, MESSAGE_COPY_COMPLETE, 11);
	have_in(f, 1, 1, MESSAGE_COPY_COMPLETE, 10);
	have_in(f, 1, 2, MESSAGE_COPY_COMPLETE, 12); /* of the life after */
	told(f, 1, 11);
	assert_int_equal(copies(f, 1), 1);
	assert_int_equal(copies(f, 2), 1);
}

static void an_unfinished_one_is_ended_for_all(void **state)
{
	struct fixture *f = *state;

	have_in(f, 1, 1, MESSAGE_COPY_CREATING, 10);
	assert_int_equal(get_first(f, 2, 1)->got.holder, 1);
	told(f, 1, 11);
	assert_int_equal(copies(f, 1), 0);
	assert_int_equal(f->removed_count, 1);
	assert_int_equal(f->removed[0].node, 2);
	assert_int_equal(have_in(f, 1, 1, MESSAGE_COPY_CREATING, 11), -ESTALE);
}

/* The copy that a GET has booked counts as of the life of the GET. */
static void bookings_are_copies_too(void **state)
{
	struct fixture *f = *state;
	struct message m = {.kind = MESSAGE_GET};

	have_in(f, 1, 1, MESSAGE_COPY_COMPLETE, 1);
	m.get = (struct message_get){.id = id_of(1), .failed = MESSAGE_NODE_NONE, .epoch = 10};
	assert_int_equal(send(f, 2, &m)->got.holder, 1);
	m.get.epoch = 11;
	assert_int_equal(send(f, 3, &m)->got.holder, 2);
	told(f, 2, 11);
	told(f, 3, 11);
	assert_int_equal(copies(f, 1), 2);
}

static void a_lost_node_is_asked_again(void **state)
{
	struct fixture *f = *state;

	directory_node_down(&f->d, 1);
	assert_true(directory_node_up(&f->d, 1, 101)); /* nothing of it is here */
	have_in(f, 1, 1, MESSAGE_COPY_COMPLETE, 10);
	directory_node_down(&f->d, 1);
	assert_int_equal(copies(f, 1), 1);
	assert_false(directory_node_up(&f->d, 1, 101));
	directory_node_known(&f->d, 1);
	assert_true(directory_node_up(&f->d, 1, 101));
}

/* ---- whole nodes ----------------------------------------------------------------------------- */

/* Node 0 has the directory; a client of node 1 is creating "x". */
static struct world *creating(struct world_reply **created)
{
	struct world *w = world_new(3, 1, STORE, false);
	struct session_request r = world_request(SESSION_CREATE, "x");

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_open(w, i), 0);
	r.size = SIZE;
	r.pin = 1;
	*created = world_call(w, 1, 0, &r, WORLD_SECOND);
	assert_non_null(*created);
	assert_int_equal((*created)->reply.status, 0);
	assert_int_equal(world_put(w, 2, 0, "x", SIZE, 1), -EEXIST);
	assert_int_equal(world_put(w, 1, 0, "y", SIZE, 2), 0);
	return w;
}

/* The name is free again, and what else node 1 holds is known as before. */
static void expect_free(struct world *w)
{
	assert_int_equal(world_put(w, 2, 0, "x", SIZE, 1), 0);
	assert_int_equal(world_get(w, 0, 0, "x", SIZE, 1, -1), 0);
	assert_int_equal(world_get(w, 2, 0, "y", SIZE, 2, -1), 0);
}

static void given_up_while_out_of_reach(void **state)
{
	struct world_reply *created;
	struct world *w = creating(&created);
	struct session_request r = world_request(SESSION_ABORT, NULL);

	w->cut[1] = true;
	world_run(w, WORLD_SECOND);
	r.slot = created->reply.slot;
	r.generation = created->reply.generation;
	world_send(w, 1, 0, &r);
	world_run(w, w->config.call_ns + WORLD_SECOND); /* nobody says it any more */
	w->cut[1] = false;
	world_run(w, 3 * WORLD_SECOND);
	expect_free(w);
	world_free(w);
}

static void given_up_by_a_killed_control(void **state)
{
	struct world_reply *created;
	struct world *w = creating(&created);

	world_kill_control(w, 1);
	world_run(w, 100 * WORLD_MS);
	world_start_control(w, 1);
	world_run(w, 3 * WORLD_SECOND);
	expect_free(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_not_told_again_is_forgotten, setup,
						teardown),
		cmocka_unit_test_setup_teardown(order_does_not_matter, setup, teardown),
		cmocka_unit_test_setup_teardown(an_unfinished_one_is_ended_for_all, setup,
						teardown),
		cmocka_unit_test_setup_teardown(bookings_are_copies_too, setup, teardown),
		cmocka_unit_test_setup_teardown(a_lost_node_is_asked_again, setup, teardown),
		cmocka_unit_test(given_up_while_out_of_reach),
		cmocka_unit_test(given_up_by_a_killed_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
