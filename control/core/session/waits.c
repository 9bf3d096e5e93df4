/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of clients whose answer comes later: each is a struct wait, with a timer and a list of
 * the object that it waits for. The other files of session start and end waits. Bounded per
 * session, per user and for all; must not know how an object comes here.
 */
#include <errno.h>
#include "core/base/text.h"
#include "core/lease/state.h"
#include "core/transfer/fetch.h"
#include "state.h"

/* Three quarters of all waits, and of all objects that may be awaited from other nodes. */
static uint32_t waits_share(const struct control *c)
{
	uint32_t least = c->config.waits_max < c->config.fetches_max ? c->config.waits_max
								     : c->config.fetches_max;

	return least - least / 4;
}

/* Whether the user of the session may have one more. */
static bool waits_user(const struct control *c, const struct session *s)
{
	return !s->user || s->client.daemons || s->user->waiting < waits_share(c);
}

bool waits_room(const struct control *c, const struct session *s)
{
	return s->waiting < SESSION_WAITS_MAX && waits_user(c, s) &&
	       c->session->sessions.waits.used < c->session->sessions.waits.capacity;
}

static void waits_count(struct session *s, uint32_t more)
{
	s->waiting += more;
	if (s->user)
		s->user->waiting += more;
}

/* The id of a client's request in the map: a CANCEL names it by session and number. */
static struct object_id waits_seq(struct control *c, const struct session *s, uint32_t seq)
{
	struct object_id id = {{0}};
	uint32_t session = pool_index(&c->session->sessions.pool, s);

	memcpy(id.bytes, &session, sizeof(session));
	memcpy(id.bytes + sizeof(session), &seq, sizeof(seq));
	return id;
}

static void waits_number(struct control *c, struct wait *w)
{
	struct object_id id = waits_seq(c, w->session, w->seq);

	w->numbered = w->seq != 0 && !idmap_find(&c->session->sessions.by_seq, &id);
	if (w->numbered)
		idmap_insert(&c->session->sessions.by_seq, &w->by_seq, &id);
}

struct wait *waits_start(struct control *c, struct session *s, const struct session_request *r)
{
	struct wait *w = waits_room(c, s) ? pool_take(&c->session->sessions.waits) : NULL;

	if (!w) {
		reply_error(c, s, r->op, r->seq, -EAGAIN,
			    waits_user(c, s)
				    ? "too many requests wait on this node: try again later"
				    : "as many requests of this user wait on this node as may: end "
				      "some, or try again later");
		return NULL;
	}
	waits_count(s, 1);
	w->number = ++c->session->sessions.waits_count;
	w->session = s;
	w->op = r->op;
	w->seq = r->seq;
	w->pin = r->pin;
	w->id = r->id;
	w->lease = r->op == SESSION_CREATE || r->op == SESSION_PUT ? r->generation : 0;
	list_append(&s->waits, &w->of_session);
	waits_number(c, w);
	return w;
}

struct wait *waits_of(struct control *c, void *item, uint64_t number)
{
	struct wait *w = item;

	return w->number == number ? w : NULL;
}

void waits_free(struct control *c, struct wait *w)
{
	if (w->lease) /* its result was reported before */
		holds_create_not(c, w->lease, &w->id, true);
	if (w->op == SESSION_WATCH)
		session_watch_end(c, w);
	if (w->excerpt)
		excerpt_end(c, w);
	if (w->op == SESSION_GROUP && w->call)
		session_group_left(c, w);
	if (w->call)
		rpc_cancel(c, w->call);
	timers_cancel(&c->timers, &w->timer);
	if (w->numbered)
		idmap_remove(&c->session->sessions.by_seq, &w->by_seq);
	w->numbered = false;
	if (w->session)
		waits_count(w->session, UINT32_MAX);
	else
		c->session->sessions.prefetching--;
	list_remove(&w->of_session);
	list_remove(&w->await.link);
	list_remove(&w->link);
	w->number = 0;
	pool_give(&c->session->sessions.waits, w);
}

