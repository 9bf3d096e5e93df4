/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reduce from its request to its end: REDUCE, REDUCED, followers, release of what participants
 * have built. Called by the front door, and by the other files of the coordinator. The phases in
 * between are contributions.c, binding.c, repair.c, receivers.c and commit.c.
 */
#include <assert.h>
#include <errno.h>
#include "internal/reduce.h"
#include "core/base/env.h"
#include "core/base/text.h"
#include "core/directory/state.h"
#include "state.h"
#include "wrong.h"

enum { REDUCE_GRAIN_BYTES = 64 };

void reduces_carve(struct reduces *rs, struct arena *a, const struct control_config *config)
{
	uint64_t bytes = config->reduce_sources_max * REDUCE_SOURCE_BYTES;

	pool_carve(&rs->pool, a, sizeof(struct reduce), config->reduces_max);
	pool_carve(&rs->followers, a, sizeof(struct reduce_follower), config->waiters_max);
	pool_carve(&rs->receivers, a, sizeof(struct reduce_receiver), config->waiters_max);
	idmap_carve(&rs->by_id, a, config->reduces_max);
	allocator_carve(&rs->space, a, 3 * config->reduces_max);
	rs->memory = arena_carve(a, bytes + config->reduce_value_bytes);
}

void reduces_init(struct control *c)
{
	struct reduces *rs = &c->coordinator->reduces;

	list_init(&rs->active);
	list_init(&rs->ended);
	rs->number = env_random(c) >> 1;
	rs->limits = planner_limits_usual;
	rs->limits.grid_slots = c->config.grid_slots;
	rs->limits.only = c->config.planner;
	allocator_reset(&rs->space,
			c->config.reduce_sources_max * REDUCE_SOURCE_BYTES +
				c->config.reduce_value_bytes,
			REDUCE_GRAIN_BYTES);
}

uint64_t reduce_generation(struct control *c, const struct reduce *r)
{
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &r->by_id.id);

	if (t)
		env_generation_after(c, t->generation);
	env_generation_after(c, r->want.before);
	return env_generation(c);
}

struct reduce *reduce_find(struct control *c, const struct object_id *target)
{
	struct idmap_node *n = idmap_find(&c->coordinator->reduces.by_id, target);

	return n ? idmap_item(n, struct reduce, by_id) : NULL;
}

void reduce_free(struct control *c, struct reduce *r)
{
	r->state = REDUCE_ENDED;
	if (r->superseded)
		reduce_free(c, r->superseded);
	if (r->from.range)
		allocator_give(&c->coordinator->reduces.space, r->from.range);
	if (r->plan.tree)
		allocator_give(&c->coordinator->reduces.space, r->plan.tree);
	if (r->sum.value)
		allocator_give(&c->coordinator->reduces.space, r->sum.value);
	timers_cancel(&c->timers, &r->deadline);
	timers_cancel(&c->timers, &r->beat);
	timers_cancel(&c->timers, &r->watch);
	timers_cancel(&c->timers, &r->turn);
	list_remove(&r->active);
	if (!r->is_superseded)
		idmap_remove(&c->coordinator->reduces.by_id, &r->by_id);
	pool_give(&c->coordinator->reduces.pool, r);
}

/* ---- what is asked -------------------------------------------------------------------------- */

void reduce_used(struct control *c, const struct reduce *r, struct message_used *m)
{
	m->target = r->by_id.id;
	m->generation = r->out.generation;
	m->count = 0;
	m->sources = c->coordinator->reduces.ids;
	for (uint32_t i = 0; i < r->from.count; i++)
		if (r->from.source[i].slot != REDUCE_NONE)
			c->coordinator->reduces.ids[m->count++] = r->from.source[i].id;
}

static void reduce_answer(struct control *c, const struct reduce *r, uint32_t node,
			  uint64_t request)
{
	struct message m = {.kind = MESSAGE_USED, .request = request};

	reduce_used(c, r, &m.used);
	if (r->status)
		m.used.count = 0;
	m.used.status = r->status;
	memcpy(m.used.text, r->text, sizeof(m.used.text));
	peers_send(c, peers_node(c, node), &m);
}

