/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a reduce takes longer when one or two of its nodes die and spares are there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

/* Nodes 0 to 5 have a source each; the owner of the target is 6, the requester 7. */
enum { SOURCES = 6, COORDINATOR = 6, CALLER = 7, NODES = 8, MOMENTS = 8 };

#define SIZE  UINT64_C(4000000)
#define STORE (UINT64_C(48) << 20)
/* The coordinator's node is back after 200 ms. */
#define BOUND (400 * WORLD_MS)

enum role { LEAF, MIDDLE, ROOT, DIRECTORY, ROLES };

static uint32_t needed = SOURCES - 1; /* of the sources */
static char target[16];

/* A name that this node keeps. */
static void owned_by(struct world *w, uint32_t node, const char *begin, char name[16])
{
	struct object_id id;
	unsigned k = 0;

	do {
		snprintf(name, 16, "%s%u", begin, k++ % 1000);
		id = world_id(name);
	} while (ownership_shard(w->node[0].core, &id)->number != node);
}

static struct world *some_nodes(void)
{
	struct world *w = world_new(NODES, 1, STORE, true);
	struct object_id ids[SOURCES];
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = needed, .count = SOURCES};

	w->delay_ns = WORLD_MS;
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_open(w, i), 0);
	owned_by(w, COORDINATOR, "sum", target);
	for (uint32_t i = 0; i < SOURCES; i++) {
		char name[8];

		snprintf(name, sizeof(name), "s%u", i);
		ids[i] = world_id(name);
		assert_int_equal(world_put(w, i, 0, name, SIZE, i + 1), 0);
	}
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	return w;
}

static uint32_t find_role(struct world *w, enum role role)
{
	struct object_id id = world_id(target);
	struct idmap_node *at =
		idmap_find(&w->node[COORDINATOR].core->coordinator->reduces.by_id, &id);
	struct reduce *r = idmap_item(at, struct reduce, by_id);

	assert_int_equal(r->plan.graph.slots, needed);
	for (uint32_t i = 0; i < r->plan.graph.vertices; i++) {
		const struct reduce_vertex *p = &r->plan.vertex[i];
		bool sum = r->plan.graph.vertex[i].op == GRAPH_SUM;

		if (role == ROOT   ? reduce_is_root(p)
		    : role == LEAF ? !sum
				   : sum && !reduce_is_root(p))
			return reduce_host(p);
	}
	return COORDINATOR;
}

/* All of the result is at the caller; checks it against what it is told to be. False: it was lost
 * after its set had been chosen, before anybody else had all of it. */
