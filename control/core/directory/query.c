/* SPDX-License-Identifier: BSD-3-Clause */
/* STAT and LIST at the directory shard: describes entries, in pages. */
#include "directory.h"

/* Whether a node has the object, or a reduce builds it. An entry may also only have waiters. */
static bool directory_shown(const struct entry *e)
{
	return e->generation != 0 || e->reserved != 0;
}

static void directory_describe(const struct directory *d, const struct entry *e,
			       struct session_object *out)
{
	struct directory_loss loss;

	memset(out, 0, sizeof(*out));
	out->id = e->by_id.id;
	out->generation = e->generation;
	out->size = e->size;
	out->local_watermark = UINT64_MAX;
	out->flags = (e->has_value ? SESSION_OBJECT_INLINE : 0) |
		     (e->reserved ? SESSION_OBJECT_REDUCED : 0);
	memcpy(out->name, e->name, sizeof(out->name));
	out->meta = e->meta;
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);
		bool complete = copy->state == MESSAGE_COPY_COMPLETE;

		out->copies += complete;
		out->partial += !complete;
	}
	directory_losses(d, e, &loss);
	out->copies -= loss.copies;
	if (!list_empty(&e->references))
		d->out.held(d->out.arg, e, out);
	out->lost = loss.copies;
	out->lost_node = loss.node;
	out->down_ms = loss.down_ms;
}

static void directory_holder(const struct directory *d, const struct copy *copy,
			     struct session_holder *out)
{
	uint64_t size = copy->entry->size;

	*out = (struct session_holder){.node = copy->node,
				       .complete = copy->state == MESSAGE_COPY_COMPLETE,
				       .sending = copy->sending,
				       .upstreams = copy->upstreams};
	out->watermark = out->arrived = out->complete ? size : 0;
	out->down_ms = d->out.down(d->out.arg, copy->node);
	for (uint32_t i = 0; i < copy->upstreams; i++)
		out->upstream[i] = copy->upstream[i].copy->node;
}

/* Describes holders from the cursor on. Returns the cursor of the next page; 0: none. */
static uint64_t directory_holders(const struct directory *d, const struct entry *e, uint64_t cursor,
				  struct session_object *out)
{
	uint64_t at = 0;

	list_each(l, after, &e->copies)
	{
		if (at++ < cursor)
			continue;
		if (out->holders == SESSION_HOLDERS)
			return at - 1;
		directory_holder(d, list_item(l, struct copy, of_entry),
				 &out->holder[out->holders++]);
	}
	return 0;
}

/* Whether nodes may hold the object, or any, that they have not announced to this owner yet. */
static bool directory_unheard(const struct directory *d, const struct object_id *id)
{
	return d->out.unheard && d->out.unheard(d->out.arg, id);
}

static void directory_page(struct directory *d, uint32_t node, uint64_t request, uint32_t count,
			   uint64_t cursor, bool deleted, bool unsettled)
{
	struct message m = {.kind = MESSAGE_OBJECTS, .request = request};

	m.objects.cursor = cursor;
	m.objects.count = count;
	m.objects.objects = d->page;
	m.objects.deleted = deleted;
	m.objects.unsettled = unsettled;
	d->out.answer(d->out.arg, node, &m);
}

void directory_stat(struct directory *d, uint32_t node, const struct message *m)
{
	const struct entry *e = directory_find(d, &m->object.id);
	uint32_t count = e && directory_shown(e);
	uint64_t next = 0;

	if (count) {
		directory_describe(d, e, &d->page[0]);
		next = directory_holders(d, e, m->object.cursor, &d->page[0]);
	}
	directory_page(d, node, m->request, count, next,
		       count == 0 && directory_was_deleted(d, &m->object.id),
		       directory_unheard(d, &m->object.id));
}

static bool directory_named(const struct entry *e, const char *prefix)
{
	return strncmp(e->name, prefix, strlen(prefix)) == 0;
}

uint64_t directory_scan_end(const struct directory *d, uint64_t at)
{
	uint64_t left = at < d->entries.fresh ? d->entries.fresh - at : 0;

	return at + (left < d->scan_max ? left : d->scan_max);
}

void directory_list(struct directory *d, uint32_t node, const struct message *m)
{
	uint64_t at = m->list.cursor, end = directory_scan_end(d, at);
	uint32_t count = 0;

	for (; at < end && count < MESSAGE_OBJECTS_MAX; at++) {
		const struct entry *e = pool_at(&d->entries, (uint32_t)at);

		if (e->used && directory_shown(e) && directory_named(e, m->list.prefix))
			directory_describe(d, e, &d->page[count++]);
	}
	directory_page(d, node, m->request, count, at < d->entries.fresh ? at : 0, false,
		       directory_unheard(d, NULL));
}
