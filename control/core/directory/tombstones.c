/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tombstones of a directory shard. A full table forgets the oldest. That one mattered only to nodes
 * that have not announced all of their objects since the delete. So the shard notes since which
 * delete a node has been away:
 *
 *   in step  --no connection, or dead-->                                away, since that delete
 *   away     --back; no later delete was forgotten meanwhile-->         away, tombstones decide
 *   away     --back; a later delete was forgotten meanwhile-->          behind
 *   either   --ANNOUNCED, or it has nothing to announce-->              in step
 *
 * An object that only a node behind announces may have been deleted by a forgotten tombstone. Up to
 * the horizon, the highest generation among the forgotten, it is refused as deleted.
 */
#include "internal/crash_point.h"
#include "core/control.h"
#include "directory.h"

void directory_tombstones_carve(struct directory *d, struct arena *a, uint32_t count)
{
	d->tombstones = arena_carve(a, sizeof(*d->tombstones) * count);
	idmap_carve(&d->by_tombstone, a, count);
}

void directory_tombstones_init(struct directory *d, uint32_t count)
{
	d->tombstones_count = count;
	list_init(&d->aged);
}

/* The first unused tombstone, or NULL. Taken in order, so that memory is touched page by page. */
static struct tombstone *directory_tombstone_unused(struct directory *d)
{
	while (d->tombstones_used < d->tombstones_count &&
	       d->tombstones[d->tombstones_used].generation != 0)
		d->tombstones_used++;
	return d->tombstones_used < d->tombstones_count ? &d->tombstones[d->tombstones_used] : NULL;
}

static struct tombstone *directory_tombstone_of(const struct directory *d,
						const struct object_id *id)
{
	struct idmap_node *n = idmap_find(&d->by_tombstone, id);

	return n ? idmap_item(n, struct tombstone, by_id) : NULL;
}

const struct tombstone *directory_tombstone(const struct directory *d, const struct object_id *id)
{
	return directory_tombstone_of(d, id);
}

static void directory_horizon(struct directory *d, uint64_t generation)
{
	if (generation > d->horizon)
		d->horizon = generation;
	if (d->kept_horizon)
		atomic_store(d->kept_horizon, d->horizon);
}

static void directory_tombstone_forget(struct directory *d, struct tombstone *t)
{
	idmap_remove(&d->by_tombstone, &t->by_id);
	d->forgotten = t->number;
	directory_horizon(d, t->generation);
}

/* For a new id: an unused one, else the oldest. */
static struct tombstone *directory_tombstone_take(struct directory *d)
{
	struct tombstone *t = directory_tombstone_unused(d);

	if (t)
		return t;
	t = list_item(list_first(&d->aged), struct tombstone, aged);
	directory_tombstone_forget(d, t);
	t->generation = 0;
	return t;
}

/* It is the latest. */
static void directory_tombstone_set(struct directory *d, struct tombstone *t,
				    const struct message_tombstone *b)
{
	if (t->generation == 0)
		idmap_insert(&d->by_tombstone, &t->by_id, &b->id);
	t->generation = b->generation;
	t->request = b->request;
	t->node = b->node;
	t->number = ++d->tombstones_made;
	list_remove(&t->aged);
	list_append(&d->aged, &t->aged);
}

/* Writes a tombstone to the shared memory, generation last: one that is half written has none. */
static void directory_keep_tombstone(struct directory *d, const struct tombstone *t)
{
	uint32_t at = (uint32_t)(t - d->tombstones);

	if (at >= d->kept_count)
		return;
	crash_point();
	atomic_store(&d->kept[at].generation, 0);
	crash_point();
	d->kept[at].id = t->by_id.id;
	crash_point();
	d->kept[at].request = t->request;
	d->kept[at].node = t->node;
	crash_point();
	atomic_store(&d->kept[at].generation, t->generation);
}

static bool directory_tombstone_sound(const struct directory *d, const struct object_tombstone *g)
{
	return g->generation != 0 && g->generation <= MESSAGE_GENERATION_MAX &&
	       (g->node < d->nodes_count || g->node == MESSAGE_NODE_NONE) &&
	       directory_tombstone_of(d, &g->id) == NULL;
}

static void directory_keep_horizon(struct directory *d, _Atomic uint64_t *kept)
{
	uint64_t before = kept ? *kept : 0;

	d->kept_horizon = kept;
	if (before > 0 && before <= MESSAGE_GENERATION_MAX && d->forgotten == 0)
		d->forgotten = ++d->tombstones_made; /* forgotten by an earlier control process: its
							number is not known */
	directory_horizon(d, before <= MESSAGE_GENERATION_MAX ? before : 0);
}

void directory_keep_tombstones(struct directory *d, struct object_tombstone *kept, uint32_t count,
			       _Atomic uint64_t *horizon)
{
	d->kept = kept;
	d->kept_count = count < d->tombstones_count ? count : d->tombstones_count;
	directory_keep_horizon(d, horizon);
	for (uint32_t i = 0; i < d->kept_count; i++) {
		struct tombstone *t = &d->tombstones[i];

		if (t->generation == 0 && directory_tombstone_sound(d, &kept[i])) {
			const struct message_tombstone b = {kept[i].id, kept[i].generation,
							    kept[i].request, kept[i].node};

			directory_tombstone_set(d, t, &b);
		} else if (t->generation != kept[i].generation) {
			directory_keep_tombstone(d, t);
		}
	}
}

bool directory_add_tombstone(struct directory *d, const struct message_tombstone *b)
{
	struct tombstone *t = directory_tombstone_of(d, &b->id);

	if (t && t->generation >= b->generation)
		return false;
	if (t == NULL)
		t = directory_tombstone_take(d);
	directory_tombstone_set(d, t, b);
	directory_keep_tombstone(d, t);
	return true;
}

void directory_unsettled(struct directory *d)
{
	d->unsettled = d->tombstones_made;
}

bool directory_tombstones_full(struct directory *d)
{
	const struct tombstone *t;

	if (directory_tombstone_unused(d))
		return false;
	t = list_item(list_first(&d->aged), struct tombstone, aged);
	return t->number > d->unsettled && !d->out.settled(d->out.arg, &t->by_id.id);
}

/* ---- nodes that were away ------------------------------------------------------------------- */

void directory_node_away(struct directory *d, uint32_t node, bool ever)
{
	struct directory_node *n = &d->nodes[node];

	if (!n->away)
		d->away_since[node] = ever ? 0 : d->tombstones_made;
	n->away = true;
	n->behind = false;
}

void directory_node_returns(struct directory *d, uint32_t node)
{
	struct directory_node *n = &d->nodes[node];

	n->behind = n->away && node != d->self && d->forgotten > d->away_since[node];
	if (n->behind)
		n->known = false; /* it is to tell all */
	else if (n->known)
		directory_node_in_step(d, node);
}

void directory_node_in_step(struct directory *d, uint32_t node)
{
	d->nodes[node].away = d->nodes[node].behind = false;
}

bool directory_beyond(const struct directory *d, uint32_t node, const struct message_have *have)
{
	const struct entry *e = directory_find(d, &have->id);

	return d->nodes[node].behind && !have->create && !have->made &&
	       have->generation <= d->horizon && (e == NULL || e->generation != have->generation);
}
