/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commit of a reduce. The set of sources is fixed before a node has all bytes of the target:
 * participants withhold the last chunk. When the first of them has the rest, the requester is asked
 * (COMMIT). It agrees to one result only, from whichever coordinator, and sends FINISH itself, so
 * that the result survives the coordinator. When the requester is dead, the coordinator decides.
 * Called by repair.c, receivers.c and watchdog.c.
 */
#include <errno.h>
#include "core/directory/state.h"
#include "state.h"

static const char commit_lost[] =
	"its result was lost with the node that had just made it: reduce again";

void reduce_fill_commit(struct control *c, struct call *call)
{
	reduce_used(c, call->owner, &call->message.used);
}

static void commit_finished(struct control *c, struct reduce *r)
{
	r->out.finished = true;
	if (!reduce_gathers(r)) {
		reduce_end(c, r, 0, "");
		return;
	}
	reduce_answer_all(c, r);
	reduce_receivers_check(c, r);
}

bool reduce_commit_hopeless(const struct control *c, const struct reduce *r)
{
	return r->commit.holder == REDUCE_NONE &&
	       c->now_ns - r->commit.lost_ns >= c->config.settle_ns;
}

/* The holder has lost the result: ends the reduce if another node has a complete copy, or if none
 * can turn up. */
static void commit_look_for_copies(struct control *c, struct reduce *r)
{
	if (directory_has_complete(&c->directory->shard, &r->by_id.id))
		commit_finished(c, r);
	else if (reduce_gathers(r)) /* receivers may complete theirs */
		reduce_receivers_check(c, r);
	else if (reduce_commit_hopeless(c, r))
		reduce_end(c, r, -ESTALE, commit_lost);
}

void reduce_commit_lost(struct control *c, struct reduce *r)
{
	r->commit.holder = REDUCE_NONE;
	r->commit.lost_ns = c->now_ns;
	commit_look_for_copies(c, r);
}

static bool commit_finish_answered(struct control *c, struct call *call,
				   const struct message *answer)
{
	struct reduce *r = call->owner;
	int32_t status = answer ? answer->reply.status : -EHOSTUNREACH;

	r->commit.call = NULL;
	if (status == 0)
		commit_finished(c, r);
	else
		reduce_commit_lost(c, r);
	return false;
}

struct call *reduce_commit_call(struct control *c, const struct reduce *r, uint32_t node,
				call_end *end, void *owner)
{
	struct message m = {.kind = MESSAGE_FINISH};

	m.combined.target = r->by_id.id;
	m.combined.reduce = r->want.number;
	m.combined.generation = r->out.generation;
	m.combined.part_node = MESSAGE_NODE_NONE;
	return rpc_start(c, peers_node(c, node), &m, TABLE_SLOT_NONE, c->config.call_ns, end,
			 owner);
}

void reduce_commit_finish(struct control *c, struct reduce *r, uint32_t node)
{
	r->commit.holder = node;
	rpc_cancel(c, r->commit.call);
	r->commit.call = reduce_commit_call(c, r, node, commit_finish_answered, r);
}

static void commit_decided(struct control *c, struct reduce *r)
{
	r->state = REDUCE_COMMITTED;
	reduce_commit_finish(c, r, r->commit.holder);
	reduce_receivers_finish(c, r);
}

static bool commit_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct reduce *r = call->owner;
	int32_t status = answer->reply.status; /* no deadline: never NULL */

	if (status == -EAGAIN) /* it does not know the coordinator yet */
		return true;
	r->commit.call = NULL;
	if (status == -ESTALE) /* it has agreed to another result */
		reduce_give_way(c, r);
	else
		commit_decided(c, r);
	return false;
}

/* An earlier coordinator may have made a result without the requester's agreement: from small
 * values, or because it believed that the requester was dead. A holder may announce that result
 * soon. */
static bool commit_too_early(struct control *c, const struct reduce *r)
{
	if (!ownership_settling(c, &r->by_id.id))
		return false;
	return r->from.size <= OBJECT_INLINE_MAX ||
	       (peers_node(c, r->want.caller)->died && !ownership_constant(c, &r->by_id.id));
}

static void commit_ask(struct control *c, struct reduce *r)
{
	struct message m = {.kind = MESSAGE_COMMIT};

	if (commit_too_early(c, r)) /* the watchdog calls again */
		return;
	m.used.target = r->by_id.id;
	m.used.asked = r->want.asked; /* the rest: reduce_fill_commit */
	m.used.node = r->commit.holder;
	r->commit.call = rpc_start(c, peers_node(c, r->want.caller), &m, TABLE_SLOT_NONE,
				   UINT64_MAX, commit_answered, r);
}

void reduce_commit(struct control *c, struct reduce *r, uint32_t node)
{
	if (r->state != REDUCE_RUNNING)
		return;
	r->state = REDUCE_COMMITTING;
	r->commit.holder = node;
	reduce_watch(c, r);
	if (!reduce_gathers(r)) {
		struct reduce_vertex *root = reduce_root(r, 0);

		r->out.generation = root->generation;
		rpc_cancel(c, root->call); /* it is not to be built again */
		root->call = NULL;
		reduce_links_show(c, r);
	}
	reduce_measured_show(c, r);
	timers_cancel(&c->timers, &r->deadline);
	/* A source that arrives now is too late. It must not end the reduce. */
	for (uint32_t i = 0; i < r->from.count; i++)
		reduce_unlocate(c, &r->from.source[i]);
	commit_ask(c, r);
}

void reduce_commit_look(struct control *c, struct reduce *r)
{
	const struct node *n =
		peers_node(c, r->state == REDUCE_COMMITTING ? r->want.caller : r->commit.holder);

	if (r->state == REDUCE_COMMITTED && r->out.finished)
		return;
	if (r->state == REDUCE_COMMITTED && r->commit.holder == REDUCE_NONE) {
		commit_look_for_copies(c, r);
		return;
	}
	if (n && membership_live(n)) {
		if (r->commit.call)
			return;
		/* no call was free: try again */
		if (r->state == REDUCE_COMMITTED)
			reduce_commit_finish(c, r, r->commit.holder);
		else
			commit_ask(c, r);
		return;
	}
	if (r->state == REDUCE_COMMITTING && commit_too_early(c, r))
		return;
	rpc_cancel(c, r->commit.call);
	r->commit.call = NULL;
	if (r->state == REDUCE_COMMITTING)
		commit_decided(c, r);
	else
		reduce_commit_lost(c, r);
}
