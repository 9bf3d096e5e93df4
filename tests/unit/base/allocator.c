/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges: never overlapping, never lost, joined again when free; and the timers' heap. */
#include "fixtures/control_test.h"
#include "core/base/allocator.h"
#include "core/base/timers.h"

enum { RANGES = 400, GRAIN = 4096 };

struct fixture {
	struct allocator a;
	void *memory;
	uint32_t held[RANGES];
	uint64_t prng;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct arena arena = {.memory = NULL};

	allocator_carve(&f->a, &arena, RANGES);
	f->memory = arena.memory = aligned_alloc(64, (arena.bytes + 127) & ~(size_t)63);
	memset(f->memory, 0, arena.bytes);
	arena.bytes = 0;
	allocator_carve(&f->a, &arena, RANGES);
	f->prng = 88172645463325252ull;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	free(f->memory);
	free(f);
	return 0;
}

static uint64_t draw(struct fixture *f)
{
	f->prng ^= f->prng << 13;
	f->prng ^= f->prng >> 7;
	f->prng ^= f->prng << 17;
	return f->prng;
}

/* Every sequence of takes of 1 to 3 grains and gives, in a space of six. */
static void walk(struct fixture *f, int depth)
{
	assert_true(allocator_valid(&f->a));
	for (uint32_t i = 0; depth > 0 && i < 3; i++) {
		if (f->held[i]) {
			continue;
		}
		for (uint64_t grains = 1; grains <= 3; grains++) {
			f->held[i] = allocator_take(&f->a, grains * GRAIN);
			if (f->held[i] == 0)
				continue;
			assert_int_equal(allocator_bytes(&f->a, f->held[i]), grains * GRAIN);
			walk(f, depth - 1);
			for (uint32_t k = 0; k < 3; k++) { /* each way to give back comes by */
				uint32_t given = f->held[k];

				if (given == 0)
					continue;
				allocator_give(&f->a, given);
				f->held[k] = 0;
				walk(f, depth - 2);
				f->held[k] = allocator_take(&f->a, GRAIN);
				assert_true(f->held[k] != 0 && allocator_valid(&f->a));
			}
			allocator_give(&f->a, f->held[i]);
			f->held[i] = 0;
			assert_true(allocator_valid(&f->a));
		}
	}
}

static void every_short_use_keeps_the_space_whole(void **state)
{
	struct fixture *f = *state;

	allocator_reset(&f->a, 6 * GRAIN, GRAIN);
	walk(f, 5);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(f->held[i], 0);
	assert_int_equal(f->a.used_bytes, 0);
}

static void what_is_not_whole_is_seen(void **state)
{
	struct fixture *f = *state;
	struct range *r;
	uint32_t held;

	allocator_reset(&f->a, 6 * GRAIN, GRAIN);
	held = allocator_take(&f->a, 2 * GRAIN);
	r = pool_at(&f->a.ranges, held);
	r->length++;
	assert_false(allocator_valid(&f->a)); /* overlaps */
	r->length--;
	r->taken = false;
	assert_false(allocator_valid(&f->a)); /* two free ones touch, and it is on no list */
	r->taken = true;
	f->a.used_bytes++;
	assert_false(allocator_valid(&f->a));
	f->a.used_bytes--;
	f->a.orders = 0;
	assert_false(allocator_valid(&f->a)); /* the free rest is on no list */
}

static void random_use_keeps_the_space_whole(void **state)
{
	struct fixture *f = *state;
	uint64_t space = 5000 * GRAIN;

	allocator_reset(&f->a, space, GRAIN);
	for (int step = 0; step < 40000; step++) {
		uint32_t i = (uint32_t)(draw(f) % RANGES);

		if (f->held[i]) {
			allocator_give(&f->a, f->held[i]);
			f->held[i] = 0;
		} else {
			uint64_t bytes = draw(f) % (1ull << (draw(f) % 22));

			f->held[i] = allocator_take(&f->a, bytes);
			if (f->held[i]) {
				assert_true(allocator_bytes(&f->a, f->held[i]) >= bytes);
				assert_int_equal(allocator_offset(&f->a, f->held[i]) % GRAIN, 0);
			}
		}
		if (step % 64 == 0)
			assert_true(allocator_valid(&f->a));
	}
	for (int i = 0; i < RANGES; i++)
		if (f->held[i])
			allocator_give(&f->a, f->held[i]);
	assert_true(allocator_valid(&f->a));
	assert_int_equal(f->a.used_bytes, 0);
	assert_int_not_equal(allocator_take(&f->a, space), 0); /* in one piece again */
}

