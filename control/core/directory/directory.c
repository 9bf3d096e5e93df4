/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announcements at the directory shard: HAVE, DROP, ANNOUNCED, and nodes that come and go. GET is
 * matching.c's, DELETE is delete.c's.
 */
#include <errno.h>
#include "directory.h"
#include "core/base/text.h"

void directory_reply(struct directory *d, uint32_t node, uint64_t request, int32_t status,
		     uint64_t generation, const char *text)
{
	struct message m = {.kind = MESSAGE_REPLY, .request = request};
	uint32_t length = (uint32_t)strlen(text);

	m.reply.status = status;
	m.reply.generation = generation;
	memcpy(m.reply.text, text, length > MESSAGE_TEXT_MAX ? MESSAGE_TEXT_MAX : length);
	d->out.answer(d->out.arg, node, &m);
}

/* [G1.3] */
static void directory_exists(struct directory *d, uint32_t node, const struct message *m,
			     const struct entry *e)
{
	const struct copy *first = NULL;
	struct text t = {.length = 0};

	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (!first || copy->state != MESSAGE_COPY_PARTIAL)
			first = copy;
	}
	text_add_object(&t, &e->by_id.id, e->name);
	text_add(&t, " exists already (");
	text_add_number(&t, e->size);
	text_add(&t, " bytes, ");
	text_add(&t, first && first->state == MESSAGE_COPY_CREATING ? "being created" : "complete");
	if (first) {
		text_add(&t, " on node ");
		text_add_number(&t, first->node);
	}
	text_add(&t, "): delete it first");
	directory_reply(d, node, m->request, -EEXIST, e->generation, t.bytes);
}

void directory_fresh(struct directory *d, const struct tombstone *t, struct removal *removal)
{
	if (removal)
		removal->left += d->out.replicate(d->out.arg, t, removal);
	else if (d->fresh_count < DIRECTORY_FRESH)
		d->fresh[d->fresh_count++] = (uint32_t)(t - d->tombstones);
	else
		d->fresh_lost = true;
}

void directory_end(struct directory *d, struct entry *e, uint32_t except, struct removal *removal)
{
	const struct message_tombstone tombstone = {.id = e->by_id.id,
						    .generation = e->generation,
						    .request = removal ? removal->request : 0,
						    .node = removal ? removal->node
								    : MESSAGE_NODE_NONE};

	bool replaced = !removal && e->reserved != 0;

	watchers_gone(d, e);

	/* No tombstone for a generation that a reduce gives up: another coordinator may have
	 * completed an earlier one meanwhile. */
	if (!replaced && directory_add_tombstone(d, &tombstone))
		directory_fresh(d, directory_tombstone(d, &tombstone.id), removal);
	if (!list_empty(&e->references))
		d->out.unhold(d->out.arg, e, e->generation, true);
	list_each(l, after, &e->copies)
	{
		struct copy *copy = list_item(l, struct copy, of_entry);
		uint32_t node = copy->node;
		struct removal *waits = d->nodes[node].dead ? NULL : removal;

		directory_copy_remove(d, copy);
		if (node == except ||
		    !d->out.remove(d->out.arg, node, &e->by_id.id, e->generation, replaced,
				   waits) ||
		    !waits)
			continue;
		waits->left++;
		if (!d->nodes[node].up)
			waits->silent = node + 1;
	}
	directory_value_clear(d, e);
	directory_learn(d, e);
	e->generation = 0;
	e->name[0] = '\0';
	e->meta.bytes = 0;
}

/* Moves the entry to the generation of the HAVE, if that is allowed. False: it is refused, and
 * answered. [G1.2] */
static bool directory_have_generation(struct directory *d, uint32_t node, const struct message *m,
				      struct entry *e)
{
	const struct message_have *have = &m->have;
	struct copy *own = directory_copy(e, node);

