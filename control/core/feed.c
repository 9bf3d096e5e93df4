/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "state.h"

#define FEED_SOON_NS   UINT64_C(500000)	   /* a holder that is not ready is asked again */
#define FEED_REPAIR_NS UINT64_C(100000000) /* after a holder was lost looks are frequent */
#define FEED_NEXT_NS   UINT64_C(1000000)

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

	fetch_note_lost(c, d->fetch, d);
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

static void feed_look_later(struct control *c, struct feed *d)
{
	const struct fetch *f = d->fetch;
	uint64_t delay = watch_delay(&c->watches, &d->watch, c->now_ns), given_up;

	if (d->state == FEED_LINK) {
		given_up = d->linking_ns + c->config.link_ns;
		if (c->now_ns + delay > given_up)
			delay = given_up > c->now_ns ? given_up - c->now_ns : 0;
	}
	if (f->repair_ns != 0 && c->now_ns - f->repair_ns < FEED_REPAIR_NS && delay > FEED_NEXT_NS)
		delay = FEED_NEXT_NS;
	feed_timer(c, d, delay);
}

static bool feed_requested(struct control *c, struct call *call, const struct message *answer)
{
	struct feed *d = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;
	bool spoke = answer && d->silent;

	d->call = NULL;
	if (answer) {
		watch_answered(&d->watch, c->now_ns);
		d->silent = false;
	}
	if (d->state == FEED_STREAM && status == -EAGAIN)
		status = 0; /* it is about to learn of the connection's end, and so are we */
	if (status == 0) {
		d->state = FEED_STREAM;
		d->idle = 0;
		feed_drop_edge(c, &d->old_edge);
		feed_look_later(c, d);
		fetch_fed(c, d->fetch, d, answer->reply.ready);
		if (spoke)
			fetch_speaks(c, d->fetch, d);
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
	d->call = calls_start(c, d->holder, &m, TABLE_SLOT_NONE, c->config.call_ns, feed_requested,
			      d);
	if (d->call == NULL) {
		feed_timer(c, d, control_backoff(c, 1));
		return;
	}
	watch_asked(&d->watch, c->now_ns);
	feed_look_later(c, d);
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
		watch_begin(&d->watch, 0, c->now_ns);
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

static void feed_link_begin(struct control *c, struct feed *d)
{
	d->state = FEED_LINK;
	d->linking_ns = c->now_ns;
	watch_asked(&d->watch, c->now_ns);
	feed_look_later(c, d);
	feed_linked(c, d);
}

void feed_start(struct control *c, struct feed *d, struct node *holder)
{
	const uint64_t *map = fetch_map(c, d->fetch);

	d->holder = holder;
	d->began_ns = d->moved_ns = c->now_ns;
	d->fresh = true;
	watch_begin(&d->watch, map ? chunks_missing(map, d->first, d->end) : d->end - d->first,
		    c->now_ns);
	feed_link_begin(c, d);
}

void feed_assign(struct control *c, struct feed *d, uint32_t first, uint32_t end)
{
	const uint64_t *map = fetch_map(c, d->fetch);
	uint32_t from = map ? chunks_after(map, first, end, 0) : first, conn;

	d->first = first;
	d->end = end;
	d->missing = map ? chunks_missing(map, first, end) : end - first;
	d->looked_ns = c->now_ns;
	d->watch.missing = d->missing;
	if (d->state <= FEED_LINK || map == NULL || from == end)
		return;
	/* What its stream is to bring next lies in the range: it goes on. */
	if (d->edge && end <= d->edge_end && from >= d->edge_first &&
	    chunks_missing(map, d->edge_first, from) == 0)
		return;
	if (d->edge == NULL) {
		feed_link_begin(c, d);
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

/* Does it still flow? A holder that is asked answers the same request again. */
static void feed_look(struct control *c, struct feed *d)
{
	struct fetch *f = d->fetch;
	const uint64_t *map = fetch_map(c, f);
	uint32_t missing = map ? chunks_missing(map, d->first, d->end) : d->watch.missing;

	/* The first holder of a fetch may need time for its connection: there is no hurry yet. */
	if (d->state != FEED_STREAM && d->fresh && f->repair_ns == 0 &&
	    c->now_ns - d->began_ns < WATCH_SILENT_MAX_NS) {
		feed_look_later(c, d);
		return;
	}
	switch (watch_look(&c->watches, &d->watch, missing, c->now_ns)) {
	case WATCH_FLOWS:
		d->attempts = 0;
		d->silent = false;
		fetch_flows(c, f, d);
		break;
	case WATCH_ASK:
		if (c->now_ns - d->watch.moved_ns >= c->config.stall_ns && !fetch_wanted(c, f)) {
			fetch_fail(c, f, -ECANCELED, "it does not arrive, and nobody waits for it");
			return;
		}
		if (d->call == NULL && d->edge) {
			feed_send(c, d);
			return;
		}
		watch_asked(&d->watch, c->now_ns);
		break;
	case WATCH_SILENT:
		fetch_silent(c, f, d);
		break;
	default:
		break;
	}
	if (d->state != FEED_FREE)
		feed_look_later(c, d);
}

static void feed_fire(struct control *c, struct timer *t)
{
	struct feed *d = list_item(t, struct feed, timer);

	if (d->state == FEED_LINK && c->now_ns - d->linking_ns >= c->config.link_ns)
		feed_failed(c, d, MESSAGE_GET_UNREACHED);
	else if (d->state == FEED_REQUEST && d->call == NULL)
		feed_send(c, d);
	else if (d->state == FEED_STREAM && d->edge == NULL) /* the worker is about to say so */
		feed_timer(c, d, c->config.stall_ns);
	else
		feed_look(c, d);
}
