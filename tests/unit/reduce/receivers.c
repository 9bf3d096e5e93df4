/* SPDX-License-Identifier: BSD-3-Clause */
/* A target in stripes when its set of sources is chosen, and some have not got all of it yet. */
#include <errno.h>
#include <stdio.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

/* Nodes 0 to 5 have a source each and want the sum, one of them late; a further source, that nobody
 * has, is not needed. Node 0 asks, node 6 coordinates. */
enum { SLOW = 1, SOURCES = 6, COORDINATOR = 6, NODES = 7 };

#define STORE (UINT64_C(64) << 20)
#define LARGE UINT64_C(4000000)
#define SMALL UINT64_C(60000) /* its stripes are exchanged as values */

static struct object_id ids[SOURCES + 1], target;
static char name[16];

static void wants(struct world *w, uint32_t node)
{
	struct session_request get = world_request(SESSION_GET, name);

	get.timeout_ns = -1;
	world_send(w, node, 0, &get);
}

static struct world *begin_with(uint64_t size)
{
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = SOURCES, .count = SOURCES + 1};
	struct world *w = world_new(NODES, 1, STORE, true);
	unsigned k = 0;

	world_keep_all(w);
	w->delay_ns = WORLD_MS;
	for (uint32_t i = 0; i <= SOURCES; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		ids[i] = world_id(name);
		if (i < SOURCES)
			assert_int_equal(world_put(w, i, 0, name, size, i + 1), 0);
	}
	do {
		snprintf(name, sizeof(name), "sum%u", k++);
		target = world_id(name);
	} while (ownership_shard(w->node[0].core, &target)->number != COORDINATOR);
	assert_int_equal(world_reduce(w, 0, 0, name, ids, how, SESSION_FLAG_ALLREDUCE, -1), 0);
	for (uint32_t i = 0; i < SOURCES; i++)
		if (i != SLOW)
			wants(w, i);
	return w;
}

static struct world *begin(void)
{
	return begin_with(LARGE);
}

static struct reduce *reduced(struct world *w)
{
	return reduce_find(w->node[COORDINATOR].core, &target);
}

/* The set is chosen, and all have the result but one, which is out of reach. */
static struct world *all_but_one(void)
{
	struct world *w = begin();

	for (uint32_t i = 0; i < 10000 && reduced(w)->state < REDUCE_COMMITTING; i++)
		world_run(w, WORLD_MS / 5);
	assert_int_equal(reduced(w)->state, REDUCE_COMMITTING);
	wants(w, SLOW);
	world_run(w, 3 * WORLD_MS / 2);
	w->cut[SLOW] = true;
	world_run(w, 30 * WORLD_MS);
	assert_int_equal(reduced(w)->state, REDUCE_COMMITTED);
	assert_true(reduced(w)->out.finished);
	return w;
}

static void has_all_of(struct world *w, uint32_t node, uint64_t all)
{
	const uint8_t *bytes;
	uint64_t size;

	assert_int_equal(world_fetch(w, node, 0, name, 20 * (int64_t)WORLD_SECOND, &bytes, &size),
			 0);
	assert_int_equal(size, all);
	assert_true(world_sums(bytes, size, (1 << SOURCES) - 1));
}

static void has_all(struct world *w, uint32_t node)
{
	has_all_of(w, node, LARGE);
}

