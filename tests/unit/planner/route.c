/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Planners by routes: mesh, server, halving, circulant and HiPS. The verifier accepts each graph;
 * trees are as deep, and rails as busy, as the algorithms' papers say.
 */
#include "fixtures/planner_test.h"

static struct network bcube(uint32_t members, uint32_t levels)
{
	struct network w = {.levels = levels, .places = 1};

	for (uint32_t l = 0; l < levels; l++) {
		w.level[l] = (struct network_level){members, false, (uint8_t)l, 20000, 125000000};
		w.places *= members;
	}
	return w;
}

static struct network torus(uint32_t members, uint32_t levels)
{
	struct network w = bcube(members, levels);

	for (uint32_t l = 0; l < levels; l++) {
		w.level[l].ring = true;
		w.level[l].rail = (uint8_t)(2 * l);
	}
	return w;
}

/* As if telling a node of a vertex took no time: then each place owns a segment of each part. */
static struct planner_request at_once(struct planner_request q)
{
	q.all.start_ns = 0;
	for (uint32_t i = 0; i < q.groups; i++)
		planner_asked_group[i].link.start_ns = 0;
	return q;
}

static bool plan(const struct planner_request *q, const struct planner *p, struct planner_choice *c,
		 struct graph *g)
{
	if (planner_shape(q, p, c))
		return false;
	planner_built(q, c, g);
	return true;
}

/* Hops of the deepest vertex to its segment's root. */
static uint32_t depth(const struct graph *g)
{
	uint32_t most = 0;

	for (uint32_t v = 0; v < g->vertices; v++) {
		uint32_t hops = 0;

		for (uint32_t at = v; g->vertex[at].out != GRAPH_NONE; hops++)
			at = g->vertex[at].out;
		most = hops > most ? hops : most;
	}
	return most;
}

/* Chunks that a slot's vertices give to others; `rail` NETWORK_NONE: on all rails. */
static uint64_t gives(const struct graph *g, uint32_t slot, uint32_t rail)
{
	uint64_t chunks = 0;

	for (uint32_t e = 0; e < g->edges; e++)
		if (graph_slot_of(g, g->edge[e].vertex) == slot &&
		    (rail == NETWORK_NONE || g->edge[e].rail == rail))
			chunks += g->segment[graph_segment_of(g, g->edge[e].vertex)].count;
	return chunks;
}

static void flat_planners_build_what_the_verifier_accepts(void **state)
{
	static const struct planner *const flat[] = {&planner_mesh, &planner_server,
						     &planner_halving, &planner_circulant};

	for (uint32_t p = 2; p <= 64; p++) {
		struct planner_request q = planner_asked(p, 1, 0, 4 << 20);

		for (unsigned i = 0; i < sizeof(flat) / sizeof(*flat); i++) {
			bool power = (p & (p - 1)) == 0;
			struct planner_choice c;
			struct graph g;

			if (!plan(&q, flat[i], &c, &g)) {
				assert_true((flat[i] == &planner_halving && !power) ||
					    (flat[i] == &planner_server && p == 2));
				continue;
			}
			assert_string_equal(g.planner, flat[i]->name);
			assert_true(c.estimate_ns > 0 && c.estimate_ns < UINT64_C(100000000000));
		}
	}
}

static void halving_and_circulant_take_log_hops_and_a_rings_bytes(void **state)
{
	for (uint32_t p = 2; p <= 64; p++) {
		struct planner_request q = planner_asked(p, 1, 0, (uint64_t)p * 64 * PLANNER_CHUNK);
		uint32_t log = 0;
		struct planner_choice c;
		struct graph g;

		while (1u << log < p)
			log++;
		assert_true(plan(&q, &planner_circulant, &c, &g));
		assert_in_range(depth(&g), 1, log);
		for (uint32_t s = 0; s < p; s++)
			assert_int_equal(gives(&g, s, NETWORK_NONE), 64 * (p - 1));
		if (!plan(&q, &planner_halving, &c, &g))
			continue;
		assert_int_equal(depth(&g), log);
		for (uint32_t s = 0; s < p; s++)
			assert_int_equal(gives(&g, s, NETWORK_NONE), 64 * (p - 1));
	}
}

