/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces of which nodes believe different things: the requester, the owner and the holders of a
 * result cannot reach each other for a while, or forget. */
#include "fixtures/control_reduces.h"

enum { OLD = 1 }; /* has a source, or what the target was before */

/* The owner takes the requester for dead, restarts the reduce, and sends RELEASE to participants,
 * which get it when it is back. */
static void the_owner_was_cut_off(void **state)
{
	for (int early = 0; early < 2; early++) {
		struct session_request source;
		uint64_t generation;
		uint32_t host;
		struct world *w = flowing(0, &source, &generation, &host);

		w->cut[OWNER] = true;
		world_run(w, (early ? 1500 : 5000) * WORLD_MS);
		assert_non_null(at(w, 0));
		end_source(w, source);
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), NEEDED);
		world_run(w, 300 * WORLD_MS);
		w->cut[OWNER] = false;
		world_run(w, 10 * WORLD_SECOND);
		is_the_sum(w, CALLER);
		nothing_is_left(w);
	}
}

/* A result of before, whose only holder is cut off: it is another one's to replace. */
static struct world *with_an_old_one(void)
{
	struct world *w = reducing(0);

	assert_int_equal(world_put(w, OLD, 0, target, SIZE, 9), 0);
	w->cut[OLD] = true;
	world_run(w, 5 * WORLD_SECOND);
	return w;
}

static void all_have_the_other(struct world *w)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (w->node[i].core)
			assert_int_equal(world_get(w, i, 0, target, SIZE, 9, LONG), 0);
	nothing_is_left(w);
}

static bool is_sealed(struct world *w, void *arg)
{
	struct object_id id = world_id(target);
	struct control *c = w->node[*(uint32_t *)arg].core;
	uint32_t slot = slots_find(c, &id);

	return slot != TABLE_SLOT_NONE && c->table->slot[slot].state == OBJECT_SEALED;
}

/* When another one is agreed to, and nobody has been told of its end yet. */
static void an_old_one_comes_too_late(void **state)
{
	struct world *w = with_an_old_one();
	uint32_t host;

	for (uint32_t i = 0; i < SOURCES; i++)
		if (i != OLD)
			put_source(w, i);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	assert_true(world_until(w, is_agreed, &host, LONG));
	assert_true(world_until(w, is_sealed, &host, LONG));
	world_run(w, WORLD_MS / 2);
	w->cut[CALLER] = true;
	w->cut[OLD] = false;
	world_run(w, 300 * WORLD_MS);
	w->cut[CALLER] = false;
	world_run(w, 3 * WORLD_SECOND);
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

/* Before that: it stays, whichever node owns it by then. */
static void an_old_one_comes_back(void **state)
{
	for (int dies = 0; dies < 2; dies++) {
		struct world *w = with_an_old_one();

		for (uint32_t i = 0; i < SOURCES; i++)
			if (i != OLD && i != SLOW)
				put_source(w, i);
		begin_source(w);
		assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
		world_run(w, 100 * WORLD_MS);
		assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
		assert_true(known(w, OWNER) != 0);
		if (dies) {
			world_kill_node(w, OWNER);
			world_run(w, 2 * WORLD_SECOND);
			assert_non_null(at(w, 0));
			assert_true(known(w, 0) != 0);
		}
		w->cut[OLD] = false;
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), -EEXIST);
		all_have_the_other(w);
	}
}

/* An object that is put across a partition has a later generation than the one made here. It does
 * not block the reduce that the requester starts when the first one has ended. */
static void another_one_is_not_replaced(void **state)
{
	enum { CUT = 4 };
	struct session_request source;
	uint64_t generation, other = 0;
	uint32_t host;
	struct world *w = flowing(0, &source, &generation, &host);

	w->cut[CUT] = true;
	world_run(w, 4 * WORLD_SECOND);
	assert_int_equal(world_put(w, CUT, 0, target, SIZE, 9), 0);
	w->cut[CUT] = false;
	for (int i = 0; i < 500; i++) {
		world_run(w, 10 * WORLD_MS);
		if (other)
			assert_int_equal(known(w, OWNER), other);
		else if (known(w, OWNER) != generation)
			other = known(w, OWNER);
	}
	assert_true(other > generation);
	all_have_the_other(w);
}

