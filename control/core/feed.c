/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "state.h"

#define FEED_SOON_NS UINT64_C(500000) /* a holder that is not ready is asked again */

static void feed_fire(struct control *c, struct timer *t);

static void feed_timer(struct control *c, struct feed *d, uint64_t delay_ns)
{
	timers_set(&c->timers, &d->timer, c->now_ns + delay_ns, feed_fire);
}

static void feed_drop_edge(struct control *c, struct edge **e)
{
	if (*e)
		plan_drop_edge(c, *e);
	*e = NULL;
}

void feed_stop(struct control *c, struct feed *d)
{
	struct fetch *f = d->fetch;

	if (d->state == FEED_FREE)
		return;
	calls_cancel(c, d->call);
	timers_cancel(&c->timers, &d->timer);
	feed_drop_edge(c, &d->edge);
	feed_drop_edge(c, &d->old_edge);
	*d = (struct feed){.fetch = f};
}

void feed_failed(struct control *c, struct feed *d, uint32_t why)
{
	struct node *holder = d->holder;

	feed_stop(c, d);
	fetch_feed_failed(c, d->fetch, holder, why);
}

/* ---- LINK --------------------------------------------------------------------------------- */

/* The link that the stream will use, when it is up; else asks for what is missing. */
static struct link *feed_link(struct control *c, const struct feed *d)
{
	struct node *n = d->holder;
	struct link *l;

	if (!c->attached)
		return NULL;
	if (n->state != NODE_UP) { /* its number of workers comes with its HELLO */
		peers_link(c, n, 0, 0);
		return NULL;
	}
	l = peers_link(c, n, fetch_worker(&d->fetch->by_id.id, c->workers),
		       fetch_worker(&d->fetch->by_id.id, n->workers));
	return l && l->state == LINK_UP ? l : NULL;
}

/* ---- REQUEST and STREAM ------------------------------------------------------------------- */

static bool feed_requested(struct control *c, struct call *call, const struct message *answer)
{
	struct feed *d = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	d->call = NULL;
	if (d->state == FEED_STREAM && status == -EAGAIN)
		status = 0; /* it is about to learn of the connection's end, and so are we */
	if (status == 0) {
		d->state = FEED_STREAM;
		d->idle = 0;
		feed_drop_edge(c, &d->old_edge);
		fetch_fed(c, d->fetch, d, answer->reply.ready);
		feed_timer(c, d, c->config.stall_ns);
	} else if (status == -EAGAIN && d->attempts < 8) { /* it is not ready for us: soon */
		d->state = FEED_REQUEST;
		feed_timer(c, d, FEED_SOON_NS << d->attempts++);
	} else {
		feed_failed(c, d, status == -ENOENT ? MESSAGE_GET_ABSENT : MESSAGE_GET_UNREACHED);
	}
	return false;
}

static void feed_send(struct control *c, struct feed *d)
{
	struct message m = {.kind = MESSAGE_STREAM};
	struct fetch *f = d->fetch;

	m.stream.id = f->by_id.id;
	m.stream.generation = f->generation;
	m.stream.stream = d->edge->handle;
	m.stream.worker = fetch_worker(&f->by_id.id, c->workers);
	m.stream.chunk_bytes = f->chunk_bytes;
	m.stream.first = d->edge_first;
	m.stream.count = d->edge_end - d->edge_first;
	m.stream.check = d->state == FEED_STREAM;
	m.stream.replaces = d->old_edge ? d->old_edge->handle : 0;
	if (!m.stream.check)
		m.stream.skips =
			chunks_runs(fetch_map(c, f), d->edge_first, d->edge_end, m.stream.skip);
	if (f->fed_ns == 0) {
		f->fed_ns = c->now_ns;
		f->fed_chunks = chunks_missing(fetch_map(c, f), 0, fetch_chunks(f));
	}
	timers_cancel(&c->timers, &d->timer);
	d->call = calls_start(c, d->holder, &m, TABLE_SLOT_NONE, c->config.call_ns, feed_requested,
			      d);
	if (d->call == NULL)
		feed_timer(c, d, control_backoff(c, 1));
}

