/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a reduce: whichever node dies between the moment when the root has all of the result
 * and the moment when all know, each result that is read to its end is of the reported set.
 */
#include <errno.h>
#include <stdio.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

/* Nodes 0 to 4 have a source each, of which four are needed; the owner of the target is 5, the
 * requester 6. All but 5 want the sum at once. */
enum { SOURCES = 5, NEEDED = 4, COORDINATOR = 5, CALLER = 6, NODES = 7 };

#define SIZE  UINT64_C(2000000)
#define STORE (UINT64_C(32) << 20)
/* A death is known after 0.85 s; the rest is for all that follows. */
#define REPLACED_NS (1200 * WORLD_MS)

static struct object_id ids[SOURCES];
static char target[16];
static uint32_t seq[NODES];

static struct world *some_nodes(void)
{
	struct world *w = world_new(NODES, 1, STORE, true);
	uint32_t k = 0, shard;

	world_keep_all(w);
	w->delay_ns = WORLD_MS;
	do {
		struct object_id id;

		snprintf(target, sizeof(target), "sum%u", k++);
		id = world_id(target);
		shard = ownership_shard(w->node[0].core, &id)->number;
	} while (shard != COORDINATOR);
	return w;
}

static void source_name(char name[8], uint32_t i)
{
	snprintf(name, 8, "s%u", i);
}

static void put_source(struct world *w, uint32_t node, uint32_t i)
{
	char name[8];

	source_name(name, i);
	assert_int_equal(world_put(w, node, 0, name, SIZE, i + 1), 0);
}

static const struct session_reduction how = {
	.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = NEEDED, .count = SOURCES};

/* Only so many sources are there yet. */
static struct world *begin_some(uint32_t sources, uint32_t flags, int64_t timeout_ns)
{
	struct world *w = some_nodes();

	for (uint32_t i = 0; i < SOURCES; i++) {
		char name[8];

		source_name(name, i);
		ids[i] = world_id(name);
		if (i < sources)
			put_source(w, i, i);
	}
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, flags, timeout_ns), 0);
	return w;
}

static struct world *begin_alone(uint32_t flags)
{
	return begin_some(SOURCES, flags, -1);
}

/* The same, and all but the coordinator want it. */
static struct world *begin(uint32_t flags)
{
	struct world *w = begin_alone(flags);

	for (uint32_t i = 0; i < NODES; i++) {
		struct session_request r = world_request(SESSION_GET, target);

		if (i == COORDINATOR)
			continue;
		r.timeout_ns = -1;
		seq[i] = world_send(w, i, 0, &r);
	}
	return w;
}

static struct reduce *coordinated(struct world *w)
{
	struct object_id id = world_id(target);

	return w->node[COORDINATOR].core ? reduce_find(w->node[COORDINATOR].core, &id) : NULL;
}

/* The node that has all of the target, or NONE. */
static uint32_t ready(struct world *w)
{
	struct object_id id = world_id(target);

	for (uint32_t i = 0; i < NODES; i++) {
		struct control *c = w->node[i].core;
		struct idmap_node *at =
			c ? idmap_find(&c->participant->participants.by_id, &id) : NULL;

		if (at && idmap_item(at, struct participant, by_id)->done)
			return i;
	}
	return REDUCE_NONE;
}

static bool is_ready(struct world *w, void *arg)
{
	return ready(w) != REDUCE_NONE;
}

static bool is_agreed(struct world *w, void *arg)
{
	struct object_id id = world_id(target);
	struct requester *r = requester_find(w->node[CALLER].core, &id);

	return r && r->generation;
}

static bool has_read(struct world *w, uint32_t node)
{
	struct object_id id = world_id(target);
	uint32_t slot = w->node[node].core ? slots_find(w->node[node].core, &id) : TABLE_SLOT_NONE;
	const struct object_slot *s = &w->node[node].table->slot[slot % WORLD_TABLE_SLOTS];

	return slot != TABLE_SLOT_NONE && s->watermark == s->size;
}

static uint32_t read_to_the_end(struct world *w)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < NODES; i++)
		count += has_read(w, i);
	return count;
}

static bool is_decided(struct world *w, void *arg)
{
	return coordinated(w)->state == REDUCE_COMMITTED;
}

static bool is_lost(struct world *w, void *arg)
{
	return is_decided(w, arg) && coordinated(w)->commit.holder == REDUCE_NONE;
}

