/* SPDX-License-Identifier: BSD-3-Clause */
/* Which result a delegated reduce has (reduce/coordinator/delegate.c): the requester makes it, and
 * the shard owner agrees to it or to another one. */
#include "fixtures/control_delegation.h"

/* The requester builds the target, and waits for its last source. */
static struct world *built_here(uint32_t next, struct session_request *source)
{
	struct world *w = delegating(next);

	assert_int_equal(world_put(w, CALLER, 0, "a0", SIZE, 1), 0);
	put_source(w, 1);
	put_source(w, 2);
	*source = begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_DELEGATED);
	assert_int_equal(reduce_host(reduce_root(at(w, CALLER), 0)), CALLER);
	return w;
}

/* Its control stands still and is taken for dead; its dataplane goes on. */
static void the_requester_wakes_with_all_of_it(void **state)
{
	struct session_request source;
	struct world *w = built_here(0, &source);
	uint32_t others, owns;
	const uint8_t *bytes;
	uint64_t set, size;
	int status;

	put_source(w, 4);
	others = ask(w, 0);
	owns = ask(w, CALLER);
	world_run(w, 10 * WORLD_MS);
	w->stalled[CALLER] = true;
	end_source(w, source);
	world_run(w, 1500 * WORLD_MS);
	set = told(w, 0, others, &status);
	assert_int_equal(status, 0);
	assert_int_equal(set, 0x1e); /* without what is out of reach */
	w->stalled[CALLER] = false;
	assert_int_equal(told(w, CALLER, owns, &status), set);
	assert_int_equal(status, 0);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(world_fetch(w, i, 0, target, LONG, &bytes, &size), 0);
		assert_true(world_sums(bytes, SIZE, set));
	}
	nothing_is_left(w);
}

static bool is_proposed(struct world *w, void *arg)
{
	const struct reduce *r = at(w, CALLER);

	return r && r->state == REDUCE_COMMITTING;
}

static bool is_kept(struct world *w, void *arg)
{
	struct object_id id = world_id(target);
	struct control *c = w->node[*(uint32_t *)arg].core;

	return ownership_shard(c, &id) == c->cluster->self;
}

/* The requester stands still, and the owner dies when it has told the others. The next owner, which
 * may be the requester's node, knows nothing when it is asked: the builder of that result is out of
 * reach for a moment. */
static void the_owner_dies_before_it_wakes(uint32_t next, bool heard)
{
	struct session_request source;
	struct world *w = built_here(next, &source);
	uint32_t others, owns, builder;
	const uint8_t *bytes;
	uint64_t set, size;
	int status;

	put_source(w, 4);
	others = ask(w, 0);
	owns = ask(w, CALLER);
	world_run(w, 10 * WORLD_MS);
	w->stalled[CALLER] = true;
	end_source(w, source);
	world_run(w, 100 * WORLD_MS);
	w->cut[CALLER] = true;
	set = told(w, 0, others, &status);
	assert_int_equal(status, 0);
	assert_int_equal(set, 0x1e);
	builder = at(w, OWNER)->commit.holder;
	world_kill_node(w, OWNER);
	if (!heard)
		peers_node(w->node[next].core, CALLER)->died = false;
	w->stalled[CALLER] = w->cut[CALLER] = false;
	world_run(w, 500 * WORLD_MS);
	assert_true(is_proposed(w, NULL));
	if (next == CALLER)
		assert_true(world_until(w, is_kept, &next, LONG));
	w->cut[builder] = true;
	world_run(w, 200 * WORLD_MS);
	w->cut[builder] = false;
	told(w, CALLER, owns, &status);
	assert_int_equal(status, -EEXIST); /* that it is its own nobody is left to tell */
	for (uint32_t i = 0; i < NODES; i++) {
		if (i == OWNER)
			continue;
		assert_int_equal(world_fetch(w, i, 0, target, LONG, &bytes, &size), 0);
		assert_true(world_sums(bytes, SIZE, set));
	}
	nothing_is_left(w);
}

static void the_requester_wakes_when_the_owner_is_dead(void **state)
{
	the_owner_dies_before_it_wakes(0, true);
}

static void the_requester_wakes_and_keeps_the_target(void **state)
{
	the_owner_dies_before_it_wakes(CALLER, true);
}

/* The next owner has not heard that the requester was taken for dead: the refutation says so. */
static void the_requester_wakes_and_its_death_was_not_heard_of(void **state)
{
	the_owner_dies_before_it_wakes(0, false);
}

