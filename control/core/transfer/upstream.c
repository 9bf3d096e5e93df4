/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "core/base/env.h"
#include "state.h"

enum { FEED_ATTEMPTS = 8 };

static void upstream_fire(struct control *c, struct timer *t);

static void upstream_timer(struct control *c, struct feed *d, uint64_t delay_ns)
{
	timers_set(&c->timers, &d->timer, c->now_ns + delay_ns, upstream_fire);
}

void upstream_init(struct feed *d, struct fetch *f)
{
	*d = (struct feed){.fetch = f};
	list_init(&d->edges);
	list_init(&d->old_edges);
}

void upstream_forget_edges(struct feed *d)
{
	substreams_forget(&d->edges);
	substreams_forget(&d->old_edges);
}

void upstream_stop(struct control *c, struct feed *d)
{
	struct fetch *f = d->fetch;

	if (d->state == FEED_FREE)
		return;
	rpc_cancel(c, d->call);
	timers_cancel(&c->timers, &d->timer);
	substreams_drop(c, &d->edges);
	substreams_drop(c, &d->old_edges);
	upstream_init(d, f);
}

/* [G1.7] */
void upstream_failed(struct control *c, struct feed *d, uint32_t why)
{
	struct node *holder = d->holder;

	monitor_note_lost(c, d->fetch, d);
	upstream_stop(c, d);
	fetch_feed_failed(c, d->fetch, holder, why);
}

/* ---- LINK --------------------------------------------------------------------------------- */

/* The range of the feed from a chunk on, in the lanes of both nodes. */
static struct substream_range upstream_range(const struct control *c, const struct feed *d,
					     uint32_t first, uint32_t end)
{
	const struct fetch *f = d->fetch;
	uint32_t chunks = ranges_chunks(f), lanes = lane_count(f->size, c->workers);

	return (struct substream_range){
		.here = {f->by_id.id, chunks, lanes, c->workers},
		.there = {f->by_id.id, chunks, d->lanes, d->holder->workers},
		.first = first,
		.end = end,
		.peer_first = first,
	};
}

/* Whether all links that streams of any range may use are up; opens missing ones. */
static bool upstream_is_linked(struct control *c, struct feed *d)
{
	struct substream_range all;

	if (!substreams_greeted(c, d->holder, d->fetch->size, &d->lanes))
		return false;
	all = upstream_range(c, d, 0, ranges_chunks(d->fetch));
	return substreams_linked(c, d->holder, &all);
}

/* ---- REQUEST and STREAM ------------------------------------------------------------------- */

static void upstream_look_later(struct control *c, struct feed *d)
{
	const struct fetch *f = d->fetch;
	uint64_t delay = stall_delay(&c->cluster->watches, &d->watch, c->now_ns), given_up;

	if (d->state == FEED_LINK) {
		given_up = d->linking_ns + c->config.link_ns;
		if (c->now_ns + delay > given_up)
			delay = given_up > c->now_ns ? given_up - c->now_ns : 0;
	}
	if (f->repair_ns != 0 && c->now_ns - f->repair_ns < FEED_REPAIR_NS && delay > FEED_NEXT_NS)
		delay = FEED_NEXT_NS;
	upstream_timer(c, d, delay);
}

static void upstream_link_begin(struct control *c, struct feed *d);

/* The holder has another number of lanes than assumed. */
static bool upstream_recut(struct control *c, struct feed *d, const struct message_reply *r)
{
	if (d->attempts >= FEED_ATTEMPTS || !substreams_recut(r, &d->lanes))
		return false;
	d->attempts++;
	substreams_drop(c, &d->edges);
	upstream_link_begin(c, d);
	return true;
}