void reduce_ask(struct control *c, struct node *n, const struct message *m)
{
	struct reduce *r = reduce_standing(c, reduce_find(c, &m->reduce.target));
	struct message unknown = {.kind = MESSAGE_USED, .request = m->request};
	struct reduce_follower *a;

	if (r && m->reduce.asked && m->reduce.asked != r->want.asked)
		r = NULL; /* another reduce into the same target */
	if (!r) {
		unknown.used.target = m->reduce.target;
		unknown.used.status = -ENOENT;
		peers_send(c, n, &unknown);
		return;
	}
	if (r->out.finished || r->state == REDUCE_ENDED) {
		reduce_answer(c, r, n->number, m->request);
		return;
	}
	if (m->reduce.timeout_ns == 0) {
		reduce_progress(c, r, &unknown.used);
		peers_send(c, n, &unknown);
		return;
	}
	list_each(l, after, &r->followers)
	{
		a = list_item(l, struct reduce_follower, link);
		if (a->node == n->number && a->request == m->request)
			return;
	}
	a = pool_take(&c->coordinator->reduces.followers);
	if (!a)
		return; /* it asks again */
	a->node = n->number;
	a->request = m->request;
	a->asked = m->reduce.asked;
	list_append(&r->followers, &a->link);
}

/* generation: of a complete result that has all sources in it, or 0. */
static void reduce_reply_with(struct control *c, uint32_t node, uint64_t request, int32_t status,
			      const char *text, uint64_t generation)
{
	struct message m = {.kind = MESSAGE_REPLY, .request = request};

	m.reply.status = status;
	m.reply.generation = generation;
	memcpy(m.reply.text, text, strnlen(text, MESSAGE_TEXT_MAX));
	peers_send(c, peers_node(c, node), &m);
}

void reduce_reply(struct control *c, uint32_t node, uint64_t request, int32_t status,
		  const char *text)
{
	reduce_reply_with(c, node, request, status, text, 0);
}

void reduce_accept(struct control *c, struct reduce *r)
{
	if (r->answered)
		return;
	r->answered = true;
	reduce_reply(c, r->want.caller, r->want.request, 0, "");
}

void reduce_reserve(struct control *c, const struct reduce *r, uint64_t generation)
{
	directory_reserve_for(&c->directory->shard, &r->by_id.id, generation);
}

/* ---- the end -------------------------------------------------------------------------------- */

static bool reduce_released(struct control *c, struct call *call, const struct message *answer)
{
	return false;
}

/* Best effort: a node that gets no RELEASE gives up after coordinator_lost_ns. */
static void reduce_release_node(struct control *c, const struct message *m, uint32_t node)
{
	rpc_start(c, peers_node(c, node), m, TABLE_SLOT_NONE, c->config.coordinator_lost_ns,
		  reduce_released, NULL);
}

/* Sends one RELEASE to each node that has built something for the reduce. */
static void reduce_release(struct control *c, struct reduce *r)
{
	struct message m = {.kind = MESSAGE_RELEASE};

	m.combined.target = r->by_id.id;
	m.combined.reduce = r->want.number;
	m.combined.part_node = MESSAGE_NODE_NONE;
	if (r->status == 0 && r->state >= REDUCE_COMMITTING)
		m.combined.generation = r->out.generation;
	m.combined.what = r->state == REDUCE_COMMITTING;
	m.combined.status = r->status == -ECANCELED ? r->status : 0;
	for (uint32_t i = 0; i < r->plan.graph.slots; i++) {
		uint32_t host = r->plan.run.slot[i].host;
		bool informed = host == REDUCE_NONE;

		for (uint32_t k = 0; !informed && k < i; k++)
			informed = r->plan.run.slot[k].host == host;
		if (!informed)
			reduce_release_node(c, &m, host);
	}
	list_each(l, after, &r->out.receivers)
	{
		reduce_release_node(c, &m, list_item(l, struct reduce_receiver, link)->node);
	}
}

