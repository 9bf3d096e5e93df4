/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches: what a shard tells those who watch names, and what their clients hear of it. */
#include <errno.h>
#include "fixtures/control_shard.h"
#include "fixtures/control_world.h"
#include "core/session/sessions.h"

/* ---- one shard ------------------------------------------------------------------------------ */

enum { NUMBER = 5, WATCHES = 7 }; /* the node that watches, and its number of the watch */

static int put(struct fixture *f, uint32_t node, uint8_t id, const char *name, uint32_t state)
{
	struct message_have have = {.id = id_of(id),
				    .generation = 7,
				    .size = BIG,
				    .state = state,
				    .upstream = MESSAGE_NODE_NONE};

	strcpy(have.name, name);
	return say_have(f, node, have);
}

static const struct message *watch_as(struct fixture *f, uint32_t node, uint64_t number,
				      uint32_t step, uint64_t next, uint64_t cursor)
{
	struct message m = {.kind = MESSAGE_WATCH};

	m.watch = (struct message_watch){step, number, next, cursor, "a"};
	return send(f, node, &m);
}

static const struct message *watch(struct fixture *f, uint32_t step, uint64_t next)
{
	return watch_as(f, WATCHES, NUMBER, step, next, 0);
}

/* What the request that waits was answered with just now. */
static const struct message_objects *told(const struct fixture *f, uint64_t request)
{
	for (uint32_t i = 0; i < f->out_count; i++)
		if (f->out[i].node == WATCHES && f->out[i].m.request == request)
			return &f->out[i].m.objects;
	return NULL;
}

static void expect(const struct message_objects *o, uint32_t at, uint8_t id, uint32_t event)
{
	struct object_id own = id_of(id);

	assert_non_null(o);
	assert_int_equal(o->watch, MESSAGE_WATCH_EVENTS);
	assert_true(at < o->count);
	assert_memory_equal(&o->objects[at].id, &own, sizeof(own));
	assert_int_equal(o->objects[at].flags, event * SESSION_OBJECT_EVENT);
	assert_int_equal(o->objects[at].generation, 7);
}

static void delete (struct fixture *f, uint32_t node, uint8_t id)
{
	struct message m = {.kind = MESSAGE_DELETE};

	m.object.id = id_of(id);
	send(f, node, &m);
}

static void what_exists_comes_first(void **state)
{
	struct fixture *f = *state;
	const struct message *m;

	put(f, 1, 1, "a1", MESSAGE_COPY_COMPLETE);
	put(f, 1, 2, "b2", MESSAGE_COPY_COMPLETE);
	put(f, 2, 3, "a3", MESSAGE_COPY_CREATING);
	m = watch(f, MESSAGE_WATCH_BEGIN, 0);
	assert_non_null(m);
	assert_int_equal(m->objects.count, 2);
	assert_int_equal(m->objects.cursor, 0);
	expect(&m->objects, 0, 1, SESSION_EVENT_COMPLETE);
	expect(&m->objects, 1, 3, SESSION_EVENT_APPEARED);
	assert_string_equal(m->objects.objects[1].name, "a3");
	assert_null(watch(f, MESSAGE_WATCH_NEXT, m->objects.next)); /* no news */
	m = watch(f, MESSAGE_WATCH_JOIN, 0);
	assert_int_equal(m->objects.count, 0);
}

static void each_change_is_told_once_and_in_order(void **state)
{
	struct fixture *f = *state;
	uint64_t next = watch(f, MESSAGE_WATCH_BEGIN, 0)->objects.next, request;
	const struct message *m;

	assert_null(watch(f, MESSAGE_WATCH_NEXT, next));
	request = f->request;
	put(f, 1, 2, "b2", MESSAGE_COPY_COMPLETE); /* of another name */
	assert_null(told(f, request));
	put(f, 1, 1, "a1", MESSAGE_COPY_CREATING);
	expect(told(f, request), 0, 1, SESSION_EVENT_APPEARED);
	put(f, 1, 1, "a1", MESSAGE_COPY_CREATING); /* said again */
	put(f, 1, 1, "a1", MESSAGE_COPY_COMPLETE);
	put(f, 2, 1, "a1", MESSAGE_COPY_COMPLETE); /* a second copy is none */
	delete (f, 3, 1);
	m = watch(f, MESSAGE_WATCH_NEXT,
		  next); /* the answer got lost: the same, and what follows */
	assert_int_equal(m->objects.count, 3);
	expect(&m->objects, 0, 1, SESSION_EVENT_APPEARED);
	expect(&m->objects, 1, 1, SESSION_EVENT_COMPLETE);
	expect(&m->objects, 2, 1, SESSION_EVENT_GONE);
	next = m->objects.next;
	assert_null(watch(f, MESSAGE_WATCH_NEXT, next));
	request = f->request;
	assert_int_equal(watch(f, MESSAGE_WATCH_STOP, 0)->objects.count, 0);
	put(f, 1, 4, "a4", MESSAGE_COPY_COMPLETE);
	assert_null(told(f, request));
	assert_int_equal(f->d.watchers.pool.used, 0);
}

