/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients held and did when control died: what the next one lets them go on with, and whom. */
#include "../../table.h"
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { PIN = 5, US = 700, OTHERS = 701 };

#define STORE (UINT64_C(4) << 20)
#define SIZE  UINT64_C(300000)
#define WHEN  (20 * WORLD_SECOND)

static uint32_t come_as(struct world *w, struct control_client who, uint64_t pin)
{
	uint32_t session = world_open(w, 0);

	control_session_client(w->node[0].core, session, &who);
	w->node[0].pins[session][PIN] = pin;
	return session;
}

/* A session of a process with the pins that it had. */
static uint32_t come_back(struct world *w, uint32_t process, uint64_t pin)
{
	return come_as(w, (struct control_client){.process = process, .user = 1000, .birth = 77},
		       pin);
}

static int ask(struct world *w, uint32_t session, struct session_request r)
{
	struct world_reply *a = world_call(w, 0, session, &r, WHEN);

	assert_non_null(a);
	if (a->reply.status)
		assert_true(strlen(a->reply.text) > 0);
	return a->reply.status;
}

static struct session_request about(uint16_t op, const struct session_reply *object)
{
	struct session_request r = world_request(op, NULL);

	r.slot = object->slot;
	r.generation = object->generation;
	r.pin = PIN;
	return r;
}

static struct session_request create_request(const char *name, uint32_t flags)
{
	struct session_request r = world_request(SESSION_CREATE, name);

	r.size = SIZE;
	r.pin = PIN;
	r.flags = flags;
	return r;
}

struct left {
	struct world *w;
	struct session_reply object;
	uint64_t pin;
};

/* Half an object, and its control killed. */
static struct left leave_half_of(const char *name, uint32_t nodes)
{
	struct left l = {.w = world_new(nodes, 1, STORE, true)};
	struct session_request r = create_request(name, 0);
	uint32_t session = come_back(l.w, US, 0);

	l.object = world_call(l.w, 0, session, &r, WHEN)->reply;
	assert_int_equal(l.object.status, 0);
	l.pin = l.w->node[0].pins[session][PIN];
	world_fill(l.w->node[0].store + l.object.offset, SIZE, 3);
	r = about(SESSION_PUBLISH, &l.object);
	r.watermark = SIZE / 2;
	assert_int_equal(ask(l.w, session, r), 0);
	world_run(l.w, WORLD_SECOND);
	l.w->old_clients = true;
	world_kill_control(l.w, 0);
	world_start_control(l.w, 0);
	world_run(l.w, WORLD_SECOND);
	return l;
}

static struct left leave_half(uint32_t nodes)
{
	return leave_half_of("half", nodes);
}

static uint32_t objects(struct world *w)
{
	struct control_usage u;

	control_usage(w->node[0].core, &u);
	return u.objects;
}

/* Its own node keeps the name, or another one, which hears meanwhile what is there. */
static void a_creation_goes_on_of(const char *name, uint32_t owner)
{
	struct left l = leave_half_of(name, 2);
	struct object_id id = world_id(name);
	uint32_t reader = world_open(l.w, 1);
	uint32_t session = come_back(l.w, US, l.pin);
	struct session_request r = about(SESSION_PUBLISH, &l.object);

	assert_int_equal(ownership_shard(l.w->node[0].core, &id)->number, owner);
	r.watermark = SIZE - 1;
	assert_int_equal(ask(l.w, session, r), -EINVAL); /* not yet */
	assert_int_equal(ask(l.w, session, about(SESSION_RESUME, &l.object)), 0);
	assert_int_equal(ask(l.w, session, about(SESSION_RESUME, &l.object)), -ESTALE);
	r.watermark = SIZE / 2 - 1; /* what was published stays published */
	assert_int_equal(ask(l.w, session, r), -EINVAL);
	r.watermark = SIZE - 1;
	assert_int_equal(ask(l.w, session, r), 0);
	l.w->old_clients = false;
	world_run(l.w, WORLD_SECOND);
	assert_int_equal(ask(l.w, session, about(SESSION_SEAL, &l.object)), 0);
	assert_int_equal(world_get(l.w, 1, reader, name, SIZE, 3, WHEN), 0);
	world_free(l.w);
}

static void a_creation_goes_on(void **state)
{
	a_creation_goes_on_of("half", 0);
	a_creation_goes_on_of("another half", 1);
}

/* The process's number has become another's, or it has become another user's. */
static void nor_does_a_namesake(void **state)
{
	struct left l = leave_half(1);
	struct session_request r = about(SESSION_RESUME, &l.object);
	struct control_client namesakes[] = {{US, 1000, 78, false, false},
					     {US, 1001, 77, false, false},
					     {US, 1000, 0, false, false}};

	for (unsigned i = 0; i < 3; i++) {
		uint32_t session = come_as(l.w, namesakes[i], l.pin);

		assert_int_equal(ask(l.w, session, r), -ESTALE);
		control_session_close(l.w->node[0].core, session, l.w->now_ns);
	}
	assert_int_equal(ask(l.w, come_back(l.w, US, l.pin), r), 0);
	world_free(l.w);
}