static void reduce_end_calls(struct control *c, struct reduce *r)
{
	for (uint32_t i = 0; i < r->from.count; i++) {
		reduce_unlocate(c, &r->from.source[i]);
	}
	for (uint32_t v = 0; v < r->plan.graph.vertices; v++) {
		rpc_cancel(c, r->plan.vertex[v].call);
		r->plan.vertex[v].call = NULL;
	}
	rpc_cancel(c, r->commit.call);
	r->commit.call = NULL;
	timers_cancel(&c->timers, &r->deadline);
	timers_cancel(&c->timers, &r->beat);
	timers_cancel(&c->timers, &r->watch);
	timers_cancel(&c->timers, &r->turn);
}

void reduce_answer_all(struct control *c, struct reduce *r)
{
	list_each(l, after, &r->followers)
	{
		struct reduce_follower *a = list_item(l, struct reduce_follower, link);

		reduce_answer(c, r, a->node, a->request);
		list_remove(&a->link);
		pool_give(&c->coordinator->reduces.followers, a);
	}
}

void reduce_end(struct control *c, struct reduce *r, int32_t status, const char *text)
{
	bool answered = r->answered;
	struct reduce *superseded;

	r->status = status;
	if (status == 0 && r->superseded) {
		reduce_free(c, r->superseded);
		r->superseded = NULL;
	}
	reduce_end_calls(c, r);
	reduce_release(c, r);
	reduce_receivers_free(c, r);
	r->state = REDUCE_ENDED;
	r->ended_ns = c->now_ns;
	strncpy(r->text, text, MESSAGE_TEXT_MAX);
	directory_unreserve(&c->directory->shard, &r->by_id.id);
	if (r->sum.value)
		allocator_give(&c->coordinator->reduces.space, r->sum.value);
	r->sum.value = 0;
	reduce_answer_all(c, r);
	reduce_tell_waiters(c, r);
	if (r->plan.tree)
		allocator_give(&c->coordinator->reduces.space, r->plan.tree);
	r->plan.tree = 0;
	r->plan.graph = (struct graph){0};
	list_remove(&r->active);
	list_append(&c->coordinator->reduces.ended, &r->active);
	if (answered)
		return;
	r->answered = true;
	reduce_reply_with(c, r->want.caller, r->want.request, status, text,
			  r->want.num == r->from.count ? r->out.generation : 0);
	if (status == 0)
		return;
	superseded = r->superseded; /* the refused reduce leaves no trace */
	r->superseded = NULL;
	reduce_free(c, r);
	reduce_reinstate(c, superseded);
}

void reduce_fail(struct control *c, struct reduce *r, int32_t status, const char *text)
{
	assert(r->state < REDUCE_COMMITTING);
	reduce_reserve(c, r, UINT64_MAX);
	reduce_end(c, r, status, text);
}

static void reduce_late(struct control *c, struct timer *t)
{
	struct reduce *r = list_item(t, struct reduce, deadline);
	struct text text = {.length = 0};

	reduce_say_late(c, r, &text);
	reduce_fail(c, r, -ETIMEDOUT, text.bytes);
}

static void reduce_beat_fire(struct control *c, struct timer *t)
{
	struct reduce *r = list_item(t, struct reduce, beat);

	timers_set(&c->timers, t, c->now_ns + c->config.coordinator_lost_ns / 4, reduce_beat_fire);
	if (r->state < REDUCE_COMMITTING || reduce_gathers(r))
		reduce_beat(c, r);
	reduce_turn(c, r); /* sources may be reachable again */
}

/* ---- the beginning -------------------------------------------------------------------------- */

/* Room for the arrays. */
static uint32_t reduce_room(struct control *c, uint64_t bytes)
{
	uint32_t range;

	while ((range = allocator_take(&c->coordinator->reduces.space, bytes)) == 0)
		if (!reduce_evict(c))
			return 0;
	return range;
}

