/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Delegated coordination: the requester of a large reduce coordinates it. The shard owner locates
 * the sources, answers REDUCE or REDUCED with -EREMOTE, and reserves the target, so that its GETs,
 * PUTs and DELETEs still come to the owner. The delegate asks the owner to agree to the result
 * (PROPOSE), or reports failure (RECALL). If the owner dies, the delegate tells the next one
 * (REDUCE with the DELEGATED flag). If the delegate dies, the owner restarts the reduce.
 *
 * Of a delegated reduce the owner agrees to one result; of any other, the requester does
 * (reduce/requester/requester.c). Where both coordinate, each taking the other for dead, one of
 * them is refused. Called by coordinator.c, commit.c and the requester (delegate.h).
 */
#include <errno.h>
#include "core/directory/state.h"
#include "core/transfer/fetch.h"
#include "state.h"
#include "events.h"

#define DELEGATE_ASK_NS	    UINT64_C(25000000)
#define DELEGATE_ASK_MAX_NS UINT64_C(400000000)

/* ---- the shard owner ------------------------------------------------------------------------ */

static bool delegate_worth(struct control *c, const struct reduce *r)
{
	return !r->delegated.is_delegate && !r->delegated.undelegable &&
	       r->from.size >= c->config.delegate_bytes &&
	       !(r->want.flags & MESSAGE_REDUCE_ALLREDUCE) &&
	       r->want.caller != c->cluster->self->number &&
	       membership_live(peers_node(c, r->want.caller));
}

static void delegate_say(struct control *c, struct reduce *r, uint64_t request)
{
	struct message m = {.kind = MESSAGE_USED, .request = request};

	m.used.target = r->by_id.id;
	m.used.status = -EREMOTE;
	m.used.generation = r->want.before;
	peers_send(c, peers_node(c, r->want.caller), &m);
}

/* Ends the reduce at the owner. A complete copy of the target stays. */
void reduce_delegated_end(struct control *c, struct reduce *r)
{
	const struct entry *e = directory_find(&c->directory->shard, &r->by_id.id);
	bool there = directory_has_complete(&c->directory->shard, &r->by_id.id);
	struct reduce *superseded = r->superseded;

	if (there && superseded && e->generation != superseded->out.generation)
		superseded = NULL;
	if (superseded)
		r->superseded = NULL;
	if (there)
		reduce_drop(c, r);
	else
		reduce_give_way(c, r);
	reduce_reinstate(c, superseded);
}

/* A node has a complete copy of the target. If this reduce has not made it, the reduce fails. */
static void delegate_complete(struct control *c, struct reduce *r)
{
	if (reduce_is_another(r, directory_find(&c->directory->shard, &r->by_id.id)->generation))
		reduce_end(c, r, -EEXIST, reduce_exists);
	else
		reduce_delegated_end(c, r);
}

/* The delegate is dead, or has forgotten the reduce. It restarts here, unless a complete copy of
 * the target exists. Followers stay. */
static void delegate_take_back(struct control *c, struct reduce *r)
{
	struct message_reduce m = {.count = r->from.count,
				   .flags = r->want.flags,
				   .min = r->rule.args.least,
				   .sources = c->coordinator->reduces.ids};
	uint64_t at_ns = reduce_deadline(r);

	if (directory_has_complete(&c->directory->shard, &r->by_id.id)) {
		delegate_complete(c, r);
		return;
	}
	for (uint32_t i = 0; i < r->from.count; i++)
		c->coordinator->reduces.ids[i] = r->from.source[i].id;
	m.timeout_ns = r->delegated.until_ns == UINT64_MAX ? UINT64_MAX
		       : r->delegated.until_ns > c->now_ns ? r->delegated.until_ns - c->now_ns
							   : 0;
	m.deadline_ns = at_ns > c->now_ns ? at_ns - c->now_ns : 0;
	reduce_set_policy(c, r, &m);
	r->delegated.undelegable = true;
	r->state = REDUCE_LOCATING;
	r->from.unanswered = r->from.count;
	r->sum.small = !r->from.sized;
	directory_reserve_reset(&c->directory->shard, &r->by_id.id);
	reduce_begin(c, r, &m);
}

