/* SPDX-License-Identifier: BSD-3-Clause */
/* What this part of the directory is no longer responsible for. */
#include "directory.h"

static void directory_leave(struct directory *d, struct entry *e)
{
	list_each(l, after, &e->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		d->out.redirect(d->out.arg, w->node, w->request);
		directory_waiter_remove(d, w);
	}
	list_each(l, after, &e->locates)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		d->out.redirect(d->out.arg, w->node, w->request);
		directory_locate_remove(d, w);
	}
	e->reserved = 0;
	list_each(l, after, &e->copies)
	{
		directory_copy_remove(d, list_item(l, struct copy, of_entry));
	}
	directory_value_clear(d, e);
	directory_settle(d, e);
}

void directory_keep(struct directory *d, bool (*mine)(void *arg, const struct object_id *id),
		    void *arg)
{
	for (uint32_t i = 0; i < d->entries.fresh; i++) {
		struct entry *e = pool_at(&d->entries, i);

		if (e->used && !mine(arg, &e->by_id.id))
			directory_leave(d, e);
	}
}