struct reduce *reduce_make(struct control *c, struct node *n, uint64_t request,
			   const struct message_reduce *in)
{
	struct reduces *rs = &c->coordinator->reduces;
	uint64_t sources = sizeof(struct reduce_source) * in->count;
	struct reduce *r;
	uint32_t range = reduce_room(c, sources);

	if (range && rs->pool.used == rs->pool.capacity)
		reduce_evict(c);
	r = range ? pool_take(&rs->pool) : NULL;
	if (!r) {
		if (range)
			allocator_give(&rs->space, range);
		return NULL;
	}
	r->from.range = range;
	r->from.source =
		(struct reduce_source *)(void *)(rs->memory + allocator_offset(&rs->space, range));
	memset(r->from.source, 0, sources);
	list_init(&r->followers);
	list_init(&r->out.receivers);
	list_append(&rs->active, &r->active);
	idmap_insert(&rs->by_id, &r->by_id, &in->target);
	r->want.number = ++rs->number;
	r->want.request = request;
	r->want.asked = in->asked;
	r->begun_ns = c->now_ns;
	r->want.caller = n->number;
	r->want.op = in->op;
	r->want.dtype = r->want.asked_dtype = in->dtype;
	r->want.num = in->num;
	r->want.flags = in->flags;
	r->from.count = r->from.unanswered = in->count;
	r->sum.small = true;
	memcpy(r->want.name, in->name, sizeof(r->want.name));
	reduce_set_policy(c, r, in);
	return r;
}

static void reduce_list(struct reduce *r, const struct message_reduce *m)
{
	for (uint32_t i = 0; i < r->from.count; i++)
		r->from.source[i] = (struct reduce_source){.reduce = r,
							   .id = m->sources[i],
							   .node = REDUCE_NONE,
							   .slot = REDUCE_NONE,
							   .next = REDUCE_NONE,
							   .failed = MESSAGE_NODE_NONE};
}

static void reduce_begin(struct control *c, struct reduce *r, const struct message_reduce *m)
{
	if (m->timeout_ns < UINT64_MAX - c->now_ns)
		timers_set(&c->timers, &r->deadline, c->now_ns + m->timeout_ns, reduce_late);
	timers_set(&c->timers, &r->beat, c->now_ns + c->config.coordinator_lost_ns / 4,
		   reduce_beat_fire);
	reduce_list(r, m);
	reduce_locate_all(c, r);
}

const char reduce_exists[] = "the target exists already: delete it first";
static const char reduce_too_many[] = "too many reduces at a time: try again later";

/* Whether so many LOCATEs can be sent, with calls left for other requests. */
static bool reduce_calls(const struct control *c, uint32_t count)
{
	const struct pool *calls = &c->cluster->calls.pool;

	return calls->used + count <= calls->capacity - calls->capacity / 4;
}

/* The latest generation of the target before this reduce: the directory's, or one that the last
 * reduce into the target made or knew of. */
static uint64_t reduce_before(uint64_t before, const struct reduce *last)
{
	if (last && last->out.generation > before)
		before = last->out.generation;
	return last && last->want.before > before ? last->want.before : before;
}

static void reduce_not_begun(struct control *c, struct node *n, const struct message *m, int error)
{
	const char *why =
		error == -EEXIST ? reduce_exists : "the directory is full: delete objects";
	struct text t;

	if (error == -EAGAIN) {
		directory_unreachable(&c->directory->shard,
				      directory_find(&c->directory->shard, &m->reduce.target), &t);
		why = t.bytes;
	}
	reduce_reply(c, n->number, m->request, error, why);
}

/* A REDUCE that is known. */
static void reduce_repeated(struct control *c, struct reduce *r, const struct message *m)
{
	r->want.request = m->request;
	if (r->answered)
		reduce_reply(c, r->want.caller, m->request, 0, "");
}