static void a_mesh_takes_one_hop(void **state)
{
	struct planner_request q = planner_asked(9, 1, 0, 4 << 20);
	struct planner_choice c;
	struct graph g;

	assert_true(plan(&q, &planner_mesh, &c, &g));
	assert_int_equal(depth(&g), 1);
	for (uint32_t s = 0; s < 9; s++)
		assert_int_equal(g.vertex[graph_vertex_of(&g, s, s)].ins, 8);
}

/* BCube(n, h - 1): 2h or 2h(n - 1) start-ups in all, so half of them upwards; every port sends
 * (N - 1)/(h N) of the target. */
static void hips_keeps_all_ports_of_a_bcube_equally_busy(void **state)
{
	static const uint32_t shape[][2] = {{3, 2}, {2, 3}, {4, 2}, {5, 2}, {2, 4}};

	for (unsigned i = 0; i < sizeof(shape) / sizeof(*shape); i++) {
		uint32_t n = shape[i][0], h = shape[i][1];
		struct network w = bcube(n, h);
		uint64_t chunks = (uint64_t)w.places * h * 8;
		struct planner_request q =
			at_once(planner_asked(w.places, 1, 0, chunks * PLANNER_CHUNK));
		struct planner_choice c;
		struct graph g;

		q.network = &w;
		assert_true(plan(&q, &planner_hips_mesh, &c, &g));
		assert_int_equal(depth(&g), h);
		assert_int_equal(g.segments, w.places * h);
		for (uint32_t s = 0; s < w.places; s++)
			for (uint32_t rail = 0; rail < h; rail++)
				assert_int_equal(gives(&g, s, rail),
						 chunks * (w.places - 1) / w.places / h);
		assert_true(plan(&q, &planner_hips_ring, &c, &g));
		assert_int_equal(depth(&g), h * (n - 1));
		for (uint32_t s = 0; s < w.places; s++)
			for (uint32_t rail = 0; rail < h; rail++)
				assert_int_equal(gives(&g, s, rail),
						 chunks * (w.places - 1) / w.places / h);
	}
}

static void hips_uses_both_ways_of_a_torus(void **state)
{
	struct network w = torus(4, 2);
	uint64_t chunks = UINT64_C(16) * 4 * 8;
	struct planner_request q = at_once(planner_asked(16, 1, 0, chunks * PLANNER_CHUNK));
	struct planner_choice c;
	struct graph g;

	q.network = &w;
	assert_int_equal(network_rails(&w), 4);
	assert_true(plan(&q, &planner_hips, &c, &g));
	assert_int_equal(g.segments, 64);
	assert_int_equal(depth(&g), 2 * 3);
	for (uint32_t s = 0; s < 16; s++)
		for (uint32_t rail = 0; rail < 4; rail++)
			assert_int_equal(gives(&g, s, rail), chunks * 15 / 16 / 4);
}

/* Chunks that a slot passes on downwards by a rail, to neighbours. */
static uint64_t passes(const struct graph *g, const struct network *w, uint32_t slot, uint32_t rail)
{
	uint64_t chunks = 0;

	for (uint32_t j = 0; j < g->segments; j++)
		for (uint32_t i = 0; i < g->slots; i++) {
			uint32_t l = 0;

			if (i == slot || g->feeder[j * g->slots + i] != slot)
				continue;
			while (network_coordinate(w, i, l) == network_coordinate(w, slot, l))
				l++;
			if (network_rail_towards(w, slot, i, l) == rail)
				chunks += g->segment[j].count;
		}
	return chunks;
}

/* Where a graph has no room for an owner at each place there are fewer; for fewer segments than
 * rails there is one part, whose owners take the two ways round the rings, and the levels, in
 * turns. With enough owners no port sends, upwards and downwards, much more than its share. */