	if (have->made && have->generation != e->reserved) {
		bool other = e->reserved != 0 || e->generation > have->generation;

		directory_reply(d, node, m->request, other ? -ECANCELED : -ESTALE, e->generation,
				other ? "its reduce was restarted"
				      : "nobody coordinates its reduce here any more");
		return false;
	}
	if (e->reserved && have->generation != e->reserved) {
		directory_reply(d, node, m->request, have->create ? -EEXIST : -ESTALE,
				e->generation,
				"a reduce makes an object of this id: use another one");
		return false;
	}
	if (own &&
	    e->generation != have->generation) /* it does not have the other generation now */
		directory_copy_remove(d, own);
	if (e->generation == have->generation) {
		if (e->size == have->size)
			return true;
		directory_reply(d, node, m->request, -ESTALE, e->generation,
				"same generation, another size");
		return false;
	}
	if (have->create && directory_taken(d, e) == -EEXIST) {
		directory_exists(d, node, m, e);
		return false;
	}
	if (have->create && directory_taken(d, e) == -EAGAIN) {
		struct text t;

		directory_unreachable(d, e, &t);
		directory_reply(d, node, m->request, -EAGAIN, e->generation, t.bytes);
		return false;
	}
	if (have->generation < e->generation ||
	    (have->state != MESSAGE_COPY_COMPLETE && directory_stands(d, e))) {
		directory_reply(d, node, m->request, -ESTALE, e->generation,
				"the object was put again");
		return false;
	}
	if (e->generation != 0) /* put on both sides of a partition: the newer one stays */
		directory_end(d, e, MESSAGE_NODE_NONE, NULL);
	e->generation = have->generation;
	if (!list_empty(&e->references)) /* of the replaced generation */
		d->out.unhold(d->out.arg, e, e->generation - 1, true);
	e->size = have->size;
	e->chunk_bytes = have->chunk_bytes;
	memcpy(e->name, have->name, sizeof(e->name));
	e->meta = have->meta;
	return true;
}

static void directory_waiter_forget(struct directory *d, struct entry *e, uint32_t node)
{
	list_each(l, after, &e->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		if (w->node == node)
			directory_waiter_remove(d, w);
	}
}

/* Enters an upstream that a HAVE names, unless newer bookings would make a circle of it. */
static void directory_have_upstream(struct directory *d, struct copy *copy, uint32_t node)
{
	struct copy *upstream =
		node == MESSAGE_NODE_NONE ? NULL : directory_copy(copy->entry, node);

	if (upstream && !directory_depends(d, upstream, copy))
		directory_feed(copy, upstream);
}

/* A complete copy, with the rate at which it arrived. */
static void directory_have_rate(struct directory *d, uint32_t node, const struct message_have *have,
				const struct entry *e)
{
	const struct copy *copy = directory_copy(e, node);
	uint32_t other = MESSAGE_NODE_NONE;

	if (copy && copy->alone && copy->upstreams == 1 && copy->upstream[0].copy->sending == 1)
		other = copy->upstream[0].copy->node;
	linkstats_saw_rate(d->links, node, other, have->rate, have->size);
}

static void directory_copy_pin(struct copy *copy, const struct message_have *have)
{
	copy->pinned = have->pinned;
	copy->appointed = have->appointed;
}

static bool directory_have_copy(struct directory *d, uint32_t node, const struct message_have *have,
				struct entry *e)
{
	struct copy *copy = directory_copy(e, node);

