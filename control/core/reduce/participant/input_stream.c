/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that other nodes stream, over IN edges. */
#include <errno.h>
#include "core/base/env.h"
#include "state.h"

static bool input_stream_linked(struct control *c, struct part *p)
{
	struct substream_range r;

	if (!substreams_greeted(c, p->node, p->size, &p->lanes))
		return false;
	r = input_range(c, p, p->lanes, p->node->workers);
	return substreams_linked(c, p->node, &r);
}

static void input_stream_look_later(struct control *c, struct part *p)
{
	input_timer(c, p, stall_delay(&c->cluster->watches, &p->watch, c->now_ns));
}

/* Begins to measure the rate of the link, from the time of the request on. Not measured: parts that
 * are complete before the answer, and repeated requests, as their time is not known. */
static void input_stream_flows(struct part *p, const struct call *call)
{
	struct participant *k = p->participant;

	if (p->state != PART_REQUEST || call->sent_ns == 0)
		return;
	if (k->flows_ns == 0 || call->sent_ns < k->flows_ns)
		k->flows_ns = call->sent_ns;
	p->shown = p->wanted;
}

static bool input_stream_answered(struct control *c, struct call *call,
				  const struct message *answer)
{
	struct part *p = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	p->call = NULL;
	p->silent = false;
	timers_cancel(&c->timers, &p->timer);
	if (answer)
		stall_answered(&p->watch, call->message.stream.check, c->now_ns);
	if (status == 0) {
		input_stream_flows(p, call);
		p->state = PART_STREAM;
		p->lost_ns = 0;
		input_stream_look_later(c, p);
	} else if (status == -EAGAIN || status == -ENOENT || status == -ETIMEDOUT) {
		p->state = PART_REQUEST; /* the object may be about to be created */
		input_later(c, p, status);
	} else if (status == -EPIPE || /* a stream has ended at the sender: new edges get fresh
					  credit */
		   (answer && substreams_recut(&answer->reply, &p->lanes))) {
		input_let_go(c, p);
		p->state = PART_LINK;
		input_later(c, p, status);
	} else {
		input_lost(c, p, status);
	}
	return false;
}

/* The runs of chunks that have arrived, numbered as chunks of the source. */
static uint32_t input_stream_skips(struct control *c, const struct part *p,
				   struct message_stream *m)
{
	const uint64_t *map = input_map(c, p);
	uint32_t runs = map ? bitmap_runs(map, p->to, p->to + p->count, m->skip) : 0;

	for (uint32_t i = 0; i < runs; i++)
		m->skip[i].first = m->skip[i].first - p->to + p->first;
	return runs;
}

static void input_stream_send(struct control *c, struct part *p)
{
	struct message m = {.kind = MESSAGE_STREAM};

	m.stream.id = p->id;
	m.stream.generation = p->generation;
	m.stream.chunk_bytes = p->participant->chunk_bytes;
	m.stream.first = p->first;
	m.stream.count = p->count;
	m.stream.lanes = p->lanes;
	m.stream.check = p->state == PART_STREAM;
	substreams_name(&p->edges, input_map(c, p), &m.stream);
	if (!m.stream.check) {
		m.stream.skips = input_stream_skips(c, p, &m.stream);
		p->wanted = input_missing(c, p);
	}
	p->call = rpc_start(c, p->node, &m, TABLE_SLOT_NONE, c->config.call_ns,
			    input_stream_answered, p);
	if (!p->call) {
		input_timer(c, p, env_backoff(c, 1));
		return;
	}
	stall_asked(&p->watch, c->now_ns);
	input_stream_look_later(c, p);
}

static void input_stream_open(struct control *c, struct part *p)
{
	struct stage *s = participant_stage(c, p->participant);
	struct substream_range r = input_range(c, p, p->lanes, p->node->workers);

	if (!s || !substreams_open(c, p->node, &r, s, buffers_given(c, s, p), p, &p->edges)) {
		input_let_go(c, p);
		input_later(c, p, -ENOSPC);
	} else if (list_empty(&p->edges)) {
		input_done(c, p);
	} else {
		p->state = PART_REQUEST;
		stall_begin(&p->watch, input_missing(c, p), c->now_ns);
		input_stream_send(c, p);
	}
}

static void input_stream_start(struct control *c, struct part *p)
{
	if (!c->attached)
		return; /* participant_node_up of this node starts it */
	if (input_stream_linked(c, p))
		input_stream_open(c, p);
	if (p->state == PART_LINK && p->timer.position == 0)
		input_later(c, p, -EHOSTUNREACH);
}

/* A coordinator with a reserve replaces a silent node, long before the connection times out. */
static void input_stream_look(struct control *c, struct part *p)
{
	switch (stall_look(&c->cluster->watches, &p->watch, input_missing(c, p), c->now_ns)) {
	case WATCH_FLOWS:
		p->attempts = 0;
		p->silent = false;
		break;
	case WATCH_ASK: /* a living sender answers the repeated request */
		if (!p->call) {
			input_stream_send(c, p);
			return;
		}
		stall_asked(&p->watch, c->now_ns);
		break;
	case WATCH_SILENT:
		if (c->now_ns - p->watch.asked_ns < PART_STALLED_NS)
			break;
		p->silent = true;
		participant_report(c, p->participant);
		input_timer(c, p, c->config.stall_ns);
		return;
	default:
		break;
	}
	input_stream_look_later(c, p);
}

static void input_stream_fire(struct control *c, struct part *p)
{
	if (p->state == PART_LINK)
		input_start(c, p);
	else if (p->state == PART_REQUEST && !p->call)
		input_stream_send(c, p);
	else
		input_stream_look(c, p);
}

const struct part_way part_stream = {input_stream_start, input_stream_fire};