/* It names a process that is not its own, an object that is none, or nothing. */
static void nobody_else_goes_on_with_it(void **state)
{
	struct left l = leave_half(1);
	struct session_request r = about(SESSION_RESUME, &l.object);
	uint32_t other = come_back(l.w, OTHERS, l.pin), unknown = come_back(l.w, 0, l.pin);
	uint32_t session = come_back(l.w, US, l.pin ^ UINT64_C(1) << 32);

	assert_int_equal(ask(l.w, other, r), -ESTALE);
	assert_int_equal(ask(l.w, unknown, r), -ESTALE);
	assert_int_equal(ask(l.w, session, r), -ESTALE); /* another generation */
	for (uint64_t word = 0; word < 3; word++) {
		static const uint64_t words[] = {0, UINT64_MAX, UINT64_C(1) << 32 | UINT32_MAX};

		l.w->node[0].pins[session][PIN] = words[word];
		assert_int_equal(ask(l.w, session, r), -ESTALE);
	}
	l.w->node[0].pins[session][PIN] = l.pin;
	r.pin = SESSION_PIN_NONE;
	assert_int_equal(ask(l.w, session, r), -ESTALE);
	r.pin = PIN + 1;
	assert_int_equal(ask(l.w, session, r), -ESTALE);
	r = create_request("half", 0);
	assert_int_equal(ask(l.w, session, r), -EEXIST);
	r.flags = SESSION_FLAG_RETRY; /* it has bytes already: that was answered */
	assert_int_equal(ask(l.w, session, r), -EEXIST);
	r = about(SESSION_SEAL, &l.object);
	r.flags = SESSION_FLAG_RETRY;
	assert_int_equal(ask(l.w, session, r), -EINVAL);
	assert_int_equal(ask(l.w, session, about(SESSION_RESUME, &l.object)), 0);
	world_free(l.w);
}

static void an_object_without_its_creator_goes(void **state)
{
	struct left l = leave_half(1);
	uint32_t session = come_back(l.w, OTHERS, 0);
	struct session_request r = world_request(SESSION_GET, "half");

	r.pin = PIN;
	assert_int_equal(ask(l.w, session, r), 0);
	assert_int_equal(objects(l.w), 1);
	r = about(SESSION_WAIT, &l.object);
	r.watermark = SIZE;
	uint32_t seq = world_send(l.w, 0, session, &r);
	world_run(l.w, WORLD_SECOND);
	assert_null(world_reply_to(l.w, 0, seq)); /* its creator may come back */
	l.w->old_clients = false;
	struct world_reply *a = world_wait(l.w, 0, seq, WORLD_SECOND / 4);
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ESTALE);
	l.w->node[0].pins[session][PIN] = 0;
	world_run(l.w, WORLD_SECOND / 4);
	assert_int_equal(objects(l.w), 0);
	assert_int_equal(world_put(l.w, 0, session, "half", SIZE, 4), 0);
	world_free(l.w);
}

/* Control dies between a CREATE and its answer, at any step of it. */
static void an_unanswered_create_is_made_once(void **state)
{
	for (uint64_t after_ns = 0; after_ns < 400000; after_ns += 20000) {
		struct world *w = world_new(2, 1, STORE, false);
		struct session_request r = create_request("new", 0);
		uint32_t session;
		struct world_reply *a;

		world_run(w, WORLD_SECOND);
		session = come_back(w, US, 0);
		world_send(w, 0, session, &r);
		world_run(w, after_ns);
		uint64_t pin = w->node[0].pins[session][PIN];
		w->old_clients = true;
		world_kill_control(w, 0);
		world_start_control(w, 0);
		world_run(w, WORLD_SECOND);
		session = come_back(w, US, pin);
		ask(w, session, about(SESSION_RESUME, &(struct session_reply){0}));
		r.flags = SESSION_FLAG_RETRY;
		a = world_call(w, 0, session, &r, WHEN);
		assert_int_equal(a->reply.status, 0);
		assert_int_equal(objects(w), 1);
		world_fill(w->node[0].store + a->reply.offset, SIZE, 5);
		r = about(SESSION_SEAL, &a->reply);
		assert_int_equal(ask(w, session, r), 0);
		r.flags = SESSION_FLAG_RETRY;
		assert_int_equal(ask(w, session, r), 0);
		w->old_clients = false;
		world_run(w, WORLD_SECOND);
		assert_int_equal(world_get(w, 1, world_open(w, 1), "new", SIZE, 5, WHEN), 0);
		world_free(w);
	}
}

