/* SPDX-License-Identifier: BSD-3-Clause */
/* The timing wheel against a plain list of deadlines. */
#include "fixtures/core_test.h"

enum { TIMERS = 8, TURN_NS = WHEEL_SLOTS * WHEEL_SLOT_NS };

/*
 * Connections that are opening and are never allowed to send: their timer is hello_ns, and when it
 * fires handshake_timer says hello_due and forgets the deadline.
 */
struct clocks {
	struct rig *r;
	struct conn *c[TIMERS];
	uint64_t due_ns[TIMERS]; /* NEVER: not set */
};

static void clocks_forever(struct engine_config *f)
{
	f->idle_timeout_ns = UINT64_C(1) << 62;
}

static void clocks_begin(struct clocks *w)
{
	w->r = rig_new(clocks_forever);
	for (uint32_t k = 0; k < TIMERS; k++) {
		struct peer peer = peer_new(k + 1);
		w->c[k] = conn_alloc(w->r->e, &peer.addr);
		w->due_ns[k] = NEVER;
	}
}

static void clocks_set(struct clocks *w, uint32_t k, uint64_t due_ns)
{
	w->c[k]->hello.next_ns = w->due_ns[k] = due_ns;
	conn_arm(w->r->e, w->c[k]);
}

/* Time is now: exactly the due ones have fired; who is due by a slot may have. */
static void clocks_tick(struct clocks *w)
{
	engine_tick(w->r->e, w->r->now_ns);
	for (uint32_t k = 0; k < TIMERS; k++) {
		struct conn *c = w->c[k];
		bool fired = c->hello.due;

		if (w->due_ns[k] == NEVER) {
			assert_false(fired);
			continue;
		}
		if (fired) {
			assert_true(w->due_ns[k] <= w->r->now_ns);
			c->hello.due = false;
			list_remove(&c->ready);
			w->due_ns[k] = NEVER;
		} else {
			assert_true(w->due_ns[k] + WHEEL_SLOT_NS >= w->r->now_ns);
			assert_false(list_empty(&c->timer));
		}
	}
}

/* It never promises to sleep beyond a deadline (and its slot). */
static void clocks_check_next(const struct clocks *w)
{
	uint64_t next = engine_next_timeout(w->r->e), first = NEVER;

	for (uint32_t k = 0; k < TIMERS; k++)
		first = numbers_min(first, w->due_ns[k]);
	if (first == NEVER)
		assert_int_equal(next, NEVER);
	else if (next > first + WHEEL_SLOT_NS)
		fail_msg("sleeps until %llu, %llu is due, it is %llu", (unsigned long long)next,
			 (unsigned long long)first, (unsigned long long)w->r->now_ns);
}

static uint64_t clocks_step(uint64_t *seed)
{
	switch (draw_below(seed, 6)) {
	case 0:
		return 0;
	case 1:
		return draw_below(seed, 1000);
	case 2:
		return draw_below(seed, 64 * WHEEL_SLOT_NS);
	case 3:
		return draw_below(seed, 2 * (uint64_t)TURN_NS);
	case 4:
		return TURN_NS - WHEEL_SLOT_NS + draw_below(seed, 2 * WHEEL_SLOT_NS);
	default:
		return draw_below(seed, 50) == 0 ? draw_below(seed, UINT64_C(3600000000000))
						 : draw_below(seed, TURN_NS);
	}
}

static void the_wheel_is_a_sorted_list(void **state)
{
	struct clocks w;
	uint64_t seed = 99;

	(void)state;
	clocks_begin(&w);
	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t k = (uint32_t)draw_below(&seed, TIMERS);

		if (w.due_ns[k] == NEVER)
			clocks_set(&w, k, w.r->now_ns + clocks_step(&seed));
		else if (draw_below(&seed, 2) == 0) /* earlier or later than it was */
			clocks_set(&w, k, w.r->now_ns + clocks_step(&seed));
		clocks_check_next(&w);
		if (draw_below(&seed, 3) == 0) { /* as a shell does: sleeps until the next one */
			uint64_t next = engine_next_timeout(w.r->e);
			if (next != NEVER && next > w.r->now_ns)
				w.r->now_ns = next;
		} else {
			w.r->now_ns += clocks_step(&seed);
		}
		clocks_tick(&w);
		clocks_check_next(&w);
	}
	rig_free(w.r);
}

