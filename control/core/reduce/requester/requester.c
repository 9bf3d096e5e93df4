/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/env.h"
#include "core/store/await.h"
#include "core/transfer/fetch.h"
#include "state.h"
#include "events.h"

static const char requester_lost[] =
	"its result was lost with the nodes that had just made it: reduce again";
static const char requester_another[] = "the target exists, and may be another reduce's: get it, "
					"or reduce into another target";
static const char requester_silent[] =
	"the directory does not answer: see 'sarissa status' for the nodes";

void requesters_carve(struct requesters *rs, struct arena *a, const struct control_config *config)
{
	pool_carve(&rs->pool, a, sizeof(struct requester), config->requesters_max);
	rs->sources = arena_carve(a, sizeof(*rs->sources) * MESSAGE_SOURCES_MAX *
					     (size_t)config->requesters_max);
}

void requesters_init(struct control *c)
{
	list_init(&c->requester->requesters.active);
	list_init(&c->requester->requesters.kept);
	ledger_init(c);
}

uint64_t requester_left(struct control *c, const struct requester *r)
{
	if (r->until_ns == UINT64_MAX)
		return UINT64_MAX;
	return r->until_ns > c->now_ns ? r->until_ns - c->now_ns : 0;
}

void requester_set_times(struct control *c, const struct requester *r, struct message_reduce *m)
{
	m->timeout_ns = requester_left(c, r);
	if (m->flags & MESSAGE_REDUCE_DEADLINE)
		m->deadline_ns = r->at_ns > c->now_ns ? r->at_ns - c->now_ns : 0;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void requester_end(struct control *c, struct requester *r, const struct message_used *used)
{
	rpc_cancel(c, r->call);
	r->call = NULL;
	timers_cancel(&c->timers, &r->timer);
	timers_cancel(&c->timers, &r->watch);
	list_each(l, after, &r->waits)
	{
		wiring_reduce_ended(c, list_item(l, struct await, link), used);
	}
	if (used->status == 0 && r->generation)
		requester_keep(c, r);
	else
		requester_forget(c, r);
}

/* The agreed result is complete. */
static void requester_done(struct control *c, struct requester *r)
{
	struct message_used used;

	requester_used(c, r, &used);
	requester_end(c, r, &used);
}

static void requester_fail(struct control *c, struct requester *r, int32_t status, const char *text)
{
	struct message_used used = {.target = r->reduce.target, .status = status};
	struct fetch *early = fetch_find(c, &r->reduce.target);

	if (early) /* begun by session_reduce_get: no client wants an earlier object of that id */
		fetch_unwanted(c, early);
	memcpy(used.text, text, strnlen(text, MESSAGE_TEXT_MAX));
	requester_end(c, r, &used);
}

/* The target is complete, and no live node knows which sources it has. No coordinator completes a
 * large target of this request without asking here, unless it believes that this node is dead. */
static void requester_guess(struct control *c, struct requester *r, const struct session_object *o)
{
	struct message_used used = {
		.target = r->reduce.target, .count = r->reduce.count, .sources = r->reduce.sources};

	if (!r->resumed && o->size > OBJECT_INLINE_MAX)
		requester_fail(c, r, -EEXIST, requester_another);
	else if (r->reduce.num == r->reduce.count && !(r->reduce.flags & MESSAGE_REDUCE_DEADLINE))
		requester_end(c, r, &used);
	else
		requester_fail(c, r, -ENODATA,
			       "the result is there, but the node that knew what is in it is "
			       "lost: get it, or reduce again into another target");
}

void requester_deleted(struct control *c, const struct object_id *target)
{
	struct requester *r;

	while ((r = requester_find(c, target)))
		requester_fail(c, r, -ECANCELED, "the reduce was cancelled by rm: reduce again");
	while ((r = requester_recall(c, target)))
		requester_forget(c, r);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void requester_step(struct control *c, struct requester *r);

static void requester_fire(struct control *c, struct timer *t)
{
	requester_step(c, list_item(t, struct requester, timer));
}

static void requester_rest(struct control *c, struct requester *r, enum requester_phase state)
{
	r->state = (uint8_t)state;
	timers_set(&c->timers, &r->timer, c->now_ns + env_backoff(c, ++r->attempts),
		   requester_fire);
}

/* The target is complete already, and has all sources. */
static void requester_whole(struct control *c, struct requester *r, uint64_t generation)
{
	const struct message_used used = {.target = r->reduce.target,
					  .generation = generation,
					  .count = r->reduce.count,
					  .sources = r->reduce.sources};

	requester_note(r, &used);
	requester_end(c, r, &used);
}

/* A coordinator has accepted the reduce: it cannot be refused any more, only fail. */
static void requester_accepted(struct control *c, struct requester *r)
{
	r->accepted = true;
	list_each(l, after, &r->waits)
	{
		wiring_reduce_accepted(c, list_item(l, struct await, link));
	}
}

static void requester_accept(struct control *c, struct requester *r)
{
	requester_accepted(c, r);
	r->state = REQUESTER_FOLLOW;
	requester_step(c, r);
}

/* The answer to REDUCE. */
static bool requester_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct requester *r = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	r->call = NULL;
	r->retried |= call->node != r->asked || (r->asked_incarnation != 0 &&
						 call->node->incarnation != r->asked_incarnation);
	if (status == 0 && answer->reply.generation) {
		requester_whole(c, r, answer->reply.generation);
	} else if (status == 0) {
		requester_accept(c, r);
	} else if (status == -EEXIST && r->retried) {
		r->state = REQUESTER_LOOK;
		requester_step(c, r);
	} else if (r->accepted && (status == -EAGAIN || status == -ENOSPC)) {
		requester_rest(c, r, REQUESTER_ASK);
	} else {
		requester_fail(c, r, status, answer ? answer->reply.text : requester_silent);
	}
	return false;
}

/* Whether an answer to REDUCED is about the agreed result. Otherwise it is about another reduce
 * into the same target. */
static bool requester_is_agreed(const struct requester *r, const struct message_used *used)
{
	if (used->status == 0)
		return used->generation == r->generation;
	return used->status == -ESTALE || used->status == -ECANCELED;
}

/* Whether the target has the sources of this request. An earlier reduce into it, from before a
 * restart of this control process, may have had others. */
static bool requester_fits(const struct requester *r, const struct message_used *used)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < r->reduce.count && k < used->count; i++)
		k += object_id_equal(&r->reduce.sources[i], &used->sources[k]);
	if (r->reduce.flags & MESSAGE_REDUCE_DEADLINE)
		return k == used->count && k >= r->reduce.min;
	return k == used->count && k == r->reduce.num;
}

