/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graph, binding and closure together, without a coordinator: contributions arrive, vertices take
 * and give in any order, nodes are lost and come back. Whatever happens, a partial sum never has a
 * contribution twice, and in the end each root has as many as are needed, the same ones in all
 * segments. For all planners.
 */
#include "fixtures/planner_test.h"
#include "core/planner/binding.h"

enum {
	NODES = 20,
	SLOTS = 14,
	CONTRIBUTIONS = 64,
	VERTICES = SLOTS * SLOTS,
	RUNS = 4000,
	TURNS = 300
};

static struct run {
	struct graph g;
	struct graph_run run;
	struct run_slot slot[SLOTS];
	uint8_t vertex[VERTICES];
	struct run_contribution contribution[CONTRIBUTIONS];
	struct closure_vacated vacated[CONTRIBUTIONS];
	uint32_t count;
	uint64_t reachable, seed;
	uint64_t has[VERTICES]; /* contributions in a vertex's sum, as bits */
	bool own[VERTICES];	/* its slot's are in it */
	uint32_t losses, restarts, outputs;
} t;

static uint32_t draw(uint32_t below)
{
	return planner_draw(&t.seed, below);
}

static bool reaches(uint32_t node)
{
	return node < NODES && t.reachable >> node & 1;
}

static bool complete(uint32_t slot)
{
	return t.slot[slot].has == t.g.slot[slot].wants;
}

/* ---- what happens --------------------------------------------------------------------------- */

static void start(uint32_t slot)
{
	for (uint32_t j = 0; j < t.g.segments; j++) {
		uint32_t v = graph_vertex_of(&t.g, j, slot);

		if (t.g.vertex[v].op == GRAPH_SUM && complete(slot))
			t.vertex[v] |= RUN_STARTED;
	}
}

/* It is found, and takes a slot, or stays in reserve. Then others may fill what is open. */
static void fill(void)
{
	for (uint32_t i = 0; i < t.count; i++) {
		struct run_contribution *s = &t.contribution[i];
		uint32_t slot;

		if (!s->known || s->slot != GRAPH_NONE || !reaches(s->node))
			continue;
		slot = binding_slot(&t.g, &t.run, s->node);
		if (slot == GRAPH_NONE)
			return;
		s->slot = slot;
		if (binding_take(&t.g, &t.run, slot, s->node))
			start(slot);
	}
}

static void find(uint32_t i)
{
	struct run_contribution *s = &t.contribution[i];
	uint32_t node = draw(NODES);

	if (s->known || !reaches(node))
		return;
	*s = (struct run_contribution){node, GRAPH_NONE, true, false};
	fill();
}

/* A vertex takes the contributions of its slot. */
static void take_own(uint32_t v)
{
	uint32_t slot = graph_slot_of(&t.g, v);

	if (!(t.vertex[v] & RUN_STARTED) || t.own[v] || !reaches(t.slot[slot].host))
		return;
	for (uint32_t i = 0; i < t.count; i++) {
		struct run_contribution *s = &t.contribution[i];

		if (s->slot != slot)
			continue;
		assert_false(t.has[v] >> i & 1);
		t.has[v] |= UINT64_C(1) << i;
		s->absorbed = t.g.segments == 1;
	}
	t.own[v] = true;
}

/* What a vertex gives, or 0: not yet, or not any more. */
static uint64_t gives(uint32_t v)
{
	uint32_t slot = graph_slot_of(&t.g, v);
	uint64_t bits = 0;

	if (!reaches(t.slot[slot].host) || t.vertex[v] & RUN_GONE)
		return 0;
	if (t.g.vertex[v].op == GRAPH_SUM)
		return t.vertex[v] & RUN_DONE ? t.has[v] : 0;
	for (uint32_t i = 0; i < t.count; i++)
		if (t.contribution[i].slot == slot)
			bits |= UINT64_C(1) << i;
	return complete(slot) ? bits : 0;
}

static void give(uint32_t v)
{
	uint32_t out = t.g.vertex[v].out;
	uint64_t bits = gives(v);

	if (out == GRAPH_NONE || bits == 0 || t.vertex[v] & RUN_DELIVERED ||
	    !(t.vertex[out] & RUN_STARTED) || !reaches(t.slot[graph_slot_of(&t.g, out)].host))
		return;
	assert_true((t.has[out] & bits) == 0);
	t.has[out] |= bits;
	t.vertex[v] |= RUN_DELIVERED;
}

