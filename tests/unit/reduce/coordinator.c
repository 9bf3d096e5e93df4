/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole nodes reduce: every result is compared with a sum made here. */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

#define STORE (UINT64_C(64) << 20)
#define LARGE UINT64_C(4000000)
#define SMALL UINT64_C(60000) /* in stripes it is exchanged as values */

static struct object_id ids[64];

static const char *source_name(unsigned i)
{
	static char name[8];

	snprintf(name, sizeof(name), "s%u", i);
	return name;
}

/* A reduce of s0 .. s(count-1) into "sum", asked for by a node. */
static int reduce_as(struct world *w, uint32_t node, uint32_t count, uint32_t num,
		     uint64_t timeout_ns, uint32_t flags)
{
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = num, .count = count};

	for (uint32_t i = 0; i < count; i++)
		ids[i] = world_id(source_name(i));
	return world_reduce(w, node, 0, "sum", ids, how, flags,
			    timeout_ns == UINT64_MAX ? -1 : (int64_t)timeout_ns);
}

static int reduce_by(struct world *w, uint32_t node, uint32_t count, uint32_t num,
		     uint64_t timeout_ns)
{
	return reduce_as(w, node, count, num, timeout_ns, 0);
}

static uint64_t all_of(uint32_t count)
{
	return (UINT64_C(1) << count) - 1;
}

/* Gets "sum" at a node; 0, an error, or -EIO when it is not the sum of those. */
static int get_sum(struct world *w, uint32_t node, uint64_t size, uint64_t sources)
{
	const uint8_t *bytes;
	uint64_t got;
	int status = world_fetch(w, node, 0, "sum", 20 * (int64_t)WORLD_SECOND, &bytes, &got);

	if (status)
		return status;
	return got == size && world_sums(bytes, size, sources) ? 0 : -EIO;
}

static struct world *some_nodes(uint32_t nodes)
{
	struct world *w = world_new(nodes, 1, STORE, true);

	for (uint32_t i = 0; i < nodes; i++)
		assert_int_equal(world_open(w, i), 0);
	return w;
}

static void put_source(struct world *w, uint32_t node, unsigned i, uint64_t size)
{
	assert_int_equal(world_put(w, node, 0, source_name(i), size, i + 1), 0);
}

static void small_ones_are_added_up_by_the_directory(void **state)
{
	struct world *w = some_nodes(4);

	for (uint32_t i = 0; i < 4; i++)
		put_source(w, i, i, 1024);
	assert_int_equal(reduce_by(w, 1, 4, 4, UINT64_MAX), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(get_sum(w, i, 1024, all_of(4)), 0);
	world_free(w);
}

static uint64_t messages(const struct world *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->nodes; i++)
		sum += control_counters(w->node[i].core)->messages_out;
	return sum;
}

/* Sources of one owner come as one value: 32 sources on 4 nodes need few messages. Late ones come
 * alone, and those that the directory has no room for are streamed, whatever was added up before.
 */
static void small_ones_of_one_owner_come_together(void **state)
{
	for (uint32_t k = 0; k < 12; k++) {
		struct world *w = world_new(4, 1, STORE, true);
		uint32_t count = 32, late = k % 3;
		uint64_t before;

		if (k >= 6) /* of each owner's about eight values a few stay out */
			for (uint32_t i = 0; i < 4; i++) {
				world_kill_control(w, i);
				w->config.inline_bytes = (4 + k / 2) * 1024;
				world_start_control(w, i);
			}
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(world_open(w, i), 0);
		for (uint32_t i = late; i < count; i++)
			put_source(w, i % 4, i, 1024);
		world_run(w, WORLD_SECOND);
		before = messages(w);
		assert_int_equal(reduce_by(w, 1, count, count, UINT64_MAX), 0);
		if (k == 0) {
			assert_int_equal(get_sum(w, 1, 1024, all_of(count)), 0);
			assert_in_range(messages(w) - before, 1, 24);
		}
		for (uint32_t i = 0; i < late; i++)
			put_source(w, i % 4, i, 1024);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(get_sum(w, i, 1024, all_of(count)), 0);
		world_free(w);
	}
}

