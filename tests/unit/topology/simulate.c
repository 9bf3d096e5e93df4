/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulation of plans by routes: it gives what can be computed by hand, the published start-ups
 * of HiPS, and times near the bound of large arrays. */
#include "fixtures/planner_test.h"
#include "file.h"
#include "simulate.h"

enum { MIB = 1 << 20 };

static struct network net(uint32_t members, uint32_t levels, bool ring)
{
	struct network w = {.levels = levels, .places = 1};

	for (uint32_t l = 0; l < levels; l++) {
		w.level[l] = (struct network_level){members, ring, (uint8_t)(ring ? 2 * l : l),
						    20000, 125000000};
		w.places *= members;
	}
	return w;
}

static struct simulated simulated(const struct network *w, const struct planner *p, uint64_t size)
{
	struct planner_request q = planner_asked(w->places, 1, 0, size);
	struct planner_limits wide = planner_limits_usual;
	struct planner_choice c;
	struct simulated out;

	q.all.start_ns = 0; /* which the simulation does not have */
	for (uint32_t i = 0; i < w->places; i++)
		planner_asked_group[i].link.start_ns = 0;
	wide.vertices_max = UINT32_MAX; /* no graph is built */
	q.limits = &wide;
	q.network = w;
	assert_int_equal(planner_shape(&q, p, &c), 0);
	assert_int_equal(simulate_allreduce(&q, p, &c, &out), 0);
	return out;
}

/* Two nodes on one switch exchange halves: each sends half up and half down, in 16 pieces of a
 * segment; the last half of a piece takes its way down alone. */
static void two_nodes_exchange_halves(void **state)
{
	struct network w = net(2, 1, false);
	uint64_t piece_ns = (uint64_t)MIB / 2 / 16 * 8;
	struct simulated out = simulated(&w, &planner_mesh, MIB);

	assert_int_equal(out.starts, 2);
	assert_int_equal(out.fan_in, 1);
	assert_int_equal(out.messages, 2 * 2 * 16);
	/* 32 pieces through each port, and two latencies where nothing else could be sent */
	assert_in_range(out.ns, 32 * piece_ns + 20000, 33 * piece_ns + 2 * 20000);
}

/* N = n^h nodes: 2h start-ups of a mesh per level, 2h(n - 1) of a ring, 2(N - 1) of a flat ring;
 * 2(N - 1)/(hN) of the array through each port. */
static void hips_takes_the_published_starts_and_bytes(void **state)
{
	static const uint32_t shape[][2] = {{3, 2}, {4, 2}, {3, 3}, {4, 3}};

	for (unsigned i = 0; i < sizeof(shape) / sizeof(*shape); i++) {
		uint32_t n = shape[i][0], h = shape[i][1];
		struct network w = net(n, h, false);
		uint64_t size = 64 * MIB;
		double bound = 2.0 * size * (w.places - 1) / w.places / h * 8;
		struct simulated mesh = simulated(&w, &planner_hips_mesh, size);
		struct simulated around = simulated(&w, &planner_hips_ring, size);

		assert_int_equal(mesh.starts, 2 * h);
		assert_int_equal(around.starts, 2 * h * (n - 1));
		assert_in_range(mesh.ns, bound, 1.04 * bound);
		assert_in_range(around.ns, bound, 1.04 * bound);
		if (w.places <= 16) {
			struct simulated flat = simulated(&w, &planner_ring, size);

			assert_int_equal(flat.starts, 2 * (w.places - 1));
			assert_in_range(flat.ns, h * bound, 1.04 * h * bound);
		}
	}
}

static void both_ways_of_a_torus_are_busy(void **state)
{
	struct network w = net(4, 2, true);
	double bound = 2.0 * 64 * MIB * 15 / 16 / 4 * 8;
	struct simulated out = simulated(&w, &planner_hips, 64 * MIB);

	assert_in_range(out.ns, bound, 1.04 * bound);
	assert_int_equal(out.starts, 2 * 2 * 3);
}

/* A request without start-ups, which the simulation does not have. */
static struct planner_request asked(const struct network *w, uint64_t size)
{
	struct planner_request q = planner_asked(w->places, 1, 0, size);

	q.all = topology_known(w, (struct topology_link){0});
	for (uint32_t i = 0; i < w->places; i++)
		planner_asked_group[i].link = q.all;
	q.network = w;
	return q;
}

/* Estimates choose plans, so they must be near what the simulation gives. */
static void estimates_are_near_the_simulation(void **state)
{
	struct network nets[] = {net(3, 2, false), net(4, 2, true), net(8, 1, false)};

	for (unsigned i = 0; i < sizeof(nets) / sizeof(*nets); i++)
		for (uint64_t size = MIB; size <= 64 * MIB; size *= 8) {
			struct planner_request q = asked(&nets[i], size);
			struct planner_choice c;
			struct simulated out;

			assert_int_equal(planner_shape(&q, &planner_hips, &c), 0);
			assert_int_equal(simulate_allreduce(&q, &planner_hips, &c, &out), 0);
			assert_in_range(out.ns, 0.85 * (double)c.estimate_ns,
					1.15 * (double)c.estimate_ns);
		}
}

/* The time of a plan by simulation; UINT64_MAX: it cannot be simulated, or does not fit. */
static uint64_t simulated_ns(const struct planner_request *q, const struct planner *p)
{
	struct planner_choice c;
	struct simulated out;

	if (!p->next || planner_shape(q, p, &c) != 0)
		return UINT64_MAX;
	assert_int_equal(simulate_allreduce(q, p, &c, &out), 0);
	return out.ns;
}

/* The table of docs/user/topology.md: what is chosen is within 1.10 of the best. */
static void what_is_chosen_is_near_the_best(void **state)
{
	static const char *const shapes[] = {"bcube:3,1", "torus:4x4", "fattree:4", "flat:16"};
	static const uint64_t sizes[] = {64 << 10, 512 << 10, 4 * MIB, 64 * MIB,
					 UINT64_C(548) * MIB};

	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 5; k++) {
			struct planner_request q;
			struct planner_choice c;
			uint64_t best = UINT64_MAX, chosen;
			struct network w;
			struct shape s;

			assert_null(shape_parse(shapes[i], &s));
			topology_of_shape(&s, 1250000000, 20000, &w);
			q = asked(&w, sizes[k]);
			assert_int_equal(planner_choose(&q, &c), 0);
			chosen = simulated_ns(&q, c.planner);
			for (uint32_t p = 0; planner_table[p]; p++) {
				uint64_t ns = simulated_ns(&q, planner_table[p]);

				best = ns < best ? ns : best;
			}
			print_message("%s, %llu KiB: %s, %.2f of the best\n", shapes[i],
				      (unsigned long long)sizes[k] >> 10, c.planner->name,
				      (double)chosen / (double)best);
			assert_true((double)chosen < 1.1 * (double)best);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_nodes_exchange_halves),
		cmocka_unit_test(hips_takes_the_published_starts_and_bytes),
		cmocka_unit_test(both_ways_of_a_torus_are_busy),
		cmocka_unit_test(estimates_are_near_the_simulation),
		cmocka_unit_test(what_is_chosen_is_near_the_best),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
