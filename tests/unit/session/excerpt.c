/* SPDX-License-Identifier: BSD-3-Clause */
/* GET_RANGES: ranges of an object, without all of it. */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"

#define STORE (UINT64_C(8) << 20)

enum { SIZE = 3000000, PIN = 5 };

static uint32_t ranges_send(struct world *w, uint32_t node, uint32_t session, const char *name,
			    const struct object_range *range, uint32_t count, uint64_t generation,
			    int64_t timeout_ns)
{
	struct world_node *n = &w->node[node];
	struct {
		struct session_request r;
		struct object_range range[SESSION_RANGES_MAX];
	} packet = {world_request(SESSION_GET_RANGES, name), {{0, 0}}};

	packet.r.seq = ++n->seq;
	packet.r.size = count * sizeof(*range);
	packet.r.timeout_ns = timeout_ns;
	packet.r.pin = PIN;
	packet.r.generation = generation;
	memcpy(packet.range, range, packet.r.size);
	control_session_request(n->core, session, &packet, sizeof(packet.r) + packet.r.size,
				w->now_ns);
	return packet.r.seq;
}

/* Whether the place of the answer has the bytes of the ranges. */
static void holds(struct world *w, uint32_t node, const struct session_reply *a,
		  const struct object_range *range, uint32_t count, uint64_t size, uint64_t seed)
{
	struct object_ranges all = {.chunk_bytes = a->chunk_bytes};
	uint8_t *whole = malloc(size);

	world_fill(whole, size, seed);
	assert_int_equal(a->status, 0);
	assert_int_equal(a->watermark, size);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = a->flags & SESSION_FLAG_WHOLE ? range[i].offset
							    : object_ranges_add(&all, &range[i]);

		if (range[i].bytes > 0)
			assert_true(at + range[i].bytes <= a->size);
		assert_memory_equal(w->node[node].store + a->offset + at, whole + range[i].offset,
				    range[i].bytes);
	}
	if (!(a->flags & SESSION_FLAG_WHOLE))
		assert_int_equal(a->size, object_ranges_bytes(&all, size));
	free(whole);
}

static struct session_reply ranges(struct world *w, uint32_t session, const char *name,
				   const struct object_range *range, uint32_t count,
				   int64_t timeout_ns)
{
	struct world_reply *a =
		world_wait(w, 1, ranges_send(w, 1, session, name, range, count, 0, timeout_ns),
			   60 * WORLD_SECOND);

	assert_non_null(a);
	assert_int_equal(a->reply.status != 0, a->reply.text[0] != '\0');
	return a->reply;
}

static struct control_usage usage(struct world *w, uint32_t node)
{
	struct control_usage u;

	control_usage(w->node[node].core, &u);
	return u;
}

static uint64_t state_of_slot(struct world *w, uint32_t node, uint32_t slot)
{
	return w->node[node].table->slot[slot].state;
}

/* When the pin goes nothing is left, at no node and in no directory. */
static void nothing_is_left(struct world *w, uint32_t session)
{
	struct control_usage u;

	w->node[1].pins[session][PIN] = 0;
	world_run(w, 10 * WORLD_SECOND);
	u = usage(w, 1);
	assert_int_equal(u.objects, 0);
	assert_int_equal(u.zombies, 0);
	assert_int_equal(u.participants, 0);
	assert_int_equal(u.parts, 0);
	assert_int_equal(u.waits, 0);
	assert_int_equal(u.edges, 0);
}