/* It is taken for dead, and is back before its last source is there. */
static void the_requester_stood_still(void **state)
{
	struct session_request source;
	uint64_t generation;
	uint32_t host;
	struct world *w = flowing(0, &source, &generation, &host);

	w->frozen[CALLER] = true;
	world_run(w, 1300 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
	w->frozen[CALLER] = false;
	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
	end_source(w, source);
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

/* The owner forgets the reduce, and another one into the target is begun while the requester stands
 * still, by the owner's node or a third one. */
static void another_one_is_begun_meanwhile(void **state)
{
	const uint32_t others[] = {OWNER, 0};

	for (uint32_t i = 0; i < 2; i++) {
		struct session_request source;
		uint64_t generation;
		uint32_t host, seq;
		int status;
		struct world *w = flowing(0, &source, &generation, &host);

		seq = ask(w, CALLER);
		world_run(w, 10 * WORLD_MS);
		w->frozen[CALLER] = true;
		world_kill_control(w, OWNER);
		world_run(w, 250 * WORLD_MS);
		world_start_control(w, OWNER);
		assert_int_equal(world_open(w, OWNER), 0);
		assert_int_equal(world_reduce(w, others[i], 0, target, ids, how, 0, -1), 0);
		w->frozen[CALLER] = false;
		world_run(w, 3 * WORLD_SECOND);
		assert_int_equal(at(w, OWNER)->want.caller, others[i]);
		end_source(w, source);
		told(w, CALLER, seq, &status);
		assert_int_equal(status, -EEXIST);
		is_the_sum(w, others[i]);
		world_run(w, 10 * WORLD_SECOND); /* for what was built for the first one */
		nothing_is_left(w);
	}
}

/* Nobody asks for it again there, but others wait. */
static void the_requester_has_forgotten_it(void **state)
{
	struct world *w = half_way(SOURCES, 0, -1);

	forget(w);
	is_the_sum(w, 0);
	world_run(w, 10 * WORLD_SECOND); /* for what was built for the first one */
	nothing_is_left(w);
}

/* Nobody knows of it any more, but who builds for it. */
static void both_forget_it(void **state)
{
	struct session_request source;
	uint64_t generation;
	uint32_t host;
	struct world *w = flowing(0, &source, &generation, &host);

	world_kill_node(w, OWNER);
	world_kill_control(w, CALLER);
	world_run(w, 250 * WORLD_MS);
	world_start_control(w, CALLER);
	world_run(w, 15 * WORLD_SECOND);
	nothing_is_left(w);
}

/* Its control stands still until another one is agreed to: what its root says waits meanwhile. */
static void the_requester_wakes_and_agrees(void **state)
{
	struct session_request source;
	uint64_t generation, other, own;
	uint32_t host, others, owns;
	int status;
	struct world *w = flowing(0, &source, &generation, &host);

	others = ask(w, 0);
	owns = ask(w, CALLER);
	world_run(w, 10 * WORLD_MS);
	w->stalled[CALLER] = true;
	end_source(w, source);
	world_run(w, 1500 * WORLD_MS);
	w->stalled[CALLER] = false;
	other = told(w, 0, others, &status);
	assert_int_equal(status, 0);
	own = told(w, CALLER, owns, &status);
	assert_int_equal(status, 0);
	assert_int_equal(other, own);
	is_the_sum(w, CALLER);
	world_run(w, 5 * WORLD_SECOND);
	nothing_is_left(w);
}

/* Its control begins again, and asks how what its client began has ended. */
static void the_requester_begins_again(struct world *w, struct session_reduction what)
{
	forget(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, what, SESSION_FLAG_RETRY, -1), 0);
}

/* The object that the target was before is back, and only the owner has heard of it when the
 * requester forgets all. It would take that for its result: all sources are needed. */
static void what_is_back_is_not_its_result(void **state)
{
	const struct session_reduction all = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = SOURCES, .count = SOURCES};
	struct world *w = with_an_old_one();

	put_source(w, 0);
	assert_int_equal(world_put(w, 0, 0, "a1", SIZE, 2), 0);
	put_source(w, 2);
	begin_source(w);
	put_source(w, 4);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, all, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
	w->cut[OLD] = false;
	the_requester_begins_again(w, all);
	assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), -EEXIST);
	world_run(w, 10 * WORLD_SECOND); /* for what was built for the first one */
	all_have_the_other(w);
}

