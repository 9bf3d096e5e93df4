/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of the nodes of a reduce over links of a given rate dies half way, and one in reserve takes
 * its place. What the others have of the sum must come again: half of S/B is lost, the time until
 * somebody notices, and little else, whichever node it is. Only a coordinator's death must be known
 * for certain. One that has no seat costs no more than that, and the others stream on meanwhile.
 */
#include "cast.h"
#include "peek.h"

/* Nodes 0 to 5 have objects 1 to 6, of which five are needed; the last comes late, and another
 * asks. */
enum { SOURCES = 6, NEEDED = 5, CALLER = 6, NODES = 7 };

#define SIZE	   (UINT64_C(16) << 20)
#define MBIT	   UINT64_C(200)
#define WIRE_NS	   (SIZE * 8 * 1000 / MBIT)
#define NOTICE_NS  (100 * WORLD_MS) /* part.c, reduce_watch.c */
#define CERTAIN_NS (850 * WORLD_MS) /* docs/architecture.md, Members */

struct scene {
	const char *what;
	uint8_t target;
	uint64_t late_ns; /* when the last source comes */
	bool seated;	  /* the coordinator is among the first */
};

static const struct scene in_reserve = {"is in reserve", 40, 20 * WORLD_MS, false},
			  has_a_seat = {"has a seat", 41, 20 * WORLD_MS, true};

/* The time from the request to the end when a node dies half way; CALLER: none does. */
static uint64_t reduce_without(const struct scene *s, uint32_t victim, uint32_t *coordinator)
{
	static struct cast c;
	uint64_t took;

	cast_open_sources(&c, NODES, NEEDED, SIZE, MBIT);
	took = world_now(&c.w);
	cast_reduce(&c, CALLER, s->target, 1, SOURCES, NEEDED);
	*coordinator = peek_coordinator(c.g.full[CALLER].core);
	world_run(&c.w, s->late_ns);
	cast_put_at(&c, NEEDED, NEEDED + 1);
	cast_begin(&c, CALLER, s->target);
	if (victim != CALLER) {
		world_run(&c.w, took + WIRE_NS / 2 - world_now(&c.w));
		cast_kill(&c, victim);
	}
	cast_sum_ends(&c, CALLER, s->target);
	took = world_now(&c.w) - took;
	cast_close(&c);
	return took;
}

static uint64_t later_without(const struct scene *s, uint32_t victim, uint64_t alone)
{
	uint32_t coordinator;
	uint64_t later = reduce_without(s, victim, &coordinator) - alone;

	print_message("without %u: %.0f ms, %.3f S/B later\n", victim, (double)later / 1e6,
		      (double)later / (double)WIRE_NS);
	return later;
}

static void a_death_costs_half(void **state)
{
	uint32_t coordinator;
	uint64_t alone = reduce_without(&in_reserve, CALLER, &coordinator);

	print_message("undisturbed %.3f S/B\n", (double)alone / (double)WIRE_NS);
	assert_int_equal(coordinator, NEEDED);
	for (uint32_t victim = 0; victim < NEEDED; victim++)
		assert_in_range(later_without(&in_reserve, victim, alone), 0,
				WIRE_NS / 2 + NOTICE_NS + WIRE_NS / 20);
}

static void a_coordinators_death_costs_the_certainty(void **state)
{
	static const struct scene *const scenes[] = {&in_reserve, &has_a_seat};

	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		const struct scene *s = scenes[i];
		uint32_t coordinator;
		uint64_t alone = reduce_without(s, CALLER, &coordinator);

		print_message("the coordinator %s: undisturbed %.3f S/B\n", s->what,
			      (double)alone / (double)WIRE_NS);
		assert_int_equal(s == &in_reserve, coordinator == NEEDED);
		/* without a seat the end waits for it that the death is known, and for nothing else
		 */
		assert_in_range(later_without(s, coordinator, alone), 0,
				CERTAIN_NS + WIRE_NS / 20 + WIRE_NS / 2 -
					(s->seated ? 0 : WIRE_NS));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_costs_half),
		cmocka_unit_test(a_coordinators_death_costs_the_certainty)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
