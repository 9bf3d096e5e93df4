/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of workers about buffers and edges. Events about stages and edges that are being
 * dropped, or that an earlier control has made, are ignored.
 */
#include <assert.h>
#include "core/base/env.h"
#include "core/base/text.h"
#include "state.h"
#include "events.h"

static struct stage *buffer_events_find_stage(struct control *c, unsigned worker, uint32_t handle)
{
	struct pool *pool = &c->flow->buffers.stages;
	struct stage *s;

	if (handle == 0 || handle_index(handle) >= pool->fresh)
		return NULL;
	s = pool_at(pool, handle_index(handle));
	return s->handle == handle && s->worker == worker ? s : NULL;
}

static struct edge *buffer_events_find_edge(struct control *c, unsigned worker, bool out,
					    uint32_t handle)
{
	struct pool *pool = out ? &c->flow->buffers.outs : &c->flow->buffers.ins;
	struct edge *e;

	if (handle == 0 || handle_index(handle) >= pool->fresh)
		return NULL;
	e = pool_at(pool, handle_index(handle));
	return e->handle == handle && e->stage->worker == worker ? e : NULL;
}

static void buffer_events_free_edge(struct control *c, struct edge *e)
{
	assert(e->handle != 0);
	list_remove(&e->of_stage);
	list_remove(&e->of_owner);
	if (e->bitmap)
		allocator_give(&c->flow->buffers.scratch, e->bitmap);
	e->handle = 0;
	pool_give(e->out ? &c->flow->buffers.outs : &c->flow->buffers.ins, e);
}

static void buffer_events_free_lane(struct control *c, struct stage *s)
{
	list_each(l, after, &s->outs)
	{
		buffer_events_free_edge(c, list_item(l, struct edge, of_stage));
	}
	list_each(l, after, &s->ins)
	{
		buffer_events_free_edge(c, list_item(l, struct edge, of_stage));
	}
	assert(list_empty(&s->outs) && list_empty(&s->ins) && s->handle != 0);
	list_remove(&s->advance);
	s->handle = 0;
	pool_give(&c->flow->buffers.stages, s);
}

static void buffer_events_free_stage(struct control *c, struct stage *head)
{
	uint32_t slot = head->slot;

	assert(head->head == head && head->dropping);

	list_remove(&head->mirror);
	if (head->bitmap)
		allocator_give(&c->flow->buffers.scratch, head->bitmap);
	wiring_closed(c, head);
	for (struct stage *s = head, *next; s; s = next) {
		next = s->next;
		buffer_events_free_lane(c, s);
	}
	wiring_released(c, slot);
}

/* The worker has dropped the buffer. */
static void buffer_events_lane_gone(struct control *c, struct stage *s)
{
	struct stage *head = s->head;

	if (head->dropping && ++head->dropped == head->lanes)
		buffer_events_free_stage(c, head);
}

static void buffer_events_dropped(struct control *c, unsigned worker, const struct record *r)
{
	struct stage *s;
	struct edge *e;

	if (r->flags & RECORD_FLAG_BUFFER) {
		s = buffer_events_find_stage(c, worker, r->progress.buffer);
		if (s)
			buffer_events_lane_gone(c, s);
		return;
	}
	e = buffer_events_find_edge(c, worker, r->flags & RECORD_FLAG_OUT, r->edge.edge);
	if (e && e->dropping) {
		s = e->stage;
		buffer_events_free_edge(c, e);
		if (!s->head->dropping)
			buffers_settle_stage(c, s);
	}
}

/* The worker has no such edge. */
static void buffer_events_refused_edge(struct control *c, struct edge *e)
{
	struct stage *s = e->stage;

	if (!e->dropping) {
		e->dropping = true; /* so that its owner's end sends no DROP */
		wiring_edge_ended(c, e);
		buffer_events_free_edge(c, e);
	} else if (!s->head->dropping) {
		buffer_events_free_edge(c, e);
	}
	if (!s->head->dropping)
		buffers_settle_stage(c, s);
}

/* The worker has refused the buffer. The answer to its DROP ends it, as with the other lanes. */
static void buffer_events_refused_stage(struct control *c, struct stage *head)
{
	if (head->dropping)
		return;
	wiring_lost(c, head);
	buffers_drop_stage(c, head);
}

