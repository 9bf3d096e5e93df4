/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"

enum { BACKUP_STEP = 4096 }; /* entries scanned per turn */

void backup_carve(struct backups *b, struct arena *a)
{
	pool_carve(&b->pool, a, sizeof(struct backup), BACKUPS);
}

void backup_init(struct control *c)
{
	c->directory->backups.sweep = UINT32_MAX;
}

/* ---- the shard owner --------------------------------------------------------------------------
 */

static void backup_fire(struct control *c, struct timer *t)
{
	c->directory->backups.sweep = 0;
	if (c->cluster->dead_ns && c->now_ns < c->cluster->dead_ns + c->config.settle_ns)
		backup_later(c); /* holders may still announce: look again after settle_ns */
}

void backup_later(void *arg)
{
	struct control *c = arg;

	if (c->directory->backups.timer.position == 0)
		timers_set(&c->timers, &c->directory->backups.timer,
			   c->now_ns + c->config.settle_ns, backup_fire);
}

void backup_crowded(void *arg)
{
	struct control *c = arg;
	struct text t = {.length = 0};

	if (c->counters.values_refused++ > 0)
		return;
	text_add(&t, "the values of small objects fill the ");
	text_add_number(&t, c->directory->shard.inline_bytes);
	text_add(&t, " bytes that this node keeps for them: more of them have no second copy, and "
		     "end with their node: delete some, or add nodes; see values_refused");
	env_log(c, CONTROL_LOG_WARNING, &t);
}

/* The entry that a KEEP is about, if it is still there. */
static struct entry *backup_entry(struct control *c, const struct message_have *have)
{
	struct entry *e = directory_find(&c->directory->shard, &have->id);

	return e && e->generation == have->generation && e->has_value ? e : NULL;
}

bool backup_fill(struct control *c, struct message_have *have)
{
	const struct entry *e = backup_entry(c, have);

	if (!e)
		return false;
	have->value = directory_value(&c->directory->shard, e);
	return true;
}

static void backup_done(struct control *c, struct entry *e, struct node *n, bool kept)
{
	struct directory *d = &c->directory->shard;
	struct copy *copy = directory_copy(e, n->number);

	e->keeping = false;
	if (kept && (!copy || copy->state == MESSAGE_COPY_PARTIAL))
		copy = directory_copy_add(d, e, n->number, MESSAGE_COPY_COMPLETE);
	if (copy && kept) {
		directory_copy_state(copy, MESSAGE_COPY_COMPLETE, false);
		copy->pinned = true;
		copy->appointed = false;
	} else if (copy && copy->by_value) {
		directory_copy_remove(d, copy);
	}
	directory_serve(d, e);
	directory_settle(d, e);
}

static bool backup_kept(struct control *c, struct call *call, const struct message *answer)
{
	struct entry *e = backup_entry(c, &call->message.have);
	struct message m = {.kind = MESSAGE_REPLY};
	struct backup *b = call->owner;

	if (answer && answer->reply.status == -EAGAIN)
		return true;
	if (e)
		backup_done(c, e, call->node, answer && answer->reply.status == 0);
	if (!answer || answer->reply.status != 0) {
		call->node->unkept_ns = c->now_ns + BACKUP_SILENT_NS; /* others are asked */
		backup_later(c);
	}
	c->counters.backups += answer && answer->reply.status == 0;
	if (b->request) {
		m.request = b->request;
		m.reply = b->answer;
		peers_send(c, peers_node(c, b->node), &m);
	}
	pool_give(&c->directory->backups.pool, b);
	return false;
}

/* Enters the copy before the node has answered: so a DELETE removes it. It feeds no other node yet.
 [G8.6] */
static void backup_expect(struct control *c, struct entry *e, uint32_t node)
{
	struct directory *d = &c->directory->shard;
	struct copy *copy = directory_copy(e, node);

	e->keeping = true;
	if (!copy)
		copy = directory_copy_add(d, e, node, MESSAGE_COPY_COMPLETE);
	else
		copy = NULL;
	if (copy)
		directory_copy_state(copy, MESSAGE_COPY_COMPLETE, true);
}

bool backup_keep(void *arg, struct entry *e, uint32_t node, const struct message *answer)
{
	struct control *c = arg;
	struct message m = {.kind = MESSAGE_KEEP};
	struct node *n = ownership_backup(c, &e->by_id.id);
	struct backup *b = n ? pool_take(&c->directory->backups.pool) : NULL;

	if (!b) {
		if (c->cluster->members.live_count > 1)
			backup_later(c);
		return false;
	}
	if (answer) {
		b->request = answer->request;
		b->answer = answer->reply;
		b->node = node;
	}
	m.have.id = e->by_id.id;
	m.have.generation = e->generation;
	m.have.size = e->size;
	m.have.chunk_bytes = e->chunk_bytes;
	m.have.state = MESSAGE_COPY_COMPLETE;
	m.have.upstream = MESSAGE_NODE_NONE;
	m.have.has_value = 1;
	m.have.value_bytes = (uint32_t)e->size;
	memcpy(m.have.name, e->name, sizeof(m.have.name));
	m.have.meta = e->meta;
	backup_expect(c, e, n->number);
	if (rpc_start(c, n, &m, TABLE_SLOT_NONE, BACKUP_ANSWER_NS, backup_kept, b))
		return true;
	pool_give(&c->directory->backups.pool, b);
	backup_done(c, e, n, false);
	backup_later(c);
	return false;
}

/* [G1.4] */
void backup_pump(struct control *c)
{
	struct backups *b = &c->directory->backups;
	struct pool *entries = &c->directory->shard.entries;
	uint32_t end = b->sweep == UINT32_MAX ? 0 : b->sweep + BACKUP_STEP;

	if (b->sweep == UINT32_MAX || !membership_joined(c))
		return;
	for (; b->sweep < entries->fresh && b->sweep < end; b->sweep++) {
		struct entry *e = pool_at(entries, b->sweep);

		if (!e->used)
			continue;
		directory_tell_lost(&c->directory->shard, e);
		if (!directory_alone(&c->directory->shard, e))
			continue;
		if (b->pool.used == b->pool.capacity)
			return; /* continues when a KEEP is answered */
		backup_keep(c, e, MESSAGE_NODE_NONE, NULL);
	}
	if (b->sweep >= entries->fresh)
		b->sweep = UINT32_MAX;
}
