/* SPDX-License-Identifier: BSD-3-Clause */
/* All objects of a lease are gone when it ends, and not before, whichever node dies meanwhile. */
#include <errno.h>
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { HOME, FIRST, SECOND_ONE, LAST, NODES, MANY = 24 };

#define STORE (UINT64_C(4) << 20)
#define SIZE  UINT64_C(40000)  /* the directory keeps the value, */
#define BIG   UINT64_C(100000) /* but not of this one */
#define TTL   (2 * WORLD_SECOND)
#define WHEN  (20 * WORLD_SECOND)

/* Session 1 of each node is open as well: its lease may end without the others'. */
static struct world *four(void)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	world_keep_all(w);
	return w;
}

static struct session_reply ask(struct world *w, uint32_t node, uint32_t session, uint16_t op,
				const char *name, uint64_t lease, int64_t timeout_ns)
{
	struct session_request r = world_request(op, name);
	struct world_reply *a;

	r.generation = lease;
	r.timeout_ns = timeout_ns;
	a = world_call(w, node, session, &r, WHEN);
	return a ? a->reply : (struct session_reply){.status = -EBUSY};
}

static uint64_t lease_of(struct world *w, uint32_t node, uint32_t session, const char *name)
{
	struct session_request r = world_request(SESSION_LEASE, NULL);
	struct world_reply *a;

	strcpy(r.name, name);
	r.timeout_ns = TTL;
	a = world_call(w, node, session, &r, WHEN);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	assert_true(a->reply.generation != 0);
	return a->reply.generation;
}

static int hold(struct world *w, uint32_t node, uint64_t lease, const char *name)
{
	return ask(w, node, 0, SESSION_HOLD, name, lease, 0).status;
}

static int drop(struct world *w, uint32_t node, uint64_t lease, const char *name)
{
	return ask(w, node, 0, SESSION_RELEASE, name, lease, 0).status;
}

/* Creates and seals; lease 0: none. */
static void make_of(struct world *w, uint32_t node, uint32_t session, const char *name,
		    uint64_t lease, uint64_t size)
{
	struct session_request r = world_request(SESSION_CREATE, name);
	struct world_reply *a;

	r.size = size;
	r.pin = 0;
	r.generation = lease;
	a = world_call(w, node, session, &r, WHEN);
	assert_non_null(a);
	assert_int_equal(a->reply.status, 0);
	world_fill(w->node[node].store + a->reply.offset, size, 1);
	r = world_request(SESSION_SEAL, NULL);
	r.slot = a->reply.slot;
	r.generation = a->reply.generation;
	assert_int_equal(world_call(w, node, session, &r, WHEN)->reply.status, 0);
	world_unpin(w, node, session);
}

static void make(struct world *w, uint32_t node, uint32_t session, const char *name, uint64_t lease)
{
	make_of(w, node, session, name, lease, SIZE);
}

static const char *name_of(uint32_t i)
{
	static char name[2][16];
	static uint32_t turn;

	turn ^= 1;
	snprintf(name[turn], sizeof(name[turn]), "n%u", i);
	return name[turn];
}

/* Of those, the first that this node keeps. */
static const char *name_at(struct world *w, uint32_t by, uint32_t owner)
{
	for (uint32_t i = 0;; i++) {
		struct object_id id = world_id(name_of(i));

		if (ownership_shard(w->node[by].core, &id)->number == owner)
			return name_of(i);
	}
}

/* Of those that FIRST keeps, the first that SECOND_ONE keeps next. */
static const char *name_then(struct world *w)
{
	for (uint32_t i = 0;; i++) {
		struct object_id id = world_id(name_of(i));
		struct node *owners[2];

		ownership_replicas(w->node[HOME].core, &id, owners);
		if (owners[0]->number == FIRST && owners[1]->number == SECOND_ONE)
			return name_of(i);
	}
}

static bool exists(struct world *w, uint32_t node, const char *name)
{
	return ask(w, node, 0, SESSION_STAT, name, 0, 0).flags & SESSION_FLAG_MORE;
}

