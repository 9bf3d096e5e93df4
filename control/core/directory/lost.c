/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects whose complete copies are all on dead nodes. Until these nodes are forgotten, such an
 * object is shown as lost, and its waiters are answered so. */
#include "directory.h"

void directory_losses(const struct directory *d, const struct entry *e, struct directory_loss *out)
{
	*out = (struct directory_loss){0};
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);
		uint64_t down_ms = d->out.down(d->out.arg, copy->node);

		if (copy->state != MESSAGE_COPY_COMPLETE || down_ms == 0)
			continue;
		if (out->copies++ > 0 && down_ms >= out->down_ms)
			continue;
		out->node = copy->node;
		out->down_ms = down_ms;
	}
}

bool directory_lost(const struct directory *d, const struct entry *e, struct directory_loss *out)
{
	if (e->generation == 0 || e->has_value || e->reserved)
		return false;
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (copy->state != MESSAGE_COPY_PARTIAL && d->out.down(d->out.arg, copy->node) == 0)
			return false;
	}
	directory_losses(d, e, out);
	return out->copies > 0 && d->out.settled(d->out.arg, &e->by_id.id);
}

/* A tombstone without a node is not of a DELETE: another generation replaced its own. */
bool directory_was_deleted(const struct directory *d, const struct object_id *id)
{
	const struct tombstone *t = directory_tombstone(d, id);

	return t && t->node != MESSAGE_NODE_NONE;
}

/* [G7.2] */
void directory_tell_lost(struct directory *d, struct entry *e)
{
	struct directory_loss loss;

	if (list_empty(&e->waiters) || !directory_lost(d, e, &loss))
		return;
	list_each(l, after, &e->waiters)
	{
		directory_tell(d, list_item(l, struct waiter, of_entry));
	}
}