/* Whichever of its messages still arrive, and whichever node owns the target next. */
static void the_owner_dies_when_it_has_agreed(void **state)
{
	const uint32_t nexts[] = {0, SLOW, CALLER};

	for (uint32_t n = 0; n < 3; n++)
		for (uint64_t later_ns = 0; later_ns < 6 * WORLD_MS; later_ns += WORLD_MS / 2) {
			struct world *w = half_way(SOURCES, nexts[n], -1);
			uint32_t host;

			assert_true(world_until(w, is_decided, &host, LONG));
			world_run(w, later_ns);
			world_kill_node(w, OWNER);
			is_the_sum(w, CALLER);
			nothing_is_left(w);
		}
}

/* Nor does the requester hear of it: the next owner keeps the present copy, which is the result. */
static void the_owner_dies_before_it_says_so(void **state)
{
	const uint32_t nexts[] = {0, SLOW, CALLER};

	for (uint32_t n = 0; n < 3; n++) {
		struct world *w = half_way(SOURCES, nexts[n], -1);
		uint32_t host;

		assert_true(world_until(w, is_decided, &host, LONG));
		assert_int_not_equal(host, CALLER);
		w->cut[CALLER] = true;
		world_run(w, 2 * WORLD_MS);
		world_kill_node(w, OWNER);
		world_run(w, 500 * WORLD_MS);
		w->cut[CALLER] = false;
		assert_false(is_agreed(w, NULL));
		is_the_sum(w, CALLER);
		nothing_is_left(w);
	}
}

/* Before it has: the next one is asked. */
static void the_owner_dies_when_it_is_asked(void **state)
{
	const uint32_t nexts[] = {0, SLOW, CALLER};

	for (uint32_t n = 0; n < 3; n++) {
		struct session_request source;
		uint64_t generation;
		uint32_t host;
		struct world *w = flowing(nexts[n], &source, &generation, &host);

		world_kill_node(w, OWNER);
		end_source(w, source);
		world_run(w, 300 * WORLD_MS);
		assert_int_equal(at(w, CALLER)->state, REDUCE_COMMITTING);
		assert_false(is_agreed(w, NULL));
		is_the_sum(w, CALLER);
		assert_int_equal(known(w, nexts[n]), generation);
		nothing_is_left(w);
	}
}

/* What was put on the other side of a cut is there when it asks, and it has not heard of that. */
static void another_one_is_there(void **state)
{
	enum { CUT = 4 };
	struct session_request source;
	struct world *w = built_here(0, &source);
	uint64_t generation = known(w, OWNER);
	uint32_t seq;
	int status;

	w->cut[CUT] = true;
	world_run(w, 4 * WORLD_SECOND);
	assert_int_equal(world_put(w, CUT, 0, target, SIZE, 9), 0);
	seq = ask(w, CALLER);
	world_run(w, 10 * WORLD_MS);
	w->stalled[CALLER] = true;
	w->cut[CUT] = false;
	end_source(w, source);
	world_run(w, 300 * WORLD_MS);
	assert_true(known(w, OWNER) > generation);
	assert_int_equal(at(w, OWNER)->state, REDUCE_DELEGATED);
	w->stalled[CALLER] = false;
	told(w, CALLER, seq, &status);
	assert_int_equal(status, -EEXIST);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_get(w, i, 0, target, SIZE, 9, LONG), 0);
	nothing_is_left(w);
}

/* The owner has built the target. The next owner hears of that from the requester: the lost result
 * is built again, without that node. */
