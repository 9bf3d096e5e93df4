/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tombstones of a directory shard. A full table forgets the oldest. Deletes are numbered as this
 * node hears of them. A tombstone that another node hands over gets the number that it would have
 * if it had come as many deletes ago as it came there: so an old one displaces no later one.
 *
 * A forgotten tombstone mattered only to nodes that have not announced all of their objects since
 * the delete. So the shard notes since which delete a node has been away:
 *
 *   in step  --no connection, or dead-->                    away, since the last delete before
 *                                                           those under way
 *   away     --a later delete is forgotten-->               behind
 *   either   --ANNOUNCED, or it has nothing to announce-->  in step
 *
 * An object that only a node behind announces may have been deleted by a forgotten tombstone. Up to
 * the horizon, the highest generation among the forgotten, it is refused as deleted.
 */
#include "internal/crash_point.h"
#include "core/control.h"
#include "directory.h"

/* Numbers begin here. Greater than any age, and the low half has room for older ones. */
#define TOMBSTONES_EPOCH   (UINT64_C(1) << 32)
#define TOMBSTONES_AGE_MAX (UINT32_C(1) << 31)

void directory_tombstones_carve(struct directory *d, struct arena *a, uint32_t count)
{
	d->tombstones = arena_carve(a, sizeof(*d->tombstones) * count);
	d->aged = arena_carve(a, sizeof(*d->aged) * count);
	idmap_carve(&d->by_tombstone, a, count);
}

void directory_tombstones_init(struct directory *d, uint32_t count)
{
	d->tombstones_count = count;
	d->tombstones_made = TOMBSTONES_EPOCH + TOMBSTONES_AGE_MAX;
}

/* ---- those in use by age: a heap, the oldest first --------------------------------------------
 */

static struct tombstone *directory_tombstone_oldest(const struct directory *d)
{
	return &d->tombstones[d->aged[0]];
}

static uint64_t directory_aged_number(const struct directory *d, uint32_t place)
{
	return d->tombstones[d->aged[place]].number;
}

static void directory_aged_swap(struct directory *d, uint32_t a, uint32_t b)
{
	uint32_t other = d->aged[a];

	d->aged[a] = d->aged[b];
	d->aged[b] = other;
	d->tombstones[d->aged[a]].place = a;
	d->tombstones[d->aged[b]].place = b;
}

static void directory_aged_add(struct directory *d, struct tombstone *t)
{
	uint32_t place = d->aged_count++;

	t->place = place;
	d->aged[place] = (uint32_t)(t - d->tombstones);
	while (place > 0 && directory_aged_number(d, (place - 1) / 2) > t->number) {
		directory_aged_swap(d, place, (place - 1) / 2);
		place = t->place;
	}
}

/* Its number has risen. */
static void directory_aged_rose(struct directory *d, const struct tombstone *t)
{
	for (;;) {
		uint32_t least = t->place;

		for (uint32_t i = 2 * t->place + 1; i <= 2 * t->place + 2; i++)
			if (i < d->aged_count &&
			    directory_aged_number(d, i) < directory_aged_number(d, least))
				least = i;
		if (least == t->place)
			return;
		directory_aged_swap(d, t->place, least);
	}
}

/* ---- the table --------------------------------------------------------------------------------
 */

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

static void directory_tombstone_forget(struct directory *d, uint64_t number, uint64_t generation)
{
	if (number > d->forgotten)
		d->forgotten = number;
	directory_horizon(d, generation);
}

/* For a new id: an unused one, else the oldest. NULL: this one is no later than the oldest.
 * [G4.3] */
static struct tombstone *directory_tombstone_take(struct directory *d, uint64_t number)
{
	struct tombstone *t = directory_tombstone_unused(d);

	if (t)
		return t;
	t = directory_tombstone_oldest(d);
	if (number <= t->number)
		return NULL;
	idmap_remove(&d->by_tombstone, &t->by_id);
	directory_tombstone_forget(d, t->number, t->generation);
	t->generation = 0;
	return t;
}

static void directory_tombstone_set(struct directory *d, struct tombstone *t,
				    const struct message_tombstone *b, uint64_t number)
{
	bool aged = t->number != 0;

	if (t->generation == 0)
		idmap_insert(&d->by_tombstone, &t->by_id, &b->id);
	t->generation = b->generation;
	t->request = b->request;
	t->node = b->node;
	if (number > t->number)
		t->number = number;
	if (aged)
		directory_aged_rose(d, t);
	else
		directory_aged_add(d, t);
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
	d->kept[at].order = (uint32_t)t->number;
	crash_point();
	atomic_store(&d->kept[at].generation, t->generation);
}

