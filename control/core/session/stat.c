/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * STAT: one object, with its holders in pages. Only a holder knows how far its copy is: incomplete
 * holders of a page are asked before the page goes to the client.
 */
#include <errno.h>
#include "core/transfer/fetch.h"
#include "state.h"

struct stat_page {
	struct session_object object;
	struct wait *wait;
	uint64_t number; /* of the wait: it may end before */
	uint32_t pending;
};

void session_stat_carve(struct sessions *s, struct arena *a)
{
	pool_carve(&s->pages, a, sizeof(struct stat_page), SESSION_PAGES);
}

void session_localise(struct control *c, struct session_object *o)
{
	uint32_t slot = slots_find(c, &o->id);
	const struct object_slot *s;

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, o->generation))
		return;
	s = &c->table->slot[slot];
	o->local_watermark = atomic_load_explicit(&s->watermark, memory_order_acquire);
}

/* The progress of this node's own copy. False: there is none of this generation. */
static bool session_progress(struct control *c, const struct object_id *id, uint64_t generation,
			     struct session_holder *out)
{
	uint32_t slot = c->table ? slots_find(c, id) : TABLE_SLOT_NONE;
	const struct object_slot *s;
	const struct fetch *f;
	const uint64_t *map;

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, generation))
		return false;
	s = &c->table->slot[slot];
	f = objects_at(c, slot)->fetch;
	map = f ? ranges_map(c, f) : NULL;
	out->watermark = atomic_load_explicit(&s->watermark, memory_order_acquire);
	out->complete = s->state == OBJECT_SEALED || s->state == OBJECT_SPILLED;
	out->arrived = out->watermark;
	if (map) {
		uint32_t chunks = ranges_chunks(f);
		uint64_t there = chunks - chunks_missing(map, 0, chunks);

		out->arrived = there * f->chunk_bytes < s->size ? there * f->chunk_bytes : s->size;
	}
	return true;
}

void session_tell(struct control *c, struct node *n, const struct message *m)
{
	struct session_object *o = &c->session->sessions.described;
	struct message answer = {.kind = MESSAGE_OBJECTS, .request = m->request};

	*o = (struct session_object){.id = m->object.id, .generation = m->object.generation};
	o->holders = 1;
	o->holder[0].node = c->cluster->self->number;
	answer.objects.objects = o;
	answer.objects.count =
		session_progress(c, &m->object.id, m->object.generation, &o->holder[0]);
	peers_send(c, n, &answer);
}

static void session_stat_ask(struct control *c, struct wait *w);

static void session_stat_send(struct control *c, struct wait *w, const struct session_object *o)
{
	reply_item(c, w, o, sizeof(*o));
	if (w->cursor)
		session_stat_ask(c, w);
	else
		waits_end(c, w, 0, "");
}

static void session_page_done(struct control *c, struct stat_page *p)
{
	struct wait *w = waits_of(c, p->wait, p->number);

	if (--p->pending > 0)
		return;
	if (w)
		session_stat_send(c, w, &p->object);
	pool_give(&c->session->sessions.pages, p);
}

static bool session_stat_answered(struct control *c, struct call *call,
				  const struct message *answer)
{
	struct stat_page *p = call->owner;
	struct session_holder *h = &p->object.holder[call->cookie];

	if (answer && answer->objects.count == 1 && answer->objects.objects[0].holders == 1) {
		const struct session_holder *reported = &answer->objects.objects[0].holder[0];

		h->watermark =
			reported->watermark < p->object.size ? reported->watermark : p->object.size;
		h->arrived =
			reported->arrived < p->object.size ? reported->arrived : p->object.size;
	}
	session_page_done(c, p);
	return false;
}

static void session_page_ask(struct control *c, struct stat_page *p, uint32_t i)
{
	const struct session_object *o = &p->object;
	struct message m = {.kind = MESSAGE_STAT};
	struct node *n = peers_node(c, o->holder[i].node);
	struct call *call;

	if (!n || o->holder[i].complete)
		return;
	if (n == c->cluster->self) {
		session_progress(c, &o->id, o->generation, &p->object.holder[i]);
		return;
	}
	m.object.id = o->id;
	m.object.generation = o->generation;
	call = rpc_start(c, n, &m, TABLE_SLOT_NONE, c->config.status_ns, session_stat_answered, p);
	if (!call)
		return;
	call->cookie = i;
	p->pending++;
}

static bool session_stated(struct control *c, struct call *call, const struct message *answer)
{
	struct wait *w = call->owner;
	struct stat_page *p;
	struct session_object o;

	w->call = NULL;
	if (!answer) {
		session_unanswered(c, w, call->node);
		return false;
	}
	if (answer->objects.count != 1 ||
	    (w->generation && w->generation != answer->objects.objects[0].generation)) {
		/* the object does not exist, or is gone since the first page */
		if (w->generation)
			waits_end(c, w, 0, "");
		else
			session_absent(c, w, -ENOENT,
				       answer->objects.deleted
					       ? "no such object: it was deleted: put it again"
					       : "no such object: see the list of objects");
		return false;
	}
	o = answer->objects.objects[0];
	w->generation = o.generation;
	w->cursor = answer->objects.cursor > w->cursor ? answer->objects.cursor : 0;
	session_localise(c, &o);
	if (w->brief)
		o.holders = w->cursor = 0;
	p = pool_take(&c->session->sessions.pages);
	if (!p) { /* too many at a time: answers without the progress */
		session_stat_send(c, w, &o);
		return false;
	}
	*p = (struct stat_page){.object = o, .wait = w, .number = w->number, .pending = 1};
	for (uint32_t i = 0; i < o.holders; i++)
		session_page_ask(c, p, i);
	session_page_done(c, p);
	return false;
}

/* Asks for the next page of holders. */
static void session_stat_ask(struct control *c, struct wait *w)
{
	struct message m = {.kind = MESSAGE_STAT};

	m.object.id = w->id;
	m.object.cursor = w->cursor;
	w->call = rpc_start(c, ownership_shard(c, &w->id), &m, TABLE_SLOT_NONE,
			    c->config.directory_ns, session_stated, w);
	if (!w->call)
		waits_no_call(c, w);
}

void session_stat(struct control *c, struct session *s, const struct session_request *r)
{
	struct wait *w = waits_start(c, s, r);

	if (!w)
		return;
	w->brief = r->flags & SESSION_FLAG_BRIEF;
	session_stat_ask(c, w);
}