/* The same where it is another reduce's, and known with its sources. */
static struct world *with_another_reduce(struct session_request *source, uint32_t *host)
{
	const struct session_reduction first = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = 2, .count = 2};
	struct world *w = reducing(0);

	put_source(w, 0);
	put_source(w, 1);
	assert_int_equal(world_reduce(w, OLD, 0, target, ids, first, 0, -1), 0);
	assert_int_equal(world_reduced(w, OLD, 0, target, LONG, NULL), 2);
	world_run(w, WORLD_SECOND);
	for (*host = 0; *host < NODES && !is_sealed(w, host);)
		++*host;
	assert_true(*host < NODES && *host != OWNER && *host != CALLER);
	w->cut[*host] = true;
	world_run(w, 5 * WORLD_SECOND);
	put_source(w, 2);
	*source = begin_source(w);
	put_source(w, 4);
	assert_int_equal(world_put(w, 2, 0, *host ? "b0" : "b1", SIZE, 7), 0);
	ids[*host] = world_id(*host ? "b0" : "b1");
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
	w->cut[*host] = false;
	return w;
}

/* Whether the requester restarts at once, or when its reduce has ended by that. */
static void what_is_back_is_of_other_sources(void **state)
{
	for (int late = 0; late < 2; late++) {
		struct object_id used[SOURCES];
		struct session_request source;
		uint32_t host;
		struct world *w = with_another_reduce(&source, &host);

		world_run(w, late * 5 * WORLD_SECOND);
		the_requester_begins_again(w, how);
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, used), -EEXIST);
		assert_int_equal(world_reduced(w, 2, 0, target, LONG, used), 2);
		end_source(w, source);
		world_run(w, 10 * WORLD_SECOND);
		nothing_is_left(w);
	}
}

/* What a client has begun to put on the other side of a cut is not to be waited for. */
static void what_is_being_put_gives_way(void **state)
{
	enum { CUT = 4 };
	struct session_request other = world_request(SESSION_CREATE, target);
	struct world *w = half_way(1, 0, -1);

	w->cut[CUT] = true;
	world_run(w, 4 * WORLD_SECOND);
	other.size = SIZE;
	assert_int_equal(world_call(w, CUT, 0, &other, WORLD_SECOND)->reply.status, 0);
	w->cut[CUT] = false;
	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(known(w, OWNER), 0);
	for (uint32_t i = 1; i < SOURCES; i++)
		put_source(w, i);
	is_the_sum(w, CALLER);
	nothing_is_left(w);
}

/* The requester builds the target, and waits for its last source. */
static struct world *built_here(uint32_t next, struct session_request *source)
{
	struct world *w = reducing(next);

	assert_int_equal(world_put(w, CALLER, 0, "a0", SIZE, 1), 0);
	put_source(w, 1);
	put_source(w, 2);
	*source = begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_RUNNING);
	assert_int_equal(reduce_host(reduce_root(at(w, OWNER), 0)), CALLER);
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

static void delete (struct world *w, uint32_t node, const char *name)
{
	struct session_request r = world_request(SESSION_DELETE, name);

	assert_int_equal(world_call(w, node, 0, &r, LONG)->reply.status, 0);
}

/* The next owner knows how an earlier reduce into that target has ended. */
static void an_old_result_is_not_told(void **state)
{
	struct world *w = reducing(0);
	struct session_request source;
	uint32_t seq;
	int status;

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

/* The owner has forgotten it, and coordinates another one of other sources by now. */
static void anothers_result_is_not_told(void **state)
{
	const struct session_reduction two = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = 2, .count = 2};

	struct world *w = reducing(0);
	uint32_t seq;
	int status;

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

/* The coordinator does not reach the requester, for longer than participants live without COMBINE.
 */
static void nobody_answers_for_long(void **state)
{
	struct world *w = reducing(0);
	struct session_request source;

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
		cmocka_unit_test(the_owner_was_cut_off),
		cmocka_unit_test(an_old_one_comes_too_late),
		cmocka_unit_test(an_old_one_comes_back),
		cmocka_unit_test(another_one_is_not_replaced),
		cmocka_unit_test(the_requester_stood_still),
		cmocka_unit_test(another_one_is_begun_meanwhile),
		cmocka_unit_test(the_requester_has_forgotten_it),
		cmocka_unit_test(both_forget_it),
		cmocka_unit_test(the_requester_wakes_and_agrees),
		cmocka_unit_test(what_is_back_is_not_its_result),
		cmocka_unit_test(what_is_back_is_of_other_sources),
		cmocka_unit_test(what_is_being_put_gives_way),
		cmocka_unit_test(the_requester_wakes_with_all_of_it),
		cmocka_unit_test(an_old_result_is_not_told),
		cmocka_unit_test(anothers_result_is_not_told),
		cmocka_unit_test(nobody_answers_for_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
