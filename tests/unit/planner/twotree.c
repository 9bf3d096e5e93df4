/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-tree: its shape, and when it wins. Beside the estimates stands an exact model of any plan
 * graph: every node has a link that sends one chunk at a time and one that takes one at a time; a
 * chunk goes on when it is in from all edges; streams of one sender take turns. The table that the
 * test prints is of that model.
 */
#include <math.h>
#include "fixtures/planner_test.h"
#include "core/planner/cost.h"

enum { MODEL_NODES = 32, MODEL_HOPS = 2 * MODEL_NODES * MODEL_NODES, MODEL_CHUNKS = 800 };

static const struct topology_link link = {50000, 100000, 125000000};

static struct planner_request request(uint32_t n, uint64_t size, bool everyone)
{
	struct planner_request q = planner_asked(n, 1, 0, size);

	q.everyone = everyone;
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

/* ---- the shape ------------------------------------------------------------------------------ */

static uint32_t hops_to_root(const struct graph *g, uint32_t v)
{
	uint32_t hops = 0;

	for (; g->vertex[v].out != GRAPH_NONE; hops++)
		v = g->vertex[v].out;
	return hops;
}

static void no_slot_is_inside_both_trees(void **state)
{
	struct planner_limits wide = planner_limits_usual;

	wide.flat_slots_max = GRAPH_SLOTS_MAX;
	for (uint32_t n = 3; n <= 300; n++) {
		struct planner_request q = request(n, 1 << 20, n % 3 > 0);
		uint32_t most = 1;
		struct planner_choice c;
		struct graph g;

		q.limits = &wide;
		assert_true(plan(&q, &planner_twotree, &c, &g));
		assert_int_equal(g.segments, 2);
		assert_int_equal(g.out, GRAPH_OUT_GATHER);
		assert_int_equal(g.feeder != NULL, q.everyone);
		assert_int_equal(g.slot[n - 1].prefer, q.caller);
		assert_int_equal(g.slot[n - 1].host, q.caller);
		while (1u << most <= n - 1)
			most++;
		for (uint32_t s = 0; s < n; s++) {
			const struct graph_vertex *a = &g.vertex[s], *b = &g.vertex[n + s];

			assert_true(a->ins <= 2 && b->ins <= 2);
			assert_true(s == n - 1 ? a->ins == 1 && b->ins == 1
					       : a->ins == 0 || b->ins == 0);
			assert_in_range(hops_to_root(&g, s), s < n - 1, most);
			assert_in_range(hops_to_root(&g, n + s), s < n - 1, most);
			if (g.feeder && s < n - 1)
				assert_int_equal(g.feeder[n + s], graph_slot_of(&g, b->out));
		}
	}
}

static void it_is_chosen_up_to_a_size_for_one_node(void **state)
{
	struct planner_limits limits = planner_limits_usual;
	struct planner_request q = request(8, 1 << 16, false);
	struct planner_choice c;

	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_equal(c.planner, &planner_dary);
	q.limits = &limits;
	limits.twotree_bytes_max = 1 << 16;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_equal(c.planner, &planner_twotree);
	q.whole = true;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_equal(c.planner, &planner_dary);
	q.whole = false;
	q.size++;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_equal(c.planner, &planner_dary);
	q = request(8, 1 << 16, true);
	q.limits = &limits;
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_not_equal(c.planner, &planner_twotree);
}

static void it_is_refused_where_it_does_not_fit(void **state)
{
	struct planner_request q = request(8, 1 << 20, true);
	struct planner_choice c;

	assert_int_equal(planner_shape(&q, &planner_twotree, &c), 0);
	q.needed = 9; /* one is late */
	assert_int_equal(planner_shape(&q, &planner_twotree, &c), -EINVAL);
	q = request(2, 1 << 20, true);
	assert_int_equal(planner_shape(&q, &planner_twotree, &c), -EINVAL);
	q = request(65, 1 << 20, true);
	assert_int_equal(planner_shape(&q, &planner_twotree, &c), -EINVAL);
	q = request(8, PLANNER_CHUNK, true);
	assert_int_equal(planner_shape(&q, &planner_twotree, &c), -EINVAL);
	q = request(8, 1 << 20, true);
	planner_asked_group[3].link.latency_ns *= 5;
	assert_int_equal(planner_shape(&q, &planner_twotree, &c), -EINVAL);
}

/* ---- the model ------------------------------------------------------------------------------ */

/* A vertex, or a reader: when it has each chunk, and from how many it still waits for it. */
struct station {
	double ready[MODEL_CHUNKS];
	uint16_t pending[MODEL_CHUNKS];
};

struct hop {
	uint32_t from, to;     /* stations */
	uint32_t sends, takes; /* nodes */
	uint32_t next, end;    /* chunks */
	double served;	       /* when its last chunk began */
};

static struct model {
	struct station station[MODEL_NODES * MODEL_NODES + MODEL_NODES];
	struct hop hop[MODEL_HOPS];
	uint32_t hops, stations, chunks;
	double out[MODEL_NODES], in[MODEL_NODES];
} model;

static void hop_add(uint32_t from, uint32_t to, uint32_t sends, uint32_t takes,
		    const struct graph_segment *s)
{
	assert_true(model.hops < MODEL_HOPS);
	model.hop[model.hops++] =
		(struct hop){from, to, sends, takes, s->first, s->first + s->count, -1};
	for (uint32_t k = s->first; k < s->first + s->count; k++)
		model.station[to].pending[k]++;
}

/* The slot that passes a segment on to this one: by the table, from the root, or, of one segment,
 * in the broadcast of the root's object. */
static uint32_t fed_from(const struct graph *g, uint32_t j, uint32_t slot)
{
	uint32_t n = g->slots, root = g->segment[j].root % n, receiver, width;

	if (slot == root || (g->segments > 1 && g->feeder == NULL))
		return root;
	if (g->feeder)
		return g->feeder[j * n + slot];
	receiver = (slot + n - root - 1) % n;
	width = planner_width(link, n - 1, g->size, PLANNER_CHUNK);
	return receiver < width ? root : (root + receiver / width) % n;
}

static void model_begin(const struct graph *g, bool everyone)
{
	uint32_t n = g->slots;

	memset(&model, 0, sizeof(model));
	model.stations = g->vertices + (everyone ? n : 0);
	model.chunks = (uint32_t)((g->size + PLANNER_CHUNK - 1) / PLANNER_CHUNK);
	assert_true(model.chunks <= MODEL_CHUNKS);
	for (uint32_t v = 0; v < g->vertices; v++)
		if (g->vertex[v].out != GRAPH_NONE)
			hop_add(v, g->vertex[v].out, v % n, g->vertex[v].out % n,
				&g->segment[v / n]);
	for (uint32_t j = 0; everyone && j < g->segments; j++)
		for (uint32_t slot = 0; slot < n; slot++) {
			uint32_t root = g->segment[j].root, from = fed_from(g, j, slot);

			hop_add(from == root % n ? root : g->vertices + from, g->vertices + slot,
				from, slot, &g->segment[j]);
		}
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

/* When the next chunk of a hop can begin; on one node that takes no time. */
static double hop_begins(const struct hop *h)
{
	const struct station *from = &model.station[h->from];

	if (h->next == h->end || from->pending[h->next])
		return INFINITY;
	if (h->sends == h->takes)
		return from->ready[h->next];
	return later(from->ready[h->next], model.out[h->sends]);
}

static void hop_take(struct hop *h, double begins)
{
	double chunk = PLANNER_CHUNK * 1e9 / (double)link.bytes_per_s, there = begins;
	struct station *to = &model.station[h->to];

	if (h->sends != h->takes) {
		model.out[h->sends] = begins + chunk;
		there = later(begins + (double)link.latency_ns, model.in[h->takes]) + chunk;
		model.in[h->takes] = there;
	}
	h->served = begins;
	to->ready[h->next] = later(to->ready[h->next], there);
	to->pending[h->next++]--;
}

/* Nanoseconds until the last byte is where it is wanted. */
static double model_ns(const struct graph *g, bool everyone)
{
	double last = 0;

	model_begin(g, everyone);
	for (;;) {
		struct hop *first = NULL;
		double least = INFINITY;

		for (uint32_t i = 0; i < model.hops; i++) {
			double begins = hop_begins(&model.hop[i]);

			if (begins < least ||
			    (first && begins == least && model.hop[i].served < first->served)) {
				least = begins;
				first = &model.hop[i];
			}
		}
		if (first == NULL)
			break;
		hop_take(first, least);
		last = later(last, model.station[first->to].ready[first->next - 1]);
	}
	for (uint32_t i = 0; i < model.hops; i++)
		assert_int_equal(model.hop[i].next, model.hop[i].end);
	return last + (double)link.start_ns;
}

/* ---- when it wins --------------------------------------------------------------------------- */

static double modelled(const struct planner_request *q, const struct planner *p, uint64_t *estimate)
{
	struct planner_choice c;
	struct graph g;

	*estimate = UINT64_MAX;
	if (!plan(q, p, &c, &g))
		return INFINITY;
	*estimate = c.estimate_ns;
	return model_ns(&g, q->everyone);
}

/* The best of the others that apply, and what today's thresholds choose. */
struct row {
	double twotree, others, chosen;
	uint64_t estimate, others_estimate;
	const char *name, *chosen_name;
};

static struct row compare(uint32_t n, uint64_t size, bool everyone)
{
	struct planner_request q = request(n, size, everyone);
	struct row row = {.others = INFINITY, .others_estimate = UINT64_MAX};
	struct planner_choice c;

	row.twotree = modelled(&q, &planner_twotree, &row.estimate);
	assert_int_equal(planner_choose(&q, &c), 0);
	assert_ptr_not_equal(c.planner, &planner_twotree);
	row.chosen_name = c.planner->name;
	for (uint32_t i = 0; planner_table[i]; i++) {
		uint64_t estimate = UINT64_MAX;
		double ns = planner_table[i] == &planner_twotree
				    ? INFINITY
				    : modelled(&q, planner_table[i], &estimate);

		if (planner_table[i] == c.planner)
			row.chosen = ns;
		if (ns >= row.others)
			continue;
		row.others = ns;
		row.others_estimate = estimate;
		row.name = planner_table[i]->name;
	}
	return row;
}

static void print_row(uint32_t n, uint64_t size, const struct row *r)
{
	print_message(
		"%3u %5u KiB  twotree %6.2f ms (estimate %6.2f)  best other %6.2f (%6.2f, %s)  "
		"chosen today %6.2f (%s)%s\n",
		n, (uint32_t)(size >> 10), r->twotree / 1e6, (double)r->estimate / 1e6,
		r->others / 1e6, (double)r->others_estimate / 1e6, r->name, r->chosen / 1e6,
		r->chosen_name, r->twotree < r->others ? "  <- wins" : "");
}

static uint32_t table(bool everyone)
{
	const uint32_t nodes[] = {4, 8, 16, 32};
	uint32_t wins = 0;

	print_message("%s, 1 Gbit/s, 50 us, chunks of %u bytes\n",
		      everyone ? "allreduce" : "reduce", PLANNER_CHUNK);
	for (uint32_t i = 0; i < 4; i++)
		for (uint64_t size = 16 << 10; size <= 1 << 20; size *= 2) {
			struct row r = compare(nodes[i], size, everyone);

			print_row(nodes[i], size, &r);
			wins += r.twotree < r.others;
			assert_in_range(r.estimate, 0.9 * r.twotree, 1.2 * r.twotree);
		}
	return wins;
}

static void it_wins_reduces_of_medium_sizes(void **state)
{
	assert_true(table(false) > 0);
}

static void it_wins_allreduces_of_medium_sizes(void **state)
{
	assert_true(table(true) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_slot_is_inside_both_trees),
		cmocka_unit_test(it_is_chosen_up_to_a_size_for_one_node),
		cmocka_unit_test(it_is_refused_where_it_does_not_fit),
		cmocka_unit_test(it_wins_reduces_of_medium_sizes),
		cmocka_unit_test(it_wins_allreduces_of_medium_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