/* A delegate repeats its REDUCED until the reduce ends. This one has stopped. */
static void delegate_expired(struct control *c, struct timer *t)
{
	delegate_take_back(c, list_item(t, struct reduce, beat));
}

static void delegate_heard(struct control *c, struct reduce *r)
{
	timers_set(&c->timers, &r->beat, c->now_ns + c->config.coordinator_lost_ns,
		   delegate_expired);
}

/* From now on the caller coordinates the reduce. It may not know the tombstones here. */
void reduce_delegated(struct control *c, struct reduce *r, uint64_t until_ns)
{
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &r->by_id.id);

	if (t && t->generation > r->want.before)
		r->want.before = t->generation;
	delegate_heard(c, r);
	r->state = REDUCE_DELEGATED;
	r->delegated.until_ns = until_ns;
	r->delegated.there = 0;
	r->from.arrivals = 0;
	for (uint32_t i = 0; i < r->from.count; i++)
		reduce_source_begin(r, i, r->from.source[i].id);
}

/* The REDUCED of the caller that waits for the end; NULL: it has not learnt yet that its REDUCE was
 * accepted. */
static struct reduce_follower *delegate_follower(const struct reduce *r)
{
	list_each(l, after, &r->followers)
	{
		struct reduce_follower *a = list_item(l, struct reduce_follower, link);

		if (a->node == r->want.caller && a->asked == r->want.asked)
			return a;
	}
	return NULL;
}

bool reduce_delegate(struct control *c, struct reduce *r)
{
	uint64_t until_ns = r->deadline.position ? r->deadline.at_ns : UINT64_MAX;
	struct reduce_follower *a = delegate_follower(r);

	if (!delegate_worth(c, r) || (r->answered && !a))
		return false;
	reduce_end_calls(c, r);
	reduce_delegated(c, r, until_ns);
	directory_reserve_for(&c->directory->shard, &r->by_id.id, DIRECTORY_DELEGATED);
	if (!r->answered) {
		reduce_delegated_reply(c, r);
		return true;
	}
	delegate_say(c, r, a->request);
	list_remove(&a->link);
	pool_give(&c->coordinator->reduces.followers, a);
	return true;
}

/* The directory takes the HAVE of the latest generation, which the caller may have made. The HAVE
 * of an earlier one must be repeated: that object stays if no result is agreed to until then. */
bool reduce_delegated_have(struct control *c, struct reduce *r, const struct message_have *have)
{
	const struct entry *e = directory_find(&c->directory->shard, &have->id);

	if (!have->made && have->generation != r->delegated.made)
		r->delegated.other = have->generation;
	if (!e || have->generation >= e->generation)
		return false;
	r->delegated.there = have->generation;
	return true;
}

/* The generation of the target that a node has a complete copy of; 0: none. */
static uint64_t delegate_there(struct control *c, const struct reduce *r)
{
	if (!directory_has_complete(&c->directory->shard, &r->by_id.id))
		return r->delegated.there;
	return directory_find(&c->directory->shard, &r->by_id.id)->generation;
}

bool reduce_delegated_ask(struct control *c, struct reduce *r, const struct node *n,
			  const struct message *m)
{
	struct message other = {.kind = MESSAGE_USED, .request = m->request};
	bool delegated = r->state == REDUCE_DELEGATED,
	     knows = m->reduce.flags & MESSAGE_REDUCE_DELEGATED;

	if (n->number != r->want.caller || m->reduce.asked != r->want.asked ||
	    (!delegated && !knows) || r->state >= REDUCE_COMMITTING)
		return false;
	if (delegated)
		delegate_heard(c, r);
	if (!knows) {
		delegate_say(c, r, m->request);
		return true;
	}
	other.used.generation = delegated ? delegate_there(c, r) : 0;
	if (delegated && other.used.generation == 0)
		return false; /* the caller waits, as the followers do */
	/* The delegate was taken for dead meanwhile, and this node coordinates: -ENOENT makes it
	 * ask with REDUCE. The same for a generation that was made across a partition: the delegate
	 * then drops its own. */
	other.used.target = m->reduce.target;
	other.used.status = -ENOENT;
	peers_send(c, peers_node(c, n->number), &other);
	return true;
}

