/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that watch names, and the log of events that they read. */
#include <string.h>
#include "watchers.h"
#include "directory.h"

void watchers_carve(struct watchers *ws, struct arena *a)
{
	pool_carve(&ws->pool, a, sizeof(struct watcher), WATCHERS_MAX);
	ws->log = arena_carve(a, sizeof(*ws->log) * WATCHERS_EVENTS);
}

void watchers_init(struct watchers *ws)
{
	list_init(&ws->list);
	ws->number = 1;
}

static bool watchers_named(const struct watcher *w, const char *name)
{
	return strncmp(name, w->prefix, strlen(w->prefix)) == 0;
}

/* The state that watchers see: an enum session_event, or 0. Copies on dead nodes do not count. */
static uint32_t watchers_state(const struct directory *d, const struct entry *e)
{
	uint32_t state = 0;

	if (e->generation == 0)
		return 0;
	if (e->has_value)
		return SESSION_EVENT_COMPLETE;
	list_each(l, after, &e->copies)
	{
		const struct copy *copy = list_item(l, struct copy, of_entry);

		if (d->nodes[copy->node].dead)
			continue;
		if (copy->state == MESSAGE_COPY_COMPLETE)
			return SESSION_EVENT_COMPLETE;
		state = SESSION_EVENT_APPEARED;
	}
	return state;
}

static void watchers_describe(const struct entry *e, uint32_t event, struct session_object *out)
{
	*out = (struct session_object){.id = e->by_id.id,
				       .generation = e->generation,
				       .size = e->size,
				       .local_watermark = UINT64_MAX,
				       .flags = event * SESSION_OBJECT_EVENT};
	memcpy(out->name, e->name, sizeof(out->name));
}

static void watchers_answer(struct directory *d, struct watcher *w, uint32_t state, uint32_t count,
			    uint64_t next, uint64_t cursor)
{
	struct message m = {.kind = MESSAGE_OBJECTS, .request = w->request};

	m.objects.cursor = cursor;
	m.objects.count = count;
	m.objects.objects = d->page;
	m.objects.watch = state;
	m.objects.next = next;
	w->request = 0;
	d->out.answer(d->out.arg, w->node, &m);
}

/* Answers the watcher's request if there is an event for it; else the request waits. */
static void watchers_serve(struct directory *d, struct watcher *w)
{
	const struct watchers *ws = &d->watchers;
	uint64_t at = w->scanned;
	uint32_t count = 0;

	if (at > ws->number || ws->number - at > WATCHERS_EVENTS) {
		watchers_answer(d, w, MESSAGE_WATCH_MISSED, 0, ws->number, 0);
		return;
	}
	for (; at < ws->number && count < MESSAGE_OBJECTS_MAX; at++) {
		const struct session_object *event = &ws->log[at % WATCHERS_EVENTS];

		if (watchers_named(w, event->name))
			d->page[count++] = *event;
		else if (count == 0)
			w->scanned = at + 1;
	}
	if (count > 0)
		watchers_answer(d, w, MESSAGE_WATCH_EVENTS, count, at, 0);
}

static void watchers_log(struct directory *d, struct entry *e, uint32_t event)
{
	struct watchers *ws = &d->watchers;

	watchers_describe(e, event, &ws->log[ws->number % WATCHERS_EVENTS]);
	e->event = ws->number++;
	list_each(l, after, &ws->list)
	{
		struct watcher *w = list_item(l, struct watcher, link);

		if (w->request)
			watchers_serve(d, w);
	}
}

/* [G5.2] */
void watchers_look(struct directory *d, struct entry *e)
{
	uint32_t state = watchers_state(d, e);

	if (state == 0) {
		watchers_gone(d, e);
	} else if (state > e->watched) { /* a lost complete copy is no event */
		e->watched = state;
		watchers_log(d, e, state);
	}
}

void watchers_gone(struct directory *d, struct entry *e)
{
	if (e->watched == 0 || d->watchers.pool.used == 0)
		return;
	e->watched = 0;
	watchers_log(d, e, SESSION_EVENT_GONE);
}