static bool directory_tombstone_sound(const struct directory *d, const struct object_tombstone *g)
{
	return g->generation != 0 && g->generation <= MESSAGE_GENERATION_MAX &&
	       (g->node < d->nodes_count || g->node == MESSAGE_NODE_NONE) &&
	       !directory_tombstone_of(d, &g->id);
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

/* That of which the order is the low half, and which is closest to another one. */
static uint64_t directory_kept_number(uint64_t other, uint32_t order)
{
	return other + (uint64_t)(int64_t)(int32_t)(order - (uint32_t)other);
}

void directory_keep_tombstones(struct directory *d, struct object_tombstone *kept, uint32_t count,
			       _Atomic uint64_t *horizon)
{
	uint64_t first = 0; /* number of the first one that is taken over */

	d->kept = kept;
	d->kept_count = count < d->tombstones_count ? count : d->tombstones_count;
	directory_keep_horizon(d, horizon);
	for (uint32_t i = 0; i < d->kept_count; i++) {
		struct tombstone *t = &d->tombstones[i];

		if (t->generation == 0 && directory_tombstone_sound(d, &kept[i])) {
			const struct message_tombstone b = {.id = kept[i].id,
							    .generation = kept[i].generation,
							    .request = kept[i].request,
							    .node = kept[i].node};

			if (first == 0)
				first = d->tombstones_made +
					(uint32_t)(kept[i].order - (uint32_t)d->tombstones_made);
			directory_tombstone_set(d, t, &b,
						directory_kept_number(first, kept[i].order));
			if (t->number > d->tombstones_made)
				d->tombstones_made = t->number;
		} else if (t->generation != kept[i].generation) {
			directory_keep_tombstone(d, t);
		}
	}
}

uint32_t directory_tombstone_age(const struct directory *d, const struct tombstone *t)
{
	uint64_t later = d->tombstones_made - t->number;

	return later < TOMBSTONES_AGE_MAX ? 1 + (uint32_t)later : TOMBSTONES_AGE_MAX;
}

/* Of a new delete, or of one that was handed over. */
static uint64_t directory_tombstone_number(struct directory *d, uint32_t age)
{
	if (age == 0)
		return ++d->tombstones_made;
	return d->tombstones_made - ((age < TOMBSTONES_AGE_MAX ? age : TOMBSTONES_AGE_MAX) - 1);
}

bool directory_add_tombstone(struct directory *d, const struct message_tombstone *b)
{
	struct tombstone *t = directory_tombstone_of(d, &b->id);
	uint64_t number;

	if (t && t->generation >= b->generation)
		return false;
	number = directory_tombstone_number(d, b->age);
	if (!t)
		t = directory_tombstone_take(d, number);
	if (!t) {
		directory_tombstone_forget(d, number, b->generation);
		return true;
	}
	directory_tombstone_set(d, t, b, number);
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
	t = directory_tombstone_oldest(d);
	return t->number > d->unsettled && !d->out.settled(d->out.arg, &t->by_id.id);
}

/* ---- nodes that were away ------------------------------------------------------------------- */

/* The number of the last delete before those that are under way. */
static uint64_t directory_last_ended(const struct directory *d)
{
	uint64_t last = d->tombstones_made;

	for (uint32_t i = 0; d->removals.used > 0 && i < d->removals.fresh; i++) {
		const struct removal *r = pool_at(&d->removals, i);

		if (r->request != 0 && r->number <= last)
			last = r->number - 1;
	}
	return last;
}

void directory_node_away(struct directory *d, uint32_t node, bool ever)
{
	struct directory_node *n = &d->nodes[node];

	if (!n->away)
		d->away_since[node] = ever ? 0 : directory_last_ended(d);
	n->away = true;
}

static bool directory_behind(const struct directory *d, uint32_t node)
{
	return d->nodes[node].away && node != d->self && d->forgotten > d->away_since[node];
}

void directory_node_returns(struct directory *d, uint32_t node)
{
	struct directory_node *n = &d->nodes[node];

	if (directory_behind(d, node))
		n->known = false; /* it is to tell all */
	else if (n->known)
		directory_node_in_step(d, node);
}

void directory_node_in_step(struct directory *d, uint32_t node)
{
	d->nodes[node].away = false;
}

bool directory_beyond(const struct directory *d, uint32_t node, const struct message_have *have)
{
	const struct entry *e = directory_find(d, &have->id);

	return directory_behind(d, node) && !have->create && !have->made &&
	       have->generation <= d->horizon && (!e || e->generation != have->generation);
}
