/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of reduces have in common that are coordinated by the node that has asked for them
 * (reduce/coordinator/delegate.c). */
#ifndef SARISSA_TESTS_UNIT_CONTROL_DELEGATION_H
#define SARISSA_TESTS_UNIT_CONTROL_DELEGATION_H

#include "control_test.h"
#include "control_world.h"
#include "core/state.h"
#include "internal/reduce.h"

/* The owner of the target has no source, nor has the requester. The next owner may have one. */
enum { SOURCES = 5, NEEDED = 4, SLOW = NEEDED - 1, OWNER = 5, CALLER = 6, NODES = 7 };

#define SIZE	   UINT64_C(2000000)
#define STORE	   (UINT64_C(32) << 20)
#define LONG	   ((int64_t)(20 * WORLD_SECOND))
#define SOON_NS	   (200 * WORLD_MS) /* before any death is certain */
#define CERTAIN_NS (1200 * WORLD_MS)

static const struct session_reduction how = {
	.op = REDUCE_SUM, .dtype = REDUCE_U32, .num = NEEDED, .count = SOURCES};
static struct object_id ids[SOURCES];
static char target[16];

/* next: the next owner of the target. */
static inline struct world *delegating(uint32_t next)
{
	struct node *owners[2];

	struct world *w = world_new(NODES, 1, STORE, true);
	struct object_id id;

	for (uint32_t i = 0; i < NODES; i++)
		world_kill_control(w, i);
	w->config.shards = 0;
	w->config.delegate_bytes = 1;
	for (uint32_t i = 0; i < NODES; i++)
		world_start_control(w, i);
	world_run(w, 3 * WORLD_SECOND);
	w->delay_ns = WORLD_MS;
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(world_open(w, i), 0);
	for (uint32_t k = 0;; k++) {
		snprintf(target, sizeof(target), "reduced%u", k);
		id = world_id(target);
		ownership_replicas(w->node[0].core, &id, owners);
		if (owners[0]->number == OWNER && owners[1]->number == next)
			break;
	}
	for (uint32_t i = 0; i < SOURCES; i++) {
		char name[8];

		snprintf(name, sizeof(name), "a%u", i);
		ids[i] = world_id(name);
	}
	return w;
}

static inline struct reduce *at(struct world *w, uint32_t node)
{
	struct object_id id = world_id(target);

	return reduce_find(w->node[node].core, &id);
}

static inline void put_source(struct world *w, uint32_t i)
{
	char name[8];

	snprintf(name, sizeof(name), "a%u", i);
	assert_int_equal(world_put(w, i, 0, name, SIZE, i + 1), 0);
}

/* The last one that is needed is half written: what is built of it stands still. */
static inline struct session_request begin_source(struct world *w)
{
	struct session_request r = world_request(SESSION_CREATE, "a3");
	struct world_reply *a;

	r.size = SIZE;
	a = world_call(w, SLOW, 0, &r, WORLD_SECOND);
	assert_int_equal(a->reply.status, 0);
	world_fill(w->node[SLOW].store + a->reply.offset, SIZE, SLOW + 1);
	r = world_request(SESSION_PUBLISH, NULL);
	r.slot = a->reply.slot;
	r.generation = a->reply.generation;
	r.watermark = SIZE / 2;
	assert_int_equal(world_call(w, SLOW, 0, &r, 0)->reply.status, 0);
	return r;
}

static inline void end_source(struct world *w, struct session_request r)
{
	r.op = SESSION_SEAL;
	assert_int_equal(world_call(w, SLOW, 0, &r, 0)->reply.status, 0);
}

/* In its middle, or waiting for its last source. */
static inline struct world *half_way(uint32_t sources, uint32_t next, int64_t timeout_ns)
{
	struct world *w = delegating(next);

	for (uint32_t i = 0; i < sources; i++)
		put_source(w, i);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, timeout_ns), 0);
	world_run(w, 15 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_DELEGATED);
	assert_int_equal(at(w, CALLER)->state, REDUCE_RUNNING);
	return w;
}

/* It is being built, and that is not over before source is put; which generation, and where. */
static inline struct world *flowing(uint32_t next, struct session_request *source,
				    uint64_t *generation, uint32_t *host)
{
	struct world *w = delegating(next);
	const struct reduce *r;

	for (uint32_t i = 0; i < SLOW; i++)
		put_source(w, i);
	*source = begin_source(w);
	assert_int_equal(world_reduce(w, CALLER, 0, target, ids, how, 0, -1), 0);
	world_run(w, 100 * WORLD_MS);
	assert_int_equal(at(w, OWNER)->state, REDUCE_DELEGATED);
	r = at(w, CALLER);
	*generation = reduce_root(r, 0)->generation;
	*host = reduce_host(reduce_root(r, 0));
	assert_true(*generation != 0);
	return w;
}