/* Nothing of an object is anywhere. */
static bool all_gone(struct world *w, void *arg)
{
	for (uint32_t i = 0; i < w->nodes; i++) {
		const struct control *c = w->node[i].core;

		if (c &&
		    (c->store->objects.count > 0 || c->directory->shard.entries.used > 0 ||
		     c->directory->references.pool.used > 0 || c->lease->leases.holds.used > 0))
			return false;
	}
	return true;
}

static void a_client_that_is_killed_leaves_nothing(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, ""), ended_ns;

	for (uint32_t i = 0; i < MANY; i++)
		make(w, HOME, 0, name_of(i), lease);
	for (uint32_t i = 0; i < MANY; i += 3)
		assert_int_equal(world_get(w, FIRST + i % 3, 0, name_of(i), SIZE, 1, WHEN), 0);
	for (uint32_t i = FIRST; i <= LAST; i++)
		world_unpin(w, i, 0);
	world_run(w, 2 * TTL); /* as long as the session lives */
	assert_true(exists(w, LAST, name_of(0)));
	control_session_close(w->node[HOME].core, 0, w->now_ns);
	ended_ns = w->now_ns;
	world_run(w, TTL - 10 * WORLD_MS);
	assert_true(exists(w, LAST, name_of(0)));
	assert_true(world_until(w, all_gone, NULL, WORLD_SECOND));
	assert_true(w->now_ns <= ended_ns + TTL + WORLD_SECOND);
	assert_int_equal(w->node[HOME].core->lease->leases.pool.used, 0);
	world_end(w);
}

static void a_named_lease_goes_on_with_another_session(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "job");

	make(w, HOME, 0, "a", lease);
	control_session_close(w->node[HOME].core, 0, w->now_ns);
	world_run(w, TTL / 2);
	world_open(w, HOME);
	assert_true(lease_of(w, HOME, 0, "job") == lease);
	assert_true(lease_of(w, HOME, 0, "other") != lease);
	world_run(w, 2 * TTL);
	assert_true(exists(w, LAST, "a"));
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE_END, NULL, lease, 0).status, 0);
	assert_int_equal(hold(w, HOME, lease, "a"), -ESTALE);
	assert_true(world_until(w, all_gone, NULL, WORLD_SECOND));
	world_end(w);
}

/* [G4.4] */
static void the_last_lease_deletes(void **state)
{
	struct world *w = four();
	uint64_t here = lease_of(w, HOME, 0, ""), there = lease_of(w, LAST, 0, "");

	make(w, HOME, 0, "a", here);
	make(w, HOME, 0, "free", 0);
	assert_int_equal(hold(w, LAST, there, "a"), 0);
	assert_int_equal(hold(w, LAST, there, "a"), 0); /* is holding it once */
	assert_int_equal(hold(w, LAST, there, "none"), -ENOENT);
	assert_int_equal(drop(w, LAST, there, "free"), -ENOENT);
	assert_int_equal(drop(w, HOME, here, "a"), 0);
	assert_int_equal(drop(w, HOME, here, "a"), -ENOENT);
	assert_true(exists(w, FIRST, "a"));
	assert_int_equal(drop(w, LAST, there, "a"), 0);
	assert_false(exists(w, FIRST, "a"));
	assert_true(exists(w, FIRST, "free")); /* nobody holds it: it lives until it is deleted */
	assert_int_equal(hold(w, HOME, here, "free"), 0);
	assert_int_equal(drop(w, HOME, here, "free"), 0);
	assert_true(world_until(w, all_gone, NULL, WORLD_SECOND));
	world_end(w);
}

/* What was put again is another object. */
static void a_lease_holds_one_generation(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, ""), there = lease_of(w, LAST, 0, "");

	make(w, HOME, 0, "a", lease);
	assert_int_equal(hold(w, LAST, there, "a"), 0);
	assert_int_equal(ask(w, FIRST, 0, SESSION_DELETE, "a", 0, 0).status, 0);
	world_run(w, WORLD_SECOND);
	assert_true(all_gone(w, NULL)); /* holds, too */
	make(w, FIRST, 0, "a", 0);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE_END, NULL, lease, 0).status, 0);
	assert_int_equal(ask(w, LAST, 0, SESSION_LEASE_END, NULL, there, 0).status, 0);
	world_run(w, 2 * WORLD_SECOND);
	assert_true(exists(w, SECOND_ONE, "a"));
	world_free(w);
}