static bool upstream_requested(struct control *c, struct call *call, const struct message *answer)
{
	struct feed *d = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;
	bool spoke = answer && d->silent;

	d->call = NULL;
	if (answer) {
		stall_answered(&d->watch, call->message.stream.check, c->now_ns);
		d->silent = false;
	}
	if (answer && upstream_recut(c, d, &answer->reply))
		return false;
	if (d->state == FEED_STREAM && status == -EAGAIN)
		status = 0; /* the end of the connection is about to be reported to both nodes */
	if (status == 0) {
		d->state = FEED_STREAM;
		d->idle = 0;
		substreams_drop(c, &d->old_edges);
		upstream_look_later(c, d);
		monitor_fed(c, d->fetch, d, answer->reply.ready);
		if (spoke)
			monitor_speaks(c, d->fetch, d);
	} else if (status == -EAGAIN &&
		   d->attempts < FEED_ATTEMPTS) { /* it is not ready yet: retries soon */
		d->state = FEED_REQUEST;
		upstream_timer(c, d, FEED_SOON_NS << d->attempts++);
	} else {
		upstream_failed(c, d,
				status == -ENOENT ? MESSAGE_GET_ABSENT : MESSAGE_GET_UNREACHED);
	}
	return false;
}

static void upstream_name_streams(struct control *c, const struct feed *d, struct message_stream *m)
{
	const uint64_t *map = ranges_map(c, d->fetch);

	substreams_name(&d->edges, map, m);
	list_each(l, after, &d->old_edges)
	{
		m->replaces[m->replaced++] = list_item(l, struct edge, of_owner)->handle;
	}
	if (!m->check)
		m->skips = bitmap_runs(map, d->edge_first, d->edge_end, m->skip);
}

static void upstream_send(struct control *c, struct feed *d)
{
	struct message m = {.kind = MESSAGE_STREAM};
	struct fetch *f = d->fetch;

	m.stream.id = f->by_id.id;
	m.stream.generation = f->generation;
	m.stream.chunk_bytes = f->chunk_bytes;
	m.stream.first = d->edge_first;
	m.stream.count = d->edge_end - d->edge_first;
	m.stream.check = d->state == FEED_STREAM;
	m.stream.lanes = d->lanes;
	upstream_name_streams(c, d, &m.stream);
	if (f->fed_ns == 0) {
		f->fed_ns = c->now_ns;
		f->fed_chunks = chunks_missing(ranges_map(c, f), 0, ranges_chunks(f));
	}
	d->call = rpc_start(c, d->holder, &m, TABLE_SLOT_NONE, c->config.call_ns,
			    upstream_requested, d);
	if (!d->call) {
		upstream_timer(c, d, env_backoff(c, 1));
		return;
	}
	stall_asked(&d->watch, c->now_ns);
	upstream_look_later(c, d);
}

/* False: there is no room. */
static bool upstream_set_edges(struct control *c, struct feed *d, struct stage *head)
{
	struct substream_range r = upstream_range(c, d, d->edge_first, d->edge_end);
	bool set =
		substreams_open(c, d->holder, &r, head, ranges_map(c, d->fetch), NULL, &d->edges);

	list_each(l, after, &d->edges) list_item(l, struct edge, of_owner)->feed = d;
	return set;
}

/* Sets edges over the missing part of the range and has the holder send. */
static void upstream_request(struct control *c, struct feed *d)
{
	struct stage *head = placement_stage(c, d->fetch);

	d->state = FEED_REQUEST;
	if (!head) {
		upstream_failed(c, d, MESSAGE_GET_FIRST);
		return;
	}
	d->edge_first = bitmap_after(ranges_map(c, d->fetch), d->first, d->end, 0);
	d->edge_end = d->end;
	if (!upstream_set_edges(c, d, head)) {
		upstream_failed(c, d, MESSAGE_GET_FIRST);
	} else if (list_empty(&d->edges)) {
		/* no chunk is missing: the worker's event follows, or other feeds continue */
		d->state = FEED_STREAM;
		stall_begin(&d->watch, 0, c->now_ns);
		upstream_timer(c, d, c->config.stall_ns);
	} else {
		upstream_send(c, d);
	}
}

void upstream_linked(struct control *c, struct feed *d)
{
	if (d->state == FEED_LINK && upstream_is_linked(c, d))
		upstream_request(c, d);
}

static void upstream_link_begin(struct control *c, struct feed *d)
{
	d->state = FEED_LINK;
	d->linking_ns = c->now_ns;
	stall_asked(&d->watch, c->now_ns);
	upstream_look_later(c, d);
	upstream_linked(c, d);
}