static void only_what_the_ranges_touch(void **state)
{
	const struct object_range range[] = {{0, 10},	    {5, 3},	     {1400, 20},
					     {100000, 0},   {1000000, 1000}, {1000500, 100000},
					     {SIZE - 1, 1}, {SIZE, 0}};
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 1), writer = world_open(w, 0);
	struct session_reply a;

	assert_int_equal(world_put(w, 0, writer, "x", SIZE, 7), 0);
	a = ranges(w, session, "x", range, 8, -1);
	holds(w, 1, &a, range, 8, SIZE, 7);
	assert_true(a.size < 110000);
	assert_int_equal(state_of_slot(w, 1, a.slot), OBJECT_ZOMBIE);
	nothing_is_left(w, session);
	assert_int_equal(world_get(w, 1, session, "x", SIZE, 7, WORLD_SECOND), 0);
	a = ranges(w, session, "x", range, 8, 0); /* it is here now */
	assert_true(a.flags & SESSION_FLAG_WHOLE);
	holds(w, 1, &a, range, 8, SIZE, 7);
	world_free(w);
}

static void the_store_is_full(void **state)
{
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 1), writer = world_open(w, 0), seq;
	struct session_request r = world_request(SESSION_DELETE, "own");
	const struct object_range much = {0, 2000000};
	struct object_range range;
	struct session_reply a;
	struct world_reply *late;

	assert_int_equal(world_put(w, 0, writer, "x", 2 * SIZE, 7), 0);
	assert_int_equal(world_put(w, 1, session, "own", 6500000, 8), 0);
	assert_int_equal(world_get(w, 1, session, "x", 2 * SIZE, 7, WORLD_SECOND), -ENOSPC);
	for (uint64_t at = 0; at < 2 * SIZE; at += 500000) {
		range = (struct object_range){at, 500000};
		a = ranges(w, session, "x", &range, 1, WORLD_SECOND);
		holds(w, 1, &a, &range, 1, 2 * SIZE, 7);
	}
	w->node[1].pins[session][PIN] = 0;
	assert_int_equal(ranges(w, session, "x", &much, 1, -1).status, -ENOSPC);
	assert_int_equal(ranges(w, session, "x", &much, 1, WORLD_SECOND).status, -ENOSPC);
	assert_int_equal(world_call(w, 1, session, &r, WORLD_SECOND)->reply.status, 0);
	nothing_is_left(w, session);
	range = (struct object_range){0, SESSION_RANGES_BYTES}; /* pinned: it is given back later */
	a = ranges(w, session, "x", &range, 1, -1);
	holds(w, 1, &a, &range, 1, 2 * SIZE, 7);
	w->node[1].pins[session][PIN + 1] = w->node[1].pins[session][PIN];
	seq = ranges_send(w, 1, session, "x", &range, 1, 0, 10 * WORLD_SECOND);
	world_run(w, WORLD_SECOND);
	assert_null(world_reply_to(w, 1, seq));
	w->node[1].pins[session][PIN + 1] = w->node[1].pins[session][PIN] = 0;
	late = world_wait(w, 1, seq, WORLD_SECOND);
	assert_non_null(late);
	holds(w, 1, &late->reply, &range, 1, 2 * SIZE, 7);
	world_free(w);
}

static bool some_has_come(struct world *w, void *arg)
{
	return usage(w, 1).edges > 0;
}

/* Two nodes have it; the one that sends dies in the middle. */
static void a_holder_dies(void **state)
{
	const struct object_range range[] = {{5000, 1500000}, {2000000, 900000}};

	for (uint32_t dead = 0; dead < 3; dead += 2) {
		struct world *w = world_new(4, 1, STORE, true);
		uint32_t session = world_open(w, 1), writer = world_open(w, 0),
			 other = world_open(w, 2), seq;
		struct world_reply *a;

		assert_int_equal(world_put(w, 0, writer, "x", SIZE, 7), 0);
		assert_int_equal(world_get(w, 2, other, "x", SIZE, 7, WORLD_SECOND), 0);
		seq = ranges_send(w, 1, session, "x", range, 2, 0, -1);
		assert_true(world_until(w, some_has_come, NULL, WORLD_SECOND));
		assert_null(world_reply_to(w, 1, seq));
		world_kill_node(w, dead);
		a = world_wait(w, 1, seq, 30 * WORLD_SECOND);
		assert_non_null(a);
		holds(w, 1, &a->reply, range, 2, SIZE, 7);
		nothing_is_left(w, session);
		world_free(w);
	}
}