	if (have->state != MESSAGE_COPY_PARTIAL) /* its open GETs are satisfied */
		directory_waiter_forget(d, e, node);
	if (have->state == MESSAGE_COPY_COMPLETE && copy)
		directory_copy_state(copy, copy->state, false);
	if (copy && (have->pinned || !copy->pinned))
		directory_copy_pin(copy, have);
	if (copy && copy->state == MESSAGE_COPY_COMPLETE)
		return true; /* an older message, late */
	if (have->state != MESSAGE_COPY_PARTIAL) {
		copy = directory_copy_add(d, e, node, have->state);
		if (copy)
			directory_copy_pin(copy, have);
		return copy != NULL;
	}
	if (copy && copy->upstreams)
		return true; /* entered when it was booked */
	copy = directory_copy_add(d, e, node, MESSAGE_COPY_PARTIAL);
	if (!copy)
		return false;
	directory_have_upstream(d, copy, have->upstream);
	for (uint32_t i = 0; i < have->also_count; i++)
		directory_have_upstream(d, copy, have->also[i]);
	return true;
}

/* Whether the object has just become complete: then a client waits for this answer. */
static bool directory_have_fresh(const struct entry *e, uint32_t node,
				 const struct message_have *have)
{
	const struct copy *copy = directory_copy(e, node);

	return have->has_value && (have->create || (copy && copy->state == MESSAGE_COPY_CREATING));
}

/* Answers a HAVE. A value that a client of this very node put is on no other machine yet: the
 * answer may wait for the second copy. */
static void directory_have_answer(struct directory *d, struct entry *e, uint32_t node,
				  const struct message *answer, bool fresh)
{
	bool alone = directory_alone(d, e);

	if (alone && !fresh)
		d->out.alone(d->out.arg);
	if (!alone || !fresh || !d->out.keep(d->out.arg, e, node, answer))
		d->out.answer(d->out.arg, node, answer);
}

/* There is no room for the copy. For a pinned copy, or an only one, a cached copy is evicted. */
static void directory_have_full(struct directory *d, uint32_t node, const struct message *m,
				const struct entry *e)
{
	const struct message_have *have = &m->have;

	if (have->state != MESSAGE_COPY_PARTIAL &&
	    (have->pinned || !directory_standing(d, e, false)) && directory_evict(d))
		directory_reply(d, node, m->request, -EAGAIN, 0,
				"the directory makes room for another copy: try again");
	else
		directory_reply(d, node, m->request, -ENOSPC, 0,
				"the directory has no room for another copy: delete objects");
}

static void directory_have(struct directory *d, uint32_t node, const struct message *m)
{
	const struct message_have *have = &m->have;
	struct message answer = {.kind = MESSAGE_REPLY, .request = m->request};
	const struct tombstone *t;
	struct entry *e = directory_find(d, &have->id);
	bool fresh;

	t = directory_tombstone(d, &have->id);
	if (t && have->generation <= t->generation) {
		directory_reply(d, node, m->request, -ESTALE, t->generation,
				"the object was deleted");
		if (e && have->state == MESSAGE_COPY_COMPLETE) {
			directory_waiter_forget(d, e, node); /* a GET that was repeated */
			directory_settle(d, e);
		}
		return;
	}
	if (directory_beyond(d, node, have)) {
		d->out.beyond(d->out.arg, node);
		directory_reply(d, node, m->request, -ESTALE, d->horizon,
				"its node was away, and what was deleted then is forgotten");
		return;
	}
	if (!e)
		e = directory_make(d, &have->id);
	if (!e) {
		directory_reply(d, node, m->request, -ENOSPC, 0,
				"the directory is full: delete objects");
		return;
	}
	if (!directory_have_generation(d, node, m, e)) {
		directory_settle(d, e);
		return;
	}
	if (have->rate > 0)
		directory_have_rate(d, node, have, e);
	fresh = directory_have_fresh(e, node, have);
	if (!directory_have_copy(d, node, have, e)) {
		directory_have_full(d, node, m, e);
		directory_settle(d, e);
		return;
	}
	if (have->create && have->lease.number && !d->out.hold(d->out.arg, e, node, have)) {
		directory_reply(d, node, m->request, -ENOSPC, 0,
				"the directory has no room to note what leases hold: end some, or "
				"let objects go");
		directory_gone(d, directory_copy(e, node));
		directory_settle(d, e);
		return;
	}
	if (have->has_value && !directory_value_set(d, e, have->value))
		d->out.crowded(d->out.arg);
	directory_copy(e, node)->epoch = d->nodes[node].epoch;
	answer.reply.generation = e->generation;
	answer.reply.pinned = directory_pinned(d, e, node, have);
	directory_have_answer(d, e, node, &answer, fresh);
	directory_serve(d, e);
	directory_noted(d, e);
}

