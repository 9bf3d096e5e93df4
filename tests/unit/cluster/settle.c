/* SPDX-License-Identifier: BSD-3-Clause */
/* When the next owner of an id knows who has its object. */
#include "fixtures/control_test.h"
#include "fixtures/control_world.h"
#include "core/state.h"

enum { OWNER, OTHER, HOLDER, FIRST, NODES, SIZE = 100000 };

#define STORE (UINT64_C(4) << 20)
#define WHEN  (40 * WORLD_SECOND)

static struct world *four(uint64_t settle_max_ns)
{
	struct world *w = world_new(NODES, 1, STORE, true);

	if (settle_max_ns)
		w->config.settle_max_ns = settle_max_ns;
	world_keep_all(w);
	world_run(w, 3 * WORLD_SECOND);
	return w;
}

/* One of the names of which the node `first` is the owner and OWNER the next one, as node `by` sees
 * it. */
static const char *name_seen(struct world *w, uint32_t by, uint32_t first, uint32_t skip)
{
	static char name[16];

	for (uint32_t i = 0;; i++) {
		struct node *owners[2];
		struct object_id id;

		snprintf(name, sizeof(name), "n%u", i);
		id = world_id(name);
		ownership_replicas(w->node[by].core, &id, owners);
		if (owners[0]->number == first && (first == OWNER || owners[1]->number == OWNER) &&
		    skip-- == 0)
			return name;
	}
}

static const char *name_at(struct world *w, uint32_t first, uint32_t skip)
{
	return name_seen(w, 0, first, skip);
}

static const char *name_of(struct world *w)
{
	return name_at(w, FIRST, 0);
}

static bool has_lost_first(struct world *w, void *arg)
{
	for (uint32_t i = 0; i < FIRST; i++)
		if (w->node[i].core->cluster->members.live_count != NODES - 1)
			return false;
	return true;
}

static bool all_settled(struct world *w, void *arg)
{
	for (uint32_t i = 0; i < FIRST; i++)
		if (!w->node[i].core->cluster->members.settled)
			return false;
	return true;
}

static void it_ends_when_all_have_told(void **state)
{
	struct world *w = four(0);
	const char *name = name_of(w);
	uint64_t lost_ns;

	assert_int_equal(world_put(w, HOLDER, 0, name, SIZE, 1), 0);
	world_kill_node(w, FIRST);
	assert_true(world_until(w, has_lost_first, NULL, WHEN));
	lost_ns = w->now_ns;
	assert_true(world_until(w, all_settled, NULL, WHEN));
	assert_in_range(w->now_ns - lost_ns, 0, 200 * WORLD_MS);
	assert_int_equal(world_put(w, OTHER, 0, name, SIZE, 2), -EEXIST);
	assert_int_equal(control_counters(w->node[OWNER].core)->settles_cut, 0);
	world_free(w);
}

static const struct object_slot *slot_at(struct world *w, uint32_t node, const char *name)
{
	struct control *c = w->node[node].core;
	struct object_id id = world_id(name);

	return &c->table->slot[slots_find(c, &id)];
}

static uint32_t create_send(struct world *w, uint32_t node, const char *name)
{
	struct session_request r = world_request(SESSION_CREATE, name);

	r.size = SIZE;
	return world_send(w, node, 0, &r);
}

/* The holder lives, and the next owner hears nothing of it. Returns the create of the same id. */
static uint32_t created_unheard(struct world *w, const char *name)
{
	assert_int_equal(world_put(w, HOLDER, 0, name, SIZE, 1), 0);
	w->separated[0] = OWNER;
	w->separated[1] = HOLDER;
	world_kill_node(w, FIRST);
	assert_true(world_until(w, has_lost_first, NULL, WHEN));
	world_run(w, 3 * WORLD_SECOND);
	assert_true(membership_live(&w->node[OWNER].core->cluster->peers.nodes[HOLDER]));
	return create_send(w, OTHER, name);
}

/* The steps of a shortest trail of tests/model/directory.pml with SETTLE_BY_TIME: HOLDER puts,
 * FIRST dies, OWNER's turn, OTHER creates. [G3.3] */
static void a_holder_that_has_not_told_is_waited_for(void **state)
{
	struct world *w = four(0);
	const char *name = name_of(w);
	uint32_t seq = created_unheard(w, name);

	world_run(w, 3 * WORLD_SECOND);
	assert_null(world_reply_to(w, OTHER, seq));
	w->separated[0] = w->separated[1] = 0;
	assert_int_equal(world_wait(w, OTHER, seq, WHEN)->reply.status, -EEXIST);
	assert_int_equal(world_get(w, OTHER, 0, name, SIZE, 1, WHEN), 0);
	assert_int_equal(control_counters(w->node[OWNER].core)->settles_cut, 0);
	world_free(w);
}

