/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leases under loss, kills and cuts of homes and owners, drawn from a seed: no object outlives its
 * last lease by more than the ttl and a second, and none vanishes that a lease holds. WORLD_SEED=N
 * repeats one run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { NODES = 4, LEASES = 12, OBJECTS = 10, STEPS = 60, RUNS = 12 };

#define STORE (UINT64_C(8) << 20)
#define SIZE  UINT64_C(100000)
#define TTL   (2 * WORLD_SECOND)
#define WHEN  (12 * WORLD_SECOND)
/* A kill is a sure end or no end of its node's leases only when it is clear who was how long dead.
 */
#define SHORT_NS (WORLD_SECOND / 2)

struct model_lease {
	uint64_t number; /* 0: not opened yet */
	uint32_t node;
	uint64_t ends_ns; /* at the latest; UINT64_MAX: it is open */
};

struct model_object {
	bool made, unsure; /* unsure: a call about it was not answered */
	uint32_t name;
	uint32_t holders; /* bit per lease */
};

struct model {
	struct world *w;
	uint64_t seed, draw;
	struct model_lease lease[LEASES];
	struct model_object object[OBJECTS];
	uint32_t names, checked_held, checked_gone, cuts;
};

static uint64_t draw(struct model *m, uint64_t below)
{
	m->draw = m->draw * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (m->draw >> 33) % below;
}

static struct session_reply ask(struct model *m, uint32_t node, uint16_t op, uint32_t name,
				uint64_t lease, int64_t timeout_ns)
{
	char text[16];
	struct session_request r;
	struct world_reply *a;

	snprintf(text, sizeof(text), "o%u", name);
	r = world_request(op, op == SESSION_LEASE ? NULL : text);
	r.generation = lease;
	r.timeout_ns = timeout_ns;
	if (op == SESSION_CREATE) {
		r.size = SIZE;
		r.pin = 0;
	}
	m->w->node[node].replies_count = 0;
	a = world_call(m->w, node, 0, &r, WHEN);
	return a ? a->reply : (struct session_reply){.status = -EBUSY};
}

