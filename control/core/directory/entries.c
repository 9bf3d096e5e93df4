/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of a directory shard: entries, copies, inline values. Called by the other files of
 * this folder. It must not know which holder a receiver gets.
 */
#include <assert.h>
#include <errno.h>
#include "core/control.h"
#include "directory.h"
#include "core/base/text.h"

enum { INLINE_GRAIN_BYTES = 64 };

void directory_carve(struct directory *d, struct arena *a, const struct control_config *config)
{
	pool_carve(&d->entries, a, sizeof(struct entry), config->entries_max);
	pool_carve(&d->copies, a, sizeof(struct copy), config->copies_max);
	pool_carve(&d->waiters, a, sizeof(struct waiter), config->waiters_max);
	pool_carve(&d->locates, a, sizeof(struct waiter), config->waiters_max);
	pool_carve(&d->removals, a, sizeof(struct removal), config->calls_max);
	idmap_carve(&d->by_id, a, config->entries_max);
	d->by_node_mask = 15;
	while (d->by_node_mask + 1 < config->copies_max)
		d->by_node_mask = 2 * d->by_node_mask + 1;
	d->by_node = arena_carve(a, sizeof(struct copy *) * ((size_t)d->by_node_mask + 1));
	d->nodes = arena_carve(a, sizeof(*d->nodes) * config->nodes);
	d->away_since = arena_carve(a, sizeof(*d->away_since) * config->nodes);
	directory_tombstones_carve(d, a, config->tombstones);
	watchers_carve(&d->watchers, a);
	allocator_carve(&d->inline_space, a, config->entries_max);
	d->inline_memory = arena_carve(a, config->inline_bytes);
}

void directory_init(struct directory *d, const struct control_config *config,
		    struct linkstats *links, const struct directory_out *out)
{
	d->out = *out;
	d->nodes_count = config->nodes;
	d->scan_max = DIRECTORY_SCAN;
	d->self = MESSAGE_NODE_NONE;
	d->links = links;
	d->network = config->network;
	d->inline_bytes = config->inline_bytes;
	allocator_reset(&d->inline_space, d->inline_bytes, INLINE_GRAIN_BYTES);
	list_init(&d->deferred);
	watchers_init(&d->watchers);
	directory_tombstones_init(d, config->tombstones);
	for (uint32_t i = 0; i < d->nodes_count; i++) {
		list_init(&d->nodes[i].copies);
		list_init(&d->nodes[i].waiters);
		list_init(&d->nodes[i].locates);
	}
}

struct entry *directory_find(const struct directory *d, const struct object_id *id)
{
	struct idmap_node *n = idmap_find(&d->by_id, id);

	return n ? idmap_item(n, struct entry, by_id) : NULL;
}

struct entry *directory_make(struct directory *d, const struct object_id *id)
{
	struct entry *e = directory_find(d, id);

	if (e)
		return e;
	e = pool_take(&d->entries);
	if (!e)
		return NULL;
	e->used = true;
	e->directory = d;
	list_init(&e->copies);
	list_init(&e->waiters);
	list_init(&e->locates);
	list_init(&e->references);
	idmap_insert(&d->by_id, &e->by_id, id);
	return e;
}

bool directory_full(const struct directory *d)
{
	return d->entries.used == d->entries.capacity || d->copies.used == d->copies.capacity;
}

void directory_settle(struct directory *d, struct entry *e)
{
	if (!list_empty(&e->copies) || e->has_value) {
		directory_noted(d, e);
		return;
	}
	watchers_gone(d, e);
	directory_learn(d, e);
	e->generation = 0;
	if (!list_empty(&e->waiters) || !list_empty(&e->locates) || e->reserved ||
	    !list_empty(&e->references))
		return;
	assert(e->used && e->arriving == 0 && list_empty(&e->copies));
	idmap_remove(&d->by_id, &e->by_id);
	e->used = false;
	pool_give(&d->entries, e);
}

static struct copy **directory_bucket(const struct entry *e, uint32_t node)
{
	const struct directory *d = e->directory;
	uint64_t key = (uint64_t)pool_index(&d->entries, e) << 32 | node;

	key *= 0x9e3779b97f4a7c15ull; /* as in base/idmap.h */
	return &d->by_node[(key >> 32) & d->by_node_mask];
}

struct copy *directory_copy(const struct entry *e, uint32_t node)
{
	struct copy *copy = *directory_bucket(e, node);

	while (copy && (copy->entry != e || copy->node != node))
		copy = copy->same_bucket;
	return copy;
}