static void the_next_owner_hears_of_what_is_held(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, ""), there = lease_of(w, LAST, 0, "");
	const char *name = name_then(w);
	struct session_request r;

	make(w, HOME, 0, name, lease);
	assert_int_equal(hold(w, LAST, there, name), 0);
	world_kill_node(w, FIRST);
	w->stalled[LAST] = true; /* it tells the next owner late */
	r = world_request(SESSION_RELEASE, name);
	r.generation = lease;
	world_send(w, HOME, 0, &r);
	world_run(w, 2 * WORLD_SECOND);
	assert_null(world_reply_to(w, HOME, r.seq));
	w->stalled[LAST] = false;
	assert_int_equal(world_wait(w, HOME, r.seq, WHEN)->reply.status, 0);
	world_run(w, 3 * TTL);
	assert_true(exists(w, SECOND_ONE, name));
	assert_int_equal(drop(w, LAST, there, name), 0);
	assert_true(world_until(w, all_gone, NULL, WHEN));
	world_free(w);
}

/* Of two nodes one is dead: the other cannot know what else holds an object, and keeps what a lease
 * has let go. Other leases go on meanwhile. */
static void what_waits_for_a_majority_is_in_nobodys_way(void **state)
{
	struct world *w = world_new(2, 1, STORE, true);
	uint64_t lease;
	char name[16];

	world_keep_all(w);
	world_run(w, WORLD_SECOND);
	lease = lease_of(w, HOME, 0, "");
	for (uint32_t i = 0; i < 80; i++) {
		snprintf(name, sizeof(name), "many%u", i);
		make(w, HOME, 0, name, lease);
	}
	make(w, HOME, 0, "other", 0);
	world_kill_node(w, 1 - HOME);
	world_run(w, 15 * WORLD_SECOND);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE_END, NULL, lease, 0).status, 0);
	world_run(w, WORLD_SECOND);
	assert_int_equal(hold(w, HOME, lease_of(w, HOME, 0, ""), "other"), 0);
	world_free(w);
}

static void what_a_dead_home_held_goes(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, ""), there = lease_of(w, LAST, 0, "");
	const char *name = name_at(w, HOME, FIRST);
	uint64_t died_ns;

	make(w, HOME, 0, "both", lease);
	make(w, HOME, 0, name, lease);
	assert_int_equal(hold(w, LAST, there, "both"), 0);
	assert_int_equal(world_get(w, LAST, 0, name, SIZE, 1, WHEN), 0);
	assert_int_equal(world_get(w, LAST, 0, "both", SIZE, 1, WHEN), 0);
	world_unpin(w, LAST, 0);
	world_kill_node(w, HOME);
	died_ns = w->now_ns;
	world_run(w, TTL);
	assert_true(exists(w, FIRST, name));
	while (exists(w, FIRST, name))
		world_run(w, 50 * WORLD_MS);
	assert_true(w->now_ns < died_ns + TTL + 3 * WORLD_SECOND); /* and the detection */
	assert_true(exists(w, FIRST, "both"));
	assert_int_equal(drop(w, LAST, there, "both"), 0);
	assert_true(world_until(w, all_gone, NULL, WHEN));
	world_free(w);
}

static void a_home_that_was_cut_off_for_a_while_keeps_its_leases(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "");
	const char *name = name_at(w, HOME, FIRST);

	make(w, HOME, 0, name, lease);
	assert_int_equal(world_get(w, LAST, 0, name, SIZE, 1, WHEN), 0);
	world_unpin(w, LAST, 0);
	w->cut[HOME] = true;
	world_run(w, 2 * WORLD_SECOND);
	assert_int_equal(w->node[FIRST].core->cluster->members.live_count, NODES - 1);
	w->cut[HOME] = false;
	world_run(w, 4 * TTL);
	assert_true(exists(w, FIRST, name));
	assert_int_equal(drop(w, HOME, lease, name), 0);
	assert_true(world_until(w, all_gone, NULL, WORLD_SECOND));
	world_free(w);
}

