/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "state.h"

#define FETCH_SOON_NS UINT64_C(500000) /* a holder that is not ready is asked again */

static void fetch_ask(struct control *c, struct fetch *f);
static void fetch_connect(struct control *c, struct fetch *f);
static void fetch_request(struct control *c, struct fetch *f, struct link *l);
static void fetch_fire(struct control *c, struct timer *t);

void fetches_carve(struct fetches *f, struct arena *a, const struct control_config *config)
{
	pool_carve(&f->pool, a, sizeof(struct fetch), config->fetches_max);
	idmap_carve(&f->by_id, a, config->fetches_max);
}

static void fetch_timer(struct control *c, struct fetch *f, uint64_t delay_ns)
{
	timers_set(&c->timers, &f->timer, c->now_ns + delay_ns, fetch_fire);
}

struct fetch *fetch_get(struct control *c, const struct object_id *id)
{
	struct idmap_node *n = idmap_find(&c->fetches.by_id, id);
	struct fetch *f;

	if (n)
		return idmap_item(n, struct fetch, by_id);
	f = pool_take(&c->fetches.pool);
	if (f == NULL)
		return NULL;
	list_init(&f->waits);
	list_append(&c->fetches.active, &f->active);
	idmap_insert(&c->fetches.by_id, &f->by_id, id);
	f->slot = TABLE_SLOT_NONE;
	f->failed = MESSAGE_NODE_NONE;
	fetch_ask(c, f);
	return f;
}

uint32_t fetch_upstream(const struct fetch *f)
{
	return f->holder ? f->holder->number : MESSAGE_NODE_NONE;
}

/* Whether anybody on this node, or beyond it, still has an interest. */
static bool fetch_wanted(struct control *c, const struct fetch *f)
{
	if (!list_empty(&f->waits))
		return true;
	if (f->slot == TABLE_SLOT_NONE)
		return false;
	return !list_empty(&objects_at(c, f->slot)->waits) ||
	       !list_empty(&objects_at(c, f->slot)->serves) || objects_pinned(c, f->slot);
}

void fetch_unwanted(struct control *c, struct fetch *f)
{
	/* One that has its place goes on: a complete copy is of use to others. */
	if (f->slot == TABLE_SLOT_NONE && list_empty(&f->waits))
		fetch_fail(c, f, -ECANCELED, "");
}

/* Ends the waits that do not want to wait for an object that nobody knows. Returns true when none
 * is left. */
static bool fetch_refuse_nowait(struct control *c, struct fetch *f)
{
	list_each(l, after, &f->waits)
	{
		struct wait *w = list_item(l, struct wait, of_owner);

		if (w->nowait)
			waits_end(c, w, -ENOENT,
				  "no such object: wait for it with a timeout, or put it");
	}
	return list_empty(&f->waits);
}

void fetch_answer_nowait(struct control *c, struct fetch *f)
{
	if (f->state == FETCH_ASK && f->answered && !f->known && fetch_refuse_nowait(c, f))
		fetch_unwanted(c, f);
}

/* The directory knows nothing better than to wait. */
static bool fetch_told_to_wait(struct control *c, struct fetch *f, const struct message_got *got)
{
	f->known = got->what == MESSAGE_GOT_WAIT;
	f->answered = true;
	if (f->failed != MESSAGE_NODE_NONE) { /* it may have come back: soon it will do as well */
		f->failed = MESSAGE_NODE_NONE;
		f->why = MESSAGE_GET_FIRST;
		fetch_timer(c, f, control_backoff(c, f->attempts));
	}
	if (f->attempts > 0 && !fetch_wanted(c, f)) {
		f->call = NULL;
		fetch_fail(c, f, -ECANCELED, "nobody holds all of it any more");
		return false;
	}
	if (f->slot != TABLE_SLOT_NONE || f->known)
		return true;
	if (!fetch_refuse_nowait(c, f))
		return true;
	f->call = NULL; /* ends with this answer */
	fetch_fail(c, f, -ECANCELED, "");
	return false;
}

