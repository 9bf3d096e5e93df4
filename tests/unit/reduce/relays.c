/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receiver gets a sum from which: it leaves a silent feeder, goes back to it, or stays. */
#include <stdio.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

/* Nodes 0 to 5 have a source each and get the sum; that of node 6, the coordinator, comes last. The
 * grid has width 3: the receiver in slot 4 is fed by the one before it and the third before it. */
enum { SOURCES = 7, COORDINATOR = 6, NODES = 7, ROW = 3, SLOT = 4 };

#define STORE (UINT64_C(64) << 20)
#define LARGE UINT64_C(4000000)

static struct object_id ids[SOURCES], target;
static char name[16];

static struct reduce *reduced(struct world *w)
{
	return reduce_find(w->node[COORDINATOR].core, &target);
}

static struct world *begin(void)
{
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = SOURCES, .count = SOURCES};
	struct world *w = world_new(NODES, 1, STORE, true);
	struct session_request get;
	unsigned k = 0;

	world_keep_all(w);
	w->delay_ns = WORLD_MS;
	for (uint32_t i = 0; i < SOURCES; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		ids[i] = world_id(name);
		if (i < SOURCES - 1)
			assert_int_equal(world_put(w, i, 0, name, LARGE, i + 1), 0);
	}
	do {
		snprintf(name, sizeof(name), "sum%u", k++);
		target = world_id(name);
	} while (ownership_shard(w->node[0].core, &target)->number != COORDINATOR);
	assert_int_equal(world_reduce(w, 0, 0, name, ids, how, SESSION_FLAG_ALLREDUCE, -1), 0);
	get = world_request(SESSION_GET, name);
	get.timeout_ns = -1;
	for (uint32_t i = 0; i < SOURCES - 1; i++)
		world_send(w, i, 0, &get);
	world_run(w, 50 * WORLD_MS);
	assert_non_null(reduced(w)->plan.graph.feeder);
	assert_int_equal(distribution_width(reduced(w)->plan.graph.slots), ROW);
	return w;
}

static uint32_t host(struct world *w, uint32_t slot)
{
	return reduced(w)->plan.run.slot[slot].host;
}

static struct participant *combined(struct world *w, uint32_t node)
{
	return participant_of(w->node[node].core, &target);
}

/* Whether a node is to have some of the sum from another one that gets it. */
static bool is_fed(struct world *w, uint32_t node, uint32_t by)
{
	list_each(l, after, &combined(w, node)->parts)
	{
		const struct part *p = list_item(l, struct part, of_participant);

		if (p->node->number == by && object_id_equal(&p->id, &target))
			return true;
	}
	return false;
}

/* How often it goes back to it in that time. */
static uint32_t returns(struct world *w, uint32_t node, uint32_t to, uint64_t for_ns)
{
	bool before = is_fed(w, node, to);
	uint32_t count = 0;

	for (uint64_t end = w->now_ns + for_ns; w->now_ns < end;) {
		bool is;

		world_run(w, WORLD_MS);
		is = is_fed(w, node, to);
		count += is && !before;
		before = is;
	}
	return count;
}

/* The last source comes, and all that can have the sum get it. Returns how long it takes. */
static uint64_t ends(struct world *w)
{
	uint64_t begin_ns;

	assert_int_equal(world_put(w, COORDINATOR, 0, "s6", LARGE, SOURCES), 0);
	begin_ns = w->now_ns;
	for (uint32_t i = 0; i < SOURCES - 1; i++) {
		const uint8_t *bytes;
		uint64_t size;

		assert_int_equal(
			world_fetch(w, i, 0, name, 20 * (int64_t)WORLD_SECOND, &bytes, &size), 0);
		assert_int_equal(size, LARGE);
		assert_true(world_sums(bytes, size, (1 << SOURCES) - 1));
	}
	return w->now_ns - begin_ns;
}

/* Two that do not reach each other, and are reached by all others: one comes back more and more
 * seldom, and has all of it from the roots. */
