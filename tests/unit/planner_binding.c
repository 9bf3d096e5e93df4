/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binding against the coordinator's filling of seats, which is included and runs with its effects
 * replaced: random contributions arrive at random plans, some before they are made; later some
 * leave, and others take their slots. Each is in the same slot, each slot on the same host, and the
 * same slots are complete at the same time.
 */
#define reduce_reachable  oracle_reachable
#define reduce_generation oracle_generation
#define reduce_reserve	  oracle_reserve
#define reduce_tell_all	  oracle_tell_all
#include "planner_test.h"
#include "core/reduce/coordinator/binding.c"
#include "core/planner/binding.h"

enum { NODES = 24, SLOTS = 24, SOURCES = 96, RUNS = 30000 };

static struct {
	struct control c;
	struct reduce r;
	struct reduce_seat seat[SLOTS];
	struct reduce_cell cell[SLOTS * SLOTS];
	struct reduce_source source[SOURCES];
	struct planner_group group[SOURCES];
	uint64_t reachable;
} oracle;

static struct {
	struct graph g;
	struct graph_run run;
	struct run_slot slot[SLOTS];
	uint32_t of[SOURCES]; /* each contribution's slot */
	bool complete[SLOTS];
} shadow;

bool oracle_reachable(struct control *c, uint32_t node)
{
	return oracle.reachable >> node & 1;
}

uint64_t oracle_generation(struct control *c, const struct reduce *r)
{
	return 77;
}

void oracle_reserve(struct control *c, const struct reduce *r, uint64_t generation)
{
}

void oracle_tell_all(struct control *c, struct reduce *r)
{
}

/* ---- the plan ------------------------------------------------------------------------------- */

/* Those that are there, by node; returns the groups. */
static uint32_t group_sources(uint32_t *present)
{
	struct reduce_group group[MESSAGE_SOURCES_MAX];
	uint32_t groups = reduce_groups(&oracle.c, &oracle.r, group, present);

	for (uint32_t i = 0; i < groups; i++)
		oracle.group[i] =
			(struct planner_group){.node = group[i].node, .count = group[i].count};
	return groups;
}

static bool draw_plan(uint64_t *seed)
{
	struct reduce *r = &oracle.r;
	struct planner_request q = {.size = 1 << 20,
				    .chunk_bytes = 1408,
				    .group = oracle.group,
				    .caller = planner_draw(seed, NODES),
				    .everyone = planner_draw(seed, 2),
				    .rate_seen = true,
				    .limits = &planner_limits_usual};
	struct planner_choice c;

	q.needed = r->num;
	q.groups = group_sources(&q.present);
	if (planner_slots(&q) > SLOTS || planner_choose(&q, &c))
		return false;
	planner_built(&q, &c, &shadow.g);
	r->seats = shadow.g.slots;
	r->stripes = shadow.g.segments;
	r->cells = shadow.g.vertices;
	r->degree = c.degree;
	r->root = r->stripes == 1 ? shadow.g.segment[0].root : 0;
	r->top = r->stripes == 1 ? c.prefer : q.caller;
	for (uint32_t i = 0; i < r->cells; i++)
		r->cell[i] = (struct reduce_cell){.reduce = r,
						  .seat = i % r->seats,
						  .stripe = i / r->seats,
						  .combines = shadow.g.vertex[i].op == GRAPH_SUM};
	for (uint32_t i = 0; i < r->seats; i++) {
		r->seat[i] = (struct reduce_seat){shadow.g.slot[i].host, shadow.g.slot[i].wants, 0};
		shadow.slot[i] = (struct run_slot){shadow.g.slot[i].host, 0};
	}
	return true;
}

/* ---- both fill ------------------------------------------------------------------------------ */

static void arrive(struct reduce_source *s, uint32_t node)
{
	s->state = SOURCE_KNOWN;
	s->node = node;
	s->arrival = ++oracle.r.arrivals;
}

/* The next one in the order of arrival after that one, that has no slot. */
static uint32_t next_of(const uint32_t *of, uint32_t after)
{
	uint32_t next = GRAPH_NONE;

	for (uint32_t i = 0; i < oracle.r.count; i++) {
		const struct reduce_source *s = &oracle.source[i];

		if (s->state == SOURCE_KNOWN && of[i] == GRAPH_NONE && s->arrival > after &&
		    oracle_reachable(NULL, s->node) &&
		    (next == GRAPH_NONE || s->arrival < oracle.source[next].arrival))
			next = i;
	}
	return next;
}

static void shadow_take(uint32_t i, uint32_t slot)
{
	shadow.of[i] = slot;
	shadow.complete[slot] = binding_take(&shadow.g, &shadow.run, slot, oracle.source[i].node);
}

static void shadow_fill(bool planned)
{
	uint32_t i, slot, after = 0;

	for (; planned && (i = next_of(shadow.of, after)) != GRAPH_NONE;
	     after = oracle.source[i].arrival) {
		slot = binding_booked(&shadow.g, &shadow.run, oracle.source[i].node);
		if (slot != GRAPH_NONE)
			shadow_take(i, slot);
	}
	for (after = 0; (i = next_of(shadow.of, after)) != GRAPH_NONE;
	     after = oracle.source[i].arrival) {
		slot = binding_slot(&shadow.g, &shadow.run, oracle.source[i].node);
		if (slot == GRAPH_NONE)
			break;
		shadow_take(i, slot);
	}
}

