/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plan graph against the shape that the coordinator computes: the same slots, parents, children
 * in the same order, extents, roots, names, wants, hosts, preferred root and feeders, for all
 * shapes of up to 64 slots, and for random requests as the coordinator decides them. The
 * coordinator's own functions are the oracle; those that are static are included.
 */
#include "planner_test.h"
#include "core/reduce/coordinator/binding.c"
#include "core/reduce/coordinator/relays.c"

enum { NODES = 160, CHUNK = 1408, SLOTS = 64, REQUESTS = 60000 };

static struct oracle {
	struct control c;
	struct node self;
	struct directory_node nodes[NODES];
	struct reduce r;
	struct reduce_seat seat[GRAPH_SLOTS_MAX];
	struct reduce_cell cell[SLOTS * SLOTS];
	struct reduce_group group[NODES];
	uint32_t groups, grouped;
} oracle;

static struct planner_group group[NODES];

static void oracle_begin(void)
{
	struct oracle *o = &oracle;

	memset(o, 0, sizeof(*o));
	o->c.self = &o->self;
	o->c.workers = 1;
	o->c.config.grid_seats = 9;
	o->c.config.grid_late_seats = 6;
	o->c.dataplane.chunk_bytes = CHUNK;
	o->c.directory.nodes = o->nodes;
	o->c.directory.nodes_count = NODES;
	o->c.directory.link = fanout_prior();
	o->r.chunk_bytes = CHUNK;
	o->r.caller = REDUCE_NONE;
	o->r.seat = o->seat;
	o->r.cell = o->cell;
	o->r.by_id.id.bytes[3] = 7;
	o->r.number = 1234567;
}

/* The steps of reduce_plan, without what tells anybody. */
static void oracle_cells(void)
{
	struct reduce *r = &oracle.r;

	r->root = reduce_tree_root(r->seats, r->degree);
	r->cells = r->seats * r->stripes;
	for (uint32_t i = 0; i < r->seats; i++)
		r->seat[i] = (struct reduce_seat){REDUCE_NONE, 1, 0};
	for (uint32_t i = 0; i < r->cells; i++)
		reduce_name(&oracle.c, r, i);
	reduce_book(r, oracle.group, oracle.groups);
}

static void oracle_plan(void)
{
	struct reduce *r = &oracle.r;

	r->seats = oracle.groups + (r->num - oracle.grouped);
	r->stripes = reduce_stripes(&oracle.c, r, oracle.grouped);
	reduce_links_top(&oracle.c, r, oracle.group, oracle.groups);
	reduce_links_shape(&oracle.c, r, oracle.group, oracle.groups);
	oracle_cells();
	r->row = reduce_row(&oracle.c, r, oracle.grouped);
}

/* What the coordinator would copy into a request. */
static struct topology_link as_link(struct fanout_link l)
{
	return (struct topology_link){l.hop_ns, l.start_ns, l.bytes_per_s};
}

static struct planner_request as_request(void)
{
	const struct reduce *r = &oracle.r;

	for (uint32_t g = 0; g < oracle.groups; g++)
		group[g] = (struct planner_group){
			.node = oracle.group[g].node,
			.count = oracle.group[g].count,
			.link = as_link(directory_link(&oracle.c.directory, oracle.group[g].node))};
	return (struct planner_request){.size = r->size,
					.chunk_bytes = r->chunk_bytes,
					.needed = r->num,
					.group = group,
					.groups = oracle.groups,
					.present = oracle.grouped,
					.caller = r->caller,
					.everyone = r->flags & MESSAGE_REDUCE_SPREAD,
					.rate_seen = oracle.c.directory.link.rate_seen,
					.all = as_link(oracle.c.directory.link),
					.limits = &planner_limits_usual};
}

/* ---- comparison ----------------------------------------------------------------------------- */

