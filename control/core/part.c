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

static void part_timer(struct control *c, struct part *p, uint64_t delay_ns)
{
	timers_set(&c->timers, &p->timer, c->now_ns + delay_ns, part_fire);
}

static void part_lost(struct control *c, struct part *p, int32_t status)
{
	calls_cancel(c, p->call);
	p->call = NULL;
	timers_cancel(&c->timers, &p->timer);
	if (p->edge)
		plan_drop_edge(c, p->edge);
	p->edge = NULL;
	p->state = PART_LOST;
	p->silent = false;
	p->status = status;
	combine_report(c, p->combine);
	if (p->combine->sum.op == 0) /* others may have all else: it tries again */
		part_timer(c, p, c->config.stall_ns);
}

/* Not now: soon, then later, until it has taken too long. */
static void part_later(struct control *c, struct part *p, int32_t status)
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

/* What it has brought stays with it until it has an edge again. */
static void part_keep_taken(struct part *p)
{
	if (p->edge == NULL)
		return;
	p->taken = p->edge->bitmap;
	p->edge->bitmap = 0;
	p->edge->part = NULL;
	p->edge = NULL;
}

static uint32_t part_taken(struct control *c, struct part *p)
{
	uint32_t range = p->taken;
	struct combine *k = p->combine;

	p->taken = 0;
	return range ? range : plan_bitmap(c, chunk_count(k->size, k->chunk_bytes));
}

static const uint64_t *part_map(struct control *c, const struct part *p)
{
	const struct stage *s = objects_at(c, p->combine->slot)->stage;
	uint32_t range = p->edge ? p->edge->bitmap : p->taken;

	if (p->combine->sum.op == 0 && s)
		range = s->bitmap;
	return range ? (const uint64_t *)(const void *)objects_scratch(c, range) : NULL;
}

static uint32_t part_missing(struct control *c, const struct part *p)
{
	const uint64_t *map = part_map(c, p);

	return map ? chunks_missing(map, p->to, p->to + p->count) : p->count;
}

/* ---- an object of this node ---------------------------------------------------------------- */

/* The stage to read it from: its own when it is arriving on the same worker, else one beside. */
static const struct stage *part_source(struct control *c, struct part *p, uint32_t slot)
{
	const struct stage *s = objects_at(c, slot)->stage;
	unsigned worker = combine_worker(c, p->combine);

	if (s && s->bitmap && s->next == NULL && s->worker == worker &&
	    s->chunk_bytes == p->combine->chunk_bytes &&
	    c->table->slot[slot].state != OBJECT_SEALED)
		return s;
	p->mirror = plan_mirror(c, slot, worker, p->combine->chunk_bytes, p);
	return p->mirror;
}

static void part_local(struct control *c, struct part *p)
{
	uint32_t slot = objects_find(c, &p->id), taken;
	struct stage *into = combine_stage(c, p->combine);
	const struct stage *from;

	if (slot == TABLE_SLOT_NONE || !objects_is(c, slot, p->generation)) {
		part_later(c, p, -ENOENT);
		return;
	}
	if ((uint64_t)p->first + p->count >
	    chunk_count(c->table->slot[slot].size, p->combine->chunk_bytes)) {
		part_lost(c, p, -EINVAL);
		return;
	}
	taken = into ? part_taken(c, p) : 0;
	from = taken ? part_source(c, p, slot) : NULL;
	p->edge = from ? plan_local(c, into, from, p, taken) : NULL;
	if (p->edge) {
		p->state = PART_LOCAL;
		p->lost_ns = 0;
		return;
	}
	p->taken = taken;
	if (p->mirror)
		plan_drop_stage(c, p->mirror);
	p->mirror = NULL;
	part_later(c, p, -ENOSPC);
}

void part_source_killed(struct control *c, struct part *p)
{
	const struct stage *s = p->mirror;

	/* All of it was there: the stage keeps the bytes until they are in. */
	if (atomic_load_explicit(&c->table->slot[s->slot].watermark, memory_order_acquire) ==
	    s->size)
		return;
	part_keep_taken(p);
	plan_drop_stage(c, p->mirror);
	p->mirror = NULL;
	part_lost(c, p, -ENOENT);
}

