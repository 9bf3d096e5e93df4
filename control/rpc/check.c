/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for several fields of one message, and for what no row can say. */
#include "check.h"
#include <errno.h>
#include "internal/record.h"
#include "internal/reduce.h"

static bool check_chunk(uint32_t chunk_bytes, uint64_t size)
{
	return chunk_bytes >= CHUNK_BYTES_MIN && chunk_bytes <= CHUNK_BYTES_MAX &&
	       chunk_bytes % 64 == 0 && size <= INT64_MAX &&
	       chunk_count(size, chunk_bytes) < UINT32_MAX;
}

static bool check_generation(uint64_t generation)
{
	return generation != 0 && generation <= MESSAGE_GENERATION_MAX;
}

bool check_have(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_have *h = &m->have;

	if (h->has_value ? h->value_bytes != h->size : h->value_bytes != 0)
		return false;
	return check_chunk(h->chunk_bytes, h->size);
}

bool check_keep(const void *wire, struct rows_arena *a, struct message *m)
{
	return check_have(wire, a, m) && m->have.has_value &&
	       m->have.state == MESSAGE_COPY_COMPLETE;
}

/* A LOCATE may ask for several at once. */
bool check_get(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_get *g = &m->get;

	if (g->others_count > 0 && (g->why != MESSAGE_GET_LOCATE || !reduce_op_valid(g->op) ||
				    !reduce_dtype_valid(g->dtype)))
		return false;
	return (g->why != MESSAGE_GET_UNREACHED && g->why != MESSAGE_GET_ABSENT) ||
	       g->failed != MESSAGE_NODE_NONE;
}

bool check_got(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_got *g = &m->got;
	bool value = g->what == MESSAGE_GOT_VALUE, holder = g->what == MESSAGE_GOT_HOLDER;

	if (g->lost ? g->what != MESSAGE_GOT_WAIT || g->down_ms == 0 : g->down_ms != 0)
		return false;
	if (value ? g->value_bytes != g->size : g->value_bytes != 0)
		return false;
	if ((value || holder) &&
	    (!check_generation(g->generation) || !check_chunk(g->chunk_bytes, g->size)))
		return false;
	return (value || g->what == MESSAGE_GOT_PIECE ||
		holder == (g->holder != MESSAGE_NODE_NONE)) &&
	       (g->what == MESSAGE_GOT_FAILED) == (g->status != 0);
}

bool check_object(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_object *o = &m->object;

	return o->lapsed ? check_generation(o->generation) : o->lease == 0;
}

/* Its skips are runs that rise and do not touch each other, inside the range. */
bool check_range(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_stream *s = &m->stream;
	uint64_t at = s->first, end = at + s->count;

	for (uint32_t i = 0; i < s->skips; i++) {
		const struct chunk_run run = s->skip[i];

		if (run.first < at || run.count == 0 || (uint64_t)run.first + run.count > end)
			return false;
		at = (uint64_t)run.first + run.count;
	}
	return end <= UINT32_MAX && check_chunk(s->chunk_bytes, 0);
}

bool check_stream(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_stream *s = &m->stream;
	uint64_t end = (uint64_t)s->first + s->count;

	for (uint32_t i = 0; i < s->substreams; i++) {
		const struct message_substream *sub = &s->substream[i];

		if (sub->stream == 0 || sub->worker >= WORKERS_MAX || sub->count == 0 ||
		    sub->first < s->first || (uint64_t)sub->first + sub->count > end)
			return false;
	}
	return s->substreams > 0 && check_range(wire, a, m);
}

bool check_watch(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_watch *w = &m->watch;
	bool next = w->step == MESSAGE_WATCH_NEXT;

	return next == (w->next != 0) && (next || w->cursor == 0);
}

/* Whether the flags are those of a state, or, of an answer to a WATCH, of an event. */
static bool check_flags(uint32_t flags, bool event)
{
	if (event)
		return flags % SESSION_OBJECT_EVENT == 0 && flags > 0 &&
		       flags / SESSION_OBJECT_EVENT <= SESSION_EVENT_GONE;
	return (flags & ~(uint32_t)(SESSION_OBJECT_INLINE | SESSION_OBJECT_REDUCED)) == 0;
}

static bool check_description(const struct session_object *o, bool event)
{
	if (o->leases ? o->lease == 0
		      : o->lease_node || o->lease || o->lease_ms || o->lease_name[0] != 0)
		return false;
	if (o->lost ? o->down_ms == 0 : o->lost_node || o->down_ms)
		return false;
	return (o->generation != 0 || o->flags & SESSION_OBJECT_REDUCED) &&
	       check_flags(o->flags, event);
}

