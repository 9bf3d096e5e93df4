/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BROADCAST of a client: asks each named node to fetch the object (PREFETCH). A node answers when
 * it has all of it; until then a live node is asked again. The client's wait ends with the last
 * node, or with the first that cannot. At an asked node, a wait without a session stands for the
 * request, first of the fetch, then of the object. It ends when PREFETCH was not repeated for as
 * long as a client waits for the directory.
 */
#include <errno.h>
#include "core/base/text.h"
#include "core/transfer/fetch.h"
#include "state.h"

/* ---- the requester -------------------------------------------------------------------------- */

static void broadcast_failed(struct control *c, struct wait *w, const struct node *n,
			     int32_t status, const char *why)
{
	struct text t = {.length = 0};

	text_add(&t, "node ");
	text_add_number(&t, n->number);
	text_add(&t, ": ");
	text_add(&t, why);
	waits_end(c, w, status, t.bytes);
}

static bool broadcast_answered(struct control *c, struct call *call, const struct message *answer);

static bool broadcast_ask(struct control *c, struct wait *w, struct node *n)
{
	struct message m = {.kind = MESSAGE_PREFETCH};
	struct call *call;

	if (!membership_live(n)) {
		broadcast_failed(c, w, n, -EHOSTUNREACH, "it is down: start it, or leave it out");
		return false;
	}
	m.object.id = w->id;
	m.object.replaced = w->await.nowait;
	call = rpc_start(c, n, &m, TABLE_SLOT_NONE, c->config.call_ns, broadcast_answered, w);
	if (!call) {
		waits_no_call(c, w);
		return false;
	}
	call->cookie = w->number;
	return true;
}

/* No answer: the object is still arriving there, or the node has died. */
static bool broadcast_answered(struct control *c, struct call *call, const struct message *answer)
{
	struct wait *w = waits_of(c, call->owner, call->cookie);

	if (!w)
		return false;
	if (answer && answer->reply.status == -EAGAIN)
		return true;
	if (!answer) {
		broadcast_ask(c, w, call->node);
		return false;
	}
	if (answer->reply.status)
		broadcast_failed(c, w, call->node, answer->reply.status, answer->reply.text);
	else if (--w->pending == 0)
		waits_end(c, w, 0, "");
	return false;
}

/* The i-th of the named nodes; NULL: there is no such node. */
static struct node *broadcast_node(struct control *c, const uint8_t *named, uint32_t count,
				   uint32_t i)
{
	uint32_t number = i;

	if (count > 0)
		memcpy(&number, named + sizeof(number) * i, sizeof(number));
	if (number >= c->config.nodes || peers_node(c, number)->member == MEMBER_NONE)
		return NULL;
	return peers_node(c, number);
}

void session_broadcast(struct control *c, struct session *s, const struct session_request *r,
		       const uint8_t *named)
{
	uint32_t count = (uint32_t)(r->size / sizeof(uint32_t)), asked = 0;
	struct wait *w = waits_start(c, s, r);

	if (!w)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (broadcast_node(c, named, count, i))
			continue;
		waits_end(c, w, -EINVAL, "no such node: see 'sarissa status'");
		return;
	}
	w->await.nowait = r->timeout_ns == 0;
	waits_timeout(c, w, w->await.nowait ? (int64_t)c->config.directory_ns : r->timeout_ns);
	w->pending = 1;
	for (uint32_t i = 0; i < (count ? count : c->config.nodes); i++) {
		struct node *n = broadcast_node(c, named, count, i);

		if (count == 0 && (!n || !membership_live(n)))
			continue;
		if (!broadcast_ask(c, w, n))
			return;
		asked++;
	}
	w->pending = asked;
	if (asked == 0)
		waits_end(c, w, -ENOTCONN, "this node is not one of the cluster yet: try again");
}

/* ---- the node that fetches ------------------------------------------------------------------ */

static void broadcast_answer(struct control *c, struct node *n, uint64_t request, int32_t status,
			     const char *text)
{
	struct message answer = {.kind = MESSAGE_REPLY, .request = request};

	answer.reply.status = status;
	for (size_t i = 0; text[i] && i < sizeof(answer.reply.text) - 1; i++)
		answer.reply.text[i] = text[i];
	peers_send(c, n, &answer);
}

void broadcast_end(struct control *c, struct wait *w, int32_t status, const char *text)
{
	struct node *n = peers_node(c, w->shard);
	uint64_t request = w->cursor;
	struct text t = {.length = 0};

	text_add(&t, text); /* it may be the fetch's */
	waits_free(c, w);
	/* an object that was put again is fetched again */
	broadcast_answer(c, n, request, status == -ERESTART ? -EAGAIN : status, t.bytes);
}

void broadcast_placed(struct control *c, struct wait *w, uint32_t slot)
{
	const struct object_slot *image = &c->table->slot[slot];

	if (image->state == OBJECT_SEALED || w->op == SESSION_WAIT) {
		broadcast_end(c, w, 0, "");
		return;
	}
	list_remove(&w->await.link);
	w->fetch = NULL;
	w->op = SESSION_WAIT;
	w->object = objects_at(c, slot);
	w->watermark = image->size;
	list_append(&w->object->waits, &w->await.link);
}

/* The wait of an earlier PREFETCH of that node for the object. */
static struct wait *broadcast_find(struct control *c, const struct node *n,
				   const struct object_id *id)
{
	list_each(l, after, &c->session->sessions.prefetches)
	{
		struct wait *w = list_item(l, struct wait, of_session);

		if (w->shard == n->number && object_id_equal(&w->id, id))
			return w;
	}
	return NULL;
}

static struct wait *broadcast_new(struct control *c, const struct node *n, const struct message *m)
{
	struct sessions *all = &c->session->sessions;
	struct wait *w = all->prefetching < PREFETCHES ? pool_take(&all->waits) : NULL;

	if (!w)
		return NULL;
	all->prefetching++;
	w->number = ++all->waits_count;
	w->op = SESSION_GET;
	w->id = m->object.id;
	w->shard = n->number;
	w->await.nowait = m->object.replaced;
	list_append(&all->prefetches, &w->of_session);
	return w;
}

static void broadcast_begin(struct control *c, struct wait *w)
{
	uint32_t slot = slots_find(c, &w->id);
	struct fetch *f;

	if (slot != TABLE_SLOT_NONE) {
		broadcast_placed(c, w, slot);
		return;
	}
	f = fetch_get(c, &w->id, !w->await.nowait);
	if (!f) {
		broadcast_end(c, w, -EAGAIN, "");
		return;
	}
	w->fetch = f;
	list_append(&f->waits, &w->await.link);
	fetch_answer_nowait(c, f);
}

void session_prefetch(struct control *c, struct node *n, const struct message *m)
{
	struct wait *w = broadcast_find(c, n, &m->object.id);
	bool begun = w != NULL;

	if (!c->table || !c->attached || (!w && !(w = broadcast_new(c, n, m)))) {
		broadcast_answer(c, n, m->request, -EAGAIN, "");
		return;
	}
	w->cursor = m->request;
	waits_timeout(c, w, (int64_t)c->config.directory_ns);
	if (!begun)
		broadcast_begin(c, w);
}
