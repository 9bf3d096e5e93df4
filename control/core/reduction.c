/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "state.h"

static const char reduction_silent[] =
	"the directory does not answer: see 'sarissa status' for the nodes";

void reductions_carve(struct reductions *rs, struct arena *a, const struct control_config *config)
{
	pool_carve(&rs->pool, a, sizeof(struct reduction), config->reductions_max);
	rs->sources = arena_carve(a, sizeof(*rs->sources) * MESSAGE_SOURCES_MAX *
					     (size_t)config->reductions_max);
}

uint64_t reduction_left(struct control *c, const struct reduction *r)
{
	if (r->until_ns == UINT64_MAX)
		return UINT64_MAX;
	return r->until_ns > c->now_ns ? r->until_ns - c->now_ns : 0;
}

struct reduction *reduction_find(struct control *c, const struct object_id *target)
{
	const struct list *head = &c->reductions.active;

	for (struct list *l = head->prev; l != head; l = l->prev) {
		struct reduction *r = list_item(l, struct reduction, active);

		if (object_id_equal(&r->reduce.target, target))
			return r;
	}
	return NULL;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void reduction_end(struct control *c, struct reduction *r, const struct message_used *used)
{
	calls_cancel(c, r->call);
	timers_cancel(&c->timers, &r->timer);
	list_each(l, after, &r->waits)
	{
		session_reduce_ended(c, list_item(l, struct wait, of_owner), used);
	}
	list_remove(&r->active);
	pool_give(&c->reductions.pool, r);
}

static void reduction_fail(struct control *c, struct reduction *r, int32_t status, const char *text)
{
	struct message_used used = {.target = r->reduce.target, .status = status};

	memcpy(used.text, text, strnlen(text, MESSAGE_TEXT_MAX));
	reduction_end(c, r, &used);
}

/* The target is complete, and nobody is left who knows what is in it. */
static void reduction_guess(struct control *c, struct reduction *r)
{
	struct message_used used = {
		.target = r->reduce.target, .count = r->reduce.count, .sources = r->reduce.sources};

	if (r->reduce.num == r->reduce.count)
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
		reduction_fail(c, r, -ECANCELED, "its target was deleted: reduce again");
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

/* All that is known of it holds: from here on it can only fail. */
static void reduction_accept(struct control *c, struct reduction *r)
{
	r->accepted = true;
	list_each(l, after, &r->waits)
	{
		struct wait *w = list_item(l, struct wait, of_owner);

		if (w->op == SESSION_REDUCE)
			waits_end(c, w, 0, "");
	}
	r->state = REDUCTION_FOLLOW;
	reduction_step(c, r);
}

/* The answer to REDUCE. */
static bool reduction_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	r->call = NULL;
	r->again |= call->node != r->asked ||
		    (r->asked_life != 0 && call->node->incarnation != r->asked_life);
	if (status == 0) {
		reduction_accept(c, r);
	} else if (status == -EEXIST && r->again) {
		r->state = REDUCTION_LOOK;
		reduction_step(c, r);
	} else if (r->accepted && (status == -EAGAIN || status == -ENOSPC)) {
		reduction_rest(c, r, REDUCTION_ASK);
	} else {
		reduction_fail(c, r, status, answer ? answer->reply.text : reduction_silent);
	}
	return false;
}

/* The answer to REDUCED, which has no deadline. */
static bool reduction_used(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;

	r->call = NULL;
	if (answer->used.status != -ENOENT) {
		reduction_end(c, r, &answer->used);
	} else if (reduction_left(c, r) == 0) {
		reduction_fail(c, r, -ETIMEDOUT,
			       "the time is over, and the node that directed it is lost: reduce "
			       "again, with more time");
	} else {
		r->again = true;
		reduction_rest(c, r, REDUCTION_ASK);
	}
	return false;
}

static bool reduction_looked(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;

	r->call = NULL;
	if (answer && answer->objects.count == 1 && answer->objects.objects[0].copies > 0)
		reduction_guess(c, r);
	else if (reduction_left(c, r) == 0)
		reduction_fail(c, r, -ETIMEDOUT, reduction_silent);
	else
		reduction_rest(c, r, REDUCTION_ASK);
	return false;
}

static struct call *reduction_call(struct control *c, struct reduction *r)
{
	uint64_t left = reduction_left(c, r), grace = c->config.directory_ns;
	struct message m = {.kind = MESSAGE_REDUCED};

	m.reduce.target = r->reduce.target;
	m.reduce.timeout_ns = UINT64_MAX;
	if (r->state == REDUCTION_FOLLOW)
		return calls_start(c, control_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
				   UINT64_MAX, reduction_used, r);
	if (r->state == REDUCTION_LOOK) {
		m = (struct message){.kind = MESSAGE_STAT};
		m.object.id = r->reduce.target;
		return calls_start(c, control_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
				   grace, reduction_looked, r);
	}
	m.kind = MESSAGE_REDUCE;
	m.reduce = r->reduce;
	m.reduce.timeout_ns = left; /* and anew each time that it is sent (calls.c) */
	return calls_start(c, control_shard(c, &r->reduce.target), &m, TABLE_SLOT_NONE,
			   left > UINT64_MAX - grace ? UINT64_MAX : left + grace,
			   reduction_answered, r);
}

static void reduction_step(struct control *c, struct reduction *r)
{
	r->call = reduction_call(c, r);
	if (r->call == NULL) /* too many: later */
		reduction_rest(c, r, r->state);
}

static struct reduction *reduction_new(struct control *c, const struct message_reduce *reduce,
				       bool again)
{
	struct reduction *r = pool_take(&c->reductions.pool);
	struct object_id *own;

	if (r == NULL)
		return NULL;
	own = c->reductions.sources +
	      (size_t)pool_index(&c->reductions.pool, r) * MESSAGE_SOURCES_MAX;
	memcpy(own, reduce->sources, sizeof(*own) * reduce->count);
	r->reduce = *reduce;
	r->reduce.sources = own;
	r->until_ns = reduce->timeout_ns > UINT64_MAX - 1 - c->now_ns
			      ? UINT64_MAX
			      : c->now_ns + reduce->timeout_ns;
	list_init(&r->waits);
	r->again = r->accepted = again;
	r->state = again ? REDUCTION_FOLLOW : REDUCTION_ASK;
	r->call = reduction_call(c, r);
	if (r->call == NULL) {
		pool_give(&c->reductions.pool, r);
		return NULL;
	}
	r->asked = r->call->node;
	r->asked_life = r->asked->state == NODE_UP ? r->asked->incarnation : 0;
	list_append(&c->reductions.active, &r->active);
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
