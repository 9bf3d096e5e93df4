/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large reduces are coordinated by the node that asks for them. The directory's node finds out how
 * large the sources are, lends the reduce to the asker (-EREMOTE to its REDUCE or REDUCED), and
 * keeps the target for it: whoever gets it, puts it, deletes it or asks how it ends comes here. The
 * asker finds the sources and makes the tree as any coordinator. Before anybody has all of what it
 * has made it asks here whether that may be the result (PROPOSE); that it has failed it tells here
 * (RECALL). So the death of the directory's node costs no more than its certainty: the asker tells
 * the next one (REDUCE, LENT). That of the asker gives the reduce back, and it begins anew.
 *
 * Of what is lent the directory's node agrees to one result, of what another one coordinates the
 * asker does (reduce/requester/requester.c): where both coordinate, each taking the other for dead,
 * one is told no.
 */
#include <errno.h>
#include "core/directory/room.h"
#include "core/transfer/fetch.h"
#include "room.h"
#include "events.h"

#define LEND_ASK_NS	UINT64_C(25000000)
#define LEND_ASK_MAX_NS UINT64_C(400000000)

/* ---- the directory's node ------------------------------------------------------------------- */

static bool lend_worth(struct control *c, const struct reduce *r)
{
	return !r->lent.borrowed && !r->lent.home && r->from.size >= c->config.lend_bytes &&
	       !(r->want.flags & MESSAGE_REDUCE_SPREAD) &&
	       r->want.caller != c->cluster->self->number &&
	       members_live(peers_node(c, r->want.caller));
}

static void lend_say(struct control *c, struct reduce *r, uint64_t request)
{
	struct message m = {.kind = MESSAGE_USED, .request = request};

	m.used.target = r->by_id.id;
	m.used.status = -EREMOTE;
	m.used.generation = r->want.before;
	peers_send(c, peers_node(c, r->want.caller), &m);
}

/* It ends here; what somebody has all of stays. */
void reduce_lent_end(struct control *c, struct reduce *r)
{
	const struct entry *e = directory_find(&c->directory->shard, &r->by_id.id);
	bool there = directory_has_complete(&c->directory->shard, &r->by_id.id);
	struct reduce *older = r->older;

	if (there && older && e->generation != older->out.generation)
		older = NULL;
	if (older)
		r->older = NULL;
	if (there)
		reduce_drop(c, r);
	else
		reduce_give_way(c, r);
	reduce_step_back(c, older);
}

/* Somebody has all of what is another's: its own result is not made any more. */
static void lend_complete(struct control *c, struct reduce *r)
{
	if (reduce_is_another(r, directory_find(&c->directory->shard, &r->by_id.id)->generation))
		reduce_end(c, r, -EEXIST, reduce_exists);
	else
		reduce_lent_end(c, r);
}

/* The one who has borrowed it is dead, or knows nothing of it any more: it begins anew here, unless
 * somebody has all of it. Others may wait for it. */
static void lend_back(struct control *c, struct reduce *r)
{
	struct message_reduce m = {.count = r->from.count,
				   .flags = r->want.flags,
				   .min = r->rule.args.least,
				   .sources = c->coordinator->reduces.ids};
	uint64_t at_ns = reduce_deadline(r);

	if (directory_has_complete(&c->directory->shard, &r->by_id.id)) {
		lend_complete(c, r);
		return;
	}
	for (uint32_t i = 0; i < r->from.count; i++)
		c->coordinator->reduces.ids[i] = r->from.source[i].id;
	m.timeout_ns = r->lent.until_ns == UINT64_MAX ? UINT64_MAX
		       : r->lent.until_ns > c->now_ns ? r->lent.until_ns - c->now_ns
						      : 0;
	m.deadline_ns = at_ns > c->now_ns ? at_ns - c->now_ns : 0;
	reduce_set_policy(c, r, &m);
	r->lent.home = true;
	r->state = REDUCE_LOCATING;
	r->from.unanswered = r->from.count;
	r->sum.small = !r->from.sized;
	directory_reserve_anew(&c->directory->shard, &r->by_id.id);
	reduce_begin(c, r, &m);
}