static bool get_result(struct world *w)
{
	static uint32_t sum[SIZE / 4], one[SIZE / 4];
	struct object_id used[SOURCES];
	const uint8_t *bytes;
	uint64_t size;
	int status = -ERESTART;

	for (int tries = 0; tries < 8 && status == -ERESTART; tries++)
		status = world_fetch(w, CALLER, 0, target, 10 * (int64_t)WORLD_SECOND, &bytes,
				     &size);
	if (status == -ETIMEDOUT)
		return false;
	assert_int_equal(status, 0);
	assert_int_equal(size, SIZE);
	memset(sum, 0, sizeof(sum));
	assert_int_equal(world_reduced(w, CALLER, 0, target, (int64_t)(20 * WORLD_SECOND), used),
			 needed);
	for (uint32_t i = 0; i < needed; i++) {
		uint32_t source = 0;
		char name[8];
		struct object_id id;

		do {
			snprintf(name, sizeof(name), "s%u", source++);
			id = world_id(name);
		} while (!object_id_equal(&id, &used[i]));
		world_fill((uint8_t *)one, SIZE, source);
		for (uint64_t k = 0; k < SIZE / 4; k++)
			sum[k] += one[k];
	}
	assert_memory_equal(bytes, sum, SIZE);
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t undisturbed(void)
{
	struct world *w = some_nodes();
	uint64_t begun = w->now_ns, took;

	assert_true(get_result(w));
	took = w->now_ns - begun;
	world_free(w);
	return took;
}

static void deaths_cost_little(void **state)
{
	static const char *const names[ROLES] = {"leaf", "middle", "root", "coordinator"};
	uint64_t alone = undisturbed();

	print_message("undisturbed: %.0f ms\n", (double)alone / 1e6);
	for (enum role role = LEAF; role < ROLES; role++) {
		uint64_t late[MOMENTS];
		uint32_t lost = 0;

		for (uint32_t k = 0; k < MOMENTS; k++) {
			struct world *w = some_nodes();
			uint64_t begun = w->now_ns, took;

			world_run(w, 10 * WORLD_MS + k * (alone - 10 * WORLD_MS) / MOMENTS);
			world_kill_node(w, role == DIRECTORY ? COORDINATOR : find_role(w, role));
			if (role == DIRECTORY) {
				world_run(w, 200 * WORLD_MS);
				world_start_engine(w, COORDINATOR);
				world_start_control(w, COORDINATOR);
			}
			if (!get_result(w)) {
				assert_int_equal(role, ROOT);
				assert_int_equal(k, MOMENTS - 1);
				lost++;
				world_free(w);
				continue;
			}
			took = w->now_ns - begun;
			late[k] = took > alone ? took - alone : 0;
			assert_true(late[k] < BOUND);
			world_free(w);
		}
		qsort(late, MOMENTS - lost, sizeof(late[0]), compare);
		print_message("%s: median %.0f ms, worst %.0f ms later%s\n", names[role],
			      (double)late[(MOMENTS - lost) / 2] / 1e6,
			      (double)late[MOMENTS - lost - 1] / 1e6,
			      lost ? "; once its only copy" : "");
	}
}

/* How much later when two die; UINT64_MAX: the result was lost with its only copy. */
static uint64_t later_without(uint32_t a, uint32_t b, uint64_t moment_ns, uint64_t alone_ns)
{
	struct world *w = some_nodes();
	uint64_t begun = w->now_ns, took;
	bool there;

	world_run(w, moment_ns);
	world_kill_node(w, a);
	world_kill_node(w, b);
	there = get_result(w);
	took = w->now_ns - begun;
	world_free(w);
	return !there ? UINT64_MAX : took > alone_ns ? took - alone_ns : 0;
}

static uint32_t who_is_root(void)
{
	struct world *w = some_nodes();
	uint32_t root;

	world_run(w, 10 * WORLD_MS);
	root = find_role(w, ROOT);
	world_free(w);
	return root;
}

/* Any two, with two in reserve: the sum is that of the sources that it names. Where one reads from
 * the other, who takes its place finds that one silent though it has never answered him. */
static void two_may_die_at_once(void **state)
{
	enum { TIMES = 4, PAIRS = SOURCES * (SOURCES - 1) / 2 };
	uint64_t late[TIMES * PAIRS], alone;
	uint32_t count = 0, lost = 0, root;

	needed = SOURCES - 2;
	root = who_is_root();
	alone = undisturbed();
	for (uint32_t k = 0; k < TIMES * SOURCES * SOURCES; k++) {
		uint32_t a = k % SOURCES, b = k / SOURCES % SOURCES, at = k / SOURCES / SOURCES;

		if (a >= b)
			continue;
		late[count] = later_without(a, b, 10 * WORLD_MS + at * alone / TIMES, alone);
		if (late[count] != UINT64_MAX) {
			assert_in_range(late[count++], 0, BOUND);
			continue;
		}
		assert_int_equal(at, TIMES - 1);
		assert_true(root == a || root == b);
		lost++;
	}
	qsort(late, count, sizeof(late[0]), compare);
	print_message("two: median %.0f ms, worst %.0f ms later, of %u; %u times its only copy\n",
		      (double)late[count / 2] / 1e6, (double)late[count - 1] / 1e6, count, lost);
	needed = SOURCES - 1;
}

/* The owner of a source may know its holder before the coordinator reaches that node, as after a
 * partition: the source fills its slot as soon as its node is reached. */
static void a_node_that_is_reached_later_takes_its_slot(void **state)
{
	const struct session_reduction how = {
		.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = 2, .count = 2};
	enum { HERE = 0, LATER = 1, OWNER = 2 };
	struct world *w = world_new(NODES, 1, STORE, true);
	struct control *c = w->node[COORDINATOR].core;
	struct object_id ids[2], id;
	char names[2][16];
	const uint8_t *bytes;
	uint64_t begin_ns, size;

	w->delay_ns = WORLD_MS;
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_open(w, i), 0);
	owned_by(w, COORDINATOR, "sum", target);
	owned_by(w, OWNER, "here", names[HERE]);
	owned_by(w, OWNER, "later", names[LATER]);
	for (uint32_t i = 0; i < 2; i++)
		ids[i] = world_id(names[i]);
	assert_int_equal(world_put(w, HERE, 0, names[HERE], SIZE, 1), 0);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	wiring_node_down(c, peers_node(c, LATER));
	assert_int_equal(world_put(w, LATER, 0, names[LATER], SIZE, 2), 0);
	world_run(w, 20 * WORLD_MS);
	id = world_id(target);
	assert_int_equal(reduce_find(c, &id)->from.source[1].state, SOURCE_KNOWN);
	assert_int_equal(reduce_find(c, &id)->from.source[1].slot, REDUCE_NONE);
	begin_ns = w->now_ns;
	wiring_node_up(c, peers_node(c, LATER));
	assert_int_equal(
		world_fetch(w, CALLER, 0, target, 10 * (int64_t)WORLD_SECOND, &bytes, &size), 0);
	assert_true(world_sums(bytes, size, 3));
	assert_in_range(w->now_ns - begin_ns, 0, 200 * WORLD_MS);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deaths_cost_little), cmocka_unit_test(two_may_die_at_once),
		cmocka_unit_test(a_node_that_is_reached_later_takes_its_slot)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