static bool is_copied(struct world *w, void *arg)
{
	return read_to_the_end(w) > 1;
}

static void is_sum_of(const uint8_t *bytes, const struct object_id *used)
{
	uint64_t set = 0;

	for (uint32_t i = 0; i < NEEDED; i++) {
		uint32_t source = 0;

		while (!object_id_equal(&ids[source], &used[i]))
			source++;
		set |= UINT64_C(1) << source;
	}
	assert_true(world_sums(bytes, SIZE, set));
}

/* All that live have one result, and it is what is reported. */
static void all_agree(struct world *w, uint32_t dead)
{
	struct object_id used[SOURCES], told[SOURCES];

	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(20 * WORLD_SECOND), used),
			 NEEDED);
	for (uint32_t i = 0; i < NODES; i++) {
		const uint8_t *bytes;
		uint64_t size;
		int status = -ERESTART;

		if (i == dead)
			continue;
		for (int tries = 0; tries < 8 && (status == -ERESTART || status == -ESTALE);
		     tries++)
			status = world_fetch(w, i, 0, target, 20 * (int64_t)WORLD_SECOND, &bytes,
					     &size);
		assert_int_equal(status, 0);
		assert_int_equal(size, SIZE);
		is_sum_of(bytes, used);
		assert_int_equal(world_reduced(w, i, 0, target, (int64_t)(20 * WORLD_SECOND), told),
				 NEEDED);
		assert_memory_equal(told, used, NEEDED * sizeof(*used));
	}
}

/* Its DONE dies with it: another set is built, and nobody had all of the first one. */
static void a_root_dies_before_it_is_heard(uint32_t flags)
{
	struct world *w = begin(flags);
	uint32_t root;

	assert_true(world_until(w, is_ready, NULL, WORLD_SECOND));
	root = ready(w);
	assert_int_not_equal(root, CALLER);
	assert_int_equal(coordinated(w)->state, REDUCE_RUNNING);
	assert_int_equal(read_to_the_end(w), 0);
	world_kill_node(w, root);
	world_run(w, WORLD_SECOND);
	assert_true(coordinated(w)->out.generation > 0);
	all_agree(w, root);
	world_free(w);
}

static void a_root_dies(void **state)
{
	a_root_dies_before_it_is_heard(0);
}

static void one_that_puts_stripes_together_dies(void **state)
{
	a_root_dies_before_it_is_heard(SESSION_FLAG_ALLREDUCE);
}

/* Right after the requester has agreed: the result stands, and so does its set of sources. */
static void coordinator_dies(uint32_t flags, uint64_t later_ns)
{
	struct world *w = begin(flags);
	uint64_t died_ns, told;

	assert_true(world_until(w, is_agreed, NULL, WORLD_SECOND));
	assert_int_equal(coordinated(w)->state, REDUCE_COMMITTING);
	world_run(w, later_ns);
	died_ns = w->now_ns;
	world_kill_node(w, COORDINATOR);
	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(20 * WORLD_SECOND), NULL),
			 NEEDED);
	/* silence, confirmation, suspicion; a question after the end goes to the dead node first */
	assert_in_range(w->now_ns - died_ns, 0, REPLACED_NS);
	all_agree(w, COORDINATOR);
	told = control_counters(w->node[CALLER].core)->messages_out;
	world_run(w, WORLD_SECOND);
	/* the next one knows how it has ended: nothing is said again and again */
	assert_in_range(control_counters(w->node[CALLER].core)->messages_out - told, 0, 50);
	world_free(w);
}

static void a_coordinator_dies(void **state)
{
	for (uint64_t later_ns = 0; later_ns < 8 * WORLD_MS; later_ns += WORLD_MS)
		coordinator_dies(0, later_ns);
}

static void a_coordinator_of_stripes_dies(void **state)
{
	for (uint64_t later_ns = 0; later_ns < 8 * WORLD_MS; later_ns += WORLD_MS)
		coordinator_dies(SESSION_FLAG_ALLREDUCE, later_ns);
}

/* In the middle, for good: the next one begins as soon as the death is known, not when all have had
 * the time to tell it what they hold, and what was built before is in nobody's way. */