/* The caller asks again and again how it ends: it does not any more. */
static void lend_forgotten(struct control *c, struct timer *t)
{
	lend_back(c, list_item(t, struct reduce, beat));
}

static void lend_heard(struct control *c, struct reduce *r)
{
	timers_set(&c->timers, &r->beat, c->now_ns + c->config.orphan_ns, lend_forgotten);
}

/* From now on the caller coordinates it. It may know nothing of what was deleted here. */
void reduce_lent(struct control *c, struct reduce *r, uint64_t until_ns)
{
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &r->by_id.id);

	if (t && t->generation > r->want.before)
		r->want.before = t->generation;
	lend_heard(c, r);
	r->state = REDUCE_LENT;
	r->lent.until_ns = until_ns;
	r->lent.there = 0;
	r->from.arrivals = 0;
	for (uint32_t i = 0; i < r->from.count; i++)
		reduce_source_begin(r, i, r->from.source[i].id);
}

/* The caller's REDUCED that waits, if it has heard that its REDUCE is accepted. */
static struct reduce_asker *lend_asker(const struct reduce *r)
{
	list_each(l, after, &r->askers)
	{
		struct reduce_asker *a = list_item(l, struct reduce_asker, link);

		if (a->node == r->want.caller && a->asked == r->want.asked)
			return a;
	}
	return NULL;
}

bool reduce_lend(struct control *c, struct reduce *r)
{
	uint64_t until_ns = r->deadline.position ? r->deadline.at_ns : UINT64_MAX;
	struct reduce_asker *a = lend_asker(r);

	if (!lend_worth(c, r) || (r->answered && a == NULL))
		return false;
	reduce_end_calls(c, r);
	reduce_lent(c, r, until_ns);
	directory_reserve_for(&c->directory->shard, &r->by_id.id, DIRECTORY_LENT);
	if (!r->answered) {
		reduce_lent_reply(c, r);
		return true;
	}
	lend_say(c, r, a->request);
	list_remove(&a->link);
	pool_give(&c->coordinator->reduces.askers, a);
	return true;
}

/* Of the latest generation the directory takes it, which may be what the caller has made. An
 * earlier one must come again: it stays if no result is agreed to until then. */
bool reduce_lent_have(struct control *c, struct reduce *r, const struct message_have *have)
{
	const struct entry *e = directory_find(&c->directory->shard, &have->id);

	if (!have->made && have->generation != r->lent.made)
		r->lent.other = have->generation;
	if (e == NULL || have->generation >= e->generation)
		return false;
	r->lent.there = have->generation;
	return true;
}

/* What somebody has all of; 0: nothing. */
static uint64_t lend_there(struct control *c, const struct reduce *r)
{
	if (!directory_has_complete(&c->directory->shard, &r->by_id.id))
		return r->lent.there;
	return directory_find(&c->directory->shard, &r->by_id.id)->generation;
}

bool reduce_lent_ask(struct control *c, struct reduce *r, const struct node *n,
		     const struct message *m)
{
	struct message other = {.kind = MESSAGE_USED, .request = m->request};
	bool lent = r->state == REDUCE_LENT, knows = m->reduce.flags & MESSAGE_REDUCE_LENT;

	if (n->number != r->want.caller || m->reduce.asked != r->want.asked || (!lent && !knows) ||
	    r->state >= REDUCE_COMMITTING)
		return false;
	if (lent)
		lend_heard(c, r);
	if (!knows) {
		lend_say(c, r, m->request);
		return true;
	}
	other.used.generation = lent ? lend_there(c, r) : 0;
	if (lent && other.used.generation == 0)
		return false; /* the others wait; so does the caller */
	/* It was taken for dead meanwhile, and we coordinate it: it asks anew. So it does for a
	 * generation that is not its own, made on the other side of a cut, and gives its own up. */
	other.used.target = m->reduce.target;
	other.used.status = -ENOENT;
	peers_send(c, peers_node(c, n->number), &other);
	return true;
}

