/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast: who gets an object from whom. */
#include <errno.h>
#include "directory.h"
#include "text.h"

enum choice {
	CHOICE_FOUND,
	CHOICE_BUSY,	 /* nobody has a free slot: later askers need not try */
	CHOICE_EXCLUDED, /* somebody has one, but not for this asker */
};

/* Whether a's bytes come, over any number of hops, from the asker. */
static bool directory_depends(const struct copy *a, uint32_t asker)
{
	for (; a; a = a->upstream)
		if (a->node == asker)
			return true;
	return false;
}

/* Smaller is better: origins and complete copies first, then the least used. */
static uint32_t directory_rank(const struct copy *copy)
{
	return (copy->state == MESSAGE_COPY_PARTIAL) << 16 | copy->sending;
}

static enum choice directory_choose(const struct directory *d, const struct entry *e,
				    const struct waiter *w, struct copy **out)
{
	uint32_t slots = e->size >= d->large_bytes ? d->slots_large : d->slots_small;
	struct copy *best = NULL;
	bool free = false;

	list_each(l, after, &e->copies)
	{
		struct copy *copy = list_item(l, struct copy, of_entry);

		if (!d->nodes[copy->node].up || copy->sending >= slots)
			continue;
		if (e->size == 0 && copy->state != MESSAGE_COPY_COMPLETE)
			continue; /* nothing would ever arrive to tell that it was sealed */
		free = true;
		if (copy->node == w->failed || directory_depends(copy, w->node))
			continue;
		if (best == NULL || directory_rank(copy) < directory_rank(best))
			best = copy;
	}
	*out = best;
	return best ? CHOICE_FOUND : free ? CHOICE_EXCLUDED : CHOICE_BUSY;
}

static void directory_got(const struct entry *e, uint64_t request, uint32_t what, struct message *m)
{
	*m = (struct message){.kind = MESSAGE_GOT, .request = request};
	m->got.id = e->by_id.id;
	m->got.generation = e->generation;
	m->got.size = e->size;
	m->got.chunk_bytes = e->chunk_bytes;
	m->got.what = what;
	m->got.holder = MESSAGE_NODE_NONE;
	memcpy(m->got.name, e->name, sizeof(e->name));
}

void directory_waiter_remove(struct directory *d, struct waiter *w)
{
	list_remove(&w->of_entry);
	list_remove(&w->of_node);
	pool_give(&d->waiters, w);
}

static bool directory_answer_value(struct directory *d, struct entry *e, struct waiter *w)
{
	struct message m;

	if (directory_copy_add(d, e, w->node, MESSAGE_COPY_COMPLETE) == NULL)
		return false;
	directory_got(e, w->request, MESSAGE_GOT_VALUE, &m);
	m.got.value_bytes = (uint32_t)e->size;
	if (e->value)
		m.got.value = d->inline_memory + allocator_offset(&d->inline_space, e->value);
	d->out.answer(d->out.arg, w->node, &m);
	return true;
}

static void directory_answer_holder(struct directory *d, const struct copy *copy)
{
	const struct entry *e = copy->entry;
	uint32_t holder = copy->upstream->node;
	struct message m;

	directory_got(e, copy->request, MESSAGE_GOT_HOLDER, &m);
	m.got.holder = holder;
	m.got.holder_incarnation = d->nodes[holder].store_incarnation;
	d->out.answer(d->out.arg, copy->node, &m);
}

static bool directory_book(struct directory *d, struct entry *e, struct waiter *w,
			   struct copy *holder)
{
	struct copy *copy = directory_copy_add(d, e, w->node, MESSAGE_COPY_PARTIAL);

	if (copy == NULL)
		return false;
	directory_feed(copy, holder);
	copy->request = w->request;
	directory_answer_holder(d, copy);
	return true;
}