static void it_dies_with_the_result(uint32_t next)
{
	struct world *w = delegating(next);
	struct session_request source;
	uint32_t seq;
	int status;

	put_source(w, 0);
	put_source(w, 1);
	assert_int_equal(world_put(w, OWNER, 0, "a2", SIZE, 3), 0);
	source = begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	put_source(w, 4);
	world_run(w, 20 * WORLD_MS);
	seq = ask(w, CALLER);
	source.op = SESSION_SEAL;
	world_send(w, SLOW, 0, &source);
	assert_true(world_until(w, is_proposed, NULL, LONG));
	assert_int_equal(at(w, CALLER)->commit.holder, OWNER);
	world_kill_node(w, OWNER);
	assert_int_equal(told(w, CALLER, seq, &status), 0x1b);
	assert_int_equal(status, 0);
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

static void the_owner_dies_with_the_result(void **state)
{
	it_dies_with_the_result(0);
	it_dies_with_the_result(CALLER);
}

static bool has_all(struct world *w, void *arg)
{
	struct object_id id = world_id(target);
	struct control *c = w->node[*(uint32_t *)arg].core;
	uint32_t slot = slots_find(c, &id);

	return slot != TABLE_SLOT_NONE && c->table->slot[slot].state == OBJECT_SEALED;
}

/* Its builder dies, too, and the next owner refuses it. A node that was out of reach has all of it:
 * that is the result, not another one. */
static void what_was_agreed_to_comes_back(uint32_t next)
{
	struct session_request get;
	struct world *w = half_way(SOURCES, next, -1);
	const struct requester *r;
	struct object_id id = world_id(target);
	uint64_t generation;
	uint32_t host, lone = 1;

	get = world_request(SESSION_GET, target);
	get.timeout_ns = LONG;
	assert_int_equal(at(w, CALLER)->state, REDUCE_RUNNING);
	host = reduce_host(reduce_root(at(w, CALLER), 0));
	assert_true(host != 0 && host != CALLER);
	lone += host == lone;
	world_send(w, lone, 0, &get);
	assert_true(world_until(w, is_decided, &host, LONG));
	w->separated[0] = OWNER;
	w->separated[1] = CALLER;
	assert_true(world_until(w, has_all, &lone, 100 * WORLD_MS));
	generation = at(w, OWNER)->out.generation;
	w->cut[lone] = true;
	world_kill_node(w, host);
	world_run(w, 100 * WORLD_MS); /* that one's death is certain first */
	world_kill_node(w, OWNER);
	world_run(w, 5 * WORLD_SECOND);
	r = requester_find(w->node[CALLER].core, &id);
	assert_true(r && r->generation == 0);
	w->cut[lone] = false;
	is_the_sum(w, CALLER);
	assert_int_equal(known(w, next), generation);
	nothing_is_left(w);
}

static void what_the_owner_agreed_to_comes_back(void **state)
{
	what_was_agreed_to_comes_back(0);
	what_was_agreed_to_comes_back(CALLER);
}

static void delete (struct world *w, uint32_t node, const char *name)
{
	struct session_request r = world_request(SESSION_DELETE, name);

	assert_int_equal(world_call(w, node, 0, &r, LONG)->reply.status, 0);
}

/* An owner that has not heard from the builder agrees to it; NULL: another node builds it. */
static struct world *decided_unseen(uint32_t host)
{
	struct world *w = delegating(0);
	uint32_t holder;

	for (uint32_t i = 0; i < NEEDED; i++)
		put_source(w, i);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	w->separated[0] = OWNER;
	w->separated[1] = host;
	assert_true(world_until(w, is_decided, &holder, LONG));
	if (holder == host)
		return w;
	world_free(w);
	return NULL;
}

static void it_is_deleted_when_it_is_decided(void **state)
{
	struct session_request r;
	struct world *w = NULL;
	uint32_t seq;
	int status;

	for (uint32_t host = 0; !w && host < NEEDED; host++)
		w = decided_unseen(host);
	assert_non_null(w);
	assert_int_equal(known(w, OWNER), 0);
	seq = ask(w, CALLER);
	r = world_request(SESSION_DELETE, target);
	r.id = world_id(target);
	world_send(w, OWNER, 0, &r);
	world_run(w, 100 * WORLD_MS);
	w->separated[0] = w->separated[1];
	told(w, CALLER, seq, &status);
	assert_int_not_equal(status, 0);
	world_run(w, 5 * WORLD_SECOND);
	assert_int_equal(known(w, OWNER), 0);
	assert_int_equal(world_put(w, CALLER, 0, target, SIZE, 9), 0);
	nothing_is_left(w);
}

/* The next owner knows how an earlier reduce into that target has ended, delegated or not. */
static void an_old_result_is_not_told(void **state)
{
	for (int delegated = 0; delegated < 2; delegated++) {
		struct world *w = delegating(0);
		struct session_request source;
		uint32_t seq;
		int status;

		for (uint32_t i = 0; i < NODES; i++)
			w->node[i].core->config.delegate_bytes = delegated ? 1 : UINT64_MAX;
		for (uint32_t i = 0; i < NEEDED; i++)
			put_source(w, i);
		assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), NEEDED);
		w->cut[OWNER] = true;
		world_run(w, 4 * WORLD_SECOND);
		assert_int_equal(at(w, 0)->state, REDUCE_ENDED);
		w->cut[OWNER] = false;
		world_run(w, 4 * WORLD_SECOND);
		delete (w, 1, target);
		delete (w, SLOW, "a3");
		delete (w, 2, "a2");
		world_run(w, 4 * WORLD_SECOND);
		put_source(w, 4);
		source = begin_source(w);
		assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
		world_run(w, 100 * WORLD_MS);
		seq = ask(w, CALLER);
		world_kill_node(w, OWNER);
		world_run(w, 3 * WORLD_SECOND);
		end_source(w, source);
		assert_int_equal(told(w, CALLER, seq, &status), 0x1b);
		assert_int_equal(status, 0);
		world_free(w);
	}
}