/* A copy that is being written: the bytes come when they are there. */
static void it_is_being_made(void **state)
{
	const struct object_range range = {1000, 3000}, late = {SIZE - 10, 10};
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 1), writer = world_open(w, 0), seq, last;
	struct session_request r = world_request(SESSION_CREATE, "x");
	struct session_reply made;
	struct world_reply *a;

	seq = ranges_send(w, 1, session, "x", &range, 1, 0, -1);
	world_run(w, WORLD_SECOND);
	assert_null(world_reply_to(w, 1, seq));
	r.size = SIZE;
	r.pin = 1;
	made = world_call(w, 0, writer, &r, WORLD_SECOND)->reply;
	assert_int_equal(made.status, 0);
	last = ranges_send(w, 1, session, "x", &late, 1, 0, -1);
	world_run(w, WORLD_SECOND);
	assert_null(world_reply_to(w, 1, seq));
	world_fill(w->node[0].store + made.offset, SIZE, 7);
	r = world_request(SESSION_PUBLISH, "");
	r.slot = made.slot;
	r.generation = made.generation;
	r.watermark = SIZE / 2;
	assert_int_equal(world_call(w, 0, writer, &r, WORLD_SECOND)->reply.status, 0);
	a = world_wait(w, 1, seq, WORLD_SECOND);
	assert_non_null(a);
	holds(w, 1, &a->reply, &range, 1, SIZE, 7);
	assert_null(world_reply_to(w, 1, last));
	r.op = SESSION_SEAL;
	assert_int_equal(world_call(w, 0, writer, &r, WORLD_SECOND)->reply.status, 0);
	a = world_wait(w, 1, last, WORLD_SECOND);
	assert_non_null(a);
	holds(w, 1, &a->reply, &late, 1, SIZE, 7);
	world_free(w);
}

/* All of a small object: the directory answers with its value. */
static void a_value_comes_along(void **state)
{
	const struct object_range all[] = {{0, 1400}, {1400, 3600}}, none = {5000, 0};
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 1), writer = world_open(w, 2);
	struct session_reply a;

	assert_int_equal(world_put(w, 2, writer, "x", 5000, 7), 0);
	w->separated[0] = 1;
	w->separated[1] = 2;
	a = ranges(w, session, "x", all, 2, WORLD_SECOND);
	holds(w, 1, &a, all, 2, 5000, 7);
	nothing_is_left(w, session);
	a = ranges(w, session, "x", &none, 1, WORLD_SECOND);
	assert_int_equal(a.status, 0);
	assert_int_equal(a.size, 0);
	assert_int_equal(a.watermark, 5000);
	assert_int_equal(world_put(w, 2, writer, "nothing", 0, 7), 0);
	a = ranges(w, session, "nothing", all, 1, WORLD_SECOND);
	assert_int_equal(a.status, -ERANGE);
	world_free(w);
}