static bool fetch_got(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	const struct message_got *got = &answer->got; /* no deadline: never NULL */

	switch (got->what) {
	case MESSAGE_GOT_UNKNOWN:
	case MESSAGE_GOT_WAIT:
		return fetch_told_to_wait(c, f, got);
	case MESSAGE_GOT_HOLDER:
		f->call = NULL;
		if (fetch_place(c, f, got) == 0)
			fetch_connect(c, f);
		return false;
	case MESSAGE_GOT_VALUE:
		f->call = NULL;
		fetch_take_value(c, f, got);
		return false;
	default:
		f->call = NULL;
		fetch_fail(c, f, got->status, got->text);
		return false;
	}
}

static void fetch_ask(struct control *c, struct fetch *f)
{
	struct message m = {.kind = MESSAGE_GET};

	f->state = FETCH_ASK;
	f->holder = NULL;
	f->answered = false;
	m.get.id = f->by_id.id;
	m.get.generation = f->generation;
	m.get.failed = f->failed;
	m.get.why = f->why;
	timers_cancel(&c->timers, &f->timer);
	f->call = calls_start(c, control_shard(c, &f->by_id.id), &m, TABLE_SLOT_NONE, UINT64_MAX,
			      fetch_got, f);
	if (f->call == NULL) { /* too many: later */
		f->state = FETCH_REST;
		fetch_timer(c, f, control_backoff(c, 1));
	}
}

void fetch_rest(struct control *c, struct fetch *f)
{
	f->state = FETCH_REST;
	fetch_timer(c, f, control_backoff(c, f->attempts));
}

/* Gives the holder up and asks for another, at once the first time, then after growing pauses. */
static void fetch_failover(struct control *c, struct fetch *f, enum message_get_why why)
{
	c->counters.failovers++;
	if (f->call)
		calls_cancel(c, f->call);
	f->call = NULL;
	if (f->edge)
		plan_drop_edge(c, f->edge);
	f->edge = NULL;
	f->failed = f->holder ? f->holder->number : MESSAGE_NODE_NONE;
	f->why = f->holder ? why : MESSAGE_GET_FIRST;
	f->holder = NULL;
	if (f->attempts++ == 0) {
		fetch_ask(c, f);
		return;
	}
	fetch_rest(c, f);
}

/* ---- LINK -------------------------------------------------------------------------------- */

/* The link that the stream will use, when it is up; else asks for what is missing. */
static struct link *fetch_link(struct control *c, struct fetch *f)
{
	struct node *n = f->holder;
	struct link *l;

	if (n->state != NODE_UP) { /* its number of workers comes with its HELLO */
		peers_link(c, n, 0, 0);
		return NULL;
	}
	l = peers_link(c, n, fetch_worker(&f->by_id.id, c->workers),
		       fetch_worker(&f->by_id.id, n->workers));
	return l && l->state == LINK_UP ? l : NULL;
}

static void fetch_connect(struct control *c, struct fetch *f)
{
	struct link *l;

	f->state = FETCH_LINK;
	fetch_timer(c, f, c->config.link_ns);
	l = c->attached ? fetch_link(c, f) : NULL;
	if (l)
		fetch_request(c, f, l);
}

bool fetch_wants(struct control *c, const struct link *l)
{
	list_each(i, after, &c->fetches.active)
	{
		const struct fetch *f = list_item(i, struct fetch, active);

		if (f->state == FETCH_LINK && f->holder == l->node)
			return true;
	}
	return false;
}

void fetch_node_up(struct control *c, struct node *n)
{
	list_each(i, after, &c->fetches.active)
	{
		struct fetch *f = list_item(i, struct fetch, active);
		struct link *l;

		if (f->state != FETCH_LINK || f->holder != n)
			continue;
		l = fetch_link(c, f);
		if (l)
			fetch_request(c, f, l);
	}
}

/* ---- REQUEST and STREAM ------------------------------------------------------------------ */

static uint64_t fetch_watermark(struct control *c, const struct fetch *f)
{
	return atomic_load_explicit(&c->table->slot[f->slot].watermark, memory_order_acquire);
}

