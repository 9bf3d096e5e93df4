/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Half of the nodes run the next version of the messages, as in the middle of an upgrade. The two
 * versions refuse each other and say why, each half works by itself, no request waits for ever, and
 * the cluster is whole again when all nodes run one version.
 */
#include "full/cast.h"

enum { NODES = 4, OLD = 2, OBJECTS = 8, FIRST_OLD = 10, FIRST_NEW = 30, FIRST_WHOLE = 50 };

#define SIZE	 (UINT64_C(64) << 10)
#define MBIT	 UINT64_C(1000)
#define MEET_NS	 (4 * WORLD_S)
#define PATIENCE (2 * WORLD_S)

static uint32_t said[NODES]; /* how often each node said why it refused one of another version */

static void hear(const struct full *f, const char *text)
{
	bool newer = f->n->index >= OLD;
	bool node =
		strstr(text, newer ? "it says node 0 of protocol" : "it says node 2 of protocol") ||
		strstr(text, newer ? "it says node 1 of protocol" : "it says node 3 of protocol");

	said[f->n->index] += node && strstr(text, "run programs of one version");
}

static uint64_t refused(struct cast *c, uint32_t node)
{
	return control_counters(c->g.full[node].core)->hello_refused;
}

static void upgrade(struct cast *c, uint32_t first)
{
	for (uint32_t i = first; i < first + OLD; i++) {
		cast_kill(c, i);
		c->g.full[i].newer = 1;
	}
	world_run(&c->w, 10 * WORLD_MS);
	for (uint32_t i = first; i < first + OLD; i++) {
		full_start_dataplane(&c->g.full[i]);
		full_start_control(&c->g.full[i]);
	}
	world_run(&c->w, MEET_NS);
	for (uint32_t i = first; i < first + OLD; i++)
		cast_attach(c, i);
	world_run(&c->w, WORLD_MS);
}

/* Returns its status, which comes within the request's time and a little. */
static int32_t get(struct cast *c, uint32_t node, uint8_t id)
{
	uint64_t end = world_now(&c->w) + PATIENCE + WORLD_S;

	memset(c->g.full[node].pins, 0, sizeof(c->g.full[node].pins));
	cast_begin(c, node, id);
	while (!c->task[node].done && world_now(&c->w) < end)
		world_run(&c->w, WORLD_MS);
	assert_true(c->task[node].done);
	if (c->task[node].status == 0)
		cast_check(c, node, id);
	return c->task[node].status;
}

static void half_works(struct cast *c, uint32_t node, uint8_t first)
{
	for (uint8_t i = 0; i < OBJECTS; i++) {
		cast_put_at(c, node, (uint8_t)(first + i));
		assert_int_equal(c->task[node].status, 0);
		world_run(&c->w, 50 * WORLD_MS);
		assert_int_equal(get(c, node + 1, (uint8_t)(first + i)), 0);
	}
}

static void two_versions_refuse_each_other(void **state)
{
	static struct cast c;

	cast_open(&c, NODES, SIZE, MBIT, 0);
	c.patience_ns = PATIENCE;
	c.may_fail = true;
	c.g.on_log = hear;
	assert_int_equal(refused(&c, 0) + refused(&c, NODES - 1), 0);
	upgrade(&c, OLD);
	for (uint32_t i = 0; i < NODES; i++)
		print_message("node %u refused %llu and said it %u times\n", i,
			      (unsigned long long)refused(&c, i), said[i]);
	assert_true(refused(&c, 0) > 0 && refused(&c, 1) > 0);
	assert_true(refused(&c, 2) > 0 && refused(&c, 3) > 0);
	for (uint32_t i = 0; i < NODES; i++)
		assert_true(said[i] > 0);
	half_works(&c, 0, FIRST_OLD);
	half_works(&c, OLD, FIRST_NEW);
	assert_int_not_equal(get(&c, OLD, FIRST_OLD), 0);
	assert_int_not_equal(get(&c, 0, FIRST_NEW), 0);
	upgrade(&c, 0);
	for (uint8_t i = 0; i < OBJECTS; i++) {
		cast_put_at(&c, 0, (uint8_t)(FIRST_WHOLE + i));
		assert_int_equal(c.task[0].status, 0);
		world_run(&c.w, 50 * WORLD_MS);
		assert_int_equal(get(&c, OLD, (uint8_t)(FIRST_WHOLE + i)), 0);
		assert_int_equal(get(&c, OLD, (uint8_t)(FIRST_OLD + i)), 0);
		assert_int_equal(get(&c, 0, (uint8_t)(FIRST_NEW + i)), 0);
	}
	cast_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(two_versions_refuse_each_other)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