static void same_vertex(const struct graph *g, uint32_t v)
{
	const struct reduce *r = &oracle.r;
	const struct graph_vertex *p = &g->vertex[v];
	uint32_t child[REDUCE_DEGREE_MAX], children = reduce_children(r, v, child);
	struct object_id id;

	assert_int_equal(graph_slot_of(g, v), r->cell[v].seat);
	assert_int_equal(graph_segment_of(g, v), r->cell[v].stripe);
	assert_int_equal(p->out, reduce_parent(r, v));
	assert_int_equal(p->ins, children);
	for (uint32_t k = 0; k < children; k++) {
		assert_int_equal(g->edge[p->in + k].vertex, child[k]);
		assert_int_equal(g->edge[p->in + k].rail, 0);
	}
	assert_int_equal(g->segment[graph_segment_of(g, v)].root == v, reduce_is_root(&r->cell[v]));
	assert_int_equal(p->op == GRAPH_SUM, r->cell[v].combines);
	assert_int_equal(p->target, r->stripes == 1 && reduce_is_root(&r->cell[v]));
	assert_int_equal(graph_wants(g, v) + p->ins, reduce_seat_of(&r->cell[v])->wants + children);
	graph_name(&r->by_id.id, r->number, v, &id);
	if (p->target)
		id = r->by_id.id;
	assert_memory_equal(&id, &r->cell[v].id, sizeof(id));
}

static void same_feeders(const struct graph *g)
{
	const struct reduce *r = &oracle.r;

	assert_int_equal(g->feeder != NULL, r->row > 0);
	for (uint32_t i = 0; g->feeder && i < g->vertices; i++) {
		uint32_t j = i / g->slots, place = (i + g->slots - j) % g->slots;
		uint32_t from = place ? reduce_stripe_feeder(r->row, place) : 0;

		assert_int_equal(g->feeder[i], (j + from) % g->slots);
	}
}

static void same_graph(const struct graph *g)
{
	const struct reduce *r = &oracle.r;
	uint32_t first, count;
	struct object_id id;

	assert_int_equal(g->slots, r->seats);
	assert_int_equal(g->segments, r->stripes);
	assert_int_equal(g->vertices, r->cells);
	assert_int_equal(g->needed, r->num);
	assert_int_equal(g->values, r->direct);
	assert_int_equal(g->eager, r->direct);
	assert_int_equal(g->out == GRAPH_OUT_GATHER, r->stripes > 1);
	assert_int_equal(graph_output_parts(g), r->stripes + (r->row > 0));
	for (uint32_t i = 0; i < g->slots; i++) {
		bool root = r->stripes == 1 && i == r->root;

		assert_int_equal(g->slot[i].host, r->seat[i].host);
		assert_int_equal(g->slot[i].wants, r->seat[i].wants);
		assert_int_equal(g->slot[i].prefer, root ? r->top : GRAPH_NODE_NONE);
	}
	for (uint32_t v = 0; v < g->vertices; v++)
		same_vertex(g, v);
	for (uint32_t j = 0; j < g->segments; j++) {
		reduce_extent(r, j, &first, &count);
		assert_int_equal(g->segment[j].first, first);
		assert_int_equal(g->segment[j].count, count);
	}
	for (uint32_t j = 0; g->segments > 1 && j < g->segments; j++) {
		reduce_stripe_name(&r->by_id.id, r->number, r->stripes, j, &id);
		assert_memory_equal(&id, &r->cell[g->segment[j].root].id, sizeof(id));
	}
	same_feeders(g);
}

/* ---- every shape ---------------------------------------------------------------------------- */

/* All late, or all there. */
static void begin_shape(uint32_t n, bool late, bool everyone, uint64_t size)
{
	struct reduce *r = &oracle.r;

	oracle_begin();
	r->seats = r->num = n;
	r->size = size;
	r->flags = everyone ? MESSAGE_REDUCE_SPREAD : 0;
	oracle.groups = oracle.grouped = late ? 0 : n;
	for (uint32_t i = 0; i < oracle.groups; i++)
		oracle.group[i] = (struct reduce_group){i, 1};
	r->stripes = 1;
	r->top = r->caller;
}

