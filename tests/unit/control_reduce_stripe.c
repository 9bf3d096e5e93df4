/* SPDX-License-Identifier: BSD-3-Clause */
/* Stripes of an allreduce: they tile the object, and load every link alike. */
#include "control_test.h"
#include "core/reduce_stripe.h"

enum { STRIPE_NODES = 40, CHUNK = 4096 };

static void stripes_tile_the_object(void **state)
{
	static const uint32_t chunks[] = {0, 1, 2, 7, 40, 1000, 1023, UINT32_MAX};

	for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++)
		for (uint32_t p = 1; p <= STRIPE_NODES; p++) {
			uint64_t next = 0;

			for (uint32_t j = 0; j < p; j++) {
				uint32_t first, count;

				reduce_stripe(chunks[c], p, j, &first, &count);
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
				sum += reduce_stripe_bytes(sizes[s], CHUNK, p, j);
			assert_int_equal(sum, sizes[s]);
		}
}

static void each_chain_passes_every_node_and_ends_at_its_own(void **state)
{
	for (uint32_t p = 1; p <= STRIPE_NODES; p++)
		for (uint32_t j = 0; j < p; j++) {
			uint64_t seen = 0;

			for (uint32_t k = 0; k < p; k++) {
				uint32_t node = reduce_stripe_order(p, j, k);

				assert_in_range(node, 0, p - 1);
				seen |= UINT64_C(1) << node;
				if (k > 0) /* all chains use the same edges */
					assert_int_equal(
						node, (reduce_stripe_order(p, j, k - 1) + 1) % p);
			}
			assert_int_equal(seen, (UINT64_C(1) << p) - 1);
			assert_int_equal(reduce_stripe_order(p, j, p - 1), j);
		}
}

/* How a finished stripe leaves its root: not at all; along the chain's edges; to each at once. */
enum feed { FEED_NONE, FEED_RING, FEED_STAR };

/* What the edge carries, counted by following every stripe along its chain and its feed. */
static uint64_t followed(uint64_t size, uint32_t p, enum feed feed, uint32_t from, uint32_t to)
{
	uint64_t sum = 0;

	for (uint32_t j = 0; j < p; j++) {
		uint64_t bytes = reduce_stripe_bytes(size, CHUNK, p, j);

		for (uint32_t k = 0; k + 1 < p; k++) {
			uint32_t a = reduce_stripe_order(p, j, k),
				 b = reduce_stripe_order(p, j, k + 1);

			sum += a == from && b == to ? bytes : 0;
			a = feed == FEED_STAR ? j : (j + k) % p;
			b = feed == FEED_STAR ? (j + k + 1) % p : (a + 1) % p;
			sum += feed != FEED_NONE && a == from && b == to ? bytes : 0;
		}
	}
	return sum;
}

/* Bytes that the node sends and takes. */
static void loads(uint64_t size, uint32_t p, enum feed feed, uint32_t node, uint64_t *sent,
		  uint64_t *taken)
{
	*sent = *taken = 0;
	for (uint32_t peer = 0; peer < p; peer++) {
		*sent += followed(size, p, feed, node, peer);
		*taken += followed(size, p, feed, peer, node);
	}
}

static void every_node_sends_and_takes_the_bound(void **state)
{
	for (uint32_t p = 1; p <= STRIPE_NODES; p++)
		for (int feed = FEED_NONE; feed <= FEED_STAR; feed++) {
			uint64_t rounds = feed == FEED_NONE ? 1 : 2;
			uint64_t even = (uint64_t)CHUNK * p * 3, odd = even + CHUNK + 12, sent,
				 taken;

			for (uint32_t node = 0; node < p; node++) {
				loads(even, p, feed, node, &sent, &taken);
				assert_int_equal(sent, rounds * (p - 1) * (even / p));
				assert_int_equal(taken, sent);
				/* stripes that differ: by a chunk in each of the p - 1 steps at
				 * most */
				loads(odd, p, feed, node, &sent, &taken);
				assert_in_range(sent * p, rounds * (p - 1) * (odd - p * CHUNK),
						rounds * (p - 1) * (odd + p * CHUNK));
				assert_in_range(taken * p, rounds * (p - 1) * (odd - p * CHUNK),
						rounds * (p - 1) * (odd + p * CHUNK));
			}
		}
}

static void what_is_no_stripe_has_nothing(void **state)
{
	uint32_t first = 7, count = 7;

	reduce_stripe(10, 0, 0, &first, &count);
	assert_true(first == 0 && count == 0);
	first = count = 7;
	reduce_stripe(10, 3, 3, &first, &count);
	assert_true(first == 0 && count == 0);
	assert_int_equal(reduce_stripe_order(0, 0, 0), REDUCE_STRIPE_NONE);
	assert_int_equal(reduce_stripe_order(3, 3, 0), REDUCE_STRIPE_NONE);
	assert_int_equal(reduce_stripe_order(3, 0, 3), REDUCE_STRIPE_NONE);
	assert_int_equal(reduce_stripe_order(UINT32_MAX, UINT32_MAX - 1, 1), 1);
	assert_int_equal(reduce_stripe_bytes(100, 0, 3, 0), 0);
	assert_int_equal(reduce_stripe_bytes(100, 10, 0, 0), 0);
	assert_int_equal(reduce_stripe_bytes(UINT64_MAX, 1, 3, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stripes_tile_the_object),
		cmocka_unit_test(stripe_bytes_end_with_the_object),
		cmocka_unit_test(each_chain_passes_every_node_and_ends_at_its_own),
		cmocka_unit_test(every_node_sends_and_takes_the_bound),
		cmocka_unit_test(what_is_no_stripe_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
