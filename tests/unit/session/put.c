/* SPDX-License-Identifier: BSD-3-Clause */
/* Small objects that come whole with their request: when readers have them, and who is refused. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

enum { SIZE = 1000, PUTTER = 1, READER = 2 };

#define STORE (UINT64_C(4) << 20)
#define WHEN  (20 * WORLD_SECOND)

/* The directory is on node 0, who puts on 1, and a reader on 2. */
static struct world *three(void)
{
	struct world *w = world_new(3, 1, STORE, false);

	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_open(w, i), 0);
	assert_int_equal(world_put(w, READER, 0, "warm", SIZE, 9), 0);
	assert_int_equal(world_get(w, PUTTER, 0, "warm", SIZE, 9, WHEN), 0);
	world_run(w, WORLD_SECOND);
	return w;
}

static int put(struct world *w, uint32_t node, const char *name, uint64_t size, uint64_t seed)
{
	return world_put_whole(w, node, 0, name, size, seed);
}

static uint32_t slots_in(const struct world *w, uint32_t node, enum object_state state)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < WORLD_TABLE_SLOTS; i++)
		count += w->node[node].table->slot[i].state == state;
	return count;
}

static void a_reader_has_it_after_two_ways(void **state)
{
	struct world *w = three();
	struct session_request r = world_request(SESSION_GET, "x");
	uint32_t seq, put_seq;
	struct world_reply *a;

	r.timeout_ns = -1;
	seq = world_send(w, READER, 0, &r);
	world_run(w, WORLD_SECOND);
	put_seq = world_put_send(w, PUTTER, 0, "x", SIZE, 1);
	world_run(w, 2 * w->delay_ns + w->delay_ns / 2); /* to the directory, and on */
	a = world_reply_to(w, READER, seq);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(a->reply.watermark, SIZE);
	assert_true(world_holds(w->node[READER].store + a->reply.offset, SIZE, 1));
	a = world_reply_to(w, PUTTER, put_seq);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(w->node[PUTTER].table->slot[a->reply.slot].state, OBJECT_SEALED);
	assert_true(w->node[PUTTER].table->slot[a->reply.slot].flags & OBJECT_FLAG_PRIMARY);
	assert_int_equal(world_get(w, PUTTER, 0, "x", SIZE, 1, 0), 0);
	world_end(w);
}

static void a_reader_on_the_same_node_as_well(void **state)
{
	struct world *w = three();
	struct session_request r = world_request(SESSION_GET, "x");
	uint32_t seq;

	r.timeout_ns = -1;
	seq = world_send(w, PUTTER, 0, &r);
	world_run(w, WORLD_SECOND);
	assert_int_equal(put(w, PUTTER, "x", SIZE, 1), 0);
	assert_int_equal(world_wait(w, PUTTER, seq, WORLD_MS)->reply.status, 0);
	world_end(w);
}

/* [G1.3] [G3.1] */
static void who_comes_second_is_refused(void **state)
{
	struct world *w = three();

	assert_int_equal(put(w, PUTTER, "x", SIZE, 1), 0);
	assert_int_equal(put(w, PUTTER, "x", SIZE, 1), -EEXIST);
	assert_int_equal(put(w, READER, "x", SIZE, 2), -EEXIST);
	assert_int_equal(world_put(w, READER, 0, "x", SIZE, 2), -EEXIST);
	world_run(w, WORLD_SECOND);
	assert_int_equal(slots_in(w, READER, OBJECT_CREATING), 0);
	assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, WHEN), 0);
	assert_int_equal(put(w, PUTTER, "empty", 0, 0), 0);
	assert_int_equal(put(w, PUTTER, "most", SESSION_PUT_MAX, 3), 0);
	assert_int_equal(world_get(w, READER, 0, "most", SESSION_PUT_MAX, 3, WHEN), 0);
	assert_int_equal(put(w, PUTTER, "more", SESSION_PUT_MAX + 1, 3), -EINVAL);
	world_end(w);
}

static bool is_down(struct world *w, void *arg)
{
	return w->node[0].core->cluster->peers.nodes[READER].state == NODE_DOWN;
}

/* These two do not reach each other any more; the third one reaches both. The same one twice: all
 * reach each other. */
static void part(struct world *w, uint32_t a, uint32_t b)
{
	w->separated[0] = a;
	w->separated[1] = b;
	if (a != b)
		assert_true(world_until(w, is_down, NULL, WHEN));
}

