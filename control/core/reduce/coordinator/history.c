/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results that another coordinator has made, as the requester reports them (RECALL) or a holder
 * announces them (HAVE); and results of earlier reduces into the same target, which a newer reduce
 * supersedes. Called by the front door and by coordinator.c.
 */
#include <errno.h>
#include "core/directory/state.h"
#include "state.h"

/* Notes a result of another coordinator that the requester has agreed to. */
static int32_t reduce_remember(struct control *c, struct node *n, const struct message *m)
{
	const struct message_used *in = &m->used;
	struct reduce *r = reduce_find(c, &in->target);
	const struct tombstone *t = directory_tombstone(&c->directory->shard, &in->target);
	const struct message_reduce reduce = {
		.target = in->target, .asked = in->asked, .num = in->count, .count = in->count};

	if (t && t->generation >= in->generation)
		return -ESTALE;
	if (r && r->state == REDUCE_ENDED && (r->status || r->out.generation < in->generation))
		reduce_free(c, r);
	else if (r && r->state < REDUCE_COMMITTING && r->want.caller == n->number &&
		 r->want.asked == in->asked)
		reduce_give_way(c, r);
	else if (r) /* another reduce, which may end without a result */
		return r->state == REDUCE_ENDED ? 0 : -EAGAIN;
	r = reduce_make(c, n, m->request, &reduce);
	if (!r)
		return -EAGAIN;
	for (uint32_t i = 0; i < r->from.count; i++)
		r->from.source[i] = (struct reduce_source){.reduce = r, .id = in->sources[i]};
	r->state = REDUCE_ENDED;
	r->out.generation = in->generation;
	r->answered = true;
	list_remove(&r->active);
	list_append(&c->coordinator->reduces.ended, &r->active);
	return 0;
}

void reduce_recall(struct control *c, struct node *n, const struct message *m)
{
	reduce_reply(c, n->number, m->request, reduce_remember(c, n, m), "");
}

/* ---- a result that somebody has all of ------------------------------------------------------ */

bool reduce_is_another(const struct reduce *r, uint64_t generation)
{
	if (r->superseded && r->superseded->out.generation == generation)
		return true;
	if (r->want.flags & MESSAGE_REDUCE_RESTART)
		return false;
	return generation <= r->want.before;
}

bool reduce_have(struct control *c, const struct node *n, const struct message *m)
{
	const struct message_have *have = &m->have;
	struct reduce *r =
		list_empty(&c->coordinator->reduces.active) ? NULL : reduce_find(c, &have->id);
	const struct tombstone *t = r ? directory_tombstone(&c->directory->shard, &have->id) : NULL;
	bool undecided =
		r && (r->state < REDUCE_COMMITTING ||
		      (r->state == REDUCE_COMMITTING && r->out.generation != have->generation));

	/* A complete copy is a result that was agreed to: it must not be made a second time. The
	 * put of a client is refused elsewhere (reduce_refuses). */
	if (!undecided || have->create || have->state != MESSAGE_COPY_COMPLETE ||
	    (t && have->generation <= t->generation))
		return false;
	if (!reduce_is_another(r, have->generation)) {
		reduce_give_way(c, r);
	} else if (r->state < REDUCE_COMMITTING) {
		reduce_fail(c, r, -EEXIST, reduce_exists);
	} else { /* the answer to COMMIT decides which of the two results stays */
		reduce_reply(c, n->number, m->request, -EAGAIN, "");
		return true;
	}
	return false;
}

/* ---- a result that may stay though another reduce has begun ---------------------------------- */

struct reduce *reduce_supersede(struct control *c, struct reduce *r)
{
	struct reduce *kept = r;

	if (!r)
		return NULL;
	if (r->status) {
		kept = r->superseded;
		r->superseded = NULL;
		reduce_free(c, r);
	} else {
		list_remove(&r->active);
		idmap_remove(&c->coordinator->reduces.by_id, &r->by_id);
		r->is_superseded = true;
	}
	return kept;
}

void reduce_reinstate(struct control *c, struct reduce *superseded)
{
	if (!superseded)
		return;
	superseded->is_superseded = false;
	idmap_insert(&c->coordinator->reduces.by_id, &superseded->by_id, &superseded->by_id.id);
	list_append(&c->coordinator->reduces.ended, &superseded->active);
}

struct reduce *reduce_standing(struct control *c, struct reduce *r)
{
	const struct entry *e = r && r->superseded && r->state == REDUCE_ENDED && r->status
					? directory_find(&c->directory->shard, &r->by_id.id)
					: NULL;

	return e && e->generation == r->superseded->out.generation ? r->superseded : r;
}

bool reduce_evict(struct control *c)
{
	if (!list_empty(&c->coordinator->reduces.ended)) {
		reduce_free(c, list_item(list_first(&c->coordinator->reduces.ended), struct reduce,
					 active));
		return true;
	}
	list_each(l, after, &c->coordinator->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (!r->superseded)
			continue;
		reduce_free(c, r->superseded);
		r->superseded = NULL;
		return true;
	}
	return false;
}
