/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DELETE at the shard owner. The entry ends at once (directory_end). The answer waits for all
 * holders, and for the other replicas of the tombstone. A repeated DELETE gets the same answer.
 */
#include <errno.h>
#include "directory.h"
#include "core/base/text.h"

void directory_removed(struct directory *d, struct removal *removal)
{
	if (--removal->left > 0)
		return;
	directory_reply(d, removal->node, removal->request, 0, removal->generation, "");
	removal->request = 0;
	pool_give(&d->removals, removal);
}

/* The DELETE with that request that is under way, or NULL. */
static const struct removal *directory_removing(const struct directory *d, uint32_t node,
						uint64_t request)
{
	for (uint32_t i = 0; d->removals.used > 0 && i < d->removals.fresh; i++) {
		const struct removal *r = pool_at(&d->removals, i);

		if (r->request == request && r->node == node)
			return r;
	}
	return NULL;
}

/* Tells the requester which node it waits for: its error names that node if the time is over.
 * [G4.1] */
static void directory_delete_waits(struct directory *d, const struct removal *r)
{
	struct text t = {.length = 0};

	if (r->silent == 0 || d->nodes[r->silent - 1].up)
		return;
	text_add(&t, "node ");
	text_add_number(&t, r->silent - 1);
	text_add(&t, " has a copy and does not answer: the delete goes on");
	directory_reply(d, r->node, r->request, -EAGAIN, r->generation, t.bytes);
}

/* A repeated DELETE: gets the same answer. An object that was put since then stays. */
static bool directory_delete_retry(struct directory *d, uint32_t node, const struct message *m)
{
	const struct tombstone *t = directory_tombstone(d, &m->object.id);
	const struct removal *r = directory_removing(d, node, m->request);

	if (r)
		directory_delete_waits(d, r);
	else if (t && t->request == m->request && t->node == node)
		directory_reply(d, node, m->request, 0, t->generation, "");
	else
		return false;
	return true;
}

/* [G1.5] */
void directory_delete(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e = directory_find(d, &m->object.id);
	struct removal *removal = NULL;

	if (directory_delete_retry(d, node, m))
		return;
	if (!e || e->generation == 0) {
		directory_reply(d, node, m->request, -ENOENT, 0,
				directory_was_deleted(d, &m->object.id)
					? "no such object: it was deleted already"
					: "no such object: see the list of objects");
		return;
	}
	if (!directory_tombstones_full(d) &&
	    e->copies_count + DIRECTORY_TOMBSTONE_REPLICAS <= d->out.removals(d->out.arg))
		removal = pool_take(&d->removals);
	if (!removal) {
		directory_reply(d, node, m->request, -EAGAIN, 0, "too many deletes at a time");
		return;
	}
	*removal = (struct removal){.request = m->request,
				    .generation = e->generation,
				    .number = d->tombstones_made + 1,
				    .node = node,
				    .left = 1};
	directory_end(d, e, MESSAGE_NODE_NONE, removal);
	directory_settle(d, e);
	directory_removed(d, removal);
}