/* The answer to REDUCED, which has no deadline. */
static bool requester_reduced(struct control *c, struct call *call, const struct message *answer)
{
	struct requester *r = call->owner;

	r->call = NULL;
	if (r->generation && !requester_is_agreed(r, &answer->used)) {
		r->lost_ns = c->now_ns;
		r->state = REQUESTER_FINISH;
		requester_step(c, r);
	} else if (answer->used.status == 0 && !requester_fits(r, &answer->used)) {
		requester_fail(c, r, -EEXIST, requester_another);
	} else if (answer->used.status != -ENOENT) {
		if (answer->used.status == 0)
			requester_note(r, &answer->used);
		requester_end(c, r, &answer->used);
	} else if (requester_left(c, r) == 0) {
		requester_fail(c, r, -ETIMEDOUT,
			       "the time is over, and the node that directed it is lost: reduce "
			       "again, with more time");
	} else {
		r->retried = true;
		requester_rest(c, r, REQUESTER_ASK);
	}
	return false;
}

static bool requester_looked(struct control *c, struct call *call, const struct message *answer)
{
	struct requester *r = call->owner;
	const struct session_object *o =
		answer && answer->objects.count == 1 ? answer->objects.objects : NULL;

	r->call = NULL;
	if (r->generation) {
		if (o && o->generation == r->generation && o->copies > 0)
			requester_done(c, r);
		else if (c->now_ns - r->lost_ns >= c->config.directory_ns)
			requester_fail(c, r, -ESTALE, requester_lost);
		else
			requester_rest(c, r, REQUESTER_LOOK);
	} else if (o && o->copies > 0) {
		requester_guess(c, r, o);
	} else if (requester_left(c, r) == 0) {
		requester_fail(c, r, -ETIMEDOUT, requester_silent);
	} else {
		requester_rest(c, r, REQUESTER_ASK);
	}
	return false;
}