static void a_coordinator_dies_half_way(uint32_t flags)
{
	struct world *w = begin(flags);
	uint64_t died_ns;

	world_run(w, 10 * WORLD_MS);
	assert_int_equal(coordinated(w)->state, REDUCE_RUNNING);
	died_ns = w->now_ns;
	world_kill_node(w, COORDINATOR);
	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(20 * WORLD_SECOND), NULL),
			 NEEDED);
	print_message("a coordinator's death costs %.0f ms\n", (double)(w->now_ns - died_ns) / 1e6);
	assert_in_range(w->now_ns - died_ns, 0, REPLACED_NS);
	all_agree(w, COORDINATOR);
	world_free(w);
}

static void a_coordinator_dies_in_the_middle(void **state)
{
	a_coordinator_dies_half_way(0);
	a_coordinator_dies_half_way(SESSION_FLAG_ALLREDUCE);
}

/* Its control begins again, and with it the reduce, when a node has all of the target but what it
 * holds: that is given up as soon as another one is being made. */
static void a_coordinator_begins_again(void **state)
{
	struct world *w = begin(0);
	uint64_t died_ns;

	assert_true(world_until(w, is_ready, NULL, WORLD_SECOND));
	died_ns = w->now_ns;
	world_kill_control(w, COORDINATOR);
	world_run(w, 250 * WORLD_MS);
	world_start_control(w, COORDINATOR);
	world_open(w, COORDINATOR);
	all_agree(w, REDUCE_NONE);
	/* 0.25 s until it is back; waiting for its coordinator_lost_ns would cost one more */
	assert_in_range(w->now_ns - died_ns, 0, WORLD_SECOND);
	world_free(w);
}

/* The requester dies while it is asked: the coordinator decides. */
static void the_requester_dies(void **state)
{
	struct object_id used[SOURCES];
	struct world *w = begin(0);

	assert_true(world_until(w, is_ready, NULL, WORLD_SECOND));
	world_kill_node(w, CALLER);
	assert_int_equal(world_reduced(w, 0, 0, target, (int64_t)(20 * WORLD_SECOND), used),
			 NEEDED);
	for (uint32_t i = 0; i < COORDINATOR; i++) {
		const uint8_t *bytes;
		uint64_t size;

		assert_int_equal(
			world_fetch(w, i, 0, target, 20 * (int64_t)WORLD_SECOND, &bytes, &size), 0);
		is_sum_of(bytes, used);
	}
	world_free(w);
}

/* The requester is cut off while it is asked, and restarts the reduce on its side: when its time is
 * over it removes nothing that the others have decided. */
static void the_requester_is_cut_off(void **state)
{
	struct object_id used[SOURCES];
	struct world *w = begin_some(NEEDED, 0, 5 * (int64_t)WORLD_SECOND);
	const uint8_t *bytes;
	uint64_t size;

	assert_true(world_until(w, is_ready, NULL, WORLD_SECOND));
	w->cut[CALLER] = true;
	assert_int_equal(world_reduced(w, 0, 0, target, (int64_t)(20 * WORLD_SECOND), used),
			 NEEDED);
	world_run(w, 2 * WORLD_SECOND);
	put_source(w, CALLER, NEEDED);
	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(20 * WORLD_SECOND), NULL),
			 -ETIMEDOUT);
	w->cut[CALLER] = false;
	world_run(w, 3 * WORLD_SECOND);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(
			world_fetch(w, i, 0, target, 2 * (int64_t)WORLD_SECOND, &bytes, &size), 0);
		is_sum_of(bytes, used);
	}
	world_free(w);
}

/* The builder comes back without the result before another holder can announce it. */
static void a_copy_that_is_told_late_counts(void **state)
{
	struct object_id used[SOURCES];
	struct world *w = begin(0);
	uint32_t root, reader = NODES;
	const uint8_t *bytes;
	uint64_t size;

	assert_true(world_until(w, is_decided, NULL, WORLD_SECOND));
	root = ready(w);
	w->cut[COORDINATOR] = true; /* it does not hear that the root has let it go */
	assert_true(world_until(w, is_copied, NULL, WORLD_SECOND));
	world_run(w, 20 * WORLD_MS);
	for (uint32_t i = 0; i < NODES; i++)
		if (i != root && has_read(w, i))
			w->cut[reader = i] = true;
	world_run(w, 5 * WORLD_MS); /* what is under way */
	w->cut[COORDINATOR] = false;
	world_kill_node(w, root);
	world_start_engine(w, root);
	world_start_control(w, root);
	assert_true(world_until(w, is_lost, NULL, 500 * WORLD_MS));
	memset(w->cut, 0, sizeof(w->cut));
	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(5 * WORLD_SECOND), used),
			 NEEDED);
	assert_int_equal(world_fetch(w, reader, 0, target, WORLD_SECOND, &bytes, &size), 0);
	is_sum_of(bytes, used);
	world_free(w);
}

