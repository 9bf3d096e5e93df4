/* SPDX-License-Identifier: BSD-3-Clause */
/* The clocks of a cohort against a plain list of its members: minimum, marks, and what is spent. */
#include "fixtures/control_test.h"
#include "core/group/clocks.h"

enum { MEMBERS = 4, STEPS = 200000, MARKS = 1 << 16 };

struct plain {
	struct clocks c;
	uint64_t clock[MEMBERS];
	bool there[MEMBERS];
	uint64_t mark[MARKS]; /* of each value, by the call that moved the minimum there */
	uint64_t least;
	uint64_t random;
};

static uint64_t draw(struct plain *p, uint64_t below)
{
	p->random = p->random * 6364136223846793005 + 1442695040888963407;
	return (p->random >> 33) % below;
}

static uint32_t members(const struct plain *p, uint64_t *least)
{
	uint32_t count = 0;

	*least = UINT64_MAX;
	for (uint32_t i = 0; i < MEMBERS; i++) {
		if (!p->there[i])
			continue;
		count++;
		*least = p->clock[i] < *least ? p->clock[i] : *least;
	}
	return count;
}

/* After a call with that mark. Returns false where the window must be rebuilt. */
static bool judge(struct plain *p, uint64_t mark)
{
	uint64_t least;
	uint32_t count = members(p, &least);
	bool spent = clocks_spent(&p->c);

	assert_true(clocks_valid(&p->c));
	assert_int_equal(p->c.members, count);
	if (spent) /* all members have left the window behind */
		assert_true(count > 0 && least >= p->c.end);
	if (count == 0 || spent) {
		assert_int_equal(clocks_reached(&p->c, UINT64_MAX), count == 0);
		return !spent;
	}
	while (p->least < least)
		p->mark[++p->least % MARKS] = mark;
	assert_int_equal(clocks_min(&p->c), least);
	assert_true(clocks_reached(&p->c, least) && clocks_reached(&p->c, 0));
	assert_false(clocks_reached(&p->c, least + 1));
	assert_int_equal(clocks_mark(&p->c, least + 1), 0);
	for (uint64_t back = 0; back < GROUP_RING && back <= least; back++)
		assert_int_equal(clocks_mark(&p->c, least - back), p->mark[(least - back) % MARKS]);
	if (least >= GROUP_RING)
		assert_int_equal(clocks_mark(&p->c, least - GROUP_RING), 0);
	return true;
}

static void begin(struct plain *p, uint64_t base, uint64_t mark)
{
	clocks_init(&p->c, base, mark);
	p->least = base;
	for (uint64_t v = 0; v < MARKS; v++)
		p->mark[v] = mark;
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (p->there[i])
			assert_true(clocks_add(&p->c, p->clock[i]));
}

/* One call drawn: joins, leaves, steps by one, and jumps beyond the window. */
static void turn(struct plain *p, uint32_t i, uint64_t mark)
{
	uint64_t base = clocks_min(&p->c), to;

	if (!p->there[i]) {
		p->clock[i] = base + draw(p, GROUP_RING + 2);
		if (p->c.members == 0)
			begin(p, p->clock[i], mark);
		else
			assert_false(clocks_add(&p->c, base - 1));
		assert_true(clocks_add(&p->c, p->clock[i]));
		p->there[i] = true;
	} else if (draw(p, 8) == 0) {
		p->there[i] = false;
		clocks_remove(&p->c, p->clock[i], mark);
	} else {
		to = p->clock[i] + 1 + (draw(p, 8) == 0 ? draw(p, 2 * GROUP_RING) : 0);
		clocks_move(&p->c, p->clock[i], to, mark);
		p->clock[i] = to;
	}
}

static void random_calls_are_as_a_list(void **state)
{
	struct plain *p = calloc(1, sizeof(*p));
	uint32_t rebuilt = 0;

	(void)state;
	p->random = 1;
	begin(p, 5, 7);
	assert_int_equal(clocks_mark(&p->c, 5), 7);
	assert_true(clocks_reached(&p->c, 1000));
	for (uint64_t step = 1; step <= STEPS; step++) {
		uint64_t least;

		turn(p, (uint32_t)draw(p, MEMBERS), step);
		if (judge(p, step))
			continue;
		members(p, &least);
		begin(p, least, step);
		assert_true(judge(p, step));
		rebuilt++;
	}
	assert_true(rebuilt > 100);
	free(p);
}

/* Each field that is off by one is seen. */
static void what_is_not_whole_is_seen(void **state)
{
	struct clocks c, was;

	(void)state;
	clocks_init(&c, 10, 1);
	assert_true(clocks_add(&c, 10) && clocks_add(&c, 12) && clocks_valid(&c));
	was = c;
	c.members++;
	assert_false(clocks_valid(&c));
	c = was;
	c.end++;
	assert_false(clocks_valid(&c));
	c.end = c.base - 1;
	assert_false(clocks_valid(&c));
	c.end = was.end - 1; /* only while some are ahead */
	assert_false(clocks_valid(&c));
	c.ahead++, c.members++;
	assert_true(clocks_valid(&c));
	c = was;
	c.base++, c.end++; /* nobody is at the minimum */
	assert_false(clocks_valid(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_calls_are_as_a_list),
		cmocka_unit_test(what_is_not_whole_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