static bool is_dead(struct world *w, void *arg)
{
	return w->node[0].core->cluster->peers.nodes[READER].member == MEMBER_DEAD;
}

/* The only node that has it does not answer: the put waits until it does, and is refused then. */
static void a_put_waits_for_a_holder_that_is_away(void **state)
{
	struct world *w = three();
	struct session_request r = world_request(SESSION_CREATE, "x");
	uint32_t seq, create;

	assert_int_equal(world_put(w, READER, 0, "x", 100000, 1), 0);
	part(w, 0, READER);
	seq = world_put_send(w, PUTTER, 0, "x", SIZE, 2);
	r.size = SIZE;
	create = world_send(w, 0, 0, &r);
	world_run(w, 100 * WORLD_MS);
	assert_null(world_reply_to(w, PUTTER, seq));
	assert_null(world_reply_to(w, 0, create));
	assert_true(membership_live(&w->node[0].core->cluster->peers.nodes[READER]));
	part(w, 0, 0);
	assert_int_equal(world_wait(w, PUTTER, seq, WHEN)->reply.status, -EEXIST);
	assert_int_equal(world_wait(w, 0, create, WHEN)->reply.status, -EEXIST);
	assert_int_equal(world_get(w, PUTTER, 0, "x", 100000, 1, WHEN), 0);
	world_end(w);
}

/* It never comes back: when it is dead as a member the id is free. */
static void a_put_goes_on_when_the_holder_is_dead(void **state)
{
	struct world *w = three();
	uint32_t seq;

	assert_int_equal(world_put(w, READER, 0, "x", 100000, 1), 0);
	part(w, 0, READER);
	seq = world_put_send(w, PUTTER, 0, "x", SIZE, 2);
	world_run(w, 100 * WORLD_MS);
	assert_null(world_reply_to(w, PUTTER, seq));
	w->cut[READER] = true;
	assert_true(world_until(w, is_dead, NULL, WHEN));
	assert_int_equal(world_wait(w, PUTTER, seq, WHEN)->reply.status, 0);
	assert_int_equal(world_get(w, 0, 0, "x", SIZE, 2, WHEN), 0);
	world_free(w);
}

/* The node that keeps the name cannot reach the holder, others can: it is no second writer's turn
 * however long that lasts. */
static void a_put_is_told_who_does_not_answer(void **state)
{
	struct world *w = three();
	const struct world_reply *a;
	uint32_t seq;

	assert_int_equal(world_put(w, READER, 0, "x", 100000, 1), 0);
	part(w, 0, READER);
	world_run(w, 40 * WORLD_SECOND); /* longer than a node that is dead is remembered */
	assert_int_equal(w->node[0].core->cluster->peers.nodes[READER].state, NODE_DOWN);
	assert_true(membership_live(&w->node[0].core->cluster->peers.nodes[READER]));
	seq = world_put_send(w, PUTTER, 0, "x", SIZE, 2);
	a = world_wait(w, PUTTER, seq, WHEN);
	assert_int_equal(a->reply.status, -EAGAIN);
	assert_non_null(strstr(a->reply.text, "node 2 holds it and does not answer"));
	part(w, 0, 0);
	world_run(w, 5 * WORLD_SECOND);
	assert_int_equal(world_get(w, 0, 0, "x", 100000, 1, WHEN), 0);
	world_end(w);
}

/* Its tasks may still read their copy: a delete returns when it has answered, or is dead. [G4.1] */
static void a_delete_waits_for_a_holder_that_is_away(void **state)
{
	struct world *w = three();
	struct session_request r = world_request(SESSION_DELETE, "x");
	uint32_t seq;

	for (uint32_t dead = 0; dead < 2; dead++) {
		assert_int_equal(world_put(w, READER, 0, "x", 100000, 1), 0);
		part(w, 0, READER);
		seq = world_send(w, PUTTER, 0, &r);
		world_run(w, 100 * WORLD_MS);
		assert_null(world_reply_to(w, PUTTER, seq));
		assert_true(membership_live(&w->node[0].core->cluster->peers.nodes[READER]));
		w->cut[READER] = dead;
		if (!dead)
			part(w, 0, 0);
		assert_int_equal(world_wait(w, PUTTER, seq, WHEN)->reply.status, 0);
		assert_int_equal(is_dead(w, NULL), dead);
		assert_int_equal(world_get(w, PUTTER, 0, "x", 0, 0, 0), -ENOENT);
	}
	world_free(w);
}