/* The owner of the name is alone for longer than the lease lives without its home. */
static void an_owner_that_was_cut_off_ends_no_lease(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "");
	const char *name = name_at(w, HOME, FIRST), *big = name_of(MANY);

	make(w, HOME, 0, name, lease);
	make_of(w, HOME, 0, big, lease, BIG);
	assert_int_equal(world_get(w, LAST, 0, name, SIZE, 1, WHEN), 0);
	world_unpin(w, LAST, 0);
	w->cut[FIRST] = true;
	world_run(w, TTL + 4 * WORLD_SECOND);
	assert_int_equal(w->node[FIRST].core->cluster->members.live_count, 1);
	w->cut[FIRST] = false;
	world_run(w, 4 * TTL);
	for (uint32_t i = 0; i < NODES; i++) {
		assert_true(exists(w, i, name));
		assert_true(exists(w, i, big));
	}
	assert_int_equal(drop(w, HOME, lease, name), 0);
	assert_int_equal(drop(w, HOME, lease, big), 0);
	assert_true(world_until(w, all_gone, NULL, WORLD_SECOND));
	world_free(w);
}

/* An owner that sees half of the members does not know who is cut off. Times to live, which others
 * may have changed, wait as well. */
static void half_of_the_members_end_no_lease(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "");
	const char *name = name_at(w, HOME, FIRST);

	make(w, HOME, 0, name, lease);
	w->cut[HOME] = w->cut[SECOND_ONE] = true;
	world_run(w, TTL + 4 * WORLD_SECOND);
	assert_int_equal(w->node[FIRST].core->cluster->members.live_count, 2);
	w->cut[HOME] = w->cut[SECOND_ONE] = false;
	world_run(w, 4 * TTL);
	for (uint32_t i = 0; i < NODES; i++)
		assert_true(exists(w, i, name));
	/* a majority knows: a home that is dead for good has no lease */
	world_kill_node(w, HOME);
	assert_true(world_until(w, all_gone, NULL, TTL + 5 * WORLD_SECOND));
	world_free(w);
}

/* One node keeps the whole directory, and has no cable. */
static void the_only_owner_that_was_cut_off_ends_no_lease(void **state)
{
	enum { OWNER };
	struct world *w = world_new(NODES, 1, STORE, false);
	uint64_t lease;

	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_open(w, i), 0);
	lease = lease_of(w, LAST, 0, "");
	for (uint32_t i = 0; i < MANY; i++)
		make(w, LAST, 0, name_of(i), lease);
	w->cut[OWNER] = true;
	world_run(w, TTL + 4 * WORLD_SECOND);
	w->cut[OWNER] = false;
	world_run(w, 4 * TTL);
	for (uint32_t i = 0; i < MANY; i++)
		assert_true(exists(w, FIRST, name_of(i)));
	assert_int_equal(ask(w, LAST, 0, SESSION_LEASE_END, NULL, lease, 0).status, 0);
	assert_true(world_until(w, all_gone, NULL, WORLD_SECOND));
	world_free(w);
}

/* Another control of the home: a client comes back, or does not. */
static void a_control_that_is_started_again_knows_its_leases(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, ""), left = lease_of(w, HOME, 0, "left");
	struct session_reply r;

	for (uint32_t i = 0; i < MANY; i++)
		make(w, HOME, 0, name_of(i), i % 2 ? lease : left);
	world_kill_control(w, HOME);
	world_run(w, WORLD_SECOND / 10);
	world_start_control(w, HOME);
	world_run(w, WORLD_SECOND);
	world_open(w, HOME);
	r = ask(w, HOME, 0, SESSION_LEASE, NULL, lease, (int64_t)TTL);
	assert_int_equal(r.status, 0);
	assert_true(r.generation == lease);
	world_run(w, TTL);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(exists(w, LAST, name_of(i)), i % 2);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE, NULL, left, (int64_t)TTL).status, -ESTALE);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE_END, NULL, lease, 0).status, 0);
	assert_true(world_until(w, all_gone, NULL, WORLD_SECOND));
	world_free(w);
}

