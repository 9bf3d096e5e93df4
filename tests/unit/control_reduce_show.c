/* SPDX-License-Identifier: BSD-3-Clause */
/* What others see of a reduce whose target is not there, and how it is cancelled: coordinated by
 * the shard owner of the target, which knows no source yet, or by the node that has asked for it.
 */
#include "control_lend.h"

enum { READER = 1 };

/* One source is missing at least; present: those that are there. */
static struct world *pending(bool lent, int64_t timeout_ns)
{
	struct world *w;

	if (lent)
		return half_way(SLOW, 0, timeout_ns);
	w = lending(0);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, timeout_ns), 0);
	world_run(w, 15 * WORLD_MS);
	assert_true(at(w, KEEPER)->state != REDUCE_LENT);
	return w;
}

static uint32_t get_send(struct world *w, int64_t timeout_ns)
{
	struct session_request r = world_request(SESSION_GET, target);

	r.id = world_id(target);
	r.timeout_ns = timeout_ns;
	r.pin = 9;
	return world_send(w, READER, 0, &r);
}

static struct session_reply ended(struct world *w, uint32_t node, uint32_t seq)
{
	struct world_reply *a = world_wait(w, node, seq, LONG);

	assert_non_null(a);
	return a->reply;
}

static bool is_listed(struct world *w, uint32_t node)
{
	struct session_request r = world_request(SESSION_LIST, NULL);
	struct object_id id = world_id(target);
	uint32_t seq = world_send(w, node, 0, &r);
	bool found = false;
	struct world_reply *a;

	while ((a = world_wait(w, node, seq, LONG)) != NULL && a->reply.flags & SESSION_FLAG_MORE) {
		if (!object_id_equal(&a->object.id, &id))
			continue;
		assert_int_equal(a->object.flags, SESSION_OBJECT_REDUCED);
		assert_string_equal(a->object.name, target);
		found = true;
	}
	return found;
}

static int stated(struct world *w, uint32_t node, struct session_object *out)
{
	struct session_request r = world_request(SESSION_STAT, target);
	uint32_t seq = world_send(w, node, 0, &r);
	struct world_reply *a = world_wait(w, node, seq, LONG);

	assert_non_null(a);
	if (a->reply.flags & SESSION_FLAG_MORE) {
		*out = a->object;
		a = world_wait(w, node, seq, LONG);
		assert_non_null(a);
	}
	return a->reply.status;
}

static void it_is_listed_and_its_id_is_taken(void **state)
{
	for (int lent = 0; lent < 2; lent++) {
		struct world *w = pending(lent, -1);
		struct session_object object = {0};
		struct session_request r = world_request(SESSION_CREATE, target);
		char node[16];
		struct session_reply a;

		assert_int_equal(stated(w, READER, &object), 0);
		assert_int_equal(object.flags, SESSION_OBJECT_REDUCED);
		assert_string_equal(object.name, target);
		assert_true(is_listed(w, READER));
		r.size = 100;
		r.pin = 8;
		a = ended(w, READER, world_send(w, READER, 0, &r));
		assert_int_equal(a.status, -EEXIST);
		assert_non_null(strstr(a.text, "a reduce makes an object of this id"));
		snprintf(node, sizeof(node), "node %u", lent ? CALLER : KEEPER);
		assert_non_null(strstr(a.text, node));
		a = ended(w, READER, get_send(w, 0));
		assert_int_equal(a.status, -ENOENT);
		assert_non_null(strstr(a.text, "the reduce that makes it has not ended"));
		assert_non_null(strstr(a.text, node));
		world_free(w);
	}
}

static void how_far_it_is_can_be_asked(void **state)
{
	for (int lent = 0; lent < 2; lent++) {
		struct world *w = pending(lent, -1);
		char words[64];
		struct session_reply a;

		world_run(w, 3 * WORLD_SECOND);
		snprintf(words, sizeof(words), "; node %u coordinates it, for 3 s",
			 lent ? CALLER : KEEPER);
		for (uint32_t node = 0; node < NODES; node++) {
			struct session_request r = world_request(SESSION_REDUCED, target);

			r.timeout_ns = 0;
			a = ended(w, node, world_send(w, node, 0, &r));
			assert_int_equal(a.status, -ETIMEDOUT);
			assert_non_null(strstr(a.text, lent ? "3 of 4 sources are there, missing "
							    : "0 of 4 sources are there"));
			assert_non_null(strstr(a.text, words));
		}
		world_free(w);
	}
}

static void a_delete_cancels_it(void **state)
{
	for (int lent = 0; lent < 2; lent++) {
		struct world *w = pending(lent, -1);
		struct session_request r = world_request(SESSION_DELETE, target);
		struct session_object object;
		uint32_t seq = get_send(w, -1);
		struct session_reply a;

		world_run(w, 50 * WORLD_MS);
		r.id = world_id(target);
		assert_int_equal(ended(w, 2, world_send(w, 2, 0, &r)).status, 0);
		a = ended(w, READER, seq);
		assert_int_equal(a.status, -ECANCELED);
		assert_string_equal(a.text, "the reduce was cancelled by rm: reduce again");
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), -ECANCELED);
		assert_int_equal(stated(w, READER, &object), -ENOENT);
		assert_false(is_listed(w, 3));
		assert_int_equal(ended(w, 2, world_send(w, 2, 0, &r)).status, -ENOENT);
		nothing_is_left(w);
	}
}

static void who_waits_hears_why_it_failed(void **state)
{
	for (int lent = 0; lent < 2; lent++) {
		struct world *w = pending(lent, 2 * WORLD_SECOND);
		uint32_t seq = get_send(w, 5 * WORLD_SECOND);
		struct session_reply a = ended(w, READER, seq);

		assert_int_equal(a.status, -ETIMEDOUT);
		assert_non_null(strstr(a.text, "the reduce into it failed: source "));
		assert_non_null(strstr(a.text, " never came within 2 s: put them"));
		a = ended(w, READER, get_send(w, 0));
		assert_int_equal(a.status, -ENOENT);
		assert_non_null(strstr(a.text, "the reduce into it failed: source "));
		assert_false(is_listed(w, READER));
		nothing_is_left(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_listed_and_its_id_is_taken),
		cmocka_unit_test(how_far_it_is_can_be_asked),
		cmocka_unit_test(a_delete_cancels_it),
		cmocka_unit_test(who_waits_hears_why_it_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
