/* SPDX-License-Identifier: BSD-3-Clause */
/* What others see of a reduce whose target is not there, and how it is cancelled: when no source is
 * known yet, and when one is missing. */
#include "fixtures/control_reduces.h"
#include "rpc/mailbox.h"

enum { READER = 1 };

/* Some sources are there, or none. */
static struct world *pending(bool some, int64_t timeout_ns)
{
	struct world *w;

	if (some)
		return half_way(SLOW, 0, timeout_ns);
	w = reducing(0);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, timeout_ns), 0);
	world_run(w, 15 * WORLD_MS);
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

	while ((a = world_wait(w, node, seq, LONG)) && a->reply.flags & SESSION_FLAG_MORE) {
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
	for (int some = 0; some < 2; some++) {
		struct world *w = pending(some, -1);
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
		snprintf(node, sizeof(node), "node %u", OWNER);
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
	for (int some = 0; some < 2; some++) {
		struct world *w = pending(some, -1);
		char words[64];
		struct session_reply a;

		world_run(w, 3 * WORLD_SECOND);
		snprintf(words, sizeof(words), "; node %u coordinates it, for 3 s", OWNER);
		for (uint32_t node = 0; node < NODES; node++) {
			struct session_request r = world_request(SESSION_REDUCED, target);

			r.timeout_ns = 0;
			a = ended(w, node, world_send(w, node, 0, &r));
			assert_int_equal(a.status, -ETIMEDOUT);
			assert_non_null(strstr(a.text, some ? "3 of 4 sources are there, missing "
							    : "0 of 4 sources are there"));
			assert_non_null(strstr(a.text, words));
		}
		world_free(w);
	}
}

/* Bit i: source i. */
static unsigned listed(const struct session_sources *page)
{
	unsigned set = 0;

	for (uint32_t k = 0; k < page->count; k++)
		for (uint32_t i = 0; i < SOURCES; i++)
			set |= (unsigned)object_id_equal(&ids[i], &page->source[k]) << i;
	return set;
}

static void its_sources_can_be_listed(void **state)
{
	for (int some = 0; some < 2; some++) {
		struct world *w = pending(some, -1);
		unsigned there = some ? (1u << SLOW) - 1 : 0, all = (1u << SOURCES) - 1;

		for (uint32_t node = 0; node < NODES; node++) {
			struct session_request r = world_request(SESSION_REDUCED, target);
			unsigned set[2] = {0, 0};
			struct world_reply *a;
			uint32_t seq;

			r.timeout_ns = 0;
			r.flags = SESSION_FLAG_PROGRESS;
			seq = world_send(w, node, 0, &r);
			while ((a = world_wait(w, node, seq, LONG)) &&
			       a->reply.flags & SESSION_FLAG_MORE)
				set[a->sources.missing] |= listed(&a->sources);
			assert_non_null(a);
			assert_int_equal(a->reply.status, 0);
			assert_int_equal(set[0], there);
			assert_int_equal(set[1], all & ~there);
		}
		world_free(w);
	}
}

/* No more of the sources can be there than are listed, and only while the reduce goes on. */
static void a_list_of_sources_that_lies_is_refused(void **state)
{
	static uint8_t arena[MAILBOX_ARENA_BYTES] __attribute__((aligned(64)));
	static uint8_t bytes[MSG_BYTES_MAX];
	static const struct {
		uint32_t kind;
		int32_t status;
		uint32_t present;
		int result;
	} row[] = {
		{MESSAGE_USED, -EAGAIN, 0, 0},		{MESSAGE_USED, -EAGAIN, 3, 0},
		{MESSAGE_USED, -EAGAIN, 4, -EBADMSG},	{MESSAGE_USED, 0, 1, -EBADMSG},
		{MESSAGE_COMMIT, -EAGAIN, 1, -EBADMSG},
	};

	for (uint32_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct message m = {.kind = row[i].kind, .request = 7}, back;
		size_t length;

		m.used = (struct message_used){.target = world_id(target),
					       .status = row[i].status,
					       .generation = 9,
					       .node = MESSAGE_NODE_NONE,
					       .count = 3,
					       .sources = ids,
					       .present = row[i].present};
		length = codec_encode(&m, arena + CODEC_ARENA_BYTES, bytes, sizeof(bytes));
		assert_int_equal(codec_decode(bytes, length, arena, &back), row[i].result);
		if (row[i].result == 0)
			assert_int_equal(back.used.present, row[i].present);
	}
}

static void a_delete_cancels_it(void **state)
{
	for (int some = 0; some < 2; some++) {
		struct world *w = pending(some, -1);
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
	for (int some = 0; some < 2; some++) {
		struct world *w = pending(some, 2 * WORLD_SECOND);
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
		cmocka_unit_test(its_sources_can_be_listed),
		cmocka_unit_test(a_list_of_sources_that_lies_is_refused),
		cmocka_unit_test(a_delete_cancels_it),
		cmocka_unit_test(who_waits_hears_why_it_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