/* The generation that the directory's node knows; 0: none. */
static inline uint64_t known(struct world *w, uint32_t owner)
{
	struct object_id id = world_id(target);
	const struct entry *e = directory_find(&w->node[owner].core->directory->shard, &id);

	return e ? e->generation : 0;
}

static inline bool is_agreed(struct world *w, void *arg)
{
	struct object_id id = world_id(target);
	struct requester *r = requester_find(w->node[CALLER].core, &id);
	uint32_t *holder = arg;

	if (r && r->generation && !r->proposed && holder)
		*holder = r->holder;
	return r && r->generation && !r->proposed;
}

/* By the owner of the target, which has not told any node yet; and its builder. */
static inline bool is_decided(struct world *w, void *arg)
{
	const struct reduce *r = at(w, OWNER);
	uint32_t *holder = arg;

	if (r && r->state == REDUCE_COMMITTED)
		*holder = r->commit.holder;
	return r && r->state == REDUCE_COMMITTED;
}

static inline void its_id_is_taken(struct world *w)
{
	assert_int_equal(world_put(w, 0, 0, target, SIZE, 9), -EEXIST);
	assert_int_equal(world_put_whole(w, 0, 0, target, 100, 9), -EEXIST);
	assert_int_equal(world_reduce(w, 0, 0, target, ids, how, 0, -1), -EEXIST);
}

/* All who live can have it, and it is the sum of what is reported. */
static inline void is_the_sum(struct world *w, uint32_t requester)
{
	struct object_id used[SOURCES];
	const uint8_t *bytes;
	uint64_t size, set = 0;

	assert_int_equal(world_reduced(w, requester, 0, target, LONG, used), NEEDED);
	for (uint32_t k = 0; k < NEEDED; k++)
		for (uint32_t i = 0; i < SOURCES; i++)
			set |= (uint64_t)object_id_equal(&ids[i], &used[k]) << i;
	for (uint32_t i = 0; i < NODES; i++) {
		if (w->node[i].core == NULL)
			continue;
		assert_int_equal(world_fetch(w, i, 0, target, LONG, &bytes, &size), 0);
		assert_int_equal(size, SIZE);
		assert_true(world_sums(bytes, SIZE, set));
	}
}

/* The requester's control restarts. */
static inline void forget(struct world *w)
{
	world_kill_control(w, CALLER);
	world_run(w, 250 * WORLD_MS);
	world_start_control(w, CALLER);
	assert_int_equal(world_open(w, CALLER), 0);
}

/* The sources of the reported result. */
static inline uint64_t told(struct world *w, uint32_t node, uint32_t seq, int *status)
{
	uint64_t set = 0;
	struct world_reply *a;

	*status = -EBUSY;
	while ((a = world_wait(w, node, seq, LONG)) != NULL) {
		for (uint32_t k = 0; k < a->sources.count; k++)
			for (uint32_t i = 0; i < SOURCES; i++)
				set |= (uint64_t)object_id_equal(&ids[i], &a->sources.source[k])
				       << i;
		if (a->reply.flags & SESSION_FLAG_MORE)
			continue;
		*status = a->reply.status;
		return set;
	}
	return 0;
}

static inline uint32_t ask(struct world *w, uint32_t node)
{
	struct session_request r = world_request(SESSION_REDUCED, target);

	r.timeout_ns = LONG;
	return world_send(w, node, 0, &r);
}

/* No call is free at that node, before it is fed again with what this returns. */
static inline struct call *starve(struct world *w, uint32_t node)
{
	struct pool *calls = &w->node[node].core->cluster->calls.pool;
	struct call *last = NULL, *next;

	while ((next = pool_take(calls)) != NULL) {
		next->owner = last;
		last = next;
	}
	return last;
}

static inline void feed(struct world *w, uint32_t node, struct call *last)
{
	while (last) {
		struct call *next = last->owner;

		pool_give(&w->node[node].core->cluster->calls.pool, last);
		last = next;
	}
}

static inline void nothing_is_left(struct world *w)
{
	struct control_usage u;

	world_run(w, WORLD_SECOND);
	for (uint32_t i = 0; i < NODES; i++) {
		if (w->node[i].core == NULL)
			continue;
		control_usage(w->node[i].core, &u);
		assert_int_equal(u.reduces + u.requesters + u.participants + u.parts, 0);
	}
	world_free(w);
}

#endif