/* A request for the target of a reduce that goes on, or has made it. Participants of an allreduce
 * that ask for unlike sums would each take the bytes for something else: then it fails for all.
 * Returns whether the request is answered. */
static bool reduce_is_other(struct control *c, struct reduce *r, const struct node *n,
			    const struct message *m)
{
	bool all = r->want.flags & m->reduce.flags & MESSAGE_REDUCE_ALLREDUCE;
	bool ended = r->state == REDUCE_ENDED;
	enum reduce_differs differs;
	struct text why;

	if (ended &&
	    (r->status || !all || !directory_has_complete(&c->directory->shard, &r->by_id.id)))
		return false;
	differs = reduce_differs(r, &m->reduce, &why);
	if (ended && differs != REDUCE_OTHER_KIND)
		return false;
	reduce_reply(c, n->number, m->request,
		     all && differs == REDUCE_OTHER_KIND ? -EINVAL : -EEXIST, why.bytes);
	if (all && differs == REDUCE_OTHER_KIND && r->state < REDUCE_COMMITTING)
		reduce_fail(c, r, -EINVAL, why.bytes);
	return true;
}

void reduce_request(struct control *c, struct node *n, const struct message *m)
{
	struct reduce *r = reduce_find(c, &m->reduce.target);
	struct reduce *superseded;
	const char *wrong;
	uint64_t before;
	int error;

	if (r && r->want.caller == n->number && r->want.asked == m->reduce.asked) {
		reduce_repeated(c, r, m);
		return;
	}
	wrong = reduce_wrong(&m->reduce);
	if (wrong) {
		reduce_reply(c, n->number, m->request, -EINVAL, wrong);
		return;
	}
	if (r && reduce_is_other(c, r, n, m))
		return;
	if (!reduce_calls(c, m->reduce.count)) {
		reduce_reply(c, n->number, m->request, -EAGAIN, reduce_too_many);
		return;
	}
	error = directory_reserve(&c->directory->shard, &m->reduce.target, &before);
	if (error) {
		reduce_not_begun(c, n, m, error);
		return;
	}
	before = reduce_before(before, r);
	superseded = reduce_supersede(c, r);
	r = reduce_make(c, n, m->request, &m->reduce);
	if (!r) {
		reduce_reinstate(c, superseded);
		directory_unreserve(&c->directory->shard, &m->reduce.target);
		reduce_reply(c, n->number, m->request, -EAGAIN, reduce_too_many);
		return;
	}
	r->want.before = before;
	r->superseded = superseded;
	reduce_begin(c, r, &m->reduce);
}

bool reduce_deleted(struct control *c, const struct object_id *target, const char *text)
{
	struct reduce *r = reduce_find(c, target);
	bool active = r && r->state != REDUCE_ENDED;

	if (active)
		reduce_end(c, r, -ECANCELED, text);
	else if (r)
		reduce_free(c, r);
	return active;
}

void reduce_drop(struct control *c, struct reduce *r)
{
	list_each(l, after, &r->followers)
	{
		struct reduce_follower *a = list_item(l, struct reduce_follower, link);

		ownership_redirect(c, peers_node(c, a->node), a->request);
		list_remove(&a->link);
		pool_give(&c->coordinator->reduces.followers, a);
	}
	if (!r->answered)
		ownership_redirect(c, peers_node(c, r->want.caller), r->want.request);
	reduce_end_calls(c, r);
	reduce_release(c, r);
	reduce_receivers_free(c, r);
	directory_unreserve(&c->directory->shard, &r->by_id.id);
	reduce_free(c, r);
}

void reduce_give_way(struct control *c, struct reduce *r)
{
	r->out.generation = 0;
	reduce_reserve(c, r, UINT64_MAX);
	reduce_drop(c, r);
}

void reduce_keep(struct control *c)
{
	list_each(l, after, &c->coordinator->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (ownership_shard(c, &r->by_id.id) != c->cluster->self)
			reduce_drop(c, r);
	}
}