/* Notes the sources of the proposed result. Returns whether their number is allowed. */
static bool delegate_note_sources(struct reduce *r, const struct message_used *m)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < r->from.count; i++) {
		bool in = taken < m->count &&
			  object_id_equal(&r->from.source[i].id, &m->sources[taken]);

		r->from.source[i].slot = in ? 0 : REDUCE_NONE;
		taken += in;
	}
	if (taken != m->count || taken < reduce_fewest(r) || taken > r->want.num)
		return false;
	r->want.num = taken;
	return true;
}

/* An earlier owner may have agreed to the result; or, believing that the requester was dead, have
 * made another one. Either may have a holder that announces a complete copy soon. */
int32_t reduce_delegate_settled(struct control *c, const struct object_id *target,
				const struct node *requester, const struct node *holder)
{
	bool live = membership_live(holder);

	if ((requester->died || !live) && ownership_settling(c, target))
		return -EAGAIN;
	return live ? 0 : -ESTALE;
}

static int32_t delegate_proposed(struct control *c, const struct node *n,
				 const struct message_used *m)
{
	struct reduce *r = reduce_find(c, &m->target);
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &m->target);
	const struct node *holder = peers_node(c, m->node);
	bool own = r && r->want.caller == n->number && r->want.asked == m->asked;
	int32_t status;
	uint64_t there;

	if (!r || (!own && r->state == REDUCE_ENDED))
		return -ENOENT;
	if (own && r->state >= REDUCE_COMMITTED && r->status == 0 &&
	    r->out.generation == m->generation)
		return 0; /* again */
	if (!own || r->state != REDUCE_DELEGATED || !holder ||
	    (t && t->generation >= m->generation))
		return -ESTALE;
	there = delegate_there(c, r);
	if (there == 0 && (status = reduce_delegate_settled(c, &m->target, n, holder)) != 0)
		return status;
	if ((there && there != m->generation) || !delegate_note_sources(r, m))
		return -ESTALE;
	timers_cancel(&c->timers, &r->beat);
	r->out.generation = m->generation;
	r->state = REDUCE_COMMITTED;
	directory_reserve_for(&c->directory->shard, &m->target, m->generation);
	reduce_watch(c, r);
	reduce_commit_finish(c, r, m->node);
	return 0;
}

void reduce_proposed(struct control *c, struct node *n, const struct message *m)
{
	int32_t status = delegate_proposed(c, n, &m->used);

	reduce_reply(c, n->number, m->request, status, "");
}

bool reduce_delegated_given_up(const struct reduce *r, const struct message *m)
{
	return r->state == REDUCE_DELEGATED && !(m->reduce.flags & MESSAGE_REDUCE_DELEGATED) &&
	       r->want.request != m->request;
}

void reduce_caller_gone(struct control *c, const struct node *n, bool dead)
{
	list_each(l, after, &c->coordinator->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (r->want.caller != n->number)
			continue;
		r->delegated.undelegable = true; /* its open requests may be of the control process
						    before the restart */
		if (r->state != REDUCE_DELEGATED)
			continue;
		if (dead)
			delegate_take_back(c, r);
		else /* it may only have refuted a suspicion: then its REDUCED goes on coming */
			timers_set(&c->timers, &r->beat,
				   c->now_ns + c->config.retry_ns + c->config.stall_ns,
				   delegate_expired);
	}
}

/* ---- the delegate --------------------------------------------------------------------------- */

static struct reduce *delegate_find(struct control *c, const struct message_reduce *m)
{
	struct reduce *r = reduce_find(c, &m->target);

	return r && r->delegated.is_delegate && r->want.asked == m->asked ? r : NULL;
}

bool reduce_is_delegate(struct control *c, const struct message_reduce *m)
{
	return delegate_find(c, m) != NULL;
}

bool reduce_delegate_begin(struct control *c, const struct message_reduce *m, uint64_t before)
{
	struct reduce *r = reduce_find(c, &m->target);

	if (r && r->state != REDUCE_ENDED) {
		r->commit.ask_ns = r->commit.unknown = 0; /* the owner knows of it now */
		return delegate_find(c, m) == r;
	}
	if (r)
		reduce_free(c, r);
	r = reduce_calls(c, m->count) ? reduce_make(c, c->cluster->self, 0, m) : NULL;
	if (!r)
		return false;
	r->delegated.is_delegate = r->answered = true;
	r->sum.small = false;
	r->want.before = before;
	reduce_begin(c, r, m);
	return true;
}

