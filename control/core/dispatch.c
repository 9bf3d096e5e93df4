/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hands each message to its module. A request to a shard owner is answered here if this node does
 * not own its id, or is not settled yet (dispatch_too_early). Called by control.c and the loopback.
 */
#include <errno.h>
#include "state.h"

static void dispatch_remove(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	uint32_t slot = c->table ? slots_find(c, &m->object.id) : TABLE_SLOT_NONE;
	bool disown;

	if (!m->object.replaced)
		holds_gone(c, &m->object.id, m->object.generation);
	if (slot != TABLE_SLOT_NONE && !objects_is(c, slot, m->object.generation))
		slot = TABLE_SLOT_NONE;
	if (slot != TABLE_SLOT_NONE && m->object.replaced &&
	    (c->table->slot[slot].state == OBJECT_SEALED ||
	     c->table->slot[slot].state == OBJECT_SPILLED)) {
		announce_object(c, slot); /* a complete copy exists only if it was agreed to */
		slot = TABLE_SLOT_NONE;
	}
	/* The object is another owner's by now. Or this owner has not answered its HAVE, which
	 * would have ended a GET that was repeated. */
	disown = slot != TABLE_SLOT_NONE &&
		 (ownership_shard(c, &m->object.id) != n || announce_unacked(c, slot));
	if (slot != TABLE_SLOT_NONE && m->object.replaced)
		objects_replace(c, slot, "the object is built again: get it again");
	else if (slot != TABLE_SLOT_NONE)
		objects_kill(c, slot, "the object was deleted");
	if (disown)
		announce_disown(c, &m->object.id, m->object.generation);
	answer.reply.generation = m->object.generation;
	peers_send(c, n, &answer);
}

static void dispatch_status(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_NODE, .request = m->request};
	const struct control_plan *last = control_last_plan(c);

	session_describe_node(c, &answer.node);
	answer.plan = m->status.plan && last->generation ? last : NULL;
	peers_send(c, n, &answer);
}

static void dispatch_tombstone(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};

	directory_take_tombstone(&c->directory->shard, &m->tombstone);
	reduce_tombstone(c, &m->tombstone);
	peers_send(c, n, &answer);
}

/* KEEP: hold the second copy of a small object. */
static void dispatch_keep(struct control *c, struct node *n, const struct message *m)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &m->have.id);

	answer.reply.status =
		t && t->generation >= m->have.generation ? -ESTALE : keep_copy(c, &m->have);
	answer.reply.generation = m->have.generation;
	peers_send(c, n, &answer);
}

/* Messages between requester, coordinator and participants. */
static void dispatch_reduce(struct control *c, struct node *n, const struct message *m)
{
	switch (m->kind) {
	case MESSAGE_COMBINED:
		if (!excerpt_combined(c, n, m))
			reduce_combined(c, n, m);
		break;
	case MESSAGE_COMMIT:
		requester_commit(c, n, m);
		break;
	case MESSAGE_FINISH:
		participant_finish(c, n, m);
		break;
	case MESSAGE_COMBINE:
		participant_request(c, n, m);
		break;
	case MESSAGE_RELEASE:
		participant_release(c, n, m);
		break;
	case MESSAGE_PULL:
		pull_request(c, n, m);
		break;
	case MESSAGE_PUSH:
		push_received(c, n, m);
		break;
	default:
		c->counters.messages_unexpected++;
		break;
	}
}

/* A DELETE must reach all holders, and some may not have announced yet. In a full directory they
 * cannot, until objects are deleted: there the DELETE reaches the noted holders now, and the others
 * when they announce. */
static bool dispatch_delete_too_early(struct control *c, const struct object_id *id)
{
	return !directory_full(&c->directory->shard) ||
	       !directory_has_complete(&c->directory->shard, id);
}

/* Whether this node has just become the owner of the id, and holders may not have announced it yet:
 * a request that depends on whether it exists is answered -EAGAIN. */