static void a_process_that_lives_need_not_call(void **state)
{
	struct world *w = four();
	const struct control_client who = {.process = 7, .birth = 9};
	uint64_t lease;

	assert_int_equal(control_session_client(w->node[HOME].core, 0, &who), 0);
	lease = lease_of(w, HOME, 0, "");
	make(w, HOME, 0, "a", lease);
	world_kill_control(w, HOME);
	w->clients_live = true;
	world_start_control(w, HOME);
	world_run(w, 3 * TTL);
	assert_true(exists(w, LAST, "a"));
	w->clients_live = false;
	assert_true(world_until(w, all_gone, NULL, TTL + WORLD_SECOND));
	world_free(w);
}

/* [G4.5] */
static void an_object_has_its_time(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "");
	const char *name = name_at(w, HOME, FIRST);

	make(w, HOME, 0, name, lease);
	make(w, HOME, 0, "longer", 0);
	make(w, HOME, 0, "ever", 0);
	assert_int_equal(ask(w, LAST, 0, SESSION_EXPIRE, "none", 0, (int64_t)TTL).status, -ENOENT);
	assert_int_equal(ask(w, LAST, 0, SESSION_EXPIRE, name, 0, (int64_t)TTL).status, 0);
	assert_int_equal(ask(w, LAST, 0, SESSION_EXPIRE, "longer", 0, (int64_t)TTL).status, 0);
	assert_int_equal(ask(w, LAST, 0, SESSION_EXPIRE, "ever", 0, (int64_t)TTL).status, 0);
	assert_int_equal(ask(w, HOME, 0, SESSION_EXPIRE, "longer", 0, (int64_t)(3 * TTL)).status,
			 0);
	assert_int_equal(ask(w, FIRST, 0, SESSION_EXPIRE, "ever", 0, 0).status, 0);
	world_run(w, TTL + WORLD_SECOND / 2);
	assert_false(exists(w, HOME, name));
	assert_true(exists(w, HOME, "longer"));
	world_run(w, 2 * TTL);
	assert_false(exists(w, HOME, "longer"));
	assert_true(exists(w, HOME, "ever"));
	assert_int_equal(w->node[HOME].core->lease->leases.holds.used, 0);
	world_free(w);
}

/* The owner dies; or the one that has said when, and then the owner counts alone. */
static void its_time_outlives_each_of_both(void **state)
{
	for (uint32_t victim = FIRST; victim <= LAST; victim += LAST - FIRST) {
		struct world *w = four();
		const char *name = name_at(w, HOME, FIRST);

		make(w, HOME, 0, name, 0);
		assert_int_equal(
			ask(w, LAST, 0, SESSION_EXPIRE, name, 0, (int64_t)(3 * TTL)).status, 0);
		world_kill_node(w, victim);
		world_run(w, 2 * TTL);
		assert_true(exists(w, HOME, name));
		world_run(w, TTL + WORLD_SECOND / 2);
		assert_false(exists(w, HOME, name));
		world_free(w);
	}
}

/* Its only holder is away when the lease ends: it does not bring the object back. */
static void what_has_ended_stays_away(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "");
	const char *name = name_at(w, HOME, FIRST);

	make_of(w, LAST, 0, name, 0, BIG);
	assert_int_equal(hold(w, HOME, lease, name), 0);
	world_kill_control(w, LAST);
	world_kill_engine(w, LAST);
	world_run(w, 2 * w->config.forget_ns);
	assert_false(exists(w, FIRST, name));
	assert_int_equal(drop(w, HOME, lease, name), 0);
	world_start_engine(w, LAST);
	world_start_control(w, LAST);
	assert_true(world_until(w, all_gone, NULL, 5 * WORLD_SECOND));
	world_free(w);
}

