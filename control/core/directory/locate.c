/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * * What a coordinator needs of the directory: where sources are (LOCATE), and a reserved id for
 * the target. Called by matching.c and the coordinator.
 */
#include <assert.h>
#include <errno.h>
#include "directory.h"
#include "internal/reduce.h"
#include "internal/reduce_kernel.h"

void directory_locate_remove(struct directory *d, struct waiter *w)
{
	list_remove(&w->of_entry);
	list_remove(&w->of_node);
	pool_give(&d->locates, w);
}

/* The least used original or complete copy on a connected node. If the answer may carry the value
 * only a complete copy will do, as its HAVE brings the value here. */
static const struct copy *directory_locate_choose(const struct directory *d, const struct entry *e,
						  const struct waiter *w)
{
	bool small = e->size <= w->value_max;
	const struct copy *best = NULL;

	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (copy->state == MESSAGE_COPY_PARTIAL || copy->node == w->failed ||
		    (small && copy->state != MESSAGE_COPY_COMPLETE) || !directory_can_send(d, copy))
			continue;
		if (!best || copy->sending < best->sending)
			best = copy;
	}
	return best;
}

/* Sources that are added up here are of one kind; otherwise the coordinator looks at each one. */
static bool directory_same_meta(const struct object_meta *a, const struct object_meta *b)
{
	return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* Replaces the value by the sum of all sources of the LOCATE, if all values are here. */
static void directory_locate_add(struct directory *d, const struct message_get *get,
				 struct message_got *got)
{
	if (got->value_bytes == 0 || got->value_bytes % reduce_dtype_bytes(get->dtype))
		return;
	memcpy(d->sum, got->value, got->value_bytes);
	for (uint32_t i = 0; i < get->others_count; i++) {
		const struct entry *e = directory_find(d, &get->others[i]);

		if (!e || !e->has_value || e->size != got->size ||
		    !directory_same_meta(&e->meta, &got->meta))
			return;
		reduce_combine(get->op, get->dtype, d->sum, directory_value(d, e),
			       got->value_bytes);
	}
	got->value = d->sum;
	got->others = get->others_count;
}

/* get: the LOCATE, if it is being answered at once; else NULL. */
static bool directory_locate_answer(struct directory *d, struct entry *e, const struct waiter *w,
				    const struct message_get *get)
{
	const struct copy *copy = directory_locate_choose(d, e, w);
	bool value = e->has_value && (e->size <= w->value_max || !copy);
	struct message m;

	if (!copy && !value)
		return false;
	directory_got(e, w->request, value ? MESSAGE_GOT_VALUE : MESSAGE_GOT_HOLDER, &m);
	if (copy)
		m.got.holder = copy->node;
	if (value) {
		m.got.value_bytes = (uint32_t)e->size;
		m.got.value = directory_value(d, e);
		if (get && get->others_count > 0)
			directory_locate_add(d, get, &m.got);
	}
	d->out.answer(d->out.arg, w->node, &m);
	return true;
}

void directory_locate_serve(struct directory *d, struct entry *e)
{
	list_each(l, after, &e->locates)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		if (directory_locate_answer(d, e, w, NULL))
			directory_locate_remove(d, w);
	}
}

static struct waiter *directory_locate_find(struct directory *d, struct entry *e, uint32_t node,
					    uint64_t request)
{
	struct waiter *w;

	list_each(l, after, &e->locates)
	{
		w = list_item(l, struct waiter, of_entry);
		if (w->node == node && w->request == request)
			return w;
	}
	w = pool_take(&d->locates);
	if (!w)
		return NULL;
	w->entry = e;
	w->node = node;
	w->request = request;
	list_append(&e->locates, &w->of_entry);
	list_append(&d->nodes[node].locates, &w->of_node);
	return w;
}

void directory_locate(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e = directory_make(d, &m->get.id);
	struct waiter *w = e ? directory_locate_find(d, e, node, m->request) : NULL;
	struct message answer;

	if (!w) {
		directory_get_full(d, node, m->request, &m->get.id);
		if (e)
			directory_settle(d, e);
		return;
	}
	/* a failure with another generation does not count */
	w->failed = m->get.generation == e->generation ? m->get.failed : MESSAGE_NODE_NONE;
	w->value_max = m->get.value_max;
	if (m->get.failed < d->nodes_count)
		d->out.suspect(d->out.arg, m->get.failed);
	if (directory_locate_answer(d, e, w, &m->get)) {
		directory_locate_remove(d, w);
		directory_settle(d, e);
		return;
	}
	directory_got(e, m->request, e->generation ? MESSAGE_GOT_WAIT : MESSAGE_GOT_UNKNOWN,
		      &answer);
	if (d->out.answer(d->out.arg, node, &answer))
		return;
	directory_locate_remove(d, w); /* could not be told "wait": the requester repeats the LOCATE
					* if it still needs an answer */
	directory_settle(d, e);
}

void directory_locate_forget(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e = directory_find(d, &m->get.id);

	directory_get_failed(d, node, m->request, &m->get.id, -ECANCELED, "");
	if (!e)
		return;
	list_each(l, after, &e->locates)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		if (w->node == node && w->request == m->get.generation)
			directory_locate_remove(d, w);
	}
	directory_settle(d, e);
}

/* ---- an id that is kept for one generation -------------------------------------------------- */

/* Forgets the copies on dead nodes, without removing them there. If such a holder comes back before
 * the result is decided it announces its copy (directory_node_doubt), and reduce_is_another
 * recognises the earlier object. */
static void directory_part_with(struct directory *d, struct entry *e)
{
	list_each(l, after, &e->copies)
	{
		struct copy *copy = list_item(l, struct copy, of_entry);

		if (!d->nodes[copy->node].up)
			directory_copy_remove(d, copy);
	}
}

void directory_reserve_for(struct directory *d, const struct object_id *id, uint64_t generation)
{
	struct entry *e = directory_find(d, id);

	assert(e && e->reserved != 0);
	e->reserved = generation; /* set first: directory_end then replaces, it does not delete */
	if (e->generation != 0 && e->generation != generation)
		directory_end(d, e, MESSAGE_NODE_NONE, NULL);
}

void directory_reserve_reset(struct directory *d, const struct object_id *id)
{
	directory_reserve_for(d, id, UINT64_MAX);
}

int directory_reserve(struct directory *d, const struct object_id *id, uint64_t *before)
{
	struct entry *e = directory_make(d, id);
	int error;

	if (!e)
		return -ENOSPC;
	error = directory_taken(d, e);
	if (error)
		return error;
	*before = e->generation;
	directory_part_with(d, e);
	e->reserved = UINT64_MAX;
	directory_reserve_reset(d, id);
	return 0;
}

void directory_waiters_take(struct directory *d, const struct object_id *id,
			    void (*take)(void *arg, uint32_t node, uint64_t request), void *arg)
{
	struct entry *e = directory_find(d, id);

	if (!e)
		return;
	list_each(l, after, &e->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);

		take(arg, w->node, w->request);
		directory_waiter_remove(d, w);
	}
}

bool directory_has_complete(const struct directory *d, const struct object_id *id)
{
	const struct entry *e = directory_find(d, id);

	if (!e)
		return false;
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (copy->state == MESSAGE_COPY_COMPLETE && d->nodes[copy->node].up)
			return true;
	}
	return false;
}

void directory_unreserve(struct directory *d, const struct object_id *id)
{
	struct entry *e = directory_find(d, id);

	if (!e || e->reserved == 0)
		return;
	e->reserved = 0;
	directory_settle(d, e);
}