static bool fetch_requested(struct control *c, struct call *call, const struct message *answer)
{
	struct fetch *f = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	f->call = NULL;
	if (f->state == FETCH_STREAM && status == -EAGAIN)
		status = 0; /* it is about to learn of the connection's end, and so are we */
	if (status == 0) {
		f->state = FETCH_STREAM;
		fetch_timer(c, f, c->config.stall_ns);
	} else if (status == -EAGAIN && f->attempts < 8) { /* it is not ready for us: soon */
		f->state = FETCH_REQUEST;
		fetch_timer(c, f, FETCH_SOON_NS << f->attempts++);
	} else {
		fetch_failover(c, f,
			       status == -ENOENT ? MESSAGE_GET_ABSENT : MESSAGE_GET_UNREACHED);
	}
	return false;
}

static void fetch_send_request(struct control *c, struct fetch *f)
{
	struct message m = {.kind = MESSAGE_STREAM};
	uint64_t chunks = chunk_count(f->size, f->chunk_bytes);

	m.stream.id = f->by_id.id;
	m.stream.generation = f->generation;
	m.stream.stream = f->edge->handle;
	m.stream.worker = fetch_worker(&f->by_id.id, c->workers);
	m.stream.chunk_bytes = f->chunk_bytes;
	m.stream.first = f->first;
	m.stream.count = (uint32_t)(chunks - f->first);
	m.stream.check = f->state == FETCH_STREAM;
	timers_cancel(&c->timers, &f->timer);
	f->call = calls_start(c, f->holder, &m, TABLE_SLOT_NONE, c->config.call_ns, fetch_requested,
			      f);
	if (f->call == NULL)
		fetch_timer(c, f, control_backoff(c, 1));
}

static void fetch_request(struct control *c, struct fetch *f, struct link *l)
{
	struct stage *s = fetch_stage(c, f);
	uint64_t chunks = chunk_count(f->size, f->chunk_bytes);
	uint64_t watermark = fetch_watermark(c, f);

	f->state = FETCH_REQUEST;
	f->first = (uint32_t)(watermark / f->chunk_bytes);
	if (s && f->first < chunks && s->in == NULL)
		f->edge = plan_in(c, s, l->conn, f->first, (uint32_t)(chunks - f->first));
	if (s && f->first >= chunks) { /* all is here: the worker says so in a moment */
		f->state = FETCH_STREAM;
		fetch_timer(c, f, c->config.stall_ns);
		return;
	}
	if (f->edge == NULL) { /* tables full */
		f->holder = NULL;
		fetch_failover(c, f, MESSAGE_GET_FIRST);
		return;
	}
	f->edge->fetch = f;
	f->moved = watermark;
	fetch_send_request(c, f);
}

void fetch_edge_failed(struct control *c, struct fetch *f, enum reason why)
{
	fetch_failover(c, f, MESSAGE_GET_UNREACHED);
}

/* Nothing has moved for a while: does the holder still send? It answers the same request again. */
static void fetch_stalled(struct control *c, struct fetch *f)
{
	uint64_t watermark = fetch_watermark(c, f);

	if (watermark != f->moved || f->edge == NULL) {
		f->moved = watermark;
		f->attempts = 0;
		fetch_timer(c, f, c->config.stall_ns);
		return;
	}
	if (!fetch_wanted(c, f)) {
		fetch_fail(c, f, -ECANCELED, "it does not arrive, and nobody waits for it");
		return;
	}
	fetch_send_request(c, f);
}

static void fetch_fire(struct control *c, struct timer *t)
{
	struct fetch *f = list_item(t, struct fetch, timer);

	switch (f->state) {
	case FETCH_LINK:
		fetch_failover(c, f, MESSAGE_GET_UNREACHED);
		break;
	case FETCH_REQUEST:
		fetch_send_request(c, f);
		break;
	case FETCH_STREAM:
		fetch_stalled(c, f);
		break;
	case FETCH_REST:
		fetch_ask(c, f);
		break;
	case FETCH_ASK:
		calls_cancel(c, f->call);
		fetch_ask(c, f);
		break;
	default:
		break;
	}
}

void fetch_done(struct control *c, struct fetch *f)
{
	uint32_t slot = f->slot;
	struct stage *s = objects_at(c, slot)->stage;

	fetch_end(c, f);
	objects_at(c, slot)->fetch = NULL;
	objects_seal(c, slot, false);
	if (s)
		plan_settle_stage(c, s);
}
