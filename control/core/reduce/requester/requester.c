/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/env.h"
#include "core/reduce/coordinator/borrow.h"
#include "core/store/await.h"
#include "core/transfer/fetch.h"
#include "room.h"
#include "events.h"

static const char reduction_lost[] =
	"its result was lost with the nodes that had just made it: reduce again";
static const char reduction_another[] = "the target exists, and may be another reduce's: get it, "
					"or reduce into another target";
static const char reduction_silent[] =
	"the directory does not answer: see 'sarissa status' for the nodes";

void reductions_carve(struct reductions *rs, struct arena *a, const struct control_config *config)
{
	pool_carve(&rs->pool, a, sizeof(struct reduction), config->reductions_max);
	rs->sources = arena_carve(a, sizeof(*rs->sources) * MESSAGE_SOURCES_MAX *
					     (size_t)config->reductions_max);
}

void reductions_init(struct control *c)
{
	list_init(&c->requester->reductions.active);
	list_init(&c->requester->reductions.kept);
}

uint64_t reduction_left(struct control *c, const struct reduction *r)
{
	if (r->until_ns == UINT64_MAX)
		return UINT64_MAX;
	return r->until_ns > c->now_ns ? r->until_ns - c->now_ns : 0;
}

void reduction_set_times(struct control *c, const struct reduction *r, struct message_reduce *m)
{
	m->timeout_ns = reduction_left(c, r);
	if (m->flags & MESSAGE_REDUCE_DEADLINE)
		m->deadline_ns = r->at_ns > c->now_ns ? r->at_ns - c->now_ns : 0;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void reduction_end(struct control *c, struct reduction *r, const struct message_used *used)
{
	reduce_return(c, &r->reduce, used->status ? 0 : r->generation);
	calls_cancel(c, r->call);
	r->call = NULL;
	timers_cancel(&c->timers, &r->timer);
	timers_cancel(&c->timers, &r->watch);
	list_each(l, after, &r->waits)
	{
		c->requester->ops->ended(c, list_item(l, struct await, link), used);
	}
	if (used->status == 0 && r->generation)
		reduction_keep(c, r);
	else
		reduction_forget(c, r);
}

/* The result that was agreed on is there. */
static void reduction_done(struct control *c, struct reduction *r)
{
	struct message_used used;

	reduction_used(c, r, &used);
	reduction_end(c, r, &used);
}

static void reduction_fail(struct control *c, struct reduction *r, int32_t status, const char *text)
{
	struct message_used used = {.target = r->reduce.target, .status = status};
	struct fetch *early = fetch_find(c, &r->reduce.target);

	if (early) /* session_reduce_get: of what there was before, nobody has asked for that */
		fetch_unwanted(c, early);
	memcpy(used.text, text, strnlen(text, MESSAGE_TEXT_MAX));
	reduction_end(c, r, &used);
}

/* The target is complete, and nobody is left who knows what is in it. No coordinator makes a large
 * one of this request without asking here, unless it takes this node for dead. */
static void reduction_guess(struct control *c, struct reduction *r, const struct session_object *o)
{
	struct message_used used = {
		.target = r->reduce.target, .count = r->reduce.count, .sources = r->reduce.sources};

	if (!r->resumed && o->size > OBJECT_INLINE_MAX)
		reduction_fail(c, r, -EEXIST, reduction_another);
	else if (r->reduce.num == r->reduce.count && !(r->reduce.flags & MESSAGE_REDUCE_DEADLINE))
		reduction_end(c, r, &used);
	else
		reduction_fail(c, r, -ENODATA,
			       "the result is there, but the node that knew what is in it is "
			       "lost: get it, or reduce again into another target");
}

void reduction_deleted(struct control *c, const struct object_id *target)
{
	struct reduction *r;

	while ((r = reduction_find(c, target)) != NULL)
		reduction_fail(c, r, -ECANCELED, "the reduce was cancelled by rm: reduce again");
	while ((r = reduction_recall(c, target)) != NULL)
		reduction_forget(c, r);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void reduction_step(struct control *c, struct reduction *r);

static void reduction_fire(struct control *c, struct timer *t)
{
	reduction_step(c, list_item(t, struct reduction, timer));
}

static void reduction_rest(struct control *c, struct reduction *r, enum reduction_state state)
{
	r->state = (uint8_t)state;
	timers_set(&c->timers, &r->timer, c->now_ns + control_backoff(c, ++r->attempts),
		   reduction_fire);
}

/* It is there already, with all its sources. */
static void reduction_whole(struct control *c, struct reduction *r, uint64_t generation)
{
	const struct message_used used = {.target = r->reduce.target,
					  .generation = generation,
					  .count = r->reduce.count,
					  .sources = r->reduce.sources};

	reduction_note(r, &used);
	reduction_end(c, r, &used);
}

/* All that is known of it holds: from here on it can only fail. */
static void reduction_accepted(struct control *c, struct reduction *r)
{
	r->accepted = true;
	list_each(l, after, &r->waits)
	{
		c->requester->ops->accepted(c, list_item(l, struct await, link));
	}
}

static void reduction_accept(struct control *c, struct reduction *r)
{
	reduction_accepted(c, r);
	r->state = REDUCTION_FOLLOW;
	reduction_step(c, r);
}

/* We are to coordinate it, or go on to: the directory keeps the target for that. */
static void reduction_borrow(struct control *c, struct reduction *r, uint64_t before)
{
	struct message_reduce m = r->reduce;

	reduction_set_times(c, r, &m);
	if (m.flags & MESSAGE_REDUCE_SPREAD)
		reduction_fail(c, r, -EPROTO,
			       "such a reduce is not lent: use nodes of one version");
	else if (control_shard(c, &m.target) == c->cluster->self)
		reduction_rest(c, r, REDUCTION_ASK);
	else if (reduce_borrow(c, &m, before))
		reduction_accept(c, r);
	else /* no room: it is coordinated there, when it is asked for anew */
		reduction_rest(c, r, REDUCTION_ASK);
}

/* The answer to REDUCE. */
static bool reduction_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	r->call = NULL;
	r->again |= call->node != r->asked ||
		    (r->asked_life != 0 && call->node->incarnation != r->asked_life);
	if (status == 0 && answer->reply.generation) {
		reduction_whole(c, r, answer->reply.generation);
	} else if (status == 0) { /* the directory's node does that */
		reduce_return(c, &r->reduce, r->generation);
		reduction_accept(c, r);
	} else if (status == -EREMOTE) {
		reduction_borrow(c, r, answer->reply.generation);
	} else if (status == -EEXIST && r->again) {
		r->state = REDUCTION_LOOK;
		reduction_step(c, r);
	} else if ((r->accepted && (status == -EAGAIN || status == -ENOSPC)) ||
		   (r->proposed && answer == NULL)) {
		reduction_rest(c, r, REDUCTION_ASK);
	} else {
		reduction_fail(c, r, status, answer ? answer->reply.text : reduction_silent);
	}
	return false;
}

/* To a result: what is only proposed may yet be refused. */
static bool reduction_agreed(const struct reduction *r)
{
	return r->generation && !r->proposed;
}

/* Whether an answer to REDUCED may be about the result agreed on: what else is there, or has
 * failed, is another reduce's into the same target. */
static bool reduction_is_agreed(const struct reduction *r, const struct message_used *used)
{
	if (used->status == 0)
		return used->generation == r->generation;
	return used->status == -ESTALE || used->status == -ECANCELED;
}

/* What is made here is not the result, as far as is known. */
static void reduction_give_up(struct control *c, struct reduction *r)
{
	if (r->proposed && r->doubted) {
		r->doubt.generation = r->generation;
		memcpy(r->doubt.used, r->used, sizeof(r->doubt.used));
	}
	r->generation = 0;
	r->proposed = false;
	reduce_return(c, &r->reduce, 0);
}

/* Whether that is what was proposed once, where somebody has all of it: then it is the result. */
static bool reduction_came_true(struct control *c, struct reduction *r, uint64_t generation)
{
	if (generation == 0 || reduction_agreed(r))
		return false;
	if (generation == r->doubt.generation) {
		r->generation = r->doubt.generation;
		memcpy(r->used, r->doubt.used, sizeof(r->used));
	} else if (!r->proposed || generation != r->generation) {
		return false;
	}
	r->lost_ns = c->now_ns;
	reduction_done(c, r);
	return true;
}

/* Whether what is in the target is what was asked for. The one before, of which an earlier control
 * here has not heard that it had failed, may have had others. */
static bool reduction_fits(const struct reduction *r, const struct message_used *used)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < r->reduce.count && k < used->count; i++)
		k += object_id_equal(&r->reduce.sources[i], &used->sources[k]);
	if (r->reduce.flags & MESSAGE_REDUCE_DEADLINE)
		return k == used->count && k >= r->reduce.min;
	return k == used->count && k == r->reduce.num;
}

