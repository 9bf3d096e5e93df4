/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include "state.h"

/* ---- for the ways ---------------------------------------------------------------------------- */

const uint64_t *input_map(struct control *c, const struct part *p)
{
	const struct stage *s = objects_at(c, p->participant->slot)->stage;

	return s ? buffers_given(c, s, p) : NULL;
}

uint32_t input_missing(struct control *c, const struct part *p)
{
	const uint64_t *map = input_map(c, p);

	return map ? chunks_missing(map, p->to, p->to + p->count) : p->count;
}

struct substream_range input_range(const struct control *c, const struct part *p, uint32_t lanes,
				   uint32_t workers)
{
	const struct participant *k = p->participant;

	return (struct substream_range){
		.here = {k->by_id.id, participant_chunks(k), lane_count(k->size, c->workers),
			 c->workers},
		.there = {p->id, (uint32_t)chunk_count(p->size, k->chunk_bytes), lanes, workers},
		.first = p->to,
		.end = p->to + p->count,
		.peer_first = p->first,
	};
}

void input_unask(struct control *c, struct part *p)
{
	rpc_cancel(c, p->call);
	p->call = NULL;
}

void input_let_go(struct control *c, struct part *p)
{
	substreams_drop(c, &p->edges);
	if (p->mirror)
		buffers_drop_stage(c, p->mirror);
	p->mirror = NULL;
}

/* Ends all waiting of the part: its request and its timer. */
static void input_rest(struct control *c, struct part *p, enum part_state state)
{
	input_unask(c, p);
	timers_cancel(&c->timers, &p->timer);
	p->silent = false;
	p->state = state;
}

void input_done(struct control *c, struct part *p)
{
	/* its edges stay: the sender may have to repeat a chunk */
	input_rest(c, p, PART_DONE);
	p->acked = p->participant->sum.op == 0; /* only the whole matters */
	participant_report(c, p->participant);
}

void input_lost(struct control *c, struct part *p, int32_t status)
{
	input_rest(c, p, PART_LOST);
	input_let_go(c, p);
	p->status = status;
	participant_report(c, p->participant);
	if (p->participant->sum.op ==
	    0) /* a receiver tries again: other nodes may have the segment */
		input_timer(c, p, c->config.stall_ns);
}

/* Whether another receiver of the target feeds the part: then the coordinator can name other
 * feeders. */
static bool input_is_passed_on(const struct part *p)
{
	return p->participant->sum.op == 0 && object_id_equal(&p->id, &p->participant->by_id.id);
}

void input_later(struct control *c, struct part *p, int32_t status)
{
	uint64_t pause = PART_SOON_NS << (p->attempts < 12 ? p->attempts : 12);
	uint64_t limit = p->node->state == NODE_DOWN ? c->config.down_ns : c->config.link_ns;

	if (p->lost_ns == 0)
		p->lost_ns = c->now_ns;
	if (c->now_ns - p->lost_ns >= limit) {
		input_lost(c, p, status);
		return;
	}
	if (input_is_passed_on(p) && c->now_ns - p->lost_ns >= PART_FED_NS && !p->silent) {
		p->silent = true;
		participant_report(c, p->participant);
	}
	limit -= c->now_ns - p->lost_ns;
	p->attempts++;
	input_timer(c, p, pause < limit ? pause : limit);
}

static void input_fire(struct control *c, struct timer *t)
{
	struct part *p = list_item(t, struct part, timer);

	switch (p->state) {
	case PART_LINK:
	case PART_REQUEST:
	case PART_STREAM:
		p->way->fire(c, p);
		break;
	case PART_LOST:
		p->acked = false;
		p->lost_ns = 0;
		input_start(c, p);
		break;
	default:
		break;
	}
}

void input_timer(struct control *c, struct part *p, uint64_t delay_ns)
{
	timers_set(&c->timers, &p->timer, c->now_ns + delay_ns, input_fire);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Bytes of an object that has only these chunks. */
static uint64_t input_bytes(const struct participant *k, const struct message_part *from)
{
	uint64_t begin = (uint64_t)from->to * k->chunk_bytes;
	uint64_t end = begin + (uint64_t)from->count * k->chunk_bytes;

	return (end < k->size ? end : k->size) - begin;
}

static void input_name(struct control *c, struct part *p, const struct message_part *from)
{
	p->node = peers_node(c, from->node);
	if (p->participant->values)
		p->way = &part_value;
	else
		p->way = p->node == c->cluster->self ? &part_local : &part_stream;
	p->id = from->id;
	p->generation = from->generation;
	p->first = from->first;
	p->size = from->size ? from->size : input_bytes(p->participant, from);
	p->stripe = from->stripe;
}

struct part *input_add(struct control *c, struct participant *k, const struct message_part *from)
{
	struct part *p = pool_take(&c->participant->participants.parts);

	if (!p)
		return NULL;
	p->participant = k;
	input_name(c, p, from);
	p->count = from->count;
	p->to = from->to;
	p->index = k->count++;
	list_init(&p->edges);
	list_append(&k->parts, &p->of_participant);
	return p;
}

void input_start(struct control *c, struct part *p)
{
	p->state = PART_LINK;
	p->way->start(c, p);
}

void input_brought(struct control *c, struct part *p)
{
	if (p->state < PART_DONE && input_missing(c, p) == 0)
		input_done(c, p);
}

void input_end(struct control *c, struct part *p)
{
	input_rest(c, p, PART_DONE);
	input_let_go(c, p);
	p->acked = true;
}

void input_edge_failed(struct control *c, struct part *p, struct edge *e)
{
	if (p->state >= PART_DONE) {
		list_remove(&e->of_owner);
		buffers_drop_edge(c, e);
		return;
	}
	input_rest(c, p, PART_LINK);
	input_let_go(c, p);
	p->lanes = 0; /* the node may come back with other workers */
	input_later(c, p, -EHOSTUNREACH);
}

void input_restart(struct control *c, struct part *p)
{
	input_rest(c, p, PART_LINK);
	list_each(l, after, &p->edges) list_item(l, struct edge, of_owner)->part = NULL;
	substreams_forget(&p->edges);
	input_let_go(c, p);
	p->lanes = 0;
	p->shown = 0;
	p->lost_ns = 0;
	p->attempts = 0;
	p->acked = false;
}

/* Whether the part stays with its present node although the coordinator names another: most of it
 * is here, and the rest arrives. The other node may have less. */
static bool input_stays(struct control *c, const struct part *p, const struct node *to)
{
	if (p->state == PART_STREAM && !p->call && to != p->before)
		return 2 * (uint64_t)input_missing(c, p) < p->count;
	return p->state == PART_LOCAL || p->state == PART_DONE;
}

void input_move(struct control *c, struct part *p, const struct message_part *from)
{
	if (input_stays(c, p, peers_node(c, from->node)))
		return;
	input_let_go(c, p);
	input_restart(c, p);
	p->before = p->node;
	input_name(c, p, from);
	input_start(c, p);
}

void input_free(struct control *c, struct part *p)
{
	input_restart(c, p);
	list_remove(&p->of_participant);
	pool_give(&c->participant->participants.parts, p);
}