/* As long as others reach the holder it is a member: the delete is not certain in time, and goes on
 * when the client has been told so. */
static void a_delete_is_told_who_does_not_answer(void **state)
{
	struct world *w = three();
	struct session_request r = world_request(SESSION_DELETE, "x");
	const struct world_reply *a;

	assert_int_equal(world_put(w, READER, 0, "x", 100000, 1), 0);
	part(w, 0, READER);
	world_run(w, 5 * WORLD_SECOND);
	a = world_call(w, PUTTER, 0, &r, WHEN);
	assert_int_equal(a->reply.status, -ETIMEDOUT);
	assert_non_null(strstr(a->reply.text, "node 2 has a copy and does not answer"));
	assert_int_equal(slots_in(w, READER, OBJECT_SEALED), 2);
	part(w, 0, 0);
	world_run(w, 5 * WORLD_SECOND);
	assert_int_equal(slots_in(w, READER, OBJECT_SEALED), 1);
	assert_int_equal(w->node[0].core->directory->shard.removals.used, 0);
	world_end(w);
}

static void bytes_that_do_not_come_are_not_read(void **state)
{
	struct world *w = three();
	struct session_request r = world_request(SESSION_PUT, "x");

	r.size = 8;
	assert_int_equal(world_call(w, PUTTER, 0, &r, 0)->reply.status, -EINVAL);
	r.size = UINT64_MAX - sizeof(r) + 1;
	assert_int_equal(world_call(w, PUTTER, 0, &r, 0)->reply.status, -EINVAL);
	world_end(w);
}

/* What it writes goes into no memory of its own. */
static void a_staging_client_needs_no_memory(void **state)
{
	struct world *w = three();
	uint32_t session = world_open(w, PUTTER);
	struct world_reply *a;

	control_session_client(w->node[PUTTER].core, session,
			       &(struct control_client){.process = 7, .user = 8, .staged = true});
	w->node[PUTTER].staging_error = -ENOMEM;
	a = world_wait(w, PUTTER, world_put_send(w, PUTTER, session, "x", SIZE, 1), WHEN);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(a->reply.flags, 0);
	assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, WHEN), 0);
	world_end(w);
}

static void with_losses_there_is_one_of_each(void **state)
{
	struct world *w = three();
	char name[16];

	w->loss_permille = 300;
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(put(w, PUTTER, name, SIZE, i), 0);
		assert_int_equal(world_get(w, READER, 0, name, SIZE, i, WHEN), 0);
	}
	w->loss_permille = 0;
	world_end(w);
}

/* Then readers ask the node that puts, which may not have heard that it has been put. */
static void the_directory_may_have_no_room_for_it(void **state)
{
	struct session_request r = world_request(SESSION_GET, "x");
	struct world *w = three();
	char name[16];

	for (uint32_t i = 0; i < 3; i++)
		world_kill_control(w, i);
	w->config.inline_bytes = 64;
	for (uint32_t i = 0; i < 3; i++)
		world_start_control(w, i);
	world_run(w, 2 * WORLD_SECOND);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_open(w, i), 0);
	w->loss_permille = 300;
	r.timeout_ns = -1;
	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		r.id = world_id(name);
		world_send(w, READER, 0, &r);
		world_run(w, 10 * WORLD_MS);
		assert_int_equal(put(w, PUTTER, name, SIZE, i), 0);
		assert_int_equal(world_get(w, READER, 0, name, SIZE, i, WHEN), 0);
	}
	/* they are counted: none has a second copy */
	assert_true(control_counters(w->node[0].core)->values_refused >= 40);
	w->loss_permille = 0;
	world_end(w);
}

/* What the directory has been told of the put, and nobody has heard. */
static uint32_t unanswered(struct world *w)
{
	uint32_t seq = world_put_send(w, PUTTER, 0, "x", SIZE, 1);

	world_run(w, w->delay_ns / 2);
	w->cut[PUTTER] = true;
	world_run(w, 10 * WORLD_MS);
	assert_null(world_reply_to(w, PUTTER, seq));
	return seq;
}