/* The answer to REDUCED, which has no deadline. */
static bool reduction_told(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;

	r->call = NULL;
	if (reduction_agreed(r) && !reduction_is_agreed(r, &answer->used)) {
		r->lost_ns = c->now_ns;
		r->state = REDUCTION_FINISH;
		reduction_step(c, r);
	} else if (answer->used.status == -EREMOTE) {
		reduction_borrow(c, r, answer->used.generation);
	} else if (answer->used.status == 0 && !reduction_fits(r, &answer->used)) {
		reduction_fail(c, r, -EEXIST, reduction_another);
	} else if (answer->used.status != -ENOENT) {
		if (answer->used.status == 0)
			reduction_note(r, &answer->used);
		reduction_end(c, r, &answer->used);
	} else if (reduction_came_true(c, r, answer->used.generation)) {
		return false;
	} else if (reduction_left(c, r) == 0 && !r->proposed) {
		reduction_fail(c, r, -ETIMEDOUT,
			       "the time is over, and the node that directed it is lost: reduce "
			       "again, with more time");
	} else {
		if (answer->used.generation) /* another result is there */
			reduction_give_up(c, r);
		r->again = r->doubted = true;
		reduction_rest(c, r, REDUCTION_ASK);
	}
	return false;
}

static bool reduction_let_go(struct control *c, struct call *call, const struct message *answer)
{
	return false; /* nothing hangs on it */
}