static void same_slots(void)
{
	const struct reduce *r = &oracle.r;

	for (uint32_t i = 0; i < r->count; i++)
		assert_int_equal(shadow.of[i], r->source[i].seat);
	for (uint32_t i = 0; i < r->seats; i++) {
		assert_int_equal(shadow.slot[i].host, r->seat[i].host);
		assert_int_equal(shadow.slot[i].has, r->seat[i].has);
		assert_int_equal(shadow.complete[i], r->seat[i].has == r->seat[i].wants);
	}
	for (uint32_t v = 0; v < r->cells; v++)
		assert_int_equal(r->cell[v].started,
				 r->cell[v].combines &&
					 shadow.complete[graph_slot_of(&shadow.g, v)]);
}

static void leave(uint32_t i)
{
	struct reduce *r = &oracle.r;
	uint32_t slot = r->source[i].seat;

	r->source[i].state = SOURCE_ABSENT;
	r->source[i].seat = shadow.of[i] = REDUCE_NONE;
	if (slot == REDUCE_NONE)
		return;
	if (--r->seat[slot].has == 0)
		r->seat[slot].host = REDUCE_NONE;
	if (--shadow.slot[slot].has == 0)
		shadow.slot[slot].host = GRAPH_NODE_NONE;
	shadow.complete[slot] = false;
	for (uint32_t j = 0; j < r->stripes; j++)
		r->cell[j * r->seats + slot].started = false;
}

static void begin(uint64_t *seed)
{
	struct reduce *r = &oracle.r;
	uint32_t there = planner_draw(seed, 101);

	memset(&oracle, 0, sizeof(oracle));
	memset(&shadow, 0, sizeof(shadow));
	memset(shadow.of, 0xff, sizeof(shadow.of));
	shadow.run = (struct graph_run){shadow.slot, NULL};
	r->seat = oracle.seat;
	r->cell = oracle.cell;
	r->source = oracle.source;
	list_init(&r->getters);
	r->count = 1 + planner_draw(seed, SLOTS + 6);
	r->num = 1 + planner_draw(seed, r->count);
	oracle.reachable = UINT64_MAX;
	for (uint32_t i = 0; i < r->count; i++) {
		r->source[i] = (struct reduce_source){
			.reduce = r, .seat = REDUCE_NONE, .state = SOURCE_ABSENT};
		if (planner_draw(seed, 100) < there)
			arrive(&r->source[i],
			       planner_draw(seed, NODES / (1 + planner_draw(seed, 3))));
	}
	for (uint32_t k = planner_draw(seed, 4); k > 0; k--)
		oracle.reachable &= ~(UINT64_C(1) << planner_draw(seed, NODES));
}

static void contributions_take_the_same_slots(void **state)
{
	uint32_t preferred = 0, left = 0;

	for (uint64_t run = 1; run <= RUNS; run++) {
		uint64_t seed = run * 7919;

		begin(&seed);
		if (!draw_plan(&seed))
			continue;
		reduce_take_seats(&oracle.c, &oracle.r);
		reduce_fill(&oracle.c, &oracle.r);
		shadow_fill(true);
		same_slots();
		for (uint32_t turn = 0; turn < 6; turn++) {
			uint32_t i = planner_draw(&seed, oracle.r.count);

			if (oracle.source[i].state == SOURCE_KNOWN) {
				left += oracle.source[i].seat != REDUCE_NONE;
				leave(i);
			} else {
				arrive(&oracle.source[i], planner_draw(&seed, NODES));
			}
			reduce_fill(&oracle.c, &oracle.r);
			shadow_fill(false);
			same_slots();
		}
		preferred +=
			oracle.r.stripes == 1 && oracle.seat[oracle.r.root].host == oracle.r.top;
	}
	print_message("%u with the preferred root, %u have left\n", preferred, left);
	assert_true(preferred > 1000 && left > 10000);
}

static void limits_and_what_is_none_are_the_same_numbers(void **state)
{
	assert_int_equal(GRAPH_NONE, REDUCE_NONE);
	assert_int_equal(GRAPH_NONE, REDUCE_TREE_NONE);
	assert_int_equal(GRAPH_NODE_NONE, MESSAGE_NODE_NONE);
	assert_int_equal(planner_limits_usual.graph.group_max, REDUCE_GROUP_MAX);
	assert_int_equal(planner_limits_usual.graph.fan_in_max, REDUCE_DEGREE_MAX);
	assert_int_equal(planner_limits_usual.graph.parts_max, MESSAGE_PARTS_MAX);
	assert_int_equal(planner_limits_usual.segments_max, REDUCE_STRIPES_MAX);
	assert_int_equal(planner_limits_usual.segment_chunks, REDUCE_STRIPE_CHUNKS);
	assert_int_equal(planner_limits_usual.segment_chunks_unseen, REDUCE_STRIPE_CHUNKS_UNSEEN);
	assert_int_equal(planner_limits_usual.segments_unseen_max, REDUCE_STRIPES_UNSEEN);
	assert_int_equal(planner_limits_usual.exchange_bytes_max, REDUCE_DIRECT_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contributions_take_the_same_slots),
		cmocka_unit_test(limits_and_what_is_none_are_the_same_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