static void an_answer_that_is_lost_comes_again(void **state)
{
	struct world *w = three();
	uint32_t seq = unanswered(w);

	assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, WHEN), 0);
	w->cut[PUTTER] = false;
	assert_int_equal(world_wait(w, PUTTER, seq, WHEN)->reply.status, 0);
	assert_int_equal(slots_in(w, PUTTER, OBJECT_CREATING), 0);
	world_end(w);
}

static void what_is_deleted_meanwhile_stays_deleted(void **state)
{
	struct world *w = three();
	uint32_t seq = unanswered(w);
	struct session_request r = world_request(SESSION_DELETE, "x");

	world_send(w, READER, 0, &r);
	world_run(w, 10 * WORLD_MS);
	w->cut[PUTTER] = false;
	assert_int_equal(world_wait(w, PUTTER, seq, WHEN)->reply.status, 0);
	assert_int_equal(world_wait(w, READER, r.seq, WHEN)->reply.status, 0);
	assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, 0), -ENOENT);
	world_end(w);
}

static void add_tombstone(struct world *w, uint64_t generation)
{
	const struct message_tombstone b = {
		.id = world_id("x"), .generation = generation, .node = MESSAGE_NODE_NONE};

	directory_take_tombstone(&w->node[0].core->directory->shard, &b);
}

/* The same, and what was answered first has been lost. It had been put: put again, as after a
 * deletion of before, it would come back. */
static void nor_is_it_put_again(void **state)
{
	struct world *w = three();
	const struct object_slot *s = w->node[PUTTER].table->slot;
	uint32_t seq = world_put_send(w, PUTTER, 0, "x", SIZE, 1);

	while (s->state != OBJECT_CREATING)
		s++;
	add_tombstone(w, s->generation);
	assert_int_equal(world_wait(w, PUTTER, seq, WHEN)->reply.status, -ESTALE);
	assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, 0), -ENOENT);
	world_end(w);
}

/* Somebody's clock is ahead. */
static void a_later_generation_is_for_a_create(void **state)
{
	struct world *w = three();

	add_tombstone(w, env_generation(w->node[READER].core) + 60 * WORLD_SECOND);
	assert_int_equal(put(w, PUTTER, "x", SIZE, 1), -ERESTART);
	assert_int_equal(slots_in(w, PUTTER, OBJECT_CREATING), 0);
	assert_int_equal(world_put(w, PUTTER, 0, "x", SIZE, 1), 0);
	assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, WHEN), 0);
	world_end(w);
}

/* It is not told that nobody has seen it. */
static void a_refusal_by_another_directory_is_not_one(void **state)
{
	struct world *w = three();
	uint32_t seq = unanswered(w);

	world_kill_control(w, 0);
	world_start_control(w, 0);
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(put(w, READER, "x", SIZE, 2), 0);
	w->cut[PUTTER] = false;
	assert_int_equal(world_wait(w, PUTTER, seq, WHEN)->reply.status, -ETIMEDOUT);
	assert_int_equal(world_get(w, PUTTER, 0, "x", SIZE, 2, WHEN), 0);
	world_end(w);
}

/* Those that are there and one that comes later. */
static void a_reduce_adds_them_up(void **state)
{
	const struct object_id sources[] = {world_id("s0"), world_id("s1"), world_id("s2")};
	const struct session_reduction how = {.op = REDUCE_SUM, .dtype = REDUCE_U32, .count = 3};
	struct world *w = three();
	const uint8_t *bytes;
	uint64_t size;

	assert_int_equal(put(w, 0, "s0", SIZE, 1), 0);
	assert_int_equal(put(w, PUTTER, "s1", SIZE, 2), 0);
	world_reduce_send(w, READER, 0, "sum", sources, how, 0, -1);
	world_run(w, WORLD_SECOND);
	assert_int_equal(put(w, PUTTER, "s2", SIZE, 3), 0);
	assert_int_equal(world_fetch(w, READER, 0, "sum", WHEN, &bytes, &size), 0);
	assert_int_equal(size, SIZE);
	assert_true(world_sums(bytes, SIZE, 7));
	world_unpin(w, READER, 0);
	world_end(w);
}

