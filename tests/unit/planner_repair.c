/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The closure against the coordinator's repair, which is included and runs with its effects
 * replaced: random graphs in random states lose a node, contributions or vertices. The same
 * vertices restart, the same contributions leave in the same order, the same hosts move. And with
 * relays, which the coordinator does not have: a node that is lost takes its relays with it.
 */
#define reduce_locate	   oracle_locate
#define reduce_reachable   oracle_reachable
#define reduce_generation  oracle_generation
#define reduce_spread_anew oracle_output_anew
#define reduce_reserve	   oracle_reserve
#define reduce_resume	   oracle_resume
#define reduce_fill	   oracle_fill
#define calls_cancel	   oracle_cancel
#include "planner_test.h"
#include "core/reduce/coordinator/repair.c"
#include "core/planner/closure.h"

enum { NODES = 24, SLOTS = 24, SOURCES = 96, RUNS = 60000 };

static struct {
	struct control c;
	struct reduce r;
	struct reduce_seat seat[SLOTS];
	struct reduce_cell cell[SLOTS * SLOTS];
	struct reduce_source source[SOURCES];
	uint64_t reachable;
	uint32_t vacated[SOURCES], vacated_count, outputs;
	bool begun[SLOTS * SLOTS];
} oracle;

static struct {
	struct graph g;
	struct graph_run run;
	struct run_slot slot[SLOTS];
	uint8_t vertex[SLOTS * SLOTS + GRAPH_RELAYS_MAX];
	struct run_contribution contribution[SOURCES];
	struct closure_vacated vacated[SOURCES];
	struct closure k;
} shadow;

/* ---- the oracle's effects -------------------------------------------------------------------- */

void oracle_locate(struct control *c, struct reduce_source *s)
{
	oracle.vacated[oracle.vacated_count++] = (uint32_t)(s - oracle.source);
}

bool oracle_reachable(struct control *c, uint32_t node)
{
	return node < NODES && oracle.reachable >> node & 1;
}

uint64_t oracle_generation(struct control *c, const struct reduce *r)
{
	return 77;
}

void oracle_output_anew(struct control *c, struct reduce *r)
{
	oracle.outputs++;
}

void oracle_reserve(struct control *c, const struct reduce *r, uint64_t generation)
{
	oracle.outputs++;
}

void oracle_resume(struct control *c, struct reduce *r, uint32_t cell)
{
}

void oracle_fill(struct control *c, struct reduce *r)
{
}