static void fewer_owners_than_places_use_all_rails(void **state)
{
	static const struct {
		uint32_t fit, segments, share; /* of a port, in percent */
	} of[] = {{64, 64, 100}, {63, 16, 107}, {31, 16, 107}, {3, 3, 400}};

	for (unsigned i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct network w = torus(4, 2);
		struct planner_limits limits = planner_limits_usual;
		uint64_t chunks = UINT64_C(16) * 4 * 8;
		struct planner_request q = at_once(planner_asked(16, 1, 0, chunks * PLANNER_CHUNK));
		struct planner_choice c;
		struct graph g;

		limits.route_segments_max = of[i].fit;
		q.limits = &limits;
		q.network = &w;
		assert_true(plan(&q, &planner_hips, &c, &g));
		assert_int_equal(g.segments, of[i].segments);
		assert_int_equal(depth(&g), 2 * 3);
		for (uint32_t s = 0; s < 16; s++) {
			uint64_t even = chunks * 15 / 16 / 4;

			for (uint32_t rail = 0; rail < 4; rail++)
				assert_in_range(gives(&g, s, rail) + passes(&g, &w, s, rail), 0,
						2 * even * of[i].share / 100);
		}
	}
}

/* Many nodes: the graph has a bound of vertices, and yet no port sends much more than its share; a
 * mesh, whose roots send copies, needs more owners for that. */
static void many_places_take_few_segments(void **state)
{
	static const struct {
		uint32_t members, levels;
		bool ring;
		uint32_t most; /* percent of a port's share */
	} of[] = {{3, 4, false, 113}, {4, 3, false, 103},  {4, 4, false, 107}, {8, 3, false, 126},
		  {9, 2, false, 102}, {32, 2, false, 113}, {4, 5, false, 235}, {4, 3, true, 103},
		  {16, 2, true, 101}, {8, 3, true, 142}};
	static uint64_t sent[GRAPH_SLOTS_MAX][16];

	for (unsigned i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct network w = of[i].ring ? torus(of[i].members, of[i].levels)
					      : bcube(of[i].members, of[i].levels);
		uint32_t rails = network_rails(&w);
		struct planner_request q = planner_asked(w.places, 1, 0, UINT64_C(1) << 30);
		struct planner_choice c;
		uint64_t most = 0;
		struct graph g;

		q.network = &w;
		assert_true(plan(&q, &planner_hips_ring, &c, &g));
		assert_int_equal(depth(&g), of[i].levels * (of[i].members - 1));
		assert_in_range(g.vertices, 1, planner_limits_usual.vertices_max);
		memset(sent, 0, sizeof(sent));
		for (uint32_t e = 0; e < g.edges; e++)
			sent[graph_slot_of(&g, g.edge[e].vertex)][g.edge[e].rail] +=
				g.segment[graph_segment_of(&g, g.edge[e].vertex)].count;
		for (uint32_t s = 0; s < w.places; s++)
			for (uint32_t rail = 0; rail < rails; rail++)
				most = sent[s][rail] > most ? sent[s][rail] : most;
		print_message("%u^%u%s: %u segments, %llu %%\n", of[i].members, of[i].levels,
			      of[i].ring ? " torus" : "", g.segments,
			      (unsigned long long)(most * rails * 100 * w.places /
						   ((w.places - 1) * (q.size / PLANNER_CHUNK))));
		assert_in_range(most * rails * 100 * w.places, 0,
				(uint64_t)of[i].most * (w.places - 1) *
					(q.size / PLANNER_CHUNK + g.segments * 2));
	}
}