/* A copy is gone. The object's only value may now be on this machine. */
static void directory_copy_lost(struct directory *d, struct copy *copy)
{
	struct entry *e = copy->entry;
	bool pinned = copy->pinned;

	directory_copy_remove(d, copy);
	if (pinned && directory_alone(d, e))
		d->out.alone(d->out.arg);
}

void directory_gone(struct directory *d, struct copy *copy)
{
	if (copy->state == MESSAGE_COPY_CREATING) /* never completed: the object ends */
		directory_end(d, copy->entry, copy->node, NULL);
	else
		directory_copy_lost(d, copy);
}

/* DROP of an upstream: that holder does not feed the node any more. */
static void directory_left(struct directory *d, uint32_t node, const struct message_object *drop,
			   struct entry *e)
{
	struct copy *copy = directory_copy(e, node);
	const struct copy *upstream = directory_copy(e, drop->upstream - 1);

	if (!copy || !upstream || e->generation != drop->generation)
		return;
	directory_feed_end(copy, upstream);
	directory_serve(d, e);
}

static void directory_drop(struct directory *d, uint32_t node, const struct message *m)
{
	const struct message_object *drop = &m->object;
	struct entry *e = directory_find(d, &drop->id);
	struct copy *copy;

	directory_reply(d, node, m->request, 0, drop->generation, "");
	if (!e)
		return;
	if (drop->upstream != 0) {
		directory_left(d, node, drop, e);
		return;
	}
	/* The node's fetch has ended, too. A newer one repeats its GET. */
	directory_waiter_forget(d, e, node);
	copy = directory_copy(e, node);
	if (copy && (drop->generation == 0 || e->generation == drop->generation))
		directory_gone(d, copy);
	directory_serve(d, e);
	directory_settle(d, e);
}

void directory_take_tombstone(struct directory *d, const struct message_tombstone *b)
{
	struct entry *e = directory_find(d, &b->id);

	if (!directory_add_tombstone(d, b) || !e || e->generation == 0 ||
	    e->generation > b->generation)
		return;
	directory_end(d, e, MESSAGE_NODE_NONE, NULL);
	directory_settle(d, e);
}

/* ANNOUNCED: removes the node's copies that it has not announced in this epoch. */
static void directory_announced(struct directory *d, uint32_t node, const struct message *m)
{
	list_each(l, after, &d->nodes[node].copies)
	{
		struct copy *copy = list_item(l, struct copy, of_node);
		struct entry *e = copy->entry;

		if (copy->epoch >= m->announced.epoch)
			continue;
		directory_gone(d, copy);
		directory_serve(d, e);
		directory_settle(d, e);
	}
	directory_node_in_step(d, node);
	directory_reply(d, node, m->request, 0, 0, "");
}

static void directory_heard(struct directory *d, uint32_t node, uint64_t epoch)
{
	if (epoch > d->nodes[node].epoch)
		d->nodes[node].epoch = epoch;
}

void directory_message(struct directory *d, uint32_t node, const struct message *m)
{
	switch (m->kind) {
	case MESSAGE_HAVE:
		directory_heard(d, node, m->have.epoch);
		directory_have(d, node, m);
		break;
	case MESSAGE_GET:
		directory_heard(d, node, m->get.epoch);
		directory_get(d, node, m);
		break;
	case MESSAGE_ANNOUNCED:
		directory_announced(d, node, m);
		break;
	case MESSAGE_DROP:
		directory_drop(d, node, m);
		break;
	case MESSAGE_DELETE:
		directory_delete(d, node, m);
		break;
	case MESSAGE_STAT:
		directory_stat(d, node, m);
		break;
	case MESSAGE_LIST:
		directory_list(d, node, m);
		break;
	case MESSAGE_WATCH:
		watchers_message(d, node, m);
		break;
	default:
		break;
	}
}