static void what_is_lost_is_gone_and_comes_back(void **state)
{
	struct fixture *f = *state;
	const struct message *m;
	uint64_t next;

	put(f, 1, 1, "a1", MESSAGE_COPY_COMPLETE);
	put(f, 2, 1, "a1", MESSAGE_COPY_COMPLETE);
	put(f, 2, 2, "a2", MESSAGE_COPY_CREATING);
	put(f, 3, 3, "a3", MESSAGE_COPY_COMPLETE);
	put(f, 4, 3, "a3", MESSAGE_COPY_PARTIAL);
	next = watch(f, MESSAGE_WATCH_JOIN, 0)->objects.next;
	directory_node_down(&f->d, 3);
	directory_node_forget(&f->d, 3, true); /* not whole any more: no event */
	assert_null(watch(f, MESSAGE_WATCH_NEXT, next));
	directory_node_down(&f->d, 2);
	directory_node_dead(&f->d, 2, true);
	m = watch(f, MESSAGE_WATCH_NEXT, next);
	assert_int_equal(m->objects.count, 1); /* there is another copy of the first */
	expect(&m->objects, 0, 2, SESSION_EVENT_GONE);
	next = m->objects.next;
	directory_node_down(&f->d, 1);
	directory_node_dead(&f->d, 1, true);
	directory_node_up(&f->d, 2, 102);
	m = watch(f, MESSAGE_WATCH_NEXT, next);
	assert_int_equal(m->objects.count, 3);
	expect(&m->objects, 0, 1, SESSION_EVENT_GONE);
	next = m->objects.next;
	directory_node_forget(&f->d, 1, true); /* its copy is one less: no event */
	assert_null(watch(f, MESSAGE_WATCH_NEXT, next));
	directory_node_dead(&f->d, WATCHES, true);
	assert_int_equal(f->d.watchers.pool.used, 0);
}

static void who_is_behind_hears_that_it_missed_some(void **state)
{
	struct fixture *f = *state;
	uint64_t next = watch(f, MESSAGE_WATCH_JOIN, 0)->objects.next;
	const struct message *m;
	uint64_t request;

	assert_null(watch(f, MESSAGE_WATCH_NEXT, next));
	request = f->request;
	put(f, 1, 3, "b3", MESSAGE_COPY_COMPLETE);
	for (uint64_t i = 0; i < WATCHERS_EVENTS; i++) { /* others are no reason */
		directory_node_dead(&f->d, 1, true);
		directory_node_dead(&f->d, 1, false);
	}
	put(f, 1, 1, "a1", MESSAGE_COPY_COMPLETE);
	expect(told(f, request), 0, 1, SESSION_EVENT_COMPLETE);
	m = watch(f, MESSAGE_WATCH_NEXT, next); /* nor when that answer got lost */
	expect(&m->objects, 0, 1, SESSION_EVENT_COMPLETE);
	next = m->objects.next;
	put(f, 1, 2, "a2", MESSAGE_COPY_COMPLETE);
	for (uint64_t i = 0; i < WATCHERS_EVENTS / 2; i++) {
		directory_node_dead(&f->d, 1, true);
		directory_node_dead(&f->d, 1, false);
	}
	m = watch(f, MESSAGE_WATCH_NEXT, next);
	assert_int_equal(m->objects.watch, MESSAGE_WATCH_MISSED);
	assert_int_equal(m->objects.count, 0);
	next = m->objects.next;
	assert_null(watch(f, MESSAGE_WATCH_NEXT, next));
	m = watch(f, MESSAGE_WATCH_NEXT, next + 1); /* of an earlier life of the shard */
	assert_int_equal(m->objects.watch, MESSAGE_WATCH_MISSED);
	m = watch_as(f, WATCHES, NUMBER + 1, MESSAGE_WATCH_NEXT, 1, 0);
	assert_int_equal(m->objects.watch, MESSAGE_WATCH_MISSED); /* it does not know that one */
}