static bool dispatch_too_early(struct control *c, const struct message *m)
{
	const struct object_id *id = message_id(m);
	const struct entry *e;

	if (m->kind == MESSAGE_REDUCED) /* another node coordinates it, and is about to tell us */
		return m->reduce.asked == 0 && !reduce_find(c, id) && ownership_settling(c, id);
	/* If a complete result exists, the requester has agreed to it. Where it may not have, the
	 * commit waits (reduce_known, commit_too_early). */
	if (m->kind == MESSAGE_REDUCE && m->reduce.flags & MESSAGE_REDUCE_RESTART)
		return false;
	if (m->kind == MESSAGE_GET || m->kind == MESSAGE_DROP || m->kind == MESSAGE_RECALL ||
	    (m->kind == MESSAGE_HAVE && !m->have.create) ||
	    (m->kind == MESSAGE_HOLD && m->hold.generation != 0) || !ownership_settling(c, id))
		return false;
	if (m->kind == MESSAGE_DELETE && !m->object.lapsed)
		return dispatch_delete_too_early(c, id);
	if (m->kind == MESSAGE_DELETE) /* the node of another lease may be about to send HOLD */
		return true;
	e = directory_find(&c->directory->shard, id);
	if (!e || e->generation == 0)
		return true;
	/* a partial copy shows that a complete one exists, on a node that may not have announced it
	 * yet */
	return m->kind != MESSAGE_STAT && e->reserved == 0 &&
	       directory_taken(&c->directory->shard, e) == 0;
}

static void dispatch_request(struct control *c, struct node *n, const struct message *m)
{
	const struct object_id *id = message_id(m);

	/* a lost node repeats its requests when it is back: drops this one */
	if (!ownership_is_shard(c, c->cluster->self) || n->state != NODE_UP) {
		c->counters.messages_unexpected++;
		return;
	}
	if (id && c->config.shards == 0 &&
	    (ownership_shard(c, id) != c->cluster->self || dispatch_too_early(c, m))) {
		ownership_redirect(c, n, m->request);
		return;
	}
	if (m->kind == MESSAGE_GET &&
	    (reduce_receivers_get(c, n, m) || reduce_refuses_get(c, n, m)))
		return;
	if (m->kind == MESSAGE_ANNOUNCED) {
		references_announced(c, n->number, m->announced.epoch);
		settle_heard(c, n, m->announced.view);
	}
	if (m->kind == MESSAGE_HOLD) {
		references_hold(c, n->number, m);
		return;
	}
	if (m->kind == MESSAGE_GROUP) {
		group_message(c, n, m);
		return;
	}
	if (m->kind == MESSAGE_REDUCE) {
		reduce_request(c, n, m);
	} else if (m->kind == MESSAGE_REDUCED) {
		reduce_ask(c, n, m);
	} else if (m->kind == MESSAGE_RECALL) {
		reduce_recall(c, n, m);
	} else {
		if (m->kind == MESSAGE_HAVE && (reduce_refuses(c, n, m) || reduce_have(c, n, m)))
			return;
		if (m->kind == MESSAGE_DELETE &&
		    (references_delete(c, n->number, m) || reduce_cancel(c, n, m)))
			return;
		directory_message(&c->directory->shard, n->number, m);
	}
}

void dispatch(struct control *c, struct node *n, uint32_t conn, const struct message *m)
{
	if (clock_refuses(c, n, m))
		return;
	switch (m->kind) {
	case MESSAGE_HAVE:
	case MESSAGE_GET:
	case MESSAGE_DROP:
	case MESSAGE_DELETE:
	case MESSAGE_LIST:
	case MESSAGE_WATCH:
	case MESSAGE_ANNOUNCED:
	case MESSAGE_HOLD:
	case MESSAGE_REDUCE:
	case MESSAGE_REDUCED:
	case MESSAGE_RECALL:
	case MESSAGE_GROUP:
		dispatch_request(c, n, m);
		break;
	case MESSAGE_STAT:
		if (m->object.generation)
			session_tell(c, n, m);
		else
			dispatch_request(c, n, m);
		break;
	case MESSAGE_REDIRECT:
		rpc_redirected(c, n, m);
		break;
	case MESSAGE_MEMBERS:
		gossip_take(c, n, &m->members);
		break;
	case MESSAGE_GOT:
	case MESSAGE_OBJECTS:
	case MESSAGE_NODE:
	case MESSAGE_REPLY:
	case MESSAGE_USED:
	case MESSAGE_HAS:
	case MESSAGE_PULL_REPLY:
	case MESSAGE_GROUPED:
		rpc_answer(c, n, m);
		break;
	case MESSAGE_REMOVE:
		dispatch_remove(c, n, m);
		break;
	case MESSAGE_TOMBSTONE:
		dispatch_tombstone(c, n, m);
		break;
	case MESSAGE_KEEP:
		dispatch_keep(c, n, m);
		break;
	case MESSAGE_PREFETCH:
		session_prefetch(c, n, m);
		break;
	case MESSAGE_STREAM:
		serve_request(c, n, conn, m);
		break;
	case MESSAGE_PIECES:
		serve_pieces(c, n, m);
		break;
	case MESSAGE_STATUS:
		dispatch_status(c, n, m);
		break;
	default:
		dispatch_reduce(c, n, m);
		break;
	}
}
