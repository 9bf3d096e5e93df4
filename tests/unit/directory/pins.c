/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that pins an object is away until another one pins it, and comes back with its copy: then
 * the second pin is given back. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

#define STORE (UINT64_C(16) << 20)
#define SIZE  UINT64_C(6000000) /* two of them fit */
#define LONG  (40 * WORLD_SECOND)

enum { OWNER, SECOND_ONE = 2, ASKS = 3, NODES = 4, SEEDS = 200 };

struct pinned { /* the object, and the node where it was put */
	const char *name;
	uint32_t first;
	uint64_t size;
};

static const struct object_slot *copy_of(const struct world *w, uint32_t node, const char *name)
{
	const struct object_table *t = w->node[node].table;
	struct object_id id = world_id(name);

	for (uint32_t i = 0; t && i < t->slots; i++)
		if (t->slot[i].state == OBJECT_SEALED && object_id_equal(&t->slot[i].id, &id))
			return &t->slot[i];
	return NULL;
}

static bool pins(const struct world *w, uint32_t node, const char *name)
{
	const struct object_slot *s = copy_of(w, node, name);

	return s && s->flags & OBJECT_FLAG_PRIMARY;
}

static uint32_t pins_count(const struct world *w, const char *name)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < w->nodes; i++)
		count += pins(w, i, name);
	return count;
}

static bool second_pins(struct world *w, void *arg)
{
	const struct pinned *p = arg;

	return pins(w, SECOND_ONE, p->name);
}

static bool another_pins(struct world *w, void *arg)
{
	const struct pinned *p = arg;

	return pins_count(w, p->name) > pins(w, p->first, p->name);
}

/* At any time one node pins it, whether or not its control runs. */
static bool first_pins_alone(struct world *w, void *arg)
{
	const struct pinned *p = arg;

	assert_true(pins_count(w, p->name) > 0);
	return pins(w, p->first, p->name) && pins_count(w, p->name) == 1;
}

static void open_all(struct world *w)
{
	for (uint32_t i = 0; i < w->nodes; i++)
		assert_int_equal(world_open(w, i), 0);
}

static void put_and_cache(struct world *w, const struct pinned *p)
{
	assert_int_equal(world_put(w, p->first, 0, p->name, p->size, 1), 0);
	assert_int_equal(world_get(w, SECOND_ONE, 0, p->name, p->size, 1, -1), 0);
	world_unpin(w, SECOND_ONE, 0);
	world_run(w, 100 * WORLD_MS);
}

static struct world *put_by(const struct pinned *p)
{
	struct world *w = world_new(NODES, 1, STORE, false);

	open_all(w);
	put_and_cache(w, p);
	return w;
}

static void away(struct world *w, const struct pinned *p)
{
	w->cut[p->first] = true;
	assert_true(world_until(w, second_pins, (void *)(uintptr_t)p, LONG));
}

static void all_read_it(struct world *w, const struct pinned *p)
{
	for (uint32_t i = 0; i < w->nodes; i++) {
		if (!w->node[i].core)
			continue;
		assert_int_equal(world_get(w, i, 0, p->name, p->size, 1, (int64_t)LONG), 0);
		world_unpin(w, i, 0);
	}
}

static void one_pin_stays(struct world *w, const struct pinned *p)
{
	assert_true(world_until(w, first_pins_alone, (void *)(uintptr_t)p, LONG));
	world_run(w, 3 * WORLD_SECOND);
	assert_true(first_pins_alone(w, (void *)(uintptr_t)p));
	all_read_it(w, p);
}

static void one_that_was_cut_off_pins_alone_again(void **state)
{
	const struct pinned p = {"a", 1, SIZE};
	struct world *w = put_by(&p);

	away(w, &p);
	w->cut[1] = false;
	one_pin_stays(w, &p);
	/* the second copy is an ordinary one: it gives way */
	assert_int_equal(world_put(w, SECOND_ONE, 0, "x", SIZE, 2), 0);
	assert_int_equal(world_put(w, SECOND_ONE, 0, "y", SIZE, 3), 0);
	assert_null(copy_of(w, SECOND_ONE, "a"));
	assert_int_equal(world_get(w, ASKS, 0, "a", SIZE, 1, (int64_t)LONG), 0);
	world_free(w);
}

static void so_does_one_that_was_restarted_with_its_store(void **state)
{
	const struct pinned p = {"a", 1, SIZE};
	struct world *w = put_by(&p);

	world_kill_control(w, 1);
	assert_true(world_until(w, second_pins, (void *)(uintptr_t)&p, LONG));
	world_start_control(w, 1);
	assert_int_equal(world_open(w, 1), 0);
	one_pin_stays(w, &p);
	world_free(w);
}