/* Puts down which sources are in it. Returns whether there are as many as there should be. */
static bool lend_take(struct reduce *r, const struct message_used *m)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < r->from.count; i++) {
		bool in = taken < m->count &&
			  object_id_equal(&r->from.source[i].id, &m->sources[taken]);

		r->from.source[i].seat = in ? 0 : REDUCE_NONE;
		taken += in;
	}
	if (taken != m->count || taken < reduce_fewest(r) || taken > r->want.num)
		return false;
	r->want.num = taken;
	return true;
}

/* The keeper before may have agreed, or, if it took the asker for dead, made another result: then
 * somebody else may be about to say that it has all. */
int32_t reduce_lend_settled(struct control *c, const struct object_id *target,
			    const struct node *asker, const struct node *holder)
{
	bool live = members_live(holder);

	if ((asker->died || !live) && reshard_settling(c, target))
		return -EAGAIN;
	return live ? 0 : -ESTALE;
}

static int32_t lend_propose(struct control *c, const struct node *n, const struct message_used *m)
{
	struct reduce *r = reduce_find(c, &m->target);
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &m->target);
	const struct node *holder = peers_node(c, m->node);
	bool own = r && r->want.caller == n->number && r->want.asked == m->asked;
	int32_t status;
	uint64_t there;

	if (r == NULL || (!own && r->state == REDUCE_ENDED))
		return -ENOENT;
	if (own && r->state >= REDUCE_COMMITTED && r->status == 0 &&
	    r->out.generation == m->generation)
		return 0; /* again */
	if (!own || r->state != REDUCE_LENT || holder == NULL ||
	    (t && t->generation >= m->generation))
		return -ESTALE;
	there = lend_there(c, r);
	if (there == 0 && (status = reduce_lend_settled(c, &m->target, n, holder)) != 0)
		return status;
	if ((there && there != m->generation) || !lend_take(r, m))
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
	int32_t status = lend_propose(c, n, &m->used);

	reduce_reply(c, n->number, m->request, status, "");
}

bool reduce_lent_given_up(const struct reduce *r, const struct message *m)
{
	return r->state == REDUCE_LENT && !(m->reduce.flags & MESSAGE_REDUCE_LENT) &&
	       r->want.request != m->request;
}

void reduce_caller_gone(struct control *c, const struct node *n, bool dead)
{
	list_each(l, after, &c->coordinator->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (r->want.caller != n->number)
			continue;
		r->lent.home = true; /* what it waits with may be of an earlier control there */
		if (r->state != REDUCE_LENT)
			continue;
		if (dead)
			lend_back(c, r);
		else /* perhaps it only objects to being suspected: then it goes on asking */
			timers_set(&c->timers, &r->beat,
				   c->now_ns + c->config.retry_ns + c->config.stall_ns,
				   lend_forgotten);
	}
}

/* ---- the one who asks ----------------------------------------------------------------------- */

static struct reduce *lend_borrowed(struct control *c, const struct message_reduce *m)
{
	struct reduce *r = reduce_find(c, &m->target);

	return r && r->lent.borrowed && r->want.asked == m->asked ? r : NULL;
}

bool reduce_borrowed(struct control *c, const struct message_reduce *m)
{
	return lend_borrowed(c, m) != NULL;
}

bool reduce_borrow(struct control *c, const struct message_reduce *m, uint64_t before)
{
	struct reduce *r = reduce_find(c, &m->target);

	if (r && r->state != REDUCE_ENDED) {
		r->commit.ask_ns = r->commit.unknown = 0; /* the directory's node knows of it now */
		return lend_borrowed(c, m) == r;
	}
	if (r)
		reduce_free(c, r);
	r = reduce_calls(c, m->count) ? reduce_make(c, c->cluster->self, 0, m) : NULL;
	if (r == NULL)
		return false;
	r->lent.borrowed = r->answered = true;
	r->sum.small = false;
	r->want.before = before;
	reduce_begin(c, r, m);
	return true;
}

