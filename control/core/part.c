/* SPDX-License-Identifier: BSD-3-Clause */
/* One contribution to an object that is combined: where it comes from, and that all of it comes. */
#include <errno.h>
#include "state.h"

#define PART_SOON_NS UINT64_C(200000) /* an object that is not there yet is asked for again */

/*
 * A stream that does not move for QUIET_NS is asked about, and a node that has not answered after
 * SILENT_NS more is reported: with a source in reserve the coordinator does without it, long before
 * the connection is given up. Both are above a round trip, and an error costs only work.
 */
#define PART_QUIET_NS  UINT64_C(50000000)
#define PART_SILENT_NS UINT64_C(50000000)

static void part_fire(struct control *c, struct timer *t);
static void part_let_go(struct control *c, struct part *p);

void part_timer(struct control *c, struct part *p, uint64_t delay_ns)
{
	timers_set(&c->timers, &p->timer, c->now_ns + delay_ns, part_fire);
}

void part_lost(struct control *c, struct part *p, int32_t status)
{
	calls_cancel(c, p->call);
	p->call = NULL;
	timers_cancel(&c->timers, &p->timer);
	part_let_go(c, p);
	p->state = PART_LOST;
	p->silent = false;
	p->status = status;
	combine_report(c, p->combine);
	if (p->combine->sum.op == 0) /* others may have all else: it tries again */
		part_timer(c, p, c->config.stall_ns);
}

void part_later(struct control *c, struct part *p, int32_t status)
{
	uint64_t pause = PART_SOON_NS << (p->attempts < 12 ? p->attempts : 12);
	uint64_t limit = p->node->state == NODE_DOWN ? c->config.down_ns : c->config.link_ns;

	if (p->lost_ns == 0)
		p->lost_ns = c->now_ns;
	if (c->now_ns - p->lost_ns >= limit) {
		part_lost(c, p, status);
		return;
	}
	limit -= c->now_ns - p->lost_ns;
	p->attempts++;
	part_timer(c, p, pause < limit ? pause : limit);
}

/* Lets go of its streams; what they have brought stays. */
static void part_let_go(struct control *c, struct part *p)
{
	strands_drop(c, &p->edges);
	if (p->mirror)
		plan_drop_stage(c, p->mirror);
	p->mirror = NULL;
}

static const uint64_t *part_map(struct control *c, const struct part *p)
{
	const struct stage *s = objects_at(c, p->combine->slot)->stage;

	return s ? plan_given(c, s, p) : NULL;
}

static uint32_t part_missing(struct control *c, const struct part *p)
{
	const uint64_t *map = part_map(c, p);

	return map ? chunks_missing(map, p->to, p->to + p->count) : p->count;
}

/* What is built, and its object on a node with so many workers. */
static struct strand_range part_range(const struct control *c, const struct part *p,
				      uint32_t stripes, uint32_t workers)
{
	const struct combine *k = p->combine;

	return (struct strand_range){
		.here = {k->by_id.id, combine_chunks(k), stripe_count(k->size, c->workers),
			 c->workers},
		.there = {p->id, (uint32_t)chunk_count(p->size, k->chunk_bytes), stripes, workers},
		.first = p->to,
		.end = p->to + p->count,
		.peer_first = p->first,
	};
}

/* ---- an object of this node ---------------------------------------------------------------- */

/* Whether each of our workers has what it needs of the object's own stage, as that arrives. */
static bool part_is_beside(const struct control *c, const struct part *p, const struct stage *own)
{
	struct strand_range r = part_range(c, p, own->stripes, c->workers);
	struct strand t;

	for (uint32_t at = r.first; at < r.end; at = t.end) {
		t = strand_at(&r, at);
		if (t.worker != t.peer_worker)
			return false;
	}
	return true;
}

/* The stages to read it from: its own when it is arriving on the same workers, else some beside. */
static struct stage *part_source(struct control *c, struct part *p, uint32_t slot,
				 struct strand_range *r)
{
	struct stage *own = objects_at(c, slot)->stage;
	struct strand_cut here = part_range(c, p, 1, c->workers).here;
	uint32_t from = stripe_of(here.chunks, here.stripes, p->to);
	uint32_t last = stripe_of(here.chunks, here.stripes, p->to + p->count - 1);

	if (own && own->bitmap && own->chunk_bytes == p->combine->chunk_bytes &&
	    c->table->slot[slot].state != OBJECT_SEALED && part_is_beside(c, p, own)) {
		*r = part_range(c, p, own->stripes, c->workers);
		return own;
	}
	*r = part_range(c, p, 1, c->workers);
	p->mirror = plan_mirror(c, slot, stripe_worker(&here.id, c->workers, from), last - from + 1,
				p->combine->chunk_bytes, p);
	return p->mirror;
}

/* Of the stages to read from the one on that worker. */
static const struct stage *part_stage_on(const struct stage *s, unsigned worker)
{
	while (s->worker != worker)
		s = s->next;
	return s;
}