void waits_end(struct control *c, struct wait *w, int32_t status, const char *text)
{
	struct session *s = w->session;
	struct session_reply r = {.op = w->op, .seq = w->seq, .status = status};

	if (!s) {
		broadcast_end(c, w, status, text);
		return;
	}
	for (size_t i = 0; text[i] && i < sizeof(r.text) - 1; i++)
		r.text[i] = text[i];
	waits_free(c, w);
	reply_send(c, s, &r);
}

static const char waits_no_dataplane[] = "this node's dataplane does not run: start it, or wait "
					 "longer";

/* The text of a wait without an answer: without a dataplane other nodes cannot be asked. */
static const char *waits_no_answer(const struct control *c)
{
	return c->attached ? "the directory does not answer: see 'sarissa status' for the nodes"
			   : waits_no_dataplane;
}

void waits_no_directory(struct control *c, struct wait *w)
{
	waits_end(c, w, -ETIMEDOUT, waits_no_answer(c));
}

void waits_no_call(struct control *c, struct wait *w)
{
	waits_end(c, w, -EAGAIN, "too many requests to other nodes: try again later");
}

static const char *waits_late(struct control *c, const struct wait *w)
{
	if (w->op == SESSION_REDUCE)
		return "the directory has not answered yet; the reduce goes on: ask how it ends";
	if (w->op == SESSION_REDUCED)
		return "the reduce has not ended yet: wait longer";
	if (w->op == SESSION_BROADCAST)
		return "some of the nodes do not have all of it yet: wait longer";
	if (w->op == SESSION_GROUP)
		return c->attached ? "the policy does not let the member go on yet, or the group's "
				     "owner does not answer: wait longer"
				   : waits_no_dataplane;
	if (w->await.nowait) /* no answer has come */
		return waits_no_answer(c);
	if (w->fetch && w->fetch->answered && !w->fetch->known && membership_minority(c))
		return "not known here, but at least half of the nodes are out of reach: see "
		       "'sarissa status'";
	if (w->fetch && w->fetch->answered && !w->fetch->known && *w->fetch->reason)
		return w->fetch->reason;
	if (w->fetch && w->fetch->answered && !w->fetch->known)
		return "nobody has put such an object yet: wait longer, or put it";
	return c->attached ? "the time is over: wait longer" : waits_no_dataplane;
}

/* The time is over, and a part of the object is here. */
static void waits_end_part(struct control *c, struct wait *w)
{
	const struct object_slot *image = &c->table->slot[objects_slot(c, w->object)];
	struct text why = {.length = 0};

	text_add_number(&why, atomic_load_explicit(&image->watermark, memory_order_acquire));
	text_add(&why, " of ");
	text_add_number(&why, image->size);
	text_add(&why, " bytes are here: wait longer");
	waits_end(c, w, -ETIMEDOUT, why.bytes);
}

static void waits_fire(struct control *c, struct timer *t)
{
	struct wait *w = list_item(t, struct wait, timer);
	struct fetch *f = w->fetch;
	struct text why;

	if (!w->session) { /* nobody asks for it any more */
		waits_free(c, w);
	} else if (w->op == SESSION_GROUP) {
		waits_end(c, w, -ETIMEDOUT, waits_late(c, w));
	} else if (f && f->lost) {
		fetch_lost_text(c, f, &why);
		waits_end(c, w, -ENODATA, why.bytes);
	} else if (f && fetch_waits_for_room(f)) {
		objects_no_room(c, -ENOSPC, f->room_bytes, &why);
		waits_end(c, w, -ENOSPC, why.bytes);
	} else if (w->excerpt && c->attached) {
		int32_t status = excerpt_late(c, w, &why);

		waits_end(c, w, status, why.bytes);
	} else if ((w->whole || w->op == SESSION_GET_RANGES) && w->object && c->attached) {
		waits_end_part(c, w);
	} else {
		waits_end(c, w, -ETIMEDOUT, waits_late(c, w));
	}
	if (f)
		fetch_unwanted(c, f);
}

/* Whether the wait can be cancelled: it only waits, and has started nothing elsewhere. */
static bool waits_cancellable(const struct wait *w)
{
	return w->op == SESSION_GET || w->op == SESSION_GET_RANGES || w->op == SESSION_WAIT ||
	       w->op == SESSION_REDUCED || w->op == SESSION_BROADCAST || w->op == SESSION_WATCH ||
	       w->op == SESSION_GROUP;
}