/* A source that does not fit, and that nobody waits for any more, leaves the result alone. */
static void what_comes_too_late_is_not_looked_at(void **state)
{
	struct world *w = all_but_one();

	assert_int_equal(world_put(w, 0, 0, "s6", 400, 9), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(reduced(w)->status, 0);
	for (uint32_t i = 0; i < SOURCES; i++) {
		uint32_t slot = slots_find(w->node[i].core, &target);

		if (i == SLOW)
			continue;
		assert_int_not_equal(slot, TABLE_SLOT_NONE);
		assert_int_equal(w->node[i].table->slot[slot].state, OBJECT_SEALED);
	}
	w->cut[SLOW] = false;
	has_all(w, SLOW);
	world_free(w);
}

static bool is_answered(struct control *c, struct call *call, const struct message *answer)
{
	*(int32_t *)call->owner = answer ? answer->reply.status : -ETIMEDOUT;
	return false;
}

/* What the coordinator answers one who says that it has all of that generation but its end. */
static int32_t says_done(struct world *w, uint32_t node, uint64_t generation)
{
	struct message says = {.kind = MESSAGE_COMBINED};
	struct control *c = w->node[node].core;
	int32_t status = 1;

	says.combined.target = says.combined.id = target;
	says.combined.reduce = reduced(w)->want.number;
	says.combined.generation = generation;
	says.combined.what = MESSAGE_COMBINED_DONE;
	says.combined.part_node = MESSAGE_NODE_NONE;
	rpc_start(c, peers_node(c, COORDINATOR), &says, TABLE_SLOT_NONE, WORLD_SECOND, is_answered,
		  &status);
	world_run(w, 10 * WORLD_MS);
	return status;
}

/* Nobody tells him how it ends, so he must not wait for it. */
static void one_who_does_not_count_is_told_so(void **state)
{
	struct world *w = all_but_one();
	uint64_t generation = reduced(w)->out.generation;
	uint32_t holder = reduced(w)->commit.holder, other = holder == 2 ? 3 : 2;

	for (uint32_t i = 0; i < SOURCES; i++) {
		if (i == SLOW)
			continue;
		assert_int_equal(says_done(w, i, generation), 0);
		assert_int_equal(says_done(w, i, generation - 1), -ESTALE);
	}
	reduce_receivers_node_down(w->node[COORDINATOR].core, reduced(w), other);
	reduce_receivers_node_down(w->node[COORDINATOR].core, reduced(w), holder);
	assert_int_equal(says_done(w, other, generation), -ESTALE);
	assert_int_equal(says_done(w, holder, generation), 0); /* it is told in any case */
	w->cut[SLOW] = false;
	has_all(w, SLOW);
	world_free(w);
}

/* While there is no room for another call. */
static void who_could_not_be_told_is_told_soon(void **state)
{
	struct world *w = all_but_one();
	struct control *c = w->node[COORDINATOR].core;
	struct pool *calls = &c->cluster->calls.pool, before;
	struct reduce_receiver *slow = NULL;

	list_each(l, after, &reduced(w)->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		slow = g->node == SLOW ? g : slow;
	}
	assert_non_null(slow);
	rpc_cancel(c, slow->call);
	slow->call = NULL;
	slow->dirty = true;
	before = *calls;
	calls->fresh = calls->capacity;
	calls->free = POOL_NONE;
	reduce_receivers_tell(c, reduced(w));
	*calls = before;
	assert_null(slow->call);
	world_run(w, 60 * WORLD_MS);
	assert_non_null(slow->call);
	w->cut[SLOW] = false;
	has_all(w, SLOW);
	world_free(w);
}

static void says_silent(struct world *w, uint32_t node, const struct message_combined *m)
{
	struct control *c = w->node[COORDINATOR].core;
	struct message says = {.kind = MESSAGE_COMBINED, .combined = *m};

	says.combined.target = says.combined.id = target;
	says.combined.reduce = reduced(w)->want.number;
	says.combined.generation = reduced(w)->out.generation;
	says.combined.what = MESSAGE_COMBINED_SILENT;
	reduce_combined(c, peers_node(c, node), &says);
}

/* It hears nobody: neither the roots, nor those who have all of it. */
static void hears_nobody(struct world *w, uint32_t node)
{
	for (uint32_t j = 0; j < SOURCES; j++) {
		const struct reduce *r = reduced(w);
		const struct reduce_vertex *root = reduce_root(r, j);
		struct message_combined m = {.part_node = reduce_host(root),
					     .part_id = root->id,
					     .part_generation = root->generation};

		says_silent(w, node, &m);
		m.part_id = target;
		m.part_generation = r->out.generation;
		says_silent(w, node, &m);
	}
}

/* One that hears nobody says so of all. When the root of a stripe dies another one still gets that
 * from one who has all, long before the root is given up. */
static void one_that_hears_nobody_speaks_for_itself(void **state)
{
	struct world *w = all_but_one();
	uint32_t root = 2, deaf = 3;
	uint64_t begin_ns;

	hears_nobody(w, deaf);
	w->cut[root] = true;
	w->cut[SLOW] = false;
	begin_ns = w->now_ns;
	has_all(w, SLOW);
	assert_in_range(w->now_ns - begin_ns, 0, 600 * WORLD_MS);
	world_free(w);
}

/* Whether a node has added up its stripe. */
static bool has_stripe(struct world *w, uint32_t node)
{
	list_each(l, after, &w->node[node].core->participant->participants.active)
	{
		const struct participant *k = list_item(l, struct participant, active);

		if (k->hidden && k->done)
			return true;
	}
	return false;
}

/* The same where stripes are values: one has given its own to all, is out of reach then, and asks a
 * root that is silent by now. */
static void a_silent_root_of_values_delays_little(void **state)
{
	struct world *w = begin_with(SMALL);
	uint32_t root = 2;
	uint64_t begin_ns;

	for (uint32_t i = 0; i < 10000 && !has_stripe(w, SLOW); i++)
		world_run(w, WORLD_MS / 10);
	assert_true(has_stripe(w, SLOW));
	assert_true(reduced(w)->plan.graph.values);
	w->cut[SLOW] = true;
	world_run(w, 30 * WORLD_MS);
	assert_true(reduced(w)->out.finished);
	w->cut[root] = true;
	w->cut[SLOW] = false;
	begin_ns = w->now_ns;
	wants(w, SLOW);
	has_all_of(w, SLOW, SMALL);
	print_message("%.0f ms\n", (double)(w->now_ns - begin_ns) / 1e6);
	assert_in_range(w->now_ns - begin_ns, 0, 400 * WORLD_MS);
	world_free(w);
}

/* They hear what those hear who wait at the directory. */
static void rm_ends_the_gets_that_it_has_taken_over(void **state)
{
	struct session_request r;
	struct world *w = begin();
	const struct world_reply *a;
	uint32_t seq;

	for (uint32_t i = 0; i < 10000 && list_empty(&reduced(w)->out.receivers); i++)
		world_run(w, WORLD_MS / 50);
	assert_false(list_empty(&reduced(w)->out.receivers));
	r = world_request(SESSION_GET, name);
	r.timeout_ns = -1;
	a = world_call(w, SLOW, 0, &r, WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	r = world_request(SESSION_WAIT, NULL);
	r.slot = a->reply.slot;
	r.generation = a->reply.generation;
	r.watermark = LARGE;
	r.timeout_ns = -1;
	seq = world_send(w, SLOW, 0, &r);
	assert_int_not_equal(reduced(w)->state, REDUCE_ENDED);
	r = world_request(SESSION_DELETE, name);
	assert_int_equal(world_call(w, COORDINATOR, 0, &r, 5 * WORLD_SECOND)->reply.status, 0);
	a = world_wait(w, SLOW, seq, 5 * WORLD_SECOND);
	assert_non_null(a);
	assert_int_equal(a->reply.status, -ECANCELED);
	assert_string_equal(a->reply.text, "the reduce was cancelled by rm: reduce again");
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_root_of_values_delays_little),
		cmocka_unit_test(one_that_hears_nobody_speaks_for_itself),
		cmocka_unit_test(what_comes_too_late_is_not_looked_at),
		cmocka_unit_test(who_could_not_be_told_is_told_soon),
		cmocka_unit_test(one_who_does_not_count_is_told_so),
		cmocka_unit_test(rm_ends_the_gets_that_it_has_taken_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
