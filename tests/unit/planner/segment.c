/* SPDX-License-Identifier: BSD-3-Clause */
/* Stripes of an allreduce: they tile the object, and load every link alike. */
#include "core/planner/segment.h"
#include "fixtures/planner_test.h"

enum { STRIPE_NODES = 40, CHUNK = 4096 };

static void stripes_tile_the_object(void **state)
{
	static const uint32_t chunks[] = {0, 1, 2, 7, 40, 1000, 1023, UINT32_MAX};

	for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++)
		for (uint32_t p = 1; p <= STRIPE_NODES; p++) {
			uint64_t next = 0;

			for (uint32_t j = 0; j < p; j++) {
				uint32_t first, count;

				segment_range(chunks[c], p, j, &first, &count);
				assert_int_equal(first, next);
				assert_in_range(count, chunks[c] / p,
						chunks[c] / p + (chunks[c] % p > 0));
				next += count;
			}
			assert_int_equal(next, chunks[c]);
		}
}

static void stripe_bytes_end_with_the_object(void **state)
{
	static const uint64_t sizes[] = {
		0, 1, CHUNK, CHUNK + 1, 10 * CHUNK - 1, 64 << 20, (64 << 20) + 12};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (uint32_t p = 1; p <= STRIPE_NODES; p++) {
			uint64_t sum = 0;

			for (uint32_t j = 0; j < p; j++)
				sum += segment_bytes(sizes[s], CHUNK, p, j);
			assert_int_equal(sum, sizes[s]);
		}
}

/* The graph of the chains of p slots. */
static const struct graph *chains(uint32_t p)
{
	const struct planner_request q = planner_asked(p, 1, 0, (uint64_t)p * PLANNER_CHUNK * 20);
	static struct planner_choice c;
	static struct graph g;

	assert_int_equal(planner_shape(&q, &planner_chains, &c), 0);
	planner_built(&q, &c, &g);
	return &g;
}

/* The slot at position k of segment j's chain: the way back from the root. */
static uint32_t slot_at(const struct graph *g, uint32_t j, uint32_t k)
{
	uint32_t v = g->segment[j].root;

	for (uint32_t i = g->slots - 1; i > k; i--)
		v = g->edge[g->vertex[v].in].vertex;
	return graph_slot_of(g, v);
}

static void each_chain_passes_every_node_and_ends_at_its_own(void **state)
{
	for (uint32_t p = 2; p <= STRIPE_NODES; p++) {
		const struct graph *g = chains(p);

		for (uint32_t j = 0; j < p; j++) {
			uint64_t seen = 0;

			for (uint32_t k = 0; k < p; k++) {
				uint32_t node = slot_at(g, j, k);

				assert_in_range(node, 0, p - 1);
				seen |= UINT64_C(1) << node;
				if (k > 0) /* all chains use the same edges */
					assert_int_equal(node, (slot_at(g, j, k - 1) + 1) % p);
			}
			assert_int_equal(seen, (UINT64_C(1) << p) - 1);
			assert_int_equal(slot_at(g, j, p - 1), j);
		}
	}
}

/* Rows of the feed up to a ring's; or finished stripes do not leave their roots. */
enum { NO_FEED, FEEDS = STRIPE_NODES + 1 };

/* What every node sends and takes, counted by following each stripe along its chain and its feed.
 */
static void follow(uint64_t size, uint32_t p, uint32_t row, uint64_t *sent, uint64_t *taken)
{
	memset(sent, 0, sizeof(*sent) * p);
	memset(taken, 0, sizeof(*taken) * p);
	for (uint32_t j = 0; j < p; j++) {
		uint64_t bytes = segment_bytes(size, CHUNK, p, j);

		for (uint32_t k = 1; k < p; k++) {
			sent[(j + k) % p] += bytes;
			taken[(j + 1 + k) % p] += bytes;
			if (row == NO_FEED)
				continue;
			sent[(j + distribution_feeder(row, k)) % p] += bytes;
			taken[(j + k) % p] += bytes;
		}
	}
}

static void every_node_sends_and_takes_the_bound(void **state)
{
	uint64_t sent[STRIPE_NODES], taken[STRIPE_NODES];

	for (uint32_t p = 1; p <= STRIPE_NODES; p++)
		for (uint32_t row = NO_FEED; row < FEEDS; row++) {
			uint64_t rounds = row == NO_FEED ? 1 : 2;
			uint64_t even = (uint64_t)CHUNK * p * 3, odd = even + CHUNK + 12;

			follow(even, p, row, sent, taken);
			for (uint32_t node = 0; node < p; node++) {
				assert_int_equal(sent[node], rounds * (p - 1) * (even / p));
				assert_int_equal(taken[node], sent[node]);
			}
			/* stripes that differ: by a chunk in each of the p - 1 steps at most */
			follow(odd, p, row, sent, taken);
			for (uint32_t node = 0; node < p; node++) {
				uint64_t least = rounds * (p - 1) * (odd - p * CHUNK),
					 most = rounds * (p - 1) * (odd + p * CHUNK);

				assert_in_range(sent[node] * p, least, most);
				assert_in_range(taken[node] * p, least, most);
			}
		}
}

/* Each place is fed by a lower one; of a grid none is further than along a column and a row, and
 * each node feeds two others. */
static void a_grid_is_shallow_and_has_few_edges(void **state)
{
	for (uint32_t p = 2; p <= 64; p++) {
		uint32_t depth[64] = {0};
		uint32_t row = distribution_width(p);

		assert_true(row * row >= p && (row - 1) * (row - 1) < p);
		for (uint32_t k = 1; k < p; k++) {
			uint32_t from = distribution_feeder(row, k);

			assert_in_range(from, 0, k - 1);
			assert_true(k - from == 1 || k - from == row);
			depth[k] = depth[from] + 1;
			assert_in_range(depth[k], 1, 2 * (row - 1));
		}
	}
}

static void what_is_no_stripe_has_nothing(void **state)
{
	uint32_t first = 7, count = 7;

	segment_range(10, 0, 0, &first, &count);
	assert_true(first == 0 && count == 0);
	first = count = 7;
	segment_range(10, 3, 3, &first, &count);
	assert_true(first == 0 && count == 0);
	assert_int_equal(segment_bytes(100, 0, 3, 0), 0);
	assert_int_equal(segment_bytes(100, 10, 0, 0), 0);
	assert_int_equal(segment_bytes(UINT64_MAX, 1, 3, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stripes_tile_the_object),
		cmocka_unit_test(stripe_bytes_end_with_the_object),
		cmocka_unit_test(each_chain_passes_every_node_and_ends_at_its_own),
		cmocka_unit_test(every_node_sends_and_takes_the_bound),
		cmocka_unit_test(a_grid_is_shallow_and_has_few_edges),
		cmocka_unit_test(what_is_no_stripe_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