void session_cancel(struct control *c, struct session *s, const struct session_request *r)
{
	struct object_id id = waits_seq(c, s, (uint32_t)r->generation);
	struct idmap_node *found = idmap_find(&c->session->sessions.by_seq, &id);
	struct wait *w = found ? idmap_item(found, struct wait, by_seq) : NULL;
	struct fetch *f;

	if (!w || !waits_cancellable(w) || r->generation > UINT32_MAX) {
		reply_error(c, s, r->op, r->seq, -ENOENT, "no such request waits");
		return;
	}
	f = w->fetch;
	if (w->op == SESSION_GET_RANGES) /* its pin is free when it is answered */
		waits_end(c, w, -ECANCELED, "cancelled");
	else
		waits_free(c, w);
	if (f)
		fetch_unwanted(c, f);
	reply_error(c, s, r->op, r->seq, 0, "");
}

bool waits_ahead(struct wait *w)
{
	if (w->op != SESSION_GROUP)
		return false;
	list_remove(&w->await.link);
	w->fetch = NULL;
	return true;
}

void waits_timeout(struct control *c, struct wait *w, int64_t timeout_ns)
{
	if (timeout_ns < 0 || (uint64_t)timeout_ns > UINT64_MAX / 2)
		return;
	timers_set(&c->timers, &w->timer, c->now_ns + (uint64_t)timeout_ns, waits_fire);
}

/* A GET of a whole object waits on until all of it is readable. */
static void waits_whole(struct control *c, struct wait *w, uint32_t slot)
{
	list_remove(&w->await.link);
	w->fetch = NULL;
	w->object = objects_at(c, slot);
	w->watermark = c->table->slot[slot].size;
	list_append(&w->object->waits, &w->await.link);
	if (w->await.nowait)
		waits_end_part(c, w);
}

void waits_place(struct control *c, struct wait *w, uint32_t slot)
{
	struct session *s = w->session;
	uint16_t op = w->op;
	uint32_t seq = w->seq, pin = w->pin;

	if (!s) {
		broadcast_placed(c, w, slot);
		return;
	}
	if (w->whole && objects_incomplete(c, slot)) {
		waits_whole(c, w, slot);
		return;
	}
	waits_free(c, w);
	reply_place(c, s, op, seq, pin, slot);
}

void waits_check_object(struct control *c, struct object *o)
{
	uint32_t slot = objects_slot(c, o);
	const struct object_slot *image = &c->table->slot[slot];
	uint64_t ready = atomic_load_explicit(&image->watermark, memory_order_acquire);

	if (image->state == OBJECT_SPILLED)
		return; /* when it is back */
	list_each(l, after, &o->waits)
	{
		struct wait *w = list_item(l, struct wait, await.link);

		if ((w->op == SESSION_WAIT || w->op == SESSION_GET ||
		     w->op == SESSION_GET_RANGES) &&
		    (image->state == OBJECT_SEALED || w->watermark <= ready))
			waits_place(c, w, slot);
	}
}

void waits_fail_object(struct control *c, struct object *o, int32_t status, const char *why)
{
	seal_acked(c, o);
	list_each(l, after, &o->waits)
	{
		waits_end(c, list_item(l, struct wait, await.link), status, why);
	}
}

static void waits_poll_fire(struct control *c, struct timer *t)
{
	list_each(l, after, &c->session->sessions.polled)
	{
		struct object *o = list_item(l, struct wait, link)->object;
		uint64_t ready = atomic_load_explicit(&c->table->slot[objects_slot(c, o)].watermark,
						      memory_order_acquire);

		if (ready >= list_item(l, struct wait, link)->watermark)
			waits_place(c, list_item(l, struct wait, link), objects_slot(c, o));
	}
	if (!list_empty(&c->session->sessions.polled))
		timers_set(&c->timers, t, c->now_ns + c->config.poll_ns, waits_poll_fire);
}

void waits_poll(struct control *c, struct wait *w)
{
	list_append(&c->session->sessions.polled, &w->link);
	if (c->session->sessions.poll.position == 0)
		timers_set(&c->timers, &c->session->sessions.poll, c->now_ns + c->config.poll_ns,
			   waits_poll_fire);
}