void reduce_return(struct control *c, const struct message_reduce *m, uint64_t result)
{
	struct reduce *r = lend_borrowed(c, m);

	if (r == NULL)
		return;
	if (r->out.generation != result)
		r->out.generation = 0;
	reduce_drop(c, r);
}

void reduce_borrowed_done(struct control *c, const struct reduce *r)
{
	struct message_used used = {.asked = r->want.asked, .node = r->commit.holder};

	reduce_used(c, r, &used);
	c->coordinator->ops->propose(c, &used);
}

/* It is about to be told that we coordinate (REDUCE), unless it has no room; then it is asked
 * again.
 */
static void lend_unknown(struct control *c, struct reduce *r)
{
	uint64_t pause_ns = LEND_ASK_NS << r->commit.unknown;

	if (pause_ns < LEND_ASK_MAX_NS)
		r->commit.unknown++;
	r->commit.ask_ns = c->now_ns + pause_ns;
}

void reduce_borrowed_answered(struct control *c, struct reduce *r, int32_t status)
{
	const struct message_used used = {.target = r->by_id.id, .asked = r->want.asked};

	if (status == -ENOENT)
		lend_unknown(c, r);
	if (status == -ENOENT || status == -EAGAIN)
		return;
	if (status) {
		reduce_give_way(c, r);
		c->coordinator->ops->refused(c, &used);
		return;
	}
	r->state = REDUCE_COMMITTED; /* whoever has built it may let it go */
	reduce_drop(c, r);
	c->coordinator->ops->confirmed(c, &used);
}

void reduce_borrowed_failed(struct control *c, struct reduce *r, int32_t status, const char *text)
{
	struct message_used used = {
		.target = r->by_id.id, .status = status, .asked = r->want.asked};

	strncpy(used.text, text, MESSAGE_TEXT_MAX);
	reduce_drop(c, r);
	c->coordinator->ops->own_failed(c, &used);
}

/* The target is ours now: we coordinate as anybody does. What is got of an earlier generation is
 * told of here first, and gives way when the present one is. */
void reduce_keep_borrowed(struct control *c, struct reduce *r)
{
	uint64_t before;
	int error;

	if (control_shard(c, &r->by_id.id) != c->cluster->self)
		return;
	calls_cancel(c, r->commit.call); /* PROPOSE: it is we who are asked now (COMMIT) */
	r->commit.call = NULL;
	error = directory_lend(&c->directory->shard, &r->by_id.id, &before);
	if (error && r->state == REDUCE_COMMITTING) {
		reduce_drop(c, r); /* perhaps it is just that one: the one who asks looks */
		return;
	}
	if (error) {
		reduce_borrowed_failed(c, r, error == -EAGAIN ? -EEXIST : error,
				       "another object has taken its id");
		return;
	}
	r->lent.borrowed = false;
	r->lent.kept = true;
	r->commit.ask_ns = 0;
}

/* Who gets the target here need not wait for a directory's node that does not answer. */
void reduce_borrowed_found(struct control *c, const struct reduce *r, bool again)
{
	const struct reduce_vertex *p = reduce_root(r, 0);
	struct message_got got = {.id = p->id,
				  .what = MESSAGE_GOT_HOLDER,
				  .holder = reduce_host(p),
				  .generation = p->generation,
				  .size = r->from.size,
				  .chunk_bytes = r->from.chunk_bytes};

	memcpy(got.name, r->want.name, sizeof(got.name));
	fetch_found(c, &got, again);
}

bool reduce_borrowed_look(struct control *c, const struct object_id *target)
{
	const struct reduce *r = reduce_find(c, target);
	const struct reduce_vertex *p =
		r && r->lent.borrowed && r->plan.graph.vertices ? reduce_root(r, 0) : NULL;

	if (p == NULL || !reduce_is(p, RUN_STARTED) || p->call ||
	    reduce_host(p) == c->cluster->self->number)
		return false;
	reduce_borrowed_found(c, r, true);
	return true;
}