static void bad_leases_are_refused(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "");
	const struct control_client other = {.process = 7, .user = 5};
	int session = control_session_open(w->node[HOME].core, w->node[HOME].pins[1], w->now_ns);
	struct session_request r = world_request(SESSION_LEASE, NULL);

	assert_int_equal(session, 1);
	assert_int_equal(control_session_client(w->node[HOME].core, 1, &other), 0);
	r.op = SESSION_ATTACH;
	world_call(w, HOME, 1, &r, 0);
	make(w, HOME, 0, "a", lease);
	assert_int_equal(ask(w, HOME, 1, SESSION_HOLD, "a", lease, 0).status, -ESTALE);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE, NULL, 0, 0).status, -EINVAL);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE, NULL, 0, -1).status, -EINVAL);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE, NULL, 0, INT64_MAX).status, -EINVAL);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE, NULL, lease + 1, (int64_t)TTL).status,
			 -ESTALE);
	assert_int_equal(ask(w, HOME, 0, SESSION_EXPIRE, "a", 0, -1).status, -EINVAL);
	r = world_request(SESSION_LEASE, NULL);
	r.timeout_ns = (int64_t)TTL;
	memset(r.name, 'x', SESSION_LEASE_NAME_BYTES);
	assert_int_equal(world_call(w, HOME, 0, &r, WHEN)->reply.status, -ENAMETOOLONG);
	assert_int_equal(ask(w, HOME, 0, SESSION_CREATE, "b", lease + 1, -1).status, -ESTALE);
	assert_false(exists(w, HOME, "b"));
	world_free(w);
}

/* A create that is refused leaves nothing, and takes nothing from who was first. */
static void a_refused_create_holds_nothing(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "");
	struct session_request r = world_request(SESSION_CREATE, "a");

	make(w, LAST, 0, "a", 0);
	r.size = SIZE;
	r.pin = 0;
	r.generation = lease;
	assert_int_equal(world_call(w, HOME, 0, &r, WHEN)->reply.status, -EEXIST);
	r = world_request(SESSION_HOLD, "a");
	r.generation = lease;
	r.flags = SESSION_FLAG_JOINS;
	assert_true(world_call(w, HOME, 0, &r, WHEN)->reply.generation == 0); /* nobody else does */
	assert_int_equal(w->node[HOME].core->lease->leases.holds.used, 0);
	assert_int_equal(ask(w, HOME, 0, SESSION_LEASE_END, NULL, lease, 0).status, 0);
	world_run(w, 2 * WORLD_SECOND);
	assert_true(exists(w, HOME, "a"));
	world_free(w);
}

/* A client that goes in the middle of a create. */
static void an_unfinished_object_goes_with_its_session(void **state)
{
	struct world *w = four();
	uint64_t lease = lease_of(w, HOME, 0, "job");
	struct session_request r = world_request(SESSION_CREATE, name_at(w, HOME, FIRST));

	r.size = SIZE;
	r.pin = 0;
	r.generation = lease;
	world_send(w, HOME, 0, &r);
	control_session_close(w->node[HOME].core, 0, w->now_ns);
	world_run(w, WORLD_SECOND);
	assert_true(all_gone(w, NULL));
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_that_is_killed_leaves_nothing),
		cmocka_unit_test(a_named_lease_goes_on_with_another_session),
		cmocka_unit_test(the_last_lease_deletes),
		cmocka_unit_test(a_lease_holds_one_generation),
		cmocka_unit_test(the_next_owner_hears_of_what_is_held),
		cmocka_unit_test(what_waits_for_a_majority_is_in_nobodys_way),
		cmocka_unit_test(what_a_dead_home_held_goes),
		cmocka_unit_test(an_owner_that_was_cut_off_ends_no_lease),
		cmocka_unit_test(half_of_the_members_end_no_lease),
		cmocka_unit_test(the_only_owner_that_was_cut_off_ends_no_lease),
		cmocka_unit_test(a_home_that_was_cut_off_for_a_while_keeps_its_leases),
		cmocka_unit_test(a_control_that_is_started_again_knows_its_leases),
		cmocka_unit_test(a_process_that_lives_need_not_call),
		cmocka_unit_test(an_object_has_its_time),
		cmocka_unit_test(its_time_outlives_each_of_both),
		cmocka_unit_test(what_has_ended_stays_away),
		cmocka_unit_test(bad_leases_are_refused),
		cmocka_unit_test(a_refused_create_holds_nothing),
		cmocka_unit_test(an_unfinished_object_goes_with_its_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