/* No call is free at the coordinator when the requester must be asked: it is asked later, and
 * nothing is decided without it, nor taken for lost. */
static void a_full_table_decides_nothing(void **state)
{
	static struct call *taken[256];
	struct world *w = begin(0);
	struct pool *pool = &w->node[COORDINATOR].core->cluster->calls.pool;
	uint32_t count = 0;

	assert_true(world_until(w, is_ready, NULL, WORLD_SECOND));
	assert_in_range(pool->capacity - pool->used, 1, sizeof(taken) / sizeof(*taken));
	while (pool->used < pool->capacity)
		taken[count++] = pool_take(pool);
	world_run(w, 250 * WORLD_MS);
	assert_non_null(coordinated(w));
	assert_int_equal(coordinated(w)->state, REDUCE_COMMITTING);
	assert_false(is_agreed(w, NULL));
	assert_int_equal(read_to_the_end(w), 0);
	while (count > 0)
		pool_give(pool, taken[--count]);
	all_agree(w, REDUCE_NONE);
	world_free(w);
}

/* Nobody gets a target in stripes: it is put together all the same, and may be deleted. */
static void stripes_without_anybody_come_to_an_end(void **state)
{
	struct world *w = begin_alone(SESSION_FLAG_ALLREDUCE);
	struct session_request r;
	struct control_usage u;

	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(5 * WORLD_SECOND), NULL),
			 NEEDED);
	world_run(w, WORLD_SECOND);
	r = world_request(SESSION_STAT, target);
	assert_int_equal(world_call(w, 0, 0, &r, 5 * WORLD_SECOND)->reply.status, 0);
	for (uint32_t i = 0; i < NODES; i++) {
		control_usage(w->node[i].core, &u);
		assert_int_equal(u.objects, (i < SOURCES) + (i == CALLER)); /* no stripes */
		assert_int_equal(u.reduces + u.participants + u.stages, 0);
	}
	r = world_request(SESSION_DELETE, target);
	assert_int_equal(world_call(w, 1, 0, &r, 5 * WORLD_SECOND)->reply.status, 0);
	world_free(w);
}

/* ---- two into one target --------------------------------------------------------------------- */

/* There is a result, on one node only, which is cut off then. Returns that node. */
static uint32_t cut_off(struct world *w)
{
	struct object_id used[SOURCES];
	uint32_t holder = 0;

	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(5 * WORLD_SECOND), used),
			 NEEDED);
	while (!has_read(w, holder))
		holder++;
	assert_int_equal(read_to_the_end(w), 1);
	assert_in_range(holder, 0, NEEDED - 1);
	w->cut[holder] = true;
	world_run(w, 2 * WORLD_SECOND);
	return holder;
}

static uint64_t generation_at(struct world *w, uint32_t node)
{
	struct object_id id = world_id(target);

	return w->node[node].table->slot[slots_find(w->node[node].core, &id)].generation;
}

static void one_is_there(struct world *w, uint64_t generation)
{
	const uint8_t *bytes;
	uint64_t size;

	for (uint32_t i = 0; i < NODES; i++) {
		assert_int_equal(
			world_fetch(w, i, 0, target, 5 * (int64_t)WORLD_SECOND, &bytes, &size), 0);
		assert_int_equal(size, SIZE);
		assert_int_equal(generation_at(w, i), generation);
	}
}

/* A result that was told of comes back before the second one is decided: the second one ends. */
static void a_result_that_comes_back_stays(void **state)
{
	struct world *w = begin_some(NEEDED, 0, -1);
	struct object_id used[SOURCES], again[SOURCES];
	uint32_t holder, other;
	uint64_t first;

	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(5 * WORLD_SECOND), used),
			 NEEDED);
	holder = cut_off(w);
	other = (holder + 1) % NEEDED;
	first = generation_at(w, holder);
	assert_int_equal(world_reduce(w, other, 0, target, ids, how, 0, -1), 0);
	world_run(w, WORLD_SECOND);
	assert_int_equal(coordinated(w)->state, REDUCE_RUNNING);
	w->cut[holder] = false;
	assert_int_equal(world_reduced(w, other, 0, target, (int64_t)(20 * WORLD_SECOND), NULL),
			 -EEXIST);
	one_is_there(w, first);
	for (uint32_t i = 0; i < NODES; i++) { /* every node hears of the one that stays */
		assert_int_equal(world_reduced(w, i, 0, target, (int64_t)WORLD_SECOND, again),
				 NEEDED);
		assert_memory_equal(again, used, sizeof(*used) * NEEDED);
	}
	world_free(w);
}