/* Nor is it for ever; that it was cut short is counted. */
static void the_wait_has_an_end(void **state)
{
	struct world *w = four(6 * WORLD_SECOND);
	uint32_t seq = created_unheard(w, name_of(w));

	assert_int_equal(world_wait(w, OTHER, seq, WHEN)->reply.status, 0);
	assert_int_equal(control_counters(w->node[OWNER].core)->settles_cut, 1);
	assert_int_equal(control_counters(w->node[OTHER].core)->settles_cut, 0);
	world_free(w);
}

/* Until it has told, the next owner knows of its object by a receiver that has got a part of it. */
static void a_copy_that_arrives_says_that_one_is_complete(void **state)
{
	struct message have = {.kind = MESSAGE_HAVE};
	struct world *w = four(0);
	const char *name = name_of(w);
	const struct object_slot *s;
	struct control *owner;
	uint32_t seq;

	assert_int_equal(world_put(w, HOLDER, 0, name, SIZE, 1), 0);
	s = slot_at(w, HOLDER, name);
	w->separated[0] = OWNER;
	w->separated[1] = HOLDER;
	world_kill_node(w, FIRST);
	assert_true(world_until(w, has_lost_first, NULL, WHEN));
	world_run(w, WORLD_SECOND);
	owner = w->node[OWNER].core;
	have.have.id = s->id;
	have.have.generation = s->generation;
	have.have.size = s->size;
	have.have.chunk_bytes = s->chunk_bytes;
	have.have.state = MESSAGE_COPY_PARTIAL;
	have.have.upstream = HOLDER;
	have.have.epoch = owner->directory->shard.nodes[OTHER].epoch;
	directory_message(&owner->directory->shard, OTHER, &have);
	seq = create_send(w, OTHER, name);
	world_run(w, WORLD_SECOND);
	assert_null(world_reply_to(w, OTHER, seq));
	w->separated[0] = w->separated[1] = 0;
	assert_int_equal(world_wait(w, OTHER, seq, WHEN)->reply.status, -EEXIST);
	assert_int_equal(world_get(w, OTHER, 0, name, SIZE, 1, WHEN), 0);
	world_free(w);
}

/* ---- an owner that comes back ---------------------------------------------------------------- */

static bool has_lost_owner(struct world *w, void *arg)
{
	for (uint32_t i = 0; i < FIRST; i++)
		if (i != OWNER && membership_live(&w->node[i].core->cluster->peers.nodes[OWNER]))
			return false;
	return true;
}

static const char *name_of_owner(struct world *w)
{
	return name_seen(w, OWNER, OWNER, 0);
}

/* Its dataplane is gone until the others have taken it for dead, and HOLDER has put an object of
 * its shard. It takes nobody for dead itself. */
static struct world *three_without_the_owner(const char **name)
{
	struct world *w = world_new(FIRST, 1, STORE, true);

	world_keep_all(w);
	world_run(w, 3 * WORLD_SECOND);
	assert_true(all_settled(w, NULL));
	*name = name_of_owner(w);
	world_kill_engine(w, OWNER);
	assert_true(world_until(w, has_lost_owner, NULL, WHEN));
	assert_int_equal(world_put(w, HOLDER, 0, *name, SIZE, 1), 0);
	assert_int_equal(w->node[OWNER].core->cluster->members.live_count, FIRST);
	return w;
}

/* HOLDER has not told it of the object, and neither has anybody told it that it was dead. */
static void after_a_time_alone_an_owner_is_told_again(void **state)
{
	const char *name;
	struct world *w = three_without_the_owner(&name);
	uint32_t seq;

	w->cut[HOLDER] = true;
	world_kill_control(w, OTHER); /* the next one knows of no death */
	world_start_control(w, OTHER);
	world_start_engine(w, OWNER);
	world_open(w, OTHER);
	seq = create_send(w, OTHER, name);
	world_run(w, 200 * WORLD_MS);
	assert_int_equal(w->node[OWNER].core->cluster->peers.nodes[OTHER].state, NODE_UP);
	assert_int_equal(control_counters(w->node[OWNER].core)->members_refuted, 0);
	assert_null(world_reply_to(w, OTHER, seq));
	w->cut[HOLDER] = false;
	assert_int_equal(world_wait(w, OTHER, seq, WHEN)->reply.status, -EEXIST);
	assert_int_equal(world_get(w, OTHER, 0, name, SIZE, 1, WHEN), 0);
	world_free(w);
}

/* Its connections stand: it learns of its death, or of a suspicion, by the news. */
static void taken_for_lost(enum member_state state)
{
	struct world *w = world_new(FIRST, 1, STORE, true);
	struct message_member news;
	const char *name;
	struct control *owner;
	uint32_t seq;

	world_keep_all(w);
	world_run(w, 3 * WORLD_SECOND);
	assert_true(all_settled(w, NULL));
	name = name_of_owner(w);
	owner = w->node[OWNER].core;
	w->separated[0] = OWNER;
	w->separated[1] = HOLDER;
	membership_describe(owner->cluster->self, &news);
	news.state = state;
	membership_take(owner, &news);
	assert_int_equal(control_counters(owner)->members_refuted, 1);
	seq = create_send(w, OTHER, name);
	world_run(w, 200 * WORLD_MS);
	assert_null(world_reply_to(w, OTHER, seq));
	w->separated[0] = w->separated[1] = 0;
	assert_int_equal(world_wait(w, OTHER, seq, WHEN)->reply.status, 0);
	world_free(w);
}

