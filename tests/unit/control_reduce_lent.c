/* SPDX-License-Identifier: BSD-3-Clause */
/* Lent reduces (reduce_lend.c) of which more is thought than is so: who asks, who keeps the target
 * and who has a result are out of each other's sight for a while, or forget. */
#include "control_lend.h"

/* It is the sum for all, and the one that was built. */
static void has_stayed(struct world *w, uint32_t keeper, uint64_t generation)
{
	is_the_sum(w, CALLER);
	assert_int_equal(known(w, keeper), generation);
	nothing_is_left(w);
}

/* It takes the one who asked for dead, begins anew, and tells others to give up what they have;
 * which they hear when it is back. */
static void who_keeps_it_was_apart(void **state)
{
	for (int early = 0; early < 2; early++) {
		struct session_request source;
		uint64_t generation;
		uint32_t host;
		struct world *w = flowing(0, &source, &generation, &host);

		w->cut[KEEPER] = true;
		world_run(w, (early ? 1500 : 5000) * WORLD_MS);
		assert_int_equal(at(w, 0)->state, REDUCE_LENT);
		assert_true(at(w, KEEPER)->state != REDUCE_LENT);
		end_source(w, source);
		assert_int_equal(world_reduced(w, CALLER, 0, target, LONG, NULL), NEEDED);
		world_run(w, 300 * WORLD_MS);
		w->cut[KEEPER] = false;
		world_run(w, 10 * WORLD_SECOND);
		has_stayed(w, KEEPER, generation);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_keeps_it_was_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