static bool part_local_edges(struct control *c, struct part *p, uint32_t slot)
{
	struct stage *into = combine_stage(c, p->combine), *from;
	struct strand_range r;
	struct strand t;

	if (into == NULL)
		return false;
	from = part_source(c, p, slot, &r);
	for (uint32_t at = r.first; from && at < r.end; at = t.end) {
		struct edge *e;

		t = strand_at(&r, at);
		e = plan_local(c, into, part_stage_on(from, t.worker), &t, p);
		if (e == NULL)
			return false;
		list_append(&p->edges, &e->of_owner);
	}
	return from != NULL;
}

static void part_local(struct control *c, struct part *p)
{
	uint32_t slot = objects_find(c, &p->id);

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, p->generation)) {
		part_later(c, p, -ENOENT);
	} else if (c->table->slot[slot].size != p->size) {
		part_lost(c, p, -EINVAL);
	} else if (part_local_edges(c, p, slot)) {
		p->state = PART_LOCAL;
		p->lost_ns = 0;
	} else {
		part_let_go(c, p);
		part_later(c, p, -ENOSPC);
	}
}

void part_source_killed(struct control *c, struct part *p)
{
	const struct stage *s = p->mirror;

	/* All of it was there: the stage keeps the bytes until they are in. */
	if (atomic_load_explicit(&c->table->slot[s->slot].watermark, memory_order_acquire) ==
	    s->size)
		return;
	part_lost(c, p, -ENOENT);
}

void part_mirror_lost(struct control *c, struct part *p)
{
	p->mirror = NULL; /* the end of its edges follows */
}

/* ---- an object of another node -------------------------------------------------------------- */

static bool part_is_linked(struct control *c, struct part *p)
{
	struct strand_range r;

	if (!strands_greeted(c, p->node))
		return false;
	if (p->stripes == 0)
		p->stripes = stripe_count(p->size, p->node->workers);
	r = part_range(c, p, p->stripes, p->node->workers);
	return strands_linked(c, p->node, &r);
}

/* When to look at a stream again: soon while it moves. */
static void part_watch(struct control *c, struct part *p)
{
	uint32_t missing = part_missing(c, p);
	bool moves = missing != p->missing;

	p->missing = missing;
	part_timer(c, p, moves ? PART_QUIET_NS : c->config.stall_ns);
}

static bool part_requested(struct control *c, struct call *call, const struct message *answer)
{
	struct part *p = call->owner;
	int32_t status = answer ? answer->reply.status : -ETIMEDOUT;

	p->call = NULL;
	p->silent = false;
	timers_cancel(&c->timers, &p->timer);
	if (status == 0) {
		p->state = PART_STREAM;
		p->lost_ns = 0;
		part_watch(c, p);
	} else if (status == -EAGAIN || status == -ENOENT || status == -ETIMEDOUT) {
		p->state = PART_REQUEST; /* perhaps it is about to be made */
		part_later(c, p, status);
	} else if (status == -EPIPE || /* a stream has ended there: new edges, fresh credit */
		   (answer && strands_recut(&answer->reply, &p->stripes))) {
		part_let_go(c, p);
		p->state = PART_LINK;
		part_later(c, p, status);
	} else {
		part_lost(c, p, status);
	}
	return false;
}

/* The runs that are here already, in the numbers of the other object. */
static uint32_t part_skips(struct control *c, const struct part *p, struct message_stream *m)
{
	const uint64_t *map = part_map(c, p);
	uint32_t runs = map ? chunks_runs(map, p->to, p->to + p->count, m->skip) : 0;

	for (uint32_t i = 0; i < runs; i++)
		m->skip[i].first = m->skip[i].first - p->to + p->first;
	return runs;
}

static void part_send(struct control *c, struct part *p)
{
	struct message m = {.kind = MESSAGE_STREAM};

	m.stream.id = p->id;
	m.stream.generation = p->generation;
	m.stream.chunk_bytes = p->combine->chunk_bytes;
	m.stream.first = p->first;
	m.stream.count = p->count;
	m.stream.stripes = p->stripes;
	m.stream.check = p->state == PART_STREAM;
	strands_name(&p->edges, part_map(c, p), &m.stream);
	if (!m.stream.check)
		m.stream.skips = part_skips(c, p, &m.stream);
	timers_cancel(&c->timers, &p->timer);
	p->call =
		calls_start(c, p->node, &m, TABLE_SLOT_NONE, c->config.call_ns, part_requested, p);
	if (p->call == NULL)
		part_timer(c, p, control_backoff(c, 1));
	else if (p->state == PART_STREAM)
		part_timer(c, p, PART_SILENT_NS);
}

static void part_done(struct control *c, struct part *p);