static void the_table_is_bounded(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < WATCHERS_MAX; i++)
		assert_int_equal(
			watch_as(f, 1 + i % 40, 1 + i, MESSAGE_WATCH_JOIN, 0, 0)->objects.watch,
			MESSAGE_WATCH_EVENTS);
	assert_int_equal(watch_as(f, 41, 1, MESSAGE_WATCH_JOIN, 0, 0)->objects.watch,
			 MESSAGE_WATCH_FULL);
	assert_int_equal(watch_as(f, 1, 1, MESSAGE_WATCH_STOP, 0, 0)->objects.watch,
			 MESSAGE_WATCH_EVENTS);
	assert_int_equal(watch_as(f, 41, 1, MESSAGE_WATCH_JOIN, 0, 0)->objects.watch,
			 MESSAGE_WATCH_EVENTS);
}

/* ---- whole nodes ---------------------------------------------------------------------------- */

#define STORE (UINT64_C(8) << 20)

static uint32_t begin(struct world *w, uint32_t node, uint32_t session, const char *prefix)
{
	struct session_request r = world_request(SESSION_WATCH, prefix);

	return world_send(w, node, session, &r);
}

static uint32_t event(struct world *w, uint32_t node, uint32_t seq, char name[OBJECT_NAME_MAX + 1])
{
	struct world_reply *a = world_wait(w, node, seq, 60 * WORLD_SECOND);

	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	assert_int_equal(a->reply.flags, SESSION_FLAG_MORE);
	assert_int_equal(a->tail_bytes, sizeof(a->object));
	strcpy(name, a->object.name);
	return a->object.flags / SESSION_OBJECT_EVENT;
}

static void expect_event(struct world *w, uint32_t node, uint32_t seq, const char *name,
			 uint32_t what)
{
	char of[OBJECT_NAME_MAX + 1];

	assert_int_equal(event(w, node, seq, of), what);
	assert_string_equal(of, name);
}

static void remove_object(struct world *w, uint32_t node, uint32_t session, const char *name)
{
	struct session_request r = world_request(SESSION_DELETE, name);

	assert_int_equal(world_call(w, node, session, &r, 30 * WORLD_SECOND)->reply.status, 0);
}

static void cancel(struct world *w, uint32_t node, uint32_t session, uint32_t seq)
{
	struct session_request r = world_request(SESSION_CANCEL, "");

	r.generation = seq;
	assert_int_equal(world_call(w, node, session, &r, WORLD_SECOND)->reply.status, 0);
}

/* [G5.2] */
static void puts_of_other_nodes_are_told(void **state)
{
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t here, there, seq;

	world_keep_all(w);
	here = world_open(w, 0);
	there = world_open(w, 2);
	assert_int_equal(world_put_whole(w, 2, there, "a first", 100, 1), 0);
	seq = begin(w, 0, here, "a ");
	expect_event(w, 0, seq, "a first", SESSION_EVENT_COMPLETE);
	world_run(w, 10 * WORLD_SECOND); /* requests are repeated meanwhile */
	assert_null(world_reply_to(w, 0, seq));
	for (uint32_t i = 0; i < 20; i++) { /* of all shards */
		char name[32];

		snprintf(name, sizeof(name), "a %u", i);
		assert_int_equal(world_put(w, 2, there, name, 100000, i), 0);
		expect_event(w, 0, seq, name, SESSION_EVENT_APPEARED);
		expect_event(w, 0, seq, name, SESSION_EVENT_COMPLETE);
		assert_int_equal(world_put_whole(w, 2, there, "b", 100, 1), 0);
		remove_object(w, 2, there, name);
		expect_event(w, 0, seq, name, SESSION_EVENT_GONE);
		remove_object(w, 2, there, "b");
	}
	cancel(w, 0, here, seq);
	remove_object(w, 2, there, "a first");
	world_run(w, 10 * WORLD_SECOND);
	assert_null(world_reply_to(w, 0, seq));
	world_end(w);
}