static void buffer_events_log_refused(struct control *c, unsigned worker, const struct record *r)
{
	struct text t = {.length = 0};

	text_add(&t, "worker ");
	text_add_number(&t, worker);
	text_add(&t, " refused record ");
	text_add_number(&t, r->refused.refused_op);
	text_add(&t, ": ");
	text_add(&t, reason_name(r->reason));
	env_log(c, CONTROL_LOG_DEBUG, &t);
}

static void buffer_events_refused(struct control *c, unsigned worker, const struct record *r)
{
	struct stage *s = NULL;
	struct edge *e = NULL;

	c->counters.records_refused++;
	buffer_events_log_refused(c, worker, r);
	switch (r->refused.refused_op) {
	case COMMAND_BUFFER:
		s = buffer_events_find_stage(c, worker, r->refused.id);
		if (s)
			buffer_events_refused_stage(c, s->head);
		break;
	case COMMAND_DROP_BUFFER:
		s = buffer_events_find_stage(c, worker, r->refused.id);
		if (s)
			buffer_events_lane_gone(c, s);
		break;
	case COMMAND_IN:
	case COMMAND_LOCAL:
		e = buffer_events_find_edge(c, worker, false, r->refused.id);
		break;
	case COMMAND_OUT:
		e = buffer_events_find_edge(c, worker, true, r->refused.id);
		break;
	default: /* an ADVANCE or DROP of a buffer or edge that has just ended */
		break;
	}
	if (e)
		buffer_events_refused_edge(c, e);
}

static uint64_t buffer_events_readable(const struct stage *s)
{
	uint64_t before_last = (s->size - 1) / s->chunk_bytes * s->chunk_bytes;

	return s->withhold && s->ready_bytes > before_last ? before_last : s->ready_bytes;
}

/* Updates the watermark of the object once its first lane is complete; until then the worker of
 * that lane does. */
static void buffer_events_watermark(struct control *c, const struct stage *head)
{
	_Atomic uint64_t *watermark = &c->table->slot[head->slot].watermark;
	const struct stage *s = head;
	uint64_t ready = 0;

	for (; s && buffer_events_readable(s) == s->size; s = s->next)
		ready += s->size;
	if (s == head)
		return;
	if (s)
		ready += buffer_events_readable(s);
	if (ready > atomic_load_explicit(watermark, memory_order_relaxed))
		atomic_store_explicit(watermark, ready, memory_order_release);
}

static void buffer_events_progress(struct control *c, struct stage *s, uint64_t ready_bytes)
{
	const struct stage *head = s->head;
	bool all = true;

	if (head->dropping)
		return;
	s->ready_bytes = ready_bytes;
	if (head->next)
		buffer_events_watermark(c, head);
	for (s = s->head; s; s = s->next)
		all = all && s->ready_bytes == s->size;
	if (all)
		wiring_arrived(c, head->slot);
	else
		wiring_ready(c, head->slot);
}

void buffer_events_event(struct control *c, unsigned worker, const struct record *r)
{
	struct stage *s;
	struct edge *e;

	switch (r->op) {
	case EVENT_PROGRESS:
	case EVENT_BUFFER_DONE:
		s = buffer_events_find_stage(c, worker, r->progress.buffer);
		if (s)
			buffer_events_progress(c, s, r->progress.ready_bytes);
		break;
	case EVENT_IN_DONE:
		e = buffer_events_find_edge(c, worker, false, r->edge.edge);
		if (e && !e->dropping)
			wiring_brought(c, e);
		break;
	case EVENT_OUT_DONE:
	case EVENT_EDGE_FAILED:
		e = buffer_events_find_edge(c, worker,
					    r->op == EVENT_OUT_DONE || r->flags & RECORD_FLAG_OUT,
					    r->edge.edge);
		if (e && !e->dropping)
			wiring_edge_ended(c, e);
		break;
	case EVENT_DROPPED:
		buffer_events_dropped(c, worker, r);
		break;
	case EVENT_REFUSED:
		buffer_events_refused(c, worker, r);
		break;
	default:
		c->counters.events_unknown++;
		break;
	}
}

void buffer_events_detach(struct control *c)
{
	for (uint32_t i = 0; i < c->flow->buffers.stages.fresh; i++) {
		struct stage *s = pool_at(&c->flow->buffers.stages, i);

		if (s->handle == 0 || s->head != s)
			continue;
		if (!s->dropping) {
			s->dropping = true;
			wiring_lost(c, s);
		}
		buffer_events_free_stage(c, s);
	}
	commands_detach(c);
}