static bool directory_copy_arrives(const struct copy *copy)
{
	return copy->state == MESSAGE_COPY_PARTIAL || copy->by_value;
}

void directory_copy_state(struct copy *copy, uint32_t state, bool by_value)
{
	assert(!directory_copy_arrives(copy) || copy->entry->arriving > 0);
	copy->entry->arriving -= directory_copy_arrives(copy);
	copy->state = state;
	copy->by_value = by_value;
	copy->entry->arriving += directory_copy_arrives(copy);
}

struct copy *directory_copy_add(struct directory *d, struct entry *e, uint32_t node, uint32_t state)
{
	struct copy *copy = directory_copy(e, node), **bucket;

	if (!copy) {
		copy = pool_take(&d->copies);
		if (!copy)
			return NULL;
		copy->entry = e;
		copy->node = node;
		bucket = directory_bucket(e, node);
		copy->same_bucket = *bucket;
		*bucket = copy;
		list_append(&e->copies, &copy->of_entry);
		list_append(&d->nodes[node].copies, &copy->of_node);
		e->copies_count++;
	}
	copy->epoch = d->nodes[node].epoch;
	directory_copy_state(copy, state, false);
	if (state != MESSAGE_COPY_PARTIAL)
		directory_feed(copy, NULL);
	return copy;
}

void directory_copy_remove(struct directory *d, struct copy *copy)
{
	struct copy **at = directory_bucket(copy->entry, copy->node);

	directory_feed(copy, NULL);
	list_each(l, after, &copy->entry->copies)
	{
		if (copy->sending == 0)
			break;
		directory_feed_end(list_item(l, struct copy, of_entry), copy);
	}
	directory_copy_state(copy, MESSAGE_COPY_COMPLETE, false);
	while (*at != copy)
		at = &(*at)->same_bucket;
	*at = copy->same_bucket;
	copy->entry->copies_count--;
	copy->entry->departed++;
	list_remove(&copy->of_entry);
	list_remove(&copy->of_node);
	pool_give(&d->copies, copy);
}

bool directory_value_set(struct directory *d, struct entry *e, const uint8_t *value)
{
	if (e->has_value)
		return true;
	if (e->size > OBJECT_INLINE_MAX)
		return false;
	if (e->size > 0) {
		e->value = allocator_take(&d->inline_space, e->size);
		if (e->value == 0)
			return false;
		memcpy(d->inline_memory + allocator_offset(&d->inline_space, e->value), value,
		       e->size);
	}
	e->has_value = true;
	return true;
}

const uint8_t *directory_value(const struct directory *d, const struct entry *e)
{
	return e->value ? d->inline_memory + allocator_offset(&d->inline_space, e->value) : NULL;
}

void directory_value_clear(struct directory *d, struct entry *e)
{
	if (e->value)
		allocator_give(&d->inline_space, e->value);
	e->value = 0;
	e->has_value = false;
	e->keeping = false;
}

bool directory_alone(const struct directory *d, const struct entry *e)
{
	if (!e->has_value || e->generation == 0 || e->reserved || e->keeping)
		return false;
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (copy->pinned && copy->state == MESSAGE_COPY_COMPLETE && copy->node != d->self &&
		    !d->nodes[copy->node].dead)
			return false;
	}
	return true;
}

const struct copy *directory_standing(const struct directory *d, const struct entry *e,
				      bool connected)
{
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);
		const struct directory_node *n = &d->nodes[copy->node];

		if (copy->state != MESSAGE_COPY_PARTIAL && (connected ? n->up : !n->dead))
			return copy;
	}
	return NULL;
}

/* Whether somebody can give bytes of it now: a complete or original copy on a connected node, or a
 * value. */
static bool directory_alive(const struct directory *d, const struct entry *e)
{
	return e->has_value || directory_standing(d, e, true);
}

bool directory_stands(const struct directory *d, const struct entry *e)
{
	return e->has_value || directory_standing(d, e, false);
}

void directory_unreachable(const struct directory *d, const struct entry *e, struct text *t)
{
	const struct copy *copy = directory_standing(d, e, false);

	*t = (struct text){.length = 0};
	text_add_object(t, &e->by_id.id, e->name);
	text_add(t, ": node ");
	text_add_number(t, copy ? copy->node : MESSAGE_NODE_NONE);
	text_add(t, " holds it and does not answer: try again, or delete it first");
}

/* [G3.2] */
int directory_taken(const struct directory *d, const struct entry *e)
{
	if (e->generation == 0 || !directory_stands(d, e))
		return 0;
	return directory_alive(d, e) ? -EEXIST : -EAGAIN;
}