void reduce_return(struct control *c, const struct message_reduce *m, uint64_t result)
{
	struct reduce *r = delegate_find(c, m);

	if (!r)
		return;
	if (r->out.generation != result)
		r->out.generation = 0;
	reduce_drop(c, r);
}

void reduce_delegate_done(struct control *c, const struct reduce *r)
{
	struct message_used used = {.asked = r->want.asked, .node = r->commit.holder};

	reduce_used(c, r, &used);
	c->coordinator->ops->propose(c, &used);
}

/* The owner does not know the reduce. The requester's REDUCE is about to tell it, unless it has no
 * room. Asks again after a pause. */
static void delegate_unknown(struct control *c, struct reduce *r)
{
	uint64_t pause_ns = DELEGATE_ASK_NS << r->commit.unknown;

	if (pause_ns < DELEGATE_ASK_MAX_NS)
		r->commit.unknown++;
	r->commit.ask_ns = c->now_ns + pause_ns;
}

void reduce_delegate_answered(struct control *c, struct reduce *r, int32_t status)
{
	const struct message_used used = {.target = r->by_id.id, .asked = r->want.asked};

	if (status == -ENOENT)
		delegate_unknown(c, r);
	if (status == -ENOENT || status == -EAGAIN)
		return;
	if (status) {
		reduce_give_way(c, r);
		c->coordinator->ops->refused(c, &used);
		return;
	}
	r->state = REDUCE_COMMITTED; /* its builder may release the last chunk */
	reduce_drop(c, r);
	c->coordinator->ops->confirmed(c, &used);
}

void reduce_delegate_failed(struct control *c, struct reduce *r, int32_t status, const char *text)
{
	struct message_used used = {
		.target = r->by_id.id, .status = status, .asked = r->want.asked};

	strncpy(used.text, text, MESSAGE_TEXT_MAX);
	reduce_drop(c, r);
	c->coordinator->ops->own_failed(c, &used);
}

/* This node has become the owner of the target: it coordinates like any owner. */
void reduce_delegate_owns(struct control *c, struct reduce *r)
{
	uint64_t before;
	int error;

	if (ownership_shard(c, &r->by_id.id) != c->cluster->self)
		return;
	rpc_cancel(c, r->commit.call); /* PROPOSE; from now on COMMIT, to the requester here */
	r->commit.call = NULL;
	error = directory_reserve_delegated(&c->directory->shard, &r->by_id.id, &before);
	if (error && r->state == REDUCE_COMMITTING) {
		reduce_drop(c, r); /* the other object may be the result: the requester finds out */
		return;
	}
	if (error) {
		reduce_delegate_failed(c, r, error == -EAGAIN ? -EEXIST : error,
				       "another object has taken its id");
		return;
	}
	r->delegated.is_delegate = false;
	r->delegated.kept = true;
	r->commit.ask_ns = 0;
}

/* So local GETs of the target do not wait for an owner that does not answer. */
void reduce_delegate_found(struct control *c, const struct reduce *r, bool retry)
{
	const struct reduce_vertex *p = reduce_root(r, 0);
	struct message_got got = {.id = p->id,
				  .what = MESSAGE_GOT_HOLDER,
				  .holder = reduce_host(p),
				  .generation = p->generation,
				  .size = r->from.size,
				  .chunk_bytes = r->from.chunk_bytes};

	memcpy(got.name, r->want.name, sizeof(got.name));
	got.meta = r->from.meta;
	fetch_found(c, &got, retry);
}

bool reduce_delegate_look(struct control *c, const struct object_id *target)
{
	const struct reduce *r = reduce_find(c, target);
	const struct reduce_vertex *p =
		r && r->delegated.is_delegate && r->plan.graph.vertices ? reduce_root(r, 0) : NULL;

	if (!p || !reduce_is(p, RUN_STARTED) || p->call ||
	    reduce_host(p) == c->cluster->self->number)
		return false;
	reduce_delegate_found(c, r, true);
	return true;
}