static void refusals(void **state)
{
	const struct object_range beyond = {SIZE - 5, 6}, far = {SIZE + 1, 0}, one = {0, 1},
				  unordered[] = {{5, 1}, {4, 1}},
				  much = {0, SESSION_RANGES_BYTES + 1};
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 1), writer = world_open(w, 0), seq;
	struct session_request r = world_request(SESSION_GET_RANGES, "x");
	struct {
		struct session_request r;
		struct object_range range[SESSION_RANGES_MAX + 1];
	} none = {world_request(SESSION_GET_RANGES, "x"), {{0, 0}}};
	struct world_reply *a;

	assert_int_equal(ranges(w, session, "x", &one, 1, 0).status, -ENOENT);
	assert_int_equal(ranges(w, session, "x", &one, 1, WORLD_MS).status, -ETIMEDOUT);
	assert_int_equal(ranges(w, session, "x", unordered, 2, 0).status, -EINVAL);
	assert_int_equal(ranges(w, session, "x", &much, 1, 0).status, -EINVAL);
	r.size = 8;
	assert_int_equal(world_call(w, 1, session, &r, 0)->reply.status, -EINVAL);
	r.size = UINT64_MAX;
	assert_int_equal(world_call(w, 1, session, &r, 0)->reply.status, -EINVAL);
	none.r.pin = PIN;
	none.r.size = sizeof(none.range); /* of which none follows in the packet */
	assert_int_equal(world_call(w, 1, session, &none.r, 0)->reply.status, -EINVAL);
	assert_int_equal(world_put(w, 0, writer, "x", SIZE, 7), 0);
	assert_int_equal(ranges(w, session, "x", &beyond, 1, -1).status, -ERANGE);
	assert_int_equal(ranges(w, session, "x", &far, 1, -1).status, -ERANGE);
	seq = ranges_send(w, 1, session, "x", &one, 1, 12345, -1);
	a = world_wait(w, 1, seq, WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ERESTART);
	nothing_is_left(w, session);
	world_free(w);
}

/* It is cancelled, its client goes, or the object is deleted while its ranges arrive. */
static void ends(void **state)
{
	const struct object_range range = {0, 2500000};
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 1), writer = world_open(w, 0), seq;
	struct session_request r = world_request(SESSION_CANCEL, "");
	struct world_reply *a;

	seq = ranges_send(w, 1, session, "y", &range, 1, 0, -1);
	r.generation = seq;
	assert_int_equal(world_call(w, 1, session, &r, WORLD_SECOND)->reply.status, 0);
	a = world_wait(w, 1, seq, 0); /* its pin is free from here on */
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ECANCELED);
	nothing_is_left(w, session);
	assert_int_equal(world_put(w, 0, writer, "x", SIZE, 7), 0);
	seq = ranges_send(w, 1, session, "x", &range, 1, 0, -1);
	world_run(w, WORLD_MS);
	r = world_request(SESSION_DELETE, "x");
	assert_int_equal(world_call(w, 0, writer, &r, WORLD_SECOND)->reply.status, 0);
	a = world_wait(w, 1, seq, 30 * WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ESTALE);
	nothing_is_left(w, session);
	assert_int_equal(world_put(w, 0, writer, "z", SIZE, 7), 0);
	ranges_send(w, 1, session, "z", &range, 1, 0, -1);
	world_run(w, WORLD_MS);
	control_session_close(w->node[1].core, session, w->now_ns);
	nothing_is_left(w, session);
	world_free(w);
}

/* The dataplane that brings them dies, and a new one goes on. */
static void a_dataplane_restarts(void **state)
{
	const struct object_range range = {1234, 2500000};
	struct world *w = world_new(3, 1, STORE, false);
	uint32_t session = world_open(w, 1), writer = world_open(w, 0), seq;
	struct world_reply *a;

	assert_int_equal(world_put(w, 0, writer, "x", SIZE, 7), 0);
	seq = ranges_send(w, 1, session, "x", &range, 1, 0, -1);
	world_run(w, WORLD_MS);
	assert_null(world_reply_to(w, 1, seq));
	world_kill_engine(w, 1);
	world_run(w, WORLD_SECOND);
	world_start_engine(w, 1);
	a = world_wait(w, 1, seq, 60 * WORLD_SECOND);
	assert_non_null(a);
	holds(w, 1, &a->reply, &range, 1, SIZE, 7);
	nothing_is_left(w, session);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_the_ranges_touch),
		cmocka_unit_test(the_store_is_full),
		cmocka_unit_test(a_holder_dies),
		cmocka_unit_test(it_is_being_made),
		cmocka_unit_test(a_value_comes_along),
		cmocka_unit_test(refusals),
		cmocka_unit_test(ends),
		cmocka_unit_test(a_dataplane_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
