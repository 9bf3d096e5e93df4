/* SPDX-License-Identifier: BSD-3-Clause */
/* A reduce whose result may stay though another one into its target has begun. */
#include "core/state.h"

struct reduce *reduce_step_aside(struct control *c, struct reduce *r)
{
	struct reduce *kept = r;

	if (r == NULL)
		return NULL;
	if (r->status) {
		kept = r->older;
		r->older = NULL;
		reduce_free(c, r);
	} else {
		list_remove(&r->active);
		idmap_remove(&c->reduces.by_id, &r->by_id);
		r->aside = true;
	}
	return kept;
}

void reduce_step_back(struct control *c, struct reduce *older)
{
	if (older == NULL)
		return;
	older->aside = false;
	idmap_insert(&c->reduces.by_id, &older->by_id, &older->by_id.id);
	list_append(&c->reduces.ended, &older->active);
}

struct reduce *reduce_standing(struct control *c, struct reduce *r)
{
	const struct entry *e = r && r->older && r->state == REDUCE_ENDED && r->status
					? directory_find(&c->directory, &r->by_id.id)
					: NULL;

	return e && e->generation == r->older->generation ? r->older : r;
}

bool reduce_evict(struct control *c)
{
	if (!list_empty(&c->reduces.ended)) {
		reduce_free(c, list_item(list_first(&c->reduces.ended), struct reduce, active));
		return true;
	}
	list_each(l, after, &c->reduces.active)
	{
		struct reduce *r = list_item(l, struct reduce, active);

		if (r->older == NULL)
			continue;
		reduce_free(c, r->older);
		r->older = NULL;
		return true;
	}
	return false;
}