/* Each cell that begins anew has its call cancelled: here the call says which one it is. */
void oracle_cancel(struct control *c, struct call *call)
{
	uint32_t i = (uint32_t)((struct reduce_cell *)(void *)call - oracle.cell);

	assert_false(oracle.begun[i]);
	oracle.begun[i] = true;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void draw_graph(uint64_t *seed)
{
	static struct planner_group group[SLOTS];
	uint32_t n = 2 + planner_draw(seed, SLOTS - 2), kind = planner_draw(seed, 3);
	struct planner_request q = {.chunk_bytes = 1408,
				    .group = group,
				    .groups = kind == 1 ? n : planner_draw(seed, n),
				    .caller = planner_draw(seed, NODES),
				    .everyone = true,
				    .rate_seen = true,
				    .limits = &planner_limits_usual};
	const struct planner *const of[] = {&planner_dary, &planner_exchange, &planner_chains};
	struct planner_choice c;

	for (uint32_t i = 0; i < q.groups; i++) {
		group[i] = (struct planner_group){
			.node = i, .count = kind == 1 ? 1 : 1 + planner_draw(seed, 3)};
		q.present += group[i].count;
	}
	q.needed = q.present + n - q.groups;
	q.size = kind == 2 ? 1 << 20 : 1408 * n;
	assert_int_equal(planner_shape(&q, of[kind], &c), 0);
	if (kind == 0)
		c.degree = 1 + planner_draw(seed, n);
	planner_built(&q, &c, &shadow.g);
	oracle.r.stripes = shadow.g.segments;
	oracle.r.direct = kind == 1;
	oracle.r.degree = c.degree;
}

static bool odds(uint64_t *seed, uint32_t percent)
{
	return planner_draw(seed, 100) < percent;
}

/* Contributions in their slots, in reserve, or not found. */
static void draw_sources(uint64_t *seed)
{
	struct reduce *r = &oracle.r;
	uint32_t full = planner_draw(seed, 101);

	for (uint32_t i = 0; i < r->seats; i++) {
		const struct graph_slot *s = &shadow.g.slot[i];

		r->seat[i] = (struct reduce_seat){s->host, s->wants, 0};
		for (uint32_t k = 0; k < s->wants && odds(seed, full); k++) {
			/* after a loss those of another node may be in a slot that was booked */
			uint32_t node = s->host == GRAPH_NODE_NONE || odds(seed, 10)
						? planner_draw(seed, NODES)
						: s->host;

			r->source[r->count++] = (struct reduce_source){
				.node = node,
				.seat = i,
				.state = SOURCE_KNOWN,
				.absorbed = r->stripes == 1 && odds(seed, 30)};
			if (r->seat[i].has++ == 0 && (s->host == GRAPH_NODE_NONE || odds(seed, 50)))
				r->seat[i].host = node;
		}
	}
	for (uint32_t k = planner_draw(seed, 6); k > 0; k--)
		r->source[r->count++] = (struct reduce_source){
			.node = planner_draw(seed, NODES),
			.seat = REDUCE_NONE,
			.state = odds(seed, 70) ? SOURCE_KNOWN : SOURCE_ABSENT};
	for (uint32_t i = 0; i < r->count; i++)
		r->source[i].reduce = r;
}

static void draw_cells(uint64_t *seed)
{
	uint32_t started = planner_draw(seed, 101), delivered = planner_draw(seed, 101);
	struct reduce *r = &oracle.r;

	for (uint32_t i = 0; i < r->cells; i++) {
		struct reduce_cell *p = &r->cell[i];

		*p = (struct reduce_cell){.reduce = r,
					  .seat = graph_slot_of(&shadow.g, i),
					  .stripe = graph_segment_of(&shadow.g, i)};
		p->call = (struct call *)(void *)p;
		p->combines = shadow.g.vertex[i].op == GRAPH_SUM;
		p->started = p->combines && odds(seed, started);
		p->delivered = odds(seed, delivered);
		p->gone = p->delivered && odds(seed, 20);
		p->done = p->started && odds(seed, 50);
		p->dirty = odds(seed, 10);
	}
}

static uint8_t bits(const struct reduce_cell *p)
{
	return (uint8_t)(p->started * RUN_STARTED | p->dirty * RUN_DIRTY | p->anew * RUN_RESTART |
			 p->delivered * RUN_DELIVERED | p->gone * RUN_GONE | p->done * RUN_DONE);
}

static void copy_state(void)
{
	const struct reduce *r = &oracle.r;

	for (uint32_t i = 0; i < r->seats; i++)
		shadow.slot[i] = (struct run_slot){r->seat[i].host, (uint16_t)r->seat[i].has};
	for (uint32_t i = 0; i < r->cells; i++)
		shadow.vertex[i] = bits(&r->cell[i]);
	for (uint32_t i = 0; i < r->count; i++)
		shadow.contribution[i] = (struct run_contribution){
			r->source[i].node, r->source[i].seat, r->source[i].state == SOURCE_KNOWN,
			r->source[i].absorbed};
	shadow.run = (struct graph_run){shadow.slot, shadow.vertex};
	shadow.k = (struct closure){.graph = &shadow.g,
				    .run = &shadow.run,
				    .contribution = shadow.contribution,
				    .contributions = r->count,
				    .reachable = &oracle.reachable,
				    .nodes = NODES,
				    .vacated = shadow.vacated};
}

static void draw_state(uint64_t *seed)
{
	struct reduce *r = &oracle.r;

	memset(&oracle, 0, sizeof(oracle));
	r->seat = oracle.seat;
	r->cell = oracle.cell;
	r->source = oracle.source;
	r->state = REDUCE_RUNNING;
	draw_graph(seed);
	r->seats = shadow.g.slots;
	r->cells = shadow.g.vertices;
	r->num = shadow.g.needed;
	r->root = r->stripes == 1 ? shadow.g.segment[0].root : 0;
	draw_sources(seed);
	draw_cells(seed);
	for (uint32_t node = 0; node < NODES; node++)
		oracle.reachable |= (uint64_t)odds(seed, 85) << node;
	for (uint32_t i = 0; i < r->count; i++)
		r->source[i].failed = REDUCE_NONE;
	copy_state();
}

/* ---- comparison ------------------------------------------------------------------------------ */

static void same_state(bool output)
{
	const struct reduce *r = &oracle.r;

	assert_int_equal(output, oracle.outputs > 0);
	for (uint32_t i = 0; i < r->cells; i++) {
		uint8_t restart = oracle.begun[i] ? RUN_RESTART : 0;

		assert_int_equal(shadow.vertex[i], bits(&r->cell[i]) | restart);
	}
	for (uint32_t i = 0; i < r->seats; i++) {
		assert_int_equal(shadow.slot[i].host, r->seat[i].host);
		assert_int_equal(shadow.slot[i].has, r->seat[i].has);
	}
	for (uint32_t i = 0; i < r->count; i++) {
		assert_int_equal(shadow.contribution[i].slot, r->source[i].seat);
		assert_int_equal(shadow.contribution[i].absorbed, r->source[i].absorbed);
		assert_int_equal(shadow.contribution[i].known, r->source[i].state == SOURCE_KNOWN);
	}
	assert_int_equal(shadow.k.vacated_count, oracle.vacated_count);
	for (uint32_t i = 0; i < oracle.vacated_count; i++) {
		const struct reduce_source *s = &r->source[oracle.vacated[i]];

		assert_int_equal(shadow.vacated[i].contribution, oracle.vacated[i]);
		assert_int_equal(shadow.vacated[i].avoid, s->failed != REDUCE_NONE);
	}
}

static uint32_t begun(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < oracle.r.cells; i++)
		count += oracle.begun[i];
	return count;
}