/* Tiers share a port: what leaves a rack has been added up in it, each of two nodes half of it. */
static void hips_climbs_tiers_from_the_lowest(void **state)
{
	static const struct planner *const all[] = {&planner_hips_mesh, &planner_hips_ring};
	const struct network w = {.levels = 3,
				  .places = 16,
				  .level = {{.members = 2}, {.members = 2}, {.members = 4}}};
	uint64_t chunks = 16 * 8;
	struct planner_request q = at_once(planner_asked(16, 1, 0, chunks * PLANNER_CHUNK));

	q.network = &w;
	for (unsigned i = 0; i < 2; i++) {
		uint64_t out[2] = {0}; /* of node 5's rack, of its pod */
		struct planner_choice c;
		struct graph g;

		assert_true(plan(&q, all[i], &c, &g));
		for (uint32_t e = 0; e < g.edges; e++) {
			uint32_t v = g.edge[e].vertex, from = graph_slot_of(&g, v);
			uint32_t to = graph_slot_of(&g, g.vertex[v].out);

			if (from / 2 == 5 / 2 && to / 2 != 5 / 2)
				out[0] += g.segment[graph_segment_of(&g, v)].count;
			if (from / 4 == 5 / 4 && to / 4 != 5 / 4)
				out[1] += g.segment[graph_segment_of(&g, v)].count;
		}
		assert_int_equal(out[1], chunks * 3 / 4);
		assert_int_equal(out[0], chunks * 1 / 2 + chunks / 2 * 3 / 4);
	}
}

/* An edge only joins places that differ on the level of its rail; of a ring, by one. */
static void hips_crosses_only_links_that_exist(void **state)
{
	struct network w = {
		.levels = 3,
		.places = 24,
		.level = {{4, true, 0, 0, 0}, {2, false, 2, 0, 0}, {3, false, 3, 0, 0}}};
	struct planner_request q = planner_asked(24, 2, 0, 8 << 20);
	static const struct planner *const all[] = {&planner_hips, &planner_hips_mesh,
						    &planner_hips_ring, &planner_hips_server};

	q.network = &w;
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct planner_choice c;
		struct graph g;

		assert_true(plan(&q, all[i], &c, &g));
		for (uint32_t v = 0; v < g.vertices; v++)
			for (uint32_t k = 0; k < g.vertex[v].ins; k++) {
				struct graph_edge e = g.edge[g.vertex[v].in + k];
				uint32_t from = graph_slot_of(&g, e.vertex);
				uint32_t to = graph_slot_of(&g, v), level = 0;
				uint32_t a, b, members;

				while (level + 1 < w.levels && w.level[level + 1].rail <= e.rail)
					level++;
				a = network_coordinate(&w, from, level);
				b = network_coordinate(&w, to, level);
				members = w.level[level].members;
				assert_int_not_equal(a, b);
				assert_int_equal(network_moved(&w, from, level, b), to);
				if (w.level[level].ring)
					assert_int_equal((a + (e.rail == w.level[level].rail
								       ? 1
								       : members - 1)) %
								 members,
							 b);
			}
	}
}

/* All hops of the ring cross one link, but for the last of one with an odd number of members. */
static void the_ring_follows_links(void **state)
{
	struct network nets[] = {bcube(4, 2), torus(4, 2), torus(2, 3), bcube(3, 2)};

	for (unsigned i = 0; i < sizeof(nets) / sizeof(*nets); i++) {
		const struct network *w = &nets[i];
		struct planner_request q = planner_asked(w->places, 1, 0, 8 << 20);
		struct planner_choice c;
		uint32_t far = 0;
		struct graph g;

		q.network = w;
		assert_true(plan(&q, &planner_ring, &c, &g));
		assert_int_equal(g.segments, w->places);
		assert_int_equal(depth(&g), w->places - 1);
		for (uint32_t v = 0; v < g.vertices; v++) {
			uint32_t differ = 0;

			if (g.vertex[v].out == GRAPH_NONE)
				continue;
			for (uint32_t l = 0; l < w->levels; l++)
				differ += network_coordinate(w, graph_slot_of(&g, v), l) !=
					  network_coordinate(w, graph_slot_of(&g, g.vertex[v].out),
							     l);
			far += differ > 1;
		}
		if (w->level[0].members % 2 == 0)
			assert_int_equal(far, 0);
		else
			assert_int_equal(far, w->places - 1); /* in each segment but one */
	}
}

