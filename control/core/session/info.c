/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LIST and STATUS. LIST asks the shard owners one after the other. An owner that does not answer is
 * named in the list, which goes on with the next one.
 */
#include <errno.h>
#include "core/transfer/fetch.h"
#include "core/transfer/serve.h"
#include "state.h"

enum { SESSION_LIST_BUSY = 3 };

static void session_list_ask(struct control *c, struct wait *w);

/* Tells the client that this node's part of the directory is not in the list. */
static bool session_list_lacks(struct control *c, struct wait *w, const struct node *n)
{
	struct session_object o;

	session_missing_item(n, &o);
	return reply_item(c, w, &o, sizeof(o));
}

/* The next page of this node's own shard: a turn is one page long. */
static void session_list_later(struct control *c, struct timer *t)
{
	struct wait *w = list_item(t, struct wait, timer);

	session_list_ask(c, w);
}

static void session_list_next(struct control *c, struct wait *w, bool room)
{
	w->paused = !room;
	if (room)
		session_list_ask(c, w);
}

static bool session_listed(struct control *c, struct call *call, const struct message *answer)
{
	struct wait *w = call->owner;
	bool room = true;

	w->call = NULL;
	if (!answer && !c->attached) {
		waits_no_directory(c, w);
		return false;
	}
	if (!answer) {
		w->cursor = 0;
		w->shard++;
		w->silent_ns += c->config.status_ns;
		session_list_next(c, w, session_list_lacks(c, w, call->node));
		return false;
	}
	for (uint32_t i = 0; i < answer->objects.count; i++) {
		struct session_object o = answer->objects.objects[i];

		session_localise(c, &o);
		room = reply_item(c, w, &o, sizeof(o));
	}
	w->cursor = answer->objects.cursor;
	if (w->cursor == 0)
		w->shard++;
	if (room && w->cursor && call->node == c->cluster->self)
		timers_set(&c->timers, &w->timer, c->now_ns, session_list_later);
	else
		session_list_next(c, w, room);
	return false;
}

/* How long to wait for this owner. A connected one may only be busy. All silent owners together get
 * a bounded time, so that the LIST ends before its client gives up. */
static uint64_t session_list_patience(const struct control *c, const struct wait *w,
				      const struct node *shard)
{
	uint64_t patience_ns = c->config.status_ns;

	if (shard == c->cluster->self)
		return c->config.directory_ns;
	if (shard->state == NODE_UP)
		patience_ns *= SESSION_LIST_BUSY;
	return w->silent_ns < c->config.directory_ns ? patience_ns : 0;
}

/* Names the nodes before the next owner that this node considers dead, though they may live.
 * Returns false when the client must read first. */
static bool session_list_dead(struct control *c, struct wait *w, const struct node *shard)
{
	uint32_t end = shard ? w->shard : c->config.nodes;

	while (w->named < end) {
		const struct node *n = peers_node(c, w->named++);

		if (!session_lacks(c, n) || session_list_lacks(c, w, n))
			continue;
		w->paused = true;
		return false;
	}
	if (shard) /* named only if it does not answer */
		w->named = w->shard + 1;
	return true;
}

/* Asks for the next page, or ends after the last one of the last shard. */
static void session_list_ask(struct control *c, struct wait *w)
{
	struct message m = {.kind = MESSAGE_LIST};
	struct node *shard;

	w->paused = false;
	shard = ownership_next(c, &w->shard);
	if (!session_list_dead(c, w, shard))
		return;
	if (!shard) {
		waits_end(c, w, 0, "");
		return;
	}
	m.list.cursor = w->cursor;
	memcpy(m.list.prefix, w->prefix, sizeof(m.list.prefix));
	w->call = rpc_start(c, shard, &m, TABLE_SLOT_NONE, session_list_patience(c, w, shard),
			    session_listed, w);
	if (!w->call)
		waits_no_call(c, w);
}

void session_list(struct control *c, struct session *s, const struct session_request *r)
{
	struct wait *w = waits_start(c, s, r);

	if (!w)
		return;
	memcpy(w->prefix, r->name, sizeof(w->prefix));
	session_list_ask(c, w);
}

