/* SPDX-License-Identifier: BSD-3-Clause */
#include "owned.h"
#include <errno.h>
#include "core/base/text.h"
#include "state.h"

void owned_carve(struct owners *o, struct arena *a)
{
	pool_carve(&o->pool, a, sizeof(struct owner), OWNERS_MAX);
	idmap_carve(&o->by_number, a, OWNERS_MAX);
}

static struct owners *owned_all(const struct control *c)
{
	return &c->session->owners;
}

static struct owner *owned_find(const struct control *c, uint32_t user)
{
	struct object_id id = quota_id(user);
	struct idmap_node *n = idmap_find(&owned_all(c)->by_number, &id);

	return n ? idmap_item(n, struct owner, by_number) : NULL;
}

/* NULL: too many users have objects. */
static struct owner *owned_make(struct control *c, uint32_t user)
{
	struct object_id id = quota_id(user);
	struct owner *o = owned_find(c, user);

	if (o)
		return o;
	o = pool_take(&owned_all(c)->pool);
	if (o)
		idmap_insert(&owned_all(c)->by_number, &o->by_number, &id);
	return o;
}

static uint64_t owned_limit(const struct control *c, uint32_t user)
{
	for (uint32_t i = 0; i < c->config.quotas_count; i++)
		if (c->config.quotas[i].user == user)
			return c->config.quotas[i].bytes;
	return c->config.quota_bytes;
}

static uint64_t owned_cost(uint64_t bytes)
{
	return bytes < OWNED_LEAST ? OWNED_LEAST : bytes;
}

int owned_may(struct control *c, uint32_t user, uint64_t bytes, struct text *why)
{
	const struct owner *o = owned_find(c, user);
	uint64_t limit = owned_limit(c, user), has = o ? o->bytes : 0;

	if (limit == UINT64_MAX || (has <= limit && owned_cost(bytes) <= limit - has))
		return 0;
	c->counters.quota_refused++;
	*why = (struct text){.length = 0};
	text_add(why, "user ");
	text_add_number(why, user);
	text_add(why, " has ");
	text_add_number(why, has);
	text_add(why, " of ");
	text_add_number(why, limit);
	text_add(why, " bytes on this node, this object ");
	text_add(why, bytes < OWNED_LEAST ? "counts as " : "has ");
	text_add_number(why, owned_cost(bytes));
	text_add(why, ": delete objects");
	return -EDQUOT;
}

/* A mark in the table that ties the record to one object, as slots are reused. */
static uint32_t owned_mark(const struct object_slot *s)
{
	return (uint32_t)s->generation | 1;
}

static void owned_add(struct control *c, uint32_t slot, uint32_t user)
{
	struct owner *o = owned_make(c, user);

	if (!o)
		return;
	o->bytes += owned_cost(objects_bytes(c, slot));
	o->objects++;
	objects_at(c, slot)->owned = o;
}

void owned_charge(struct control *c, uint32_t slot, uint32_t user)
{
	struct object_note *note = &c->private->note[slot];

	note->user = user;
	note->owned = owned_mark(&c->table->slot[slot]);
	owned_add(c, slot, user);
}

void owned_discharge(struct control *c, struct object *object)
{
	struct owner *o = object->owned;

	object->owned = NULL;
	if (!o)
		return;
	o->bytes -= owned_cost(objects_bytes(c, objects_slot(c, object)));
	if (--o->objects > 0)
		return;
	idmap_remove(&owned_all(c)->by_number, &o->by_number);
	pool_give(&owned_all(c)->pool, o);
}

void owned_attach(struct control *c)
{
	struct pool *pool = &owned_all(c)->pool;

	for (uint32_t i = 0; i < pool->fresh; i++) {
		struct owner *o = pool_at(pool, i);

		if (o->objects == 0)
			continue;
		o->objects = 0;
		idmap_remove(&owned_all(c)->by_number, &o->by_number);
		pool_give(pool, o);
	}
	for (uint32_t i = 0; i < c->table->slots; i++) {
		const struct object_note *note = &c->private->note[i];
		const struct object_slot *s = &c->table->slot[i];

		if (s->state != OBJECT_FREE && s->state != OBJECT_ZOMBIE &&
		    note->owned == owned_mark(s))
			owned_add(c, i, note->user);
	}
}