/* It is full only when no free range is long enough. */
static void full_means_full(void **state)
{
	struct fixture *f = *state;

	allocator_reset(&f->a, 300 * GRAIN, GRAIN);
	for (int i = 0; i < 300; i++)
		assert_int_not_equal(f->held[i] = allocator_take(&f->a, GRAIN), 0);
	assert_int_equal(allocator_take(&f->a, 1), 0);
	for (int i = 10; i < 47; i++)
		allocator_give(&f->a, f->held[i]);
	assert_int_equal(allocator_take(&f->a, 38 * GRAIN), 0);
	assert_int_not_equal(allocator_take(&f->a, 37 * GRAIN), 0);
	assert_true(allocator_valid(&f->a));
}

/* Free ranges of one size that do not touch each other are all found again. */
static void none_of_a_size_is_lost(void **state)
{
	struct fixture *f = *state;

	allocator_reset(&f->a, 9 * GRAIN, GRAIN);
	for (int i = 0; i < 9; i++)
		f->held[i] = allocator_take(&f->a, GRAIN);
	for (int i = 1; i < 9; i += 2)
		allocator_give(&f->a, f->held[i]);
	for (int i = 1; i < 9; i += 2)
		assert_int_not_equal(allocator_take(&f->a, GRAIN), 0);
	assert_int_equal(allocator_take(&f->a, GRAIN), 0);
	assert_true(allocator_valid(&f->a));
}

static void known_places_are_taken_in_order(void **state)
{
	struct fixture *f = *state;

	allocator_reset(&f->a, 100 * GRAIN, GRAIN);
	assert_int_not_equal(allocator_take_at(&f->a, 0, 10), 0);
	assert_int_not_equal(allocator_take_at(&f->a, 5 * GRAIN, 2 * GRAIN + 1), 0);
	assert_int_equal(allocator_take_at(&f->a, 7 * GRAIN, GRAIN), 0);      /* overlaps */
	assert_int_equal(allocator_take_at(&f->a, 8 * GRAIN + 1, GRAIN), 0);  /* not aligned */
	assert_int_equal(allocator_take_at(&f->a, 99 * GRAIN, 2 * GRAIN), 0); /* outside */
	assert_int_equal(allocator_take_at(&f->a, 200 * GRAIN, GRAIN), 0);
	assert_int_not_equal(allocator_take_at(&f->a, 99 * GRAIN, GRAIN), 0);
	assert_int_equal(allocator_take_at(&f->a, 99 * GRAIN, GRAIN), 0);
	assert_true(allocator_valid(&f->a));
	assert_int_equal(allocator_take(&f->a, 92 * GRAIN), 0);
	assert_int_not_equal(allocator_take(&f->a, 91 * GRAIN), 0);
	assert_int_not_equal(allocator_take(&f->a, 4 * GRAIN), 0);
	assert_int_equal(allocator_take(&f->a, GRAIN), 0);
	assert_true(allocator_valid(&f->a));
}

/* ---- timers ------------------------------------------------------------------------------- */

enum { TIMERS = 200 };

static uint64_t fired_last, fired_count;

static void fire(struct control *c, struct timer *t)
{
	assert_true(t->at_ns >= fired_last);
	fired_last = t->at_ns;
	fired_count++;
}

static void timers_fire_in_order(void **state)
{
	struct fixture *f = *state;
	static struct timer timer[TIMERS];
	static uint8_t memory[(TIMERS + 1) * sizeof(void *) + 64] __attribute__((aligned(64)));
	struct arena arena = {.memory = memory};
	struct timers ts;
	uint64_t set = 0, late = 0;

	timers_carve(&ts, &arena, TIMERS);
	for (int step = 0; step < 20000; step++) {
		struct timer *t = &timer[draw(f) % TIMERS];

		if (draw(f) % 3 == 0)
			timers_cancel(&ts, t);
		else
			timers_set(&ts, t, draw(f) % 1000000, fire);
	}
	for (int i = 0; i < TIMERS; i++) {
		set += timer[i].position != 0;
		late += timer[i].position != 0 && timer[i].at_ns > 500000;
	}
	fired_last = fired_count = 0;
	timers_run(&ts, NULL, 500000);
	assert_int_equal(fired_count, set - late);
	assert_int_equal(ts.count, late);
	timers_run(&ts, NULL, UINT64_MAX);
	assert_int_equal(fired_count, set);
	assert_int_equal(timers_next(&ts), UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(random_use_keeps_the_space_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(every_short_use_keeps_the_space_whole, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_whole_is_seen, setup, teardown),
		cmocka_unit_test_setup_teardown(full_means_full, setup, teardown),
		cmocka_unit_test_setup_teardown(none_of_a_size_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(known_places_are_taken_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(timers_fire_in_order, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