void session_list_resume(struct control *c, struct session *s)
{
	list_each(l, after, &s->waits)
	{
		struct wait *w = list_item(l, struct wait, of_session);

		if (w->paused && w->op == SESSION_WATCH)
			session_watch_resume(c, w);
		else if (w->paused)
			session_list_ask(c, w);
	}
}

void session_describe_node(struct control *c, struct session_node *out)
{
	*out = (struct session_node){
		.node = c->config.node,
		.state = NODE_UP,
		.workers = c->workers,
		.incarnation = c->dataplane.incarnation,
		.addr = c->cluster->self->addr,
		.store_bytes = c->dataplane.store_bytes,
		.store_used =
			c->store->objects.space.used_bytes + c->flow->buffers.scratch.used_bytes,
		.objects = c->store->objects.count,
		.sessions = c->session->sessions.open,
		.arriving = fetches_feeding(c),
		.sending = serves_fed(c),
		.mtu = c->dataplane.mtu,
		.hugepages = c->dataplane.hugepages,
		.busy_poll = c->dataplane.busy_poll,
		.control_pid = c->config.pid,
		.dataplane_pid = c->attached ? c->dataplane.pid : 0,
	};
	memcpy(out->port, c->dataplane.rail[0].port, sizeof(out->port));
	out->port[sizeof(out->port) - 1] = '\0';
}

/* Describes a node without asking it. */
static void session_outline_node(struct control *c, const struct node *n, struct session_node *out)
{
	const struct conn *conn = NULL;

	*out = (struct session_node){.node = n->number,
				     .state = n->state,
				     .workers = n->workers,
				     .incarnation = n->incarnation,
				     .addr = n->addr};
	if (n->main && n->main->state == LINK_UP)
		conn = peers_conn(c, 0, n->main->conn);
	if (conn) {
		out->rtt_us = conn->rtt_us;
		out->mtu = conn->mtu;
	}
}

/* Keeps the latest plan; of one and the same, what was measured last. */
static void session_heard_plan(struct control_plan *heard, const struct control_plan *plan)
{
	if (plan &&
	    (plan->generation > heard->generation ||
	     (plan->generation == heard->generation && plan->measured_ns > heard->measured_ns)))
		*heard = *plan;
}

static bool session_node_answered(struct control *c, struct call *call,
				  const struct message *answer)
{
	struct wait *w = waits_of(c, call->owner, call->cookie);
	struct session_node known;

	if (!w)
		return false;
	session_outline_node(c, call->node, &known);
	if (answer) {
		uint32_t rtt_us = known.rtt_us;

		session_heard_plan(&c->session->sessions.heard, answer->plan);
		known = answer->node;
		known.node = call->node->number;
		known.addr = call->node->addr;
		known.state = NODE_UP;
		known.rtt_us = rtt_us;
		known.self = 0;
	} else if (known.state == NODE_UP) {
		known.state = NODE_DOWN; /* connected, but its control does not answer */
	}
	reply_item(c, w, &known, sizeof(known));
	if (--w->pending == 0)
		waits_end(c, w, 0, "");
	return false;
}

void session_status(struct control *c, struct session *s, const struct session_request *r)
{
	struct message m = {.kind = MESSAGE_STATUS, .status = {.plan = true}};
	struct wait *w = waits_start(c, s, r);
	struct session_node node;

	if (!w)
		return;
	session_describe_node(c, &node);
	node.self = 1;
	reply_item(c, w, &node, sizeof(node));
	w->pending = 1;
	for (uint32_t i = 0; i < c->config.nodes; i++) {
		struct node *n = peers_node(c, i);
		struct call *call;

		if (n == c->cluster->self || n->member == MEMBER_NONE)
			continue;
		call = membership_live(n) ? rpc_start(c, n, &m, TABLE_SLOT_NONE,
						      c->config.status_ns, session_node_answered, w)
					  : NULL;
		if (call) {
			call->cookie = w->number;
			w->pending++;
			continue;
		}
		session_outline_node(c, n, &node);
		reply_item(c, w, &node, sizeof(node));
	}
	if (--w->pending == 0)
		waits_end(c, w, 0, "");
}
