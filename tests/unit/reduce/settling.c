/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a target dies that has made a result without the requester's agreement, and the next
 * owner is asked before it has heard of that. */
#include "fixtures/control_reduces.h"

enum { NEXT = 0, SMALL = 48 << 10 };

static bool is_kept(struct world *w, void *arg)
{
	struct object_id id = world_id(target);
	struct control *c = w->node[NEXT].core;

	return ownership_shard(c, &id) == c->cluster->self;
}

/* The next owner does not hear for a while from the only holder of the result. */
static void heard_late(struct world *w, uint32_t holder)
{
	w->separated[0] = NEXT;
	w->separated[1] = holder;
	assert_true(world_until(w, is_kept, NULL, LONG));
	world_run(w, 300 * WORLD_MS);
	w->separated[0] = w->separated[1] = 0;
}

static void all_have(struct world *w, uint64_t size, uint64_t set)
{
	const uint8_t *bytes;
	uint64_t got;

	for (uint32_t i = 0; i < NODES; i++) {
		if (!w->node[i].core)
			continue;
		assert_int_equal(world_fetch(w, i, 0, target, LONG, &bytes, &got), 0);
		assert_int_equal(got, size);
		assert_true(world_sums(bytes, size, set));
	}
}

/* The requester was out of reach, and the result made without it. */
static void the_requester_was_taken_for_dead(void **state)
{
	struct world *w = reducing(NEXT);
	struct session_request source;
	uint32_t others, owns, holder;
	int status;

	assert_int_equal(world_put(w, CALLER, 0, "a0", SIZE, 1), 0);
	put_source(w, 1);
	put_source(w, 2);
	source = begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
	put_source(w, 4);
	others = ask(w, SLOW);
	owns = ask(w, CALLER);
	world_run(w, 10 * WORLD_MS);
	w->cut[CALLER] = true;
	end_source(w, source);
	assert_int_equal(told(w, SLOW, others, &status), 0x1e);
	assert_int_equal(status, 0);
	holder = at(w, OWNER)->commit.holder;
	assert_true(holder != NEXT);
	world_kill_node(w, OWNER);
	w->cut[CALLER] = false;
	heard_late(w, holder);
	told(w, CALLER, owns, &status);
	assert_int_equal(status, -EEXIST); /* that it is its own nobody is left to tell */
	all_have(w, SIZE, 0x1e);
	nothing_is_left(w);
}

static void put_small(struct world *w, uint32_t i)
{
	char name[8];

	snprintf(name, sizeof(name), "a%u", i);
	assert_int_equal(world_put(w, i, 0, name, SMALL, i + 1), 0);
}

/* A node that owns no source when the first owner is dead. */
static uint32_t keeps_no_source(struct world *w)
{
	bool keeps[NODES] = {[NEXT] = true};
	uint32_t node = 0;

	for (uint32_t i = 0; i < SOURCES; i++) {
		struct node *owners[2];

		ownership_replicas(w->node[0].core, &ids[i], owners);
		keeps[owners[owners[0]->number == OWNER]->number] = true;
	}
	while (keeps[node])
		node++;
	assert_in_range(node, 1, SOURCES - 1);
	return node;
}

/* It was added up from values, to which nobody agrees; the next one makes a tree of it, its link
 * being slower. */
static void it_was_made_of_values(void **state)
{
	struct world *w = reducing(NEXT);
	uint32_t holder = keeps_no_source(w);
	struct session_request get = world_request(SESSION_GET, target);
	struct fanout_link *link = &w->node[NEXT].core->cluster->links.all;
	uint32_t others, owns, got;
	int status;

	get.timeout_ns = LONG;
	put_small(w, 1);
	put_small(w, 2);
	put_small(w, 4);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	got = world_send(w, holder, 0, &get);
	others = ask(w, holder);
	owns = ask(w, CALLER);
	world_run(w, 20 * WORLD_MS);
	assert_true(at(w, OWNER)->sum.small);
	w->separated[0] = OWNER;
	w->separated[1] = CALLER;
	put_small(w, SLOW);
	assert_int_equal(told(w, holder, others, &status), 0x1e);
	assert_int_equal(status, 0);
	assert_int_equal(world_wait(w, holder, got, LONG)->reply.status, 0);
	world_kill_node(w, OWNER);
	put_small(w, 0);
	link->bytes_per_s = 1000000;
	link->rate_seen = true;
	heard_late(w, holder);
	told(w, CALLER, owns, &status);
	assert_int_equal(status, -ENODATA); /* it is there; what is in it nobody is left to tell */
	all_have(w, SMALL, 0x1e);
	nothing_is_left(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_requester_was_taken_for_dead),
		cmocka_unit_test(it_was_made_of_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