/* The second one's control has been restarted since: the table tells it. */
static void a_new_control_gives_the_pin_back_too(void **state)
{
	const struct pinned p = {"a", 1, SIZE};
	struct world *w = put_by(&p);

	away(w, &p);
	world_kill_control(w, SECOND_ONE);
	world_start_control(w, SECOND_ONE);
	assert_int_equal(world_open(w, SECOND_ONE), 0);
	world_run(w, WORLD_SECOND);
	assert_true(pins(w, SECOND_ONE, "a"));
	w->cut[1] = false;
	one_pin_stays(w, &p);
	world_free(w);
}

/* So has the owner's, which then hears of both pins from their nodes. */
static void a_new_owner_is_told_which_pin_is_interim(void **state)
{
	const struct pinned p = {"a", 1, SIZE};
	struct world *w = put_by(&p);

	away(w, &p);
	world_kill_control(w, OWNER);
	world_start_control(w, OWNER);
	assert_int_equal(world_open(w, OWNER), 0);
	w->cut[1] = false;
	one_pin_stays(w, &p);
	world_free(w);
}

/* At any moment of its return the first one is lost for good. */
static void one_that_dies_on_its_return_is_replaced(void **state)
{
	const struct pinned p = {"a", 1, SIZE};

	for (uint64_t ms = 0; ms <= 3000; ms += 60) {
		struct world *w = put_by(&p);

		away(w, &p);
		w->cut[1] = false;
		world_run(w, ms * WORLD_MS);
		world_kill_node(w, 1);
		assert_true(world_until(w, second_pins, (void *)(uintptr_t)&p, LONG));
		world_run(w, 12 * WORLD_SECOND);
		assert_true(pins(w, SECOND_ONE, "a"));
		assert_int_equal(world_put(w, SECOND_ONE, 0, "x", SIZE, 2), 0);
		assert_int_equal(world_put(w, SECOND_ONE, 0, "y", SIZE, 3), -ENOSPC);
		all_read_it(w, &p);
		world_free(w);
	}
}

/* It was put at its owner, which hears of both pins after a restart. */
static void an_owner_may_be_the_first_one(void **state)
{
	const struct pinned p = {"a", OWNER, SIZE};
	struct world *w = put_by(&p);

	world_kill_control(w, OWNER);
	world_run(w, 8 * WORLD_SECOND);
	world_start_control(w, OWNER);
	assert_int_equal(world_open(w, OWNER), 0);
	one_pin_stays(w, &p);
	world_free(w);
}

/* One that relied on the second pin asks again: its copy may be the last one. */
static void the_others_hear_that_it_was_given_back(void **state)
{
	const struct pinned p = {"a", 1, SIZE};
	struct world *w = put_by(&p);
	uint32_t interim = SECOND_ONE, relies = ASKS;

	assert_int_equal(world_get(w, ASKS, 0, "a", SIZE, 1, -1), 0);
	world_unpin(w, ASKS, 0);
	assert_int_equal(world_put(w, SECOND_ONE, 0, "x2", SIZE, 2), 0);
	assert_int_equal(world_put(w, ASKS, 0, "x3", SIZE, 2), 0);
	w->cut[1] = true;
	assert_true(world_until(w, another_pins, (void *)(uintptr_t)&p, LONG));
	world_run(w, 5 * WORLD_SECOND);
	if (pins(w, ASKS, "a")) {
		interim = ASKS;
		relies = SECOND_ONE;
	}
	w->cut[1] = false;
	assert_true(world_until(w, first_pins_alone, (void *)(uintptr_t)&p, LONG));
	assert_int_equal(world_put(w, interim, 0, "y", SIZE, 3), 0);
	assert_null(copy_of(w, interim, "a"));
	world_kill_node(w, 1);
	world_run(w, WORLD_SECOND);
	assert_int_equal(world_put(w, relies, 0, "z", SIZE, 4), -ENOSPC);
	assert_true(world_until(w, another_pins, (void *)(uintptr_t)&p, LONG));
	assert_true(pins(w, relies, "a"));
	assert_int_equal(world_get(w, OWNER, 0, "a", SIZE, 1, (int64_t)LONG), 0);
	world_free(w);
}

/* Each node owns a part of the ids: also of those that it has put. */
static void parts_of_the_directory_move_and_return(void **state)
{
	enum { NAMES = 12 };
	struct world *w = world_new(NODES, 1, STORE, true);
	struct pinned p[NAMES];
	char name[NAMES][16];

	world_keep_all(w);
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(name[i], sizeof(name[i]), "object-%u", i);
		p[i] = (struct pinned){name[i], 1, 100000};
		put_and_cache(w, &p[i]);
	}
	w->cut[1] = true;
	for (uint32_t i = 0; i < NAMES; i++)
		assert_true(world_until(w, second_pins, &p[i], LONG));
	w->cut[1] = false;
	for (uint32_t i = 0; i < NAMES; i++)
		one_pin_stays(w, &p[i]);
	world_free(w);
}

/* ---- any order of messages ------------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

struct watched {
	struct world *w;
	uint64_t there_ns; /* when the first one was last seen on its cable, with a control */
	uint64_t again_ns; /* when it may ask again */
	uint32_t returned; /* pins of the second one */
	uint32_t asked;	   /* seq of the second one's request for the room of its copy; 0: none */
};