static void directory_get_failed(struct directory *d, uint32_t node, uint64_t request,
				 const struct object_id *id)
{
	static const char text[] = "the directory is full: delete objects or get fewer at a time";
	struct message answer = {.kind = MESSAGE_GOT, .request = request};

	answer.got.id = *id;
	answer.got.what = MESSAGE_GOT_FAILED;
	answer.got.holder = MESSAGE_NODE_NONE;
	answer.got.status = -ENOSPC;
	memcpy(answer.got.text, text, sizeof(text));
	d->out.answer(d->out.arg, node, &answer);
}

void directory_serve(struct directory *d, struct entry *e)
{
	list_each(l, after, &e->waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_entry);
		enum choice choice = CHOICE_FOUND;
		struct copy *holder = NULL;
		bool room;

		if (!e->has_value)
			choice = directory_choose(d, e, w, &holder);
		if (choice == CHOICE_BUSY)
			break;
		if (choice == CHOICE_EXCLUDED)
			continue;
		room = holder ? directory_book(d, e, w, holder) : directory_answer_value(d, e, w);
		if (!room)
			directory_get_failed(d, w->node, w->request, &e->by_id.id);
		directory_waiter_remove(d, w);
	}
}

static struct waiter *directory_waiter_find(const struct directory *d, const struct entry *e,
					    uint32_t node)
{
	list_each(l, after, &d->nodes[node].waiters)
	{
		struct waiter *w = list_item(l, struct waiter, of_node);

		if (w->entry == e)
			return w;
	}
	return NULL;
}

static struct waiter *directory_waiter(struct directory *d, struct entry *e, uint32_t node)
{
	struct waiter *w = directory_waiter_find(d, e, node);

	if (w)
		return w;
	w = pool_take(&d->waiters);
	if (w == NULL)
		return NULL;
	w->entry = e;
	w->node = node;
	list_append(&e->waiters, &w->of_entry);
	list_append(&d->nodes[node].waiters, &w->of_node);
	return w;
}

/* What the asker had before does not count any more: it asks. */
static void directory_get_reset(struct directory *d, struct entry *e, uint32_t node,
				const struct message_get *get)
{
	struct copy *own = directory_copy(e, node), *failed;

	if (get->why == MESSAGE_GET_ABSENT && get->failed != node) {
		failed = directory_copy(e, get->failed);
		if (failed)
			directory_copy_remove(d, failed);
	}
	if (get->why == MESSAGE_GET_UNREACHED && get->failed < d->nodes_count)
		d->out.suspect(d->out.arg, get->failed);
	if (own == NULL)
		return;
	if (own->state == MESSAGE_COPY_PARTIAL && get->generation == e->generation)
		directory_feed(own, NULL); /* others may depend on what it has */
	else
		directory_copy_remove(d, own);
}

/* Its booking was made and the answer got lost. */
static bool directory_get_again(struct directory *d, const struct entry *e, uint32_t node,
				const struct message *m)
{
	const struct copy *own = directory_copy(e, node);

	if (own == NULL || own->upstream == NULL || own->request != m->request)
		return false;
	directory_answer_holder(d, own);
	return true;
}

void directory_get(struct directory *d, uint32_t node, const struct message *m)
{
	struct entry *e = directory_make(d, &m->get.id);
	struct message answer;
	struct waiter *w;

	if (e == NULL) {
		directory_get_failed(d, node, m->request, &m->get.id);
		return;
	}
	if (directory_get_again(d, e, node, m))
		return;
	directory_get_reset(d, e, node, &m->get);
	if (list_empty(&e->copies) && !e->has_value)
		e->generation = 0;
	w = directory_waiter(d, e, node);
	if (w == NULL) {
		directory_get_failed(d, node, m->request, &m->get.id);
		directory_settle(d, e);
		return;
	}
	w->request = m->request;
	w->failed = m->get.failed;
	directory_serve(d, e);
	if (directory_waiter_find(d, e, node) == NULL)
		return;
	directory_got(e, m->request, e->generation ? MESSAGE_GOT_WAIT : MESSAGE_GOT_UNKNOWN,
		      &answer);
	d->out.answer(d->out.arg, node, &answer);
}