void upstream_start(struct control *c, struct feed *d, struct node *holder)
{
	const uint64_t *map = ranges_map(c, d->fetch);

	d->holder = holder;
	d->began_ns = d->moved_ns = c->now_ns;
	d->fresh = true;
	stall_begin(&d->watch, map ? chunks_missing(map, d->first, d->end) : d->end - d->first,
		    c->now_ns);
	upstream_link_begin(c, d);
}

/* Whether the present streams can continue for the new range: their next chunks lie in it. A single
 * stream may reach beyond it; several would bring chunks of other feeds at the same time. */
static bool upstream_goes_on(const struct feed *d, const uint64_t *map, uint32_t from, uint32_t end)
{
	bool one = d->edges.next == d->edges.prev;

	return (one ? end <= d->edge_end : end == d->edge_end) && from >= d->edge_first &&
	       chunks_missing(map, d->edge_first, from) == 0;
}

void upstream_assign(struct control *c, struct feed *d, uint32_t first, uint32_t end)
{
	const uint64_t *map = ranges_map(c, d->fetch);
	uint32_t from = map ? bitmap_after(map, first, end, 0) : first;

	d->first = first;
	d->end = end;
	d->missing = map ? chunks_missing(map, first, end) : end - first;
	d->looked_ns = c->now_ns;
	d->watch.missing = d->missing;
	if (d->state <= FEED_LINK || !map || from == end)
		return;
	if (list_empty(&d->edges)) {
		upstream_link_begin(c, d);
		return;
	}
	if (upstream_goes_on(d, map, from, end))
		return;
	if (d->state == FEED_REQUEST || !list_empty(&d->old_edges) || !upstream_is_linked(c, d))
		return; /* one change at a time: the next look retries */
	rpc_cancel(c, d->call);
	d->call = NULL;
	list_each(l, after, &d->edges)
	{
		list_remove(l);
		list_append(&d->old_edges, l);
	}
	upstream_request(c, d);
}

void upstream_query(struct control *c, struct feed *d)
{
	if (d->state == FEED_STREAM && !list_empty(&d->edges) && !d->call)
		upstream_send(c, d);
}

/* Checks whether the stream makes progress. If not, repeats the request, which the holder answers.
 */
static void upstream_look(struct control *c, struct feed *d)
{
	struct fetch *f = d->fetch;
	const uint64_t *map = ranges_map(c, f);
	uint32_t missing = map ? chunks_missing(map, d->first, d->end) : d->watch.missing;

	/* The first holder of a fetch may need time for its connection: it is not silent yet. */
	if (d->state != FEED_STREAM && d->fresh && f->repair_ns == 0 &&
	    c->now_ns - d->began_ns < WATCH_SILENT_MAX_NS) {
		upstream_look_later(c, d);
		return;
	}
	switch (stall_look(&c->cluster->watches, &d->watch, missing, c->now_ns)) {
	case WATCH_FLOWS:
		d->attempts = 0;
		/* the chunks may be the stand-in's: the holder's answer decides which of the two
		 * stays */
		d->silent = d->silent && monitor_has_stand_in(f, d);
		monitor_flows(c, f, d);
		break;
	case WATCH_ASK:
		if (c->now_ns - d->watch.moved_ns >= c->config.stall_ns && !fetch_wanted(c, f)) {
			placement_fail(c, f, -ECANCELED,
				       "it does not arrive, and nobody waits for it");
			return;
		}
		if (!d->call && !list_empty(&d->edges)) {
			upstream_send(c, d);
			return;
		}
		stall_asked(&d->watch, c->now_ns);
		break;
	case WATCH_SILENT:
		monitor_say_silent(c, f, d);
		break;
	default:
		break;
	}
	if (d->state != FEED_FREE)
		upstream_look_later(c, d);
}

static void upstream_fire(struct control *c, struct timer *t)
{
	struct feed *d = list_item(t, struct feed, timer);

	if (d->state == FEED_LINK && c->now_ns - d->linking_ns >= c->config.link_ns)
		upstream_failed(c, d, MESSAGE_GET_UNREACHED);
	else if (d->state == FEED_REQUEST && !d->call)
		upstream_send(c, d);
	else if (d->state == FEED_STREAM && list_empty(&d->edges)) /* the worker's event follows */
		upstream_timer(c, d, c->config.stall_ns);
	else
		upstream_look(c, d);
}