static void finish(uint32_t v)
{
	const struct graph_vertex *p = &t.g.vertex[v];

	if (!(t.vertex[v] & RUN_STARTED) || !t.own[v])
		return;
	for (uint32_t k = 0; k < p->ins; k++)
		if (!(t.vertex[t.g.edge[p->in + k].vertex] & RUN_DELIVERED))
			return;
	t.vertex[v] |= RUN_DONE;
}

static void repair(uint32_t node)
{
	struct closure k = {.graph = &t.g,
			    .run = &t.run,
			    .contribution = t.contribution,
			    .contributions = t.count,
			    .reachable = &t.reachable,
			    .nodes = NODES,
			    .vacated = t.vacated};

	if (!closure_node_lost(&k, node))
		return;
	t.losses++;
	t.outputs += closure_run(&k);
	for (uint32_t v = 0; v < t.g.vertices; v++) {
		if (!(t.vertex[v] & RUN_RESTART))
			continue;
		t.restarts++;
		t.vertex[v] = 0;
		t.has[v] = 0;
		t.own[v] = false;
	}
	for (uint32_t i = 0; i < t.g.slots; i++)
		start(i);
	fill();
}

/* ---- a run ---------------------------------------------------------------------------------- */

static void begin(uint64_t seed)
{
	uint32_t kind, n;
	struct planner_request q;
	struct planner_choice c;

	memset(&t, 0, sizeof(t));
	t.seed = seed;
	t.run = (struct graph_run){t.slot, t.vertex};
	t.reachable = UINT64_MAX;
	kind = draw(4);
	n = 3 + draw(SLOTS - 3);
	q = planner_asked(kind == 0 ? draw(n) : n, kind == 2 ? 1 : 1 + draw(3), 0,
			  kind == 2 ? PLANNER_CHUNK * n : 1 << 20);
	q.needed += n - q.groups;
	assert_int_equal(planner_shape(&q, planner_table[kind], &c), 0);
	if (kind == 0)
		c.degree = 1 + draw(n);
	planner_built(&q, &c, &t.g);
	t.count = q.needed + draw(4);
	for (uint32_t i = 0; i < t.g.slots; i++)
		t.slot[i] = (struct run_slot){t.g.slot[i].host, 0};
	for (uint32_t i = 0; i < t.count; i++)
		t.contribution[i].slot = GRAPH_NONE;
}

static void anything(void)
{
	uint32_t what = draw(100), v = draw(t.g.vertices), node = draw(NODES);

	if (what < 25) {
		find(draw(t.count));
	} else if (what < 45) {
		take_own(v);
	} else if (what < 75) {
		give(v);
	} else if (what < 95) {
		finish(v);
	} else if (what < 98 && reaches(node)) {
		t.reachable &= ~(UINT64_C(1) << node);
		repair(node);
	} else {
		t.reachable |= UINT64_C(1) << node;
	}
}

/* All nodes are back: contributions that are not in place are found, and all that can be done is.
 */
static void settle(void)
{
	t.reachable = UINT64_MAX;
	for (uint32_t i = 0; i < t.count; i++)
		find(i);
	fill();
	for (uint32_t turn = 0; turn <= t.g.vertices; turn++)
		for (uint32_t v = 0; v < t.g.vertices; v++) {
			take_own(v);
			give(v);
			finish(v);
		}
}

static void judge(void)
{
	uint64_t set = t.has[t.g.segment[0].root];

	assert_int_equal(__builtin_popcountll(set), t.g.needed);
	for (uint32_t j = 0; j < t.g.segments; j++) {
		uint32_t root = t.g.segment[j].root;

		assert_true(t.vertex[root] & RUN_DONE);
		assert_true(t.has[root] == set);
	}
}

static void each_contribution_is_in_all_segments_once(void **state)
{
	uint32_t losses = 0, restarts = 0, outputs = 0;

	for (uint64_t run = 1; run <= RUNS; run++) {
		begin(run * 104729);
		for (uint32_t turn = 0; turn < TURNS * (1 + t.g.segments / 4); turn++)
			anything();
		settle();
		judge();
		losses += t.losses;
		restarts += t.restarts;
		outputs += t.outputs;
	}
	print_message("%u runs, %u losses, %u vertices began again, %u times an output\n", RUNS,
		      losses, restarts, outputs);
	assert_true(losses > RUNS && outputs > RUNS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_contribution_is_in_all_segments_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