/* Whom a slot sends to, upwards or as a feeder, of all segments. */
static uint32_t receivers(const struct graph *g, uint32_t slot)
{
	uint64_t seen = 0;

	for (uint32_t e = 0; e < g->edges; e++)
		if (graph_slot_of(g, g->edge[e].vertex) == slot)
			seen |= UINT64_C(1) << graph_slot_of(g, g->vertex[g->edge[e].vertex].out);
	for (uint32_t j = 0; j < g->segments; j++)
		for (uint32_t i = 0; i < g->slots; i++)
			if (i != slot && g->feeder[j * g->slots + i] == slot)
				seen |= UINT64_C(1) << i;
	return (uint32_t)__builtin_popcountll(seen);
}

/* So that no connection has chunks both ways: a port sends to one neighbour. */
static void a_ring_goes_on_around(void **state)
{
	struct network cube = bcube(3, 2), tori = torus(4, 2), odd = torus(3, 3);
	const struct {
		const struct network *w;
		const struct planner *planner;
		uint32_t receivers;
	} c[] = {{&cube, &planner_ring, 1},	 {&tori, &planner_ring, 1},
		 {&cube, &planner_hips_ring, 2}, {&tori, &planner_hips_ring, 4},
		 {&odd, &planner_hips_mesh, 6},	 {&cube, &planner_hips_mesh, 4}};

	for (unsigned i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct planner_request q = planner_asked(c[i].w->places, 1, 0, 8 << 20);
		struct planner_choice choice;
		struct graph g;

		q.network = c[i].w;
		assert_true(plan(&q, c[i].planner, &choice, &g));
		for (uint32_t s = 0; s < g.slots; s++)
			assert_int_equal(receivers(&g, s), c[i].receivers);
	}
}

static void hips_needs_every_place(void **state)
{
	uint32_t place[9] = {8, 7, 6, 5, 4, 3, 2, 1, 0};
	struct network w = bcube(3, 2);
	struct planner_request q = planner_asked(9, 1, 0, 1 << 20);
	struct planner_choice c;
	struct graph g;

	assert_int_equal(planner_shape(&q, &planner_hips, &c), -EINVAL);
	q.network = &w;
	w.place = place;
	w.nodes = 9;
	assert_true(plan(&q, &planner_hips, &c, &g));
	for (uint32_t s = 0; s < 9; s++)
		assert_int_equal(g.slot[s].host, 8 - s);
	place[0] = 7; /* two nodes at one place */
	assert_int_equal(planner_shape(&q, &planner_hips, &c), -EINVAL);
	place[0] = NETWORK_NONE;
	assert_int_equal(planner_shape(&q, &planner_hips, &c), -EINVAL);
	w.place = NULL;
	q.groups = q.present = 8; /* one is late */
	assert_int_equal(planner_shape(&q, &planner_hips, &c), -EINVAL);
	q = planner_asked(9, 1, 0, PLANNER_CHUNK); /* one segment would be no allreduce in parts */
	q.network = &w;
	assert_int_equal(planner_shape(&q, &planner_hips, &c), -EINVAL);
}

/* Where the dataplane cannot use the links of the levels other planners do it. */
static void crossed_links_get_no_plan_along_levels(void **state)
{
	static const struct planner *const all[] = {&planner_hips, &planner_hips_mesh,
						    &planner_hips_ring, &planner_hips_server,
						    &planner_ring};
	struct network w = torus(4, 2);
	struct planner_request q = planner_asked(16, 1, 0, 64 << 20);
	struct planner_choice c;
	struct graph g;

	q.network = &w;
	w.crossed = true;
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		assert_int_equal(planner_shape(&q, all[i], &c), -EINVAL);
		assert_string_equal(planner_unfit(all[i], &q), PLANNER_CROSSED);
	}
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_true(c.size.segments > 1); /* in segments all the same */
	planner_built(&q, &c, &g);
	w.crossed = false;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_memory_equal(c.planner->name, "hips", 4);
}