static void one_that_is_out_of_reach_of_one_only(void **state)
{
	struct world *w = begin();
	uint32_t node = host(w, SLOT), by = host(w, SLOT - ROW);
	uint32_t soon, later;
	uint64_t took;

	assert_true(is_fed(w, node, by));
	assert_true(is_fed(w, node, host(w, SLOT - 1)));
	w->separated[0] = node;
	w->separated[1] = by;
	soon = returns(w, node, by, WORLD_SECOND);
	later = returns(w, node, by, 6 * WORLD_SECOND);
	print_message("back %u times in a second, then %u in six\n", soon, later);
	assert_in_range(soon, 1, 3);
	assert_in_range(later, 0, 3);
	took = ends(w);
	print_message("%.0f ms\n", (double)took / 1e6);
	assert_in_range(took, 0, 2 * WORLD_SECOND);
	world_free(w);
}

/* That another one, who it has left as well, says nothing to anybody does not change that. */
static void one_that_is_silent_beside_it(void **state)
{
	struct world *w = begin();
	uint32_t node = host(w, SLOT), by = host(w, SLOT - ROW), silent = host(w, SLOT - 1), soon;

	w->stalled[silent] = true;
	w->separated[0] = node;
	w->separated[1] = by;
	soon = returns(w, node, by, WORLD_SECOND);
	print_message("back %u times\n", soon);
	assert_in_range(soon, 0, 3);
	assert_in_range(returns(w, node, silent, WORLD_SECOND), 0, 0);
	w->stalled[silent] = false;
	ends(w);
	world_free(w);
}

static struct reduce_receiver *receiver(struct world *w, uint32_t node)
{
	list_each(l, after, &reduced(w)->out.receivers)
	{
		struct reduce_receiver *g = list_item(l, struct reduce_receiver, link);

		if (g->node == node)
			return g;
	}
	fail();
	return NULL;
}

/* Who was silent is gone back to; who is lost, or has left in between, is not. */
static void nobody_goes_back_to_one_that_has_nothing(void **state)
{
	struct world *w = begin();
	struct control *c = w->node[COORDINATOR].core;
	uint32_t node = host(w, SLOT), by = host(w, SLOT - 1);
	struct reduce_receiver *g = receiver(w, node);

	reduce_feed_leave(c, g, by, true);
	assert_true(receiver(w, by)->missed);
	reduce_receivers_tell(c, reduced(w));
	world_run(w, 50 * WORLD_MS);
	assert_false(receiver(w, by)->missed);
	g->dirty = true;
	reduce_receivers_tell(c, reduced(w));
	world_run(w, 20 * WORLD_MS);
	assert_false(is_fed(w, node, by));
	world_run(w, 100 * WORLD_MS);
	assert_true(is_fed(w, node, by));
	reduce_feed_leave(c, g, by, true);
	g->dirty = true;
	reduce_feed_changed(reduced(w), receiver(w, by));
	reduce_receivers_tell(c, reduced(w));
	assert_int_equal(returns(w, node, by, WORLD_SECOND), 0);
	reduce_feed_leave(c, g, host(w, SLOT - ROW), false);
	g->dirty = true;
	reduce_receivers_tell(c, reduced(w));
	world_run(w, 50 * WORLD_MS);
	assert_false(is_fed(w, node, host(w, SLOT - ROW)));
	assert_int_equal(returns(w, node, host(w, SLOT - ROW), WORLD_SECOND), 0);
	reduce_feed_leave(c, g, COORDINATOR, true); /* not one of them */
	reduce_feed_leave(c, g, UINT32_MAX, true);
	ends(w);
	world_free(w);
}

/* Also when a reserve source of its node has since filled an earlier slot. */
static void one_with_two_slots_is_left(void **state)
{
	struct world *w = begin();
	struct control *c = w->node[COORDINATOR].core;
	uint32_t node = host(w, SLOT), by = host(w, SLOT - 1), first = host(w, 0);
	struct reduce_receiver *g = receiver(w, node);

	reduced(w)->plan.run.slot[0].host = by;
	reduce_feed_leave(c, g, by, true);
	reduced(w)->plan.run.slot[0].host = first;
	g->dirty = true;
	reduce_receivers_tell(c, reduced(w));
	world_run(w, 20 * WORLD_MS);
	assert_false(is_fed(w, node, by));
	ends(w);
	world_free(w);
}