/* The answer to FINISH. */
static bool requester_finished(struct control *c, struct call *call, const struct message *answer)
{
	struct requester *r = call->owner;

	r->call = NULL;
	if (answer && answer->reply.status == 0)
		requester_done(c, r);
	else
		requester_rest(c, r, REQUESTER_LOOK);
	return false;
}

static struct call *requester_finish(struct control *c, struct requester *r, uint64_t timeout_ns,
				     call_end *end)
{
	struct message m = {.kind = MESSAGE_FINISH};

	m.combined.target = r->reduce.target;
	m.combined.generation = r->generation;
	m.combined.part_node = MESSAGE_NODE_NONE;
	return rpc_start(c, peers_node(c, r->holder), &m, TABLE_SLOT_NONE, timeout_ns, end, r);
}

static struct call *requester_call(struct control *c, struct requester *r)
{
	uint64_t left = requester_left(c, r), grace = c->config.directory_ns;
	struct message m = {.kind = MESSAGE_REDUCED};

	m.reduce.target = r->reduce.target;
	m.reduce.timeout_ns = UINT64_MAX;
	/* a request from before a restart of this control process had another number */
	m.reduce.asked = r->resumed && r->attempts == 0 ? 0 : r->reduce.asked;
	if (r->state == REQUESTER_FOLLOW)
		return rpc_start(c, ownership_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
				 UINT64_MAX, requester_reduced, r);
	if (r->state == REQUESTER_FINISH)
		return requester_finish(c, r, c->config.link_ns, requester_finished);
	if (r->state == REQUESTER_LOOK) {
		m = (struct message){.kind = MESSAGE_STAT};
		m.object.id = r->reduce.target;
		return rpc_start(c, ownership_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
				 grace, requester_looked, r);
	}
	m.kind = MESSAGE_REDUCE;
	m.reduce = r->reduce;
	requester_set_times(c, r, &m.reduce); /* set again each time that it is sent */
	if (r->retried && !r->resumed)
		m.reduce.flags |= MESSAGE_REDUCE_RESTART;
	return rpc_start(c, ownership_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
			 left > UINT64_MAX - grace ? UINT64_MAX : left + grace, requester_answered,
			 r);
}

/* ---- whether the coordinator lives ---------------------------------------------------------- */

static void requester_watch(struct control *c, struct requester *r);

static bool requester_probed(struct control *c, struct call *call, const struct message *answer)
{
	call->node->probing = false;
	if (!answer)
		membership_suspect(c, call->node);
	return false;
}

static void requester_watch_fire(struct control *c, struct timer *t)
{
	struct requester *r = list_item(t, struct requester, watch);
	struct message m = {.kind = MESSAGE_STATUS};
	struct node *n = r->call ? r->call->node : c->cluster->self;

	if (n != c->cluster->self && !n->probing && c->attached)
		n->probing = rpc_start(c, n, &m, TABLE_SLOT_NONE, c->config.silence_ns / 2,
				       requester_probed, NULL) != NULL;
	requester_watch(c, r);
}

/* Watches the coordinator, which may be silent until the sources are there. Without that its death
 * would be noticed late: members ping random others. */
static void requester_watch(struct control *c, struct requester *r)
{
	timers_set(&c->timers, &r->watch, c->now_ns + c->config.silence_ns / 4,
		   requester_watch_fire);
}

static void requester_step(struct control *c, struct requester *r)
{
	r->call = requester_call(c, r);
	if (!r->call) /* too many: later */
		requester_rest(c, r, r->state);
}