/* The directory's node does not know it yet when it was coordinated here. */
static void reduction_tell_failed(struct control *c, const struct message_used *m)
{
	struct message recall = {.kind = MESSAGE_RECALL, .used = *m};

	recall.used.node = MESSAGE_NODE_NONE;
	if (m->status ==
	    -EAGAIN) /* no room: others who wait would take it for a question's answer */
		recall.used.status = -ENOSPC;
	calls_start(c, control_shard(c, &m->target), &recall, TABLE_SLOT_NONE,
		    c->config.directory_ns, reduction_let_go, NULL);
}

static bool reduction_looked(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;
	const struct session_object *o =
		answer && answer->objects.count == 1 ? answer->objects.objects : NULL;

	r->call = NULL;
	if (o && o->copies > 0 && reduction_came_true(c, r, o->generation))
		return false;
	if (reduction_agreed(r)) {
		if (o && o->generation == r->generation && o->copies > 0)
			reduction_done(c, r);
		else if (c->now_ns - r->lost_ns >= c->config.directory_ns)
			reduction_fail(c, r, -ESTALE, reduction_lost);
		else
			reduction_rest(c, r, REDUCTION_LOOK);
	} else if (o && o->copies > 0) {
		reduction_give_up(c, r);
		reduction_guess(c, r, o);
	} else if (reduction_left(c, r) == 0 && !r->proposed) {
		reduction_fail(c, r, -ETIMEDOUT, reduction_silent);
	} else {
		reduction_rest(c, r, REDUCTION_ASK);
	}
	return false;
}

/* The answer to FINISH. */
static bool reduction_finished(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;

	r->call = NULL;
	if (answer && answer->reply.status == 0)
		reduction_done(c, r);
	else
		reduction_rest(c, r, REDUCTION_LOOK);
	return false;
}

static struct call *reduction_finish(struct control *c, struct reduction *r, uint64_t timeout_ns,
				     call_end *end)
{
	struct message m = {.kind = MESSAGE_FINISH};

	m.combined.target = r->reduce.target;
	m.combined.generation = r->generation;
	m.combined.part_node = MESSAGE_NODE_NONE;
	return calls_start(c, peers_node(c, r->holder), &m, TABLE_SLOT_NONE, timeout_ns, end, r);
}

static struct call *reduction_call(struct control *c, struct reduction *r)
{
	uint64_t left = reduction_left(c, r), grace = c->config.directory_ns;
	struct message m = {.kind = MESSAGE_REDUCED};