static void same_tree(uint32_t n, uint32_t d, bool late)
{
	struct planner_request q;
	struct planner_choice c;
	struct graph g;

	begin_shape(n, late, false, 1 << 20);
	oracle.r.degree = d;
	oracle_cells();
	q = as_request();
	assert_int_equal(planner_shape(&q, &planner_dary, &c), 0);
	c.degree = d;
	planner_built(&q, &c, &g);
	same_graph(&g);
}

static void trees_of_every_degree_are_alike(void **state)
{
	for (uint32_t n = 1; n <= SLOTS; n++)
		for (uint32_t d = 1; d == 1 || d <= n; d++)
			same_tree(n, d, d % 2);
	for (uint32_t d = 1; d <= REDUCE_DEGREE_MAX; d++)
		same_tree(GRAPH_SLOTS_MAX, d, true);
}

static void segments_of_every_count_are_alike(void **state)
{
	for (uint32_t p = 2; p <= SLOTS; p++)
		for (uint32_t kind = 0; kind < 3; kind++) {
			const bool direct = kind == 0;
			struct planner_request q;
			struct planner_choice c;
			struct graph g;

			begin_shape(p, kind == 2, true,
				    (uint64_t)p * CHUNK * (direct ? 1 : 20) + p - CHUNK / 2);
			oracle.r.size += direct ? CHUNK / 2 - p : 0;
			oracle.r.stripes = p;
			oracle.r.direct = direct;
			oracle.r.degree = 1;
			oracle_cells();
			oracle.r.row = reduce_row(&oracle.c, &oracle.r, oracle.grouped);
			q = as_request();
			assert_int_equal(
				planner_shape(&q, direct ? &planner_exchange : &planner_chains, &c),
				0);
			planner_built(&q, &c, &g);
			same_graph(&g);
		}
}

/* ---- what is decided ------------------------------------------------------------------------ */

static void draw_links(uint64_t *seed)
{
	struct directory *d = &oracle.c.directory;
	uint32_t worse = planner_draw(seed, 4) ? planner_draw(seed, 3) : planner_draw(seed, NODES);

	d->link.hop_ns = 1000 + planner_draw(seed, 1 << planner_draw(seed, 23));
	d->link.start_ns = 2 * d->link.hop_ns + planner_draw(seed, 1000000);
	d->link.bytes_per_s = 1000000 + planner_draw(seed, 1 << planner_draw(seed, 31));
	d->link.rate_seen = planner_draw(seed, 4) > 0;
	for (uint32_t k = 0; k < worse; k++) {
		struct directory_node *n = &oracle.nodes[planner_draw(seed, NODES / 3)];

		if (planner_draw(seed, 2)) {
			n->starts = 3;
			n->link.start_ns = d->link.start_ns * (5 + planner_draw(seed, 50));
			n->link.hop_ns = n->link.start_ns / (2 + planner_draw(seed, 6));
			n->link.hop_seen = planner_draw(seed, 2);
		}
		if (planner_draw(seed, 2)) {
			n->low = 3;
			n->link.bytes_per_s =
				d->link.bytes_per_s / (5 + planner_draw(seed, 40)) + 1;
		}
	}
}

/* Contributions there and late, alone or several on a node, at most so many groups. */
static void draw_groups(uint64_t *seed, uint32_t most)
{
	uint32_t groups = planner_draw(seed, most + 1),
		 late = planner_draw(seed, 3) ? 0 : planner_draw(seed, most);
	bool many = planner_draw(seed, 3) == 0;

	oracle.groups = groups;
	oracle.grouped = 0;
	for (uint32_t i = 0; i < groups; i++) {
		uint32_t count = many ? 1 + planner_draw(seed, planner_draw(seed, 9) ? 3 : 120) : 1;

		oracle.group[i] =
			(struct reduce_group){(i * 37 + (uint32_t)*seed % 11) % NODES, count};
		oracle.grouped += count;
	}
	if (groups + late == 0)
		late = 1;
	oracle.r.num = oracle.grouped + late;
}