/* Of the parts that somebody passes on to a node: one that flows, and of which so much is in. */
static struct part *flowing(struct world *w, uint32_t node, bool most)
{
	struct participant *k = combined(w, node);
	struct control *c = w->node[node].core;

	list_each(l, after, &k->parts)
	{
		struct part *p = list_item(l, struct part, of_participant);
		uint32_t missing = input_missing(c, p);

		if (p->state == PART_STREAM && !p->call && missing > 0 && missing < p->count &&
		    (2 * missing < p->count) == most)
			return p;
	}
	return NULL;
}

/* Who is told to have a part from another one, who has all of it so far as well, does; unless most
 * of it is in, and it has not come from that one before. */
static void most_of_it_stays_where_it_is(void **state)
{
	static const struct {
		bool most, before, moves;
	} row[] = {{false, false, true}, {true, false, false}, {true, true, true}};

	for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct world *w = begin();
		uint32_t node = host(w, SLOT), to = host(w, 0);
		struct control *c = w->node[node].core;
		struct message_part from;
		struct part *p = NULL;

		assert_int_equal(world_put(w, COORDINATOR, 0, "s6", LARGE, SOURCES), 0);
		for (uint32_t k = 0; k < 10000 && !p; k++) {
			p = flowing(w, node, row[i].most);
			if (!p)
				world_run(w, WORLD_MS / 10);
		}
		assert_non_null(p);
		from = (struct message_part){.id = target,
					     .generation = reduced(w)->out.generation};
		from.node = to;
		from.first = from.to = p->to;
		from.count = p->count;
		from.size = LARGE;
		if (row[i].before)
			p->before = peers_node(c, to);
		input_move(c, p, &from);
		assert_int_equal(p->node->number == to, row[i].moves);
		world_free(w);
	}
}

/* The grid is for six and more, whether or not one is late when the slots are made. */
static void six_sources_make_it_a_grid(void **state)
{
	static const struct {
		uint32_t sources, there;
		bool grid;
	} row[] = {{5, 4, false}, {5, 5, false}, {6, 3, true}, {6, 5, true},
		   {6, 6, true},  {8, 7, true},	 {8, 8, true}};

	for (uint32_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct session_reduction how = {.op = REDUCE_SUM,
						      .dtype = REDUCE_U32,
						      .num = row[i].sources,
						      .count = row[i].sources};
		struct world *w = world_new(8, 1, STORE, true);
		struct object_id id[8];
		struct reduce *r;

		world_keep_all(w);
		for (uint32_t k = 0; k < row[i].sources; k++) {
			snprintf(name, sizeof(name), "s%u", k);
			id[k] = world_id(name);
			if (k < row[i].there)
				assert_int_equal(world_put(w, k, 0, name, LARGE, k + 1), 0);
		}
		target = world_id("sum");
		assert_int_equal(world_reduce(w, 0, 0, "sum", id, how, SESSION_FLAG_ALLREDUCE, -1),
				 0);
		r = NULL;
		for (uint32_t k = 0; k < 200 && (!r || r->plan.graph.segments == 0); k++) {
			const struct node *owner = ownership_shard(w->node[0].core, &target);

			world_run(w, WORLD_MS / 10);
			r = reduce_find(w->node[owner->number].core, &target);
		}
		assert_non_null(r);
		assert_int_equal(r->plan.graph.segments, row[i].sources);
		assert_int_equal(r->plan.graph.feeder != NULL, row[i].grid);
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_is_out_of_reach_of_one_only),
		cmocka_unit_test(one_that_is_silent_beside_it),
		cmocka_unit_test(nobody_goes_back_to_one_that_has_nothing),
		cmocka_unit_test(one_with_two_slots_is_left),
		cmocka_unit_test(most_of_it_stays_where_it_is),
		cmocka_unit_test(six_sources_make_it_a_grid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