/* After a standstill of an hour, one that fires early is set again and still is not late. */
static void a_long_standstill(void **state)
{
	struct clocks w;

	(void)state;
	clocks_begin(&w);
	for (uint64_t ahead = 1; ahead < 4 * TURN_NS; ahead += TURN_NS / 7) {
		uint64_t standstill = UINT64_C(3600000000000) + ahead;

		for (uint32_t k = 0; k < TIMERS; k++)
			clocks_set(&w, k, w.r->now_ns + standstill + 1 + k * (ahead / TIMERS));
		w.r->now_ns += standstill;
		clocks_tick(&w);
		while (engine_next_timeout(w.r->e) != NEVER) {
			clocks_check_next(&w);
			w.r->now_ns = numbers_max(w.r->now_ns, engine_next_timeout(w.r->e));
			clocks_tick(&w);
		}
		for (uint32_t k = 0; k < TIMERS; k++)
			assert_int_equal(w.due_ns[k], NEVER);
	}
	rig_free(w.r);
}

/* The timer of a connection closes it, with others due in the same slot before and behind it. */
static void a_timer_that_closes_its_connection(void **state)
{
	struct rig *r = *state;
	struct peer first = rig_connect(r, 1), second = rig_connect(r, 2),
		    third = rig_connect(r, 3);
	struct peer *const all[] = {&first, &second, &third};

	for (uint32_t k = 0; k < 3; k++) {
		wheel_disarm(r->e, all[k]->c);
		all[k]->c->loss.waiting_since_ns = 1;
		all[k]->c->last_rx_ns = r->now_ns;
		sent_record(r->e, all[k]->c, SENT_PING, 0, 0, 60);
	}
	second.c->last_rx_ns = 0;
	r->now_ns += r->config.idle_timeout_ns / 2;
	for (uint32_t k = 0; k < 3; k++)
		wheel_arm(r->e, all[k]->c, r->now_ns);
	r->now_ns += WHEEL_SLOT_NS;
	engine_tick(r->e, r->now_ns);
	assert_int_equal(rig_expect(r, EVENT_PEER_DOWN).peer.conn, second.conn);
	rig_silent(r);
	assert_int_equal(second.c->state, CONN_FREE);
	assert_int_equal(first.c->state, CONN_UP);
	assert_int_equal(third.c->state, CONN_UP);
	assert_int_equal(r->counters.tail_probes, 2);
}

/* Every bit says what its list says. */
static void disarming_leaves_no_trace(void **state)
{
	struct rig *r = *state;
	struct wheel *w = &r->e->wheel;
	struct conn *c[TIMERS];
	uint64_t seed = 5;

	for (uint32_t k = 0; k < TIMERS; k++) {
		struct peer peer = peer_new(k + 1);
		c[k] = conn_alloc(r->e, &peer.addr);
	}
	for (uint32_t step = 0; step < 2000; step++) {
		struct conn *one = c[draw_below(&seed, TIMERS)];

		if (draw_below(&seed, 3) == 0)
			wheel_disarm(r->e, one);
		else
			wheel_arm(r->e, one,
				  draw_below(&seed, 4) == 0
					  ? NEVER
					  : r->now_ns + draw_below(&seed, 3 * WHEEL_SLOT_NS));
		for (uint32_t k = 0; k < WHEEL_SLOTS; k++)
			assert_int_equal(w->occupied[k / 64] >> (k % 64) & 1,
					 !list_empty(&w->slot[k]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_wheel_is_a_sorted_list),
		cmocka_unit_test(a_long_standstill),
		test_rig(a_timer_that_closes_its_connection),
		test_rig(disarming_leaves_no_trace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