	m.reduce.target = r->reduce.target;
	m.reduce.timeout_ns = UINT64_MAX;
	/* what an earlier control here has asked for has another number */
	m.reduce.asked = r->resumed && r->attempts == 0 ? 0 : r->reduce.asked;
	if (r->state == REDUCTION_FOLLOW)
		return calls_start(c, control_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
				   UINT64_MAX, reduction_told, r);
	if (r->state == REDUCTION_FINISH)
		return reduction_finish(c, r, c->config.link_ns, reduction_finished);
	if (r->state == REDUCTION_LOOK) {
		m = (struct message){.kind = MESSAGE_STAT};
		m.object.id = r->reduce.target;
		return calls_start(c, control_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
				   grace, reduction_looked, r);
	}
	m.kind = MESSAGE_REDUCE;
	m.reduce = r->reduce;
	reduction_set_times(c, r, &m.reduce); /* and anew each time that it is sent */
	if (r->again && !r->resumed)
		m.reduce.flags |= MESSAGE_REDUCE_AGAIN;
	if (reduce_borrowed(c, &r->reduce))
		m.reduce.flags |= MESSAGE_REDUCE_AGAIN | MESSAGE_REDUCE_LENT;
	return calls_start(c, control_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
			   left > UINT64_MAX - grace ? UINT64_MAX : left + grace,
			   reduction_answered, r);
}

/* ---- whether the coordinator lives ---------------------------------------------------------- */

static void reduction_watch(struct control *c, struct reduction *r);

static bool reduction_probed(struct control *c, struct call *call, const struct message *answer)
{
	call->node->probing = false;
	if (answer == NULL)
		members_suspect(c, call->node);
	return false;
}

static void reduction_watch_fire(struct control *c, struct timer *t)
{
	struct reduction *r = list_item(t, struct reduction, watch);
	struct message m = {.kind = MESSAGE_STATUS};
	struct node *n = r->call ? r->call->node : c->cluster->self;

	if (n != c->cluster->self && !n->probing && c->attached)
		n->probing = calls_start(c, n, &m, TABLE_SLOT_NONE, c->config.silence_ns / 2,
					 reduction_probed, NULL) != NULL;
	reduction_watch(c, r);
}

/* Nothing comes from it for as long as the sources take: members that watch it by lot would find
 * out late. */
static void reduction_watch(struct control *c, struct reduction *r)
{
	timers_set(&c->timers, &r->watch, c->now_ns + c->config.silence_ns / 4,
		   reduction_watch_fire);
}

static void reduction_step(struct control *c, struct reduction *r)
{
	r->call = reduction_call(c, r);
	if (r->call == NULL) /* too many: later */
		reduction_rest(c, r, r->state);
}

/* ---- the choice ----------------------------------------------------------------------------- */

/* The one whose request a coordinator has worked on, or that follows it, having been asked for of
 * an earlier control here; *other: there are others into that target. */
static struct reduction *reduction_asked(struct control *c, const struct message_used *m,
					 bool *other)
{
	struct reduction *found = NULL, *follows = NULL;

	list_each(l, after, &c->requester->reductions.active)
	{
		struct reduction *r = list_item(l, struct reduction, link);

		if (!object_id_equal(&r->reduce.target, &m->target))
			continue;
		*other = true;
		if (r->reduce.asked == m->asked)
			found = r;
		else if (r->state == REDUCTION_FOLLOW)
			follows = r;
	}
	return found ? found : follows;
}

/* It is agreed on: whoever has built it is told so, and the coordinator follows what becomes of it.
 */
static void reduction_settle(struct control *c, struct reduction *r)
{
	r->proposed = false;
	reduction_finish(c, r, c->config.call_ns, reduction_let_go);
	if (r->state == REDUCTION_FOLLOW)
		return;
	calls_cancel(c, r->call);
	timers_cancel(&c->timers, &r->timer);
	reduction_accept(c, r);
}