static bool open_lease(const struct model *m, uint32_t i)
{
	return m->lease[i].number != 0 && m->lease[i].ends_ns == UINT64_MAX;
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void do_open(struct model *m, uint32_t i)
{
	struct session_reply r;

	if (m->lease[i].number != 0)
		return;
	m->lease[i].node = (uint32_t)draw(m, NODES);
	r = ask(m, m->lease[i].node, SESSION_LEASE, 0, 0, (int64_t)TTL);
	assert_int_equal(r.status, 0);
	m->lease[i].number = r.generation;
	m->lease[i].ends_ns = UINT64_MAX;
}

static void do_make(struct model *m, struct model_object *o, uint32_t i)
{
	uint32_t node = m->lease[i].node;
	struct session_reply r;
	struct session_request seal = world_request(SESSION_SEAL, NULL);

	if (o->made || !open_lease(m, i))
		return;
	*o = (struct model_object){.made = true, .name = m->names++, .holders = 1u << i};
	r = ask(m, node, SESSION_CREATE, o->name, m->lease[i].number, -1);
	o->unsure = r.status != 0;
	if (r.status)
		return;
	world_fill(m->w->node[node].store + r.offset, SIZE, o->name);
	seal.slot = r.slot;
	seal.generation = r.generation;
	o->unsure = world_call(m->w, node, 0, &seal, WHEN)->reply.status != 0;
	world_unpin(m->w, node, 0);
}

static void do_hold(struct model *m, struct model_object *o, uint32_t i)
{
	int status;

	if (!o->made || o->unsure || !open_lease(m, i))
		return;
	status = ask(m, m->lease[i].node, SESSION_HOLD, o->name, m->lease[i].number, 0).status;
	if (status == 0)
		o->holders |= 1u << i;
	else if (status != -ENOENT) /* the last lease may just have let go */
		o->unsure = true;
}

static void do_drop(struct model *m, struct model_object *o, uint32_t i)
{
	int status;

	if (!o->made || o->unsure || !open_lease(m, i) || !(o->holders >> i & 1))
		return;
	status = ask(m, m->lease[i].node, SESSION_RELEASE, o->name, m->lease[i].number, 0).status;
	o->unsure = status != 0;
	o->holders &= ~(1u << i);
}

static void do_end(struct model *m, uint32_t i)
{
	if (!open_lease(m, i))
		return;
	m->lease[i].ends_ns = m->w->now_ns;
	ask(m, m->lease[i].node, SESSION_LEASE_END, 0, m->lease[i].number, 0);
	m->lease[i].ends_ns = m->w->now_ns;
}

/* All that the client has open ends with its session. */
static void do_leave(struct model *m, uint32_t node)
{
	control_session_close(m->w->node[node].core, 0, m->w->now_ns);
	for (uint32_t i = 0; i < LEASES; i++)
		if (m->lease[i].node == node && open_lease(m, i))
			m->lease[i].ends_ns = m->w->now_ns + TTL;
	assert_int_equal(world_open(m->w, node), 0);
}

/* The client of a control that was started again takes its leases up. */
static void come_back(struct model *m, uint32_t node)
{
	assert_int_equal(world_open(m->w, node), 0);
	for (uint32_t i = 0; i < LEASES; i++)
		if (m->lease[i].node == node && open_lease(m, i))
			assert_int_equal(
				ask(m, node, SESSION_LEASE, 0, m->lease[i].number, (int64_t)TTL)
					.status,
				0);
		else if (m->lease[i].node == node && m->lease[i].ends_ns > m->w->now_ns - TTL)
			m->lease[i].ends_ns = m->w->now_ns + TTL; /* it was found once more */
}

/* Control, and perhaps the dataplane. */
static void do_kill(struct model *m, uint32_t node)
{
	bool both = draw(m, 2);

	world_kill_control(m->w, node);
	if (both)
		world_kill_engine(m->w, node);
	world_run(m->w, draw(m, SHORT_NS));
	if (both)
		world_start_engine(m->w, node);
	world_start_control(m->w, node);
	world_run(m->w, SHORT_NS);
	come_back(m, node);
}

/* Whether a lease of another node than that one holds it. */
static bool held_elsewhere(const struct model *m, const struct model_object *o, uint32_t node)
{
	for (uint32_t i = 0; i < LEASES; i++)
		if (o->holders >> i & 1 && open_lease(m, i) && m->lease[i].node != node)
			return true;
	return false;
}

/* One node or two, each alone, for less than a death takes or for longer than a lease lives without
 * its home. What a home held that was alone that long may be gone, as a majority was without it; if
 * two were alone there was no majority, and nothing is. */
static void do_cut(struct model *m)
{
	uint32_t one = (uint32_t)draw(m, NODES), other = (uint32_t)draw(m, NODES);
	bool lasts = draw(m, 2);
	uint64_t begun_ns = m->w->now_ns;

	m->w->cut[one] = m->w->cut[other] = true;
	world_run(m->w,
		  lasts ? TTL + 3 * WORLD_SECOND + draw(m, 3 * WORLD_SECOND) : draw(m, SHORT_NS));
	m->w->cut[one] = m->w->cut[other] = false;
	world_run(m->w, TTL + 3 * WORLD_SECOND);
	for (uint32_t i = 0; i < LEASES; i++)
		if (m->lease[i].number && !open_lease(m, i) &&
		    m->lease[i].ends_ns > begun_ns - TTL - WORLD_SECOND)
			m->lease[i].ends_ns = m->w->now_ns; /* its end could not be told before */
	for (uint32_t k = 0; k < OBJECTS && lasts && one == other; k++)
		if (m->object[k].made && !held_elsewhere(m, &m->object[k], one))
			m->object[k].made = false;
	m->cuts += lasts;
}

/* Two nodes at once, as the owner of a name and the home of its lease may be. */
static void do_kill_two(struct model *m)
{
	uint32_t one = (uint32_t)draw(m, NODES), other = (uint32_t)draw(m, NODES);

	world_kill_control(m->w, one);
	do_kill(m, other);
	if (one == other)
		return;
	world_start_control(m->w, one);
	world_run(m->w, SHORT_NS);
	come_back(m, one);
}

static void step(struct model *m)
{
	struct model_object *o = &m->object[draw(m, OBJECTS)];
	uint32_t i = (uint32_t)draw(m, LEASES);

	switch (draw(m, 14)) {
	case 0:
		do_end(m, i);
		break;
	case 1:
		do_leave(m, (uint32_t)draw(m, NODES));
		break;
	case 2:
		do_kill(m, (uint32_t)draw(m, NODES));
		break;
	case 12:
		do_cut(m);
		break;
	case 13:
		do_kill_two(m);
		break;
	case 3:
	case 4:
		do_drop(m, o, i);
		break;
	case 5:
	case 6:
	case 7:
		do_hold(m, o, i);
		break;
	default:
		do_open(m, i);
		do_make(m, o, i);
		break;
	}
}

/* ---- what must hold -------------------------------------------------------------------------- */

static void check(struct model *m, struct model_object *o, uint32_t by)
{
	uint64_t last_ns = 0, begun_ns = m->w->now_ns;
	struct session_reply r;
	bool held = false;

	for (uint32_t i = 0; i < LEASES; i++) {
		if (!(o->holders >> i & 1))
			continue;
		held |= open_lease(m, i);
		last_ns = m->lease[i].ends_ns > last_ns ? m->lease[i].ends_ns : last_ns;
	}
	if (!o->made || o->unsure || (!held && begun_ns < last_ns + WORLD_SECOND))
		return;
	r = ask(m, by, SESSION_STAT, o->name, 0, 0);
	if (r.status != 0 && r.status != -ENOENT)
		return; /* nobody knows just now */
	if ((r.status == 0) != held)
		fail_msg("seed %llu: object %u is %s at %.3f s, its last lease %s",
			 (unsigned long long)m->seed, o->name, r.status ? "gone" : "still there",
			 (double)m->w->now_ns / 1e9, held ? "is open" : "has ended");
	m->checked_held += held;
	m->checked_gone += !held;
	o->made = held; /* its place is used again */
}

static void run_seed(uint64_t seed, uint32_t *held, uint32_t *gone, uint32_t *cuts)
{
	struct model m = {.seed = seed, .draw = seed * UINT64_C(0x9e3779b97f4a7c15)};

	m.w = world_new(NODES, 1, STORE, true);
	world_keep_all(m.w);
	m.w->loss_permille = (uint32_t)draw(&m, 3) * 10;
	for (uint32_t i = 0; i < STEPS; i++) {
		step(&m);
		world_run(m.w, draw(&m, WORLD_SECOND));
		for (uint32_t k = 0; k < OBJECTS; k++)
			check(&m, &m.object[k], (uint32_t)draw(&m, NODES));
	}
	for (uint32_t node = 0; node < NODES; node++)
		do_leave(&m, node);
	m.w->loss_permille = 0;
	world_run(m.w, TTL + 2 * WORLD_SECOND);
	for (uint32_t k = 0; k < OBJECTS; k++)
		check(&m, &m.object[k], 0);
	for (uint32_t node = 0; node < NODES; node++) {
		assert_int_equal(m.w->node[node].core->lease->leases.pool.used, 0);
		assert_int_equal(m.w->node[node].core->directory->references.pool.used, 0);
	}
	*held += m.checked_held;
	*gone += m.checked_gone;
	*cuts += m.cuts;
	world_free(m.w);
}

static void leases_hold_what_they_hold_and_no_longer(void **state)
{
	const char *one = getenv("WORLD_SEED"), *runs = getenv("WORLD_RUNS");
	uint64_t first = one ? strtoull(one, NULL, 10) : 1;
	uint64_t count = runs ? strtoull(runs, NULL, 10) : one ? 1 : RUNS;
	uint32_t held = 0, gone = 0, cuts = 0;

	for (uint64_t seed = first; seed < first + count; seed++)
		run_seed(seed, &held, &gone, &cuts);
	if (count >= RUNS)
		assert_true(held > 100 && gone > 20 && cuts > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leases_hold_what_they_hold_and_no_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