/* A source of which the directory cannot even note that it is looked for is a missing one. */
static void a_full_directory_stops_nobody_else(void **state)
{
	const struct session_reduction all = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = 3, .count = 3};
	struct session_request r = world_request(SESSION_REDUCED, "late");
	struct world *w = world_new(1, 1, STORE, true);
	struct world_reply *end;

	world_kill_control(w, 0);
	w->config.entries_max = 3; /* two sources and the target */
	world_start_control(w, 0);
	assert_int_equal(world_open(w, 0), 0);
	put_source(w, 0, 0, LARGE);
	put_source(w, 0, 1, LARGE);
	assert_int_equal(reduce_by(w, 0, 3, 2, 5 * WORLD_SECOND), 0);
	assert_int_equal(get_sum(w, 0, LARGE, all_of(2)), 0);
	world_unpin(w, 0, 0);
	r = world_request(SESSION_DELETE, "sum");
	end = world_call(w, 0, 0, &r, 5 * WORLD_SECOND);
	assert_non_null(end);
	assert_int_equal(end->reply.status, 0);
	assert_int_equal(world_reduce(w, 0, 0, "late", ids, all, 0, 2 * (int64_t)WORLD_SECOND), 0);
	r = world_request(SESSION_REDUCED, "late");
	r.timeout_ns = 5 * (int64_t)WORLD_SECOND;
	end = world_call(w, 0, 0, &r, 6 * WORLD_SECOND);
	assert_non_null(end);
	assert_int_equal(end->reply.status, -ETIMEDOUT);
	assert_non_null(strstr(end->reply.text, "no room in the directory"));
	world_free(w);
}

static void large_ones_meet_in_a_tree(void **state)
{
	for (uint32_t nodes = 1; nodes <= 6; nodes++) {
		struct world *w = some_nodes(nodes);

		for (uint32_t i = 0; i < nodes; i++)
			put_source(w, i, i, LARGE);
		assert_int_equal(reduce_by(w, 0, nodes, nodes, UINT64_MAX), 0);
		for (uint32_t i = 0; i < nodes; i++)
			assert_int_equal(get_sum(w, i, LARGE, all_of(nodes)), 0);
		world_free(w);
	}
}

static void several_on_one_node_are_combined_there(void **state)
{
	struct world *w = some_nodes(3);
	uint64_t before;

	for (uint32_t i = 0; i < 9; i++)
		put_source(w, i / 3, i, LARGE);
	before = w->node[1].counters[0].rx_chunk_bytes;
	assert_int_equal(reduce_by(w, 0, 9, 9, UINT64_MAX), 0);
	assert_int_equal(get_sum(w, 0, LARGE, all_of(9)), 0);
	before = w->node[1].counters[0].rx_chunk_bytes - before;
	assert_true(before < LARGE + LARGE / 10); /* one stream came in, or none */
	world_free(w);
}