static int32_t reduction_agree(struct control *c, struct node *n, const struct message_used *m)
{
	const struct reduction *kept = reduction_recall(c, &m->target);
	bool other = kept != NULL;
	struct reduction *r = reduction_asked(c, m, &other);

	if (kept && kept->generation == m->generation)
		return 0;
	if (r == NULL)
		return other ? -ESTALE : -ENOENT;
	if (reduction_agreed(r))
		return r->generation == m->generation ? 0 : -ESTALE;
	if (control_shard(c, &m->target) != n || peers_node(c, m->node) == NULL)
		return -EAGAIN;
	reduction_note(r, m);
	r->holder = m->node;
	reduce_return(c, &r->reduce, r->generation);
	reduction_settle(c, r);
	return 0;
}

static struct reduction *reduction_own(struct control *c, const struct message_used *m)
{
	bool other;
	struct reduction *r = reduction_asked(c, m, &other);

	return r && r->reduce.asked == m->asked ? r : NULL;
}

void reduction_propose(struct control *c, const struct message_used *m)
{
	struct reduction *r = reduction_own(c, m);

	if (r == NULL || reduction_agreed(r))
		return;
	reduction_note(r, m);
	r->holder = m->node;
	r->proposed = true;
	r->doubted = false;
}

void reduction_confirmed(struct control *c, const struct message_used *m)
{
	struct reduction *r = reduction_own(c, m);

	if (r && r->proposed)
		reduction_settle(c, r);
}

void reduction_refused(struct control *c, const struct message_used *m)
{
	struct reduction *r = reduction_own(c, m);

	if (r == NULL || !r->proposed)
		return;
	r->doubted |= control_shard(c, &m->target) == c->cluster->self; /* another one was asked */
	reduction_give_up(c, r);
	calls_cancel(c, r->call);
	r->call = NULL;
	r->again = true;
	reduction_rest(c, r, REDUCTION_ASK);
}

void reduction_own_failed(struct control *c, const struct message_used *m)
{
	struct reduction *r = reduction_own(c, m);

	if (r && reduction_agreed(r))
		return;
	if (r) { /* REDUCED: that is answered here, and none but its place may be free */
		calls_cancel(c, r->call);
		r->call = NULL;
	}
	reduction_tell_failed(c, m);
	if (r)
		reduction_fail(c, r, m->status, m->text);
}

void reduction_commit(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	answer.reply.status = reduction_agree(c, n, &m->used);
	answer.reply.generation = m->used.generation;
	peers_send(c, n, &answer);
}

static struct reduction *reduction_new(struct control *c, const struct message_reduce *reduce,
				       bool resumed)
{
	struct reductions *rs = &c->requester->reductions;
	struct reduction *r;
	struct object_id *own;

	if (rs->pool.used == rs->pool.capacity && !list_empty(&rs->kept))
		reduction_forget(c, list_item(list_first(&rs->kept), struct reduction, link));
	r = pool_take(&rs->pool);
	if (r == NULL)
		return NULL;
	own = c->requester->reductions.sources +
	      (size_t)pool_index(&c->requester->reductions.pool, r) * MESSAGE_SOURCES_MAX;
	memcpy(own, reduce->sources, sizeof(*own) * reduce->count);
	r->reduce = *reduce;
	r->reduce.sources = own;
	r->reduce.asked = control_random(c);
	r->until_ns = reduce->timeout_ns > UINT64_MAX - 1 - c->now_ns
			      ? UINT64_MAX
			      : c->now_ns + reduce->timeout_ns;
	r->at_ns = reduce->deadline_ns > UINT64_MAX - c->now_ns ? UINT64_MAX
								: c->now_ns + reduce->deadline_ns;
	list_init(&r->waits);
	r->again = r->accepted = r->resumed = resumed;
	r->state = resumed ? REDUCTION_FOLLOW : REDUCTION_ASK;
	r->call = reduction_call(c, r);
	if (r->call == NULL) {
		pool_give(&c->requester->reductions.pool, r);
		return NULL;
	}
	r->asked = r->call->node;
	r->asked_life = r->asked->state == NODE_UP ? r->asked->incarnation : 0;
	list_append(&rs->active, &r->link);
	reduction_watch(c, r);
	return r;
}

struct reduction *reduction_start(struct control *c, const struct message_reduce *reduce)
{
	return reduction_new(c, reduce, false);
}

struct reduction *reduction_resume(struct control *c, const struct message_reduce *reduce)
{
	return reduction_new(c, reduce, true);
}