void part_mirror_lost(struct control *c, struct part *p)
{
	p->mirror = NULL; /* its edge's end follows */
}

/* ---- an object of another node -------------------------------------------------------------- */

static struct link *part_link(struct control *c, const struct part *p)
{
	struct node *n = p->node;
	struct link *l;

	if (!c->attached)
		return NULL;
	if (n->state != NODE_UP) {
		peers_link(c, n, 0, 0);
		return NULL;
	}
	l = peers_link(c, n, combine_worker(c, p->combine), stripe_worker(&p->id, n->workers, 0));
	return l && l->state == LINK_UP ? l : NULL;
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
	} else if (status == -EPIPE) { /* the stream has ended there: a new edge, fresh credit */
		struct edge *old = p->edge;

		part_keep_taken(p);
		plan_drop_edge(c, old);
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
	m.stream.stripes = m.stream.strands = 1;
	m.stream.strand[0] = (struct message_strand){.stream = p->edge->handle,
						     .worker = combine_worker(c, p->combine),
						     .first = p->first,
						     .count = p->count};
	m.stream.check = p->state == PART_STREAM;
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

static void part_request(struct control *c, struct part *p, uint32_t conn)
{
	struct stage *s = combine_stage(c, p->combine);
	bool counted = p->combine->sum.op != 0;
	uint32_t taken = s && counted ? part_taken(c, p) : 0;

	p->edge = s && (taken || !counted) ? plan_in_part(c, s, conn, p, taken) : NULL;
	if (p->edge == NULL) {
		p->taken = taken;
		part_later(c, p, -ENOSPC);
		return;
	}
	p->state = PART_REQUEST;
	part_send(c, p);
}

void part_linked(struct control *c, struct part *p)
{
	struct link *l = p->state == PART_LINK && p->node != c->self ? part_link(c, p) : NULL;

	if (l)
		part_request(c, p, l->conn);
}

/* ---- life ---------------------------------------------------------------------------------- */

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
	list_append(&k->parts, &p->of_combine);
	k->count++;
	return p;
}

void part_start(struct control *c, struct part *p)
{
	p->state = PART_LINK;
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

void part_done(struct control *c, struct part *p)
{
	calls_cancel(c, p->call);
	p->call = NULL;
	timers_cancel(&c->timers, &p->timer);
	p->told = p->combine->sum.op == 0; /* only the whole matters */
	p->silent = false;
	p->state = PART_DONE; /* its edge stays: the sender may want to send something once more */
	combine_report(c, p->combine);
}

void part_end(struct control *c, struct part *p)
{
	calls_cancel(c, p->call);
	p->call = NULL;
	timers_cancel(&c->timers, &p->timer);
	if (p->edge)
		plan_drop_edge(c, p->edge);
	if (p->mirror)
		plan_drop_stage(c, p->mirror);
	p->edge = NULL;
	p->mirror = NULL;
	p->state = PART_DONE;
	p->silent = false;
	p->told = true;
}

void part_edge_failed(struct control *c, struct part *p)
{
	struct edge *old = p->edge;

	part_keep_taken(p);
	plan_drop_edge(c, old);
	if (p->mirror)
		plan_drop_stage(c, p->mirror);
	p->mirror = NULL;
	if (p->state == PART_DONE || p->state == PART_LOST)
		return;
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
		part_start(c, p);
		break;
	case PART_REQUEST:
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
	if (p->edge)
		p->edge->part = NULL;
	if (p->mirror) {
		p->mirror->part = NULL;
		plan_drop_stage(c, p->mirror);
	}
	if (p->taken)
		allocator_give(&c->objects.scratch, p->taken);
	p->call = NULL;
	p->edge = NULL;
	p->mirror = NULL;
	p->taken = 0;
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