static const char *compare_decision(void)
{
	struct planner_request q = as_request(); /* before the oracle changes its groups' order */
	struct planner_choice c;
	struct graph g;

	oracle_plan();
	assert_int_equal(planner_choose(&q, &c), 0);
	planner_built(&q, &c, &g);
	if (oracle.r.stripes == 1)
		assert_int_equal(c.degree, oracle.r.degree);
	same_graph(&g);
	return g.planner;
}

static void decisions_are_alike(void **state)
{
	uint32_t trees = 0, chains = 0, exchanges = 0, grids = 0, to_slow = 0;

	for (uint64_t run = 1; run <= REQUESTS; run++) {
		uint64_t seed = run * 7919;
		const char *name;

		oracle_begin();
		draw_links(&seed);
		draw_groups(&seed, planner_draw(&seed, 8) ? 2 + planner_draw(&seed, 20) : 70);
		oracle.r.flags = planner_draw(&seed, 3) ? MESSAGE_REDUCE_SPREAD : 0;
		oracle.r.size = planner_draw(&seed, 1u << planner_draw(&seed, 25)) *
				(uint64_t)(1 + planner_draw(&seed, 2));
		if (planner_draw(&seed, 3) == 0) /* around the thresholds */
			oracle.r.size =
				CHUNK * (uint64_t)(oracle.groups + oracle.r.num - oracle.grouped) *
					(1 + planner_draw(&seed, 17)) +
				planner_draw(&seed, 3) - 1;
		if (planner_draw(&seed, 3))
			oracle.r.caller = planner_draw(&seed, NODES);
		name = compare_decision();
		trees += strcmp(name, "dary") == 0;
		chains += strcmp(name, "chains") == 0;
		exchanges += strcmp(name, "exchange") == 0;
		grids += oracle.r.row > 0;
		to_slow += oracle.r.top != oracle.r.caller;
	}
	print_message("%u trees (%u to a slow node), %u chains (%u with a grid), %u exchanges\n",
		      trees, to_slow, chains, grids, exchanges);
	assert_true(trees > 1000 && chains > 1000 && exchanges > 1000 && grids > 1000 &&
		    to_slow > 100);
}

/* ---- readers that come and go ---------------------------------------------------------------- */

static void a_reader_is_fed_from_the_nearest_slot_above(void **state)
{
	static struct reduce_getter getter[SLOTS];
	uint64_t seed = 1;

	for (uint32_t p = 9; p <= SLOTS; p++)
		for (uint32_t run = 0; run < 4; run++) {
			struct feed_map map = {{NULL}};
			struct planner_request q;
			struct planner_choice c;
			struct graph g;
			uint64_t there = 0;

			begin_shape(p, false, true, (uint64_t)p * CHUNK * 20);
			oracle_plan();
			assert_true(oracle.r.row > 0);
			q = as_request();
			assert_int_equal(planner_choose(&q, &c), 0);
			planner_built(&q, &c, &g);
			for (uint32_t i = 0; i < p; i++) {
				getter[i] = (struct reduce_getter){
					.reduce = &oracle.r, .node = i, .seat = i};
				if (run && planner_draw(&seed, run + 1) == 0)
					continue;
				map.at[i] = &getter[i];
				there |= UINT64_C(1) << i;
			}
			for (uint32_t i = 0; i < p * p; i++) {
				const struct reduce_getter *from =
					feed_from(&oracle.r, &map, &getter[i % p], i / p);

				assert_int_equal(distribution_from(&g, i / p, i % p, &there),
						 from ? from->seat : GRAPH_NONE);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees_of_every_degree_are_alike),
		cmocka_unit_test(segments_of_every_count_are_alike),
		cmocka_unit_test(decisions_are_alike),
		cmocka_unit_test(a_reader_is_fed_from_the_nearest_slot_above),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
