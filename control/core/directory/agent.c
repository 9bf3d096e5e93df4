/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the directory shard needs of other nodes (struct directory_out): removes copies, probes
 * holders, redirects. Called by the shard and by control.c. The shard itself (directory.c) knows no
 * calls, members or time.
 */
#include "state.h"
#include "agent.h"

static void agent_notify_fire(struct control *c, struct timer *t)
{
	directory_notify_deferred(&c->directory->shard);
}

void agent_notify_later(struct control *c)
{
	if (c->directory->deferred.position == 0 && !list_empty(&c->directory->shard.deferred))
		timers_set(&c->timers, &c->directory->deferred, c->now_ns + AGENT_DEFERRED_NS,
			   agent_notify_fire);
}

void agent_redirect(void *arg, uint32_t node, uint64_t request)
{
	struct control *c = arg;

	ownership_redirect(c, peers_node(c, node), request);
}

static bool agent_removed(struct control *c, struct call *call, const struct message *answer)
{
	if (call->owner)
		directory_removed(&c->directory->shard, call->owner);
	return false;
}

bool agent_remove(void *arg, uint32_t node, const struct object_id *id, uint64_t generation,
		  bool replaced, struct removal *removal)
{
	struct control *c = arg;
	struct node *n = peers_node(c, node);
	struct message m = {.kind = MESSAGE_REMOVE};

	m.object.id = *id;
	m.object.generation = generation;
	m.object.replaced = replaced;
	/* Long enough: a node that has been forgotten announces its objects again, and learns then
	 * that they are deleted. */
	if (rpc_start(c, n, &m, TABLE_SLOT_NONE, 2 * (c->config.forget_ns + c->config.retry_ns),
		      agent_removed, removal))
		return true;
	c->directory->unremoved = n->unremoved = true;
	return false;
}

uint32_t agent_replicate(void *arg, const struct tombstone *t, struct removal *removal)
{
	return tombstone_copies_replicate(arg, t, removal);
}

void agent_silent(struct control *c, struct node *n, bool gone)
{
	list_each(l, after, &n->calls)
	{
		struct call *call = list_item(l, struct call, of_node);
		struct removal *removal = call->owner;

		if (call->end != agent_removed || !removal)
			continue;
		removal->silent = n->number + 1;
		call->owner = gone ? NULL : removal;
		if (gone)
			directory_removed(&c->directory->shard, removal);
	}
}

static bool agent_probed(struct control *c, struct call *call, const struct message *answer)
{
	call->node->probing = false;
	directory_node_silent(&c->directory->shard, call->node->number, false);
	return false;
}

/* Probes with any message: if it is not acknowledged the connection ends. */
void agent_suspect(void *arg, uint32_t node)
{
	struct control *c = arg;
	struct node *n = peers_node(c, node);
	struct message m = {.kind = MESSAGE_STATUS};

	if (n == c->cluster->self || n->probing)
		return;
	n->probing =
		rpc_start(c, n, &m, TABLE_SLOT_NONE, c->config.call_ns, agent_probed, NULL) != NULL;
	directory_node_silent(&c->directory->shard, node, n->probing);
}

/* Not settled while a node that has just come up may still announce its objects; while a node that
 * was just declared dead may come back, as after a restart of its dataplane; and while this node
 * sees no other member, so that it does not know which of them are dead. */
bool agent_settled(void *arg, const struct object_id *id)
{
	struct control *c = arg;

	return c->cluster->members.live_count > 1 &&
	       c->now_ns >= c->directory->up_ns + AGENT_TELL_NS &&
	       (c->cluster->dead_ns == 0 ||
		c->now_ns >= c->cluster->dead_ns + c->config.settle_ns) &&
	       c->now_ns >= c->cluster->members.begun_ns + c->config.settle_ns &&
	       !ownership_settling(c, id);
}

bool agent_unheard(void *arg, const struct object_id *id)
{
	struct control *c = arg;

	return id ? ownership_settling(c, id)
		  : c->config.shards == 0 && c->cluster->members.live_count > 1 &&
			       !c->cluster->members.settled;
}

uint32_t agent_removals(void *arg)
{
	struct control *c = arg;
	uint32_t reserve = c->config.calls_max / 4;
	uint32_t free = c->cluster->calls.pool.capacity - c->cluster->calls.pool.used;

	return free > reserve ? free - reserve : 0;
}