/* The events wait at the owners, and none is told twice. */
static void a_client_that_does_not_read_for_a_while(void **state)
{
	struct world *w = world_new(2, 1, STORE, false);
	uint32_t here, there, seq, next;
	char name[OBJECT_NAME_MAX + 1];
	bool seen[110] = {false};

	world_keep_all(w);
	here = world_open(w, 0);
	there = world_open(w, 1);
	seq = begin(w, 0, here, "");
	w->node[0].slow = 1;
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(world_put_whole(w, 1, there, name, 100, i), 0);
	}
	world_run(w, 10 * WORLD_SECOND);
	assert_true(w->node[0].replies_count < 60);
	w->node[0].slow = 0;
	control_session_writable(w->node[0].core, here, w->now_ns);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(event(w, 0, seq, name), SESSION_EVENT_COMPLETE);
	world_run(w, 10 * WORLD_SECOND);
	assert_null(world_reply_to(w, 0, seq));
	next = begin(w, 0, here, ""); /* what exists comes in pages, while there is more */
	for (uint32_t i = 100; i < 110; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(world_put_whole(w, 1, there, name, 100, i), 0);
	}
	for (uint32_t i = 0; i < 110; i++) {
		assert_int_equal(event(w, 0, next, name), SESSION_EVENT_COMPLETE);
		assert_false(seen[atoi(name)]);
		seen[atoi(name)] = true;
	}
	for (uint32_t i = 100; i < 110; i++)
		assert_int_equal(event(w, 0, seq, name), SESSION_EVENT_COMPLETE);
	world_run(w, 10 * WORLD_SECOND);
	assert_null(world_reply_to(w, 0, seq));
	assert_null(world_reply_to(w, 0, next));
	control_session_close(w->node[0].core, here, w->now_ns);
	world_run(w, 10 * WORLD_SECOND);
	world_free(w);
}

static void another_owner_means_missed(void **state)
{
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t here, there, seq, what, after = 0;
	char name[OBJECT_NAME_MAX + 1];

	world_keep_all(w);
	here = world_open(w, 0);
	there = world_open(w, 2);
	seq = begin(w, 0, here, "");
	assert_int_equal(world_put(w, 2, there, "x", 100000, 1), 0);
	expect_event(w, 0, seq, "x", SESSION_EVENT_APPEARED);
	expect_event(w, 0, seq, "x", SESSION_EVENT_COMPLETE);
	world_kill_node(w, 1);
	do
		what = event(w, 0, seq, name);
	while (what != SESSION_EVENT_MISSED);
	world_run(w, 20 * WORLD_SECOND);
	while (world_reply_to(w, 0, seq)) /* x, if it was the dead node's */
		assert_true(++after < 3);
	for (uint32_t i = 0; i < 10; i++) { /* in every shard that is left */
		snprintf(name, sizeof(name), "y%u", i);
		assert_int_equal(world_put_whole(w, 2, there, name, 100, 1), 0);
		expect_event(w, 0, seq, name, SESSION_EVENT_COMPLETE);
	}
	remove_object(w, 0, here, "x");
	expect_event(w, 0, seq, "x", SESSION_EVENT_GONE);
	world_free(w);
}

static void watches_of_a_node_are_bounded(void **state)
{
	struct world *w = world_new(2, 1, STORE, false);
	uint32_t session = world_open(w, 0), seq = 0, count = 0, next;
	const struct world_reply *a;

	world_run(w, WORLD_SECOND); /* until they have met */
	while (!(a = world_reply_to(w, 0, next = begin(w, 0, session, "")))) {
		assert_true(++count < SESSION_WATCHES); /* there are too few calls for all */
		seq = next;
	}
	assert_int_equal(a->reply.status, -ENOSPC);
	assert_int_equal(count, w->config.calls_max / 4 / 2);
	cancel(w, 0, session, seq);
	seq = begin(w, 0, session, "");
	world_run(w, WORLD_SECOND);
	assert_null(world_reply_to(w, 0, seq));
	control_session_close(w->node[0].core, session, w->now_ns);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_exists_comes_first),
		TEST(each_change_is_told_once_and_in_order),
		TEST(what_is_lost_is_gone_and_comes_back),
		TEST(who_is_behind_hears_that_it_missed_some),
		TEST(the_table_is_bounded),
		cmocka_unit_test(puts_of_other_nodes_are_told),
		cmocka_unit_test(a_client_that_does_not_read_for_a_while),
		cmocka_unit_test(another_owner_means_missed),
		cmocka_unit_test(watches_of_a_node_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