static void directory_forget_copies(struct directory *d, uint32_t node, bool partial_only)
{
	list_each(l, after, &d->nodes[node].copies)
	{
		struct copy *copy = list_item(l, struct copy, of_node);
		struct entry *e = copy->entry;

		if (partial_only && copy->state != MESSAGE_COPY_PARTIAL)
			continue;
		directory_copy_lost(d, copy);
		directory_serve(d, e);
		directory_settle(d, e);
	}
}

/* The copies of the node count from now on, or do not: tells watchers. */
static void directory_node_noted(struct directory *d, uint32_t node)
{
	list_each(l, after, &d->nodes[node].copies)
	{
		directory_noted(d, list_item(l, struct copy, of_node)->entry);
	}
}

bool directory_node_up(struct directory *d, uint32_t node, uint64_t store_incarnation)
{
	struct directory_node *n = &d->nodes[node];

	if (n->store_incarnation != store_incarnation) {
		n->known = false;
		directory_forget_copies(d, node, false);
	}
	n->store_incarnation = store_incarnation;
	if (!n->up)
		directory_node_returns(d, node);
	n->up = true;
	n->dead = false;
	list_each(l, after, &n->copies)
	{
		directory_serve(d, list_item(l, struct copy, of_node)->entry);
	}
	directory_node_noted(d, node);
	return n->known;
}

void directory_node_known(struct directory *d, uint32_t node)
{
	d->nodes[node].known = true;
}

void directory_node_down(struct directory *d, uint32_t node)
{
	struct directory_node *n = &d->nodes[node];

	n->up = false;
	directory_node_away(d, node, false);
	list_each(i, next, &n->locates)
	{
		struct waiter *w = list_item(i, struct waiter, of_node);
		struct entry *e = w->entry;

		directory_locate_remove(d, w);
		directory_settle(d, e);
	}
	list_each(l, after, &n->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_node);
		struct entry *e = w->entry;

		directory_waiter_remove(d, w);
		directory_settle(d, e);
	}
	list_each(l, after, &n->copies)
	{
		struct copy *copy = list_item(l, struct copy, of_node);

		if (copy->state != MESSAGE_COPY_PARTIAL)
			continue;
		directory_feed(copy, NULL);
		directory_serve(d, copy->entry);
	}
	directory_node_doubt(d, node);
}

void directory_node_dead(struct directory *d, uint32_t node, bool dead)
{
	struct directory_node *n = &d->nodes[node];

	if (n->dead == dead)
		return;
	n->dead = dead;
	if (!dead) {
		directory_node_noted(d, node);
		return;
	}
	watchers_drop(d, node);
	directory_forget_copies(d, node, true);
	list_each(l, after, &n->copies)
	{
		directory_serve(d, list_item(l, struct copy, of_node)->entry);
	}
	directory_node_noted(d, node);
}

void directory_node_silent(struct directory *d, uint32_t node, bool silent)
{
	d->nodes[node].silent = silent;
}

void directory_node_doubt(struct directory *d, uint32_t node)
{
	if (!list_empty(&d->nodes[node].copies))
		d->nodes[node].known = false;
}

void directory_node_forget(struct directory *d, uint32_t node, bool gone)
{
	d->nodes[node].known = false;
	if (gone)
		watchers_drop(d, node);
	directory_forget_copies(d, node, !gone);
}

/* ---- what this shard is no longer responsible for -------------------------------------------- */

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
	e->watched = 0; /* it lives on elsewhere */
	if (!list_empty(&e->references))
		d->out.unhold(d->out.arg, e, UINT64_MAX, false);
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