/* Nor does the reduce end by it: what is put is not its result. */
static void what_a_reduce_makes_is_refused(void **state)
{
	const struct object_id sources[] = {world_id("s0"), world_id("s1")};
	const struct session_reduction how = {.op = REDUCE_SUM, .dtype = REDUCE_U32, .count = 2};

	for (uint32_t flags = 0; flags <= SESSION_FLAG_ALLREDUCE; flags += SESSION_FLAG_ALLREDUCE) {
		struct world *w = three();
		const uint8_t *bytes;
		uint64_t size;

		assert_int_equal(put(w, 0, "s0", SIZE, 1), 0);
		world_reduce_send(w, READER, 0, "sum", sources, how, flags, -1);
		world_run(w, WORLD_SECOND);
		assert_int_equal(put(w, PUTTER, "sum", SIZE, 9), -EEXIST);
		world_run(w, WORLD_SECOND);
		assert_int_equal(put(w, PUTTER, "s1", SIZE, 2), 0);
		assert_int_equal(world_fetch(w, READER, 0, "sum", WHEN, &bytes, &size), 0);
		assert_true(world_sums(bytes, SIZE, 3));
		assert_int_equal(world_reduced(w, READER, 0, "sum", WHEN, NULL), 2);
		world_unpin(w, READER, 0);
		world_end(w);
	}
}

static void check_nothing_is_left(struct world *w)
{
	struct control_usage u;

	world_run(w, WORLD_SECOND);
	control_usage(w->node[PUTTER].core, &u);
	assert_int_equal(u.waits, 0);
	assert_int_equal(u.calls, 0);
	assert_int_equal(slots_in(w, PUTTER, OBJECT_CREATING), 0);
}

static void a_dead_client_leaves_nothing_half(void **state)
{
	struct world *w = three();
	uint32_t session = world_open(w, PUTTER);

	world_put_send(w, PUTTER, session, "x", SIZE, 1);
	control_session_close(w->node[PUTTER].core, session, w->now_ns);
	check_nothing_is_left(w);
	/* it may have been put all the same: then as a whole, else others may put it */
	assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, 0), 0);
	world_end(w);
}

static void a_killed_control_leaves_nothing_half(void **state)
{
	for (int old_clients = 0; old_clients < 2; old_clients++) {
		struct world *w = three();
		int status;

		unanswered(w);
		w->old_clients = old_clients;
		world_kill_control(w, PUTTER);
		w->cut[PUTTER] = false;
		world_start_control(w, PUTTER);
		assert_int_equal(world_open(w, PUTTER), 0);
		world_run(w, 2 * WORLD_SECOND);
		status = put(w, PUTTER, "x", SIZE, 1);
		assert_true(status == 0 || status == -EEXIST);
		assert_int_equal(world_get(w, PUTTER, 0, "x", SIZE, 1, WHEN), 0);
		assert_int_equal(world_get(w, READER, 0, "x", SIZE, 1, WHEN), 0);
		w->old_clients = false;
		check_nothing_is_left(w);
		world_end(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_has_it_after_two_ways),
		cmocka_unit_test(a_reader_on_the_same_node_as_well),
		cmocka_unit_test(who_comes_second_is_refused),
		cmocka_unit_test(a_put_waits_for_a_holder_that_is_away),
		cmocka_unit_test(a_put_goes_on_when_the_holder_is_dead),
		cmocka_unit_test(a_put_is_told_who_does_not_answer),
		cmocka_unit_test(a_delete_waits_for_a_holder_that_is_away),
		cmocka_unit_test(a_delete_is_told_who_does_not_answer),
		cmocka_unit_test(bytes_that_do_not_come_are_not_read),
		cmocka_unit_test(a_staging_client_needs_no_memory),
		cmocka_unit_test(with_losses_there_is_one_of_each),
		cmocka_unit_test(the_directory_may_have_no_room_for_it),
		cmocka_unit_test(an_answer_that_is_lost_comes_again),
		cmocka_unit_test(what_is_deleted_meanwhile_stays_deleted),
		cmocka_unit_test(nor_is_it_put_again),
		cmocka_unit_test(a_refusal_by_another_directory_is_not_one),
		cmocka_unit_test(a_reduce_adds_them_up),
		cmocka_unit_test(what_a_reduce_makes_is_refused),
		cmocka_unit_test(a_later_generation_is_for_a_create),
		cmocka_unit_test(a_dead_client_leaves_nothing_half),
		cmocka_unit_test(a_killed_control_leaves_nothing_half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