/* Answers with a page of objects from the cursor on. Objects with newer events come with those. */
static void watchers_page(struct directory *d, struct watcher *w, uint64_t at)
{
	uint64_t end = directory_scan_end(d, at);
	uint32_t count = 0;

	for (; at < end && count < MESSAGE_OBJECTS_MAX; at++) {
		const struct entry *e = pool_at(&d->entries, (uint32_t)at);

		if (e->used && e->watched && e->event < w->began && watchers_named(w, e->name))
			watchers_describe(e, e->watched, &d->page[count++]);
	}
	watchers_answer(d, w, MESSAGE_WATCH_EVENTS, count, w->began,
			at < d->entries.fresh ? at : 0);
}

static struct watcher *watchers_find(struct directory *d, uint32_t node, uint64_t number)
{
	list_each(l, after, &d->watchers.list)
	{
		struct watcher *w = list_item(l, struct watcher, link);

		if (w->node == node && w->number == number)
			return w;
	}
	return NULL;
}

/* The first watcher: sets the state of all entries, which is not updated without watchers. */
static void watchers_first(struct directory *d)
{
	for (uint32_t i = 0; i < d->entries.fresh; i++) {
		struct entry *e = pool_at(&d->entries, i);

		if (e->used)
			e->watched = (uint8_t)watchers_state(d, e);
	}
}

static struct watcher *watchers_add(struct directory *d, uint32_t node, const struct message *m)
{
	struct watcher *w;

	if (d->watchers.pool.used == 0)
		watchers_first(d);
	w = pool_take(&d->watchers.pool);
	if (!w)
		return NULL;
	w->node = node;
	w->number = m->watch.number;
	memcpy(w->prefix, m->watch.prefix, sizeof(w->prefix));
	list_append(&d->watchers.list, &w->link);
	return w;
}

static void watchers_remove(struct directory *d, struct watcher *w)
{
	list_remove(&w->link);
	pool_give(&d->watchers.pool, w);
}

/* Answers a request that has no watcher. */
static void watchers_refuse(struct directory *d, uint32_t node, const struct message *m,
			    uint32_t state)
{
	struct watcher none = {.node = node, .request = m->request};

	watchers_answer(d, &none, state, 0, d->watchers.number, 0);
}

void watchers_message(struct directory *d, uint32_t node, const struct message *m)
{
	const struct message_watch *r = &m->watch;
	struct watcher *w = watchers_find(d, node, r->number);
	bool known = w != NULL;

	if (r->step == MESSAGE_WATCH_STOP) {
		if (w)
			watchers_remove(d, w);
		watchers_refuse(d, node, m, MESSAGE_WATCH_EVENTS);
		return;
	}
	if (!w && !(w = watchers_add(d, node, m))) {
		watchers_refuse(d, node, m, MESSAGE_WATCH_FULL);
		return;
	}
	w->request = m->request;
	if (r->step != MESSAGE_WATCH_NEXT || !known) {
		w->began = w->next = w->scanned = d->watchers.number;
	} else if (r->next != w->next) {
		w->next = w->scanned = r->next;
	}
	if (r->step == MESSAGE_WATCH_BEGIN)
		watchers_page(d, w, 0);
	else if (r->step == MESSAGE_WATCH_JOIN)
		watchers_answer(d, w, MESSAGE_WATCH_EVENTS, 0, w->next, 0);
	else if (!known)
		watchers_answer(d, w, MESSAGE_WATCH_MISSED, 0, w->next, 0);
	else if (r->cursor)
		watchers_page(d, w, r->cursor);
	else
		watchers_serve(d, w);
}

void watchers_drop(struct directory *d, uint32_t node)
{
	list_each(l, after, &d->watchers.list)
	{
		struct watcher *w = list_item(l, struct watcher, link);

		if (w->node == node)
			watchers_remove(d, w);
	}
}