/* ---- the choice ----------------------------------------------------------------------------- */

/* The requester whose request the coordinator's message names; else one that follows a reduce of an
 * earlier control process into that target. *other: there are requesters of that target. */
static struct requester *requester_asked(struct control *c, const struct message_used *m,
					 bool *other)
{
	struct requester *found = NULL, *follows = NULL;

	list_each(l, after, &c->requester->requesters.active)
	{
		struct requester *r = list_item(l, struct requester, link);

		if (!object_id_equal(&r->reduce.target, &m->target))
			continue;
		*other = true;
		if (r->reduce.asked == m->asked)
			found = r;
		else if (r->state == REQUESTER_FOLLOW)
			follows = r;
	}
	return found ? found : follows;
}

static bool requester_let_go(struct control *c, struct call *call, const struct message *answer)
{
	return false; /* nothing hangs on it */
}

static int32_t requester_agree(struct control *c, struct node *n, const struct message_used *m)
{
	const struct requester *kept = requester_recall(c, &m->target);
	bool other = kept != NULL;
	struct requester *r = requester_asked(c, m, &other);

	if (kept && kept->generation == m->generation)
		return 0;
	if (!r)
		return other ? -ESTALE : -ENOENT;
	if (r->generation)
		return r->generation == m->generation ? 0 : -ESTALE;
	if (ownership_shard(c, &m->target) != n || !peers_node(c, m->node))
		return -EAGAIN;
	requester_note(r, m);
	r->holder = m->node;
	requester_finish(c, r, c->config.call_ns, requester_let_go); /* the coordinator watches */
	if (r->state == REQUESTER_FOLLOW)
		return 0;
	rpc_cancel(c, r->call);
	timers_cancel(&c->timers, &r->timer);
	requester_accept(c, r);
	return 0;
}

void requester_commit(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	answer.reply.status = requester_agree(c, n, &m->used);
	answer.reply.generation = m->used.generation;
	peers_send(c, n, &answer);
}

static struct requester *requester_new(struct control *c, const struct message_reduce *reduce,
				       bool resumed)
{
	struct requesters *rs = &c->requester->requesters;
	struct requester *r;
	struct object_id *own;

	if (reduce->count > MESSAGE_SOURCES_MAX)
		return NULL;
	if (rs->pool.used == rs->pool.capacity && !list_empty(&rs->kept))
		requester_forget(c, list_item(list_first(&rs->kept), struct requester, link));
	r = pool_take(&rs->pool);
	if (!r)
		return NULL;
	own = c->requester->requesters.sources +
	      (size_t)pool_index(&c->requester->requesters.pool, r) * MESSAGE_SOURCES_MAX;
	memcpy(own, reduce->sources, sizeof(*own) * reduce->count);
	r->reduce = *reduce;
	r->reduce.sources = own;
	r->reduce.asked = env_random(c);
	r->until_ns = reduce->timeout_ns > UINT64_MAX - 1 - c->now_ns
			      ? UINT64_MAX
			      : c->now_ns + reduce->timeout_ns;
	r->at_ns = reduce->deadline_ns > UINT64_MAX - c->now_ns ? UINT64_MAX
								: c->now_ns + reduce->deadline_ns;
	list_init(&r->waits);
	r->retried = r->accepted = r->resumed = resumed;
	r->state = resumed ? REQUESTER_FOLLOW : REQUESTER_ASK;
	r->call = requester_call(c, r);
	if (!r->call) {
		pool_give(&c->requester->requesters.pool, r);
		return NULL;
	}
	r->asked = r->call->node;
	r->asked_incarnation = r->asked->state == NODE_UP ? r->asked->incarnation : 0;
	list_append(&rs->active, &r->link);
	requester_watch(c, r);
	return r;
}

struct requester *requester_start(struct control *c, const struct message_reduce *reduce)
{
	return requester_new(c, reduce, false);
}

struct requester *requester_resume(struct control *c, const struct message_reduce *reduce)
{
	return requester_new(c, reduce, true);
}
