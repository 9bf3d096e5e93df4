/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that other nodes stream, over IN edges. */
#include <errno.h>
#include "core/base/env.h"
#include "state.h"

/*
 * * When a stream makes no progress for QUIET_NS the node is asked. When it has not answered after
 * SILENT_NS more it is reported: a coordinator with a reserve replaces it, long before the
 * connection times out. Both are above a round trip. A wrong suspicion only costs work.
 */
#define PART_QUIET_NS  UINT64_C(50000000)
#define PART_SILENT_NS UINT64_C(50000000)

static bool input_stream_linked(struct control *c, struct part *p)
{
	struct substream_range r;

	if (!substreams_greeted(c, p->node))
		return false;
	if (p->lanes == 0)
		p->lanes = lane_count(p->size, p->node->workers);
	r = input_range(c, p, p->lanes, p->node->workers);
	return substreams_linked(c, p->node, &r);
}

/* Sets the time of the next check of a stream: soon while it makes progress. */
static void input_stream_watch(struct control *c, struct part *p)
{
	uint32_t missing = input_missing(c, p);
	bool moves = missing != p->missing;

	p->missing = missing;
	input_timer(c, p, moves ? PART_QUIET_NS : c->config.stall_ns);
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
	if (status == 0) {
		input_stream_flows(p, call);
		p->state = PART_STREAM;
		p->lost_ns = 0;
		input_stream_watch(c, p);
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
	timers_cancel(&c->timers, &p->timer);
	p->call = rpc_start(c, p->node, &m, TABLE_SLOT_NONE, c->config.call_ns,
			    input_stream_answered, p);
	if (!p->call)
		input_timer(c, p, env_backoff(c, 1));
	else if (p->state == PART_STREAM)
		input_timer(c, p, PART_SILENT_NS);
	else
		input_timer(c, p, PART_QUIET_NS + PART_SILENT_NS);
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

static void input_stream_unanswered(struct control *c, struct part *p)
{
	p->silent = true;
	participant_report(c, p->participant);
	input_timer(c, p, c->config.stall_ns);
}

/* Nothing has arrived for a while: repeats the request, which a living sender answers. */
static void input_stream_stalled(struct control *c, struct part *p)
{
	if (input_missing(c, p) != p->missing) {
		p->attempts = 0;
		p->silent = false;
		input_stream_watch(c, p);
	} else if (p->call) {
		input_stream_unanswered(c, p);
	} else {
		input_stream_send(c, p);
	}
}

static void input_stream_fire(struct control *c, struct part *p)
{
	if (p->state == PART_LINK)
		input_start(c, p);
	else if (p->state == PART_REQUEST && p->call)
		input_stream_unanswered(c, p);
	else if (p->state == PART_REQUEST)
		input_stream_send(c, p);
	else
		input_stream_stalled(c, p);
}

const struct part_way part_stream = {input_stream_start, input_stream_fire};
