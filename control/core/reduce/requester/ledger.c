/* SPDX-License-Identifier: BSD-3-Clause */
/* Reduces that have ended well: what is in their results survives those who coordinated them. */
#include <errno.h>
#include "room.h"

enum { RECALLS_MAX = 32 };

static struct reduction *keep_find(const struct list *head, const struct object_id *target)
{
	for (struct list *l = head->prev; l != head; l = l->prev) {
		struct reduction *r = list_item(l, struct reduction, link);

		if (object_id_equal(&r->reduce.target, target))
			return r;
	}
	return NULL;
}

struct reduction *reduction_find(struct control *c, const struct object_id *target)
{
	return keep_find(&c->requester->reductions.active, target);
}

struct reduction *reduction_recall(struct control *c, const struct object_id *target)
{
	return keep_find(&c->requester->reductions.kept, target);
}

void reduction_note(struct reduction *r, const struct message_used *m)
{
	uint32_t k = 0;

	r->generation = m->generation;
	memset(r->used, 0, sizeof(r->used));
	for (uint32_t i = 0; i < r->reduce.count && k < m->count; i++) {
		if (!object_id_equal(&r->reduce.sources[i], &m->sources[k]))
			continue;
		r->used[i / 8] |= (uint8_t)(1u << (i % 8));
		k++;
	}
}

void reduction_used(struct control *c, const struct reduction *r, struct message_used *m)
{
	*m = (struct message_used){.target = r->reduce.target,
				   .generation = r->generation,
				   .node = MESSAGE_NODE_NONE,
				   .asked = r->reduce.asked,
				   .sources = c->requester->reductions.used};
	for (uint32_t i = 0; i < r->reduce.count; i++)
		if (r->used[i / 8] >> (i % 8) & 1)
			c->requester->reductions.used[m->count++] = r->reduce.sources[i];
}

void reduction_keep(struct control *c, struct reduction *r)
{
	const struct node *owner = control_shard(c, &r->reduce.target);

	r->state = REDUCTION_KEPT;
	list_remove(&r->link);
	list_append(&c->requester->reductions.kept, &r->link);
	if (r->lost_ns == 0) { /* it is the one who has told us */
		r->told = owner->number + 1;
		r->told_life = members_life(c, owner);
	}
	c->requester->reductions.untold |= r->lost_ns != 0;
}

void reduction_forget(struct control *c, struct reduction *r)
{
	calls_cancel(c, r->call);
	c->requester->reductions.telling -= r->state == REDUCTION_KEPT && r->call != NULL;
	timers_cancel(&c->timers, &r->timer);
	timers_cancel(&c->timers, &r->watch);
	list_remove(&r->link);
	pool_give(&c->requester->reductions.pool, r);
}

/* ---- telling the directory ------------------------------------------------------------------ */

void reduction_fill_recall(struct control *c, struct call *call)
{
	reduction_used(c, call->owner, &call->message.used);
}

static void keep_again(struct control *c, struct timer *t)
{
	c->requester->reductions.untold = true;
}

static bool keep_told(struct control *c, struct call *call, const struct message *answer)
{
	struct reduction *r = call->owner;

	r->call = NULL;
	c->requester->reductions.telling--;
	c->requester->reductions.untold = true; /* the next ones */
	if (answer && answer->reply.status == -ESTALE) {
		reduction_forget(c, r); /* the target was deleted */
		return false;
	}
	if (answer && answer->reply.status == -EAGAIN) { /* it is being made anew, or no room */
		timers_set(&c->timers, &r->timer, c->now_ns + c->config.retry_ns, keep_again);
		return false;
	}
	r->told = call->node->number + 1;
	r->told_life = call->cookie;
	return false;
}

static void keep_tell(struct control *c, struct reduction *r)
{
	struct message m = {.kind = MESSAGE_RECALL};
	struct node *owner = control_shard(c, &r->reduce.target);

	if (r->call || r->timer.position ||
	    (r->told == owner->number + 1 && r->told_life == members_life(c, owner)))
		return;
	m.used.target = r->reduce.target;
	r->call = calls_start(c, owner, &m, TABLE_SLOT_NONE, c->config.directory_ns, keep_told, r);
	if (r->call == NULL) { /* too many: soon */
		c->requester->reductions.untold = true;
		return;
	}
	r->call->cookie = members_life(c, owner);
	c->requester->reductions.telling++;
}

void reductions_tell(struct control *c)
{
	c->requester->reductions.untold = true;
}

void reductions_pump(struct control *c)
{
	if (!c->requester->reductions.untold || !members_joined(c))
		return;
	c->requester->reductions.untold = false;
	list_each(l, after, &c->requester->reductions.kept)
	{
		if (c->requester->reductions.telling >= RECALLS_MAX)
			return;
		keep_tell(c, list_item(l, struct reduction, link));
	}
}