bool check_objects(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_objects *o = &m->objects;
	struct session_object *page = (struct session_object *)(uintptr_t)o->objects;

	if (o->deleted > (o->count == 0) || (o->watch != 0) != (o->next != 0) ||
	    (o->watch > MESSAGE_WATCH_EVENTS && o->count > 0))
		return false;
	for (uint32_t i = 0; i < o->count; i++) {
		page[i].local_watermark = UINT64_MAX;
		if (!check_description(&page[i], o->watch != 0))
			return false;
	}
	return true;
}

/* Its plan lies in the same message. */
bool check_node(const void *wire, struct rows_arena *a, struct message *m)
{
	const Rpc__Node *in = wire;
	struct control_plan *p;

	m->plan = NULL;
	if (in->plan_generation == 0)
		return in->n_plan_level == 0;
	p = rows_alloc(a, sizeof(*p));
	if (!p || in->plan_flags > 7)
		return false;
	*p = (struct control_plan){.number = 1,
				   .everyone = in->plan_flags & 1,
				   .repaired = in->plan_flags & 2,
				   .network = in->plan_flags & 4};
	m->plan = p;
	return unpack_rows(&rows_plan, in, NULL, a, p) && p->planner[0] != 0;
}

/* ---- reduce --------------------------------------------------------------------------------- */

bool check_reduced(const void *wire, struct rows_arena *a, struct message *m)
{
	const Rpc__Object *in = wire;

	m->reduce.timeout_ns = in->mode == 1 ? 0 : UINT64_MAX;
	return in->mode <= 1;
}

bool check_used(const void *wire, struct rows_arena *a, struct message *m)
{
	return m->used.present <= (m->used.status == -EAGAIN ? m->used.count : 0);
}

/* COMMIT and RECALL name a result. */
bool check_result(const void *wire, struct rows_arena *a, struct message *m)
{
	return check_generation(m->used.generation) && m->used.count > 0 && m->used.present == 0;
}

static bool check_part(const struct message_combine *of, const struct message_part *p)
{
	uint64_t chunks = chunk_count(of->size, of->chunk_bytes);

	if (p->size == 0 ? p->first != 0
			 : !check_chunk(of->chunk_bytes, p->size) ||
				   p->first > chunk_count(p->size, of->chunk_bytes) ||
				   p->count > chunk_count(p->size, of->chunk_bytes) - p->first)
		return false;
	return p->generation != 0 && p->node < NODES_MAX && p->count > 0 && p->to < chunks &&
	       p->count <= chunks - p->to &&
	       /* without VALUES: the slot of a source, of which there are more than parts */
	       p->stripe < (of->flags & MESSAGE_COMBINE_VALUES ? MESSAGE_PARTS_MAX
							       : MESSAGE_SOURCES_MAX);
}

bool check_combine(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct message_combine *c = &m->combine;

	if (c->count > c->need || !check_chunk(c->chunk_bytes, c->size))
		return false;
	for (uint32_t i = 0; i < c->count; i++)
		if (!check_part(c, &c->parts[i]))
			return false;
	return true;
}

bool check_combined(const void *wire, struct rows_arena *a, struct message *m)
{
	return m->combined.what != 0 && m->combined.what < MESSAGE_COMBINED_WHATS;
}

/* RELEASE and FINISH are about no part. */
bool check_release(const void *wire, struct rows_arena *a, struct message *m)
{
	m->combined.part_node = MESSAGE_NODE_NONE;
	return true;
}

/* ---- values and groups ---------------------------------------------------------------------- */

/* The bytes, or an error. */
bool check_pull_reply(const void *wire, struct rows_arena *a, struct message *m)
{
	return (m->pull.status == 0) == (m->pull.bytes > 0);
}

bool check_push(const void *wire, struct rows_arena *a, struct message *m)
{
	return m->push.bytes.bytes > 0;
}

bool check_group(const void *wire, struct rows_arena *a, struct message *m)
{
	return !group_request_wrong(&m->group.ask);
}

bool check_grouped(const void *wire, struct rows_arena *a, struct message *m)
{
	const struct group_answer *g = m->grouped.answer;

	return !g || ((g->op == 0 || reduce_op_name(g->op)) &&
		      (g->dtype == 0 || reduce_dtype_name(g->dtype)) &&
		      (g->job.round == 0 || g->job.member < g->job.members));
}