static void part_request(struct control *c, struct part *p)
{
	struct stage *s = combine_stage(c, p->combine);
	struct strand_range r = part_range(c, p, p->stripes, p->node->workers);

	if (s == NULL || !strands_open(c, p->node, &r, s, plan_given(c, s, p), p, &p->edges)) {
		part_let_go(c, p);
		part_later(c, p, -ENOSPC);
	} else if (list_empty(&p->edges)) {
		part_done(c, p);
	} else {
		p->state = PART_REQUEST;
		part_send(c, p);
	}
}

void part_linked(struct control *c, struct part *p)
{
	if (p->state == PART_LINK && p->node != c->self && part_is_linked(c, p))
		part_request(c, p);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Of an object of which only these chunks are. */
static uint64_t part_bytes(const struct combine *k, const struct message_part *from)
{
	uint64_t begin = (uint64_t)from->to * k->chunk_bytes;
	uint64_t end = begin + (uint64_t)from->count * k->chunk_bytes;

	return (end < k->size ? end : k->size) - begin;
}

struct part *part_add(struct control *c, struct combine *k, const struct message_part *from)
{
	struct part *p = pool_take(&c->combines.parts);

	if (p == NULL)
		return NULL;
	p->combine = k;
	p->node = peers_node(c, from->node);
	p->id = from->id;
	p->generation = from->generation;
	p->first = from->first;
	p->count = from->count;
	p->to = from->to;
	p->size = from->size ? from->size : part_bytes(k, from);
	p->index = k->count++;
	list_init(&p->edges);
	p->stripe = from->stripe;
	list_append(&k->parts, &p->of_combine);
	return p;
}

void part_start(struct control *c, struct part *p)
{
	p->state = PART_LINK;
	if (p->combine->values) {
		part_value_start(c, p);
		return;
	}
	if (!c->attached)
		return; /* combine_node_up of ourselves will */
	if (p->node == c->self) {
		part_local(c, p);
		return;
	}
	part_linked(c, p);
	if (p->state == PART_LINK && p->timer.position == 0)
		part_later(c, p, -EHOSTUNREACH);
}

static void part_done(struct control *c, struct part *p)
{
	calls_cancel(c, p->call);
	p->call = NULL;
	timers_cancel(&c->timers, &p->timer);
	p->told = p->combine->sum.op == 0; /* only the whole matters */
	p->silent = false;
	p->state = PART_DONE; /* its edges stay: the sender may want to send something once more */
	combine_report(c, p->combine);
}

void part_brought(struct control *c, struct part *p)
{
	if (p->state < PART_DONE && part_missing(c, p) == 0)
		part_done(c, p);
}

void part_end(struct control *c, struct part *p)
{
	calls_cancel(c, p->call);
	p->call = NULL;
	timers_cancel(&c->timers, &p->timer);
	part_let_go(c, p);
	p->state = PART_DONE;
	p->silent = false;
	p->told = true;
}

void part_edge_failed(struct control *c, struct part *p, struct edge *e)
{
	if (p->state >= PART_DONE) {
		list_remove(&e->of_owner);
		plan_drop_edge(c, e);
		return;
	}
	part_let_go(c, p);
	p->stripes = 0; /* the node may come back with other workers */
	calls_cancel(c, p->call);
	p->call = NULL;
	p->silent = false;
	p->state = PART_LINK;
	part_later(c, p, -EHOSTUNREACH);
}

/* Nothing has come for a while: does the other side still send? It answers the same request. */
static void part_stalled(struct control *c, struct part *p)
{
	if (part_missing(c, p) != p->missing) {
		p->attempts = 0;
		p->silent = false;
		part_watch(c, p);
	} else if (p->call) {
		p->silent = true;
		combine_report(c, p->combine);
		part_timer(c, p, c->config.stall_ns);
	} else {
		part_send(c, p);
	}
}

static void part_fire(struct control *c, struct timer *t)
{
	struct part *p = list_item(t, struct part, timer);

	switch (p->state) {
	case PART_LINK:
		if (p->combine->values)
			part_value_fire(c, p);
		else
			part_start(c, p);
		break;
	case PART_REQUEST:
		if (p->combine->values)
			part_value_fire(c, p);
		else
			part_send(c, p);
		break;
	case PART_STREAM:
		part_stalled(c, p);
		break;
	case PART_LOST:
		p->told = false;
		p->lost_ns = 0;
		part_start(c, p);
		break;
	default:
		break;
	}
}

void part_restart(struct control *c, struct part *p)
{
	calls_cancel(c, p->call);
	timers_cancel(&c->timers, &p->timer);
	list_each(l, after, &p->edges) list_item(l, struct edge, of_owner)->part = NULL;
	strands_forget(&p->edges);
	if (p->mirror)
		plan_drop_stage(c, p->mirror);
	p->call = NULL;
	p->mirror = NULL;
	p->stripes = 0;
	p->lost_ns = 0;
	p->attempts = 0;
	p->told = p->silent = false;
	p->state = PART_LINK;
}

void part_free(struct control *c, struct part *p)
{
	part_restart(c, p);
	list_remove(&p->of_combine);
	pool_give(&c->combines.parts, p);
}