static void a_node_is_lost_alike(void **state)
{
	uint32_t many = 0, outputs = 0, kept = 0;

	for (uint64_t run = 1; run <= RUNS; run++) {
		uint64_t seed = run * 104729;
		uint32_t node;
		bool lost, output = false;

		draw_state(&seed);
		node = planner_draw(&seed, NODES);
		oracle.reachable &= ~(UINT64_C(1) << node);
		lost = closure_node_lost(&shadow.k, node);
		if (lost)
			output = closure_run(&shadow.k);
		repair_node(&oracle.c, &oracle.r, node);
		same_state(output);
		many += begun() > 3;
		outputs += output;
		kept += lost && !output;
	}
	print_message("%u of %u restart more than 3, %u the output, %u not that\n", many, RUNS,
		      outputs, kept);
	assert_true(many > 1000 && outputs > 1000 && kept > 1000);
}

static void vertices_and_contributions_are_lost_alike(void **state)
{
	uint32_t moved = 0;

	for (uint64_t run = 1; run <= RUNS; run++) {
		uint64_t seed = run * 611953;
		struct reduce *r = &oracle.r;

		draw_state(&seed);
		for (uint32_t k = planner_draw(&seed, 3); k > 0; k--) {
			uint32_t i = planner_draw(&seed, r->cells);

			r->cell[i].anew = true;
			shadow.vertex[i] |= RUN_RESTART;
			if (odds(&seed, 50))
				continue;
			repair_vacate(&oracle.c, r, r->cell[i].seat, r->seat[r->cell[i].seat].host);
			closure_vacate_node(&shadow.k, r->cell[i].seat,
					    shadow.slot[r->cell[i].seat].host);
		}
		for (uint32_t i = 0; i < r->count; i++) {
			if (r->source[i].seat == REDUCE_NONE || !odds(&seed, 5))
				continue;
			repair_vacate_source(&oracle.c, r, &r->source[i]);
			closure_vacate(&shadow.k, i, false);
		}
		same_state(false);
		repair(&oracle.c, r);
		same_state(closure_run(&shadow.k));
		moved += oracle.vacated_count > 1;
	}
	assert_true(moved > 1000);
}

/* Two slots of three each give to a relay of their rack, and those to a third relay. */
static void a_relay_restarts_with_what_it_gives_to(void **state)
{
	struct graph *g = &shadow.g;

	memset(&oracle, 0, sizeof(oracle));
	assert_true(graph_begin(g, (struct graph_size){6, 1, 3, false}, planner_memory,
				sizeof(planner_memory)));
	graph_cut(g, 1 << 20, 1408);
	g->needed = 6;
	for (uint32_t i = 0; i < 6; i++)
		graph_join(g, i, 6 + i / 3);
	graph_join(g, 6, 8);
	graph_join(g, 7, 8);
	for (uint32_t i = 0; i < 3; i++)
		g->relay[i] = (struct graph_relay){10 + i, 0};
	graph_settle(g);
	assert_null(graph_wrong(g, &planner_limits_usual.graph));
	oracle.r.count = 6;
	oracle.r.source = oracle.source;
	for (uint32_t i = 0; i < 6; i++)
		oracle.source[i] =
			(struct reduce_source){.node = i, .seat = i, .state = SOURCE_KNOWN};
	copy_state();
	memset(shadow.vertex, 0, sizeof(shadow.vertex));
	for (uint32_t i = 0; i < 6; i++)
		shadow.slot[i] = (struct run_slot){i, 1};
	for (uint32_t v = 6; v < 9; v++)
		shadow.vertex[v] = RUN_STARTED;
	shadow.vertex[7] |= RUN_DELIVERED | RUN_DONE;
	oracle.reachable = 0xffff & ~(UINT64_C(1) << 10);
	assert_true(closure_node_lost(&shadow.k, 10));
	assert_true(closure_run(&shadow.k));
	assert_int_equal(shadow.vertex[6], RUN_RESTART);
	assert_int_equal(shadow.vertex[7], RUN_STARTED | RUN_DONE); /* it is given again */
	assert_int_equal(shadow.vertex[8], RUN_RESTART);
	assert_int_equal(shadow.k.vacated_count, 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(shadow.vertex[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_is_lost_alike),
		cmocka_unit_test(vertices_and_contributions_are_lost_alike),
		cmocka_unit_test(a_relay_restarts_with_what_it_gives_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