static void one_that_was_taken_for_dead_is_told_again(void **state)
{
	taken_for_lost(MEMBER_DEAD);
	taken_for_lost(MEMBER_SUSPECT); /* the news of the death may come later, or not at all */
}

enum { ROOM = 4 };

/* Of the names that FIRST kept, the first one that OWNER has had room to note, or ROOM. */
static uint32_t noted(struct world *w, const char names[ROOM][16])
{
	for (uint32_t i = 0; i < ROOM; i++) {
		struct object_id id = world_id(names[i]);

		if (directory_has_complete(&w->node[OWNER].core->directory->shard, &id))
			return i;
	}
	return ROOM;
}

/* HOLDER has an object more than the next owner has room for, and cannot tell all of them. */
static struct world *without_room(char names[ROOM][16])
{
	struct world *w = world_new(NODES, 1, STORE, true);

	w->config.copies_max = ROOM;
	world_keep_all(w);
	world_run(w, 3 * WORLD_SECOND);
	assert_int_equal(world_put(w, HOLDER, 0, name_at(w, OWNER, 0), SIZE, 1), 0);
	for (uint32_t i = 0; i < ROOM; i++) {
		snprintf(names[i], sizeof(names[i]), "%s", name_at(w, FIRST, i));
		assert_int_equal(world_put(w, HOLDER, 0, names[i], SIZE, 1), 0);
	}
	world_kill_node(w, FIRST);
	assert_true(world_until(w, has_lost_first, NULL, WHEN));
	world_run(w, 3 * WORLD_SECOND);
	assert_false(w->node[OWNER].core->cluster->members.settled);
	return w;
}

/* Else nothing makes room, as what is full asks for, until the time for settling is over. */
static void an_owner_without_room_deletes_what_it_knows(void **state)
{
	char names[ROOM][16];
	struct world *w = without_room(names);
	uint32_t known = noted(w, names), seq;
	struct session_request r;
	struct world_reply *reply;

	assert_int_not_equal(known, ROOM);
	seq = create_send(w, OTHER, names[known]);
	assert_int_equal(world_wait(w, OTHER, seq, WHEN)->reply.status, -EEXIST);
	r = world_request(SESSION_DELETE, names[known]);
	reply = world_call(w, OTHER, 0, &r, 2 * WORLD_SECOND);
	assert_non_null(reply);
	assert_int_equal(reply->reply.status, 0);
	assert_true(world_until(w, all_settled, NULL, 2 * WORLD_SECOND));
	assert_int_equal(control_counters(w->node[OWNER].core)->settles_cut, 0);
	for (uint32_t i = 0; i < ROOM; i++)
		assert_int_equal(world_get(w, HOLDER, 0, names[i], SIZE, 1, 0),
				 i == known ? -ENOENT : 0);
	world_free(w);
}

/* Of what it does not know it cannot say that it does not exist. */
static void an_owner_without_room_does_not_deny_what_it_does_not_know(void **state)
{
	char names[ROOM][16];
	struct world *w = without_room(names);
	struct session_request r;
	uint32_t unknown = 0;

	for (uint32_t i = 0; i < ROOM; i++) {
		struct object_id id = world_id(names[i]);

		if (directory_has_complete(&w->node[OWNER].core->directory->shard, &id))
			continue;
		unknown++;
		r = world_request(SESSION_DELETE, names[i]);
		assert_null(world_call(w, OTHER, 0, &r, WORLD_SECOND / 2));
	}
	assert_int_equal(unknown, 1);
	world_free(w);
}

static void one_node_alone_does_not_wait(void **state)
{
	struct world *w = world_new(1, 1, STORE, true);
	uint64_t began_ns;

	world_keep_all(w);
	began_ns = w->now_ns;
	assert_int_equal(world_put_whole(w, 0, 0, "x", 100, 1), 0);
	assert_in_range(w->now_ns - began_ns, 0, 20 * WORLD_MS);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_when_all_have_told),
		cmocka_unit_test(a_holder_that_has_not_told_is_waited_for),
		cmocka_unit_test(the_wait_has_an_end),
		cmocka_unit_test(a_copy_that_arrives_says_that_one_is_complete),
		cmocka_unit_test(after_a_time_alone_an_owner_is_told_again),
		cmocka_unit_test(one_that_was_taken_for_dead_is_told_again),
		cmocka_unit_test(an_owner_without_room_deletes_what_it_knows),
		cmocka_unit_test(an_owner_without_room_does_not_deny_what_it_does_not_know),
		cmocka_unit_test(one_node_alone_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