/* One of the nodes goes, or comes back. */
static void trouble(struct watched *v, uint64_t what)
{
	uint32_t node = (uint32_t)(what % NODES);
	struct world *w = v->w;

	switch (what / NODES % 4) {
	case 0:
		w->cut[1] = true;
		break;
	case 1:
		w->cut[1] = false;
		break;
	case 2:
		w->cut[node] = !w->cut[node];
		break;
	default:
		world_kill_control(w, node);
		world_run(w, what / 64 % 4 * 700 * WORLD_MS);
		world_start_control(w, node);
		assert_int_equal(world_open(w, node), 0);
		if (node == SECOND_ONE)
			v->asked = 0;
		break;
	}
}

/* The second one needs the room of its copy all the time. */
static void want_room(struct watched *v)
{
	struct session_request r = world_request(SESSION_CREATE, "y");

	r.size = SIZE;
	r.pin = 40;
	if (v->w->now_ns < v->again_ns || (v->asked && !world_reply_to(v->w, SECOND_ONE, v->asked)))
		return;
	v->again_ns = v->w->now_ns + 20 * WORLD_MS;
	v->asked = copy_of(v->w, SECOND_ONE, "a") ? world_send(v->w, SECOND_ONE, 0, &r) : 0;
}

/* The second one's pin and copy go only when the first one is there, which holds both. A cut is
 * noticed late. */
static void watch_over(struct watched *v, uint64_t for_ns)
{
	struct world *w = v->w;

	for (uint64_t end = w->now_ns + for_ns; w->now_ns < end;) {
		bool pinned = pins(w, SECOND_ONE, "a"), there = copy_of(w, SECOND_ONE, "a");

		if (!w->cut[1] && w->node[1].core)
			v->there_ns = w->now_ns;
		want_room(v);
		world_run(w, 5 * WORLD_MS);
		assert_true(pins_count(w, "a") > 0);
		v->returned += pinned > pins(w, SECOND_ONE, "a");
		if (pinned > pins(w, SECOND_ONE, "a"))
			assert_true(w->now_ns - v->there_ns < 3 * WORLD_SECOND);
		if (there > !!copy_of(w, SECOND_ONE, "a"))
			assert_true(w->now_ns - v->there_ns < WORLD_SECOND / 2);
	}
}

static struct world *second_one_is_full(const struct pinned *p, bool parts)
{
	struct world *w = world_new(NODES, 1, STORE, parts);

	if (parts)
		world_keep_all(w);
	else
		open_all(w);
	put_and_cache(w, p);
	assert_int_equal(world_put(w, SECOND_ONE, 0, "x", SIZE, 2), 0);
	return w;
}

static void no_order_of_messages_leaves_it_without_a_pin(void **state)
{
	const struct pinned p = {"a", 1, SIZE};
	uint32_t returned = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *w = second_one_is_full(&p, seed & 1);
		struct watched v = {
			.w = w, .there_ns = w->now_ns, .again_ns = w->now_ns + WORLD_SECOND};
		uint64_t dice = seed;

		w->prng = seed;
		w->loss_permille = (uint32_t)(draw(&dice) % 200);
		w->cut[1] = true;
		watch_over(&v, draw(&dice) % 8 * WORLD_SECOND);
		for (uint32_t i = 0; i < 5; i++) {
			trouble(&v, draw(&dice));
			watch_over(&v, draw(&dice) % 4000 * WORLD_MS);
		}
		returned += v.returned;
		memset(w->cut, 0, sizeof(w->cut));
		w->loss_permille = 0;
		assert_true(world_until(w, first_pins_alone, (void *)(uintptr_t)&p, LONG));
		assert_int_equal(world_get(w, ASKS, 0, "a", SIZE, 1, (int64_t)LONG), 0);
		world_unpin(w, ASKS, 0);
		world_kill_node(w, 1);
		assert_true(world_until(w, another_pins, (void *)(uintptr_t)&p, LONG));
		assert_int_equal(world_get(w, OWNER, 0, "a", SIZE, 1, (int64_t)LONG), 0);
		world_free(w);
	}
	assert_true(returned > SEEDS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_was_cut_off_pins_alone_again),
		cmocka_unit_test(so_does_one_that_was_restarted_with_its_store),
		cmocka_unit_test(a_new_control_gives_the_pin_back_too),
		cmocka_unit_test(a_new_owner_is_told_which_pin_is_interim),
		cmocka_unit_test(one_that_dies_on_its_return_is_replaced),
		cmocka_unit_test(an_owner_may_be_the_first_one),
		cmocka_unit_test(the_others_hear_that_it_was_given_back),
		cmocka_unit_test(parts_of_the_directory_move_and_return),
		cmocka_unit_test(no_order_of_messages_leaves_it_without_a_pin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
