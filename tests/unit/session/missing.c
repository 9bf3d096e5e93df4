/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node says of the directory when a part of that does not answer. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"

#define STORE (UINT64_C(16) << 20)

enum { NODES = 4, NAMES = 24 };

static const char *name_of(uint32_t i)
{
	static char name[16];

	snprintf(name, sizeof(name), "object-%u", i);
	return name;
}

/* Every node keeps a part of the directory and has put some of the objects. */
static struct world *make(void)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	world_keep_all(w);
	for (uint32_t i = 0; i < NAMES; i++)
		assert_int_equal(world_put(w, i % NODES, 0, name_of(i), 100000, i + 1), 0);
	return w;
}

struct listed {
	int status;
	uint32_t objects, missing;
	bool lacks[NODES];
};

static struct listed list(struct world *w, uint32_t node)
{
	struct session_request r = world_request(SESSION_LIST, NULL);
	struct listed out = {.status = -EBUSY};
	uint32_t seq = world_send(w, node, 0, &r);
	struct world_reply *a;

	while ((a = world_wait(w, node, seq, 20 * WORLD_SECOND))) {
		out.status = a->reply.status;
		if (!(a->reply.flags & SESSION_FLAG_MORE))
			break;
		assert_int_equal(a->tail_bytes, sizeof(a->object));
		if (!(a->object.flags & SESSION_OBJECT_MISSING)) {
			out.objects++;
			continue;
		}
		out.missing++;
		assert_int_equal(a->object.holders, 1);
		assert_in_range(a->object.holder[0].node, 0, NODES - 1);
		assert_false(out.lacks[a->object.holder[0].node]); /* once each */
		out.lacks[a->object.holder[0].node] = true;
	}
	return out;
}

static void the_list_is_whole(struct world *w, uint32_t node, uint32_t objects)
{
	struct listed l = list(w, node);

	assert_int_equal(l.status, 0);
	assert_int_equal(l.missing, 0);
	assert_int_equal(l.objects, objects);
}

/* Owns none of the directory's answers but its own. */
static void the_list_lacks_all_others(struct world *w, uint32_t node)
{
	struct listed l = list(w, node);

	assert_int_equal(l.status, 0);
	assert_true(l.objects < NAMES);
	assert_int_equal(l.missing, NODES - 1);
	assert_false(l.lacks[node]);
}

static int ask(struct world *w, uint32_t node, uint16_t op, const char *name, char text[128])
{
	struct session_request r = world_request(op, name);
	uint32_t seq;
	struct world_reply *a;

	r.timeout_ns = 0;
	seq = world_send(w, node, 0, &r);
	do
		a = world_wait(w, node, seq, 20 * WORLD_SECOND);
	while (a && a->reply.flags & SESSION_FLAG_MORE);
	assert_non_null(a);
	memcpy(text, a->reply.text, 128);
	return a->reply.status;
}

/* Nothing that exists is said not to. */
static void nothing_is_denied(struct world *w, uint32_t node)
{
	char text[128];
	uint32_t unknown = 0;

	for (uint32_t i = 0; i < NAMES; i++) {
		int status = ask(w, node, SESSION_STAT, name_of(i), text);

		assert_true(status == 0 || status == -EHOSTUNREACH);
		if (status == 0)
			continue;
		unknown++;
		assert_non_null(strstr(text, "node "));
	}
	assert_true(unknown > 0);
}

/* [G5.1] */
static void a_node_that_is_cut_off_says_so(void **state)
{
	struct world *w = make();
	char text[128];

	the_list_is_whole(w, 0, NAMES);
	assert_int_equal(ask(w, 0, SESSION_STAT, "never put", text), -ENOENT);
	w->cut[0] = true;
	the_list_lacks_all_others(w, 0); /* they are not even suspect yet */
	nothing_is_denied(w, 0);
	world_run(w, 40 * WORLD_SECOND); /* it takes all of them for dead, and forgets them */
	the_list_lacks_all_others(w, 0);
	nothing_is_denied(w, 0);
	assert_int_equal(ask(w, 0, SESSION_DELETE, "never put", text), -EHOSTUNREACH);
	assert_int_equal(ask(w, 0, SESSION_GET, "never put", text), -EHOSTUNREACH);
	the_list_is_whole(w, 1, NAMES - NAMES / NODES);
	w->cut[0] = false;
	world_run(w, 10 * WORLD_SECOND);
	for (uint32_t i = 0; i < NODES; i++)
		the_list_is_whole(w, i, NAMES);
	assert_int_equal(ask(w, 0, SESSION_STAT, "never put", text), -ENOENT);
	world_end(w);
}

static void a_death_is_told_until_others_keep_its_part(void **state)
{
	struct world *w = make();
	struct listed l = {0};
	bool told = false;

	world_kill_node(w, 3);
	for (uint32_t i = 0; i < 100; i++) {
		l = list(w, 0);
		assert_int_equal(l.status, 0);
		told |= l.missing == 1 && l.lacks[3];
		/* a list without a missing shard has all that is left */
		assert_true(l.missing > 0 || l.objects >= NAMES - NAMES / NODES);
		world_run(w, WORLD_SECOND / 10);
	}
	assert_true(told);
	assert_int_equal(l.missing, 0); /* three of four agree that it is dead */
	world_free(w);
}

static void an_owner_that_stands_still_is_named(void **state)
{
	struct world *w = make();
	struct listed l;

	w->frozen[2] = true;
	l = list(w, 1);
	assert_int_equal(l.status, 0);
	assert_int_equal(l.missing, 1);
	assert_true(l.lacks[2]);
	assert_true(l.objects < NAMES);
	w->frozen[2] = false;
	world_run(w, 10 * WORLD_SECOND);
	the_list_is_whole(w, 1, NAMES);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_is_cut_off_says_so),
		cmocka_unit_test(a_death_is_told_until_others_keep_its_part),
		cmocka_unit_test(an_owner_that_stands_still_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