/* The same when the node that has asked for it has forgotten: only the coordinator knows. */
static void a_result_that_comes_back_is_known(void **state)
{
	struct world *w = begin_some(NEEDED, 0, -1);
	struct object_id used[SOURCES], again[SOURCES];
	uint32_t holder, other;

	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(5 * WORLD_SECOND), used),
			 NEEDED);
	holder = cut_off(w);
	other = (holder + 1) % NEEDED;
	world_kill_control(w, CALLER);
	world_start_control(w, CALLER);
	world_run(w, WORLD_SECOND);
	assert_int_equal(world_reduce(w, other, 0, target, ids, how, 0, -1), 0);
	world_run(w, WORLD_SECOND);
	w->cut[holder] = false;
	assert_int_equal(world_reduced(w, other, 0, target, (int64_t)(20 * WORLD_SECOND), NULL),
			 -EEXIST);
	world_run(w, WORLD_SECOND);
	for (uint32_t i = 0; i < NODES; i++) {
		if (i == CALLER)
			continue;
		assert_int_equal(world_reduced(w, i, 0, target, (int64_t)WORLD_SECOND, again),
				 NEEDED);
		assert_memory_equal(again, used, sizeof(*used) * NEEDED);
	}
	world_free(w);
}

/* It comes back too late. */
static void a_result_that_was_replaced_goes(void **state)
{
	struct world *w = begin_some(NEEDED, 0, -1);
	uint32_t holder = cut_off(w), other = (holder + 1) % NEEDED;
	uint64_t first = generation_at(w, holder), second;

	put_source(w, NEEDED, NEEDED);
	assert_int_equal(world_reduce(w, other, 0, target, ids, how, 0, -1), 0);
	assert_int_equal(world_reduced(w, other, 0, target, (int64_t)(20 * WORLD_SECOND), NULL),
			 NEEDED);
	second = coordinated(w)->out.generation;
	assert_true(second > first);
	w->cut[holder] = false;
	world_run(w, 3 * WORLD_SECOND);
	one_is_there(w, second);
	world_free(w);
}

/* It was deleted meanwhile: a node that still has it is no obstacle to the next one. */
static void a_result_that_was_deleted_is_made_again(void **state)
{
	struct session_request r = world_request(SESSION_DELETE, target);
	struct world *w = begin_some(NEEDED, 0, -1);
	uint32_t holder = cut_off(w), other = (holder + 1) % NEEDED;
	const struct session_reduction all = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = NEEDED, .count = NEEDED};

	assert_int_equal(world_call(w, other, 0, &r, 5 * WORLD_SECOND)->reply.status, 0);
	assert_int_equal(world_reduce(w, other, 0, target, ids, all, 0, -1), 0);
	world_run(w, WORLD_SECOND);
	w->cut[holder] = false;
	assert_int_equal(world_reduced(w, other, 0, target, (int64_t)(20 * WORLD_SECOND), NULL),
			 NEEDED);
	one_is_there(w, coordinated(w)->out.generation);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_dies),
		cmocka_unit_test(one_that_puts_stripes_together_dies),
		cmocka_unit_test(a_coordinator_dies),
		cmocka_unit_test(a_coordinator_of_stripes_dies),
		cmocka_unit_test(a_coordinator_dies_in_the_middle),
		cmocka_unit_test(a_coordinator_begins_again),
		cmocka_unit_test(the_requester_dies),
		cmocka_unit_test(the_requester_is_cut_off),
		cmocka_unit_test(a_copy_that_is_told_late_counts),
		cmocka_unit_test(a_full_table_decides_nothing),
		cmocka_unit_test(stripes_without_anybody_come_to_an_end),
		cmocka_unit_test(a_result_that_comes_back_stays),
		cmocka_unit_test(a_result_that_comes_back_is_known),
		cmocka_unit_test(a_result_that_was_replaced_goes),
		cmocka_unit_test(a_result_that_was_deleted_is_made_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
