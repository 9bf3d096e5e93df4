/* SPDX-License-Identifier: BSD-3-Clause */
#include "announcer.h"
#include "state.h"

enum { ANNOUNCER_STEP = 1024 }; /* items of a sweep, until marked ones are sent */

void announcer_init(struct control *c, struct announcer *as, const uint32_t *items,
		    uint32_t sending_max, announcer_look *look, announcer_say *say)
{
	struct announcer **last = &c->cluster->announcers;

	while (*last)
		last = &(*last)->next;
	*last = as;
	*as = (struct announcer){
		.look = look, .say = say, .items = items, .sending_max = sending_max};
	list_init(&as->dirty);
}

void announcer_mark(struct announcer *as, struct announced *a)
{
	list_remove(&a->dirty);
	list_append(&as->dirty, &a->dirty);
}

void announcer_sweep_all(struct control *c)
{
	for (struct announcer *as = c->cluster->announcers; as; as = as->next)
		as->sweep = 0;
}

bool announcer_sweeping(const struct control *c)
{
	const struct announcer *as = c->cluster->announcers;

	while (as && as->sweep == UINT32_MAX)
		as = as->next;
	return as != NULL;
}

bool announcer_unacked(struct control *c, const struct announced *a, const struct object_id *id)
{
	const struct node *owner = ownership_shard(c, id);

	return a->owner != owner->number + 1 || a->epoch != membership_epoch(c, owner);
}

void announcer_check(struct control *c, struct announcer *as, struct announced *a,
		     const struct object_id *id)
{
	if (!a->call && announcer_unacked(c, a, id))
		announcer_mark(as, a);
}

void announcer_acked(struct announced *a, const struct node *owner, uint64_t epoch)
{
	a->owner = owner->number + 1;
	a->epoch = epoch;
}

void announcer_park(struct announcer *as, struct announced *a)
{
	as->sending -= !a->parked;
	a->parked = true;
}

void announcer_heard(struct announcer *as, struct announced *a)
{
	as->sending -= !a->parked;
	a->parked = false;
	a->call = NULL;
}

void announcer_forget(struct control *c, struct announcer *as, struct announced *a)
{
	list_remove(&a->dirty);
	if (!a->call)
		return;
	rpc_cancel(c, a->call);
	announcer_heard(as, a);
}

static void announcer_sweep(struct control *c, struct announcer *as)
{
	while (as->sweep != UINT32_MAX && list_empty(&as->dirty)) {
		uint32_t end = as->sweep + ANNOUNCER_STEP;

		for (; as->sweep < *as->items && as->sweep < end; as->sweep++)
			as->look(c, as->sweep);
		if (as->sweep >= *as->items)
			as->sweep = UINT32_MAX;
	}
}

static void announcer_send(struct control *c, struct announcer *as)
{
	announcer_sweep(c, as);
	while (as->sending < as->sending_max && !list_empty(&as->dirty)) {
		struct announced *a = list_item(list_first(&as->dirty), struct announced, dirty);

		list_remove(&a->dirty);
		a->call = as->say(c, a);
		if (!a->call) { /* too many calls: in another turn */
			list_append(&as->dirty, &a->dirty);
			return;
		}
		a->call->cookie = membership_epoch(c, a->call->node);
		as->sending++;
		announcer_sweep(c, as);
	}
}

void announcer_pump(struct control *c)
{
	if (!c->table || !membership_joined(c))
		return;
	for (struct announcer *as = c->cluster->announcers; as; as = as->next)
		announcer_send(c, as);
}