/* The owner has forgotten it, and coordinates another one of other sources by now, delegated or
 * not.
 */
static void anothers_result_is_not_told(void **state)
{
	const struct session_reduction two = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = 2, .count = 2};

	for (int delegated = 0; delegated < 2; delegated++) {
		struct world *w = delegating(0);
		uint32_t seq;
		int status;

		w->config.delegate_bytes = delegated ? 1 : UINT64_MAX;
		for (uint32_t i = 0; i < NODES; i++)
			w->node[i].core->config.delegate_bytes = w->config.delegate_bytes;
		for (uint32_t i = 0; i < SLOW; i++)
			put_source(w, i);
		assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
		world_run(w, 100 * WORLD_MS);
		seq = ask(w, CALLER);
		world_run(w, 20 * WORLD_MS);
		w->cut[CALLER] = true;
		world_kill_control(w, OWNER);
		world_run(w, 20 * WORLD_MS);
		world_start_control(w, OWNER);
		world_run(w, 150 * WORLD_MS);
		assert_int_equal(world_reduce(w, 0, 0, target, ids, two, 0, -1), 0);
		w->cut[CALLER] = false;
		told(w, CALLER, seq, &status);
		assert_int_equal(status, -EEXIST);
		world_free(w);
	}
}

/* The next owner has no room for the reduce for a while: neither the requester nor the builder goes
 * on asking at the rate that is meant for a death. */
static void they_wait_longer(void **state)
{
	struct session_request source;
	uint64_t generation, asked[2], secs = 8;
	uint32_t host;
	struct world *w = flowing(0, &source, &generation, &host);
	struct pool *reduces = &w->node[0].core->coordinator->reduces.pool;
	const uint32_t nodes[2] = {CALLER, host};
	struct reduce *room = NULL, *r;

	assert_true(host != 0 && host != CALLER);
	while ((r = pool_take(reduces))) {
		r->superseded = room;
		room = r;
	}
	world_kill_node(w, OWNER);
	end_source(w, source);
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(at(w, CALLER)->state, REDUCE_COMMITTING);
	for (int i = 0; i < 2; i++)
		asked[i] = w->node[nodes[i]].core->cluster->calls.count;
	world_run(w, secs * WORLD_SECOND);
	for (int i = 0; i < 2; i++)
		assert_in_range(w->node[nodes[i]].core->cluster->calls.count - asked[i], secs,
				10 * secs);
	while ((r = room)) {
		room = r->superseded;
		r->superseded = NULL;
		pool_give(reduces, r);
	}
	is_the_sum(w, CALLER);
	assert_int_equal(known(w, 0), generation);
	nothing_is_left(w);
}

/* The coordinator does not reach the requester, for longer than participants live without COMBINE.
 */
static void nobody_answers_for_long(void **state)
{
	struct world *w = delegating(0);
	struct session_request source;

	w->node[OWNER].core->config.delegate_bytes = UINT64_MAX;
	for (uint32_t i = 0; i < SLOW; i++)
		put_source(w, i);
	source = begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	w->separated[0] = OWNER;
	w->separated[1] = CALLER;
	end_source(w, source);
	world_run(w, 25 * WORLD_SECOND);
	assert_int_equal(at(w, OWNER)->state, REDUCE_COMMITTING);
	w->separated[0] = w->separated[1];
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_requester_wakes_with_all_of_it),
		cmocka_unit_test(the_requester_wakes_when_the_owner_is_dead),
		cmocka_unit_test(the_requester_wakes_and_keeps_the_target),
		cmocka_unit_test(the_requester_wakes_and_its_death_was_not_heard_of),
		cmocka_unit_test(the_owner_dies_when_it_has_agreed),
		cmocka_unit_test(the_owner_dies_before_it_says_so),
		cmocka_unit_test(the_owner_dies_when_it_is_asked),
		cmocka_unit_test(the_owner_dies_with_the_result),
		cmocka_unit_test(what_the_owner_agreed_to_comes_back),
		cmocka_unit_test(another_one_is_there),
		cmocka_unit_test(it_is_deleted_when_it_is_decided),
		cmocka_unit_test(nobody_answers_for_long),
		cmocka_unit_test(they_wait_longer),
		cmocka_unit_test(an_old_result_is_not_told),
		cmocka_unit_test(anothers_result_is_not_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