/* Sets an edge over the missing part of the range and has the holder send. */
static void feed_request(struct control *c, struct feed *d, uint32_t conn)
{
	struct stage *s = fetch_stage(c, d->fetch);
	uint32_t first;

	d->state = FEED_REQUEST;
	if (s == NULL) {
		feed_failed(c, d, MESSAGE_GET_FIRST);
		return;
	}
	first = chunks_after(fetch_map(c, d->fetch), d->first, d->end, 0);
	if (first == d->end) { /* all is here: the worker says so in a moment, or others go on */
		d->state = FEED_STREAM;
		feed_timer(c, d, c->config.stall_ns);
		return;
	}
	d->edge = plan_in(c, s, conn, first, d->end - first);
	if (d->edge == NULL) { /* tables full */
		feed_failed(c, d, MESSAGE_GET_FIRST);
		return;
	}
	d->edge->feed = d;
	d->edge_first = first;
	d->edge_end = d->end;
	feed_send(c, d);
}

void feed_linked(struct control *c, struct feed *d)
{
	struct link *l = d->state == FEED_LINK ? feed_link(c, d) : NULL;

	if (l)
		feed_request(c, d, l->conn);
}

void feed_start(struct control *c, struct feed *d, struct node *holder)
{
	d->holder = holder;
	d->state = FEED_LINK;
	d->began_ns = d->moved_ns = c->now_ns;
	d->fresh = true;
	feed_timer(c, d, c->config.link_ns);
	feed_linked(c, d);
}

void feed_assign(struct control *c, struct feed *d, uint32_t first, uint32_t end)
{
	const uint64_t *map = fetch_map(c, d->fetch);
	uint32_t from = map ? chunks_after(map, first, end, 0) : first, conn;

	d->first = first;
	d->end = end;
	d->missing = map ? chunks_missing(map, first, end) : end - first;
	d->looked_ns = c->now_ns;
	if (d->state <= FEED_LINK || map == NULL || from == end)
		return;
	/* What its stream is to bring next lies in the range: it goes on. */
	if (d->edge && end <= d->edge_end && from >= d->edge_first &&
	    chunks_missing(map, d->edge_first, from) == 0)
		return;
	if (d->edge == NULL) {
		d->state = FEED_LINK;
		feed_linked(c, d);
		return;
	}
	if (d->state == FEED_REQUEST || d->old_edge)
		return; /* one at a time: the next look sees to it */
	conn = d->edge->conn;
	calls_cancel(c, d->call);
	d->call = NULL;
	d->old_edge = d->edge;
	d->edge = NULL;
	feed_request(c, d, conn);
}

void feed_query(struct control *c, struct feed *d)
{
	if (d->state == FEED_STREAM && d->edge && d->call == NULL)
		feed_send(c, d);
}

/* Nothing has come for a while: does the holder still send? It answers the same request again. */
static void feed_stalled(struct control *c, struct feed *d)
{
	struct fetch *f = d->fetch;
	uint32_t missing = chunks_missing(fetch_map(c, f), 0, fetch_chunks(f));

	if (missing != d->stall_ready || d->edge == NULL) {
		d->stall_ready = missing;
		d->attempts = 0;
		feed_timer(c, d, c->config.stall_ns);
		return;
	}
	if (!fetch_wanted(c, f)) {
		fetch_fail(c, f, -ECANCELED, "it does not arrive, and nobody waits for it");
		return;
	}
	feed_send(c, d);
}

static void feed_fire(struct control *c, struct timer *t)
{
	struct feed *d = list_item(t, struct feed, timer);

	switch (d->state) {
	case FEED_LINK:
		feed_failed(c, d, MESSAGE_GET_UNREACHED);
		break;
	case FEED_REQUEST:
		feed_send(c, d);
		break;
	case FEED_STREAM:
		feed_stalled(c, d);
		break;
	default:
		break;
	}
}