static void sources_may_come_later(void **state)
{
	struct world *w = some_nodes(4);

	put_source(w, 1, 0, LARGE);
	assert_int_equal(reduce_by(w, 0, 4, 4, UINT64_MAX), 0);
	for (uint32_t i = 1; i < 4; i++) {
		world_run(w, 100 * WORLD_MS);
		put_source(w, (i + 1) % 4, i, LARGE);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(get_sum(w, i, LARGE, all_of(4)), 0);
	world_free(w);
}

static void first_ones_suffice(void **state)
{
	struct world *w = some_nodes(4);

	put_source(w, 2, 1, LARGE);
	put_source(w, 3, 2, LARGE);
	assert_int_equal(reduce_by(w, 0, 4, 2, UINT64_MAX), 0);
	assert_int_equal(get_sum(w, 1, LARGE, 6), 0);
	world_free(w);
}

/* Before anything moves: no node takes a chunk of any source. */
static void what_does_not_hold_is_refused(void **state)
{
	static const uint64_t wrong[] = {LARGE / 2, LARGE + 4, LARGE - 1, 4};

	for (uint32_t flags = 0; flags <= SESSION_FLAG_ALLREDUCE; flags += SESSION_FLAG_ALLREDUCE)
		for (uint32_t k = 0; k < 4 * 3; k++) {
			struct world *w = some_nodes(4);

			for (uint32_t i = 0; i < 3; i++)
				put_source(w, i, i, i == k % 3 ? wrong[k / 3] : LARGE);
			assert_int_equal(reduce_as(w, 3, 3, 3, UINT64_MAX, flags), -EINVAL);
			assert_int_equal(reduce_as(w, 3, 3, 2, UINT64_MAX, flags), -EINVAL);
			assert_int_equal(reduce_as(w, 3, 3, 4, UINT64_MAX, flags), -EINVAL);
			assert_int_equal(reduce_as(w, 3, 0, 0, UINT64_MAX, flags), -EINVAL);
			assert_int_equal(world_put(w, 0, 0, "sum", 100, 1), 0);
			assert_int_equal(reduce_as(w, 3, 1, 1, UINT64_MAX, flags), -EEXIST);
			world_run(w, WORLD_SECOND);
			for (uint32_t i = 0; i < 4; i++)
				assert_int_equal(w->node[i].counters[0].rx_chunks, 0);
			world_free(w);
		}
}

/* All have one size, of which an element is no part. */
static void a_part_of_an_element_is_refused(void **state)
{
	for (uint32_t odd = 1; odd < 4; odd++) {
		struct world *w = some_nodes(3);

		for (uint32_t i = 0; i < 3; i++)
			put_source(w, i, i, LARGE + odd);
		assert_int_equal(reduce_by(w, 2, 3, 3, UINT64_MAX), -EINVAL);
		assert_int_equal(reduce_by(w, 0, 1, 1, UINT64_MAX), -EINVAL);
		world_run(w, WORLD_SECOND);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(w->node[i].counters[0].rx_chunks, 0);
		world_free(w);
	}
}

static void without_its_sources_it_ends_in_time(void **state)
{
	struct world *w = some_nodes(3);
	struct control_usage u;

	put_source(w, 0, 0, LARGE);
	assert_int_equal(reduce_by(w, 2, 2, 2, 2 * WORLD_SECOND), 0);
	world_run(w, 4 * WORLD_SECOND);
	assert_int_equal(world_put(w, 0, 0, "sum", 100, 1), 0); /* its id is free again */
	control_usage(w->node[0].core, &u);
	assert_int_equal(u.stages, 0);
	world_free(w);
}

/* The sources that the coordinator says are in the sum. */
static uint64_t used(struct world *w)
{
	struct object_id target = world_id("sum");
	uint64_t set = 0;

	for (uint32_t n = 0; n < w->nodes; n++) {
		struct control *c = w->node[n].core;
		struct idmap_node *at =
			c ? idmap_find(&c->coordinator->reduces.by_id, &target) : NULL;
		struct reduce *r = at ? idmap_item(at, struct reduce, by_id) : NULL;

		for (uint32_t i = 0; r && i < r->from.count; i++)
			set |= (uint64_t)(r->from.source[i].slot != REDUCE_NONE) << i;
	}
	return set;
}

/* As the library does: a target that began again is asked for again. */
static int get_again(struct world *w, uint32_t node, uint64_t size, uint64_t sources)
{
	int status = -ESTALE;

	for (int i = 0; i < 8 && (status == -ESTALE || status == -ERESTART); i++)
		status = get_sum(w, node, size, sources);
	return status;
}

/* One of five sources' nodes dies at some moment; a reserve takes its place if it is missed. */
static void a_dead_one_is_replaced(void **state)
{
	struct object_id target = world_id("sum");
	uint32_t replaced = 0;

	for (uint32_t k = 0; k < 24; k++) {
		struct world *w = some_nodes(6);
		uint32_t victim = 1 + k % 4;

		w->delay_ns = WORLD_MS;
		victim += ownership_shard(w->node[0].core, &target)->number == victim;
		for (uint32_t i = 0; i < 6; i++)
			put_source(w, i, i, LARGE);
		assert_int_equal(reduce_by(w, 0, 6, 5, UINT64_MAX), 0);
		world_run(w, (1 + k / 4 * 25) * WORLD_MS);
		world_kill_node(w, victim);
		for (uint32_t i = 0; i < 6; i++) {
			uint64_t set;

			if (i == victim)
				continue;
			assert_int_equal(get_again(w, i, LARGE, 0), -EIO);
			set = used(w);
			assert_int_equal(__builtin_popcountll(set), 5);
			replaced += i == 0 && !(set >> victim & 1);
			assert_int_equal(get_sum(w, i, LARGE, set), 0);
		}
		world_free(w);
	}

	assert_in_range(replaced, 8, 23);
}

/* Six sources, five wanted; a node answers nothing for a while, or ever. */
static struct world *silence(uint32_t num, uint64_t for_ns, uint64_t *took_ns)
{
	struct object_id target = world_id("sum");
	struct world *w = some_nodes(6);
	uint32_t victim = 1 + (ownership_shard(w->node[0].core, &target)->number == 1);
	uint64_t begin_ns;

	w->delay_ns = WORLD_MS;
	for (uint32_t i = 0; i < 6; i++)
		put_source(w, i, i, LARGE);
	assert_int_equal(reduce_by(w, 0, 6, num, UINT64_MAX), 0);
	world_run(w, 10 * WORLD_MS);
	begin_ns = w->now_ns;
	w->cut[victim] = true;
	if (for_ns < WORLD_SECOND) {
		world_run(w, for_ns);
		w->cut[victim] = false;
	}
	assert_int_equal(get_again(w, 0, LARGE, 0), -EIO);
	*took_ns = w->now_ns - begin_ns;
	assert_int_equal(get_sum(w, 0, LARGE, used(w)), 0);
	return w;
}

/* Long before its connection is given up. */
static void a_silent_one_is_not_waited_for(void **state)
{
	uint64_t took_ns;
	struct world *w = silence(5, UINT64_MAX, &took_ns);

	assert_in_range(took_ns, 0, 500 * WORLD_MS);
	assert_int_equal(__builtin_popcountll(used(w)), 5);
	world_free(w);
}

/* One that comes back in time is what all others are built on. */
static void without_a_reserve_it_is(void **state)
{
	uint64_t took_ns;
	struct world *w = silence(6, 300 * WORLD_MS, &took_ns);

	assert_in_range(took_ns, 300 * WORLD_MS, 2 * WORLD_SECOND);
	assert_int_equal(used(w), all_of(6));
	world_free(w);
}

static uint64_t sent_by(const struct world *w, uint32_t node)
{
	return w->node[node].counters[0].tx_chunk_bytes;
}

/* An allreduce of one object of each node that all get. */
static void all_get_it(struct world *w, uint64_t size)
{
	uint32_t seq[WORLD_NODES_MAX];

	for (uint32_t i = 0; i < w->nodes; i++) {
		struct session_request r = world_request(SESSION_GET, "sum");

		r.timeout_ns = -1;
		seq[i] = world_send(w, i, 0, &r);
	}
	assert_int_equal(reduce_as(w, 0, w->nodes, w->nodes, UINT64_MAX, SESSION_FLAG_ALLREDUCE),
			 0);
	for (uint32_t i = 0; i < w->nodes; i++)
		assert_non_null(world_wait(w, i, seq[i], 20 * WORLD_SECOND));
	for (uint32_t i = 0; i < w->nodes; i++)
		assert_int_equal(get_again(w, i, size, all_of(w->nodes)), 0);
}

/* But second copies of small ones. */
static void nothing_else_is_left(struct world *w)
{
	uint64_t objects = 0, kept = 0;
	struct control_usage u;

	world_run(w, 2 * WORLD_SECOND);
	for (uint32_t i = 0; i < w->nodes; i++) {
		control_usage(w->node[i].core, &u);
		objects += u.objects;
		kept += control_counters(w->node[i].core)->backups;
		assert_int_equal(u.stages + u.pulls + u.pushes, 0);
	}
	assert_in_range(objects, 2 * w->nodes, 2 * w->nodes + kept);
}

static struct world *one_each(uint32_t nodes, uint64_t size)
{
	struct world *w = some_nodes(nodes);

	for (uint32_t i = 0; i < nodes; i++)
		put_source(w, i, i, size);
	world_run(w, WORLD_SECOND);
	return w;
}

/* Everybody gets the result at the same time; nobody sends more than a ring would. */
static void all_get_it_in_stripes(void **state)
{
	for (uint32_t nodes = 2; nodes <= 6; nodes++) {
		struct world *w = one_each(nodes, LARGE);

		all_get_it(w, LARGE);
		for (uint32_t i = 0; i < nodes; i++)
			assert_true(sent_by(w, i) < 2 * (nodes - 1) * LARGE / nodes + LARGE / 20);
		nothing_else_is_left(w);
		world_free(w);
	}
}

/* Small stripes go from each to each in messages: no streams, and so many messages at most. */
static void small_ones_are_exchanged(void **state)
{
	for (uint32_t nodes = 5; nodes <= 8; nodes++) {
		struct world *w = one_each(nodes, SMALL);
		uint64_t before, pairs = nodes * (nodes - 1);
		struct session_request r;

		all_get_it(w, SMALL); /* who is connected, and how fast, is known now */
		r = world_request(SESSION_DELETE, "sum");
		assert_int_equal(world_call(w, 0, 0, &r, WORLD_SECOND)->reply.status, 0);
		world_run(w, WORLD_SECOND);
		before = messages(w);
		all_get_it(w, SMALL);
		assert_true(messages(w) - before <= 3 * pairs + 20 * nodes);
		for (uint32_t i = 0; i < nodes; i++)
			assert_int_equal(sent_by(w, i), 0);
		nothing_else_is_left(w);
		world_free(w);
	}
}

/* Who directs asks each root whether it is there, a few at a time: its link carries a share of the
 * bytes as any other. The last source is being written, so nobody comes to an end. */
static void roots_are_asked_in_turn(void **state)
{
	struct world *w = some_nodes(8);
	struct session_request r = world_request(SESSION_CREATE, source_name(7));
	uint64_t before;

	for (uint32_t i = 0; i < 7; i++)
		put_source(w, i, i, LARGE);
	r.size = LARGE;
	assert_int_equal(world_call(w, 7, 0, &r, WORLD_SECOND)->reply.status, 0);
	assert_int_equal(reduce_as(w, 0, 8, 8, UINT64_MAX, SESSION_FLAG_ALLREDUCE), 0);
	world_run(w, WORLD_SECOND);
	before = messages(w);
	world_run(w, WORLD_SECOND);
	assert_true(messages(w) - before <= 20 * 4 * 2 + 100); /* and what is said anyway */
	world_free(w);
}

static void stripes_fill_as_sources_come(void **state)
{
	struct world *w = some_nodes(4);

	put_source(w, 1, 0, LARGE);
	put_source(w, 1, 1, LARGE);
	assert_int_equal(reduce_as(w, 0, 5, 5, UINT64_MAX, SESSION_FLAG_ALLREDUCE), 0);
	for (uint32_t i = 2; i < 5; i++) {
		world_run(w, 100 * WORLD_MS);
		put_source(w, i % 4, i, LARGE);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(get_again(w, i, LARGE, all_of(5)), 0);
	world_free(w);
}

/* One of six nodes dies in the middle; five sources are wanted. */
static void mended(uint64_t size, uint32_t k, uint64_t step_ns)
{
	struct object_id target = world_id("sum");
	struct world *w = some_nodes(6);
	struct session_request r = world_request(SESSION_GET, "sum");
	uint32_t victim = 1 + k % 4;
	uint64_t set;

	w->delay_ns = WORLD_MS;
	victim += ownership_shard(w->node[0].core, &target)->number == victim;
	for (uint32_t i = 0; i < 6; i++)
		put_source(w, i, i, size);
	r.timeout_ns = -1;
	world_send(w, 0, 0, &r); /* somebody wants it: until he has it, it is mended */
	assert_int_equal(reduce_as(w, 0, 6, 5, UINT64_MAX, SESSION_FLAG_ALLREDUCE), 0);
	world_run(w, WORLD_MS + k / 4 * step_ns);
	world_kill_node(w, victim);
	assert_int_equal(get_again(w, 0, size, 0), -EIO);
	set = used(w);
	assert_int_equal(__builtin_popcountll(set), 5);
	for (uint32_t i = 0; i < 6; i++)
		if (i != victim)
			assert_int_equal(get_again(w, i, size, set), 0);
	world_free(w);
}

static void stripes_are_mended(void **state)
{
	for (uint32_t k = 0; k < 16; k++) {
		mended(LARGE, k, 10 * WORLD_MS);
		mended(SMALL, k, WORLD_MS);
	}
}

/* A node's dataplane dies, the reserve takes its place, and it comes back when the others have the
 * sum: it takes that, and nothing of what it was building, which nobody needs any more. */
static void who_is_back_takes_the_sum_alone(void **state)
{
	for (uint32_t k = 0; k < 4; k++) {
		struct object_id target = world_id("sum");
		struct world *w = some_nodes(6);
		uint32_t victim = 1 + k;
		uint64_t before, set;

		w->delay_ns = WORLD_MS;
		victim += ownership_shard(w->node[0].core, &target)->number == victim;
		for (uint32_t i = 0; i < 6; i++)
			put_source(w, i, i, LARGE);
		assert_int_equal(reduce_as(w, 0, 6, 5, UINT64_MAX, SESSION_FLAG_ALLREDUCE), 0);
		for (uint32_t i = 0; i < 6; i++) {
			struct session_request r = world_request(SESSION_GET, "sum");

			r.timeout_ns = -1;
			world_send(w, i, 0, &r);
		}
		world_run(w, (5 + 5 * k) * WORLD_MS);
		world_kill_engine(w, victim);
		assert_int_equal(get_again(w, 0, LARGE, 0), -EIO);
		set = used(w);
		for (uint32_t i = 0; i < 6; i++)
			if (i != victim)
				assert_int_equal(get_again(w, i, LARGE, set), 0);
		world_start_engine(w, victim);
		before = w->node[victim].counters[0].rx_chunk_bytes;
		assert_int_equal(get_again(w, victim, LARGE, set), 0);
		world_run(w, 200 * WORLD_MS);
		assert_in_range(w->node[victim].counters[0].rx_chunk_bytes - before, 0,
				LARGE + LARGE / 50);
		assert_int_equal(w->node[victim].core->participant->participants.pool.used, 0);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_ones_are_added_up_by_the_directory),
		cmocka_unit_test(small_ones_of_one_owner_come_together),
		cmocka_unit_test(a_full_directory_stops_nobody_else),
		cmocka_unit_test(large_ones_meet_in_a_tree),
		cmocka_unit_test(several_on_one_node_are_combined_there),
		cmocka_unit_test(sources_may_come_later),
		cmocka_unit_test(first_ones_suffice),
		cmocka_unit_test(what_does_not_hold_is_refused),
		cmocka_unit_test(a_part_of_an_element_is_refused),
		cmocka_unit_test(without_its_sources_it_ends_in_time),
		cmocka_unit_test(a_dead_one_is_replaced),
		cmocka_unit_test(a_silent_one_is_not_waited_for),
		cmocka_unit_test(without_a_reserve_it_is),
		cmocka_unit_test(all_get_it_in_stripes),
		cmocka_unit_test(small_ones_are_exchanged),
		cmocka_unit_test(roots_are_asked_in_turn),
		cmocka_unit_test(stripes_fill_as_sources_come),
		cmocka_unit_test(stripes_are_mended),
		cmocka_unit_test(who_is_back_takes_the_sum_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