/* What was arriving goes on from where it was, under the same generation, for those who read it. */
static void what_was_arriving_goes_on(void **state)
{
	for (uint64_t after_ns = 200000; after_ns < 3000000; after_ns += 200000) {
		struct world *w = world_new(2, 1, STORE, false);
		struct session_request r = world_request(SESSION_GET, "x");
		uint32_t giver = world_open(w, 1), session = world_open(w, 0);
		struct world_reply *a;
		uint64_t pin;

		assert_int_equal(world_put(w, 1, giver, "x", SIZE, 6), 0);
		world_run(w, WORLD_SECOND);
		r.pin = PIN;
		a = world_call(w, 0, session, &r, WHEN);
		assert_int_equal(a->reply.status, 0);
		world_run(w, after_ns);
		pin = w->node[0].pins[session][PIN];
		w->old_clients = true;
		world_kill_control(w, 0);
		world_start_control(w, 0);
		session = come_back(w, US, pin);
		w->old_clients = false;
		r = about(SESSION_WAIT, &a->reply);
		r.watermark = SIZE;
		assert_int_equal(ask(w, session, r), 0);
		assert_true(world_holds(w->node[0].store + a->reply.offset, SIZE, 6));
		assert_int_equal(objects(w), 1);
		world_free(w);
	}
}

/* Without clients of before nothing unfinished stays. */
static void what_nobody_waits_for_goes(void **state)
{
	struct left l = leave_half(1);

	l.w->old_clients = false;
	world_kill_control(l.w, 0);
	world_start_control(l.w, 0);
	assert_int_equal(objects(l.w), 0);
	world_free(l.w);
}

/* What a slot may say that no control has written there. */
static void spoil(struct world *w, uint32_t slot, int how)
{
	struct object_table *t = w->node[0].table;
	struct object_slot *s = &t->slot[slot];

	switch (how) {
	case 0:
		s->watermark = SIZE + 1;
		break;
	case 1:
		s->sequence |= 1;
		break;
	case 2:
		s->chunk_bytes = 0;
		break;
	case 3:
		s->chunk_bytes = 1409;
		break;
	case 4:
		s->generation = 0;
		break;
	case 5:
		s->generation = UINT64_MAX;
		break;
	case 6:
		s->size = STORE;
		break;
	case 7:
		s->offset = UINT64_MAX - 4095;
		break;
	case 8:
		s->meta_bytes = 7; /* it has none */
		break;
	default:
		table_private(t)->note[slot].text += (uint32_t)how << 8;
	}
}

/* A table that an earlier control left behind is not believed. */
static void a_table_that_does_not_hold(void **state)
{
	static const uint16_t states[] = {OBJECT_CREATING, OBJECT_FETCHING, OBJECT_SEALED};

	for (int how = 0; how < 3 * 10; how++) {
		struct left l = leave_half(2);
		struct object_slot *s = &l.w->node[0].table->slot[l.object.slot];

		world_kill_control(l.w, 0);
		s->state = states[how % 3];
		if (s->state == OBJECT_SEALED)
			s->watermark = SIZE;
		spoil(l.w, l.object.slot, how / 3);
		world_start_control(l.w, 0);
		uint32_t session = come_back(l.w, US, 0), reader = world_open(l.w, 1);
		world_run(l.w, WORLD_SECOND);
		l.w->old_clients = false;
		world_run(l.w, WORLD_SECOND);
		assert_int_equal(objects(l.w), 0);
		assert_int_equal(world_put(l.w, 0, session, "half", SIZE, 4), 0);
		assert_int_equal(world_get(l.w, 1, reader, "half", SIZE, 4, WHEN), 0);
		world_free(l.w);
	}
}

/* A slot that says it is complete, when nothing says that all of it has come; and one that nobody
 * was creating. */
static void a_state_that_cannot_be(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct left l = leave_half(1);
		struct object_slot *s = &l.w->node[0].table->slot[l.object.slot];

		world_kill_control(l.w, 0);
		if (how == 0)
			s->state = OBJECT_SEALED; /* half of it */
		else
			table_private(l.w->node[0].table)->note[l.object.slot].process = 0;
		l.w->old_clients = false;
		world_start_control(l.w, 0);
		world_run(l.w, WORLD_SECOND);
		assert_int_equal(objects(l.w), 0);
		world_free(l.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_creation_goes_on),
		cmocka_unit_test(nobody_else_goes_on_with_it),
		cmocka_unit_test(nor_does_a_namesake),
		cmocka_unit_test(an_object_without_its_creator_goes),
		cmocka_unit_test(an_unanswered_create_is_made_once),
		cmocka_unit_test(what_was_arriving_goes_on),
		cmocka_unit_test(what_nobody_waits_for_goes),
		cmocka_unit_test(a_table_that_does_not_hold),
		cmocka_unit_test(a_state_that_cannot_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
