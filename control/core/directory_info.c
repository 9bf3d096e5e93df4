/* SPDX-License-Identifier: BSD-3-Clause */
/* What the directory tells about its objects. */
#include "directory.h"

enum {
	HOLDERS = sizeof(((struct session_object *)0)->holder) /
		  sizeof(((struct session_object *)0)->holder[0])
};

static void directory_describe(const struct entry *e, struct session_object *out)
{
	memset(out, 0, sizeof(*out));
	out->id = e->by_id.id;
	out->generation = e->generation;
	out->size = e->size;
	out->local_watermark = UINT64_MAX;
	out->flags = e->has_value;
	memcpy(out->name, e->name, sizeof(out->name));
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);
		bool complete = copy->state == MESSAGE_COPY_COMPLETE;

		out->copies += complete;
		out->partial += !complete;
		if (out->holders == HOLDERS)
			continue;
		out->holder[out->holders].node = copy->node;
		out->holder[out->holders].complete = complete;
		out->holder[out->holders].watermark = complete ? e->size : 0;
		out->holder[out->holders].upstream =
			copy->upstreams ? (int32_t)copy->upstream[0].copy->node : -1;
		out->holder[out->holders++].sending = copy->sending;
	}
}

static void directory_page(struct directory *d, uint32_t node, uint64_t request, uint32_t count,
			   uint64_t cursor)
{
	struct message m = {.kind = MESSAGE_OBJECTS, .request = request};

	m.objects.cursor = cursor;
	m.objects.count = count;
	m.objects.objects = d->page;
	d->out.answer(d->out.arg, node, &m);
}

void directory_stat(struct directory *d, uint32_t node, const struct message *m)
{
	const struct entry *e = directory_find(d, &m->object.id);
	uint32_t count = e && e->generation != 0;

	if (count)
		directory_describe(e, &d->page[0]);
	directory_page(d, node, m->request, count, 0);
}

void directory_list(struct directory *d, uint32_t node, const struct message *m)
{
	uint64_t at = m->list.cursor;
	uint32_t count = 0;

	for (; at < d->entries.fresh && count < MESSAGE_OBJECTS_MAX; at++) {
		const struct entry *e = pool_at(&d->entries, (uint32_t)at);

		if (e->used && e->generation != 0)
			directory_describe(e, &d->page[count++]);
	}
	directory_page(d, node, m->request, count, at < d->entries.fresh ? at : 0);
}
