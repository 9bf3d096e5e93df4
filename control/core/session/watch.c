/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * WATCH of a client: each shard owner holds one request of this node and answers it when it has
 * events. They are passed on to the client, and the next request acknowledges them. When other
 * nodes become owners, all owners get new requests; the client hears that it missed events once all
 * of them have answered. An owner without a request keeps its events, so a slow client fills
 * nothing here.
 */
#include <errno.h>
#include "core/base/text.h"
#include "state.h"

/* The owners may have most of the calls for others. */
enum { SESSION_WATCH_SHARE = 4 };

static bool watch_send(struct control *c, struct wait *w, const struct session_object *o)
{
	return reply_item(c, w, o, sizeof(*o));
}

static bool watch_missed(struct control *c, struct wait *w)
{
	struct session_object o = {.flags = SESSION_EVENT_MISSED * SESSION_OBJECT_EVENT};

	w->missed = false;
	return watch_send(c, w, &o);
}

static void watch_full(struct control *c, struct wait *w, const struct node *n)
{
	struct text t = {.length = 0};

	text_add(&t, "node ");
	text_add_number(&t, n->number);
	text_add(&t, " has no room for another watch: end some");
	waits_end(c, w, -ENOSPC, t.bytes);
}

/* An owner has answered for the first time. */
static bool watch_known(struct control *c, struct wait *w)
{
	if (w->pending > 0)
		w->pending--;
	return w->pending > 0 || !w->missed || watch_missed(c, w);
}

static bool watch_call_ended(struct control *c, struct call *call, const struct message *answer)
{
	struct wait *w = call->owner ? waits_of(c, call->owner, call->cookie) : NULL; /* STOP */
	struct message_watch *asked = &call->message.watch;
	bool room = true;

	if (!w || !answer)
		return false;
	if (answer->objects.watch == 0)
		return true; /* an answer that makes no sense: asks again */
	if (w->paused) {     /* asks for the same events again when the client has read */
		call->deferred = true;
		rpc_reuse(c, call, true);
		return true;
	}
	if (answer->objects.watch == MESSAGE_WATCH_FULL) {
		call->owner = NULL; /* it ends by itself */
		watch_full(c, w, call->node);
		return false;
	}
	for (uint32_t i = 0; i < answer->objects.count; i++)
		room = watch_send(c, w, &answer->objects.objects[i]);
	if (answer->objects.watch == MESSAGE_WATCH_MISSED)
		w->missed = true;
	if (asked->step != MESSAGE_WATCH_NEXT)
		room = watch_known(c, w) && room;
	else if (w->missed && w->pending == 0)
		room = watch_missed(c, w) && room;
	asked->step = MESSAGE_WATCH_NEXT;
	asked->next = answer->objects.next;
	asked->cursor = answer->objects.cursor;
	w->paused = !room;
	call->deferred = !room;
	rpc_reuse(c, call, !room);
	return true;
}

static struct call *watch_call(struct control *c, struct wait *w, struct node *n, uint32_t step)
{
	struct message m = {.kind = MESSAGE_WATCH};
	struct call *call;

	m.watch.step = step;
	m.watch.number = w->number;
	memcpy(m.watch.prefix, w->prefix, sizeof(m.watch.prefix));
	call = rpc_start(c, n, &m, TABLE_SLOT_NONE,
			 step == MESSAGE_WATCH_STOP ? c->config.call_ns : UINT64_MAX,
			 watch_call_ended, step == MESSAGE_WATCH_STOP ? NULL : w);
	if (call)
		call->cookie = w->number;
	return call;
}

/* The wait's call to that node, or NULL. */
static struct call *watch_find(const struct wait *w, struct node *n)
{
	list_each(l, after, &n->calls)
	{
		struct call *call = list_item(l, struct call, of_node);

		if (call->message.kind == MESSAGE_WATCH && call->owner == w &&
		    call->cookie == w->number)
			return call;
	}
	return NULL;
}

/* Sends a request to each owner. False: no call was free for one, and the wait has ended. */
static bool watch_owners(struct control *c, struct wait *w, uint32_t step)
{
	struct node *n;

	w->pending = 0;
	for (uint32_t i = 0; (n = ownership_next(c, &i)) != NULL; i++) {
		if (!watch_call(c, w, n, step)) {
			waits_no_call(c, w);
			return false;
		}
		w->pending++;
	}
	return true;
}

void session_watch(struct control *c, struct session *s, const struct session_request *r)
{
	struct sessions *all = &c->session->sessions;
	uint64_t calls = (all->watches + UINT64_C(1)) * c->cluster->members.live_count;
	bool full = all->watches >= SESSION_WATCHES ||
		    calls > c->config.calls_max / SESSION_WATCH_SHARE;
	struct wait *w;

	if (full) {
		reply_error(c, s, r->op, r->seq, -ENOSPC,
			    "too many watches on this node: end some, or watch a shorter prefix");
		return;
	}
	w = waits_start(c, s, r);
	if (!w)
		return;
	memcpy(w->prefix, r->name, sizeof(w->prefix));
	w->missed = r->flags & SESSION_FLAG_RETRY;
	all->watches++;
	list_append(&all->watching, &w->link);
	watch_owners(c, w, w->missed ? MESSAGE_WATCH_JOIN : MESSAGE_WATCH_BEGIN);
}

/* Ends the calls; stop: tells the owners. */
static void watch_leave(struct control *c, struct wait *w, bool stop)
{
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = peers_node(c, i);
		struct call *call = watch_find(w, n);

		if (!call)
			continue;
		rpc_cancel(c, call);
		if (stop && membership_live(n))
			watch_call(c, w, n, MESSAGE_WATCH_STOP); /* else it is dropped with us */
	}
}

void session_watch_end(struct control *c, struct wait *w)
{
	watch_leave(c, w, true);
	c->session->sessions.watches--;
}

void session_watch_resume(struct control *c, struct wait *w)
{
	w->paused = false;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct call *call = watch_find(w, peers_node(c, i));

		if (!call || !call->deferred)
			continue;
		call->deferred = false;
		rpc_reuse(c, call, false);
	}
}

void session_watch_view(struct control *c)
{
	struct sessions *all = &c->session->sessions;

	if (all->view == c->cluster->members.view)
		return;
	all->view = c->cluster->members.view;
	list_each(l, after, &all->watching)
	{
		struct wait *w = list_item(l, struct wait, link);

		watch_leave(c, w, false);
		w->missed = true;
		watch_owners(c, w, MESSAGE_WATCH_JOIN);
	}
}