/* With a network the least estimate wins: large targets use all ports, small ones few hops. */
static void the_cheapest_is_chosen_over_a_network(void **state)
{
	struct network w = bcube(3, 2);
	struct planner_request q = planner_asked(9, 1, 0, 64 << 20);
	struct planner_choice c, other;

	q.network = &w;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_equal(c.planner, &planner_hips_ring); /* a mesh takes 6 % more */
	for (uint32_t i = 0; planner_table[i]; i++)
		if (planner_shape(&q, planner_table[i], &other) == 0)
			assert_true(other.estimate_ns >= c.estimate_ns);
	q.all.start_ns = 0;
	for (uint32_t i = 0; i < 9; i++)
		planner_asked_group[i].link = q.all;
	q.size = 160 << 10; /* fewer hops */
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_equal(c.planner, &planner_hips);
	q.all.start_ns = 100000;
	for (uint32_t i = 0; i < 9; i++)
		planner_asked_group[i].link = q.all;
	assert_int_equal(planner_choose(&q, &c), 0); /* fewer starts */
	assert_true(c.size.segments < 18);
	q.size = 32 << 10;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_not_equal(c.planner, &planner_hips_ring);
	q.everyone = false;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_equal(c.planner, &planner_dary);
}

static void one_that_is_named_is_taken_where_it_fits(void **state)
{
	struct planner_limits limits = planner_limits_usual;
	struct planner_request q = planner_asked(9, 1, 0, 4 << 20);
	struct network w = bcube(3, 2);
	struct planner_choice c, free;

	assert_null(planner_named("hips "));
	for (uint32_t i = 0; planner_table[i]; i++)
		assert_ptr_equal(planner_named(planner_table[i]->name), planner_table[i]);
	for (unsigned known = 0; known < 2; known++) {
		q.network = known ? &w : NULL;
		q.limits = &planner_limits_usual;
		assert_int_equal(planner_choose(&q, &free), 0);
		q.limits = &limits;
		for (uint32_t i = 0; planner_table[i]; i++) {
			limits.only = planner_table[i];
			assert_int_equal(planner_choose(&q, &c), 0);
			assert_ptr_equal(c.planner, planner_unfit(planner_table[i], &q)
							    ? free.planner
							    : planner_table[i]);
		}
	}
	q.needed = 0; /* what makes no sense is refused all the same */
	assert_int_equal(planner_choose(&q, &c), -EINVAL);
}

static void a_wrong_network_is_named(void **state)
{
	struct network w = bcube(3, 2);
	uint32_t place[2] = {0, 9};

	assert_null(network_wrong(&w));
	w.place = place;
	w.nodes = 2;
	assert_string_equal(network_wrong(&w), "a node stands at no place");
	w = bcube(3, 2);
	w.places = 8;
	assert_string_equal(network_wrong(&w),
			    "the places are not the product of the levels' members");
	w = bcube(1, 2);
	assert_string_equal(network_wrong(&w), "a level has fewer than two members, or too many");
	w = bcube(40, 2);
	assert_string_equal(network_wrong(&w), "more places than a network may have");
	w.levels = 9;
	assert_string_equal(network_wrong(&w), "more levels than a network may have");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat_planners_build_what_the_verifier_accepts),
		cmocka_unit_test(halving_and_circulant_take_log_hops_and_a_rings_bytes),
		cmocka_unit_test(a_mesh_takes_one_hop),
		cmocka_unit_test(hips_keeps_all_ports_of_a_bcube_equally_busy),
		cmocka_unit_test(hips_uses_both_ways_of_a_torus),
		cmocka_unit_test(fewer_owners_than_places_use_all_rails),
		cmocka_unit_test(many_places_take_few_segments),
		cmocka_unit_test(hips_climbs_tiers_from_the_lowest),
		cmocka_unit_test(hips_crosses_only_links_that_exist),
		cmocka_unit_test(the_ring_follows_links),
		cmocka_unit_test(a_ring_goes_on_around),
		cmocka_unit_test(hips_needs_every_place),
		cmocka_unit_test(crossed_links_get_no_plan_along_levels),
		cmocka_unit_test(the_cheapest_is_chosen_over_a_network),
		cmocka_unit_test(one_that_is_named_is_taken_where_it_fits),
		cmocka_unit_test(a_wrong_network_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
