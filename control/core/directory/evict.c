/* SPDX-License-Identifier: BSD-3-Clause */
#include "state.h"

enum { EVICT_STEP = 1024 }; /* copies scanned per HAVE */

/* Limit for the answer of the pinned replica's node. Until then no other HAVE can make room. */

/* ---- the directory -------------------------------------------------------------------------- */

/* The connected node with the pinned replica, or MESSAGE_NODE_NONE. */
static uint32_t directory_pinned_live(const struct directory *d, const struct entry *e)
{
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);
		const struct directory_node *n = &d->nodes[copy->node];

		if (copy->pinned && copy->state == MESSAGE_COPY_COMPLETE && n->up && !n->dead &&
		    !n->silent)
			return copy->node;
	}
	return MESSAGE_NODE_NONE;
}

/* Whether the copy is a cached one that feeds no other. */
static bool directory_cached(const struct directory *d, const struct copy *copy)
{
	const struct directory_node *n = &d->nodes[copy->node];

	return !copy->pinned && !copy->appointed && copy->state == MESSAGE_COPY_COMPLETE &&
	       !copy->by_value && copy->sending == 0 && n->up && !n->silent &&
	       !copy->entry->reserved;
}

/* [G8.5] */
bool directory_evict(struct directory *d)
{
	for (uint32_t i = 0; i < EVICT_STEP && i < d->copies.fresh && !d->evicting; i++) {
		const struct copy *copy = pool_at(&d->copies, d->hand++ % d->copies.fresh);
		uint32_t pinned;

		if (!list_linked(&copy->of_entry) || !directory_cached(d, copy))
			continue;
		pinned = directory_pinned_live(d, copy->entry);
		d->evicting = pinned != MESSAGE_NODE_NONE && d->out.evict(d->out.arg, copy, pinned);
	}
	return d->evicting;
}

/* The node's copy of that generation, or NULL. */
static struct copy *directory_copy_of(const struct directory *d, const struct message_object *o,
				      uint32_t node)
{
	const struct entry *e = directory_find(d, &o->id);

	return e && e->generation == o->generation ? directory_copy(e, node) : NULL;
}

bool directory_evicts(const struct directory *d, const struct message_object *o, uint32_t node)
{
	const struct copy *copy = directory_copy_of(d, o, node);

	return copy && directory_cached(d, copy) &&
	       directory_pinned_live(d, copy->entry) != MESSAGE_NODE_NONE;
}

void directory_evicted(struct directory *d, const struct message_object *o, uint32_t node)
{
	struct copy *copy = directory_copy_of(d, o, node);
	struct entry *e;

	if (!copy || copy->state != MESSAGE_COPY_COMPLETE || copy->by_value)
		return;
	e = copy->entry;
	directory_gone(d, copy);
	directory_serve(d, e);
	directory_settle(d, e);
}

/* ---- control -------------------------------------------------------------------------------- */

static bool evict_removed(struct control *c, struct call *call, const struct message *answer)
{
	c->directory->shard.evicting = false;
	if (answer)
		directory_evicted(&c->directory->shard, &call->message.object, call->node->number);
	return false;
}

static bool evict_remove(struct control *c)
{
	struct message m = {.kind = MESSAGE_REMOVE, .object = c->directory->eviction.object};

	return rpc_start(c, peers_node(c, c->directory->eviction.node), &m, TABLE_SLOT_NONE,
			 c->config.retry_ns, evict_removed, NULL) != NULL; /* sent once */
}

static bool evict_pinned(struct control *c, struct call *call, const struct message *answer)
{
	if (!answer || (answer->losses & 1) ||
	    !directory_evicts(&c->directory->shard, &c->directory->eviction.object,
			      c->directory->eviction.node) ||
	    !evict_remove(c))
		c->directory->shard.evicting = false;
	return false;
}

bool evict_start(void *arg, const struct copy *copy, uint32_t pinned)
{
	struct control *c = arg;
	struct node *n = peers_node(c, pinned);
	struct message m = {.kind = MESSAGE_STATUS};

	c->directory->eviction.object = (struct message_object){
		.id = copy->entry->by_id.id, .generation = copy->entry->generation};
	c->directory->eviction.node = copy->node;
	if (n == c->cluster->self)
		return (c->cluster->losses & 1) == 0 && evict_remove(c);
	return rpc_start(c, n, &m, TABLE_SLOT_NONE, EVICT_ANSWER_NS, evict_pinned, NULL) != NULL;
}
